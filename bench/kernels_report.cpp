// The figures of `graft bench kernels`, for programs and for people.
#include <fmt/format.h>

#include "base/process.h"
#include "bench/blas.h"
#include "bench/compilers.h"
#include "bench/kernels.h"
#include "bench/onednn.h"

namespace graft::bench {
namespace {

base::Document gflops_or_null(const KernelRow& row, const Timing& timing) {
  return timing.right ? base::Document(row.gflops(timing)) : base::Document();
}

base::Document blas_document(const KernelSettings& settings) {
  base::Document context = openblas_context();
  if (!settings.openblas_chose.empty()) context.set("chose_by_itself", settings.openblas_chose);
  return context;
}

std::string less_time(double share) {
  return share >= 0 ? fmt::format("{:.1f} % less time", 100 * share) : fmt::format("{:.1f} % more time", -100 * share);
}

base::Document row_document(const KernelRow& row, const KernelRow& first) {
  base::Document baselines = base::Document::map(), timings = base::Document::map(), how = base::Document::map();
  timings.set("graft", to_document(row.ours.timing)).set("peak", to_document(row.peak.timing));
  for (const Contender& baseline : row.baselines) {
    baselines.set(baseline.name, gflops_or_null(row, baseline.timing));
    timings.set(baseline.name, to_document(baseline.timing));
    how.set(baseline.name, baseline.how);
  }
  base::Document entry = base::Document::map();
  entry.set("name", row.workload).set("value", gflops_or_null(row, row.ours.timing)).set("unit", "GFLOP/s");
  entry.set("baselines", baselines).set("right", row.ours.timing.right).set("peak", row.peak_gflops());
  entry.set("memory_gigabytes_per_second", row.memory_gigabytes_per_second);
  if (row.ours.timing.right) {
    entry.set("percent_of_peak", 100 * row.gflops(row.ours.timing) / row.peak_gflops());
    if (first.ours.timing.right)
      entry.set("relative_to_first", row.gflops(row.ours.timing) / first.gflops(first.ours.timing));
  }
  entry.set("run", row.run).set("trial", row.trial).set("trials", row.trials).set("program", row.program);
  if (!row.layouts.empty()) entry.set("layouts", row.layouts);
  return entry.set("pipeline", row.pipeline).set("how", how).set("timings", timings);
}

std::string line(const KernelRow& row, const Contender& contender, double flops) {
  if (!contender.timing.right) return fmt::format("  {:<20} {}\n", contender.name, "wrong result");
  const Timing& timing = contender.timing;
  const auto gflops = [&](double seconds) { return flops / seconds * 1e-9; };
  std::string text = fmt::format("  {:<20} {:>8.1f} {:>8.1f} {:>8}", contender.name, gflops(timing.best),
                                 gflops(timing.median), spread_text(timing.spread));
  if (contender.name == "peak") return text + "\n";
  text += fmt::format(" {:>8.1f}%", 100 * gflops(timing.best) / row.peak_gflops());
  if (contender.name != "graft" && row.ours.timing.right)
    text += fmt::format(" {:>9.2f}x", timing.best / row.ours.timing.best);
  else
    text += fmt::format(" {:>10}", "");
  return text + (contender.how.empty() ? "" : "  " + contender.how) + "\n";
}

}  // namespace

base::Document to_document(const std::vector<KernelRow>& rows, const KernelSettings& settings) {
  base::Document context = base::Document::map();
  context.set("threads", settings.threads).set("clock", settings.timing.wall ? "wall" : "thread_cpu");
  context.set("estimator", "best of the repetitions, taken in turn").set("repetitions", settings.timing.repetitions);
  context.set("openblas", blas_document(settings)).set("onednn", onednn_context()).set("compilers", c_context());

  base::Document list = base::Document::list(), summary = base::Document::list(), near = base::Document::list();
  for (const KernelRow& row : rows) list.push(row_document(row, rows.front()));
  for (const Summary& line : summaries(rows)) {
    summary.push(base::Document::map()
                     .set("baseline", line.baseline)
                     .set("workloads", line.workloads)
                     .set("speedup", line.speedup)
                     .set("time_reduction_percent", 100 * line.time_reduction));
  }
  for (const Nearness& line : nearness(rows)) {
    near.push(base::Document::map()
                  .set("workload", line.workload)
                  .set("runs", line.runs)
                  .set("median_percent", 100 * line.median)
                  .set("least_percent", 100 * line.least)
                  .set("most_percent", 100 * line.most));
  }
  base::Document document = base::Document::map();
  document.set("schema", 1).set("context", context).set("rows", list);
  return document.set("summary", summary).set("of_peak", near);
}

std::string to_text(const std::vector<KernelRow>& rows, const KernelSettings& settings) {
  std::string text = fmt::format("{} thread{}, {} time, OpenBLAS core {}, oneDNN {}\n", settings.threads,
                                 settings.threads == 1 ? "" : "s", settings.timing.wall ? "wall" : "thread CPU",
                                 openblas_context().at("core").as_string(), onednn_context().at("version").as_string());
  for (const KernelRow& row : rows) {
    text += fmt::format("\n{}\n  best of {} trials in {}{}\n", row.workload, row.trials, row.run,
                        &row == &rows.front() || !row.ours.timing.right || !rows.front().ours.timing.right
                            ? ""
                            : fmt::format("; {:.2f} of the first workload's speed",
                                          row.gflops(row.ours.timing) / rows.front().gflops(rows.front().ours.timing)));
    if (!row.layouts.empty()) text += fmt::format("  parameters stored as {}\n", row.layouts);
    text += fmt::format("  {:<20} {:>8} {:>8} {:>8} {:>9} {:>10}\n", "GFLOP/s", "best", "median", "spread", "of peak",
                        "graft is");
    text += line(row, row.peak, row.peak_flops) + line(row, row.ours, row.flops);
    for (const Contender& baseline : row.baselines) text += line(row, baseline, row.flops);
  }
  text += "\n";
  for (const Nearness& near : nearness(rows)) {
    if (near.runs < 2) continue;
    text += fmt::format("of peak over {} runs of {}: median {:.1f} %, {:.1f} to {:.1f} %\n", near.runs, near.workload,
                        100 * near.median, 100 * near.least, 100 * near.most);
  }
  for (const Summary& summary : summaries(rows)) {
    text += fmt::format("against {}: {:.2f}x as fast (geometric mean of {}), {}\n", summary.baseline, summary.speedup,
                        summary.workloads, less_time(summary.time_reduction));
  }
  return text;
}

}  // namespace graft::bench
