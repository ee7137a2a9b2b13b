// Operators that choose or change elements by numbers of a run, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/fold.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/reference.h"

namespace {

using namespace graft::graph;
using file::attribute;
using graft::codegen::Elements;
using Inputs = std::map<std::string, Elements>;

std::vector<Elements> outputs_of(const file::GraphFile& made, const Inputs& inputs, int version = 18) {
  graft::base::Monitor nobody;
  return reference(folded(file::read(made, version), "m.onnx"), inputs, "m.onnx", nobody);
}

TEST(Selection, LargestElementsAreInOrderAndEqualOnesInThatOfTheirPlaces) {
  const std::vector<double> x = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};  // [3,4]
  for (const bool is_largest : {true, false}) {
    file::GraphFile file;
    file.input("x", {3, 4}).integers("k", {1}, {3});
    file.node("TopK", {"x", "k"}, {"v", "i"}, {attribute("largest", std::int64_t(is_largest))}).output("v").output("i");
    const auto outputs = outputs_of(file, {{"x", Elements(x)}});
    for (std::size_t row = 0; row < 3; ++row) {
      std::vector<std::size_t> order(4);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return is_largest ? x[4 * row + a] > x[4 * row + b] : x[4 * row + a] < x[4 * row + b];
      });
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(outputs[0][3 * row + k], x[4 * row + order[k]]);
        EXPECT_EQ(outputs[1][3 * row + k], double(order[k]));
      }
    }
  }
}

// As in onnxruntime; so no two have the same rank.
TEST(Selection, NanIsLargerThanAllNumbers) {
  const double nan = std::nan("");
  for (const bool is_largest : {true, false}) {
    file::GraphFile file;
    file.input("x", {6}).integers("k", {1}, {6});
    file.node("TopK", {"x", "k"}, {"v", "i"}, {attribute("largest", std::int64_t(is_largest))}).output("i");
    EXPECT_EQ(outputs_of(file, {{"x", {3, nan, 1, nan, 7, 2}}})[0],
              is_largest ? (Elements{1, 3, 4, 0, 5, 2}) : (Elements{2, 5, 0, 4, 1, 3}));
  }
}

