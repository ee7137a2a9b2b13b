#include "codegen/schedule/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "codegen/schedule/restructure.h"
#include "codegen/schedule/rewrite.h"

namespace graft::codegen {
namespace {

// Remainders multiply nests; a larger program is never a candidate.
constexpr std::size_t most_nodes = 4096;

// Nests that no step describes run in parallel from this many elements on (some microseconds of work, what handing them
// out costs), in this many tasks per thread, so that none waits long for the last one.
constexpr std::int64_t least_parallel_elements = 1 << 14;
constexpr std::int64_t tasks_per_thread = 4;

// The bytes of one prefetch: the shortest line of all targets, so that none is left out; with longer lines, some are
// requested twice.
constexpr std::int64_t line_bytes = 64;
constexpr std::int64_t most_lines = 64;  // of one tensor and iteration: more than a core can wait for

// Thrown inside this file only, becomes the Reason of `lower`.
struct CannotLower {
  std::string text;
};

// The state of one axis within a loop nest: where it begins and how much is left.
struct AxisRange {
  Affine begin;
  std::int64_t size = 1;
  Interval begins;  // all values of `begin` over the loops around
};

// The position of a padded load relative to its tensor, for all values of the open loops.
enum class Place { inside, outside, undecided };

// An index of what a stage computes for another one, over that one's axes, and what loops of its own add to it.
struct Reach {
  Affine form;
  Interval more;
};

// A dimension of a padded load: inside where 0 <= form + more < extent, form over the stage's axes.
struct PaddedDimension {
  Affine form;
  Interval more;
  std::int64_t extent = 1;
  int until = 0;  // loops from this position on need not tell
};

// A tile that was copied out of its tensor: loads and stores go to `buffer`, indexed by positions of loops.
struct Tile {
  struct Part {
    int loop = 0;            // position in StagePlan::loops
    std::int64_t times = 1;  // elements of the dimension that one iteration moves
  };
  int buffer = -1;
  std::vector<std::vector<Part>> dimensions;  // each the sum of its parts
};

// The part of one stage under construction.
struct Frame {
  const Stage* stage = nullptr;
  StagePlan* plan = nullptr;
  std::vector<AxisRange> region;        // by axis: all that this nest computes
  std::vector<AxisRange> ranges;        // by axis: what is left of it here
  std::vector<Affine> coordinates;      // by loop position: its iteration here
  std::vector<PaddedDimension> padded;  // dimensions of padded loads
  bool reduced_outside = false;
  Band band;  // the parallel loops of `plan`
  // By position, within a band: the part that is written now, and how many there are.
  std::vector<int> chosen, available;
};

// The tiles of a stage, made when they are first written.
struct Tiles {
  std::vector<std::pair<int, Tile>> packed;  // by tensor
  Tile accumulator;
  int across = -1;  // buffer of one result, made of those of the lanes
};

// Storage of the elements of a tensor that a stage computes for another one, while that one needs them.
struct Region {
  int buffer = -1;
  std::vector<Affine> begin;  // by dimension: the element of the tensor that element 0 of the buffer holds
};

class Lowerer {
 public:
  Lowerer(const Computation& computation, std::vector<StagePlan> plans, std::int64_t lanes, std::int64_t threads,
          const StoreWatch& watch, std::span<const IntrinsicPointer> intrinsics)
      : computation_(computation),
        plans_(std::move(plans)),
        lanes_(lanes),
        threads_(threads),
        watch_(watch),
        intrinsics_(intrinsics),
        tiles_(computation.stages.size()),
        regions_(computation.tensors.size()) {}

  base::Result<LoopProgram> run() {
    buffer_of_.assign(computation_.tensors.size(), -1);
    for (const bool parameters : {true, false}) {
      for (std::size_t t = 0; t < computation_.tensors.size(); ++t) {
        const Tensor& tensor = computation_.tensors[t];
        if ((tensor.role != Role::temporary) != parameters || is_elided(int(t))) continue;
        buffer_of_[t] = int(program_.buffers.size());
        program_.buffers.push_back(
            {tensor.name, tensor.dtype, tensor.shape, tensor.role, Scope::memory, tensor.values});
        if (parameters) program_.buffers.back().layout = tensor.layout;
      }
    }
    find_known_ahead();
    for (std::size_t s = 0; s < plans_.size(); ++s) {
      if (!plans_[s].is_fused && !plans_[s].is_computed) lower_stage(int(s));
      if (stopped_) return *stopped_;
    }
    return std::move(program_);
  }

 private:
  // A temporary whose only reader is fused into its stage, or has it computed in tiles, never exists as a whole.
  bool is_elided(int tensor) const {
    const int stage = computation_.stage_writing(tensor);
    return stage >= 0 && (plans_[std::size_t(stage)].fused >= 0 || plans_[std::size_t(stage)].is_computed);
  }

  // Constants, literals, and temporaries that depend on nothing else.
  void find_known_ahead() {
    for (const Tensor& tensor : computation_.tensors)
      known_ahead_.push_back(tensor.role == Role::constant || tensor.is_literal());
    for (const Stage& stage : computation_.stages) {
      const std::vector<Access>& loads = stage.value.loads;
      known_ahead_[std::size_t(stage.tensor)] =
          computation_.tensors[std::size_t(stage.tensor)].role == Role::temporary && !loads.empty() &&
          std::all_of(loads.begin(), loads.end(), [&](const Access& a) { return known_ahead_[std::size_t(a.tensor)]; });
    }
  }

  // The tensor that a stage's nest writes: its own, or that of the last stage fused into it.
  int written_by(int stage) const {
    while (plans_[std::size_t(stage)].fused >= 0) stage = plans_[std::size_t(stage)].fused;
    return computation_.stages[std::size_t(stage)].tensor;
  }

  const Stage& stage() const { return *frame_.stage; }
  const StagePlan& plan() const { return *frame_.plan; }
  Tiles& tiles() { return tiles_[std::size_t(&stage() - computation_.stages.data())]; }
  const LoopPlan& loop_at(int position) const { return frame_.plan->loops[std::size_t(position)]; }
  int loop_count() const { return int(frame_.plan->loops.size()); }
  const Tensor& tensor(int number) const { return computation_.tensors[std::size_t(number)]; }

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
    // Within another stage's loops, which may have the same names.
    const std::string owner = this->plan().is_computed ? tensor(stage().tensor).name + "." : "";
    program_.loops.push_back({owner + loop_name(stage(), plan), extent, kind, std::exchange(next_intrinsic_, -1)});
    body_->push_back({Node::Kind::loop, variable, 0});
    open_.push_back(variable);
    inside(variable);
    open_.pop_back();
    if (body_->size() == at + 1) {  // all of it vanished
      body_->pop_back();
      program_.loops.pop_back();
      return;
    }
    close(at);
  }

