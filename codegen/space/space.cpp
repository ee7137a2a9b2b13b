#include "codegen/space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/shortened.h"

namespace graft::codegen {
namespace {

constexpr std::size_t most_draws = 10000;
constexpr int most_tries = 32;  // of a mutation or a crossover
constexpr std::size_t most_reasons = 3;
constexpr std::size_t most_looked_at = 256;  // points, for the one nearest to a candidate of another space
constexpr std::int64_t sketch_every = 16;    // mutations

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

// How unlike values of an argument are: 1 for each doubling of a number, and for any two alternatives that are none.
class Scale {
 public:
  Scale(const Sketch& sketch, std::size_t argument)
      : of_texts_(sketch.arguments[argument].alternatives > 0), numbers_(numbers_of(sketch, argument)) {}

  double coordinate(std::int64_t value) const {
    const bool is_number = value >= 0 && value < std::int64_t(numbers_.size());
    const double number = is_number ? numbers_[std::size_t(value)] : double(value);
    return std::copysign(std::log2(1 + std::abs(number)), number);
  }
  double difference(double a, double b) const {
    return of_texts_ && numbers_.empty() ? double(a != b) : std::abs(a - b);
  }

 private:
  bool of_texts_;
  std::vector<double> numbers_;
};

std::vector<Scale> scales_of(const Sketch& sketch) {
  std::vector<Scale> scales;
  for (std::size_t argument = 0; argument < sketch.arguments.size(); ++argument) scales.emplace_back(sketch, argument);
  return scales;
}

std::vector<double> coordinates_of(const std::vector<Scale>& scales, const std::vector<std::int64_t>& arguments) {
  std::vector<double> coordinates;
  for (std::size_t i = 0; i < arguments.size(); ++i) coordinates.push_back(scales[i].coordinate(arguments[i]));
  return coordinates;
}

// For a part with a resolver: what meets all constraints, if that is found near to the candidate.
void meet_constraints(const SketchSpace& part, Candidate& candidate, int kept, base::Stream& stream) {
  if (part.resolver == nullptr || candidate.arguments.size() != part.sketch->arguments.size() ||
      part.resolver->violated(candidate.arguments).empty())
    return;
  base::Result<std::vector<std::int64_t>> met = part.resolver->near(candidate.arguments, kept, stream);
  if (met) candidate.arguments = std::move(met).value();
}

bool in_domains(const SketchSpace& part, const Candidate& candidate) {
  return std::all_of(part.domains.begin(), part.domains.end(), [&](const Domain& domain) {
    for (std::size_t row = 0; row < domain.values.size(); ++row) {
      if (holds(domain, row, candidate.arguments)) return true;
    }
    return false;
  });
}

double points_of(const SketchSpace& sketch) {
  double points = 1;
  for (const Domain& domain : sketch.domains) points *= double(domain.values.size());
  return points;
}

// "a (6012 times), b (388 times)": reasons that differ in their numbers only count as one, shown by its first.
std::string most_frequent(const std::vector<base::Reason>& reasons) {
  struct Kind {
    std::string first;
    int times = 0;
  };
  std::map<std::string, Kind> kinds;
  for (const base::Reason& reason : reasons) {
    std::string form;
    for (const char c : reason.text) {
      const bool digit = c >= '0' && c <= '9';
      if (!digit || form.empty() || form.back() != '#') form += digit ? '#' : c;
    }
    Kind& kind = kinds[form];
    if (kind.times++ == 0) kind.first = reason.text;
  }
  std::vector<Kind> ordered;
  for (const auto& [form, kind] : kinds) ordered.push_back(kind);
  std::stable_sort(ordered.begin(), ordered.end(), [](const Kind& a, const Kind& b) { return a.times > b.times; });
  std::string text;
  for (std::size_t i = 0; i < std::min(ordered.size(), most_reasons); ++i) {
    text += fmt::format("{}{} ({} times)", i > 0 ? ", " : "", ordered[i].first, ordered[i].times);
  }
  return text;
}

// By argument of `sketch`: the position of the same one in `from`; -1 if it has none.
std::vector<int> counterparts(const Sketch& from, const Sketch& sketch) {
  std::vector<int> out;
  for (const Sketch::Argument& argument : sketch.arguments) {
    const int there = from.argument_named(argument.name);
    const bool same = there >= 0 && from.arguments[std::size_t(there)].alternatives == argument.alternatives;
    out.push_back(same ? there : -1);
  }
  return out;
}

using RankedRows = std::vector<std::pair<double, std::size_t>>;  // of a domain, nearest first, with their distances

// By domain of `part`: its rows by their distance to `wanted`, whose `known` arguments are those of the part.
std::vector<RankedRows> rows_near(const SketchSpace& part, const std::vector<int>& known,
                                  const std::vector<std::int64_t>& wanted) {
  const std::vector<Scale> scales = scales_of(*part.sketch);
  std::vector<RankedRows> rows;
  for (const Domain& domain : part.domains) {
    RankedRows distances;
    for (std::size_t row = 0; row < domain.values.size(); ++row) {
      double distance = 0;
      for (std::size_t i = 0; i < domain.arguments.size(); ++i) {
        const auto argument = std::size_t(domain.arguments[i]);
        if (known[argument] < 0) continue;
        const Scale& scale = scales[argument];
        distance += scale.difference(scale.coordinate(wanted[std::size_t(known[argument])]),
                                     scale.coordinate(domain.values[row][i]));
      }
      distances.emplace_back(distance, row);
    }
    std::sort(distances.begin(), distances.end());
    rows.push_back(std::move(distances));
  }
  return rows;
}

}  // namespace

double distance(const SketchSpace& part, const Domain& domain, std::size_t a, std::size_t b) {
  double sum = 0;
  for (std::size_t i = 0; i < domain.arguments.size(); ++i) {
    const Scale scale(*part.sketch, std::size_t(domain.arguments[i]));
    sum += scale.difference(scale.coordinate(domain.values[a][i]), scale.coordinate(domain.values[b][i]));
  }
  return sum;
}

std::vector<std::string> Condition::names_in(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = text.find('$', at)) != std::string_view::npos;) {
    const std::size_t begin = ++at;
    while (at < text.size() && (std::isalnum((unsigned char)text[at]) || text[at] == '_')) ++at;
    names.emplace_back(text.substr(begin, at - begin));
  }
  return names;
}

