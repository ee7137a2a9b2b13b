#include "meta/kept_measurements.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "datasets/groups.h"

namespace graft::meta {
namespace {

// The largest number of rows of each group with which all have at most `most` together.
std::int64_t rows_of_each(const std::vector<datasets::Group>& groups, std::int64_t most) {
  std::vector<std::int64_t> sizes;
  for (const datasets::Group& group : groups) sizes.push_back(std::int64_t(group.rows.size()));
  std::sort(sizes.begin(), sizes.end());
  auto left = std::int64_t(sizes.size());
  for (const std::int64_t size : sizes) {
    if (size * left > most) return std::max<std::int64_t>(most / left, 1);
    most -= size, --left;
  }
  return sizes.empty() ? 0 : sizes.back();
}

template <class T>
std::size_t position_in(std::map<std::string, std::size_t>& positions, base::Document& list, const T& text) {
  const auto [at, is_new] = positions.emplace(text, positions.size());
  if (is_new) list.push(text);
  return at->second;
}

// The element of `all` that the document names by its position.
template <class T>
int position_from(const base::Document& at, const std::vector<T>& all) {
  const std::int64_t position = at.as_integer();
  if (position < 0 || position >= std::int64_t(all.size())) throw base::UserError(at.place(), "no such entry");
  return int(position);
}

}  // namespace

datasets::Dataset thinned(const datasets::Dataset& dataset, std::int64_t most) {
  const std::vector<datasets::Group> groups = datasets::groups(dataset);
  const std::int64_t of_each = rows_of_each(groups, most);
  datasets::Dataset out = dataset;
  out.rows.clear();
  for (const datasets::Group& group : groups) {
    std::vector<std::int64_t> order = group.rows;
    const auto seconds = [&](std::int64_t row) {
      return datasets::seconds_of(dataset.rows[std::size_t(row)].measurement);
    };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return seconds(a) < seconds(b); });
    const auto size = std::int64_t(order.size()), count = std::min(size, of_each);
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(order[std::size_t(i * size / count)]);
    std::sort(rows.begin(), rows.end());
    for (const std::int64_t row : rows) out.rows.push_back(dataset.rows[std::size_t(row)]);
  }
  return out;
}

std::vector<datasets::Dataset> thinned(std::vector<datasets::Dataset> kept) {
  for (datasets::Dataset& dataset : kept) dataset = thinned(dataset, most_kept_of_a_platform);
  if (programs_in(kept) <= most_kept) return kept;
  for (datasets::Dataset& dataset : kept) dataset = thinned(dataset, most_kept / std::int64_t(kept.size()));
  return kept;
}

std::int64_t programs_in(const std::vector<datasets::Dataset>& kept) {
  std::int64_t programs = 0;
  for (const datasets::Dataset& dataset : kept) programs += std::int64_t(dataset.rows.size());
  return programs;
}

base::Document to_document(const std::vector<datasets::Dataset>& kept) {
  base::Document sketches = base::Document::list(), workloads = base::Document::list(),
                 platforms = base::Document::list();
  std::map<std::string, std::size_t> of_sketches, of_workloads;
  for (const datasets::Dataset& dataset : kept) {
    base::Document rows = base::Document::list();
    for (const datasets::Dataset::Row& row : dataset.rows) {
      base::Document entry = base::Document::list();
      entry.push(position_in(of_workloads, workloads, dataset.workloads[std::size_t(row.workload)].text()))
          .push(position_in(of_sketches, sketches, codegen::to_text(*dataset.sketches[std::size_t(row.sketch)])))
          .push(base::to_hex(row.program_hash))
          .push(datasets::seconds_of(row.measurement));
      for (const std::int64_t argument : row.arguments) entry.push(argument);
      rows.push(std::move(entry));
    }
    platforms.push(base::Document::map()
                       .set("platform", dataset.platform)
                       .set("source", dataset.source)
                       .set("yaml", dataset.platform_yaml)
                       .set("target", dataset.target == codegen::Target() ? base::Document()
                                                                          : codegen::to_document(dataset.target))
                       .set("rows", std::move(rows)));
  }
  return base::Document::map()
      .set("sketches", std::move(sketches))
      .set("workloads", std::move(workloads))
      .set("platforms", std::move(platforms));
}

std::vector<datasets::Dataset> kept_measurements_from(const base::Document& document) {
  document.only_keys({"sketches", "workloads", "platforms"});
  datasets::Dataset shared;
  for (const base::Document& text : document.at("sketches").as_list())
    shared.sketches.push_back(codegen::measured_sketch_from(text));
  for (const base::Document& text : document.at("workloads").as_list()) shared.workloads.emplace_back(text.as_string());
  std::vector<datasets::Dataset> all;
  for (const base::Document& platform : document.at("platforms").as_list()) {
    platform.only_keys({"platform", "source", "yaml", "target", "rows"});
    datasets::Dataset& dataset = all.emplace_back(shared);
    dataset.platform = platform.at("platform").as_string();
    dataset.source = platform.at("source").as_string();
    dataset.platform_yaml = platform.at("yaml").as_string();
    if (const base::Document& target = platform.at("target"); !target.is_null())
      dataset.target = codegen::target_from(target);
    for (const base::Document& entry : platform.at("rows").as_list()) {
      const base::Document::List& values = entry.as_list();
      if (values.size() < 4) throw base::UserError(entry.place(), "a row has four values and its arguments");
      datasets::Dataset::Row& row = dataset.rows.emplace_back();
      row.workload = position_from(values[0], shared.workloads);
      row.sketch = position_from(values[1], shared.sketches);
      row.program_hash = base::from_hex(values[2].as_string());
      row.measurement.seconds = {values[3].as_number()};
      if (const std::string fault = datasets::contradiction(row.measurement); !fault.empty())
        throw base::UserError(values[3].place(), fault);
      for (std::size_t i = 4; i < values.size(); ++i) row.arguments.push_back(values[i].as_integer());
      codegen::check_measured(shared.candidate(row), entry.place());
    }
  }
  return all;
}

}  // namespace graft::meta
