#include "codegen/schedule/space.h"

#include <fmt/format.h>

#include <cassert>

#include "base/hash.h"

namespace graft::codegen {
namespace {

constexpr int most_draws = 10000;
constexpr int mutation_tries = 32;
constexpr std::int64_t sketch_every = 16;  // mutations

void put(const Domain& domain, std::size_t row, std::vector<std::int64_t>& arguments) {
  for (std::size_t i = 0; i < domain.arguments.size(); ++i) {
    arguments[std::size_t(domain.arguments[i])] = domain.values[row][i];
  }
}

bool holds(const Domain& domain, std::size_t row, const std::vector<std::int64_t>& arguments) {
  for (std::size_t i = 0; i < domain.arguments.size(); ++i) {
    if (arguments[std::size_t(domain.arguments[i])] != domain.values[row][i]) return false;
  }
  return true;
}

}  // namespace

Space::Space(Workload workload, Target target, std::vector<SketchSpace> sketches)
    : workload_(std::move(workload)), target_(std::move(target)), sketches_(std::move(sketches)) {
  for (const SketchSpace& sketch : sketches_) {
    [[maybe_unused]] std::size_t covered = 0;
    for (const Domain& domain : sketch.domains) {
      covered += domain.arguments.size();
      assert(!domain.values.empty());
    }
    assert(covered == sketch.sketch->arguments.size());
  }
  assert(!sketches_.empty());
}

double Space::size() const {
  double total = 0;
  for (const SketchSpace& sketch : sketches_) {
    double points = 1;
    for (const Domain& domain : sketch.domains) points *= double(domain.values.size());
    total += points;
  }
  return total;
}

Candidate Space::sample(base::Stream& stream) const {
  for (int draw = 0; draw < most_draws; ++draw) {
    const SketchSpace& chosen = sketches_[std::size_t(stream.below(std::int64_t(sketches_.size())))];
    Candidate candidate{workload_, chosen.sketch, std::vector<std::int64_t>(chosen.sketch->arguments.size())};
    for (const Domain& domain : chosen.domains) {
      put(domain, std::size_t(stream.below(std::int64_t(domain.values.size()))), candidate.arguments);
    }
    if (valid(candidate)) return candidate;
  }
  throw base::UserError(workload_.text,
                        fmt::format("none of {} schedules drawn is within the limits of {}", most_draws, target_.cpu));
}

Candidate Space::mutate(const Candidate& candidate, base::Stream& stream) const {
  if (sketches_.size() > 1 && stream.below(sketch_every) == 0) return sample(stream);
  for (const SketchSpace& sketch : sketches_) {
    if (!(*sketch.sketch == *candidate.sketch)) continue;
    if (sketch.domains.empty()) return candidate;
    for (int attempt = 0; attempt < mutation_tries; ++attempt) {
      const Domain& domain = sketch.domains[std::size_t(stream.below(std::int64_t(sketch.domains.size())))];
      const std::size_t row = std::size_t(stream.below(std::int64_t(domain.values.size())));
      if (holds(domain, row, candidate.arguments)) continue;
      Candidate changed = candidate;
      put(domain, row, changed.arguments);
      if (valid(changed)) return changed;
    }
    return candidate;
  }
  return sample(stream);  // a sketch of another space
}

std::optional<Candidate> Space::crossover(const Candidate& a, const Candidate& b, base::Stream& stream) const {
  for (const SketchSpace& sketch : sketches_) {
    if (!(*sketch.sketch == *a.sketch) || !(*sketch.sketch == *b.sketch)) continue;
    Candidate child = a;
    for (const Domain& domain : sketch.domains) {
      if (stream.below(2) == 0) continue;
      for (const int argument : domain.arguments) {
        child.arguments[std::size_t(argument)] = b.arguments[std::size_t(argument)];
      }
    }
    if (valid(child)) return child;
  }
  return std::nullopt;
}

bool Space::valid(const Candidate& candidate) const {
  return program(candidate, target_).ok();
}

std::uint64_t Space::hash() const {
  std::uint64_t value = base::hash_combine(codegen::hash(workload_), codegen::hash(target_));
  for (const SketchSpace& sketch : sketches_) {
    value = base::hash_combine(value, codegen::hash(*sketch.sketch));
    for (const Domain& domain : sketch.domains) {
      value = base::hash_combine(value, base::hash_bytes(domain.name));
      for (const int argument : domain.arguments) value = base::hash_combine(value, std::uint64_t(argument));
      for (const std::vector<std::int64_t>& row : domain.values) {
        for (const std::int64_t number : row) value = base::hash_combine(value, std::uint64_t(number));
      }
    }
  }
  return value;
}

}  // namespace graft::codegen
