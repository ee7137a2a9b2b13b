#include "meta/networks/mlp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
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

// sums[p] = the sum of program p's rows; without rows (slopes of constants) 0.
template <class T>
void sum_rows(std::span<const std::int64_t> begins, std::int64_t width, const T* rows, std::int64_t stride, T* sums) {
  std::fill_n(sums, std::int64_t(begins.size() - 1) * width, T(0));
  if (rows == nullptr) return;
  with_wide_vectors([&]() GRAFT_INLINED {
    for (std::size_t p = 0; p + 1 < begins.size(); ++p) {
      T* const sum = sums + std::int64_t(p) * width;
      for (std::int64_t r = begins[p]; r < begins[p + 1]; ++r) {
        const T* const row = rows + r * stride;
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) sum[j] += row[j];
      }
    }
  });
}

// What a pass leaves: of values, or of slopes along a direction.
template <class T>
struct Pass {
  std::vector<Values<T>> hidden;  // outputs of the hidden layers: of the first by row, of the others by program
  Values<T> sums;                 // by program, unless each has one row: of the first layer's rows
};

// Both together, as numbers N.
template <class N>
struct Passed {
  const Pass<Real<N>>& values;
  const Pass<Real<N>>* slopes;  // of dual numbers

  ConstView<N> hidden(std::size_t layer) const {
    return both(values.hidden[layer], slopes == nullptr ? nullptr : &slopes->hidden[layer]);
  }
  ConstView<N> sums() const { return both(values.sums, slopes == nullptr ? nullptr : &slopes->sums); }

