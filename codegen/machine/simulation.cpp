#include "codegen/machine/simulation.h"

#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/MCA/Context.h>
#include <llvm/MCA/CustomBehaviour.h>
#include <llvm/MCA/HWEventListener.h>
#include <llvm/MCA/InstrBuilder.h>
#include <llvm/MCA/Pipeline.h>
#include <llvm/MCA/SourceMgr.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/hash.h"

// What the analyser needs to know beyond the scheduling tables; only these targets have something to say. Not
// <llvm/Support/TargetSelect.h>, which would pull in every target that LLVM was built with.
extern "C" {
void LLVMInitializeRISCVTargetMCA();
void LLVMInitializeX86TargetMCA();
}

namespace graft::codegen {
namespace {

void initialise() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeRISCVTargetMCA();
    LLVMInitializeX86TargetMCA();
  });
}

using Sequence = std::vector<const llvm::MCInst*>;
using Instruments = llvm::SmallVector<llvm::mca::Instrument*>;

// Loops up to this many trips are taken to be predicted in whole by the history of branches.
constexpr double predicted_trips = 32;
// Instructions simulated for a region, about: enough for the pipeline to settle. Regions that hold less than a tenth of
// the executed instructions get less, in proportion.
constexpr double most_simulated = 1000, least_simulated = 200, full_effort_share = 0.1;
constexpr int least_iterations = 2, most_iterations = 32;
// What executes fewer of the instructions than this is charged at the mean rate of all that is simulated.
constexpr double negligible_share = 1e-3;
constexpr std::size_t regions_kept = 4096;  // per thread and cpu

struct Line {
  double slope = 0, intercept = 0;  // cycles per iteration, and on top for all of them
};

// Tells the cycle in which the instructions of so many iterations had left the pipeline.
class Retirement : public llvm::mca::HWEventListener {
 public:
  Retirement(std::size_t first, std::size_t second) : counts_{first, second} {}
  void onCycleEnd() override { ++cycle_; }
  void onEvent(const llvm::mca::HWInstructionEvent& event) override {
    if (event.Type != llvm::mca::HWInstructionEvent::Retired) return;
    ++retired_;
    for (int i = 0; i < 2; ++i)
      if (retired_ == counts_[i]) cycles_[i] = cycle_ + 1;
  }
  double first() const { return double(cycles_[0]); }
  double second() const { return double(cycles_[1]); }

 private:
  std::size_t counts_[2], retired_ = 0;
  std::int64_t cycles_[2] = {}, cycle_ = 0;
};

// LLVM's model of one core, with what it has been asked before. Of one thread, as its target machine is.
class Core {
 public:
  struct Answer {
    Line line;
    std::set<unsigned> unsupported;  // opcodes
  };

  explicit Core(const llvm::TargetMachine& machine)
      : target_(machine.getTarget()),
        registers_(*machine.getMCRegisterInfo()),
        instructions_(*machine.getMCInstrInfo()),
        subtarget_(*machine.getMCSubtargetInfo()),
        analysis_(target_.createMCInstrAnalysis(&instructions_)),
        instruments_(target_.createInstrumentManager(subtarget_, instructions_)),
        has_instruments_(instruments_ != nullptr),
        has_zero_idioms_(machine.getTargetTriple().isX86() && subtarget_.getSchedModel().isOutOfOrder()),
        post_(target_.createInstrPostProcess(subtarget_, instructions_)) {
    if (!has_instruments_) instruments_ = std::make_unique<llvm::mca::InstrumentManager>(subtarget_, instructions_);
    if (!post_) post_ = std::make_unique<llvm::mca::InstrPostProcess>(subtarget_, instructions_);
    builder_.emplace(subtarget_, instructions_, registers_, analysis_.get(), *instruments_, 100);
  }

