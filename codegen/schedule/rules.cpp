#include "codegen/schedule/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "codegen/expression/padding.h"
#include "codegen/schedule/block_sums.h"
#include "codegen/schedule/group_rules.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/product_rows.h"
#include "codegen/schedule/restructure.h"
#include "codegen/schedule/rule_parts.h"
#include "codegen/schedule/splits.h"
#include "codegen/schedule/window_rows.h"

namespace graft::codegen {
namespace {

constexpr std::int64_t largest_register_tile = 28;  // of one axis; larger ones exceed any register file
constexpr std::int64_t largest_vector_tile = 6;     // vectors side by side
constexpr std::int64_t largest_unroll = 8;          // of one reduction axis
constexpr std::size_t most_orders = 6;              // alternatives for the loops of one group
constexpr std::int64_t least_halved_lanes = 8;      // from here on vectors of half the width are tried, too
constexpr std::int64_t largest_row_block = 16;      // rows of which all stages are computed before the next ones
constexpr std::int64_t row_block_bytes = 1 << 18;   // what these may keep between their stages
constexpr std::int64_t largest_row_tile = 8;        // rows that are reduced side by side
constexpr std::int64_t largest_row_vectors = 4;     // vectors side by side along a row

// ---- what an axis and an operand allow ----

struct VectorAxis {
  int axis = -1;            // -1: scalar code
  std::vector<int> packed;  // constants that must be packed for it
};

std::vector<VectorAxis> vector_axes(const Computation& computation, const Stage& stage, std::int64_t lanes) {
  std::vector<VectorAxis> result;
  if (lanes > 1) {
    const std::vector<int> packable = packable_tensors(computation, stage);
    for (int axis = 0; axis < computation.spatial_axes(stage); ++axis) {
      if (stage.axes[std::size_t(axis)].extent < shortest_vector_axis) continue;
      VectorAxis candidate{axis, {}};
      bool possible = true, moves_constant = false;
      for (const Access& access : stage.value.loads) {
        const std::int64_t stride = stride_along(computation, access, axis);
        const bool constant = computation.tensors[std::size_t(access.tensor)].role == Role::constant;
        moves_constant |= constant && stride != 0;
        if (stride >= 0 && stride <= 2) continue;
        const bool packs = constant && std::find(packable.begin(), packable.end(), access.tensor) != packable.end();
        if (packs) candidate.packed.push_back(access.tensor);
        possible &= packs;
      }
      // Results with a stride are scattered lane by lane: worth it only for axes along which weights vary.
      const bool contiguous = axis == computation.spatial_axes(stage) - 1;
      if (possible && (contiguous || moves_constant)) result.push_back(std::move(candidate));
    }
  }
  if (result.empty()) result.push_back({});
  return result;
}

// ---- domains ----

// (s1, s2, s3) or, for the vector axis, (s1, s2, s3, lanes).
std::vector<std::vector<std::int64_t>> spatial_tiles(std::int64_t extent, std::int64_t lanes) {
  std::vector<std::vector<std::int64_t>> result;
  std::vector<std::vector<std::int64_t>> inner;  // (s3) or (s3, lanes)
  if (lanes <= 1) {
    for (const std::int64_t size : register_tiles(extent, largest_register_tile)) inner.push_back({size});
  } else {
    std::set<std::int64_t> widths = {std::min(lanes, extent)};
    // Half a vector wastes half of the unit; it pays if it leaves a smaller tail.
    if (lanes >= least_halved_lanes && extent >= lanes / 2 && extent % lanes != 0) widths.insert(lanes / 2);
    for (const std::int64_t width : widths) {
      for (std::int64_t count = 1; count <= largest_vector_tile; ++count) {
        if (count == 5 || (count > 1 && width * (count - 1) >= extent)) continue;
        inner.push_back({width * count, width});
      }
    }
  }
  for (const std::vector<std::int64_t>& last : inner) {
    for (const std::int64_t s2 : multiples(last[0], extent)) {
      for (const std::int64_t s1 : multiples(s2, extent)) {
        std::vector<std::int64_t> row = {s1, s2};
        row.insert(row.end(), last.begin(), last.end());
        result.push_back(std::move(row));
      }
    }
  }
  return result;
}

// (t1, t2): a tile and an unroll.
std::vector<std::vector<std::int64_t>> reduction_tiles(std::int64_t extent) {
  std::vector<std::vector<std::int64_t>> result;
  for (const std::int64_t t2 : register_tiles(extent, largest_unroll)) {
    for (const std::int64_t t1 : multiples(t2, extent)) result.push_back({t1, t2});
  }
  return result;
}

// ---- the sketch of one stage ----

// Orders of a group's loops: all of them up to three loops, else the rotations.
std::vector<std::string> orders(std::vector<std::string> loops) {
  std::vector<std::string> result;
  std::vector<std::size_t> index(loops.size());
  for (std::size_t i = 0; i < index.size(); ++i) index[i] = i;
  const bool all = loops.size() <= 3;
  do {
    std::vector<std::string> ordered;
    for (const std::size_t i : index) ordered.push_back(loops[i]);
    result.push_back(joined(ordered));
    if (!all) std::rotate(index.begin(), index.begin() + 1, index.end());
  } while ((all ? std::next_permutation(index.begin(), index.end()) : index[0] != 0) && result.size() < most_orders);
  return result;
}

// Element-wise stages that only this one reads, and that reduce nothing: padding copies and the like.
std::vector<int> absorbable_producers(const Computation& computation, int number) {
  std::vector<int> result;
  for (int s = 0; s < number; ++s) {
    const Stage& producer = computation.stages[std::size_t(s)];
    const Tensor& tensor = computation.tensors[std::size_t(producer.tensor)];
    if (producer.combine != Combine::none || tensor.role != Role::temporary) continue;
    bool here = false, elsewhere = false;
    for (int reader = 0; reader < int(computation.stages.size()); ++reader) {
      for (const Access& access : computation.stages[std::size_t(reader)].value.loads) {
        if (access.tensor == producer.tensor) (reader == number ? here : elsewhere) = true;
      }
    }
    if (here && !elsewhere) result.push_back(s);
  }
  return result;
}

// The axes of the register tile, those along which vectors are loaded innermost: each broadcast element is then used
// with all of them before the next one takes its register.
std::vector<std::string> register_order(const Stage& stage, const VectorAxis& vector,
                                        std::vector<std::pair<int, std::string>> loops) {
  const auto loads_vectors = [&](const std::pair<int, std::string>& loop) {
    if (vector.axis < 0) return false;
    return std::any_of(stage.value.loads.begin(), stage.value.loads.end(),
                       [&](const Access& access) { return moves(access, vector.axis) && moves(access, loop.first); });
  };
  std::stable_partition(loops.begin(), loops.end(), [&](const auto& loop) { return !loads_vectors(loop); });
  std::vector<std::string> names;
  for (const auto& [axis, name] : loops) names.push_back(name);
  return names;
}

// " by N" if the operand is read in another order than stored: neighbours are then copied together.
std::string blocks_of(const Computation& computation, const Stage& stage, int tensor, const VectorAxis& vector,
                      std::int64_t lanes) {
  if (vector.axis < 0 || computation.tensors[std::size_t(tensor)].role == Role::constant) return "";
  for (const Access& access : stage.value.loads) {
    if (access.tensor == tensor && stride_along(computation, access, vector.axis) != 0) return "";
  }
  return fmt::format(" by {}", lanes);
}

// Whether every operand moves along a spatial axis: nothing is used twice, tiles of it are of no use.
bool is_batch_axis(const Computation& computation, const Stage& stage, int axis) {
  return computation.is_reduction(stage) && stage.value.loads.size() > 1 &&
         std::all_of(stage.value.loads.begin(), stage.value.loads.end(),
                     [&](const Access& access) { return moves(access, axis); });
}

// The stage's outermost loops that do not move the elements read of the tensor. Packed directly above them,
// a block is used again and again while it is still near, and the next one takes its place in the cache.
std::string loops_that_reuse(const Stage& stage, int tensor, const std::vector<std::string>& outermost) {
  std::vector<std::string> result;
  for (int a = 0; a < int(stage.axes.size()); ++a) {
    const std::string loop = stage.axes[std::size_t(a)].name + ".0";
    const bool moved = std::any_of(stage.value.loads.begin(), stage.value.loads.end(),
                                   [&](const Access& access) { return access.tensor == tensor && moves(access, a); });
    if (!moved && std::find(outermost.begin(), outermost.end(), loop) != outermost.end()) result.push_back(loop);
  }
  return joined(result);
}

// Which loops are parallel, for each order of them: the first, the first two, or all; orders are repeated to match.
std::vector<std::string> parallel_loops(std::vector<std::string>& orders) {
  std::vector<std::string> repeated, result;
  for (const std::string& order : orders) {
    const std::vector<std::string_view> loops = base::words(order);
    for (const std::size_t count : std::set<std::size_t>{1, std::min<std::size_t>(2, loops.size()), loops.size()}) {
      repeated.push_back(order);
      result.push_back(base::join(std::vector<std::string>(loops.begin(), loops.begin() + std::ptrdiff_t(count)), " "));
    }
  }
  orders = std::move(repeated);
  return result;
}

// Appends the order of a stage's outermost loops; returns the line that makes them parallel, if there may be tasks for
// all threads.
std::string outermost_order(const std::string& name, const std::string& label, const std::vector<std::string>& loops,
                            double most_tasks, std::int64_t threads, SketchBuilder& builder,
                            std::vector<std::string>& order) {
  if (loops.empty()) return "";
  const std::string argument = label + "_order_s0";
  std::vector<std::string> s0 = orders(loops);
  if (threads <= 1 || most_tasks < double(threads)) {
    order.push_back(builder.choice(argument, s0));
    return "";
  }
  const std::vector<std::string> which = parallel_loops(s0);
  order.push_back(builder.choice(argument, s0));
  return fmt::format("parallel {} {}", name, which.size() == 1 ? which[0] : SketchBuilder::again(argument, which));
}

// `behind_order`, if given, makes a line after the order from the stage's outermost loops.
void add_stage(const Computation& computation, int number, const VectorAxis& vector, std::int64_t lanes,
               std::int64_t threads, const std::function<std::string(const std::string&)>& behind_order,
               SketchBuilder& builder) {
  const Stage& stage = computation.stages[std::size_t(number)];
  const std::string name = name_of(computation, stage), label = argument_name(name);
  std::vector<std::string> s[4], r[3], idle[3];
  std::vector<std::pair<int, std::string>> register_loops;
  std::string vector_loop;
  double most_tasks = 1;
  // The source of a producer's elements: a separate pass, the loads themselves, or a tile.
  struct Origin {
    std::string argument, producer;
    std::vector<std::string> absorb;  // lines, by alternative
  };
  std::vector<Origin> origins;
  for (const int producer : absorbable_producers(computation, number)) {
    const Stage& source = computation.stages[std::size_t(producer)];
    Origin origin{
        fmt::format("{}_{}", label, argument_name(name_of(computation, source))), name_of(computation, source), {""}};
    if (vector.axis < 0 || !pads_along(computation, source, stage, vector.axis)) {
      origin.absorb.push_back(fmt::format("absorb {} {}", name, origin.producer));
    }
    // The third alternative, a tile, is a line after the order.
    origin.absorb.emplace_back();
    builder.line(builder.choice(origin.argument, origin.absorb));
    origins.push_back(std::move(origin));
  }
  for (int a = 0; a < int(stage.axes.size()); ++a) {
    const Axis& axis = stage.axes[std::size_t(a)];
    if (axis.extent == 1) continue;
    const bool spatial = a < computation.spatial_axes(stage);
    const bool vectorised = a == vector.axis;
    if (spatial && !vectorised && is_batch_axis(computation, stage, a)) {
      s[0].push_back(axis.name + ".0");
      continue;
    }
    const auto tiles = spatial ? spatial_tiles(axis.extent, vectorised ? lanes : 1) : reduction_tiles(axis.extent);
    builder.line(fmt::format("tile {} {}{}", name, axis.name, builder.sizes(label + "_" + axis.name, tiles)));
    for (int level = 0; level < (spatial ? 4 : 3); ++level) {
      const std::string loop = fmt::format("{}.{}", axis.name, level);
      // One vector covers all of it: its other loops never iterate, their order does not matter.
      if (vectorised && axis.extent <= lanes && level < 3) {
        idle[level].push_back(loop);
      } else {
        (spatial ? s[level] : r[level]).push_back(loop);
        if (spatial && level == 0) most_tasks *= double(axis.extent) / double(tiles[0][0]);  // the smallest come first
      }
    }
    if (spatial) register_loops.emplace_back(a, fmt::format("{}.3", axis.name));
    if (vectorised) vector_loop = axis.name + ".4";
  }

  s[3] = register_order(stage, vector, std::move(register_loops));

  // S0 S1 R0 S2 R1 R2 S3 v
  std::vector<std::string> order;
  const auto group = [&](const std::string& level, const std::vector<std::string>& loops) {
    if (!loops.empty()) order.push_back(builder.choice(fmt::format("{}_order_{}", label, level), orders(loops)));
  };
  const std::string parallel = outermost_order(name, label, s[0], most_tasks, threads, builder, order);
  order.push_back(joined(idle[0]));
  group("s1", s[1]);
  order.push_back(joined(idle[1]));
  group("r0", r[0]);
  order.push_back(joined(idle[2]));
  group("s2", s[2]);
  group("r1", r[1]);
  order.push_back(joined(r[2]));
  order.push_back(joined(s[3]));
  order.push_back(vector_loop);
  // All axes may be of batches, whose loops are alternatives alone.
  if (!s[3].empty() || !r[0].empty() || s[0].size() > 1) builder.line(fmt::format("order {} {}", name, joined(order)));
  if (!parallel.empty()) builder.line(parallel);
  if (!vector_loop.empty()) builder.line(fmt::format("vector {} {}", name, vector_loop));
  std::vector<std::string> unrolled = r[2];
  unrolled.insert(unrolled.end(), s[3].begin(), s[3].end());
  if (!unrolled.empty()) builder.line(fmt::format("unroll {} {}", name, joined(unrolled)));

  const std::string from_s1 = joined(s[1]), from_r0 = joined(r[0]);
  if (behind_order) builder.line(behind_order(joined({joined(s[0]), from_r0})));
  for (const Origin& origin : origins) {
    std::vector<std::string> compute(origin.absorb.size());
    const std::string& where = s[1].empty() ? from_r0 : from_s1;
    if (!where.empty()) compute.back() = fmt::format("compute {} {} above {}", name, origin.producer, where);
    builder.line(SketchBuilder::again(origin.argument, compute));
  }
  if (!r[0].empty()) {
    const std::string where = label + "_accumulate";
    builder.line(fmt::format("accumulate {} above {}", name, builder.choice(where, {from_r0, joined(r[1])})));
    fuse_consumers(computation, number, where, builder);
    for (const int tensor : packable_tensors(computation, stage)) {
      const Tensor& operand = computation.tensors[std::size_t(tensor)];
      const std::string by = blocks_of(computation, stage, tensor, vector, lanes);
      const std::string pack = fmt::format("pack {} {}{} above ", name, operand.name, by);
      const std::string whole = pack + (s[0].empty() ? from_r0 : joined(s[0]));
      if (std::find(vector.packed.begin(), vector.packed.end(), tensor) != vector.packed.end()) {
        builder.line(whole);
        continue;
      }
      std::vector<std::string> alternatives = {"", whole};
      if (operand.role != Role::constant && !s[1].empty()) {
        const std::string reusing = loops_that_reuse(stage, tensor, s[0]);
        if (!reusing.empty() && reusing != joined(s[0])) alternatives.push_back(pack + reusing);
        alternatives.push_back(pack + from_s1);
        alternatives.push_back(pack + from_r0);
      }
      builder.line(builder.choice(fmt::format("{}_pack_{}", label, argument_name(operand.name)), alternatives));
    }
  } else {
    // A sum over axes of extent 1 is a sum: lanes with a stride must not be read back for it.
    if (computation.is_reduction(stage) && !s[3].empty()) {
      builder.line(fmt::format("accumulate {} above {}", name, joined(s[3])));
    }
    // Operands read once are packed only if vectors need it.
    for (const int tensor : vector.packed) {
      builder.line(fmt::format("pack {} {}{} above {}", name, computation.tensors[std::size_t(tensor)].name,
                               blocks_of(computation, stage, tensor, vector, lanes), joined(s[0])));
    }
  }
}

// One sketch per combination of vector axes; `prefix` are the steps that made this computation.
void add_sketches(const Computation& computation, const Target& target, const std::string& prefix,
                  const std::string& suffix, std::vector<SketchSpace>& result) {
  std::vector<int> main_stages = reductions(computation);
  if (main_stages.empty()) main_stages.push_back(int(computation.stages.size()) - 1);
  std::vector<VectorAxis> chosen(main_stages.size());
  const std::function<void(std::size_t)> choose = [&](std::size_t at) {
    if (at < main_stages.size()) {
      const Stage& stage = computation.stages[std::size_t(main_stages[at])];
      for (VectorAxis& axis : vector_axes(computation, stage, lanes_of(computation, stage, target))) {
        chosen[at] = std::move(axis);
        choose(at + 1);
      }
      return;
    }
    SketchBuilder builder;
    if (!prefix.empty()) builder.line(prefix);
    std::string name;
    for (std::size_t i = 0; i < main_stages.size(); ++i) {
      const Stage& stage = computation.stages[std::size_t(main_stages[i])];
      add_stage(computation, main_stages[i], chosen[i], lanes_of(computation, stage, target), target.threads, {},
                builder);
      name += (i > 0 ? "_" : "") + name_of(computation, stage) +
              (chosen[i].axis < 0 ? "_scalar" : "_by_" + stage.axes[std::size_t(chosen[i].axis)].name);
    }
    result.push_back(builder.finish(name + suffix));
  };
  choose(0);
}

// Sums along memory, one result at a time: split so that a vector of part sums runs along it.
void add_factored_sketches(const Computation& computation, const Target& target, std::vector<SketchSpace>& result) {
  std::string prefix;
  Schedule schedule;
  for (const int number : reductions(computation)) {
    const Stage& stage = computation.stages[std::size_t(number)];
    const std::int64_t lanes = lanes_of(computation, stage, target);
    if (lanes <= 1 || vector_axes(computation, stage, lanes).front().axis >= 0) continue;
    for (int axis = computation.spatial_axes(stage); axis < int(stage.axes.size()); ++axis) {
      const Axis& summed = stage.axes[std::size_t(axis)];
      if (!is_along_memory(computation, stage, axis) || summed.extent % lanes != 0 || summed.extent == lanes) continue;
      schedule.push_back(
          parse_step(fmt::format("rfactor {} {} {}", name_of(computation, stage), summed.name, lanes), "rules"));
      prefix += (prefix.empty() ? "" : "\n") + to_text(schedule.back());
      break;
    }
  }
  if (schedule.empty()) return;
  const base::Result<Restructured> form = restructured(computation, schedule);
  if (form) add_sketches(form->computation, target, prefix, "_factored", result);
}

// ---- rows ----

// The axis of a reduction along memory that gives one result at a time and uses no element twice;
// -1: none.
int summed_axis(const Computation& computation, const Stage& stage, const Target& target) {
  const std::int64_t lanes = lanes_of(computation, stage, target);
  if (!computation.is_reduction(stage) || !stage.index.empty() || lanes <= 1) return -1;
  if (vector_axes(computation, stage, lanes).front().axis >= 0) return -1;
  const bool goes_through = std::any_of(stage.value.loads.begin(), stage.value.loads.end(), [&](const Access& access) {
    for (int axis = 0; axis < int(stage.axes.size()); ++axis) {
      if (stage.axes[std::size_t(axis)].extent > 1 && !moves(access, axis)) return false;
    }
    return true;
  });
  for (int axis = computation.spatial_axes(stage); goes_through && axis < int(stage.axes.size()); ++axis) {
    if (stage.axes[std::size_t(axis)].extent >= 2 * lanes && is_along_memory(computation, stage, axis)) return axis;
  }
  return -1;
}

// Reductions along rows in vectors; where several stages share rows, all of them for a block of rows before the next.
class RowSketch {
 public:
  RowSketch(const Computation& computation, const Target& target) : computation_(computation), target_(target) {
    for (int number = 0; number < int(computation.stages.size()); ++number) {
      const Stage& stage = computation.stages[std::size_t(number)];
      if (is_known_ahead(computation, stage)) continue;
      chain_.push_back(number);
      if (!computation.is_reduction(stage)) continue;
      reductions_.push_back(number);
      summed_[number] = summed_axis(computation, stage, target);
      const int rank = computation.spatial_axes(stage);
      rows_ = reductions_.size() == 1 ? rank : std::min(rows_, rank);
    }
  }