  // Iterations of a loop that are written as one.
  struct Part {
    std::int64_t first = 0, count = 1;
    std::int64_t size = 1;  // elements of the axis that each covers
  };

  // Main part and remainder; and, where padded loads leave their tensor, apart from those that do not.
  std::vector<Part> parts_of(int position, LoopKind kind, bool by_padding) const {
    const LoopPlan& loop = loop_at(position);
    const AxisRange& range = frame_.ranges[std::size_t(loop.axis)];
    const std::int64_t trips = range.size / loop.step, rest = range.size % loop.step;
    std::vector<const PaddedDimension*> open;
    if (by_padding) {
      for (const PaddedDimension& dimension : frame_.padded) {
        if (position >= dimension.until || dimension.form.coefficient(loop.axis) == 0) continue;
        if (place_of(dimension) == Place::undecided) open.push_back(&dimension);
      }
    }
    std::vector<Part> parts;
    if (open.empty()) {
      if (trips > 0) parts.push_back({0, trips, loop.step});
      if (rest > 0) parts.push_back({trips, 1, rest});
      return parts;
    }
    if (kind == LoopKind::vector) {
      throw CannotLower{
          fmt::format("{} is {} and runs over the border of padded loads", loop_name(stage(), loop), name_of(kind))};
    }
    std::vector<Place> last, places;
    for (std::int64_t t = 0; t < trips + (rest > 0 ? 1 : 0); ++t) {
      AxisRange here = range;
      here.size = t < trips ? loop.step : rest;
      here.begins.low += t * loop.step;
      here.begins.high += t * loop.step;
      places.clear();
      for (const PaddedDimension* dimension : open) places.push_back(place_of(*dimension, loop.axis, here));
      const bool decided = std::find(places.begin(), places.end(), Place::undecided) == places.end();
      if (decided && places == last && here.size == parts.back().size) {
        ++parts.back().count;
      } else {
        parts.push_back({t, 1, here.size});
      }
      last = places;
    }
    return parts;
  }

  // The position of a dimension; with a different range for one axis in the second form.
  Place place_of(const PaddedDimension& dimension) const { return place_of(dimension, -1, {}); }
  Place place_of(const PaddedDimension& dimension, int axis, const AxisRange& instead) const {
    Interval values{dimension.form.constant + dimension.more.low, dimension.form.constant + dimension.more.high};
    for (const Term& term : dimension.form.terms) {
      const AxisRange& range = term.variable == axis ? instead : frame_.ranges[std::size_t(term.variable)];
      const std::int64_t low = range.begins.low, high = range.begins.high + range.size - 1;
      values.low += term.coefficient * (term.coefficient > 0 ? low : high);
      values.high += term.coefficient * (term.coefficient > 0 ? high : low);
    }
    if (values.low >= 0 && values.high < dimension.extent) return Place::inside;
    if (values.high < 0 || values.low >= dimension.extent) return Place::outside;
    return Place::undecided;
  }

  // Runs `inside` once for every part of the loop at `position`, with ranges and coordinates set.
  // `main`: the nest that computes the stage, which tells padding apart and prefetches.
  template <class Inside>
  void over_parts(int position, LoopKind kind, bool main, const Inside& inside) {
    if (stopped_) return;
    const LoopPlan loop = loop_at(position);
    AxisRange& range = frame_.ranges[std::size_t(loop.axis)];
    Affine& coordinate = frame_.coordinates[std::size_t(position)];
    const std::int64_t size = range.size;
    const Interval begins = range.begins;
    std::vector<Part> parts = parts_of(position, kind, main);
    if (position < int(frame_.chosen.size())) {
      frame_.available[std::size_t(position)] = int(parts.size());
      parts = {parts[std::size_t(frame_.chosen[std::size_t(position)])]};
    }
    for (const Part& part : parts) {
      const std::int64_t first = part.first * loop.step;
      range.begin.constant += first;
      range.size = part.size;
      range.begins = {begins.low + first, begins.high + first + (part.count - 1) * loop.step};
      // A band's outermost loop stays even for one iteration: it says that the nest is a task.
      const bool is_task = position < int(frame_.chosen.size()) && position == frame_.band.begin;
      if (part.count > 1) {
        emit_loop(loop, part.count, kind, [&](int variable) {
          range.begin.terms.push_back({variable, loop.step});
          coordinate = Affine::variable(variable) + Affine(part.first);
          const std::size_t node = body_->size() - 1;
          if (main) prefetch(position, variable);
          inside();
          if (main) drop_idle_prefetches(node);
          range.begin.terms.pop_back();
        });
      } else if (is_task) {
        emit_loop(loop, 1, kind, [&](int) {
          coordinate = Affine(part.first);
          inside();
        });
      } else {
        coordinate = Affine(part.first);
        inside();
      }
      range.begin.constant -= first;
    }
    range.size = size;
    range.begins = begins;
  }

  // Runs `inside` once for every combination of parts of the loops before `end`: parallel loops are then each other's
  // only children. Tiles that are made inside belong to one nest, so that tasks can have them for themselves.
  template <class Inside>
  void over_band(int end, const Inside& inside) {
    if (end == 0) return inside();
    frame_.chosen.assign(std::size_t(end), 0);
    for (int next = end; next >= 0;) {
      frame_.available.assign(std::size_t(end), 0);
      const std::vector<Tiles> tiles = tiles_;
      const std::vector<Region> regions = regions_;
      const auto blocked = blocked_;
      inside();
      tiles_ = tiles;
      regions_ = regions;
      blocked_ = blocked;
      for (next = end - 1; next >= 0; --next) {
        int& chosen = frame_.chosen[std::size_t(next)];
        if (++chosen < frame_.available[std::size_t(next)]) break;
        chosen = 0;
      }
    }
    frame_.chosen.clear();
  }

  // Position after the loops of a nest without steps that should be a band: from outside until there are enough
  // tasks, and without the innermost, which is too small for a task. 0 if it should have none.
  int automatic_band(const std::function<bool(int)>& wanted) const {
    if (threads_ <= 1 || plan().is_computed || body_ != &program_.run) return 0;
    std::int64_t elements = 1;
    int innermost = -1;
    for (int i = 0; i < loop_count(); ++i) {
      if (!wanted(i) || most_trips(i) == 1) continue;
      elements *= most_trips(i);
      if (loop_at(i).kind != LoopKind::vector) innermost = i;
    }
    if (elements < least_parallel_elements) return 0;
    std::int64_t tasks = 1;
    int end = 0;
    for (int i = 0; i < innermost && tasks < threads_ * tasks_per_thread; ++i) {
      if (!wanted(i)) continue;
      tasks *= most_trips(i);
      end = i + 1;
    }
    return tasks >= threads_ ? end : 0;
  }

