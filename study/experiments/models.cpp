#include <filesystem>

#include "base/team.h"
#include "study/experiments/runs.h"
#include "study/request.h"
#include "study/train.h"

namespace graft::study {
namespace {

TrainRequest train_request(const base::Document& settings) {
  settings.only_keys({"data", "workloads", "rows", "learner", "model", "encoding", "loss", "steps", "hold_out"});
  const auto texts = [&](std::string_view key) {
    std::vector<std::string> list;
    if (const base::Document* const value = settings.find(key)) {
      for (const base::Document& each : value->as_list()) list.push_back(each.as_string());
    }
    return list;
  };
  const auto text = [&](std::string_view key, std::string otherwise) {
    const base::Document* const value = settings.find(key);
    return value == nullptr ? otherwise : value->as_string();
  };
  TrainRequest request;
  request.data.files = texts("data");
  request.data.workloads = texts("workloads");
  if (const base::Document* const rows = settings.find("rows")) request.data.rows = rows->as_integer();
  request.learner = text("learner", request.learner);
  request.model.model = text("model", "");
  request.model.encoding = text("encoding", "");
  request.model.loss = text("loss", "");
  if (const base::Document* const steps = settings.find("steps")) request.model.steps = steps->as_integer();
  request.hold_out = text("hold_out", "");
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
