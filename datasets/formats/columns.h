// The columns of tables and the tunable parameters of others' kernels, as the arguments of a sketch of columns: what
// a column's values are known once all rows were seen, so files are read twice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/expression/workload.h"
#include "codegen/space/sketch.h"

namespace graft::datasets::formats {

class Columns {
 public:
  // UserError at `place` for a duplicate name and for more columns than any real table has.
  Columns(std::vector<std::string> names, std::string place);

  const std::vector<std::string>& names() const { return names_; }
  int named(std::string_view name) const;  // -1 if there is none
  // Why a value, as text, cannot be one of the column: NaN, infinities, a very long word; "" if it can.
  std::string problem(int column, std::string_view value) const;
  // A value without a problem: a number or any word, which may be empty. TooMuch when all columns together have more
  // different values than any real table.
  void see(int column, std::string_view value);
  // Whether a number of the column is written with a fraction, even as 17.0.
  bool has_fraction(int column) const { return seen_[std::size_t(column)].point; }
  bool has_text(int column) const { return seen_[std::size_t(column)].text; }

  // A sketch of the columns `chosen`, in that order: up to 16 numbers in ascending order, texts and numbers with
  // fractions as alternatives; more integers as plain numbers. UserError for a column of more than 16,384 different
  // values that are not all integers.
  std::shared_ptr<const codegen::Sketch> sketch(std::string_view name, const std::vector<int>& chosen);
  // After `sketch`: the argument for a value that was seen. TooMuch for any other.
  std::int64_t argument(int column, std::string_view value) const;

 private:
  struct Seen {
    bool text = false, fraction = false, point = false;
    bool too_many = false;                       // then `values` is empty
    std::map<std::string, std::int64_t> values;  // canonical text -> argument
  };
  std::vector<std::string> names_;
  std::string place_;
  std::vector<Seen> seen_;
  std::int64_t different_ = 0;
};

// "table(name=NAME,KEY=VALUE,...)": a workload of which only the name is known.
codegen::Workload table_workload(std::string_view name,
                                 const std::vector<std::pair<std::string, std::int64_t>>& sizes = {});

}  // namespace graft::datasets::formats
