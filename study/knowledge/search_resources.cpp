#include "study/knowledge/search_resources.h"

#include <algorithm>

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

}  // namespace graft::study
