#include <filesystem>

#include "base/team.h"
#include "study/experiments/runs.h"
#include "study/experiments/settings.h"
#include "study/request.h"
#include "study/train.h"

namespace graft::study {
namespace {

TrainRequest train_request(const base::Document& settings) {
  settings.only_keys({"data", "workloads", "rows", "learner", "model", "encoding", "loss", "steps", "hold_out"});
  TrainRequest request;
  request.data.files = texts_at(settings, "data");
  request.data.workloads = texts_at(settings, "workloads");
  request.data.rows = integer_at(settings, "rows", 0);
  request.learner = text_at(settings, "learner", request.learner);
  request.model.model = text_at(settings, "model", "");
  request.model.encoding = text_at(settings, "encoding", "");
  request.model.loss = text_at(settings, "loss", "");
  request.model.steps = integer_at(settings, "steps", 0);
  request.hold_out = text_at(settings, "hold_out", "");
  return request;
}

}  // namespace

std::map<std::string, std::filesystem::path> train_models(const ExperimentRequest& request, base::Monitor& monitor) {
  std::map<std::string, std::filesystem::path> files;
  base::Team alone;
  for (const Experiment::Model& model : request.experiment.models) {
    TrainRequest training = train_request(model.settings);
    std::filesystem::create_directories(request.work / "models");
    training.out = request.work / "models" / (short_name(model.name) + ".h5");
    training.threads = request.threads;
    training.command_line = request.command_line;
    if (!std::filesystem::exists(training.out)) train(training, alone, monitor);
    files[model.name] = training.out;
  }
  return files;
}

}  // namespace graft::study
