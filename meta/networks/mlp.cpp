#include "meta/networks/mlp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "meta/networks/gemm.h"

namespace graft::meta {

std::vector<ParameterBlock> mlp_layout(const NetworkShape& shape) {
  std::vector<std::int64_t> widths{shape.inputs};
  widths.insert(widths.end(), shape.hidden.begin(), shape.hidden.end());
  widths.push_back(1);
  std::vector<ParameterBlock> blocks;
  std::int64_t offset = 0;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const bool head = l + 2 == widths.size();
    const std::int64_t in = widths[l], out = widths[l + 1];
    blocks.push_back({fmt::format("layer{}.weight", l), {in, out}, offset, in * out, head});
    offset += in * out;
    blocks.push_back({fmt::format("layer{}.bias", l), {out}, offset, out, head});
    offset += out;
  }
  return blocks;
}

std::int64_t parameter_count(const NetworkShape& shape) {
  const ParameterBlock last = mlp_layout(shape).back();
  return last.offset + last.size;
}

std::vector<float> initial_parameters(const NetworkShape& shape, std::uint64_t seed) {
  std::vector<float> theta(std::size_t(parameter_count(shape)), 0.0f);
  base::Stream stream(seed, "initial parameters");
  for (const ParameterBlock& block : mlp_layout(shape)) {
    if (block.shape.size() != 2) continue;
    const double deviation = std::sqrt(2.0 / double(block.shape[0]));
    for (std::int64_t i = 0; i < block.size; ++i) {
      theta[std::size_t(block.offset + i)] = float(deviation * stream.normal());
    }
  }
  return theta;
}

namespace {

constexpr Transposed no = Transposed::no, yes = Transposed::yes;

// In the comments below: h_l is the output of hidden layer l (h_-1 = x), e_l = dL/d(pre-activation of layer l); r_l and
// q_l are their derivatives along the direction v.
template <class T>
class Mlp final : public NetworkOf<T> {
 public:
  using Tape = typename NetworkOf<T>::Tape;

  explicit Mlp(const NetworkShape& shape) : layout_(mlp_layout(shape)), inputs_(shape.inputs), hidden_(shape.hidden) {
    assert(inputs_ > 0 && std::all_of(hidden_.begin(), hidden_.end(), [](std::int64_t w) { return w > 0; }));
  }

  std::int64_t inputs() const override { return inputs_; }
  std::int64_t parameters() const override { return layout_.back().offset + layout_.back().size; }
  const std::vector<ParameterBlock>& layout() const override { return layout_; }

  std::unique_ptr<Tape> forward(std::span<const T> theta, const Inputs<T>& programs,
                                std::span<T> scores) const override {
    const std::int64_t rows = programs.rows();
    assert(std::int64_t(theta.size()) == parameters() && std::int64_t(programs.x.size()) == rows * inputs_);
    auto tape = std::make_unique<Activations>();
    tape->x = programs.x.data();
    tape->begins = programs.begins;
    tape->rows = rows;
    tape->hidden.resize(hidden_.size());
    for (std::size_t l = 0; l < hidden_.size(); ++l) {
      std::vector<T>& h = tape->hidden[l];
      h = repeated(bias(theta, l), rows);
      gemm(no, no, rows, hidden_[l], width_below(l), tape->input(l), weight(theta, l), T(1), h.data());
      for (T& value : h) value = std::max(value, T(0));
    }
    const std::int64_t width = width_below(hidden_.size());
    const T* w = weight(theta, hidden_.size());
    const T* last = tape->input(hidden_.size());
    std::vector<T> each(std::size_t(rows), T(0));
    for (std::int64_t i = 0; i < rows; ++i) each[i] = dot(last + i * width, w, width) + *bias_of(theta, hidden_.size());
    sum_rows(programs.begins, each, scores);
    return tape;
  }

  void backward(std::span<const T> theta, const Tape& tape, std::span<const T> by_program,
                std::span<T> gradient) const override {
    const auto& a = static_cast<const Activations&>(tape);
    const std::vector<T> u = to_rows(a.begins, by_program);
    const Layers e = deltas(theta, a, u);
    head_gradient(a, u, gradient);
    for (std::size_t l = 0; l < hidden_.size(); ++l) {
      gemm(yes, no, width_below(l), hidden_[l], a.rows, a.input(l), e[l].data(), T(0), weight(gradient, l));
      column_sums(e[l], a.rows, hidden_[l], bias_of(gradient, l));
    }
  }

