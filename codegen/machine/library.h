// Kernels as a library that others link: C functions around machine code, a header, the same as data (interface.h), and
// files for pkg-config and CMake.
// The code is freestanding: no libc, no libm, no allocation, nothing undefined. All that it defines begins with the
// library's name, and is hidden: libraries can be linked into one program, and a shared object shows nothing of one
// that it contains. For a function F, which is NAME_FUNCTION, with parameters A, B, C in the order of the workload's
// text:
//
//   void F_prepare(const float* B, void* prepared, void* scratch);            // only if a kernel prepares constants
//   void F(const float* A, const float* B, float* C, const void* prepared, void* scratch);  // on the calling thread
//   void F_parallel(A, B, C, prepared, scratch, graft_parallel_for, context);  // only if a kernel has parallel loops
//   long long F_select(A, B, C, prepared, scratch, budget_ns, parallel_for, context);  // only with several variants
//
// Constants that are part of the library are not parameters; then there is nothing to prepare. A tensor whose name
// means something else in C or C++, or in the header, has another one as parameter (`int` is int_), which the comment
// says.
//
// `prepared` has F_PREPARED_BYTES: F_prepare fills it from the constants, once, and any number of calls read it.
// `scratch` has F_SCRATCH_BYTES, that of F_prepare F_PREPARE_SCRATCH_BYTES, and that of F_select the larger number: it
// is used by one call at a time, of any kernel, and need not keep its content. Functions take no memory of 0 bytes.
// Tensors are aligned to 16 bytes, memory to 64. For one operator in several shapes, NAME_OPERATOR_for(extents...)
// returns the functions of a shape, or a null pointer; their type does not depend on which memory they need.
//
// int NAME_runs_here(void) says whether this machine has what the code needs (needs.h). Code for several platforms is
// asked for by the same functions, each of which runs the first variant whose platform runs here; int
// NAME_use_platform(int) sets another platform for all of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/code.h"
#include "codegen/machine/interface.h"

namespace graft::codegen {

struct LibraryVariant {
  Code object;  // its symbol differs from those of all others, and begins with the library's name
  Interface::Variant origin;
  // The contents of the object's constant parameters, in their order and as stored; "" for one that its code does not
  // read. Empty: the caller passes the constants. All variants of a function must agree in this.
  std::vector<std::string> constants = {};
  int platform = 0;  // position in Library::platforms

  bool passes(const Parameter& parameter) const { return constants.empty() || parameter.role != Role::constant; }
};

struct LibraryFunction {
  std::string name;  // a C identifier
  Workload workload;
  std::vector<LibraryVariant> variants;  // at least one; the first one that can runs until F_select has chosen
};

struct LibraryPlatform {
  std::string name;
  Target target;
};

struct Library {
  std::string name;                        // a C identifier
  std::vector<LibraryPlatform> platforms;  // at least one, of one architecture; the first one that can is used
  std::string graft;                       // its version
  std::vector<LibraryFunction> functions;  // at least one
  bool exported = false;                   // what the header declares is visible outside of a shared object, too
};

// A C identifier made from any text: "resnet18.C2" gives "resnet18_C2".
std::string identifier(std::string_view text);

enum class LibraryFormat { library, object };

// File names and contents: NAME.h, NAME.json, graft_parallel.h, and libNAME.a, NAME.pc, NAMEConfig.cmake (library) or
// NAME.o (object). UserError for names that are not C identifiers, mean something else in C or C++, or occur twice,
// for variants of one function that store their parameters differently, and for platforms that no code can choose from.
std::map<std::string, std::string> library_files(const Library& library, LibraryFormat format);

}  // namespace graft::codegen
