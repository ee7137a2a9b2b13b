// Kernels as a library that others link: C functions around machine code, a header, and files for pkg-config and CMake.
// The code is freestanding: no libc, no libm, no allocation, nothing undefined. For a function F with parameters A, B,
// C in the order of the workload's text:
//
//   void F_prepare(const float* B, void* workspace);                    // constants; only if a kernel prepares
//   void F(const float* A, const float* B, float* C, void* workspace);  // on the calling thread alone
//   void F_parallel(A, B, C, workspace, graft_parallel_for, context);   // only if a kernel has parallel loops
//   long long F_select(A, B, C, workspace, budget_ns, parallel_for, context);  // only with several variants
//
// Constants that are part of the library are not parameters; then there is nothing to prepare. A tensor whose name
// means something else in C or C++, or in the header, has another one as parameter (`int` is int_), which the comment
// says.
//
// Pointers and workspace are aligned to 64 bytes; a workspace has F_WORKSPACE_BYTES, is prepared once, and is used by
// one call at a time. For one operator in several shapes, NAME_OPERATOR_for(extents...) returns the function of a
// shape, or a null pointer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/compile.h"

namespace graft::codegen {

struct LibraryVariant {
  Object object;            // its symbol differs from those of all others
  bool prepares = false;    // its program has a part that prepares
  std::string description;  // lines for the header: the schedule, its time and its check
  // The contents of the object's constant parameters, in their order and as stored; "" for one that its code does not
  // read. Empty: the caller passes the constants. All variants of a function must agree in this.
  std::vector<std::string> constants = {};
};

struct LibraryFunction {
  std::string name;  // a C identifier
  Workload workload;
  std::vector<LibraryVariant> variants;  // at least one; the first one runs until F_select has chosen
};

struct Library {
  std::string name;  // a C identifier
  std::string platform;
  Target target;
  std::vector<LibraryFunction> functions;  // at least one
};

// A C identifier made from any text: "resnet18.C2" gives "resnet18_C2".
std::string identifier(std::string_view text);

enum class LibraryFormat { library, object };

// File names and contents: NAME.h, graft_parallel.h, and libNAME.a, NAME.pc, NAMEConfig.cmake (library) or NAME.o
// (object). UserError for names that are not C identifiers, mean something else in C or C++, or occur twice, and for
// variants of one function that store their parameters differently.
std::map<std::string, std::string> library_files(const Library& library, LibraryFormat format);

}  // namespace graft::codegen
