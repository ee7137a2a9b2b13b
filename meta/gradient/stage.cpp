#include "meta/gradient/stage.h"

#include <fmt/format.h>

#include "base/error.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

base::Arrays state_of(std::span<const TrainedVector> changing, std::int64_t done, const std::vector<float>& losses) {
  base::Arrays out;
  put_integers(out, "done", {done});
  put_values(out, "losses", losses);
  for (std::size_t c = 0; c < changing.size(); ++c) {
    put_values(out, fmt::format("values/{}", c), *changing[c].values);
    if (changing[c].adam == nullptr) continue;
    put_values(out, fmt::format("first/{}", c), changing[c].adam->first());
    put_values(out, fmt::format("second/{}", c), changing[c].adam->second());
  }
  return out;
}

std::int64_t resume(const base::Arrays& from, std::span<const TrainedVector> changing, std::vector<float>& losses) {
  const std::int64_t done = integer_of(from, "done", 0);
  losses = values_of(from, "losses", done);
  for (std::size_t c = 0; c < changing.size(); ++c) {
    const auto size = std::int64_t(changing[c].values->size());
    *changing[c].values = values_of(from, fmt::format("values/{}", c), size);
    if (changing[c].adam == nullptr) continue;
    changing[c].adam->resume(values_of(from, fmt::format("first/{}", c), size),
                             values_of(from, fmt::format("second/{}", c), size), done);
  }
  return done;
}

}  // namespace

void run(const Stage& stage, std::span<const TrainedVector> changing, const std::function<float(std::int64_t)>& step) {
  const std::string key = fmt::format("{} (seed {})", stage.name, stage.seed);
  std::vector<float> losses;
  std::int64_t first = 0;
  if (stage.record != nullptr) {
    if (const auto known = stage.record->checkpoint(key)) first = resume(*known, changing, losses);
  }
  if (stage.team != nullptr) {
    for (const std::string_view other : stage.team->gather(std::to_string(first))) {
      if (other != std::to_string(first))
        throw base::Failure("ranks found different checkpoints: their folder must be the same one for all");
    }
  }
  for (std::int64_t k = first; k < stage.steps; ++k) {
    const bool stopping = stage.monitor->stop_requested();
    if (stage.record != nullptr && k > 0)
      stage.record->keep(key, stopping, [&] { return state_of(changing, k, losses); });
    base::check_stop(*stage.monitor);
    losses.push_back(step(k));
    stage.monitor->progress(stage.name, k + 1, stage.steps);
  }
  if (stage.record == nullptr) return;
  stage.record->keep(key, true, [&] { return state_of(changing, stage.steps, losses); });
  stage.record->losses(key, std::move(losses));
}

}  // namespace graft::meta
