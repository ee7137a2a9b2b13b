#include "study/flows/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "study/flows/settings.h"
#include "study/inputs/field_error.h"
#include "study/inputs/request.h"
#include "tasks/rebuild.h"

namespace graft::study {
namespace {

template <class Cell, class Value>
base::Document square_of(const datasets::Square<Cell>& cells, Value value) {
  base::Document rows = base::Document::list();
  for (const std::vector<Cell>& row : cells) {
    base::Document values = base::Document::list();
    for (const Cell& cell : row) values.push(value(cell));
    rows.push(std::move(values));
  }
  return rows;
}

base::Document family_document(const datasets::Agreement::Family& family) {
  base::Document workloads = base::Document::list();
  for (const codegen::Workload& workload : family.workloads) workloads.push(workload.text());
  base::Document document = base::Document::map();
  document.set("family", family.name)
      .set("workloads", std::move(workloads))
      .set("spearman", square_of(family.spearman, [](const auto& cell) { return cell.value.mean; }))
      .set("low", square_of(family.spearman, [](const auto& cell) { return cell.value.low; }))
      .set("high", square_of(family.spearman, [](const auto& cell) { return cell.value.high; }))
      .set("programs", square_of(family.spearman, [](const auto& cell) { return cell.programs; }));
  return document;
}

base::Document regret_document(const datasets::Square<datasets::Agreement::Regret>& regret) {
  base::Document document = base::Document::map();
  document.set("mean", square_of(regret, [](const auto& cell) { return cell.value.mean; }))
      .set("low", square_of(regret, [](const auto& cell) { return cell.value.low; }))
      .set("high", square_of(regret, [](const auto& cell) { return cell.value.high; }))
      .set("worst", square_of(regret, [](const auto& cell) { return cell.worst; }))
      .set("worst_workload", square_of(regret, [](const auto& cell) { return cell.worst_workload; }));
  return document;
}

}  // namespace

std::string method_of(const std::filesystem::path& run) {
  const std::filesystem::path plain = std::filesystem::absolute(run).lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).parent_path().filename().string();
}

std::vector<std::int64_t> counts_of(const std::vector<std::int64_t>& asked,
                                    const std::vector<search::Searched>& searches) {
  if (!asked.empty()) {
    if (!std::is_sorted(asked.begin(), asked.end())) throw FieldError("trials", "expected them to rise");
    return asked;
  }
  std::size_t least = searches.front().best_seconds.size();
  for (const search::Searched& search : searches) least = std::min(least, search.best_seconds.size());
  std::vector<std::int64_t> counts;
  for (const std::int64_t count : {8, 16, 32, 64, 128}) {
    if (count <= std::int64_t(least)) counts.push_back(count);
  }
  if (counts.empty()) counts.push_back(std::max<std::int64_t>(1, std::int64_t(least)));
  return counts;
}

search::Retimed times_again(const std::vector<search::RunContent>& runs, std::int64_t rounds, int threads,
                            base::Monitor& monitor) {
  using Place = std::pair<std::string, std::string>;  // platform, workload
  std::map<Place, std::vector<codegen::Candidate>> asked;
  std::map<std::string, tasks::Platform> platforms;
  std::set<std::uint64_t> known;  // candidates
  for (const search::RunContent& run : runs) {
    const std::string& name = run.request.at("platform").as_string();
    if (!platforms.contains(name)) {
      const tasks::Platform platform = search::platform_of(run);
      if (platform.device->is_exact())
        throw FieldError("again", fmt::format("times of {} are modelled: they stay what they are", name));
      if (platform_hash(platform) != run.request.at("platform_hash").as_string())
        throw FieldError("again", fmt::format("{} is not what these runs were made on", name));
      platforms.emplace(name, platform);
    }
    for (const codegen::Candidate& candidate : search::finalists(run.journal.trials)) {
      if (known.insert(codegen::hash(candidate)).second) asked[{name, candidate.workload.text()}].push_back(candidate);
    }
  }
  search::Retimed times;
  for (const auto& [place, candidates] : asked) {
    monitor.progress("timing again", std::int64_t(times.size()), std::int64_t(known.size()));
    const std::vector<datasets::Measurement> again = tasks::timed_in_turn(
        platforms.at(place.first), candidates, int(rounds), Timing().settings(0, threads), monitor);
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const bool ok = again[c].status == datasets::Status::ok;
      times.emplace(codegen::hash(candidates[c]),
                    ok ? datasets::seconds_of(again[c]) : std::numeric_limits<double>::infinity());
    }
  }
  return times;
}