  void add_to(std::vector<SketchSpace>& result) {
    if (!reduces_rows()) return;
    if (goes_by_rows()) {
      result.push_back(chain());
    } else if (reductions_.size() == 1) {
      result.push_back(single(reductions_[0]));
    }
  }

  // Whether all stages are computed for a block of rows before the next one.
  bool goes_by_rows() const {
    if (!reduces_rows() || rows_ == 0) return false;
    const Stage& last = stage(chain_.back());
    const bool has_loops = computation_.spatial_axes(last) > rows_ || summed_.contains(chain_.back()) ||
                           last.axes[std::size_t(rows_) - 1].extent > 1;  // within a block of rows
    const bool is_broadcast = reductions_.size() > 1 || computation_.spatial_axes(last) > rows_;
    return is_broadcast && has_loops && share_rows(computation_, chain_, rows_);
  }

 private:
  const Stage& stage(int number) const { return computation_.stages[std::size_t(number)]; }
  std::string name(int number) const { return name_of(computation_, stage(number)); }

  bool reduces_rows() const {
    return !reductions_.empty() &&
           std::all_of(summed_.begin(), summed_.end(), [](const auto& s) { return s.second >= 0; });
  }

  // Rows of which a block's temporaries fit the cache.
  std::int64_t most_rows() const {
    std::int64_t bytes = 0, rows = 1;
    for (const int number : chain_) {
      if (number != chain_.back()) bytes += computation_.tensors[std::size_t(stage(number).tensor)].bytes();
    }
    for (std::size_t d = 0; d < std::size_t(rows_); ++d) rows *= stage(chain_.back()).axes[d].extent;
    return std::clamp<std::int64_t>(row_block_bytes * rows / std::max<std::int64_t>(1, bytes), 1, largest_row_block);
  }

