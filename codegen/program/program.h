// The loop program (loop AST): exactly what runs. Loops with constant extents, stores with affine accesses; tails,
// unrolls and vectors are already decided, so features, cache simulation and machine code describe the same loops.
//
// A program has two parts: `prepare` does what depends on constants only (once per weights, never timed), `run` is what
// is timed, encoded and simulated. Nodes are stored in pre-order in flat vectors; a loop's variable in an Affine is its
// position in `loops`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expression/computation.h"

namespace graft::codegen {

// On GPUs iterations of a band of block loops, outermost, are groups of work-items; those of a band of thread loops
// inside are the group's work-items (codegen/program/groups.h). Where nothing knows groups, all run in order.
#define GRAFT_LOOP_KINDS(X) \
  X(serial)                 \
  X(unrolled)               \
  X(vector) X(parallel) X(block_x) X(block_y) X(block_z) X(thread_x) X(thread_y) X(thread_z) X(virtual_thread)

enum class LoopKind {
#define X(name) name,
  GRAFT_LOOP_KINDS(X)
#undef X
};
std::string_view name_of(LoopKind kind);
bool is_block(LoopKind kind);   // block_x, block_y, block_z
bool is_thread(LoopKind kind);  // thread_x, thread_y, thread_z

// memory: the caller's buffer or the kernel's own; registers: SSA values, every index constant once unrolled loops are
// unrolled (but for the vector loop); loops of threads tell which work-item's. group: memory that a group shares.
enum class Scope { memory, registers, group };
std::string_view name_of(Scope scope);

// Row-major. The first buffers of a program are its computation's inputs, constants and outputs in the computation's
// order of tensors (the parameters of the kernel); temporaries follow.
struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  Role role = Role::temporary;
  Scope scope = Scope::memory;
  std::vector<double> values = {};  // of a literal (Tensor::values): not passed by the caller, never written
  Layout layout = {};               // of a parameter: how `shape` stores the operator's tensor
  bool is_literal() const { return !values.empty(); }
  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * bytes_of(dtype); }
  std::vector<std::int64_t> strides() const;  // in elements
};

struct Loop {
  std::string name;  // "i.0"; no part of identity
  std::int64_t extent = 1;
  LoopKind kind = LoopKind::serial;
  int intrinsic = -1;  // position in LoopProgram::intrinsics of the one whose code replaces this loop and all inside
  // What every iteration prefetches first: elements of buffers in memory that the loop touches.
  // They affect only time, and may be outside of their buffer, by less than each of its extents.
  std::vector<Access> prefetches = {};
};

// target = value (combine none), or target = target combine value.
struct Store {
  Access target;
  Combine combine = Combine::none;
  Value value;
};

struct Node {
  enum class Kind { loop, store };
  Kind kind = Kind::store;
  int item = 0;  // position in loops or stores
  int end = 0;   // one past the node's subtree in the same body
};
using Body = std::vector<Node>;

struct Intrinsic;  // intrinsic.h
using IntrinsicPointer = std::shared_ptr<const Intrinsic>;

struct LoopProgram {
  std::vector<IntrinsicPointer> intrinsics;
  std::vector<Buffer> buffers;
  std::vector<Loop> loops;
  std::vector<Store> stores;
  Body prepare, run;
  // Factor on the allowed error of its results, from the way it was made (schedule/restructure.h); not part of its
  // identity.
  double amplification = 1;
};

// Equality and hash of the computation, its order and its form: names of buffers and loops are ignored.
bool operator==(const LoopProgram& a, const LoopProgram& b);
std::uint64_t hash(const LoopProgram& program);

// Whether a store within the node at body[at] writes the buffer, or, unless `writes_only`, reads it.
bool touches(const LoopProgram& program, const Body& body, int at, int buffer, bool writes_only = false);

// Flattened element offset of an access over loop variables (row-major strides of its buffer).
Affine offset(const LoopProgram& program, const Access& access);

// Throws UserError naming `place` for a program from outside that is not well formed: an index that can leave its
// buffer, a loop variable used outside its loop, a vector loop that contains a loop, a loop without a body, an extent
// <= 0, a nest that is not what its intrinsic computes or not unrolled, register buffers indexed by serial loops,
// prefetches by a loop that is neither serial nor unrolled, of elements that it does not touch or further away, inputs
// or constants written, `prepare` that depends on inputs, a name twice; and for sizes beyond any real program (2^50
// elements or executions, 64 loops in each other).
void check(const LoopProgram& program, std::string_view place);

}  // namespace graft::codegen
