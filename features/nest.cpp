#include "features/nest.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace graft::features {
namespace {

using codegen::AccessSite;
using codegen::Analysis;
using codegen::LoopKind;
using codegen::LoopProgram;
using codegen::StoreContext;

// Hash of a store's computation and buffers, without the indices.
std::uint64_t statement(const codegen::Store& store) {
  std::uint64_t hash = base::hash_combine(std::uint64_t(store.combine), std::uint64_t(store.target.tensor));
  for (const codegen::ValueNode& node : store.value.nodes) {
    hash = base::hash_combine(hash, std::uint64_t(node.op));
    hash = base::hash_combine(hash, std::uint64_t(std::int64_t(node.a) << 32 ^ node.b));
    if (node.c >= 0) hash = base::hash_combine(hash, std::uint64_t(node.c));
    if (node.op == codegen::Op::constant) hash = base::hash_combine(hash, std::bit_cast<std::uint64_t>(node.number));
    if (node.op == codegen::Op::load)
      hash = base::hash_combine(hash, std::uint64_t(store.value.loads[std::size_t(node.load)].tensor));
  }
  return hash;
}

// By store of the analysis: whether it is a tail.
std::vector<bool> tails(const LoopProgram& program, const Analysis& analysis) {
  struct Statement {
    std::uint64_t hash;
    std::int64_t executions;
    std::size_t store;
  };
  std::vector<Statement> statements;
  statements.reserve(analysis.stores.size());
  for (std::size_t s = 0; s < analysis.stores.size(); ++s)
    statements.push_back(
        {statement(program.stores[std::size_t(analysis.stores[s].store)]), analysis.stores[s].executions, s});
  std::stable_sort(statements.begin(), statements.end(), [](const Statement& a, const Statement& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.executions > b.executions;
  });
  std::vector<bool> result(statements.size(), false);
  for (std::size_t s = 1; s < statements.size(); ++s)
    result[statements[s].store] = statements[s].hash == statements[s - 1].hash;
  return result;
}

class Builder {
 public:
  Builder(const LoopProgram& program, const Analysis& analysis)
      : program_(program), analysis_(analysis), part_of_(program.loops.size(), -1) {}

  Nest build() {
    nest_.sizes = buffers_by_size(program_, analysis_);
    slot_of_.assign(program_.buffers.size(), -1);
    for (std::size_t b = 0; b < nest_.sizes.size() && b < std::size_t(buffer_slots); ++b)
      slot_of_[std::size_t(nest_.sizes[b].buffer)] = int(b);
    place();
    const std::vector<bool> is_tail = tails(program_, analysis_);
    most_executed_.assign(nest_.parts.size(), {});
    std::size_t site = 0;
    for (std::size_t s = 0; s < analysis_.stores.size(); ++s) {
      const std::size_t first = site;
      while (site < analysis_.sites.size() && analysis_.sites[site].store == analysis_.stores[s].store) ++site;
      add(s, is_tail[s], first, site);
    }
    add_up();
    return std::move(nest_);
  }

 private:
  // Parts in their places, still empty.
  void place() {
    std::vector<int> path, ends;
    for (int n = 0; n < int(program_.run.size()); ++n) {
      while (!ends.empty() && ends.back() == n) {
        ends.pop_back();
        path.pop_back();
      }
      const codegen::Node& node = program_.run[std::size_t(n)];
      Part& part = nest_.parts.emplace_back();
      part.is_loop = node.kind == codegen::Node::Kind::loop;
      part.item = node.item;
      part.parent = path.empty() ? -1 : path.back();
      part.depth = int(path.size()) + part.is_loop;
      if (!part.is_loop) {
        store_parts_.push_back(n);
        continue;
      }
      part_of_[std::size_t(node.item)] = n;
      path.push_back(n);
      ends.push_back(node.end);
    }
  }