  // Splits an axis by one size; no effect if it has only one element.
  bool split(int number, int axis, const std::vector<std::vector<std::int64_t>>& sizes, const std::string& more = "") {
    const auto& [along, extent] = stage(number).axes[std::size_t(axis)];
    if (extent == 1) return false;
    const std::string domain = argument_name(name(number)) + "_" + along;
    builder_.line(fmt::format("tile {} {}{}{}", name(number), along, builder_.sizes(domain, sizes), more));
    return true;
  }

  static std::vector<std::string> loops_of(const Stage& stage, int begin, int end) {
    std::vector<std::string> loops;
    for (int axis = begin; axis < end; ++axis) loops.push_back(stage.axes[std::size_t(axis)].name + ".0");
    return loops;
  }

  void in_parallel(int number, int axes) {
    double rows = 1;
    for (int a = 0; a < axes; ++a) rows *= double(stage(number).axes[std::size_t(a)].extent);
    if (target_.threads > 1 && rows >= double(target_.threads))
      builder_.line(fmt::format("parallel {} {}", name(number), joined(loops_of(stage(number), 0, axes))));
  }

  // Several rows side by side, a result for every lane. Returns the loops within a block of rows.
  std::string reduce(int number, bool outermost) {
    const Stage& here = stage(number);
    const int spatial = computation_.spatial_axes(here), summed = summed_[number];
    const std::int64_t lanes = lanes_of(computation_, here, target_);
    std::string side_by_side;
    if (spatial > 0) {
      const Axis& axis = here.axes[std::size_t(spatial) - 1];
      if (split(number, spatial - 1, powers_of_two(1, axis.extent, largest_row_tile))) side_by_side = axis.name + ".1";
    }
    const Axis& along = here.axes[std::size_t(summed)];
    split(number, summed, powers_of_two(lanes, along.extent, largest_row_vectors));
    const std::string reduced = joined(loops_of(here, spatial, int(here.axes.size())));
    builder_.line(fmt::format("order {} {} {}.1", name(number),
                              joined({joined(loops_of(here, 0, spatial)), reduced, side_by_side}), along.name));
    if (outermost) in_parallel(number, spatial);
    if (!side_by_side.empty()) builder_.line(fmt::format("unroll {} {}", name(number), side_by_side));
    builder_.line(fmt::format("accumulate {} above {}", name(number), reduced));
    builder_.line(fmt::format("lanes {} {}.1", name(number), along.name));
    return reduced;
  }

