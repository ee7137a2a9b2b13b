// The time of a program's machine code on one core if every access hits the first cache: LLVM's own scheduling
// model (the llvm-mca library) on the instructions that code generation really emits, with loop nests expanded; a load
// waits for the store that it takes its value from. Not a measurement: the tasks room adds the cost of caches.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/program/program.h"

namespace graft::codegen {

// The code under one loop of the program, without inner loops that have their own part.
struct CorePart {
  int loop = -1;  // position in LoopProgram::loops; -1: outside of loops
  double cycles = 0;
  double instructions = 0;
};

struct CoreTiming {
  double cycles = 0;                       // of one `run`
  double instructions = 0;                 // executed by the loops; those of the exported wrapper are left out
  std::vector<CorePart> parts;             // they add up to the fields above; no two of one loop
  std::map<std::string, int> unsupported;  // opcodes that the cpu's model lacks, with the number of static occurrences
};

struct CoreTimingSettings {
  int expansion_limit = 600;     // instructions to which an inner nest is expanded before it is simulated
  bool out_of_order = true;      // how much of a loop's fill and drain counts: 0.5, in order 1
  double mispredict_cycles = 8;  // per exit of a loop with more than 32 trips
  std::string model_cpu = {};    // whose model times the target's code; "": the target's own
  int dispatch_width = 0;        // instructions a cycle into the core; 0: as many as LLVM's model issues
};

// Times the code that search_pipeline makes of `run`; parallel loops run on one core. Thread-safe, deterministic.
// Counts are exact while no loop has more than 40,000 trips, and wrong by one part in 2^32 / trips at most beyond.
// UserError for a cpu without a scheduling model; a Reason for a program that the back end cannot emit.
base::Result<CoreTiming> core_timing(const LoopProgram& program, const Target& target,
                                     const CoreTimingSettings& settings);

// Throws the UserError that core_timing would for this target and settings.
void check_core_timing(const Target& target, const CoreTimingSettings& settings = {});

}  // namespace graft::codegen
