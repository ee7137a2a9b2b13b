// Evaluates the value of a stage in double precision, with a bound of its rounding error, at many points at a time: one
// operation of the expression is a loop over a batch of points, so that what it costs to find out which operation it is
// is paid once a batch. Used by reference.cpp alone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/monitor.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/elements.h"
#include "codegen/expression/walk.h"

namespace graft::codegen {

// The values and error bounds of a tensor. Floating point: |error| <= depth * eps(dtype) * magnitude. Integers: the
// magnitude is the largest difference itself, not 0 only where rounding decides which integer comes out.
struct Data {
  Elements value;
  Elements magnitude;      // empty: |value|, of integers 0; of a sample where the value is
  std::int64_t depth = 0;  // roundings on the longest chain that leads to an element
};

// The error that a magnitude allows.
double error_of(double magnitude, DType type, std::int64_t depth);
// The magnitude with which a result of that depth may be off by `size`. Later depths are no smaller.
double room_for(double size, DType type, std::int64_t depth);
// For each node of a stage's value: roundings on the longest chain that leads to it, in units of eps of the node's
// type.
std::vector<std::int64_t> depths_of(const Computation& computation, const Stage& stage, const std::vector<Data>& data);
// Roundings on the longest chain that leads to an element of a stage's tensor.
std::int64_t depth_of(const Computation& computation, const Stage& stage, const std::vector<Data>& data);

class Evaluator {
 public:
  // What is computed: numbers of a node, converted to a type and combined over the axes of `terms`, for each point of
  // the axes of `elements`. Other axes stay at 0. `target`: where an element is stored.
  struct Task {
    int node = 0;
    DType type = DType::f32;
    Combine combine = Combine::none;
    std::vector<std::size_t> elements, terms;
    Form target;
  };
  static Task task_of(const Computation& computation, const Stage& stage);

  // Without `magnitudes` only values. Stage and data must outlive it.
  Evaluator(const Computation& computation, const Stage& stage, const std::vector<Data>& data, Task task,
            bool magnitudes);

  // Elements are numbered in the order of their axes.
  std::int64_t elements() const { return of_elements_.points(); }
  // False: every magnitude is 0, or not asked for.
  bool has_magnitude() const { return has_result_; }
  // Points of all terms of an element.
  std::int64_t terms() const { return of_terms_.points(); }

  // What is written: of element e at its target, or at its place in a list.
  struct Results {
    std::vector<double> value, magnitude;  // magnitudes where there are any
  };
  // `count` elements from `first` on: of this list (rising), or of all if it is empty.
  void run(std::span<const std::int64_t> list, std::int64_t first, std::int64_t count, Results& out,
           base::Monitor& monitor);

  // Calls see(load, offset) for everything that an element reads inside of its tensor, other than at indices that are
  // values.
  using See = std::function<void(std::size_t load, std::int64_t offset)>;
  void reads(std::int64_t element, base::Monitor& monitor, const See& see);

 private:
  struct Load {
    const Data* data;
    DType type;
    std::size_t offset;                                            // numbers of the walks
    std::vector<std::pair<std::size_t, std::int64_t>> dimensions;  // padded: index and extent of each dimension
    std::vector<std::pair<std::int64_t, std::int64_t>> gathered;   // extent and stride of each dimension gathered along
    double outside;
  };
  // Lanes of a batch that are consecutive points of a row.
  struct Run {
    std::size_t first, count;
  };
  // The numbers of a node by lane; no magnitude: 0 everywhere.
  struct Numbers {
    const double* value;
    const double* magnitude;
  };

  std::size_t track(const Form& form);
  bool moves(const Form& form, const std::vector<std::size_t>& axes) const;
  void track_load(const Computation& computation, const Access& access);
  void mark_node(std::size_t node, const std::vector<std::array<bool, 2>>& of_leaves);
  bool has_magnitude(std::size_t node) const;
  bool has_magnitude_as(int node, DType to) const;

  const Walk& lane_walk() const { return lanes_are_elements_ ? of_elements_ : of_terms_; }
  const Walk& step_walk() const { return lanes_are_elements_ ? of_terms_ : of_elements_; }
  std::int64_t at(std::size_t number, std::size_t run) const;  // of the first lane of a run
  void begin_lanes();
  void add_lanes(Walk& walk, std::int64_t first, std::int64_t count);
  std::pair<std::int64_t, std::int64_t> inside(const Load& load, std::size_t run) const;

  void run_by_elements(std::span<const std::int64_t> list, std::int64_t first, std::int64_t end, Results& out,
                       base::Monitor& monitor);
  void run_by_terms(std::span<const std::int64_t> list, std::int64_t first, std::int64_t end, Results& out,
                    base::Monitor& monitor);
  void ask(base::Monitor& monitor);
  Numbers evaluated(bool all);
  void combine(const Numbers& with);
  void fold(const Numbers& lanes, double& value, double& magnitude) const;

  void evaluate(std::size_t node);
  double* value_of(std::size_t node) { return &values_[node * width]; }
  double* magnitude_of(std::size_t node) { return has_[node] ? &magnitudes_[node * width] : nullptr; }
  Numbers own(int node) const;
  Numbers converted(int node, DType to, bool saturate, std::size_t place);
  void load(std::size_t node);
  void gather(std::size_t node, std::size_t run, std::int64_t low, std::int64_t high);
  void place(std::size_t node);
  void copy(std::size_t node, const Numbers& from);
  void compare(std::size_t node);
  void choose(std::size_t node);
  void floating(std::size_t node);
  template <bool fast>
  void special(Op op, const Numbers& a, const Numbers& b, double* v, double* m) const;
  void integer(std::size_t node);

  static constexpr std::size_t width = 256;  // lanes of a batch

  const Stage& stage_;
  const Task task_;
  const bool with_magnitudes_;
  const std::vector<NodeType> types_;       // by node
  const std::vector<std::int64_t> depths_;  // by node
  Walk of_elements_, of_terms_;             // track the same numbers, of which one is the sum of both
  std::size_t target_ = 0;                  // a number of the walks
  std::vector<Load> loads_;
  std::vector<std::size_t> positions_;  // numbers of the walks
  // By node: whether the task needs it, whether it may have a magnitude other than 0, and along which axes it varies.
  std::vector<char> needed_, has_;
  std::vector<std::array<bool, 2>> varies_;  // elements, terms
  bool has_result_ = false, lanes_are_elements_ = true;
  std::int64_t points_ = 0;  // since the last question

  // The present batch: its lanes are points of one walk, and steps go through the points of the other.
  std::vector<Run> runs_;
  std::vector<std::int64_t> starts_;  // by run: the numbers of its first lane
  std::size_t lanes_ = 0;
  std::vector<double> values_, magnitudes_;  // by node and lane
  std::vector<double> places_;               // of what is converted
  std::vector<double> sums_, sizes_;         // by lane
};

}  // namespace graft::codegen
