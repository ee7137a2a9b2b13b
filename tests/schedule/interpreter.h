// Runs a loop program literally, in double: the oracle of lowering.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

#include "codegen/expression/reference.h"
#include "codegen/program/program.h"

namespace graft::codegen {

class Interpreter {
 public:
  explicit Interpreter(const LoopProgram& program) : program_(program), variables_(program.loops.size(), 0) {
    for (const Buffer& buffer : program.buffers) memory_.emplace_back(std::size_t(buffer.elements()), std::nan(""));
  }

  std::vector<double>& buffer(std::size_t position) { return memory_[position]; }

  void run() {
    walk(program_.prepare, 0, int(program_.prepare.size()));
    walk(program_.run, 0, int(program_.run.size()));
  }

 private:
  double& element(const Access& access) {
    const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    const std::vector<std::int64_t> strides = buffer.strides();
    std::int64_t offset = 0;
    if (access.index.size() != buffer.shape.size()) throw std::logic_error("rank of " + buffer.name);
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      const std::int64_t i = evaluate(access.index[d], variables_);
      if (i < 0 || i >= buffer.shape[d]) throw std::logic_error("index outside of " + buffer.name);
      offset += i * strides[d];
    }
    return memory_[std::size_t(access.tensor)][std::size_t(offset)];
  }

  double value(const Value& value) {
    std::vector<double> results;
    for (const ValueNode& node : value.nodes) {
      const auto a = [&] { return results[std::size_t(node.a)]; };
      const auto b = [&] { return results[std::size_t(node.b)]; };
      switch (node.op) {
        case Op::constant: results.push_back(node.number); break;
        case Op::load: results.push_back(element(value.loads[std::size_t(node.load)])); break;
        case Op::add: results.push_back(a() + b()); break;
        case Op::sub: results.push_back(a() - b()); break;
        case Op::mul: results.push_back(a() * b()); break;
        case Op::div: results.push_back(a() / b()); break;
        case Op::max: results.push_back(std::max(a(), b())); break;
        case Op::min: results.push_back(std::min(a(), b())); break;
        case Op::neg: results.push_back(-a()); break;
        case Op::exp: results.push_back(std::exp(a())); break;
        case Op::sqrt: results.push_back(std::sqrt(a())); break;
      }
    }
    return results.back();
  }

  void walk(const Body& body, int at, int end) {
    while (at < end) {
      const Node& node = body[std::size_t(at)];
      if (node.kind == Node::Kind::store) {
        const Store& store = program_.stores[std::size_t(node.item)];
        const double right = value(store.value);
        double& target = element(store.target);
        switch (store.combine) {
          case Combine::none: target = right; break;
          case Combine::sum: target += right; break;
          case Combine::max: target = std::max(target, right); break;
          case Combine::min: target = std::min(target, right); break;
        }
      } else {
        for (std::int64_t i = 0; i < program_.loops[std::size_t(node.item)].extent; ++i) {
          variables_[std::size_t(node.item)] = i;
          walk(body, at + 1, node.end);
        }
        variables_[std::size_t(node.item)] = 0;
      }
      at = node.end;
    }
  }

  const LoopProgram& program_;
  std::vector<std::int64_t> variables_;
  std::vector<std::vector<double>> memory_;
};

// Largest excess of |computed - expected| over the tolerance (<= 0: right), with inputs of the seed. The program's first
// buffers are the computation's non-temporaries in order.
inline double worst_excess(const Computation& computation, const LoopProgram& program, std::uint64_t seed) {
  const Reference expected = reference(computation, seed);
  Interpreter interpreter(program);
  std::size_t buffer = 0;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const Role role = computation.tensors[t].role;
    if (role == Role::temporary) continue;
    if (role != Role::output) interpreter.buffer(buffer) = expected.tensors[t];
    ++buffer;
  }
  interpreter.run();
  buffer = 0;
  double worst = -1e300;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    if (computation.tensors[t].role == Role::temporary) continue;
    if (computation.tensors[t].role == Role::output) {
      for (std::size_t i = 0; i < expected.tensors[t].size(); ++i) {
        const double error = std::abs(interpreter.buffer(buffer)[i] - expected.tensors[t][i]);
        const double excess = error - tolerance(DType::f64, expected.reduction_length[t], expected.magnitude[t][i]);
        worst = std::isnan(error) ? INFINITY : std::max(worst, excess);
      }
    }
    ++buffer;
  }
  return worst;
}

}  // namespace graft::codegen