  // Marks the outermost spatial loops of a plan that no step describes.
  void parallelise() {
    const int end = automatic_band([&](int position) { return is_spatial(position); });
    for (int i = 0; i < end; ++i) frame_.plan->loops[std::size_t(i)].kind = LoopKind::parallel;
  }

  // The nest of the loops `wanted` from `position` on, `leaf` at its bottom.
  void nest(int position, const std::function<bool(int)>& wanted, const std::function<LoopKind(int)>& kind,
            const std::function<void()>& leaf) {
    while (position < loop_count() && !wanted(position)) ++position;
    if (position == loop_count()) {
      leaf();
      return;
    }
    over_parts(position, kind(position), false, [&] { nest(position + 1, wanted, kind, leaf); });
  }

  // ---- accesses ----

  std::vector<Affine> begins() const { return begins_of(frame_.ranges); }
  static std::vector<Affine> begins_of(const std::vector<AxisRange>& ranges) {
    std::vector<Affine> begin;
    begin.reserve(ranges.size());
    for (const AxisRange& range : ranges) begin.push_back(range.begin);
    return begin;
  }

  // An element of a tensor, wherever it is kept.
  Access element(int number, std::vector<Affine> index) const {
    const Region& region = regions_[std::size_t(number)];
    if (region.buffer < 0) return {buffer_of_[std::size_t(number)], std::move(index), false};
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += region.begin[d] * -1;
    return {region.buffer, std::move(index), false};
  }

  Access in_tensor(const Access& access, std::span<const Affine> begin) const {
    std::vector<Affine> index;
    index.reserve(access.index.size());
    for (const Affine& form : access.index) index.push_back(substitute(form, begin));
    Access result = element(access.tensor, std::move(index));
    result.gathered = access.gathered;
    return result;
  }

  Access in_tile(const Tile& tile) const {
    Access result{tile.buffer, {}, false};
    result.index.reserve(tile.dimensions.size());
    for (const std::vector<Tile::Part>& dimension : tile.dimensions) {
      Affine form;
      for (const Tile::Part& part : dimension) form += frame_.coordinates[std::size_t(part.loop)] * part.times;
      result.index.push_back(std::move(form));
    }
    if (result.index.empty()) result.index.emplace_back(0);
    return result;
  }

  // The element of the stage's own tensor.
  Access own(std::span<const Affine> begin) const { return element(stage().tensor, own_index(begin)); }
  std::vector<Affine> own_index(std::span<const Affine> begin) const {
    std::vector<Affine> index = element_of(computation_, stage());
    for (Affine& form : index) form = substitute(form, begin);
    return index;
  }

  // Whether a padded load reads outside its tensor here.
  bool is_outside(const Access& access) const {
    if (!access.padded) return false;
    bool outside = false;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      const Place place = place_of({access.index[d], {0, 0}, tensor(access.tensor).shape[d]});
      if (place == Place::undecided) {
        throw CannotLower{fmt::format("the loops of {} leave open whether {} is read outside of its shape",
                                      tensor(stage().tensor).name, tensor(access.tensor).name)};
      }
      outside |= place == Place::outside;
    }
    return outside;
  }

  Value value_here(std::span<const Affine> begin) {
    Value value = stage().value;
    if (!frame_.padded.empty()) {
      value = replace_loads(value, [&](const Access& access) {
        return is_outside(access) ? std::optional(Value::constant(access.outside)) : std::nullopt;
      });
    }
    return map_accesses(
        std::move(value),
        [&](const Access& access) {
          for (const auto& [number, tile] : tiles().packed) {
            if (number == access.tensor) return in_tile(tile);
          }
          return in_tensor(access, begin);
        },
        [&](const Affine& form) { return substitute(form, begin); });
  }

  // ---- tiles ----

  bool is_spatial(int position) const { return loop_at(position).axis < computation_.spatial_axes(stage()); }

  // Most trips of the loop at `position`, remainders included: what a tile must have room for.
  std::int64_t most_trips(int position) const { return codegen::most_trips(plan(), position); }

  // Tiles of the nests of one band have the same name to begin with.
  std::string unused_name(const std::string& name) const {
    const auto is_used = [&](const std::string& wanted) {
      return std::any_of(program_.buffers.begin(), program_.buffers.end(),
                         [&](const Buffer& buffer) { return buffer.name == wanted; });
    };
    std::string result = name;
    for (int copy = 2; is_used(result); ++copy) result = fmt::format("{}{}", name, copy);
    return result;
  }

  Tile make_tile(const std::string& name, DType dtype, int from, const std::function<bool(int)>& wanted,
                 bool registers) {
    Tile tile;
    Buffer buffer{unused_name(name), dtype, {}, Role::temporary, registers ? Scope::registers : Scope::memory};
    for (int i = from; i < loop_count(); ++i) {
      if (!wanted(i) || most_trips(i) == 1) continue;
      tile.dimensions.push_back({{i, 1}});
      buffer.shape.push_back(most_trips(i));
    }
    if (buffer.shape.empty()) buffer.shape.push_back(1);
    tile.buffer = int(program_.buffers.size());
    program_.buffers.push_back(std::move(buffer));
    return tile;
  }

  bool indexes(const Access& access, int position) const {
    const int axis = loop_at(position).axis;
    return std::any_of(access.index.begin(), access.index.end(),
                       [&](const Affine& form) { return form.coefficient(axis) != 0; });
  }

  const Access& access_to(int number) const {
    return *std::find_if(stage().value.loads.begin(), stage().value.loads.end(),
                         [&](const Access& access) { return access.tensor == number; });
  }

  // The loops of a copy in blocks of neighbours, and its tile as they and as the stage's own loops index it.
  struct Blocked {
    StagePlan plan;
    Tile written, read;
  };

