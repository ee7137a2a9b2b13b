// The record of a training in progress: the losses of its stages, and checkpoints from which it continues, bit for bit
// as if it had never been stopped. A stage is identified by its name and seed.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/arrays.h"
#include "base/team.h"

namespace graft::meta {

class TrainingRecord {
 public:
  // Checkpoints are kept in `folder`, which is created; none if it is empty. A folder is for all stages of one training
  // only: files found there are taken for its own.
  explicit TrainingRecord(std::filesystem::path folder = {},
                          std::chrono::milliseconds between = std::chrono::seconds(20));

  // The last checkpoint of a stage. UserError for a file that is not one.
  std::optional<base::Arrays> checkpoint(const std::string& stage);
  // Stores it if the stage's last one is old enough, or if `last`. Thread-safe, like all members.
  void keep(const std::string& stage, bool last, const std::function<base::Arrays()>& state);

  void losses(const std::string& stage, std::vector<float> values);
  // Shares the losses of all ranks with all. All ranks call it, once, at the end.
  void share(base::Team& team);
  // "stage,step,loss", stages in the order of their names.
  std::string losses_csv() const;

 private:
  std::filesystem::path file_of(const std::string& stage) const;

  std::filesystem::path folder_;
  std::chrono::milliseconds between_;
  mutable std::mutex mutex_;
  std::map<std::string, std::chrono::steady_clock::time_point> kept_;
  std::map<std::string, std::vector<float>> losses_;
};

}  // namespace graft::meta