  // Vectors along the rows. Returns the loops within a block of rows, which is one of the outermost loops' iterations
  // if the stage is outermost.
  std::string go_through(int number, bool outermost) {
    const Stage& here = stage(number);
    const int rank = computation_.spatial_axes(here), last = rank - 1;
    const std::int64_t lanes = lanes_of(computation_, here, target_);
    const bool vector = rank > rows_ && lanes > 1 && here.axes[std::size_t(last)].extent >= lanes &&
                        is_along_memory(computation_, here, last);
    if (!vector && !outermost) return "";  // as stages that no step describes
    std::vector<std::string> loops = loops_of(here, 0, rank), within;
    if (outermost) {
      const Axis& row = here.axes[std::size_t(rows_) - 1];
      if (split(number, rows_ - 1, powers_of_two(1, row.extent, most_rows()))) within.push_back(row.name + ".1");
    }
    within.insert(within.end(), loops.begin() + rows_, loops.end());
    loops.resize(std::size_t(rows_));
    const std::string& along = here.axes[std::size_t(last)].name;
    if (vector) {
      split(number, last, powers_of_two(lanes, here.axes[std::size_t(last)].extent, largest_row_vectors),
            fmt::format(" {}", lanes));
      within.push_back(along + ".1");
      within.push_back(along + ".2");
    }
    if (vector || outermost)
      builder_.line(fmt::format("order {} {}", name(number), joined({joined(loops), joined(within)})));
    if (outermost) in_parallel(number, rows_);
    if (vector) {
      builder_.line(fmt::format("vector {} {}.2", name(number), along));
      builder_.line(fmt::format("unroll {} {}.1", name(number), along));
    }
    return joined(within);
  }

  // The step by which the last stage multiplies with one number for each row instead of dividing by it; "" for none.
  std::string reciprocal() const {
    const int last = chain_.back(), rank = computation_.spatial_axes(stage(last));
    if (rank == rows_) return "";
    const Step step{StepKind::reciprocal, name(last), stage(last).axes[std::size_t(rank) - 1].name, {}, {}};
    const base::Result<Restructured> form = restructured(computation_, {step});
    if (!form || form->computation.stages.size() != computation_.stages.size() + 1) return "";
    const Stage& made = form->computation.stages[std::size_t(last)];
    return form->computation.spatial_axes(made) == rows_ ? to_text(step) : "";
  }

  SketchSpace chain() {
    const int last = chain_.back();
    const bool reduces = computation_.is_reduction(stage(last));
    const std::string divides = argument_name(name(last)) + "_reciprocal", inverse = reciprocal();
    if (!inverse.empty()) builder_.line(builder_.choice(divides, {"", inverse}));
    const std::string loops = reduces ? reduce(last, true) : go_through(last, true);
    const std::string_view within = base::words(loops).front();
    if (!inverse.empty()) {
      const std::string compute = fmt::format("compute {0} {0}.reciprocal above {1}", name(last), within);
      builder_.line(SketchBuilder::again(divides, {"", compute}));
    }
    for (std::size_t c = chain_.size() - 1; c-- > 0;)
      builder_.line(fmt::format("compute {} {} above {}", name(last), name(chain_[c]), within));
    std::string label = "rows";
    for (const int number : chain_) {
      const bool sums = computation_.is_reduction(stage(number));
      if (sums) label += "_" + name(number);
      if (number != last) sums ? reduce(number, false) : go_through(number, false);
    }
    return builder_.finish(argument_name(label));
  }

  SketchSpace single(int number) {
    for (const int producer : absorbable_producers(computation_, number)) {
      const std::string argument = fmt::format("{}_{}", argument_name(name(number)), argument_name(name(producer)));
      if (pads_along(computation_, stage(producer), stage(number), summed_[number])) continue;
      const std::string absorb = fmt::format("absorb {} {}", name(number), name(producer));
      builder_.line(builder_.choice(argument, {"", absorb}));
    }
    reduce(number, true);
    fuse_consumers(computation_, number, "", builder_);
    return builder_.finish(
        fmt::format("{}_lanes_of_{}", name(number), stage(number).axes[std::size_t(summed_[number])].name));
  }

