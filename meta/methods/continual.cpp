#include "meta/methods/continual.h"

#include "base/random.h"

namespace graft::meta {
namespace {

constexpr std::int64_t most_rows = 256;  // of a workload that one of the new platforms is adapted to

}  // namespace

std::vector<base::Arrays> adapted_states(const CostModel& model, const TaskSet& tasks) {
  std::vector<base::Arrays> out;
  for (const std::string& platform : platforms(tasks)) {
    std::vector<Examples> support;
    for (const Examples& group : only_platforms(tasks, {platform}).groups)
      support.push_back(chosen(group, base::Stream(1, "rows of a new platform").choose(group.size(), most_rows)));
    out.push_back(model.fitted(support)->state());
  }
  return out;
}

void move_towards(std::vector<float>& to, const std::vector<float>& from, double share) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += float(share * double(from[i] - to[i]));
}

}  // namespace graft::meta
