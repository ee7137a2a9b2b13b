// Episodes of meta-training: a source platform takes the role of the new one.
#pragma once

#include <iterator>

#include "base/random.h"
#include "meta/episode.h"
#include "meta/gradient/training.h"

namespace graft::meta {

// Support sizes for which adaptation is chosen and episodes are drawn: the default grid of shots.
inline constexpr std::int64_t episode_shots[] = {5, 10, 20, 32};

// One platform; half of the time one of its workloads, as a search has it, else all of them (24 at most); `shots`
// programs of each as support and 32 as query.
Episode<std::vector<Selection>> draw_episode(std::span<const PlatformGroups> platforms, std::int64_t shots,
                                             base::Stream& stream);
Episode<Batch<float>> batches_of(Loss loss, const Episode<std::vector<Selection>>& episode);

// The shots of outer step k: cycles through episode_shots. All tasks of a step have the same shots, so that the ranks
// that share them have equal work.
inline std::int64_t shots_of_step(std::int64_t step) {
  return episode_shots[std::size_t(step) % std::size(episode_shots)];
}

}  // namespace graft::meta
