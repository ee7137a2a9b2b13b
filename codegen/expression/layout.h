// Order and blocking of a tensor's stored dimensions, if they differ from those of its index expression: channels in
// blocks, a matrix transposed. Callers of a kernel pass its parameters in this layout.
//
// Text, a word for each stored dimension, outermost first: `0` dimension 0, `1/16` its blocks of 16, `1%16` the place
// within a block; `1%64/16` blocks of 16 within blocks of 64. `0 1/16 2 3 1%16`: NCHW with 16 channels side by side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace graft::codegen {

struct Layout {
  // The stored index is (x % within) / step of the logical one, x, of a dimension; within 0: not within a block.
  struct Part {
    int dimension = 0;
    std::int64_t within = 0, step = 1;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;  // by stored dimension; empty: as the index expression says
  bool operator==(const Layout&) const = default;
  bool is_plain() const { return parts.empty(); }
};

std::string to_text(const Layout& layout);
Layout parse_layout(std::span<const std::string> words, std::string_view place);  // throws UserError

// The shape of the stored dimensions. A Reason if the parts do not divide the logical shape: a dimension missing,
// blocks that do not divide their dimension.
base::Result<std::vector<std::int64_t>> stored_shape(const Layout& layout, std::span<const std::int64_t> shape);
// The logical shape again.
std::vector<std::int64_t> logical_shape(const Layout& layout, std::span<const std::int64_t> stored);

// Converts elements from the order of the index expression to stored order, and back; both row-major. `stored`: the
// stored shape. A plain layout changes nothing.
std::vector<double> packed(const Layout& layout, std::span<const std::int64_t> stored, std::vector<double> logical);
std::vector<double> unpacked(const Layout& layout, std::span<const std::int64_t> stored, std::vector<double> elements);

}  // namespace graft::codegen
