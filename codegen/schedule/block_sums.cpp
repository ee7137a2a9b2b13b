#include "codegen/schedule/block_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "codegen/schedule/restructure.h"

namespace graft::codegen {
namespace {

constexpr std::int64_t row_tiles[] = {1, 2, 3, 4, 5, 6, 8};
constexpr std::int64_t largest_panel = 8;    // vectors side by side
constexpr std::int64_t largest_unroll = 16;  // of what is summed within a block
constexpr std::int64_t short_axis = 8;       // one that is unrolled as a whole

// The axis that a split has made after this one.
std::string part_of_axis(const Stage& stage, const std::string& axis) {
  const auto found = std::find_if(stage.axes.begin(), stage.axes.end(), [&](const Axis& a) { return a.name == axis; });
  const std::string begin = axis + "_";
  const auto part = std::find_if(stage.axes.begin(), stage.axes.end(),
                                 [&](const Axis& a) { return &a != &*found && a.name.starts_with(begin); });
  return part == stage.axes.end() ? axis : part->name;
}

const Stage& stage_named(const Computation& form, const std::string& name) {
  return form.stages[std::size_t(form.stage_writing(form.tensor_named(name)))];
}

}  // namespace

BlockSums::BlockSums(const Computation& computation, const Target& target, std::span<const IntrinsicPointer> intrinsics)
    : computation_(computation), threads_(target.threads) {
  if (!finds_sums()) return;
  lanes_ = lanes_of(computation, stage(whole_), target);
  find_intrinsic(intrinsics);
  const std::int64_t columns = stage(whole_).axes[std::size_t(column_)].extent;
  for (std::int64_t count = 1; count <= largest_panel; count *= 2) {
    const std::int64_t width = count * lanes_;
    if (width < columns && columns % width == 0 && width > 1) panels_.push_back({width});
  }
  if (!panels_.empty() && !in_panels()) panels_.clear();
}

// The computation in panels, of the least width; nothing if it cannot be stored so.
std::optional<Computation> BlockSums::in_panels() const {
  Schedule steps;
  const std::string text = panel_steps(std::to_string(panels_[0][0]));
  for (const std::string_view line : base::split(base::trim(text), '\n')) steps.push_back(parse_step(line, "rules"));
  base::Result<Restructured> form = restructured(computation_, steps);
  if (!form) return std::nullopt;
  return std::move(form.value().computation);
}

bool BlockSums::finds_sums() {
  const std::vector<int> sums = reductions(computation_);
  if (sums.size() != 2) return false;
  part_ = sums[0], whole_ = sums[1];
  const Stage &part = stage(part_), &whole = stage(whole_);
  if (part.combine != Combine::sum || whole.combine != Combine::sum) return false;
  if (!part.index.empty() || !whole.index.empty()) return false;
  if (computation_.tensors[std::size_t(part.tensor)].role != Role::temporary) return false;
  std::vector<int> taken = {part_, whole_};
  for (int from = whole_; (from = fusable_consumer(computation_, from, whole_)) >= 0;) taken.push_back(from);
  const Access* read = nullptr;
  for (std::size_t s = 0; s < computation_.stages.size(); ++s) {
    if (is_known_ahead(computation_, stage(int(s)))) continue;
    if (std::find(taken.begin(), taken.end(), int(s)) == taken.end()) return false;
    for (const Access& access : stage(int(s)).value.loads) {
      if (access.tensor != part.tensor) continue;
      if (int(s) != whole_ || read != nullptr || access.padded || !access.gathered.empty()) return false;
      read = &access;
    }
  }
  if (read == nullptr) return false;
  // Each element once: axes of the whole, all those that it sums over among them.
  for (const Affine& form : read->index) {
    if (form.terms.size() != 1 || !(form == Affine::variable(form.terms[0].variable))) return false;
    axes_.push_back(form.terms[0].variable);
  }
  if (std::set<int>(axes_.begin(), axes_.end()).size() != whole.axes.size() || axes_.size() != whole.axes.size())
    return false;
  column_ = computation_.spatial_axes(whole) - 1;
  part_column_ = int(axes_.size()) - 1;
  return column_ >= 0 && axes_.back() == column_ && !packed_bytes().empty();
}

// Constants that the first sum reads, if all of them are bytes that move along the columns; none otherwise.
std::vector<int> BlockSums::packed_bytes() const {
  std::vector<int> result;
  for (const Access& access : stage(part_).value.loads) {
    const Tensor& tensor = computation_.tensors[std::size_t(access.tensor)];
    if (tensor.role == Role::input && !moves(access, part_column_)) continue;
    if (tensor.role != Role::constant || bytes_of(tensor.dtype) != 1) return {};
    if (whole_dimension(access.index, part_column_) < 0) return {};
    if (std::find(result.begin(), result.end(), access.tensor) == result.end()) result.push_back(access.tensor);
  }
  return result;
}

// One that takes columns as its lanes, and all of the axes that it sums over: its operands then lie as it wants them.
void BlockSums::find_intrinsic(std::span<const IntrinsicPointer> intrinsics) {
  for (const IntrinsicPointer& intrinsic : intrinsics) {
    const Stage& own = intrinsic->stage();
    const int spatial = intrinsic->computation.spatial_axes(own);
    for (const Assignment& assignment : assignments(computation_, stage(part_), *intrinsic)) {
      bool fits = spatial == 1 && assignment.axes[0] == part_column_ && own.axes[0].extent == lanes_;
      for (std::size_t a = 1; a < own.axes.size(); ++a)
        fits &=
            assignment.axes[a] >= 0 && stage(part_).axes[std::size_t(assignment.axes[a])].extent == own.axes[a].extent;
      for (std::size_t l = 0; l < assignment.loads.size(); ++l) {
        const Access& access = stage(part_).value.loads[std::size_t(assignment.loads[l])];
        for (std::size_t a = 1; a < own.axes.size(); ++a)
          fits &= stride_along(computation_, access, assignment.axes[a]) ==
                  stride_along(intrinsic->computation, own.value.loads[l], int(a));
      }
      if (!fits) continue;
      intrinsic_ = intrinsic;
      assignment_ = assignment;
      return;
    }
  }
}

bool BlockSums::is_within_intrinsic(int axis) const {
  return intrinsic_ != nullptr &&
         std::find(assignment_.axes.begin() + 1, assignment_.axes.end(), axis) != assignment_.axes.end();
}

// Lines that store constants of the first sum, and its results, in panels of that many columns.
std::string BlockSums::panel_steps(const std::string& width) const {
  std::string text;
  // `within`: dimensions that an intrinsic reads together.
  const auto layout = [&](const std::string& tensor, int rank, int columns, bool is_first,
                          const std::vector<int>& within) {
    text += "layout " + tensor;
    if (is_first) text += fmt::format(" {} / {}", columns, width);
    for (int d = 0; d < rank; ++d)
      if (d != columns && std::find(within.begin(), within.end(), d) == within.end()) text += fmt::format(" {}", d);
    if (!is_first) text += fmt::format(" {} / {}", columns, width);
    text += fmt::format(" {} % {}", columns, width);
    for (const int d : within) text += fmt::format(" {}", d);
    text += "\n";
  };
  for (const int bytes : packed_bytes()) {
    const Tensor& tensor = computation_.tensors[std::size_t(bytes)];
    const auto read = std::find_if(stage(part_).value.loads.begin(), stage(part_).value.loads.end(),
                                   [&](const Access& access) { return access.tensor == bytes; });
    text += fmt::format("copy {} {}\n", name(part_), tensor.name);
    std::vector<int> within;
    for (int a = 0; a < int(stage(part_).axes.size()); ++a)
      if (const int d = whole_dimension(read->index, a); d >= 0 && is_within_intrinsic(a)) within.push_back(d);
    layout(fmt::format("{}.{}", name(part_), tensor.name), int(tensor.shape.size()),
           whole_dimension(read->index, part_column_), true, within);
  }
  layout(name(part_), computation_.spatial_axes(stage(part_)), part_column_, false, {});
  return text;
}

SketchSpace BlockSums::sketch() const {
  SketchBuilder builder;
  const std::string width = builder.sizes("panel", panels_);
  builder.line(std::string(base::trim(panel_steps(std::string(base::trim(width))))));
  const Computation form = *in_panels();
  const std::string within = loops_of_whole(form, builder);
  builder.line(fmt::format("compute {} {} above {}", name(whole_), name(part_), within));
  lines_of_part(form, builder);
  return builder.finish(argument_name("blocks_" + name(part_) + "_" + name(whole_)));
}

// Register tiles of some rows and a panel; returns their loops.
std::string BlockSums::loops_of_whole(const Computation& form, SketchBuilder& builder) const {
  const std::string own = name(whole_), label = argument_name(own);
  const Stage& here = stage(whole_);
  const std::string& column = here.axes[std::size_t(column_)].name;
  const std::string lane = part_of_axis(stage_named(form, own), column);
  std::vector<std::string> outer, tile, summed;
  int row = -1;  // the axis whose rows are side by side
  for (int a = 0; a < column_; ++a)
    if (here.axes[std::size_t(a)].extent > 1) row = a;
  for (int a = 0; a < int(here.axes.size()); ++a) {
    const auto& [axis, extent] = here.axes[std::size_t(a)];
    if (a == column_ || (a < column_ && extent == 1)) continue;
    (a < column_ ? outer : summed).push_back(axis + ".0");
    if (a != row) continue;
    std::vector<std::vector<std::int64_t>> sizes;
    for (const std::int64_t size : row_tiles)
      if (size <= extent) sizes.push_back({size});
    builder.line(fmt::format("tile {} {}{}", own, axis, builder.sizes(label + "_" + axis, sizes)));
    tile.push_back(axis + ".1");
  }
  if (lanes_ > 1) builder.line(fmt::format("tile {} {} {}", own, lane, lanes_));
  tile.push_back(lane + ".0");
  const std::string panel = column + ".0";
  const std::string rows = joined(outer);
  const std::string outermost =
      rows.empty() ? panel : builder.choice(label + "_order", {panel + " " + rows, rows + " " + panel});
  const std::string vector = lanes_ > 1 ? lane + ".1" : "";
  builder.line(fmt::format("order {} {}", own, joined({outermost, joined(summed), joined(tile), vector})));
  if (threads_ > 1) builder.line(fmt::format("parallel {} {}", own, joined({panel, rows})));
  if (lanes_ > 1) builder.line(fmt::format("vector {} {}", own, vector));
  builder.line(fmt::format("unroll {} {}", own, joined(tile)));
  builder.line(fmt::format("accumulate {} above {}", own, joined(summed)));
  fuse_consumers(form, form.stage_writing(form.tensor_named(own)), "", builder);
  for (const int tensor : packable_tensors(computation_, here)) {
    const Tensor& operand = computation_.tensors[std::size_t(tensor)];
    const bool along = std::any_of(here.value.loads.begin(), here.value.loads.end(), [&](const Access& access) {
      return access.tensor == tensor && moves(access, column_);
    });
    if (operand.role == Role::constant && along)
      builder.line(fmt::format("pack {} {} above {}", own, operand.name, joined({panel, rows})));
  }
  return joined(tile);
}

// What lies within a block, summed in registers.
void BlockSums::lines_of_part(const Computation& form, SketchBuilder& builder) const {
  const std::string own = name(part_), label = argument_name(own);
  const Stage& here = stage(part_);
  const int rank = computation_.spatial_axes(here);
  const std::string& column = here.axes[std::size_t(part_column_)].name;
  const std::string lane = part_of_axis(stage_named(form, own), column);
  std::vector<std::string> outer = {column + ".0"}, rows, summed, unrolled;
  for (int a = 0; a < rank; ++a) {
    const auto& [axis, extent] = here.axes[std::size_t(a)];
    if (a == part_column_ || extent == 1) continue;
    (axes_[std::size_t(a)] > column_ ? outer : rows).push_back(axis + ".0");
  }
  int longest = -1;  // of the axes that are summed by loops
  for (int a = rank; a < int(here.axes.size()); ++a)
    if (!is_within_intrinsic(a) &&
        (longest < 0 || here.axes[std::size_t(a)].extent > here.axes[std::size_t(longest)].extent))
      longest = a;
  for (int a = rank; a < int(here.axes.size()); ++a) {
    const auto& [axis, extent] = here.axes[std::size_t(a)];
    if (a == longest) {
      builder.line(fmt::format("tile {} {}{}", own, axis,
                               builder.sizes(label + "_" + axis, powers_of_two(1, extent, largest_unroll))));
      summed.push_back(axis + ".0");
      unrolled.insert(unrolled.begin(), axis + ".1");
    } else if (extent > 1 && !is_within_intrinsic(a)) {
      (extent <= short_axis ? unrolled : summed).push_back(axis + ".0");
    }
  }
  if (lanes_ > 1) builder.line(fmt::format("tile {} {} {}", own, lane, lanes_));
  std::string innermost = lanes_ > 1 ? lane + ".1" : "";
  const std::string begin = innermost;
  for (std::size_t a = 1; intrinsic_ != nullptr && a < assignment_.axes.size(); ++a)
    innermost += fmt::format(" {}.0", here.axes[std::size_t(assignment_.axes[a])].name);
  const std::string results = joined({joined(rows), lane + ".0"});
  const std::string first = unrolled.front();
  const std::string parts = joined({unrolled.begin() + 1, unrolled.end()});
  const std::string inner =
      parts.empty() ? results : builder.choice(label + "_order", {parts + " " + results, results + " " + parts});
  builder.line(fmt::format("order {} {}", own, joined({joined(outer), joined(summed), first, inner, innermost})));
  if (lanes_ > 1 && intrinsic_ == nullptr) builder.line(fmt::format("vector {} {}", own, begin));
  builder.line(fmt::format("unroll {} {}", own, joined({first, parts, results})));
  builder.line(fmt::format("accumulate {} above {}", own, joined(summed)));
  if (intrinsic_ == nullptr) return;
  builder.line(fmt::format("tensorize {} {} {}", own, intrinsic_->name, begin));
  builder.line(to_text(*intrinsic_));
}

}  // namespace graft::codegen
