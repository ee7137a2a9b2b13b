// Chooses what to measure next. Explorers know the space and the measurements; the scorer has the predictions of a cost
// model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "codegen/space/space.h"
#include "datasets/trial.h"
#include "search/scorer.h"

namespace graft::search {

// A round's candidates, at most as many as requested.
struct Proposal {
  std::vector<codegen::Candidate> chosen;  // expected to be fast, or informative
  std::vector<codegen::Candidate> others;  // drawn at random, listed, or from explorers that use no model
};

class Explorer {
 public:
  virtual ~Explorer() = default;
  // At most `count` distinct candidates, none of them proposed before; fewer if the space has no more. Those that a
  // model guides are distinct programs, too: of schedules that lower to the same one, only one is worth a trial. The
  // chosen ones come first, highest score first, then the others in their order: the beginning of a batch is what the
  // model predicts to be fastest. Deterministic in (seed, trials told, scores).
  std::vector<codegen::Candidate> propose(int count, Scorer& scorer);
  // Trials of this space, in the order of measurement.
  virtual void told(std::span<const datasets::Trial> trials) = 0;

 private:
  virtual Proposal proposal(int count, Scorer& scorer) = 0;
};

// For explorers that start from fast programs: adds the `ok` trials and keeps the `most` fastest, fastest first.
void keep_fastest(std::vector<datasets::Trial>& fastest, std::span<const datasets::Trial> trials, std::size_t most);

// Draws from the space until the batch has `count` candidates, each accepted if `is_new` returns true. Fewer if
// the space seems exhausted: draws_per_candidate in a row were not new.
inline constexpr int draws_per_candidate = 100;
void fill_at_random(std::vector<codegen::Candidate>& batch, int count, const codegen::Space& space,
                    base::Stream& stream, codegen::Judge& judge,
                    const std::function<bool(const codegen::Candidate&)>& is_new);
// Distinct candidates; `proposed`: hashes of those that are known, added to.
void fill_at_random(std::vector<codegen::Candidate>& batch, int count, const codegen::Space& space,
                    base::Stream& stream, codegen::Judge& judge, std::unordered_set<std::uint64_t>& proposed);

// The known programs, by their hash: those proposed, and those told.
class KnownPrograms {
 public:
  void add(std::span<const datasets::Trial> trials);
  bool contains(std::uint64_t program) const { return programs_.contains(program); }
  std::int64_t size() const { return std::int64_t(programs_.size()); }
  // True if it was not known, and known from then on; false for 0 (does not lower).
  bool take(std::uint64_t program) { return program != 0 && programs_.insert(program).second; }
  bool take(const codegen::Candidate& candidate, Scorer& scorer) {
    return take(scorer.programs({&candidate, 1}).front());
  }

 private:
  std::unordered_set<std::uint64_t> programs_;
};

struct ExplorerEntry {
  std::string name, description;
  bool asks_model = false;  // if not, its proposals do not depend on a model, and are in the order of measurement
  std::unique_ptr<Explorer> (*make)(const codegen::Space& space, std::uint64_t seed,
                                    const SelectionSettings& selection) = nullptr;
  bool for_comparison = false;  // not reliably better than random (experiments/explorers): known, not offered
};
// The space must outlive the explorer.
const std::vector<ExplorerEntry>& explorers();
std::vector<ExplorerEntry> offered_explorers();              // without those for comparison
const ExplorerEntry& explorer_named(std::string_view name);  // UserError
// UserError for an unknown name, and for a selection by scores with an explorer that uses no model.
std::unique_ptr<Explorer> make_explorer(std::string_view name, const codegen::Space& space, std::uint64_t seed,
                                        const SelectionSettings& selection = {});

}  // namespace graft::search
