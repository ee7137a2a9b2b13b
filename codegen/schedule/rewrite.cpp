#include "codegen/schedule/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "codegen/schedule/restructure.h"

namespace graft::codegen {
namespace {

// Position of the loop "<axis>.<level>" in the plan, or -1.
int position_of(const Stage& stage, const StagePlan& plan, std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return -1;
  int level = -1;
  const char* const end = name.data() + name.size();
  if (std::from_chars(name.data() + dot + 1, end, level).ptr != end) return -1;
  for (std::size_t i = 0; i < plan.loops.size(); ++i) {
    if (plan.loops[i].level == level && stage.axes[std::size_t(plan.loops[i].axis)].name == name.substr(0, dot)) {
      return int(i);
    }
  }
  return -1;
}

// Most elements of an axis that the loops from `position` on run over.
std::int64_t size_at(const StagePlan& plan, int axis, int position) {
  std::int64_t size = plan.extents[std::size_t(axis)];
  for (int i = 0; i < position; ++i) {
    const LoopPlan& outer = plan.loops[std::size_t(i)];
    if (outer.axis == axis) size = std::min(size, outer.step);
  }
  return size;
}

// Applies one step to the plans; text of the failure, empty if it applied.
class Rewriter {
 public:
  Rewriter(const Computation& computation, std::vector<StagePlan>& plans) : computation_(computation), plans_(plans) {}

  std::string apply(const Step& step) {
    // Done before there were loops; what they leave under the stage's name is not scheduled by that.
    if (is_restructuring(step.kind)) return "";
    const int tensor = computation_.tensor_named(step.stage);
    const int stage = tensor < 0 ? -1 : computation_.stage_writing(tensor);
    if (stage < 0) return fmt::format("there is no stage {}", step.stage);
    stage_ = &computation_.stages[std::size_t(stage)];
    plan_ = &plans_[std::size_t(stage)];
    plan_->scheduled = true;
    switch (step.kind) {
      case StepKind::tile:
        return tile(step);
      case StepKind::order:
        return order(step);
      case StepKind::vector:
        return mark(step, LoopKind::vector);
      case StepKind::unroll:
        return mark(step, LoopKind::unrolled);
      case StepKind::parallel:
        return mark(step, LoopKind::parallel);
      case StepKind::bind:
        return bind(step);
      case StepKind::accumulate:
        return accumulate(step);
      case StepKind::pack:
        return pack(step);
      case StepKind::fuse:
        return fuse(step);
      case StepKind::tensorize:
        return tensorize(step);
      case StepKind::compute:
        return compute(step);
      case StepKind::prefetch:
        return prefetch(step);
      case StepKind::lanes:
        return lanes(step);
      case StepKind::absorb:
      case StepKind::rfactor:
      case StepKind::winograd:
      case StepKind::layout:
      case StepKind::block:
      case StepKind::copy:
      case StepKind::reciprocal:
      case StepKind::unsign:
        break;
    }
    return "unknown step";
  }

 private:
  // Steps other than tile and order name loops by position, so those two must come first.
  bool is_settled() const {
    return plan_->accumulate >= 0 || plan_->fused >= 0 || plan_->tensorized >= 0 || !plan_->packs.empty() ||
           !plan_->prefetches.empty() ||
           std::any_of(plan_->loops.begin(), plan_->loops.end(),
                       [](const LoopPlan& loop) { return loop.kind != LoopKind::serial; });
  }

