// Selects a batch from the programs that an explorer looked at, by comparing one number for each: the
// acquisition, which turns a model's score and its spread into one number, higher is better; the best by it, or a
// diverse set of good ones; and a share that is random (epsilon-greedy).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/space/space.h"
#include "meta/cost_model.h"

namespace graft::search {

enum class Acquisition {
  mean,      // the score
  ei,        // logarithm of the expected improvement on the best score among the measured programs
  ucb,       // upper confidence bound: the score and a number of spreads
  thompson,  // a draw from the distribution of each program's score, the same one throughout a round
};
enum class Selection {
  best,     // the best by the acquisition
  diverse,  // greedily, the program that adds most to: sum of acquisitions + diversity * number of distinct (domain,
            // row) in total
};
std::string_view name_of(Acquisition acquisition);
std::string_view name_of(Selection selection);
Acquisition acquisition_named(std::string_view name);  // UserError (did you mean)
Selection selection_named(std::string_view name);      // the same

struct SelectionSettings {
  Acquisition acquisition = Acquisition::mean;
  double bound = 1;  // of ucb, in spreads
  Selection selection = Selection::best;
  double diversity = 0.1;      // of diverse: the value of one more row of a domain, in standard deviations of the pool
  double preselected = 2;      // of diverse: only the best are considered, this number for each that is chosen
  double random_share = 0.05;  // epsilon: of a batch, at least one of a batch of two or more; 0: none
  bool operator==(const SelectionSettings&) const = default;
};

// The number of random candidates in a batch. Whoever asks for one at a time, `before` so far, has the share of a batch
// of `least_batch`, as its last ones.
inline constexpr int least_batch = 4;
int random_of(int count, const SelectionSettings& settings, std::int64_t before = 0);

// Further inputs of an acquisition.
struct AcquisitionContext {
  std::optional<float> incumbent;  // the best score among measured programs; without it, ei is the mean
  std::uint64_t round = 0;         // names thompson's draws
};
// One number for each score; `programs`: their hashes. Needs the spreads for all but the mean; a model without spreads
// (all are 0) is taken at its mean.
std::vector<float> acquired(const meta::Scores& scores, std::span<const std::uint64_t> programs,
                            const AcquisitionContext& context, const SelectionSettings& settings);

// A program that an explorer looked at, by one of its candidates.
struct Scored {
  codegen::Candidate candidate;
  std::uint64_t program = 0;
  float score = 0;
};

// The standard deviation of the finite scores, 1 if there are none: models differ in scale.
double scale_of(std::span<const float> scores);

// The number of candidates of a sorted pool that `selected` considers.
std::size_t looked_at(std::size_t count, const SelectionSettings& settings);
// Positions in `pool`, which is sorted, best first, of at most `count` programs, in the order in which they were
// chosen; diverse together with `given`.
std::vector<std::size_t> selected(std::span<const Scored> pool, std::size_t count,
                                  std::span<const codegen::Candidate> given, const codegen::Space& space,
                                  const SelectionSettings& settings);

}  // namespace graft::search
