// Runs loop programs as this host's code and compares them with the interpreter.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/within.h"
#include "codegen/expression/reference.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/link.h"
#include "codegen/program/forms.h"
#include "codegen/deployed/graft_pool.h"
#include "tests/support/interpreter.h"

namespace graft::codegen::test {

inline LoopProgram parsed(const std::string& text) {
  return parse_program(text, "test");
}

// Small multiples of 1/64 for floats, small integers otherwise: exact in every type.
inline Numbers inputs_of(const LoopProgram& program, std::uint64_t seed) {
  Numbers numbers;
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (const Buffer& buffer : program.buffers) {
    std::vector<double> values(std::size_t(buffer.elements()), 0.0);
    const bool given = buffer.role == Role::input || buffer.role == Role::constant;
    for (double& value : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      if (given)
        value = kept(double(std::int64_t(state >> 58) - 32) / (is_floating(buffer.dtype) ? 64 : 1), buffer.dtype);
    }
    numbers.push_back(std::move(values));
  }
  return numbers;
}

// A shared object loaded from memory.
class Library {
 public:
  explicit Library(const std::string& bytes) {
    const int file = memfd_create("kernel", MFD_CLOEXEC);
    if (::write(file, bytes.data(), bytes.size()) != ssize_t(bytes.size())) ADD_FAILURE() << "memfd";
    handle_ = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) ADD_FAILURE() << dlerror();
    close(file);
  }
  Library(const Library&) = delete;
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  template <class Function>
  Function* find(const std::string& name) const {
    void* address = handle_ ? dlsym(handle_, name.c_str()) : nullptr;
    EXPECT_NE(address, nullptr) << name;
    return reinterpret_cast<Function*>(address);
  }

 private:
  void* handle_ = nullptr;
};

using Task = void(void* closure, std::int64_t index);
using ParallelFor = void(void* context, Task* body, void* closure, std::int64_t n);
using Prepare = void(void* const* buffers, void* prepared, void* scratch);
using Run = void(void* const* buffers, const void* prepared, void* scratch, ParallelFor* parallel_for, void* context);

// Slots from the last to the first, counted: none may depend on another.
inline void backwards(void* context, Task* body, void* closure, std::int64_t n) {
  for (std::int64_t i = n; i-- > 0; ++*static_cast<std::int64_t*>(context)) body(closure, i);
}

// Memory aligned to 64 bytes that ends `bytes` after its start at a page that cannot be accessed (to within alignment),
// so that reading beyond a buffer by a vector is noticed.
class Guarded {
 public:
  explicit Guarded(std::int64_t bytes) {
    const std::size_t page = 4096;
    const std::size_t body = (std::size_t(bytes) + 63) / 64 * 64;
    mapped_ = (body + page - 1) / page * page + page;
    start_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* guard = static_cast<char*>(start_) + mapped_ - page;
    mprotect(guard, page, PROT_NONE);
    data_ = guard - body;
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { munmap(start_, mapped_); }
  char* data() const { return data_; }
  // Makes a store to it a fault.
  void make_constant() const { mprotect(start_, mapped_ - 4096, PROT_READ); }

 private:
  void* start_ = nullptr;
  std::size_t mapped_ = 0;
  char* data_ = nullptr;
};

// Parameters after prepare and run as machine code of this host, on the threads of a pool if there is one; else `slots`
// counts what parallel_for was asked to call.
inline Numbers executed(const LoopProgram& program, const Code& object, const std::string& library_bytes,
                        const Numbers& inputs, std::int64_t* slots = nullptr, graft_pool* pool = nullptr) {
  const Library library(library_bytes);
  auto* prepare = library.find<Prepare>(object.symbol + "_prepare");
  auto* run = library.find<Run>(object.symbol + "_run");
  std::vector<std::unique_ptr<Guarded>> memory;
  std::vector<void*> pointers;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role == Role::temporary) continue;
    memory.push_back(std::make_unique<Guarded>(buffer.bytes()));
    pointers.push_back(memory.back()->data());
    const std::string bytes = as_bytes(inputs[b], buffer.dtype);
    std::memcpy(pointers.back(), bytes.data(), bytes.size());
  }
  const Guarded prepared(object.signature.prepared_bytes), scratch(object.signature.most_scratch_bytes());
  std::int64_t count = 0;
  if (prepare && run) {
    prepare(pointers.data(), prepared.data(), scratch.data());
    std::memset(scratch.data(), 0xff, std::size_t(object.signature.most_scratch_bytes()));  // run must not need it
    prepared.make_constant();
    if (pool)
      run(pointers.data(), prepared.data(), scratch.data(), graft_pool_for, pool);
    else
      run(pointers.data(), prepared.data(), scratch.data(), backwards, &count);
  }
  if (slots) *slots = count;
  Numbers outputs;
  for (std::size_t b = 0, p = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    outputs.emplace_back();
    if (buffer.role == Role::temporary) continue;
    const std::string_view bytes{static_cast<char*>(pointers[p++]), std::size_t(buffer.bytes())};
    outputs.back() = numbers_from(bytes, buffer.dtype);
  }
  return outputs;
}

