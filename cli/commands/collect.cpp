#include "study/flows/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/print/collected.h"
#include "cli/setting_flags.h"
#include "study/flows/settings.h"
#include "study/inputs/data.h"
#include "study/inputs/output.h"

namespace graft::cli {
namespace {

struct Flags {
  std::vector<std::string> workloads, checked, platforms = {"native"};
  std::string out;
  study::CollectRequest request;  // what flags set directly
};

void check(const Flags& flags) {
  if (flags.request.programs.empty() && flags.workloads.empty())
    throw base::UserError("WORKLOAD", "nothing to collect; name workloads, or --programs");
  study::check(flags.request);
}

// One dataset: --out. Of several platforms one each, named for it, in the folder --out.
std::filesystem::path dataset_of(const tasks::Platform& platform, const Flags& flags) {
  if (flags.platforms.size() == 1) return flags.out;
  return std::filesystem::path(flags.out) / study::dataset_file_name(platform.name);
}

// One request for each platform.
std::vector<study::CollectRequest> requests_of(const Flags& flags, const Session& session) {
  std::vector<study::CollectRequest> requests;
  for (const std::string& name : flags.platforms) {
    study::CollectRequest request = flags.request;
    request.platform = tasks::platform_named(name);
    if (std::any_of(requests.begin(), requests.end(),
                    [&](const auto& other) { return other.platform.name == request.platform.name; }))
      throw base::UserError("--platform", fmt::format("{} is given twice", request.platform.name));
    request.out = dataset_of(request.platform, flags);
    request.seed = session.seed;
    request.threads = session.threads;
    request.command_line = session.command_line;
    requests.push_back(std::move(request));
  }
  return requests;
}

int collect(const Flags& flags, Session& session) {
  check(flags);
  std::vector<study::CollectRequest> requests = requests_of(flags, session);
  if (requests.size() > 1) make_output_folder(flags.out);
  for (const study::CollectRequest& request : requests) {
    if (session.team.rank() == 0) study::check_output("out", request.out, study::Writes::collected_dataset);
    study::check_ranks(request.platform, session.team, session.progress);
  }
  const study::Pool pool(study::read_datasets(flags.request.programs, session.progress));
  const std::vector<codegen::Workload> workloads =
      flags.workloads.empty() ? pool.workloads() : study::workloads_of(flags.workloads);
  if (workloads.empty()) throw base::UserError("--programs", "no program in them is ok");
  tasks::Shared shared;  // what modelled platforms need not run here again
  if (!flags.checked.empty())
    shared.host_checks = study::host_checks_of(study::read_datasets(flags.checked, session.progress),
                                               flags.request.timing.settings(0, session.threads));
  base::Document datasets = base::Document::list();
  bool complete = true;
  for (study::CollectRequest& request : requests) {
    if (!complete) break;
    request.workloads = workloads;
    const study::CollectResult result = study::collect(request, pool, shared, session.team, session.progress);
    complete = result.complete;
    datasets.push(study::to_document(request, result));
    print_collected(request, result, session.output);
  }
  if (requests.size() > 1) {
    session.output.json().set("datasets", std::move(datasets)).set("complete", complete);
  } else {
    session.output.add(datasets.as_list().front());
  }
  if (!complete) session.progress.note(interruption);
  return complete ? done : interrupted;
}

}  // namespace

Command collect_command() {
  return {.name = "collect",
          .help = "measure sampled schedules of workloads on a platform into a dataset",
          .examples =
              {"graft collect 'matmul(m=512,n=512,k=512)' resnet18.C2 --platform native:v3 --samples 300 --out v3.h5",
               "graft collect suite:shipped --platform model:sifive-p450 --samples 420 --out p450.h5",
               "graft collect suite:shipped --platform model:cortex-a53,model:cortex-a72 --samples 420 --out data",
               "graft collect --programs v3.h5 --platform native:v4 --out common-v4.h5",
               "mpirun --hostfile HOSTS --map-by node --bind-to none graft collect suite:resnet18 --out r18.h5"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positionals("WORKLOAD", flags->workloads,
                                "operators with their shapes, index expressions, or suite:NAME (resnet18, shipped); "
                                "with --programs: which of theirs (default: all)",
                                Options::optional);
            options.list("platform", flags->platforms,
                         "ids or YAML files (graft platform list), measured in this order; modelled platforms share "
                         "checks of equal programs and simulations of equal caches");
            options.list("checked", flags->checked,
                         "datasets whose programs were already checked when they were measured, such as native ones; "
                         "modelled platforms then do not run these programs on this host again");
            options.text("out", flags->out,
                         "dataset to write (HDF5), or with several platforms a folder of datasets; the journal is in "
                         "<out>.run (if that is missing, an existing dataset counts as what was measured)",
                         Options::required);
            declare(options, study::settings_of(flags->request));
            return [flags](Session& session) { return collect(*flags, session); };
          },
          .stops = true,
          .shares = true};
}

}  // namespace graft::cli
