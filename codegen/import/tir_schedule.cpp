#include "codegen/import/tir_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace graft::codegen {
namespace {

// More than any real trace makes; they bound what a hostile one costs.
constexpr std::size_t most_nodes = 4096, most_digits = 4096, most_tensors = 256, most_value_nodes = 1000;
constexpr std::int64_t most_lanes = 1024;

// Which axis a form is.
std::size_t axis_in(const Affine& form) {
  if (form.terms.size() != 1 || !(form == Affine::variable(form.terms[0].variable)))
    throw NotReplayed("a block that is not at its axes");
  return std::size_t(form.terms[0].variable);
}

}  // namespace

// What is accessed of a tensor, dimension by dimension: from `outer`, which moves with outer loops, plus low to high.
struct TirSchedule::Region {
  std::vector<Affine> outer;
  std::vector<Interval> inner;
  std::vector<bool> moves_alike;  // whether all accesses have the same `outer`
};

TirSchedule::TirSchedule(const TirFunction& function)
    : computation_(function.computation), layouts_(function.computation.tensors.size()) {
  nodes_.emplace_back();
  for (const TirBlock& from : function.blocks) {
    const Stage& stage = computation_.stages[std::size_t(from.stage)];
    Block block;
    block.name = from.name;
    block.tensor = stage.tensor;
    block.combine = stage.combine;
    block.starts = stage.combine != Combine::none;
    block.value = stage.value;
    const int spatial = computation_.spatial_axes(stage);
    for (int a = 0; a < int(stage.axes.size()); ++a) {
      const codegen::Axis& axis = stage.axes[std::size_t(a)];
      block.axes.push_back({axis.name, axis.extent, a >= spatial, {}});
      if (a < spatial) block.target.push_back(Affine::variable(a));
    }
    int parent = root();
    for (const int axis : from.loops) {
      parent = new_node(parent, at(parent).children.size());
      Axis& own = block.axes[std::size_t(axis)];
      at(parent).reduced = own.reduced;
      if (own.extent == 1) continue;
      at(parent).digits = {new_digit(own.name, own.extent)};
      own.at = Affine::variable(at(parent).digits[0]);
    }
    const int node = new_node(parent, at(parent).children.size());
    at(node).block = int(blocks_.size());
    blocks_.push_back(std::move(block));
  }
}

// --- the tree

std::size_t TirSchedule::block_number(int node) const {
  if (node <= 0 || node >= int(nodes_.size()) || at(node).block < 0 || at(node).parent < 0)
    throw NotReplayed("not a block");
  return std::size_t(at(node).block);
}

void TirSchedule::check_loop(int node) const {
  if (node <= 0 || node >= int(nodes_.size()) || at(node).block >= 0 || at(node).parent < 0)
    throw NotReplayed("not a loop");
}

void TirSchedule::check_temporary(int tensor) const {
  if (computation_.tensors[std::size_t(tensor)].role != Role::temporary) throw NotReplayed("of a parameter");
}

int TirSchedule::new_node(int parent, std::size_t position) {
  if (nodes_.size() == most_nodes) throw NotReplayed("more loops than any real program has");
  const int node = int(nodes_.size());
  nodes_.emplace_back();
  at(node).parent = parent;
  std::vector<int>& children = at(parent).children;
  children.insert(children.begin() + std::ptrdiff_t(position), node);
  return node;
}

int TirSchedule::new_digit(std::string name, std::int64_t extent) {
  if (digits_.size() == most_digits) throw NotReplayed("more loops than any real program has");
  digits_.push_back({std::move(name), extent});
  return int(digits_.size()) - 1;
}

std::int64_t TirSchedule::extent_of(int loop) const {
  std::int64_t extent = 1;
  for (const int digit : at(loop).digits) {
    if (__builtin_mul_overflow(extent, digits_[std::size_t(digit)].extent, &extent))
      throw NotReplayed("an extent out of range");
  }
  return extent;
}

std::size_t TirSchedule::position_of(int node) const {
  const std::vector<int>& siblings = at(at(node).parent).children;
  return std::size_t(std::find(siblings.begin(), siblings.end(), node) - siblings.begin());
}

int TirSchedule::child_towards(int ancestor, int node) const {
  while (at(node).parent != ancestor) node = at(node).parent;
  return node;
}

bool TirSchedule::is_inside(int node, int ancestor) const {
  for (; node >= 0; node = at(node).parent)
    if (node == ancestor) return true;
  return false;
}

std::vector<int> TirSchedule::loops_around(int block) const {
  block_at(block);
  std::vector<int> loops;
  for (int node = at(block).parent; node != root(); node = at(node).parent) loops.insert(loops.begin(), node);
  return loops;
}

std::vector<int> TirSchedule::child_blocks(int node) const {
  std::vector<int> blocks;
  std::vector<int> open{node};
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    if (at(next).block >= 0) blocks.push_back(next);
    open.insert(open.end(), at(next).children.rbegin(), at(next).children.rend());
  }
  return blocks;
}

int TirSchedule::block_named(std::string_view name) const {
  if (name == "root") return root();
  for (const int node : child_blocks(root()))
    if (block_at(node).name == name) return node;
  throw NotReplayed("no block of that name");
}

std::vector<bool> TirSchedule::digits_around(int node) const {
  std::vector<bool> outer(digits_.size(), false);
  for (; node != root(); node = at(node).parent)
    for (const int digit : at(node).digits) outer[std::size_t(digit)] = true;
  return outer;
}

std::vector<bool> TirSchedule::spatial_digits(const Block& block) const {
  std::vector<bool> used(digits_.size(), false);
  for (const Axis& axis : block.axes) {
    if (axis.reduced) continue;
    for (const Term& term : axis.at.terms) used[std::size_t(term.variable)] = true;
  }
  return used;
}

std::vector<Affine> TirSchedule::axes_at(const Block& block) const {
  std::vector<Affine> forms;
  for (const Axis& axis : block.axes) forms.push_back(axis.at);
  return forms;
}

