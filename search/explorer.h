// What to measure next. Explorers know the space and what was measured; the scorer knows what a cost model thinks.
#pragma once

#include <cstdint>
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

class Explorer {
 public:
  virtual ~Explorer() = default;
  // At most `count` distinct candidates, none of them proposed before; fewer when the space has no more. Deterministic
  // in (seed, what was told, scores).
  virtual std::vector<codegen::Candidate> propose(int count, Scorer& scorer) = 0;
  // Trials of this space, in the order of measurement.
  virtual void told(std::span<const datasets::Trial> trials) = 0;
};

// For explorers that start from what was fast: takes the `ok` trials in and keeps the `most` fastest, fastest first.
void keep_fastest(std::vector<datasets::Trial>& fastest, std::span<const datasets::Trial> trials, std::size_t most);

// Draws from the space until the batch has `count` candidates; `proposed`: hashes of those that are known, added to.
// Fewer where the space seems used up.
void fill_at_random(std::vector<codegen::Candidate>& batch, int count, const codegen::Space& space,
                    base::Stream& stream, std::unordered_set<std::uint64_t>& proposed);

struct ExplorerEntry {
  std::string name, description;
  std::unique_ptr<Explorer> (*make)(const codegen::Space& space, std::uint64_t seed) = nullptr;
};
// random, annealing, evolution, support. The space must outlive the explorer.
const std::vector<ExplorerEntry>& explorers();
std::unique_ptr<Explorer> make_explorer(std::string_view name, const codegen::Space& space,
                                        std::uint64_t seed);  // UserError

}  // namespace graft::search
