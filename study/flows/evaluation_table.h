// The results of an evaluation, as a value: rows of target, method and number of shots; their statistics; and their
// stored form, so that an interrupted evaluation continues and `graft report` shows it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/interval.h"

namespace graft::study {

// The metrics of comparison. Means of top-k over workloads and targets are geometric.
enum class Metric { spearman, top1, top5 };
inline constexpr std::array<Metric, 3> metrics = {Metric::spearman, Metric::top1, Metric::top5};
std::string_view key_of(Metric metric);  // "spearman", in documents

template <class Value>
struct PerMetric {
  std::array<Value, metrics.size()> values = {};
  Value& operator[](Metric metric) { return values[std::size_t(metric)]; }
  const Value& operator[](Metric metric) const { return values[std::size_t(metric)]; }
};

struct EvaluationTable {
  struct Row {
    std::string target, method, source;        // source "": of a table that does not say it
    std::int64_t shots = 0;                    // per (platform, workload)
    std::optional<std::int64_t> measurements;  // support trials in total
    std::int64_t draws = 0, workloads = 0;
    PerMetric<base::Interval> means = {};
    std::optional<PerMetric<std::vector<double>>> by_draw = {};  // equal draws of two methods are pairs
    base::Document::Map others = {};                             // further values of this row, kept in their order
  };
  // The difference of a method from the one that it is compared with, over the same draws.
  struct Difference {
    std::string target, method, against;
    std::int64_t shots = 0;
    PerMetric<base::Interval> means = {};
  };
  struct Winner {
    std::string target;
    std::int64_t shots = 0;
    std::string by_spearman, by_top1;
  };

  // The searches that a method guided among the target's recorded programs: one of each workload by each seed.
  struct Search {
    std::string target, method, source;
    std::int64_t trials = 0, workloads = 0;
    // Speed of the best program after that many trials, the fastest recorded one's is 1; geometric means over workloads
    // by seed, and their mean.
    base::Interval found = {};
    std::vector<double> by_seed = {};  // equal seeds of two methods are pairs
  };
  struct SearchDifference {
    std::string target, method, against;
    std::int64_t trials = 0;
    base::Interval found = {};
  };

  base::Document request, context;  // null: of a table that does not say it
  std::vector<Row> rows;            // by target
  std::vector<Row> means;           // over all targets, where there are several
  std::vector<Difference> differences;
  std::vector<Winner> winners;                 // none: the table is not complete, or does not have them
  std::vector<Search> searches, search_means;  // by target; over all targets, where there are several
  std::vector<SearchDifference> search_differences;
  bool complete = false;

  const Row* find(std::string_view target, std::string_view method, std::int64_t shots) const;
};

using Rows = std::vector<EvaluationTable::Row>;
const EvaluationTable::Row* row_of(const Rows& rows, std::string_view target, std::string_view method,
                                   std::int64_t shots);  // null: none

// The methods, and their numbers of shots, that are compared.
struct Compared {
  std::vector<std::string> targets, methods;
  std::vector<std::int64_t> shots;
};

// The mean over all targets, draw by draw, of each method and number of shots. Each has its row, of equally many draws,
// for each target.
Rows means_over_targets(const Rows& rows, const Compared& compared, std::uint64_t seed);

// Differences for all rows except those of `against`, which has a row for each of their targets and shots.
std::vector<EvaluationTable::Difference> differences_to(std::string_view against, const Rows& rows, std::uint64_t seed);

// The methods with the best means; of equal ones the first in the order of `compared`. An unknown mean is less
// than any other.
std::vector<EvaluationTable::Winner> winners_of(const Rows& rows, const Compared& compared);

using Searches = std::vector<EvaluationTable::Search>;
const EvaluationTable::Search* search_of(const Searches& searches, std::string_view target, std::string_view method,
                                         std::int64_t trials);  // null: none
// As of rows; the means of all methods and numbers of trials that the searches have.
Searches search_means_over_targets(const Searches& searches, const std::vector<std::string>& targets,
                                   std::uint64_t seed);
std::vector<EvaluationTable::SearchDifference> search_differences_to(std::string_view against, const Searches& searches,
                                                                     std::uint64_t seed);

// {"request":...,"context":...,"rows":[...],"complete":...}, and "means", "differences", "winners", "searches",
// "search_means", "search_differences" once there are any.
base::Document to_document(const EvaluationTable& table);
// Reads tables of other versions, too, which may lack all but the rows' target, method, shots and means. UserError if
// it is not such a table.
EvaluationTable evaluation_table_from(const base::Document& document);

}  // namespace graft::study
