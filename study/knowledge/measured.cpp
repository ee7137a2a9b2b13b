#include "study/knowledge/measured.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "datasets/groups.h"
#include "search/run_directory.h"
#include "study/knowledge/history.h"

namespace graft::study {
namespace {

namespace fs = std::filesystem;

datasets::Dataset dataset_of(const search::RunContent& run) {
  const tasks::Platform platform = search::platform_of(run);
  datasets::Dataset out;
  out.platform = platform.name;
  out.source = platform.device->source();
  out.platform_yaml = platform.yaml;
  out.target = platform.target;
  out.provenance = base::Document::map().set("request", run.request);
  for (const datasets::Trial& trial : run.journal.trials) out.add(trial);
  return out;
}

}  // namespace

std::vector<datasets::Dataset> measured_in(const std::vector<fs::path>& from) {
  std::map<std::string, datasets::Dataset> all;
  for (const fs::path& path : from) {
    std::vector<datasets::Dataset> own;
    if (fs::is_directory(path)) {
      std::vector<fs::path> runs = runs_in(path);
      if (runs.empty()) runs.push_back(path);  // which then says what is missing
      for (const fs::path& run : runs) own.push_back(dataset_of(search::read_run(run)));
    } else {
      own.push_back(datasets::read_dataset(path));
    }
    const bool any =
        std::any_of(own.begin(), own.end(), [](const auto& each) { return !datasets::groups(each).empty(); });
    if (!any)
      throw base::UserError(path.string(), "has no program that ran; give the folder of a search that found one");
    for (datasets::Dataset& dataset : own) {
      datasets::refuse_emulated(path.string(), dataset.source);
      const auto known = all.find(dataset.platform);
      if (known == all.end()) {
        all.emplace(dataset.platform, std::move(dataset));
      } else {
        known->second = datasets::merged(known->second, dataset);
      }
    }
  }
  std::vector<datasets::Dataset> out;
  for (auto& [platform, dataset] : all) out.push_back(std::move(dataset));
  return out;
}

}  // namespace graft::study
