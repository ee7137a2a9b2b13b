#include "bench/peak.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/program/peak.h"

namespace graft::bench {
namespace {

using namespace codegen;

// Sums of their product are exact in f32 up to the number of iterations.
constexpr float left = 0.75F, right = 1.25F / 65536;

// One core's share, in memory of its own.
class Share {
 public:
  Share(const LoopProgram& program, std::shared_ptr<const Kernel> kernel) : kernel_(std::move(kernel)) {
    for (const Buffer& buffer : program.buffers) {
      if (buffer.role == Role::temporary) continue;
      memory_.emplace_back(buffer.bytes());
      buffers_.push_back(memory_.back().data());
      elements_.push_back(buffer.elements());
    }
    for (std::int64_t i = 0; i < elements_[0]; ++i) values(0)[i] = start(i);
    std::fill_n(values(1), elements_[1], left);
    std::fill_n(values(2), elements_[2], right);
  }
  void run() const { kernel_->run(buffers_.data(), in_order()); }
  void clear() const { std::fill_n(values(3), elements_[3], 0.0F); }
  bool is_right() const {
    for (std::int64_t i = 0; i < elements_[3]; ++i) {
      if (values(3)[i] != start(i) + left * right * float(peak_iterations)) return false;
    }
    return true;
  }

 private:
  static float start(std::int64_t i) { return float(i % 4); }
  float* values(std::size_t buffer) const { return memory_[buffer].floats(); }

  std::shared_ptr<const Kernel> kernel_;
  std::vector<Memory> memory_;
  std::vector<void*> buffers_;
  std::vector<std::int64_t> elements_;
};

}  // namespace

Contender peak_contender(const Target& target, int threads, Parallel parallel) {
  const LoopProgram program = peak_program(target);
  const auto kernel = std::make_shared<const Kernel>(program, target, search_pipeline(target));
  const auto shares = std::make_shared<std::vector<Share>>();
  for (int i = 0; i < threads; ++i) shares->emplace_back(program, kernel);
  const auto all = [shares](auto function) { return std::all_of(shares->begin(), shares->end(), function); };
  return {.name = "peak",
          .call =
              [shares, parallel] {
                const auto body = [](void* closure, std::int64_t index) {
                  (*static_cast<std::vector<Share>*>(closure))[std::size_t(index)].run();
                };
                parallel.run(parallel.context, body, shares.get(), std::int64_t(shares->size()));
              },
          .check = [all] { return all([](const Share& share) { return share.is_right(); }); },
          .clear =
              [shares] {
                for (const Share& share : *shares) share.clear();
              }};
}

}  // namespace graft::bench
