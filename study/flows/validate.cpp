#include "study/flows/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/shortened.h"
#include "codegen/schedule/candidate_program.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "study/flows/rounds.h"
#include "study/flows/search_session.h"
#include "study/flows/settings.h"
#include "study/inputs/field_error.h"
#include "tasks/modelled/modelled.h"
#include "tasks/modelled/twin.h"

namespace graft::study {
namespace {

Request identity_of(const ValidateRequest& request, const tasks::Platform& platform, std::string_view part) {
  base::Document names = base::Document::list();
  for (const codegen::Workload& workload : request.workloads) names.push(workload.text());
  Request identity(fmt::format("platform validate, {}", part));
  identity.set("platform", platform.name)
      .set("platform_hash", platform_hash(platform))
      .set("workloads", std::move(names))
      .set("seed", std::int64_t(request.seed));
  put_settings(request.space, identity.fields());
  return identity;
}

// Measures programs not recorded yet; nullopt if stopped.
std::optional<Pass> measure(const ValidateRequest& request, const tasks::Platform& platform,
                            const codegen::Space& space, tasks::Measurer& measurer, search::RunDirectory& run,
                            base::Monitor& monitor) {
  search::TuningSettings settings;
  settings.explorer = "random";
  settings.trials = request.samples;
  settings.batch = int(std::min<std::int64_t>(request.samples, 64));
  settings.seed = base::hash_combine(request.seed, codegen::hash(space.workload()));
  settings.threads = request.threads;
  SearchSession session(space, {platform, measurer, run});
  session.begin(settings);
  if (!session.run(request.samples, monitor)) return std::nullopt;
  (void)session.best();
  Pass pass;  // other schedules of the same program say nothing new
  for (const datasets::Trial& trial : session.tuning().trials())
    if (trial.measurement.status == datasets::Status::ok) pass.emplace(trial.program_hash, trial);
  return pass;
}

double fastest_of(const std::vector<Pass>& passes, std::uint64_t program, std::size_t first, std::size_t step) {
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t p = first; p < passes.size(); p += step)
    fastest = std::min(fastest, datasets::seconds_of(passes[p].at(program).measurement));
  return fastest;
}

// Models programs not recorded yet; false if stopped. UserError if the model lacks an opcode.
bool model(const tasks::Platform& twin, int threads, search::RunDirectory& run, Comparison& comparison,
           base::Monitor& monitor) {
  const std::size_t count = comparison.candidates.size();
  comparison.modelled.assign(count, 0);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < count; ++i) {
    const datasets::Trial* known = run.recorded(codegen::hash(comparison.candidates[i]));
    if (known != nullptr)
      comparison.modelled[i] = datasets::seconds_of(known->measurement);
    else
      missing.push_back(i);
  }
  constexpr std::size_t block = 16;  // between two reports
  for (std::size_t begin = 0; begin < missing.size(); begin += block) {
    if (monitor.stop_requested()) return false;
    monitor.progress("modelling " + comparison.workload, std::int64_t(begin), std::int64_t(missing.size()));
    const std::size_t size = std::min(block, missing.size() - begin);
    std::vector<std::uint64_t> hashes(size);
    std::vector<base::Result<tasks::ModelledTime>> times(size, base::Reason{});
    base::parallel_for(std::int64_t(size), threads, monitor, [&](std::int64_t i) {
      const codegen::LoopProgram program =
          *codegen::program(comparison.candidates[missing[begin + std::size_t(i)]], twin.target);
      hashes[std::size_t(i)] = codegen::hash(program);
      times[std::size_t(i)] = tasks::modelled_time(program, twin);
    });
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = missing[begin + i];
      if (!times[i])
        throw base::Failure(fmt::format("{}: {}", base::shortened(comparison.workload), times[i].reason().text));
      if (!times[i]->unsupported.empty())
        throw FieldError("profile", fmt::format("LLVM's model of the core of {} lacks {}; give another one", twin.name,
                                                times[i]->unsupported.begin()->first));
      datasets::Trial trial{0, comparison.candidates[at], hashes[i],
                            tasks::without_times(datasets::Status::ok, "", "modelled")};
      trial.measurement.seconds = {times[i]->seconds};
      run.append(trial);
      comparison.modelled[at] = times[i]->seconds;
    }
  }
  return true;
}

// A platform with its counterpart.
struct Pair {
  tasks::Platform platform, twin;
  std::vector<codegen::Space> spaces;  // by workload
};