  // Calls and returns are none of the model's business.
  bool simulates(const llvm::MCInst& instruction) const {
    const llvm::MCInstrDesc& description = instructions_.get(instruction.getOpcode());
    return !description.isCall() && !description.isReturn();
  }
  // How many of the block's instructions run as often as the block does: up to its conditional branch, with it.
  std::size_t branch_end(const RecordedBlock& block) const {
    const auto& all = block.instructions;
    const auto branch = std::find_if(all.begin(), all.end(), [&](const llvm::MCInst& instruction) {
      return instructions_.get(instruction.getOpcode()).isConditionalBranch();
    });
    return branch == all.end() ? all.size() : std::size_t(branch - all.begin()) + 1;
  }
  std::string name(unsigned opcode) const { return std::string(instructions_.getName(opcode)); }

  // RISC-V vector code takes its type from the last vsetvli. Whether this is one.
  bool sets_instruments(const llvm::MCInst& instruction) const {
    return has_instruments_ && !instruments_->createInstruments(instruction).empty();
  }

  // Cycles over iterations of the sequence as a line; `before`, if any, is the instruction whose instruments are in
  // force at first. With 0 iterations only what the model lacks is found.
  base::Result<Answer> ask(const Sequence& sequence, const llvm::MCInst* before, int iterations,
                           const CoreTimingSettings& settings) {
    const std::uint64_t key = key_of(sequence, before, iterations, settings);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    base::Result<Answer> answer = simulated(sequence, before, iterations, settings);
    if (known_.size() >= regions_kept) known_.clear();
    if (answer) known_.emplace(key, *answer);
    return answer;
  }

 private:
  // "xorps xmm0, xmm0" and the like: out-of-order x86 cores know that the result depends on nothing (the makers'
  // optimisation manuals), but several of LLVM's models, that of Sapphire Rapids among them, do not.
  bool is_zero_idiom(const llvm::MCInst& instruction) const {
    const unsigned operands = instruction.getNumOperands();
    if (!has_zero_idioms_ || operands < 3) return false;
    const llvm::MCOperand &one = instruction.getOperand(operands - 2), &other = instruction.getOperand(operands - 1);
    return one.isReg() && other.isReg() && one.getReg() == other.getReg() &&
           instructions_.getName(instruction.getOpcode()).contains("XOR");
  }

  static void put(std::uint64_t& hash, const llvm::MCInst& instruction) {
    hash = base::hash_combine(hash, instruction.getOpcode());
    for (const llvm::MCOperand& operand : instruction) {
      std::uint64_t word = 0;
      if (operand.isReg()) word = operand.getReg();
      if (operand.isImm()) word = ~std::uint64_t(operand.getImm());
      if (operand.isSFPImm()) word = operand.getSFPImm();
      if (operand.isDFPImm()) word = operand.getDFPImm();
      hash = base::hash_combine(hash, word);
    }
  }
  static std::uint64_t key_of(const Sequence& sequence, const llvm::MCInst* before, int iterations,
                              const CoreTimingSettings& settings) {
    std::uint64_t hash = base::hash_combine(std::uint64_t(iterations), std::uint64_t(settings.dispatch_width));
    hash = base::hash_combine(hash, before != nullptr);
    if (before) put(hash, *before);
    for (const llvm::MCInst* instruction : sequence) put(hash, *instruction);
    return hash;
  }

  // Instruments that the instruction sets, if any, take the place of those in force.
  void adopt(const llvm::MCInst& instruction, Instruments& in_force, std::vector<llvm::mca::UniqueInstrument>& owned) {
    auto created = instruments_->createInstruments(instruction);
    if (created.empty()) return;
    in_force.clear();
    for (llvm::mca::UniqueInstrument& instrument : created) {
      in_force.push_back(instrument.get());
      owned.push_back(std::move(instrument));
    }
  }