std::optional<Condition> Condition::on(const Sketch& sketch, std::string_view text, std::string_view place,
                                       std::span<const std::pair<std::string, std::int64_t>> constants) {
  for (const std::string& name : names_in(text))
    if (!name.empty() && sketch.argument_named(name) < 0) return std::nullopt;
  std::vector<std::string> arguments;
  for (const Sketch::Argument& argument : sketch.arguments) arguments.push_back("$" + argument.name);
  return Condition(Constraint(text, arguments, place, constants, Operators::c), sketch);
}

Condition::Condition(Constraint expression, const Sketch& sketch) : expression_(std::move(expression)) {
  constexpr double largest = 9e15;  // whole numbers up to it are exact
  for (const int argument : arguments()) {
    std::vector<std::int64_t>& values = values_.emplace_back();
    for (const double number : numbers_of(sketch, std::size_t(argument))) {
      if (number != std::floor(number) || std::abs(number) > largest) {
        values.clear();
        break;
      }
      values.push_back(std::int64_t(number));
    }
  }
}

std::optional<bool> Condition::truth(std::span<const std::int64_t> given) const {
  std::vector<Scalar> own(arguments().size());
  std::vector<const Scalar*> all(given.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::size_t at = std::size_t(arguments()[i]);
    const std::vector<std::int64_t>& values = values_[i];
    if (!values.empty() && (given[at] < 0 || given[at] >= std::int64_t(values.size()))) return std::nullopt;
    own[i] = values.empty() ? given[at] : values[std::size_t(given[at])];
    all[at] = &own[i];
  }
  return expression_.truth(all);
}

Space::Space(Workload workload, std::vector<SketchSpace> sketches)
    : workload_(std::move(workload)), sketches_(std::move(sketches)) {
  for (const SketchSpace& sketch : sketches_) {
    [[maybe_unused]] std::size_t covered = 0;
    for (const Domain& domain : sketch.domains) {
      covered += domain.arguments.size();
      assert(!domain.values.empty());
    }
    assert(covered == sketch.sketch->arguments.size());
  }
  assert(!sketches_.empty());
  for (const SketchSpace& sketch : sketches_) {
    weights_.push_back(1 + std::ilogb(points_of(sketch)));
    total_weight_ += weights_.back();
  }
}

