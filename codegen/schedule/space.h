// All schedules of a workload for a target: sketches with a domain for every argument. Derived by rule (rules.h) from
// any computation, or from a user's sketches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/candidate.h"
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
  std::vector<Domain> domains;  // every argument of the sketch in exactly one
};

class Space {
 public:
  Space(Workload workload, Target target, std::vector<SketchSpace> sketches);

  const Workload& workload() const { return workload_; }
  const Target& target() const { return target_; }
  const std::vector<SketchSpace>& sketches() const { return sketches_; }

  // Number of points (some are beyond limits); as a double because products exceed 64 bits.
  double size() const;
  // Uniform over sketches, then over points that lower within limits (rejection; throws UserError naming the workload
  // when 10,000 draws in a row were refused).
  Candidate sample(base::Stream& stream) const;
  // One domain of the candidate drawn anew (another row than before), until the result is within limits; at most
  // 32 tries, then the candidate itself. One in sixteen changes the sketch (a fresh sample).
  Candidate mutate(const Candidate& candidate, base::Stream& stream) const;
  // Every domain from one of the parents; nullopt when their sketches differ or the child is beyond limits.
  std::optional<Candidate> crossover(const Candidate& a, const Candidate& b, base::Stream& stream) const;
  bool valid(const Candidate& candidate) const;
  // Of workload, target, sketches and domains.
  std::uint64_t hash() const;

 private:
  Workload workload_;
  Target target_;
  std::vector<SketchSpace> sketches_;
};

// The space by rule: sketches and domains for any computation and target, no operator names (rules.cpp); with sketches
// for the intrinsics wherever a stage holds what they compute.
Space derive_space(const Workload& workload, const Target& target, std::span<const IntrinsicPointer> intrinsics = {});

}  // namespace graft::codegen
