#include "codegen/machine/simulation.h"

#include <llvm/MC/MCSubtargetInfo.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/machine/core.h"

namespace graft::codegen {
namespace {

// Loops up to this many trips are taken to be predicted in whole by the history of branches.
constexpr double predicted_trips = 32;
// Instructions simulated for a region, about: enough for the pipeline to settle. Regions that hold less than a tenth of
// the executed instructions get less, in proportion.
constexpr double most_simulated = 1000, least_simulated = 200, full_effort_share = 0.1;
constexpr int least_iterations = 2, most_iterations = 32;
// What executes fewer of the instructions than this is charged at the mean rate of all that is simulated.
constexpr double negligible_share = 1e-3;

// An item in the body of a loop, or of the function, in order of addresses.
struct Item {
  bool is_loop = false;
  int position = 0;  // in Recording::loops or blocks
};

// The unit simulated as one endless sequence: a loop with its contents expanded, or a block.
struct Region {
  Sequence sequence;
  int first_block = 0;
  double runs = 0;     // of the sequence
  double entries = 0;  // of the loop; 0 for a block
  double executed() const { return runs * double(sequence.size()); }
};

class Simulation {
 public:
  Simulation(const Recording& recording, Core& core, const CoreTimingSettings& settings)
      : recording_(recording), core_(core), settings_(settings) {
    for (const RecordedBlock& block : recording_.blocks) {
      std::vector<const RecordedInstruction*>& simulated = simulated_.emplace_back();
      const std::size_t end =
          2 * block.behind_count < block.count ? core_.branch_end(block) : block.instructions.size();
      for (std::size_t i = 0; i < end; ++i)
        if (core_.simulates(block.instructions[i].code)) simulated.push_back(&block.instructions[i]);
    }
    arrange_items();
    add_regions(top_);
  }

  base::Result<CoreTiming> run() {
    CoreTiming timing;
    for (const RecordedBlock& block : recording_.blocks) {
      const double to_branch = double(core_.branch_end(block));
      timing.instructions +=
          block.count * to_branch + block.behind_count * (double(block.instructions.size()) - to_branch);
    }
    double most = 0, all = 0;
    for (const Region& region : regions_) {
      all += region.executed();
      most = std::max(most, region.executed());
    }
    const double negligible = std::min(negligible_share * all, 0.1 * most);

    double cycles = 0, executed = 0;
    std::map<int, CorePart> parts;
    std::set<unsigned> unsupported;
    for (const Region& region : regions_) {
      const bool counts = region.executed() >= negligible;
      const int iterations = counts ? iterations_of(region, region.executed() / all) : 0;
      const base::Result<Core::Answer> answer =
          core_.ask(region.sequence, type_before(region.first_block), iterations, settings_);
      if (!answer) return answer.reason();
      unsupported.insert(answer->unsupported.begin(), answer->unsupported.end());
      if (!counts) continue;
      executed += region.executed();
      const double took = region.runs * answer->line.slope +
                          region.entries * answer->line.intercept * (settings_.out_of_order ? 0.5 : 1.0);
      cycles += took;
      CorePart& part = part_of(block(region.first_block).loop, parts);
      part.cycles += took;
      part.instructions += region.executed();
    }
    const double whole = executed > 0 ? all / executed : 0;
    timing.cycles = cycles * whole;
    for (auto& [loop, part] : parts) {
      part.cycles *= whole;
      part.instructions *= whole;
    }
    for (int position = 0; position < int(recording_.loops.size()); ++position) {
      if (loop(position).trips <= predicted_trips) continue;
      const double mispredicted = loop(position).entries * settings_.mispredict_cycles;
      timing.cycles += mispredicted;
      part_of(position, parts).cycles += mispredicted;
    }
    for (const auto& [loop, part] : parts) timing.parts.push_back(part);
    for (const unsigned opcode : unsupported) timing.unsupported[core_.name(opcode)] = static_count(opcode);
    return timing;
  }