  std::unique_ptr<Tape> tangent_forward(std::span<const T> theta, const Tape& tape, std::span<const T> v,
                                        std::span<T> score_tangent) const override {
    const auto& a = static_cast<const Activations&>(tape);
    auto tangent = std::make_unique<Activations>();
    tangent->rows = a.rows;
    tangent->hidden.resize(hidden_.size());
    for (std::size_t l = 0; l < hidden_.size(); ++l) {
      std::vector<T>& r = tangent->hidden[l];
      r = repeated(bias(v, l), a.rows);
      gemm(no, no, a.rows, hidden_[l], width_below(l), a.input(l), weight(v, l), T(1), r.data());
      if (l > 0) {
        gemm(no, no, a.rows, hidden_[l], width_below(l), tangent->hidden[l - 1].data(), weight(theta, l), T(1),
             r.data());
      }
      mask(r, a.hidden[l]);
    }
    const std::size_t top = hidden_.size();
    const std::int64_t width = width_below(top);
    std::vector<T> each(std::size_t(a.rows), T(0));
    for (std::int64_t i = 0; i < a.rows; ++i) {
      each[i] = dot(a.input(top) + i * width, weight(v, top), width) + *bias_of(v, top);
      if (top > 0) each[i] += dot(tangent->hidden[top - 1].data() + i * width, weight(theta, top), width);
    }
    sum_rows(a.begins, each, score_tangent);
    return tangent;
  }

  void tangent_backward(std::span<const T> theta, const Tape& tape, const Tape& tangent_tape, std::span<const T> v,
                        std::span<const T> by_program, std::span<const T> along_program,
                        std::span<T> gradient) const override {
    const auto& a = static_cast<const Activations&>(tape);
    const std::vector<T> u = to_rows(a.begins, by_program), du = to_rows(a.begins, along_program);
    const auto& tangent = static_cast<const Activations&>(tangent_tape);
    const std::size_t top = hidden_.size();
    head_gradient(a, du, gradient);
    if (top == 0) return;
    const Layers e = deltas(theta, a, u);
    T* head = weight(gradient, top);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const T* r = tangent.hidden[top - 1].data() + i * hidden_[top - 1];
      for (std::int64_t j = 0; j < hidden_[top - 1]; ++j) head[j] += u[i] * r[j];
    }
    Layers q(top);
    for (std::size_t l = top; l-- > 0;) {
      q[l].resize(std::size_t(a.rows * hidden_[l]));
      if (l + 1 == top) {
        const T *w = weight(theta, top), *wv = weight(v, top);
        for (std::int64_t i = 0; i < a.rows; ++i) {
          for (std::int64_t j = 0; j < hidden_[l]; ++j)
            q[l][std::size_t(i * hidden_[l] + j)] = du[i] * w[j] + u[i] * wv[j];
        }
      } else {
        gemm(no, yes, a.rows, hidden_[l], hidden_[l + 1], q[l + 1].data(), weight(theta, l + 1), T(0), q[l].data());
        gemm(no, yes, a.rows, hidden_[l], hidden_[l + 1], e[l + 1].data(), weight(v, l + 1), T(1), q[l].data());
      }
      mask(q[l], a.hidden[l]);
      gemm(yes, no, width_below(l), hidden_[l], a.rows, a.input(l), q[l].data(), T(0), weight(gradient, l));
      if (l > 0) {
        gemm(yes, no, width_below(l), hidden_[l], a.rows, tangent.hidden[l - 1].data(), e[l].data(), T(1),
             weight(gradient, l));
      }
      column_sums(q[l], a.rows, hidden_[l], bias_of(gradient, l));
    }
  }

 private:
  using Layers = std::vector<std::vector<T>>;

  struct Activations final : Tape {
    const T* x = nullptr;                  // null on a tangent tape: x does not depend on the parameters
    std::span<const std::int64_t> begins;  // neither do these
    std::int64_t rows = 0;
    Layers hidden;
    const T* input(std::size_t layer) const { return layer == 0 ? x : hidden[layer - 1].data(); }
  };

