#include "bench/tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "search/run_directory.h"
#include "study/knowledge/answer.h"

namespace graft::bench {

std::vector<Tuned> tuned_kernels(const std::filesystem::path& run, std::int64_t most) {
  search::RunContent content = search::read_run(run);
  const tasks::Platform platform = search::platform_of(content);
  if (!platform.device->is_this_host()) {
    throw base::UserError(run.string(),
                          fmt::format("{} is not this machine; bench takes runs of native platforms", platform.name));
  }
  std::vector<datasets::Trial>& trials = content.journal.trials;
  if (most > 0) content.builds.clear();
  if (most > 0 && std::int64_t(trials.size()) > most) trials.resize(std::size_t(most));
  std::vector<Tuned> found;
  for (const datasets::Trial& trial : trials) {
    const codegen::Workload& workload = trial.candidate.workload;
    const auto known =
        std::find_if(found.begin(), found.end(), [&](const Tuned& best) { return best.workload == workload; });
    if (known != found.end()) {
      ++known->trials;
    } else {
      found.push_back({run.string(), platform, workload, {}, "", 1});
    }
  }
  std::erase_if(found, [&](Tuned& best) {
    auto answer = study::answer_of(content, best.workload);
    if (!answer) return true;
    best.trial = {answer->trial, std::move(answer->candidate), answer->program_hash, std::move(answer->measurement)};
    best.pipeline = std::move(answer->pipeline);
    return false;
  });
  if (found.empty()) throw base::UserError(run.string(), "no trial of this run is ok; tune again");
  return found;
}

}  // namespace graft::bench
