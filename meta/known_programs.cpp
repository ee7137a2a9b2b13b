#include "meta/known_programs.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/error.h"
#include "codegen/schedule/candidate_program.h"
#include "datasets/groups.h"

namespace graft::meta {

std::vector<KnownPrograms> fastest_programs(std::span<const datasets::Dataset> data) {
  struct Fastest {
    double seconds = std::numeric_limits<double>::infinity();
    const datasets::Dataset* dataset = nullptr;
    const datasets::Dataset::Row* row = nullptr;
  };
  std::map<std::string, std::map<std::string, Fastest>> fastest;  // by platform and workload
  std::map<std::string, codegen::Target> targets;
  for (const datasets::Dataset& dataset : data) {
    for (const datasets::Group& group : datasets::groups(dataset)) {
      targets[group.platform] = dataset.target;
      Fastest& known = fastest[group.platform][group.workload.text()];
      for (const std::int64_t position : group.rows) {
        const datasets::Dataset::Row& row = dataset.rows[std::size_t(position)];
        const double seconds = datasets::seconds_of(row.measurement);
        if (seconds < known.seconds) known = {seconds, &dataset, &row};
      }
    }
  }
  std::vector<KnownPrograms> all;
  for (const auto& [platform, workloads] : fastest) {
    KnownPrograms known{platform, targets.at(platform)};
    for (const auto& [workload, best] : workloads) {
      if (best.row == nullptr) continue;
      codegen::Candidate candidate = best.dataset->candidate(*best.row);
      const codegen::Sketch& sketch = *candidate.sketch;
      if (sketch.program != nullptr || !sketch.columns.empty() || !sketch.intrinsics.empty()) continue;
      const auto program = codegen::program(candidate, best.dataset->target);
      if (program && codegen::hash(*program) == best.row->program_hash) known.fastest.push_back(std::move(candidate));
    }
    if (!known.fastest.empty()) all.push_back(std::move(known));
  }
  return all;
}

void add(std::vector<KnownPrograms>& known, const std::vector<KnownPrograms>& more) {
  for (const KnownPrograms& platform : more) {
    auto own = std::find_if(known.begin(), known.end(),
                            [&](const KnownPrograms& each) { return each.platform == platform.platform; });
    if (own == known.end()) own = known.insert(known.end(), {platform.platform, platform.target});
    own->target = platform.target;
    for (const codegen::Candidate& candidate : platform.fastest) {
      const bool is_known = std::any_of(own->fastest.begin(), own->fastest.end(), [&](const codegen::Candidate& each) {
        return codegen::hash(each) == codegen::hash(candidate);
      });
      if (!is_known) own->fastest.push_back(candidate);
    }
  }
}

void remove(std::vector<KnownPrograms>& known, const std::vector<KnownPrograms>& others) {
  for (const KnownPrograms& platform : others) {
    std::set<std::uint64_t> hashes;
    for (const codegen::Candidate& candidate : platform.fastest) hashes.insert(codegen::hash(candidate));
    for (KnownPrograms& own : known) {
      if (own.platform == platform.platform)
        std::erase_if(own.fastest,
                      [&](const codegen::Candidate& each) { return hashes.contains(codegen::hash(each)); });
    }
  }
  std::erase_if(known, [](const KnownPrograms& each) { return each.fastest.empty(); });
}

std::size_t count(const std::vector<KnownPrograms>& known) {
  std::size_t programs = 0;
  for (const KnownPrograms& platform : known) programs += platform.fastest.size();
  return programs;
}

base::Document to_document(const std::vector<KnownPrograms>& known) {
  base::Document sketches = base::Document::list(), platforms = base::Document::list();
  std::map<std::string, std::size_t> positions;
  for (const KnownPrograms& platform : known) {
    base::Document programs = base::Document::list();
    for (const codegen::Candidate& each : platform.fastest) {
      const base::Document candidate = codegen::to_document(each);
      const std::string& sketch = candidate.at("sketch").as_string();
      const auto [at, is_new] = positions.emplace(sketch, positions.size());
      if (is_new) sketches.push(sketch);
      programs.push(base::Document::map()
                        .set("workload", candidate.at("workload"))
                        .set("sketch", at->second)
                        .set("arguments", candidate.at("arguments")));
    }
    platforms.push(base::Document::map()
                       .set("platform", platform.platform)
                       .set("target", codegen::to_document(platform.target))
                       .set("programs", std::move(programs)));
  }
  return base::Document::map().set("sketches", std::move(sketches)).set("platforms", std::move(platforms));
}

std::vector<KnownPrograms> known_programs_from(const base::Document& document) {
  document.only_keys({"sketches", "platforms"});
  std::vector<std::shared_ptr<const codegen::Sketch>> sketches;
  for (const base::Document& text : document.at("sketches").as_list()) sketches.push_back(codegen::sketch_from(text));
  std::map<std::string, codegen::Workload> workloads;  // each is parsed once
  std::vector<KnownPrograms> all;
  for (const base::Document& platform : document.at("platforms").as_list()) {
    platform.only_keys({"platform", "target", "programs"});
    KnownPrograms& known =
        all.emplace_back(platform.at("platform").as_string(), codegen::target_from(platform.at("target")));
    for (const base::Document& each : platform.at("programs").as_list()) {
      each.only_keys({"workload", "sketch", "arguments"});
      const std::int64_t at = each.at("sketch").as_integer();
      if (at < 0 || at >= std::int64_t(sketches.size())) throw base::UserError(each.place(), "no such sketch");
      const base::Document& text = each.at("workload");
      auto workload = workloads.find(text.as_string());
      if (workload == workloads.end())
        workload = workloads.emplace(text.as_string(), codegen::workload_from(text)).first;
      codegen::Candidate& candidate = known.fastest.emplace_back(workload->second, sketches[std::size_t(at)]);
      for (const base::Document& argument : each.at("arguments").as_list())
        candidate.arguments.push_back(argument.as_integer());
    }
  }
  return all;
}

}  // namespace graft::meta
