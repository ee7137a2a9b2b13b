// One core as modelled by LLVM's analyser (the llvm-mca library), corrected where vendors' documents differ: the time
// of a repeated sequence of instructions. Private to this part: its interface has LLVM types.
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
  // Numbers for slots of the stack and places of memory: a step that reads one waits for the last that wrote it, even
  // in the iteration before.
  std::optional<int> reads = {}, writes = {};
};
using Sequence = std::vector<Step>;

// Keeps earlier answers. For one thread only, as its target machine is.
class Core {
 public:
  virtual ~Core() = default;

  struct Line {
    double slope = 0, intercept = 0;  // cycles per iteration, and once in addition
  };
  struct Answer {
    Line line;
    std::set<unsigned> unsupported;  // opcodes
  };
  // Cycles over iterations of the sequence as a line; `before`, if any, is the instruction whose instruments are in
  // force at first. With 0 iterations only what the model lacks is found.
  virtual base::Result<Answer> ask(const Sequence& sequence, const llvm::MCInst* before, int iterations,
                                   const CoreTimingSettings& settings) = 0;

  // Whether the model simulates the instruction: calls and returns are left out.
  virtual bool simulates(const llvm::MCInst& instruction) const = 0;
  // The number of the block's instructions that run as often as the block does: up to and including its conditional
  // branch.
  virtual std::size_t branch_end(const RecordedBlock& block) const = 0;
  // RISC-V vector code takes its type from the last vsetvli. Whether this is one.
  virtual bool sets_instruments(const llvm::MCInst& instruction) const = 0;
  virtual std::string name(unsigned opcode) const = 0;
};

// Needs a scheduling model.
Core& core_of(const llvm::TargetMachine& machine);

}  // namespace graft::codegen