// Along the first axis; of fewer updates than elements, with an index from the end.
TEST(Selection, UpdatesOfElementsAreAtTheirIndices) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6}, u = {10, 20, 30, 40}, indices = {0, -1, 2, 2};  // [3,2], [2,2]
  const auto run = [&](const std::string& reduction) {
    file::GraphFile file;
    file.input("x", {3, 2}).input("i", {2, 2}, file::i64).input("u", {2, 2});
    file.node("ScatterElements", {"x", "i", "u"}, {"y"}, {attribute("reduction", reduction.c_str())}).output("y");
    return outputs_of(file, {{"x", Elements(x)}, {"i", Elements(indices)}, {"u", Elements(u)}})[0];
  };
  EXPECT_EQ(run("none"), (Elements{10, 2, 3, 4, 30, 40}));  // the last one of a place
  EXPECT_EQ(run("add"), (Elements{11, 2, 3, 4, 35, 66}));
  EXPECT_EQ(run("max"), (Elements{10, 2, 3, 4, 30, 40}));
  EXPECT_EQ(run("min"), (Elements{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run("mul"), (Elements{10, 2, 3, 4, 150, 4800}));
  EXPECT_THROW(run("mean"), graft::base::UserError);
}

TEST(Selection, UpdatesOfRowsAreAtTheirIndices) {
  file::GraphFile file;
  file.input("x", {3, 2}).integers("i", {3, 1}, {2, 0, 2}).input("u", {3, 2});
  file.node("ScatterND", {"x", "i", "u"}, {"y"}).output("y");
  const auto outputs = outputs_of(file, {{"x", {1, 2, 3, 4, 5, 6}}, {"u", {10, 11, 20, 21, 30, 31}}});
  EXPECT_EQ(outputs[0], (Elements{20, 21, 3, 4, 30, 31}));
  file::GraphFile whole;
  whole.input("x", {2, 2}).integers("i", {2, 2}, {0, 1, -1, 0}).input("u", {2});
  whole.node("ScatterND", {"x", "i", "u"}, {"y"}, {attribute("reduction", "add")}).output("y");
  EXPECT_EQ(outputs_of(whole, {{"x", {1, 2, 3, 4}}, {"u", {10, 20}}})[0], (Elements{1, 12, 23, 4}));
}

TEST(Selection, PartsByAConstantCondition) {
  file::GraphFile file;
  file.input("x", {3, 2}).integers("c", {3}, {0, 1, 1}).integers("d", {4}, {1, 0, 0, 1});
  file.node("Compress", {"x", "c"}, {"y"}, {attribute("axis", 0)}).node("Compress", {"x", "d"}, {"z"});
  const auto outputs = outputs_of(file.output("y").output("z"), {{"x", {1, 2, 3, 4, 5, 6}}});
  EXPECT_EQ(outputs[0], (Elements{3, 4, 5, 6}));
  EXPECT_EQ(outputs[1], (Elements{1, 4}));
  file::GraphFile many;
  many.input("x", {3}).integers("c", {4}, {0, 1, 1, 1}).node("Compress", {"x", "c"}, {"y"}, {attribute("axis", 0)});
  EXPECT_THROW(outputs_of(many.output("y"), {}), graft::base::UserError);
}

// Upper triangles with two rows that change places; 5 rows are too many.
TEST(Selection, DeterminantsOfSmallMatrices) {
  const auto of = [](std::int64_t rows) {
    std::vector<double> x(std::size_t(rows * rows), 0);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = i; j < rows; ++j) x[std::size_t(i * rows + j)] = double(2 + i + 3 * j);
    std::swap_ranges(x.begin(), x.begin() + rows, x.begin() + rows);
    file::GraphFile file;
    file.input("x", {rows, rows}).node("Det", {"x"}, {"y"}).output("y");
    return outputs_of(file, {{"x", Elements(x)}})[0];
  };
  EXPECT_EQ(of(2), (Elements{-2 * 6}));
  EXPECT_EQ(of(3), (Elements{-2 * 6 * 10}));
  EXPECT_EQ(of(4), (Elements{-2 * 6 * 10 * 14}));
  EXPECT_THROW(of(5), graft::base::UserError);
}

TEST(Selection, WhatDoesNotFitIsRefused) {
  file::GraphFile many;
  many.input("x", {1 << 17}).integers("k", {1}, {3}).node("TopK", {"x", "k"}, {"v", "i"}).output("v");
  EXPECT_THROW(outputs_of(many, {}), graft::base::UserError);
  file::GraphFile beyond;
  beyond.input("x", {4}).integers("k", {1}, {5}).node("TopK", {"x", "k"}, {"v", "i"}).output("v");
  EXPECT_THROW(outputs_of(beyond, {}), graft::base::UserError);
  file::GraphFile shapes;
  shapes.input("x", {3, 2}).integers("i", {2, 1}, {0, 1}).input("u", {2, 3});
  shapes.node("ScatterND", {"x", "i", "u"}, {"y"}).output("y");
  EXPECT_THROW(outputs_of(shapes, {}), graft::base::UserError);
}

// Constants once they are folded; a window of no samples, and one whose angle is 0 / 0, are refused.
TEST(Selection, WeightsOfFrames) {
  const auto of = [](std::int64_t size, int periodic) {
    file::GraphFile file;
    file.integers("n", {}, {size}).node("HannWindow", {"n"}, {"y"}, {attribute("periodic", periodic)}).output("y");
    return outputs_of(file, {})[0];
  };
  const Elements periodic = of(4, 1), symmetric = of(4, 0);
  EXPECT_NEAR(periodic[1], 0.5, 1e-7);
  EXPECT_NEAR(symmetric[1], 0.75, 1e-7);
  EXPECT_THROW(of(0, 1), graft::base::UserError);
  EXPECT_THROW(of(1, 0), graft::base::UserError);
}

}  // namespace
