#include "codegen/schedule/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include "codegen/schedule/rewrite.h"

namespace graft::codegen {
namespace {

// Remainders multiply nests; a program beyond this is no candidate for anything.
constexpr std::size_t most_nodes = 4096;

// Thrown inside this file only, becomes the Reason of `lower`.
struct CannotLower {
  std::string text;
};

// T[x] = pad(X[x + shift]), with dimensions in any order.
bool is_padding_copy(const Stage& stage) {
  if (stage.combine != Combine::none || stage.value.nodes.size() != 1) return false;
  if (stage.value.loads.size() != 1 || !stage.value.loads[0].padded) return false;
  std::set<int> axes;
  for (const Affine& form : stage.value.loads[0].index) {
    if (form.terms.size() != 1 || form.terms[0].coefficient != 1) return false;
    if (!axes.insert(form.terms[0].variable).second) return false;
  }
  return true;
}

// What a loop nest has fixed so far about one axis: where it begins and how much is left.
struct AxisRange {
  Affine begin;
  std::int64_t size = 1;
};

// A tile that was copied out of its tensor: loads and stores go to `buffer`, indexed by the coordinates of `loops`.
struct Tile {
  int buffer = -1;
  std::vector<int> loops;  // positions in StagePlan::loops, one per dimension
};

class Lowerer {
 public:
  Lowerer(const Computation& computation, std::vector<StagePlan> plans, std::int64_t lanes, const StoreWatch& watch)
      : computation_(computation), plans_(std::move(plans)), lanes_(lanes), watch_(watch) {}

  base::Result<LoopProgram> run() {
    buffer_of_.assign(computation_.tensors.size(), -1);
    for (const bool parameters : {true, false}) {
      for (std::size_t t = 0; t < computation_.tensors.size(); ++t) {
        const Tensor& tensor = computation_.tensors[t];
        if ((tensor.role != Role::temporary) != parameters || is_elided(int(t))) continue;
        buffer_of_[t] = int(program_.buffers.size());
        program_.buffers.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.role, Scope::memory});
      }
    }
    for (std::size_t s = 0; s < plans_.size(); ++s) {
      if (!plans_[s].is_fused) lower_stage(int(s));
      if (stopped_) return *stopped_;
    }
    return std::move(program_);
  }

 private:
  // A temporary whose only reader is fused into its stage never exists in memory.
  bool is_elided(int tensor) const {
    const int stage = computation_.stage_writing(tensor);
    return stage >= 0 && plans_[std::size_t(stage)].fused >= 0;
  }

  // ---- writing nodes ----

  void close(std::size_t at) { (*body_)[at].end = int(body_->size()); }

  void check_size() const {
    if (body_->size() > most_nodes) {
      throw CannotLower{fmt::format("remainders make more than {} loops and stores", most_nodes)};
    }
  }

  void emit_store(Access target, Combine combine, Value value) {
    check_size();
    body_->push_back({Node::Kind::store, int(program_.stores.size()), int(body_->size()) + 1});
    program_.stores.push_back({std::move(target), combine, std::move(value)});
    if (watch_ && body_ == &program_.run && !stopped_) stopped_ = watch_(program_, program_.stores.back(), open_);
  }

  template <class Inside>
  void emit_loop(const LoopPlan& plan, std::int64_t extent, LoopKind kind, const Inside& inside) {
    check_size();
    const std::size_t at = body_->size();
    const int variable = int(program_.loops.size());
    program_.loops.push_back({loop_name(*stage_, plan), extent, kind});
    body_->push_back({Node::Kind::loop, variable, 0});
    open_.push_back(variable);
    inside(variable);
    open_.pop_back();
    close(at);
  }

