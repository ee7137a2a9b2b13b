// Freshly generated code, loaded into this process: our kernels and the output of C compilers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bench/memory.h"
#include "codegen/expression/target.h"
#include "codegen/machine/compile.h"

namespace graft::bench {

// A shared object, open for the lifetime of this object. Failure if it cannot be loaded.
class Library {
 public:
  static Library from_bytes(const std::string& bytes);
  explicit Library(const std::string& path);

  template <class Function>
  Function* function(const std::string& name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  Library(const std::string& path, int descriptor);
  void* symbol(const std::string& name) const;  // Failure if there is none

  // The loader treats two files of one path as one library: a file in memory stays open, so that its path remains
  // unique.
  struct Descriptor {
    explicit Descriptor(int file) : number(file) {}
    Descriptor(Descriptor&& other) noexcept : number(std::exchange(other.number, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor();
    int number;
  };
  struct Close {
    void operator()(void* handle) const;
  };
  Descriptor descriptor_;
  std::unique_ptr<void, Close> handle_;
};

// How kernels run their parallel loops (compile.h).
using ParallelFor = void (*)(void* context, void (*body)(void* closure, std::int64_t index), void* closure,
                             std::int64_t n);
struct Parallel {
  ParallelFor run;
  void* context = nullptr;
};
// All iterations in order, on the calling thread.
Parallel in_order();

// A loop program as code of this machine, with the memory that it needs.
class Kernel {
 public:
  // Failure if it does not compile.
  Kernel(const codegen::LoopProgram& program, const codegen::Target& target, const codegen::Pipeline& pipeline);
  void prepare(void* const* buffers) const;
  void run(void* const* buffers, Parallel parallel) const {
    run_(buffers, prepared_.data(), scratch_.data(), parallel.run, parallel.context);
  }

 private:
  using Run = void(void* const* buffers, const void* prepared, void* scratch, ParallelFor, void* context);
  explicit Kernel(const codegen::Code& object);
  std::string symbol_;
  Library library_;
  Memory prepared_, scratch_;
  Run* run_;
};

}  // namespace graft::bench
