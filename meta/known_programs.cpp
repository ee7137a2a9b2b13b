#include "meta/known_programs.h"

#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "datasets/groups.h"

namespace graft::meta {

std::vector<KnownProgram> fastest_programs(std::span<const datasets::Dataset> data) {
  struct Fastest {
    double seconds = std::numeric_limits<double>::infinity();
    const datasets::Dataset* dataset = nullptr;
    const datasets::Dataset::Row* row = nullptr;
  };
  std::map<std::pair<std::string, std::string>, Fastest> fastest;  // by platform and workload
  for (const datasets::Dataset& dataset : data) {
    for (const datasets::Group& group : datasets::groups(dataset)) {
      Fastest& known = fastest[{group.platform, group.workload.text}];
      for (const std::int64_t position : group.rows) {
        const datasets::Dataset::Row& row = dataset.rows[std::size_t(position)];
        const double seconds = datasets::seconds_of(row.measurement);
        if (seconds < known.seconds) known = {seconds, &dataset, &row};
      }
    }
  }
  std::vector<KnownProgram> programs;
  for (const auto& [name, known] : fastest) {
    if (known.row == nullptr) continue;
    codegen::Candidate candidate = known.dataset->candidate(*known.row);
    const codegen::Sketch& sketch = *candidate.sketch;
    if (sketch.program != nullptr || !sketch.columns.empty() || !sketch.intrinsics.empty()) continue;
    const auto program = codegen::program(candidate, known.dataset->target);
    if (program && codegen::hash(*program) == known.row->program_hash)
      programs.push_back({name.first, std::move(candidate)});
  }
  return programs;
}

base::Document to_document(const std::vector<KnownProgram>& programs) {
  base::Document sketches = base::Document::list(), list = base::Document::list();
  std::map<std::string, std::size_t> positions;
  for (const KnownProgram& known : programs) {
    const base::Document candidate = codegen::to_document(known.candidate);
    const std::string& sketch = candidate.at("sketch").as_string();
    const auto [at, is_new] = positions.emplace(sketch, positions.size());
    if (is_new) sketches.push(sketch);
    list.push(base::Document::map()
                  .set("platform", known.platform)
                  .set("workload", candidate.at("workload"))
                  .set("sketch", at->second)
                  .set("arguments", candidate.at("arguments")));
  }
  return base::Document::map().set("sketches", std::move(sketches)).set("programs", std::move(list));
}

std::vector<KnownProgram> known_programs_from(const base::Document& document) {
  document.only_keys({"sketches", "programs"});
  const base::Document::List& sketches = document.at("sketches").as_list();
  std::vector<KnownProgram> programs;
  for (const base::Document& each : document.at("programs").as_list()) {
    each.only_keys({"platform", "workload", "sketch", "arguments"});
    const std::int64_t at = each.at("sketch").as_integer();
    if (at < 0 || at >= std::int64_t(sketches.size())) throw base::UserError(each.place(), "no such sketch");
    const base::Document candidate = base::Document::map()
                                         .set("workload", each.at("workload"))
                                         .set("sketch", sketches[std::size_t(at)])
                                         .set("arguments", each.at("arguments"));
    programs.push_back({each.at("platform").as_string(), codegen::candidate_from(candidate)});
  }
  return programs;
}

}  // namespace graft::meta
