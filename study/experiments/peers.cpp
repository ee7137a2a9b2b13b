#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "study/experiments/runs.h"

namespace graft::study {
namespace {

bool is_among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

ExperimentResults gathered(const Experiment& experiment, const std::vector<std::filesystem::path>& files) {
  ExperimentResults results;
  results.experiment = experiment.name;
  results.definition = experiment.definition;
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t>;
  std::set<Key> known;
  for (const std::filesystem::path& file : files) {
    const base::Document document = base::parse_json(base::read_file(file), file.string());
    document.only_keys({"searches"});
    for (search::Searched& search : searches_from(document.at("searches"))) {
      const auto method = std::find_if(experiment.methods.begin(), experiment.methods.end(),
                                       [&](const Experiment::Method& each) { return each.name == search.method; });
      const std::string name =
          fmt::format("{}, {}, {}, seed {}", search.method, search.workload, search.platform, search.seed);
      const bool is_method = method != experiment.methods.end();
      if ((!is_method && !is_among(search.method, experiment.baselines)) ||
          !is_among(search.workload, experiment.workloads) || !is_among(search.platform, experiment.platforms))
        throw base::UserError(file.string(), fmt::format("{}: not of {}", name, experiment.name));
      if (is_method && std::int64_t(search.best_seconds.size()) != method->trials)
        throw base::UserError(file.string(), fmt::format("{}: has {}, and {} asks for {}", name,
                                                         base::counted(search.best_seconds.size(), "trial"),
                                                         experiment.name, method->trials));
      if (!known.insert({search.method, search.workload, search.platform, search.seed}).second)
        throw base::UserError(file.string(), fmt::format("{}: is there twice", name));
      results.searches.push_back(std::move(search));
    }
  }
  for (const Experiment::Method& method : experiment.methods) {
    for (const std::string& workload : experiment.workloads) {
      for (const std::string& platform : experiment.platforms) {
        for (std::int64_t seed = 1; seed <= experiment.seeds; ++seed) {
          if (!known.contains({method.name, workload, platform, seed}))
            throw base::UserError(experiment.name, fmt::format("{}, {}, {}, seed {}: is in none of the files",
                                                               method.name, workload, platform, seed));
        }
      }
    }
  }
  results.complete = true;
  results.context = context_of_run(experiment);
  return results;
}

}  // namespace graft::study
