// What a search is given to choose from, for a workload and a target.
#include "study/inputs/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "codegen/expression/workload.h"

namespace graft::study {
namespace {

codegen::Target target_of(const std::string& cpu, int bits) {
  codegen::Target target;
  target.triple = "x86_64-unknown-linux-gnu", target.cpu = cpu;
  target.vector_bits = bits, target.vector_registers = 32;
  return target;
}

std::ptrdiff_t with_intrinsics(const codegen::Space& space) {
  return std::count_if(space.sketches().begin(), space.sketches().end(),
                       [](const codegen::SketchSpace& part) { return !part.sketch->intrinsics.empty(); });
}

TEST(SpaceByRule, ProductsOfBytesHaveDotProductsWhereTheTargetHasThem) {
  const auto bytes = codegen::parse_workload(
      "input A[32,64] : u8; constant B[64,48] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=32, j=48, l=64");
  const codegen::Space own = space_of({}, bytes, target_of("sapphirerapids", 512));
  EXPECT_GT(with_intrinsics(own), 0);
  EXPECT_GT(with_intrinsics(space_of({}, bytes, target_of("x86-64-v4", 512))), 0);
  EXPECT_EQ(with_intrinsics(space_of({}, bytes, target_of("x86-64-v2", 128))), 0);
  const auto floats = codegen::parse_workload("matmul(m=32,n=48,k=64)");
  EXPECT_EQ(with_intrinsics(space_of({}, floats, target_of("sapphirerapids", 512))), 0);
}

// One row of two columns has no room for any of them.
TEST(SpaceByRule, WhatHoldsNoDotProductKeepsItsSketches) {
  const auto small = codegen::parse_workload(
      "input A[1,3] : u8; constant B[3,2] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=1, j=2, l=3");
  const codegen::Space space = space_of({}, small, target_of("sapphirerapids", 512));
  EXPECT_EQ(with_intrinsics(space), 0);
  EXPECT_FALSE(space.sketches().empty());
}

}  // namespace
}  // namespace graft::study
