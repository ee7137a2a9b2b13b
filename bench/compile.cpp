#include "bench/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/statistics.h"
#include "bench/tuned.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/link.h"
#include "codegen/schedule/space.h"
#include "search/programs.h"
#include "tasks/platform.h"

namespace graft::bench {
namespace {

using namespace codegen;

constexpr std::array phase_names{"lower", "emit", "optimise", "generate", "inspect", "link", "all"};
using Phases = std::array<double, phase_names.size()>;

// Nothing for a candidate that is refused on the way. Without linking for a platform whose code this machine cannot
// load.
std::optional<Phases> compile_once(const Candidate& candidate, const tasks::Platform& platform,
                                   const Pipeline& pipeline) {
  const double begin = base::thread_seconds();
  const base::Result<LoopProgram> program = codegen::program(candidate, platform.target);
  if (!program) return std::nullopt;
  const double lowered = base::thread_seconds();
  PhaseSeconds inside;
  const base::Result<Object> object = compile(*program, platform.target, pipeline, "graft", &inside);
  if (!object) return std::nullopt;
  const double compiled = base::thread_seconds();
  if (std::holds_alternative<tasks::Native>(platform.how) && !link_shared({&*object})) return std::nullopt;
  const double linked = base::thread_seconds();
  return Phases{lowered - begin, inside.emit,       inside.optimise, inside.generate,
                inside.inspect,  linked - compiled, linked - begin};
}

CompileRow row_of(std::string what, const Pipeline& pipeline, const tasks::Platform& platform,
                  std::span<const Candidate> candidates) {
  CompileRow row{.what = std::move(what), .pipeline = pipeline.name, .phases = {}, .seconds = {}};
  std::array<std::vector<double>, phase_names.size()> seconds;
  for (const Candidate& candidate : candidates) {
    const auto phases = compile_once(candidate, platform, pipeline);
    ++(phases ? row.compiled : row.refused);
    row.seconds.push_back(phases ? phases->back() : std::numeric_limits<double>::quiet_NaN());
    for (std::size_t p = 0; phases && p < phases->size(); ++p) seconds[p].push_back((*phases)[p]);
  }
  for (std::size_t p = 0; p < phase_names.size(); ++p) {
    const double best = seconds[p].empty() ? std::numeric_limits<double>::quiet_NaN()
                                           : *std::min_element(seconds[p].begin(), seconds[p].end());
    row.phases.push_back({phase_names[p], base::mean(seconds[p]), base::median(seconds[p]), best});
  }
  return row;
}

// The row of the last pipeline for the same thing: the baseline of the others.
const CompileRow& slowest_of(const CompileRow& row, const std::vector<CompileRow>& rows) {
  const std::string& name = pipelines().back().name;
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const CompileRow& other) { return other.what == row.what && other.pipeline == name; });
}

double per_second(const CompileRow& row) {
  return 1 / row.all().mean;
}

}  // namespace

std::vector<CompileRow> bench_compile(const CompileSettings& settings, const std::function<void(std::string)>& note) {
  const Workload workload = parse_workload(settings.workload);
  const tasks::Platform platform = tasks::platform_named(settings.platform);
  const Space space = derive_space(workload, platform.target);
  std::vector<Tuned> tuned;
  for (const std::string& run : settings.runs) {
    for (Tuned& best : tuned_kernels(run, 0)) tuned.push_back(std::move(best));
  }
  base::Stream stream(settings.seed, "bench compile");
  search::Programs programs(platform.target);
  std::vector<Candidate> candidates;
  for (std::int64_t i = 0; i < settings.candidates; ++i) candidates.push_back(space.sample(stream, programs));

  std::vector<CompileRow> rows;
  for (const Pipeline& pipeline : pipelines()) {
    const bool slow = &pipeline == &pipelines().back();
    note(fmt::format("{}: candidates of {}", pipeline.name, workload.text()));
    (void)compile_once(candidates.front(), platform, pipeline);  // LLVM's first use of a target costs more
    const std::size_t count =
        slow ? std::size_t(std::min(settings.slow_candidates, settings.candidates)) : candidates.size();
    rows.push_back(row_of(fmt::format("random candidates of {}", workload.text()), pipeline, platform,
                          std::span(candidates).first(count)));
  }
  for (const Tuned& best : tuned) {
    for (const Pipeline& pipeline : pipelines()) {
      const std::vector<Candidate> again(std::size_t(settings.repetitions), best.trial.candidate);
      (void)compile_once(again.front(), best.platform, pipeline);
      rows.push_back(
          row_of(fmt::format("best kernel of {}: {}", best.run, best.workload.text()), pipeline, best.platform, again));
      rows.back().tuned = true;
    }
  }
  return rows;
}

