// Private to this folder: the sketch of chains of stages over the same rows that begin and end with products, such as
// attention: S = Q K', M = max S, E = exp(S - M), D = sum E, O = E V, Y = O / D, where a row is one of Q. All stages
// are computed for a block of rows before the next block, so that S and E are there for one block only, in a cache next
// to the core (Dao et al., FlashAttention, NeurIPS 2022, blocks the rows' other axis, too; here a row's scores are
// few).
//
// What the stages before the last product compute is stored with the rows innermost: vectors run along the rows, so
// that sums along a row are sums of vectors without a rest, and of the first product's operands only those that move
// along the rows are packed, once for each block.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"
#include "codegen/schedule/rule_parts.h"

namespace graft::codegen {

class ProductRows {
 public:
  ProductRows(const Computation& computation, const Target& target);

  // Whether the computation is such a chain: an element-wise stage, which gives the output, reads a product whose
  // results lie side by side, and all stages before have the output's axes but the last one, and read of each other the
  // present row only. Constants are not operands of its products.
  bool applies() const { return block_ >= 0; }

  SketchSpace sketch() const;  // if it applies

 private:
  const Stage& stage(int number) const { return computation_.stages[std::size_t(number)]; }
  std::string name(int number) const { return name_of(computation_, stage(number)); }
  const Axis& axis(int number, int which) const { return stage(number).axes[std::size_t(which)]; }
  int last() const { return chain_.back(); }
  int product() const { return chain_[chain_.size() - 2]; }

  bool finds_rows();
  bool follows(int number, const Access& access);
  int block_axis() const;
  bool is_constant(int tensor) const;
  bool is_product_of_rows(int number) const;
  bool goes_along_rows(int number) const;

  std::string layout(int number) const;
  void lines_of_last(SketchBuilder& builder, bool divides_once) const;
  void lines_of_product(SketchBuilder& builder) const;
  void lines_along_rows(int number, SketchBuilder& builder) const;
  std::string reciprocal() const;
  std::string tile(int number, int which, const std::vector<std::vector<std::int64_t>>& sizes, const std::string& more,
                   SketchBuilder& builder) const;

  const Computation& computation_;
  const Target& target_;
  std::int64_t lanes_ = 1;
  std::vector<int> chain_;                // stages that are not known ahead
  std::vector<int> rows_;                 // axes of the last stage, of more than one element
  std::map<int, std::vector<int>> axes_;  // by stage: its axis for each row
  int block_ = -1;                        // which of the rows is divided into blocks
};

}  // namespace graft::codegen