std::vector<Affine> TirSchedule::over_digits(std::vector<Affine> index, const Block& block) const {
  const std::vector<Affine> axes = axes_at(block);
  for (Affine& form : index) form = substitute(form, axes);
  return index;
}

std::vector<Interval> TirSchedule::ranges() const {
  std::vector<Interval> ranges;
  for (const Digit& digit : digits_) ranges.push_back({0, digit.extent - 1});
  return ranges;
}

// In the order in which TIR lists them: what is added to comes first once its start is a block of its own.
std::vector<int> TirSchedule::tensors_read(const Block& block) const {
  std::vector<int> tensors;
  if (block.combine != Combine::none && !block.starts) tensors.push_back(block.tensor);
  for (const Access& load : block.value.loads)
    if (std::find(tensors.begin(), tensors.end(), load.tensor) == tensors.end()) tensors.push_back(load.tensor);
  return tensors;
}

std::vector<int> TirSchedule::blocks_writing(int tensor) const {
  std::vector<int> blocks = child_blocks(root());
  std::erase_if(blocks, [&](int node) { return block_at(node).tensor != tensor; });
  return blocks;
}

std::vector<int> TirSchedule::blocks_reading(int tensor) const {
  std::vector<int> blocks = child_blocks(root());
  std::erase_if(blocks, [&](int node) {
    const std::vector<Access>& loads = block_at(node).value.loads;
    return std::none_of(loads.begin(), loads.end(), [&](const Access& load) { return load.tensor == tensor; });
  });
  return blocks;
}

std::vector<int> TirSchedule::consumers(int block) const {
  return blocks_reading(block_at(block).tensor);
}

std::vector<int> TirSchedule::producers(int block) const {
  std::vector<int> blocks;
  for (const int tensor : tensors_read(block_at(block)))
    for (const int writer : blocks_writing(tensor))
      if (writer != block) blocks.push_back(writer);
  return blocks;
}

void TirSchedule::remove(int node) {
  while (node != root()) {
    const int parent = at(node).parent;
    std::erase(at(parent).children, node);
    at(node).parent = -1;
    if (!at(parent).children.empty()) return;
    node = parent;
  }
}

void TirSchedule::cut_digit(int digit, std::int64_t inner) {
  const Digit old = digits_[std::size_t(digit)];
  const int low = new_digit(old.name + ".1", inner);
  digits_[std::size_t(digit)] = {old.name + ".0", old.extent / inner};
  for (Node& node : nodes_) {
    const auto found = std::find(node.digits.begin(), node.digits.end(), digit);
    if (found != node.digits.end()) node.digits.insert(found + 1, low);
  }
  for (Block& block : blocks_) {
    for (Axis& axis : block.axes) {
      const std::int64_t step = axis.at.coefficient(digit);
      if (step != 0) axis.at += Affine::variable(digit, step * (inner - 1)) + Affine::variable(low, step);
    }
  }
}

// --- loops

// One block, which reduces nothing: what is split of it matters for speed alone.
bool TirSchedule::is_elementwise(int loop) const {
  const std::vector<int> inside = child_blocks(loop);
  return inside.size() == 1 && block_at(inside[0]).combine == Combine::none;
}

// The largest factor, at most this one, that ends between digits or divides one.
std::int64_t TirSchedule::near(int loop, std::int64_t factor) const {
  if (factor > most_lanes) throw NotReplayed("a factor out of range");
  std::int64_t found = 1;
  const std::vector<int>& digits = at(loop).digits;
  for (std::size_t d = digits.size(); d-- > 0;) {
    const std::int64_t extent = digits_[std::size_t(digits[d])].extent;
    std::int64_t part = std::min(extent, factor / found);
    while (extent % part != 0) --part;
    found *= part;
    if (part != extent) break;
  }
  return found;
}

std::vector<int> TirSchedule::split(int loop, std::vector<std::int64_t> factors) {
  check_loop(loop);
  const std::int64_t extent = extent_of(loop);
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor < 0 || __builtin_mul_overflow(product, std::max<std::int64_t>(factor, 1), &product))
      throw NotReplayed("a factor out of range");
  }
  const std::int64_t open = std::count(factors.begin(), factors.end(), 0);
  if (open == 1 && factors.size() == 2 && factors[0] == 0 && is_elementwise(loop))
    product = factors[1] = near(loop, product);
  if (factors.empty() || open > 1 || product > extent || extent % product != 0 || (open == 0 && product != extent))
    throw NotReplayed("factors that do not divide the loop");
  std::replace(factors.begin(), factors.end(), std::int64_t(0), extent / product);

  const std::string name = at(loop).digits.size() == 1 ? digits_[std::size_t(at(loop).digits[0])].name : "";
  // From the inside out: whole digits, and the inner part of the one where a factor ends.
  std::vector<std::vector<int>> parts(factors.size());
  for (std::size_t part = factors.size(); part-- > 0;) {
    std::int64_t rest = factors[part];
    while (rest > 1) {
      const int digit = at(loop).digits.back();
      const std::int64_t last = digits_[std::size_t(digit)].extent;
      if (rest % last == 0) {
        rest /= last;
        parts[part].insert(parts[part].begin(), digit);
        at(loop).digits.pop_back();
      } else if (last % rest == 0) {
        cut_digit(digit, rest);
      } else {
        throw NotReplayed("a split across fused loops");
      }
    }
  }
  for (std::size_t part = 0; part < parts.size() && !name.empty(); ++part)
    for (const int digit : parts[part]) digits_[std::size_t(digit)].name = fmt::format("{}.{}", name, part);
  std::vector<int> loops{loop};
  at(loop).digits = parts[0];
  for (std::size_t part = 1; part < parts.size(); ++part) {
    const int outer = loops.back();
    const int inner = new_node(outer, at(outer).children.size());
    for (const int child : at(outer).children) {
      if (child == inner) continue;
      at(inner).children.push_back(child);
      at(child).parent = inner;
    }
    at(outer).children = {inner};
    at(inner).digits = parts[part];
    at(inner).reduced = at(loop).reduced;
    loops.push_back(inner);
  }
  return loops;
}

