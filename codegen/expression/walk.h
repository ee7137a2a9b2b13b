// Steps through the points of a box, and numbers that are affine in the point: offsets of accesses, indices.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/expression/value.h"

namespace graft::codegen {

inline std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// A number over the axes of a stage: what it is at their starts, and by how much it grows along each.
struct Form {
  std::int64_t start = 0;
  std::vector<std::int64_t> along;
};
inline Form form_of(const Affine& index, std::size_t axes) {
  Form form{index.constant, std::vector<std::int64_t>(axes, 0)};
  for (const Term& term : index.terms) form.along[std::size_t(term.variable)] += term.coefficient;
  return form;
}
// The flat offset of these indices in a tensor of this shape, row-major.
inline Form flat(const std::vector<Affine>& index, const std::vector<std::int64_t>& shape, std::size_t axes) {
  const std::vector<std::int64_t> strides = strides_of(shape);
  Form form{0, std::vector<std::int64_t>(axes, 0)};
  for (std::size_t d = 0; d < strides.size(); ++d) {
    const Form own = form_of(index[d], axes);
    form.start += strides[d] * own.start;
    for (std::size_t a = 0; a < axes; ++a) form.along[a] += strides[d] * own.along[a];
  }
  return form;
}

// All points of a box, the last axis fastest.
class Walk {
 public:
  explicit Walk(std::vector<std::int64_t> extents) : extents_(std::move(extents)), at_(extents_.size()) {
    for (const std::int64_t extent : extents_) points_ *= extent;
  }
  // A number that starts at `start` and grows by strides[a] with axis a; returns its position.
  std::size_t track(std::int64_t start, std::vector<std::int64_t> strides) {
    assert(strides.size() == extents_.size());
    starts_.push_back(start);
    numbers_.push_back(start);
    strides_.push_back(std::move(strides));
    return numbers_.size() - 1;
  }
  // Joins axes along which all tracked numbers grow as along one, so that rows are long. Before the first step.
  void join_axes() {
    for (std::size_t a = extents_.size(); a-- > 1;) {
      const auto fits = [&](const auto& strides) { return strides[a - 1] == strides[a] * extents_[a]; };
      bool all = true;
      for (const auto& strides : strides_) all = all && (extents_[a - 1] == 1 || extents_[a] == 1 || fits(strides));
      if (!all) continue;
      const std::size_t dropped = extents_[a] == 1 ? a : a - 1;
      extents_[extents_[a] == 1 ? a - 1 : a] = extents_[a - 1] * extents_[a];
      extents_.erase(extents_.begin() + std::ptrdiff_t(dropped));
      at_.pop_back();
      for (auto& strides : strides_) strides.erase(strides.begin() + std::ptrdiff_t(dropped));
    }
  }
  std::size_t numbers() const { return numbers_.size(); }
  std::int64_t operator[](std::size_t number) const { return numbers_[number]; }
  // By how much a number grows from a point to the next one of its row.
  std::int64_t stride(std::size_t number) const { return strides_[number].empty() ? 0 : strides_[number].back(); }
  std::int64_t points() const { return points_; }
  // Points from this one to the end of its row, itself included.
  std::int64_t left_in_row() const { return extents_.empty() ? 1 : extents_.back() - at_.back(); }
  // To the point of this number in the order of the steps.
  void go_to(std::int64_t point) {
    if (point == present_) return;
    present_ = point;
    numbers_ = starts_;
    for (std::size_t a = extents_.size(); a-- > 0;) {
      at_[a] = point % extents_[a];
      point /= extents_[a];
      for (std::size_t n = 0; n < numbers_.size(); ++n) numbers_[n] += strides_[n][a] * at_[a];
    }
  }
  // `count` points on, which are no more than are left in the row; from the last point back to the first.
  void advance(std::int64_t count = 1) {
    present_ += count;
    if (present_ == points_) present_ = 0;
    for (std::size_t a = extents_.size(); a-- > 0; count = 1) {
      at_[a] += count;
      const bool wraps = at_[a] == extents_[a];
      const std::int64_t step = wraps ? count - extents_[a] : count;
      for (std::size_t n = 0; n < numbers_.size(); ++n) numbers_[n] += strides_[n][a] * step;
      if (!wraps) return;
      at_[a] = 0;
    }
  }

 private:
  std::vector<std::int64_t> extents_, at_, starts_, numbers_;
  std::int64_t points_ = 1, present_ = 0;
  std::vector<std::vector<std::int64_t>> strides_;
};

}  // namespace graft::codegen
