// A driver of OpenCL that computes nothing: memory is the host's, kernels leave it as it is. Sources with "vload4" meet
// what GRAFT_FAKE_OPENCL says: crash, hang, build_error, group or resources.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void* Handle;

static int is_struck;  // of the latest program

static int is(const char* what) {
  const char* const wanted = getenv("GRAFT_FAKE_OPENCL");
  return is_struck && wanted != NULL && strcmp(wanted, what) == 0;
}

int clGetPlatformIDs(uint32_t room, Handle* platforms, uint32_t* count) {
  if (room > 0) platforms[0] = &is_struck;
  if (count != NULL) *count = 1;
  return 0;
}
int clGetDeviceIDs(Handle platform, uint64_t kind, uint32_t room, Handle* devices, uint32_t* count) {
  (void)kind;
  return clGetPlatformIDs(room, devices, count) + (platform == NULL);
}
int clGetDeviceInfo(Handle device, uint32_t question, size_t room, void* value, size_t* size) {
  (void)device, (void)size;
  memset(value, 0, room);
  if (question >= 0x102b)
    snprintf(value, room, "fake");
  else
    *(uint64_t*)value = question == 0x1023 ? 16384 : 64;
  return 0;
}
Handle clCreateContext(const intptr_t* properties, uint32_t count, const Handle* devices, void* a, void* b,
                       int* error) {
  (void)properties, (void)count, (void)devices, (void)a, (void)b;
  *error = 0;
  return &is_struck;
}
Handle clCreateCommandQueue(Handle context, Handle device, uint64_t properties, int* error) {
  (void)device, (void)properties;
  *error = 0;
  return context;
}
Handle clCreateBuffer(Handle context, uint64_t flags, size_t bytes, void* from, int* error) {
  (void)context, (void)flags, (void)from;
  *error = 0;
  return malloc(bytes);
}
Handle clCreateProgramWithSource(Handle context, uint32_t count, const char** texts, const size_t* sizes, int* error) {
  (void)count, (void)sizes;
  is_struck = strstr(texts[0], "vload4") != NULL;
  *error = 0;
  return context;
}
int clBuildProgram(Handle program, uint32_t count, const Handle* devices, const char* options, void* a, void* b) {
  (void)program, (void)count, (void)devices, (void)options, (void)a, (void)b;
  if (is("crash")) raise(SIGSEGV);
  return is("build_error") ? -11 : 0;
}
int clGetProgramBuildInfo(Handle program, Handle device, uint32_t question, size_t room, void* value, size_t* size) {
  (void)program, (void)device, (void)question, (void)size;
  snprintf(value, room, "no registers are left");
  return 0;
}
Handle clCreateKernel(Handle program, const char* name, int* error) {
  (void)name;
  *error = 0;
  return program;
}
int clSetKernelArg(Handle kernel, uint32_t number, size_t size, const void* value) {
  (void)kernel, (void)number, (void)size, (void)value;
  return 0;
}
int clEnqueueNDRangeKernel(Handle queue, Handle kernel, uint32_t dimensions, const size_t* offset, const size_t* global,
                           const size_t* local, uint32_t waits, const Handle* events, Handle* event) {
  (void)queue, (void)kernel, (void)dimensions, (void)offset, (void)global, (void)local;
  (void)waits, (void)events, (void)event;
  return is("group") ? -54 : is("resources") ? -5 : 0;
}
int clEnqueueWriteBuffer(Handle queue, Handle buffer, uint32_t waits_for_it, size_t offset, size_t bytes,
                         const void* from, uint32_t waits, const Handle* events, Handle* event) {
  (void)queue, (void)waits_for_it, (void)offset, (void)waits, (void)events, (void)event;
  memcpy(buffer, from, bytes);
  return 0;
}
int clEnqueueReadBuffer(Handle queue, Handle buffer, uint32_t waits_for_it, size_t offset, size_t bytes, void* to,
                        uint32_t waits, const Handle* events, Handle* event) {
  (void)queue, (void)waits_for_it, (void)offset, (void)waits, (void)events, (void)event;
  while (is("hang")) sleep(1000);
  memcpy(to, buffer, bytes);
  return 0;
}
int clFinish(Handle queue) {
  (void)queue;
  return 0;
}
int clReleaseMemObject(Handle memory) {
  free(memory);
  return 0;
}
int clReleaseKernel(Handle kernel) {
  return kernel == NULL;
}
int clReleaseProgram(Handle program) {
  return program == NULL;
}
int clReleaseCommandQueue(Handle queue) {
  return queue == NULL;
}
int clReleaseContext(Handle context) {
  return context == NULL;
}