  const Computation& computation_;
  const Target& target_;
  std::vector<int> chain_, reductions_;  // stages
  std::map<int, int> summed_;            // by reduction
  int rows_ = 0;                         // leading axes, which all stages have
  SketchBuilder builder_;
};

// ---- a stage with an intrinsic ----

// Whether packing by the intrinsic's loops gives an operand the strides that it wants.
bool packs_as_wanted(const Intrinsic& intrinsic, const Access& wanted) {
  std::int64_t size = 1;
  for (int axis = int(intrinsic.stage().axes.size()) - 1; axis >= 0; --axis) {
    const std::int64_t stride = stride_along(intrinsic.computation, wanted, axis);
    const std::int64_t extent = intrinsic.stage().axes[std::size_t(axis)].extent;
    if (stride == 0 || extent == 1) continue;
    if (stride != size) return false;
    size *= extent;
  }
  return true;
}

// (s1, s2, extent): a tile, a register tile of several of the intrinsic's, the intrinsic's.
std::vector<std::vector<std::int64_t>> tiles_of(std::int64_t axis, std::int64_t extent) {
  std::vector<std::vector<std::int64_t>> result;
  for (const std::int64_t count : register_tiles((axis + extent - 1) / extent, largest_vector_tile)) {
    for (const std::int64_t s1 : multiples(count * extent, axis)) result.push_back({s1, count * extent, extent});
  }
  return result;
}

// Whether an operand moves along the assigned axes as the intrinsic's does.
bool lies_as_wanted(const Computation& computation, const Access& access, const Intrinsic& intrinsic,
                    const Access& wanted, const Assignment& assignment) {
  for (std::size_t a = 0; a < assignment.axes.size(); ++a)
    if (assignment.axes[a] >= 0 &&
        stride_along(computation, access, assignment.axes[a]) != stride_along(intrinsic.computation, wanted, int(a)))
      return false;
  return true;
}

// Whether inputs lie in memory as the intrinsic wants them: packing, which costs time at each run, is of no use.
bool inputs_lie_as_wanted(const Computation& computation, const Stage& stage, const Intrinsic& intrinsic,
                          const Assignment& assignment) {
  for (std::size_t l = 0; l < assignment.loads.size(); ++l) {
    const Access& access = stage.value.loads[std::size_t(assignment.loads[l])];
    if (computation.tensors[std::size_t(access.tensor)].role == Role::constant) continue;
    if (!lies_as_wanted(computation, access, intrinsic, intrinsic.stage().value.loads[l], assignment)) return false;
  }
  return true;
}

// False if an operand can neither be used as stored nor be packed.
bool add_tensorized_stage(const Computation& computation, int number, const Intrinsic& intrinsic,
                          const Assignment& assignment, std::int64_t threads, SketchBuilder& builder) {
  const Stage& stage = computation.stages[std::size_t(number)];
  const std::string name = name_of(computation, stage), label = argument_name(name);
  std::vector<std::string> s[3], r[2], nest(intrinsic.stage().axes.size());
  double most_tasks = 1;
  for (int a = 0; a < int(stage.axes.size()); ++a) {
    const Axis& axis = stage.axes[std::size_t(a)];
    if (axis.extent == 1) continue;
    const auto part = std::find(assignment.axes.begin(), assignment.axes.end(), a);
    const bool is_part = part != assignment.axes.end();
    const std::size_t own = std::size_t(part - assignment.axes.begin());
    const std::int64_t extent = is_part ? intrinsic.stage().axes[own].extent : 1;
    const bool spatial = a < computation.spatial_axes(stage);
    std::vector<std::vector<std::int64_t>> tiles;
    if (spatial && is_part) {
      tiles = tiles_of(axis.extent, extent);
    } else if (spatial) {
      for (const std::int64_t size : register_tiles(axis.extent, largest_register_tile))
        for (const std::int64_t s1 : multiples(size, axis.extent)) tiles.push_back({s1, size});
    } else {
      for (const std::int64_t t1 : multiples(extent, axis.extent)) {
        tiles.push_back({t1});
        if (is_part) tiles.back().push_back(extent);
      }
    }
    builder.line(fmt::format("tile {} {}{}", name, axis.name, builder.sizes(label + "_" + axis.name, tiles)));
    const auto loop = [&](int level) { return fmt::format("{}.{}", axis.name, level); };
    const int levels = spatial ? 3 : 2;
    for (int level = 0; level < levels; ++level) (spatial ? s[level] : r[level]).push_back(loop(level));
    if (is_part) nest[own] = loop(levels);
    if (spatial) most_tasks *= double(axis.extent) / double(tiles[0][0]);  // the smallest come first
  }
  std::erase(nest, "");

  std::vector<std::string> order;
  const auto group = [&](const std::string& which, const std::vector<std::string>& loops) {
    if (!loops.empty()) order.push_back(builder.choice(fmt::format("{}_order_{}", label, which), orders(loops)));
  };
  const std::string parallel = outermost_order(name, label, s[0], most_tasks, threads, builder, order);
  group("s1", s[1]);
  group("r0", r[0]);
  group("r1", r[1]);
  group("s2", s[2]);
  order.push_back(joined(nest));
  builder.line(fmt::format("order {} {}", name, joined(order)));
  if (!parallel.empty()) builder.line(parallel);
  builder.line(fmt::format("unroll {} {}", name, joined(s[2])));
  const std::string where = label + "_accumulate", from_r0 = joined(r[0]);
  const std::string innermost = joined(r[1]) + " " + joined(s[2]);
  builder.line(fmt::format("accumulate {} above {}", name, builder.choice(where, {from_r0, innermost})));
  fuse_consumers(computation, number, where, builder);

  const std::vector<int> packable = packable_tensors(computation, stage, true);
  for (std::size_t l = 0; l < assignment.loads.size(); ++l) {
    const Access& access = stage.value.loads[std::size_t(assignment.loads[l])];
    const Access& wanted = intrinsic.stage().value.loads[l];
    const bool as_it_lies = lies_as_wanted(computation, access, intrinsic, wanted, assignment);
    const Tensor& operand = computation.tensors[std::size_t(access.tensor)];
    const bool packs = std::find(packable.begin(), packable.end(), access.tensor) != packable.end() &&
                       packs_as_wanted(intrinsic, wanted);
    if (!packs && !as_it_lies) return false;
    if (!packs) continue;
    const std::string pack = fmt::format("pack {} {} above ", name, operand.name);
    std::vector<std::string> alternatives;
    if (as_it_lies) alternatives.emplace_back();
    alternatives.push_back(pack + joined(s[0]));
    if (operand.role != Role::constant) {
      alternatives.push_back(pack + joined(s[1]));
      alternatives.push_back(pack + from_r0);
    }
    builder.line(builder.choice(fmt::format("{}_pack_{}", label, argument_name(operand.name)), alternatives));
  }
  builder.line(fmt::format("tensorize {} {} {}", name, intrinsic.name, nest.front()));
  return true;
}

// Steps after which operands that packing cannot turn have neighbours along a reduced axis in groups of `size`,
// innermost: the temporary is stored so, or a copy of a parameter or of what pads it. "" if there are none, or it
// cannot be.
std::string groups_along(const Computation& computation, const Stage& stage, int axis, std::int64_t size) {
  if (stage.axes[std::size_t(axis)].extent % size != 0) return "";
  std::string text;
  const std::vector<int> packable = packable_tensors(computation, stage, true);
  for (const Access& access : stage.value.loads) {
    const std::int64_t stride = stride_along(computation, access, axis);
    if (stride == 0 || stride == 1 || std::find(packable.begin(), packable.end(), access.tensor) != packable.end())
      continue;
    const int dimension = whole_dimension(access.index, axis);
    const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
    if (dimension < 0 || tensor.is_literal()) return "";
    std::string name = tensor.name;
    // What pads has vectors for its rows alone.
    const int writer = computation.stage_writing(access.tensor);
    if (writer < 0 || is_padding_copy(computation.stages[std::size_t(writer)])) {
      name = fmt::format("{}.{}", name_of(computation, stage), tensor.name);
      text += fmt::format("copy {} {}\n", name_of(computation, stage), tensor.name);
    }
    text += fmt::format("layout {}", name);
    for (int d = 0; d < int(tensor.shape.size()); ++d)
      text += d == dimension ? fmt::format(" {}/{}", d, size) : fmt::format(" {}", d);
    text += fmt::format(" {}%{}\n", dimension, size);
  }
  return text;
}

// A computation after steps that restructure it.
struct Form {
  Computation computation;
  std::string steps = {}, suffix = {};    // lines; of its sketches' names
  std::vector<std::string> grouped = {};  // tensors that are stored in groups
};

// Nothing if the steps do not apply.
std::optional<Form> with_steps(const Form& form, const std::string& lines, const std::string& suffix) {
  Schedule schedule;
  for (const std::string_view line : base::split(base::trim(lines), '\n'))
    schedule.push_back(parse_step(line, "rules"));
  base::Result<Restructured> changed = restructured(form.computation, schedule);
  if (!changed) return std::nullopt;
  Form made{std::move(changed.value().computation), form.steps + lines, form.suffix + suffix, form.grouped};
  for (const Step& step : schedule)
    if (step.kind == StepKind::layout) made.grouped.push_back(step.stage);
  return made;
}

int stage_of(const Computation& computation, const std::string& tensor) {
  return computation.stage_writing(computation.tensor_named(tensor));
}

// A stage that stores groups reads vectors along what is contiguous in its source, one for each place in a group.
void add_grouping(const Computation& computation, const std::string& tensor, SketchBuilder& builder) {
  constexpr std::int64_t widths[] = {8, 16};
  const Stage& stage = computation.stages[std::size_t(stage_of(computation, tensor))];
  const int last = int(stage.axes.size()) - 1;
  if (!stage.index.empty() || stage.combine != Combine::none) return;
  for (int axis = last - 1; axis >= 0; --axis) {
    const auto& [along, extent] = stage.axes[std::size_t(axis)];
    const bool is_contiguous =
        std::all_of(stage.value.loads.begin(), stage.value.loads.end(),
                    [&](const Access& access) { return stride_along(computation, access, axis) == 1; });
    if (!is_contiguous || extent < shortest_vector_axis) continue;
    std::vector<std::vector<std::int64_t>> sizes;
    for (const std::int64_t width : widths)
      if (width <= extent) sizes.push_back({width});
    if (sizes.empty()) sizes.push_back({extent});
    builder.line(fmt::format("tile {} {}{}", tensor, along, builder.sizes(argument_name(tensor) + "_" + along, sizes)));
    std::string loops;
    for (int other = 0; other < last; ++other) loops += fmt::format(" {}.0", stage.axes[std::size_t(other)].name);
    const std::string group = stage.axes[std::size_t(last)].name + ".0";
    builder.line(fmt::format("order {}{} {} {}.1", tensor, loops, group, along));
    builder.line(fmt::format("vector {} {}.1", tensor, along));
    builder.line(fmt::format("unroll {} {}", tensor, group));
    return;
  }
}

// Where inputs lie as the intrinsic wants them in some of its places in the stage, only these are taken.
std::vector<Assignment> best_assignments(const Computation& computation, const Stage& stage,
                                         const Intrinsic& intrinsic) {
  std::vector<Assignment> all = assignments(computation, stage, intrinsic), direct;
  std::copy_if(all.begin(), all.end(), std::back_inserter(direct), [&](const Assignment& assignment) {
    return inputs_lie_as_wanted(computation, stage, intrinsic, assignment);
  });
  return direct.empty() ? all : direct;
}

// Whether what the intrinsic sums divides what the stage sums: a rest is summed one by one.
bool sums_without_rest(const Stage& stage, const Intrinsic& intrinsic, const Assignment& assignment) {
  const Stage& own = intrinsic.stage();
  for (int a = intrinsic.computation.spatial_axes(own); a < int(own.axes.size()); ++a) {
    const int axis = assignment.axes[std::size_t(a)];
    if (axis >= 0 && stage.axes[std::size_t(axis)].extent % own.axes[std::size_t(a)].extent != 0) return false;
  }
  return true;
}

// Returns whether there is a sketch in which inputs lie as the intrinsic wants them, and it sums all of them.
bool add_tensorized_form(const Form& form, const std::string& tensor, const Target& target,
                         const IntrinsicPointer& intrinsic, std::vector<SketchSpace>& result) {
  const Computation& computation = form.computation;
  const int number = stage_of(computation, tensor);
  const Stage& stage = computation.stages[std::size_t(number)];
  bool is_direct = false;
  for (const Assignment& assignment : best_assignments(computation, stage, *intrinsic)) {
    SketchBuilder builder;
    for (const std::string_view line : base::split(base::trim(form.steps), '\n'))
      if (!line.empty()) builder.line(std::string(line));
    for (const int other : reductions(computation)) {
      if (other == number) continue;
      const Stage& plain = computation.stages[std::size_t(other)];
      const std::int64_t lanes = lanes_of(computation, plain, target);
      add_stage(computation, other, vector_axes(computation, plain, lanes).front(), lanes, target.threads, {}, builder);
    }
    for (const std::string& grouped : form.grouped) add_grouping(computation, grouped, builder);
    if (!add_tensorized_stage(computation, number, *intrinsic, assignment, target.threads, builder)) continue;
    builder.line(to_text(*intrinsic));
    std::string name = fmt::format("{}_{}", name_of(computation, stage), intrinsic->name);
    for (const int axis : assignment.axes)
      if (axis >= 0) name += "_" + stage.axes[std::size_t(axis)].name;
    result.push_back(builder.finish(argument_name(name + form.suffix)));
    is_direct |= inputs_lie_as_wanted(computation, stage, *intrinsic, assignment) &&
                 sums_without_rest(stage, *intrinsic, assignment);
  }
  return is_direct;
}

// The step after which a product of signed bytes is one of bytes without and bytes with a sign; "" for other products,
// and where both operands are computed in the run: the sums of one of them must be known before.
std::string unsigned_operand(const Computation& computation, const Stage& stage) {
  if (!is_product(stage.value) || stage.value.loads.size() != 2) return "";
  const auto tensor = [&](std::size_t load) -> const Tensor& {
    return computation.tensors[std::size_t(stage.value.loads[load].tensor)];
  };
  if (tensor(0).dtype != DType::i8 || tensor(1).dtype != DType::i8) return "";
  for (const std::size_t load : {0, 1})
    if (tensor(load).role == Role::constant && tensor(1 - load).role != Role::constant)
      return fmt::format("unsign {} {}\n", name_of(computation, stage), tensor(1 - load).name);
  return "";
}

// One sketch per intrinsic, reduction and way in which it holds the intrinsic: as it is, with an operand that loses its
// sign for an intrinsic that wants this, and each with operands stored in groups of what the intrinsic sums.
// Returns whether sums of products of integers or of 16-bit numbers have sketches with inputs that lie as an intrinsic
// wants them, which sums all of them: these do in one instruction what plain ones do in several.
bool add_tensorized_sketches(const Computation& computation, const Target& target,
                             std::span<const IntrinsicPointer> intrinsics, std::vector<SketchSpace>& result) {
  bool any_direct = false;
  for (const IntrinsicPointer& intrinsic : intrinsics) {
    const Stage& own = intrinsic->stage();
    const auto takes = [&](DType type) {
      return std::any_of(own.value.loads.begin(), own.value.loads.end(), [&](const Access& access) {
        return intrinsic->computation.tensors[std::size_t(access.tensor)].dtype == type;
      });
    };
    for (const int number : reductions(computation)) {
      std::vector<Form> forms = {{computation}};
      const std::string unsign = unsigned_operand(computation, computation.stages[std::size_t(number)]);
      std::string tensor = name_of(computation, computation.stages[std::size_t(number)]);
      if (!unsign.empty() && takes(DType::i8) && takes(DType::u8)) {
        auto form = with_steps(forms.front(), unsign, "_unsigned");
        if (!form) continue;
        if (const std::string sum = tensor + ".sum"; form->computation.tensor_named(sum) >= 0) tensor = sum;
        forms = {std::move(*form)};
      }
      const Form first = forms.front();
      const Stage& stage = first.computation.stages[std::size_t(stage_of(first.computation, tensor))];
      const std::vector<Assignment> as_it_is = best_assignments(first.computation, stage, *intrinsic);
      const bool needs_groups =
          as_it_is.empty() || !inputs_lie_as_wanted(first.computation, stage, *intrinsic, as_it_is.front());
      for (int summed = intrinsic->computation.spatial_axes(own); needs_groups && summed < int(own.axes.size());
           ++summed) {
        for (int axis = first.computation.spatial_axes(stage); axis < int(stage.axes.size()); ++axis) {
          const std::string groups = groups_along(first.computation, stage, axis, own.axes[std::size_t(summed)].extent);
          if (groups.empty()) continue;
          auto form = with_steps(first, groups, fmt::format("_groups_of_{}", stage.axes[std::size_t(axis)].name));
          if (form) forms.push_back(std::move(*form));
        }
      }
      const bool does_several = std::any_of(own.value.loads.begin(), own.value.loads.end(), [&](const Access& access) {
        const DType type = intrinsic->computation.tensors[std::size_t(access.tensor)].dtype;
        return !is_floating(type) || computed_in(type) != type;
      });
      for (const Form& form : forms)
        any_direct |= add_tensorized_form(form, tensor, target, intrinsic, result) && does_several;
    }
  }
  return any_direct;
}

// ---- Winograd's stages ----

// A short sum with a literal: unrolled, only its non-zero terms remain.
struct Transform {
  int result = -1, summed = -1;  // axes that index the literal
};

std::optional<Transform> transform_of(const Computation& computation, const Stage& stage) {
  if (stage.combine != Combine::sum || int(stage.axes.size()) != computation.spatial_axes(stage) + 1) return {};
  for (const Access& access : stage.value.loads) {
    if (!computation.tensors[std::size_t(access.tensor)].is_literal()) continue;
    Transform transform{-1, int(stage.axes.size()) - 1};
    for (const Affine& form : access.index) {
      if (form.terms.size() != 1) return {};
      if (form.terms[0].variable != transform.summed) transform.result = form.terms[0].variable;
    }
    if (transform.result >= 0) return transform;
  }
  return {};
}

// The reduction whose results this one reads and nobody else; -1: none.
int reduced_producer(const Computation& computation, int number) {
  for (const Access& access : computation.stages[std::size_t(number)].value.loads) {
    const int writer = computation.stage_writing(access.tensor);
    if (writer < 0) continue;
    const Stage& producer = computation.stages[std::size_t(writer)];
    if (computation.is_reduction(producer) && !is_known_ahead(computation, producer)) return writer;
  }
  return -1;
}

// The stages from the last one to the first, each read by the one before it; empty if there are others.
std::vector<int> winograd_chain(const Computation& form) {
  const std::vector<int> all = reductions(form);
  std::vector<int> chain = {all.back()};
  while (reduced_producer(form, chain.back()) >= 0) chain.push_back(reduced_producer(form, chain.back()));
  if (chain.size() != all.size() || !transform_of(form, form.stages[std::size_t(chain.back())])) return {};
  return chain;
}

// Each stage by itself, or each computed within the one that reads it, under the outermost row of tiles.
class WinogradSketch {
 public:
  WinogradSketch(const Computation& form, const Target& target, const Step& step, std::vector<int> chain)
      : form_(form),
        target_(target),
        chain_(std::move(chain)),
        reader_(form.stages[std::size_t(chain_.back())]),
        argument_(argument_name(step.stage) + "_stages") {
    find_tiles();
    builder_.line(to_text(step));
    std::vector<std::string> absorb = {"", tiles_.empty() ? "" : " "};
    const Vectors vectors = vectors_of(reader_, *transform_of(form_, reader_), lanes_of(form_, reader_, target_));
    const int pads = padding_.empty() ? -1 : form_.stage_writing(form_.tensor_named(padding_));
    if (pads >= 0 && (vectors.axis < 0 || !pads_along(form_, form_.stages[std::size_t(pads)], reader_, vectors.axis)))
      absorb.push_back(fmt::format("absorb {} {}", name_of(form_, reader_), padding_));
    alternatives_ = absorb.size();
    builder_.line(builder_.choice(argument_, absorb));
  }

