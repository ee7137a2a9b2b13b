#include "cli/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/report/html.h"
#include "cli/report/network.h"
#include "cli/report/plot.h"
#include "cli/report/searches.h"
#include "cli/result_kind.h"
#include "cli/texts.h"
#include "study/flows/evaluation_table.h"

namespace graft::cli {
namespace {

struct Words {
  study::Metric metric;
  const char* kind;  // of its figures
  const char* title;
  const char* axis;
  const char* caption;
};
constexpr Words kMetrics[] = {
    {study::Metric::spearman, "spearman", "Rank correlation", "Spearman correlation",
     "Spearman correlation of predicted and true speed on programs outside of the support; 1 is a perfect ranking. "
     "Mean over workloads and draws, band: 95 % interval over draws."},
    {study::Metric::top1, "top1", "The program predicted fastest", "top-1: best time / its time",
     "How near the program predicted fastest comes to the best one; 1 is perfect. Geometric mean over workloads, band: "
     "95 % interval over draws."},
    {study::Metric::top5, "top5", "The five predicted fastest", "top-5: best time / best of five",
     "The same for the best of the five programs predicted fastest."}};

// Targets, methods and shots in the order of the rows, shots rising.
study::Compared compared_in(const study::EvaluationTable& table) {
  study::Compared out;
  const auto once = [](auto& list, const auto& value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  };
  for (const study::EvaluationTable::Row& row : table.rows) {
    once(out.targets, row.target);
    once(out.methods, row.method);
    once(out.shots, row.shots);
  }
  std::sort(out.shots.begin(), out.shots.end());
  return out;
}

std::string settings_section(const base::Document& request) {
  std::vector<std::pair<std::string, std::string>> facts;
  for (const char* key : {"regime", "support", "draws", "folds", "sources", "misleading", "model", "encoding", "hidden",
                          "loss", "seed"}) {
    if (const base::Document* value = request.find(key))
      facts.emplace_back(key, value->is_string() ? value->as_string() : value->to_json());
  }
  return html_facts(facts);
}

// Shots and, if the rows have it, total support trials.
std::string shots_text(const study::EvaluationTable& table, const std::string& target, std::int64_t shots) {
  std::optional<std::int64_t> most;
  for (const study::EvaluationTable::Row& row : table.rows) {
    if (row.target == target && row.shots == shots && row.measurements)
      most = std::max(most.value_or(0), *row.measurements);
  }
  return most ? fmt::format("{} ({} in all)", shots, *most) : std::to_string(shots);
}

std::string metric_section(const study::EvaluationTable& table, const study::Compared& compared,
                           const std::string& target, const Words& words, Figures& figures) {
  Plot plot{.x_label = "support programs per workload (shots)", .y_label = words.axis, .series = {}};
  std::vector<std::string> head{"method"};
  for (const std::int64_t shots : compared.shots) head.push_back(shots_text(table, target, shots));
  Table values(head);
  for (std::size_t m = 0; m < compared.methods.size(); ++m) {
    Series series{.name = compared.methods[m], .colour = int(m) % series_colours, .band = true, .points = {}};
    std::vector<std::string> cells{compared.methods[m]};
    for (const std::int64_t shots : compared.shots) {
      const study::EvaluationTable::Row* const row = table.find(target, compared.methods[m], shots);
      if (row == nullptr) {
        cells.push_back("-");
        continue;
      }
      const base::Interval& value = row->means[words.metric];
      if (std::isfinite(value.mean)) series.points.push_back({double(shots), value.mean, value.low, value.high});
      cells.push_back(interval_text(value));
    }
    plot.series.push_back(std::move(series));
    values.row(std::move(cells));
  }
  return fmt::format("<h3>{}</h3>\n", words.title) + figures.add(words.kind, plot, words.caption) + html_table(values);
}

// What the searches on a target found; empty if it has none.
std::string searches_section(const study::EvaluationTable& table, const std::string& target, Figures& figures) {
  std::vector<std::string> methods, head{"method"};
  Plot plot{.x_label = "trials", .y_label = "speed, fastest recorded = 1", .log_x = true, .series = {}};
  std::vector<std::vector<std::string>> rows;
  for (const study::EvaluationTable::Search& search : table.searches) {
    if (search.target != target) continue;
    if (methods.empty() || methods.back() != search.method) {
      plot.series.push_back(
          {.name = search.method, .colour = int(methods.size()) % series_colours, .band = true, .points = {}});
      methods.push_back(search.method);
      rows.push_back({search.method});
    }
    if (methods.size() == 1) head.push_back(fmt::format("after {}", search.trials));
    rows.back().push_back(interval_text(search.found));
    plot.series.back().points.push_back(
        {double(search.trials), search.found.mean, search.found.low, search.found.high});
  }
  if (rows.empty()) return "";
  Table values(head);
  for (std::vector<std::string>& row : rows) values.row(std::move(row));
  return "<h3>Searches among what was recorded</h3>\n" +
         figures.add(
             "found", plot,
             "Speed of the best program that searches guided by each method have found; 1 is the fastest that was "
             "recorded. Geometric mean over workloads, band: 95 % interval over seeds.") +
         html_table(values);
}

std::string evaluation_section(const ReportedResult& given, Figures& figures) {
  const study::EvaluationTable table = study::evaluation_table_from(given.result);
  const study::Compared compared = compared_in(table);
  std::string out = fmt::format("<h2>Evaluation {}</h2>\n", escaped(given.name));
  if (!table.request.is_null()) out += settings_section(table.request);
  for (const std::string& target : compared.targets) {
    const bool modelled = std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
      return row.target == target && row.source == "modelled";
    });
    out += fmt::format(
        "<h2>{}{}</h2>\n<p>Trained on the other platforms, adapted with the given number of programs per "
        "workload.</p>\n",
        escaped(target), modelled ? " (modelled)" : "");
    for (const Words& words : kMetrics) out += metric_section(table, compared, target, words, figures);
    out += searches_section(table, target, figures);
    Table winners({"shots", "winner by Spearman", "winner by top-1"});
    for (const study::EvaluationTable::Winner& winner : table.winners) {
      if (winner.target == target) winners.row({std::to_string(winner.shots), winner.by_spearman, winner.by_top1});
    }
    if (!winners.empty()) out += "<h3>Winners</h3>\n" + html_table(winners);
  }
  return out;
}

