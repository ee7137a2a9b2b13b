// All schedules of a workload for a target: sketches with a domain for every argument. Derived by rule (rules.h) from
// any computation, or from a user's file (template.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/candidate.h"
#include "codegen/schedule/condition.h"
#include "codegen/schedule/sketch.h"

namespace graft::codegen {

// What `arguments` (positions in the sketch) may be, jointly: each row of `values` fills them all. Tile sizes of one
// axis are one domain, so that every row is a valid chain.
struct Domain {
  std::string name;
  std::vector<int> arguments;
  std::vector<std::vector<std::int64_t>> values;
  bool operator==(const Domain&) const = default;
};

struct SketchSpace {
  std::shared_ptr<const Sketch> sketch;
  std::vector<Domain> domains;          // every argument of the sketch in exactly one
  std::vector<Condition> forbids = {};  // bound to the sketch
};

// How unlike two rows of one of the sketch's domains are: the sum of |log2((1 + a) / (1 + b))| over its arguments, 1
// for each choice among texts that differs.
double distance(const SketchSpace& part, const Domain& domain, std::size_t a, std::size_t b);

class Space {
 public:
  Space(Workload workload, Target target, std::vector<SketchSpace> sketches);

  const Workload& workload() const { return workload_; }
  const Target& target() const { return target_; }
  const std::vector<SketchSpace>& sketches() const { return sketches_; }

  // The same space with no other points than these, of programs that were recorded, say: whatever is sampled, mutated
  // or crossed is one of them. Left out are those that are not valid, or in no row of their domains. UserError when
  // none is left.
  Space only(std::span<const Candidate> points) const;
  // Number of points (some are forbidden or beyond limits); as a double because products exceed 64 bits.
  double size() const;
  // Why a candidate is no schedule of this space: its sketch is of another, a condition forbids it, or it does not
  // lower within limits. That its arguments stand in their domains is not looked at.
  std::optional<base::Reason> refusal(const Candidate& candidate) const;
  bool valid(const Candidate& candidate) const { return !refusal(candidate); }

  // The candidate if it is valid, else why not; in a space of some points only, the one that is most like it, of the
  // same sketch.
  base::Result<Candidate> admitted(const Candidate& candidate) const;

  // What these three give is valid. They draw from `stream` alone: the same stream gives the same candidates.
  //
  // Draws a sketch, then uniformly one of its valid points (by rejection). A sketch's weight is the number of bits that
  // tell its points apart: by their number, a small sketch would never be seen, and without weights one with hardly a
  // choice would be seen again and again. Throws UserError with the workload and the most frequent reasons when 10,000
  // draws in a row were refused.
  Candidate sample(base::Stream& stream) const;
  // One domain of the candidate drawn anew (another row than before), until the result is valid: at most 32 tries. A
  // choice among texts must change the program, too; the order of loops that vanish, say, does not. One in sixteen
  // changes the sketch (a fresh sample), as does a candidate of another space.
  base::Result<Candidate> mutate(const Candidate& candidate, base::Stream& stream) const;
  // Every domain from one of the parents, at most 32 tries. A Reason when their sketches differ, too.
  base::Result<Candidate> crossover(const Candidate& a, const Candidate& b, base::Stream& stream) const;
  // The valid point of this space that is most like `other`, a candidate of this operator with other extents, say: of
  // the sketch with its name that has most of its arguments, each domain's row with the least sum of
  // |log2((1 + a) / (1 + b))| over the arguments that both have (1 for each choice among texts that differs). Where
  // these rows together are no schedule, the next ones by the sum over domains, at most 256 in all. A Reason when no
  // sketch has half of its arguments, or none of these points is valid.
  base::Result<Candidate> nearest(const Candidate& other) const;
  // Number of domains in which two candidates of this space differ; for those of different sketches INT_MAX.
  int choices_apart(const Candidate& a, const Candidate& b) const;
  // Of workload, target, sketches, domains, conditions, and the points where there are some only.
  std::uint64_t hash() const;

 private:
  base::Result<Candidate> draw(base::Stream& stream) const;
  const SketchSpace* part_of(const Candidate& candidate) const;  // null: another space's
  // The program of a candidate of `part`, or why it is none.
  base::Result<LoopProgram> lowered(const SketchSpace& part, const Candidate& candidate) const;
  bool is_listed(const SketchSpace& part) const;  // there are some points only, and this sketch has some
  // The point of `listed_` that is most like the candidate, and not `other` unless it is the only one.
  const Candidate& listed_near(const SketchSpace& part, const Candidate& candidate, const Candidate* other) const;

  // The points of a sketch where there are some only.
  struct Listed {
    std::vector<Candidate> points;
    std::vector<std::vector<double>> coordinates;  // of points, by argument: how far apart two are is their difference
  };
  Workload workload_;
  Target target_;
  std::vector<SketchSpace> sketches_;
  std::vector<std::int64_t> weights_;  // by sketch
  std::int64_t total_weight_ = 0;
  std::vector<Listed> listed_;  // by sketch; empty: all points
  std::unordered_set<std::uint64_t> listed_hashes_;
};

// How a kernel's parameters are stored: as the index expression says, or as schedules choose (the step `layout`; the
// signature then says how).
enum class Layouts { given, free };

// The space by rule: sketches and domains for any computation and target, no operator names (rules.cpp); with sketches
// for the intrinsics wherever a stage holds what they compute.
Space derive_space(const Workload& workload, const Target& target, std::span<const IntrinsicPointer> intrinsics = {},
                   Layouts layouts = Layouts::given);

}  // namespace graft::codegen
