#include "search/explorers/compared/swarm.h"

#include <algorithm>
#include <cmath>

namespace graft::search {

Swarm::Swarm(const codegen::Space& space, std::uint64_t seed, const SwarmSettings& settings)
    : space_(space),
      settings_(settings),
      stream_(seed, "swarm"),
      particles_(std::size_t(settings.particles)),
      best_(space.sketches().size()) {}

std::optional<codegen::Candidate> Swarm::restarted(Particle& particle, Scorer& scorer) {
  std::vector<codegen::Candidate> drawn;
  fill_at_random(drawn, 1, space_, stream_, scorer.judge(),
                 [&](const codegen::Candidate& candidate) { return proposed_.take(candidate, scorer); });
  if (drawn.empty()) return std::nullopt;
  particle = {*point_of(drawn.front(), space_), {}, std::nullopt, 0};
  for (const codegen::Domain& domain : space_.sketches()[particle.at.sketch].domains)
    particle.velocity.push_back((stream_.uniform() - 0.5) * double(domain.values.size()));
  return drawn.front();
}

std::optional<codegen::Candidate> Swarm::moved(Particle& particle, Scorer& scorer) {
  if (!particle.best || particle.without_gain >= settings_.patience) return restarted(particle, scorer);
  const std::vector<codegen::Domain>& domains = space_.sketches()[particle.at.sketch].domains;
  const Point& own = particle.best->at;
  const Point& best = best_[particle.at.sketch]->at;
  for (int attempt = 0; attempt < settings_.tries_for_a_move; ++attempt) {
    Point to = particle.at;
    std::vector<double> velocity = particle.velocity;
    for (std::size_t d = 0; d < domains.size(); ++d) {
      const double most = double(domains[d].values.size()) - 1, at = double(particle.at.rows[d]);
      velocity[d] = settings_.inertia * velocity[d] +
                    settings_.to_own_best * stream_.uniform() * (double(own.rows[d]) - at) +
                    settings_.to_best * stream_.uniform() * (double(best.rows[d]) - at);
      velocity[d] = std::clamp(velocity[d], -most, most);
      to.rows[d] = std::size_t(std::lround(std::clamp(at + velocity[d], 0.0, most)));
    }
    base::Result<codegen::Candidate> candidate = space_.admitted(candidate_at(to, space_), scorer.judge());
    if (!candidate || !proposed_.take(*candidate, scorer)) continue;
    particle.at = *point_of(*candidate, space_);
    particle.velocity = std::move(velocity);
    return std::move(candidate).value();
  }
  base::Result<codegen::Candidate> mutant = space_.mutate(candidate_at(own, space_), stream_, scorer.judge());
  if (!mutant || !proposed_.take(*mutant, scorer)) return restarted(particle, scorer);
  Point to = *point_of(*mutant, space_);
  if (to.sketch != particle.at.sketch) {  // its findings there do not apply here
    particle.best.reset();
    particle.velocity.assign(to.rows.size(), 0);
  }
  particle.at = std::move(to);
  return std::move(mutant).value();
}

Proposal Swarm::proposal(int count, Scorer& scorer) {
  Proposal found;
  while (int(found.others.size()) < count) {
    const std::size_t turn = turn_++ % particles_.size();
    std::optional<codegen::Candidate> candidate = moved(particles_[turn], scorer);
    if (!candidate) break;
    in_flight_[codegen::hash(*candidate)] = turn;
    found.others.push_back(std::move(*candidate));
  }
  return found;
}

void Swarm::told(std::span<const datasets::Trial> trials) {
  proposed_.add(trials);
  for (const datasets::Trial& trial : trials) {
    const std::optional<Point> point = point_of(trial.candidate, space_);
    if (!point) continue;
    const bool ok = trial.measurement.status == datasets::Status::ok;
    const double seconds = ok ? datasets::seconds_of(trial.measurement) : INFINITY;
    const auto improve = [&](std::optional<Best>& best) {
      const bool better = ok && (!best || seconds < best->seconds);
      if (better) best = {*point, seconds};
      return better;
    };
    improve(best_[point->sketch]);
    const auto flight = in_flight_.find(codegen::hash(trial.candidate));
    if (flight == in_flight_.end()) continue;
    Particle& particle = particles_[flight->second];
    in_flight_.erase(flight);
    if (point->sketch != particle.at.sketch) continue;  // it started again since
    particle.without_gain = improve(particle.best) ? 0 : particle.without_gain + 1;
  }
}

}  // namespace graft::search