  // Runs `inside` once for every part of the loop at `position` (main part, remainder), with ranges and coordinates
  // set.
  template <class Inside>
  void over_parts(int position, LoopKind kind, const Inside& inside) {
    if (stopped_) return;
    const LoopPlan& plan = plan_->loops[std::size_t(position)];
    AxisRange& range = ranges_[std::size_t(plan.axis)];
    const std::int64_t size = range.size;
    const std::int64_t trips = size / plan.step, rest = size % plan.step;
    Affine& coordinate = coordinates_[std::size_t(position)];
    if (trips > 1) {
      emit_loop(plan, trips, kind, [&](int variable) {
        range.begin.terms.push_back({variable, plan.step});
        range.size = plan.step;
        coordinate = Affine::variable(variable);
        inside();
        range.begin.terms.pop_back();
      });
    } else if (trips == 1) {
      range.size = plan.step;
      coordinate = Affine(0);
      inside();
    }
    if (rest > 0) {
      range.begin.constant += trips * plan.step;
      range.size = rest;
      coordinate = Affine(trips);
      inside();
      range.begin.constant -= trips * plan.step;
    }
    range.size = size;
  }

  // The nest of the loops `wanted` from `position` on, `leaf` at its bottom.
  void nest(int position, const std::function<bool(int)>& wanted, const std::function<LoopKind(int)>& kind,
            const std::function<void()>& leaf) {
    while (position < int(plan_->loops.size()) && !wanted(position)) ++position;
    if (position == int(plan_->loops.size())) {
      leaf();
      return;
    }
    over_parts(position, kind(position), [&] { nest(position + 1, wanted, kind, leaf); });
  }

  // ---- accesses ----

  std::vector<Affine> begins() const {
    std::vector<Affine> begin;
    begin.reserve(ranges_.size());
    for (const AxisRange& range : ranges_) begin.push_back(range.begin);
    return begin;
  }

  Access in_tensor(const Access& access, std::span<const Affine> begin) const {
    Access result{buffer_of_[std::size_t(access.tensor)], {}, false};
    result.index.reserve(access.index.size());
    for (const Affine& form : access.index) result.index.push_back(substitute(form, begin));
    return result;
  }

  Access in_tile(const Tile& tile) const {
    Access result{tile.buffer, {}, false};
    result.index.reserve(tile.loops.size());
    for (const int loop : tile.loops) result.index.push_back(coordinates_[std::size_t(loop)]);
    if (result.index.empty()) result.index.emplace_back(0);
    return result;
  }

  // The element of the stage's own tensor.
  Access own(std::span<const Affine> begin) const {
    Access result{buffer_of_[std::size_t(stage_->tensor)], {}, false};
    result.index.assign(begin.begin(), begin.begin() + computation_.spatial_axes(*stage_));
    return result;
  }

  Value value_here(std::span<const Affine> begin) const {
    return map_accesses(stage_->value, [&](const Access& access) {
      for (const auto& [tensor, tile] : packed_) {
        if (tensor == access.tensor) return in_tile(tile);
      }
      return in_tensor(access, begin);
    });
  }

  // ---- tiles ----

  bool is_spatial(int position) const {
    return plan_->loops[std::size_t(position)].axis < computation_.spatial_axes(*stage_);
  }

  // Most trips of the loop at `position`, remainders included: what a tile must have room for.
  std::int64_t most_trips(int position) const { return codegen::most_trips(*stage_, *plan_, position); }

  Tile make_tile(std::string name, DType dtype, int from, const std::function<bool(int)>& wanted, bool registers) {
    Tile tile;
    Buffer buffer{std::move(name), dtype, {}, Role::temporary, registers ? Scope::registers : Scope::memory};
    for (int i = from; i < int(plan_->loops.size()); ++i) {
      if (!wanted(i) || most_trips(i) == 1) continue;
      tile.loops.push_back(i);
      buffer.shape.push_back(most_trips(i));
    }
    if (buffer.shape.empty()) buffer.shape.push_back(1);
    tile.buffer = int(program_.buffers.size());
    program_.buffers.push_back(std::move(buffer));
    return tile;
  }

