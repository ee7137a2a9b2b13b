// Shared by the tests of encodings: encoded values by name, and counts from logarithms.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "codegen/program/forms.h"
#include "features/encoding.h"

namespace graft::features::test {

using Values = std::map<std::string, float>;

// One map for each row.
inline std::vector<Values> rows_of(const Encoding& encoding, const Encoded& encoded) {
  std::vector<Values> rows(std::size_t(encoded.rows.rows));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < encoding.features.size(); ++c)
      rows[r][encoding.features[c].name] = encoded.rows.at(std::int64_t(r), std::int64_t(c));
  }
  return rows;
}
inline std::vector<Values> rows_of(std::string_view encoding, const codegen::LoopProgram& program) {
  const Encoding& named = encoding_named(encoding);
  return rows_of(named, named.encode({.program = &program}));
}
inline std::vector<Values> rows_of(std::string_view encoding, const std::string& text) {
  return rows_of(encoding, codegen::parse_program(text, "p"));
}

inline float value(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  EXPECT_NE(found, values.end()) << name;
  return found == values.end() ? -1 : found->second;
}

// Undoes log2(1 + x): counts in these programs are small integers. Negative ones are those of a "signed log2".
inline std::int64_t count(const Values& values, const std::string& name) {
  const double logarithm = double(value(values, name));
  const double number = std::exp2(std::abs(logarithm)) - 1;
  EXPECT_NEAR(number, std::round(number), 0.02) << name;
  return logarithm < 0 ? -std::llround(number) : std::llround(number);
}

}  // namespace graft::features::test
