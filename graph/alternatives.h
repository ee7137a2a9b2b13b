// A plan in which it is open what computes the values: several calls or one that does the same, on values that are
// stored as ONNX says or in another way (layouts.h). It is made of the folded graph once, with all alternatives; times
// decide.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/expression/layout.h"
#include "codegen/expression/target.h"
#include "graph/graph.h"
#include "graph/plan.h"

namespace graft::graph {

// A call, or lists of steps of which each computes the same values; the first one is as the graph has it.
struct Step {
  Plan::Call call;
  std::vector<std::vector<Step>> alternatives;
};

struct OpenPlan {
  Plan plan;  // without calls: the kernels of all alternatives, then those of copies, and all buffers
  std::vector<Step> steps;
  std::size_t kernels_of_calls = 0;  // the others copy
  // A buffer that has the value of another one, stored otherwise: the kernel that computes it of that one.
  struct Copy {
    int from = -1, kernel = -1;
    bool is_into = false;  // another way than ONNX's
  };
  std::map<int, Copy> copies;
  // Constants that are another one in a layout, which are made when a plan is chosen.
  std::map<int, std::pair<int, codegen::Layout>> constants;
};

// `graph` is folded. Outputs are written where they belong; an output that is an input, a constant, or a second one of
// the same elements is copied there. `storage` as in grouped (fuse.h). UserError names a node that is not supported.
OpenPlan open_plan(const Graph& graph, const codegen::Target& target, std::string_view place,
                   codegen::DType storage = codegen::DType::f32);

// The plan with the first of all alternatives.
Plan first_choice(const OpenPlan& open);

// The plan with the least sum of the times of all calls, and of a copy for each value that is read otherwise than it is
// written. Exact as long as no more than 4096 partial choices differ in how the values that live at once are stored, a
// search among the best ones beyond it. `seconds`: by kernel; one that is not known, infinite, counts as very slow, but
// a copy takes as long by byte as that of the largest value.
Plan best_choice(const OpenPlan& open, std::span<const double> seconds);

bool has_alternatives(const OpenPlan& open);
// The number of places where several calls may be one.
std::size_t fusions(const OpenPlan& open);
// By kernel: whether its time can matter for the choice. What is known in other layouts is not needed as ONNX has it,
// and where either one call or all of several are known, the others are not needed.
std::vector<bool> candidates(const OpenPlan& open, const std::vector<bool>& known);
// The calls of all alternatives.
std::vector<const Plan::Call*> all_calls(const std::vector<Step>& steps);

}  // namespace graft::graph