int TirSchedule::fuse(const std::vector<int>& loops) {
  if (loops.empty()) throw NotReplayed("no loops");
  for (const int loop : loops) check_loop(loop);
  for (std::size_t i = 1; i < loops.size(); ++i) {
    if (at(loops[i]).parent != loops[i - 1] || at(loops[i - 1]).children.size() != 1)
      throw NotReplayed("loops that are not directly in each other");
  }
  const int first = loops.front(), last = loops.back();
  for (std::size_t i = 1; i < loops.size(); ++i) {
    const std::vector<int> digits = at(loops[i]).digits;
    at(first).digits.insert(at(first).digits.end(), digits.begin(), digits.end());
    at(first).reduced = at(first).reduced || at(loops[i]).reduced;
    at(loops[i]).parent = -1;
  }
  if (first != last) {
    at(first).children = at(last).children;
    for (const int child : at(first).children) at(child).parent = first;
  }
  at(first).kind = LoopKind::serial;
  extent_of(first);
  return first;
}

void TirSchedule::reorder(const std::vector<int>& loops) {
  if (loops.empty()) throw NotReplayed("no loops");
  for (const int loop : loops) check_loop(loop);
  const std::set<int> moved(loops.begin(), loops.end());
  if (moved.size() != loops.size()) throw NotReplayed("a loop twice");
  // From the innermost of them up to the outermost: one chain.
  int deepest = loops.front();
  for (const int loop : loops)
    if (is_inside(loop, deepest)) deepest = loop;
  std::vector<int> chain;
  std::size_t found = 0;
  for (int node = deepest; node != root() && found < loops.size(); node = at(node).parent) {
    chain.insert(chain.begin(), node);
    found += moved.contains(node) ? 1 : 0;
  }
  if (found != loops.size()) throw NotReplayed("loops that are not in each other");
  for (std::size_t i = 0; i + 1 < chain.size(); ++i)
    if (at(chain[i]).children.size() != 1) throw NotReplayed("loops around several statements");
  const int parent = at(chain.front()).parent;
  const std::size_t position = position_of(chain.front());
  const std::vector<int> inside = at(chain.back()).children;
  std::size_t next = 0;
  for (int& node : chain)
    if (moved.contains(node)) node = loops[next++];
  at(parent).children[position] = chain.front();
  at(chain.front()).parent = parent;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    at(chain[i]).children = {chain[i + 1]};
    at(chain[i + 1]).parent = chain[i];
  }
  at(chain.back()).children = inside;
  for (const int child : inside) at(child).parent = chain.back();
}

int TirSchedule::add_unit_loop(int node) {
  if (at(node).block < 0) check_loop(node);
  const int parent = at(node).parent;
  if (parent < 0) throw NotReplayed("not a loop");
  const std::size_t position = position_of(node);
  const int loop = new_node(parent, position);
  at(parent).children.erase(at(parent).children.begin() + std::ptrdiff_t(position) + 1);
  at(loop).children = {node};
  at(node).parent = loop;
  return loop;
}

void TirSchedule::set_kind(int loop, LoopKind kind) {
  check_loop(loop);
  at(loop).kind = kind;
}

void TirSchedule::set_unroll_steps(int loop, std::int64_t steps) {
  check_loop(loop);
  if (steps < 0 || steps > (std::int64_t(1) << 30)) throw NotReplayed("a number of steps out of range");
  at(loop).unroll_steps = steps;
}

// --- where blocks are computed

// `index`: over digits.
void TirSchedule::add_region(Region& region, const std::vector<Affine>& index, const std::vector<bool>& outer) const {
  const std::vector<Interval> all = ranges();
  const bool is_first = region.outer.empty();
  for (std::size_t d = 0; d < index.size(); ++d) {
    Affine moving, inner(index[d].constant);
    for (const Term& term : index[d].terms)
      (outer[std::size_t(term.variable)] ? moving : inner) += Affine::variable(term.variable, term.coefficient);
    const Interval range = codegen::range(inner, all);
    if (is_first) {
      region.outer.push_back(moving);
      region.inner.push_back(range);
      region.moves_alike.push_back(true);
    } else {
      region.moves_alike[d] = region.moves_alike[d] && region.outer[d] == moving;
      region.inner[d] = {std::min(region.inner[d].low, range.low), std::max(region.inner[d].high, range.high)};
    }
  }
}

// Loops for the block's axes around the node, from there on: axis.at is where each begins, and becomes where it is.
void TirSchedule::nest(int node, Block& block, int parent, std::size_t position, bool keeps_unit_loops) {
  for (std::size_t a = 0; a < block.axes.size(); ++a) {
    Axis& axis = block.axes[a];
    if (axis.extent == 1 && !keeps_unit_loops) continue;
    parent = new_node(parent, position);
    position = 0;
    at(parent).reduced = axis.reduced;
    if (axis.extent == 1) continue;
    at(parent).digits = {new_digit(fmt::format("ax{}", a), axis.extent)};
    axis.at += Affine::variable(at(parent).digits[0]);
  }
  std::vector<int>& children = at(parent).children;
  children.insert(children.begin() + std::ptrdiff_t(position), node);
  at(node).parent = parent;
}

int TirSchedule::new_block(Block block, int parent, std::size_t position) {
  const int node = int(nodes_.size());
  if (nodes_.size() == most_nodes) throw NotReplayed("more loops than any real program has");
  nodes_.emplace_back();
  at(node).block = int(blocks_.size());
  nest(node, block, parent, position, true);
  blocks_.push_back(std::move(block));
  return node;
}

void TirSchedule::move(int node, Block block, int loop, std::size_t position, bool keeps_unit_loops) {
  remove(node);
  nest(node, block, loop, position, keeps_unit_loops);
  block_at(node) = std::move(block);
}

