#include "datasets/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "codegen/schedule/sketch.h"
#include "datasets/h5.h"

namespace graft::datasets {
namespace {

using base::UserError;

constexpr std::string_view kind = "dataset";
// Several of these belong to one row, so that chunks hold about as many rows as those of the other columns.
constexpr std::int64_t flat_chunk = 8192;

// Both look from the end on: neighbouring trials tend to share workload and sketch.
int position_of(std::vector<codegen::Workload>& workloads, const codegen::Workload& workload) {
  const auto found = std::find(workloads.rbegin(), workloads.rend(), workload);
  if (found != workloads.rend()) return int(workloads.rend() - found) - 1;
  workloads.push_back(workload);
  return int(workloads.size()) - 1;
}

int position_of(std::vector<std::shared_ptr<const codegen::Sketch>>& sketches,
                const std::shared_ptr<const codegen::Sketch>& sketch) {
  // The trials of a run share their sketches: comparing content is rarely needed.
  auto found = std::find(sketches.rbegin(), sketches.rend(), sketch);
  if (found == sketches.rend()) {
    found = std::find_if(sketches.rbegin(), sketches.rend(), [&](const auto& known) { return *known == *sketch; });
  }
  if (found != sketches.rend()) return int(sketches.rend() - found) - 1;
  sketches.push_back(sketch);
  return int(sketches.size()) - 1;
}

// Distinct texts by number, in order of first appearance.
class TextTable {
 public:
  std::int64_t number_of(const std::string& text) {
    const auto [position, is_new] = numbers_.try_emplace(text, std::int64_t(texts_.size()));
    if (is_new) texts_.push_back(text);
    return position->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::map<std::string, std::int64_t> numbers_;
};

// Cuts a flat column into the lists of the rows.
template <class T>
class Lists {
 public:
  Lists(const h5::Reader& reader, const std::string& counts_name, std::vector<std::int64_t> counts,
        const std::string& values_name, std::vector<T> values)
      : counts_(std::move(counts)), values_(std::move(values)) {
    std::uint64_t left = values_.size();
    for (const std::int64_t count : counts_) {
      if (count < 0 || std::uint64_t(count) > left) {
        reader.refuse(fmt::format("'{}' does not fit '{}'", counts_name, values_name));
      }
      left -= std::uint64_t(count);
    }
    if (left != 0) reader.refuse(fmt::format("'{}' does not fit '{}'", counts_name, values_name));
  }