 private:
  const RecordedLoop& loop(int position) const { return recording_.loops[std::size_t(position)]; }
  const RecordedBlock& block(int position) const { return recording_.blocks[std::size_t(position)]; }
  double iterations(int position) const { return loop(position).entries * loop(position).trips; }

  // The part of the nearest loop that is one of the program's.
  CorePart& part_of(int position, std::map<int, CorePart>& parts) const {
    while (position >= 0 && loop(position).of_program < 0) position = loop(position).parent;
    const int of_program = position < 0 ? -1 : loop(position).of_program;
    return parts.try_emplace(of_program, CorePart{of_program}).first->second;
  }

  static int iterations_of(const Region& region, double share) {
    const double wished = std::max(least_simulated, most_simulated * std::min(1.0, share / full_effort_share));
    return std::clamp(int(wished / double(region.sequence.size())), least_iterations, most_iterations);
  }

  void arrange_items() {
    items_.resize(recording_.loops.size());
    std::vector<bool> placed(recording_.loops.size());
    for (int position = 0; position < int(recording_.blocks.size()); ++position) {
      int outside = block(position).loop;
      // A loop is placed at its first block.
      for (int inner = outside; inner >= 0 && !placed[std::size_t(inner)]; inner = loop(inner).parent) {
        placed[std::size_t(inner)] = true;
        items_of(loop(inner).parent).push_back({true, inner});
      }
      items_of(outside).push_back({false, position});
    }
    // Inner loops come after outer ones: backwards, every size is known when it is needed.
    expanded_size_.resize(recording_.loops.size());
    for (int position = int(recording_.loops.size()) - 1; position >= 0; --position) {
      double size = 0;
      for (const Item& item : items_of(position))
        size += double(copies(item, position)) * (item.is_loop ? expanded_size_[std::size_t(item.position)]
                                                               : double(simulated_[std::size_t(item.position)].size()));
      expanded_size_[std::size_t(position)] = size;
    }
  }

  std::vector<Item>& items_of(int position) { return position < 0 ? top_ : items_[std::size_t(position)]; }

  // How often the item occurs in one iteration of the surrounding loop when that is expanded; 0 if it runs in less
  // than half of the iterations.
  std::int64_t copies(const Item& item, int around) const {
    const double per_iteration = 1 / std::max(iterations(around), 1e-9);
    if (!item.is_loop) return block(item.position).count * per_iteration >= 0.5 ? 1 : 0;
    const RecordedLoop& inner = loop(item.position);
    return inner.entries * per_iteration >= 0.5 ? std::max<std::int64_t>(1, std::llround(inner.trips)) : 0;
  }

  bool innermost(int position) {
    return std::none_of(items_of(position).begin(), items_of(position).end(),
                        [](const Item& item) { return item.is_loop; });
  }

  void add_regions(const std::vector<Item>& items) {
    for (const Item& item : items) {
      if (!item.is_loop)
        add_block(item.position);
      else if (innermost(item.position) || expanded_size_[std::size_t(item.position)] <= settings_.expansion_limit)
        add_expanded(item.position);
      else
        add_regions(items_of(item.position));
    }
  }

  // A sequence under construction, with the state for numbering the memory that its steps write and read.
  struct Expansion {
    int repeated = -1;                        // the program's loop that the sequence is repeated as; -1: none
    std::map<int, std::int64_t> copies = {};  // iterations written out so far, by the program's loops
    int unknown = 0;                          // loops around that are none of the program's
    std::map<std::pair<int, std::int64_t>, int> numbers = {};  // by buffer, -1 the stack, and element or slot
    std::set<int> written = {};
    Sequence sequence = {};
  };

