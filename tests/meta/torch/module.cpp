// The networks of network.h in LibTorch: the same layers on torch's autograd, second order by double backward. Headers
// are taken per operator: all of torch.h takes four times as long to compile.
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "meta/network.h"

namespace {

using graft::meta::Inputs;
using graft::meta::NetworkKind;
using graft::meta::NetworkOf;
using graft::meta::NetworkShape;
using graft::meta::ParameterBlock;

template <class T>
at::Tensor view_of(std::span<const T> values, at::IntArrayRef shape) {
  // from_blob has no form for constant memory; nothing below writes to these tensors.
  return at::from_blob(const_cast<T*>(values.data()), shape,
                       at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));
}

// The caller's memory on the network's device: a copy, unless that is the processor.
template <class T>
at::Tensor on(c10::Device device, std::span<const T> values, at::IntArrayRef shape) {
  return view_of(values, shape).to(device);
}

template <class T>
void copy_out(const at::Tensor& from, std::span<T> to) {
  const at::Tensor dense = from.to(c10::kCPU).contiguous();
  std::copy_n(dense.template data_ptr<T>(), to.size(), to.data());
}

// The derivative of `output` in direction `weight` by `input`; zero if the graph does not connect them.
at::Tensor derivative(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight, bool create_graph) {
  if (!output.requires_grad()) return at::zeros_like(input);
  const at::Tensor result =
      torch::autograd::grad({output}, {input}, {weight}, /*retain_graph=*/true, create_graph, /*allow_unused=*/true)[0];
  return result.defined() ? result : at::zeros_like(input);
}

template <class T>
class TorchNetwork : public NetworkOf<T> {
 public:
  using Tape = typename NetworkOf<T>::Tape;

  TorchNetwork(const NetworkShape& shape, const std::vector<ParameterBlock>& layout, c10::Device device)
      : shape_(shape), layout_(layout), device_(device) {}

  std::int64_t inputs() const override { return shape_.inputs; }
  std::int64_t parameters() const override { return layout_.back().offset + layout_.back().size; }
  const std::vector<ParameterBlock>& layout() const override { return layout_; }

  std::unique_ptr<Tape> forward(std::span<const T> theta, const Inputs<T>& programs,
                                std::span<T> scores) const override {
    auto graph = std::make_unique<Graph>();
    // The graph outlives `theta`, hence the copy.
    graph->theta = on(device_, theta, {parameters()}).clone().set_requires_grad(true);
    graph->scores = scores_of(graph->theta, programs);
    copy_out(graph->scores.detach(), scores);
    return graph;
  }

  void score(std::span<const T> theta, const Inputs<T>& programs, std::span<T> scores) const override {
    const at::NoGradGuard no_graph;
    copy_out(scores_of(on(device_, theta, {parameters()}), programs), scores);
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

 protected:
  virtual at::Tensor scores_of(const at::Tensor& theta, const Inputs<T>& programs) const = 0;

  // ReLU layers and a linear one, from the layout's block `first` on; flat.
  at::Tensor layers(const at::Tensor& theta, std::size_t first, at::Tensor h) const {
    for (std::size_t b = first; b < layout_.size(); b += 2) {
      if (b > first) h = at::relu(h);
      h = at::addmm(parameter(theta, b + 1), h, parameter(theta, b));
    }
    return h.flatten();
  }
  at::Tensor parameter(const at::Tensor& theta, std::size_t block) const {
    const ParameterBlock& b = layout_[block];
    return theta.narrow(0, b.offset, b.size).view(b.shape);
  }
  const NetworkShape& shape() const { return shape_; }
  at::Tensor rows_of(const Inputs<T>& programs) const { return on(device_, programs.x, {programs.rows(), inputs()}); }
  at::Tensor indices(const std::vector<std::int64_t>& values) const {
    return on<std::int64_t>(device_, values, {std::int64_t(values.size())}).clone();
  }

 private:
  struct Graph final : Tape {
    at::Tensor theta, scores;
  };

  at::Tensor weights(std::span<const T> values) const { return on(device_, values, {std::int64_t(values.size())}); }

  NetworkShape shape_;
  std::vector<ParameterBlock> layout_;
  c10::Device device_;
};

template <class T>
class TorchMlp final : public TorchNetwork<T> {
  using TorchNetwork<T>::TorchNetwork;
  at::Tensor scores_of(const at::Tensor& theta, const Inputs<T>& programs) const override {
    at::Tensor rows = this->rows_of(programs);
    std::size_t next = 0;
    if (this->layout().size() > 2) {
      rows = at::relu(at::addmm(this->parameter(theta, 1), rows, this->parameter(theta, 0)));
      next = 2;
    }
    std::vector<std::int64_t> program_of_row;
    for (std::int64_t p = 0; p < programs.programs(); ++p)
      program_of_row.insert(program_of_row.end(), std::size_t(programs.begins[p + 1] - programs.begins[p]), p);
    const at::Tensor sums = at::index_add(at::zeros({programs.programs(), rows.size(1)}, rows.options()), 0,
                                          this->indices(program_of_row), rows);
    return this->layers(theta, next, sums);
  }
};

// The TreeGRU of tree_gru.h, height by height over all programs.
template <class T>
class TorchTreeGru final : public TorchNetwork<T> {
  using TorchNetwork<T>::TorchNetwork;

