// What a search chooses from: the points of sketches with a domain for every argument. Derived by rule from any
// computation (schedule/rules.h), from a user's file (schedule/template.h), or from the columns of a table. Only
// combinatorics: what a point comes to, and whether that is possible at all, a judge says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "codegen/expression/workload.h"
#include "codegen/space/candidate.h"
#include "codegen/space/constraint.h"
#include "codegen/space/sketch.h"

namespace graft::codegen {

// The joint values of `arguments` (positions in the sketch): each row of `values` fills them all. Tile sizes of one
// axis are one domain, so that every row is a valid chain.
struct Domain {
  std::string name;
  std::vector<int> arguments;
  std::vector<std::vector<std::int64_t>> values;
  bool operator==(const Domain&) const = default;
};

// Finds arguments that meet constraints together, where draws alone would hardly find any. May be asked by several
// threads at once.
class Resolver {
 public:
  virtual ~Resolver() = default;
  // Which constraint the arguments do not meet; "" if they meet all.
  virtual std::string violated(std::span<const std::int64_t> arguments) const = 0;
  virtual base::Result<std::vector<std::int64_t>> sample(base::Stream& stream) const = 0;
  // Arguments that meet all, near to these; argument `kept` as it is (-1: none).
  virtual base::Result<std::vector<std::int64_t>> near(std::span<const std::int64_t> arguments, int kept,
                                                       base::Stream& stream) const = 0;
  virtual std::uint64_t hash() const = 0;
};

// What a user's file forbids, by the arguments of a sketch.
class Condition {
 public:
  // nullopt if it is about arguments ('$name') that the sketch lacks. UserError at `place` as Constraint.
  static std::optional<Condition> on(const Sketch& sketch, std::string_view text, std::string_view place,
                                     std::span<const std::pair<std::string, std::int64_t>> constants);
  // The names in a text, in order.
  static std::vector<std::string> names_in(std::string_view text);

  const std::string& text() const { return expression_.text(); }
  const std::vector<int>& arguments() const { return expression_.parameters(); }  // positions in the sketch
  // nullopt if it has no value there: then it forbids the point, too.
  std::optional<bool> truth(std::span<const std::int64_t> arguments) const;
  bool forbids(std::span<const std::int64_t> arguments) const { return truth(arguments).value_or(true); }
  std::uint64_t hash() const { return expression_.hash(); }

 private:
  Condition(Constraint expression, const Sketch& sketch);
  Constraint expression_;
  // By argument that occurs: a column's whole numbers; none: the argument itself.
  std::vector<std::vector<std::int64_t>> values_;
};

struct SketchSpace {
  std::shared_ptr<const Sketch> sketch;
  std::vector<Domain> domains;  // every argument of the sketch in exactly one
  std::vector<Condition> forbids = {};
  std::shared_ptr<const Resolver> resolver = nullptr;  // of further constraints; null: none
};

// The distance of two rows of one of the sketch's domains: the sum of |log2((1 + a) / (1 + b))| over its arguments, 1
// for each choice among texts that differs.
double distance(const SketchSpace& part, const Domain& domain, std::size_t a, std::size_t b);

// What the points of a space come to. May be asked by several threads at once.
class Judge {
 public:
  virtual ~Judge() = default;
  // Never 0, and equal for candidates that come to the same; or the reason why nothing can be made of it.
  virtual base::Result<std::uint64_t> identity(const Candidate& candidate) = 0;
};

class Space {
 public:
  Space(Workload workload, std::vector<SketchSpace> sketches);

  const Workload& workload() const { return workload_; }
  const std::vector<SketchSpace>& sketches() const { return sketches_; }

  // The same space restricted to these points, for example recorded programs: everything sampled, mutated
  // or crossed is one of them. Points that are not valid or in no row of their domains are left out. UserError if
  // none is left.
  Space only(std::span<const Candidate> points, Judge& judge) const;
  std::vector<Candidate> listed() const;  // the points of a restricted space
  // Number of points (some are forbidden or beyond limits); as a double because products exceed 64 bits.
  double size() const;
  // What the candidate comes to; a Reason if it is none of this space: its sketch belongs to another, a condition
  // forbids it, or the judge refuses it. Whether its arguments are in their domains is not checked.
  base::Result<std::uint64_t> identity(const Candidate& candidate, Judge& judge) const;

  // The candidate if it is valid, else the reason; in a restricted space, the point nearest to it, of the
  // same sketch.
  base::Result<Candidate> admitted(const Candidate& candidate, Judge& judge) const;

  // The results of these three are valid. They draw from `stream` alone: the same stream gives the same candidates.
  //
  // Draws a sketch, then uniformly one of its valid points (by rejection). A sketch's weight is the number of bits that
  // number its points: with weights by their count, a small sketch would never be drawn, and without weights one with
  // hardly a choice would be drawn again and again. Throws UserError with the workload and the most frequent reasons if
  // 10,000 draws in a row were refused.
  Candidate sample(base::Stream& stream, Judge& judge) const;
  // Redraws one domain of the candidate (another row than before) until the result is valid: at most 32 tries. A
  // choice among texts must change what it comes to, too; the order of loops that vanish, for example, does not. One
  // mutation in sixteen changes the sketch (a fresh sample), as does a candidate of another space.
  base::Result<Candidate> mutate(const Candidate& candidate, base::Stream& stream, Judge& judge) const;
  // Takes every domain from one of the parents, at most 32 tries. A Reason also if their sketches differ.
  base::Result<Candidate> crossover(const Candidate& a, const Candidate& b, base::Stream& stream, Judge& judge) const;
  // The valid point of this space nearest to `other`, for example a candidate of this operator with other extents: from
  // the sketch with its name that has most of its arguments, each domain's row with the least sum of
  // |log2((1 + a) / (1 + b))| over the arguments that both have (1 for each choice among texts that differs). Where
  // these rows together are not a schedule, the next ones by the sum over domains are tried, at most 256 in total. A
  // Reason if no sketch has half of its arguments, or none of these points is valid.
  base::Result<Candidate> nearest(const Candidate& other, Judge& judge) const;
  // Number of domains in which two candidates of this space differ; for those of different sketches INT_MAX.
  int choices_apart(const Candidate& a, const Candidate& b) const;
  // Hash of workload, sketches, domains, conditions, and the points of a restricted space.
  std::uint64_t hash() const;

 private:
  base::Result<Candidate> draw(base::Stream& stream, Judge& judge) const;
  const SketchSpace* part_of(const Candidate& candidate) const;  // null: it belongs to another space
  // What a candidate of `part` comes to.
  base::Result<std::uint64_t> identity_in(const SketchSpace& part, const Candidate& candidate, Judge& judge) const;
  bool is_listed(const SketchSpace& part) const;  // the space is restricted, and this sketch has points
  // The point of `listed_` nearest to the candidate; `other` only if there is no other point.
  const Candidate& listed_near(const SketchSpace& part, const Candidate& candidate, const Candidate* other) const;

  // The points of a sketch in a restricted space.
  struct Listed {
    std::vector<Candidate> points;
    std::vector<std::vector<double>> coordinates;  // by point and argument; distances of points are differences
  };
  Workload workload_;
  std::vector<SketchSpace> sketches_;
  std::vector<std::int64_t> weights_;  // by sketch
  std::int64_t total_weight_ = 0;
  std::vector<Listed> listed_;  // by sketch; empty: all points
  std::unordered_set<std::uint64_t> listed_hashes_;
};

}  // namespace graft::codegen
