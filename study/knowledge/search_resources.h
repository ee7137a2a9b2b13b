// What searches of one process share: a model's file is read once, and a platform has one measurer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "meta/model_file.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::study {

class SearchResources {
 public:
  // UserError as meta::load_model.
  std::shared_ptr<const meta::ModelFile> model_file(const std::string& file);
  // One for each platform and settings.
  tasks::Measurer& measurer(const tasks::Platform& platform, const tasks::MeasureSettings& settings);

 private:
  struct OwnMeasurer {
    std::string platform;  // its description
    tasks::MeasureSettings settings;
    std::unique_ptr<tasks::Measurer> measurer;
  };
  std::map<std::string, std::shared_ptr<const meta::ModelFile>> files_;
  std::vector<OwnMeasurer> measurers_;
};

}  // namespace graft::study
