// What a training leaves behind on its way: the losses of its stages, and checkpoints from which it goes on, bit for
// bit as if it had never been stopped. A stage is known by its name and seed.
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
  // Checkpoints are kept in `folder`, which is made; none where it is empty. All stages of one training, and of no
  // other: what is found there is taken for its own.
  explicit TrainingRecord(std::filesystem::path folder = {},
                          std::chrono::milliseconds between = std::chrono::seconds(20));

  // The last checkpoint of a stage. UserError for a file that is none.
  std::optional<base::Arrays> checkpoint(const std::string& stage);
  // Keeps it if the stage's last one is old enough, or if `last`. Thread-safe, as all here.
  void keep(const std::string& stage, bool last, const std::function<base::Arrays()>& state);

  void losses(const std::string& stage, std::vector<float> values);
  // Those of all ranks are everyone's from now on. Everyone calls it, once, in the end.
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
