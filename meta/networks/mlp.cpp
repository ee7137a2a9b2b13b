#include "meta/networks/mlp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "meta/networks/dense.h"

namespace graft::meta {

std::vector<ParameterBlock> mlp_layout(const NetworkShape& shape) {
  std::vector<std::int64_t> widths{shape.inputs};
  widths.insert(widths.end(), shape.hidden.begin(), shape.hidden.end());
  widths.push_back(shape.outputs);
  std::vector<ParameterBlock> blocks;
  std::int64_t offset = 0;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const bool head = l + 2 == widths.size();
    const std::int64_t in = widths[l], out = widths[l + 1];
    blocks.push_back({fmt::format("layer{}.weight", l), {in, out}, offset, in * out, head, false});
    offset += in * out;
    blocks.push_back({fmt::format("layer{}.bias", l), {out}, offset, out, head, false});
    offset += out;
  }
  return blocks;
}

namespace {

// What a pass over rows leaves, on numbers N: the outputs of the hidden layers.
template <class N>
using Hidden = std::vector<Values<N>>;

template <class T>
class Mlp final : public NetworkOf<T> {
 public:
  using Tape = typename NetworkOf<T>::Tape;

  explicit Mlp(const NetworkShape& shape) : layout_(mlp_layout(shape)), inputs_(shape.inputs) {
    assert(inputs_ > 0 && std::all_of(shape.hidden.begin(), shape.hidden.end(), [](std::int64_t w) { return w > 0; }));
  }

  std::int64_t inputs() const override { return inputs_; }
  std::int64_t parameters() const override { return layout_.back().offset + layout_.back().size; }
  const std::vector<ParameterBlock>& layout() const override { return layout_; }

  std::unique_ptr<Tape> forward(std::span<const T> theta, const Inputs<T>& programs,
                                std::span<T> scores) const override {
    assert(std::int64_t(theta.size()) == parameters() && std::int64_t(programs.x.size()) == programs.rows() * inputs_);
    auto tape = std::make_unique<Record>();
    tape->programs = programs;
    Scratch<T> each(programs.rows() * this->outputs());
    up<T>({theta.data(), nullptr, 0}, programs, tape->hidden, {each.data(), nullptr, this->outputs()});
    sum_rows(programs.begins, each.data(), scores);
    return tape;
  }

  void score(std::span<const T> theta, const Inputs<T>& programs, std::span<T> scores) const override {
    constexpr std::int64_t most = 64;  // rows at once: what lies between two layers stays in the nearest caches
    Scratch<T> each(programs.rows() * this->outputs());
    Hidden<T> hidden;
    for (std::int64_t first = 0; first < programs.rows(); first += most) {
      const std::int64_t rows = std::min(most, programs.rows() - first);
      up<T>({theta.data(), nullptr, 0}, rows, {programs.x.data() + first * inputs_, nullptr, inputs_}, hidden,
            {each.data() + first * this->outputs(), nullptr, this->outputs()});
    }
    sum_rows(programs.begins, each.data(), scores);
  }

  void backward(std::span<const T> theta, const Tape& tape, std::span<const T> u,
                std::span<T> gradient) const override {
    const auto& record = static_cast<const Record&>(tape);
    down<T>({theta.data(), nullptr, 0}, record.programs, record.hidden, {u.data(), nullptr, this->outputs()},
            {gradient.data(), nullptr, 0});
  }

  std::unique_ptr<Tape> tangent_forward(std::span<const T> theta, const Tape& tape, std::span<const T> v,
                                        std::span<T> score_tangent) const override {
    const Inputs<T>& programs = static_cast<const Record&>(tape).programs;
    auto tangent = std::make_unique<TangentRecord>();
    Scratch<T> value(programs.rows() * this->outputs()), slope(programs.rows() * this->outputs());
    up<Dual<T>>({theta.data(), v.data(), 0}, programs, tangent->hidden, {value.data(), slope.data(), this->outputs()});
    sum_rows(programs.begins, slope.data(), score_tangent);
    return tangent;
  }

