/* Times a product of f32 by a kernel that graft made and by CLBlast on the same device of OpenCL, in turns:
 *   graft tune 'matmul(m=512,n=512,k=512)' --platform opencl:0 --trials 64 --out runs/mm
 *   graft compile runs/mm --out lib --name mine
 *   cc -O2 -Ilib -DM=512 -DN=512 -DK=512 -DKERNEL=mine_matmul_m512_n512_k512 scripts/peers/clblast.c lib/mine.c \
 *      -lclblast -lOpenCL -lm && ./a.out
 * Prints the median of 25 rounds of each, the least, and the median of their ratios with its quartiles. */
#include "mine.h" /* first: it says which version of OpenCL */

#include <clblast_c.h>
#include <math.h>
#include <stdio.h>
#include <time.h>


#define CREATE_(kernel) kernel##_create
#define CREATE(kernel) CREATE_(kernel)

enum { rounds = 25 };

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void require(int error, const char* what) {
  if (error == 0) return;
  fprintf(stderr, "%s gives %d\n", what, error);
  exit(1);
}

static int rises(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static cl_mem memory(cl_context context, size_t count, float* values) {
  cl_int error;
  const cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, 4 * count, values, &error);
  require(error, "clCreateBuffer");
  return made;
}

int main(void) {
  static float a[M * K], b[K * N], c[M * N], other[M * N];
  double times[2][rounds], ratios[rounds];
  cl_platform_id platform;
  cl_device_id device;
  cl_int error;
  graft_opencl* kernel;
  int i, round, which;
  require(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  require(error, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
  require(error, "clCreateCommandQueue");
  for (i = 0; i < M * K; ++i) a[i] = (float)(i % 13) - 6;
  for (i = 0; i < K * N; ++i) b[i] = (float)(i % 7) - 3;
  cl_mem A = memory(context, M * K, a), B = memory(context, K * N, b), C = memory(context, M * N, c);
  require(CREATE(KERNEL)(context, device, &kernel), "create");
  for (round = -2; round < rounds; ++round) {
    for (which = 0; which < 2; ++which) {
      const double begin = now();
      if (which == 0)
        require(KERNEL(kernel, queue, A, B, C), "graft");
      else
        require(CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, M, N, K, 1, A, 0, K, B, 0, N,
                             0, C, 0, N, &queue, NULL),
                "CLBlastSgemm");
      require(clFinish(queue), "clFinish");
      if (round >= 0) times[which][round] = now() - begin;
      if (round == -1)
        require(clEnqueueReadBuffer(queue, C, CL_TRUE, 0, sizeof c, which ? other : c, 0, NULL, NULL), "read");
    }
    if (round >= 0) ratios[round] = times[1][round] / times[0][round];
  }
  for (i = 0; i < M * N; ++i)
    if (c[i] != other[i]) return fprintf(stderr, "element %d is %g and %g\n", i, c[i], other[i]), 1;
  for (which = 0; which < 2; ++which) {
    qsort(times[which], rounds, sizeof(double), rises);
    printf("%s: %.3f ms [%.3f], %.1f GFLOP/s\n", which ? "CLBlast" : "graft", 1e3 * times[which][rounds / 2],
           1e3 * times[which][0], 2e-9 * M * N * K / times[which][rounds / 2]);
  }
  qsort(ratios, rounds, sizeof(double), rises);
  printf("CLBlast over graft: %.2f [%.2f, %.2f]\n", ratios[rounds / 2], ratios[rounds / 4], ratios[3 * rounds / 4]);
  return 0;
}