 private:
  static ConstView<N> both(const Values<Real<N>>& value, const Values<Real<N>>* slope) {
    const View<Real<N>> view = value.view();
    return {view.value, slope == nullptr ? nullptr : slope->view().value, view.stride};
  }
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
    up({theta.data(), nullptr, 0}, programs, tape->pass, {scores.data(), nullptr, this->outputs()});
    return tape;
  }

  void score(std::span<const T> theta, const Inputs<T>& programs, std::span<T> scores) const override {
    in_pieces(theta, programs, scores, [](std::int64_t, std::int64_t, const Pass<T>&) {});
  }

  // Calls visit(first program, number of programs, their pass) for each piece after it is scored.
  template <class Visit>
  void in_pieces(std::span<const T> theta, const Inputs<T>& programs, std::span<T> scores, const Visit& visit) const {
    constexpr std::int64_t most = 192;  // rows at once: values between two layers stay in the nearest caches
    Pass<T> pass;
    std::vector<std::int64_t> begins;
    for (std::int64_t first = 0, last = 0; first < programs.programs(); first = last) {
      const std::int64_t row = programs.begins[first];
      begins.assign(1, 0);
      do begins.push_back(programs.begins[++last] - row);
      while (last < programs.programs() && programs.begins[last + 1] - row <= most);
      const auto x = programs.x.subspan(std::size_t(row * inputs_), std::size_t(begins.back() * inputs_));
      up({theta.data(), nullptr, 0}, Inputs<T>{x, begins, {}}, pass,
         {scores.data() + first * this->outputs(), nullptr, this->outputs()});
      visit(first, last - first, pass);
    }
  }

  // The outputs of hidden layer l of program p of a pass over programs in one row each, or in several.
  const T* hidden_of(const Pass<T>& pass, std::size_t l, std::int64_t p, bool one_row) const {
    return (l == 0 && !one_row ? pass.sums : pass.hidden[l]).row(p).value;
  }

  void backward(std::span<const T> theta, const Tape& tape, std::span<const T> u,
                std::span<T> gradient) const override {
    down({theta.data(), nullptr, 0}, static_cast<const Record&>(tape), u, {gradient.data(), nullptr, 0});
  }

  // The values are on the tape: only slopes are made.
  std::unique_ptr<Tape> tangent_forward(std::span<const T> theta, const Tape& tape, std::span<const T> v,
                                        std::span<T> score_tangent) const override {
    const auto& record = static_cast<const Record&>(tape);
    auto tangent = std::make_unique<Record>();
    slopes_up({theta.data(), v.data(), 0}, record.programs, record.pass, tangent->pass, score_tangent.data());
    return tangent;
  }

  void tangent_backward(std::span<const T> theta, const Tape& tape, const Tape& tangent_tape, std::span<const T> v,
                        std::span<const T> u, std::span<const T> du, std::span<T> gradient) const override {
    const auto& record = static_cast<const Record&>(tape);
    if (!std::equal(u.begin(), u.end(), record.u.begin(), record.u.end())) {
      std::vector<T> unused(theta.size());
      backward(theta, tape, u, unused);
    }
    slopes_down({theta.data(), v.data(), 0}, record, static_cast<const Record&>(tangent_tape).pass, du,
                {gradient.data(), nullptr, 0});
  }

 private:
  struct Record final : Tape {
    Inputs<T> programs;
    Pass<T> pass;  // of a tangent: slopes
    // From the latest backward: its input, and the gradient by each layer's sums (x W + b).
    mutable std::vector<T> u;
    mutable std::vector<Values<T>> by_sums;
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

  void up(ConstView<T> theta, const Inputs<T>& programs, Pass<T>& pass, View<T> scores) const {
    const bool sums = !one_row_each(programs.begins);
    std::int64_t rows = programs.rows();
    ConstView<T> x = rows_of<T>(programs);
    const auto room = [](Values<T>& values, std::int64_t count, std::int64_t width) {
      if (values.rows() < count) values = Values<T>(count, width);
      return values.view();
    };
    pass.hidden.resize(layers() - 1);
    for (std::size_t l = 0; l < layers(); ++l) {
      const Dense<T> here = layer<T>(theta, l);
      if (sums && l == summing_layer()) {
        rows = programs.programs();
        const View<T> sum = room(pass.sums, rows, here.in);
        sum_rows<T>(programs.begins, here.in, x.value, x.stride, sum.value);
        x = sum;
      }
      const View<T> y = l + 1 == layers() ? scores : room(pass.hidden[l], rows, here.out);
      meta::forward<T>(here, rows, x, y);
      x = y;
    }
  }

  // Slopes of all that `up` computes, along theta's.
  void slopes_up(ConstView<Dual<T>> theta, const Inputs<T>& programs, const Pass<T>& values, Pass<T>& slopes,
                 T* score_slopes) const {
    const bool sums = !one_row_each(programs.begins);
    const Passed<Dual<T>> passed{values, &slopes};
    std::int64_t rows = programs.rows();
    ConstView<Dual<T>> x = rows_of<Dual<T>>(programs);
    slopes.hidden.resize(layers() - 1);
    for (std::size_t l = 0; l < layers(); ++l) {
      const Dense<Dual<T>> here = layer<Dual<T>>(theta, l);
      if (sums && l == summing_layer()) {
        rows = programs.programs();
        slopes.sums = Values<T>(rows, here.in);
        sum_rows<T>(programs.begins, here.in, x.slope, x.stride, slopes.sums.view().value);
        x = passed.sums();
      }
      const bool last = l + 1 == layers();
      if (!last) slopes.hidden[l] = Values<T>(rows, here.out);
      T* const out = last ? score_slopes : slopes.hidden[l].view().value;
      forward_slopes<T>(here, rows, x, last ? nullptr : values.hidden[l].view().value, out);
      if (!last) x = passed.hidden(l);
    }
  }

  // What a layer takes, as numbers N.
  template <class N>
  ConstView<N> input_of(std::size_t l, const Inputs<T>& programs, const Passed<N>& passed, bool summed) const {
    return summed ? passed.sums() : l == 0 ? rows_of<N>(programs) : passed.hidden(l - 1);
  }

  // By the rows that were summed into programs, from that by the programs.
  static Values<T> by_rows(std::span<const std::int64_t> begins, std::int64_t width, const Values<T>& by_programs) {
    Values<T> out(begins.back(), width);
    for (std::size_t p = 0; p + 1 < begins.size(); ++p) {
      const T* const from = by_programs.row(std::int64_t(p)).value;
      for (std::int64_t r = begins[p]; r < begins[p + 1]; ++r) std::copy_n(from, width, out.row(r).value);
    }
    return out;
  }

  void down(ConstView<T> theta, const Record& record, std::span<const T> u, View<T> gradient) const {
    const Inputs<T>& programs = record.programs;
    const bool sums = !one_row_each(programs.begins);
    std::int64_t rows = programs.programs();
    record.u.assign(u.begin(), u.end());
    record.by_sums.resize(layers());
    Values<T> by_output(rows, this->outputs());
    std::copy(u.begin(), u.end(), by_output.view().value);
    for (std::size_t l = layers(); l-- > 0;) {
      const Dense<T> here = layer<T>(theta, l);
      const bool summed = sums && l == summing_layer();
      const ConstView<T> out = l + 1 == layers() ? ConstView<T>() : ConstView<T>(record.pass.hidden[l].view());
      meta::backward<T>(here, rows, input_of<T>(l, programs, {record.pass, nullptr}, summed), out, by_output.view(),
                        block_of<T>(gradient, layout_[2 * l]), block_of<T>(gradient, layout_[2 * l + 1]));
      record.by_sums[l] = std::move(by_output);
      if (l == 0) break;
      by_output = Values<T>(rows, here.in);
      backward_to_input<T>(here, rows, record.by_sums[l].view(), by_output.view());
      if (!summed) continue;
      by_output = by_rows(programs.begins, here.in, by_output);
      rows = programs.rows();
    }
  }
  // Slopes of all that `down` computes, along theta's and du: the gradient's.
  void slopes_down(ConstView<Dual<T>> theta, const Record& record, const Pass<T>& slopes, std::span<const T> du,
                   View<T> gradient) const {
    const Inputs<T>& programs = record.programs;
    const bool sums = !one_row_each(programs.begins);
    std::int64_t rows = programs.programs();
    Values<T> slope(rows, this->outputs());
    std::copy(du.begin(), du.end(), slope.view().value);
    for (std::size_t l = layers(); l-- > 0;) {
      const Dense<Dual<T>> here = layer<Dual<T>>(theta, l);
      const bool summed = sums && l == summing_layer();
      if (here.rectify) backward_rectified<T>(rows, here.out, record.pass.hidden[l].view(), slope.view());
      const ConstView<Dual<T>> by_sum{record.by_sums[l].view().value, slope.view().value, here.out};
      const auto slopes_of = [&](const ParameterBlock& block) {
        return View<Dual<T>>{nullptr, gradient.value + block.offset, block.shape.back()};
      };
      multiply<Dual<T>>(Transposed::yes, Transposed::no, here.in, here.out, rows,
                        input_of<Dual<T>>(l, programs, {record.pass, &slopes}, summed), by_sum, 0,
                        slopes_of(layout_[2 * l]));
      sum_columns<Dual<T>>(rows, here.out, by_sum, slopes_of(layout_[2 * l + 1]));
      if (l == 0) break;
      Values<T> by_input(rows, here.in);
      multiply<Dual<T>>(Transposed::no, Transposed::yes, rows, here.in, here.out, by_sum, here.weight, 0,
                        {nullptr, by_input.view().value, here.in});
      slope = std::move(by_input);
      if (!summed) continue;
      slope = by_rows(programs.begins, here.in, slope);
      rows = programs.rows();
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

void hidden_outputs(const NetworkShape& shape, std::span<const float> theta, const Inputs<float>& programs,
                    std::span<float> outputs) {
  const Mlp<float> network(shape);
  const std::int64_t width = std::accumulate(shape.hidden.begin(), shape.hidden.end(), std::int64_t(0));
  assert(std::int64_t(outputs.size()) == programs.programs() * width);
  std::vector<float> scores(std::size_t(programs.programs() * shape.outputs));
  network.in_pieces(theta, programs, scores, [&](std::int64_t first, std::int64_t count, const Pass<float>& pass) {
    const bool one_row = programs.begins[first + count] - programs.begins[first] == count;
    for (std::int64_t p = 0; p < count; ++p) {
      float* to = outputs.data() + (first + p) * width;
      for (std::size_t l = 0; l < shape.hidden.size(); ++l)
        to = std::copy_n(network.hidden_of(pass, l, p, one_row), shape.hidden[l], to);
    }
  });
}

template std::unique_ptr<NetworkOf<float>> make_native_mlp(const NetworkShape& shape);
template std::unique_ptr<NetworkOf<double>> make_native_mlp(const NetworkShape& shape);

}  // namespace graft::meta
