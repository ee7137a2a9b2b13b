// Private to this folder: how `run` is cut into tasks for several threads. Analysis of the loop program alone.
//
// A nest whose outermost loops are parallel, each the only child of the one before, is a band: every iteration of it is
// a task. Nests that do not touch each other's results (such as the remainders of a tiled loop) form a group, whose
// tasks run at the same time; groups run in order. The tasks of a group are distributed over as many slots as
// there are threads, and a temporary that tasks would otherwise share exists once per slot.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "codegen/program/program.h"

namespace graft::codegen {

struct Section {  // nodes run[begin, end)
  int begin = 0, end = 0;
  std::vector<int> band;   // loops whose iterations are tasks, outermost first; empty: the section is one task
  std::int64_t tasks = 1;  // product of the band's extents
};
struct Group {  // sections [begin, end)
  int begin = 0, end = 0;
  std::int64_t tasks = 1;
  std::int64_t slots = 1;  // 1: called directly, section by section
};
struct Dispatch {
  std::vector<Section> sections;
  std::vector<Group> groups;
  std::vector<std::int64_t> copies;     // by buffer: one per slot of its group if each task needs its own, else 0
  std::optional<base::Reason> refused;  // parallel loops within others, or iterations that would race
};

// For one thread all of `run` is one section, whatever the kinds of its loops.
Dispatch dispatch(const LoopProgram& program, std::int64_t threads);

}  // namespace graft::codegen
