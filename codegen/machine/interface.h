// What callers of a library (library.h) must know, as one value: functions, their tensors and memory, how they are
// called, and where each comes from. The C header, the file for CMake and NAME.json are written from it, and the
// functions themselves are made as it says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"

namespace graft::codegen {

struct Library;

struct Interface {
  struct Tensor {
    std::string name;      // in the workload
    std::string argument;  // its name in C; "": not passed, its content is part of the library
    Role role = Role::input;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;   // in the workload
    std::vector<std::int64_t> stored;  // extents in memory, row-major
    Layout layout;                     // how `stored` holds `shape`
    bool only_prepared = false;  // read by `prepare` alone: its pointer may be null elsewhere, but not in `select`
    std::string declared = {};   // Sequence::Tensor
    int overwrites = -1;         // the same
    bool is_passed() const { return !argument.empty(); }
    std::int64_t bytes() const;  // in memory
  };

  struct Argument {
    enum class Kind { tensor, prepared, scratch, budget_ns, parallel_for, context, weights, arena, extent };
    Kind kind = Kind::tensor;
    int tensor = -1;        // position in Function::tensors
    std::string name = {};  // in C, of an extent
  };
  struct Call {
    std::string symbol;
    std::vector<Argument> arguments;
  };

  struct Variant {
    std::vector<std::string> schedule;
    std::string pipeline;
    double seconds = 0;            // as its run measured it
    std::string check, unchecked;  // "host", "qemu", "remote", or "none" and why
    int platform = 0;              // position in Interface::platforms
  };

  struct Function {
    std::string name, workload;   // C names begin with the library's, and go on with this one
    std::vector<Tensor> tensors;  // in the order of the workload; those that are passed are so in this order
    // Memory, aligned to 64 bytes. `prepare` fills the prepared one from the constants, once; the calls only read it.
    // Scratch is for one call at a time and need not keep its content; `prepare` needs another size than the calls, and
    // `select`, which does both, the larger one.
    std::int64_t prepared_bytes = 0, prepare_scratch_bytes = 0, scratch_bytes = 0;
    std::string prepared_macro, prepare_scratch_macro, scratch_macro;  // of the header
    std::int64_t threads = 1;                                          // that `parallel` may use
    std::optional<Call> prepare;                                       // where prepared_bytes > 0
    Call run;                                                          // on the calling thread
    std::optional<Call> parallel, select;  // where a variant has parallel loops; where there are several variants
    std::vector<Variant> variants;
  };

  // The functions of one operator by its extents. They have one type, which has both kinds of memory.
  struct Shapes {
    std::string name;                    // "conv2d", or "conv2d_f64": all but f32 say their type
    std::vector<std::string> extents;    // "n", "c", ..., in the order of the workload's text
    std::vector<std::string> arguments;  // their names in C
    std::string symbol, type;            // of the function that finds a shape, of what it returns
    struct Entry {
      int function = 0;  // position in Interface::functions
      std::vector<std::int64_t> extents;
    };
    std::vector<Entry> entries;
  };

  struct Platform {
    std::string name;
    Target target;
    std::vector<std::string> needs;  // needs.h
  };

  std::string name;
  std::string graft;  // its version
  std::vector<Platform> platforms;
  std::string guard;                    // of the header
  std::string runs_here, use_platform;  // functions of the library; "": there is one platform
  std::vector<Function> functions;
  std::vector<Shapes> shapes;  // in order of first occurrence; index expressions do not name extents: they are in none

  // What the header declares at file scope, macros aside; a name may occur twice.
  std::vector<std::string> names() const;
  std::string platform_names() const;  // "native:v3, native:v4"
};

Interface interface_of(const Library& library);

std::string_view name_of(Interface::Argument::Kind kind);  // in documents
base::Document to_document(const std::vector<std::int64_t>& numbers);
base::Document to_document(const std::vector<std::string>& texts);

base::Document to_document(const Interface::Tensor& tensor);

// The content of NAME.json: docs/reference/library-json.md. `code`: the name of the file with the functions.
base::Document to_document(const Interface& interface, const std::string& code);

}  // namespace graft::codegen
