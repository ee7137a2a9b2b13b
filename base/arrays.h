// Numbers by name: what model files, normalisations and optimiser states are made of.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace graft::base {

// Row-major matrix of floats.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;  // rows * columns

  Matrix() = default;
  Matrix(std::int64_t rows_, std::int64_t columns_)
      : rows(rows_), columns(columns_), values(std::size_t(rows_ * columns_)) {}
  std::span<float> row(std::int64_t r) { return {values.data() + r * columns, std::size_t(columns)}; }
  std::span<const float> row(std::int64_t r) const { return {values.data() + r * columns, std::size_t(columns)}; }
  float& at(std::int64_t r, std::int64_t c) { return values[std::size_t(r * columns + c)]; }
  float at(std::int64_t r, std::int64_t c) const { return values[std::size_t(r * columns + c)]; }
  bool operator==(const Matrix&) const = default;
  template <class Bytes, class Self>
  static void fields(Bytes& bytes, Self& self) {  // bytes.h
    bytes(self.rows), bytes(self.columns), bytes(self.values);
  }
};

struct Array {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  bool operator==(const Array&) const = default;
};

struct Arrays {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> attributes;
  bool operator==(const Arrays&) const = default;
};

}  // namespace graft::base
