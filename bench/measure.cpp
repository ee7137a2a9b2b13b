#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/monitor.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/statistics.h"
#include "base/text.h"
#include "bench/tuned.h"
#include "codegen/schedule/space.h"
#include "datasets/trial.h"
#include "search/programs.h"
#include "tasks/host_runner.h"
#include "tasks/platform.h"

namespace graft::bench {
namespace {

struct Best {
  std::optional<codegen::Candidate> candidate;
  double seconds = 0;
};

tasks::MeasureSettings measure_settings(const MeasurerSettings& settings) {
  tasks::MeasureSettings out{.abort_factor = 3};
  out.repetitions = int(settings.repetitions), out.minimum_seconds = settings.minimum_seconds;
  return out;
}

Throughput throughput_of(const MeasurerSettings& settings, const codegen::Space& space, const tasks::Platform& platform,
                         Best& best) {
  Throughput result;
  const auto measurer = tasks::make_measurer(platform, measure_settings(settings));
  base::Stream stream(settings.seed, "bench measure");
  base::Monitor monitor;
  search::Programs programs(platform.target);
  while (result.trials < settings.trials) {
    const double begin = base::wall_seconds();
    std::vector<codegen::Candidate> batch;
    const std::int64_t count = std::min(settings.batch, settings.trials - result.trials);
    for (std::int64_t i = 0; i < count; ++i) batch.push_back(space.sample(stream, programs));
    const double drawn = base::wall_seconds();
    measurer->measure(
        batch,
        [&](const tasks::Measured& measured) {
          ++result.trials;
          ++result.statuses[std::string(datasets::name_of(measured.measurement.status))];
          if (measured.measurement.status != datasets::Status::ok) return;
          const double seconds = datasets::seconds_of(measured.measurement);
          if (!best.candidate || seconds < best.seconds) best = {batch[std::size_t(measured.position)], seconds};
        },
        monitor);
    result.draw_seconds += drawn - begin;
    result.measure_seconds += base::wall_seconds() - drawn;
  }
  return result;
}

Repeatability repeated(std::string what, const codegen::Candidate& candidate, const tasks::Platform& platform,
                       const MeasurerSettings& settings) {
  Repeatability result{.what = std::move(what), .seconds = {}};
  const auto refuse = [&](std::string_view why) { throw base::Failure(fmt::format("{}: {}", result.what, why)); };
  const auto program = codegen::program(candidate, platform.target);
  if (!program) refuse(program.reason().text);
  const auto binary = tasks::compile_for_host(*program, platform.target);
  if (!binary) refuse(binary.reason().text);
  tasks::HostRunner runner(measure_settings(settings));
  for (std::int64_t i = 0; i < settings.repeats; ++i) {
    const datasets::Measurement measurement = runner.run(candidate.workload, *binary);
    if (measurement.status != datasets::Status::ok) refuse(datasets::name_of(measurement.status));
    result.seconds.push_back(datasets::seconds_of(measurement));
  }
  const double mean = base::mean(result.seconds);
  double squares = 0;
  for (const double seconds : result.seconds) squares += (seconds - mean) * (seconds - mean);
  result.variation = std::sqrt(squares / double(std::max<std::size_t>(1, result.seconds.size() - 1))) / mean;
  return result;
}

double per_second(const Throughput& throughput) {
  return double(throughput.trials) / throughput.measure_seconds;
}

}  // namespace

MeasureResult bench_measure(const MeasurerSettings& settings, const std::function<void(std::string)>& note) {
  const codegen::Workload workload = codegen::parse_workload(settings.workload);
  const tasks::Platform platform = tasks::platform_named(settings.platform);
  if (!std::holds_alternative<tasks::Native>(platform.how)) {
    throw base::UserError("--platform",
                          fmt::format("{} is not this machine; bench measures on native platforms", platform.name));
  }
  std::vector<Tuned> tuned;
  for (const std::string& run : settings.runs) {
    for (Tuned& best : tuned_kernels(run, 0)) tuned.push_back(std::move(best));
  }
  const codegen::Space space = codegen::derive_space(workload, platform.target);
  MeasureResult result;
  Best best;
  note(fmt::format("{} random candidates of {}", settings.trials, workload.text()));
  result.throughput = throughput_of(settings, space, platform, best);
  for (const Tuned& kernel : tuned) {
    const std::string what = fmt::format("best kernel of {}: {}", kernel.run, kernel.workload.text());
    note(fmt::format("{} times the {}", settings.repeats, what));
    result.kernels.push_back(repeated(what, kernel.trial.candidate, kernel.platform, settings));
  }
  if (!tuned.empty()) return result;
  if (!best.candidate) throw base::UserError("--trials", "no candidate was ok; ask for more of them");
  note(fmt::format("{} times the best of them", settings.repeats));
  result.kernels.push_back(repeated(fmt::format("best of the random candidates of {}", workload.text()),
                                    *best.candidate, platform, settings));
  return result;
}

base::Document to_document(const MeasureResult& result, const MeasurerSettings& settings) {
  const Throughput& throughput = result.throughput;
  base::Document context = base::Document::map();
  context.set("platform", settings.platform).set("cores", base::hardware_threads()).set("batch", settings.batch);
  context.set("repetitions", settings.repetitions).set("minimum_ms", 1e3 * settings.minimum_seconds);
  context.set("abort_factor", measure_settings(settings).abort_factor).set("seed", std::int64_t(settings.seed));

  base::Document statuses = base::Document::map();
  for (const auto& [name, count] : throughput.statuses) statuses.set(name, double(count) / double(throughput.trials));
  base::Document rows = base::Document::list();
  rows.push(base::Document::map()
                .set("name", "random candidates of " + settings.workload)
                .set("value", per_second(throughput))
                .set("unit", "candidates/s")
                .set("baselines", base::Document::map())
                .set("trials", throughput.trials)
                .set("measure_seconds", throughput.measure_seconds)
                .set("draw_seconds", throughput.draw_seconds)
                .set("shares", statuses));
  for (const Repeatability& kernel : result.kernels) {
    base::Document seconds = base::Document::list();
    for (const double value : kernel.seconds) seconds.push(value);
    rows.push(base::Document::map()
                  .set("name", "variation of the " + kernel.what)
                  .set("value", 100 * kernel.variation)
                  .set("unit", "% CV")
                  .set("baselines", base::Document::map())
                  .set("seconds", seconds));
  }
  return base::Document::map().set("schema", 1).set("context", context).set("rows", rows);
}

std::string to_text(const MeasureResult& result, const MeasurerSettings& settings) {
  const Throughput& throughput = result.throughput;
  std::string text = fmt::format(
      "{}: {:.1f} random candidates/s compiled, checked and measured ({} in {:.1f} s on {}, least of {})\n",
      settings.workload, per_second(throughput), throughput.trials, throughput.measure_seconds,
      base::counted(std::int64_t(base::hardware_threads()), "core"), base::counted(settings.repetitions, "repetition"));
  text += fmt::format("  drawing them took {:.1f} s more\n", throughput.draw_seconds);
  for (const auto& [name, count] : throughput.statuses) {
    text += fmt::format("  {:<20} {:>5.1f} %  ({})\n", name, 100 * double(count) / double(throughput.trials), count);
  }
  for (const Repeatability& kernel : result.kernels) {
    const auto [least, most] = std::minmax_element(kernel.seconds.begin(), kernel.seconds.end());
    text += fmt::format("{}\n  {} measurements vary by {:.2f} % (CV): {:.4g} to {:.4g} ms\n", kernel.what,
                        kernel.seconds.size(), 100 * kernel.variation, 1e3 * *least, 1e3 * *most);
  }
  return text;
}

}  // namespace graft::bench
