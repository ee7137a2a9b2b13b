#include "codegen/machine/core.h"

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
#include <llvm/MCA/Support.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/one_line.h"
#include "codegen/machine/fatal.h"

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

using Instruments = llvm::SmallVector<llvm::mca::Instrument*>;

// For registers that represent memory: no advance, no class of the model's.
constexpr llvm::mca::WriteDescriptor memory_write{-1, 1, 0, 0, false};
constexpr llvm::mca::ReadDescriptor memory_read{-1, ~0u, 0, 0};
constexpr std::size_t regions_kept = 4096;  // per thread and cpu

// Records the cycle in which the instructions of this many iterations had left the pipeline.
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

class AnalysedCore final : public Core {
 public:
  explicit AnalysedCore(const llvm::TargetMachine& machine)
      : target_(machine.getTarget()),
        registers_(*machine.getMCRegisterInfo()),
        instructions_(*machine.getMCInstrInfo()),
        subtarget_(*machine.getMCSubtargetInfo()),
        analysis_(target_.createMCInstrAnalysis(&instructions_)),
        instruments_(target_.createInstrumentManager(subtarget_, instructions_)),
        has_instruments_(instruments_ != nullptr),
        is_fast_x86_(machine.getTargetTriple().isX86() && subtarget_.getSchedModel().isOutOfOrder()),
        post_(target_.createInstrPostProcess(subtarget_, instructions_)) {
    if (!has_instruments_) instruments_ = std::make_unique<llvm::mca::InstrumentManager>(subtarget_, instructions_);
    if (!post_) post_ = std::make_unique<llvm::mca::InstrPostProcess>(subtarget_, instructions_);
    builder_.emplace(subtarget_, instructions_, registers_, analysis_.get(), *instruments_, 100);
    if (subtarget_.getCPU() == "znver4") note_zen_4();
  }

  bool simulates(const llvm::MCInst& instruction) const override {
    const llvm::MCInstrDesc& description = instructions_.get(instruction.getOpcode());
    return !description.isCall() && !description.isReturn();
  }
  std::size_t branch_end(const RecordedBlock& block) const override {
    const auto& all = block.instructions;
    const auto branch = std::find_if(all.begin(), all.end(), [&](const RecordedInstruction& instruction) {
      return instructions_.get(instruction.code.getOpcode()).isConditionalBranch();
    });
    return branch == all.end() ? all.size() : std::size_t(branch - all.begin()) + 1;
  }
  std::string name(unsigned opcode) const override { return std::string(instructions_.getName(opcode)); }

  bool sets_instruments(const llvm::MCInst& instruction) const override {
    return has_instruments_ && !instruments_->createInstruments(instruction).empty();
  }

  base::Result<Answer> ask(const Sequence& sequence, const llvm::MCInst* before, int iterations,
                           const CoreTimingSettings& settings) override {
    const std::uint64_t key = key_of(sequence, before, iterations, settings);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    base::Result<Answer> answer = simulated(sequence, before, iterations, settings);
    if (known_.size() >= regions_kept) known_.clear();
    if (answer) known_.emplace(key, *answer);
    return answer;
  }