inline void expect_near(const LoopProgram& program, const Numbers& got, const Numbers& expected, double relative) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::output) continue;
    ASSERT_EQ(got[b].size(), expected[b].size());
    for (std::size_t i = 0; i < got[b].size(); ++i) {
      const double allowed = is_floating(buffer.dtype) ? relative * std::max(1.0, std::abs(expected[b][i])) : 0;
      ASSERT_LE(std::abs(got[b][i] - expected[b][i]), allowed)
          << buffer.name << "[" << i << "]: " << got[b][i] << " instead of " << expected[b][i] << "\n"
          << to_text(program);
    }
  }
}

// Compiles for this host and a number of threads with every pipeline, runs, compares with the interpreter.
inline void expect_right(const std::string& text, double relative = 1e-5, std::int64_t threads = 1,
                         std::int64_t expected_slots = 0) {
  const LoopProgram program = parsed(text);
  const Numbers inputs = inputs_of(program, 1);
  const Numbers expected = interpreted(program, inputs);
  static const Target host = host_target();
  Target target = host;
  target.threads = threads;
  for (const Pipeline& pipeline : pipelines()) {
    SCOPED_TRACE(pipeline.name);
    const auto object = compile(program, target, pipeline);
    ASSERT_TRUE(object.ok()) << object.reason().text;
    const auto library = link_shared({&*object});
    ASSERT_TRUE(library.ok()) << library.reason().text;
    std::int64_t slots = 0;
    expect_near(program, executed(program, *object, *library, inputs, &slots), expected, relative);
    EXPECT_EQ(slots, expected_slots);
  }
}

// What of x86-64 this host runs, or what it is.
inline std::vector<Target> levels() {
  Target target = host_target();
#ifdef __x86_64__
  const struct {
    const char* cpu;
    std::int64_t vector_bits;
    bool runs;
  } known[] = {{"x86-64", 128, true},
               {"x86-64-v2", 128, bool(__builtin_cpu_supports("sse4.2"))},
               {"x86-64-v3", 256, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
               {"x86-64-v4", 512, __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")}};
  std::vector<Target> targets;
  for (const auto& level : known) {
    target.cpu = level.cpu, target.features = "", target.vector_bits = level.vector_bits;
    if (level.runs) targets.push_back(target);
  }
  return targets;
#else
  return {target};
#endif
}

// A program of `what` against the reference of its inputs.
inline void expect_as_reference(const LoopProgram& program, const Computation& what, const Target& target) {
  const Reference expected = reference(what, 5);
  const auto object = compile(program, target);
  ASSERT_TRUE(object.ok()) << object.reason().text << "\n" << to_text(program);
  const auto library = link_shared({&*object});
  ASSERT_TRUE(library.ok()) << library.reason().text;
  // The program's first buffers are the computation's tensors but for its temporaries.
  std::vector<std::size_t> tensors;
  for (std::size_t t = 0; t < what.tensors.size(); ++t)
    if (what.tensors[t].role != Role::temporary) tensors.push_back(t);
  Numbers inputs(program.buffers.size());
  for (std::size_t b = 0; b < tensors.size(); ++b) {
    inputs[b] = expected.tensors[tensors[b]].numbers();
    if (what.tensors[tensors[b]].role == Role::output) inputs[b].assign(inputs[b].size(), 77);
  }
  const std::unique_ptr<graft_pool, void (*)(graft_pool*)> pool(
      target.threads > 1 ? graft_pool_start(int(target.threads)) : nullptr, graft_pool_stop);
  const Numbers got = executed(program, *object, *library, inputs, nullptr, pool.get());
  for (std::size_t b = 0; b < tensors.size(); ++b) {
    const std::size_t t = tensors[b];
    if (what.tensors[t].role != Role::output) continue;
    for (std::size_t i = 0; i < got[b].size(); ++i)
      ASSERT_TRUE(base::within(got[b][i], expected.tensors[t][i],
                               program.amplification * tolerance(what.tensors[t].dtype, expected.reduction_length[t],
                                                                 expected.magnitude[t][i]),
                               largest(what.tensors[t].dtype)))
          << got[b][i] << " instead of " << expected.tensors[t][i] << " at " << what.tensors[t].name << "[" << i
          << "]\n"
          << to_text(program);
  }
}

}  // namespace graft::codegen::test
