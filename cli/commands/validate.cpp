#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/shortened.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "cli/report/page.h"
#include "cli/report/plot.h"
#include "search/tuning.h"
#include "tasks/modelled/agreement.h"
#include "tasks/modelled/modelled.h"
#include "tasks/modelled/twin.h"

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
  std::string profile, out;
  std::int64_t samples = 200, threads = 1, passes = 4;
  SpaceFlag space;
  MeasureFlags measure;
};

// The programs of one workload on one platform, both ways.
struct Comparison {
  std::string platform, workload;
  std::vector<codegen::Candidate> candidates;
  std::vector<double> measured, modelled;  // measured: the fastest of all passes
  tasks::Agreement agreement;
  std::optional<tasks::Agreement> repeated;  // of the odd passes with the even ones: what noise leaves to be reached
};

// `ok` measurements by program.
using Pass = std::map<std::uint64_t, datasets::Trial>;

base::Document request_of(const Flags& flags, const Session& session, const tasks::Platform& platform,
                          const std::vector<codegen::Workload>& workloads, std::string_view part) {
  base::Document names = base::Document::list();
  for (const codegen::Workload& workload : workloads) names.push(workload.text);
  base::Document request = base::Document::map();
  request.set("command", fmt::format("platform validate, {}", part))
      .set("platform", platform.name)
      .set("platform_hash", platform_hash(platform))
      .set("workloads", std::move(names))
      .set("seed", std::int64_t(session.seed));
  flags.space.put(request);
  return request;
}

// Measures what is not recorded yet; nothing when stopped.
std::optional<Pass> measure(const Flags& flags, Session& session, const tasks::Platform& platform,
                            const codegen::Space& space, tasks::Measurer& measurer, search::RunDirectory& run) {
  search::TuningSettings settings;
  settings.explorer = "random";
  settings.trials = flags.samples;
  settings.batch = int(std::min<std::int64_t>(flags.samples, 64));
  settings.seed = base::hash_combine(session.seed, codegen::hash(space.workload()));
  settings.threads = session.threads;
  search::Tuning tuning({space, platform.name}, nullptr, measurer, run, settings);
  if (!run_rounds(tuning, flags.samples, session.progress)) return std::nullopt;
  if (!tuning.best()) throw base::Failure(nothing_ok_text(tuning.trials(), platform, run.path()));
  Pass pass;  // other schedules of the same program say nothing new
  for (const datasets::Trial& trial : tuning.trials())
    if (trial.measurement.status == datasets::Status::ok) pass.emplace(trial.program_hash, trial);
  return pass;
}

double fastest_of(const std::vector<Pass>& passes, std::uint64_t program, std::size_t first, std::size_t step) {
  double fastest = std::numeric_limits<double>::infinity();
  for (std::size_t p = first; p < passes.size(); p += step)
    fastest = std::min(fastest, datasets::seconds_of(passes[p].at(program).measurement));
  return fastest;
}

// The programs that went well in all passes.
Comparison comparison_of(const tasks::Platform& platform, const codegen::Workload& workload,
                         const std::vector<Pass>& passes) {
  Comparison one{platform.name, workload.text, {}, {}, {}, {}, {}};
  std::vector<double> odd, even;
  for (const auto& [program, trial] : passes.front()) {
    if (!std::all_of(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.contains(program); })) continue;
    one.candidates.push_back(trial.candidate);
    one.measured.push_back(fastest_of(passes, program, 0, 1));
    odd.push_back(fastest_of(passes, program, 0, 2));
    if (passes.size() > 1) even.push_back(fastest_of(passes, program, 1, 2));
  }
  if (passes.size() > 1) one.repeated = tasks::agreement(odd, even);
  return one;
}