 private:
  // Where LLVM 19's table for Zen 4 is not what documents say (AMD 57647, "load/store unit"): a cycle brings two
  // vectors of 256 bits or one of 512, and takes away 256 bits; an element is spread over a vector by its load, as wide
  // a one as the vector. The table has 512 bits as fast as 256, and spreads by three micro-operations what has
  // AVX-512's encoding.
  void note_zen_4() {
    std::map<std::string, unsigned> opcodes;
    for (unsigned opcode = 0; opcode < instructions_.getNumOpcodes(); ++opcode) {
      const llvm::StringRef name = instructions_.getName(opcode);
      opcodes.emplace(name.str(), opcode);
      if (moves_512_bits(name)) wide_.insert(opcode);
    }
    for (const char* width : {"Z", "Z256", "Z128"}) {
      for (const char* type : {"S", "D"}) {
        const std::string end = std::string(type) + width + "rm";
        const auto spreads = opcodes.find("VBROADCASTS" + end), loads = opcodes.find("VMOVUP" + end);
        if (spreads != opcodes.end() && loads != opcodes.end()) timed_as_.emplace(spreads->second, loads->second);
      }
    }
    const llvm::MCSchedModel& model = subtarget_.getSchedModel();
    llvm::SmallVector<std::uint64_t> masks(model.getNumProcResourceKinds());
    llvm::mca::computeProcResourceMasks(model, masks);
    for (unsigned unit = 0; unit < masks.size(); ++unit) {
      const llvm::StringRef name = model.getProcResource(unit)->Name;
      if (name == "Zn4FP45" || name == "Zn4FPSt") vector_ports_.insert(masks[unit]);
    }
  }
  // By LLVM's names: VMOVUPSZrm, VFMADD231PSZm, VMOVDQU32Zmr, but not VADDSSZrm, VMOVDI2PDIZrm or VCVTPS2PDZrm.
  static bool moves_512_bits(llvm::StringRef name) {
    const auto [what, operands] = name.rsplit('Z');
    if (operands != "rm" && operands != "mr" && operands != "m") return false;
    for (const char* other : {"SS", "SD", "SH", "PDI", "PQI"})
      if (what.ends_with(other)) return false;
    for (const char* other : {"VBROADCAST", "VPBROADCAST", "VPMOV", "VCVT", "VINSERT", "VEXTRACT"})
      if (what.starts_with(other)) return false;
    return true;
  }
  // The instruction, or another one, made in `room`, whose time it takes.
  const llvm::MCInst& as_timed(const llvm::MCInst& instruction, llvm::MCInst& room) const {
    const auto other = timed_as_.find(instruction.getOpcode());
    if (other == timed_as_.end()) return instruction;
    room = instruction;
    room.setOpcode(other->second);
    return room;
  }
  // Keeps the ports between vectors and memory for twice as long, unless that is done.
  void widen(const llvm::mca::Instruction& built, std::set<const llvm::mca::InstrDesc*>& done) const {
    if (!wide_.contains(built.getOpcode()) || !done.insert(&built.getDesc()).second) return;
    // The builder's, which has no word for that; gone with its next clear().
    for (auto& [mask, usage] : const_cast<llvm::mca::InstrDesc&>(built.getDesc()).Resources)
      if (vector_ports_.contains(mask)) usage.CS.setEnd(2 * usage.CS.end());
  }

  // "xorps xmm0, xmm0" and the like: out-of-order x86 cores know that the result depends on nothing (the makers'
  // optimisation manuals), but several of LLVM's models, that of Sapphire Rapids among them, do not.
  bool is_zero_idiom(const llvm::MCInst& instruction) const {
    const unsigned operands = instruction.getNumOperands();
    if (!is_fast_x86_ || operands < 3) return false;
    const llvm::MCOperand &one = instruction.getOperand(operands - 2), &other = instruction.getOperand(operands - 1);
    return one.isReg() && other.isReg() && one.getReg() == other.getReg() &&
           instructions_.getName(instruction.getOpcode()).contains("XOR");
  }

