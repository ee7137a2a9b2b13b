#include "meta/networks/mlp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

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

bool one_row_each(std::span<const std::int64_t> begins) {
  for (std::size_t p = 0; p < begins.size(); ++p) {
    if (begins[p] != std::int64_t(p)) return false;
  }
  return true;
}

// sums[p] = the sum of program p's rows.
template <class N>
void sum_rows(std::span<const std::int64_t> begins, std::int64_t width, ConstView<N> rows, View<N> sums) {
  const auto plane = [&](const Real<N>* from, std::int64_t stride, Real<N>* to) {
    std::fill_n(to, std::int64_t(begins.size() - 1) * width, Real<N>(0));
    if (from == nullptr) return;  // constants
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::size_t p = 0; p + 1 < begins.size(); ++p) {
        Real<N>* const sum = to + std::int64_t(p) * width;
        for (std::int64_t r = begins[p]; r < begins[p + 1]; ++r) {
          const Real<N>* const row = from + r * stride;
#pragma omp simd
          for (std::int64_t j = 0; j < width; ++j) sum[j] += row[j];
        }
      }
    });
  };
  assert(sums.stride == width);
  plane(rows.value, rows.stride, sums.value);
  if constexpr (is_dual<N>) plane(rows.slope, rows.stride, sums.slope);
}

// What a pass leaves, on numbers N.
template <class N>
struct Pass {
  std::vector<Values<N>> hidden;  // outputs of the hidden layers: of the first by row, of those behind by program
  Values<N> sums;                 // by program, where there is not one row each: of the first one's rows
};

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
    auto tape = std::make_unique<Record>();
    tape->programs = programs;
    up<T>({theta.data(), nullptr, 0}, programs, tape->pass, {scores.data(), nullptr, this->outputs()});
    return tape;
  }

  void score(std::span<const T> theta, const Inputs<T>& programs, std::span<T> scores) const override {
    constexpr std::int64_t most = 192;  // rows at once: what lies between two layers stays in the nearest caches
    Pass<T> pass;
    std::vector<std::int64_t> begins;
    for (std::int64_t first = 0, last = 0; first < programs.programs(); first = last) {
      const std::int64_t row = programs.begins[first];
      begins.assign(1, 0);
      do begins.push_back(programs.begins[++last] - row);
      while (last < programs.programs() && programs.begins[last + 1] - row <= most);
      const auto x = programs.x.subspan(std::size_t(row * inputs_), std::size_t(begins.back() * inputs_));
      up<T>({theta.data(), nullptr, 0}, Inputs<T>{x, begins, {}}, pass,
            {scores.data() + first * this->outputs(), nullptr, this->outputs()});
    }
  }

  void backward(std::span<const T> theta, const Tape& tape, std::span<const T> u,
                std::span<T> gradient) const override {
    const auto& record = static_cast<const Record&>(tape);
    down<T>({theta.data(), nullptr, 0}, record.programs, record.pass, {u.data(), nullptr, this->outputs()},
            {gradient.data(), nullptr, 0});
  }

  std::unique_ptr<Tape> tangent_forward(std::span<const T> theta, const Tape& tape, std::span<const T> v,
                                        std::span<T> score_tangent) const override {
    const Inputs<T>& programs = static_cast<const Record&>(tape).programs;
    auto tangent = std::make_unique<TangentRecord>();
    Scratch<T> again(programs.programs() * this->outputs());
    up<Dual<T>>({theta.data(), v.data(), 0}, programs, tangent->pass,
                {again.data(), score_tangent.data(), this->outputs()});
    return tangent;
  }

  void tangent_backward(std::span<const T> theta, const Tape& tape, const Tape& tangent_tape, std::span<const T> v,
                        std::span<const T> u, std::span<const T> du, std::span<T> gradient) const override {
    down<Dual<T>>({theta.data(), v.data(), 0}, static_cast<const Record&>(tape).programs,
                  static_cast<const TangentRecord&>(tangent_tape).pass, {u.data(), du.data(), this->outputs()},
                  {nullptr, gradient.data(), 0});
  }

 private:
  struct Record final : Tape {
    Inputs<T> programs;
    Pass<T> pass;
  };
  struct TangentRecord final : Tape {
    Pass<Dual<T>> pass;
  };

  std::size_t layers() const { return layout_.size() / 2; }
  // The layer in front of which rows become programs.
  std::size_t summing_layer() const { return std::min(layers() - 1, std::size_t(1)); }
  template <class N>
  Dense<N> layer(ConstView<N> theta, std::size_t l) const {
    return dense<N>(theta, layout_[2 * l], layout_[2 * l + 1], l + 1 < layers());
  }
  template <class N>
  ConstView<N> rows_of(const Inputs<T>& programs) const {
    return {programs.x.data(), nullptr, inputs_};
  }

  template <class N>
  void up(ConstView<N> theta, const Inputs<T>& programs, Pass<N>& pass, View<N> scores) const {
    const bool sums = !one_row_each(programs.begins);
    std::int64_t rows = programs.rows();
    ConstView<N> x = rows_of<N>(programs);
    const auto room = [](Values<N>& values, std::int64_t count, std::int64_t width) {
      if (values.rows() < count) values = Values<N>(count, width);
      return values.view();
    };
    pass.hidden.resize(layers() - 1);
    for (std::size_t l = 0; l < layers(); ++l) {
      const Dense<N> here = layer<N>(theta, l);
      if (sums && l == summing_layer()) {
        rows = programs.programs();
        const View<N> sum = room(pass.sums, rows, here.in);
        sum_rows<N>(programs.begins, here.in, x, sum);
        x = sum;
      }
      const View<N> y = l + 1 == layers() ? scores : room(pass.hidden[l], rows, here.out);
      meta::forward<N>(here, rows, x, y);
      x = y;
    }
  }

  template <class N>
  void down(ConstView<N> theta, const Inputs<T>& programs, const Pass<N>& pass, ConstView<N> u,
            View<N> gradient) const {
    const bool sums = !one_row_each(programs.begins);
    std::int64_t rows = programs.programs();
    Values<N> by_output(rows, this->outputs());
    for (std::int64_t p = 0; p < rows; ++p) {
      for (std::int64_t o = 0; o < this->outputs(); ++o) by_output.row(p).put(o, u.from(p, 0).at(o));
    }
    for (std::size_t l = layers(); l-- > 0;) {
      const Dense<N> here = layer<N>(theta, l);
      const bool summed = sums && l == summing_layer();
      const ConstView<N> in = summed   ? pass.sums.view()
                              : l == 0 ? rows_of<N>(programs)
                                       : ConstView<N>(pass.hidden[l - 1].view());
      const ConstView<N> out = l + 1 == layers() ? ConstView<N>() : pass.hidden[l].view();
      meta::backward<N>(here, rows, in, out, by_output.view(), block_of<N>(gradient, layout_[2 * l]),
                        block_of<N>(gradient, layout_[2 * l + 1]));
      if (l == 0) break;
      Values<N> by_input(rows, here.in);
      backward_to_input<N>(here, rows, by_output.view(), by_input.view());
      if (summed) {
        rows = programs.rows();
        by_output = Values<N>(rows, here.in);
        for (std::int64_t p = 0; p < programs.programs(); ++p) {
          for (std::int64_t r = programs.begins[p]; r < programs.begins[p + 1]; ++r) {
            for (std::int64_t j = 0; j < here.in; ++j) by_output.row(r).put(j, by_input.row(p).at(j));
          }
        }
      } else {
        by_output = std::move(by_input);
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