// Refuses before there is a folder.
std::vector<Pair> pairs_of(const ValidateRequest& request) {
  std::vector<Pair> pairs;
  for (const tasks::Platform& platform : request.platforms) {
    pairs.push_back({platform, tasks::twin_of(platform, request.profile), {}});
    tasks::geometry_of(pairs.back().twin);
    for (const codegen::Workload& workload : request.workloads)
      pairs.back().spaces.push_back(space_of(request.space, workload, platform.target));
  }
  return pairs;
}

// The passes of each workload; nothing when stopped. All workloads, and then all again: what disturbs a shared machine
// for a while disturbs one pass of a workload.
std::optional<std::vector<std::vector<Pass>>> measured_passes(const ValidateRequest& request, const Pair& pair,
                                                              const std::filesystem::path& folder,
                                                              base::Monitor& monitor) {
  Request identity = identity_of(request, pair.platform, "measured");
  put_settings(request.timing, identity.fields());
  std::vector<std::vector<Pass>> passes(request.workloads.size());
  for (std::int64_t pass = 1; pass <= request.passes; ++pass) {
    search::RunDirectory run(folder / fmt::format("measured.{}", pass), identity.document(),
                             context_of(request.command_line), pair.platform.yaml);
    // One measures nothing twice.
    const auto measurer = tasks::make_measurer(pair.platform, request.timing.settings(0, request.threads));
    for (std::size_t w = 0; w < passes.size(); ++w) {
      auto measured = measure(request, pair.platform, pair.spaces[w], *measurer, run, monitor);
      if (!measured) return std::nullopt;
      passes[w].push_back(std::move(*measured));
    }
  }
  return passes;
}

base::Document row_of(const Comparison& one) {
  const Agreement& a = one.agreement;
  base::Document row = base::Document::map();
  row.set("platform", one.platform)
      .set("workload", one.workload)
      .set("programs", a.programs)
      .set("spread", a.spread)
      .set("spearman", a.spearman)
      .set("kendall", a.kendall)
      .set("spearman_of_best_30_percent", a.spearman_of_best)
      .set("top1_regret", a.top1_regret)
      .set("top5_regret", a.top5_regret)
      .set("rms_log_ratio", a.rms);
  if (one.repeated)
    row.set("repeated_spearman", one.repeated->spearman)
        .set("repeated_spearman_of_best_30_percent", one.repeated->spearman_of_best);
  return row;
}

}  // namespace

Comparison comparison_of(const std::string& platform, const std::string& workload, const std::vector<Pass>& passes) {
  Comparison one{platform, workload, {}, {}, {}, {}, {}};
  std::vector<double> odd, even;
  for (const auto& [program, trial] : passes.front()) {
    if (!std::all_of(passes.begin(), passes.end(),
                     [&, &program = program](const Pass& pass) { return pass.contains(program); }))
      continue;
    one.candidates.push_back(trial.candidate);
    one.measured.push_back(fastest_of(passes, program, 0, 1));
    odd.push_back(fastest_of(passes, program, 0, 2));
    if (passes.size() > 1) even.push_back(fastest_of(passes, program, 1, 2));
  }
  if (passes.size() > 1) one.repeated = agreement(odd, even);
  return one;
}

ValidateResult validate(const ValidateRequest& request, base::Monitor& monitor) {
  check_settings(request);
  const std::vector<Pair> pairs = pairs_of(request);
  ValidateResult result;
  result.profile = pairs.front().twin.description;
  for (const Pair& pair : pairs) {
    const std::filesystem::path folder = request.out / short_name(pair.platform.name);
    std::filesystem::create_directories(folder);
    search::RunDirectory modelled(folder / "modelled", identity_of(request, pair.twin, "modelled").document(),
                                  context_of(request.command_line), pair.twin.yaml);
    const auto passes = measured_passes(request, pair, folder, monitor);
    if (!passes) return result;
    for (std::size_t w = 0; w < passes->size(); ++w) {
      Comparison one = comparison_of(pair.platform.name, request.workloads[w].text(), (*passes)[w]);
      if (!model(pair.twin, request.threads, modelled, one, monitor)) return result;
      one.agreement = agreement(one.modelled, one.measured);
      result.comparisons.push_back(std::move(one));
    }
  }
  result.complete = true;
  return result;
}

base::Document to_document(const std::vector<Comparison>& comparisons) {
  base::Document rows = base::Document::list();
  for (const Comparison& one : comparisons) rows.push(row_of(one));
  return rows;
}

}  // namespace graft::study
