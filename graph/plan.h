// A network as calls of kernels, in order, on buffers: what is tuned (kernels), and what a program does
// (codegen/machine/sequence.h). It needs nothing of the graph that it was made of; plan_document.h keeps it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/expression/foreign.h"
#include "codegen/expression/workload.h"
#include "graph/array.h"
#include "graph/graph.h"
#include "graph/memory.h"

namespace graft::graph {

// What a check draws the numbers of an input from (inputs.h): of floating point `low` to `low + width`, or with
// `is_whole` 0 and 1; integers within the dimensions that they index, others 0 and 1.
struct Draw {
  double low = -1, width = 2;
  bool is_whole = false;
  std::int64_t indexed = 0;  // the shortest dimension that it indexes, after whatever is computed of it; 0: none
  std::int64_t indexed_directly = 0;  // the same where nothing is
  bool operator==(const Draw&) const = default;
};

struct Plan {
  // An input or output of the network. `declared` as graph.h.
  struct Tensor {
    std::string name;
    codegen::DType type = codegen::DType::f32;
    Shape shape;
    std::string declared = {};
    Draw draw = {};  // of an input
  };
  // A workload that calls have in common: equal but for names (Workload::key).
  struct Kernel {
    codegen::Workload workload;  // operands x0, x1, ..., output y
    std::int64_t calls = 0;
    std::string label;                                          // of its first call
    std::shared_ptr<const codegen::Foreign> foreign = nullptr;  // what computes it, in place of a tuned program
  };
  // A tensor in memory, row-major.
  struct Buffer {
    enum class Where { input, output, constant, arena };
    Where where = Where::arena;
    int number = -1;  // of the graph's input or output
    int value = -1;   // of the graph; -1: within a node
    // A part of another buffer, from a byte on: then it is where that one is.
    int part_of = -1;
    std::int64_t offset = 0;
    codegen::DType type = codegen::DType::f32;
    Shape shape;
    Known known = nullptr;  // of a constant
    std::int64_t bytes() const;
  };
  struct Call {
    int kernel = -1;
    std::vector<int> operands;             // buffers, by number of the operand
    int result = -1;                       // buffer
    std::vector<int> nodes;                // of the graph; none for a copy of what an output is
    std::string label;                     // for people: "conv1 (Conv, Relu)"
    std::vector<std::string> layers = {};  // for people, the nodes: "conv1 (Conv)", "Relu"
  };
  std::vector<Tensor> inputs, outputs;
  std::vector<Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<Call> calls;
};

// Adds kernels to a plan: equal workloads are one.
class Kernels {
 public:
  explicit Kernels(Plan& plan);
  // The kernel's number; `label`: of a call.
  int number(const codegen::Workload& workload, const std::string& label,
             const std::shared_ptr<const codegen::Foreign>& foreign = nullptr);

 private:
  Plan& plan_;
  std::map<std::uint64_t, int> numbers_;  // by key; foreign ones are looked for
};

// By output: the input whose memory it may be, as nothing reads that input after what is written there; -1: none.
std::vector<int> overwritten_inputs(const Plan& plan);

// The buffer that a buffer is a part of; itself if it is none.
std::size_t whole_of(const Plan& plan, int buffer);

// The lifetimes of the arena's buffers, in the order of Plan::buffers, followed by those of each call's scratch.
struct ArenaUse {
  std::vector<Lifetime> lifetimes;
  std::vector<int> lifetime_of_buffer;  // -1: not in the arena
  std::vector<int> scratch_of_call;     // lifetimes; -1: none
};
ArenaUse arena_use(const Plan& plan, std::span<const std::int64_t> scratch_bytes_by_kernel);

}  // namespace graft::graph
