// Private to this folder: the text of a library's files for C, pkg-config and CMake.
#pragma once

#include <string>

#include "codegen/machine/interface.h"

namespace graft::codegen {

std::string header_text(const Interface& interface);  // NAME.h
std::string parallel_header_text();                   // graft_parallel.h
std::string pkg_config_text(const Interface& interface);
std::string cmake_config_text(const Interface& interface, const std::string& code);  // `code`: the archive's name

}  // namespace graft::codegen
