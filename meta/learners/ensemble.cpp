// Ensembles by bootstrap: members that each saw another draw of the rows.
#include <fmt/format.h>

#include "base/random.h"
#include "meta/learners/learners.h"
#include "meta/models/models.h"

namespace graft::meta {

std::unique_ptr<CostModel> trained(const Learner& learner, const TaskSet& tasks, const LearnerSettings& settings,
                                   base::Monitor& monitor) {
  if (settings.guard) {
    LearnerSettings without = settings;
    without.guard = false;
    Members members;
    members.push_back(trained(learner, tasks, without, monitor));
    members.push_back(make_scratch_model(std::int64_t(tasks.encoding->features.size())));
    return make_chosen_model(std::move(members));
  }
  if (settings.members <= 1) return learner.train(tasks, settings, monitor);
  std::vector<std::unique_ptr<CostModel>> members;
  for (int m = 0; m < settings.members; ++m) {
    TaskSet own = tasks;
    own.groups = bootstrap_share(tasks.groups, settings.seed, m);
    LearnerSettings with = settings;
    with.members = 1;
    with.seed = settings.seed + std::uint64_t(m);
    members.push_back(learner.train(own, with, monitor));
  }
  return make_ensemble_model(std::move(members), settings.seed);
}

}  // namespace graft::meta