  // An instruction that loads one of its operands starts its arithmetic when that has arrived, so it needs the others
  // only then: with the advance that it has without the load (Intel 248966, "micro-fusion": two micro-operations). Some
  // tables of LLVM 19 (Golden Cove's) let them come less late than their own loads take, which makes a chain of fused
  // multiply-adds half as slow again as it is. The difference is taken off the result's latency.
  void shorten(llvm::mca::Instruction& built, const llvm::MCInst& instruction,
               std::deque<llvm::mca::WriteDescriptor>& owned) {
    if (!is_fast_x86_ || !built.getMayLoad()) return;
    const int excess = excess_of(instruction.getOpcode());
    if (excess <= 0) return;
    const auto result = llvm::MCPhysReg(instruction.getOperand(0).getReg());
    for (llvm::mca::WriteState& write : built.getDefs()) {
      if (write.getRegisterID() != result) continue;
      owned.push_back({-1, write.getLatency() - unsigned(excess), result, write.getWriteResourceID(), false});
      write = llvm::mca::WriteState(owned.back(), result, write.clearsSuperRegisters(), write.isWriteZero());
    }
  }
  // Cycles by which the tables make the way from a register to the result longer when an operand is loaded.
  int excess_of(unsigned opcode) {
    const auto [place, is_new] = excess_.try_emplace(opcode, 0);
    if (!is_new) return place->second;
    const llvm::MCInstrDesc& loading = instructions_.get(opcode);
    const llvm::StringRef name = instructions_.getName(opcode);
    if (loading.getNumDefs() != 1 || loading.mayStore() || !name.ends_with("m")) return 0;
    // LLVM's names: VADDPSYrm and VADDPSYrr, VFMADD231PSYm and VFMADD231PSYr.
    const std::string without = (name.ends_with("rm") ? name.drop_back(2) + "rr" : name.drop_back(1) + "r").str();
    for (unsigned other = 0; other < instructions_.getNumOpcodes(); ++other) {
      if (instructions_.getName(other) != without) continue;
      const llvm::MCSchedModel& model = subtarget_.getSchedModel();
      const llvm::MCSchedClassDesc* const known = model.getSchedClassDesc(loading.getSchedClass());
      const llvm::MCSchedClassDesc* const bare = model.getSchedClassDesc(instructions_.get(other).getSchedClass());
      if (!known->isValid() || known->isVariant() || !bare->isValid() || bare->isVariant()) break;
      int late = 0;  // that the other operands may come
      for (unsigned use = 0; use < loading.getNumOperands(); ++use)
        late = std::max(late, subtarget_.getReadAdvanceCycles(known, use, 0));
      if (late > 0)
        place->second = llvm::MCSchedModel::computeInstrLatency(subtarget_, *known) -
                        llvm::MCSchedModel::computeInstrLatency(subtarget_, *bare) - late;
      break;
    }
    return place->second;
  }