  // Neighbours in the source become one dimension of the tile, which the copy's own loops go through in blocks.
  Blocked blocked_copy(const PackPlan& pack, const Access& access) {
    const auto is_neighbour = [&](int position) {
      return stride_along(computation_, access, loop_at(position).axis) == 1;
    };
    std::vector<int> loops;
    for (int i = pack.above; i < loop_count(); ++i) {
      if (indexes(access, i) && most_trips(i) > 1) loops.push_back(i);
    }
    // The innermost loops along adjacent neighbours.
    int end = int(loops.size());
    while (end > 0 && !is_neighbour(loops[std::size_t(end) - 1])) --end;
    int begin = end;
    while (begin > 0 && is_neighbour(loops[std::size_t(begin) - 1])) --begin;
    if (begin == end)
      throw CannotLower{fmt::format("pack: nothing of {} lies side by side", tensor(access.tensor).name)};

    Blocked copy;
    copy.plan.extents = plan().extents;
    copy.plan.loops.assign(plan().loops.begin(), plan().loops.begin() + pack.above);
    Buffer buffer{unused_name(fmt::format("{}.{}.packed", tensor(stage().tensor).name, tensor(access.tensor).name)),
                  tensor(access.tensor).dtype,
                  {}};
    for (int i = 0; i < int(loops.size()); ++i) {
      const int position = loops[std::size_t(i)];
      LoopPlan loop = loop_at(position);
      if (i > begin && i < end) {
        copy.read.dimensions.back().push_back({position, loop.step});
        continue;
      }
      const int own = int(copy.plan.loops.size());
      loop.kind = i + 1 == int(loops.size()) && i > begin ? LoopKind::unrolled : LoopKind::serial;
      if (i == begin) {
        buffer.shape.push_back(range_of(plan(), position));
        copy.read.dimensions.push_back({{position, loop.step}});
        copy.written.dimensions.push_back({{own, pack.by}});
        loop.step = pack.by;
      } else {
        buffer.shape.push_back(most_trips(position));
        copy.read.dimensions.push_back({{position, 1}});
        copy.written.dimensions.push_back({{own, 1}});
      }
      copy.plan.loops.push_back(loop);
    }
    copy.written.dimensions[std::size_t(begin)].push_back({int(copy.plan.loops.size()), 1});
    const LoopPlan& innermost = loop_at(loops[std::size_t(end) - 1]);
    copy.plan.loops.push_back({innermost.axis, innermost.level + 1, 1, LoopKind::vector});
    copy.written.buffer = copy.read.buffer = int(program_.buffers.size());
    program_.buffers.push_back(std::move(buffer));
    return copy;
  }

  void pack_in_blocks(const PackPlan& pack, bool outermost) {
    const Access& access = access_to(pack.tensor);
    auto known = blocked_.find({frame_.stage, pack.tensor});
    if (known == blocked_.end()) {
      known = blocked_.emplace(std::pair(frame_.stage, pack.tensor), blocked_copy(pack, access)).first;
      tiles().packed.emplace_back(pack.tensor, known->second.read);
    }
    Blocked& copy = known->second;
    StagePlan* const saved = std::exchange(frame_.plan, &copy.plan);
    std::vector<Affine> coordinates(copy.plan.loops.size(), Affine(0));
    std::swap(coordinates, frame_.coordinates);
    copy_nest(
        pack.above, outermost, [](int) { return true; }, [&](int position) { return loop_at(position).kind; },
        [&] { emit_store(in_tile(copy.written), Combine::none, Value::load(in_tensor(access, begins()))); });
    std::swap(coordinates, frame_.coordinates);
    frame_.plan = saved;
  }

  // Copies what the stage reads of a tensor from here on.
  void pack(const PackPlan& pack) {
    const bool outermost = is_outermost(plan(), pack.above) && !plan().is_computed;
    // What is computed in tiles is not there before the run, though it depends on constants alone.
    const bool ahead = outermost && known_ahead_[std::size_t(pack.tensor)] && !is_elided(pack.tensor);
    Body* const outer = body_;
    if (ahead) body_ = &program_.prepare;
    pack.by > 0 ? pack_in_blocks(pack, outermost) : pack_as_read(pack, outermost);
    body_ = outer;
  }

  // A copy's nest; an outermost one runs in parallel if it is worth it.
  void copy_nest(int position, bool outermost, const std::function<bool(int)>& wanted,
                 const std::function<LoopKind(int)>& kind, const std::function<void()>& leaf) {
    const int band = outermost ? automatic_band(wanted) : 0;
    const auto kind_here = [&](int p) {
      return p < band && kind(p) == LoopKind::serial ? LoopKind::parallel : kind(p);
    };
    over_band(band, [&] { nest(position, wanted, kind_here, leaf); });
  }

  void pack_as_read(const PackPlan& pack, bool outermost) {
    const Access& access = access_to(pack.tensor);
    const Tensor& source = tensor(pack.tensor);
    const auto wanted = [&](int position) { return indexes(access, position); };
    std::vector<std::pair<int, Tile>>& packed = tiles().packed;
    auto known = std::find_if(packed.begin(), packed.end(), [&](const auto& p) { return p.first == pack.tensor; });
    if (known == packed.end()) {
      const std::string name = fmt::format("{}.{}.packed", tensor(stage().tensor).name, source.name);
      packed.emplace_back(pack.tensor, make_tile(name, source.dtype, pack.above, wanted, false));
      known = packed.end() - 1;
    }
    const Tile tile = known->second;
    const auto kind = [&](int position) {
      const LoopPlan& loop = loop_at(position);
      const bool vector = loop.kind == LoopKind::vector && stride_along(computation_, access, loop.axis) == 1;
      return vector ? LoopKind::vector : LoopKind::serial;
    };
    copy_nest(pack.above, outermost, wanted, kind,
              [&] { emit_store(in_tile(tile), Combine::none, Value::load(in_tensor(access, begins()))); });
  }

  // ---- prefetches ----

  // Elements of a buffer that one iteration of a loop touches: `size` of them from `begin` on, by dimension, which the
  // next iteration has moved by `moves`.
  struct Box {
    int buffer = -1;
    std::vector<Affine> begin;
    std::vector<std::int64_t> size, moves;
  };

  // Appends to the loop at `position`, whose variable is `variable`, the prefetches of its iterations.
  void prefetch(int position, int variable) {
    for (const PrefetchPlan& prefetch : plan().prefetches) {
      if (prefetch.loop != position) continue;
      Box box = box_of(prefetch.tensor, position);
      int moving = 0;
      for (const Affine& form : box.begin) {
        box.moves.push_back(form.coefficient(variable));
        moving += box.moves.back() != 0 ? 1 : 0;
      }
      if (moving == 0) {
        throw CannotLower{fmt::format("prefetch {} {} {}: the loop does not move it", tensor(stage().tensor).name,
                                      tensor(prefetch.tensor).name, loop_name(stage(), loop_at(position)))};
      }
      for (std::size_t d = 0; d < box.begin.size(); ++d) {
        const std::int64_t step = box.moves[d], size = box.size[d];
        box.begin[d] += Affine(step * prefetch.distance);
        // Where one dimension moves, only its end is new.
        if (moving > 1 || step == 0 || std::abs(step) >= size) continue;
        if (step > 0) box.begin[d] += Affine(size - step);
        box.size[d] = std::abs(step);
      }
      append_lines(box, program_.loops[std::size_t(variable)].prefetches);
    }
  }