  std::string tile(const Step& step) {
    if (is_settled()) return fmt::format("comes after other steps of {}, but must come before them", step.stage);
    std::vector<LoopPlan>& loops = plan_->loops;
    std::size_t at = 0;
    while (at < loops.size() && stage_->axes[std::size_t(loops[at].axis)].name != step.subject) ++at;
    if (at == loops.size()) return fmt::format("{} has no axis {}", step.stage, step.subject);
    const int axis = loops[at].axis;
    if (std::count_if(loops.begin(), loops.end(), [&](const LoopPlan& l) { return l.axis == axis; }) > 1) {
      return fmt::format("{} is already tiled", step.subject);
    }
    for (std::size_t i = 1; i < step.sizes.size(); ++i) {
      if (step.sizes[i - 1] % step.sizes[i] != 0) {
        return fmt::format("{} does not divide {}", step.sizes[i], step.sizes[i - 1]);
      }
    }
    loops[at].step = step.sizes[0];
    for (std::size_t i = 1; i <= step.sizes.size(); ++i) {
      const std::int64_t inner = i < step.sizes.size() ? step.sizes[i] : 1;
      loops.insert(loops.begin() + std::ptrdiff_t(at + i), LoopPlan{axis, int(i), inner, LoopKind::serial});
    }
    return "";
  }

  std::string order(const Step& step) {
    if (is_settled()) return fmt::format("comes after other steps of {}, but must come before them", step.stage);
    std::vector<LoopPlan> ordered;
    std::vector<bool> named(plan_->loops.size(), false);
    for (const std::string& name : step.loops) {
      const int at = position_of(*stage_, *plan_, name);
      if (at < 0) return fmt::format("{} has no loop {}", step.stage, name);
      if (named[std::size_t(at)]) return fmt::format("{} is named twice", name);
      named[std::size_t(at)] = true;
      ordered.push_back(plan_->loops[std::size_t(at)]);
    }
    // Loops of an axis of extent 1 never exist: they may be left out.
    std::vector<LoopPlan> trivial;
    for (std::size_t i = 0; i < named.size(); ++i) {
      if (named[i]) continue;
      if (plan_->extents[std::size_t(plan_->loops[i].axis)] > 1) {
        return fmt::format("{} is missing", loop_name(*stage_, plan_->loops[i]));
      }
      trivial.push_back(plan_->loops[i]);
    }
    trivial.insert(trivial.end(), ordered.begin(), ordered.end());
    plan_->loops = std::move(trivial);
    return "";
  }

  std::string mark(const Step& step, LoopKind kind) {
    for (const std::string& name : step.loops) {
      const int at = position_of(*stage_, *plan_, name);
      if (at < 0) return fmt::format("{} has no loop {}", step.stage, name);
      LoopPlan& loop = plan_->loops[std::size_t(at)];
      if (loop.kind != LoopKind::serial) return fmt::format("{} is already {}", name, name_of(loop.kind));
      const bool reduced = loop.axis >= computation_.spatial_axes(*stage_);
      if (kind == LoopKind::vector && at + 1 != int(plan_->loops.size()))
        return fmt::format("{} is not innermost", name);
      if (kind != LoopKind::unrolled && reduced) return fmt::format("{} is reduced", name);
      loop.kind = kind;
    }
    return kind == LoopKind::parallel ? parallel() : "";
  }

  std::string lanes(const Step& step) {
    const int at = position_of(*stage_, *plan_, step.loops[0]);
    if (at < 0) return fmt::format("{} has no loop {}", step.stage, step.loops[0]);
    LoopPlan& loop = plan_->loops[std::size_t(at)];
    if (loop.kind != LoopKind::serial) return fmt::format("{} is already {}", step.loops[0], name_of(loop.kind));
    if (at + 1 != int(plan_->loops.size())) return fmt::format("{} is not innermost", step.loops[0]);
    if (loop.axis < computation_.spatial_axes(*stage_)) return fmt::format("{} is not reduced", step.loops[0]);
    const std::int64_t count = most_trips(*plan_, at);
    if (count == 1 || !std::has_single_bit(std::uint64_t(count)))
      return fmt::format("{} has {} iterations, not a power of two", step.loops[0], count);
    loop.kind = LoopKind::vector;
    plan_->lanes = at;
    return "";
  }

  std::string bind(const Step& step) {
    constexpr LoopKind kinds[] = {LoopKind::block_x,  LoopKind::block_y,  LoopKind::block_z,       LoopKind::thread_x,
                                  LoopKind::thread_y, LoopKind::thread_z, LoopKind::virtual_thread};
    std::vector<std::string> names;
    for (const LoopKind kind : kinds) {
      if (name_of(kind) == step.subject) return mark(step, kind);
      names.emplace_back(name_of(kind));
    }
    return fmt::format("unknown kind '{}'{}", step.subject, base::did_you_mean(step.subject, names));
  }

