#include "meta/training_record.h"

#include <fmt/format.h>

#include <limits>

#include "base/document.h"
#include "base/hash.h"
#include "datasets/hdf5.h"

namespace graft::meta {

TrainingRecord::TrainingRecord(std::filesystem::path folder, std::chrono::milliseconds between)
    : folder_(std::move(folder)), between_(between) {}

std::filesystem::path TrainingRecord::file_of(const std::string& stage) const {
  return folder_ / (base::to_hex(base::hash_bytes(stage)) + ".h5");
}

std::optional<base::Arrays> TrainingRecord::checkpoint(const std::string& stage) {
  if (folder_.empty() || !std::filesystem::exists(file_of(stage))) return std::nullopt;
  return datasets::read_arrays(file_of(stage));
}

void TrainingRecord::keep(const std::string& stage, bool last, const std::function<base::Arrays()>& state) {
  if (folder_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    const auto [known, first] = kept_.emplace(stage, now);
    if (!last && now - known->second < between_) return;
    known->second = now;
  }
  std::filesystem::create_directories(folder_);
  datasets::write_arrays(state(), file_of(stage));
}

void TrainingRecord::losses(const std::string& stage, std::vector<float> values) {
  const std::lock_guard lock(mutex_);
  losses_[stage] = std::move(values);
}

void TrainingRecord::share(base::Team& team) {
  if (team.size() == 1) return;
  base::Document own = base::Document::map();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [stage, values] : losses_) {
      base::Document list = base::Document::list();
      for (const float value : values) list.push(double(value));
      own.set(stage, std::move(list));
    }
  }
  for (const std::string_view text : team.gather(own.to_json())) {
    const base::Document of_rank = base::parse_json(text, "losses of a rank");
    for (const auto& [stage, values] : of_rank.as_map()) {
      std::vector<float> list;
      for (const base::Document& value : values.as_list())  // JSON has no infinities
        list.push_back(value.is_null() ? std::numeric_limits<float>::quiet_NaN() : float(value.as_number()));
      losses(stage, std::move(list));
    }
  }
}

std::string TrainingRecord::losses_csv() const {
  const std::lock_guard lock(mutex_);
  std::string out = "stage,step,loss\n";
  for (const auto& [stage, values] : losses_) {
    for (std::size_t k = 0; k < values.size(); ++k) out += fmt::format("\"{}\",{},{}\n", stage, k + 1, values[k]);
  }
  return out;
}

}  // namespace graft::meta
