// The search of `tune` for whoever measures by other means: it says what to measure next, and is told how long that
// took.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/workload.h"
#include "datasets/trial.h"
#include "tasks/platform.h"

namespace graft::study {

struct AskTellRequest {
  codegen::Workload workload;
  tasks::Platform platform;                    // described only: nothing is measured on it
  std::string model = {};                      // as TuneRequest's
  std::vector<codegen::Candidate> start = {};  // asked for first; of other shapes: what is most like them
  std::uint64_t seed = 1;
  int threads = 1;  // no result depends on it
};

// Asked for as many candidates as `tune` has in a round, and told of each what `tune` measured, it asks for what `tune`
// would measure next; also if it was only told.
class AskTellSession {
 public:
  // UserError as tune.
  AskTellSession(AskTellRequest request, base::Monitor& monitor);
  ~AskTellSession();

  // Distinct candidates, at most `count`, none of them asked for before; fewer where the space has no more.
  std::vector<codegen::Candidate> ask(int count);
  // Measurements of candidates of the workload, in their order, whether they were asked for or not; all of them or, at
  // a UserError, none: for one that contradicts itself (datasets/trial.h), is of another workload, or is ok and does
  // not lower.
  struct MeasuredCandidate {
    codegen::Candidate candidate;
    datasets::Measurement measurement;
  };
  void tell(const std::vector<MeasuredCandidate>& measured);
  const std::vector<datasets::Trial>& trials() const;  // that were told
  std::optional<datasets::Trial> best() const;         // the fastest ok one

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft::study
