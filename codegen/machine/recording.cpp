#include "codegen/machine/recording.h"

#include <llvm/CodeGen/AsmPrinter.h>
#include <llvm/CodeGen/MachineBlockFrequencyInfo.h>
#include <llvm/CodeGen/MachineBranchProbabilityInfo.h>
#include <llvm/CodeGen/MachineDominators.h>
#include <llvm/CodeGen/MachineFunctionPass.h>
#include <llvm/CodeGen/MachineInstrBuilder.h>
#include <llvm/CodeGen/MachineLoopInfo.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetInstrInfo.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/MC/MCCodeEmitter.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCFixup.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/TargetRegistry.h>

#include <cmath>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/one_line.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/emitter.h"
#include "codegen/machine/fatal.h"

namespace graft::codegen {
namespace {

constexpr int elsewhere = -1;
// The thing that a label precedes: a block, by its position, or an instruction that uses the stack or a named place.
struct Notes {
  std::unordered_map<const llvm::MCSymbol*, int> blocks;
  std::unordered_map<const llvm::MCSymbol*, RecordedInstruction> instructions;  // without code
};

double whole_if_near(double value) {
  const double whole = std::round(value);
  return whole >= 1 && std::abs(value - whole) <= 1e-3 * whole ? whole : value;
}

// The last pass before printing: notes counts and loops, and puts a label at the head of every block, so that the
// streamer knows where an instruction belongs. Labels are not code: what is recorded is what would be assembled.
class NoteBlocks : public llvm::MachineFunctionPass {
 public:
  static char ID;  // LLVM's name for the pass is its address
  NoteBlocks(const std::string& function, Recording& recording, Notes& notes)
      : MachineFunctionPass(ID), function_(function), recording_(recording), notes_(notes) {}

  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
    usage.addRequired<llvm::MachineBlockFrequencyInfoWrapperPass>();
    usage.addRequired<llvm::MachineLoopInfoWrapperPass>();
    usage.addRequired<llvm::MachineDominatorTreeWrapperPass>();
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(llvm::MachineFunction& function) override {
    const bool wanted = function.getName() == function_;
    if (wanted) note(function);
    const llvm::TargetInstrInfo& instructions = *function.getSubtarget().getInstrInfo();
    if (wanted) recording_.no_operation = instructions.getNop();
    int position = 0;
    for (llvm::MachineBasicBlock& block : function) {
      llvm::MCSymbol* const label = function.getContext().createTempSymbol("block", true);
      notes_.blocks[label] = wanted ? position++ : elsewhere;
      llvm::BuildMI(block, block.begin(), llvm::DebugLoc(), instructions.get(llvm::TargetOpcode::ANNOTATION_LABEL))
          .addSym(label);
      if (wanted) note_memory(block, instructions);
    }
    return true;
  }

 private:
  void note_memory(llvm::MachineBasicBlock& block, const llvm::TargetInstrInfo& instructions) {
    const auto slot_of = [](const llvm::SmallVectorImpl<const llvm::MachineMemOperand*>& accesses) {
      const auto* slot = llvm::cast<llvm::FixedStackPseudoSourceValue>(accesses.front()->getPseudoValue());
      return slot->getFrameIndex();
    };
    for (llvm::MachineInstr& instruction : block) {
      llvm::SmallVector<const llvm::MachineMemOperand*> reads, writes;
      RecordedInstruction noted;
      if (instructions.hasLoadFromStackSlot(instruction, reads)) noted.reads_slot = slot_of(reads);
      if (instructions.hasStoreToStackSlot(instruction, writes)) noted.writes_slot = slot_of(writes);
      for (const llvm::MachineMemOperand* access : instruction.memoperands()) {
        const std::optional<int> place = place_of(access->getAAInfo().Scope);
        if (!place) continue;
        if (access->isLoad()) noted.reads_place = place;
        if (access->isStore()) noted.writes_place = place;
      }
      if (!noted.reads_slot && !noted.writes_slot && !noted.reads_place && !noted.writes_place) continue;
      llvm::MCSymbol* const label = block.getParent()->getContext().createTempSymbol("memory", true);
      notes_.instructions.emplace(label, noted);
      llvm::BuildMI(block, instruction, llvm::DebugLoc(), instructions.get(llvm::TargetOpcode::ANNOTATION_LABEL))
          .addSym(label);
    }
  }

  std::optional<int> place_of(const llvm::MDNode* scopes) {
    if (scopes == nullptr) return std::nullopt;
    const auto [known, is_new] = places_.try_emplace(scopes);
    if (is_new) {
      if (const std::optional<NamedPlace> place = named_place(scopes)) {
        known->second = int(recording_.places.size());
        recording_.places.push_back(*place);
      }
    }
    return known->second;
  }

