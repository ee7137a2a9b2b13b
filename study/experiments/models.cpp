#include <filesystem>

#include "base/team.h"
#include "study/experiments/runs.h"
#include "study/experiments/settings.h"
#include "study/inputs/request.h"
#include "study/flows/shared_work.h"
#include "study/flows/train.h"

namespace graft::study {
namespace {

constexpr std::string_view keys_besides[] = {"data"};

TrainRequest train_request(const base::Document& settings) {
  TrainRequest request;
  set_all(settings, settings_of(request), keys_besides);
  request.data.files = texts_at(settings, "data");
  return request;
}

}  // namespace

std::map<std::string, std::filesystem::path> train_models(const ExperimentRequest& request, base::Team& team,
                                                          base::Monitor& monitor) {
  std::map<std::string, std::filesystem::path> files;
  for (const Experiment::Model& model : request.experiment.models) {
    TrainRequest training = train_request(model.settings);
    std::filesystem::create_directories(request.work / "models");
    training.out = request.work / "models" / (short_name(model.name) + ".h5");
    training.threads = request.threads;
    training.command_line = request.command_line;
    // All ranks train, or none.
    const std::string is_there = work_of_first(
        team, monitor, [&](base::Monitor&) { return std::string(std::filesystem::exists(training.out) ? "yes" : ""); });
    if (is_there.empty()) {
      base::TeamMonitor together(team, monitor);
      train(training, team, together);
      team.gather("");  // rank 0 has written it
    }
    files[model.name] = training.out;
  }
  return files;
}

}  // namespace graft::study
