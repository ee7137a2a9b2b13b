#include "codegen/machine/simulation.h"

#include <llvm/MC/MCInstrAnalysis.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/MCA/Context.h>
#include <llvm/MCA/CustomBehaviour.h>
#include <llvm/MCA/InstrBuilder.h>
#include <llvm/MCA/Pipeline.h>
#include <llvm/MCA/SourceMgr.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

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

using Sequence = std::vector<llvm::MCInst>;
using Instruments = llvm::SmallVector<llvm::mca::Instrument*>;

// Loops up to this many trips are taken to be predicted in whole by the history of branches.
constexpr double predicted_trips = 32;
// Static instructions simulated in one run of a loop, about; enough for the pipeline to settle.
constexpr std::int64_t simulated_instructions = 1500;

// What stands in the body of a loop, or of the function, in order of addresses.
struct Item {
  bool is_loop = false;
  int position = 0;  // in Recording::loops or blocks
};

class Simulation {
 public:
  Simulation(const Recording& recording, const llvm::TargetMachine& machine, const CoreTimingSettings& settings)
      : recording_(recording),
        settings_(settings),
        target_(machine.getTarget()),
        registers_(*machine.getMCRegisterInfo()),
        instructions_(*machine.getMCInstrInfo()),
        subtarget_(*machine.getMCSubtargetInfo()),
        analysis_(target_.createMCInstrAnalysis(&instructions_)),
        instruments_(target_.createInstrumentManager(subtarget_, instructions_)),
        has_instruments_(instruments_ != nullptr) {
    if (!has_instruments_) instruments_ = std::make_unique<llvm::mca::InstrumentManager>(subtarget_, instructions_);
    for (const RecordedBlock& block : recording_.blocks) {
      Sequence& simulated = simulated_.emplace_back();
      for (const llvm::MCInst& instruction : block.instructions) {
        const llvm::MCInstrDesc& description = instructions_.get(instruction.getOpcode());
        if (!description.isCall() && !description.isReturn()) simulated.push_back(instruction);
      }
    }
    arrange_items();
  }

  base::Result<CoreTiming> run() {
    for (const RecordedBlock& block : recording_.blocks)
      timing_.instructions += block.count * double(block.instructions.size());
    for (const RecordedLoop& loop : recording_.loops)
      if (loop.trips > predicted_trips) timing_.cycles += loop.entries * settings_.mispredict_cycles;
    charge_items(top_);
    if (failure_) return *failure_;
    count_unsupported();
    return timing_;
  }

 private:
  const RecordedLoop& loop(int position) const { return recording_.loops[std::size_t(position)]; }
  const RecordedBlock& block(int position) const { return recording_.blocks[std::size_t(position)]; }
  double iterations(int position) const { return loop(position).entries * loop(position).trips; }

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

  void charge_items(const std::vector<Item>& items) {
    for (const Item& item : items) {
      if (!item.is_loop)
        charge_block(item.position);
      else if (innermost(item.position) || expanded_size_[std::size_t(item.position)] <= settings_.expansion_limit)
        charge_expanded(item.position);
      else
        charge_items(items_of(item.position));
    }
  }

  // What is left out of an expansion because it runs rarely is charged on its own.
  void expand(int position, bool charge_rare, Sequence& sequence) {
    for (const Item& item : items_of(position)) {
      const std::int64_t times = copies(item, position);
      if (times == 0) {
        if (charge_rare) charge_items({item});
      } else if (!item.is_loop) {
        const Sequence& simulated = simulated_[std::size_t(item.position)];
        sequence.insert(sequence.end(), simulated.begin(), simulated.end());
      } else {
        for (std::int64_t copy = 0; copy < times; ++copy) expand(item.position, charge_rare && copy == 0, sequence);
      }
    }
  }

  void charge_expanded(int position) {
    if (iterations(position) <= 0) return;
    Sequence sequence;
    expand(position, true, sequence);
    if (sequence.empty()) return;
    const std::int64_t wished = simulated_instructions / std::int64_t(sequence.size());
    const int many = int(std::clamp<std::int64_t>(wished, 4, 32)) / 2 * 2, few = many / 2;
    const Line line = fit(sequence, few, many, loop(position).header);
    timing_.cycles += iterations(position) * line.slope +
                      loop(position).entries * line.intercept * (settings_.out_of_order ? 0.5 : 1.0);
  }

  void charge_block(int position) {
    const Sequence& sequence = simulated_[std::size_t(position)];
    if (sequence.empty() || block(position).count <= 0) return;
    timing_.cycles += block(position).count * fit(sequence, 2, 6, position).slope;
  }

  struct Line {
    double slope = 0, intercept = 0;
  };

