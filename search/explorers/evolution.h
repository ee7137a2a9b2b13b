// Evolutionary search on the cost model (the explorer of Ansor, Zheng et al., OSDI 2020, with the crossover that it
// lacks): every round a population of the fastest programs measured and fresh samples
// breeds a few generations; the batch is selected from the distinct programs seen. Each sketch has a share of it,
// as long as the measurements leave it a chance: sketches are the arms of a bandit (Auer et al., 2002), which is closed
// while its best program is slower than the fastest one by more than its upper confidence bound makes up for.
//
// A model that is wrong about a part of the space never proposes it, and the first population soon becomes uniform.
// A share of each batch is therefore the best of a second population, which restarts from random programs and
// so ends at any peak of the model; they differ from the fastest measured and from each other (multi-start search).
//
// A table whose rows are looked at each has nothing bred from its fastest. Where rows are not compared by the model's
// mean, a share of each batch makes up for it: the best of its neighbours, however little the model thinks of them (a
// step of local search).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <vector>

#include "search/explorer.h"

namespace graft::search {

struct EvolutionSettings {
  int population = 128;
  int generations = 2;           // bred in a round
  double measured_share = 0.25;  // of the first population: the fastest programs measured so far
  double fresh_share = 0.25;     // of it: new random draws
  double crossover_share = 0.1;  // of the children
  double sketch_share = 0.4;   // of the batch: divided among the sketches, each one's best; closed ones give up theirs
  int first_looks = 4;         // trials of a sketch before it may be closed
  double optimism = 0.5;       // of the bound: log speed per sqrt(log(all trials) / trials of the sketch)
  double restart_share = 0.3;  // of the batch: from the population that restarts
  double near_share = 0.3;     // of the batch, among rows that are looked at each: one choice apart from the fastest
  int least_difference = 3;    // choices in which these differ from the fastest measured and from each other
  int unlike = 8;              // the number of these fastest
  std::int64_t most_rows = 32768;  // of a table, to look at each
  int parent_draws = 2;            // a parent is the best of this many draws from the sorted population:
                         // with two the best is about twice as likely as the middle, and the last very unlikely
};

class Evolution : public Explorer {
 public:
  Evolution(const codegen::Space& space, std::uint64_t seed, const EvolutionSettings& settings,
            const SelectionSettings& selection);
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  // What a batch is made of besides the best of the population.
  struct Parts {
    int restarts = 0, near = 0, random = 0;
    int all() const { return restarts + near + random; }
  };
  Parts parts_of(int count, const Scorer& scorer) const;
  // A sketch's trials, and the fastest of them (infinite: none was ok).
  struct Arm {
    std::int64_t trials = 0;
    double seconds = std::numeric_limits<double>::infinity();
  };
  bool is_open(const Arm& arm) const;
  // Position in the sorted population: ranks, not scores, because models differ in scale.
  std::size_t parent(std::size_t count, base::Stream& stream) const;
  // One candidate for each distinct program of `first` and the generations bred from it, best first.
  std::vector<Scored> bred(const std::vector<codegen::Candidate>& first, int generations, Scorer& scorer);
  // The best of those seen that differ from the fastest measured in one choice, at most `count`, not proposed before.
  std::vector<codegen::Candidate> neighbours(int count, const std::vector<Scored>& seen);
  // What the batch is chosen from, best first: bred from the fastest measured, or all rows of a table.
  std::vector<Scored> population(Scorer& scorer);
  // The best of those seen when a population restarts, at most `count`, not proposed before.
  std::vector<codegen::Candidate> restarted(int count, const std::vector<Scored>& seen);

  const codegen::Space& space_;
  std::uint64_t seed_;
  EvolutionSettings settings_;
  SelectionSettings selection_;
  // Random draws are numbered by what was told and by the proposals since, so that a search that was told the same goes
  // on the same.
  std::int64_t told_ = 0, asked_since_ = 0;
  base::Stream stream_;                         // of this proposal
  std::uint64_t round_ = 0;                     // the seed of its children's streams
  std::int64_t children_ = 0;                   // numbers them
  std::vector<datasets::Trial> best_measured_;  // fastest first
  std::vector<Arm> arms_;                       // by sketch
  // The rows of a table that is the whole space, if they are few enough to look at each: nothing is bred then.
  std::vector<codegen::Candidate> rows_;
  KnownPrograms proposed_;
};

}  // namespace graft::search