  // Of row 0, 1, ... in turn.
  std::vector<T> next() {
    const auto begin = values_.begin() + used_;
    used_ += counts_[row_++];
    return {begin, values_.begin() + used_};
  }
  std::size_t rows() const { return counts_.size(); }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<T> values_;
  std::size_t row_ = 0;
  std::int64_t used_ = 0;
};

std::vector<std::int64_t> positions(const h5::Reader& reader, const std::string& name, std::size_t rows,
                                    std::size_t table, const std::string& table_name) {
  std::vector<std::int64_t> result = reader.integers(name);
  if (result.size() != rows) reader.refuse(fmt::format("'{}' has {} rows; expected {}", name, result.size(), rows));
  for (std::size_t row = 0; row < rows; ++row) {
    if (result[row] < 0 || result[row] >= std::int64_t(table)) {
      reader.refuse(
          fmt::format("'{}' of row {} is {}, but '{}' has {} entries", name, row, result[row], table_name, table));
    }
  }
  return result;
}

struct CandidateKey {
  int workload = 0, sketch = 0;
  std::vector<std::int64_t> arguments;
  bool operator==(const CandidateKey&) const = default;
};
struct CandidateKeyHash {
  std::size_t operator()(const CandidateKey& key) const {
    std::uint64_t hash = base::hash_combine(std::uint64_t(key.workload), std::uint64_t(key.sketch));
    for (const std::int64_t argument : key.arguments) hash = base::hash_combine(hash, std::uint64_t(argument));
    return hash;
  }
};

// Imported times may come from a machine of which nothing is known: the default target, which reading strictly would
// refuse.
base::Document target_document(const codegen::Target& target) {
  if (target == codegen::Target()) return {};
  base::Document document = codegen::to_document(target);
  codegen::target_from(document);  // what cannot be read must not be written
  return document;
}

codegen::Target target_of(const base::Document& document) {
  return document.is_null() ? codegen::Target() : codegen::target_from(document);
}

}  // namespace

codegen::Candidate Dataset::candidate(const Row& row) const {
  return {workloads[std::size_t(row.workload)], sketches[std::size_t(row.sketch)], row.arguments};
}

void Dataset::add(const Trial& trial) {
  assert(trial.candidate.sketch != nullptr);
  rows.push_back({position_of(workloads, trial.candidate.workload), position_of(sketches, trial.candidate.sketch),
                  trial.candidate.arguments, trial.program_hash, trial.measurement});
}

void write_dataset(const Dataset& dataset, const std::filesystem::path& path) {
  h5::Writer writer(kind);
  writer.text("platform/id", dataset.platform);
  writer.text("platform/source", dataset.source);
  writer.text("platform/yaml", dataset.platform_yaml);
  writer.text("platform/target", target_document(dataset.target).to_json());
  writer.text("provenance", dataset.provenance.to_json());

  std::vector<std::string> workloads, sketches, statuses;
  for (const codegen::Workload& workload : dataset.workloads) workloads.push_back(workload.text);
  for (const auto& sketch : dataset.sketches) sketches.push_back(codegen::to_text(*sketch));
#define X(name) statuses.push_back(std::string(name_of(Status::name)));
  GRAFT_STATUSES(X)
#undef X
  writer.texts("workloads", workloads);
  writer.texts("sketches", sketches);
  writer.texts("statuses", statuses);

  std::vector<std::int64_t> workload, sketch, argument_counts, arguments, reason, repetitions, clock, check;
  std::vector<std::uint64_t> program_hash;
  std::vector<std::uint8_t> status;
  std::vector<double> seconds, reference_ratio;
  TextTable reasons, clocks, checks;
  for (const Dataset::Row& row : dataset.rows) {
    const Measurement& measurement = row.measurement;
    if (const std::string problem = contradiction(measurement); !problem.empty()) {
      throw base::Failure(fmt::format("{}: row {} cannot be written: {}", path.string(), workload.size(), problem));
    }
    assert(std::size_t(row.workload) < dataset.workloads.size() && std::size_t(row.sketch) < dataset.sketches.size());
    workload.push_back(row.workload);
    sketch.push_back(row.sketch);
    argument_counts.push_back(std::int64_t(row.arguments.size()));
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    program_hash.push_back(row.program_hash);
    status.push_back(std::uint8_t(measurement.status));
    reason.push_back(reasons.number_of(measurement.reason));
    repetitions.push_back(std::int64_t(measurement.seconds.size()));
    seconds.insert(seconds.end(), measurement.seconds.begin(), measurement.seconds.end());
    clock.push_back(clocks.number_of(measurement.clock));
    check.push_back(checks.number_of(measurement.check));
    reference_ratio.push_back(measurement.reference_ratio);
  }
  writer.texts("reasons", reasons.texts());
  writer.texts("clocks", clocks.texts());
  writer.texts("checks", checks.texts());
  writer.integers("rows/workload", workload);
  writer.integers("rows/sketch", sketch);
  writer.integers("rows/argument_count", argument_counts);
  writer.integers("rows/arguments", arguments, flat_chunk);
  writer.hashes("rows/program_hash", program_hash);
  writer.bytes("rows/status", status);
  writer.integers("rows/reason", reason);
  writer.integers("rows/repetitions", repetitions);
  writer.numbers("rows/seconds", seconds, flat_chunk);
  writer.integers("rows/clock", clock);
  writer.integers("rows/check", check);
  writer.numbers("rows/reference_ratio", reference_ratio);
  writer.commit(path);
}

Dataset read_dataset(const std::filesystem::path& path) {
  const h5::Reader reader(path, kind);
  const std::string file = path.string();
  Dataset dataset;
  dataset.platform = reader.text("platform/id");
  dataset.source = reader.text("platform/source");
  dataset.platform_yaml = reader.text("platform/yaml");
  dataset.target = target_of(base::parse_json(reader.text("platform/target"), file + ": platform/target"));
  dataset.provenance = base::parse_json(reader.text("provenance"), file + ": provenance");
  for (std::string& text : reader.texts("workloads")) dataset.workloads.push_back({std::move(text)});
  for (const std::string& text : reader.texts("sketches")) {
    const std::string place = fmt::format("{}: sketches[{}]", file, dataset.sketches.size());
    dataset.sketches.push_back(std::make_shared<const codegen::Sketch>(codegen::parse_sketch(text, place)));
  }
  std::vector<Status> statuses;
  for (const std::string& name : reader.texts("statuses")) {
    const auto known = status_of(name);
    if (!known) reader.refuse(fmt::format("unknown status '{}'; use the graft that wrote the file", name));
    statuses.push_back(*known);
  }
  const std::vector<std::string> reasons = reader.texts("reasons"), clocks = reader.texts("clocks"),
                                 checks = reader.texts("checks");

  Lists<std::int64_t> arguments(reader, "rows/argument_count", reader.integers("rows/argument_count"), "rows/arguments",
                                reader.integers("rows/arguments"));
  Lists<double> seconds(reader, "rows/repetitions", reader.integers("rows/repetitions"), "rows/seconds",
                        reader.numbers("rows/seconds"));
  const std::vector<std::uint64_t> program_hash = reader.hashes("rows/program_hash");
  const std::vector<double> reference_ratio = reader.numbers("rows/reference_ratio");
  const std::size_t rows = program_hash.size();
  const auto same_rows = [&](std::string_view name, std::size_t found) {
    if (found != rows) reader.refuse(fmt::format("'{}' has {} rows; expected {}", name, found, rows));
  };
  same_rows("rows/argument_count", arguments.rows());
  same_rows("rows/repetitions", seconds.rows());
  same_rows("rows/reference_ratio", reference_ratio.size());
  const auto workload = positions(reader, "rows/workload", rows, dataset.workloads.size(), "workloads");
  const auto sketch = positions(reader, "rows/sketch", rows, dataset.sketches.size(), "sketches");
  const auto status = positions(reader, "rows/status", rows, statuses.size(), "statuses");
  const auto reason = positions(reader, "rows/reason", rows, reasons.size(), "reasons");
  const auto clock = positions(reader, "rows/clock", rows, clocks.size(), "clocks");
  const auto check = positions(reader, "rows/check", rows, checks.size(), "checks");

  dataset.rows.reserve(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    Dataset::Row row{int(workload[i]), int(sketch[i]), arguments.next(), program_hash[i], {}};
    row.measurement = {.status = statuses[std::size_t(status[i])],
                       .reason = reasons[std::size_t(reason[i])],
                       .seconds = seconds.next(),
                       .clock = clocks[std::size_t(clock[i])],
                       .reference_ratio = reference_ratio[i],
                       .check = checks[std::size_t(check[i])]};
    if (const std::string problem = contradiction(row.measurement); !problem.empty()) {
      reader.refuse(fmt::format("row {}: {}", i, problem));
    }
    dataset.rows.push_back(std::move(row));
  }
  return dataset;
}

Dataset merged(const Dataset& a, const Dataset& b) {
  const auto refuse = [&](std::string_view why) {
    throw UserError(fmt::format("datasets of '{}' and '{}' cannot be merged: {}", a.platform, b.platform, why));
  };
  if (a.platform != b.platform) refuse("they are of different platforms");
  if (a.source != b.source) refuse(fmt::format("their times are '{}' and '{}'", a.source, b.source));
  if (a.platform_yaml != b.platform_yaml) refuse("the platform's YAML changed between them");

  Dataset result = a;
  result.rows.clear();
  if (!(a.provenance == b.provenance)) {
    result.provenance = base::Document::map();
    result.provenance.set("merged", base::Document::List{a.provenance, b.provenance});
  }
  std::unordered_map<CandidateKey, std::size_t, CandidateKeyHash> known;
  for (const Dataset* from : {&a, &b}) {
    std::vector<int> workloads, sketches;  // positions in the result
    for (const codegen::Workload& workload : from->workloads) {
      workloads.push_back(position_of(result.workloads, workload));
    }
    for (const auto& sketch : from->sketches) sketches.push_back(position_of(result.sketches, sketch));
    for (Dataset::Row row : from->rows) {
      row.workload = workloads[std::size_t(row.workload)];
      row.sketch = sketches[std::size_t(row.sketch)];
      const auto [place, is_new] = known.try_emplace({row.workload, row.sketch, row.arguments}, result.rows.size());
      if (is_new) {
        result.rows.push_back(std::move(row));
      } else {
        result.rows[place->second] = std::move(row);
      }
    }
  }
  return result;
}

}  // namespace graft::datasets
