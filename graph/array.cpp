#include "graph/array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace graft::graph {
namespace {

constexpr std::int64_t most_elements = std::int64_t(1) << 40;
constexpr std::int64_t most_exact = std::int64_t(1) << 53;

}  // namespace

std::string to_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

std::int64_t elements_of(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape)
    if (extent == 0) return 0;
  for (const std::int64_t extent : shape) {
    if (extent >= most_elements / product) return -1;
    product *= extent;
  }
  return product;
}

double Array::number(std::size_t element) const {
  return codegen::with_element_of(type, [&](auto value) {
    std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
    return double(value);
  });
}

std::int64_t Array::integer(std::size_t element) const {
  return codegen::with_element_of(type, [&](auto value) {
    std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
    if constexpr (!std::is_integral_v<decltype(value)>)
      return std::isnan(double(value)) ? 0 : codegen::integer_of(std::trunc(double(value)));
    else
      return std::int64_t(value);
  });
}

std::vector<std::int64_t> Array::integers() const {
  std::vector<std::int64_t> all(size());
  for (std::size_t e = 0; e < all.size(); ++e) all[e] = integer(e);
  return all;
}

codegen::Elements Array::elements() const {
  return {type, bytes};
}

bool Array::has_inexact() const {
  if (type != DType::i64) return false;
  for (std::size_t e = 0; e < size(); ++e) {
    const std::int64_t value = integer(e);
    if (value > most_exact || value < -most_exact) return true;
  }
  return false;
}

Known known(DType type, Shape shape, std::span<const std::int64_t> integers) {
  auto array = std::make_shared<Array>(Array{type, std::move(shape), {}});
  array->bytes.resize(integers.size() * std::size_t(codegen::bytes_of(type)));
  codegen::with_element_of(type, [&](auto zero) {
    for (std::size_t e = 0; e < integers.size(); ++e) {
      using Element = decltype(zero);
      Element value;
      if constexpr (std::is_integral_v<Element>)
        value = Element(integers[e]);
      else
        value = Element(double(integers[e]));
      std::memcpy(array->bytes.data() + e * sizeof value, &value, sizeof value);
    }
  });
  return array;
}

Known known(DType type, Shape shape, const codegen::Elements& numbers) {
  return std::make_shared<Array>(Array{type, std::move(shape), numbers.bytes(type)});
}

Known known_vector(std::span<const std::int64_t> integers) {
  return known(DType::i64, {std::int64_t(integers.size())}, integers);
}

}  // namespace graft::graph
