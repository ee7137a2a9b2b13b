// Private to this folder: names that mean something else in C, in C++ or in headers that C programs include. Headers of
// libraries must compile whatever a user calls tensors and functions.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace graft::codegen {

// A keyword of C (to C23) or C++ (to C++23), or a macro that compilers or common headers define: `restrict`, `linux`.
bool is_c_word(std::string_view name);
// A function of C's library that programs and compilers know: `exp`.
bool is_c_function(std::string_view name);
// NAME.h is a header of C: `math`.
bool is_c_header(std::string_view name);

bool is_c_identifier(std::string_view text);
std::string upper_case(std::string text);  // of ASCII, as macros have it
// UserError for a library's name that is not an identifier, or whose NAME.h would be a header of C. `field`: of the
// caller's value.
void check_header_name(std::string_view field, const std::string& name);

// Distinct names for one scope.
class CNames {
 public:
  // What must not be taken.
  void reserve(std::string name) { taken_.insert(std::move(name)); }
  bool is_taken(const std::string& name) const { return taken_.contains(name); }
  // `wanted` itself if it is free, else with an underscore (int_), else with a number (int_2).
  std::string take(const std::string& wanted);

 private:
  std::set<std::string> taken_;
};

}  // namespace graft::codegen
