#include "study/flows/evaluation_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/statistics.h"

namespace graft::study {
namespace {

using Row = EvaluationTable::Row;

bool is_geometric(Metric metric) {
  return metric != Metric::spearman;
}

std::string winner(const Rows& rows, const std::string& target, const Compared& compared, std::int64_t shots,
                   Metric metric) {
  constexpr double unknown = -2, below_all = -3;  // correlations are at least -1
  std::string best;
  double most = below_all;
  for (const std::string& method : compared.methods) {
    const Row* const row = row_of(rows, target, method, shots);
    if (row == nullptr) continue;
    const double mean = row->means[metric].mean, counted = std::isfinite(mean) ? mean : unknown;
    if (counted <= most) continue;
    most = counted;
    best = method;
  }
  return best;
}

// The mean over targets, draw by draw.
std::vector<double> mean_draws(const std::vector<const std::vector<double>*>& of_targets, bool geometric) {
  std::vector<double> mean(of_targets.front()->size(), 0);
  for (const std::vector<double>* const values : of_targets) {
    for (std::size_t d = 0; d < mean.size(); ++d)
      mean[d] += (geometric ? std::log((*values)[d]) : (*values)[d]) / double(of_targets.size());
  }
  if (geometric) {
    for (double& value : mean) value = std::exp(value);
  }
  return mean;
}

base::Document numbers(const std::vector<double>& values) {
  base::Document out = base::Document::list();
  for (const double value : values) out.push(value);
  return out;
}

std::vector<double> numbers_from(const base::Document& list) {
  std::vector<double> values;
  for (const base::Document& value : list.as_list())
    values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.as_number());
  return values;
}

}  // namespace

std::string_view key_of(Metric metric) {
  constexpr std::array<std::string_view, metrics.size()> keys = {"spearman", "top1", "top5"};
  return keys[std::size_t(metric)];
}

const Row* row_of(const Rows& rows, std::string_view target, std::string_view method, std::int64_t shots) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.target == target && row.method == method && row.shots == shots;
  });
  return found == rows.end() ? nullptr : &*found;
}

const Row* EvaluationTable::find(std::string_view target, std::string_view method, std::int64_t shots) const {
  return row_of(rows, target, method, shots);
}

Rows means_over_targets(const Rows& rows, const Compared& compared, std::uint64_t seed) {
  Rows out;
  for (const std::string& method : compared.methods) {
    for (const std::int64_t shots : compared.shots) {
      Row mean;
      mean.target = fmt::format("mean of {}", compared.targets.size());
      mean.method = method;
      mean.shots = shots;
      mean.measurements = 0;
      std::vector<const Row*> own;
      for (const std::string& target : compared.targets) {
        own.push_back(row_of(rows, target, method, shots));
        *mean.measurements += own.back()->measurements.value_or(0);
        mean.workloads += own.back()->workloads;
      }
      mean.draws = own.front()->draws;
      mean.by_draw.emplace();
      for (const Metric metric : metrics) {
        std::vector<const std::vector<double>*> draws;
        for (const Row* const row : own) draws.push_back(&(*row->by_draw)[metric]);
        (*mean.by_draw)[metric] = mean_draws(draws, is_geometric(metric));
        mean.means[metric] = base::bootstrap_mean((*mean.by_draw)[metric], 0.95, seed);
      }
      out.push_back(std::move(mean));
    }
  }
  return out;
}

std::vector<EvaluationTable::Difference> differences_to(std::string_view against, const Rows& rows,
                                                        std::uint64_t seed) {
  std::vector<EvaluationTable::Difference> out;
  for (const Row& row : rows) {
    if (row.method == against) continue;
    const Row& other = *row_of(rows, row.target, against, row.shots);
    EvaluationTable::Difference difference{row.target, row.method, std::string(against), row.shots};
    for (const Metric metric : metrics) {
      difference.means[metric] =
          base::bootstrap_paired_difference((*row.by_draw)[metric], (*other.by_draw)[metric], 0.95, seed);
    }
    out.push_back(std::move(difference));
  }
  return out;
}

const EvaluationTable::Search* search_of(const Searches& searches, std::string_view target, std::string_view method,
                                         std::int64_t trials) {
  const auto found = std::find_if(searches.begin(), searches.end(), [&](const EvaluationTable::Search& search) {
    return search.target == target && search.method == method && search.trials == trials;
  });
  return found == searches.end() ? nullptr : &*found;
}