  bool indexes(const Access& access, int position) const {
    const int axis = plan_->loops[std::size_t(position)].axis;
    return std::any_of(access.index.begin(), access.index.end(),
                       [&](const Affine& form) { return form.coefficient(axis) != 0; });
  }

  const Access& access_to(int tensor) const {
    return *std::find_if(stage_->value.loads.begin(), stage_->value.loads.end(),
                         [&](const Access& access) { return access.tensor == tensor; });
  }

  // Copies what the stage reads of a tensor from here on.
  void pack(const PackPlan& plan) {
    const Access& access = access_to(plan.tensor);
    const Tensor& tensor = computation_.tensors[std::size_t(plan.tensor)];
    const auto wanted = [&](int position) { return indexes(access, position); };
    auto known = std::find_if(packed_.begin(), packed_.end(), [&](const auto& p) { return p.first == plan.tensor; });
    if (known == packed_.end()) {
      const std::string name =
          fmt::format("{}.{}.packed", computation_.tensors[std::size_t(stage_->tensor)].name, tensor.name);
      packed_.emplace_back(plan.tensor, make_tile(name, tensor.dtype, plan.above, wanted, false));
      known = packed_.end() - 1;
    }
    const Tile tile = known->second;
    const bool ahead = is_outermost(*stage_, *plan_, plan.above) && tensor.role == Role::constant;
    Body* const outer = body_;
    if (ahead) body_ = &program_.prepare;
    const auto kind = [&](int position) {
      const LoopPlan& loop = plan_->loops[std::size_t(position)];
      const bool vector = loop.kind == LoopKind::vector && stride_along(computation_, access, loop.axis) == 1;
      return vector ? LoopKind::vector : LoopKind::serial;
    };
    nest(plan.above, wanted, kind,
         [&] { emit_store(in_tile(tile), Combine::none, Value::load(in_tensor(access, begins()))); });
    body_ = outer;
  }

  // ---- stages ----

  void lower_stage(int number) {
    stage_ = &computation_.stages[std::size_t(number)];
    plan_ = &plans_[std::size_t(number)];
    body_ = &program_.run;
    packed_.clear();
    if (!plan_->scheduled) vectorise_last_axis();
    reset_ranges();
    if (is_padding_copy(*stage_)) {
      lower_padding_copy();
      return;
    }
    if (std::any_of(stage_->value.loads.begin(), stage_->value.loads.end(), [](const Access& a) { return a.padded; })) {
      throw CannotLower{"a padded load outside of a copy"};
    }
    accumulator_ = Tile{};
    const bool reduces = computation_.is_reduction(*stage_);
    reduced_outside_ = false;
    if (plan_->accumulate >= 0) {
      for (int i = 0; i < plan_->accumulate; ++i) reduced_outside_ |= !is_spatial(i) && most_trips(i) > 1;
    }
    if (reduces && (plan_->accumulate < 0 || reduced_outside_)) {
      fill(Value::constant(identity_of(stage_->combine)));
      reset_ranges();
    }
    descend(0);
  }

  void reset_ranges() {
    ranges_.clear();
    for (const Axis& axis : stage_->axes) ranges_.push_back({Affine(0), axis.extent});
    coordinates_.assign(plan_->loops.size(), Affine(0));
  }

  // Stages that no step names get their last spatial axis vectorised where every access allows it.
  void vectorise_last_axis() {
    const int axis = computation_.spatial_axes(*stage_) - 1;
    if (lanes_ <= 1 || axis < 0 || computation_.is_reduction(*stage_)) return;
    for (const Access& access : stage_->value.loads) {
      const std::int64_t stride = stride_along(computation_, access, axis);
      if (stride != 0 && stride != 1) return;
    }
    plan_->loops.back().step = lanes_;
    plan_->loops.push_back({axis, 1, 1, LoopKind::vector});
  }

