// Private to this folder: the sketch of a sum over blocks of what is summed within each, such as a product with weights
// of few bits: P[m,b,n] = sum over k of A[m,b,k] * Q[n,b,k], C[m,n] = sum over b of S[n,b] * P[m,b,n], where Q comes
// from packed bytes. P is computed for a register tile of C and one block at a time, so that its numbers are converted
// in registers, scales are applied once a block, and of the constants only their bytes are read.
//
// The bytes are stored in panels of columns, whose columns are innermost, in the order in which they are read. Where
// an intrinsic computes the first sum, such as a dot product of bytes, it does so for a panel at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"
#include "codegen/program/intrinsic.h"
#include "codegen/schedule/rule_parts.h"

namespace graft::codegen {

class BlockSums {
 public:
  BlockSums(const Computation& computation, const Target& target, std::span<const IntrinsicPointer> intrinsics = {});

  // Whether the computation is such a chain: two sums, of which the second one takes each element of the first one once
  // and sums over some of its axes, and the first one reads constants of bytes; element-wise stages at the end. Results
  // lie side by side along an axis that whole vectors cover.
  bool applies() const { return !panels_.empty(); }

  SketchSpace sketch() const;  // if it applies

 private:
  const Stage& stage(int number) const { return computation_.stages[std::size_t(number)]; }
  std::string name(int number) const { return name_of(computation_, stage(number)); }

  bool finds_sums();
  std::vector<int> packed_bytes() const;
  std::string panel_steps(const std::string& width) const;
  std::optional<Computation> in_panels() const;

  std::string loops_of_whole(const Computation& form, SketchBuilder& builder) const;
  void lines_of_part(const Computation& form, SketchBuilder& builder) const;
  void find_intrinsic(std::span<const IntrinsicPointer> intrinsics);
  bool is_within_intrinsic(int axis) const;  // of the first sum

  const Computation& computation_;
  std::int64_t lanes_ = 1, threads_ = 1;
  int part_ = -1, whole_ = -1;            // stages
  int column_ = -1, part_column_ = -1;    // axes of these along which results lie
  std::vector<int> axes_;                 // by result axis of the first sum: the second one's
  IntrinsicPointer intrinsic_ = nullptr;  // of the first sum
  Assignment assignment_;
  std::vector<std::vector<std::int64_t>> panels_;  // their widths
};

}  // namespace graft::codegen