  // One run; the line goes through the ends of its first half and of all of it.
  base::Result<Answer> simulated(const Sequence& sequence, const llvm::MCInst* before, int iterations,
                                 const CoreTimingSettings& settings) {
    Answer answer;
    // What the builder remembers of other regions may differ from what it would make anew (vector code of RISC-V).
    builder_->clear();
    post_->resetState();
    std::vector<llvm::mca::UniqueInstrument> owned;
    Instruments in_force;
    if (has_instruments_ && before) adopt(*before, in_force, owned);
    llvm::SmallVector<std::unique_ptr<llvm::mca::Instruction>> built;
    for (const llvm::MCInst* instruction : sequence) {
      if (has_instruments_) adopt(*instruction, in_force, owned);
      auto result = builder_->createInstruction(*instruction, in_force);
      if (!result) {
        llvm::consumeError(result.takeError());
        answer.unsupported.insert(instruction->getOpcode());
        continue;
      }
      post_->postProcessInstruction(*result, *instruction);
      if (is_zero_idiom(*instruction))
        for (llvm::mca::ReadState& read : (*result)->getUses()) read.setIndependentFromDef();
      built.push_back(std::move(*result));
    }
    if (built.empty() || iterations == 0) return answer;
    llvm::mca::Context context(registers_, subtarget_);
    llvm::mca::CircularSourceMgr source(built, unsigned(iterations));
    std::unique_ptr<llvm::mca::CustomBehaviour> behaviour(
        target_.createCustomBehaviour(subtarget_, source, instructions_));
    if (!behaviour) behaviour = std::make_unique<llvm::mca::CustomBehaviour>(subtarget_, source, instructions_);
    // Zeros stand for the model's own sizes; loads are taken not to alias earlier stores.
    const llvm::mca::PipelineOptions options(0, 0, unsigned(settings.dispatch_width), 0, 0, 0, true, false);
    const auto pipeline = context.createDefaultPipeline(options, source, *behaviour);
    const int few = iterations / 2;
    Retirement retirement(std::size_t(few) * built.size(), std::size_t(iterations) * built.size());
    pipeline->addEventListener(&retirement);
    llvm::Expected<unsigned> result = pipeline->run();
    if (!result) return base::Reason{"core timing: " + llvm::toString(result.takeError())};
    answer.line.slope = (retirement.second() - retirement.first()) / double(iterations - few);
    answer.line.intercept = std::max(0.0, retirement.first() - answer.line.slope * few);
    return answer;
  }

  const llvm::Target& target_;
  const llvm::MCRegisterInfo& registers_;
  const llvm::MCInstrInfo& instructions_;
  const llvm::MCSubtargetInfo& subtarget_;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis_;
  std::unique_ptr<llvm::mca::InstrumentManager> instruments_;
  bool has_instruments_, has_zero_idioms_;
  std::unique_ptr<llvm::mca::InstrPostProcess> post_;
  std::optional<llvm::mca::InstrBuilder> builder_;
  std::unordered_map<std::uint64_t, Answer> known_;
};

// Of this thread, as the machines are, and gone before them.
Core& core_of(const llvm::TargetMachine& machine) {
  thread_local std::map<const llvm::TargetMachine*, Core> known;
  return known.try_emplace(&machine, machine).first->second;
}

// What stands in the body of a loop, or of the function, in order of addresses.
struct Item {
  bool is_loop = false;
  int position = 0;  // in Recording::loops or blocks
};

