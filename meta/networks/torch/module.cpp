// The networks of network.h in LibTorch: the same layers on torch's autograd, second order by double backward. Headers
// are taken per operator: all of torch.h takes four times as long to compile.
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "meta/networks/torch/plugin.h"

namespace {

using graft::meta::NetworkOf;
using graft::meta::NetworkShape;
using graft::meta::ParameterBlock;

template <class T>
at::Tensor view_of(std::span<const T> values, at::IntArrayRef shape) {
  // from_blob has no form for constant memory; nothing below writes to these tensors.
  return at::from_blob(const_cast<T*>(values.data()), shape,
                       at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));
}

template <class T>
void copy_out(const at::Tensor& from, std::span<T> to) {
  const at::Tensor dense = from.contiguous();
  std::copy_n(dense.template data_ptr<T>(), to.size(), to.data());
}

// The derivative of `output` in direction `weight` by `input`; zero where the graph does not connect them.
at::Tensor derivative(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight, bool create_graph) {
  if (!output.requires_grad()) return at::zeros_like(input);
  const at::Tensor result =
      torch::autograd::grad({output}, {input}, {weight}, /*retain_graph=*/true, create_graph, /*allow_unused=*/true)[0];
  return result.defined() ? result : at::zeros_like(input);
}

template <class T>
class TorchMlp final : public NetworkOf<T> {
 public:
  using Tape = typename NetworkOf<T>::Tape;

  TorchMlp(const NetworkShape& shape, const std::vector<ParameterBlock>& layout)
      : inputs_(shape.inputs), layout_(layout) {}

  std::int64_t inputs() const override { return inputs_; }
  std::int64_t parameters() const override { return layout_.back().offset + layout_.back().size; }
  const std::vector<ParameterBlock>& layout() const override { return layout_; }

  std::unique_ptr<Tape> forward(std::span<const T> theta, const graft::meta::Inputs<T>& programs,
                                std::span<T> scores) const override {
    auto graph = std::make_unique<Graph>();
    // The graph outlives `theta`, hence the copy.
    graph->theta = view_of(theta, {parameters()}).clone().set_requires_grad(true);
    at::Tensor h = view_of(programs.x, {programs.rows(), inputs_});
    for (std::size_t l = 0; l < layout_.size() / 2; ++l) {
      if (l > 0) h = at::relu(h);
      h = at::addmm(parameter(graph->theta, 2 * l + 1), h, parameter(graph->theta, 2 * l));
    }
    graph->scores =
        at::index_add(at::zeros({programs.programs()}, h.options()), 0, programs_of_rows(programs.begins), h.flatten());
    copy_out(graph->scores.detach(), scores);
    return graph;
  }

  void backward(std::span<const T>, const Tape& tape, std::span<const T> u, std::span<T> gradient) const override {
    const auto& graph = static_cast<const Graph&>(tape);
    copy_out(derivative(graph.scores, graph.theta, weights(u), false), gradient);
  }

  std::unique_ptr<Tape> tangent_forward(std::span<const T>, const Tape& tape, std::span<const T> v,
                                        std::span<T> score_tangent) const override {
    const auto& graph = static_cast<const Graph&>(tape);
    // J v is the derivative by w of <J^T w, v>, which is linear in w.
    const at::Tensor w = at::zeros_like(graph.scores.detach()).set_requires_grad(true);
    const at::Tensor product = derivative(graph.scores, graph.theta, w, true);
    copy_out(derivative(product, w, weights(v), false), score_tangent);
    return std::make_unique<Tape>();  // tangent_backward needs nothing of it
  }

  void tangent_backward(std::span<const T>, const Tape& tape, const Tape&, std::span<const T> v, std::span<const T> u,
                        std::span<const T> du, std::span<T> gradient) const override {
    const auto& graph = static_cast<const Graph&>(tape);
    const at::Tensor first = derivative(graph.scores, graph.theta, weights(du), false);
    const at::Tensor product = derivative(graph.scores, graph.theta, weights(u), true);
    copy_out(at::add(first, derivative(product, graph.theta, weights(v), false)), gradient);
  }

 private:
  static at::Tensor programs_of_rows(std::span<const std::int64_t> begins) {
    at::Tensor program = at::empty({begins.back()}, at::kLong);
    std::int64_t* const to = program.data_ptr<std::int64_t>();
    for (std::size_t p = 0; p + 1 < begins.size(); ++p) std::fill(to + begins[p], to + begins[p + 1], std::int64_t(p));
    return program;
  }

  struct Graph final : Tape {
    at::Tensor theta, scores;
  };

  static at::Tensor weights(std::span<const T> values) { return view_of(values, {std::int64_t(values.size())}); }
  at::Tensor parameter(const at::Tensor& theta, std::size_t block) const {
    const ParameterBlock& b = layout_[block];
    return theta.narrow(0, b.offset, b.size).view(b.shape);
  }

  std::int64_t inputs_;
  std::vector<ParameterBlock> layout_;
};

template <class T>
NetworkOf<T>* make(const NetworkShape& shape, const std::vector<ParameterBlock>& layout) {
  at::set_num_threads(1);  // parallelism belongs to the tasks around
  return new TorchMlp<T>(shape, layout);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) NetworkOf<float>* graft_torch_mlp_float(
    const NetworkShape& shape, const std::vector<ParameterBlock>& layout) {
  return make<float>(shape, layout);
}
__attribute__((visibility("default"))) NetworkOf<double>* graft_torch_mlp_double(
    const NetworkShape& shape, const std::vector<ParameterBlock>& layout) {
  return make<double>(shape, layout);
}
}