void TirSchedule::compute_at(int block, int loop, bool keeps_unit_loops, bool last) {
  check_loop(loop);
  if (is_inside(block, loop)) throw NotReplayed("a block that is there already");
  Block moved = block_at(block);
  const std::vector<bool> outer = digits_around(loop);
  Region region;
  std::size_t first = at(loop).children.size(), after = 0;
  for (const int reader : consumers(block)) {
    if (reader == block) continue;
    if (!is_inside(reader, loop)) throw NotReplayed("a consumer elsewhere");
    first = std::min(first, position_of(child_towards(loop, reader)));
    for (const Access& load : block_at(reader).value.loads) {
      if (load.tensor != moved.tensor) continue;
      if (load.padded) throw NotReplayed("a padded load of it");
      add_region(region, over_digits(load.index, block_at(reader)), outer);
    }
  }
  if (region.outer.empty()) throw NotReplayed("no consumer there");
  for (const int writer : producers(block))
    if (is_inside(writer, loop)) after = std::max(after, position_of(child_towards(loop, writer)) + 1);
  if (after > first) throw NotReplayed("a producer after a consumer");
  for (Axis& axis : moved.axes) axis.at = {};
  for (std::size_t d = 0; d < moved.target.size(); ++d) {
    if (!region.moves_alike[d]) throw NotReplayed("consumers of different parts");
    Axis& axis = moved.axes[axis_in(moved.target[d])];
    axis.at = region.outer[d] + Affine(region.inner[d].low);
    axis.extent = region.inner[d].width();
  }
  move(block, std::move(moved), loop, last ? first : after, keeps_unit_loops);
}

void TirSchedule::reverse_compute_at(int block, int loop, bool keeps_unit_loops, bool last) {
  check_loop(loop);
  if (is_inside(block, loop)) throw NotReplayed("a block that is there already");
  Block moved = block_at(block);
  const std::vector<bool> outer = digits_around(loop);
  std::vector<bool> placed(moved.axes.size(), false);
  std::size_t first = at(loop).children.size(), after = 0;
  for (const int reader : consumers(block))
    if (is_inside(reader, loop)) first = std::min(first, position_of(child_towards(loop, reader)));
  std::vector<Axis> axes = moved.axes;
  for (Axis& axis : axes) axis.at = {};
  for (const int tensor : tensors_read(moved)) {
    Region region;
    for (const int writer : blocks_writing(tensor)) {
      if (!is_inside(writer, loop)) continue;
      after = std::max(after, position_of(child_towards(loop, writer)) + 1);
      add_region(region, over_digits(block_at(writer).target, block_at(writer)), outer);
    }
    if (region.outer.empty()) continue;
    for (const Access& load : moved.value.loads) {
      if (load.tensor != tensor) continue;
      for (std::size_t d = 0; d < load.index.size(); ++d) {
        if (load.index[d].is_constant()) continue;
        const std::size_t a = axis_in(load.index[d]);
        if (!region.moves_alike[d] || load.padded) throw NotReplayed("producers of different parts");
        Axis& axis = axes[a];
        const Affine begin = region.outer[d] + Affine(region.inner[d].low);
        if (placed[a] && (!(axis.at == begin) || axis.extent != region.inner[d].width()))
          throw NotReplayed("producers of different parts");
        axis.at = begin;
        axis.extent = region.inner[d].width();
        placed[a] = true;
      }
    }
  }
  if (std::find(placed.begin(), placed.end(), true) == placed.end()) throw NotReplayed("no producer there");
  if (after > first) throw NotReplayed("a producer after a consumer");
  moved.axes = std::move(axes);
  move(block, std::move(moved), loop, last ? first : after, keeps_unit_loops);
}

void TirSchedule::compute_inline(int block) {
  const Block inlined = block_at(block);
  if (inlined.combine != Combine::none) throw NotReplayed("a reduction inlined");
  check_temporary(inlined.tensor);
  const std::vector<int> readers = consumers(block);
  if (readers.empty()) throw NotReplayed("no consumer");
  for (const int reader : readers) {
    Block& by = block_at(reader);
    by.value = replace_loads(by.value, [&](const Access& load) -> std::optional<Value> {
      if (load.tensor != inlined.tensor) return std::nullopt;
      if (load.padded) throw NotReplayed("a padded load of it");
      std::vector<Affine> axes(inlined.axes.size());
      for (std::size_t d = 0; d < inlined.target.size(); ++d) {
        if (!inlined.target[d].is_constant()) axes[axis_in(inlined.target[d])] = load.index[d];
      }
      return as_stored(computation_, inlined.tensor, substitute(inlined.value, axes));
    });
    if (by.value.nodes.size() > most_value_nodes) throw NotReplayed("an expression that is too long");
  }
  remove(block);
}

// The consumer of what no reduction gives, into its producer.
void TirSchedule::reverse_compute_inline(int block) {
  const std::vector<int> writers = producers(block);
  if (writers.size() != 1 || consumers(writers[0]).size() != 1) throw NotReplayed("not one producer for it alone");
  Block& by = block_at(writers[0]);
  const Block& inlined = block_at(block);
  if (by.combine != Combine::none || inlined.combine != Combine::none) throw NotReplayed("a reduction inlined");
  check_temporary(by.tensor);
  // The axes of the consumer over those of the producer, from the elements that it reads.
  std::vector<Affine> axes(inlined.axes.size());
  for (const Access& load : inlined.value.loads) {
    if (load.tensor != by.tensor) continue;
    for (std::size_t d = 0; d < load.index.size(); ++d) {
      if (load.padded) throw NotReplayed("a padded load of it");
      if (!load.index[d].is_constant()) axes[axis_in(load.index[d])] = by.target[d];
    }
  }
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (axes[a].is_constant() && inlined.axes[a].extent > 1) throw NotReplayed("a block that reads one element often");
  const int read = by.tensor;
  Value value = replace_loads(substitute(inlined.value, axes), [&](const Access& load) {
    return load.tensor == read ? std::optional<Value>(as_stored(computation_, read, by.value)) : std::nullopt;
  });
  if (value.nodes.size() > most_value_nodes) throw NotReplayed("an expression that is too long");
  by.target = inlined.target;
  for (Affine& form : by.target) form = substitute(form, axes);
  by.value = std::move(value);
  by.tensor = inlined.tensor;
  remove(block);
}

