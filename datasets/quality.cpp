#include "datasets/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/hash.h"
#include "base/statistics.h"
#include "datasets/groups.h"

namespace graft::datasets {
namespace {

// Sample standard deviation / mean; two values at least.
double variation_of(const std::vector<double>& values) {
  const double mean = base::mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / double(values.size() - 1)) / mean;
}

// {"host":812,...} in the order of the names, without the empty one.
base::Document document_of(const std::map<std::string, std::int64_t, std::less<>>& counts) {
  base::Document document = base::Document::map();
  for (const auto& [name, count] : counts) {
    if (!name.empty()) document.set(name, count);
  }
  return document;
}

void count(std::map<std::string, std::int64_t, std::less<>>& counts, std::string_view name) {
  const auto known = counts.find(name);
  if (known != counts.end()) {
    ++known->second;
  } else {
    counts.emplace(name, 1);
  }
}

base::Document document_of(const Quality& quality) {
  base::Document missed = base::Document::list();
  for (const std::string& gate : quality.missed) missed.push(gate);
  base::Document row = base::Document::map();
  row.set("workload", quality.workload.text())
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
      if (fold_of(workload) == fold) held_out.push(workload.text());
    }
    workloads.set(workload_split(fold), std::move(held_out));
  }
  const std::string_view role = role_of(dataset.platform);
  base::Document splits = base::Document::map();
  splits.set("platforms", role.empty() ? "in no part" : std::string(role)).set("held_out", std::move(workloads));
  return splits;
}

QualityTally tally_of(const Dataset& dataset) {
  QualityTally tally;
  for (const Dataset::Row& row : dataset.rows) tally.add(row);
  return tally;
}

}  // namespace

void QualityTally::Distinct::add(std::uint64_t value) {
  values.push_back(value);
  if (values.size() < 2 * sorted + 1024) return;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  sorted = values.size();
}

std::int64_t QualityTally::Distinct::count() const {
  std::vector<std::uint64_t> all = values;
  std::sort(all.begin(), all.end());
  return std::unique(all.begin(), all.end()) - all.begin();
}

void QualityTally::add(const Dataset::Row& row) {
  const std::size_t w = std::size_t(row.workload);
  if (w >= workloads_.size()) workloads_.resize(w + 1);
  OfWorkload& own = workloads_[w];
  ++rows_;
  ++own.rows;
  count(statuses_, name_of(row.measurement.status));
  count(clocks_, row.measurement.clock);
  count(checks_, row.measurement.check);
  if (row.measurement.status != Status::ok) return;
  const double seconds = seconds_of(row.measurement);
  own.best = own.ok == 0 ? seconds : std::min(own.best, seconds);
  own.worst = own.ok == 0 ? seconds : std::max(own.worst, seconds);
  ++own.ok;
  if (row.measurement.seconds.size() >= 2) own.variations.push_back(variation_of(row.measurement.seconds));
  std::uint64_t program = row.program_hash;
  if (program == 0) {  // as datasets::groups tells programs apart
    program = base::hash_mix(std::uint64_t(row.sketch));
    for (const std::int64_t argument : row.arguments) program = base::hash_combine(program, std::uint64_t(argument));
  }
  own.programs.add(program);
}

std::vector<Quality> QualityTally::quality(const Dataset& head, const Gates& gates) const {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<Quality> result(head.workloads.size());
  for (std::size_t w = 0; w < result.size(); ++w) {
    static const OfWorkload nothing;
    const OfWorkload& of = w < workloads_.size() ? workloads_[w] : nothing;
    Quality& own = result[w];
    own.workload = head.workloads[w];
    own.rows = of.rows;
    own.ok = of.ok;
    own.programs = of.programs.count();
    own.failed = own.rows == 0 ? 0 : double(own.rows - own.ok) / double(own.rows);
    own.spread = of.ok == 0 ? none : of.worst / of.best;
    own.variation = base::median(of.variations);
    own.variation_90 = base::quantile(of.variations, 0.9);
    if (!(own.spread >= gates.least_spread)) own.missed.push_back("spread");
    if (own.failed > gates.most_failed) own.missed.push_back("failed");
    if (own.variation > gates.most_variation) own.missed.push_back("variation");
  }
  return result;
}

std::vector<Quality> quality(const Dataset& dataset, const Gates& gates) {
  return tally_of(dataset).quality(dataset, gates);
}

base::Document card(const Dataset& dataset) {
  return tally_of(dataset).card(dataset);
}

base::Document QualityTally::card(const Dataset& dataset) const {
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
  for (const char* key : {"graft", "date", "host", "command", "request", "imported", "cleaned", "merged"})
    copied(key, made);
  platform.set("id", dataset.platform).set("source", dataset.source);
  measured.set("rows", rows_)
      .set("statuses", document_of(statuses_))
      .set("clocks", document_of(clocks_))
      .set("checks", document_of(checks_))
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
