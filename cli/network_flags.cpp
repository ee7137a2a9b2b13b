#include "cli/network_flags.h"

#include "cli/setting_flags.h"
#include "study/inputs/settings.h"

namespace graft::cli {

bool names_network(const std::string& argument) {
  return argument.ends_with(".onnx");
}

void declare(Options& options, study::NetworkOptions& network) {
  declare(options, study::settings_of(network, {}));
}

void refuse_for_others(study::NetworkOptions network) {
  refuse_given(study::settings_of(network, {}), "an ONNX file");
}

}  // namespace graft::cli