  // Fills the stage's whole tensor with a constant, in a nest of its own.
  void fill(const Value& value) {
    const std::vector<std::int64_t>& shape = computation_.tensors[std::size_t(stage_->tensor)].shape;
    StagePlan* const saved = plan_;
    StagePlan plain;
    for (std::size_t d = 0; d < shape.size(); ++d) plain.loops.push_back({int(d), 0, 1, LoopKind::serial});
    if (lanes_ > 1 && !shape.empty()) {
      plain.loops.back().step = lanes_;
      plain.loops.push_back({int(shape.size()) - 1, 1, 1, LoopKind::vector});
    }
    plan_ = &plain;
    reset_ranges();
    whole_nest([&] {
      const std::vector<Affine> begin = begins();
      emit_store(own(begin), Combine::none, value);
    });
    plan_ = saved;
  }

  void whole_nest(const std::function<void()>& leaf) {
    nest(
        0, [](int) { return true; }, [&](int position) { return plan_->loops[std::size_t(position)].kind; }, leaf);
  }

  // Zeros, then the inside.
  void lower_padding_copy() {
    const Access& access = stage_->value.loads[0];
    const Tensor& source = computation_.tensors[std::size_t(access.tensor)];
    bool whole = true, nothing = false;
    std::vector<AxisRange> inside = ranges_;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      const Affine& form = access.index[d];
      AxisRange& range = inside[std::size_t(form.terms[0].variable)];
      const std::int64_t begin = std::max<std::int64_t>(0, -form.constant);
      const std::int64_t end = std::min(range.size, source.shape[d] - form.constant);
      nothing |= end <= begin;
      whole &= begin == 0 && end == range.size;
      range = {Affine(begin), end - begin};
    }
    if (!whole) fill(Value::constant(0));
    if (nothing) return;
    reset_ranges();
    ranges_ = inside;
    whole_nest([&] {
      const std::vector<Affine> begin = begins();
      emit_store(own(begin), Combine::none, Value::load(in_tensor(access, begin)));
    });
  }

  // The stage's own nest, from the loop at `position` on.
  void descend(int position) {
    for (const PackPlan& plan : plan_->packs) {
      if (plan.above == position) pack(plan);
    }
    if (plan_->accumulate == position) {
      accumulate(position);
      return;
    }
    if (position == int(plan_->loops.size())) {
      leaf();
      return;
    }
    over_parts(position, plan_->loops[std::size_t(position)].kind, [&] { descend(position + 1); });
  }

  void leaf() {
    const std::vector<Affine> begin = begins();
    const Combine combine = computation_.is_reduction(*stage_) ? stage_->combine : Combine::none;
    emit_store(accumulator_.buffer >= 0 ? in_tile(accumulator_) : own(begin), combine, value_here(begin));
  }

  // Start values, the reduction, and write-back of one tile.
  void accumulate(int position) {
    const auto spatial = [&](int i) { return is_spatial(i); };
    const auto kind = [&](int i) { return plan_->loops[std::size_t(i)].kind; };
    if (accumulator_.buffer < 0) {
      bool registers = true;
      for (int i = position; i < int(plan_->loops.size()); ++i) {
        registers &=
            !is_spatial(i) || most_trips(i) == 1 || kind(i) == LoopKind::unrolled || kind(i) == LoopKind::vector;
      }
      const Tensor& tensor = computation_.tensors[std::size_t(stage_->tensor)];
      accumulator_ = make_tile(tensor.name + ".tile", tensor.dtype, position, spatial, registers);
    }
    const Tile tile = accumulator_;
    nest(position, spatial, kind, [&] {
      const std::vector<Affine> begin = begins();
      emit_store(in_tile(tile), Combine::none,
                 reduced_outside_ ? Value::load(own(begin)) : Value::constant(identity_of(stage_->combine)));
    });
    reduce(position);
    nest(position, spatial, kind, [&] { write_back(tile); });
  }

  // The reduction itself; packs may stand between its loops.
  void reduce(int position) {
    if (position == int(plan_->loops.size())) {
      leaf();
      return;
    }
    over_parts(position, plan_->loops[std::size_t(position)].kind, [&] {
      for (const PackPlan& plan : plan_->packs) {
        if (plan.above == position + 1) pack(plan);
      }
      reduce(position + 1);
    });
  }

  void write_back(const Tile& tile) {
    const std::vector<Affine> begin = begins();
    if (plan_->fused < 0) {
      emit_store(own(begin), Combine::none, Value::load(in_tile(tile)));
      return;
    }
    const Stage& consumer = computation_.stages[std::size_t(plan_->fused)];
    Value value = map_accesses(consumer.value, [&](const Access& access) {
      return access.tensor == stage_->tensor ? in_tile(tile) : in_tensor(access, begin);
    });
    Access target{buffer_of_[std::size_t(consumer.tensor)], {}, false};
    target.index.assign(begin.begin(), begin.begin() + computation_.spatial_axes(*stage_));
    emit_store(std::move(target), Combine::none, std::move(value));
  }

  const Computation& computation_;
  std::vector<StagePlan> plans_;
  std::int64_t lanes_;
  const StoreWatch& watch_;
  std::optional<base::Reason> stopped_;  // by the watch; no exception: a search is stopped here far too often
  LoopProgram program_;
  std::vector<int> open_;       // loops around what is being written
  std::vector<int> buffer_of_;  // by tensor; -1: in no buffer

  // Of the stage that is being lowered.
  const Stage* stage_ = nullptr;
  StagePlan* plan_ = nullptr;
  Body* body_ = nullptr;
  std::vector<AxisRange> ranges_;    // by axis
  std::vector<Affine> coordinates_;  // by loop position: its iteration here
  std::vector<std::pair<int, Tile>> packed_;
  Tile accumulator_;
  bool reduced_outside_ = false;
};

}  // namespace