  void note(llvm::MachineFunction& function) {
    places_.clear();
    auto& frequency = getAnalysis<llvm::MachineBlockFrequencyInfoWrapperPass>().getMBFI();
    auto& loop_info = getAnalysis<llvm::MachineLoopInfoWrapperPass>().getLI();
    auto& dominators = getAnalysis<llvm::MachineDominatorTreeWrapperPass>().getDomTree();
    const auto of_entry = [&](const llvm::MachineBasicBlock* block) {
      return frequency.getBlockFreqRelativeToEntryBlock(block);
    };

    std::map<const llvm::MachineBasicBlock*, int> position;
    for (const llvm::MachineBasicBlock& block : function) position.emplace(&block, int(position.size()));

    // Counts relative to one iteration of the loop outside are small numbers that can be rounded safely; their products
    // are then exact however deep the nest is.
    std::map<const llvm::MachineLoop*, int> number;
    for (const llvm::MachineLoop* loop : loop_info.getLoopsInPreorder()) {
      const llvm::MachineLoop* const outside = loop->getParentLoop();
      const llvm::MachineBasicBlock* const header = loop->getHeader();
      double entering = 0;
      for (const llvm::MachineBasicBlock* before : header->predecessors()) {
        if (loop->contains(before)) continue;
        const llvm::BranchProbability edge = frequency.getMBPI()->getEdgeProbability(before, header);
        entering += of_entry(before) * double(edge.getNumerator()) / double(llvm::BranchProbability::getDenominator());
      }
      RecordedLoop noted;
      noted.parent = outside ? number.at(outside) : -1;
      noted.header = position.at(header);
      noted.of_program = loop_of_program(loop->getLoopID());
      noted.trips = entering > 0 ? whole_if_near(of_entry(header) / entering) : 1;
      const double around = outside ? of_entry(outside->getHeader()) : 1;
      const double around_exactly = outside ? header_count(noted.parent) : 1;
      noted.entries = around > 0 ? whole_if_near(entering / around) * around_exactly : 0;
      number.emplace(loop, int(recording_.loops.size()));
      recording_.loops.push_back(noted);
    }

    for (llvm::MachineBasicBlock& block : function) {
      RecordedBlock noted;
      const llvm::MachineLoop* const loop = loop_info.getLoopFor(&block);
      noted.loop = loop ? number.at(loop) : -1;
      const double around = loop ? of_entry(loop->getHeader()) : 1;
      const double around_exactly = loop ? header_count(noted.loop) : 1;
      noted.count = around > 0 ? whole_if_near(of_entry(&block) / around) * around_exactly : 0;
      llvm::MachineBasicBlock *branch = nullptr, *jump = nullptr;
      llvm::SmallVector<llvm::MachineOperand> condition;
      function.getSubtarget().getInstrInfo()->analyzeBranch(block, branch, jump, condition);
      const llvm::MachineBasicBlock* const behind = jump ? jump : block.getNextNode();
      noted.behind_count = 0;
      if (behind && block.isSuccessor(behind)) {
        const llvm::BranchProbability edge = frequency.getMBPI()->getEdgeProbability(&block, behind);
        noted.behind_count = whole_if_near(noted.count * double(edge.getNumerator()) /
                                           double(llvm::BranchProbability::getDenominator()));
      }
      const auto* node = dominators.getNode(&block);
      if (node && node->getIDom()) noted.dominator = position.at(node->getIDom()->getBlock());
      recording_.blocks.push_back(std::move(noted));
    }
  }

  double header_count(int loop) const {
    const RecordedLoop& noted = recording_.loops[std::size_t(loop)];
    return noted.entries * noted.trips;
  }

  const std::string& function_;
  Recording& recording_;
  Notes& notes_;
  std::map<const llvm::MDNode*, std::optional<int>> places_;
};
char NoteBlocks::ID = 0;

// Takes the place of assembler and object writer.
class Recorder : public llvm::MCStreamer {
 public:
  Recorder(llvm::MCContext& context, const llvm::TargetMachine& machine, Recording& recording, const Notes& notes)
      : MCStreamer(context),
        instructions_(*machine.getMCInstrInfo()),
        encoder_(machine.getTarget().createMCCodeEmitter(instructions_, context)),
        one_no_operation_(machine.getTargetTriple().isX86()),
        recording_(recording),
        notes_(notes) {}

  void reset() override {
    MCStreamer::reset();
    block_ = elsewhere;
    noted_ = {};
  }
  // Without this, printers of some targets require an assembler after the streamer.
  bool hasRawTextSupport() const override { return true; }
  void emitRawTextImpl(llvm::StringRef) override {}
  bool emitSymbolAttribute(llvm::MCSymbol*, llvm::MCSymbolAttr) override { return true; }
  void emitCommonSymbol(llvm::MCSymbol*, std::uint64_t, llvm::Align) override {}
  void emitZerofill(llvm::MCSection*, llvm::MCSymbol*, std::uint64_t, llvm::Align, llvm::SMLoc) override {}

