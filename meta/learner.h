// A meta-learner makes, from many tasks, a cost model that adapts to a new one. methods/methods.h has them all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "base/team.h"
#include "meta/cost_model.h"
#include "meta/network.h"
#include "meta/objectives.h"
#include "meta/task_set.h"
#include "meta/training_record.h"

namespace graft::meta {

// Whether the sources' own times of a table's row are evidence for it (methods/known_rows.h). automatic: if the
// rows' parameters say next to nothing about their times on the sources.
#define GRAFT_KNOWN_ROWS_USES(X) X(automatic) X(yes) X(no)
enum class KnownRowsUse {
#define X(name) name,
  GRAFT_KNOWN_ROWS_USES(X)
#undef X
};
std::string_view name_of(KnownRowsUse use);
KnownRowsUse known_rows_use_named(std::string_view name);  // UserError (did you mean)

struct LearnerSettings {
  NetworkShape network;            // its inputs follow from the encoding
  bool trees = false;              // boosted trees instead of networks, for learners that support both
  std::int64_t steps = 0;          // outer steps, or trees; 0: the learner's default
  std::optional<Loss> loss;        // for learners that minimise one; nullopt: the learner's default
  int members = 1;                 // from 2 on: an ensemble of this many models, each trained on its own draw of rows
  KnownRowsUse known_rows = KnownRowsUse::automatic;
  // For `CostModel::continued`: platforms of which the tasks have only some measurements, such as those of searches.
  // What a known one's source learnt from datasets stays, and trees after it learn what is new.
  std::map<std::string, std::int64_t> extended = {};  // and how many these are
  bool guard = false;  // the support chooses between the model and scratch (methods/adaptive.h)
  std::uint64_t seed = 1;
  int threads = 1;
  base::Team* team = nullptr;        // whose ranks train the same model and share the tasks; none: alone
  TrainingRecord* record = nullptr;  // losses and checkpoints, if wanted
};

// UserError unless the encoding fits a network of this kind: trees for a TreeGRU, anything else for an MLP.
void check_fits(NetworkKind kind, const features::Encoding& encoding);
// Whether the network's inputs are this encoding's columns, and trees if it needs them.
bool takes(const NetworkShape& shape, const features::Encoding& encoding);

class Learner {
 public:
  virtual ~Learner() = default;
  // UserError without groups of two programs or more to learn from, or for an encoding that the network does not take
  // (check_fits); Stopped when the monitor asks for it.
  virtual std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings& settings,
                                           base::Monitor& monitor) const = 0;
};

}  // namespace graft::meta