  // Memory that the sequence both writes and reads, each place under a register that the sequence does not use: so the
  // analyser sees that values spilled and reloaded, or updated in memory, wait for their store. The load's own latency
  // is that of forwarding, which documents give as that of a hit in the first cache (Intel 248966, "store forwarding").
  using Forwarded = std::map<std::optional<int>, llvm::MCPhysReg>;
  Forwarded forwarded(const Sequence& sequence) const {
    std::set<int> read, both;
    for (const Step& step : sequence)
      if (step.reads) read.insert(*step.reads);
    for (const Step& step : sequence)
      if (step.writes && read.contains(*step.writes)) both.insert(*step.writes);
    Forwarded result;
    if (both.empty()) return result;
    std::vector<bool> taken(registers_.getNumRegs());
    const auto take = [&](llvm::MCPhysReg number) {
      for (llvm::MCRegAliasIterator alias(number, &registers_, true); alias.isValid(); ++alias) taken[*alias] = true;
    };
    for (const Step& step : sequence) {
      const llvm::MCInst& code = step.instruction->code;
      for (const llvm::MCOperand& operand : code)
        if (operand.isReg() && operand.getReg() != 0) take(llvm::MCPhysReg(operand.getReg()));
      const llvm::MCInstrDesc& description = instructions_.get(code.getOpcode());
      for (const llvm::MCPhysReg number : description.implicit_defs()) take(number);
      for (const llvm::MCPhysReg number : description.implicit_uses()) take(number);
    }
    unsigned number = 1;
    for (const int one : both) {
      while (number < taken.size() && taken[number]) ++number;
      if (number == taken.size()) break;
      result.emplace(one, llvm::MCPhysReg(number));
      // For AH also AL: the model may rename both as one.
      for (llvm::MCRegAliasIterator alias(number, &registers_, true); alias.isValid(); ++alias)
        take(llvm::MCPhysReg(*alias));
    }
    return result;
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
    hash = base::hash_combine(base::hash_combine(hash, settings.out_of_order), before != nullptr);
    if (before) put(hash, *before);
    for (const Step& step : sequence) {
      put(hash, step.instruction->code);
      if (step.reads) hash = base::hash_combine(hash, std::uint64_t(*step.reads));
      if (step.writes) hash = base::hash_combine(hash, ~std::uint64_t(*step.writes));
    }
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
    // The builder's cached results of other regions may differ from new ones (vector code of RISC-V).
    builder_->clear();
    post_->resetState();
    std::vector<llvm::mca::UniqueInstrument> owned;
    Instruments in_force;
    if (has_instruments_ && before) adopt(*before, in_force, owned);
    llvm::SmallVector<std::unique_ptr<llvm::mca::Instruction>> built;
    const Forwarded waits = forwarded(sequence);
    std::set<const llvm::mca::InstrDesc*> widened;
    std::deque<llvm::mca::WriteDescriptor> shortened;  // that writes of `built` point to
    for (const Step& step : sequence) {
      const llvm::MCInst& instruction = step.instruction->code;
      if (has_instruments_) adopt(instruction, in_force, owned);
      llvm::MCInst room;
      auto result = builder_->createInstruction(as_timed(instruction, room), in_force);
      if (!result) {
        llvm::consumeError(result.takeError());
        answer.unsupported.insert(instruction.getOpcode());
        continue;
      }
      widen(**result, widened);
      post_->postProcessInstruction(*result, instruction);
      if (is_zero_idiom(instruction))
        for (llvm::mca::ReadState& read : (*result)->getUses()) read.setIndependentFromDef();
      if (const auto found = waits.find(step.reads); found != waits.end())
        (*result)->getUses().emplace_back(memory_read, found->second);
      if (const auto found = waits.find(step.writes); found != waits.end()) {
        (*result)->getDefs().emplace_back(memory_write, found->second);
        // Such cores hold no store back behind older loads; the analyser would, and loads wait here.
        if (settings.out_of_order) (*result)->setMayStore(false);
      }
      shorten(*(*result), instruction, shortened);
      built.push_back(std::move(*result));
    }
    if (built.empty() || iterations == 0) return answer;
    llvm::mca::Context context(registers_, subtarget_);
    llvm::mca::CircularSourceMgr source(built, unsigned(iterations));
    std::unique_ptr<llvm::mca::CustomBehaviour> behaviour(
        target_.createCustomBehaviour(subtarget_, source, instructions_));
    if (!behaviour) behaviour = std::make_unique<llvm::mca::CustomBehaviour>(subtarget_, source, instructions_);
    // Zeros mean the model's own sizes; loads are assumed not to alias earlier stores.
    const llvm::mca::PipelineOptions options(0, 0, unsigned(settings.dispatch_width), 0, 0, 0, true, false);
    const auto pipeline = context.createDefaultPipeline(options, source, *behaviour);
    const int few = iterations / 2;
    Retirement retirement(std::size_t(few) * built.size(), std::size_t(iterations) * built.size());
    pipeline->addEventListener(&retirement);
    llvm::Expected<unsigned> result = pipeline->run();
    if (!result) return base::Reason{"core timing: " + base::one_line(llvm::toString(result.takeError()))};
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
  bool has_instruments_, is_fast_x86_;
  std::unique_ptr<llvm::mca::InstrPostProcess> post_;
  std::optional<llvm::mca::InstrBuilder> builder_;
  std::unordered_map<unsigned, int> excess_;         // by opcode
  std::unordered_map<unsigned, unsigned> timed_as_;  // opcodes whose times are those of others
  std::unordered_set<unsigned> wide_;     // opcodes that keep vector_ports_ for twice as long as the table says
  std::set<std::uint64_t> vector_ports_;  // masks of resources
  std::unordered_map<std::uint64_t, Answer> known_;
};

}  // namespace

Core& core_of(const llvm::TargetMachine& machine) {
  initialise();
  // Thread-local, like the machines, and destroyed before them.
  thread_local Kept<std::map<const llvm::TargetMachine*, AnalysedCore>> kept;
  return kept.get().try_emplace(&machine, machine).first->second;
}

}  // namespace graft::codegen
