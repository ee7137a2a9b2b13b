#include "codegen/schedule/group_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.h"
#include "codegen/schedule/restructure.h"
#include "codegen/schedule/rule_parts.h"
#include "codegen/schedule/splits.h"

namespace graft::codegen {
namespace {

constexpr std::int64_t most_items = 32;   // along one axis
constexpr std::int64_t most_vector = 16;  // elements
constexpr std::int64_t most_results = 8;  // of an item along one axis, in vectors
constexpr std::int64_t most_summed = 32;  // of a reduction axis at a time
constexpr std::size_t most_chains = 4096;

// Chains of divisors of an extent, of which neighbours differ by no more than a group or an item has.
std::vector<std::vector<std::int64_t>> group_tiles(std::int64_t extent, std::size_t levels, std::int64_t most_last,
                                                   bool in_vectors = false) {
  const std::vector<std::optional<std::int64_t>> open(levels);
  std::vector<std::vector<std::int64_t>> result;
  for (std::vector<std::int64_t>& chain : chains(extent, open, SplitPolicy::usual, most_chains)) {
    bool suits = chain.back() <= most_last && (!in_vectors || (chain.back() & (chain.back() - 1)) == 0);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) suits &= chain[i] / chain[i + 1] <= most_items;
    if (suits) result.push_back(std::move(chain));
  }
  return result;
}

std::string dimension(const char* kind, std::size_t loop, std::size_t loops) {
  return fmt::format("{}_{}", kind, "xyz"[std::min<std::size_t>(2, loops - 1 - loop)]);
}

// The loops of a stage by what they are for.
struct Loops {
  std::vector<std::string> blocks, first, second, vectors;  // first, second: items and their tiles, or the reverse
  std::vector<std::string> more;                            // items
  std::vector<std::string> outer, inner;                    // of what is summed
};

class GroupStage {
 public:
  GroupStage(const Computation& computation, int number, SketchBuilder& builder)
      : computation_(computation),
        number_(number),
        stage_(computation.stages[std::size_t(number)]),
        name_(name_of(computation, stage_)),
        label_(argument_name(name_)),
        builder_(builder) {}

  void add() {
    const int spatial = computation_.spatial_axes(stage_);
    find_x();
    find_y();
    find_z();
    for (int a = 0; a < int(stage_.axes.size()); ++a)
      if (stage_.axes[std::size_t(a)].extent > 1) add_axis(a, a < spatial);
    if (x_ >= 0) add_steps();
  }

 private:
  void find_x() {
    bool is_contiguous = false;
    for (int a = 0; a < computation_.spatial_axes(stage_); ++a) {
      if (stage_.axes[std::size_t(a)].extent == 1) continue;
      const bool along = is_along_memory(computation_, stage_, a);
      if (along || !is_contiguous) x_ = a;
      is_contiguous |= along;
    }
  }

  // Best one along which an operand stays that moves along x, else any that uses an operand again.
  void find_y() {
    bool is_best = false;
    for (int a = 0; a < computation_.spatial_axes(stage_); ++a) {
      if (a == x_ || stage_.axes[std::size_t(a)].extent == 1) continue;
      bool stays = !computation_.is_reduction(stage_), best = false;
      for (const Access& access : stage_.value.loads) {
        stays |= !moves(access, a);
        best |= !moves(access, a) && moves(access, x_);
      }
      if (best || (stays && !is_best)) y_ = a;
      is_best |= best;
    }
  }

  // Where x has few elements, further items along the next axis.
  void find_z() {
    if (x_ < 0 || stage_.axes[std::size_t(x_)].extent > most_items) return;
    for (int a = 0; a < computation_.spatial_axes(stage_); ++a)
      if (a != x_ && a != y_ && stage_.axes[std::size_t(a)].extent > 1) z_ = a;
  }

