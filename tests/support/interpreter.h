// The oracle of lowering and of machine code: a loop program run literally, in double (integers wrap around), statement
// by statement. Indices are checked against the shape of every dimension; speed and rounding are not modelled.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "codegen/expression/extreme.h"
#include "codegen/program/program.h"

namespace graft::codegen::test {

using Numbers = std::vector<std::vector<double>>;  // by buffer of the program

class Interpreter {
 public:
  Interpreter(const LoopProgram& program, Numbers& numbers)
      : program_(program), numbers_(numbers), variables_(program.loops.size(), 0) {}

  void run() {
    walk(program_.prepare, 0, int(program_.prepare.size()));
    walk(program_.run, 0, int(program_.run.size()));
  }

 private:
  void walk(const Body& body, int begin, int end) {
    for (int n = begin; n < end; n = body[std::size_t(n)].end) {
      const Node& node = body[std::size_t(n)];
      if (node.kind == Node::Kind::store) {
        store(program_.stores[std::size_t(node.item)]);
        continue;
      }
      for (std::int64_t i = 0; i < program_.loops[std::size_t(node.item)].extent; ++i) {
        variables_[std::size_t(node.item)] = i;
        walk(body, n + 1, node.end);
      }
    }
  }

  double& element(const Access& access, std::vector<double> gathered = {}) {
    const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    if (access.index.size() != buffer.shape.size()) throw std::logic_error("rank of " + buffer.name);
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      std::int64_t i = evaluate(access.index[d], variables_);
      if (access.gathers(d)) {
        i = std::int64_t(std::clamp(gathered.front(), 0.0, double(buffer.shape[d] - 1)));
        gathered.erase(gathered.begin());
      }
      if (i < 0 || i >= buffer.shape[d]) throw std::logic_error("index outside of " + buffer.name);
      offset = offset * buffer.shape[d] + i;
    }
    return numbers_[std::size_t(access.tensor)][std::size_t(offset)];
  }

  double value(const Value& value, DType target) {
    const std::vector<NodeType> types = types_of(
        value, target, [&](const Access& access) { return program_.buffers[std::size_t(access.tensor)].dtype; });
    std::vector<double> results;
    for (std::size_t n = 0; n < value.nodes.size(); ++n) {
      const ValueNode& node = value.nodes[n];
      const DType type = types[n].operands;
      const auto operand = [&](int o) {
        return o < 0 ? 0 : convert(results[std::size_t(o)], types[std::size_t(o)].result, type);
      };
      const double a = node.op == Op::select ? results[std::size_t(node.a)] : operand(node.a);
      const double b = operand(node.b), c = operand(node.c);
      switch (node.op) {
        case Op::constant:
          results.push_back(node.number);
          break;
        case Op::load:
          results.push_back(element(value.loads[std::size_t(node.load)], {a, b, c}));
          break;
        case Op::position:
          results.push_back(double(evaluate(value.positions[std::size_t(node.load)], variables_)));
          break;
        case Op::add:
          results.push_back(a + b);
          break;
        case Op::sub:
          results.push_back(a - b);
          break;
        case Op::mul:
          results.push_back(a * b);
          break;
        case Op::div:
          results.push_back(is_floating(type) ? a / b : integer_quotient(a, b));
          break;
        case Op::modulo:
          results.push_back(integer_remainder(a, b));
          break;
        case Op::shift_left:
          results.push_back(a * std::exp2(shift_of(b, type)));
          break;
        case Op::shift_right:
          results.push_back(std::floor(a / std::exp2(shift_of(b, type))));
          break;
        case Op::bit_and:
          results.push_back(double(integer_of(a) & integer_of(b)));
          break;
        case Op::bit_or:
          results.push_back(double(integer_of(a) | integer_of(b)));
          break;
        case Op::bit_xor:
          results.push_back(double(integer_of(a) ^ integer_of(b)));
          break;
        case Op::round:
          results.push_back(std::nearbyint(a));
          break;
        case Op::cast_f32:
        case Op::cast_f64:
        case Op::cast_i32:
        case Op::cast_i8:
        case Op::cast_u8:
        case Op::cast_f16:
        case Op::cast_bf16:
        case Op::cast_i64:
        case Op::saturate_i32:
        case Op::saturate_i8:
        case Op::saturate_u8:
          results.push_back(convert(a, type, types[n].result, saturates(node.op)));
          break;
        case Op::max:
          results.push_back(maximum(a, b));
          break;
        case Op::min:
          results.push_back(minimum(a, b));
          break;
        case Op::neg:
          results.push_back(-a);
          break;
        case Op::exp:
          results.push_back(std::exp(a));
          break;
        case Op::sqrt:
          results.push_back(std::sqrt(a));
          break;
        case Op::rsqrt:
          results.push_back(1 / std::sqrt(a));
          break;
        case Op::log:
          results.push_back(std::log(a));
          break;
        case Op::pow:
          results.push_back(std::pow(a, b));
          break;
        case Op::tanh:
          results.push_back(std::tanh(a));
          break;
        case Op::sigmoid:
          results.push_back(1 / (1 + std::exp(-a)));
          break;
        case Op::erf:
          results.push_back(std::erf(a));
          break;
        case Op::sin:
          results.push_back(std::sin(a));
          break;
        case Op::cos:
          results.push_back(std::cos(a));
          break;
        case Op::abs:
          results.push_back(std::abs(a));
          break;
        case Op::floor:
          results.push_back(std::floor(a));
          break;
        case Op::select:
          results.push_back(a != 0 ? b : c);
          break;
        case Op::less:
        case Op::less_or_equal:
        case Op::greater:
        case Op::greater_or_equal:
        case Op::equal:
        case Op::not_equal:
          results.push_back(holds(node.op, a, b));
          break;
      }
      if (!is_comparison(node.op)) results.back() = kept(results.back(), types[n].result);
    }
    const double result = convert(results.back(), types.back().result, target);
    // Within the range of a type of storage alone it stays as exact as it is.
    return computed_in(target) != target && std::abs(result) > largest(target) ? rounded_to(result, target) : result;
  }

  // Exact, where a product in double is rounded before it wraps around.
  static double wrapped_product(double a, double b, DType type) {
    const std::uint64_t product = std::uint64_t(std::int64_t(a)) * std::uint64_t(std::int64_t(b));
    return kept(bytes_of(type) == 8 ? double(std::int64_t(product)) : double(std::int32_t(product)), type);
  }

  void store(const Store& store) {
    const DType type = program_.buffers[std::size_t(store.target.tensor)].dtype;
    const double right = value(store.value, type);
    double& target = element(store.target);
    switch (store.combine) {
      case Combine::none:
        target = right;
        break;
      case Combine::sum:
        target = kept(target + right, type);
        break;
      case Combine::max:
        target = maximum(target, right);
        break;
      case Combine::min:
        target = minimum(target, right);
        break;
      case Combine::product:
        target = is_floating(type) ? target * right : wrapped_product(target, right, type);
        break;
    }
  }

  const LoopProgram& program_;
  Numbers& numbers_;
  std::vector<std::int64_t> variables_;
};

inline Numbers interpreted(const LoopProgram& program, Numbers numbers) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].is_literal()) numbers[b] = program.buffers[b].values;
  Interpreter(program, numbers).run();
  return numbers;
}

}  // namespace graft::codegen::test
