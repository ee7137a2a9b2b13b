#include "cli/report/searches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/statistics.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/print/best.h"
#include "cli/report/excerpt.h"
#include "cli/report/html.h"
#include "cli/report/plot.h"
#include "cli/report/roofline.h"
#include "cli/result_kind.h"
#include "cli/texts.h"
#include "codegen/expression/workload.h"
#include "datasets/failures.h"
#include "study/flows/rounds.h"
#include "tasks/command.h"

namespace graft::cli {
namespace {

using Curve = std::vector<std::pair<std::int64_t, double>>;  // trial, seconds

// One search of one workload.
struct Search {
  std::string name, workload, platform, source;
  Curve best;      // so far: at each improvement, and at the end
  Curve measured;  // the ok ones
  Curve expected;  // at each round's end the least time that the model expected of the round, where it expected times
  std::vector<double> foreseen;  // by round: rank correlation of what the model expected with what was measured
  std::int64_t trials = 0;
  base::Document statuses = base::Document::map();
  datasets::FailureCounts failures;
  std::optional<double> seconds;  // of the answer
  std::vector<std::string> schedule;
  const ReportedRun* run = nullptr;      // null: a result alone
  const ReportedBest* answer = nullptr;  // .

  void take(double its_seconds, const base::Document& its_schedule) {
    seconds = its_seconds;
    for (const base::Document& step : its_schedule.as_list()) schedule.push_back(step.as_string());
  }
};

// What the model expected of each round before it was measured.
void add_expected(const std::vector<datasets::Trial>& trials, const search::RunContent& content, Search& out) {
  constexpr std::size_t least_to_rank = 5;
  const base::Document* const given = content.request.find("batch");
  if (given == nullptr || content.predictions.empty()) return;
  const auto batch = std::size_t(std::max<std::int64_t>(1, given->as_integer()));
  for (std::size_t begin = 0; begin < trials.size(); begin += batch) {
    const std::size_t end = std::min(begin + batch, trials.size());
    double least = std::numeric_limits<double>::infinity();
    std::vector<double> scores, speeds;
    for (std::size_t t = begin; t < end; ++t) {
      const auto found = content.predictions.find(codegen::hash(trials[t].candidate));
      if (found == content.predictions.end()) continue;
      if (found->second.seconds) least = std::min(least, *found->second.seconds);
      if (trials[t].measurement.status != datasets::Status::ok) continue;
      scores.push_back(found->second.score);
      speeds.push_back(-datasets::seconds_of(trials[t].measurement));
    }
    if (std::isfinite(least)) out.expected.emplace_back(std::int64_t(end), least);
    if (scores.size() >= least_to_rank) out.foreseen.push_back(base::spearman(scores, speeds));
  }
}

std::vector<Search> searches_of(const ReportedRun& run) {
  std::vector<Search> out;
  std::vector<std::vector<datasets::Trial>> own;
  for (const datasets::Trial& trial : run.content.journal.trials) {
    const std::string& text = trial.candidate.workload.text();
    auto found = std::find_if(out.begin(), out.end(), [&](const Search& search) { return search.workload == text; });
    if (found == out.end()) {
      Search search;
      search.name = run.name;
      search.workload = text;
      search.platform = run.content.request.at("platform").as_string();
      search.source = run.content.request.at("source").as_string();
      search.run = &run;
      out.push_back(std::move(search));
      own.emplace_back();
      found = out.end() - 1;
    }
    own[std::size_t(found - out.begin())].push_back(trial);
    ++found->trials;
    found->failures.add(trial.measurement);
    if (trial.measurement.status != datasets::Status::ok) continue;
    const double seconds = datasets::seconds_of(trial.measurement);
    found->measured.emplace_back(found->trials, seconds);
    if (found->best.empty() || seconds < found->best.back().second) found->best.emplace_back(found->trials, seconds);
  }
  for (std::size_t s = 0; s < out.size(); ++s) {
    out[s].statuses = study::status_counts(own[s]);
    add_expected(own[s], run.content, out[s]);
    if (const auto best = run.best.find(out[s].workload); best != run.best.end()) {
      out[s].answer = &best->second;
      out[s].take(best->second.answer.seconds(), study::schedule_document(best->second.answer.candidate));
    }
    if (!out[s].best.empty() && out[s].best.back().first != out[s].trials)
      out[s].best.emplace_back(out[s].trials, out[s].best.back().second);
  }
  return out;
}

Search search_of(const ReportedResult& given) {
  const base::Document& result = given.result;
  Search search;
  search.name = given.name;
  search.workload = result.at("workload").as_string();
  search.platform = result.at("platform").as_string();
  if (const base::Document* source = result.find("source")) search.source = source->as_string();
  search.trials = result.at("trials").as_integer();
  if (const base::Document* statuses = result.find("statuses")) search.statuses = *statuses;
  for (const base::Document& point : result.at("curve").as_list()) {
    const base::Document::List& pair = point.as_list();
    if (pair.size() != 2) throw base::UserError(point.place(), "expected [trial, seconds]");
    search.best.emplace_back(pair[0].as_integer(), pair[1].as_number());
  }
  const base::Document& best = result.at("best");
  if (const base::Document* const own = best.is_null() ? nullptr : best.find("configuration")) {
    search.seconds = best.at("seconds").as_number();
    for (const auto& [name, value] : own->as_map())
      search.schedule.push_back(fmt::format("{} = {}", name, value.is_string() ? value.as_string() : value.to_json()));
  } else if (!best.is_null()) {
    search.take(best.at("seconds").as_number(), best.at("schedule"));
  }
  return search;
}

// The workload is only a name: a command's program, whose speed in operations nobody knows.
bool is_own(const Search& search) {
  return search.source == tasks::command_source;
}

// By the steps, which of another graft's JSON are all that is known.
bool does_less_arithmetic(const Search& search) {
  return std::any_of(search.schedule.begin(), search.schedule.end(),
                     [](const std::string& step) { return step.starts_with("winograd"); });
}

// Best times so far of all, single trials, and what models expected.
std::string curves(const std::vector<Search>& searches, Figures& figures) {
  double best = std::numeric_limits<double>::infinity(), worst = 0;
  bool expected = false;
  for (const Search& search : searches) {
    expected = expected || !search.expected.empty();
    for (const Curve* curve : {&search.best, &search.measured, &search.expected}) {
      for (const auto& [trial, seconds] : *curve) {
        best = std::min(best, seconds);
        worst = std::max(worst, seconds);
      }
    }
  }
  if (!(worst > 0)) return "";
  const auto [unit, unit_name] = unit_of(best);
  const base::Document* const request = searches.front().run ? &searches.front().run->content.request : nullptr;
  const std::optional<tasks::Goal> goal = request ? goal_of(*request, best) : std::nullopt;
  const std::string what =
      goal ? goal->name + (goal->unit.empty() ? "" : ", " + goal->unit)
           : fmt::format("{}time of one run, {}", kind_of_times(searches.front().source), unit_name);
  Plot plot{.x_label = "trials",
            .y_label = what + (worst / best > 5 ? " (log)" : ""),
            .log_y = worst / best > 5,
            .series = {}};
  const auto points = [&, unit = unit](const Curve& curve) {
    std::vector<Point> list;
    for (const auto& [trial, seconds] : curve)
      list.push_back({.x = double(trial), .y = goal ? goal_of(*request, seconds)->value : seconds / unit});
    return list;
  };
  const auto add = [&](std::size_t s, const std::string& name, const Curve& curve) -> Series& {
    return plot.series.emplace_back(
        Series{.name = searches[s].name + name, .colour = int(s) % series_colours, .points = points(curve)});
  };
  for (std::size_t s = 0; s < searches.size(); ++s) add(s, ", single trials", searches[s].measured).dots_only = true;
  for (std::size_t s = 0; s < searches.size(); ++s) add(s, "", searches[s].best).steps = true;
  for (std::size_t s = 0; s < searches.size(); ++s) {
    if (searches[s].expected.empty()) continue;
    Series& series = add(s, ", as the model expected", searches[s].expected);
    series.dashed = true;
    if (searches.size() == 1) series.colour = 1;
  }
  return figures.add("search", plot,
                     fmt::format("Best {} so far over the number of trials; faint dots are single trials.",
                                 goal ? goal->name : "time") +
                         (expected ? " Dashed: the best of each round as the model expected it before the round "
                                     "was measured."
                                   : ""));
}

std::string foreseen_text(const Search& search) {
  if (search.foreseen.empty()) return "";
  std::string text = fmt::format("{:.2f} in its first round", search.foreseen.front());
  if (search.foreseen.size() > 1) {
    const std::vector<double> later(search.foreseen.begin() + 1, search.foreseen.end());
    text += fmt::format(", {:.2f} in later ones (mean of {})", base::mean(later), later.size());
  }
  return text;
}

// What bench kernels measured of a workload; null where it did not.
const base::Document* bench_row(const base::Document& bench, const std::string& workload, const ReportedBest& best) {
  const base::Document* found = nullptr;
  for (const base::Document& row : bench.at("rows").as_list()) {
    if (row.at("name").as_string() != workload) continue;
    const bool same = row.at("program").as_string() == base::to_hex(best.answer.program_hash);
    if (found == nullptr || same) found = &row;
    if (same) break;
  }
  return found;
}

// The roof that the platform's description knows, or that bench kernels measured on it.
std::optional<study::Roof> roof_of(const ReportedBest& best, const base::Document* row) {
  if (best.explained.roof || row == nullptr) return best.explained.roof;
  return measured_roof(*row);
}

std::string roofline(const Search& search, const base::Document* row, Figures& figures) {
  const study::Explained& explained = search.answer->explained;
  study::Work work = explained.work;
  const std::string title = "<h3>Position under the roofline</h3>\n";
  const std::string amounts =
      fmt::format("{} of the definition over {} of operands, each moved once: {:.3g} FLOP a byte",
                  count_text(work.operations, "FLOP"), count_text(work.bytes, "B"), work.intensity());
  const std::optional<study::Roof> roof = roof_of(*search.answer, row);
  if (!roof)
    return title + fmt::format("<p>{}. The platform's peak and bandwidth are not known{}.</p>\n", escaped(amounts),
                               search.source == "native" ? ": graft bench kernels measures them (see below)" : "");
  double speed = row != nullptr && !explained.roof && !row->at("value").is_null() ? row->at("value").as_number()
                                                                                  : search.answer->answer.gflops();
  std::string saved;
  if (explained.fewer_operations) {
    const double run = *explained.fewer_operations, by_definition = speed;
    speed *= run / work.operations;
    work.operations = run;
    saved = fmt::format(
        " Its program needs {} only (winograd): the figure shows these, {:.3g} FLOP a byte; by the definition it is at "
        "{:.4g} GFLOP/s.",
        count_text(run, "FLOP"), work.intensity(), by_definition);
  }
  const double at = work.intensity(), bound = work.gflops_below(*roof);
  Plot plot = roofline_plot(roof, {at}, search.source);
  plot.series.push_back(
      {.name = fmt::format("best: {:.4g} GFLOP/s", speed), .colour = 1, .points = {{.x = at, .y = speed}}});
  const bool by_memory = bound < roof->gflops;
  std::string caption = fmt::format("{}.{} {} bounds it to {:.4g} GFLOP/s; the best is at {:.1f} % of that.", amounts,
                                    saved, by_memory ? "Memory" : "Arithmetic", bound, 100 * speed / bound);
  if (speed > bound && by_memory) caption += " It is above the bound because operands stay in caches between runs.";
  return title + figures.add("roofline", plot, caption);
}

std::string libraries(const base::Document& row, const ReportedBest& best) {
  const auto text = [](const base::Document& value) {
    return value.is_null() ? "wrong" : number_text(value.as_number(), 1);
  };
  Table table({"", "GFLOP/s", "graft is", "how"});
  const base::Document& ours = row.at("value");
  table.row({"graft", text(ours), "", row.at("pipeline").as_string()});
  for (const auto& [name, value] : row.at("baselines").as_map()) {
    const bool both = !ours.is_null() && !value.is_null();
    const base::Document* const how = row.at("how").find(name);
    table.row({name, text(value), both ? fmt::format("{:.2f}x", ours.as_number() / value.as_number()) : "-",
               how == nullptr ? "" : how->as_string()});
  }
  table.row({"peak", number_text(row.at("peak").as_number(), 1), "", ""});
  const bool same = row.at("program").as_string() == base::to_hex(best.answer.program_hash);
  return fmt::format("<h3>Compared with libraries</h3>\n<p>Measured in turn by graft bench kernels{}.</p>\n",
                     same ? ""
                          : fmt::format(", of trial {}, which is not the best of today: run it again",
                                        row.at("trial").as_integer())) +
         html_table(table);
}

std::string statuses_table(const Search& search) {
  constexpr std::size_t most_reasons = 5;
  Table table({"trials that ended as", "number", "share"});
  for (const auto& [name, count] : search.statuses.as_map())
    table.row({name, std::to_string(count.as_integer()),
               share_text(double(count.as_integer()) / double(std::max<std::int64_t>(1, search.trials)))});
  std::string out = "<h3>Trials by status</h3>\n" + html_table(table);
  Table reasons({"why trials failed", "number"});
  for (const datasets::FailureKind& kind : search.failures.kinds()) {
    if (reasons.rows().size() < most_reasons) reasons.row({datasets::to_text(kind), std::to_string(kind.count)});
  }
  return reasons.empty() ? out : out + html_table(reasons);
}

std::string commands_text(const Search& search) {
  const ReportedRun& run = *search.run;
  const std::string folder = shell_word(run.folder);
  std::string out;
  if (const base::Document* context = run.content.journal.head.find("context")) {
    if (const base::Document* command = context->find("command")) out += command->as_string() + "\n";
  }
  if (is_own(search))
    return out + fmt::format("graft inspect {0}\ngraft export kernel_tuner {0} --out measured.json\n", folder);
  const std::string which = run.best.size() > 1 ? " --workload " + shell_word(search.workload) : "";
  out += fmt::format("graft inspect {}{} --program --assembly\n", folder, which);
  if (run.content.request.at("command").as_string() == "tune")
    out += fmt::format("graft compile {} --out lib\n", folder);
  if (search.source == "native")
    out += fmt::format("graft bench kernels {0} --json > {1}\n", folder,
                       shell_word((std::filesystem::path(run.folder) / "bench.json").string()));
  return out;
}

// How much each parameter of a command matters to what the model has learnt.
std::string importance_table(const Search& search) {
  const base::Document* const shares = search.run->result ? search.run->result->find("importance") : nullptr;
  if (shares == nullptr || shares->as_list().empty()) return "";
  Table table({"parameter", "alone", ""});
  double alone = 0;
  for (const base::Document& entry : shares->as_list()) {
    const double share = entry.at("share").as_number();
    constexpr double widest = 30;
    table.row({entry.at("parameter").as_string(), share_text(share),
               std::string(std::size_t(std::clamp(share, 0.0, 1.0) * widest), '#')});
    alone += share;
  }
  return fmt::format(
             "<h3>What the parameters matter</h3>\n<p>The share of the variance of what the model expects over "
             "the space that each parameter makes alone (functional ANOVA); the other {} are of several "
             "together.</p>\n",
             share_text(std::max(0.0, 1 - alone))) +
         html_table(table);
}

// All that is known of a run's best.
std::string details(const Search& search, const base::Document* bench, Figures& figures) {
  constexpr std::size_t most_lines = 60;
  const study::Explained& explained = search.answer->explained;
  const base::Document* const row = bench == nullptr ? nullptr : bench_row(*bench, search.workload, *search.answer);
  std::string out = roofline(search, row, figures);
  if (row != nullptr) out += libraries(*row, *search.answer);
  out += "<div class=\"pair\">\n" + html_listing("Loop program before: as defined", explained.naive) +
         html_listing("Loop program after: of the best schedule", explained.scheduled) + "</div>\n";
  if (!explained.unknown.empty()) out += fmt::format("<p>{}.</p>\n", escaped(explained.unknown));
  if (!explained.assembly.empty()) {
    const Excerpt excerpt = busiest_loop(explained.assembly, most_lines);
    out += html_listing(fmt::format("Machine code for {}: {} lines of {}, the innermost loop with the most arithmetic",
                                    explained.cpu, excerpt.lines, excerpt.of),
                        excerpt.text);
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Search& search) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.emplace_back(name, value);
  };
  const base::Document& request = search.run->content.request;
  if (search.answer != nullptr) {
    const study::Answer& answer = search.answer->answer;
    add("best", fmt::format("{}, trial {} of {}", measured_text(request, answer.seconds(), search.source), answer.trial,
                            search.trials));
    add("its results", checked_text(search.source, answer.measurement.check));
    add("built by", answer.pipeline);
  }
  for (const char* key : {"seed", "explorer", "model"}) {
    if (const base::Document* value = request.find(key))
      add(key, value->is_string() ? value->as_string() : value->to_json());
  }
  add("the model's rank correlation", foreseen_text(search));
  return facts;
}

// The table of all searches of one workload on one platform.
std::string searches_table(const std::vector<Search>& searches, const std::optional<double>& peak) {
  const Search& first = searches.front();
  const bool own = is_own(first);
  const double operations = own ? 0 : double(codegen::flops(codegen::parse_workload(first.workload)));
  const std::optional<tasks::Goal> goal = first.run ? goal_of(first.run->content.request, 1) : std::nullopt;
  std::vector<std::string> head{"run", "trials", "best " + (goal ? goal->name : seconds_word(first.source))};
  if (!own) head.push_back(kind_of_times(first.source) + "GFLOP/s");
  if (peak) head.push_back("of the peak");
  head.push_back("status");
  Table table(head);
  for (const Search& search : searches) {
    const bool any = search.seconds.has_value();
    const double gflops = any ? operations / *search.seconds * 1e-9 : 0;
    std::vector<std::string> cells{
        search.name, std::to_string(search.trials),
        any ? search.run ? measured_text(search.run->content.request, *search.seconds) : seconds_text(*search.seconds)
            : "-"};
    if (!own) cells.push_back(any ? number_text(gflops, 2) : "-");
    if (peak) cells.push_back(any ? of_peak_text(gflops, *peak, does_less_arithmetic(search)) : "-");
    cells.push_back(status_line(search.statuses));
    table.row(std::move(cells));
  }
  return html_table(table);
}

// All searches of one workload on one platform. `benches`: results that were given by themselves.
std::string search_section(const std::vector<Search>& searches, const std::vector<const base::Document*>& benches,
                           Figures& figures) {
  const Search& first = searches.front();
  std::string out = fmt::format("<h2>{}</h2>\n<p>on {}{}</p>\n", escaped(first.workload), escaped(first.platform),
                                times_note(first.source));
  const Search* fastest = nullptr;
  for (const Search& search : searches) {
    if (search.seconds && (fastest == nullptr || *search.seconds < *fastest->seconds)) fastest = &search;
  }
  out += curves(searches, figures);
  out += searches_table(
      searches, is_own(first) ? std::nullopt : peak_gflops(first.platform, codegen::parse_workload(first.workload)));
  for (const Search& search : searches) {
    std::string own;
    if (!search.schedule.empty())
      own += html_listing((is_own(search) ? "Best configuration of " : "Best schedule of ") + search.name,
                          base::join(search.schedule, "\n"));
    if (search.run != nullptr) {
      const base::Document* bench = search.run->bench ? &*search.run->bench : nullptr;
      for (const base::Document* given : benches) {
        if (bench == nullptr && search.answer != nullptr && search.source == "native" &&
            bench_row(*given, search.workload, *search.answer) != nullptr)
          bench = given;
      }
      own = html_facts(facts_of(search)) + own;
      if (is_own(search))
        own += importance_table(search);
      else if (search.answer != nullptr)
        own += details(search, bench, figures);
      own += statuses_table(search) + "<div class=\"wrap\">" +
             html_listing("Commands: to find it again, look at it, use it", commands_text(search)) + "</div>\n";
    }
    if (own.empty()) continue;
    // The fastest of several is open.
    if (searches.size() > 1) own = html_folded(search.name, own, &search == fastest);
    out += own;
  }
  return out;
}

}  // namespace

std::string search_sections(const std::vector<ReportedRun>& runs, const std::vector<ReportedResult>& results,
                            Figures& figures) {
  std::vector<std::vector<Search>> groups;  // one for each workload and platform
  const auto add = [&](Search search) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Search>& group) {
      return group.front().workload == search.workload && group.front().platform == search.platform;
    });
    if (same == groups.end()) {
      groups.push_back({std::move(search)});
    } else {
      same->push_back(std::move(search));
    }
  };
  std::string out;
  for (const ReportedRun& run : runs) {
    if (run.content.journal.trials.empty())
      out += fmt::format("<p>{}: no trial is recorded yet.</p>\n", escaped(run.name));
    for (Search& search : searches_of(run)) add(std::move(search));
  }
  std::vector<const base::Document*> benches;
  for (const ReportedResult& given : results) {
    if (kind_of(given.result) == "bench kernels")
      benches.push_back(&given.result);
    else
      add(search_of(given));
  }
  for (const std::vector<Search>& group : groups) out += search_section(group, benches, figures);
  return out;
}

}  // namespace graft::cli