  std::int64_t width_below(std::size_t layer) const { return layer == 0 ? inputs_ : hidden_[layer - 1]; }
  template <class U>
  U* weight(std::span<U> theta, std::size_t layer) const {
    return theta.data() + layout_[2 * layer].offset;
  }
  template <class U>
  U* bias_of(std::span<U> theta, std::size_t layer) const {
    return theta.data() + layout_[2 * layer + 1].offset;
  }
  std::span<const T> bias(std::span<const T> theta, std::size_t layer) const {
    return {bias_of(theta, layer), std::size_t(layout_[2 * layer + 1].size)};
  }

  static T dot(const T* a, const T* b, std::int64_t count) {
    T sum = 0;
    for (std::int64_t j = 0; j < count; ++j) sum += a[j] * b[j];
    return sum;
  }
  // A program's score is the sum of its rows'.
  static void sum_rows(std::span<const std::int64_t> begins, const std::vector<T>& rows, std::span<T> programs) {
    for (std::size_t p = 0; p + 1 < begins.size(); ++p)
      programs[p] = std::accumulate(rows.begin() + begins[p], rows.begin() + begins[p + 1], T(0));
  }
  static std::vector<T> to_rows(std::span<const std::int64_t> begins, std::span<const T> programs) {
    std::vector<T> rows;
    for (std::size_t p = 0; p + 1 < begins.size(); ++p)
      rows.insert(rows.end(), std::size_t(begins[p + 1] - begins[p]), programs[p]);
    return rows;
  }
  static std::vector<T> repeated(std::span<const T> row, std::int64_t rows) {
    std::vector<T> out(row.size() * std::size_t(rows));
    for (std::int64_t i = 0; i < rows; ++i)
      std::copy(row.begin(), row.end(), out.begin() + i * std::int64_t(row.size()));
    return out;
  }
  // The derivative of ReLU is taken as 0 at 0.
  static void mask(std::vector<T>& values, const std::vector<T>& activations) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = activations[i] > 0 ? values[i] : T(0);
  }
  static void column_sums(const std::vector<T>& values, std::int64_t rows, std::int64_t columns, T* sums) {
    std::fill(sums, sums + columns, T(0));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) sums[j] += values[std::size_t(i * columns + j)];
    }
  }

  Layers deltas(std::span<const T> theta, const Activations& a, std::span<const T> u) const {
    const std::size_t top = hidden_.size();
    Layers e(top);
    for (std::size_t l = top; l-- > 0;) {
      e[l].resize(std::size_t(a.rows * hidden_[l]));
      if (l + 1 == top) {
        const T* w = weight(theta, top);
        for (std::int64_t i = 0; i < a.rows; ++i) {
          for (std::int64_t j = 0; j < hidden_[l]; ++j) e[l][std::size_t(i * hidden_[l] + j)] = u[i] * w[j];
        }
      } else {
        gemm(no, yes, a.rows, hidden_[l], hidden_[l + 1], e[l + 1].data(), weight(theta, l + 1), T(0), e[l].data());
      }
      mask(e[l], a.hidden[l]);
    }
    return e;
  }

  void head_gradient(const Activations& a, std::span<const T> u, std::span<T> gradient) const {
    const std::size_t top = hidden_.size();
    const std::int64_t width = width_below(top);
    T* w = weight(gradient, top);
    std::fill(w, w + width, T(0));
    T sum = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const T* h = a.input(top) + i * width;
      for (std::int64_t j = 0; j < width; ++j) w[j] += u[i] * h[j];
      sum += u[i];
    }
    *bias_of(gradient, top) = sum;
  }

  std::vector<ParameterBlock> layout_;
  std::int64_t inputs_;
  std::vector<std::int64_t> hidden_;
};

}  // namespace

template <class T>
std::unique_ptr<NetworkOf<T>> make_native_mlp(const NetworkShape& shape) {
  return std::make_unique<Mlp<T>>(shape);
}
template std::unique_ptr<NetworkOf<float>> make_native_mlp(const NetworkShape& shape);
template std::unique_ptr<NetworkOf<double>> make_native_mlp(const NetworkShape& shape);

}  // namespace graft::meta
