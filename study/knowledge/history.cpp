#include "study/knowledge/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/statistics.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "search/run_directory.h"

namespace graft::study {
namespace {

constexpr std::size_t best_of_each = 4;
// When a machine counts as another one, in logarithms of ratios of times: the fastest programs all changed in one
// direction by more than repetitions of one program differ, and the middle one by a quarter (ln 1.25).
constexpr double least_change = 0.03, middle_change = 0.223;

std::filesystem::path before(const std::filesystem::path& out, std::size_t number) {
  std::filesystem::path plain = out.lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();
  return plain += fmt::format(".before-{}", number);
}

// The runs that a folder given by the user contains.
std::vector<std::filesystem::path> runs_for(const std::filesystem::path& folder, const codegen::Workload& workload) {
  std::vector<std::filesystem::path> runs;
  if (std::filesystem::is_directory(folder)) runs = runs_in(folder);
  if (runs.empty()) return {folder};  // which says what is missing
  if (runs.front() == folder) return runs;
  std::erase_if(runs, [&](const std::filesystem::path& run) {
    const std::optional<base::Document> request = search::recorded_request(run);
    const base::Document* const text = request->find("workload");
    return text == nullptr || text->as_string() != workload.text();
  });
  return runs;
}

}  // namespace

std::vector<std::filesystem::path> runs_in(const std::filesystem::path& folder) {
  if (search::recorded_request(folder)) return {folder};
  std::vector<std::filesystem::path> inner, runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink() && !is_folder_before(entry.path())) inner.push_back(entry.path());
  }
  std::sort(inner.begin(), inner.end());
  for (const std::filesystem::path& each : inner) {
    const std::vector<std::filesystem::path> more = runs_in(each);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  return runs;
}

History history_of(const std::vector<std::filesystem::path>& folders, const codegen::Workload& workload,
                   const Applied& applied) {
  History history;
  std::uint64_t identity = 0;
  std::vector<std::filesystem::path> runs;
  for (const std::filesystem::path& folder : folders) {
    const std::vector<std::filesystem::path> own = runs_for(folder, workload);
    runs.insert(runs.end(), own.begin(), own.end());
  }
  for (const std::filesystem::path& path : runs) {
    const search::RunContent run = search::read_run(path);
    std::map<std::string, std::pair<codegen::Workload, std::vector<datasets::Trial>>> groups;  // by workload
    for (datasets::Trial trial : run.journal.trials) {
      if (trial.measurement.status != datasets::Status::ok) continue;
      const codegen::Workload of = trial.candidate.workload;
      std::optional<codegen::Candidate> here = applied(trial.candidate);
      if (!here) continue;
      trial.candidate = std::move(*here);
      identity = base::hash_combine(identity, codegen::hash(trial.candidate));
      identity =
          base::hash_combine(identity, base::hash_bytes(fmt::format("{}", datasets::seconds_of(trial.measurement))));
      auto& [own, trials] = groups[of.text()];
      own = of;
      trials.push_back(std::move(trial));
    }
    if (groups.empty() && std::find(folders.begin(), folders.end(), path) != folders.end())
      throw base::UserError(path.string(), "has no trial that works here");
    for (auto& [text, group] : groups) {
      auto& [own, trials] = group;
      if (own.key() == workload.key()) {
        for (const datasets::Trial& best : search::best_trials(trials, trials.front().candidate.workload, best_of_each))
          history.best.push_back(best.candidate);
      }
      history.runs.push_back(std::move(trials));
    }
  }
  if (!runs.empty()) history.identity = base::to_hex(identity);
  return history;
}

Applied lowers_on(const codegen::Target& target) {
  return [&target](const codegen::Candidate& candidate) {
    return codegen::program(candidate, target) ? std::optional(candidate) : std::nullopt;
  };
}

std::vector<std::filesystem::path> folders_before(const std::filesystem::path& out) {
  std::vector<std::filesystem::path> folders;
  for (std::size_t number = 1; std::filesystem::exists(before(out, number)); ++number)
    folders.push_back(before(out, number));
  return folders;
}

std::filesystem::path next_before(const std::filesystem::path& out) {
  return before(out, folders_before(out).size() + 1);
}

bool is_folder_before(const std::filesystem::path& folder) {
  const std::string number = folder.extension().string();
  return number.starts_with(".before-") && number.find_first_not_of("0123456789", 8) == number.npos;
}

bool is_another_machine(std::span<const double> before, std::span<const double> now) {
  std::vector<double> changes;
  for (std::size_t p = 0; p < before.size(); ++p) {
    if (std::isfinite(before[p]) && std::isfinite(now[p])) changes.push_back(std::log(now[p] / before[p]));
  }
  if (changes.empty()) return false;
  const auto [least, most] = std::minmax_element(changes.begin(), changes.end());
  const bool one_way = *least > least_change || *most < -least_change;
  return one_way && std::abs(base::median(changes)) >= middle_change;
}

}  // namespace graft::study
