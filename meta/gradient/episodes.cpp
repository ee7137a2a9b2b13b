#include "meta/gradient/episodes.h"

#include <algorithm>

namespace graft::meta {

Episode<std::vector<Selection>> draw_episode(std::span<const PlatformGroups> platforms, std::int64_t shots,
                                             base::Stream& stream) {
  constexpr std::int64_t most_groups = 24, query_rows = 32;
  Episode<std::vector<Selection>> out;
  const std::vector<const PreparedGroup*>& own =
      platforms[std::size_t(stream.below(std::int64_t(platforms.size())))].groups;
  const std::int64_t groups = stream.below(2) == 0 ? 1 : most_groups;
  for (const std::int64_t g : stream.choose(std::int64_t(own.size()), groups)) {
    const PreparedGroup& group = *own[std::size_t(g)];
    const std::int64_t cut = std::min(shots, group.programs->programs() / 2);
    const std::vector<std::int64_t> rows = stream.choose(group.programs->programs(), cut + query_rows);
    out.support.push_back({&group, {rows.begin(), rows.begin() + cut}});
    out.query.push_back({&group, {rows.begin() + cut, rows.end()}});
  }
  return out;
}

Episode<Batch<float>> batches_of(Loss loss, const Episode<std::vector<Selection>>& episode) {
  return {batch_of(loss, episode.support), batch_of(loss, episode.query)};
}

}  // namespace graft::meta
