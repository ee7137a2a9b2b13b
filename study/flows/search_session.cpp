#include "study/flows/search_session.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "study/flows/rounds.h"

namespace graft::study {

std::shared_ptr<const meta::ModelFile> SearchResources::model_file(const std::string& file) {
  std::shared_ptr<const meta::ModelFile>& known = files_[file];
  if (known == nullptr) known = std::make_shared<const meta::ModelFile>(meta::load_model(file));
  return known;
}

tasks::Measurer& SearchResources::measurer(const tasks::Platform& platform, const tasks::MeasureSettings& settings) {
  const auto known = std::find_if(measurers_.begin(), measurers_.end(), [&](const OwnMeasurer& each) {
    return each.platform == platform.yaml && each.settings == settings;
  });
  if (known != measurers_.end()) return *known->measurer;
  measurers_.push_back({platform.yaml, settings, tasks::make_measurer(platform, settings)});
  return *measurers_.back().measurer;
}

void SearchSession::begin(const search::TuningSettings& settings, std::unique_ptr<search::Explorer> explorer) {
  tuning_.emplace(search::Task{space_, programs_, borrowed_.platform.name}, borrowed_.model, borrowed_.measurer,
                  borrowed_.run, settings, std::move(explorer));
}

bool SearchSession::run(std::int64_t trials, base::Monitor& monitor) {
  return run_rounds(*tuning_, trials, monitor);
}

datasets::Trial SearchSession::best() const {
  std::optional<datasets::Trial> best = tuning_->best();
  if (!best) throw base::Failure(nothing_ok_text(tuning_->trials(), borrowed_.platform, borrowed_.run.path()));
  return std::move(*best);
}

}  // namespace graft::study
