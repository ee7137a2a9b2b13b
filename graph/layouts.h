// How the values between kernels are stored: as ONNX says, or with channels in blocks of a vector's lanes, side by
// side. A kernel whose operands are in blocks is another workload, faster or slower; a value that one kernel stores
// otherwise than another one reads it costs a copy. The layouts with the least sum are chosen by dynamic programming
// over the calls.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/expression/layout.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "graph/plan.h"

namespace graft::graph {

// The ways in which a plan's calls can be done.
struct Forms {
  struct Form {
    codegen::Workload workload;              // over tensors as they are stored
    std::vector<bool> in_blocks;             // by operand of the call, then its result
    std::vector<codegen::Layout> constants;  // by operand: how a constant's elements are stored
  };
  std::vector<std::vector<Form>> calls;  // by call of the plan, its own workload first
  // By buffer: how many channels (of dimension 1) can be stored side by side; 0: it is only stored as ONNX says, as the
  // network's inputs and outputs are. A whole and its parts are alike.
  std::vector<std::int64_t> block;

  // Whether calls have a choice.
  bool any() const;
};
// Values of three to eight dimensions of networks with convolutions and at most 4,096 calls, for targets with vectors.
Forms forms_of(const Plan& plan, const codegen::Target& target);
// Each call as the plan has it.
Forms given_forms(const Plan& plan);

// By buffer: whether it is stored in blocks.
using InBlocks = std::vector<bool>;

// The form in which a call is done: the one that needs the fewest bytes copied.
const Forms::Form& form_of(const Plan& plan, const Forms& forms, std::size_t call, const InBlocks& in_blocks);

// The least sum of the times of all calls and of a copy for each call that needs one; exact for up to 12 values that
// live at once, a search among the best 4096 partial choices beyond it. `seconds`: of a workload, infinite for one that
// is not known; a call of which no form is known decides nothing. `bytes_per_second`: of copies, bytes read and
// written.
InBlocks best_layouts(const Plan& plan, const Forms& forms,
                      const std::function<double(const codegen::Workload&)>& seconds, double bytes_per_second);

// The sum that these layouts give.
double seconds_of(const Plan& plan, const Forms& forms, const InBlocks& in_blocks,
                  const std::function<double(const codegen::Workload&)>& seconds, double bytes_per_second);

// The plan with values stored so: calls in their forms, and copies where a call needs another one. The buffers of the
// plan keep their numbers; their shapes are the stored ones.
Plan laid_out(const Plan& plan, const Forms& forms, const InBlocks& in_blocks);

}  // namespace graft::graph