// Models what is not recorded yet; false when stopped. UserError when the model lacks an opcode.
bool model(const tasks::Platform& twin, Session& session, search::RunDirectory& run, Comparison& comparison) {
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
    if (session.progress.stop_requested()) return false;
    session.progress.progress("modelling " + comparison.workload, std::int64_t(begin), std::int64_t(missing.size()));
    const std::size_t size = std::min(block, missing.size() - begin);
    std::vector<std::uint64_t> hashes(size);
    std::vector<base::Result<tasks::ModelledTime>> times(size, base::Reason{});
    base::parallel_for(std::int64_t(size), session.threads, session.progress, [&](std::int64_t i) {
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
        throw base::UserError(twin.name, fmt::format("LLVM's model of this core lacks {}; give another --profile",
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

Table table_of(const std::vector<Comparison>& comparisons) {
  Table table({"platform", "workload", "programs", "max/min", "spearman", "again", "kendall", "best 30 %", "again",
               "top-1", "top-5", "rms"});
  for (const Comparison& one : comparisons) {
    const tasks::Agreement& a = one.agreement;
    table.row({one.platform, one.workload, std::to_string(a.programs), number_text(a.spread, 1),
               number_text(a.spearman), one.repeated ? number_text(one.repeated->spearman) : "", number_text(a.kendall),
               number_text(a.spearman_of_best), one.repeated ? number_text(one.repeated->spearman_of_best) : "",
               number_text(a.top1_regret), number_text(a.top5_regret), number_text(a.rms)});
  }
  return table;
}

base::Document row_of(const Comparison& one) {
  const tasks::Agreement& a = one.agreement;
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

std::vector<std::size_t> sorted_by(std::size_t count, const std::function<double(std::size_t)>& key) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::string section_of(const Comparison& one) {
  constexpr double microseconds = 1e6;
  const std::size_t count = one.measured.size();
  const std::vector<std::size_t> by_model = sorted_by(count, [&](std::size_t i) { return one.modelled[i]; });
  Series all{.name = "program", .colour = 0, .dots_only = true, .points = {}};
  Series first{.name = "modelled fastest", .colour = 1, .dots_only = true, .points = {}};
  for (std::size_t rank = 0; rank < count; ++rank) {
    const std::size_t i = by_model[rank];
    (rank < 5 ? first : all).points.push_back({microseconds * one.measured[i], microseconds * one.modelled[i]});
  }
  const Plot plot{.x_label = "measured, µs",
                  .y_label = "modelled, µs",
                  .log_x = true,
                  .log_y = true,
                  .x_from_zero = false,
                  .series = {all, first}};
  const tasks::Agreement& a = one.agreement;
  std::string out = fmt::format("<h2>{} on {}</h2>\n", escaped(one.workload), escaped(one.platform));
  out +=
      figure(plot, fmt::format("{} programs, Spearman {:.3f}, {:.3f} within the best 30 %; the five modelled fastest "
                               "in another colour, the best of them {:.2f} times as slow as the fastest.",
                               a.programs, a.spearman, a.spearman_of_best, a.top5_regret));
  const std::vector<double> ratios = tasks::centred_log_ratios(one.modelled, one.measured);
  const std::vector<std::size_t> worst = sorted_by(count, [&](std::size_t i) { return -std::abs(ratios[i]); });
  Table table({"modelled / measured", "measured", "schedule"});
  for (std::size_t i = 0; i < std::min<std::size_t>(3, count); ++i) {
    std::vector<std::string> steps;
    if (const auto schedule = codegen::schedule(one.candidates[worst[i]]))
      for (const codegen::Step& step : *schedule) steps.push_back(codegen::to_text(step));
    table.row({number_text(std::exp(ratios[worst[i]])), seconds_text(one.measured[worst[i]]), base::join(steps, "; ")});
  }
  return out + "<p>Furthest off, the mean ratio taken out:</p>\n" + html_table(table);
}

std::string body_of(const std::vector<Comparison>& weakest_first, const Flags& flags, const std::string& profile) {
  std::string out =
      "<p>Modelled times come from LLVM's scheduling model of this host's core and a simulator of its caches; measured "
      "ones from running the same machine code here. Core and memory overlap within a phase (about: a loop nest) only. "
      "Nothing was fitted. Weak spots come first: workloads are in the "
      "order of their correlation within the best 30 %.</p>\n";
  out += html_table(table_of(weakest_first));
  out +=
      "<p>Spearman and Kendall: rank correlations. Best 30 %: Spearman within the programs measured fastest. Top-1, "
      "top-5: measured time of the best of the one or five modelled fastest, over the fastest. Rms: of ln(modelled / "
      "measured) around its mean. Again: the same correlations of the odd passes' times with the even passes' ones; "
      "measured times are the fastest of all passes.</p>\n";
  out += fmt::format("<p>Sample: {}, {} schedules a workload, {} passes. Profile: {}.</p>\n",
                     flags.space.file.empty() ? "uniform over the derived space" : escaped(flags.space.file),
                     flags.samples, flags.passes, escaped(profile));
  for (const Comparison& one : weakest_first) out += section_of(one);
  return out;
}

int validate(const Flags& flags, Session& session) {
  std::vector<codegen::Workload> workloads;
  for (const std::string& text : flags.workloads) workloads.push_back(codegen::parse_workload(text));
  std::vector<tasks::Platform> platforms, twins;
  for (const std::string& name : flags.platforms) {
    platforms.push_back(
        tasks::platform_named(flags.threads > 1 ? fmt::format("{},threads={}", name, flags.threads) : name));
    twins.push_back(tasks::twin_of(platforms.back(), flags.profile));
    tasks::geometry_of(twins.back());  // refuses before there is a folder
  }
  std::filesystem::create_directories(flags.out);
  std::vector<Comparison> comparisons;
  bool complete = true;
  for (std::size_t p = 0; p < platforms.size() && complete; ++p) {
    const std::filesystem::path folder = std::filesystem::path(flags.out) / short_name(platforms[p].name);
    std::filesystem::create_directories(folder);
    base::Document timed = request_of(flags, session, platforms[p], workloads, "measured");
    flags.measure.put(timed);
    search::RunDirectory modelled(folder / "modelled", request_of(flags, session, twins[p], workloads, "modelled"),
                                  context_of(session), twins[p].yaml);
    // All workloads, and then all again: what disturbs a shared machine for a while disturbs one pass of a workload.
    std::vector<std::vector<Pass>> passes(workloads.size());
    for (std::int64_t pass = 1; pass <= flags.passes && complete; ++pass) {
      search::RunDirectory measured(folder / fmt::format("measured.{}", pass), timed, context_of(session),
                                    platforms[p].yaml);
      const auto measurer =
          tasks::make_measurer(platforms[p], flags.measure.settings(0, session));  // one measures nothing twice
      for (std::size_t w = 0; w < workloads.size() && complete; ++w) {
        auto done_now = measure(flags, session, platforms[p], flags.space.space(workloads[w], platforms[p].target),
                                *measurer, measured);
        complete = done_now.has_value();
        if (complete) passes[w].push_back(std::move(*done_now));
      }
    }
    for (std::size_t w = 0; w < workloads.size() && complete; ++w) {
      Comparison one = comparison_of(platforms[p], workloads[w], passes[w]);
      complete = model(twins[p], session, modelled, one);
      if (!complete) break;
      one.agreement = tasks::agreement(one.modelled, one.measured);
      comparisons.push_back(std::move(one));
    }
  }
  if (!complete) {
    session.progress.note(interruption);
    return interrupted;
  }

  base::Document rows = base::Document::list();
  for (const Comparison& one : comparisons) rows.push(row_of(one));
  session.output.table(table_of(comparisons));
  std::stable_sort(comparisons.begin(), comparisons.end(), [](const Comparison& a, const Comparison& b) {
    return a.agreement.spearman_of_best < b.agreement.spearman_of_best;
  });
  const std::filesystem::path page = std::filesystem::path(flags.out) / "validation.html";
  const base::Document context = context_of(session);
  base::replace_file(page, whole_page("Modelled against measured",
                                      fmt::format("Made by graft {} on {}: {}.", graft_version(), host_cpu(),
                                                  context.at("date").as_string()),
                                      body_of(comparisons, flags, twins.front().description)));
  session.output.line(page.string());
  session.output.json()
      .set("rows", std::move(rows))
      .set("samples", flags.samples)
      .set("seed", std::int64_t(session.seed))
      .set("context", context)
      .set("page", page.string());
  return done;
}

}  // namespace

Command platform_validate_command() {
  return {.name = "platform validate",
          .help = "hold modelled times of this host against measured ones",
          .examples = {"graft platform validate --platform native:v2,native:v3,native:v4 --out runs/validation",
                       "graft platform validate --space examples/nests.space --workloads 'matmul(m=256,n=256,k=256)' "
                       "--out runs/nests"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.list("platform", flags->platforms, "native platforms: the code that is measured and modelled");
            options.list("workloads", flags->workloads, "what to compare on");
            options.integer("samples", flags->samples, 2, "schedules of each workload, uniform over its space");
            options.integer("passes", flags->passes, 1,
                            "times that all are measured, one after the other; the fastest counts");
            options.integer("threads", flags->threads, 1, "threads of the kernels");
            options.text("profile", flags->profile,
                         "YAML of a modelled platform; default: platforms/hosts, by this cpu");
            options.text("out", flags->out, "folder for what was measured, and the page", Options::required);
            flags->space.declare(options);
            flags->measure.declare(options);
            return [flags](Session& session) { return validate(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