  std::string parallel() const {
    if (plan_->is_computed) return "is computed within another stage's loops";
    int last = int(plan_->loops.size()) - 1;
    while (plan_->loops[std::size_t(last)].kind != LoopKind::parallel) --last;
    for (int i = 0; i <= last; ++i) {
      const LoopPlan& loop = plan_->loops[std::size_t(i)];
      if (loop.kind != LoopKind::parallel && most_trips(*plan_, i) > 1)
        return fmt::format("{} is not outermost", loop_name(*stage_, plan_->loops[std::size_t(last)]));
    }
    return "";
  }

  // Position of the outermost of the named loops, or -1 with a text in `failure`.
  int above(const Step& step, std::string& failure) const {
    int outermost = int(plan_->loops.size());
    for (const std::string& name : step.loops) {
      const int at = position_of(*stage_, *plan_, name);
      if (at < 0) {
        failure = fmt::format("{} has no loop {}", step.stage, name);
        return -1;
      }
      outermost = std::min(outermost, at);
    }
    return outermost;
  }

  std::string accumulate(const Step& step) {
    if (!computation_.is_reduction(*stage_)) return fmt::format("{} reduces nothing", step.stage);
    if (plan_->accumulate >= 0) return fmt::format("{} already accumulates", step.stage);
    std::string failure;
    plan_->accumulate = above(step, failure);
    return failure;
  }

  std::string pack(const Step& step) {
    const int tensor = computation_.tensor_named(step.subject);
    const Access* found = nullptr;
    for (const Access& access : stage_->value.loads) {
      if (access.tensor != tensor) continue;
      if (found != nullptr && !(*found == access)) return fmt::format("{} is read in more than one way", step.subject);
      found = &access;
    }
    if (found == nullptr) return fmt::format("{} does not read {}", step.stage, step.subject);
    if (!found->gathered.empty()) return fmt::format("{} is read at indices that are values", step.subject);
    for (const PackPlan& other : plan_->packs) {
      if (other.tensor == tensor) return fmt::format("{} is already packed", step.subject);
    }
    std::string failure;
    const int at = above(step, failure);
    if (at >= 0) plan_->packs.push_back({tensor, at, step.sizes.empty() ? 0 : step.sizes[0]});
    return failure;
  }

  // An intrinsic's loops are all unrolled to the rest of the program; no other step may apply there.
  std::string tensorize(const Step& step) {
    const int at = position_of(*stage_, *plan_, step.loops[0]);
    if (at < 0) return fmt::format("{} has no loop {}", step.stage, step.loops[0]);
    if (plan_->tensorized >= 0) return fmt::format("{} is already tensorized", step.stage);
    for (std::size_t i = std::size_t(at); i < plan_->loops.size(); ++i) {
      LoopPlan& loop = plan_->loops[i];
      if (loop.kind != LoopKind::serial)
        return fmt::format("{} is already {}", loop_name(*stage_, loop), name_of(loop.kind));
      loop.kind = LoopKind::unrolled;
    }
    plan_->tensorized = at;
    plan_->intrinsic = step.subject;
    return "";
  }

  std::string prefetch(const Step& step) {
    const int tensor = computation_.tensor_named(step.subject);
    const std::vector<Access>& loads = stage_->value.loads;
    if (tensor < 0 || (tensor != stage_->tensor && std::none_of(loads.begin(), loads.end(), [&](const Access& access) {
                         return access.tensor == tensor;
                       })))
      return fmt::format("{} neither reads nor writes {}", step.stage, step.subject);
    if (computation_.tensors[std::size_t(tensor)].is_literal()) return fmt::format("{} is a literal", step.subject);
    const int at = position_of(*stage_, *plan_, step.loops[0]);
    if (at < 0) return fmt::format("{} has no loop {}", step.stage, step.loops[0]);
    for (const PrefetchPlan& other : plan_->prefetches) {
      if (other.tensor == tensor) return fmt::format("{} is already prefetched", step.subject);
    }
    if (step.sizes[0] >= most_trips(*plan_, at))
      return fmt::format("{} has {} iterations", step.loops[0], most_trips(*plan_, at));
    plan_->prefetches.push_back({tensor, at, step.sizes[0]});
    return "";
  }

