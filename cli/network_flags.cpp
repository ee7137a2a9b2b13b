#include "cli/network_flags.h"

#include "base/error.h"
#include "cli/setting_flags.h"
#include "study/flows/settings.h"

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

void refuse_for_others(const study::NetworkRequest& network) {
  refuse_for_others(network.options);
  if (!network.use.empty()) throw base::UserError("--use", "goes with an ONNX file");
}

void declare(Options& options, study::NetworkRequest& network) {
  declare(options, network.options);
  for (const study::Setting& setting : study::settings_of(network))
    if (setting.key == "use") declare(options, {setting});
}

void declare_effort(Options& options, study::NetworkRequest& network) {
  options.integer("trials", network.trials, 1, "candidates to measure in total; default: by --effort");
  options.text("effort", network.effort,
               "quick: 64 trials, ends after 32 without a gain; normal: 256 trials; thorough: 1024, ends after "
               "256 without a gain; of a network 12, 64 and 256 for each kernel on average");
  options.integer("stop-after", network.each.stop_after, 0,
                  "ends after this number of trials in a row without a gain of 1 %; 0: as --effort says");
}

}  // namespace graft::cli
