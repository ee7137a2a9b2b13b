#include "bench/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "codegen/schedule/space.h"
#include "features/encoding.h"
#include "tasks/platform.h"

namespace graft::bench {
namespace {

using namespace codegen;

constexpr const char* usual_workloads[] = {"matmul(m=512,n=512,k=512)", "resnet18.C2",
                                           "depthwise_conv2d(c=32,h=112,w=112,r=3,s=3,stride=1,pad=1)",
                                           "softmax(m=512,n=1000)"};

struct Lowered {
  Candidate candidate;
  LoopProgram program;
};

std::vector<Lowered> lowered_candidates(const Workload& workload, const Target& target,
                                        const FeatureSettings& settings) {
  const Space space = derive_space(workload, target);
  base::Stream stream(settings.seed, "bench features");
  std::vector<Lowered> all;
  for (std::int64_t i = 0; i < settings.candidates; ++i) {
    Candidate candidate = space.sample(stream);
    base::Result<LoopProgram> lowered = program(candidate, target);
    if (lowered) all.push_back({std::move(candidate), std::move(*lowered)});
  }
  return all;
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

double per_second(const FeatureRow& row, double seconds) {
  return double(row.programs) / seconds;
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
    note(fmt::format("candidates of {}", workload.text));
    const std::vector<Lowered> all = lowered_candidates(workload, platform.target, settings);
    if (all.empty()) continue;
    FeatureRow common{.workload = workload.text, .what = "lower", .programs = std::int64_t(all.size()), .timing = {}};
    for (const Lowered& one : all) {
      for (const Node& node : one.program.run)
        (node.kind == Node::Kind::loop ? common.loops : common.stores) += 1.0 / double(all.size());
    }

    std::vector<FeatureRow> own{common};
    std::vector<Contender> contenders;
    contenders.push_back({.name = "lower",
                          .call =
                              [&] {
                                for (const Lowered& one : all) (void)program(one.candidate, platform.target);
                              },
                          .check = [] { return true; }});
    for (const features::Encoding* encoding : encodings) {
      own.push_back(common);
      own.back().what = encoding->name;
      own.back().columns = std::int64_t(encoding->features.size());
      bool finite = true;
      for (const Lowered& one : all) {
        const features::Encoded encoded = encoding->encode({&one.program, &one.candidate, &platform.target});
        own.back().rows += double(encoded.rows.rows) / double(all.size());
        for (const float value : encoded.rows.values) finite = finite && std::isfinite(value);
      }
      contenders.push_back({.name = encoding->name,
                            .call =
                                [&all, &platform, encoding] {
                                  for (const Lowered& one : all)
                                    (void)encoding->encode({&one.program, &one.candidate, &platform.target});
                                },
                            .check = [finite] { return finite; }});
    }
    measure_in_turn(contenders, settings.timing);
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      own[c].timing = contenders[c].timing;
      own[c].timing.right = contenders[c].check();
      rows.push_back(std::move(own[c]));
    }
  }
  return rows;
}

bool all_finite(const std::vector<FeatureRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const FeatureRow& row) { return row.timing.right; });
}

base::Document to_document(const std::vector<FeatureRow>& rows, const FeatureSettings& settings) {
  base::Document context = base::Document::map();
  context.set("platform", settings.platform).set("clock", "thread_cpu").set("seed", std::int64_t(settings.seed));
  base::Document list = base::Document::list();
  for (const FeatureRow& row : rows) {
    base::Document entry = base::Document::map();
    entry.set("name", row.workload + ", " + row.what).set("workload", row.workload).set("what", row.what);
    entry.set("value", row.timing.right ? base::Document(per_second(row, row.timing.best)) : base::Document());
    entry.set("unit", "programs/s/core").set("baselines", base::Document::map());
    entry.set("programs", row.programs).set("stores", row.stores).set("loops", row.loops);
    entry.set("rows", row.rows).set("columns", row.columns);
    list.push(entry.set("timing", to_document(row.timing)));
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
    if (!row.timing.right) {
      text += fmt::format("  {:<28} {:>15}\n", row.what, "not finite");
      continue;
    }
    text += fmt::format("  {:<28} {:>15.0f} {:>15.0f} {:>6.1f}%", row.what, per_second(row, row.timing.best),
                        per_second(row, row.timing.median), 100 * row.timing.spread);
    text += row.columns > 0 ? fmt::format(" {:>7.1f} {:>8}\n", row.rows, row.columns) : "\n";
  }
  return text + "\nbest of the repetitions, then their median; spread: interquartile range / median\n";
}

}  // namespace graft::bench
