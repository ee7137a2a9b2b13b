#include "meta/networks/conditioned.h"

#include <algorithm>
#include <cassert>

namespace graft::meta {
namespace {

// Which blocks a context shifts.
std::vector<std::size_t> shifted(const NetworkShape::Context& context, const std::vector<ParameterBlock>& inner) {
  std::vector<std::size_t> blocks;
  for (std::size_t b = 0; b < inner.size(); ++b) {
    const bool bias = inner[b].shape.size() == 1;
    if (context.everywhere ? bias || inner[b].head : bias && blocks.empty()) blocks.push_back(b);
  }
  return blocks;
}

template <class T>
class Conditioned final : public NetworkOf<T> {
 public:
  using Tape = typename NetworkOf<T>::Tape;

  Conditioned(const NetworkShape::Context& context, std::unique_ptr<NetworkOf<T>> inner)
      : inner_(std::move(inner)),
        layout_(conditioned_layout(context, inner_->layout())),
        shifted_(shifted(context, inner_->layout())),
        size_(context.size),
        own_(layout_[1 + shifted_.size()].offset) {}

  std::int64_t inputs() const override { return inner_->inputs(); }
  std::int64_t parameters() const override { return own_ + inner_->parameters(); }
  const std::vector<ParameterBlock>& layout() const override { return layout_; }

  std::unique_ptr<Tape> forward(std::span<const T> theta, const Inputs<T>& programs,
                                std::span<T> scores) const override {
    auto tape = std::make_unique<Record>();
    tape->folded = folded(theta);
    tape->inner = inner_->forward(tape->folded, programs, scores);
    return tape;
  }

  void score(std::span<const T> theta, const Inputs<T>& programs, std::span<T> scores) const override {
    inner_->score(folded(theta), programs, scores);
  }

  void backward(std::span<const T> theta, const Tape& tape, std::span<const T> u,
                std::span<T> gradient) const override {
    const auto& record = static_cast<const Record&>(tape);
    const std::span<T> by_inner = gradient.subspan(std::size_t(own_));
    inner_->backward(record.folded, *record.inner, u, by_inner);
    std::fill(gradient.begin(), gradient.begin() + own_, T(0));
    add_own(theta, by_inner, gradient);
  }

  std::unique_ptr<Tape> tangent_forward(std::span<const T> theta, const Tape& tape, std::span<const T> v,
                                        std::span<T> score_tangent) const override {
    const auto& record = static_cast<const Record&>(tape);
    auto tangent = std::make_unique<Record>();
    // The derivative of theta_b + z U_b along v: v_b + v_z U_b + z v_U.
    tangent->folded.assign(v.begin() + own_, v.end());
    add_shift(v, theta, tangent->folded);
    add_shift(theta, v, tangent->folded);
    tangent->inner = inner_->tangent_forward(record.folded, *record.inner, tangent->folded, score_tangent);
    return tangent;
  }

  void tangent_backward(std::span<const T> theta, const Tape& tape, const Tape& tangent_tape, std::span<const T> v,
                        std::span<const T> u, std::span<const T> du, std::span<T> gradient) const override {
    const auto& record = static_cast<const Record&>(tape);
    const auto& tangent = static_cast<const Record&>(tangent_tape);
    const std::span<T> by_inner = gradient.subspan(std::size_t(own_));
    inner_->tangent_backward(record.folded, *record.inner, *tangent.inner, tangent.folded, u, du, by_inner);
    std::vector<T> first(std::size_t(inner_->parameters()));
    inner_->backward(record.folded, *record.inner, u, first);
    std::fill(gradient.begin(), gradient.begin() + own_, T(0));
    add_own(theta, by_inner, gradient);
    add_own(v, first, gradient);
  }

 private:
  struct Record final : Tape {
    std::vector<T> folded;  // parameters of the inner network, or the direction they move in
    std::unique_ptr<Tape> inner;
  };

  const ParameterBlock& inner_block(std::size_t s) const { return inner_->layout()[shifted_[s]]; }

  std::vector<T> folded(std::span<const T> theta) const {
    std::vector<T> out(theta.begin() + own_, theta.end());
    add_shift(theta, theta, out);
    return out;
  }
  // to_b += z U_b, with z of `context` and U of `maps`.
  void add_shift(std::span<const T> context, std::span<const T> maps, std::vector<T>& to) const {
    for (std::size_t s = 0; s < shifted_.size(); ++s) {
      const ParameterBlock& block = inner_block(s);
      T* const out = to.data() + block.offset;
      const T* map = maps.data() + layout_[1 + s].offset;
      for (std::int64_t i = 0; i < size_; ++i, map += block.size) {
        for (std::int64_t j = 0; j < block.size; ++j) out[j] += context[std::size_t(i)] * map[j];
      }
    }
  }
  // The gradient by z += U_b g_b, that by U_b += z g_b, with z and U of `at`.
  void add_own(std::span<const T> at, std::span<const T> by_inner, std::span<T> gradient) const {
    for (std::size_t s = 0; s < shifted_.size(); ++s) {
      const ParameterBlock& block = inner_block(s);
      const T* const g = by_inner.data() + block.offset;
      const T* map = at.data() + layout_[1 + s].offset;
      T* by_map = gradient.data() + layout_[1 + s].offset;
      for (std::int64_t i = 0; i < size_; ++i, map += block.size, by_map += block.size) {
        T sum = 0;
        for (std::int64_t j = 0; j < block.size; ++j) {
          sum += map[j] * g[j];
          by_map[j] += at[std::size_t(i)] * g[j];
        }
        gradient[std::size_t(i)] += sum;
      }
    }
  }

  std::unique_ptr<NetworkOf<T>> inner_;
  std::vector<ParameterBlock> layout_;
  std::vector<std::size_t> shifted_;  // positions of inner blocks
  std::int64_t size_, own_;           // of z; parameters before the inner ones
};

}  // namespace

std::vector<ParameterBlock> conditioned_layout(const NetworkShape::Context& context,
                                               std::vector<ParameterBlock> inner) {
  assert(context.size > 0);
  std::vector<ParameterBlock> blocks;
  std::int64_t offset = 0;
  const auto add = [&](ParameterBlock block) {
    block.offset = offset;
    offset += block.size;
    blocks.push_back(std::move(block));
  };
  ParameterBlock z;
  z.name = "context";
  z.shape = {context.size};
  z.size = context.size;
  z.context = true;
  add(std::move(z));
  for (const std::size_t b : shifted(context, inner)) {
    ParameterBlock map;
    map.name = "context." + inner[b].name;
    map.shape = {context.size, inner[b].size};
    map.size = context.size * inner[b].size;
    map.saturates = true;
    add(std::move(map));
  }
  for (ParameterBlock& block : inner) add(std::move(block));
  return blocks;
}

template <class T>
std::unique_ptr<NetworkOf<T>> make_conditioned(const NetworkShape::Context& context,
                                               std::unique_ptr<NetworkOf<T>> inner) {
  return std::make_unique<Conditioned<T>>(context, std::move(inner));
}
template std::unique_ptr<NetworkOf<float>> make_conditioned(const NetworkShape::Context&,
                                                            std::unique_ptr<NetworkOf<float>>);
template std::unique_ptr<NetworkOf<double>> make_conditioned(const NetworkShape::Context&,
                                                             std::unique_ptr<NetworkOf<double>>);

}  // namespace graft::meta