// --- buffers

int TirSchedule::new_tensor(int like, std::string_view suffix) {
  if (computation_.tensors.size() == most_tensors) throw NotReplayed("more buffers than any real program has");
  Tensor tensor = computation_.tensors[std::size_t(like)];
  tensor.name += "_";
  for (const char c : suffix) tensor.name += std::isalnum((unsigned char)(c)) != 0 ? c : '_';
  while (computation_.tensor_named(tensor.name) >= 0) tensor.name += '_';
  tensor.role = Role::temporary;
  computation_.tensors.push_back(tensor);
  layouts_.emplace_back();
  return int(computation_.tensors.size()) - 1;
}

TirSchedule::Block TirSchedule::copy_of(int from, int to) const {
  Block copy;
  copy.name = computation_.tensors[std::size_t(to)].name;
  copy.tensor = to;
  Access load;
  load.tensor = from;
  for (const std::int64_t extent : computation_.tensors[std::size_t(from)].shape) {
    const Affine axis = Affine::variable(int(copy.axes.size()));
    copy.axes.push_back({fmt::format("v{}", copy.axes.size()), extent, false, {}});
    copy.target.push_back(axis);
    load.index.push_back(axis);
  }
  copy.value = Value::load(std::move(load));
  return copy;
}

int TirSchedule::cache_write(int block, std::int64_t buffer, std::string_view scope) {
  const int tensor = block_at(block).tensor;
  if (buffer != 0) throw NotReplayed("a block of one result");
  if (blocks_writing(tensor).size() != 1) throw NotReplayed("a buffer that several blocks write");
  const int cache = new_tensor(tensor, scope);
  block_at(block).tensor = cache;
  Block copy = copy_of(cache, tensor);
  copy.name = computation_.tensors[std::size_t(cache)].name;
  return new_block(std::move(copy), root(), position_of(child_towards(root(), block)) + 1);
}

int TirSchedule::cache_read(int block, std::int64_t buffer, std::string_view scope, const std::vector<int>& readers) {
  const std::vector<int> read = tensors_read(block_at(block));
  if (buffer < 0 || buffer >= std::int64_t(read.size())) throw NotReplayed("no such buffer");
  const int tensor = read[std::size_t(buffer)];
  const std::vector<int> writers = blocks_writing(tensor);
  std::size_t position = 0;  // a parameter is copied before all else
  for (const int writer : writers) position = std::max(position, position_of(child_towards(root(), writer)) + 1);
  const int cache = new_tensor(tensor, scope);
  for (const int reader : readers.empty() ? blocks_reading(tensor) : readers) {
    for (Access& load : block_at(reader).value.loads)
      if (load.tensor == tensor) load.tensor = cache;
  }
  return new_block(copy_of(tensor, cache), root(), position);
}

void TirSchedule::transform_layout(int block, std::int64_t buffer, bool is_written, const IndexMap& map) {
  int tensor = block_at(block).tensor;
  if (!is_written) {
    const std::vector<int> read = tensors_read(block_at(block));
    if (buffer < 0 || buffer >= std::int64_t(read.size())) throw NotReplayed("no such buffer");
    tensor = read[std::size_t(buffer)];
  }
  Tensor& stored = computation_.tensors[std::size_t(tensor)];
  Layout& layout = layouts_[std::size_t(tensor)];
  check_temporary(tensor);
  if (layout.is_given || map.dimensions != stored.shape.size())
    throw NotReplayed("a second layout, or of another rank");
  layout = {true, map};
}

void TirSchedule::set_prepares(int block) {
  block_at(block).prepares = true;
}

// --- reductions

int TirSchedule::decompose_reduction(int block, int loop) {
  check_loop(loop);
  Block& update = block_at(block);
  if (!update.starts || !is_inside(block, loop)) throw NotReplayed("not a reduction inside of that loop");
  const std::vector<bool> spatial = spatial_digits(update);
  std::vector<int> chain;
  for (int node = at(block).parent; node != at(loop).parent; node = at(node).parent) chain.insert(chain.begin(), node);

  Block init;
  init.name = update.name + "_init";
  init.tensor = update.tensor;
  std::vector<Affine> kept(update.axes.size());
  for (std::size_t a = 0; a < update.axes.size(); ++a) {
    if (update.axes[a].reduced) continue;
    kept[a] = Affine::variable(int(init.axes.size()));
    init.axes.push_back(update.axes[a]);
  }
  for (const Affine& form : update.target) init.target.push_back(substitute(form, kept));
  const DType type = computation_.tensors[std::size_t(update.tensor)].dtype;
  init.value = Value::constant(codegen::kept(identity_of(update.combine), type));
  update.starts = false;
  update.name += "_update";

  int parent = at(loop).parent;
  std::size_t position = position_of(loop);
  for (const int old : chain) {
    const std::vector<int> digits = at(old).digits;
    if (at(old).reduced) {
      if (std::any_of(digits.begin(), digits.end(), [&](int digit) { return spatial[std::size_t(digit)]; }))
        throw NotReplayed("a loop that is reduced and is not");
      continue;
    }
    parent = new_node(parent, position);
    position = 0;
    at(parent).kind = at(old).kind;
    at(parent).unroll_steps = at(old).unroll_steps;
    for (const int digit : digits) at(parent).digits.push_back(renamed_digit(digit, init));
  }
  const int node = new_node(parent, position);
  at(node).block = int(blocks_.size());
  blocks_.push_back(std::move(init));
  return node;
}