Space Space::only(std::span<const Candidate> points, Judge& judge) const {
  Space result = *this;
  result.listed_.assign(sketches_.size(), {});
  result.listed_hashes_.clear();
  std::vector<std::vector<Scale>> scales;
  for (const SketchSpace& part : sketches_) scales.push_back(scales_of(*part.sketch));
  for (const Candidate& point : points) {
    const SketchSpace* const part = part_of(point);
    if (!identity(point, judge) || !in_domains(*part, point)) continue;
    if (!result.listed_hashes_.insert(codegen::hash(point)).second) continue;
    const std::size_t at = std::size_t(part - sketches_.data());
    Listed& listed = result.listed_[at];
    listed.points.push_back({workload_, part->sketch, point.arguments});
    listed.coordinates.push_back(coordinates_of(scales[at], point.arguments));
  }
  if (result.listed_hashes_.empty())
    throw base::UserError(base::shortened(workload_.text()), "none of the points given is a schedule of its space");
  result.total_weight_ = 0;
  for (std::size_t s = 0; s < sketches_.size(); ++s) {
    const std::size_t count = result.listed_[s].points.size();
    result.weights_[s] = count == 0 ? 0 : 1 + std::ilogb(double(count));
    result.total_weight_ += result.weights_[s];
  }
  return result;
}

std::vector<Candidate> Space::listed() const {
  std::vector<Candidate> points;
  for (const Listed& each : listed_) points.insert(points.end(), each.points.begin(), each.points.end());
  return points;
}

double Space::size() const {
  if (!listed_.empty()) return double(listed_hashes_.size());
  double total = 0;
  for (const SketchSpace& sketch : sketches_) total += points_of(sketch);
  return total;
}

const SketchSpace* Space::part_of(const Candidate& candidate) const {
  const auto found = std::find_if(sketches_.begin(), sketches_.end(), [&](const SketchSpace& part) {
    return part.sketch == candidate.sketch || *part.sketch == *candidate.sketch;
  });
  return found == sketches_.end() ? nullptr : &*found;
}

base::Result<std::uint64_t> Space::identity_in(const SketchSpace& part, const Candidate& candidate,
                                               Judge& judge) const {
  if (!listed_.empty() && !listed_hashes_.contains(codegen::hash(candidate)))
    return base::Reason{fmt::format("sketch {}: none of the points listed", part.sketch->name)};
  if (candidate.arguments.size() == part.sketch->arguments.size()) {
    for (const Condition& condition : part.forbids) {
      if (condition.forbids(candidate.arguments)) return base::Reason{"forbid " + condition.text()};
    }
    if (part.resolver != nullptr) {
      if (const std::string what = part.resolver->violated(candidate.arguments); !what.empty())
        return base::Reason{"not met: " + what};
    }
  }
  return judge.identity(candidate);
}

base::Result<std::uint64_t> Space::identity(const Candidate& candidate, Judge& judge) const {
  const SketchSpace* const part = part_of(candidate);
  if (part == nullptr) return base::Reason{fmt::format("sketch {}: of another space", candidate.sketch->name)};
  return identity_in(*part, candidate, judge);
}

bool Space::is_listed(const SketchSpace& part) const {
  return !listed_.empty() && !listed_[std::size_t(&part - sketches_.data())].points.empty();
}

const Candidate& Space::listed_near(const SketchSpace& part, const Candidate& candidate, const Candidate* other) const {
  const Listed& listed = listed_[std::size_t(&part - sketches_.data())];
  const std::vector<Scale> scales = scales_of(*part.sketch);
  const std::vector<double> wanted = coordinates_of(scales, candidate.arguments);
  std::size_t nearest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < listed.points.size(); ++i) {
    double distance = 0;
    for (std::size_t a = 0; a < wanted.size() && distance < least; ++a)
      distance += scales[a].difference(wanted[a], listed.coordinates[i][a]);
    if (distance >= least || (other != nullptr && listed.points[i].arguments == other->arguments)) continue;
    nearest = i, least = distance;
  }
  return listed.points[nearest];
}

base::Result<Candidate> Space::admitted(const Candidate& candidate, Judge& judge) const {
  const SketchSpace* const part = part_of(candidate);
  if (part != nullptr && is_listed(*part) && candidate.arguments.size() == part->sketch->arguments.size())
    return listed_near(*part, candidate, nullptr);
  Candidate met = candidate;
  base::Stream stream(codegen::hash(candidate), "admitted");
  if (part != nullptr) meet_constraints(*part, met, -1, stream);
  if (const base::Result<std::uint64_t> found = identity(met, judge); !found) return found.reason();
  return met;
}

