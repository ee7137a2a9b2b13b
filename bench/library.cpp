#include "bench/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/one_line.h"
#include "codegen/machine/link.h"

namespace graft::bench {
namespace {

template <class T>
T required(base::Result<T> result) {
  if (!result) throw base::Failure(result.reason().text);
  return std::move(result).value();
}

}  // namespace

Library Library::from_bytes(const std::string& bytes) {
  const int descriptor = memfd_create("graft-bench", MFD_CLOEXEC);
  if (descriptor < 0 || write(descriptor, bytes.data(), bytes.size()) != ssize_t(bytes.size())) {
    throw base::Failure("cannot hold a kernel in memory");
  }
  return Library(fmt::format("/proc/self/fd/{}", descriptor), descriptor);
}

Library::Library(const std::string& path) : Library(path, -1) {}

Library::Library(const std::string& path, int descriptor)
    : descriptor_(descriptor), handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) throw base::Failure(fmt::format("cannot load {}: {}", path, base::one_line(dlerror())));
}

Library::Descriptor::~Descriptor() {
  if (number >= 0) close(number);
}

void* Library::symbol(const std::string& name) const {
  void* const found = dlsym(handle_.get(), name.c_str());
  if (found == nullptr) throw base::Failure(fmt::format("the code has no function '{}'", name));
  return found;
}

void Library::Close::operator()(void* handle) const {
  dlclose(handle);
}

Parallel in_order() {
  return {[](void*, void (*body)(void*, std::int64_t), void* closure, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) body(closure, i);
  }};
}

Kernel::Kernel(const codegen::LoopProgram& program, const codegen::Target& target, const codegen::Pipeline& pipeline)
    : Kernel(required(codegen::compile(program, target, pipeline))) {}

Kernel::Kernel(const codegen::Code& object)
    : symbol_(object.symbol),
      library_(Library::from_bytes(required(codegen::link_shared({&object})))),
      prepared_(object.signature.prepared_bytes),
      scratch_(object.signature.most_scratch_bytes()),
      run_(library_.function<Run>(symbol_ + "_run")) {}

void Kernel::prepare(void* const* buffers) const {
  library_.function<void(void* const*, void*, void*)>(symbol_ + "_prepare")(buffers, prepared_.data(), scratch_.data());
}

}  // namespace graft::bench