Computation with_padding_stages(const Computation& computation) {
  Computation result;
  result.tensors = computation.tensors;
  for (const Stage& stage : computation.stages) {
    Stage changed = stage;
    if (!is_padding_copy(stage)) {
      for (Access& access : changed.value.loads) {
        if (!access.padded) continue;
        std::vector<Interval> ranges;
        for (const Axis& axis : stage.axes) ranges.push_back({0, axis.extent - 1});
        const Tensor& source = result.tensors[std::size_t(access.tensor)];
        Tensor padded{source.name + ".pad", source.dtype, {}, Role::temporary};
        for (int copy = 2; result.tensor_named(padded.name) >= 0; ++copy)
          padded.name = fmt::format("{}.pad{}", source.name, copy);
        Stage fill;
        fill.tensor = int(result.tensors.size());
        Access shifted{access.tensor, {}, true};
        for (std::size_t d = 0; d < access.index.size(); ++d) {
          const Interval interval = range(access.index[d], ranges);
          padded.shape.push_back(interval.width());
          fill.axes.push_back({fmt::format("p{}", d), interval.width()});
          shifted.index.push_back(Affine::variable(int(d)) + Affine(interval.low));
          access.index[d] += Affine(-interval.low);
        }
        fill.value = Value::load(shifted);
        access.tensor = fill.tensor;
        access.padded = false;
        result.tensors.push_back(std::move(padded));
        result.stages.push_back(std::move(fill));
      }
    }
    result.stages.push_back(std::move(changed));
  }
  return result;
}

base::Result<LoopProgram> lower(const Computation& computation, const Schedule& schedule, std::int64_t lanes,
                                const StoreWatch& watch) {
  base::Result<std::vector<StagePlan>> plans = apply(computation, schedule);
  if (!plans) return plans.reason();
  try {
    return Lowerer(computation, std::move(plans.value()), lanes, watch).run();
  } catch (const CannotLower& failure) {
    return base::Reason{failure.text};
  }
}

LoopProgram naive_program(const Computation& computation) {
  base::Result<LoopProgram> program = lower(with_padding_stages(computation), {}, 1);
  if (!program) throw std::logic_error("the empty schedule does not lower: " + program.reason().text);
  return std::move(program).value();
}

}  // namespace graft::codegen