double times_as_fast(const CompileRow& row, const CompileRow& other) {
  double ours = 0, theirs = 0;
  for (std::size_t i = 0; i < std::min(row.seconds.size(), other.seconds.size()); ++i) {
    if (std::isnan(row.seconds[i]) || std::isnan(other.seconds[i])) continue;
    ours += row.seconds[i];
    theirs += other.seconds[i];
  }
  return theirs / ours;
}

base::Document to_document(const std::vector<CompileRow>& rows, const CompileSettings& settings) {
  base::Document context = base::Document::map();
  context.set("platform", settings.platform).set("clock", "thread_cpu").set("seed", std::int64_t(settings.seed));
  base::Document list = base::Document::list();
  for (const CompileRow& row : rows) {
    const CompileRow& slowest = slowest_of(row, rows);
    base::Document baselines = base::Document::map(), phases = base::Document::map();
    const auto value = [](const CompileRow& of) { return of.tuned ? 1e3 * of.all().median : per_second(of); };
    if (&slowest != &row) baselines.set(slowest.pipeline, value(slowest));
    for (const PhaseStatistics& phase : row.phases) {
      phases.set(phase.name, base::Document::map()
                                 .set("mean_ms", 1e3 * phase.mean)
                                 .set("median_ms", 1e3 * phase.median)
                                 .set("best_ms", 1e3 * phase.best));
    }
    base::Document entry = base::Document::map();
    entry.set("name", row.what + ", " + row.pipeline).set("value", value(row));
    entry.set("unit", row.tuned ? "ms" : "candidates/s/core").set("baselines", baselines).set("pipeline", row.pipeline);
    entry.set("compiled", row.compiled).set("refused", row.refused);
    if (&slowest != &row) entry.set("times_as_fast", times_as_fast(row, slowest));
    list.push(entry.set("phases", phases));
  }
  return base::Document::map().set("schema", 1).set("context", context).set("rows", list);
}

std::string to_text(const std::vector<CompileRow>& rows, const CompileSettings& settings) {
  std::string text = fmt::format("{}, one core, thread CPU time, ms\n", settings.platform), what;
  for (const CompileRow& row : rows) {
    if (row.what != what) {
      what = row.what;
      text += fmt::format("\n{}\n  {:<18}", what, "pipeline");
      for (const PhaseStatistics& phase : row.phases) text += fmt::format(" {:>15}", phase.name);
      text += "\n";
    }
    text += fmt::format("  {:<18}", row.pipeline);
    for (const PhaseStatistics& phase : row.phases) {
      text += fmt::format(" {:>15}", fmt::format("{:.2f} ({:.2f})", 1e3 * phase.mean, 1e3 * phase.median));
    }
    const CompileRow& slowest = slowest_of(row, rows);
    text += row.tuned ? fmt::format("  {:.2f} ms", 1e3 * row.all().median)
                      : fmt::format("  {:.0f} candidates/s/core of {}", per_second(row), row.compiled);
    if (&slowest != &row) text += fmt::format(", {:.1f}x {}", times_as_fast(row, slowest), slowest.pipeline);
    if (row.refused > 0) text += fmt::format(", {} refused", row.refused);
    text += "\n";
  }
  return text + "\nmeans, medians in brackets\n";
}

}  // namespace graft::bench
