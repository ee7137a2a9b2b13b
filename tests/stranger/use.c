/* Multiplies with the kernel that was found, and holds the result against plain loops. */
#include <stdio.h>

#include "kernels.h"

enum { n = 64 };

static _Alignas(64) float a[n * n], b[n * n], c[n * n];
static _Alignas(64) char scratch[KERNELS_MULTIPLY_SCRATCH_BYTES + 1]; /* an array of no bytes is none */

int main(void) {
  int wrong = 0;
  for (int i = 0; i < n * n; ++i) a[i] = (float)(i % 13) - 6, b[i] = (float)(i % 7) - 3;
  kernels_matmul_for(n, n, n)->run(a, b, c, NULL, scratch);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0; /* of small integers: exact in any order */
      for (int l = 0; l < n; ++l) sum += a[i * n + l] * b[l * n + j];
      wrong += c[i * n + j] != sum;
    }
  }
  printf("%d of %d results are wrong\n", wrong, n * n);
  return wrong != 0;
}
