#include "cli/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/best.h"
#include "cli/output.h"
#include "cli/report/plot.h"
#include "cli/texts.h"
#include "codegen/expression/workload.h"
#include "study/answer.h"
#include "study/evaluation_table.h"
#include "study/rounds.h"

namespace graft::cli {
namespace {

constexpr int kColours = 8;
constexpr const char* kStyle = R"(*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:860px;margin:0 auto;padding:32px 20px 60px}
h1{font-size:1.7rem;margin:0 0 4px}h2{font-size:1.25rem;margin:40px 0 8px;overflow-wrap:anywhere}h3{font-size:1rem;margin:24px 0 6px}
p,figcaption{color:var(--soft);margin:4px 0 12px}
figure{margin:12px 0 20px;padding:14px;background:var(--card);border:1px solid var(--line);border-radius:10px}
figcaption{font-size:.86rem;margin:8px 0 0}
svg{width:100%;height:auto;display:block}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:8px 0 0;padding:0;font-size:.9rem}
.legend span{display:inline-block;width:18px;height:4px;border-radius:2px;margin-right:7px;vertical-align:middle}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:5px 14px 5px 0;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}
pre{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px;overflow-x:auto;font-size:.85rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;margin:8px 0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
)";

// The unit in which times of this size read well.
std::pair<double, const char*> unit_of(double seconds) {
  if (seconds < 1e-6) return {1e-9, "ns"};
  if (seconds < 1e-3) return {1e-6, "µs"};
  if (seconds < 1) return {1e-3, "ms"};
  return {1, "s"};
}

// One search of one workload.
struct Search {
  std::string name, workload, platform, source;
  std::vector<std::pair<std::int64_t, double>> best;  // trial, best seconds so far: at each improvement, and at the end
  std::vector<std::pair<std::int64_t, double>> measured;  // trial, seconds; ok ones
  std::int64_t trials = 0;
  std::string statuses;
  std::optional<double> seconds;  // of the answer
  std::vector<std::string> schedule;
  void answer(double its_seconds, const base::Document& its_schedule) {
    seconds = its_seconds;
    for (const base::Document& step : its_schedule.as_list()) schedule.push_back(step.as_string());
  }
};