// A square of numbers in the JSON of `graft compare`.
using Numbers = std::vector<std::vector<double>>;
Numbers numbers_of(const base::Document& square) {
  Numbers numbers;
  for (const base::Document& row : square.as_list()) {
    numbers.emplace_back();
    for (const base::Document& value : row.as_list()) {
      numbers.back().push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.as_number());
    }
  }
  return numbers;
}

// How a number of a square is shown. `also` follows it in the tooltip.
template <class Shade, class Also>
HeatMap heat_map(const std::vector<std::string>& names, const Numbers& numbers, Shade shade, Also also) {
  HeatMap map;
  map.rows = map.columns = names;
  for (std::size_t a = 0; a < numbers.size(); ++a) {
    map.cells.emplace_back();
    for (std::size_t b = 0; b < numbers[a].size(); ++b) {
      const double value = numbers[a][b];
      if (!std::isfinite(value)) {
        map.cells.back().emplace_back();
        continue;
      }
      map.cells.back().push_back({shade(value), fmt::format("{:.2f}", value),
                                  fmt::format("{}, {}: {:.3f}{}", names[a], names[b], value, also(a, b))});
    }
  }
  return map;
}

std::string bounds_text(double low, double high) {
  return std::isfinite(low) ? fmt::format(" [{:.3f}, {:.3f}]", low, high) : "";
}

