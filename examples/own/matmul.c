// Runs matmul.cl on the first OpenCL device (PoCL makes the CPU one): builds it for one configuration, prints the least
// time of five runs, and a checksum. gcc -O2 matmul.c -lOpenCL -o matmul
//   ./matmul matmul.cl BM BN TM TN TK VW UNROLL USE_LOCAL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 256
static float a[N * N], b[N * N], c[N * N];

static void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  fprintf(stderr, "%s: OpenCL error %d\n", what, status);
  exit(1);
}

int main(int count, char** arguments) {
  if (count != 10) return fprintf(stderr, "expected a kernel's file and 8 parameters\n"), 2;
  static char source[1 << 16], options[512];
  FILE* file = fopen(arguments[1], "r");
  if (file == NULL) return perror(arguments[1]), 2;
  source[fread(source, 1, sizeof source - 1, file)] = 0;
  fclose(file);
  int p[8];
  for (int i = 0; i < 8; ++i) p[i] = atoi(arguments[2 + i]);
  snprintf(options, sizeof options,
           "-DN=%d -DBM=%d -DBN=%d -DTM=%d -DTN=%d -DTK=%d -DVW=%d -DUNROLL=%d -DUSE_LOCAL=%d", N, p[0], p[1], p[2],
           p[3], p[4], p[5], p[6], p[7]);

  cl_platform_id platform;
  cl_device_id device;
  cl_int status;
  check(clGetPlatformIDs(1, &platform, NULL), "platform");
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  check(status, "context");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  check(status, "queue");
  const char* text = source;
  cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
  check(status, "program");
  check(clBuildProgram(program, 1, &device, options, NULL, NULL), "build");
  cl_kernel kernel = clCreateKernel(program, "matmul", &status);
  check(status, "kernel");
  for (int i = 0; i < N * N; ++i) a[i] = (float)(i % 7) - 3, b[i] = (float)(i % 11) - 5;
  cl_mem buffers[3];
  for (int i = 0; i < 3; ++i) {
    float* const from = i == 0 ? a : i == 1 ? b : c;
    buffers[i] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof a, from, &status);
    check(status, "buffer");
    check(clSetKernelArg(kernel, (cl_uint)i, sizeof buffers[i], &buffers[i]), "argument");
  }
  const size_t global[2] = {(size_t)(N / p[3]), (size_t)(N / p[2])}, local[2] = {(size_t)p[1], (size_t)p[0]};
  double least = 1e9, sum = 0;
  for (int run = 0; run < 6; ++run) {  // the first one is not counted
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    check(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 0, NULL, NULL), "run");
    check(clFinish(queue), "finish");
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double ms = 1e3 * (double)(end.tv_sec - begin.tv_sec) + 1e-6 * (double)(end.tv_nsec - begin.tv_nsec);
    if (run > 0 && ms < least) least = ms;
  }
  check(clEnqueueReadBuffer(queue, buffers[2], CL_TRUE, 0, sizeof c, c, 0, NULL, NULL), "read");
  for (int i = 0; i < N * N; ++i) sum += c[i] * (double)(i % 5 + 1);
  printf("time %.6f ms\nchecksum %.9e\n", least, sum);
  return 0;
}
