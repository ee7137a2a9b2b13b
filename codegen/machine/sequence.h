// A program that calls kernels in order: a whole network, as a library that others link (library.h has
// single kernels), as a shared object, or as an executable. What is called on which memory is given; nothing here
// plans.
//
//   void NAME_run(const float* x, ..., float* y, ..., const void* weights, void* arena,
//                 graft_parallel_for parallel_for, void* context);
//
// The inputs, then the outputs, in their order; `weights` only if they are not part of the code; `arena` has
// NAME_ARENA_BYTES, need not keep its content between calls, and may be null if that is 0. A null parallel_for:
// everything on the calling thread. All pointers are aligned to 64 bytes. The code is freestanding and keeps no state:
// calls at the same time need an arena each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"
#include "codegen/machine/code.h"
#include "codegen/machine/library.h"
#include "codegen/machine/link.h"

namespace graft::codegen {

struct Sequence {
  // Row-major. Names are foreign (from a model's file): any text.
  struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::string declared = {};  // the model's type, where `dtype` has more values: "bool", "uint16", "uint64", ...
    int overwrites = -1;        // of an output: the input whose memory it may be
    std::int64_t bytes() const;
  };
  enum class Where { input, output, arena, weights };
  struct Place {
    Where where = Where::arena;
    int number = 0;           // of the input or output
    std::int64_t offset = 0;  // in bytes, a multiple of 64
    bool operator==(const Place&) const = default;
  };
  struct Call {
    int kernel = 0;
    // By parameter of the kernel's signature; nothing: a null pointer, for a constant that `run` does not read.
    std::vector<std::optional<Place>> buffers;
    std::optional<Place> prepared;  // in the weights: what the kernel's `prepare` has left
    std::optional<Place> scratch;   // in the arena
    std::string label;              // for people: the layer
  };

  std::string name;             // a C identifier
  std::string platform, graft;  // where its kernels were measured; the version that made it
  Target target;
  std::vector<Tensor> inputs, outputs;
  std::vector<Code> kernels;  // Their symbols differ, and begin with the sequence's name and an underscore: two
                              // sequences may be part of one program.
  std::vector<Call> calls;    // one at least writes each output that has elements
  std::int64_t arena_bytes = 0;
  std::string weights;    // everything constant, pieces aligned to 64 bytes
  bool exported = false;  // as Library::exported
};

// Sequences that do the same for inputs of several shapes, as one library, whose function says if it has a shape:
//
//   int NAME_run(int64_t batch, ..., const float* x, ...);   0; 1, and nothing else, if no sequence has these extents
//   int NAME_fit(int64_t* batch, ...);   raises the extents to those of the smallest sequence that has as many or more
//                                        of each, for a caller that fills its inputs up; 1 if there is none
struct ShapedSequences {
  struct Shape {
    std::vector<std::int64_t> extents;
    Sequence sequence;  // its name is NAME_ and a number; without weights of its own
  };
  std::string name;
  std::vector<std::string> extents;  // names of what the shapes differ in: any text
  // Inputs and outputs are equal but for their shapes. A kernel that several call is the same code under one symbol,
  // which begins with the name of all.
  std::vector<Shape> shapes;
  std::string weights;    // of all
  bool exported = false;  // as Library::exported
};

// Read-only data of the code; or the file NAME.weights, whose content the caller has in memory and passes.
enum class WeightsIn { code, file };

// File names and contents: NAME.h, NAME.json (docs/reference/sequence-json.md), graft_parallel.h, and libNAME.a (one
// member), NAME.pc, NAMEConfig.cmake (library) or NAME.o (object); NAME.weights where they are in a file, which is
// not so if there are none. UserError for a name that is not a C identifier or is a header of C, and
// for weights that code cannot hold. Failure for a sequence that contradicts itself (a place
// outside of its memory, a call of another kernel's parameters). It takes the sequence, whose weights may be large:
// move it.
std::map<std::string, std::string> sequence_files(Sequence sequence, LibraryFormat format, WeightsIn weights);
std::map<std::string, std::string> sequence_files(ShapedSequences all, LibraryFormat format, WeightsIn weights);

// The sequence as one kernel, with the ABI of compile.h: its parameters are the inputs and the outputs, `prepared` the
// weights (there is nothing that prepares them), `scratch` the arena. NAME_calls is a table of functions, one for each
// call, in order, with the ABI of NAME_run: run in order they do what NAME_run does.
Signature signature(const Sequence& sequence);
// A shared object for this host with NAME_prepare, NAME_run and NAME_calls, without the weights. Failure as above.
base::Result<std::string> link_shared_sequence(const Sequence& sequence);

// What link_executable (link.h) makes of kernels, of the whole sequence as one kernel, with the weights: a static,
// freestanding program. `inputs`: the bytes of each. With RunSettings::self_checks, one of them: the digest is that of
// the outputs, consecutive. A Reason as link_executable, and for an input of another size.
base::Result<std::string> link_sequence_program(const Sequence& sequence, const std::vector<std::string>& inputs,
                                                const RunSettings& settings);

}  // namespace graft::codegen
