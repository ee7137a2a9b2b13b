// Inputs for which expressions are defined, and elements held in their types.
#include "codegen/expression/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"

namespace graft::codegen {
namespace {

Reference of(const std::string& text, std::uint64_t seed = 3) {
  return reference(parse_workload(text).computation(), seed);
}

bool all_finite(const Elements& elements) {
  return std::all_of(elements.begin(), elements.end(), [](double v) { return std::isfinite(v); });
}
double least(const Elements& elements) {
  return *std::min_element(elements.begin(), elements.end());
}

TEST(Inputs, AreOfTheDomainOfWhatIsComputed) {
  for (const char* text : {
           "input A[50]; output C[i] = sqrt(A[i]) where i=50",
           "input A[50]; output C[i] = log(A[i]) where i=50",
           "input A[50]; output C[i] = rsqrt(neg(A[i])) where i=50",
           "input A[50]; input B[50]; output C[i] = pow(A[i], B[i]) where i=50",
           "input A[50]; output C[i] = sqrt(A[i] * A[i] - 1) where i=50",
           "input A[50]; output C[i] = log(A[i] - 3) where i=50",
           "input A[50]; input B[50]; output C[i] = sqrt(A[i]) + log(neg(B[i])) where i=50",
           "input A[9,50]; S[i] += sqrt(A[i,l]); output C[i,j] = log(S[i]) * A[i,j] where i=9, j=50, l=50",
           "input A[50] : i8; output C[i] : f32 = sqrt(A[i]) where i=50",
           "input A[50] : f64; constant B[50] : f64; output C[i] : f64 = sqrt(A[i] * B[i]) where i=50",
       }) {
    const Computation what = parse_workload(text).computation();
    const Reference found = of(text);
    for (std::size_t t = 0; t < found.tensors.size(); ++t) {
      if (what.tensors[t].role == Role::temporary) continue;
      EXPECT_TRUE(all_finite(found.tensors[t])) << text << ": " << what.tensors[t].name;
      // Numbers of f32, and not one alone.
      for (const double v : found.tensors[t]) {
        ASSERT_TRUE(what.tensors[t].role == Role::output || double(float(v)) == v) << text;
      }
      const auto [low, high] = std::minmax_element(found.tensors[t].begin(), found.tensors[t].end());
      EXPECT_LT(*low, *high) << text;
    }
  }
}

// A mask times the lowest number, which is finite for 0 and 1 alone.
TEST(Inputs, AreThoseThatAreSeen) {
  const double lowest = -double(std::numeric_limits<float>::max());
  const Computation masked = parse_workload(
                                 "input M[9,50]; input A[9,50]; output C[i,j] = (1 - M[i,j]) * -3.4028234663852886e+38 "
                                 "+ A[i,j] where i=9, j=50")
                                 .computation();
  const Seen seen = {{"M", {0, 1}}, {"A", {0.1, 3}}};
  ReferenceSettings settings;
  settings.seen = &seen;
  base::Monitor nobody;
  const Reference finite = reference(masked, 3, settings, nobody);
  for (const double m : finite.tensors[0]) EXPECT_TRUE(m == 0 || m == 1);
  for (const double a : finite.tensors[1]) EXPECT_TRUE(a == double(0.1F) || a == 3) << a;  // in the tensor's type
  EXPECT_LT(least(finite.tensors[2]), -3e38);
  for (const double v : finite.tensors[2]) EXPECT_LE(std::abs(v), largest(DType::f32));
  // Numbers with which it is not finite are not taken; infinities are what they are.
  const Seen twice = {{"M", {0, 1}}, {"A", {lowest, 0.1}}}, infinite = {{"M", {0, 1}}, {"A", {-INFINITY, 0.1}}};
  settings.seen = &twice;
  const Reference other = reference(masked, 3, settings, nobody);
  for (const double a : other.tensors[1]) EXPECT_LE(std::abs(a), 16);
  settings.seen = &infinite;
  EXPECT_EQ(least(reference(masked, 3, settings, nobody).tensors[1]), -INFINITY);
  const Computation indexed =
      parse_workload("input T[4,3]; input I[6] : i64; output C[i,j] = T[I[i],j] where i=6, j=3").computation();
  const Seen indices = {{"I", {2, 3}}};
  settings.seen = &indices;
  const Reference gathered = reference(indexed, 3, settings, nobody);
  for (const double i : gathered.tensors[1]) EXPECT_TRUE(i == 2 || i == 3);
}

TEST(Inputs, AreTheUsualOnesWhereThatSuffices) {
  const Reference plain = of("input A[50]; input B[50]; output C[i] = A[i] + B[i] where i=50");
  EXPECT_LT(least(plain.tensors[0]), 0);
  // The operand that the logarithm takes, and not the other one.
  const Reference both = of("input A[50]; input B[50]; output C[i] = log(A[i]) + B[i] where i=50");
  EXPECT_GT(least(both.tensors[0]), 0);
  EXPECT_EQ(both.tensors[1], plain.tensors[1]);
  // Every branch is tried.
  const Reference guarded = of("input A[50]; output C[i] = select(A[i] > 0, log(A[i]), 1) where i=50");
  EXPECT_EQ(guarded.tensors[0], plain.tensors[0]);
  EXPECT_TRUE(all_finite(guarded.tensors[1]));
  // Always defined but for a quotient by exactly 0.
  const Reference quotient = of("input A[50]; input B[50]; output C[i] = A[i] / B[i] where i=50");
  EXPECT_EQ(quotient.tensors[0], plain.tensors[0]);
  EXPECT_EQ(quotient.tensors[1], plain.tensors[1]);
}

TEST(Inputs, WhatIsDefinedNowhereIsNotANumber) {
  const Reference nowhere = of("input A[50]; output C[i] = sqrt(-1 - A[i] * A[i]) where i=50");
  for (const double v : nowhere.tensors[1]) EXPECT_TRUE(std::isnan(v));
}

TEST(Inputs, AreFixedBySeed) {
  const char* const text = "input A[50]; input B[50]; output C[i] = sqrt(A[i]) + log(neg(B[i])) where i=50";
  EXPECT_EQ(of(text).tensors, of(text).tensors);
  EXPECT_FALSE(of(text).tensors[0] == of(text, 4).tensors[0]);
}

TEST(Elements, AreHeldInTheirTypes) {
  Elements bytes(DType::i8, 4);
  bytes.set(1, -128);
  bytes.set(3, 127);
  EXPECT_EQ(bytes, (Elements{0, -128, 0, 127}));
  EXPECT_EQ(bytes.bytes(DType::i8), std::string("\x00\x80\x00\x7f", 4));
  EXPECT_EQ(bytes.bytes(DType::i32).size(), 16u);
  EXPECT_EQ(bytes.numbers(), (std::vector<double>{0, -128, 0, 127}));
  EXPECT_EQ((Elements{0.5, 2}).bytes(DType::f32), as_bytes({0.5, 2}, DType::f32));
  for (const Elements& elements : {bytes, Elements(bytes.numbers())}) {
    std::vector<double> part(2);
    for (const auto& [first, stride] : {std::pair{0, 1}, {1, 2}, {3, 0}, {3, -2}}) {
      elements.read(first, stride, part);
      EXPECT_EQ(part, (std::vector<double>{elements[std::size_t(first)], elements[std::size_t(first + stride)]}));
    }
  }
}

TEST(Elements, OfASampleReadAsOtherwiseElsewhere) {
  const Elements some({2, 7, 9}, {0, 5, 0}, 10, -1);
  EXPECT_EQ(some.size(), 10u);
  EXPECT_EQ(some.numbers(), (std::vector<double>{-1, -1, 0, -1, -1, -1, -1, 5, -1, 0}));
  EXPECT_EQ(some.held(1), 5);
  std::vector<double> part(3);
  some.read(1, 3, part);
  EXPECT_EQ(part, (std::vector<double>{-1, -1, 5}));
  // In blocks of 5 of the second dimension [2, 5] -> [5, 2]: element 7 is [1, 2].
  const Layout turned = parse_layout(std::vector<std::string>{"1", "0"}, "test");
  const std::vector<std::int64_t> stored{5, 2};
  const Elements there = packed(turned, stored, some);
  EXPECT_EQ(there.numbers(), packed(turned, stored, some.numbers()));
  EXPECT_EQ(stored_place(turned, stored, 7), 5);
  EXPECT_EQ(there[5], 5);
}

}  // namespace
}  // namespace graft::codegen
