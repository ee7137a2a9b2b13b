// A network as a program, for people.
#pragma once

#include <map>
#include <string>

#include "cli/output.h"
#include "study/flows/compile_network.h"

namespace graft::cli {

void print(const study::CompiledNetwork& made, Output& out);
base::Document to_document(const study::CompiledNetwork& made);

// The worst call, and by output the largest error.
void print(const study::NetworkCheck& check, Output& out);
base::Document to_document(const study::NetworkCheck& check);

// The time of a run, of its repetitions.
void print_time(const study::NetworkRun& run, Output& out);

// What was written, and how large it is.
void print_files(const std::string& platform, const std::map<std::string, std::string>& files,
                 const std::string& folder, Output& out);

}  // namespace graft::cli
