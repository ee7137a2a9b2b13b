#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "cli/report/page.h"
#include "datasets/agreement.h"
#include "search/comparison.h"
#include "search/run_directory.h"
#include "tasks/rebuild.h"

namespace graft::cli {
namespace {

struct Flags {
  std::vector<std::string> inputs, trials;
  std::string out, against;
  std::int64_t least_programs = 10, again = 0;
  double near = 0.95;
};

template <class Cell, class Value>
base::Document square_of(const datasets::Square<Cell>& cells, Value value) {
  base::Document rows = base::Document::list();
  for (const std::vector<Cell>& row : cells) {
    base::Document values = base::Document::list();
    for (const Cell& cell : row) values.push(value(cell));
    rows.push(std::move(values));
  }
  return rows;
}

base::Document to_document(const datasets::Agreement::Family& family) {
  base::Document workloads = base::Document::list();
  for (const codegen::Workload& workload : family.workloads) workloads.push(workload.text);
  base::Document document = base::Document::map();
  document.set("family", family.name)
      .set("workloads", std::move(workloads))
      .set("spearman", square_of(family.spearman, [](const auto& cell) { return cell.value.mean; }))
      .set("low", square_of(family.spearman, [](const auto& cell) { return cell.value.low; }))
      .set("high", square_of(family.spearman, [](const auto& cell) { return cell.value.high; }))
      .set("programs", square_of(family.spearman, [](const auto& cell) { return cell.programs; }));
  return document;
}

base::Document regret_document(const datasets::Square<datasets::Agreement::Regret>& regret) {
  base::Document document = base::Document::map();
  document.set("mean", square_of(regret, [](const auto& cell) { return cell.value.mean; }))
      .set("low", square_of(regret, [](const auto& cell) { return cell.value.low; }))
      .set("high", square_of(regret, [](const auto& cell) { return cell.value.high; }))
      .set("worst", square_of(regret, [](const auto& cell) { return cell.worst; }))
      .set("worst_workload", square_of(regret, [](const auto& cell) { return cell.worst_workload; }));
  return document;
}

// Platforms have numbers in the heads of columns, so that many fit on a line.
template <class Cell, class Value>
void print_square(const datasets::Agreement& agreement, const datasets::Square<Cell>& cells, const std::string& corner,
                  Value value, Output& out) {
  std::vector<std::string> head{corner};
  for (std::size_t p = 0; p < agreement.platforms.size(); ++p) head.push_back(std::to_string(p + 1));
  Table table(head);
  for (std::size_t p = 0; p < agreement.platforms.size(); ++p) {
    std::vector<std::string> row{fmt::format("{} ({})", agreement.platforms[p].name, p + 1)};
    for (const Cell& cell : cells[p]) {
      const double number = value(cell);
      row.push_back(std::isfinite(number) ? fmt::format("{:.2f}", number) : "-");
    }
    table.row(std::move(row));
  }
  out.line("");
  out.table(table);
}

void write_page(const Flags& flags, const std::string& of, Session& session) {
  if (flags.out.empty()) return;
  base::Document& json = session.output.json();
  base::replace_file(flags.out, page({}, {{"compare", json}},
                                     fmt::format("Made by graft {} on {} from {} {}.", graft_version(),
                                                 context_of(session).at("date").as_string(), flags.inputs.size(), of)));
  json.set("out", flags.out);
  session.output.line("\n" + flags.out + ": the same as pictures, with intervals");
}

int compare_datasets(const Flags& flags, Session& session) {
  const datasets::Agreement agreement = datasets::agreement(
      read_datasets(flags.inputs, session.progress), int(std::min<std::int64_t>(flags.least_programs, 1'000'000)));
  Output& out = session.output;
  base::Document platforms = base::Document::list(), families = base::Document::list();
  Table table({"platform", "source"});
  for (const datasets::Agreement::Platform& platform : agreement.platforms) {
    base::Document entry = base::Document::map();
    entry.set("platform", platform.name).set("source", platform.source);
    platforms.push(std::move(entry));
    table.row({platform.name, platform.source});
  }
  out.table(table);
  for (const datasets::Agreement::Family& family : agreement.families) {
    families.push(to_document(family));
    print_square(
        agreement, family.spearman, fmt::format("Spearman: {} ({})", family.name, family.workloads.size()),
        [](const auto& cell) { return cell.value.mean; }, out);
  }
  print_square(
      agreement, agreement.regret, "regret: best of row on column", [](const auto& cell) { return cell.value.mean; },
      out);
  print_square(
      agreement, agreement.regret, "largest of a workload", [](const auto& cell) { return cell.worst; }, out);
  out.json()
      .set("platforms", std::move(platforms))
      .set("families", std::move(families))
      .set("regret", regret_document(agreement.regret));
  write_page(flags, "datasets", session);
  return done;
}

// The folder that runs lie in is their method.
std::string method_of(const std::filesystem::path& run) {
  const std::filesystem::path plain = std::filesystem::absolute(run).lexically_normal();
  return (plain.has_filename() ? plain : plain.parent_path()).parent_path().filename().string();
}

// Those asked for, or the usual ones as far as every search has them.
std::vector<std::int64_t> counts_of(const Flags& flags, const std::vector<search::Searched>& searches) {
  if (!flags.trials.empty()) {
    std::vector<std::int64_t> counts = integers_of("--trials", flags.trials, 1);
    if (!std::is_sorted(counts.begin(), counts.end())) throw base::UserError("--trials", "expected them to rise");
    return counts;
  }
  std::size_t least = searches.front().best_seconds.size();
  for (const search::Searched& search : searches) least = std::min(least, search.best_seconds.size());
  std::vector<std::int64_t> counts;
  for (const std::int64_t count : {8, 16, 32, 64, 128}) {
    if (count <= std::int64_t(least)) counts.push_back(count);
  }
  if (counts.empty()) counts.push_back(std::max<std::int64_t>(1, std::int64_t(least)));
  return counts;
}

// The finalists of all runs timed again, those of a workload in turn, `rounds` times.
search::Retimed times_again(const std::vector<search::RunContent>& runs, std::int64_t rounds, Session& session) {
  using Place = std::pair<std::string, std::string>;  // platform, workload
  std::map<Place, std::vector<codegen::Candidate>> asked;
  std::map<std::string, tasks::Platform> platforms;
  std::set<std::uint64_t> known;  // candidates
  for (const search::RunContent& run : runs) {
    const std::string& name = run.request.at("platform").as_string();
    if (!platforms.contains(name)) {
      const tasks::Platform platform = search::platform_of(run);
      if (tasks::source_of(platform) == "modelled")
        throw base::UserError("--again", fmt::format("times of {} are modelled: they stay what they are", name));
      if (platform_hash(platform) != run.request.at("platform_hash").as_string())
        throw base::UserError("--again", fmt::format("{} is not what these runs were made on", name));
      platforms.emplace(name, platform);
    }
    for (const codegen::Candidate& candidate : search::finalists(run.journal.trials)) {
      if (known.insert(codegen::hash(candidate)).second) asked[{name, candidate.workload.text}].push_back(candidate);
    }
  }
  search::Retimed times;
  for (const auto& [place, candidates] : asked) {
    session.progress.progress("timing again", std::int64_t(times.size()), std::int64_t(known.size()));
    const std::vector<datasets::Measurement> again = tasks::timed_in_turn(
        platforms.at(place.first), candidates, int(rounds), MeasureFlags().settings(0, session), session.progress);
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const bool ok = again[c].status == datasets::Status::ok;
      times.emplace(codegen::hash(candidates[c]),
                    ok ? datasets::seconds_of(again[c]) : std::numeric_limits<double>::infinity());
    }
  }
  return times;
}

int compare_runs(const Flags& flags, Session& session) {
  if (!(flags.near > 0 && flags.near <= 1))
    throw base::UserError("--near",
                          fmt::format("expected a share of the best speed, > 0 and <= 1, got {:g}", flags.near));
  std::vector<search::RunContent> runs;
  for (const std::string& input : flags.inputs) {
    base::check_stop(session.progress);
    runs.push_back(search::read_run(input));
    datasets::refuse_emulated(input, runs.back().request.at("source").as_string());
  }
  search::Retimed again;
  if (flags.again > 0) again = times_again(runs, flags.again, session);
  std::vector<search::Searched> searches;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    base::check_stop(session.progress);
    searches.push_back(search::searched(method_of(flags.inputs[r]), runs[r].request.at("platform").as_string(),
                                        runs[r].request.at("seed").as_integer(), runs[r].journal.trials,
                                        flags.again > 0 ? &again : nullptr));
  }
  const std::vector<std::int64_t> counts = counts_of(flags, searches);
  const std::string against = flags.against.empty() ? searches.front().method : flags.against;
  const auto methods = search::compare_searches(searches, counts, against, flags.near, session.seed);

