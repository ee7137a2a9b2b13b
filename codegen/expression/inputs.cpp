#include "codegen/expression/inputs.h"

#include <algorithm>
#include <iterator>

#include "base/random.h"

namespace graft::codegen {
namespace {

// low + u * width for u in [0, 1); all are multiples of 2^-21 or more, of 22 bits at most.
struct Range {
  double low, width;
};
constexpr Range floating_ranges[] = {{-1, 2},       {0x1p-4, 1}, {1, 1},   {2, 8},
                                     {-0x1p-4, -1}, {16, 16},    {-1, -1}, {-16, -16}};
constexpr int usual = 0, count_of_ranges = int(std::size(floating_ranges));

// Multiples of 2^-20 are exact in f32, and products of two of them are not: rounding is exercised. Integers of more
// than a byte stay small, so that sums of products do not overflow; bytes take all values, so that signs matter.
double number_in(int range, DType type, std::uint64_t bits) {
  if (is_floating(type)) {
    const Range& of = floating_ranges[range];
    return of.low + double(bits >> 43) * 0x1p-21 * of.width;
  }
  const bool byte = bytes_of(type) == 1;
  if (range == usual) return byte ? kept(double(bits >> 56), type) : double(bits >> 60) - 8;
  const double positive = double(bits >> (byte ? 58 : 61)) + 1;
  return floating_ranges[range].low < 0 && is_signed(type) ? -positive : positive;
}

// The extent of the shortest dimension that elements of the tensor are indices of; 0: they are used otherwise.
std::int64_t indexed_extent(const Computation& computation, int tensor) {
  std::int64_t shortest = 0;
  for (const Stage& stage : computation.stages) {
    for (const ValueNode& node : stage.value.nodes) {
      if (node.op != Op::load) continue;
      const Access& access = stage.value.loads[std::size_t(node.load)];
      const int operands[] = {node.a, node.b, node.c};
      for (std::size_t g = 0; g < access.gathered.size(); ++g) {
        const Value index = part_of(stage.value, operands[g]);
        const bool is_index = std::any_of(index.loads.begin(), index.loads.end(),
                                          [&](const Access& load) { return load.tensor == tensor; });
        const std::int64_t extent =
            computation.tensors[std::size_t(access.tensor)].shape[std::size_t(access.gathered[g])];
        if (is_index) shortest = shortest == 0 ? extent : std::min(shortest, extent);
      }
    }
  }
  return shortest;
}

// From one below the first index to one above the last: these are answered, too.
double index_in(std::int64_t extent, DType type, std::uint64_t bits) {
  return std::clamp(double(bits % std::uint64_t(extent + 2)) - 1, lowest(type), highest(type));
}

// `indexed`: the extent of what the elements are indices of, or 0.
Elements drawn(const Tensor& tensor, int range, std::int64_t indexed, std::uint64_t seed, base::Monitor& monitor) {
  base::Stream stream(seed, tensor.name);
  Elements elements(tensor.dtype, tensor.elements());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    constexpr std::size_t elements_between_questions = 1 << 20;
    if (i % elements_between_questions == 0) base::check_stop(monitor);
    const std::uint64_t bits = stream.bits();
    elements.set(i, indexed > 0 ? index_in(indexed, tensor.dtype, bits) : number_in(range, tensor.dtype, bits));
  }
  return elements;
}

bool is_partial(Op op) {
  return op == Op::div || op == Op::sqrt || op == Op::rsqrt || op == Op::log || op == Op::pow;
}

bool has_partial_operations(const Computation& computation) {
  return std::any_of(computation.stages.begin(), computation.stages.end(), [](const Stage& stage) {
    return std::any_of(stage.value.nodes.begin(), stage.value.nodes.end(),
                       [](const ValueNode& node) { return is_partial(node.op); });
  });
}

// Ranges for tensors, changed until the computation is defined.
class Choice {
 public:
  Choice(const Computation& computation, std::uint64_t seed, const Undefined& undefined, base::Monitor& monitor)
      : computation_(computation), seed_(seed), undefined_(undefined), monitor_(monitor) {
    operands_.resize(computation.tensors.size());
    ranges_.resize(computation.tensors.size(), usual);
    for (std::size_t t = 0; t < operands_.size(); ++t)
      indexed_.push_back(is_floating(computation.tensors[t].dtype) ? 0 : indexed_extent(computation, int(t)));
    for (std::size_t t = 0; t < operands_.size(); ++t) {
      const Role role = computation.tensors[t].role;
      if (role != Role::input && role != Role::constant) continue;
      own_.push_back(t);
      draw(t, usual);
    }
  }

  void choose() {
    if (undefined_(operands_) == 0) return;
    for (int range = 1; range < count_of_ranges; ++range) {
      for (const std::size_t t : own_) set(t, range);
      if (undefined_(operands_) > 0) continue;
      for (const std::size_t t : own_) {  // those that need not
        set(t, usual);
        if (undefined_(operands_) > 0) set(t, range);
      }
      return;
    }
    for (const std::size_t t : own_) set(t, usual);
    choose_one_by_one();
  }

  std::vector<Elements> operands() && { return std::move(operands_); }

 private:
  void draw(std::size_t t, int range) {
    operands_[t] = drawn(computation_.tensors[t], range, indexed_[t], seed_, monitor_);
  }
  void set(std::size_t t, int range) {
    if (ranges_[t] == range) return;
    ranges_[t] = range;
    draw(t, range);
  }

  // The one change that helps most, as often as one helps.
  void choose_one_by_one() {
    std::int64_t least = undefined_(operands_);
    for (std::size_t changes = 0; changes < own_.size() && least > 0; ++changes) {
      std::size_t best = own_.front();
      int best_range = ranges_[best];
      const std::int64_t before = least;
      for (const std::size_t t : own_) {
        const int present = ranges_[t];
        for (int range = 0; range < count_of_ranges && least > 0; ++range) {
          if (range == present) continue;
          set(t, range);
          const std::int64_t now = undefined_(operands_);
          if (now < least) least = now, best = t, best_range = range;
        }
        set(t, present);
      }
      set(best, best_range);
      if (least == before) return;
    }
  }

  const Computation& computation_;
  const std::uint64_t seed_;
  const Undefined& undefined_;
  base::Monitor& monitor_;
  std::vector<std::size_t> own_;       // inputs and constants
  std::vector<int> ranges_;            // by tensor
  std::vector<std::int64_t> indexed_;  // by tensor
  std::vector<Elements> operands_;
};

}  // namespace

std::vector<Elements> made_inputs(const Computation& computation, std::uint64_t seed, const Undefined& undefined,
                                  base::Monitor& monitor) {
  Choice choice(computation, seed, undefined, monitor);
  if (has_partial_operations(computation)) choice.choose();
  return std::move(choice).operands();
}

}  // namespace graft::codegen
