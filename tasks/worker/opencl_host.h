// The part of OpenCL 1.2 that running kernels takes, declared here so that no header of it is needed, from the loader
// that the system has (libOpenCL.so.1), opened when asked for; and a program of opencl_source
// (codegen/machine/opencl.h) on one of its devices. Errors are thrown as Error with OpenCL's number.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace graft::tasks::opencl {

struct Error : std::runtime_error {
  Error(const std::string& what, int opencl_number) : std::runtime_error(what), number(opencl_number) {}
  int number;
};

using Handle = void*;

// result, name, parameters
#define GRAFT_OPENCL(X)                                                                                            \
  X(int, clGetPlatformIDs, (std::uint32_t, Handle*, std::uint32_t*))                                               \
  X(int, clGetDeviceIDs, (Handle, std::uint64_t, std::uint32_t, Handle*, std::uint32_t*))                          \
  X(int, clGetDeviceInfo, (Handle, std::uint32_t, std::size_t, void*, std::size_t*))                               \
  X(Handle, clCreateContext, (const std::intptr_t*, std::uint32_t, const Handle*, void*, void*, int*))             \
  X(Handle, clCreateCommandQueue, (Handle, Handle, std::uint64_t, int*))                                           \
  X(Handle, clCreateBuffer, (Handle, std::uint64_t, std::size_t, void*, int*))                                     \
  X(Handle, clCreateProgramWithSource, (Handle, std::uint32_t, const char**, const std::size_t*, int*))            \
  X(int, clBuildProgram, (Handle, std::uint32_t, const Handle*, const char*, void*, void*))                        \
  X(int, clGetProgramBuildInfo, (Handle, Handle, std::uint32_t, std::size_t, void*, std::size_t*))                 \
  X(Handle, clCreateKernel, (Handle, const char*, int*))                                                           \
  X(int, clSetKernelArg, (Handle, std::uint32_t, std::size_t, const void*))                                        \
  X(int, clEnqueueNDRangeKernel,                                                                                   \
    (Handle, Handle, std::uint32_t, const std::size_t*, const std::size_t*, const std::size_t*, std::uint32_t,     \
     const Handle*, Handle*))                                                                                      \
  X(int, clEnqueueWriteBuffer,                                                                                     \
    (Handle, Handle, std::uint32_t, std::size_t, std::size_t, const void*, std::uint32_t, const Handle*, Handle*)) \
  X(int, clEnqueueReadBuffer,                                                                                      \
    (Handle, Handle, std::uint32_t, std::size_t, std::size_t, void*, std::uint32_t, const Handle*, Handle*))       \
  X(int, clFinish, (Handle))                                                                                       \
  X(int, clReleaseMemObject, (Handle))                                                                             \
  X(int, clReleaseKernel, (Handle))                                                                                \
  X(int, clReleaseProgram, (Handle))                                                                               \
  X(int, clReleaseCommandQueue, (Handle))                                                                          \
  X(int, clReleaseContext, (Handle))

struct Loader {
#define X(result, name, parameters) result(*name) parameters = nullptr;
  GRAFT_OPENCL(X)
#undef X

  // Throws Error where there is no loader.
  static const Loader& get() {
    static const Loader loader;
    return loader;
  }

  std::vector<Handle> devices() const {
    constexpr std::uint64_t all = 0xffffffff;
    std::uint32_t count = 0;
    if (clGetPlatformIDs(0, nullptr, &count) != 0 || count == 0) return {};
    std::vector<Handle> platforms(count), found;
    clGetPlatformIDs(count, platforms.data(), nullptr);
    for (const Handle platform : platforms) {
      if (clGetDeviceIDs(platform, all, 0, nullptr, &count) != 0) continue;
      const std::size_t before = found.size();
      found.resize(before + count);
      clGetDeviceIDs(platform, all, count, found.data() + before, nullptr);
    }
    return found;
  }

