#include "codegen/import/tir_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "codegen/import/tir_schedule.h"

namespace graft::codegen {
namespace {

using Item = TirTrace::Item;
using Instruction = TirTrace::Instruction;

constexpr std::size_t most_replayed = 4096;
constexpr std::string_view postprocessing = "EnterPostproc";

std::uint64_t hash(const Item& item) {
  std::uint64_t value = base::hash_combine(std::uint64_t(item.kind), std::uint64_t(item.number));
  value = base::hash_combine(value, base::hash_bytes(item.text));
  for (const Item& each : item.items) value = base::hash_combine(value, hash(each));
  return value;
}

class Replay {
 public:
  Replay(const TirFunction& function, const TirTrace& trace) : schedule_(function), trace_(trace) {}

  // Throws NotReplayed.
  LoopProgram program(const Computation& roles) {
    if (trace_.instructions.size() > most_replayed) throw NotReplayed("more primitives than are replayed");
    for (std::size_t i = 0; i < trace_.instructions.size(); ++i) {
      const Instruction& instruction = trace_.instructions[i];
      try {
        run(instruction, i);
      } catch (const NotReplayed& problem) {
        throw NotReplayed(fmt::format("{}: {}", instruction.name, problem.what()));
      }
    }
    if (is_marked_) throw NotReplayed("a trace without its postprocessing");
    return schedule_.program(roles);
  }

 private:
  static constexpr int inlined = -2, at_root = -1;  // in place of a loop

  static const Item& item(const std::vector<Item>& items, std::size_t i) {
    static const Item none;
    return i < items.size() ? items[i] : none;
  }
  static std::int64_t number_at(const std::vector<Item>& items, std::size_t i) {
    if (item(items, i).kind != Item::Kind::number) throw NotReplayed("a number is missing");
    return items[i].number;
  }
  static std::string_view text_at(const std::vector<Item>& items, std::size_t i) {
    if (item(items, i).kind != Item::Kind::text) throw NotReplayed("a text is missing");
    return items[i].text;
  }

  int node(const Item& item) const {
    const auto found = nodes_.find(item.text);
    if (item.kind != Item::Kind::text || found == nodes_.end()) throw NotReplayed("a block or loop is missing");
    if (found->second < 0) throw NotReplayed("a location where no loop is");
    return found->second;
  }
  // A loop, or `inlined` or `at_root`.
  int location(const Item& item) const {
    const auto found = nodes_.find(item.text);
    const bool is_none = item.kind == Item::Kind::text && found != nodes_.end() && found->second < 0;
    return is_none ? found->second : node(item);
  }
  int node_at(const Instruction& instruction, std::size_t i) const { return node(item(instruction.inputs, i)); }
  // A number, or the name of one.
  std::int64_t value(const Item& item) const {
    if (item.kind == Item::Kind::number) return item.number;
    const auto found = numbers_.find(item.text);
    if (item.kind != Item::Kind::text || found == numbers_.end()) throw NotReplayed("a number is missing");
    return found->second;
  }
  std::vector<int> nodes_in(const std::vector<Item>& items) const {
    std::vector<int> nodes;
    for (const Item& each : items) nodes.push_back(node(each));
    return nodes;
  }

  void give(const Instruction& instruction, const std::vector<int>& nodes) {
    if (instruction.outputs.size() != nodes.size())
      throw NotReplayed(fmt::format("{} results instead of {}", nodes.size(), instruction.outputs.size()));
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes_[std::string(text_at(instruction.outputs, i))] = nodes[i];
  }
  const std::vector<std::int64_t>& decision(std::size_t at) const {
    const auto found = trace_.decisions.find(at);
    if (found == trace_.decisions.end() || found->second.empty()) throw NotReplayed("a decision is missing");
    return found->second;
  }

  void run(const Instruction& instruction, std::size_t at) {
    if (finds(instruction) || samples(instruction, at) || changes_loops(instruction) || changes_blocks(instruction))
      return;
    const std::string_view name = instruction.name;
    if (name == "Annotate") {
      annotate(instruction);
    } else if (name == "Unannotate") {
      if (is_mark(text_at(instruction.attributes, 0))) is_marked_ = false;
    } else if (name == "Bind") {
      throw NotReplayed("a GPU's schedule");
    } else if (name != postprocessing) {
      throw NotReplayed("is not read");
    }
  }

