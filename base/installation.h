// Where graft's own files are: found from the program, or from the shared library, that this code is part of. A build
// folder has the layout of an installation, so that nothing asks which of the two it is, and either may be moved:
//
//   bin/          programs, among them the worker that runs candidates
//   lib/          the library; lib/graft/ what qemu loads
//   share/graft/  platforms and models
#pragma once

#include <filesystem>
#include <string>

namespace graft::base {

// The prefix of the program or shared library that contains this code.
std::filesystem::path own_folder();
// A program or module of this name, there or in ../bin as seen from there. Throws Failure with the remedy when it is in
// neither.
std::filesystem::path own_program(const std::string& name);
// share/graft; may be missing.
std::filesystem::path share_folder();

}  // namespace graft::base
