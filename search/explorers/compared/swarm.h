// Particle swarm optimisation without a model: particles fly through the rows of a sketch's domains, drawn to the
// fastest program that they measured themselves and to the fastest of their sketch. A particle keeps its sketch until
// it has found nothing faster for some time; then it starts again anywhere in the space.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "search/explorer.h"
#include "search/point.h"

namespace graft::search {

struct SwarmSettings {
  int particles = 16;
  double inertia = 0.5;      // share of its velocity that a particle keeps
  double to_own_best = 1.4;  // pull, at most, per distance
  double to_best = 1.4;      // the same, to the fastest of the sketch
  int patience = 4;          // measurements without a gain until a particle starts again
  int tries_for_a_move = 8;  // until it is a new program; then the particle's position mutates, or restarts
};

class Swarm : public Explorer {
 public:
  Swarm(const codegen::Space& space, std::uint64_t seed, const SwarmSettings& settings);
  void told(std::span<const datasets::Trial> trials) override;

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  struct Best {
    Point at;
    double seconds = 0;
  };
  struct Particle {
    Point at;
    std::vector<double> velocity;  // rows a move, by domain
    std::optional<Best> best;
    int without_gain = 0;
  };
  // nullopt if the space seems exhausted.
  std::optional<codegen::Candidate> moved(Particle& particle, Scorer& scorer);
  std::optional<codegen::Candidate> restarted(Particle& particle, Scorer& scorer);

  const codegen::Space& space_;
  SwarmSettings settings_;
  base::Stream stream_;
  std::vector<Particle> particles_;
  std::size_t turn_ = 0;
  std::vector<std::optional<Best>> best_;                     // by sketch
  std::unordered_map<std::uint64_t, std::size_t> in_flight_;  // particle by hash of the candidate that it proposed
  KnownPrograms proposed_;
};

}  // namespace graft::search