 private:
  Loader() {
    void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Error("libOpenCL.so.1 cannot be loaded; install ocl-icd-libopencl1", 0);
#define X(result, name, parameters)                                     \
  name = reinterpret_cast<result(*) parameters>(dlsym(library, #name)); \
  if (name == nullptr) throw Error("libOpenCL.so.1 has no " #name, 0);
    GRAFT_OPENCL(X)
#undef X
  }
};

inline void require(int number, const char* what) {
  if (number != 0) throw Error(std::string(what) + " gives " + std::to_string(number), number);
}

// What a device says of itself, by OpenCL's numbers of questions.
enum Question : std::uint32_t {
  compute_units = 0x1002,
  largest_group = 0x1004,
  local_bytes = 0x1023,
  double_precision = 0x1032,  // 0: none
  device_name = 0x102b,
  driver_version = 0x102d,
  device_version = 0x102f,
};
inline std::uint64_t number_of(Handle device, Question question) {
  std::uint64_t value = 0;
  if (question == double_precision)  // unknown to drivers that have none
    return Loader::get().clGetDeviceInfo(device, question, sizeof value, &value, nullptr) == 0 ? value : 0;
  require(Loader::get().clGetDeviceInfo(device, question, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}
inline std::string text_of(Handle device, Question question) {
  char text[256] = {};
  Loader::get().clGetDeviceInfo(device, question, sizeof text - 1, text, nullptr);
  return text;
}

// A queue on a device.
class Queue {
 public:
  explicit Queue(Handle on) : device(on) {
    int error = 0;
    context = cl.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    require(error, "clCreateContext");
    queue = cl.clCreateCommandQueue(context, device, 0, &error);
    require(error, "clCreateCommandQueue");
  }
  Queue(const Queue&) = delete;
  ~Queue() {
    if (queue != nullptr) cl.clReleaseCommandQueue(queue);
    if (context != nullptr) cl.clReleaseContext(context);
  }
  void finish() const { require(cl.clFinish(queue), "clFinish"); }

  const Loader& cl = Loader::get();
  Handle device = nullptr, context = nullptr, queue = nullptr;
};

class Memory {
 public:
  Memory(const Queue& on, std::size_t bytes) : queue_(on), bytes_(bytes) {
    int error = 0;
    handle = on.cl.clCreateBuffer(on.context, 1, bytes, nullptr, &error);  // 1: read and write
    require(error, "clCreateBuffer");
  }
  Memory(Memory&& other) noexcept : handle(other.handle), queue_(other.queue_), bytes_(other.bytes_) {
    other.handle = nullptr;
  }
  ~Memory() {
    if (handle != nullptr) queue_.cl.clReleaseMemObject(handle);
  }
  void write(const void* from) const {
    require(queue_.cl.clEnqueueWriteBuffer(queue_.queue, handle, 1, 0, bytes_, from, 0, nullptr, nullptr),
            "clEnqueueWriteBuffer");
  }
  void read(void* to) const {
    require(queue_.cl.clEnqueueReadBuffer(queue_.queue, handle, 1, 0, bytes_, to, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
  }
  Handle handle = nullptr;

 private:
  const Queue& queue_;
  std::size_t bytes_;
};

// A source, built; its launches with memory for their arguments.
class Program {
 public:
  // `parameters`: of the program, in order; temporaries follow them in number. Error with the build's log.
  Program(const Queue& queue, const std::string& source, std::vector<Handle> parameters) : queue_(queue) {
    const char* text = source.c_str();
    int error = 0;
    program_ = queue.cl.clCreateProgramWithSource(queue.context, 1, &text, nullptr, &error);
    require(error, "clCreateProgramWithSource");
    error = queue.cl.clBuildProgram(program_, 1, &queue.device, "-cl-mad-enable -w", nullptr, nullptr);
    if (error != 0) {
      std::string log(4096, '\0');
      std::size_t length = 0;
      queue.cl.clGetProgramBuildInfo(program_, queue.device, 0x1183, log.size(), log.data(), &length);
      throw Error("the driver cannot build it: " + log.substr(0, log.find('\0')), error);
    }
    std::istringstream lines(source);
    for (std::string line; std::getline(lines, line) && line.rfind("// ", 0) == 0;) {
      std::istringstream words(line.substr(3));
      std::string kind;
      words >> kind;
      if (kind == "buffer") {
        std::size_t number = 0, bytes = 0;
        words >> number >> bytes;
        if (parameters.size() <= number) parameters.resize(number + 1);
        temporaries_.emplace_back(queue, bytes);
        parameters[number] = temporaries_.back().handle;
      } else if (kind == "launch") {
        add_launch(words, parameters);
      }
    }
  }
  Program(const Program&) = delete;
  ~Program() {
    for (const Launch& launch : launches_) queue_.cl.clReleaseKernel(launch.kernel);
    if (program_ != nullptr) queue_.cl.clReleaseProgram(program_);
  }

  // Puts the launches of "prepare" or "run" into the queue.
  void enqueue(const std::string& body) const {
    for (const Launch& launch : launches_) {
      if (launch.body != body) continue;
      const bool chosen = launch.items[0] > 0;
      std::size_t global[3];
      for (int d = 0; d < 3; ++d) global[d] = launch.groups[d] * (chosen ? launch.items[d] : 1);
      require(queue_.cl.clEnqueueNDRangeKernel(queue_.queue, launch.kernel, 3, nullptr, global,
                                               chosen ? launch.items : nullptr, 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel");
    }
  }

 private:
  struct Launch {
    std::string body;
    Handle kernel = nullptr;
    std::size_t groups[3] = {}, items[3] = {};
  };

  void add_launch(std::istringstream& words, const std::vector<Handle>& buffers) {
    Launch launch;
    std::string name;
    words >> launch.body >> name;
    for (std::size_t& count : launch.groups) words >> count;
    for (std::size_t& count : launch.items) words >> count;
    int error = 0;
    launch.kernel = queue_.cl.clCreateKernel(program_, name.c_str(), &error);
    require(error, "clCreateKernel");
    launches_.push_back(launch);
    std::size_t number = 0;
    for (std::uint32_t argument = 0; words >> number; ++argument)
      require(queue_.cl.clSetKernelArg(launch.kernel, argument, sizeof(Handle), &buffers.at(number)), "clSetKernelArg");
  }

  const Queue& queue_;
  Handle program_ = nullptr;
  std::vector<Memory> temporaries_;
  std::vector<Launch> launches_;
};

}  // namespace graft::tasks::opencl