  SketchSpace made(const std::string& name) {
    for (std::size_t c = 0; c < chain_.size(); ++c) {
      const std::optional<Transform> transform = transform_of(form_, stage(c));
      transform ? add_transform(c, *transform) : add_product(c);
    }
    return builder_.finish(name);
  }

 private:
  using Loops = std::vector<std::string>;

  const Stage& stage(std::size_t c) const { return form_.stages[std::size_t(chain_[c])]; }

  // Tiles step through the data; the outermost axis that does so is theirs.
  void find_tiles() {
    for (const Access& access : reader_.value.loads) {
      for (const Affine& index : access.index) {
        for (const Term& term : index.terms) {
          const Axis& axis = reader_.axes[std::size_t(term.variable)];
          if (tiles_.empty() && term.coefficient > 1 && axis.extent > 1) tiles_ = axis.name;
        }
      }
      const int writer = form_.stage_writing(access.tensor);
      if (writer >= 0) padding_ = name_of(form_, form_.stages[std::size_t(writer)]);
    }
  }

  std::string where_chained(const std::string& separate, const std::string& chained) const {
    std::vector<std::string> alternatives(alternatives_, separate);
    alternatives[1] = tiles_.empty() ? separate : chained;
    return SketchBuilder::again(argument_, alternatives);
  }