base::Result<Candidate> Space::draw(base::Stream& stream, Judge& judge) const {
  std::vector<base::Reason> refused;
  while (refused.size() < most_draws) {
    std::int64_t at = stream.below(total_weight_);
    std::size_t chosen = 0;
    while (at >= weights_[chosen]) at -= weights_[chosen++];
    if (!listed_.empty()) {
      const std::vector<Candidate>& points = listed_[chosen].points;
      return points[std::size_t(stream.below(std::int64_t(points.size())))];
    }
    const SketchSpace& part = sketches_[chosen];
    Candidate candidate{workload_, part.sketch, std::vector<std::int64_t>(part.sketch->arguments.size())};
    if (part.resolver != nullptr) {
      base::Result<std::vector<std::int64_t>> resolved = part.resolver->sample(stream);
      if (!resolved) return resolved.reason();
      candidate.arguments = std::move(resolved).value();
    } else {
      for (const Domain& domain : part.domains) {
        put(domain, std::size_t(stream.below(std::int64_t(domain.values.size()))), candidate.arguments);
      }
    }
    const base::Result<std::uint64_t> result = identity_in(part, candidate, judge);
    if (result) return candidate;
    refused.push_back(result.reason());
  }
  return base::Reason{fmt::format("none of {} points drawn is possible: {}", most_draws, most_frequent(refused))};
}

Candidate Space::sample(base::Stream& stream, Judge& judge) const {
  base::Result<Candidate> result = draw(stream, judge);
  if (!result) throw base::UserError(base::shortened(workload_.text()), result.reason().text);
  return std::move(result).value();
}

base::Result<Candidate> Space::mutate(const Candidate& candidate, base::Stream& stream, Judge& judge) const {
  const SketchSpace* const part = part_of(candidate);
  if (part == nullptr || (sketches_.size() > 1 && stream.below(sketch_every) == 0)) return draw(stream, judge);
  std::vector<const Domain*> open;
  for (const Domain& domain : part->domains) {
    if (domain.values.size() > 1) open.push_back(&domain);
  }
  const auto unchanged = [&](std::string_view why) {
    return base::Reason{fmt::format("sketch {}: nothing to mutate: {}", part->sketch->name, why)};
  };
  if (open.empty()) return unchanged("no domain has a choice");
  std::optional<base::Result<std::uint64_t>> before;  // judged when first needed
  // For a choice among texts every second value changes nothing (the order of loops that vanish); sizes nearly always
  // do.
  const auto changes = [&](const Domain& domain, std::uint64_t after) {
    const bool of_texts = std::any_of(domain.arguments.begin(), domain.arguments.end(), [&](int argument) {
      return part->sketch->arguments[std::size_t(argument)].alternatives > 0;
    });
    if (!of_texts) return true;
    if (!before) before = judge.identity(candidate);
    return !*before || **before != after;
  };
  std::string last = "the same program";
  for (int attempt = 0; attempt < most_tries; ++attempt) {
    const Domain& domain = *open[std::size_t(stream.below(std::int64_t(open.size())))];
    const std::size_t row = std::size_t(stream.below(std::int64_t(domain.values.size())));
    if (holds(domain, row, candidate.arguments)) continue;
    Candidate changed = candidate;
    put(domain, row, changed.arguments);
    if (is_listed(*part)) changed = listed_near(*part, changed, &candidate);
    meet_constraints(*part, changed, domain.arguments.front(), stream);
    if (changed.arguments == candidate.arguments) continue;  // the only point of its sketch
    const base::Result<std::uint64_t> after = identity_in(*part, changed, judge);
    if (after && changes(domain, *after)) return changed;
    last = after ? "the same program" : after.reason().text;
  }
  return unchanged(fmt::format("{} tries, the last one: {}", most_tries, last));
}

base::Result<Candidate> Space::crossover(const Candidate& a, const Candidate& b, base::Stream& stream,
                                         Judge& judge) const {
  const SketchSpace* const part = part_of(a);
  if (part == nullptr || part_of(b) != part) {
    return base::Reason{fmt::format("the parents' sketches differ: {} and {}", a.sketch->name, b.sketch->name)};
  }
  std::string last;
  for (int attempt = 0; attempt < most_tries; ++attempt) {
    Candidate child = a;
    for (const Domain& domain : part->domains) {
      if (stream.below(2) == 0) continue;
      for (const int argument : domain.arguments) {
        child.arguments[std::size_t(argument)] = b.arguments[std::size_t(argument)];
      }
    }
    if (is_listed(*part)) child = listed_near(*part, child, nullptr);
    meet_constraints(*part, child, -1, stream);
    const base::Result<std::uint64_t> result = identity_in(*part, child, judge);
    if (result) return child;
    last = result.reason().text;
  }
  return base::Reason{
      fmt::format("sketch {}: no child in {} tries, the last one: {}", part->sketch->name, most_tries, last)};
}

