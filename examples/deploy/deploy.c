/* Calls a kernel that graft made: the function of a shape that is known when this is compiled. */
#include <stdio.h>

#include "kernels.h"

enum { m = 96, n = 80, k = 64 };

static _Alignas(64) float a[m * k], b[k * n], c[m * n];
#if KERNELS_MATMUL_M96_N80_K64_SCRATCH_BYTES /* some schedules need scratch, others are called without */
static _Alignas(64) char scratch[KERNELS_MATMUL_M96_N80_K64_SCRATCH_BYTES];
#define MEMORY , scratch
#else
#define MEMORY
#endif

int main(void) {
  int wrong = 0;
  for (int i = 0; i < m * k; ++i) a[i] = (float)(i % 13) - 6;
  for (int i = 0; i < k * n; ++i) b[i] = (float)(i % 7) - 3;
  kernels_matmul_m96_n80_k64(a, b, c MEMORY);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0; /* of small integers: exact in any order */
      for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      wrong += c[i * n + j] != sum;
    }
  }
  printf("%d of %d results are wrong\n", wrong, m * n);
  return wrong != 0;
}
