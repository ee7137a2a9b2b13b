// The form and effect of each kind of step, as data; docs/reference/steps.md is generated from it. The reader
// (step.h) and lowering decide what is accepted, and a test checks the examples against the reader.
#pragma once

#include <span>
#include <string_view>

#include "codegen/schedule/step.h"

namespace graft::codegen {

struct StepForm {
  StepKind kind;
  std::string_view form;     // "tile STAGE AXIS SIZE ..."; STAGE is the name of the tensor that the stage fills
  std::string_view example;  // a step that parses
  std::string_view meaning;
};
// One for each kind, in the order of GRAFT_STEPS.
std::span<const StepForm> step_forms();

}  // namespace graft::codegen
