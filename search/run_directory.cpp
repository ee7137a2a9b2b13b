#include "search/run_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/hash.h"
#include "base/shortened.h"
#include "tasks/command.h"

namespace graft::search {
namespace {

const char* const request_name = "run.json";
const char* const journal_name = "journal.jsonl";
const char* const builds_name = "builds.json";
const char* const predictions_name = "predictions.json";

std::filesystem::path prepared(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw base::Failure(fmt::format("{}: cannot make the folder: {}", path.string(), error.message()));
  return path;
}

base::Document head_of(const std::filesystem::path& path, const base::Document& request, const base::Document& context,
                       const std::string& platform_yaml) {
  const std::filesystem::path file = path / request_name;
  if (std::filesystem::exists(file)) {
    const base::Document known = base::parse_json(base::read_file(file), file.string());
    if (const std::string how = difference(known.at("request"), request); !how.empty())
      throw base::UserError(path.string(),
                            fmt::format("this run was made {}; give the same again, or another `out`", how));
    return known;
  }
  base::Document head = base::Document::map();
  head.set("request", request).set("context", context);
  if (!platform_yaml.empty()) head.set("platform_yaml", platform_yaml);
  base::replace_file(file, head.to_pretty_json() + "\n");
  return head;
}

// {"builds":[{"trial":17,"pipeline":"O3","measurement":{...}},...]}
base::Document builds_document(const std::vector<Build>& builds) {
  base::Document list = base::Document::list();
  for (const Build& build : builds) {
    list.push(base::Document::map()
                  .set("trial", build.trial.index)
                  .set("pipeline", build.pipeline)
                  .set("measurement", datasets::to_document(build.trial.measurement)));
  }
  return base::Document::map().set("builds", std::move(list));
}

std::vector<Build> read_builds(const std::filesystem::path& path, const std::vector<datasets::Trial>& trials) {
  std::vector<Build> builds;
  const std::filesystem::path file = path / builds_name;
  if (!std::filesystem::exists(file)) return builds;
  const base::Document document = base::parse_json(base::read_file(file), file.string());
  document.only_keys({"builds"});
  for (const base::Document& entry : document.at("builds").as_list()) {
    entry.only_keys({"trial", "pipeline", "measurement"});
    const std::int64_t index = entry.at("trial").as_integer();
    const auto known =
        std::find_if(trials.begin(), trials.end(), [&](const datasets::Trial& trial) { return trial.index == index; });
    if (known == trials.end()) {
      throw base::UserError(
          entry.at("trial").place(),
          fmt::format("the journal has no trial {}; remove this file to build the best again", index));
    }
    Build build{*known, entry.at("pipeline").as_string()};
    build.trial.measurement = datasets::measurement_from(entry.at("measurement"));
    builds.push_back(std::move(build));
  }
  return builds;
}

// {"predictions":[{"candidate":"<hash>","score":-1.5,"seconds":0.002},...]}
base::Document predictions_document(const Predictions& predictions) {
  base::Document list = base::Document::list();
  for (const auto& [candidate, prediction] : predictions) {
    base::Document entry = base::Document::map();
    entry.set("candidate", base::to_hex(candidate)).set("score", prediction.score);
    if (prediction.seconds) entry.set("seconds", *prediction.seconds);
    list.push(std::move(entry));
  }
  return base::Document::map().set("predictions", std::move(list));
}

Predictions read_predictions(const std::filesystem::path& path) {
  Predictions predictions;
  const std::filesystem::path file = path / predictions_name;
  if (!std::filesystem::exists(file)) return predictions;
  const base::Document document = base::parse_json(base::read_file(file), file.string());
  document.only_keys({"predictions"});
  for (const base::Document& entry : document.at("predictions").as_list()) {
    entry.only_keys({"candidate", "score", "seconds"});
    Prediction prediction{entry.at("score").as_number(), {}};
    if (const base::Document* seconds = entry.find("seconds")) prediction.seconds = seconds->as_number();
    predictions[base::from_hex(entry.at("candidate").as_string())] = prediction;
  }
  return predictions;
}

// run.json; none where it is missing.
std::optional<base::Document> recorded_head(const std::filesystem::path& path) {
  const std::filesystem::path file = path / request_name;
  if (!std::filesystem::exists(file)) return std::nullopt;
  return base::parse_json(base::read_file(file), file.string());
}

}  // namespace

std::string difference(const base::Document& known, const base::Document& asked) {
  const auto text = [](const base::Document& map, const std::string& key) {
    const base::Document* const value = map.find(key);
    return value == nullptr ? "" : value->is_string() ? value->as_string() : value->to_json();
  };
  const auto shown = [](const std::string& value) {
    const bool is_hash = value.size() == 16 && value.find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_hash ? "of the contents " + value : base::shortened(value);
  };
  base::Document::Map keys = known.as_map();
  keys.insert(keys.end(), asked.as_map().begin(), asked.as_map().end());
  for (const auto& [key, value] : keys) {
    const std::string was = text(known, key), is = text(asked, key);
    if (was == is) continue;
    if (was.empty()) return fmt::format("without {}; now it is {}", key, shown(is));
    if (is.empty()) return fmt::format("with {} {}; now there is none", key, shown(was));
    return fmt::format("with {} {}, not {}", key, shown(was), shown(is));
  }
  return "";
}

RunDirectory::RunDirectory(const std::filesystem::path& path, const base::Document& request,
                           const base::Document& context, const std::string& platform_yaml)
    : path_(prepared(path)),
      request_(request),
      lock_(path_ / "lock"),
      journal_(path_ / journal_name, head_of(path_, request, context, platform_yaml)) {
  for (std::size_t i = 0; i < journal_.trials().size(); ++i) {
    by_candidate_.emplace(codegen::hash(journal_.trials()[i].candidate), i);
  }
  builds_ = read_builds(path_, journal_.trials());
  predictions_ = read_predictions(path_);
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

void RunDirectory::record(std::vector<Build> builds) {
  base::replace_file(path_ / builds_name, builds_document(builds).to_pretty_json() + "\n");
  builds_ = std::move(builds);
}

void RunDirectory::record_predictions(const Predictions& predictions) {
  for (const auto& [candidate, prediction] : predictions) predictions_[candidate] = prediction;
  base::replace_file(path_ / predictions_name, predictions_document(predictions_).to_json() + "\n");
}

bool is_of_command(const base::Document& request) {
  const base::Document* const source = request.find("source");
  return source != nullptr && source->is_string() && source->as_string() == tasks::command_source;
}

std::optional<base::Document> recorded_request(const std::filesystem::path& path) {
  const std::optional<base::Document> head = recorded_head(path);
  if (!head) return std::nullopt;
  return head->at("request");
}

RunContent read_run(const std::filesystem::path& path) {
  const std::optional<base::Document> head = recorded_head(path);
  if (!head) {
    bool holds_runs = false;
    if (std::filesystem::is_directory(path)) {
      for (const auto& entry : std::filesystem::directory_iterator(path))
        holds_runs = holds_runs || std::filesystem::exists(entry.path() / request_name);
    }
    throw base::UserError(
        path.string(), holds_runs ? "a folder of runs; name one of the folders in it"
                                  : "no run of graft (run.json is missing); give a folder that graft tune or collect "
                                    "wrote");
  }
  RunContent content;
  content.request = head->at("request");
  if (const base::Document* yaml = head->find("platform_yaml")) content.platform_yaml = *yaml;
  content.journal = datasets::read_journal(path / journal_name);
  content.builds = read_builds(path, content.journal.trials);
  content.predictions = read_predictions(path);
  return content;
}

tasks::Platform platform_of(const RunContent& run) {
  if (is_of_command(run.request)) {
    tasks::Platform platform;
    platform.name = run.request.at("platform").as_string();
    platform.device = tasks::command_device();
    return platform;
  }
  if (run.platform_yaml.is_null()) return tasks::platform_named(run.request.at("platform").as_string());
  return tasks::parse_platform(run.platform_yaml.as_string(), run.platform_yaml.place());
}

std::string packed_run(const std::filesystem::path& path) {
  base::Document files = base::Document::map();
  for (const char* const name : {request_name, journal_name, builds_name, predictions_name}) {
    if (std::filesystem::exists(path / name)) files.set(name, base::read_file(path / name));
  }
  return files.to_json();
}

void unpack_run(std::string_view text, const std::filesystem::path& path) {
  const base::Document files = base::parse_json(text, "packed run");
  files.only_keys({request_name, journal_name, builds_name, predictions_name});
  prepared(path);
  for (const auto& [name, content] : files.as_map()) base::replace_file(path / name, content.as_string());
}

std::vector<datasets::Trial> best_trials(const std::vector<datasets::Trial>& trials, const codegen::Workload& workload,
                                         std::size_t count) {
  std::vector<const datasets::Trial*> order;
  for (const datasets::Trial& trial : trials) {
    if (trial.measurement.status == datasets::Status::ok && trial.candidate.workload == workload)
      order.push_back(&trial);
  }
  std::stable_sort(order.begin(), order.end(), [](const datasets::Trial* a, const datasets::Trial* b) {
    return datasets::seconds_of(a->measurement) < datasets::seconds_of(b->measurement);
  });
  std::vector<datasets::Trial> best;
  std::set<std::uint64_t> programs;
  for (const datasets::Trial* const trial : order) {
    if (best.size() == count) break;
    if (programs.insert(trial->program_hash).second) best.push_back(*trial);
  }
  return best;
}

std::optional<datasets::Trial> best_trial(const std::vector<datasets::Trial>& trials,
                                          const codegen::Workload& workload) {
  const std::vector<datasets::Trial> best = best_trials(trials, workload, 1);
  return best.empty() ? std::nullopt : std::optional<datasets::Trial>(best.front());
}

std::vector<Build> best_builds(const std::vector<Build>& builds, const std::vector<datasets::Trial>& trials,
                               const codegen::Workload& workload, std::size_t count) {
  std::vector<Build> order;
  for (const Build& build : builds) {
    if (build.trial.measurement.status == datasets::Status::ok && build.trial.candidate.workload == workload)
      order.push_back(build);
  }
  std::stable_sort(order.begin(), order.end(), [](const Build& a, const Build& b) {
    return datasets::seconds_of(a.trial.measurement) < datasets::seconds_of(b.trial.measurement);
  });
  // As many trials as are needed even if every build is one of them.
  for (datasets::Trial& trial : best_trials(trials, workload, count + order.size()))
    order.push_back({std::move(trial), ""});
  std::vector<Build> best;
  std::set<std::uint64_t> programs;
  for (Build& build : order) {
    if (best.size() == count) break;
    if (programs.insert(build.trial.program_hash).second) best.push_back(std::move(build));
  }
  return best;
}

}  // namespace graft::search
