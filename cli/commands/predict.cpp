#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/network_flags.h"
#include "cli/print/predicted_network.h"
#include "cli/setting_flags.h"
#include "study/flows/network_shapes.h"
#include "study/flows/predict_network.h"
#include "study/flows/settings.h"

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
  const std::vector<graph::Shapes> shapes = graph::each_shape(request.model, request.options.shapes);
  if (shapes.size() == 1) {
    const study::PredictedNetwork result = study::predict_network(request);
    session.output.add(study::to_document(result));
    print(result, session.output);
    return done;
  }
  const study::Extents extents = study::extents_of(shapes);
  base::Document all = base::Document::list();
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    request.options.shapes = shapes[s];
    const study::PredictedNetwork result = study::predict_network(request);
    const std::string shape = study::to_text(extents.names, extents.by_shape[s]);
    session.output.line(fmt::format("{}{}:", s == 0 ? "" : "\n", shape));
    print(result, session.output);
    all.push(study::to_document(result).set("shape", shape));
  }
  session.output.json().set("shapes", std::move(all));
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