// A digit like that one, which takes its place in the block.
int TirSchedule::renamed_digit(int digit, Block& block) {
  const int own = new_digit(digits_[std::size_t(digit)].name, digits_[std::size_t(digit)].extent);
  for (Axis& axis : block.axes) {
    const std::int64_t step = axis.at.coefficient(digit);
    if (step != 0) axis.at += Affine::variable(digit, -step) + Affine::variable(own, step);
  }
  return own;
}

// What `whole` sums in each iteration of a loop of `chain`: the loop's digits are spatial axes, those of the other
// reduced loops reduced ones.
TirSchedule::Block TirSchedule::parts_of(const Block& whole, int loop, const std::vector<int>& chain, int tensor,
                                         std::int64_t dimension) const {
  Block parts;
  parts.name = whole.name + "_rf";
  parts.tensor = tensor;
  parts.combine = whole.combine;
  parts.starts = true;
  std::vector<Affine> old_axes(whole.axes.size());  // over the new ones
  std::map<int, int> axis_of;                       // by digit
  Affine part;
  const auto add_digit = [&](int digit, bool is_reduced_axis) {
    axis_of[digit] = int(parts.axes.size());
    const Digit& own = digits_[std::size_t(digit)];
    parts.axes.push_back({own.name, own.extent, is_reduced_axis, Affine::variable(digit)});
  };
  for (const int digit : at(loop).digits) {
    part = part * digits_[std::size_t(digit)].extent + Affine::variable(int(parts.axes.size()));
    add_digit(digit, false);
  }
  for (std::size_t a = 0; a < whole.axes.size(); ++a) {
    if (whole.axes[a].reduced) continue;
    old_axes[a] = Affine::variable(int(parts.axes.size()));
    parts.axes.push_back(whole.axes[a]);
  }
  for (const int node : chain) {
    if (node == loop || !at(node).reduced) continue;
    for (const int digit : at(node).digits) add_digit(digit, true);
  }
  for (std::size_t a = 0; a < whole.axes.size(); ++a) {
    if (!whole.axes[a].reduced) continue;
    old_axes[a] = Affine(whole.axes[a].at.constant);
    for (const Term& term : whole.axes[a].at.terms) {
      const auto axis = axis_of.find(term.variable);
      if (axis == axis_of.end()) throw NotReplayed("a reduction over other loops");
      old_axes[a] += Affine::variable(axis->second, term.coefficient);
    }
  }
  parts.value = substitute(whole.value, old_axes);
  for (const Affine& form : whole.target) parts.target.push_back(substitute(form, old_axes));
  parts.target.insert(parts.target.begin() + std::ptrdiff_t(dimension), part);
  return parts;
}

// The sum of these parts: the same loops without the other reduced ones.
TirSchedule::Block TirSchedule::sum_of_parts(const Block& whole, int loop, int tensor, std::int64_t dimension) const {
  Block sum = whole;
  sum.axes.clear();
  std::vector<Affine> kept(whole.axes.size());
  Affine part;
  for (const int digit : at(loop).digits) {
    const Digit& own = digits_[std::size_t(digit)];
    part = part * own.extent + Affine::variable(int(sum.axes.size()));
    sum.axes.push_back({own.name, own.extent, true, Affine::variable(digit)});
  }
  for (std::size_t a = 0; a < whole.axes.size(); ++a) {
    if (whole.axes[a].reduced) continue;
    kept[a] = Affine::variable(int(sum.axes.size()));
    sum.axes.push_back(whole.axes[a]);
  }
  Access load;
  load.tensor = tensor;
  for (Affine& form : sum.target) {
    form = substitute(form, kept);
    load.index.push_back(form);
  }
  load.index.insert(load.index.begin() + std::ptrdiff_t(dimension), part);
  sum.value = Value::load(std::move(load));
  return sum;
}

// The block sums over the other reduced loops only, for each iteration of this one; a new one adds these sums up. The
// block's number becomes that of the latter.
int TirSchedule::rfactor(int loop, std::int64_t dimension) {
  check_loop(loop);
  const std::vector<int> inside = child_blocks(loop);
  if (inside.size() != 1) throw NotReplayed("not the loop of one block");
  const int block = inside[0];
  const Block whole = block_at(block);
  if (!whole.starts) throw NotReplayed("not a reduction");
  const std::int64_t rank = std::int64_t(whole.target.size());
  if (dimension < 0) dimension += rank + 1;
  if (dimension < 0 || dimension > rank) throw NotReplayed("no such dimension");
  const std::vector<bool> spatial = spatial_digits(whole);
  const std::vector<int> chain = loops_around(block);
  for (const int node : chain) {
    for (const int digit : at(node).digits)
      if (at(node).reduced && spatial[std::size_t(digit)]) throw NotReplayed("a loop that is reduced and is not");
  }
  if (!at(loop).reduced) throw NotReplayed("a loop that is not reduced");

  const int tensor = new_tensor(whole.tensor, "rf");
  std::vector<std::int64_t>& shape = computation_.tensors[std::size_t(tensor)].shape;
  shape.insert(shape.begin() + std::ptrdiff_t(dimension), extent_of(loop));
  Block parts = parts_of(whole, loop, chain, tensor, dimension), sum = sum_of_parts(whole, loop, tensor, dimension);

  const int top = child_towards(root(), block);
  int parent = root();
  std::size_t position = position_of(top) + 1;
  for (const int old : chain) {
    if (old != loop && at(old).reduced) continue;
    parent = new_node(parent, position);
    position = 0;
    at(parent).reduced = at(old).reduced;
    for (const int digit : std::vector<int>(at(old).digits)) at(parent).digits.push_back(renamed_digit(digit, sum));
  }
  at(loop).reduced = false;  // of the parts
  const int node = new_node(at(block).parent, position_of(block));
  at(node).block = int(blocks_.size());
  blocks_.push_back(std::move(parts));
  remove(block);
  std::vector<int>& children = at(parent).children;
  children.insert(children.begin() + std::ptrdiff_t(position), block);
  at(block).parent = parent;
  block_at(block) = std::move(sum);
  return node;
}

// --- the program

