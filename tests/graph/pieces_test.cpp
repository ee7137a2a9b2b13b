#include "graph/pieces.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/expression/parse.h"

namespace {

using namespace graft::graph;
using graft::codegen::DType;
using graft::codegen::parse_computation;

using List = std::vector<std::tuple<std::string, int, int, int>>;  // tensor, first, from, elements

std::optional<List> pieces(const std::string& text) {
  const auto computation = parse_computation(text, {}, DType::f32, "test");
  const auto found = pieces_of(computation);
  if (!found) return std::nullopt;
  List list;
  for (const Piece& piece : *found)
    list.emplace_back(computation.tensors[std::size_t(piece.tensor)].name, int(piece.first), int(piece.from),
                      int(piece.elements));
  return list;
}

TEST(Pieces, OfAConcatenationAlongTheOutermostAxis) {
  EXPECT_EQ(pieces("input A[1,2,5]; input B[1,3,5]; output y[n,c,i] = select(c < 2, pad(A[n,c,i]), pad(B[n,c - 2,i])) "
                   "where n=1, c=5, i=5"),
            (List{{"A", 0, 0, 10}, {"B", 10, 0, 15}}));
}

TEST(Pieces, OfAStackOfSteps) {
  EXPECT_EQ(pieces("input A[4]; input B[4]; input C[4]; output y[t,u] = select(t < 1, A[u], select(t < 2, B[u], C[u])) "
                   "where t=3, u=4"),
            (List{{"A", 0, 0, 4}, {"B", 4, 0, 4}, {"C", 8, 0, 4}}));
}

TEST(Pieces, OfAPart) {
  EXPECT_EQ(pieces("input A[6,8]; output y[i,j] = A[i + 2,j] where i=3, j=8"), (List{{"A", 0, 16, 24}}));
  EXPECT_EQ(pieces("input A[1,6,8]; output y[n,i,j] = A[n,i + 2,j] where n=1, i=3, j=8"), (List{{"A", 0, 16, 24}}));
}

// Two halves that follow each other in memory are one piece.
TEST(Pieces, ThatFollowEachOtherAreOne) {
  EXPECT_EQ(pieces("input A[8]; output y[i] = select(i < 4, A[i], A[i]) where i=8"), (List{{"A", 0, 0, 8}}));
}

TEST(Pieces, AreNothingElse) {
  const char* const others[] = {
      "input A[2,3]; output y[i,j] = A[j,i] where i=3, j=2",  // transposed
      "input A[2,3]; input B[2,3]; output y[i,j] = select(j < 3, pad(A[i,j]), pad(B[i,j - 3])) where i=2, j=6",
      "input A[4]; output y[i] = max(A[i], 0) where i=4",                              // computed
      "input A[4]; output y[i] = select(i < 2, A[i], 0) where i=4",                    // a number
      "input A[4]; output y[i] = pad(A[i - 1]) where i=4",                             // beyond it
      "input A[8]; output y[i] = A[2*i] where i=4",                                    // every other one
      "input A[8]; output y[i] = A[7 - i] where i=8",                                  // turned round
      "input A[4]; input B[4]; output y[i] = select(B[i] < 2, A[i], B[i]) where i=4",  // by its values
      "input A[4]: i32; output y[i] = A[i] where i=4",                                 // converted
      "input A[4,3]; output y[i] += A[i,l] where i=4, l=3",
  };
  for (const char* const text : others) EXPECT_EQ(pieces(text), std::nullopt) << text;
}

}  // namespace
