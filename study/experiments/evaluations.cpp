#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/team.h"
#include "datasets/formats/format.h"
#include "study/flows/collect.h"
#include "study/flows/evaluate.h"
#include "study/experiments/runs.h"
#include "study/experiments/settings.h"
#include "study/inputs/request.h"
#include "study/flows/shared_work.h"
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

base::Document row_of(const EvaluationTable::Row& row, const std::string& name) {
  base::Document draws = base::Document::map();
  for (const Metric metric : metrics) {
    base::Document values = base::Document::list();
    for (const double value : (*row.by_draw)[metric]) values.push(rounded(value));
    draws.set(std::string(key_of(metric)), std::move(values));
  }
  return base::Document::map()
      .set("target", row.target)
      .set("method", name)
      .set("shots", row.shots)
      .set("workloads", row.workloads)
      .set("by_draw", std::move(draws));
}

}  // namespace

base::Document evaluated(const ExperimentRequest& request, base::Team& team, base::Monitor& monitor) {
  const Experiment& experiment = request.experiment;
  // Methods of equal settings are judged together: on the same draws, by the same sources.
  struct Group {
    std::string settings;
    EvaluateRequest request;
    std::vector<std::pair<std::string, std::string>> names;  // of graft's method, and here
  };
  std::vector<Group> groups;
  std::vector<std::string> files;
  try {
    files = data_files(request, team, monitor);
  } catch (const base::Stopped&) {
    return {};
  }
  for (const Experiment::Method& method : experiment.methods) {
    Group group;
    group.request.methods = {method.name};
    group.request.shots = experiment.counts;
    base::Document own = experiment.evaluation;
    if (!method.settings.is_null()) {
      for (const auto& [key, value] : method.settings.as_map()) own.set(key, value);
    }
    set_all(own, settings_of(group.request), keys_besides);
    base::Document apart = base::Document::map();  // all but which method
    if (!own.is_null()) {
      for (const auto& [key, value] : own.as_map()) {
        if (key == "method") {
          group.request.methods = {value.as_string()};
        } else {
          apart.set(key, value);
        }
      }
    }
    group.settings = apart.to_json();
    group.request.data.files = files;
    group.request.threads = request.threads;
    group.request.command_line = request.command_line;
    group.request.out = request.work / (base::to_hex(base::hash_bytes(group.settings)) + ".json");
    group.names = {{group.request.methods.front(), method.name}};
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const Group& each) { return each.settings == group.settings; });
    if (same == groups.end()) {
      groups.push_back(std::move(group));
    } else {
      same->request.methods.push_back(group.names.front().first);
      same->names.push_back(group.names.front());
    }
  }
  base::Document rows = base::Document::list();
  try {
    for (const Group& group : groups) {
      const EvaluationTable table = evaluate(group.request, team, monitor);
      for (const EvaluationTable::Row& row : table.rows) {
        for (const auto& [theirs, ours] : group.names) {
          if (row.method == theirs) rows.push(row_of(row, ours));
        }
      }
    }
  } catch (const base::Stopped&) {
    return {};
  }
  return base::Document::map().set("rows", std::move(rows));
}

}  // namespace graft::study