// Cuts a digit of the form so that the divisor falls on a boundary between two digits.
void TirSchedule::cut_for(const Mapped& stored) {
  for (const Term& term : stored.rest.terms) {
    const std::int64_t extent = digits_[std::size_t(term.variable)].extent, step = term.coefficient;
    if (step <= 0 || stored.divisor % step != 0) continue;
    const std::int64_t inner = stored.divisor / step;
    if (inner >= extent || extent % inner != 0) continue;
    cut_digit(term.variable, inner);
    return;
  }
  throw NotReplayed("a layout that is not affine");
}

void TirSchedule::lay_out() {
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (const int node : child_blocks(root())) {
      const Block& block = block_at(node);
      std::vector<Access> accesses = block.value.loads;
      accesses.push_back({block.tensor, block.target});
      for (const Access& access : accesses) {
        const Layout& layout = layouts_[std::size_t(access.tensor)];
        if (!layout.is_given || !is_done) continue;
        const Mapped stored = mapped(layout.map, over_digits(access.index, block), ranges());
        if (stored.is_affine) continue;
        cut_for(stored);
        is_done = false;
      }
      if (!is_done) break;
    }
  }
}

// Writes the tree as a loop program.
class TirSchedule::Writer {
 public:
  Writer(const TirSchedule& schedule, const Computation& roles)
      : schedule_(schedule), ranges_(schedule.ranges()), loop_of_(schedule.digits_.size(), -1) {
    gather();
    add_buffers(roles);
  }

  LoopProgram written() {
    for (const int child : schedule_.at(0).children) {
      const std::vector<int> blocks = schedule_.child_blocks(child);
      const bool prepares =
          std::all_of(blocks.begin(), blocks.end(), [&](int block) { return schedule_.block_at(block).prepares; });
      body_ = prepares ? &program_.prepare : &program_.run;
      write(child, 0);
    }
    return std::move(program_);
  }

 private:
  // TVM's UnrollLoop: steps of a part of the program, whether a loop in it stays, loops unrolled in each other.
  struct Unrolling {
    std::int64_t steps = 0;
    int depth = 0;
    bool has_loop = false;
  };
  static constexpr int deepest_unrolling = 8;
  static constexpr std::int64_t most_steps = std::int64_t(1) << 40;  // more are as many

  // A block over digits.
  struct Bound {
    Access target;
    Value value;
  };

  void gather() {
    const std::vector<int> blocks = schedule_.child_blocks(0);
    for (const int node : blocks) {
      const Block& block = schedule_.block_at(node);
      if (block.starts) throw NotReplayed("a reduction whose start has no place");
      const std::vector<Affine> axes = schedule_.axes_at(block);
      const auto bound = [&](Access access) {
        for (Affine& form : access.index) form = substitute(form, axes);
        const Layout& layout = schedule_.layouts_[std::size_t(access.tensor)];
        if (layout.is_given && access.padded) throw NotReplayed("a padded load of what is laid out");
        if (layout.is_given) access.index = mapped(layout.map, access.index, ranges_).results;
        return access;
      };
      Bound& own = bound_[node];
      own.target = bound({block.tensor, block.target});
      own.value = map_accesses(block.value, bound, [&](const Affine& form) { return substitute(form, axes); });
    }
  }

  template <class Visit>
  void each_access(int tensor, Visit visit) {
    for (auto& [node, bound] : bound_) {
      if (bound.target.tensor == tensor) visit(node, bound.target);
      for (Access& load : bound.value.loads)
        if (load.tensor == tensor) visit(node, load);
    }
  }