  // A stage that is computed within another one has no parallel loops of its own.
  void in_parallel(const std::string& name, const Loops& separate, const Loops& chained) {
    if (target_.threads <= 1) return;
    const auto line = [&](const Loops& loops) {
      return loops.empty() ? "" : fmt::format("parallel {} {}", name, joined(loops));
    };
    builder_.line(where_chained(line(separate), line(chained)));
  }

  // "compute STAGE PRODUCER", the producer being the next stage of the chain; "" for the first one.
  std::string compute(std::size_t c) const {
    if (c + 1 == chain_.size()) return "";
    return fmt::format("compute {} {}", name_of(form_, stage(c)), name_of(form_, stage(c + 1)));
  }

  void add_product(std::size_t c) {
    const std::int64_t lanes = lanes_of(form_, stage(c), target_);
    const auto chained = [&](const std::string& loops) { return where_chained("", compute(c) + " above " + loops); };
    add_stage(form_, chain_[c], vector_axes(form_, stage(c), lanes).back(), lanes, 1,
              compute(c).empty() ? std::function<std::string(const std::string&)>{} : chained, builder_);
    Loops outermost;
    for (int axis = 0; axis < form_.spatial_axes(stage(c)); ++axis) {
      const Axis& spatial = stage(c).axes[std::size_t(axis)];
      if (spatial.extent > 1) outermost.push_back(spatial.name + ".0");
    }
    in_parallel(name_of(form_, stage(c)), outermost, {});
  }

  // The axis along which a transform has vectors; -1: none. Where what it reads lies along another axis than what it
  // writes, vectors are as they are read, several of them side by side (`rows`, an axis along which results lie), so
  // that they are turned in registers and stored as vectors.
  struct Vectors {
    int axis = -1, rows = -1;
  };
  // As many rows as leave all results of a transform in registers, four at most.
  std::int64_t rows_side_by_side(const Stage& stage, const Transform& transform) const {
    std::int64_t rows = 4;
    while (rows > 1 && rows * stage.axes[std::size_t(transform.result)].extent * 4 > target_.vector_registers * 3)
      rows /= 2;
    return rows;
  }

  Vectors vectors_of(const Stage& stage, const Transform& transform, std::int64_t lanes) const {
    const int spatial = form_.spatial_axes(stage), last = spatial - 1;
    const auto is_long = [&](int axis) {
      return axis != transform.result && stage.axes[std::size_t(axis)].extent >= shortest_vector_axis;
    };
    if (lanes <= 1) return {};
    if (is_long(last) && is_along_memory(form_, stage, last)) return {last, -1};
    const Access element{stage.tensor, element_of(form_, stage), false};
    Vectors turned;
    for (int axis = 0; axis < spatial; ++axis) {
      const std::int64_t stride = stride_along(form_, element, axis);
      if (stride == 1 && stage.axes[std::size_t(axis)].extent > 1) turned.rows = axis;
      if (stride != 1 && is_long(axis) && is_along_memory(form_, stage, axis) &&
          std::any_of(stage.value.loads.begin(), stage.value.loads.end(),
                      [&](const Access& access) { return stride_along(form_, access, axis) == 1; }))
        turned.axis = axis;
    }
    return turned.axis >= 0 && turned.rows >= 0 ? turned : Vectors{};
  }

  // Loops of a transform outside of the elements that it reads, if producers are computed under the tiles'
  // loop; the others remain in `loops`.
  Loops outside_of_producer(std::size_t c, Loops& loops) const {
    Loops outside;
    const auto of_tiles = std::find(loops.begin(), loops.end(), tiles_ + ".0");
    const bool both = c + 1 < chain_.size() && transform_of(form_, stage(c + 1)).has_value();
    if (of_tiles == loops.end()) return outside;
    if (c == 0) {
      // Axes of the data before the tiles' own (a batch) stay first.
      for (auto loop = loops.begin(); loop <= of_tiles; ++loop) {
        const bool of_data = std::any_of(reader_.axes.begin(), reader_.axes.end(),
                                         [&](const Axis& axis) { return axis.name + ".0" == *loop; });
        if (of_data) outside.push_back(*loop);
      }
      std::erase_if(loops, [&](const std::string& loop) {
        return std::find(outside.begin(), outside.end(), loop) != outside.end();
      });
    } else if (both) {
      outside.assign(loops.begin(), of_tiles);
      loops.erase(loops.begin(), of_tiles);
    }
    return outside;
  }

  // Spatial loops, the tiles' first where producers are computed under them; sum and results; the vector.
  void add_transform(std::size_t c, const Transform& transform) {
    const Stage& here = stage(c);
    const std::string name = name_of(form_, here);
    const std::int64_t lanes = lanes_of(form_, here, target_);
    const Vectors vectors = vectors_of(here, transform, lanes);
    const bool vector = vectors.axis >= 0;
    const std::int64_t rows = rows_side_by_side(here, transform);
    Loops loops;
    std::string side_by_side;
    for (int axis = 0; axis < form_.spatial_axes(here); ++axis) {
      if (axis == transform.result || axis == vectors.axis) continue;
      const auto& [along, extent] = here.axes[std::size_t(axis)];
      const bool is_tiled = axis == vectors.rows && extent > rows;
      if (is_tiled) builder_.line(fmt::format("tile {} {} {}", name, along, rows));
      if (axis == vectors.rows) side_by_side = along + (is_tiled ? ".1" : ".0");
      if (axis != vectors.rows || is_tiled) loops.push_back(along + ".0");
    }
    std::string innermost;
    if (vector) {
      const auto& [along, extent] = here.axes[std::size_t(vectors.axis)];
      if (extent > lanes) {
        builder_.line(fmt::format("tile {} {} {}", name, along, lanes));
        loops.push_back(along + ".0");
      }
      innermost = along + (extent > lanes ? ".1" : ".0");
    }
    Loops behind = loops;
    const Loops before = outside_of_producer(c, behind);
    const std::string sums = joined({fmt::format("{}.0 {}.0", here.axes[std::size_t(transform.summed)].name,
                                                 here.axes[std::size_t(transform.result)].name),
                                     side_by_side});
    const auto order = [&](const std::string& outer) {
      return fmt::format("order {} {} {} {}", name, outer, sums, innermost);
    };
    builder_.line(where_chained(order(joined(loops)), order(joined({joined(before), joined(behind)}))));
    in_parallel(name, loops, c == 0 ? before : Loops{});
    if (vector) builder_.line(fmt::format("vector {} {}", name, innermost));
    builder_.line(fmt::format("unroll {} {}", name, sums));
    builder_.line(fmt::format("accumulate {} above {}", name, sums));
    if (!compute(c).empty() && !behind.empty()) {
      builder_.line(where_chained("", fmt::format("{} above {}", compute(c), joined(behind))));
    }
  }

