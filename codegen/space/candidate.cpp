#include "codegen/space/candidate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "codegen/space/table_schema.h"

namespace graft::codegen {
namespace {

std::vector<std::int64_t> arguments_from(const base::Document& list) {
  std::vector<std::int64_t> arguments;
  for (const base::Document& argument : list.as_list()) arguments.push_back(argument.as_integer());
  return arguments;
}

}  // namespace

std::uint64_t hash(const Candidate& candidate) {
  std::uint64_t value = base::hash_combine(hash(candidate.workload), hash(*candidate.sketch));
  for (const std::int64_t argument : candidate.arguments) value = base::hash_combine(value, std::uint64_t(argument));
  return value;
}

base::Document to_document(const Candidate& candidate) {
  base::Document arguments = base::Document::list();
  for (const std::int64_t argument : candidate.arguments) arguments.push(argument);
  return base::Document::map()
      .set("workload", candidate.workload.text())
      .set("sketch", to_text(*candidate.sketch))
      .set("arguments", std::move(arguments));
}

Candidate candidate_from(const base::Document& document) {
  return {workload_from(document.at("workload")), sketch_from(document.at("sketch")),
          arguments_from(document.at("arguments"))};
}

Workload workload_from(const base::Document& text) {
  Workload workload;
  try {
    workload = parse_workload(text.as_string());
  } catch (const base::UserError& error) {
    throw base::UserError(text.place(), error.what());
  }
  if (!names_computation(workload)) throw base::UserError(text.place(), "expected an operator or an index expression");
  return workload;
}

std::shared_ptr<const Sketch> sketch_from(const base::Document& text) {
  auto sketch = measured_sketch_from(text);
  if (!sketch->columns.empty()) throw base::UserError(text.place(), "expected a list of schedule steps");
  return sketch;
}

Candidate measured_candidate_from(const base::Document& document) {
  const base::Document& workload = document.at("workload");
  Candidate candidate{Workload(workload.as_string()), measured_sketch_from(document.at("sketch")),
                      arguments_from(document.at("arguments"))};
  check_measured(candidate, document.place());
  if (!is_row_of_table(candidate)) candidate.workload = workload_from(workload);
  return candidate;
}

std::shared_ptr<const Sketch> measured_sketch_from(const base::Document& text) {
  auto sketch = std::make_shared<const Sketch>(parse_sketch(text.as_string(), text.place()));
  if (sketch->program != nullptr) throw base::UserError(text.place(), "expected a list of schedule steps, or columns");
  return sketch;
}

void check_measured(const Candidate& candidate, const std::string& place) {
  const Sketch& sketch = *candidate.sketch;
  if (candidate.arguments.size() != sketch.arguments.size())
    throw base::UserError(place, "expected " + base::counted(sketch.arguments.size(), "argument") +
                                     ", one for each of its sketch, got " + std::to_string(candidate.arguments.size()));
  if (!is_row_of_table(candidate)) {
    if (!names_computation(candidate.workload))
      throw base::UserError(place, "schedule steps go with an operator or an index expression");
    return;
  }
  for (std::size_t c = 0; c < sketch.columns.size(); ++c) {
    const Sketch::Token& column = sketch.columns[c];
    const std::int64_t value = candidate.arguments[std::size_t(column.argument)];
    if (!column.alternatives.empty() && (value < 0 || value >= std::int64_t(column.alternatives.size())))
      throw base::UserError(place, "column '" + sketch.arguments[std::size_t(column.argument)].name +
                                       "' has no value " + std::to_string(value));
  }
}

}  // namespace graft::codegen
