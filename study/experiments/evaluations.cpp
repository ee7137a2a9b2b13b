#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/team.h"
#include "datasets/formats/format.h"
#include "study/experiments/runs.h"
#include "study/experiments/settings.h"
#include "study/flows/collect.h"
#include "study/flows/evaluate.h"
#include "study/flows/shared_work.h"
#include "study/inputs/request.h"
#include "tasks/platform.h"

namespace graft::study {
namespace {

// Measurements of others, imported into the folder.
void import_into(const std::filesystem::path& folder, const base::Document& data, const ExperimentRequest& request,
                 base::Monitor& monitor) {
  data.only_keys({"import", "platform", "files", "options"});
  if (request.others.empty())
    throw base::UserError(data.place(),
                          "these measurements were published by others; name the folder of their files (`data`; "
                          "the page says whose they are)");
  datasets::formats::ImportSettings settings;
  for (const std::string& file : texts_of(data.at("files"))) settings.files.push_back(request.others / file);
  settings.platform = data.at("platform").as_string();
  if (const base::Document* const options = data.find("options")) {
    for (const auto& [name, value] : options->as_map()) settings.options[name] = value.as_string();
  }
  auto import = datasets::formats::imported(data.at("import").as_string(), settings, monitor);
  for (auto& [name, dataset] : import.datasets()) dataset.commit(folder / dataset_file_name(name));
}

// Schedules of workloads, measured on platforms into the folder by this process alone. Stopped when the monitor asks
// for it.
void collect_into(const std::filesystem::path& folder, const base::Document& data, const ExperimentRequest& request,
                  base::Monitor& monitor) {
  constexpr std::string_view besides[] = {"collect", "platforms"};
  CollectRequest collection;
  set_all(data, settings_of(collection), besides);
  collection.workloads = workloads_of(texts_of(data.at("collect")));
  collection.threads = request.threads;
  collection.command_line = request.command_line;
  tasks::Shared shared;
  base::Team alone;
  for (const std::string& name : texts_of(data.at("platforms"))) {
    collection.platform = tasks::platform_named(name);
    collection.out = folder / dataset_file_name(collection.platform.name);
    if (!collect(collection, Pool(), shared, alone, monitor).complete) throw base::Stopped();
  }
}

// Datasets as files: those that there are, and others that rank 0 imports or collects into the work folder.
std::vector<std::string> data_files(const ExperimentRequest& request, base::Team& team, base::Monitor& monitor) {
  std::vector<std::string> files;
  for (const base::Document& data : request.experiment.data) {
    if (data.is_string()) {
      files.push_back(data.as_string());
      continue;
    }
    const std::filesystem::path folder = request.work / "data" / base::to_hex(base::hash_bytes(data.to_json()));
    work_of_first(team, monitor, [&](base::Monitor& own) {
      if (std::filesystem::exists(folder / "complete")) return "";
      std::filesystem::create_directories(folder);
      const auto make = data.find("collect") != nullptr ? collect_into : import_into;
      make(folder, data, request, own);
      base::replace_file(folder / "complete", "");
      return "";
    });
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".h5") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

constexpr std::string_view keys_besides[] = {"method"};  // graft's name of it, where the experiment has another

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

base::Document rounded(const std::vector<double>& values) {
  base::Document list = base::Document::list();
  for (const double value : values) list.push(rounded(value));
  return list;
}

base::Document row_of(const EvaluationTable::Row& row, const std::string& name) {
  base::Document draws = base::Document::map();
  for (const Metric metric : metrics) draws.set(std::string(key_of(metric)), rounded((*row.by_draw)[metric]));
  return base::Document::map()
      .set("target", row.target)
      .set("method", name)
      .set("shots", row.shots)
      .set("workloads", row.workloads)
      .set("by_draw", std::move(draws));
}

base::Document search_row_of(const EvaluationTable::Search& search, const std::string& name) {
  return base::Document::map()
      .set("target", search.target)
      .set("method", name)
      .set("trials", search.trials)
      .set("workloads", search.workloads)
      .set("by_seed", rounded(search.by_seed));
}

// Methods of equal settings are judged together: on the same draws, by the same sources.
struct Group {
  using Names = std::vector<std::pair<std::string, std::string>>;  // of graft's method, and in the experiment
  std::string settings;
  EvaluateRequest request;
  Names judged, searched;
};

// The group of a method, which may be a new one, and graft's name of the method.
std::pair<Group&, std::string> group_of(const Experiment::Method& method, const ExperimentRequest& request,
                                        const std::vector<std::string>& files, std::vector<Group>& groups) {
  EvaluateRequest asked;
  base::Document own = request.experiment.evaluation;
  if (!method.settings.is_null()) {
    for (const auto& [key, value] : method.settings.as_map()) own.set(key, value);
  }
  set_all(own, settings_of(asked), keys_besides);
  std::string name = method.name;
  base::Document apart = base::Document::map();  // all but which method
  if (!own.is_null()) {
    for (const auto& [key, value] : own.as_map()) {
      if (key == "method") {
        name = value.as_string();
      } else {
        apart.set(key, value);
      }
    }
  }
  const std::string settings = apart.to_json();
  const auto same =
      std::find_if(groups.begin(), groups.end(), [&](const Group& each) { return each.settings == settings; });
  if (same != groups.end()) return {*same, name};
  asked.methods.clear();
  asked.shots = request.experiment.counts;
  asked.data.files = files;
  asked.threads = request.threads;
  asked.command_line = request.command_line;
  asked.out = request.work / (base::to_hex(base::hash_bytes(settings)) + ".json");
  return {groups.emplace_back(Group{settings, std::move(asked), {}, {}}), name};
}

void add(Group::Names& names, std::vector<std::string>& methods, const std::string& theirs, const std::string& ours) {
  names.emplace_back(theirs, ours);
  if (std::find(methods.begin(), methods.end(), theirs) == methods.end()) methods.push_back(theirs);
}

std::vector<Group> groups_of(const ExperimentRequest& request, const std::vector<std::string>& files) {
  std::vector<Group> groups;
  for (const Experiment::Method& method : request.experiment.methods) {
    const auto [group, name] = group_of(method, request, files, groups);
    add(group.judged, group.request.methods, name, method.name);
  }
  if (!request.experiment.searches) return groups;
  const Experiment::Searches& searches = *request.experiment.searches;
  for (const Experiment::Method& method : searches.methods) {
    const auto [group, name] = group_of(method, request, files, groups);
    add(group.searched, group.request.search_methods, name, method.name);
    group.request.search = true;
    group.request.search_counts = searches.counts;
    group.request.search_seeds = searches.seeds;
    group.request.search_batch = searches.batch.value_or(group.request.search_batch);
  }
  for (Group& group : groups) {
    // An evaluation judges something.
    if (group.request.methods.empty()) group.request.methods = {group.request.search_methods.front()};
  }
  return groups;
}

}  // namespace

base::Document evaluated(const ExperimentRequest& request, base::Team& team, base::Monitor& monitor) {
  std::vector<std::string> files;
  try {
    files = data_files(request, team, monitor);
  } catch (const base::Stopped&) {
    return {};
  }
  base::Document rows = base::Document::list(), searches = base::Document::list();
  try {
    for (const Group& group : groups_of(request, files)) {
      const EvaluationTable table = evaluate(group.request, team, monitor);
      for (const EvaluationTable::Row& row : table.rows) {
        for (const auto& [theirs, ours] : group.judged) {
          if (row.method == theirs) rows.push(row_of(row, ours));
        }
      }
      for (const EvaluationTable::Search& search : table.searches) {
        for (const auto& [theirs, ours] : group.searched) {
          if (search.method == theirs) searches.push(search_row_of(search, ours));
        }
      }
    }
  } catch (const base::Stopped&) {
    return {};
  }
  base::Document evaluation = base::Document::map().set("rows", std::move(rows));
  if (request.experiment.searches) evaluation.set("searches", std::move(searches));
  return evaluation;
}

}  // namespace graft::study