  // Nodes ordered by height. Places are numbers in that order.
  struct Order {
    std::vector<std::int64_t> rows;                         // by place
    std::vector<std::int64_t> levels{0};                    // where a height's nodes begin, and the end
    std::vector<std::vector<std::int64_t>> child, of_node;  // by height: places of children, and which node's they are
    std::vector<std::int64_t> by_program;                   // places, padded to `most` with the number of nodes
    std::int64_t most = 0;
  };
  static Order order_of(const Inputs<T>& programs) {
    const std::int64_t count = programs.rows();
    std::vector<std::int64_t> height(std::size_t(count), 0), parent(std::size_t(count), -1), place(height);
    Order order;
    for (std::int64_t p = 0; p < programs.programs(); ++p) {
      const std::int64_t first = programs.begins[p];
      order.most = std::max(order.most, programs.begins[p + 1] - first);
      for (std::int64_t r = programs.begins[p + 1]; r-- > first;) {
        if (programs.parents[r] < 0) continue;
        parent[r] = first + programs.parents[r];
        height[parent[r]] = std::max(height[parent[r]], height[r] + 1);
      }
    }
    const std::int64_t top = count == 0 ? 0 : *std::max_element(height.begin(), height.end());
    for (std::int64_t h = 0; h <= top; ++h) {
      for (std::int64_t r = 0; r < count; ++r) {
        if (height[r] != h) continue;
        place[r] = std::int64_t(order.rows.size());
        order.rows.push_back(r);
      }
      order.levels.push_back(std::int64_t(order.rows.size()));
    }
    order.child.resize(std::size_t(top) + 1);
    order.of_node.resize(std::size_t(top) + 1);
    for (std::int64_t r = 0; r < count; ++r) {
      if (parent[r] < 0) continue;
      const std::int64_t h = height[parent[r]];
      order.child[h].push_back(place[r]);
      order.of_node[h].push_back(place[parent[r]] - order.levels[h]);
    }
    for (std::int64_t p = 0; p < programs.programs(); ++p) {
      for (std::int64_t i = 0; i < order.most; ++i) {
        const std::int64_t r = programs.begins[p] + i;
        order.by_program.push_back(r < programs.begins[p + 1] ? place[r] : count);
      }
    }
    return order;
  }

  at::Tensor scores_of(const at::Tensor& theta, const Inputs<T>& programs) const override {
    const auto [embedding, units, slots] = this->shape().tree;
    const Order order = order_of(programs);
    const at::Tensor gates = this->parameter(theta, 2), gates_bias = this->parameter(theta, 3),
                     state = this->parameter(theta, 4), state_bias = this->parameter(theta, 5);
    const at::Tensor x = at::index_select(this->rows_of(programs), 0, this->indices(order.rows));
    const at::Tensor embedded = at::relu(at::addmm(this->parameter(theta, 1), x, this->parameter(theta, 0)));
    at::Tensor all;
    for (std::size_t l = 0; l + 1 < order.levels.size(); ++l) {
      const std::int64_t count = order.levels[l + 1] - order.levels[l];
      const at::Tensor e = embedded.narrow(0, order.levels[l], count);
      if (l == 0) {
        const at::Tensor z = at::sigmoid(at::addmm(gates_bias.narrow(0, units, units), e,
                                                   gates.narrow(0, units, embedding).narrow(1, units, units)));
        const at::Tensor n = at::tanh(at::addmm(state_bias, e, state.narrow(0, 0, embedding)));
        all = at::sub(n, at::mul(z, n));
        continue;
      }
      const at::Tensor sum = at::index_add(at::zeros({count, units}, x.options()), 0, this->indices(order.of_node[l]),
                                           at::index_select(all, 0, this->indices(order.child[l])));
      const at::Tensor rz = at::sigmoid(at::addmm(gates_bias, at::cat({sum, e}, 1), gates));
      const at::Tensor r = rz.narrow(1, 0, units), z = rz.narrow(1, units, units);
      const at::Tensor n = at::tanh(at::addmm(state_bias, at::cat({e, at::mul(r, sum)}, 1), state));
      all = at::cat({all, at::add(n, at::mul(z, at::sub(sum, n)))}, 0);
    }
    const at::Tensor shares = at::softmax(at::mm(all, this->parameter(theta, 6)), 1);
    const at::Tensor places = this->indices(order.by_program);
    const auto padded = [&](const at::Tensor& rows) {  // programs x most x columns
      const at::Tensor more = at::cat({rows, at::zeros({1, rows.size(1)}, rows.options())}, 0);
      return at::index_select(more, 0, places).view({programs.programs(), order.most, rows.size(1)});
    };
    const at::Tensor memory = at::bmm(padded(shares).transpose(1, 2), padded(all));
    return this->layers(theta, 7, memory.reshape({programs.programs(), slots * units}));
  }
};

// Parallelism belongs to the tasks around. LibTorch's number of threads is not OpenBLAS's, which has threads of its
// own.
void use_one_thread() {
  at::set_num_threads(1);
  void* const found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");  // null: another BLAS
  if (found != nullptr) reinterpret_cast<void (*)(int)>(found)(1);
}

template <class T>
NetworkOf<T>* make(const NetworkShape& shape, const std::vector<ParameterBlock>& layout) {
  use_one_thread();
  const c10::Device device(c10::kCPU);
  if (shape.kind == NetworkKind::treegru) return new TorchTreeGru<T>(shape, layout, device);
  return new TorchMlp<T>(shape, layout, device);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) NetworkOf<float>* graft_torch_network_float(
    const NetworkShape& shape, const std::vector<ParameterBlock>& layout) {
  return make<float>(shape, layout);
}
__attribute__((visibility("default"))) NetworkOf<double>* graft_torch_network_double(
    const NetworkShape& shape, const std::vector<ParameterBlock>& layout) {
  return make<double>(shape, layout);
}
}
