// What to measure next. Explorers know the space and what was measured; the scorer knows what a cost model thinks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "codegen/schedule/space.h"
#include "datasets/trial.h"
#include "search/scorer.h"

namespace graft::search {

// A round's candidates, at most as many as were asked for.
struct Proposal {
  std::vector<codegen::Candidate> chosen;  // expected to be fast, or to tell most
  std::vector<codegen::Candidate> others;  // drawn at random, listed, or of explorers that ask no model
};

class Explorer {
 public:
  virtual ~Explorer() = default;
  // At most `count` distinct candidates, none of them proposed before; fewer when the space has no more. Those that a
  // model guides are distinct programs, too: of schedules that come to the same one, one is worth a trial.
  // The chosen ones come first, highest score first, then the others as they are: whoever measures only the beginning
  // of a batch measures what the model thinks fastest. Deterministic in (seed, what was told, scores).
  std::vector<codegen::Candidate> propose(int count, Scorer& scorer);
  // Trials of this space, in the order of measurement.
  virtual void told(std::span<const datasets::Trial> trials) = 0;

 private:
  virtual Proposal proposal(int count, Scorer& scorer) = 0;
};

// For explorers that start from what was fast: takes the `ok` trials in and keeps the `most` fastest, fastest first.
void keep_fastest(std::vector<datasets::Trial>& fastest, std::span<const datasets::Trial> trials, std::size_t most);

// Draws from the space until the batch has `count` candidates, each of which is taken where `is_new` says so. Fewer
// where the space seems used up: draws_per_candidate in a row were not new.
inline constexpr int draws_per_candidate = 100;
void fill_at_random(std::vector<codegen::Candidate>& batch, int count, const codegen::Space& space,
                    base::Stream& stream, const std::function<bool(const codegen::Candidate&)>& is_new);
// Distinct candidates; `proposed`: hashes of those that are known, added to.
void fill_at_random(std::vector<codegen::Candidate>& batch, int count, const codegen::Space& space,
                    base::Stream& stream, std::unordered_set<std::uint64_t>& proposed);

// The programs that are known, by their hash: what was proposed, and what was told.
class KnownPrograms {
 public:
  void add(std::span<const datasets::Trial> trials);
  bool contains(std::uint64_t program) const { return programs_.contains(program); }
  // True, and known from now on, if it was not; never for 0, what does not lower.
  bool take(std::uint64_t program) { return program != 0 && programs_.insert(program).second; }
  bool take(const codegen::Candidate& candidate, Scorer& scorer) {
    return take(scorer.programs({&candidate, 1}).front());
  }

 private:
  std::unordered_set<std::uint64_t> programs_;
};

struct ExplorerEntry {
  std::string name, description;
  bool asks_model = false;  // if not, it proposes the same whatever a model thinks, in the order that it wants measured
  std::unique_ptr<Explorer> (*make)(const codegen::Space& space, std::uint64_t seed,
                                    const SelectionSettings& selection) = nullptr;
};
// The space must outlive the explorer.
const std::vector<ExplorerEntry>& explorers();
const ExplorerEntry& explorer_named(std::string_view name);  // UserError
// UserError for an unknown name, and for a selection by scores of an explorer that asks no model.
std::unique_ptr<Explorer> make_explorer(std::string_view name, const codegen::Space& space, std::uint64_t seed,
                                        const SelectionSettings& selection = {});

}  // namespace graft::search
