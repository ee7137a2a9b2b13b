/* Kernels of OpenCL made by graft, on a device of the program that uses them: C99, OpenCL 1.2, no other dependency.
 * The comments at the head of a kernel's source say what is launched, with which buffers, and what memory it needs.
 * All functions return a number of OpenCL's, CL_SUCCESS if all is well. A graft_opencl is for one call at a time. */
#ifndef GRAFT_OPENCL_H
#define GRAFT_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <stdlib.h>
#include <string.h>

#define GRAFT_OPENCL_BUFFERS 64 /* that a program can have */

typedef struct {
  int prepares; /* else it runs */
  cl_kernel kernel;
  size_t global[3], local[3]; /* local[0] is 0: the driver chooses */
  int arguments, buffers[GRAFT_OPENCL_BUFFERS];
} graft_opencl_launch;

typedef struct {
  cl_program program;
  graft_opencl_launch* launches;
  int count;
  cl_mem temporaries[GRAFT_OPENCL_BUFFERS];
  char log[4096]; /* of the driver's compiler, where it failed */
} graft_opencl;

static inline void graft_opencl_release(graft_opencl* made) {
  int i;
  if (made == NULL) return;
  for (i = 0; i < made->count; ++i)
    if (made->launches[i].kernel != NULL) clReleaseKernel(made->launches[i].kernel);
  for (i = 0; i < GRAFT_OPENCL_BUFFERS; ++i)
    if (made->temporaries[i] != NULL) clReleaseMemObject(made->temporaries[i]);
  if (made->program != NULL) clReleaseProgram(made->program);
  free(made->launches);
  free(made);
}

/* Adds the launch that a line of the head describes. */
static inline cl_int graft_opencl_add(graft_opencl* made, const char* line) {
  graft_opencl_launch* all =
      (graft_opencl_launch*)realloc(made->launches, sizeof(graft_opencl_launch) * (size_t)(made->count + 1));
  graft_opencl_launch* launch;
  char name[256], *end;
  size_t length, items[3];
  cl_int error;
  int d;
  if (all == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->launches = all;
  launch = all + made->count++;
  memset(launch, 0, sizeof *launch);
  launch->prepares = strncmp(line, "prepare ", 8) == 0;
  line += launch->prepares ? 8 : 4;
  length = strcspn(line, " ");
  if (length >= sizeof name) return CL_INVALID_KERNEL_NAME;
  memcpy(name, line, length);
  name[length] = 0;
  line += length;
  for (d = 0; d < 3; ++d) launch->global[d] = strtoul(line, &end, 10), line = end;
  for (d = 0; d < 3; ++d) items[d] = strtoul(line, &end, 10), line = end;
  for (d = 0; d < 3 && items[0] > 0; ++d) launch->local[d] = items[d], launch->global[d] *= items[d];
  while (*line == ' ' && launch->arguments < GRAFT_OPENCL_BUFFERS)
    launch->buffers[launch->arguments++] = (int)strtol(line, &end, 10), line = end;
  launch->kernel = clCreateKernel(made->program, name, &error);
  return error;
}

/* Builds a source, by its lines, for a device of the context, with the memory that it needs. After an error *made holds
 * the log alone (NULL: no memory for it), and is to be released as well. */
static inline cl_int graft_opencl_create(cl_context context, cl_device_id device, const char** lines, size_t count,
                                         graft_opencl** made) {
  cl_int error;
  size_t i;
  *made = (graft_opencl*)calloc(1, sizeof(graft_opencl));
  if (*made == NULL) return CL_OUT_OF_HOST_MEMORY;
  (*made)->program = clCreateProgramWithSource(context, (cl_uint)count, lines, NULL, &error);
  if (error == CL_SUCCESS) error = clBuildProgram((*made)->program, 1, &device, "-cl-mad-enable -w", NULL, NULL);
  if (error != CL_SUCCESS) {
    if ((*made)->program != NULL)
      clGetProgramBuildInfo((*made)->program, device, CL_PROGRAM_BUILD_LOG, sizeof (*made)->log - 1, (*made)->log, NULL);
    return error;
  }
  for (i = 0; i < count && error == CL_SUCCESS && strncmp(lines[i], "// ", 3) == 0; ++i) {
    if (strncmp(lines[i], "// buffer ", 10) == 0) {
      char* end;
      const long number = strtol(lines[i] + 10, &end, 10);
      if (number < 0 || number >= GRAFT_OPENCL_BUFFERS) return CL_INVALID_VALUE;
      (*made)->temporaries[number] = clCreateBuffer(context, CL_MEM_READ_WRITE, strtoul(end, NULL, 10), NULL, &error);
    } else if (strncmp(lines[i], "// launch ", 10) == 0) {
      error = graft_opencl_add(*made, lines[i] + 10);
    }
  }
  return error;
}

/* Puts what prepares, or what runs, into the queue, which must be in order. */
static inline cl_int graft_opencl_enqueue(graft_opencl* made, cl_command_queue queue, int prepares,
                                          const cl_mem* parameters, int count) {
  int i, a;
  for (i = 0; i < made->count; ++i) {
    graft_opencl_launch* launch = made->launches + i;
    cl_int error = CL_SUCCESS;
    if (launch->prepares != prepares) continue;
    for (a = 0; a < launch->arguments && error == CL_SUCCESS; ++a) {
      const int buffer = launch->buffers[a];
      error = clSetKernelArg(launch->kernel, (cl_uint)a, sizeof(cl_mem),
                             buffer < count ? parameters + buffer : made->temporaries + buffer);
    }
    if (error == CL_SUCCESS)
      error = clEnqueueNDRangeKernel(queue, launch->kernel, 3, NULL, launch->global,
                                     launch->local[0] > 0 ? launch->local : NULL, 0, NULL, NULL);
    if (error != CL_SUCCESS) return error;
  }
  return CL_SUCCESS;
}

#endif /* GRAFT_OPENCL_H */