  // What the stage touches of a tensor under the loops so far, wherever it finds it then.
  Box box_of(int number, int position) const {
    Box box;
    const std::vector<std::pair<int, Tile>>& packed =
        tiles_[std::size_t(frame_.stage - computation_.stages.data())].packed;
    const auto tile = std::find_if(packed.begin(), packed.end(), [&](const auto& p) { return p.first == number; });
    const bool is_packed = std::any_of(plan().packs.begin(), plan().packs.end(), [&](const PackPlan& pack) {
      return pack.tensor == number && pack.above <= position;
    });
    if (is_packed) {
      box.buffer = tile->second.buffer;
      for (const std::vector<Tile::Part>& dimension : tile->second.dimensions) {
        Affine begin;
        std::int64_t size = 1;
        for (const Tile::Part& part : dimension) {
          if (part.loop > position)
            size += part.times * (most_trips(part.loop) - 1);
          else
            begin += frame_.coordinates[std::size_t(part.loop)] * part.times;
        }
        box.begin.push_back(std::move(begin));
        box.size.push_back(size);
      }
      if (box.begin.empty()) {
        box.begin.emplace_back(0);
        box.size.push_back(1);
      }
      return box;
    }
    if (number == stage().tensor) {
      const std::vector<Affine> index = element_of(computation_, stage());
      const int written = plan().fused < 0 ? number : computation_.stages[std::size_t(fused_chain().first)].tensor;
      Access access = element(written, own_index(begins()));
      box.buffer = access.tensor;
      box.begin = std::move(access.index);
      for (const Affine& form : index) {
        std::int64_t size = 1;
        for (const Term& term : form.terms)
          size += term.coefficient * (frame_.ranges[std::size_t(term.variable)].size - 1);
        box.size.push_back(size);
      }
      return box;
    }
    std::vector<Affine> begin;
    for (AxisRange& range : read_of(number)) {
      begin.push_back(std::move(range.begin));
      box.size.push_back(range.size);
    }
    Access access = element(number, std::move(begin));
    box.buffer = access.tensor;
    box.begin = std::move(access.index);
    return box;
  }

