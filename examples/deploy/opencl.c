/* Calls a kernel of OpenCL that graft made, on the first device of this machine. */
#include <stdio.h>

#include "gpu.h"

enum { n = 256 };

static float a[n * n], b[n * n], c[n * n];

static void require(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  fprintf(stderr, "%s: error %d of OpenCL\n", what, error);
  exit(2);
}

static cl_mem memory(cl_context context, void* values) {
  cl_int error;
  const cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof a, values, &error);
  require(error, "clCreateBuffer");
  return made;
}

int main(void) {
  cl_platform_id platform;
  cl_device_id device;
  cl_int error;
  int wrong = 0;
  require(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
  require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
  const cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  require(error, "clCreateContext");
  const cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
  require(error, "clCreateCommandQueue");

  for (int i = 0; i < n * n; ++i) a[i] = (float)(i % 13) - 6, b[i] = (float)(i % 7) - 3;
  const cl_mem on_device[3] = {memory(context, a), memory(context, b), memory(context, c)};
  graft_opencl* kernel; /* once: the driver compiles it */
  error = gpu_matmul_m256_n256_k256_create(context, device, &kernel);
  if (error != CL_SUCCESS && kernel != NULL) fprintf(stderr, "%s\n", kernel->log);
  require(error, "gpu_matmul_m256_n256_k256_create");
  require(gpu_matmul_m256_n256_k256(kernel, queue, on_device[0], on_device[1], on_device[2]), "matmul");
  require(clEnqueueReadBuffer(queue, on_device[2], CL_TRUE, 0, sizeof c, c, 0, NULL, NULL), "clEnqueueReadBuffer");

  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0; /* of small integers: exact in any order */
      for (int l = 0; l < n; ++l) sum += a[i * n + l] * b[l * n + j];
      wrong += c[i * n + j] != sum;
    }
  }
  printf("%d of %d results are wrong\n", wrong, n * n);
  graft_opencl_release(kernel);
  for (int i = 0; i < 3; ++i) clReleaseMemObject(on_device[i]);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return wrong != 0;
}
