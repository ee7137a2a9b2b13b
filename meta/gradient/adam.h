// Adam (Kingma and Ba 2015) on a flat parameter vector, beta 0.9 and 0.999, and the clipping of gradients.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace graft::meta {

// Scales a gradient longer than 1 back to length 1 (Pascanu, Mikolov and Bengio 2013). The first gradients of an
// untrained TreeGRU are hundreds long; Adam's second moments would remember them for all of a training.
inline void clip(std::span<float> gradient) {
  double squares = 0;
  for (const float value : gradient) squares += double(value) * double(value);
  if (squares <= 1) return;
  const auto scale = float(1 / std::sqrt(squares));
  for (float& value : gradient) value *= scale;
}

class Adam {
 public:
  explicit Adam(std::size_t parameters) : first_(parameters, 0.0f), second_(parameters, 0.0f) {}

  // theta -= rate * (m / (sqrt(v) + epsilon)), with m and v corrected for their start at zero.
  void step(std::span<float> theta, std::span<const float> gradient, double rate) {
    ++steps_;
    const float bias1 = float(1 / (1 - std::pow(0.9, double(steps_)))),
                bias2 = float(1 / (1 - std::pow(0.999, double(steps_))));
    const float scaled = float(rate) * bias1;
    for (std::size_t i = 0; i < theta.size(); ++i) {
      first_[i] = 0.9f * first_[i] + 0.1f * gradient[i];
      second_[i] = 0.999f * second_[i] + 0.001f * gradient[i] * gradient[i];
      theta[i] -= scaled * first_[i] / (std::sqrt(second_[i] * bias2) + 1e-8f);
    }
  }

  // The moments, for a checkpoint; `resume` continues from them after `steps` steps.
  const std::vector<float>& first() const { return first_; }
  const std::vector<float>& second() const { return second_; }
  void resume(std::vector<float> first, std::vector<float> second, std::int64_t steps) {
    first_ = std::move(first);
    second_ = std::move(second);
    steps_ = steps;
  }

 private:
  std::vector<float> first_, second_;
  std::int64_t steps_ = 0;
};

}  // namespace graft::meta
