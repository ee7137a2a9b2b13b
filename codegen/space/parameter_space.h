// The space of a program that graft did not make: parameters, each with a list of values, and constraints over them.
// Its points are rows of a sketch of columns (sketch.h), so that searches, journals and datasets hold them as they hold
// the rows of tables.
//
// Constraints make a graph of the parameters, whose components are independent: each is resolved apart, a constraint as
// soon as its last parameter has a value. Components with few points are listed, and drawn from uniformly; of others
// points are found by backtracking in random order, without a list, so that a space may have any size.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/random.h"
#include "codegen/space/constraint.h"
#include "codegen/space/space.h"

namespace graft::codegen {

// A value of a file or an answer. UserError at its place for what is not a finite number, a text or a boolean.
Scalar scalar_of(const base::Document& value);

struct Tunable {
  std::string name;
  std::vector<Scalar> values;                // distinct texts; numbers ascending
  std::optional<std::size_t> standard = {};  // position of the default
};

class ParameterSpace {
 public:
  // UserError at `place` for more than a space may have: for readers, before they look at each.
  static void check_counts(std::size_t parameters, std::size_t constraints, std::string_view place);
  // UserError at `place` if it is not a space: no parameter or too many, a wrong name or one that is there twice, a
  // parameter without values or with one twice, constraints that no point meets.
  ParameterSpace(Workload workload, std::vector<Tunable> parameters, std::vector<Constraint> constraints,
                 std::string_view place);
  ~ParameterSpace();
  ParameterSpace(ParameterSpace&&) noexcept;
  ParameterSpace& operator=(ParameterSpace&&) noexcept;

  const Workload& workload() const;
  const std::vector<Tunable>& parameters() const;
  const std::vector<Constraint>& constraints() const;
  const std::shared_ptr<const Sketch>& sketch() const;
  // The number of valid points; nullopt if there are too many to count. Combinations without constraints:
  // `combinations`.
  std::optional<double> size() const;
  double combinations() const;

  // The values of each parameter as arguments of the sketch, in the order of `parameters`.
  std::vector<Domain> domains() const;
  // All of it, to search; of the listed points alone where they are few (`most_listed`).
  static constexpr double most_listed = 32768;
  Space space(Judge& judge) const;

  // The value of each parameter.
  std::vector<Scalar> values_of(const Candidate& candidate) const;
  // UserError for an unknown or missing parameter and a value that it does not have, at the values' places; Reason for
  // values that a constraint forbids.
  base::Result<Candidate> point(const base::Document& values) const;
  // {"tile_x":16,"unroll":true,...}
  base::Document to_document(const Candidate& candidate) const;
  // The default; where constraints forbid that, the valid point nearest to it. A parameter without a default takes its
  // first value.
  Candidate standard() const;
  // Which constraint forbids the default of all parameters; "" if none does, or not all have one.
  std::string not_met_by_default() const;
  // Candidates of another space or file with columns of these names and values: as a point of this space, if it has it.
  std::optional<Candidate> same_point(const Candidate& other) const;

 private:
  class Resolved;
  std::shared_ptr<const Resolved> resolved_;
};

}  // namespace graft::codegen
