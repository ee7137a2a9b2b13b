// Private to this folder: the sketch of a product over what windows give, such as a depthwise convolution followed by
// one of 1x1: D = sum of windows over X, T = clip(D), P = T W, Y = P + bias. The windows' results are computed for a
// block of rows, all channels, before the product of these rows, so that D and T are there for one block only, in a
// cache next to the core, and never go to memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"
#include "codegen/schedule/rule_parts.h"

namespace graft::codegen {

class WindowRows {
 public:
  WindowRows(const Computation& computation, const Target& target);

  // Whether the computation is such a chain: two sums of products, of which the first one sums windows alone, and the
  // second one reads what the first one and element-wise stages give, one row for each of its own; element-wise stages
  // at the end, copies that pad at the beginning. Both sums have vectors along their last axis.
  bool applies() const { return row_ >= 0; }

  SketchSpace sketch() const;  // if it applies

 private:
  const Stage& stage(int number) const { return computation_.stages[std::size_t(number)]; }
  std::string name(int number) const { return name_of(computation_, stage(number)); }
  const Axis& axis(int number, int which) const { return stage(number).axes[std::size_t(which)]; }
  int rank(int number) const { return computation_.spatial_axes(stage(number)); }

  bool finds_stages();
  bool finds_rows();
  bool has_vectors(int number, std::int64_t largest_stride) const;
  const Access& read() const;  // of what the windows give, by the product
  int window_axis_of(int product_axis) const;
  bool absorbs_padding() const;
  std::vector<std::int64_t> block_sizes() const;

  std::string vectors(int number, std::int64_t most, SketchBuilder& builder) const;
  std::string lines_of_product(SketchBuilder& builder) const;
  void lines_of_windows(SketchBuilder& builder) const;

  const Computation& computation_;
  const Target& target_;
  int pad_ = -1, windows_ = -1, product_ = -1;  // stages; -1: none
  std::vector<int> between_;                    // element-wise stages, in order
  int row_ = -1, column_ = -1;                  // axes of the product along which windows move; column_ -1: none
};

}  // namespace graft::codegen