std::vector<Search> searches_of(const ReportedRun& run) {
  std::vector<Search> out;
  std::vector<std::vector<datasets::Trial>> own;
  for (const datasets::Trial& trial : run.content.journal.trials) {
    const std::string& text = trial.candidate.workload.text;
    auto found = std::find_if(out.begin(), out.end(), [&](const Search& search) { return search.workload == text; });
    if (found == out.end()) {
      out.push_back({run.name,
                     text,
                     run.content.request.at("platform").as_string(),
                     run.content.request.at("source").as_string(),
                     {},
                     {},
                     0,
                     "",
                     {},
                     {}});
      own.emplace_back();
      found = out.end() - 1;
    }
    own[std::size_t(found - out.begin())].push_back(trial);
    ++found->trials;
    if (trial.measurement.status != datasets::Status::ok) continue;
    const double seconds = datasets::seconds_of(trial.measurement);
    found->measured.emplace_back(found->trials, seconds);
    if (found->best.empty() || seconds < found->best.back().second) found->best.emplace_back(found->trials, seconds);
  }
  for (std::size_t s = 0; s < out.size(); ++s) {
    out[s].statuses = status_line(study::status_counts(own[s]));
    if (const auto answer = study::answer_of(run.content, own[s].front().candidate.workload))
      out[s].answer(answer->seconds(), study::schedule_document(answer->candidate));
    if (!out[s].best.empty() && out[s].best.back().first != out[s].trials) {
      out[s].best.emplace_back(out[s].trials, out[s].best.back().second);
    }
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
  if (const base::Document* statuses = result.find("statuses")) search.statuses = status_line(*statuses);
  for (const base::Document& point : result.at("curve").as_list()) {
    const base::Document::List& pair = point.as_list();
    if (pair.size() != 2) throw base::UserError(point.place(), "expected [trial, seconds]");
    search.best.emplace_back(pair[0].as_integer(), pair[1].as_number());
  }
  const base::Document& best = result.at("best");
  if (!best.is_null()) search.answer(best.at("seconds").as_number(), best.at("schedule"));
  return search;
}

// All searches of one workload on one platform.
std::string search_section(const std::vector<Search>& searches) {
  const Search& first = searches.front();
  const bool modelled = first.source == "modelled";
  std::string out = fmt::format("<h2>{}</h2>\n<p>on {}{}</p>\n", escaped(first.workload), escaped(first.platform),
                                modelled ? ": modelled times, not measurements of a device" : "");
  double best = std::numeric_limits<double>::infinity(), worst = 0;
  for (const Search& search : searches) {
    for (const auto& points : {search.best, search.measured}) {
      for (const auto& [trial, seconds] : points) {
        best = std::min(best, seconds);
        worst = std::max(worst, seconds);
      }
    }
  }
  if (worst > 0) {
    const auto [unit, unit_name] = unit_of(best);
    Plot plot{.x_label = "trials",
              .y_label = fmt::format("{} of one run, {}{}", modelled ? "modelled time" : "time", unit_name,
                                     worst / best > 5 ? " (log)" : ""),
              .log_y = worst / best > 5,
              .series = {}};
    const auto points = [unit = unit](const std::vector<std::pair<std::int64_t, double>>& pairs) {
      std::vector<Point> list;
      for (const auto& [trial, seconds] : pairs) list.push_back({.x = double(trial), .y = seconds / unit});
      return list;
    };
    for (std::size_t s = 0; s < searches.size(); ++s) {
      const int colour = int(s) % kColours;
      plot.series.push_back({.name = searches[s].name + ", single trials",
                             .colour = colour,
                             .dots_only = true,
                             .points = points(searches[s].measured)});
    }
    for (std::size_t s = 0; s < searches.size(); ++s) {
      const int colour = int(s) % kColours;
      plot.series.push_back(
          {.name = searches[s].name, .colour = colour, .steps = true, .points = points(searches[s].best)});
    }
    out += figure(plot, "Best time so far over the number of trials; faint dots are single trials.");
  }
  const codegen::Workload workload = codegen::parse_workload(first.workload);
  const double operations = double(codegen::flops(workload));
  const auto peak = peak_gflops(first.platform, workload);
  std::vector<std::string> head{"run", "trials", fmt::format("best {}", seconds_word(first.source)),
                                modelled ? "modelled GFLOP/s" : "GFLOP/s"};
  if (peak) head.push_back("of the peak");
  head.push_back("status");
  Table table(head);
  for (const Search& search : searches) {
    const bool any = search.seconds.has_value();
    const double gflops = any ? operations / *search.seconds * 1e-9 : 0;
    std::vector<std::string> cells{search.name, std::to_string(search.trials),
                                   any ? seconds_text(*search.seconds) : "-", any ? number_text(gflops, 2) : "-"};
    if (peak) cells.push_back(any ? of_peak_text(gflops, *peak) : "-");
    cells.push_back(search.statuses);
    table.row(std::move(cells));
  }
  out += html_table(table);
  for (const Search& search : searches) {
    if (search.schedule.empty()) continue;
    out += fmt::format("<h3>Best schedule of {}</h3>\n<pre>{}</pre>\n", escaped(search.name),
                       escaped(base::join(search.schedule, "\n")));
  }
  return out;
}

struct Words {
  study::Metric metric;
  const char* title;
  const char* axis;
  const char* caption;
};
constexpr Words kMetrics[] = {
    {study::Metric::spearman, "Rank correlation", "Spearman correlation",
     "Spearman correlation of predicted and true speed on programs outside of the support; 1 is a perfect ranking. "
     "Mean over workloads and draws, band: 95 % interval over draws."},
    {study::Metric::top1, "The program predicted fastest", "top-1: best time / its time",
     "How near the program predicted fastest comes to the best one; 1 is perfect. Geometric mean over workloads, band: "
     "95 % interval over draws."},
    {study::Metric::top5, "The five predicted fastest", "top-5: best time / best of five",
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
  std::string out = "<dl>";
  for (const char* key : {"regime", "support", "draws", "folds", "sources", "misleading", "model", "encoding", "hidden",
                          "loss", "seed"}) {
    const base::Document* value = request.find(key);
    if (value != nullptr)
      out += fmt::format("<dt>{}</dt><dd>{}</dd>", key,
                         escaped(value->is_string() ? value->as_string() : value->to_json()));
  }
  return out + "</dl>\n";
}

// Shots and, where the rows say it, support trials in all.
std::string shots_text(const study::EvaluationTable& table, const std::string& target, std::int64_t shots) {
  std::optional<std::int64_t> most;
  for (const study::EvaluationTable::Row& row : table.rows) {
    if (row.target == target && row.shots == shots && row.measurements)
      most = std::max(most.value_or(0), *row.measurements);
  }
  return most ? fmt::format("{} ({} in all)", shots, *most) : std::to_string(shots);
}

std::string metric_section(const study::EvaluationTable& table, const study::Compared& compared,
                           const std::string& target, const Words& words) {
  Plot plot{.x_label = "support programs per workload (shots)", .y_label = words.axis, .series = {}};
  std::vector<std::string> head{"method"};
  for (const std::int64_t shots : compared.shots) head.push_back(shots_text(table, target, shots));
  Table values(head);
  for (std::size_t m = 0; m < compared.methods.size(); ++m) {
    Series series{.name = compared.methods[m], .colour = int(m) % kColours, .band = true, .points = {}};
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
  return fmt::format("<h3>{}</h3>\n", words.title) + figure(plot, words.caption) + html_table(values);
}

std::string evaluation_section(const ReportedResult& given) {
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
    for (const Words& words : kMetrics) out += metric_section(table, compared, target, words);
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

// How a number of a square is shown. `also` stands in the tooltip behind it.
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
    out += figure(map, fmt::format("Spearman correlation of times, mean over {} workload{}; 1 means that two platforms "
                                   "agree on every pair of programs. Empty: too few programs in common.",
                                   workloads, workloads == 1 ? "" : "s"));
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
std::string searches_section(const ReportedResult& given) {
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
      Series out{.name = name, .colour = colour % kColours, .band = true, .points = {}};
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
         figure(speed,
                fmt::format("Speed of the best program by the number of trials, over that of the fastest that any of "
                            "these searches found{}. Geometric mean over searches, band: 95 % interval.",
                            again > 0 ? fmt::format(", by the least of {} times that were taken again", again) : "")) +
         figure(slower, "How much slower it is than in the same searches of the other method; below 0 it is faster.") +
         html_table(near);
}

}  // namespace

std::string html_table(const Table& table) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : table.head()) out += fmt::format("<th>{}</th>", escaped(cell));
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows()) {
    out += "<tr>";
    for (const std::string& cell : row) out += fmt::format("<td>{}</td>", escaped(cell));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string whole_page(const std::string& title, const std::string& about, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n<p>{2}</p>\n{3}"
      "</main>\n</body>\n</html>\n",
      escaped(title), palette_style() + plot_style + kStyle, escaped(about), body);
}

std::string page(const std::vector<ReportedRun>& runs, const std::vector<ReportedResult>& results,
                 const std::string& about) {
  std::vector<std::vector<Search>> searches;  // one list per workload and platform
  const auto add = [&](Search search) {
    const auto same = std::find_if(searches.begin(), searches.end(), [&](const std::vector<Search>& list) {
      return list.front().workload == search.workload && list.front().platform == search.platform;
    });
    if (same == searches.end()) {
      searches.push_back({std::move(search)});
    } else {
      same->push_back(std::move(search));
    }
  };
  for (const ReportedRun& run : runs) {
    for (Search& search : searches_of(run)) add(std::move(search));
  }
  std::string evaluations;
  for (const ReportedResult& result : results) {
    if (result.result.find("rows") != nullptr) {
      evaluations += evaluation_section(result);
    } else if (result.result.find("families") != nullptr) {
      evaluations += comparison_section(result);
    } else if (result.result.find("methods") != nullptr) {
      evaluations += searches_section(result);
    } else if (result.result.find("curve") != nullptr) {
      add(search_of(result));
    } else {
      throw base::UserError(result.name, "neither an evaluation, a comparison nor a tuning result of graft");
    }
  }
  std::string body;
  for (const std::vector<Search>& group : searches) body += search_section(group);
  return whole_page("graft report", about, body + evaluations);
}

}  // namespace graft::cli
