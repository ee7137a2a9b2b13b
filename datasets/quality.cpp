#include "datasets/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/statistics.h"
#include "datasets/episodes.h"

namespace graft::datasets {
namespace {

// Sample standard deviation / mean; two values at least.
double variation_of(const std::vector<double>& values) {
  const double mean = base::mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / double(values.size() - 1)) / mean;
}

// {"host":812,...} in the order of the names, without empty ones.
template <class NameOf>
base::Document counts(const Dataset& dataset, NameOf name_of_row) {
  std::map<std::string, std::int64_t> found;
  for (const Dataset::Row& row : dataset.rows) ++found[std::string(name_of_row(row))];
  found.erase("");
  base::Document document = base::Document::map();
  for (const auto& [name, count] : found) document.set(name, count);
  return document;
}

base::Document document_of(const Quality& quality) {
  base::Document missed = base::Document::list();
  for (const std::string& gate : quality.missed) missed.push(gate);
  base::Document row = base::Document::map();
  row.set("workload", quality.workload.text)
      .set("rows", quality.rows)
      .set("ok", quality.ok)
      .set("programs", quality.programs)
      .set("failed", quality.failed)
      .set("spread", quality.spread)
      .set("variation", quality.variation)
      .set("variation_90", quality.variation_90)
      .set("missed", std::move(missed));
  return row;
}

base::Document splits_of(const Dataset& dataset) {
  base::Document workloads = base::Document::map();
  for (int fold = 0; fold < folds; ++fold) {
    base::Document held_out = base::Document::list();
    for (const codegen::Workload& workload : dataset.workloads) {
      if (fold_of(workload) == fold) held_out.push(workload.text);
    }
    workloads.set(workload_split(fold), std::move(held_out));
  }
  const std::string_view role = role_of(dataset.platform);
  base::Document splits = base::Document::map();
  splits.set("platforms", role.empty() ? "in no part" : std::string(role)).set("held_out", std::move(workloads));
  return splits;
}

}  // namespace

std::vector<Quality> quality(const Dataset& dataset, const Gates& gates) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<Quality> result(dataset.workloads.size());
  std::vector<std::vector<double>> seconds(result.size()), variations(result.size());
  for (std::size_t w = 0; w < result.size(); ++w) result[w].workload = dataset.workloads[w];
  for (const Dataset::Row& row : dataset.rows) {
    const std::size_t w = std::size_t(row.workload);
    ++result[w].rows;
    if (row.measurement.status != Status::ok) continue;
    ++result[w].ok;
    seconds[w].push_back(seconds_of(row.measurement));
    if (row.measurement.seconds.size() >= 2) variations[w].push_back(variation_of(row.measurement.seconds));
  }
  for (const Group& group : groups(dataset)) {
    const auto own = std::find(dataset.workloads.begin(), dataset.workloads.end(), group.workload);
    result[std::size_t(own - dataset.workloads.begin())].programs = std::int64_t(group.rows.size());
  }
  for (std::size_t w = 0; w < result.size(); ++w) {
    Quality& own = result[w];
    own.failed = own.rows == 0 ? 0 : double(own.rows - own.ok) / double(own.rows);
    own.spread = none;
    if (!seconds[w].empty()) {
      const auto [best, worst] = std::minmax_element(seconds[w].begin(), seconds[w].end());
      own.spread = *worst / *best;
    }
    own.variation = base::median(variations[w]);
    own.variation_90 = base::quantile(variations[w], 0.9);
    if (!(own.spread >= gates.least_spread)) own.missed.push_back("spread");
    if (own.failed > gates.most_failed) own.missed.push_back("failed");
    if (own.variation > gates.most_variation) own.missed.push_back("variation");
  }
  return result;
}

base::Document card(const Dataset& dataset) {
  const Gates gates;
  base::Document workloads = base::Document::list();
  std::vector<double> variations;
  std::int64_t passed = 0;
  for (const Quality& each : quality(dataset, gates)) {
    if (std::isfinite(each.variation)) variations.push_back(each.variation);
    if (each.missed.empty()) ++passed;
    workloads.push(document_of(each));
  }
  const auto copied = [&](std::string_view key, base::Document& into) {
    if (!dataset.provenance.is_map()) return;
    if (const base::Document* value = dataset.provenance.find(key)) into.set(std::string(key), *value);
  };
  base::Document made = base::Document::map(), noise = base::Document::map(), limits = base::Document::map(),
                 platform = base::Document::map(), measured = base::Document::map();
  for (const char* key : {"graft", "date", "host", "command", "request", "cleaned", "merged"}) copied(key, made);
  platform.set("id", dataset.platform).set("source", dataset.source);
  measured.set("rows", dataset.rows.size())
      .set("statuses", counts(dataset, [](const auto& row) { return name_of(row.measurement.status); }))
      .set("clocks", counts(dataset, [](const auto& row) { return row.measurement.clock; }))
      .set("checks", counts(dataset, [](const auto& row) { return row.measurement.check; }))
      .set("estimator", "minimum of the repetitions");
  noise.set("measure", "median over programs of the repetitions' standard deviation / mean, by workload")
      .set("least", base::quantile(variations, 0))
      .set("median", base::median(variations))
      .set("most", base::quantile(variations, 1));
  limits.set("least_spread", gates.least_spread)
      .set("most_failed", gates.most_failed)
      .set("most_variation", gates.most_variation)
      .set("passed", passed)
      .set("workloads", dataset.workloads.size());
  base::Document card = base::Document::map();
  card.set("card", 1)
      .set("platform", std::move(platform))
      .set("made", std::move(made))
      .set("measured", std::move(measured))
      .set("noise", std::move(noise))
      .set("gates", std::move(limits))
      .set("workloads", std::move(workloads))
      .set("splits", splits_of(dataset));
  return card;
}

}  // namespace graft::datasets
