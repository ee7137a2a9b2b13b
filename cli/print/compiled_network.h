// A network as a program, for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/output.h"
#include "graph/rounding.h"
#include "study/flows/compile_network.h"

namespace graft::cli {

void print(const study::CompiledNetwork& made, Output& out);
base::Document to_document(const study::CompiledNetwork& made);

// By output: the largest error, and what rounding explains.
void print_errors(const std::vector<graph::OutputError>& errors, Output& out);
base::Document to_document(const std::vector<graph::OutputError>& errors);

// What was written, and how large it is.
void print_files(const std::string& platform, const std::map<std::string, std::string>& files,
                 const std::string& folder, Output& out);

}  // namespace graft::cli
