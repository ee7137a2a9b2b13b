// What commands that take a network have in common.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "study/flows/network.h"

namespace graft::cli {

// Whether an argument means a network: the name of an ONNX file.
bool names_network(const std::string& argument);

// Flags that say what a file leaves open.
struct NetworkFlags {
  std::vector<std::string> shape, constant;
  std::string storage = "f32";

  void declare(Options& options);
  // UserError naming the flag.
  study::NetworkOptions options() const;
  void refuse_for_others() const;  // if one is given for what is not a network
};

}  // namespace graft::cli
