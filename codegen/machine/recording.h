// The code that LLVM emits for one function: the instructions of every basic block as the assembler would get
// them, how often each block runs, and the loops around it. Private to this part: it speaks LLVM.
//
// Does not simulate anything (core_timing does), and needs neither an assembler nor an object file.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/MC/MCInst.h>
#include <llvm/Target/TargetMachine.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/emitter.h"

namespace graft::codegen {

struct RecordedInstruction {
  llvm::MCInst code;  // symbolic operands replaced by 0: they would point into LLVM's memory
  // Slots of the stack that it reads and writes, numbered separately: they hold spilled registers.
  std::optional<int> reads_slot = {}, writes_slot = {};
  // Places of memory, positions in Recording::places, if they are named (CodeAttributes::named_places).
  std::optional<int> reads_place = {}, writes_place = {};
};

struct RecordedBlock {
  std::vector<RecordedInstruction> instructions;
  double count = 0;         // executions per call of the function
  double behind_count = 0;  // of the code after its conditional branch: a jump, padding
  int loop = -1;            // innermost loop around it, position in Recording::loops
  int dominator = -1;       // immediate dominator, position in Recording::blocks
};

struct RecordedLoop {
  int parent = -1;      // position in Recording::loops, always smaller than its own
  int header = -1;      // position in Recording::blocks
  double entries = 0;   // how often it is entered, per call of the function
  double trips = 1;     // executions of the header per entry
  int of_program = -1;  // position in LoopProgram::loops; -1: unknown
};

// Padding before aligned blocks, which runs if the previous block falls through into it, counts as instructions of the
// latter. Exact except on x86, where the assembler may choose longer branches: then it is off by a no-operation or two.
struct Recording {
  std::vector<RecordedBlock> blocks;  // in the order of their addresses
  std::vector<RecordedLoop> loops;    // outer loops before inner ones
  std::vector<NamedPlace> places;
  llvm::MCInst no_operation;  // the instruction used as padding
};

// Runs code generation for the (already optimised) module; consumes its bodies. Counts are exact where the branches
// carry exact !prof weights: LLVM keeps probabilities as multiples of 2^-31, so trips are rounded to whole numbers when
// they are within 0.1 % of one, and the counts of blocks are the products of trips. A Reason when the back end cannot
// generate code, or emits no code for `function`.
base::Result<Recording> record(llvm::Module& module, llvm::TargetMachine& machine, const Pipeline& pipeline,
                               const std::string& function);

}  // namespace graft::codegen