  void add_axis(int a, bool spatial) {
    const Axis& axis = stage_.axes[std::size_t(a)];
    const auto loop = [&](int level) { return fmt::format("{}.{}", axis.name, level); };
    const auto tile = [&](const std::vector<std::vector<std::int64_t>>& sizes) {
      builder_.line(fmt::format("tile {} {}{}", name_, axis.name, builder_.sizes(label_ + "_" + axis.name, sizes)));
    };
    if (!spatial) {
      std::vector<std::vector<std::int64_t>> sizes;
      for (std::vector<std::int64_t>& size : group_tiles(axis.extent, 1, axis.extent))
        if (size[0] <= most_summed) sizes.push_back(std::move(size));
      if (loops_.outer.empty()) {
        tile(sizes);
        loops_.outer.push_back(loop(0));
        loops_.inner.push_back(loop(1));
      } else {
        loops_.inner.push_back(loop(0));
      }
      return;
    }
    loops_.blocks.push_back(loop(0));
    if (a == z_) {
      tile(group_tiles(axis.extent, 1, most_items));
      loops_.more.push_back(loop(1));
    }
    if (a != x_ && a != y_) return;
    tile(a == x_ ? group_tiles(axis.extent, 3, most_vector, true) : group_tiles(axis.extent, 2, most_results));
    loops_.first.push_back(loop(1));
    loops_.second.push_back(loop(2));
    if (a == x_) loops_.vectors.push_back(loop(3));
  }

  // How a stage is run in groups.
  struct Form {
    bool are_apart = false;   // an item's results: a group's items apart from each other
    std::vector<int> shared;  // operands in group memory
  };

  std::vector<Form> forms() const {
    std::vector<std::vector<int>> operands{{}};
    if (!loops_.outer.empty()) {
      const std::vector<int> packable = packable_tensors(computation_, stage_);
      for (const int tensor : packable) operands.push_back({tensor});
      if (packable.size() == 2) operands.push_back(packable);
    }
    std::vector<Form> result;
    for (const std::vector<int>& shared : operands)
      for (const bool are_apart : {false, true}) result.push_back({are_apart, shared});
    return result;
  }

  std::vector<std::string> items(const Form& form) const {
    std::vector<std::string> loops = form.are_apart ? loops_.second : loops_.first;
    loops.insert(loops.begin(), loops_.more.begin(), loops_.more.end());
    return loops;
  }
  const std::vector<std::string>& tiles(const Form& form) const {
    return form.are_apart ? loops_.first : loops_.second;
  }

  // Where operands are shared, items are within the loop that goes from one part of them to the next.
  std::string order(const Form& form) const {
    const std::string outer = joined(loops_.outer), items_here = joined(items(form));
    return fmt::format(
        "order {} {}", name_,
        joined({joined(loops_.blocks), form.shared.empty() ? items_here + " " + outer : outer + " " + items_here,
                joined(loops_.inner), joined(tiles(form)), joined(loops_.vectors)}));
  }

  // A line of the text that `text` gives for each form.
  template <class Text>
  void line(const Text& text) {
    std::vector<std::string> texts;
    for (const Form& form : forms()) texts.push_back(text(form));
    builder_.line(SketchBuilder::again(label_ + "_form", texts));
  }