  Output& out = session.output;
  std::vector<std::string> speed_head{"speed of the best after"}, slower_head{"slower than " + against + ", % after"};
  for (const std::int64_t count : counts) {
    speed_head.push_back(fmt::format("{} trials", count));
    slower_head.push_back(fmt::format("{} trials", count));
  }
  Table speed(speed_head), slower(slower_head),
      near({"method", "searches", fmt::format("trials to {:g} % of the best speed", 100 * flags.near),
            "times fewer than " + against, "never"});
  base::Document rows = base::Document::list();
  for (const search::MethodSearched& method : methods) {
    base::Document entry = base::Document::map(), speeds = base::Document::list(), slowers = base::Document::list();
    std::vector<std::string> speed_cells{method.method}, slower_cells{method.method};
    for (std::size_t c = 0; c < counts.size(); ++c) {
      speeds.push(base::to_document(method.speed[c]));
      slowers.push(base::to_document(method.slower[c]));
      const base::Interval &by = method.slower[c], per_cent{100 * by.mean, 100 * by.low, 100 * by.high};
      speed_cells.push_back(interval_text(method.speed[c]));
      slower_cells.push_back(interval_text(per_cent, "{:.1f}"));
    }
    rows.push(entry.set("method", method.method)
                  .set("searches", method.searches)
                  .set("speed", std::move(speeds))
                  .set("slower", std::move(slowers))
                  .set("trials_to_near", base::to_document(method.trials_to_near))
                  .set("times_fewer", base::to_document(method.times_fewer))
                  .set("never", method.never));
    speed.row(std::move(speed_cells));
    if (method.method != against) slower.row(std::move(slower_cells));
    near.row({method.method, std::to_string(method.searches), interval_text(method.trials_to_near, "{:.1f}"),
              interval_text(method.times_fewer, "{:.2f}"), std::to_string(method.never)});
  }
  out.line(
      fmt::format("1 is the fastest program that any of these searches found{}; geometric means, {}\n",
                  flags.again > 0 ? fmt::format(", by the least of {} times that were taken again", flags.again) : "",
                  methods.front().searches >= std::int64_t(base::least_for_interval)
                      ? "95 % intervals over searches"
                      : fmt::format("no intervals (they need {} searches)", base::least_for_interval)));
  out.table(speed);
  out.line("");
  if (!slower.empty()) {
    out.table(slower);
    out.line("");
  }
  out.table(near);
  base::Document trials = base::Document::list();
  for (const std::int64_t count : counts) trials.push(count);
  out.json()
      .set("trials", std::move(trials))
      .set("against", against)
      .set("near", flags.near)
      .set("again", flags.again)
      .set("methods", std::move(rows));
  write_page(flags, "runs", session);
  return done;
}