std::string comparison_section(const ReportedResult& given) {
  std::vector<std::string> names;
  bool modelled = false;
  for (const base::Document& platform : given.result.at("platforms").as_list()) {
    names.push_back(platform.at("platform").as_string());
    modelled = modelled || platform.at("source").as_string() == "modelled";
  }
  std::string out =
      fmt::format("<h2>Platforms compared</h2>\n<p>On programs that they have in common{}.</p>\n",
                  modelled ? "; times of platforms named model: are modelled, not measured on a device" : "");
  for (const base::Document& family : given.result.at("families").as_list()) {
    const std::string name = family.at("family").as_string();
    const std::size_t workloads = family.at("workloads").as_list().size();
    const Numbers low = numbers_of(family.at("low")), high = numbers_of(family.at("high")),
                  programs = numbers_of(family.at("programs"));
    const HeatMap map = heat_map(
        names, numbers_of(family.at("spearman")), [](double value) { return value; },
        [&](std::size_t a, std::size_t b) {
          return bounds_text(low[a][b], high[a][b]) +
                 (programs[a][b] > 0 ? fmt::format(", {} programs", programs[a][b]) : "");
        });
    out += fmt::format("<h3>Rank correlation: {}</h3>\n", name == "all" ? "all workloads" : escaped(name));
    out += figure(map, fmt::format("Spearman correlation of times, mean over {}; 1 means that two platforms "
                                   "agree on every pair of programs. Empty: too few programs in common.",
                                   base::counted(workloads, "workload")));
  }
  const base::Document& regret = given.result.at("regret");
  const Numbers low = numbers_of(regret.at("low")), high = numbers_of(regret.at("high"));
  const auto shade = [](double value) { return -std::log(value) / std::log(4); };
  HeatMap mean = heat_map(names, numbers_of(regret.at("mean")), shade,
                          [&](std::size_t a, std::size_t b) { return bounds_text(low[a][b], high[a][b]); });
  const base::Document::List& worst_workloads = regret.at("worst_workload").as_list();
  HeatMap worst = heat_map(names, numbers_of(regret.at("worst")), shade, [&](std::size_t a, std::size_t b) {
    const std::string workload = worst_workloads[a].as_list()[b].as_string();
    return workload.empty() ? "" : ", " + workload;
  });
  mean.label = worst.label = "row: whose best program; column: where it runs";
  out += "<h3>Regret of another platform's best program</h3>\n" +
         figure(mean,
                "Its time over that of the fastest, both among the common programs; 1 is none. Geometric mean over "
                "workloads; full colour from 4 on.");
  out += "<h3>The worst workload</h3>\n" + figure(worst, "The same for the workload with the largest regret.");
  return out;
}

// Methods of search over the number of trials.
std::string searches_section(const ReportedResult& given, Figures& figures) {
  const base::Document& result = given.result;
  const std::string& against = result.at("against").as_string();
  const base::Document::List& trials = result.at("trials").as_list();
  Plot speed{
      .x_label = "trials (log)", .y_label = "speed of the best", .log_x = true, .x_from_zero = false, .series = {}};
  Plot slower = speed;
  slower.y_label = "per cent slower than " + against;
  Table near({"method", "searches",
              fmt::format("trials to {:g} % of the best speed", 100 * result.at("near").as_number()),
              "times fewer than " + against, "never"});
  int colour = 0;
  for (const base::Document& method : result.at("methods").as_list()) {
    const std::string& name = method.at("method").as_string();
    const auto series = [&](const char* key, double unit) {
      Series out{.name = name, .colour = colour % series_colours, .band = true, .points = {}};
      const base::Document::List& values = method.at(key).as_list();
      for (std::size_t i = 0; i < values.size() && i < trials.size(); ++i) {
        const base::Interval value = base::interval_from(values[i]);
        out.points.push_back({trials[i].as_number(), unit * value.mean, unit * value.low, unit * value.high});
      }
      return out;
    };
    speed.series.push_back(series("speed", 1));
    if (name != against) slower.series.push_back(series("slower", 100));
    const auto cell = [&](const char* key) { return interval_text(base::interval_from(method.at(key)), "{:.2f}"); };
    near.row({name, std::to_string(method.at("searches").as_integer()), cell("trials_to_near"), cell("times_fewer"),
              std::to_string(method.at("never").as_integer())});
    ++colour;
  }
  const std::int64_t again = result.at("again").as_integer();
  return "<h2>Searches compared</h2>\n" +
         figures.add(
             "speed", speed,
             fmt::format("Speed of the best program by the number of trials, over that of the fastest that any of "
                         "these searches found{}. Geometric mean over searches, band: 95 % interval.",
                         again > 0 ? fmt::format(", by the least of {} times that were taken again", again) : "")) +
         figures.add("slower", slower,
                     "How much slower it is than in the same searches of the other method; below 0 it is faster.") +
         html_table(near);
}

}  // namespace

Page page(const Reported& reported, const std::string& about) {
  Figures figures;
  std::vector<ReportedResult> searched;
  std::string evaluations;
  for (const ReportedResult& result : reported.results) {
    const std::string kind = kind_of(result.result);
    if (kind == "tune" || kind == "bench kernels") {
      searched.push_back(result);
    } else if (kind == "evaluate") {
      evaluations += evaluation_section(result, figures);
    } else if (kind == "compare platforms") {
      evaluations += comparison_section(result);
    } else if (kind == "compare searches") {
      evaluations += searches_section(result, figures);
    } else {
      throw base::UserError(result.name,
                            "neither an evaluation, a comparison, a tuning nor a bench kernels result of graft");
    }
  }
  const std::string networks = network_sections(reported.networks, figures);
  const std::string searches = search_sections(reported.runs, searched, figures);
  return {whole_page("graft report", about, networks + searches + evaluations), figures.files()};
}

}  // namespace graft::cli
