// A network on a flat parameter vector: forward, backward and their derivatives along a direction. That is enough for
// exact Hessian-vector products, so every gradient-based meta-learner is one recursion that is independent of
// frameworks. It is there for the MLP and the TreeGRU; tests compare both with LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graft::meta {

// One named piece of the flat parameter vector.
struct ParameterBlock {
  std::string name;  // "layer0.weight"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  bool head = false;       // part of the last layer (what ANIL adapts)
  bool saturates = false;  // its sums go into sigmoids and the like
  bool context = false;    // the numbers that represent a platform (networks/conditioned.h)
};

// Normalised programs, the input of a network (features::Encoded). They must outlive all references to them.
template <class T>
struct Inputs {
  std::span<const T> x;  // rows, row-major
  std::span<const std::int64_t> begins;
  std::span<const std::int32_t> parents;  // of trees
  std::int64_t programs() const { return std::int64_t(begins.size()) - 1; }
  std::int64_t rows() const { return begins.back(); }
};

template <class T>  // float for work, double for checks
class NetworkOf {
 public:
  // The part of a forward pass that backward needs (activations); made by forward, opaque to others.
  class Tape {
   public:
    virtual ~Tape() = default;
  };

  virtual ~NetworkOf() = default;
  virtual std::int64_t inputs() const = 0;
  virtual std::int64_t parameters() const = 0;
  virtual const std::vector<ParameterBlock>& layout() const = 0;  // the last block is the last layer's bias
  std::int64_t outputs() const { return layout().back().size; }

  // scores[p] of the programs, whose rows have inputs() columns; with several outputs scores[p * outputs + o], and so
  // for u and all else by score below. The tape refers to the inputs: keep them alive.
  virtual std::unique_ptr<Tape> forward(std::span<const T> theta, const Inputs<T>& programs,
                                        std::span<T> scores) const = 0;
  // The same scores alone: less memory and less time.
  virtual void score(std::span<const T> theta, const Inputs<T>& programs, std::span<T> scores) const {
    forward(theta, programs, scores);
  }
  // gradient = J(theta)^T u, with u[p] = dL/dscore[p].
  virtual void backward(std::span<const T> theta, const Tape& tape, std::span<const T> u,
                        std::span<T> gradient) const = 0;
  // Along direction v: score_tangent = J v.
  virtual std::unique_ptr<Tape> tangent_forward(std::span<const T> theta, const Tape& tape, std::span<const T> v,
                                                std::span<T> score_tangent) const = 0;
  // d/de of backward(theta + e v, u + e du) at e = 0: J^T du + (dJ/de)^T u. With du = (d2L/ds2) J v this is the
  // Hessian-vector product of L(scores(theta)).
  virtual void tangent_backward(std::span<const T> theta, const Tape& tape, const Tape& tangent_tape,
                                std::span<const T> v, std::span<const T> u, std::span<const T> du,
                                std::span<T> gradient) const = 0;
};
using Network = NetworkOf<float>;

enum class NetworkKind {
  mlp,      // "mlp": of rows; those of a program are summed after the first layer (networks/mlp.h)
  treegru,  // "treegru": of trees (networks/tree_gru.h)
};
std::string_view name_of(NetworkKind kind);
NetworkKind network_kind_named(std::string_view name);  // UserError (did you mean)

struct NetworkShape {
  std::int64_t inputs = 0;
  std::vector<std::int64_t> hidden = {128, 64};  // ReLU layers, then a linear one; of a TreeGRU: its decoder
  NetworkKind kind = NetworkKind::mlp;
  struct Tree {  // widths of a TreeGRU
    std::int64_t embedding = 64, units = 64, slots = 8;
    bool operator==(const Tree&) const = default;
  } tree = {};
  std::int64_t outputs = 1;   // of the last layer: 1: a score; more: an embedding of the program
  struct Context {            // networks/conditioned.h
    std::int64_t size = 0;    // none
    bool everywhere = false;  // shifts all biases and the head, not the first bias alone
    bool operator==(const Context&) const = default;
  } context = {};
  bool operator==(const NetworkShape&) const = default;
};

// The flat parameter vector of a shape: per layer a weight (inputs x outputs, row-major) and a bias.
std::vector<ParameterBlock> layout_of(const NetworkShape& shape);
std::int64_t parameter_count(const NetworkShape& shape);

// Normal weights of variance 2 / inputs (1 / inputs if no ReLU follows, in the gates of a TreeGRU), zero biases.
std::vector<float> initial_parameters(const NetworkShape& shape, std::uint64_t seed);

std::unique_ptr<Network> make_network(const NetworkShape& shape);
std::unique_ptr<NetworkOf<double>> make_network_double(const NetworkShape& shape);

// The outputs of all hidden layers of an MLP, side by side: programs x the sum of shape.hidden, to `outputs`. Those of
// the first layer are summed over a program's rows.
void hidden_outputs(const NetworkShape& shape, std::span<const float> theta, const Inputs<float>& programs,
                    std::span<float> outputs);

}  // namespace graft::meta