// What is simulated as one endless sequence: a loop with all that it holds written out, or a block.
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
      Sequence& simulated = simulated_.emplace_back();
      const std::size_t end =
          2 * block.behind_count < block.count ? core_.branch_end(block) : block.instructions.size();
      for (std::size_t i = 0; i < end; ++i)
        if (core_.simulates(block.instructions[i])) simulated.push_back(&block.instructions[i]);
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
      cycles += region.runs * answer->line.slope +
                region.entries * answer->line.intercept * (settings_.out_of_order ? 0.5 : 1.0);
    }
    timing.cycles = executed > 0 ? cycles * (all / executed) : 0;
    for (const RecordedLoop& loop : recording_.loops)
      if (loop.trips > predicted_trips) timing.cycles += loop.entries * settings_.mispredict_cycles;
    for (const unsigned opcode : unsupported) timing.unsupported[core_.name(opcode)] = static_count(opcode);
    return timing;
  }

 private:
  const RecordedLoop& loop(int position) const { return recording_.loops[std::size_t(position)]; }
  const RecordedBlock& block(int position) const { return recording_.blocks[std::size_t(position)]; }
  double iterations(int position) const { return loop(position).entries * loop(position).trips; }

  static int iterations_of(const Region& region, double share) {
    const double wished = std::max(least_simulated, most_simulated * std::min(1.0, share / full_effort_share));
    return std::clamp(int(wished / double(region.sequence.size())), least_iterations, most_iterations);
  }

  void arrange_items() {
    items_.resize(recording_.loops.size());
    std::vector<bool> placed(recording_.loops.size());
    for (int position = 0; position < int(recording_.blocks.size()); ++position) {
      int outside = block(position).loop;
      // A loop takes its place where its first block stands.
      for (int inner = outside; inner >= 0 && !placed[std::size_t(inner)]; inner = loop(inner).parent) {
        placed[std::size_t(inner)] = true;
        items_of(loop(inner).parent).push_back({true, inner});
      }
      items_of(outside).push_back({false, position});
    }
    // Inner loops stand behind outer ones: backwards, every size is known when it is needed.
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

  // How often the item stands in one iteration of the loop around it when that is written out; 0 when it runs in less
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

  // What is left out of an expansion because it runs rarely is a region of its own.
  void expand(int position, bool add_rare, Sequence& sequence) {
    for (const Item& item : items_of(position)) {
      const std::int64_t times = copies(item, position);
      if (times == 0) {
        if (add_rare) add_regions({item});
      } else if (!item.is_loop) {
        const Sequence& simulated = simulated_[std::size_t(item.position)];
        sequence.insert(sequence.end(), simulated.begin(), simulated.end());
      } else {
        for (std::int64_t copy = 0; copy < times; ++copy) expand(item.position, add_rare && copy == 0, sequence);
      }
    }
  }

  void add_expanded(int position) {
    if (iterations(position) <= 0) return;
    Region region{{}, loop(position).header, iterations(position), loop(position).entries};
    expand(position, true, region.sequence);
    if (!region.sequence.empty()) regions_.push_back(std::move(region));
  }

  void add_block(int position) {
    const Sequence& sequence = simulated_[std::size_t(position)];
    if (!sequence.empty() && block(position).count > 0)
      regions_.push_back({sequence, position, block(position).count, 0});
  }

  // The vsetvli before a region stands in the nearest block that dominates it.
  const llvm::MCInst* type_before(int first_block) const {
    for (int at = block(first_block).dominator; at >= 0; at = block(at).dominator) {
      const Sequence& sequence = simulated_[std::size_t(at)];
      for (auto instruction = sequence.rbegin(); instruction != sequence.rend(); ++instruction)
        if (core_.sets_instruments(**instruction)) return *instruction;
    }
    return nullptr;
  }

  // An expansion holds an instruction many times: what is told is how often it stands in the code.
  int static_count(unsigned opcode) const {
    std::ptrdiff_t count = 0;
    for (const Sequence& sequence : simulated_)
      count += std::count_if(sequence.begin(), sequence.end(),
                             [&](const llvm::MCInst* instruction) { return instruction->getOpcode() == opcode; });
    return int(count);
  }

  const Recording& recording_;
  Core& core_;
  const CoreTimingSettings settings_;

  std::vector<Sequence> simulated_;       // by block: without calls and returns
  std::vector<Item> top_;                 // of the function
  std::vector<std::vector<Item>> items_;  // by loop
  std::vector<double> expanded_size_;     // by loop: instructions of one iteration, inner loops written out
  std::vector<Region> regions_;
};

}  // namespace

bool has_scheduling_model(const llvm::TargetMachine& machine) {
  return machine.getMCSubtargetInfo()->getSchedModel().hasInstrSchedModel();
}

base::Result<CoreTiming> simulate(const Recording& recording, const llvm::TargetMachine& machine,
                                  const CoreTimingSettings& settings) {
  initialise();
  return Simulation(recording, core_of(machine), settings).run();
}

}  // namespace graft::codegen
