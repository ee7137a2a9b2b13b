#include "bench/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/random.h"
#include "base/statistics.h"
#include "bench/timing.h"
#include "codegen/schedule/space.h"
#include "features/encoding.h"
#include "search/programs.h"
#include "tasks/platform.h"

namespace graft::bench {
namespace {

using namespace codegen;

constexpr const char* usual_workloads[] = {"matmul(m=512,n=512,k=512)", "resnet18.C2",
                                           "depthwise_conv2d(c=32,h=112,w=112,r=3,s=3,stride=1,pad=1)",
                                           "softmax(m=512,n=1000)"};

std::vector<Candidate> candidates_of(const Workload& workload, const Target& target, const FeatureSettings& settings) {
  const Space space = derive_space(workload, target);
  base::Stream stream(settings.seed, "bench features");
  search::Programs programs(target);
  std::vector<Candidate> all;
  for (std::int64_t i = 0; i < settings.candidates; ++i) {
    Candidate candidate = space.sample(stream, programs);
    if (program(candidate, target)) all.push_back(std::move(candidate));
  }
  return all;
}

double clock_seconds() {
  constexpr int calls = 1000;
  const double begin = base::thread_seconds();
  for (int call = 0; call < calls; ++call) (void)base::thread_seconds();
  return (base::thread_seconds() - begin) / calls;
}

std::vector<const features::Encoding*> encodings_of(const FeatureSettings& settings) {
  std::vector<const features::Encoding*> chosen;
  for (const std::string& name : settings.encodings) chosen.push_back(&features::encoding_named(name));
  if (!chosen.empty()) return chosen;
  for (const features::Encoding& encoding : features::encodings()) {
    if (encoding.name.find('+') == std::string::npos) chosen.push_back(&encoding);
  }
  return chosen;
}

// Everything once: rows[0] is lowering, rows[1 + e] encoding e. Seconds by row.
std::vector<double> once(const std::vector<Candidate>& candidates, const Target& target,
                         const std::vector<const features::Encoding*>& encodings, std::vector<FeatureRow>& rows) {
  const double clock = clock_seconds();
  std::vector<double> seconds(rows.size(), 0);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    double begin = base::thread_seconds();
    const base::Result<LoopProgram> lowered = program(candidates[c], target);
    seconds[0] += base::thread_seconds() - begin - clock;
    // Each is the first for some candidates, and meets what lowering left in the caches.
    for (std::size_t turn = 0; turn < encodings.size(); ++turn) {
      const std::size_t e = (turn + c) % encodings.size();
      begin = base::thread_seconds();
      const features::Encoded encoded = encodings[e]->encode({&*lowered, &candidates[c], &target});
      seconds[1 + e] += base::thread_seconds() - begin - clock;
      FeatureRow& row = rows[1 + e];
      row.rows += double(encoded.rows.rows);
      for (const float value : encoded.rows.values) row.finite = row.finite && std::isfinite(value);
    }
  }
  return seconds;
}

}  // namespace

std::vector<FeatureRow> bench_features(const FeatureSettings& settings, const std::function<void(std::string)>& note) {
  const tasks::Platform platform = tasks::platform_named(settings.platform);
  const std::vector<const features::Encoding*> encodings = encodings_of(settings);
  std::vector<Workload> workloads;
  for (const std::string& text : settings.workloads) workloads.push_back(parse_workload(text));
  if (workloads.empty()) {
    for (const char* text : usual_workloads) workloads.push_back(parse_workload(text));
  }

  std::vector<FeatureRow> rows;
  for (const Workload& workload : workloads) {
    note(fmt::format("candidates of {}", workload.text()));
    const std::vector<Candidate> candidates = candidates_of(workload, platform.target, settings);
    if (candidates.empty()) continue;
    const double count = double(candidates.size());
    FeatureRow common{.workload = workload.text(), .what = "lower", .programs = std::int64_t(candidates.size())};
    for (const Candidate& candidate : candidates) {
      const base::Result<LoopProgram> lowered = program(candidate, platform.target);
      for (const Node& node : lowered->run) (node.kind == Node::Kind::loop ? common.loops : common.stores) += 1 / count;
    }
    std::vector<FeatureRow> own{common};
    for (const features::Encoding* encoding : encodings) {
      own.push_back(common);
      own.back().what = encoding->name;
      own.back().columns = std::int64_t(encoding->features.size());
    }

    std::vector<std::vector<double>> per_second(own.size());
    for (std::int64_t repetition = 0; repetition < settings.repetitions; ++repetition) {
      const std::vector<double> seconds = once(candidates, platform.target, encodings, own);
      for (std::size_t r = 0; r < own.size(); ++r) per_second[r].push_back(count / std::max(seconds[r], 1e-9));
    }
    for (std::size_t r = 0; r < own.size(); ++r) {
      const std::vector<double>& all = per_second[r];
      own[r].rows /= count * double(settings.repetitions);
      own[r].best = *std::max_element(all.begin(), all.end());
      own[r].median = base::median(all);
      own[r].spread = spread_of(all);
      rows.push_back(std::move(own[r]));
    }
  }
  return rows;
}

bool all_finite(const std::vector<FeatureRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const FeatureRow& row) { return row.finite; });
}

base::Document to_document(const std::vector<FeatureRow>& rows, const FeatureSettings& settings) {
  base::Document context = base::Document::map();
  context.set("platform", settings.platform).set("clock", "thread_cpu").set("seed", std::int64_t(settings.seed));
  base::Document list = base::Document::list();
  for (const FeatureRow& row : rows) {
    base::Document entry = base::Document::map();
    entry.set("name", row.workload + ", " + row.what).set("workload", row.workload).set("what", row.what);
    entry.set("value", row.finite ? base::Document(row.best) : base::Document());
    entry.set("unit", "programs/s/core").set("baselines", base::Document::map());
    entry.set("programs", row.programs).set("stores", row.stores).set("loops", row.loops);
    entry.set("rows", row.rows).set("columns", row.columns);
    list.push(entry.set("median", row.median).set("spread", row.spread));
  }
  return base::Document::map().set("schema", 1).set("context", context).set("rows", list);
}

std::string to_text(const std::vector<FeatureRow>& rows, const FeatureSettings& settings) {
  std::string text = fmt::format("{}, one core, thread CPU time\n", settings.platform), workload;
  for (const FeatureRow& row : rows) {
    if (row.workload != workload) {
      workload = row.workload;
      text += fmt::format("\n{} random candidates of {}: {:.0f} loops and {:.0f} stores in the mean\n", row.programs,
                          workload, row.loops, row.stores);
      text += fmt::format("  {:<28} {:>15} {:>15} {:>7} {:>7} {:>8}\n", "", "programs/s/core", "median", "spread",
                          "rows", "columns");
    }
    if (!row.finite) {
      text += fmt::format("  {:<28} {:>15}\n", row.what, "not finite");
      continue;
    }
    text += fmt::format("  {:<28} {:>15.0f} {:>15.0f} {:>7}", row.what, row.best, row.median, spread_text(row.spread));
    text += row.columns > 0 ? fmt::format(" {:>7.1f} {:>8}\n", row.rows, row.columns) : "\n";
  }
  return text + "\nbest of the repetitions, then their median; spread: interquartile range / median\n";
}

}  // namespace graft::bench