  std::string fuse(const Step& step) {
    const int tensor = computation_.tensor_named(step.subject);
    const int consumer = tensor < 0 ? -1 : computation_.stage_writing(tensor);
    if (consumer < 0) return fmt::format("there is no stage {}", step.subject);
    const Stage& stage = computation_.stages[std::size_t(consumer)];
    const int self = int(stage_ - computation_.stages.data());
    // The stage at whose write-back all of the chain is applied.
    int head = self;
    while (plans_[std::size_t(head)].is_fused) {
      const auto before =
          std::find_if(plans_.begin(), plans_.end(), [&](const StagePlan& p) { return p.fused == head; });
      head = int(before - plans_.begin());
    }
    const StagePlan& writer_plan = plans_[std::size_t(head)];
    if (computation_.tensors[std::size_t(stage_->tensor)].role != Role::temporary) {
      return fmt::format("{} is an output itself", step.stage);
    }
    if (head != self && !stage_->index.empty()) return fmt::format("{} is stored by forms of its axes", step.stage);
    const std::vector<std::int64_t>& shape = computation_.tensors[std::size_t(stage_->tensor)].shape;
    if (stage.combine != Combine::none || stage.axes.size() != shape.size()) {
      return fmt::format("{} is not element-wise", step.subject);
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (stage.axes[d].extent != shape[d]) return fmt::format("{} reads a part of {} only", step.subject, step.stage);
    }
    StagePlan* const within = computes_both(head, consumer);
    bool reads = false;
    for (const Access& access : stage.value.loads) {
      if (access.tensor == stage_->tensor) {
        reads = true;
        for (std::size_t d = 0; d < access.index.size(); ++d) {
          if (!(access.index[d] == Affine::variable(int(d))))
            return fmt::format("{} is not element-wise", step.subject);
        }
        continue;
      }
      const int writer = computation_.stage_writing(access.tensor);
      if (writer >= head) return fmt::format("{} needs a stage after {}", step.subject, name_of_stage(head));
      if (writer >= 0 && within != nullptr && plans_[std::size_t(writer)].is_computed)
        return fmt::format("{} reads {}, which is computed above the same loops", step.subject, name_of_stage(writer));
    }
    if (!reads) return fmt::format("{} does not read {}", step.subject, step.stage);
    if (plans_[std::size_t(consumer)].is_computed && within == nullptr)
      return fmt::format("{} is already computed elsewhere", step.subject);
    for (std::size_t other = 0; other < computation_.stages.size(); ++other) {
      if (int(other) == consumer) continue;
      for (const Access& access : computation_.stages[other].value.loads) {
        if (access.tensor == stage_->tensor) return fmt::format("{} is read elsewhere, too", step.stage);
      }
    }
    const Stage& writes = computation_.stages[std::size_t(head)];
    if (writer_plan.is_computed && within == nullptr)
      return fmt::format("{} is computed within another stage's loops", name_of_stage(head));
    if (writer_plan.accumulate < 0) return fmt::format("{} does not accumulate", name_of_stage(head));
    for (int i = 0; i < writer_plan.accumulate; ++i) {
      const LoopPlan& loop = writer_plan.loops[std::size_t(i)];
      if (loop.axis >= computation_.spatial_axes(writes) && loop.step < range_of(writer_plan, i)) {
        return fmt::format("{} reduces outside of its tile", loop_name(writes, loop));
      }
    }
    // Values of a chain never exist in memory, so that nothing rounds them to a type of their own.
    const auto type_of = [&](const Stage& of) {
      return computed_in(computation_.tensors[std::size_t(of.tensor)].dtype);
    };
    if (head != self && type_of(stage) != type_of(*stage_)) {
      return fmt::format("{} and {} are of different types", step.stage, step.subject);
    }
    plan_->fused = consumer;
    plans_[std::size_t(consumer)].is_fused = true;
    if (within != nullptr)
      std::erase_if(within->computes, [&](const ComputePlan& compute) { return compute.stage == consumer; });
    return "";
  }