  // Each of these is false for a primitive of another kind: those that name blocks and loops, ...
  bool finds(const Instruction& instruction) {
    const std::string_view name = instruction.name;
    const auto one = [&](int node) { give(instruction, {node}); };
    if (name == "GetBlock" || name == "GetSBlock") {
      one(schedule_.block_named(text_at(instruction.attributes, 0)));
    } else if (name == "GetLoops") {
      give(instruction, schedule_.loops_around(node_at(instruction, 0)));
    } else if (name == "GetChildBlocks") {
      give(instruction, schedule_.child_blocks(node_at(instruction, 0)));
    } else if (name == "GetConsumers") {
      if (!instruction.outputs.empty()) give(instruction, schedule_.consumers(node_at(instruction, 0)));
    } else if (name == "GetProducers") {
      if (!instruction.outputs.empty()) give(instruction, schedule_.producers(node_at(instruction, 0)));
    } else {
      return false;
    }
    return true;
  }

  // ... choose numbers and places, ...
  bool samples(const Instruction& instruction, std::size_t at) {
    const std::string_view name = instruction.name;
    const auto one = [&](int node) { give(instruction, {node}); };
    if (name == "SampleCategorical") {
      const std::vector<Item>& values = item(instruction.attributes, 0).items;
      const std::int64_t chosen = decision(at).front();
      if (chosen < 0 || chosen >= std::int64_t(values.size())) throw NotReplayed("a decision out of range");
      numbers_[std::string(text_at(instruction.outputs, 0))] = number_at(values, std::size_t(chosen));
    } else if (name == "SamplePerfectTile") {
      const std::vector<std::int64_t>& sizes = decision(at);
      if (sizes.size() != instruction.outputs.size()) throw NotReplayed("a decision of other parts");
      for (std::size_t i = 0; i < sizes.size(); ++i) numbers_[std::string(text_at(instruction.outputs, i))] = sizes[i];
    } else if (name == "SampleComputeLocation") {
      const std::int64_t place = decision(at).front();
      if (place == inlined || place == at_root) {
        one(int(place));
      } else {
        const std::vector<int> consumers = schedule_.consumers(node_at(instruction, 0));
        if (consumers.empty()) throw NotReplayed("no consumer");
        const std::vector<int> loops = schedule_.loops_around(consumers.front());
        if (place < 0 || place >= std::int64_t(loops.size())) throw NotReplayed("a decision out of range");
        one(loops[std::size_t(place)]);
      }
    } else {
      return false;
    }
    return true;
  }

  // ... change loops, ...
  bool changes_loops(const Instruction& instruction) {
    const std::string_view name = instruction.name;
    const auto one = [&](int node) { give(instruction, {node}); };
    const std::vector<Item>& inputs = instruction.inputs;
    if (name == "Split") {
      std::vector<std::int64_t> factors;
      for (std::size_t i = 1; i < inputs.size(); ++i) {
        const bool is_open = inputs[i].kind == Item::Kind::none || inputs[i].text == "None";
        factors.push_back(is_open ? 0 : value(inputs[i]));
        if (!is_open && factors.back() < 1) throw NotReplayed("a factor out of range");
      }
      give(instruction, schedule_.split(node_at(instruction, 0), std::move(factors)));
    } else if (name == "Fuse") {
      one(schedule_.fuse(nodes_in(inputs)));
    } else if (name == "Reorder") {
      schedule_.reorder(nodes_in(inputs));
    } else if (name == "AddUnitLoop") {
      one(schedule_.add_unit_loop(node_at(instruction, 0)));
    } else if (name == "Parallel") {
      schedule_.set_kind(node_at(instruction, 0), LoopKind::parallel);
    } else if (name == "Vectorize") {
      schedule_.set_kind(node_at(instruction, 0), LoopKind::vector);
    } else if (name == "Unroll") {
      schedule_.set_kind(node_at(instruction, 0), LoopKind::unrolled);
    } else {
      return false;
    }
    return true;
  }

