// A small network as a sequence of kernels, and what it computes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/machine/compile.h"
#include "codegen/machine/sequence.h"
#include "codegen/program/forms.h"

namespace graft::codegen::test {

inline constexpr std::int64_t rows = 12, inner = 20, columns = 16;

inline constexpr const char* multiply = R"(buffer A f32 [12,20] input
buffer B f32 [20,16] constant
buffer C f32 [12,16] output
buffer packed f32 [20,16] temporary
prepare
  for k 20
    for v 16
      packed[k,v] = B[k,v]
run
  for i 12 parallel
    for v 16
      C[i,v] = 0
    for k 20
      for v 16
        C[i,v] += A[i,k] * packed[k,v]
)";

inline constexpr const char* add = R"(buffer A f32 [12,16] input
buffer bias f32 [16] constant
buffer C f32 [12,16] output
buffer sum f32 [12,16] temporary
run
  for i 12
    for v 16
      sum[i,v] = A[i,v] + bias[v]
  for i 12
    for v 16
      C[i,v] = sum[i,v]
)";

inline Target host(std::int64_t threads = 1) {
  Target target = host_target();
  target.threads = threads;
  return target;
}

inline std::vector<float> floats(std::int64_t count, int step, int around) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(float(i * step % around - around / 2));
  return all;
}

inline std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}

inline const std::vector<float> x = floats(rows * inner, 7, 11), b = floats(inner * columns, 5, 13),
                                bias = floats(columns, 3, 7);

// z = x b + bias, y = z + bias; z is read where it was written to.
inline Sequence net(const Target& target, const std::string& name = "net") {
  Sequence all;
  all.name = name, all.platform = "a */ board", all.graft = "1.2.3", all.target = target;
  all.inputs = {{"input/0", DType::f32, {rows, inner}}};
  all.outputs = {{"float", DType::f32, {rows, columns}}, {"input.0", DType::f32, {1, rows, columns}}};
  const auto compiled = [&](const char* text, const std::string& symbol) {
    auto object = compile(parse_program(text, "test"), target, search_pipeline(target), name + "_" + symbol);
    EXPECT_TRUE(object.ok()) << object.reason().text;
    all.kernels.push_back(std::move(object).value());
  };
  compiled(multiply, "multiply");
  compiled(add, "add");
  all.weights = bytes_of(b) + bytes_of(bias);
  const std::int64_t product = 0, scratch = 4 * rows * columns;
  const Sequence::Place at_bias{Sequence::Where::weights, 0, 4 * inner * columns};
  all.calls = {
      {0,
       {Sequence::Place{Sequence::Where::input}, std::nullopt, Sequence::Place{Sequence::Where::arena, 0, product}},
       Sequence::Place{Sequence::Where::weights},
       {},
       "layer 0"},
      {1,
       {Sequence::Place{Sequence::Where::arena, 0, product}, at_bias, Sequence::Place{Sequence::Where::output, 1}},
       {},
       Sequence::Place{Sequence::Where::arena, 0, scratch},
       "1"},
      {1,
       {Sequence::Place{Sequence::Where::output, 1}, at_bias, Sequence::Place{Sequence::Where::output, 0}},
       {},
       Sequence::Place{Sequence::Where::arena, 0, scratch},
       "2"}};
  all.arena_bytes = scratch + all.kernels[1].signature.scratch_bytes;
  return all;
}

// y, then z.
inline std::vector<float> expected() {
  std::vector<float> y, z;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) sum += x[std::size_t(i * inner + k)] * b[std::size_t(k * columns + j)];
      z.push_back(sum + bias[std::size_t(j)]);
      y.push_back(z.back() + bias[std::size_t(j)]);
    }
  y.insert(y.end(), z.begin(), z.end());
  return y;
}

}  // namespace graft::codegen::test