  // Parameters, then temporaries, each as large as what is used of it within the innermost loop around all its uses.
  void add_buffers(const Computation& roles) {
    const std::vector<Tensor>& tensors = schedule_.computation_.tensors;
    std::vector<int> buffer_of(tensors.size(), -1);
    for (const bool are_temporary : {false, true}) {
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        if ((tensors[t].role == Role::temporary) != are_temporary) continue;
        std::vector<std::int64_t> shape = tensors[t].shape;
        if (are_temporary) {
          shape = compacted(int(t));
          if (shape.empty()) continue;
        }
        buffer_of[t] = int(program_.buffers.size());
        const Role role = are_temporary ? Role::temporary : roles.tensors[t].role;
        program_.buffers.push_back({tensors[t].name, tensors[t].dtype, shape, role});
      }
    }
    for (auto& [node, bound] : bound_) {
      bound.target.tensor = buffer_of[std::size_t(bound.target.tensor)];
      for (Access& load : bound.value.loads) load.tensor = buffer_of[std::size_t(load.tensor)];
    }
  }

  // Its shape, empty if nothing uses it; its indices are moved to begin at 0.
  std::vector<std::int64_t> compacted(int tensor) {
    int around = -1;
    each_access(tensor, [&](int node, const Access&) {
      if (around < 0) around = schedule_.at(node).parent;
      while (!schedule_.is_inside(node, around)) around = schedule_.at(around).parent;
    });
    if (around < 0) return {};
    const std::vector<bool> outer = schedule_.digits_around(around);
    Region region;
    bool is_padded = false;
    each_access(tensor, [&](int, const Access& access) {
      is_padded = is_padded || access.padded;
      schedule_.add_region(region, access.index, outer);
    });
    if (is_padded) return schedule_.computation_.tensors[std::size_t(tensor)].shape;  // its borders are where they are
    std::vector<std::int64_t> shape;
    for (std::size_t d = 0; d < region.outer.size(); ++d) {
      Affine begin = region.outer[d] + Affine(region.inner[d].low);
      std::int64_t extent = region.inner[d].width();
      if (!region.moves_alike[d]) {
        begin = {};
        extent = 0;
        each_access(tensor, [&](int, const Access& access) {
          extent = std::max(extent, range(access.index[d], ranges_).high + 1);
        });
      }
      each_access(tensor, [&](int, Access& access) { access.index[d] += begin * -1; });
      shape.push_back(extent);
    }
    return shape;
  }

  Unrolling write(int node, std::int64_t unroll_steps) {
    const Node& own = schedule_.at(node);
    if (own.block >= 0) {
      store(node);
      return {1, 0, false};
    }
    if (own.unroll_steps >= 0) unroll_steps = own.unroll_steps;
    std::vector<int> loops;
    std::vector<std::size_t> places;
    const LoopKind kind = own.kind == LoopKind::vector && is_scalarised(node) ? LoopKind::serial : own.kind;
    for (const int digit : own.digits) {
      const int loop = int(program_.loops.size());
      const bool is_last = digit == own.digits.back();
      // A vector of fused loops: the innermost one is the vector.
      const LoopKind part = kind == LoopKind::vector && !is_last ? LoopKind::unrolled : kind;
      program_.loops.push_back({name_for(digit), schedule_.digits_[std::size_t(digit)].extent, part});
      loop_of_[std::size_t(digit)] = loop;
      open_.push_back(loop);
      loops.push_back(loop);
      places.push_back(body_->size());
      body_->push_back({codegen::Node::Kind::loop, loop, 0});
    }
    Unrolling all;
    for (const int child : own.children) {
      const Unrolling inside = write(child, unroll_steps);
      all = {all.steps + inside.steps, std::max(all.depth, inside.depth), all.has_loop || inside.has_loop};
    }
    for (std::size_t i = loops.size(); i-- > 0;) {
      (*body_)[places[i]].end = int(body_->size());
      open_.pop_back();
    }
    if (loops.empty() || kind == LoopKind::vector) return all;
    const std::int64_t extent = schedule_.extent_of(node);
    const bool is_short = extent <= unroll_steps / std::max<std::int64_t>(all.steps, 1);
    if (kind == LoopKind::unrolled ||
        (kind == LoopKind::serial && !all.has_loop && all.depth <= deepest_unrolling && is_short)) {
      for (const int loop : loops) program_.loops[std::size_t(loop)].kind = LoopKind::unrolled;
      all.steps = all.steps > most_steps / extent ? most_steps : all.steps * extent;
      ++all.depth;
      return all;
    }
    all.has_loop = true;
    return all;
  }

  // TVM writes a vector whose padding depends on the lane as a loop.
  bool is_scalarised(int node) const {
    for (const int block : schedule_.child_blocks(node)) {
      for (const Access& load : bound_.at(block).value.loads) {
        if (!load.padded) continue;
        for (std::size_t d = 0; d < load.index.size(); ++d) {
          if (!leaves(load, d)) continue;
          for (const int digit : schedule_.at(node).digits)
            if (load.index[d].coefficient(digit) != 0) return true;
        }
      }
    }
    return false;
  }

  bool leaves(const Access& access, std::size_t dimension) const {
    const Interval range = codegen::range(access.index[dimension], ranges_);
    return range.low < 0 || range.high >= program_.buffers[std::size_t(access.tensor)].shape[dimension];
  }

  std::string name_for(int digit) const {
    std::string name = schedule_.digits_[std::size_t(digit)].name;
    const auto is_open = [&] {
      return std::any_of(open_.begin(), open_.end(),
                         [&](int loop) { return program_.loops[std::size_t(loop)].name == name; });
    };
    while (is_open()) name += '_';
    return name;
  }

  // Over loops in place of digits.
  Affine over_loops(const Affine& form) const {
    Affine result(form.constant);
    for (const Term& term : form.terms)
      result += Affine::variable(loop_of_[std::size_t(term.variable)], term.coefficient);
    return result;
  }
  Access over_loops(Access access) const {
    for (Affine& form : access.index) form = over_loops(form);
    return access;
  }

  void store(int node) {
    const Bound& bound = bound_.at(node);
    const Value value = replace_loads(bound.value, [&](const Access& load) -> std::optional<Value> {
      return load.padded ? padded(load) : Value::load(over_loops(load));
    });
    program_.stores.push_back({over_loops(bound.target), schedule_.block_at(node).combine, value});
    body_->push_back({codegen::Node::Kind::store, int(program_.stores.size()) - 1, int(body_->size()) + 1});
  }

  // The element, or the number outside: the index kept inside, under a condition for each border that it crosses.
  Value padded(Access load) const {
    const std::vector<std::int64_t>& shape = program_.buffers[std::size_t(load.tensor)].shape;
    std::vector<Value> conditions, gathered;
    Access inside{load.tensor, load.index};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Interval range = codegen::range(load.index[d], ranges_);
      const Affine form = over_loops(load.index[d]);
      inside.index[d] = form;
      if (!leaves(load, d)) continue;
      Value index = Value::position(form);
      if (range.low < 0) {
        conditions.push_back(Value::apply(Op::greater_or_equal, Value::position(form), Value::constant(0)));
        index = Value::apply(Op::max, std::move(index), Value::constant(0));
      }
      if (range.high >= shape[d]) {
        conditions.push_back(Value::apply(Op::less, Value::position(form), Value::constant(double(shape[d]))));
        index = Value::apply(Op::min, std::move(index), Value::constant(double(shape[d] - 1)));
      }
      inside.index[d] = {};
      inside.gathered.push_back(int(d));
      gathered.push_back(std::move(index));
    }
    if (gathered.size() > 3) throw NotReplayed("padding in more than three dimensions");
    Value value = Value::load(std::move(inside), gathered);
    for (std::size_t c = conditions.size(); c-- > 0;)
      value = Value::apply(Op::select, conditions[c], std::move(value), Value::constant(load.outside));
    return value;
  }

  const TirSchedule& schedule_;
  std::vector<Interval> ranges_;  // of digits
  std::vector<int> loop_of_;      // by digit
  std::map<int, Bound> bound_;    // by node
  LoopProgram program_;
  Body* body_ = nullptr;
  std::vector<int> open_;  // loops around the present place
};

LoopProgram TirSchedule::program(const Computation& roles) {
  lay_out();
  return Writer(*this, roles).written();
}

}  // namespace graft::codegen
