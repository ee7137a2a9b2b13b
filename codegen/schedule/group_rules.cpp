#include "codegen/schedule/group_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

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
std::vector<std::vector<std::int64_t>> group_tiles(std::int64_t extent, std::size_t levels, std::int64_t most_last) {
  const std::vector<std::optional<std::int64_t>> open(levels);
  std::vector<std::vector<std::int64_t>> result;
  for (std::vector<std::int64_t>& chain : chains(extent, open, SplitPolicy::factors, most_chains)) {
    bool suits = chain.back() <= most_last && (most_last == 1 || (chain.back() & (chain.back() - 1)) == 0);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) suits &= chain[i] / chain[i + 1] <= most_items;
    if (suits) result.push_back(std::move(chain));
  }
  return result;
}

// The loops of a stage by what they are for.
struct Loops {
  std::vector<std::string> blocks, first, second, vectors;  // first, second: items and their tiles, or the reverse
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
    for (int a = 0; a < spatial; ++a)
      if (stage_.axes[std::size_t(a)].extent > 1) x_ = a;
    for (int a = x_ - 1; a >= 0; --a)
      if (stage_.axes[std::size_t(a)].extent > 1 && stays_somewhere(a)) y_ = a;
    for (int a = 0; a < int(stage_.axes.size()); ++a)
      if (stage_.axes[std::size_t(a)].extent > 1) add_axis(a, a < spatial);
    if (x_ >= 0) add_steps();
  }

 private:
  bool stays_somewhere(int axis) const {
    return std::any_of(stage_.value.loads.begin(), stage_.value.loads.end(),
                       [&](const Access& access) { return !moves(access, axis); }) ||
           !computation_.is_reduction(stage_);
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
    if (a != x_ && a != y_) return;
    tile(group_tiles(axis.extent, a == x_ ? 3 : 2, a == x_ ? most_vector : most_results));
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

  const std::vector<std::string>& items(const Form& form) const {
    return form.are_apart ? loops_.second : loops_.first;
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

  static std::string dimension(const char* kind, std::size_t loop, std::size_t loops) {
    return fmt::format("{}_{}", kind, "xyz"[std::min<std::size_t>(2, loops - 1 - loop)]);
  }

  void add_steps() {
    std::vector<std::string> orders;
    for (const Form& form : forms()) orders.push_back(order(form));
    builder_.line(builder_.choice(label_ + "_form", orders));
    for (std::size_t i = 0; i < loops_.blocks.size(); ++i)
      builder_.line(fmt::format("bind {} {} {}", name_, dimension("block", i, loops_.blocks.size()), loops_.blocks[i]));
    for (std::size_t i = 0; i < loops_.first.size(); ++i)
      line([&](const Form& form) {
        return fmt::format("bind {} {} {}", name_, dimension("thread", i, loops_.first.size()), items(form)[i]);
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
  int x_ = -1, y_ = -1;
  Loops loops_;
};

}  // namespace

std::vector<SketchSpace> group_sketches(const Computation& computation) {
  std::vector<int> stages = reductions(computation);
  if (stages.empty()) stages.push_back(int(computation.stages.size()) - 1);
  SketchBuilder builder;
  std::string name = "groups";
  for (const int number : stages) {
    GroupStage(computation, number, builder).add();
    name += "_" + argument_name(name_of(computation, computation.stages[std::size_t(number)]));
  }
  return {builder.finish(name)};
}

}  // namespace graft::codegen