  // One element of each line of a box. Rows that follow one another in memory are one.
  void append_lines(const Box& box, std::vector<Access>& result) const {
    const Buffer& buffer = program_.buffers[std::size_t(box.buffer)];
    std::size_t rows_end = box.size.size();  // dimensions before it are one row each
    std::int64_t row = 1;
    while (rows_end > 0) {
      row *= box.size[--rows_end];
      if (box.size[rows_end] != buffer.shape[rows_end]) break;
    }
    const std::int64_t line = std::max<std::int64_t>(1, line_bytes / bytes_of(buffer.dtype));
    std::int64_t rows = 1;
    for (std::size_t d = 0; d < rows_end; ++d) rows *= box.size[d];
    const std::int64_t lines = (row + line - 1) / line;
    if (rows > most_lines || rows * lines > most_lines) {
      throw CannotLower{fmt::format("prefetch: an iteration touches {} x {} lines of {}, more than {}", rows, lines,
                                    buffer.name, most_lines)};
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t e = 0; e < row; e += line) {
        Access access{box.buffer, box.begin, false};
        std::int64_t left = r;
        for (std::size_t d = rows_end; d-- > 0; left /= box.size[d]) access.index[d] += Affine(left % box.size[d]);
        left = e;
        for (std::size_t d = box.size.size(); d-- > rows_end; left /= box.size[d])
          access.index[d] += Affine(left % box.size[d]);
        if (is_near(access)) result.push_back(std::move(access));
      }
    }
  }

  // Programs do not prefetch further outside of a buffer than its extent (program.h).
  bool is_near(const Access& access) const {
    const Buffer& buffer = program_.buffers[std::size_t(access.tensor)];
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      std::int64_t low = access.index[d].constant, high = low;
      for (const Term& term : access.index[d].terms) {
        const std::int64_t reach = term.coefficient * (program_.loops[std::size_t(term.variable)].extent - 1);
        (reach < 0 ? low : high) += reach;
      }
      if (low <= -buffer.shape[d] || high > 2 * (buffer.shape[d] - 1)) return false;
    }
    return true;
  }

  // If parts of a stage vanish (padding), a loop may not touch its prefetched elements.
  void drop_idle_prefetches(std::size_t node) {
    std::vector<Access>& prefetches = program_.loops[std::size_t((*body_)[node].item)].prefetches;
    if (prefetches.empty()) return;
    (*body_)[node].end = int(body_->size());
    std::erase_if(prefetches,
                  [&](const Access& access) { return !touches(program_, *body_, int(node), access.tensor); });
  }

  // ---- stages ----

  void lower_stage(int number) {
    frame_ = {};
    frame_.stage = &computation_.stages[std::size_t(number)];
    frame_.plan = &plans_[std::size_t(number)];
    for (const Axis& axis : stage().axes) frame_.region.push_back({Affine(0), axis.extent, {0, 0}});
    body_ = known_ahead_[std::size_t(written_by(number))] ? &program_.prepare : &program_.run;
    lower_region();
  }

  // The stage's elements in frame_.region.
  void lower_region() {
    if (!plan().scheduled) {
      vectorise_last_axis();
      parallelise();
    }
    reset_ranges();
    if (is_padding_copy(stage())) {
      lower_padding_copy();
      return;
    }
    find_padded_dimensions();
    const bool reduces = computation_.is_reduction(stage());
    if (plan().accumulate >= 0) {
      for (int i = 0; i < plan().accumulate; ++i) frame_.reduced_outside |= !is_spatial(i) && most_trips(i) > 1;
    }
    if (reduces && (plan().accumulate < 0 || frame_.reduced_outside)) {
      fill(Value::constant(identity_of(stage().combine)));
      reset_ranges();
    }
    descend(0);
  }

  void reset_ranges() {
    frame_.band = threads_ > 1 ? band_with_blocks(plan()) : band_of(plan());
    frame_.ranges = frame_.region;
    frame_.coordinates.assign(plan().loops.size(), Affine(0));
  }

  // The stage's own padded loads are resolved down to the leaf; those of what is computed in tiles, above the tile.
  void find_padded_dimensions() {
    std::vector<Reads> reads(computation_.tensors.size());
    for (const Access& access : stage().value.loads) {
      std::vector<Reach> index;
      for (const Affine& form : access.index) index.push_back({form, {0, 0}});
      add_padded(access, std::move(index), loop_count(), reads);
    }
    find_padded_within(plan(), loop_count(), reads);
  }

  // The loads of what a plan computes, through those of its readers.
  using Reads = std::vector<std::vector<Reach>>;  // of a tensor, over the axes of the stage
  void find_padded_within(const StagePlan& reader, int until, std::vector<Reads>& reads) {
    for (auto compute = reader.computes.rbegin(); compute != reader.computes.rend(); ++compute) {
      const Stage& producer = computation_.stages[std::size_t(compute->stage)];
      const StagePlan& own = plans_[std::size_t(compute->stage)];
      const int above = &reader == &plan() ? compute->above : until;
      for (const std::vector<Reach>& read : reads[std::size_t(written_by(compute->stage))]) {
        for (const Access& access : producer.value.loads) {
          std::vector<Reach> index;
          for (const Affine& form : access.index) index.push_back(through(form, read, producer));
          add_padded(access, std::move(index), above, reads);
        }
      }
      find_padded_within(own, above, reads);
    }
  }

  void add_padded(const Access& access, std::vector<Reach> index, int until, std::vector<Reads>& reads) {
    for (std::size_t d = 0; access.padded && d < index.size(); ++d)
      frame_.padded.push_back({index[d].form, index[d].more, tensor(access.tensor).shape[d], until});
    reads[std::size_t(access.tensor)].push_back(std::move(index));
  }

  // A form over a producer's axes where an element of it is read.
  static Reach through(const Affine& form, const std::vector<Reach>& read, const Stage& producer) {
    Reach result{Affine(form.constant), {0, 0}};
    for (const Term& term : form.terms) {
      const std::size_t axis = std::size_t(term.variable);
      Interval more{0, producer.axes[axis].extent - 1};
      if (axis < read.size()) {
        result.form.add(read[axis].form, term.coefficient);
        more = read[axis].more;
      }
      result.more.low += term.coefficient * (term.coefficient > 0 ? more.low : more.high);
      result.more.high += term.coefficient * (term.coefficient > 0 ? more.high : more.low);
    }
    return result;
  }

  // Stages that no step names get their last spatial axis vectorised where every access allows it.
  void vectorise_last_axis() {
    StagePlan& plan = *frame_.plan;
    const int axis = computation_.spatial_axes(stage()) - 1;
    if (lanes_ <= 1 || axis < 0 || computation_.is_reduction(stage())) return;
    if (plan.loops.back().kind == LoopKind::vector) return;  // computed more than once
    const bool copies = is_padding_copy(stage());
    for (const Access& access : stage().value.loads) {
      const std::int64_t stride = stride_along(computation_, access, axis);
      if ((stride != 0 && stride != 1) || (access.padded && !copies)) return;
    }
    plan.loops.back().step = lanes_;
    plan.loops.push_back({axis, 1, 1, LoopKind::vector});
  }

  // Fills the stage's elements with a constant, in a nest of its own.
  void fill(const Value& value) {
    StagePlan* const saved = frame_.plan;
    StagePlan plain;
    const int rank = computation_.spatial_axes(stage());
    for (int d = 0; d < rank; ++d) plain.loops.push_back({d, 0, 1, LoopKind::serial});
    plain.extents = saved->extents;
    plain.is_computed = saved->is_computed;
    if (lanes_ > 1 && rank > 0) {
      plain.loops.back().step = lanes_;
      plain.loops.push_back({rank - 1, 1, 1, LoopKind::vector});
    }
    frame_.plan = &plain;
    parallelise();
    reset_ranges();
    whole_nest([&] { emit_store(own(begins()), Combine::none, value); });
    frame_.plan = saved;
  }

  void whole_nest(const std::function<void()>& leaf) {
    over_band(frame_.band.end, [&] {
      nest(
          0, [](int) { return true; }, [&](int position) { return loop_at(position).kind; }, leaf);
    });
  }

  // What is outside, then the inside.
  void lower_padding_copy() {
    const Access& access = stage().value.loads[0];
    bool whole = true, nothing = false;
    std::vector<AxisRange> inside = frame_.ranges;
    for (std::size_t d = 0; d < access.index.size(); ++d) {
      const Affine& form = access.index[d];
      const std::int64_t extent = tensor(access.tensor).shape[d];
      AxisRange& range = inside[std::size_t(form.terms[0].variable)];
      const Place place = place_of({form, {0, 0}, extent});
      if (place == Place::inside) continue;
      whole = false;
      if (place == Place::outside) {
        nothing = true;
      } else if (!range.begin.is_constant()) {
        throw CannotLower{
            fmt::format("the loops around {} leave open what of it is padding", tensor(stage().tensor).name)};
      } else {
        const std::int64_t first = range.begin.constant + form.constant;
        const std::int64_t begin = std::max<std::int64_t>(0, -first);
        const std::int64_t end = std::min(range.size, extent - first);
        range.begin.constant += begin;
        range.begins = {range.begin.constant, range.begin.constant};
        range.size = end - begin;
      }
    }
    if (!whole) fill(Value::constant(access.outside));
    if (nothing) return;
    reset_ranges();
    frame_.ranges = inside;
    whole_nest([&] { emit_store(own(begins()), Combine::none, Value::load(in_tensor(access, begins()))); });
  }

  // What the stage needs at a position before anything else: producers' tiles, then copies.
  void provide(int position) {
    compute(position);
    for (const PackPlan& pack : plan().packs) {
      if (pack.above == position) this->pack(pack);
    }
  }

  // Computes the elements of producers that are read from here on, by the stage or by each other.
  void compute(int position) {
    std::vector<Frame> producers;
    for (const ComputePlan& compute : plan().computes) {
      if (compute.above != position) continue;
      producers.emplace_back();
      producers.back().stage = &computation_.stages[std::size_t(compute.stage)];
      producers.back().plan = &plans_[std::size_t(compute.stage)];
    }
    for (std::size_t p = producers.size(); p-- > 0;) {
      Frame& producer = producers[p];
      const int number = written_by(int(producer.stage - computation_.stages.data()));
      add_read(stage(), frame_.ranges, number, producer.region);
      for (std::size_t reader = p + 1; reader < producers.size(); ++reader)
        add_read(*producers[reader].stage, producers[reader].region, number, producer.region);
      for (std::size_t a = producer.region.size(); a < producer.stage->axes.size(); ++a)
        producer.region.push_back({Affine(0), producer.stage->axes[a].extent, {0, 0}});
    }
    for (Frame& producer : producers) compute(std::move(producer));
  }

  void compute(Frame inner) {
    const int number = written_by(int(inner.stage - computation_.stages.data()));
    Region& region = regions_[std::size_t(number)];
    if (region.buffer < 0) {
      region.buffer = int(program_.buffers.size());
      std::vector<std::int64_t> shape(inner.plan->extents.begin(),
                                      inner.plan->extents.begin() + computation_.spatial_axes(*inner.stage));
      program_.buffers.push_back({unused_name(tensor(number).name), tensor(number).dtype, std::move(shape)});
    }
    region.begin.clear();
    for (int d = 0; d < computation_.spatial_axes(*inner.stage); ++d)
      region.begin.push_back(inner.region[std::size_t(d)].begin);
    std::swap(frame_, inner);
    lower_region();
    std::swap(frame_, inner);
  }

  // By dimension: what the stage reads of a tensor under the loops so far.
  std::vector<AxisRange> read_of(int number) const {
    std::vector<AxisRange> result;
    add_read(stage(), frame_.ranges, number, result);
    return result;
  }

  // Joins the elements of a tensor that a stage reads, for axes in these ranges, with those in `result`.
  void add_read(const Stage& reader, const std::vector<AxisRange>& ranges, int number,
                std::vector<AxisRange>& result) const {
    const std::vector<Affine> begins = begins_of(ranges);
    for (const Access& access : reader.value.loads) {
      if (access.tensor != number) continue;
      std::vector<AxisRange> read;
      for (std::size_t d = 0; d < access.index.size(); ++d) {
        if (access.gathers(d)) {  // any of them
          read.push_back({Affine(0), tensor(number).shape[d], {0, 0}});
          continue;
        }
        const Affine& form = access.index[d];
        AxisRange range{substitute(form, begins), 1, {form.constant, form.constant}};
        for (const Term& term : form.terms) {
          const AxisRange& axis = ranges[std::size_t(term.variable)];
          const std::int64_t c = term.coefficient, reach = c * (axis.size - 1);
          range.size += std::abs(reach);
          range.begin.constant += std::min<std::int64_t>(reach, 0);
          range.begins.low += c * (c > 0 ? axis.begins.low : axis.begins.high) + std::min<std::int64_t>(reach, 0);
          range.begins.high += c * (c > 0 ? axis.begins.high : axis.begins.low) + std::min<std::int64_t>(reach, 0);
        }
        read.push_back(std::move(range));
      }
      if (result.empty()) {
        result = std::move(read);
        continue;
      }
      for (std::size_t d = 0; d < read.size(); ++d) {
        if (read[d].begin.terms != result[d].begin.terms) {
          throw CannotLower{fmt::format("{} is read in ways that move apart", tensor(number).name)};
        }
        const std::int64_t shift = std::min<std::int64_t>(0, read[d].begin.constant - result[d].begin.constant);
        const std::int64_t end =
            std::max(result[d].begin.constant + result[d].size, read[d].begin.constant + read[d].size);
        result[d].begin.constant += shift;
        result[d].begins = {result[d].begins.low + shift, result[d].begins.high + shift};
        result[d].size = end - result[d].begin.constant;
      }
    }
  }

  // The stage's own nest, from the loop at `position` on.
  void descend(int position) {
    provide(position);
    if (plan().accumulate == position) {
      accumulate(position);
      return;
    }
    if (plan().tensorized == position && tensorize()) return;
    if (position == loop_count()) {
      leaf();
      return;
    }
    const auto inside = [&] { over_parts(position, loop_at(position).kind, true, [&] { descend(position + 1); }); };
    over_band(position == frame_.band.begin ? frame_.band.end : 0, inside);
  }

  void leaf() {
    const std::vector<Affine> begin = begins();
    const Combine combine = computation_.is_reduction(stage()) ? stage().combine : Combine::none;
    Value value = value_here(begin);
    if (combine != Combine::none && constant_value(value) == identity_of(combine)) return;
    const Tile& accumulator = tiles().accumulator;
    emit_store(accumulator.buffer >= 0 ? in_tile(accumulator) : own(begin), combine, std::move(value));
  }

  // Start values, the reduction, and write-back of one tile.
  void accumulate(int position) {
    const auto spatial = [&](int i) { return is_spatial(i); };
    const auto kept = [&](int i) { return is_spatial(i) || i == plan().lanes; };
    const auto kind = [&](int i) { return kind_in_tile(i); };
    Tile& accumulator = tiles().accumulator;
    if (accumulator.buffer < 0) {
      bool registers = true;
      for (int i = position; i < loop_count(); ++i) {
        registers &=
            !is_spatial(i) || most_trips(i) == 1 || kind(i) == LoopKind::unrolled || kind(i) == LoopKind::vector;
      }
      const Tensor& result = tensor(stage().tensor);
      accumulator = make_tile(result.name + ".tile", result.dtype, position, kept, registers);
    }
    const Tile tile = accumulator;
    const std::vector<AxisRange> saved = frame_.ranges;
    if (plan().lanes >= 0) frame_.ranges[std::size_t(loop_at(plan().lanes).axis)].size = most_trips(plan().lanes);
    nest(position, kept, kind, [&] {
      emit_store(in_tile(tile), Combine::none,
                 frame_.reduced_outside ? Value::load(own(begins())) : Value::constant(identity_of(stage().combine)));
    });
    frame_.ranges = saved;
    reduce(position);
    nest(position, spatial, kind, [&] { write_back(plan().lanes < 0 ? in_tile(tile) : across_lanes(tile)); });
  }

  // The results of all lanes as one.
  Access across_lanes(const Tile& tile) {
    int& across = tiles().across;
    if (across < 0) {
      const Tensor& result = tensor(stage().tensor);
      across = int(program_.buffers.size());
      program_.buffers.push_back(
          {unused_name(result.name + ".across"), result.dtype, {1}, Role::temporary, Scope::registers});
    }
    const Access one{across, {Affine(0)}, false};
    emit_store(one, Combine::none, Value::constant(identity_of(stage().combine)));
    const int lanes = plan().lanes;
    emit_loop(loop_at(lanes), most_trips(lanes), LoopKind::vector, [&](int variable) {
      frame_.coordinates[std::size_t(lanes)] = Affine::variable(variable);
      emit_store(one, stage().combine, Value::load(in_tile(tile)));
    });
    return one;
  }

  // The reduction itself; copies may stand between its loops.
  void reduce(int position) {
    if (plan().tensorized == position && tensorize()) return;
    if (position == loop_count()) {
      leaf();
      return;
    }
    over_parts(position, loop_at(position).kind, true, [&] {
      provide(position + 1);
      reduce(position + 1);
    });
  }

  // ---- intrinsics ----

  // The loops of an intrinsic's nest, if they have all their iterations; false if they are a remainder.
  bool tensorize() {
    const int first = plan().tensorized;
    const IntrinsicPointer intrinsic = intrinsic_named(intrinsics_, plan().intrinsic);
    const auto refuse = [&](const std::string& text) {
      throw CannotLower{fmt::format("tensorize {} {} {}: {}", tensor(stage().tensor).name, plan().intrinsic,
                                    loop_name(stage(), loop_at(first)), text)};
    };
    if (intrinsic == nullptr) refuse("there is no such intrinsic");
    const std::vector<AxisRange> saved = frame_.ranges;
    for (int i = first; i < loop_count(); ++i) {
      AxisRange& range = frame_.ranges[std::size_t(loop_at(i).axis)];
      const std::int64_t whole = range_of(plan(), i);
      const bool is_first = std::none_of(plan().loops.begin() + first, plan().loops.begin() + i,
                                         [&](const LoopPlan& outer) { return outer.axis == loop_at(i).axis; });
      if (!is_first || range.size == whole) continue;
      if (!has_room(i)) {
        frame_.ranges = saved;
        return false;
      }
      range.size = whole;
    }
    const auto known = std::find(program_.intrinsics.begin(), program_.intrinsics.end(), intrinsic);
    next_intrinsic_ = int(known - program_.intrinsics.begin());
    if (known == program_.intrinsics.end()) program_.intrinsics.push_back(intrinsic);
    const std::size_t at = body_->size();
    nest(
        first, [](int) { return true; }, [](int) { return LoopKind::unrolled; }, [&] { leaf(); });
    frame_.ranges = saved;
    next_intrinsic_ = -1;
    if (stopped_ || body_->size() == at) return true;  // or all of it is zero
    const base::Result<Match> found = match(program_, *body_, int(at), *intrinsic);
    if (!found) refuse(found.reason().text);
    return true;
  }

  // A remainder of a spatial loop may run its whole range if only tiles move along it, which have room
  // for it: surplus results are never written back.
  bool has_room(int position) {
    if (tiles().accumulator.buffer < 0 || !is_spatial(position)) return false;
    return std::all_of(stage().value.loads.begin(), stage().value.loads.end(), [&](const Access& access) {
      if (!indexes(access, position)) return true;
      const auto& packed = tiles().packed;
      return std::any_of(packed.begin(), packed.end(), [&](const auto& p) {
        return p.first == access.tensor &&
               std::any_of(p.second.dimensions.begin(), p.second.dimensions.end(), [&](const auto& dimension) {
                 return dimension.size() == 1 && dimension[0].loop == position;
               });
      });
    });
  }

  // Kind of a loop that initialises a tile or writes it back. An intrinsic's innermost loop is a vector
  // there, if results are adjacent.
  LoopKind kind_in_tile(int position) const {
    if (plan().tensorized >= 0 && position >= plan().tensorized) {
      int last = loop_count() - 1;
      while (last >= 0 && !is_spatial(last)) --last;
      const bool side_by_side = loop_at(last).axis == computation_.spatial_axes(stage()) - 1;
      if (position == last && side_by_side) return LoopKind::vector;
    }
    return loop_at(position).kind;
  }

  void write_back(const Access& result) {
    const std::vector<Affine> begin = begins();
    if (plan().fused < 0) {
      emit_store(own(begin), Combine::none, Value::load(result));
      return;
    }
    const auto [last, chain] = fused_chain();
    const std::vector<Affine> consumed = own_index(begin);
    Value value = map_accesses(
        chain,
        [&](const Access& access) { return access.tensor == stage().tensor ? result : in_tensor(access, consumed); },
        [&](const Affine& form) { return substitute(form, consumed); });
    const Stage& writes = computation_.stages[std::size_t(last)];
    std::vector<Affine> index = element_of(computation_, writes);
    for (Affine& form : index) form = substitute(form, consumed);
    emit_store(element(writes.tensor, std::move(index)), Combine::none, std::move(value));
  }

  // The last of the stages fused into this one, and its value with those of the stages between put in.
  std::pair<int, Value> fused_chain() const {
    int last = plan().fused;
    Value value = computation_.stages[std::size_t(last)].value;
    for (int next = plans_[std::size_t(last)].fused; next >= 0; next = plans_[std::size_t(last)].fused) {
      const Stage& stage = computation_.stages[std::size_t(next)];
      if (stage.value.nodes.size() * value.nodes.size() > most_nodes) {
        throw CannotLower{fmt::format("fused stages make a value of more than {} operations", most_nodes)};
      }
      const int between = computation_.stages[std::size_t(last)].tensor;
      value = as_stored(computation_, between, std::move(value));
      value = replace_loads(stage.value, [&](const Access& access) {
        return access.tensor == between ? std::optional(value) : std::nullopt;
      });
      last = next;
    }
    return {last, std::move(value)};
  }

  const Computation& computation_;
  std::vector<StagePlan> plans_;
  std::int64_t lanes_;
  std::int64_t threads_;
  const StoreWatch& watch_;
  std::span<const IntrinsicPointer> intrinsics_;
  int next_intrinsic_ = -1;              // of the next loop that is written
  std::optional<base::Reason> stopped_;  // by the watch; no exception: a search is stopped here far too often
  LoopProgram program_;
  std::vector<int> open_;                                    // loops around the present position
  std::vector<bool> known_ahead_;                            // by tensor: before run
  std::vector<int> buffer_of_;                               // by tensor; -1: in no buffer
  std::vector<Tiles> tiles_;                                 // by stage
  std::vector<Region> regions_;                              // by tensor; buffer -1: not computed in tiles
  std::map<std::pair<const Stage*, int>, Blocked> blocked_;  // by stage and tensor
  Body* body_ = nullptr;
  Frame frame_;
};

}  // namespace