  // The plan that computes two stages above the same loop; null if there is none.
  StagePlan* computes_both(int first, int second) {
    for (StagePlan& plan : plans_) {
      const auto above = [&](int stage) {
        const auto found = std::find_if(plan.computes.begin(), plan.computes.end(),
                                        [&](const ComputePlan& compute) { return compute.stage == stage; });
        return found != plan.computes.end() ? found->above : -1;
      };
      if (above(first) >= 0 && above(first) == above(second)) return &plan;
    }
    return nullptr;
  }

  std::string compute(const Step& step) {
    const int tensor = computation_.tensor_named(step.subject);
    const int producer = tensor < 0 ? -1 : computation_.stage_writing(tensor);
    if (producer < 0) return fmt::format("there is no stage {}", step.subject);
    if (computation_.tensors[std::size_t(tensor)].role != Role::temporary) {
      return fmt::format("{} is an output", step.subject);
    }
    if (!computation_.stages[std::size_t(producer)].index.empty()) {
      return fmt::format("{} is made of tiles of its own", step.subject);
    }
    StagePlan& computed = plans_[std::size_t(producer)];
    if (computed.scheduled)
      return fmt::format("comes after other steps of {}, but must come before them", step.subject);
    if (computed.is_fused) return fmt::format("{} is already fused", step.subject);
    std::vector<Interval> needed;
    std::string failure;
    const int at = above(step, failure);
    if (at < 0) return failure;
    for (std::size_t s = 0; s < computation_.stages.size(); ++s) {
      const Stage& reader = computation_.stages[s];
      for (const Access& access : reader.value.loads) {
        if (access.tensor != tensor) continue;
        if (access.padded) return fmt::format("{} is read beyond its shape", step.subject);
        if (&reader == stage_) {
          std::vector<Interval> axes;
          for (std::size_t a = 0; a < reader.axes.size(); ++a) axes.push_back({0, size_at(*plan_, int(a), at) - 1});
          widen(needed, access, computation_.tensors[std::size_t(tensor)], axes);
          continue;
        }
        const auto here = std::find_if(plan_->computes.begin(), plan_->computes.end(), [&](const ComputePlan& other) {
          return other.stage == int(s) && other.above == at;
        });
        if (here == plan_->computes.end()) return fmt::format("{} is read elsewhere, too", step.subject);
        std::vector<Interval> axes = here->needed;
        for (std::size_t a = axes.size(); a < reader.axes.size(); ++a) axes.push_back({0, reader.axes[a].extent - 1});
        widen(needed, access, computation_.tensors[std::size_t(tensor)], axes);
      }
    }
    if (needed.empty()) return fmt::format("{} does not read {}", step.stage, step.subject);
    for (std::size_t d = 0; d < needed.size(); ++d) {
      computed.extents[d] = std::min(computed.extents[d], needed[d].width());
    }
    computed.is_computed = true;
    const auto reader = std::find_if(plan_->computes.begin(), plan_->computes.end(), [&](const ComputePlan& other) {
      const std::vector<Access>& loads = computation_.stages[std::size_t(other.stage)].value.loads;
      return other.above == at &&
             std::any_of(loads.begin(), loads.end(), [&](const Access& access) { return access.tensor == tensor; });
    });
    plan_->computes.insert(reader, {producer, at, std::move(needed)});
    return "";
  }

  // The elements that an access reaches for its axes' ranges, joined with those already needed.
  static void widen(std::vector<Interval>& needed, const Access& access, const Tensor& tensor,
                    const std::vector<Interval>& axes) {
    const bool first = needed.empty();
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      const Interval reach = access.gathers(d) ? Interval{0, tensor.shape[d] - 1} : range(access.index[d], axes);
      if (first) {
        needed.push_back(reach);
      } else {
        needed[d] = {std::min(needed[d].low, reach.low), std::max(needed[d].high, reach.high)};
      }
    }
  }

