// What commands that take a network have in common.
#pragma once

#include <string>

#include "cli/command.h"
#include "study/flows/network.h"

namespace graft::cli {

// Whether an argument means a network: the name of an ONNX file.
bool names_network(const std::string& argument);

// Flags that say what a file leaves open.
void declare(Options& options, study::NetworkOptions& network);
// The same, and how often each of several shapes is run.
void declare(Options& options, study::NetworkRequest& network);
// UserError if one is given for what is not a network.
void refuse_for_others(study::NetworkOptions network);
void refuse_for_others(const study::NetworkRequest& network);

// How long a search runs, of a single workload, too: --effort, --trials and --stop-after.
void declare_effort(Options& options, study::NetworkRequest& network);

}  // namespace graft::cli