  void add(std::size_t position, bool is_tail, std::size_t first, std::size_t last) {
    const StoreContext& context = analysis_.stores[position];
    const codegen::Store& store = program_.stores[std::size_t(context.store)];
    const Operations once = operations(program_, store);
    const double executions = double(context.executions);

    Part& own = nest_.parts[std::size_t(store_parts_[position])];
    own.top_down = context.executions;
    own.operations = once;
    if (own.parent >= 0) nest_.parts[std::size_t(own.parent)].operations += once;

    for (std::size_t level = 0; level <= context.loops.size(); ++level) {
      const bool inside = level < context.loops.size();  // else: the store itself
      const int n = inside ? part_of_[std::size_t(context.loops[level])] : store_parts_[position];
      Part& part = nest_.parts[std::size_t(n)];
      part.executions += executions;
      if (is_tail) part.tail_executions += executions;
      if (inside) {
        part.top_down = context.top_down[level];
        part.bottom_up = std::max(part.bottom_up, context.bottom_up[level]);
      }
      std::int64_t register_elements = 0;
      for (std::size_t s = first; s < last; ++s) {
        const AccessSite& site = analysis_.sites[s];
        const codegen::Touch touch =
            inside ? site.touches[level]
                   : codegen::Touch{.stride = 0, .touched = 1, .reuse = 1, .bytes = 0, .lines = 1};
        if (program_.buffers[std::size_t(site.buffer)].scope == codegen::Scope::registers) {
          register_elements += touch.touched;
        } else if (const int slot = slot_of_[std::size_t(site.buffer)]; slot >= 0) {
          const bool twice = site.writes && store.combine != codegen::Combine::none;
          merge(touch, context.executions, site.writes, twice, part.buffers[std::size_t(slot)],
                most_executed_[std::size_t(n)][std::size_t(slot)]);
        }
      }
      part.register_elements = std::max(part.register_elements, register_elements);
    }
  }

  // The whole, of the stores.
  void add_up() {
    Part& whole = nest_.whole;
    for (const int n : store_parts_) {
      const Part& part = nest_.parts[std::size_t(n)];
      whole.executions += part.executions;
      whole.tail_executions += part.tail_executions;
      for (std::size_t slot = 0; slot < part.buffers.size(); ++slot) {
        whole.buffers[slot].loads += part.buffers[slot].loads;
        whole.buffers[slot].stores += part.buffers[slot].stores;
      }
    }
    for (const Part& part : nest_.parts) {
      whole.bottom_up = std::max(whole.bottom_up, part.bottom_up);
      whole.register_elements = std::max(whole.register_elements, part.register_elements);
      if (part.parent < 0 && !part.is_loop) whole.operations += part.operations;
    }
    for (std::size_t slot = 0; slot < whole.buffers.size() && slot < nest_.sizes.size(); ++slot) {
      const BufferSize& size = nest_.sizes[slot];
      const codegen::DType dtype = program_.buffers[std::size_t(size.buffer)].dtype;
      BufferTouch& all = whole.buffers[slot];
      all.touched = std::max<std::int64_t>(1, std::int64_t(size.bytes_touched) / codegen::bytes_of(dtype));
      all.reuse = (all.loads + all.stores) / all.touched;
      all.lines = (std::int64_t(size.bytes_touched) + codegen::line_bytes - 1) / codegen::line_bytes;
    }
  }

  static void merge(const codegen::Touch& touch, std::int64_t executions, bool writes, bool twice, BufferTouch& all,
                    std::int64_t& most_executed) {
    all.touched = std::max(all.touched, touch.touched);
    all.reuse = std::max(all.reuse, touch.reuse);
    all.lines = std::max(all.lines, touch.lines);
    if (executions > most_executed) {
      most_executed = executions;
      all.stride = touch.stride;
    }
    if (writes) all.stores += executions;
    if (!writes || twice) all.loads += executions;
  }

  const LoopProgram& program_;
  const Analysis& analysis_;
  Nest nest_;
  std::vector<int> part_of_;      // by loop
  std::vector<int> store_parts_;  // by position among the stores of run
  std::vector<int> slot_of_;      // by buffer, -1 for small ones and registers
  std::vector<std::array<std::int64_t, buffer_slots>>
      most_executed_;  // by part: executions of the access of the stride
};

}  // namespace

Nest nest(const LoopProgram& program) {
  const Analysis analysis = codegen::analyse(program, codegen::Lines::counted);
  return Builder(program, analysis).build();
}

std::int64_t exits(const LoopProgram& program, const Part& loop) {
  const codegen::Loop& of = program.loops[std::size_t(loop.item)];
  return of.kind == LoopKind::serial || of.kind == LoopKind::parallel ? loop.top_down / of.extent : 0;
}

std::int64_t unforeseen_exits(const LoopProgram& program, const Part& loop) {
  return program.loops[std::size_t(loop.item)].extent > foreseen_extent ? exits(program, loop) : 0;
}

}  // namespace graft::features