  // Cycles over iterations as a line through two runs.
  Line fit(const Sequence& sequence, int few, int many, int first_block) {
    std::vector<llvm::mca::UniqueInstrument> owned;
    const Instruments before = instruments_before(first_block, owned);
    llvm::mca::InstrBuilder builder(subtarget_, instructions_, registers_, analysis_.get(), *instruments_, 100);
    const double short_run = cycles(sequence, few, before, builder);
    const double long_run = cycles(sequence, many, before, builder);
    Line line;
    line.slope = (long_run - short_run) / double(many - few);
    line.intercept = std::max(0.0, short_run - line.slope * few);
    return line;
  }

  // RISC-V vector code takes its type from the last vsetvli, which stands before the loop: in the nearest block that
  // dominates it.
  Instruments instruments_before(int first_block, std::vector<llvm::mca::UniqueInstrument>& owned) {
    Instruments found;
    if (!has_instruments_) return found;
    for (int at = block(first_block).dominator; at >= 0 && found.empty(); at = block(at).dominator) {
      const Sequence& sequence = simulated_[std::size_t(at)];
      for (auto instruction = sequence.rbegin(); instruction != sequence.rend() && found.empty(); ++instruction)
        adopt(*instruction, found, owned);
    }
    return found;
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

  // An expansion holds an instruction many times: what is told is how often it stands in the code.
  void count_unsupported() {
    for (auto& [name, count] : timing_.unsupported) {
      count = 0;
      for (const Sequence& sequence : simulated_)
        for (const llvm::MCInst& instruction : sequence)
          count += instructions_.getName(instruction.getOpcode()) == name;
    }
  }

  // Instructions carry the state of a run, hence they are built anew for each.
  double cycles(const Sequence& sequence, int iterations, const Instruments& before, llvm::mca::InstrBuilder& builder) {
    std::unique_ptr<llvm::mca::InstrPostProcess> post(target_.createInstrPostProcess(subtarget_, instructions_));
    if (!post) post = std::make_unique<llvm::mca::InstrPostProcess>(subtarget_, instructions_);
    post->resetState();
    std::vector<llvm::mca::UniqueInstrument> owned;
    Instruments in_force = before;
    llvm::SmallVector<std::unique_ptr<llvm::mca::Instruction>> built;
    for (const llvm::MCInst& instruction : sequence) {
      if (has_instruments_) adopt(instruction, in_force, owned);
      auto result = builder.createInstruction(instruction, in_force);
      if (!result) {
        llvm::consumeError(result.takeError());
        timing_.unsupported[std::string(instructions_.getName(instruction.getOpcode()))] = 0;
        continue;
      }
      post->postProcessInstruction(*result, instruction);
      built.push_back(std::move(*result));
    }
    if (built.empty()) return 0;
    llvm::mca::Context context(registers_, subtarget_);
    llvm::mca::CircularSourceMgr source(built, unsigned(iterations));
    std::unique_ptr<llvm::mca::CustomBehaviour> behaviour(
        target_.createCustomBehaviour(subtarget_, source, instructions_));
    if (!behaviour) behaviour = std::make_unique<llvm::mca::CustomBehaviour>(subtarget_, source, instructions_);
    // Zeros stand for the model's own sizes; loads are taken not to alias earlier stores.
    const llvm::mca::PipelineOptions options(0, 0, 0, 0, 0, 0, true, false);
    auto pipeline = context.createDefaultPipeline(options, source, *behaviour);
    llvm::Expected<unsigned> result = pipeline->run();
    if (!result) {
      failure_ = base::Reason{"core timing: " + llvm::toString(result.takeError())};
      return 0;
    }
    return double(*result);
  }

  const Recording& recording_;
  const CoreTimingSettings settings_;
  const llvm::Target& target_;
  const llvm::MCRegisterInfo& registers_;
  const llvm::MCInstrInfo& instructions_;
  const llvm::MCSubtargetInfo& subtarget_;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis_;
  std::unique_ptr<llvm::mca::InstrumentManager> instruments_;
  bool has_instruments_;

  std::vector<Sequence> simulated_;       // by block: without calls and returns
  std::vector<Item> top_;                 // of the function
  std::vector<std::vector<Item>> items_;  // by loop
  std::vector<double> expanded_size_;     // by loop: instructions of one iteration, inner loops written out

  CoreTiming timing_;
  std::optional<base::Reason> failure_;
};

}  // namespace

bool has_scheduling_model(const llvm::TargetMachine& machine) {
  return machine.getMCSubtargetInfo()->getSchedModel().hasInstrSchedModel();
}

base::Result<CoreTiming> simulate(const Recording& recording, const llvm::TargetMachine& machine,
                                  const CoreTimingSettings& settings) {
  initialise();
  return Simulation(recording, machine, settings).run();
}

}  // namespace graft::codegen
