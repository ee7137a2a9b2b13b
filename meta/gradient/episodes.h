// Episodes of meta-training: a source platform plays the new one, with a few programs as support and others as query.
#pragma once

#include <iterator>

#include "base/random.h"
#include "meta/gradient/training.h"

namespace graft::meta {

// Support sizes for which adaptation is chosen and episodes are drawn: the default grid of shots.
inline constexpr std::int64_t episode_shots[] = {5, 10, 20, 32};

// Which rows of which groups, and both parts as batches.
struct Episode {
  std::vector<Selection> support_rows, query_rows;
  Batch<float> support, query;
};

// One platform, up to four of its workloads, so many programs of each as support and 32 as query.
Episode draw_episode(std::span<const PlatformGroups> platforms, std::int64_t shots, Loss loss, base::Stream& stream);

// Of the outer steps: one of episode_shots after the other. All tasks of a step have as many, so that the ranks that
// share them have equally much to do.
inline std::int64_t shots_of_step(std::int64_t step) {
  return episode_shots[std::size_t(step) % std::size(episode_shots)];
}

}  // namespace graft::meta
