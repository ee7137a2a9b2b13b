#include "study/flows/adapt.h"

#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.h"
#include "cli/setting_flags.h"
#include "cli/texts.h"
#include "study/flows/settings.h"
#include "study/inputs/field_error.h"
#include "study/knowledge/prior.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string model, platform, out;
  std::vector<std::string> workloads;
  study::AdaptRequest request;  // what flags set directly
};

study::AdaptRequest request_of(const Flags& flags, const Session& session) {
  study::AdaptRequest request = flags.request;
  request.model = flags.model;
  if (request.from.empty()) {
    request.platform = tasks::platform_named(flags.platform.empty() ? "native" : flags.platform);
  } else if (!flags.platform.empty()) {
    throw study::FieldError("platform, from", "the runs say on which platform they measured; leave `platform` out");
  }
  request.workloads = study::workloads_of(flags.workloads);
  request.seed = session.seed;
  request.threads = session.threads;
  request.out = flags.out;
  request.command_line = session.command_line;
  return request;
}

void print(const study::AdaptResult& result, const std::string& prior, Output& out) {
  const auto text = [](const std::optional<base::Interval>& quality) {
    return quality ? interval_text(*quality) : "-";
  };
  Table table({"workload", "programs", "zero-shot spearman", "adapted, cross-validated"});
  for (const study::AdaptResult::Row& row : result.rows) {
    table.row({row.workload, std::to_string(row.programs), text(row.zero_shot), text(row.cross_validated)});
  }
  out.line(fmt::format("{}: {} adapted to {} with {} {} ({})", result.out.string(), prior, result.platform,
                       result.measurements, result.source == "modelled" ? "modelled times" : "measurements",
                       result.shots > 0 ? fmt::format("{} a workload", result.shots) : "of searches"));
  out.line(study::verdict_of(result) + "\n");
  out.table(table);
}

int adapt(const Flags& flags, Session& session) {
  const study::AdaptResult result = study::adapt(request_of(flags, session), session.progress);
  session.output.add(study::to_document(result));
  print(result, flags.model.empty() ? study::shipped_model_name : flags.model, session.output);
  return done;
}

}  // namespace

Command adapt_command() {
  return {.name = "adapt",
          .help = "adapt a model to a platform with a few measurements there",
          .examples = {"graft adapt model.h5 --platform native --workloads 'matmul(m=512,n=512,k=512),resnet18.C2' "
                       "--shots 20 --out here.h5",
                       "graft adapt --from runs/a,runs/b --out here.h5"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positional("MODEL.h5", flags->model, "from graft train; default: graft's own, models/base.h5",
                               Options::optional);
            options.text("platform", flags->platform,
                         "id or YAML file (graft platform list); default: native, or that of --from");
            options.list("workloads", flags->workloads, "what to measure");
            options.text("out", flags->out, "adapted model to write", Options::required);
            declare(options, study::settings_of(flags->request));
            return [flags](Session& session) { return adapt(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