  void add_steps() {
    std::vector<std::string> orders;
    for (const Form& form : forms()) orders.push_back(order(form));
    builder_.line(builder_.choice(label_ + "_form", orders));
    for (std::size_t i = 0; i < loops_.blocks.size(); ++i)
      builder_.line(fmt::format("bind {} {} {}", name_, dimension("block", i, loops_.blocks.size()), loops_.blocks[i]));
    const std::size_t count = loops_.more.size() + loops_.first.size();
    for (std::size_t i = 0; i < count; ++i)
      line([&](const Form& form) {
        return fmt::format("bind {} {} {}", name_, dimension("thread", i, count), items(form)[i]);
      });
    line([&](const Form& form) { return fmt::format("unroll {} {}", name_, joined(tiles(form))); });
    builder_.line(fmt::format("vector {} {}", name_, joined(loops_.vectors)));
    if (loops_.outer.empty()) return;
    const std::string& summed = loops_.inner.front();
    builder_.line(builder_.choice(label_ + "_unroll", {"", fmt::format("unroll {} {}", name_, summed)}));
    builder_.line(fmt::format("accumulate {} above {}", name_, loops_.outer.front()));
    fuse_consumers(computation_, number_, "", builder_);
    for (const int tensor : packable_tensors(computation_, stage_))
      line([&](const Form& form) {
        const bool is_shared = std::find(form.shared.begin(), form.shared.end(), tensor) != form.shared.end();
        return is_shared ? fmt::format("pack {} {} above {}", name_, computation_.tensors[std::size_t(tensor)].name,
                                       joined(items(form)))
                         : std::string();
      });
  }

  const Computation& computation_;
  int number_;
  const Stage& stage_;
  std::string name_, label_;
  SketchBuilder& builder_;
  int x_ = -1, y_ = -1, z_ = -1;
  Loops loops_;
};

// Each stage that reduces by itself. `prefix`: the steps that made this computation.
void add_groups(const Computation& computation, const std::string& prefix, const std::string& suffix,
                std::vector<SketchSpace>& result) {
  std::vector<int> stages = reductions(computation);
  if (stages.empty()) stages.push_back(int(computation.stages.size()) - 1);
  SketchBuilder builder;
  if (!prefix.empty()) builder.line(prefix);
  std::string name = "groups" + suffix;
  for (const int number : stages) {
    GroupStage(computation, number, builder).add();
    name += "_" + argument_name(name_of(computation, computation.stages[std::size_t(number)]));
  }
  result.push_back(builder.finish(name));
}

void add_restructured(const Computation& computation, const Step& step, const std::string& suffix,
                      std::vector<SketchSpace>& result) {
  if (const base::Result<Restructured> form = restructured(computation, {step}))
    add_groups(form->computation, to_text(step), suffix, result);
}

// A group of `items` work-items for each row, each with vectors of `width` elements.
class GroupRows {
 public:
  GroupRows(const Computation& computation, std::int64_t items, std::int64_t width) : items_(items), width_(width) {
    factor(computation);
    const base::Result<Restructured> form = restructured(computation, factored_);
    if (!form) return;
    computation_ = form->computation;
    rows_ = int(computation_.stages.back().axes.size());
    for (int number = 0; number < int(computation_.stages.size()); ++number) {
      if (is_known_ahead(computation_, stage(number))) continue;
      chain_.push_back(number);
      if (computation_.is_reduction(stage(number))) rows_ = std::min(rows_, computation_.spatial_axes(stage(number)));
    }
  }

  bool applies() const {
    return !factored_.empty() && chain_.size() > 1 && rows_ > 0 && share_rows(computation_, chain_, rows_);
  }

  SketchSpace made() const {
    SketchBuilder builder;
    builder.line(std::string(base::trim(to_text(factored_))));
    const int last = chain_.back();
    const std::string inner = add_items(last, builder);
    std::vector<std::string> blocks;
    for (int a = 0; a < rows_; ++a)
      if (stage(last).axes[std::size_t(a)].extent > 1) blocks.push_back(stage(last).axes[std::size_t(a)].name + ".0");
    for (std::size_t i = 0; i < blocks.size(); ++i)
      builder.line(fmt::format("bind {} {} {}", name(last), dimension("block", i, blocks.size()), blocks[i]));
    for (std::size_t c = chain_.size() - 1; c-- > 0;)
      builder.line(fmt::format("compute {} {} above {}", name(last), name(chain_[c]), inner));
    for (const int number : chain_)
      if (number != last) add_items(number, builder);
    return builder.finish(fmt::format("rows_of_{}_by_{}", items_, width_));
  }

