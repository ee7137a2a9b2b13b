#include "study/flows/ask_tell.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "search/ask_tell.h"
#include "study/inputs/space.h"
#include "study/knowledge/prior.h"

namespace graft::study {

// In the order in which they refer to each other.
struct AskTellSession::State {
  codegen::Space space;
  Prior prior;
  search::Programs programs;
  search::AskTell search;

  State(const AskTellRequest& request, base::Monitor& monitor)
      : space(space_of({}, request.workload, request.platform.target)),
        prior(prior_of(prior_request(request), request.platform, monitor)),
        programs(request.platform.target, prior.encoding.get()),
        search({space, programs, request.platform.name}, prior.model.get(), settings(request)) {}

 private:
  static PriorRequest prior_request(const AskTellRequest& request) {
    PriorRequest asked;
    asked.model = request.model;
    asked.explorer = search::AskTellSettings().explorer;
    asked.seed = request.seed;
    asked.threads = request.threads;
    return asked;
  }
  search::AskTellSettings settings(const AskTellRequest& request) {
    search::AskTellSettings settings;
    settings.seed = request.seed;
    settings.threads = request.threads;
    settings.start = in_space(request.start, space, programs);
    Remembered remembered = study::remembered(prior, space, programs);
    settings.known = std::move(remembered.known);
    settings.moved = std::move(remembered.moved);
    return settings;
  }
};

AskTellSession::AskTellSession(AskTellRequest request, base::Monitor& monitor)
    : state_(std::make_unique<State>(request, monitor)) {}
AskTellSession::~AskTellSession() = default;

std::vector<codegen::Candidate> AskTellSession::ask(int count) {
  return state_->search.ask(count);
}

void AskTellSession::tell(const std::vector<MeasuredCandidate>& measured) {
  const codegen::Space& space = state_->space;
  std::vector<datasets::Trial> trials;
  for (const MeasuredCandidate& told : measured) {
    const std::string place = fmt::format("schedule {}", trials.size() + 1);
    if (!(told.candidate.workload == space.workload()))
      throw base::UserError(place, fmt::format("of another workload, {}", told.candidate.workload.text()));
    if (const std::string why = datasets::contradiction(told.measurement); !why.empty())
      throw base::UserError(place, why);
    const base::Result<codegen::Candidate> own = in_space(told.candidate, space, state_->programs);
    const codegen::Candidate& candidate = own ? *own : told.candidate;
    const base::Result<std::uint64_t> program = state_->programs.identity(candidate);
    if (!program && told.measurement.status == datasets::Status::ok)
      throw base::UserError(place,
                            fmt::format("cannot be applied, so nothing can have run: {}", program.reason().text));
    trials.push_back({0, candidate, program ? *program : 0, told.measurement});
  }
  state_->search.tell(std::move(trials));
}

const std::vector<datasets::Trial>& AskTellSession::trials() const {
  return state_->search.trials();
}

std::optional<datasets::Trial> AskTellSession::best() const {
  return state_->search.best();
}

}  // namespace graft::study
