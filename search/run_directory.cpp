#include "search/run_directory.h"

#include <fmt/format.h>

#include <cmath>

namespace graft::search {
namespace {

const char* const request_name = "run.json";
const char* const journal_name = "journal.jsonl";

std::filesystem::path prepared(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw base::Failure(fmt::format("{}: cannot make the folder: {}", path.string(), error.message()));
  return path;
}

base::Document head_of(const std::filesystem::path& path, const base::Document& request,
                       const base::Document& context) {
  const std::filesystem::path file = path / request_name;
  if (std::filesystem::exists(file)) {
    const base::Document known = base::parse_json(base::read_file(file), file.string());
    const base::Document& asked = known.at("request");
    const auto text = [](const base::Document& map, const std::string& key) {
      const base::Document* value = map.find(key);
      return value == nullptr ? std::string("absent") : value->to_json();
    };
    base::Document::Map keys = asked.as_map();
    keys.insert(keys.end(), request.as_map().begin(), request.as_map().end());
    for (const auto& [key, value] : keys) {
      const std::string was = text(asked, key), is = text(request, key);
      if (was == is) continue;
      throw base::UserError(path.string(), fmt::format("this run was made with {} {}, not {}; give the same again or choose "
                                                       "another folder with --out",
                                                       key, was, is));
    }
    return known;
  }
  base::Document head = base::Document::map();
  head.set("request", request).set("context", context);
  base::replace_file(file, head.to_pretty_json() + "\n");
  return head;
}

}  // namespace

RunDirectory::RunDirectory(const std::filesystem::path& path, const base::Document& request,
                           const base::Document& context)
    : path_(prepared(path)), lock_(path_ / "lock"), journal_(path_ / journal_name, head_of(path_, request, context)) {
  for (std::size_t i = 0; i < journal_.trials().size(); ++i) {
    by_candidate_.emplace(codegen::hash(journal_.trials()[i].candidate), i);
  }
}

const datasets::Trial* RunDirectory::recorded(std::uint64_t candidate_hash) const {
  const auto known = by_candidate_.find(candidate_hash);
  return known == by_candidate_.end() ? nullptr : &journal_.trials()[known->second];
}

void RunDirectory::append(datasets::Trial trial) {
  trial.index = std::int64_t(journal_.trials().size());
  by_candidate_.emplace(codegen::hash(trial.candidate), journal_.trials().size());
  journal_.append(trial);
}

RunContent read_run(const std::filesystem::path& path) {
  const std::filesystem::path file = path / request_name;
  if (!std::filesystem::exists(file)) {
    throw base::UserError(path.string(),
                          "no run of graft (run.json is missing); give a folder that graft tune or collect wrote");
  }
  RunContent content;
  content.request = base::parse_json(base::read_file(file), file.string()).at("request");
  content.journal = datasets::read_journal(path / journal_name);
  return content;
}

std::optional<datasets::Trial> best_trial(const std::vector<datasets::Trial>& trials,
                                          const codegen::Workload& workload) {
  const datasets::Trial* best = nullptr;
  for (const datasets::Trial& trial : trials) {
    if (trial.measurement.status != datasets::Status::ok || !(trial.candidate.workload == workload)) continue;
    if (best == nullptr || datasets::seconds_of(trial.measurement) < datasets::seconds_of(best->measurement))
      best = &trial;
  }
  return best == nullptr ? std::nullopt : std::optional<datasets::Trial>(*best);
}

}  // namespace graft::search
