#include "cli/report/experiment_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/duration.h"
#include "base/text.h"
#include "cli/report/plot.h"
#include "cli/texts.h"
#include "codegen/expression/workload.h"
#include "study/experiments/measures.h"
#include "study/flows/evaluate.h"

namespace graft::cli {
namespace {

using study::Claim;
using study::Experiment;
using study::ExperimentResults;
using study::Finding;

// A cell of a Markdown table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string number(double value) {
  if (!std::isfinite(value)) return "-";
  return std::abs(value) >= 100  ? fmt::format("{:.0f}", value)
         : std::abs(value) >= 10 ? fmt::format("{:.1f}", value)
                                 : fmt::format("{:.3f}", value);
}

std::string interval(const base::Interval& value) {
  if (!std::isfinite(value.low)) return number(value.mean);
  return fmt::format("{} [{}, {}]", number(value.mean), number(value.low), number(value.high));
}

std::string bound_text(const Claim& claim) {
  return claim.at_least ? fmt::format("at least {:g}", *claim.at_least) : fmt::format("at most {:g}", *claim.at_most);
}

std::string metric_name(const std::string& key) {
  return key == "spearman" ? "Spearman" : key == "top1" ? "top-1" : "top-5";
}

bool is_count(const Claim& claim) {
  return claim.measure == "trials" || claim.measure == "wins";
}

std::string verdict_text(const Claim& claim, const Finding& finding) {
  if (finding.of == 0) return "not run";
  const std::string name(study::name_of(finding.verdict));
  if (finding.short_by <= 0) return name;
  const bool is_whole = is_count(claim) && finding.short_by >= 0.5;
  return fmt::format("{} by {}", name, is_whole ? fmt::format("{:.0f}", finding.short_by) : number(finding.short_by));
}

// As the experiment calls it: "resnet18.C2" rather than its extents.
std::string workload_name(const Experiment& experiment, const std::string& text) {
  if (experiment.kind == Experiment::Kind::peers) return text;
  for (const std::string& name : experiment.workloads) {
    if (codegen::parse_workload(name).text() == text) return name;
  }
  return text;
}

std::string figure_text(const Experiment& experiment, const Claim& claim, const Finding& finding) {
  if (finding.of == 0) return "-";
  std::string text = interval(finding.value);
  if (is_count(claim)) {
    const std::int64_t count = std::llround(finding.value.mean);
    text = base::counted(count, claim.measure == "wins" ? "workload" : "trial");
  } else if (claim.measure == "score" || claim.measure == "gain") {
    const char* const sign = claim.measure == "gain" && finding.value.mean > 0 ? "+" : "";
    text = fmt::format("{} {}{}", metric_name(claim.metric), sign, text);
  } else if (claim.measure.find("found") != std::string::npos) {
    text = (claim.measure != "found" && finding.value.mean > 0 ? "+" : "") + text;
  } else {
    text += " times";
  }
  if (!finding.where.empty()) text += fmt::format(" ({})", workload_name(experiment, finding.where));
  if (finding.never > 0) text += fmt::format("; {} of {} never", finding.never, finding.of);
  return text;
}

std::string text_of(const base::Document& context, std::string_view key) {
  const base::Document* const value = context.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

// " --folder mine", which commands need for experiments in this folder; "" for a folder of the default name, in whose
// parent they are run.
std::string folder_flag(const std::string& folder) {
  const std::filesystem::path path = (std::filesystem::path(folder) / "").lexically_normal().parent_path();
  return path.filename() == default_folder ? "" : " --folder " + shell_word(folder);
}

// The runs, their machine, date and duration.
std::string provenance(const Experiment& experiment, const ExperimentResults& results, const std::string& folder) {
  const base::Document* const host = results.context.find("host");
  const base::Document* const seconds = results.context.find("seconds");
  std::string text = fmt::format("Run on {}", text_of(results.context, "date").substr(0, 10));
  if (host != nullptr) text += fmt::format(", {}", text_of(*host, "cpu"));
  if (const std::string commit = text_of(results.context, "commit"); !commit.empty())
    text += fmt::format(", commit {}", commit);
  if (seconds != nullptr) text += fmt::format(", in {}", base::seconds_text(seconds->as_number()));
  const bool has_peers = experiment.kind == Experiment::Kind::peers;
  text +=
      fmt::format(". Command: `graft experiment run {}{}{}{}.", experiment.name, folder_flag(folder),
                  results.quick ? " --quick" : "", has_peers ? " --from FILE,...` with what the script wrote" : "`");
  if (!results.complete) text += " **Interrupted: not all of it was run.**";
  if (results.definition != experiment.definition)
    text += " **Of an earlier definition of this experiment; run it again.**";
  return text;
}

// ---------------------------------------------------------------------------------------------- searches

std::vector<std::string> workloads_of(const std::vector<search::Searched>& searches) {
  std::vector<std::string> workloads;
  for (const search::Searched& search : searches) {
    if (std::find(workloads.begin(), workloads.end(), search.workload) == workloads.end())
      workloads.push_back(search.workload);
  }
  return workloads;
}

std::int64_t most_trials(const std::vector<search::Searched>& searches, const std::string& method) {
  std::int64_t most = 0;
  for (const search::Searched& search : searches) {
    if (search.method == method) most = std::max(most, std::int64_t(search.best_seconds.size()));
  }
  return most;
}

// Speeds relative to the fastest program that any search of the workload found.
std::string speeds_table(const Experiment& experiment, const ExperimentResults& results) {
  std::string text = "| method |", rule = "|---|";
  for (const std::int64_t count : experiment.counts) text += fmt::format(" {} |", count), rule += "---|";
  text += "\n" + rule + "\n";
  for (const Experiment::Method& method : experiment.methods) {
    const std::int64_t most = most_trials(results.searches, method.name);
    text += fmt::format("| {} |", cell(method.name));
    for (const std::int64_t count : experiment.counts)
      text += fmt::format(" {} |",
                          count <= most ? interval(study::speed_of_fastest(results.searches, method.name, count)) : "");
    text += "\n";
  }
  return text;
}

// Seconds that 100 trials took, without those that a search found in its folder when it went on.
std::string times_table(const Experiment& experiment, const ExperimentResults& results) {
  std::string text = "| method | measuring | proposing | learning |\n|---|---|---|---|\n";
  for (const Experiment::Method& method : experiment.methods) {
    const auto found = results.times.find(method.name);
    if (found == results.times.end() || found->second.measured == 0) continue;
    const study::MethodTime& time = found->second;
    text += fmt::format("| {} |", cell(method.name));
    for (const double seconds : {time.measuring, time.proposing, time.learning})
      text += fmt::format(" {:.2f} |", seconds / double(time.measured) * 100);
    text += "\n";
  }
  return text;
}

// Trials 1, 2, 4, ..., and all: enough points for a curve.
std::vector<std::int64_t> points_of(std::int64_t most) {
  std::set<std::int64_t> points{most};
  for (double t = 1; t < double(most); t *= 1.25) points.insert(std::llround(t));
  return {points.begin(), points.end()};
}

// The methods that the claims are about come first.
Plot told_apart(Plot plot, const Experiment& experiment) {
  plot.leave_out_far = plot.name_at_end = true;
  std::vector<std::string> claimed;
  for (const Claim& claim : experiment.claims) {
    claimed.push_back(claim.method);
    claimed.push_back(claim.other);
  }
  distinguish(plot, claimed);
  return plot;
}

Plot speeds_plot(const Experiment& experiment, const std::vector<search::Searched>& searches, bool bands) {
  Plot plot;
  plot.x_label = "trials";
  plot.y_label = "speed, fastest known = 1";
  plot.log_x = true;
  for (const Experiment::Method& method : experiment.methods) {
    Series series;
    series.name = method.name;
    series.band = bands;
    for (const std::int64_t count : points_of(most_trials(searches, method.name))) {
      if (count < 1) continue;
      const base::Interval speed = study::speed_of_fastest(searches, method.name, count);
      if (std::isfinite(speed.mean)) series.points.push_back({double(count), speed.mean, speed.low, speed.high});
    }
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
  return told_apart(std::move(plot), experiment);
}

// Speeds by trials, of all workloads and of each.
std::string curves_part(const Experiment& experiment, const ExperimentResults& results,
                        std::map<std::string, std::string>& files) {
  std::string page;
  const std::string caption =
      fmt::format("{}: speed of the best program by trials, geometric mean over {}", experiment.title,
                  base::counted(workloads_of(results.searches).size(), "workload"));
  files["speed.svg"] = svg_file(speeds_plot(experiment, results.searches, true), caption);
  page += fmt::format(
      "![{}](speed.svg)\n\nSpeed by the number of trials; 1 is the fastest program that any search of "
      "the workload found. Geometric mean over workloads and seeds [95 % bootstrap interval].\n\n{}\n",
      caption, speeds_table(experiment, results));
  if (!results.times.empty())
    page +=
        fmt::format("Seconds of wall time that 100 trials took, on average:\n\n{}\n", times_table(experiment, results));
  int panel = 0;
  if (workloads_of(results.searches).size() > 1) {
    page += "By workload:\n\n";
    for (const std::string& workload : workloads_of(results.searches)) {
      std::vector<search::Searched> own;
      for (const search::Searched& search : results.searches) {
        if (search.workload == workload) own.push_back(search);
      }
      const std::string name = fmt::format("workload-{}.svg", ++panel);
      files[name] = svg_file(speeds_plot(experiment, own, false), workload_name(experiment, workload));
      page += fmt::format("* [{}]({})\n", workload_name(experiment, workload), name);
    }
    page += "\n";
  }
  return page;
}

// ------------------------------------------------------------------------------------- layers and peers

// The time of each workload by contender: the mean of the timings' logarithms, and with `intervals` that of the mean.
std::string contenders_table(const Experiment& experiment, const ExperimentResults& results, const std::string& unit,
                             double per_second, bool intervals) {
  std::vector<std::string> contenders;
  for (const Experiment::Method& method : experiment.methods) contenders.push_back(method.name);
  contenders.insert(contenders.end(), experiment.baselines.begin(), experiment.baselines.end());
  std::string text = fmt::format("| workload, {} |", unit), rule = "|---|";
  for (const std::string& name : contenders) text += fmt::format(" {} |", cell(name)), rule += "---|";
  text += "\n" + rule + "\n";
  for (const std::string& workload : workloads_of(results.searches)) {
    text += fmt::format("| {} |", cell(workload_name(experiment, workload)));
    for (const std::string& name : contenders) {
      std::vector<double> times;
      for (const search::Searched& search : results.searches) {
        if (search.method == name && search.workload == workload)
          times.push_back(search.best_seconds.back() * per_second);
      }
      if (times.empty()) {
        text += " |";
        continue;
      }
      std::vector<double> logarithms;
      for (const double time : times) logarithms.push_back(std::log(time));
      base::Interval mean = base::bootstrap_geometric_mean(logarithms, 0.95, 1);
      if (!intervals) mean.low = mean.high = NAN;
      text += fmt::format(" {} |", interval(mean));
    }
    text += "\n";
  }
  return text;
}

// ------------------------------------------------------------------------------------------- evaluations

// What tables and plots of an evaluation show: a metric by shots, or what searches found by trials.
struct Shown {
  std::string measure, metric;                     // of claims
  const std::vector<Experiment::Method>& methods;  // of the experiment
  const std::vector<std::int64_t>& counts;
  std::string unit;  // of counts
  std::string x_label, y_label;
};

Finding mean_of(const Shown& shown, const ExperimentResults& results, const std::string& method, std::int64_t count,
                std::vector<std::string> only = {}) {
  Claim claim;
  claim.measure = shown.measure, claim.metric = shown.metric, claim.method = method, claim.at = count;
  claim.only = std::move(only);
  claim.at_least = 0;
  return study::finding(claim, results);
}

// Means over targets; or by target, with a column that names it.
std::string means_table(const Shown& shown, const ExperimentResults& results,
                        const std::vector<std::string>& by_target = {}) {
  const std::string first = by_target.empty() ? "" : " target |";
  std::string text = "|" + first + " method |", rule = by_target.empty() ? "|---|" : "|---|---|";
  for (const std::int64_t count : shown.counts)
    text += shown.unit.empty() ? fmt::format(" {} |", count) : fmt::format(" {} {} |", count, shown.unit),
        rule += "---|";
  text += "\n" + rule + "\n";
  const auto row = [&](const std::string& head, const std::string& method, const std::vector<std::string>& only) {
    std::string cells;
    std::int64_t of = 0;
    for (const std::int64_t count : shown.counts) {
      const Finding finding = mean_of(shown, results, method, count, only);
      cells += fmt::format(" {} |", finding.of > 0 ? interval(finding.value) : "");
      of += finding.of;
    }
    if (of > 0 || only.empty()) text += fmt::format("| {}{} |{}\n", head, cell(method), cells);
  };
  if (by_target.empty()) {
    for (const Experiment::Method& method : shown.methods) row("", method.name, {});
  }
  for (const std::string& target : by_target) {
    for (const Experiment::Method& method : shown.methods) row(cell(target) + " | ", method.name, {target});
  }
  return text;
}

Plot means_plot(const Shown& shown, const Experiment& experiment, const ExperimentResults& results) {
  Plot plot;
  plot.x_label = shown.x_label;
  plot.y_label = shown.y_label;
  for (const Experiment::Method& method : shown.methods) {
    Series series;
    series.name = method.name;
    series.band = true;
    for (const std::int64_t count : shown.counts) {
      const Finding finding = mean_of(shown, results, method.name, count);
      if (finding.of > 0)
        series.points.push_back({double(count), finding.value.mean, finding.value.low, finding.value.high});
    }
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
  return told_apart(std::move(plot), experiment);
}

std::vector<std::string> targets_of(const ExperimentResults& results) {
  std::vector<std::string> targets;
  for (const base::Document& row : results.evaluation.at("searches").as_list()) {
    const std::string& target = row.at("target").as_string();
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(target);
  }
  return targets;
}

// What the searches of an evaluation found.
std::string searches_part(const Experiment& experiment, const ExperimentResults& results,
                          std::map<std::string, std::string>& files) {
  if (!experiment.searches || results.evaluation.is_null() || results.evaluation.find("searches") == nullptr) return "";
  const Shown shown{"found", "",       experiment.searches->methods, experiment.searches->counts,
                    "",      "trials", "speed, fastest recorded = 1"};
  const std::string caption = fmt::format("{}: speed found by trials", experiment.title);
  Plot plot = means_plot(shown, experiment, results);
  plot.log_x = true;
  files["found.svg"] = svg_file(plot, caption);
  const std::int64_t batch = experiment.searches->batch.value_or(study::EvaluateRequest().search_batch);
  std::string text = fmt::format(
      "![{}](found.svg)\n\nSearches among what the targets recorded, each workload on its own, guided by the same "
      "models "
      "in rounds of {}: speed of the best program by the number of trials; 1 is the fastest that was recorded. "
      "Geometric "
      "mean over workloads and targets [95 % bootstrap interval over {}].\n\n{}\n",
      caption, batch, base::counted(experiment.searches->seeds, "seed"), means_table(shown, results));
  const bool has_several = std::any_of(shown.methods.begin(), shown.methods.end(), [&](const auto& method) {
    return mean_of(shown, results, method.name, shown.counts.front()).of > 1;
  });
  if (has_several) text += fmt::format("By target:\n\n{}\n", means_table(shown, results, targets_of(results)));
  return text;
}

}  // namespace

ClaimText claim_text(const Experiment& experiment, const Claim& claim, const ExperimentResults* results) {
  Finding finding;
  if (results != nullptr) finding = study::finding(claim, *results);
  ClaimText text{figure_text(experiment, claim, finding), bound_text(claim), verdict_text(claim, finding)};
  if (results != nullptr && (results->quick || !results->complete)) text.verdict += " (a part of it was run)";
  return text;
}

std::map<std::string, std::string> experiment_files(const ExperimentEntry& entry, const std::string& folder) {
  const Experiment& experiment = entry.experiment;
  std::map<std::string, std::string> files;
  std::string page = fmt::format("# {}: {}\n\n{}\n\n", experiment.id, experiment.title, experiment.question);
  if (!experiment.published.empty())
    page += fmt::format("**Published.** {}{}\n\n", experiment.published,
                        experiment.source.empty() ? "" : fmt::format(" ({})", experiment.source));
  if (!experiment.protocol.empty()) page += fmt::format("**Protocol.** {}\n\n", experiment.protocol);
  if (!entry.results) {
    page += "Not run yet.\n";
    files["page.md"] = std::move(page);
    return files;
  }
  const ExperimentResults& results = *entry.results;
  page += "| claim | figure | asked | verdict |\n|---|---|---|---|\n";
  for (const Claim& claim : experiment.claims) {
    const ClaimText text = claim_text(experiment, claim, &results);
    page += fmt::format("| {} | {} | {} | {} |\n", cell(claim.text), text.figure, text.asked, text.verdict);
  }
  page += "\n";
  const auto has_curves = [&] {
    return std::any_of(experiment.methods.begin(), experiment.methods.end(),
                       [](const Experiment::Method& method) { return method.trials > 1; });
  };
  if (experiment.kind == Experiment::Kind::search || (experiment.kind == Experiment::Kind::peers && has_curves())) {
    page += curves_part(experiment, results, files);
  } else if (experiment.kind == Experiment::Kind::peers) {
    page += fmt::format("Geometric mean over rounds [95 % bootstrap interval].\n\n{}\n",
                        contenders_table(experiment, results, "ms", 1e3, true));
  } else if (experiment.kind == Experiment::Kind::layers) {
    page += contenders_table(experiment, results, "microseconds", 1e6, false) + "\n";
  } else {
    for (const std::string metric : {"spearman", "top1"}) {
      const std::string name = metric_name(metric);
      const Shown shown{
          "score", metric, experiment.methods, experiment.counts, "shots", "measurements of each workload", name};
      const std::string caption = fmt::format("{}: {} by measurements", experiment.title, name);
      files[metric + ".svg"] = svg_file(means_plot(shown, experiment, results), caption);
      page += fmt::format("![{}]({}.svg)\n\n{}, mean over targets [95 % bootstrap interval over draws]:\n\n{}\n",
                          caption, metric, metric == "spearman" ? "Spearman" : "Top-1", means_table(shown, results));
    }
    page += searches_part(experiment, results, files);
  }
  page += provenance(experiment, results, folder) + "\n";
  files["page.md"] = std::move(page);
  return files;
}

std::string experiments_table(const std::vector<ExperimentEntry>& entries, const std::string& folder) {
  std::string text = R"(# Experiments

Questions, and the answers that experiments gave. The first table has each experiment's main claim, published or our own, and
how many of its claims came out as asked; the second one every claim that did not. An experiment's page has all of its claims, the publication,
the protocol, the curves and the command. *Reproduced*: the figure is within what is asked, even if its 95 % interval is not; *contradicted*: the
whole interval is outside; *not reproduced*: in between. A figure without an interval (a number of workloads, the least of several workloads) is
reproduced or not reproduced, never contradicted; the interval of a number of trials is not shown. What is asked is what
was published, or our own aim; a claim that was put another way after its run says so on its page.

Figures are ratios of speeds or of numbers of trials ("times"; 1.05 times as fast), Spearman correlations between predicted and measured speed
within a workload, top-1 (the speed of the program predicted fastest, over that of the fastest), speeds found by searches (1 is the fastest recorded program), or
differences of these ("+"). *Residual* is
graft's default learner, *default* a search by it, *scratch* kernel regression on the target's own measurements, *trees* boosted trees, *guided*: with
a model from other platforms. docs/explanation/glossary.md has the other words.

)";
  text += fmt::format(
      "`graft experiment run NAME{0}` runs one again; `graft experiment render{0}` makes this file and the pages of "
      "each folder's `experiment.yaml` and\n`results.json`.\n\n"
      "| | question | main claim | figure | asked | claims reproduced |\n|---|---|---|---|---|---|\n",
      folder_flag(folder));
  std::string failed;
  for (const ExperimentEntry& entry : entries) {
    const Experiment& experiment = entry.experiment;
    const ExperimentResults* const results = entry.results ? &*entry.results : nullptr;
    const std::string link = fmt::format("[{}]({}/page.md)", experiment.id, experiment.name);
    std::size_t reproduced = 0, run = 0;
    for (const Claim& claim : experiment.claims) {
      const ClaimText of_claim = claim_text(experiment, claim, results);
      if (&claim == &experiment.claims.front())
        text += fmt::format("| {} | {} | {} | {} | {} |", link, cell(experiment.title), cell(claim.text),
                            of_claim.figure, of_claim.asked);
      if (results == nullptr) continue;
      const Finding finding = study::finding(claim, *results);
      const bool as_asked = finding.verdict == Finding::Verdict::reproduced;
      reproduced += as_asked;
      run += finding.of > 0;
      if (!as_asked)
        failed += fmt::format("| {} | {} | {} | {} | {} |\n", link, cell(claim.text), of_claim.figure, of_claim.asked,
                              of_claim.verdict);
    }
    text += results == nullptr ? " not run |\n" : fmt::format(" {} of {} |\n", reproduced, run);
  }
  if (failed.empty()) return text;
  return text +
         "\n## Claims that did not come out as asked\n\n| | claim | figure | asked | verdict "
         "|\n|---|---|---|---|---|\n" +
         failed;
}

}  // namespace graft::cli