Searches search_means_over_targets(const Searches& searches, const std::vector<std::string>& targets,
                                   std::uint64_t seed) {
  Searches out;
  for (const EvaluationTable::Search& first : searches) {
    if (first.target != targets.front()) continue;
    EvaluationTable::Search mean{fmt::format("mean of {}", targets.size()), first.method, "", first.trials};
    std::vector<const std::vector<double>*> seeds;
    for (const std::string& target : targets) {
      const EvaluationTable::Search& own = *search_of(searches, target, first.method, first.trials);
      seeds.push_back(&own.by_seed);
      mean.workloads += own.workloads;
    }
    mean.by_seed = mean_draws(seeds, true);
    mean.found = base::bootstrap_mean(mean.by_seed, 0.95, seed);
    out.push_back(std::move(mean));
  }
  return out;
}

std::vector<EvaluationTable::SearchDifference> search_differences_to(std::string_view against, const Searches& searches,
                                                                     std::uint64_t seed) {
  std::vector<EvaluationTable::SearchDifference> out;
  for (const EvaluationTable::Search& search : searches) {
    if (search.method == against) continue;
    const EvaluationTable::Search& other = *search_of(searches, search.target, against, search.trials);
    out.push_back({search.target, search.method, std::string(against), search.trials,
                   base::bootstrap_paired_difference(search.by_seed, other.by_seed, 0.95, seed)});
  }
  return out;
}

std::vector<EvaluationTable::Winner> winners_of(const Rows& rows, const Compared& compared) {
  std::vector<EvaluationTable::Winner> out;
  for (const std::string& target : compared.targets) {
    for (const std::int64_t shots : compared.shots) {
      out.push_back({target, shots, winner(rows, target, compared, shots, Metric::spearman),
                     winner(rows, target, compared, shots, Metric::top1)});
    }
  }
  return out;
}

namespace {

// In the order in which rows are stored. `others` are between the metrics and the draws.
base::Document row_document(const Row& row) {
  base::Document out = base::Document::map();
  out.set("target", row.target);
  if (!row.source.empty()) out.set("source", row.source);
  out.set("method", row.method).set("shots", row.shots);
  if (row.measurements) out.set("measurements", *row.measurements);
  out.set("draws", row.draws).set("workloads", row.workloads);
  for (const Metric metric : metrics) out.set(std::string(key_of(metric)), base::to_document(row.means[metric]));
  for (const auto& [key, value] : row.others) out.set(key, value);
  if (!row.by_draw) return out;
  base::Document by_draw = base::Document::map();
  for (const Metric metric : metrics) by_draw.set(std::string(key_of(metric)), numbers((*row.by_draw)[metric]));
  return out.set("by_draw", std::move(by_draw));
}

PerMetric<base::Interval> means_from(const base::Document& document) {
  PerMetric<base::Interval> means;
  for (const Metric metric : metrics) means[metric] = base::interval_from(document.at(key_of(metric)));
  return means;
}

std::int64_t integer_or_0(const base::Document& document, std::string_view key) {
  const base::Document* const value = document.find(key);
  return value == nullptr ? 0 : value->as_integer();
}

Row row_from(const base::Document& document) {
  Row row;
  row.target = document.at("target").as_string();
  row.method = document.at("method").as_string();
  row.shots = document.at("shots").as_integer();
  row.means = means_from(document);
  if (const base::Document* source = document.find("source")) row.source = source->as_string();
  if (const base::Document* measurements = document.find("measurements")) row.measurements = measurements->as_integer();
  row.draws = integer_or_0(document, "draws");
  row.workloads = integer_or_0(document, "workloads");
  if (const base::Document* by_draw = document.find("by_draw")) {
    row.by_draw.emplace();
    for (const Metric metric : metrics) (*row.by_draw)[metric] = numbers_from(by_draw->at(key_of(metric)));
  }
  for (const auto& [key, value] : document.as_map()) {
    constexpr std::array own = {"target", "source", "method", "shots", "measurements", "draws", "workloads", "by_draw"};
    const bool is_metric =
        std::any_of(metrics.begin(), metrics.end(), [&, &key = key](Metric metric) { return key == key_of(metric); });
    if (!is_metric && std::find(own.begin(), own.end(), key) == own.end()) row.others.emplace_back(key, value);
  }
  return row;
}

Rows rows_from(const base::Document& document, std::string_view key) {
  Rows rows;
  const base::Document* const list = document.find(key);
  if (list == nullptr) return rows;
  for (const base::Document& row : list->as_list()) rows.push_back(row_from(row));
  return rows;
}

base::Document rows_document(const Rows& rows) {
  base::Document out = base::Document::list();
  for (const Row& row : rows) out.push(row_document(row));
  return out;
}

base::Document searches_document(const Searches& searches) {
  base::Document out = base::Document::list();
  for (const EvaluationTable::Search& each : searches) {
    base::Document entry = base::Document::map();
    entry.set("target", each.target);
    if (!each.source.empty()) entry.set("source", each.source);
    out.push(entry.set("method", each.method)
                 .set("trials", each.trials)
                 .set("workloads", each.workloads)
                 .set("found", base::to_document(each.found))
                 .set("by_seed", numbers(each.by_seed)));
  }
  return out;
}

Searches searches_from(const base::Document& document, std::string_view key) {
  Searches searches;
  const base::Document* const list = document.find(key);
  if (list == nullptr) return searches;
  for (const base::Document& each : list->as_list()) {
    const base::Document* const source = each.find("source");
    searches.push_back({each.at("target").as_string(), each.at("method").as_string(),
                        source == nullptr ? "" : source->as_string(), each.at("trials").as_integer(),
                        each.at("workloads").as_integer(), base::interval_from(each.at("found")),
                        numbers_from(each.at("by_seed"))});
  }
  return searches;
}

base::Document search_differences_document(const std::vector<EvaluationTable::SearchDifference>& differences) {
  base::Document out = base::Document::list();
  for (const EvaluationTable::SearchDifference& each : differences) {
    out.push(base::Document::map()
                 .set("target", each.target)
                 .set("method", each.method)
                 .set("against", each.against)
                 .set("trials", each.trials)
                 .set("found", base::to_document(each.found)));
  }
  return out;
}

base::Document differences_document(const std::vector<EvaluationTable::Difference>& differences) {
  base::Document out = base::Document::list();
  for (const EvaluationTable::Difference& each : differences) {
    base::Document entry = base::Document::map();
    entry.set("target", each.target).set("method", each.method).set("against", each.against).set("shots", each.shots);
    for (const Metric metric : metrics) entry.set(std::string(key_of(metric)), base::to_document(each.means[metric]));
    out.push(std::move(entry));
  }
  return out;
}

base::Document winners_document(const std::vector<EvaluationTable::Winner>& winners) {
  base::Document out = base::Document::list();
  for (const EvaluationTable::Winner& each : winners) {
    base::Document entry = base::Document::map();
    out.push(entry.set("target", each.target)
                 .set("shots", each.shots)
                 .set("by_spearman", each.by_spearman)
                 .set("by_top1", each.by_top1));
  }
  return out;
}

}  // namespace