base::Result<Candidate> Space::nearest(const Candidate& other, Judge& judge) const {
  const Sketch& from = *other.sketch;
  if (other.arguments.size() != from.arguments.size())
    return base::Reason{fmt::format("sketch {}: not as many numbers as arguments", from.name)};
  const SketchSpace* part = part_of(other);
  std::vector<int> known = part == nullptr ? std::vector<int>() : counterparts(from, *part->sketch);
  std::size_t most = 0;
  for (const SketchSpace& each : sketches_) {
    if (part_of(other) != nullptr) break;
    const std::vector<int> there = counterparts(from, *each.sketch);
    const std::size_t common = there.size() - std::size_t(std::count(there.begin(), there.end(), -1));
    const bool like = each.sketch->name == from.name && 2 * common >= std::max(there.size(), from.arguments.size());
    if (!like || (part != nullptr && common <= most)) continue;
    part = &each, most = common, known = there;
  }
  if (part == nullptr) return base::Reason{fmt::format("sketch {}: nothing like it in this space", from.name)};

  const std::vector<RankedRows> rows = rows_near(*part, known, other.arguments);
  // Points by their distance: each one leads to those that take the next row of one domain.
  using Ranks = std::vector<std::size_t>;
  const auto distance_of = [&](const Ranks& ranks) {
    double sum = 0;
    for (std::size_t d = 0; d < ranks.size(); ++d) sum += rows[d][ranks[d]].first;
    return sum;
  };
  std::priority_queue<std::pair<double, Ranks>, std::vector<std::pair<double, Ranks>>, std::greater<>> open;
  std::set<Ranks> seen;
  const Ranks first(rows.size(), 0);
  open.emplace(distance_of(first), first);
  seen.insert(first);
  std::vector<base::Reason> refused;
  while (!open.empty() && refused.size() < most_looked_at) {
    const Ranks ranks = open.top().second;
    open.pop();
    Candidate candidate{workload_, part->sketch, std::vector<std::int64_t>(part->sketch->arguments.size())};
    for (std::size_t d = 0; d < ranks.size(); ++d) put(part->domains[d], rows[d][ranks[d]].second, candidate.arguments);
    base::Result<Candidate> result = admitted(candidate, judge);
    if (result) return result;
    refused.push_back(result.reason());
    for (std::size_t d = 0; d < ranks.size(); ++d) {
      Ranks next = ranks;
      if (++next[d] < rows[d].size() && seen.insert(next).second) open.emplace(distance_of(next), std::move(next));
    }
  }
  return base::Reason{fmt::format("sketch {}: no schedule near to it: {}", from.name, most_frequent(refused))};
}

int Space::choices_apart(const Candidate& a, const Candidate& b) const {
  const SketchSpace* const part = part_of(a);
  if (part == nullptr || part_of(b) != part) return std::numeric_limits<int>::max();
  return int(std::count_if(part->domains.begin(), part->domains.end(), [&](const Domain& domain) {
    return std::any_of(domain.arguments.begin(), domain.arguments.end(), [&](int argument) {
      return a.arguments[std::size_t(argument)] != b.arguments[std::size_t(argument)];
    });
  }));
}

std::uint64_t Space::hash() const {
  std::uint64_t value = codegen::hash(workload_);
  for (const SketchSpace& sketch : sketches_) {
    value = base::hash_combine(value, codegen::hash(*sketch.sketch));
    for (const Domain& domain : sketch.domains) {
      value = base::hash_combine(value, base::hash_bytes(domain.name));
      for (const int argument : domain.arguments) value = base::hash_combine(value, std::uint64_t(argument));
      for (const std::vector<std::int64_t>& row : domain.values) {
        for (const std::int64_t number : row) value = base::hash_combine(value, std::uint64_t(number));
      }
    }
    for (const Condition& condition : sketch.forbids) value = base::hash_combine(value, condition.hash());
    if (sketch.resolver != nullptr) value = base::hash_combine(value, sketch.resolver->hash());
  }
  for (const Listed& listed : listed_) {
    for (const Candidate& point : listed.points) value = base::hash_combine(value, codegen::hash(point));
  }
  return value;
}

}  // namespace graft::codegen
