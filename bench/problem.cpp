#include "bench/problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "tasks/expected.h"

namespace graft::bench {

using namespace codegen;

Problem::Problem(const Workload& workload) : workload_(workload), computation_(workload.computation()) {
  const tasks::MeasureSettings settings;
  tasks::require_memory(workload, tasks::Place::here, settings);
  base::Monitor nobody;
  expected_ = tasks::expected_results(workload, computation_, settings.inputs, settings.threads, nobody);
  for (std::size_t t = 0; t < computation_.tensors.size(); ++t) {
    const Tensor& tensor = computation_.tensors[t];
    if (tensor.role == Role::temporary) continue;
    const Memory& memory = memory_.emplace_back(tensor.bytes());
    if (tensor.role != Role::output) {
      const std::string bytes = std::exchange(expected_.tensors[t], {}).bytes(tensor.dtype);
      std::memcpy(memory.data(), bytes.data(), bytes.size());
    }
    buffers_.push_back(memory.data());
    tensors_.push_back(int(t));
  }
}

const Tensor& Problem::tensor(int parameter) const {
  return computation_.tensors[std::size_t(tensors_[std::size_t(parameter)])];
}

int Problem::parameter_of(int tensor) const {
  return int(std::find(tensors_.begin(), tensors_.end(), tensor) - tensors_.begin());
}

bool Problem::is_f32() const {
  return std::all_of(tensors_.begin(), tensors_.end(),
                     [&](int t) { return computation_.tensors[std::size_t(t)].dtype == DType::f32; });
}

void Problem::clear_outputs() const {
  for (int p = 0; p < int(buffers_.size()); ++p) {
    if (tensor(p).role != Role::output) continue;
    constexpr int nan = 0xff, pattern = 0xa5;
    auto* const bytes = static_cast<char*>(buffers_[std::size_t(p)]);
    std::memset(bytes, is_floating(tensor(p).dtype) ? nan : pattern, std::size_t(tensor(p).bytes()));
    // Where NaN is right, it would pass.
    const Elements& expected = expected_.tensors[std::size_t(tensors_[std::size_t(p)])];
    const std::int64_t each = bytes_of(tensor(p).dtype);
    const std::size_t compared = expected.is_sample() ? expected.sample().size() : expected.size();
    for (std::size_t n = 0; n < compared; ++n) {
      const std::int64_t element = expected.is_sample() ? expected.sample()[n] : std::int64_t(n);
      if (std::isnan(expected.held(n))) std::memset(bytes + element * each, 0, std::size_t(each));
    }
  }
}

bool Problem::outputs_right(double amplification) const {
  for (int p = 0; p < int(buffers_.size()); ++p) {
    if (tensor(p).role != Role::output) continue;
    const std::string_view bytes(static_cast<const char*>(buffers_[std::size_t(p)]), std::size_t(tensor(p).bytes()));
    if (tasks::difference(tensor(p), expected_, tensors_[std::size_t(p)], amplification, bytes)) return false;
  }
  return true;
}

}  // namespace graft::bench