CompareResult compare(const CompareRequest& request, base::Monitor& monitor) {
  check_settings(request);
  if (!(request.near > 0 && request.near <= 1))
    throw FieldError("near", fmt::format("expected a share of the best speed, > 0 and <= 1, got {:g}", request.near));
  std::vector<search::RunContent> runs;
  for (const std::filesystem::path& run : request.runs) {
    base::check_stop(monitor);
    runs.push_back(search::read_run(run));
    datasets::refuse_emulated(run.string(), runs.back().request.at("source").as_string());
  }
  search::Retimed again;
  if (request.again > 0) again = times_again(runs, request.again, request.threads, monitor);
  std::vector<search::Searched> searches;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    base::check_stop(monitor);
    searches.push_back(search::searched(method_of(request.runs[r]), runs[r].request.at("platform").as_string(),
                                        runs[r].request.at("seed").as_integer(), runs[r].journal.trials,
                                        request.again > 0 ? &again : nullptr));
  }
  if (std::all_of(searches.begin(), searches.end(),
                  [&](const search::Searched& each) { return each.method == searches.front().method; }))
    monitor.note(fmt::format("there is one method, '{}': the folder that holds a run names the run's method",
                             searches.front().method));
  CompareResult result;
  result.trials = counts_of(request.trials, searches);
  result.against = request.against.empty() ? searches.front().method : request.against;
  result.near = request.near;
  result.again = request.again;
  result.methods = search::compare_searches(searches, result.trials, result.against, request.near, request.seed);
  return result;
}

base::Document to_document(const CompareResult& result) {
  const auto intervals = [](const std::vector<base::Interval>& values) {
    base::Document list = base::Document::list();
    for (const base::Interval& value : values) list.push(base::to_document(value));
    return list;
  };
  base::Document rows = base::Document::list(), trials = base::Document::list();
  for (const search::MethodSearched& method : result.methods) {
    base::Document entry = base::Document::map();
    rows.push(entry.set("method", method.method)
                  .set("searches", method.searches)
                  .set("speed", intervals(method.speed))
                  .set("slower", intervals(method.slower))
                  .set("trials_to_near", base::to_document(method.trials_to_near))
                  .set("times_fewer", base::to_document(method.times_fewer))
                  .set("never", method.never));
  }
  for (const std::int64_t count : result.trials) trials.push(count);
  base::Document out = base::Document::map();
  return out.set("trials", std::move(trials))
      .set("against", result.against)
      .set("near", result.near)
      .set("again", result.again)
      .set("methods", std::move(rows));
}

base::Document to_document(const datasets::Agreement& agreement) {
  base::Document platforms = base::Document::list(), families = base::Document::list();
  for (const datasets::Agreement::Platform& platform : agreement.platforms) {
    base::Document entry = base::Document::map();
    platforms.push(entry.set("platform", platform.name).set("source", platform.source));
  }
  for (const datasets::Agreement::Family& family : agreement.families) families.push(family_document(family));
  base::Document out = base::Document::map();
  out.set("platforms", std::move(platforms))
      .set("families", std::move(families))
      .set("regret", regret_document(agreement.regret));
  base::Document notes = base::Document::list();
  for (const std::string& note : agreement.notes) notes.push(note);
  if (!agreement.notes.empty()) out.set("notes", std::move(notes));
  return out;
}

}  // namespace graft::study
