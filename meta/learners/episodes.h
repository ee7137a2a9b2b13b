// Episodes of meta-training: a source platform plays the new one, with a few programs as support and others as query.
#pragma once

#include "base/random.h"
#include "meta/learners/training.h"

namespace graft::meta {

// Support sizes for which adaptation is chosen and episodes are drawn: the default grid of shots.
inline constexpr std::int64_t episode_shots[] = {5, 10, 20, 32};

// Which rows of which groups, and both parts as batches.
struct Episode {
  std::size_t platform = 0;  // position
  std::vector<Selection> support_rows, query_rows;
  Batch<float> support, query;
};

// One platform, up to four of its workloads, one of episode_shots, and 32 query programs of each workload.
Episode draw_episode(std::span<const PlatformGroups> platforms, Loss loss, base::Stream& stream);

}  // namespace graft::meta
