// Private to this folder: the text of a library's files for C, pkg-config and CMake.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/machine/interface.h"

namespace graft::codegen {

// What the header of a sequence (sequence.h) says.
struct SequenceInterface {
  std::string name, platform, graft;
  std::vector<std::string> needs;
  std::string runs_here;
  std::string guard, arena_macro, weights_macro;
  std::vector<Interface::Tensor> tensors;  // inputs, then outputs; of the first shape
  // For sequences of several shapes: what each has, and the function that finds one.
  struct Shape {
    std::vector<std::int64_t> extents;
    std::vector<Interface::Tensor> tensors;
  };
  std::vector<std::string> extents;  // their names: any text
  std::vector<Shape> shapes;
  std::string fit;
  Interface::Call run;
  std::int64_t calls = 0, arena_bytes = 0, weights_bytes = 0;  // calls: of all shapes
  std::string weights_file;                                    // "": there are none, or they are part of the code

  bool weights_are_in_code() const { return weights_bytes > 0 && weights_file.empty(); }
};

// UserError for what library_files (library.h) refuses of a library and of its names.
void check(const Library& library);
void check(const Interface& interface);

// LLVM's text of the block `shapeN`: goes on at `foundN` if the arguments %e0, %e1, ... compare with these extents so
// ("eq": are equal to them, "sle": are at most them), else at `shapeN+1`.
std::string shape_branch_text(std::size_t number, const std::vector<std::int64_t>& extents, const std::string& how);

// "float", "int32_t": the element's C++ type, which C knows without its namespace.
// Numbers of 16 bits are integers, whose bits they are: C has no types for them that all compilers know.
std::string_view c_type(DType type);

std::string header_text(const Interface& interface);  // NAME.h
std::string header_text(const SequenceInterface& interface);
std::string parallel_header_text();  // graft_parallel.h
std::string pool_header_text();      // graft_pool.h, of codegen/deployed
std::string foreign_code_text();     // graft_foreign.c, of codegen/deployed, as LLVM's code for any target
std::string pool_source_text();      // graft_pool.c
std::string opencl_header_text();    // graft_opencl.h, of codegen/deployed

// The files for C of a library or a sequence that may use that many threads; `name`: the header's.
void add_headers(const std::string& name, std::string header, std::int64_t threads,
                 std::map<std::string, std::string>& files);
std::string pkg_config_text(const std::string& name, const std::string& platform);
// `code`: the archive's name.
std::string cmake_config_text(const std::string& name, const std::string& code, std::int64_t threads);

}  // namespace graft::codegen