  const std::string& name_of_stage(int stage) const {
    return computation_.tensors[std::size_t(computation_.stages[std::size_t(stage)].tensor)].name;
  }

  const Computation& computation_;
  std::vector<StagePlan>& plans_;
  const Stage* stage_ = nullptr;
  StagePlan* plan_ = nullptr;
};

}  // namespace

std::string loop_name(const Stage& stage, const LoopPlan& loop) {
  return stage.axes[std::size_t(loop.axis)].name + "." + std::to_string(loop.level);
}

std::int64_t range_of(const StagePlan& plan, int position) {
  return size_at(plan, plan.loops[std::size_t(position)].axis, position);
}

std::int64_t most_trips(const StagePlan& plan, int position) {
  const std::int64_t step = plan.loops[std::size_t(position)].step;
  return (range_of(plan, position) + step - 1) / step;
}

bool is_outermost(const StagePlan& plan, int position) {
  for (int i = 0; i < position; ++i) {
    if (most_trips(plan, i) > 1) return false;
  }
  return true;
}

Band band_of(const StagePlan& plan) {
  Band band;
  for (int i = 0; i < int(plan.loops.size()); ++i) {
    if (plan.loops[std::size_t(i)].kind != LoopKind::parallel || most_trips(plan, i) == 1) continue;
    if (band.end == 0) band.begin = i;
    band.end = i + 1;
  }
  return band;
}

Band band_with_blocks(const StagePlan& plan) {
  Band band = band_of(plan);
  for (int i = 0; i < int(plan.loops.size()); ++i) {
    if (!is_block(plan.loops[std::size_t(i)].kind)) continue;
    band.begin = band.end == 0 ? i : std::min(band.begin, i);
    band.end = std::max(band.end, i + 1);
  }
  return band;
}

std::optional<base::Reason> fault_of(const Computation& computation, const Stage& stage, const StagePlan& plan,
                                     const Band& band) {
  const auto name = [&](int tensor) { return computation.tensors[std::size_t(tensor)].name; };
  const auto refused = [&](const std::string& what) {
    return base::Reason{fmt::format("parallel {}: {} between its parallel loops", name(stage.tensor), what)};
  };
  const auto is_between = [&](int position) { return position > band.begin && position < band.end; };
  if (plan.accumulate >= 0 && plan.accumulate < band.end) return refused("results are kept above or");
  for (const PackPlan& pack : plan.packs) {
    if (is_between(pack.above)) return refused(name(pack.tensor) + " is packed");
  }
  for (const ComputePlan& compute : plan.computes) {
    if (is_between(compute.above))
      return refused(name(computation.stages[std::size_t(compute.stage)].tensor) + " is computed");
  }
  return std::nullopt;
}