 private:
  const Stage& stage(int number) const { return computation_.stages[std::size_t(number)]; }
  std::string name(int number) const { return name_of(computation_, stage(number)); }

  // Sums along memory: a part for each item.
  void factor(const Computation& computation) {
    for (const int number : reductions(computation)) {
      const Stage& here = computation.stages[std::size_t(number)];
      for (int a = computation.spatial_axes(here); a < int(here.axes.size()); ++a) {
        if (!is_along_memory(computation, here, a) || here.axes[std::size_t(a)].extent <= items_ * width_) continue;
        factored_.push_back(
            {StepKind::rfactor, name_of(computation, here), here.axes[std::size_t(a)].name, {}, {items_ * width_}});
        break;
      }
    }
  }

  // Work-items along a stage's last spatial axis, each with vectors that are a group apart. Returns the first loop
  // within the rows.
  std::string add_items(int number, SketchBuilder& builder) const {
    const Stage& here = stage(number);
    const int spatial = computation_.spatial_axes(here), last = spatial - 1;
    const bool has_items = spatial > rows_ && here.axes[std::size_t(last)].extent > 1;
    const std::string own = name(number), along = has_items ? here.axes[std::size_t(last)].name : "";
    std::vector<std::string> loops, summed, inner;
    for (int a = 0; a < int(here.axes.size()); ++a)
      (a < spatial ? loops : summed).push_back(here.axes[std::size_t(a)].name + ".0");
    if (has_items) {
      builder.line(fmt::format("tile {} {} {} {}", own, along, items_ * width_, width_));
      loops.push_back(along + ".1");
      inner.push_back(along + ".2");
    }
    builder.line(fmt::format("order {} {}", own, joined({joined(loops), joined(summed), joined(inner)})));
    if (has_items) {
      builder.line(fmt::format("bind {} thread_x {}.1", own, along));
      builder.line(fmt::format("vector {} {}.2", own, along));
      if (!summed.empty()) builder.line(fmt::format("accumulate {} above {}", own, summed.front()));
    }
    loops.insert(loops.end(), summed.begin(), summed.end());
    return loops.size() > std::size_t(rows_) ? loops[std::size_t(rows_)] : "";
  }

  std::int64_t items_, width_;
  Schedule factored_;
  Computation computation_;  // with part sums
  std::vector<int> chain_;   // stages
  int rows_ = 0;             // leading axes, which all of them have
};

// Part sums of the longest axis, where results alone are too few to keep the device busy.
void add_parts(const Computation& computation, const Target& target, std::vector<SketchSpace>& result) {
  constexpr std::int64_t results_an_item = 8;
  for (const int number : reductions(computation)) {
    const Stage& here = computation.stages[std::size_t(number)];
    if (computation.tensors[std::size_t(here.tensor)].elements() > target.cores * target.group_items * results_an_item)
      continue;
    const auto longest = std::max_element(here.axes.begin() + computation.spatial_axes(here), here.axes.end(),
                                          [](const Axis& a, const Axis& b) { return a.extent < b.extent; });
    for (const std::int64_t parts : {4, 16, 64}) {
      if (longest->extent < 4 * parts) continue;
      add_restructured(computation, {StepKind::rfactor, name_of(computation, here), longest->name, {}, {parts}},
                       fmt::format("_{}_parts", parts), result);
    }
  }
}

}  // namespace

std::vector<SketchSpace> group_sketches(const Computation& computation, const Target& target) {
  std::vector<SketchSpace> result;
  add_groups(computation, "", "", result);
  for (std::int64_t items = 16; items <= target.group_items; items *= 4)
    for (const std::int64_t width : {1, 4})
      if (const GroupRows rows(computation, items, width); rows.applies()) result.push_back(rows.made());
  if (result.size() == 1) add_parts(computation, target, result);
  for (const Step& step : winograd_steps(computation))
    add_restructured(computation, step, fmt::format("_winograd_{}", step.sizes[0]), result);
  return result;
}

}  // namespace graft::codegen
