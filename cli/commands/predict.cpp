#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/network_flags.h"
#include "cli/print/predicted_network.h"
#include "cli/setting_flags.h"
#include "study/flows/predict_network.h"
#include "study/inputs/settings.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string network, platform = "native";
  study::PredictNetworkRequest request;  // what flags set directly
};

int predict(const Flags& flags, Session& session) {
  if (!names_network(flags.network))
    throw base::UserError(flags.network, "is not an ONNX file (its name ends in .onnx)");
  study::PredictNetworkRequest request = flags.request;
  request.model = flags.network;
  request.platform = tasks::platform_named(flags.platform);
  request.seed = session.seed;
  const study::PredictedNetwork result = study::predict_network(request);
  session.output.add(study::to_document(result));
  print(result, session.output);
  return done;
}

}  // namespace

Command predict_command() {
  return {.name = "predict",
          .help = "how long a network would take on a platform, from kernels measured there; runs nothing",
          .examples = {"graft predict resnet18.onnx --from runs/resnet18",
                       "graft predict resnet18.onnx --platform model:sifive-p450"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positional("MODEL", flags->network, "ONNX file: a network");
            options.text("platform", flags->platform, "id or YAML file (graft platform list)");
            declare(options, study::settings_of(flags->request));
            return [flags](Session& session) { return predict(*flags, session); };
          }};
}

}  // namespace graft::cli
