#include "codegen/expression/inputs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

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

// From one below the first index to one above the last: these are answered, too.
double index_in(std::int64_t extent, DType type, std::uint64_t bits) {
  return std::clamp(double(bits % std::uint64_t(extent + 2)) - 1, lowest(type), highest(type));
}

// What numbers of a tensor are drawn from.
struct Drawn {
  int range = usual;
  std::int64_t indexed = 0;       // the extent of what the elements are indices of, or 0
  std::vector<double> seen = {};  // in the tensor's type; empty: nothing is seen, and the range counts
  double number(DType type, std::uint64_t bits) const {
    if (!seen.empty()) return seen[std::size_t(bits % seen.size())];
    return indexed > 0 ? index_in(indexed, type, bits) : number_in(range, type, bits);
  }
};

Elements drawn(const Tensor& tensor, const Drawn& from, std::uint64_t seed, base::Monitor& monitor) {
  base::Stream stream(seed, tensor.name);
  Elements elements(tensor.dtype, tensor.elements());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    constexpr std::size_t elements_between_questions = 1 << 20;
    if (i % elements_between_questions == 0) base::check_stop(monitor);
    elements.set(i, from.number(tensor.dtype, stream.bits()));
  }
  return elements;
}

// Those of the numbers that the type has, as it has them.
std::vector<double> in_type(const std::vector<double>& numbers, DType type) {
  std::vector<double> all;
  for (const double number : numbers) {
    if (is_floating(type))
      all.push_back(rounded_to(number, type));
    else if (number >= lowest(type) && number <= highest(type))
      all.push_back(std::trunc(number));
  }
  return all;
}

bool is_partial(Op op) {
  return op == Op::div || op == Op::sqrt || op == Op::rsqrt || op == Op::log || op == Op::pow;
}

// Sums and products of such numbers may not be finite in single precision.
bool is_huge(double number) {
  return std::abs(number) > 0x1p64;
}

bool has_partial_operations(const Computation& computation) {
  return std::any_of(computation.stages.begin(), computation.stages.end(), [](const Stage& stage) {
    return std::any_of(stage.value.nodes.begin(), stage.value.nodes.end(),
                       [](const ValueNode& node) { return is_partial(node.op) || is_huge(node.number); });
  });
}

// Ranges for tensors, changed until the computation is defined.
class Choice {
 public:
  Choice(const Computation& computation, std::uint64_t seed, const Seen* seen, const Undefined& undefined,
         base::Monitor& monitor)
      : computation_(computation), seed_(seed), undefined_(undefined), monitor_(monitor) {
    operands_.resize(computation.tensors.size());
    from_.resize(computation.tensors.size());
    for (std::size_t t = 0; t < operands_.size(); ++t) {
      const Tensor& tensor = computation.tensors[t];
      if (tensor.role != Role::input && tensor.role != Role::constant) continue;
      own_.push_back(t);
      from_[t].indexed = is_floating(tensor.dtype) ? 0 : indexed_extent(computation, int(t));
      if (const auto known = seen ? seen->find(tensor.name) : Seen::const_iterator(); seen && known != seen->end())
        from_[t].seen = in_type(known->second, tensor.dtype);
      draw(t);
    }
  }

  bool sees(bool (*is)(double)) const {
    return std::any_of(from_.begin(), from_.end(),
                       [&](const Drawn& from) { return std::any_of(from.seen.begin(), from.seen.end(), is); });
  }

  void choose() {
    // What is infinite in the network may make results infinite here.
    if (undefined_(operands_) == 0 || sees([](double number) { return std::isinf(number); })) return;
    for (const std::size_t t : own_) {
      if (from_[t].seen.empty()) continue;
      from_[t].seen.clear();
      draw(t);
    }
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
  void draw(std::size_t t) { operands_[t] = drawn(computation_.tensors[t], from_[t], seed_, monitor_); }
  void set(std::size_t t, int range) {
    if (from_[t].range == range) return;
    from_[t].range = range;
    draw(t);
  }

  // The one change that helps most, as often as one helps.
  void choose_one_by_one() {
    std::int64_t least = undefined_(operands_);
    for (std::size_t changes = 0; changes < own_.size() && least > 0; ++changes) {
      std::size_t best = own_.front();
      int best_range = from_[best].range;
      const std::int64_t before = least;
      for (const std::size_t t : own_) {
        const int present = from_[t].range;
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
  std::vector<std::size_t> own_;  // inputs and constants
  std::vector<Drawn> from_;       // by tensor
  std::vector<Elements> operands_;
};

}  // namespace

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

const Seen* InputSource::of(const std::string& workload) const {
  if (!seen) return nullptr;
  const auto found = seen->find(workload);
  return found == seen->end() ? nullptr : &found->second;
}

std::vector<Elements> made_inputs(const Computation& computation, std::uint64_t seed, const Seen* seen,
                                  const Undefined& undefined, base::Monitor& monitor) {
  Choice choice(computation, seed, seen, undefined, monitor);
  if (has_partial_operations(computation) || choice.sees(is_huge)) choice.choose();
  return std::move(choice).operands();
}

}  // namespace graft::codegen