  void tangent_backward(std::span<const T> theta, const Tape& tape, const Tape& tangent_tape, std::span<const T> v,
                        std::span<const T> u, std::span<const T> du, std::span<T> gradient) const override {
    down<Dual<T>>({theta.data(), v.data(), 0}, static_cast<const Record&>(tape).programs,
                  static_cast<const TangentRecord&>(tangent_tape).hidden, {u.data(), du.data(), this->outputs()},
                  {nullptr, gradient.data(), 0});
  }

 private:
  struct Record final : Tape {
    Inputs<T> programs;
    Hidden<T> hidden;
  };
  struct TangentRecord final : Tape {
    Hidden<Dual<T>> hidden;
  };

  std::size_t layers() const { return layout_.size() / 2; }
  template <class N>
  Dense<N> layer(ConstView<N> theta, std::size_t l) const {
    return dense<N>(theta, layout_[2 * l], layout_[2 * l + 1], l + 1 < layers());
  }
  template <class N>
  ConstView<N> rows_of(const Inputs<T>& programs) const {
    return {programs.x.data(), nullptr, inputs_};
  }

  // each: the outputs of each row.
  template <class N>
  void up(ConstView<N> theta, const Inputs<T>& programs, Hidden<N>& hidden, View<N> each) const {
    up<N>(theta, programs.rows(), rows_of<N>(programs), hidden, each);
  }
  template <class N>
  void up(ConstView<N> theta, std::int64_t rows, ConstView<N> x, Hidden<N>& hidden, View<N> each) const {
    hidden.resize(layers() - 1);
    for (std::size_t l = 0; l < layers(); ++l) {
      const Dense<N> here = layer<N>(theta, l);
      const bool last = l + 1 == layers();
      if (!last && hidden[l].rows() < rows) hidden[l] = Values<N>(rows, here.out);
      meta::forward<N>(here, rows, x, last ? each : hidden[l].view());
      if (!last) x = hidden[l].view();
    }
  }

  template <class N>
  void down(ConstView<N> theta, const Inputs<T>& programs, const Hidden<N>& hidden, ConstView<N> u,
            View<N> gradient) const {
    const std::int64_t rows = programs.rows();
    Values<N> by_output(rows, this->outputs());
    for (std::int64_t p = 0; p < programs.programs(); ++p) {
      const ConstView<N> of_program = u.from(p, 0);
      for (std::int64_t r = programs.begins[p]; r < programs.begins[p + 1]; ++r) {
        const View<N> of_row = by_output.row(r);
        for (std::int64_t o = 0; o < this->outputs(); ++o) of_row.put(o, of_program.at(o));
      }
    }
    for (std::size_t l = layers(); l-- > 0;) {
      const Dense<N> here = layer<N>(theta, l);
      const ConstView<N> in = l == 0 ? rows_of<N>(programs) : hidden[l - 1].view();
      const ConstView<N> out = l + 1 == layers() ? ConstView<N>() : hidden[l].view();
      meta::backward<N>(here, rows, in, out, by_output.view(), block_of<N>(gradient, layout_[2 * l]),
                        block_of<N>(gradient, layout_[2 * l + 1]));
      if (l == 0) break;
      Values<N> by_input(rows, here.in);
      backward_to_input<N>(here, rows, by_output.view(), by_input.view());
      by_output = std::move(by_input);
    }
  }

  // A program's outputs are the sum of its rows'.
  void sum_rows(std::span<const std::int64_t> begins, const T* rows, std::span<T> programs) const {
    const std::int64_t count = this->outputs();
    std::fill(programs.begin(), programs.end(), T(0));
    for (std::size_t p = 0; p + 1 < begins.size(); ++p) {
      for (std::int64_t r = begins[p]; r < begins[p + 1]; ++r) {
        for (std::int64_t o = 0; o < count; ++o)
          programs[p * std::size_t(count) + std::size_t(o)] += rows[r * count + o];
      }
    }
  }

  std::vector<ParameterBlock> layout_;
  std::int64_t inputs_;
};

}  // namespace

template <class T>
std::unique_ptr<NetworkOf<T>> make_native_mlp(const NetworkShape& shape) {
  return std::make_unique<Mlp<T>>(shape);
}
template std::unique_ptr<NetworkOf<float>> make_native_mlp(const NetworkShape& shape);
template std::unique_ptr<NetworkOf<double>> make_native_mlp(const NetworkShape& shape);

}  // namespace graft::meta