  // ... and blocks.
  bool changes_blocks(const Instruction& instruction) {
    const std::string_view name = instruction.name;
    const auto one = [&](int node) { give(instruction, {node}); };
    const std::vector<Item>&inputs = instruction.inputs, &attributes = instruction.attributes;
    if (name == "ComputeAt" || name == "ReverseComputeAt") {
      const int block = node_at(instruction, 0), loop = location(item(inputs, 1));
      const bool is_reverse = name == "ReverseComputeAt";
      const bool keeps = number_at(attributes, 0) != 0, last = attributes.size() < 2 || number_at(attributes, 1) != -2;
      if (attributes.size() > 1 && number_at(attributes, 1) >= 0) throw NotReplayed("at a place by number");
      if (loop == inlined) {
        is_reverse ? schedule_.reverse_compute_inline(block) : schedule_.compute_inline(block);
      } else if (loop != at_root) {
        is_reverse ? schedule_.reverse_compute_at(block, loop, keeps, last)
                   : schedule_.compute_at(block, loop, keeps, last);
      }
    } else if (name == "ComputeInline") {
      schedule_.compute_inline(node_at(instruction, 0));
    } else if (name == "ReverseComputeInline") {
      schedule_.reverse_compute_inline(node_at(instruction, 0));
    } else if (name == "CacheWrite") {
      if (!item(inputs, 1).items.empty()) throw NotReplayed("for some consumers");
      one(schedule_.cache_write(node_at(instruction, 0), number_at(attributes, 0), text_at(attributes, 1)));
    } else if (name == "CacheRead") {
      one(schedule_.cache_read(node_at(instruction, 0), number_at(attributes, 0), text_at(attributes, 1),
                               nodes_in(item(inputs, 1).items)));
    } else if (name == "DecomposeReduction") {
      one(schedule_.decompose_reduction(node_at(instruction, 0), node_at(instruction, 1)));
    } else if (name == "RFactor") {
      one(schedule_.rfactor(node_at(instruction, 0), number_at(attributes, 0)));
    } else if (name == "TransformLayout") {
      const base::Result<IndexMap> map = index_map(text_at(inputs, 1));
      if (!map) throw NotReplayed(map.reason().text);
      schedule_.transform_layout(node_at(instruction, 0), number_at(attributes, 0), number_at(attributes, 1) != 0,
                                 *map);
    } else {
      return false;
    }
    return true;
  }

  // What the postprocessing makes loops of.
  static bool is_mark(std::string_view key) {
    return key == "meta_schedule.parallel" || key == "meta_schedule.vectorize" ||
           key == "meta_schedule.unroll_explicit" || key == "meta_schedule.unroll_implicit";
  }

  void annotate(const Instruction& instruction) {
    const std::string_view key = text_at(instruction.attributes, 0);
    if (is_mark(key)) {
      is_marked_ = true;
    } else if (key == "pragma_auto_unroll_max_step") {
      schedule_.set_unroll_steps(node_at(instruction, 0), value(item(instruction.inputs, 1)));
    } else if (key == "meta_schedule.layout_rewrite_preproc") {
      schedule_.set_prepares(node_at(instruction, 0));
    } else if (!key.starts_with("meta_schedule.") && !key.starts_with("pragma_unroll_")) {
      throw NotReplayed("a key that is not known");
    } else if (key.starts_with("meta_schedule.auto_tensorize")) {
      throw NotReplayed("a tensor intrinsic");
    }
  }

  TirSchedule schedule_;
  const TirTrace& trace_;
  std::map<std::string, int, std::less<>> nodes_;
  std::map<std::string, std::int64_t, std::less<>> numbers_;
  bool is_marked_ = false;
};

}  // namespace

std::size_t TirTrace::size_without_postprocessing() const {
  const auto end = std::find_if(instructions.begin(), instructions.end(),
                                [](const Instruction& each) { return each.name == postprocessing; });
  return std::size_t(end - instructions.begin());
}

std::uint64_t TirTrace::form() const {
  std::uint64_t form = 0;
  for (std::size_t i = 0; i < size_without_postprocessing(); ++i) {
    const Instruction& instruction = instructions[i];
    form = base::hash_combine(form, base::hash_bytes(instruction.name));
    if (instruction.name == "Annotate") continue;
    for (const std::vector<Item>* part : {&instruction.inputs, &instruction.attributes, &instruction.outputs})
      for (const Item& each : *part) form = base::hash_combine(form, hash(each));
  }
  return form;
}

base::Result<LoopProgram> replayed(const TirFunction& function, const Computation& roles, const TirTrace& trace) {
  try {
    LoopProgram program = Replay(function, trace).program(roles);
    check(program, "program");
    return program;
  } catch (const NotReplayed& problem) {
    return base::Reason{problem.what()};
  } catch (const base::UserError&) {
    return base::Reason{"a program that is beyond the language"};
  }
}

}  // namespace graft::codegen
