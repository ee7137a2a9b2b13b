// Steps of a five-point stencil on an N x N grid, in tiles of TILE_Y x TILE_X; prints the time of the fastest of five
// runs, and a checksum. Compiled once for each configuration:
//   gcc -O3 -DTILE_Y=8 -DTILE_X=64 -DUNROLL=4 stencil.c -o stencil && ./stencil
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef N
#define N 514
#endif
#define STEPS 4
#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(count) PRAGMA(GCC unroll count)

static float grids[2][N][N];

static void step(float (*restrict to)[N], float (*restrict from)[N]) {
  for (int ii = 1; ii < N - 1; ii += TILE_Y) {
    for (int jj = 1; jj < N - 1; jj += TILE_X) {
      const int i_end = ii + TILE_Y < N - 1 ? ii + TILE_Y : N - 1;
      const int j_end = jj + TILE_X < N - 1 ? jj + TILE_X : N - 1;
      for (int i = ii; i < i_end; ++i) {
        UNROLLED(UNROLL)
        for (int j = jj; j < j_end; ++j)
          to[i][j] = 0.2f * (from[i][j] + from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
      }
    }
  }
}

int main(void) {
  double least = 1e9, sum = 0;
  for (int run = 0; run < 5; ++run) {
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) grids[0][i][j] = grids[1][i][j] = (float)((i * 7 + j * 13) % 101);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int s = 0; s < STEPS; ++s) step(grids[(s + 1) % 2], grids[s % 2]);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double ms = 1e3 * (double)(end.tv_sec - begin.tv_sec) + 1e-6 * (double)(end.tv_nsec - begin.tv_nsec);
    if (ms < least) least = ms;
  }
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) sum += grids[STEPS % 2][i][j];
  printf("time %.6f ms\nchecksum %.6e\n", least, sum);
  return 0;
}
