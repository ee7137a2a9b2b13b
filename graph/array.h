// Tensors of known numbers in their own types: weights, and what the arithmetic of shapes gives. Numbers of 64 bits are
// exact, which double precision would not be.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/expression/elements.h"

namespace graft::graph {

using codegen::DType;
using Shape = std::vector<std::int64_t>;

std::string to_text(const Shape& shape);  // "[1,3,224,224]", of a scalar "[]"

// The product of the extents, all >= 0; -1 if it is 2^40 or more: no tensor of ours has that many.
std::int64_t elements_of(const Shape& shape);

struct Array {
  DType type = DType::f32;
  Shape shape;
  std::string bytes;  // row-major, little-endian
  bool operator==(const Array&) const = default;

  std::size_t size() const { return bytes.size() / std::size_t(codegen::bytes_of(type)); }
  double number(std::size_t element) const;
  std::int64_t integer(std::size_t element) const;  // exact for integer types; a fraction is cut off
  std::vector<std::int64_t> integers() const;
  // In the array's type.
  codegen::Elements elements() const;
  // Whether an integer is too large for double precision.
  bool has_inexact() const;
};

// An array that several values and passes share.
using Known = std::shared_ptr<const Array>;

Known known(DType type, Shape shape, std::span<const std::int64_t> integers);
// Numbers are stored as codegen's reference stores them: floating point rounded to the type. Integers must be within
// it.
Known known(DType type, Shape shape, const codegen::Elements& numbers);
Known known_vector(std::span<const std::int64_t> integers);  // i64, one dimension: a shape, axes

}  // namespace graft::graph