base::Document to_document(const EvaluationTable& table) {
  base::Document out = base::Document::map();
  if (!table.request.is_null()) out.set("request", table.request);
  if (!table.context.is_null()) out.set("context", table.context);
  out.set("rows", rows_document(table.rows)).set("complete", table.complete);
  if (!table.means.empty()) out.set("means", rows_document(table.means));
  if (!table.winners.empty()) {
    out.set("differences", differences_document(table.differences)).set("winners", winners_document(table.winners));
  }
  if (!table.searches.empty()) out.set("searches", searches_document(table.searches));
  if (!table.search_means.empty()) out.set("search_means", searches_document(table.search_means));
  if (!table.search_differences.empty())
    out.set("search_differences", search_differences_document(table.search_differences));
  return out;
}

EvaluationTable evaluation_table_from(const base::Document& document) {
  EvaluationTable table;
  document.at("rows");
  table.rows = rows_from(document, "rows");
  table.means = rows_from(document, "means");
  if (const base::Document* request = document.find("request")) table.request = *request;
  if (const base::Document* context = document.find("context")) table.context = *context;
  if (const base::Document* complete = document.find("complete")) table.complete = complete->as_bool();
  if (const base::Document* differences = document.find("differences")) {
    for (const base::Document& each : differences->as_list()) {
      table.differences.push_back({each.at("target").as_string(), each.at("method").as_string(),
                                   each.at("against").as_string(), each.at("shots").as_integer(), means_from(each)});
    }
  }
  table.searches = searches_from(document, "searches");
  table.search_means = searches_from(document, "search_means");
  if (const base::Document* differences = document.find("search_differences")) {
    for (const base::Document& each : differences->as_list()) {
      table.search_differences.push_back({each.at("target").as_string(), each.at("method").as_string(),
                                          each.at("against").as_string(), each.at("trials").as_integer(),
                                          base::interval_from(each.at("found"))});
    }
  }
  if (const base::Document* winners = document.find("winners")) {
    for (const base::Document& each : winners->as_list()) {
      table.winners.push_back({each.at("target").as_string(), each.at("shots").as_integer(),
                               each.at("by_spearman").as_string(), each.at("by_top1").as_string()});
    }
  }
  return table;
}

}  // namespace graft::study