base::Result<std::vector<StagePlan>> apply(const Computation& computation, const Schedule& schedule) {
  std::vector<StagePlan> plans(computation.stages.size());
  for (std::size_t s = 0; s < plans.size(); ++s) {
    for (std::size_t a = 0; a < computation.stages[s].axes.size(); ++a) {
      plans[s].loops.push_back(LoopPlan{int(a), 0, 1, LoopKind::serial});
      plans[s].extents.push_back(computation.stages[s].axes[a].extent);
    }
  }
  Rewriter rewriter(computation, plans);
  for (const Step& step : schedule) {
    const std::string failure = rewriter.apply(step);
    if (!failure.empty()) return base::Reason{fmt::format("{}: {}", to_text(step), failure)};
  }
  for (std::size_t s = 0; s < plans.size(); ++s) {
    const StagePlan& plan = plans[s];
    if (plan.lanes < 0) continue;
    const Stage& stage = computation.stages[s];
    const auto refused = [&](const std::string& what) {
      return base::Reason{fmt::format("lanes {} {}: {}", computation.tensors[std::size_t(stage.tensor)].name,
                                      loop_name(stage, plan.loops[std::size_t(plan.lanes)]), what)};
    };
    if (plan.accumulate < 0) return refused("the stage does not accumulate");
    for (int i = 0; i < plan.accumulate; ++i) {
      const LoopPlan& loop = plan.loops[std::size_t(i)];
      if (loop.axis >= computation.spatial_axes(stage) && most_trips(plan, i) > 1)
        return refused(fmt::format("{} reduces outside of its tile", loop_name(stage, loop)));
    }
  }
  for (std::size_t s = 0; s < plans.size(); ++s) {
    const StagePlan& plan = plans[s];
    if (plan.tensorized < 0) continue;
    bool inside = plan.accumulate > plan.tensorized;
    for (const PackPlan& pack : plan.packs) inside |= pack.above > plan.tensorized;
    for (const ComputePlan& compute : plan.computes) inside |= compute.above > plan.tensorized;
    if (inside)
      return base::Reason{fmt::format("tensorize {} {}: accumulates, packs or computes inside of the intrinsic's loops",
                                      computation.tensors[std::size_t(computation.stages[s].tensor)].name,
                                      plan.intrinsic)};
  }
  for (std::size_t s = 0; s < plans.size(); ++s) {
    const StagePlan& plan = plans[s];
    const int own = computation.stages[s].tensor;
    for (const PrefetchPlan& prefetch : plan.prefetches) {
      const LoopPlan& loop = plan.loops[std::size_t(prefetch.loop)];
      const auto refused = [&](const std::string& what) {
        return base::Reason{fmt::format("prefetch {} {} {}: {}", computation.tensors[std::size_t(own)].name,
                                        computation.tensors[std::size_t(prefetch.tensor)].name,
                                        loop_name(computation.stages[s], loop), what)};
      };
      if (loop.kind != LoopKind::serial && loop.kind != LoopKind::unrolled)
        return refused(fmt::format("the loop is {}", name_of(loop.kind)));
      if (plan.tensorized >= 0 && plan.tensorized <= prefetch.loop) return refused("the loop is an intrinsic's");
      if (prefetch.tensor == own && plan.accumulate >= 0 && plan.accumulate <= prefetch.loop)
        return refused("results are kept outside of it");
      for (const ComputePlan& compute : plan.computes) {
        if (computation.stages[std::size_t(compute.stage)].tensor == prefetch.tensor && compute.above > prefetch.loop)
          return refused("the tensor is computed inside of it");
      }
    }
  }
  for (std::size_t s = 0; s < plans.size(); ++s) {
    // The copied elements must already be computed.
    for (const PackPlan& pack : plans[s].packs) {
      const auto name_of = [&](int tensor) { return computation.tensors[std::size_t(tensor)].name; };
      for (const ComputePlan& compute : plans[s].computes) {
        if (computation.stages[std::size_t(compute.stage)].tensor != pack.tensor || pack.above >= compute.above)
          continue;
        return base::Reason{fmt::format("pack {} {}: stands outside of the loops in which {} is computed",
                                        name_of(computation.stages[s].tensor), name_of(pack.tensor),
                                        name_of(pack.tensor))};
      }
    }
    // The loops of one axis must keep their order, or a tile would be left before it is entered.
    std::vector<int> level(computation.stages[s].axes.size(), -1);
    for (const LoopPlan& loop : plans[s].loops) {
      if (loop.level != level[std::size_t(loop.axis)] + 1) {
        return base::Reason{fmt::format("order {}: {} stands before its outer loop",
                                        computation.tensors[std::size_t(computation.stages[s].tensor)].name,
                                        loop_name(computation.stages[s], loop))};
      }
      level[std::size_t(loop.axis)] = loop.level;
    }
  }
  for (std::size_t s = 0; s < plans.size(); ++s) {
    if (auto fault = fault_of(computation, computation.stages[s], plans[s], band_of(plans[s]))) return *fault;
  }
  return plans;
}

}  // namespace graft::codegen