  void emitLabel(llvm::MCSymbol* symbol, llvm::SMLoc) override {
    if (const auto noted = notes_.instructions.find(symbol); noted != notes_.instructions.end()) noted_ = noted->second;
    const auto found = notes_.blocks.find(symbol);
    if (found == notes_.blocks.end()) return;
    block_ = found->second;
    if (block_ == 0) offset_ = 0;
  }
  // For loops; functions are aligned before their first block.
  void emitCodeAlignment(llvm::Align alignment, const llvm::MCSubtargetInfo*, unsigned most_bytes) override {
    if (block_ == elsewhere) return;
    const std::uint64_t bytes = llvm::offsetToAlignment(offset_, alignment);
    if (bytes == 0 || (most_bytes != 0 && bytes > most_bytes)) return;
    offset_ += bytes;
    std::vector<RecordedInstruction>& before = recording_.blocks[std::size_t(block_)].instructions;
    if (!before.empty() && instructions_.get(before.back().code.getOpcode()).isBarrier()) return;
    const std::uint64_t count = one_no_operation_ ? 1 : (bytes + 3) / 4;
    before.insert(before.end(), count, RecordedInstruction{recording_.no_operation});
  }
  void emitInstruction(const llvm::MCInst& instruction, const llvm::MCSubtargetInfo& subtarget) override {
    if (block_ == elsewhere) return;
    bytes_.clear();
    fixups_.clear();
    encoder_->encodeInstruction(instruction, bytes_, fixups_, subtarget);
    offset_ += bytes_.size();
    noted_.code = instruction;
    RecordedInstruction& kept = recording_.blocks[std::size_t(block_)].instructions.emplace_back(std::move(noted_));
    noted_ = {};
    for (llvm::MCOperand& operand : kept.code)
      if (operand.isExpr()) operand = llvm::MCOperand::createImm(0);
  }

 private:
  const llvm::MCInstrInfo& instructions_;
  std::unique_ptr<llvm::MCCodeEmitter> encoder_;
  bool one_no_operation_;  // for any number of bytes, not for every four
  Recording& recording_;
  const Notes& notes_;
  int block_ = elsewhere;
  RecordedInstruction noted_;  // what the next instruction is known to do
  std::uint64_t offset_ = 0;   // of the next instruction from the function's first one
  llvm::SmallVector<char> bytes_;
  llvm::SmallVector<llvm::MCFixup> fixups_;
};

// The code generator of one target and pipeline with our pass and streamer at its end, otherwise what
// addPassesToEmitFile would make. Kept, as building it takes as long as half of its runs do.
class RecordingGenerator {
 public:
  RecordingGenerator(llvm::TargetMachine& machine, const Pipeline& pipeline) : passes_(pipeline) {
    auto& code_generator = static_cast<llvm::LLVMTargetMachine&>(machine);
    auto* const module_info = new llvm::MachineModuleInfoWrapperPass(&code_generator);
    llvm::TargetPassConfig* const configuration = code_generator.createPassConfig(passes_);
    configuration->setDisableVerify(true);
    passes_.add(configuration);
    passes_.add(module_info);
    if (configuration->addISelPasses()) {
      cannot_ = "no instruction selection for this target";
      return;
    }
    configuration->addMachinePasses();
    configuration->setInitialized();
    passes_.add(new NoteBlocks(function_, recording_, notes_));
    auto recorder = std::make_unique<Recorder>(module_info->getMMI().getContext(), machine, recording_, notes_);
    machine.getTarget().createNullTargetStreamer(*recorder);
    llvm::FunctionPass* const printer = machine.getTarget().createAsmPrinter(machine, std::move(recorder));
    if (!printer) {
      cannot_ = "no assembly printer for this target";
      return;
    }
    passes_.add(printer);
    passes_.add(llvm::createFreeMachineFunctionPass());
  }
  // LLVM's passes point into it.
  RecordingGenerator(const RecordingGenerator&) = delete;
  RecordingGenerator& operator=(const RecordingGenerator&) = delete;

  base::Result<Recording> run(llvm::Module& module, const std::string& function) {
    if (!cannot_.empty()) return base::Reason{"code generation: " + cannot_};
    function_ = function;
    recording_ = {};
    notes_ = {};
    const std::string errors = errors_while(module.getContext(), [&] { passes_.run(module); });
    if (!errors.empty()) return base::Reason{"code generation: " + base::one_line(errors)};
    if (recording_.blocks.empty()) return base::Reason{"code generation: no code for '" + function + "'"};
    return std::move(recording_);
  }

 private:
  std::string function_, cannot_;
  Recording recording_;
  Notes notes_;
  CodegenPasses passes_;  // last: its passes hold references to all of the above
};

}  // namespace

base::Result<Recording> record(llvm::Module& module, llvm::TargetMachine& machine, const Pipeline& pipeline,
                               const std::string& function) {
  // Thread-local, like the machines, and destroyed before them.
  using Key = std::pair<llvm::TargetMachine*, Pipeline>;
  thread_local Kept<std::map<Key, RecordingGenerator>> kept;
  auto& known = kept.get();
  const auto generator = known.try_emplace(Key(&machine, pipeline), machine, pipeline).first;
  base::Result<Recording> recording = generator->second.run(module, function);
  // The state of the passes after an error is undefined.
  if (!recording) known.erase(generator);
  return recording;
}

}  // namespace graft::codegen