  const Computation& form_;
  const Target& target_;
  std::vector<int> chain_;
  const Stage& reader_;  // of the data
  std::string argument_, tiles_, padding_;
  std::size_t alternatives_ = 2;
  SketchBuilder builder_;
};

void add_winograd_sketch(const Computation& computation, const Target& target, const Step& step,
                         std::vector<SketchSpace>& result) {
  const base::Result<Restructured> restructure = restructured(computation, {step});
  if (!restructure) return;
  std::vector<int> chain = winograd_chain(restructure->computation);
  if (chain.empty()) return;
  result.push_back(WinogradSketch(restructure->computation, target, step, std::move(chain))
                       .made(fmt::format("{}_winograd_{}", argument_name(step.stage), step.sizes[0])));
}

// ---- stored in blocks ----

// Blocks of dimensions of tensors, in the order in which they are asked for: the innermost stored dimensions.
class BlockedTensors {
 public:
  explicit BlockedTensors(const Computation& computation) : computation_(computation) {}

  // A tensor that a stage reads nothing but copies into is stored like the tensor that the stage reads.
  void block(int tensor, int dimension, std::int64_t lanes) {
    std::vector<int>& dimensions = dimensions_[tensor];
    if (std::find(dimensions.begin(), dimensions.end(), dimension) != dimensions.end()) return;
    dimensions.push_back(dimension);
    lanes_ = lanes;
    const int writer = computation_.stage_writing(tensor);
    if (writer < 0) return;
    const Stage& stage = computation_.stages[std::size_t(writer)];
    if (stage.combine != Combine::none || !stage.index.empty()) return;
    for (const Access& access : stage.value.loads) {
      const int source = whole_dimension(access.index, dimension);
      if (source >= 0) block(access.tensor, source, lanes);
    }
  }

  std::string steps() const {
    std::string text;
    for (const auto& [tensor, dimensions] : dimensions_) {
      text += (text.empty() ? "layout " : "\nlayout ") + computation_.tensors[std::size_t(tensor)].name;
      const int rank = int(computation_.tensors[std::size_t(tensor)].shape.size());
      const auto is_blocked = [&](int d) {
        return std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
      };
      for (int d = 0; d < rank; ++d) text += is_blocked(d) ? fmt::format(" {}/{}", d, lanes_) : fmt::format(" {}", d);
      for (const int d : dimensions) text += fmt::format(" {}%{}", d, lanes_);
    }
    return text;
  }

 private:
  const Computation& computation_;
  std::map<int, std::vector<int>> dimensions_;  // by tensor, outermost block first
  std::int64_t lanes_ = 1;
};

void add_blocked_sketches(const Computation& computation, const Target& target, std::vector<SketchSpace>& result) {
  for (const int number : reductions(computation)) {
    const Stage& stage = computation.stages[std::size_t(number)];
    const std::int64_t lanes = lanes_of(computation, stage, target);
    const auto divides = [&](int axis) {
      const std::int64_t extent = stage.axes[std::size_t(axis)].extent;
      return extent > lanes && extent % lanes == 0;
    };
    const int spatial = computation.spatial_axes(stage);
    for (int axis = 0; lanes > 1 && axis + 1 < spatial; ++axis) {
      const int own = whole_dimension(element_of(computation, stage), axis);
      if (own < 0 || !divides(axis)) continue;
      BlockedTensors blocked(computation);
      for (const Access& access : stage.value.loads) {
        const int along = whole_dimension(access.index, axis);
        if (along >= 0) continue;
        for (int summed = spatial; summed < int(stage.axes.size()); ++summed) {
          const int dimension = whole_dimension(access.index, summed);
          if (dimension < 0 || !divides(summed)) continue;
          for (const Access& operand : stage.value.loads) {
            const int part = whole_dimension(operand.index, summed);
            if (part >= 0) blocked.block(operand.tensor, part, lanes);
          }
          break;
        }
      }
      for (const Access& access : stage.value.loads) {
        const int along = whole_dimension(access.index, axis);
        if (along >= 0) blocked.block(access.tensor, along, lanes);
      }
      blocked.block(stage.tensor, own, lanes);
      const std::string prefix = blocked.steps();
      Schedule schedule;
      for (const std::string_view line : base::split(prefix, '\n')) schedule.push_back(parse_step(line, "rules"));
      const base::Result<Restructured> form = restructured(computation, schedule);
      const std::string suffix = fmt::format("_blocked_{}", stage.axes[std::size_t(axis)].name);
      if (form) add_sketches(form->computation, target, prefix, suffix, result);
    }
  }
}

}  // namespace

std::vector<SketchSpace> derive_sketches(const Computation& computation, const Target& target,
                                         std::span<const IntrinsicPointer> intrinsics, Layouts layouts) {
  if (target.group_items > 0) return group_sketches(computation, target);
  std::vector<SketchSpace> result;
  if (const ProductRows rows(computation, target); rows.applies()) return {rows.sketch()};
  if (const WindowRows rows(computation, target); rows.applies()) return {rows.sketch()};
  if (const BlockSums sums(computation, target, intrinsics); sums.applies()) return {sums.sketch()};
  add_sketches(computation, target, "", "", result);
  add_factored_sketches(computation, target, result);
  RowSketch(computation, target).add_to(result);
  const std::size_t plain = result.size();
  if (add_tensorized_sketches(computation, target, intrinsics, result))
    result.erase(result.begin(), result.begin() + std::ptrdiff_t(plain));
  for (const Step& step : winograd_steps(computation)) add_winograd_sketch(computation, target, step, result);
  if (layouts == Layouts::free) add_blocked_sketches(computation, target, result);
  return result;
}

bool schedules_together(const Computation& computation, const Target& target) {
  std::vector<int> stages;  // that are not known ahead
  for (std::size_t s = 0; s < computation.stages.size(); ++s)
    if (!is_known_ahead(computation, computation.stages[s])) stages.push_back(int(s));
  const std::vector<int> reduced = reductions(computation);
  if (reduced.empty()) {
    std::erase_if(stages, [&](int s) { return is_padding_copy(computation.stages[std::size_t(s)]); });
    return stages.size() <= 1;
  }
  if (RowSketch(computation, target).goes_by_rows() || is_fused_by_choice(computation, target) ||
      BlockSums(computation, target).applies())
    return true;
  if (reduced.size() > 1) return false;
  const int number = reduced.front();
  std::vector<int> taken = absorbable_producers(computation, number);
  taken.push_back(number);
  for (int from = number; (from = fusable_consumer(computation, from, number)) >= 0;) taken.push_back(from);
  return std::all_of(stages.begin(), stages.end(),
                     [&](int s) { return std::find(taken.begin(), taken.end(), s) != taken.end(); });
}

bool is_fused_by_choice(const Computation& computation, const Target& target) {
  return ProductRows(computation, target).applies() || WindowRows(computation, target).applies();
}

Space derive_space(const Workload& workload, const Target& target, std::span<const IntrinsicPointer> intrinsics,
                   Layouts layouts) {
  return Space(workload, derive_sketches(workload.padded(), target, intrinsics, layouts));
}

}  // namespace graft::codegen
