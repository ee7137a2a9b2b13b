/* A matmul as plain nests of loops in five orders and many tile sizes, measured here, and each printed with its times
 * as a line of JSON that graft reads. Nothing of graft is needed: this is how measurements of your own come in.
 *
 *   cc -O2 -fno-tree-vectorize examples/nests/matmul.c -o nests && ./nests > nests.jsonl
 *   graft import programs nests.jsonl --platform nests --out nests.h5
 *
 * These flags keep the loops as they are written: no other order, no vectors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 240, orders = 5, tiles = 27, repetitions = 7 };

static float A[N * N], B[N * N], C[N * N], expected[N * N];

/* C[i,j] += A[i,l] * B[l,j] over tiles of ti x tj x tl, the loops over tiles and those inside in one order. */
#define LOOP(x, t) for (int x##0 = 0; x##0 < N; x##0 += t)
#define INSIDE(x, t) for (int x = x##0; x < x##0 + t; ++x)
#define NEST(a, b, c)                                                                                          \
  static void nest_##a##b##c(int ti, int tj, int tl) {                                                         \
    memset(C, 0, sizeof C);                                                                                    \
    LOOP(a, t##a)                                                                                              \
    LOOP(b, t##b)                                                                                              \
    LOOP(c, t##c) INSIDE(a, t##a) INSIDE(b, t##b) INSIDE(c, t##c) C[i * N + j] += A[i * N + l] * B[l * N + j]; \
  }
NEST(i, j, l)
NEST(i, l, j)
NEST(l, i, j)
NEST(j, i, l)
NEST(j, l, i)

static const struct {
  const char* order;
  void (*run)(int, int, int);
} nests[] = {{"ijl", nest_ijl}, {"ilj", nest_ilj}, {"lij", nest_lij}, {"jil", nest_jil}, {"jli", nest_jli}};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* of this process alone: others may run in parallel */
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* The text form of the nest, newlines as JSON has them. An index is `tile * x.0 + x.1`. */
static void print_program(const char* order, const int tile_of[3]) {
  printf("buffer A f32 [%d,%d] input\\nbuffer B f32 [%d,%d] input\\nbuffer C f32 [%d,%d] output\\nrun\\n", N, N, N, N,
         N, N);
  printf("  for i %d\\n    for j %d\\n      C[i,j] = 0\\n", N, N);
  for (int level = 0; level < 6; ++level) {
    const char axis = order[level % 3];
    const int tile = tile_of[axis == 'i' ? 0 : axis == 'j' ? 1 : 2];
    for (int space = 0; space <= level; ++space) printf("  ");
    printf("for %c.%d %d\\n", axis, level / 3, level < 3 ? N / tile : tile);
  }
  const int ti = tile_of[0], tj = tile_of[1], tl = tile_of[2];
  printf("              C[%d*i.0 + i.1,%d*j.0 + j.1] += A[%d*i.0 + i.1,%d*l.0 + l.1] * B[%d*l.0 + l.1,%d*j.0 + j.1]\\n",
         ti, tj, ti, tl, tl, tj);
}

static const int sizes[] = {8, 40, 240};
static double seconds[orders][tiles][repetitions];
static int right[orders][tiles];

static void tile_sizes(int t, int tile[3]) {
  for (int axis = 2; axis >= 0; --axis, t /= 3) tile[axis] = sizes[t % 3];
}

static void measure(int n, int t, int repetition) {
  int tile[3];
  tile_sizes(t, tile);
  const double begin = now();
  nests[n].run(tile[0], tile[1], tile[2]);
  seconds[n][t][repetition] = now() - begin;
  right[n][t] = 1;
  for (int x = 0; x < N * N; ++x) right[n][t] &= C[x] - expected[x] < 1e-3f && expected[x] - C[x] < 1e-3f;
}

static void print(int n, int t) {
  int tile[3];
  tile_sizes(t, tile);
  printf("{\"platform\": \"nests\", \"workload\": \"matmul(m=%d,n=%d,k=%d,dtype=f32)\", ", N, N, N);
  printf("\"name\": \"%s_%d_%d_%d\", \"program\": \"", nests[n].order, tile[0], tile[1], tile[2]);
  print_program(nests[n].order, tile);
  if (!right[n][t]) {
    printf("\", \"status\": \"wrong_result\", \"reason\": \"not what the first nest computes\"}\n");
    return;
  }
  printf("\", \"seconds\": [");
  for (int r = 0; r < repetitions; ++r) printf("%s%.9f", r == 0 ? "" : ", ", seconds[n][t][r]);
  printf("], \"clock\": \"thread_cpu\"}\n");
}

int main(void) {
  for (int x = 0; x < N * N; ++x) {
    A[x] = (float)rand() / RAND_MAX - 0.5f;
    B[x] = (float)rand() / RAND_MAX - 0.5f;
  }
  nest_ijl(N, N, N);
  memcpy(expected, C, sizeof C);
  /* All nests in turn, again and again: what else the machine does hits all of them alike. */
  for (int r = 0; r < repetitions; ++r) {
    for (int n = 0; n < orders; ++n) {
      for (int t = 0; t < tiles; ++t) measure(n, t, r);
    }
  }
  for (int n = 0; n < orders; ++n) {
    for (int t = 0; t < tiles; ++t) print(n, t);
  }
  return 0;
}
