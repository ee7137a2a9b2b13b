#include "study/flows/validate.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/print/validated.h"
#include "cli/setting_flags.h"
#include "study/flows/settings.h"

namespace graft::cli {
namespace {

// One of each kind of operator, and matmuls with and without power-of-two conflicts of the second cache.
const std::vector<std::string> usual_workloads = {"matmul(m=256,n=256,k=256)",
                                                  "matmul(m=512,n=512,k=512)",
                                                  "conv2d(n=1,c=32,h=64,w=64,k=32,r=3,s=3,stride=1,pad=1)",
                                                  "resnet18.C6",
                                                  "depthwise_conv2d(n=1,c=64,h=56,w=56,r=3,s=3,stride=1,pad=1)",
                                                  "batch_matmul(b=12,m=128,n=128,k=64)"};

struct Flags {
  std::vector<std::string> platforms{"native:v3"}, workloads = usual_workloads;
  std::string out;
  std::int64_t threads = 1;
  study::ValidateRequest request;  // what flags set directly
};

study::ValidateRequest request_of(const Flags& flags, const Session& session) {
  study::ValidateRequest request = flags.request;
  request.workloads = study::workloads_of(flags.workloads);
  for (const std::string& name : flags.platforms) {
    request.platforms.push_back(
        tasks::platform_named(flags.threads > 1 ? fmt::format("{},threads={}", name, flags.threads) : name));
  }
  request.seed = session.seed;
  request.threads = session.threads;
  request.out = flags.out;
  request.command_line = session.command_line;
  return request;
}

int validate(const Flags& flags, Session& session) {
  const study::ValidateRequest request = request_of(flags, session);
  const study::ValidateResult result = study::validate(request, session.progress);
  if (!result.complete) {
    session.progress.note(interruption);
    return interrupted;
  }
  session.output.table(table_of(result.comparisons));
  const std::filesystem::path page = request.out / "validation.html";
  const base::Document context = study::context_of(session.command_line);
  base::replace_file(page, validation_page(result, request, context));
  session.output.line(page.string());
  session.output.json()
      .set("rows", study::to_document(result.comparisons))
      .set("samples", request.samples)
      .set("seed", std::int64_t(session.seed))
      .set("context", context)
      .set("page", page.string());
  return done;
}

}  // namespace

Command platform_validate_command() {
  return {.name = "platform validate",
          .help = "compare modelled times with measured ones on this host",
          .examples = {"graft platform validate --platform native:v2,native:v3,native:v4 --out runs/validation",
                       "graft platform validate --space examples/nests.space --workloads 'matmul(m=256,n=256,k=256)' "
                       "--out runs/nests"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.list("platform", flags->platforms, "native platforms: the code that is measured and modelled");
            options.list("workloads", flags->workloads, "what to compare on");
            options.integer("threads", flags->threads, 1, "threads of the kernels");
            options.text("out", flags->out, "folder for what was measured, and the page", Options::required);
            declare(options, study::settings_of(flags->request));
            return [flags](Session& session) { return validate(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