  void add_step(const RecordedInstruction& instruction, Expansion& into) const {
    const auto number_of = [&](int buffer, std::int64_t at) {
      return into.numbers.try_emplace({buffer, at}, int(into.numbers.size())).first->second;
    };
    Step step{&instruction};
    if (instruction.reads_slot) step.reads = number_of(-1, *instruction.reads_slot);
    if (instruction.writes_slot) step.writes = number_of(-1, *instruction.writes_slot);
    const std::optional<int> at = instruction.reads_place ? instruction.reads_place : instruction.writes_place;
    if (at && into.unknown == 0) {
      const NamedPlace& place = recording_.places[std::size_t(*at)];
      std::int64_t element = place.constant;
      for (const auto& [loop, coefficient] : place.by_loop)
        if (const auto copy = into.copies.find(loop); copy != into.copies.end()) element += coefficient * copy->second;
      const int number = number_of(place.buffer, element);
      // If the loop moves, the last iteration wrote elsewhere.
      const bool stays = into.repeated >= 0 && !place.by_loop.contains(into.repeated);
      if (instruction.reads_place && (stays || into.written.contains(number))) step.reads = number;
      if (instruction.writes_place) {
        step.writes = number;
        into.written.insert(number);
      }
    }
    into.sequence.push_back(step);
  }

  // Code left out of an expansion because it runs rarely is a separate region.
  void expand(int position, bool add_rare, Expansion& into) {
    for (const Item& item : items_of(position)) {
      const std::int64_t times = copies(item, position);
      if (times == 0) {
        if (add_rare) add_regions({item});
      } else if (!item.is_loop) {
        for (const RecordedInstruction* instruction : simulated_[std::size_t(item.position)])
          add_step(*instruction, into);
      } else {
        const int of_program = loop(item.position).of_program;
        if (of_program < 0) ++into.unknown;
        for (std::int64_t copy = 0; copy < times; ++copy) {
          if (of_program >= 0) into.copies[of_program] = copy;
          expand(item.position, add_rare && copy == 0, into);
        }
        if (of_program < 0) --into.unknown;
        into.copies.erase(of_program);
      }
    }
  }

  void add_expanded(int position) {
    if (iterations(position) <= 0) return;
    Expansion whole{loop(position).of_program};
    expand(position, true, whole);
    if (whole.sequence.empty()) return;
    regions_.push_back(
        {std::move(whole.sequence), loop(position).header, iterations(position), loop(position).entries});
  }

  void add_block(int position) {
    Expansion whole;
    for (const RecordedInstruction* instruction : simulated_[std::size_t(position)]) add_step(*instruction, whole);
    if (whole.sequence.empty() || block(position).count <= 0) return;
    regions_.push_back({std::move(whole.sequence), position, block(position).count, 0});
  }

  // The vsetvli before a region is in the nearest block that dominates it.
  const llvm::MCInst* type_before(int first_block) const {
    for (int at = block(first_block).dominator; at >= 0; at = block(at).dominator) {
      const auto& simulated = simulated_[std::size_t(at)];
      for (auto instruction = simulated.rbegin(); instruction != simulated.rend(); ++instruction)
        if (core_.sets_instruments((*instruction)->code)) return &(*instruction)->code;
    }
    return nullptr;
  }

  // An expansion has an instruction many times: the count is that of the code.
  int static_count(unsigned opcode) const {
    std::ptrdiff_t count = 0;
    for (const auto& simulated : simulated_)
      count += std::count_if(simulated.begin(), simulated.end(),
                             [&](const RecordedInstruction* one) { return one->code.getOpcode() == opcode; });
    return int(count);
  }

  const Recording& recording_;
  Core& core_;
  const CoreTimingSettings settings_;

  std::vector<std::vector<const RecordedInstruction*>> simulated_;  // by block: without calls and returns
  std::vector<Item> top_;                                           // of the function
  std::vector<std::vector<Item>> items_;                            // by loop
  std::vector<double> expanded_size_;  // by loop: instructions of one iteration, inner loops written out
  std::vector<Region> regions_;
};

}  // namespace

bool has_scheduling_model(const llvm::TargetMachine& machine) {
  return machine.getMCSubtargetInfo()->getSchedModel().hasInstrSchedModel();
}

base::Result<CoreTiming> simulate(const Recording& recording, const llvm::TargetMachine& machine,
                                  const CoreTimingSettings& settings) {
  return Simulation(recording, core_of(machine), settings).run();
}

}  // namespace graft::codegen
