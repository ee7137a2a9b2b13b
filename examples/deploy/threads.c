/* Calls a kernel that graft made for several threads, on those of graft_pool.c. */
#include <stdio.h>

#include "graft_pool.h"
#include "two.h"

enum { n = 256 };

static _Alignas(64) float a[n * n], b[n * n], c[n * n];
#if TWO_MATMUL_M256_N256_K256_SCRATCH_BYTES /* some schedules need scratch, others are called without */
static _Alignas(64) char scratch[TWO_MATMUL_M256_N256_K256_SCRATCH_BYTES];
#define MEMORY , scratch
#else
#define MEMORY
#endif

int main(void) {
  int wrong = 0;
  if (!two_runs_here()) return 2;
  for (int i = 0; i < n * n; ++i) a[i] = (float)(i % 13) - 6, b[i] = (float)(i % 7) - 3;
  graft_pool* pool = graft_pool_start(2); /* once; NULL, where there are no threads, is a pool without any */
  two_matmul_m256_n256_k256_parallel(a, b, c MEMORY, graft_pool_for, pool);
  graft_pool_stop(pool);
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