base::Result<LoopProgram> lower(const Computation& computation, const Schedule& schedule, std::int64_t lanes,
                                std::int64_t threads, const StoreWatch& watch,
                                std::span<const IntrinsicPointer> intrinsics) {
  std::optional<Restructured> changed;
  if (std::any_of(schedule.begin(), schedule.end(), [](const Step& step) { return is_restructuring(step.kind); })) {
    base::Result<Restructured> result = restructured(computation, schedule);
    if (!result) return result.reason();
    changed = std::move(result).value();
  }
  const Computation& form = changed ? changed->computation : computation;
  base::Result<std::vector<StagePlan>> plans = apply(form, schedule);
  if (!plans) return plans.reason();
  for (std::size_t s = 0; threads > 1 && s < form.stages.size(); ++s) {
    const StagePlan& plan = (*plans)[s];
    if (auto fault = fault_of(form, form.stages[s], plan, band_with_blocks(plan))) return *fault;
    std::int64_t tasks = 1;
    bool parallel = false;
    for (int i = 0; i < int(plan.loops.size()); ++i) {
      if (plan.loops[std::size_t(i)].kind != LoopKind::parallel) continue;
      parallel = true;
      tasks *= most_trips(plan, i);
    }
    if (parallel && tasks < threads) {
      return base::Reason{fmt::format("parallel {}: {} tasks for {} threads",
                                      form.tensors[std::size_t(form.stages[s].tensor)].name, tasks, threads)};
    }
  }
  try {
    base::Result<LoopProgram> program =
        Lowerer(form, std::move(plans.value()), lanes, threads, watch, intrinsics).run();
    if (program && changed) program->amplification = changed->amplification;
    return program;
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
