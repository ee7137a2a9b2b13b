// One core as LLVM's analyser (the llvm-mca library) has it, put right where documents say otherwise: how long it takes
// for a sequence of instructions that is repeated. Private to this part: it speaks LLVM.
#pragma once

#include <llvm/MC/MCInst.h>
#include <llvm/Target/TargetMachine.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/machine/core_timing.h"
#include "codegen/machine/recording.h"

namespace graft::codegen {

struct Step {
  const RecordedInstruction* instruction = nullptr;
  // Numbers for slots of the stack and places of memory: a step that reads one waits for the last that wrote it, be it
  // in the iteration before.
  std::optional<int> reads = {}, writes = {};
};
using Sequence = std::vector<Step>;

// With what it has been asked before. Of one thread, as its target machine is.
class Core {
 public:
  virtual ~Core() = default;

  struct Line {
    double slope = 0, intercept = 0;  // cycles per iteration, and on top for all of them
  };
  struct Answer {
    Line line;
    std::set<unsigned> unsupported;  // opcodes
  };
  // Cycles over iterations of the sequence as a line; `before`, if any, is the instruction whose instruments are in
  // force at first. With 0 iterations only what the model lacks is found.
  virtual base::Result<Answer> ask(const Sequence& sequence, const llvm::MCInst* before, int iterations,
                                   const CoreTimingSettings& settings) = 0;

  // Calls and returns are none of the model's business.
  virtual bool simulates(const llvm::MCInst& instruction) const = 0;
  // How many of the block's instructions run as often as the block does: up to its conditional branch, with it.
  virtual std::size_t branch_end(const RecordedBlock& block) const = 0;
  // RISC-V vector code takes its type from the last vsetvli. Whether this is one.
  virtual bool sets_instruments(const llvm::MCInst& instruction) const = 0;
  virtual std::string name(unsigned opcode) const = 0;
};

// Needs a scheduling model.
Core& core_of(const llvm::TargetMachine& machine);

}  // namespace graft::codegen