int compare(const Flags& flags, Session& session) {
  if (!flags.out.empty()) check_output_folder(flags.out);
  const auto runs = std::count_if(flags.inputs.begin(), flags.inputs.end(),
                                  [](const std::string& input) { return std::filesystem::is_directory(input); });
  if (runs != 0 && std::size_t(runs) != flags.inputs.size())
    throw base::UserError("RUN|DATA.h5", "folders of runs and datasets are compared among themselves only");
  return runs == 0 ? compare_datasets(flags, session) : compare_runs(flags, session);
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .help = "do platforms agree on what is fast; or: which search finds it with fewer trials",
          .examples = {"graft compare datasets/shipped/common/*.h5 --out platforms.html",
                       "graft compare runs/scratch/* runs/base/* --against scratch --again 40 --out searches.html"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positionals("DATA.h5|RUN", flags->inputs,
                                "datasets of at least two platforms, of the same programs (graft collect --programs): "
                                "rank correlations and regret; or folders of graft tune, those of one method (a model, "
                                "an explorer) in one folder, with the same workloads, platforms and seeds in each");
            options.integer("least-programs", flags->least_programs, 2,
                            "common programs of a workload without which two platforms are not compared on it");
            options.list(
                "trials", flags->trials,
                "runs: how fast the best is after so many trials; default: 8,16,32,64,128 as far as all have them");
            options.number("near", flags->near, 0, "runs: trials until one has this share of the fastest known speed");
            options.text("against", flags->against,
                         "runs: the method that others are held against; default: the first");
            options.integer(
                "again", flags->again, 0,
                fmt::format("runs: measure what was among the {} fastest so far in any of them so many times more, all "
                            "in turn, and judge by the least of these times: for machines whose speed moves; 0: by "
                            "the times that the searches took",
                            search::finalist_count));
            options.text("out", flags->out, "page with pictures to write");
            return [flags](Session& session) { return compare(*flags, session); };
          },
          .stops = true};
}

}  // namespace graft::cli
