#include "datasets/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "codegen/space/sketch.h"
#include "datasets/h5.h"
#include "datasets/kinship.h"
#include "datasets/quality.h"

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

// Where the lists of the rows begin in a flat column, and the end of the last one.
std::vector<std::int64_t> begins(const h5::Reader& reader, const std::string& counts_name,
                                 const std::string& values_name) {
  const std::vector<std::int64_t> counts = reader.integers(counts_name);
  std::vector<std::int64_t> result{0};
  result.reserve(counts.size() + 1);
  const std::int64_t all = reader.length(values_name);
  const auto refuse = [&] { reader.refuse(fmt::format("'{}' does not fit '{}'", counts_name, values_name)); };
  for (const std::int64_t count : counts) {
    if (count < 0 || count > all - result.back()) refuse();
    result.push_back(result.back() + count);
  }
  if (result.back() != all) refuse();
  return result;
}

std::vector<std::int64_t> positions(const h5::Reader& reader, const std::string& name, h5::Part part, std::size_t table,
                                    const std::string& table_name) {
  std::vector<std::int64_t> result = reader.integers(name, part);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] < 0 || result[i] >= std::int64_t(table)) {
      reader.refuse(fmt::format("'{}' of row {} is {}, but '{}' has {} entries", name, part.first + std::int64_t(i),
                                result[i], table_name, table));
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

void refuse_emulated(std::string_view place, std::string_view source) {
  if (source == "emulated")
    throw base::UserError(place,
                          "times under an emulator say nothing about hardware; take those of a board, of this machine "
                          "or of a modelled platform");
}

void Dataset::add(const Trial& trial) {
  assert(trial.candidate.sketch != nullptr);
  rows.push_back({position_of(workloads, trial.candidate.workload), position_of(sketches, trial.candidate.sketch),
                  trial.candidate.arguments, trial.program_hash, trial.measurement});
}

struct DatasetWriter::Content {
  h5::Writer writer{kind};
  Dataset head;
  std::unordered_map<std::string, int> workloads;   // positions
  std::unordered_map<std::uint64_t, int> sketches;  // by hash
  std::int64_t rows = 0;
  QualityTally tally;
  TextTable reasons, clocks, checks;
  // Rows that wait to be packed.
  std::vector<std::int64_t> workload, sketch, argument_counts, arguments, reason, repetitions, clock, check;
  std::vector<std::uint64_t> program_hash;
  std::vector<std::uint8_t> status;
  std::vector<double> seconds, reference_ratio;

  void flush() {
    const auto integers = [&](const char* name, std::vector<std::int64_t>& values, std::int64_t chunk = h5::row_chunk) {
      writer.integers(name, values, chunk);
      values.clear();
    };
    integers("rows/workload", workload);
    integers("rows/sketch", sketch);
    integers("rows/argument_count", argument_counts);
    integers("rows/arguments", arguments, flat_chunk);
    writer.hashes("rows/program_hash", program_hash);
    writer.bytes("rows/status", status);
    integers("rows/reason", reason);
    integers("rows/repetitions", repetitions);
    writer.numbers("rows/seconds", seconds, flat_chunk);
    integers("rows/clock", clock);
    integers("rows/check", check);
    writer.numbers("rows/reference_ratio", reference_ratio);
    program_hash.clear();
    status.clear();
    seconds.clear();
    reference_ratio.clear();
  }
};

DatasetWriter::DatasetWriter(Dataset head) : content_(std::make_unique<Content>()) {
  assert(head.rows.empty());
  content_->head = std::move(head);
  const Dataset& known = content_->head;
  for (int w = 0; w < int(known.workloads.size()); ++w)
    content_->workloads.emplace(known.workloads[std::size_t(w)].text(), w);
  for (int s = 0; s < int(known.sketches.size()); ++s)
    content_->sketches.emplace(codegen::hash(*known.sketches[std::size_t(s)]), s);
}

DatasetWriter::~DatasetWriter() = default;
DatasetWriter::DatasetWriter(DatasetWriter&& other) noexcept = default;
DatasetWriter& DatasetWriter::operator=(DatasetWriter&& other) noexcept = default;

Dataset& DatasetWriter::head() {
  return content_->head;
}

std::int64_t DatasetWriter::rows() const {
  return content_->rows;
}

int DatasetWriter::position_of(const codegen::Workload& workload) {
  std::vector<codegen::Workload>& all = content_->head.workloads;
  const auto [known, is_new] = content_->workloads.try_emplace(workload.text(), int(all.size()));
  if (is_new) all.push_back(workload);
  return known->second;
}

int DatasetWriter::position_of(const std::shared_ptr<const codegen::Sketch>& sketch) {
  std::vector<std::shared_ptr<const codegen::Sketch>>& all = content_->head.sketches;
  const auto [known, is_new] = content_->sketches.try_emplace(codegen::hash(*sketch), int(all.size()));
  if (is_new) all.push_back(sketch);
  // Two sketches of one hash: never seen, and looked for the slow way.
  return *all[std::size_t(known->second)] == *sketch ? known->second : datasets::position_of(all, sketch);
}

void DatasetWriter::add(const Dataset::Row& row) {
  constexpr std::int64_t block = 8 * h5::row_chunk;
  Content& to = *content_;
  const Measurement measurement = with_minimum(row.measurement);
  if (const std::string problem = contradiction(measurement); !problem.empty()) {
    throw base::Failure(fmt::format("row {} cannot be written: {}", to.rows, problem));
  }
  assert(std::size_t(row.workload) < to.head.workloads.size() && std::size_t(row.sketch) < to.head.sketches.size());
  to.workload.push_back(row.workload);
  to.sketch.push_back(row.sketch);
  to.argument_counts.push_back(std::int64_t(row.arguments.size()));
  to.arguments.insert(to.arguments.end(), row.arguments.begin(), row.arguments.end());
  to.program_hash.push_back(row.program_hash);
  to.status.push_back(std::uint8_t(measurement.status));
  to.reason.push_back(to.reasons.number_of(measurement.reason));
  to.repetitions.push_back(std::int64_t(measurement.seconds.size()));
  to.seconds.insert(to.seconds.end(), measurement.seconds.begin(), measurement.seconds.end());
  to.clock.push_back(to.clocks.number_of(measurement.clock));
  to.check.push_back(to.checks.number_of(measurement.check));
  to.reference_ratio.push_back(measurement.reference_ratio);
  to.tally.add(row);
  if (++to.rows % block == 0) to.flush();
}

void DatasetWriter::commit(const std::filesystem::path& path) {
  Content& from = *content_;
  h5::Writer& writer = from.writer;
  from.flush();
  writer.text("platform/id", from.head.platform);
  writer.text("platform/source", from.head.source);
  writer.text("platform/yaml", from.head.platform_yaml);
  writer.text("platform/target", target_document(from.head.target).to_json());
  writer.text("provenance", from.head.provenance.to_json());
  std::vector<std::string> workloads, sketches, statuses;
  for (const codegen::Workload& workload : from.head.workloads) workloads.push_back(workload.text());
  for (const auto& sketch : from.head.sketches) sketches.push_back(codegen::to_text(*sketch));
#define X(name) statuses.push_back(std::string(name_of(Status::name)));
  GRAFT_STATUSES(X)
#undef X
  writer.texts("workloads", workloads);
  writer.texts("sketches", sketches);
  writer.texts("statuses", statuses);
  writer.text("card", from.tally.card(from.head).to_json());
  writer.texts("reasons", from.reasons.texts());
  writer.texts("clocks", from.clocks.texts());
  writer.texts("checks", from.checks.texts());
  writer.commit(path);
}

void write_dataset(const Dataset& dataset, const std::filesystem::path& path) {
  DatasetWriter writer({.platform = dataset.platform,
                        .source = dataset.source,
                        .platform_yaml = dataset.platform_yaml,
                        .target = dataset.target,
                        .provenance = dataset.provenance,
                        .workloads = dataset.workloads,
                        .sketches = dataset.sketches,
                        .rows = {}});
  for (const Dataset::Row& row : dataset.rows) writer.add(row);
  writer.commit(path);
}

struct DatasetFile::Content {
  h5::Reader reader;
  Dataset head;
  std::vector<Status> statuses;
  std::vector<std::string> reasons, clocks, checks;
  std::vector<std::int64_t> argument_begins, seconds_begins;  // by row, and one more
  std::int64_t rows = 0;

  explicit Content(const std::filesystem::path& path) : reader(path, kind) {
    const std::string file = path.string();
    head.platform = reader.text("platform/id");
    head.source = reader.text("platform/source");
    head.platform_yaml = reader.text("platform/yaml");
    head.target = target_of(base::parse_json(reader.text("platform/target"), file + ": platform/target"));
    head.provenance = base::parse_json(reader.text("provenance"), file + ": provenance");
    for (std::string& text : reader.texts("workloads")) head.workloads.emplace_back(std::move(text));
    for (const std::string& text : reader.texts("sketches")) {
      const std::string place = fmt::format("{}: sketches[{}]", file, head.sketches.size());
      head.sketches.push_back(std::make_shared<const codegen::Sketch>(codegen::parse_sketch(text, place)));
    }
    for (const std::string& name : reader.texts("statuses")) {
      const auto known = status_of(name);
      if (!known) reader.refuse(fmt::format("unknown status '{}'; use the graft that wrote the file", name));
      statuses.push_back(*known);
    }
    reasons = reader.texts("reasons");
    clocks = reader.texts("clocks");
    checks = reader.texts("checks");
    argument_begins = begins(reader, "rows/argument_count", "rows/arguments");
    seconds_begins = begins(reader, "rows/repetitions", "rows/seconds");
    rows = reader.length("rows/program_hash");
    for (const char* name : {"argument_count", "repetitions", "reference_ratio", "workload", "sketch", "status",
                             "reason", "clock", "check"}) {
      const std::string column = std::string("rows/") + name;
      if (const std::int64_t found = reader.length(column); found != rows) {
        reader.refuse(fmt::format("'{}' has {} rows; expected {}", column, found, rows));
      }
    }
  }

  std::vector<std::int64_t> positions_of(const std::string& name, h5::Part part, std::size_t table,
                                         const std::string& table_name) const {
    return positions(reader, "rows/" + name, part, table, table_name);
  }
};

DatasetFile::DatasetFile(const std::filesystem::path& path) : content_(std::make_unique<Content>(path)) {}
DatasetFile::~DatasetFile() = default;
DatasetFile::DatasetFile(DatasetFile&& other) noexcept = default;
DatasetFile& DatasetFile::operator=(DatasetFile&& other) noexcept = default;

const Dataset& DatasetFile::head() const {
  return content_->head;
}

std::int64_t DatasetFile::size() const {
  return content_->rows;
}

std::vector<DatasetFile::Key> DatasetFile::keys() const {
  const Content& file = *content_;
  const auto workload = file.positions_of("workload", {}, file.head.workloads.size(), "workloads");
  const auto status = file.positions_of("status", {}, file.statuses.size(), "statuses");
  const auto program_hash = file.reader.hashes("rows/program_hash");
  std::vector<Key> result;
  result.reserve(program_hash.size());
  for (std::size_t i = 0; i < program_hash.size(); ++i) {
    result.push_back({int(workload[i]), file.statuses[std::size_t(status[i])], program_hash[i]});
  }
  return result;
}

std::vector<Dataset::Row> DatasetFile::rows(std::int64_t first, std::int64_t count) const {
  const Content& file = *content_;
  assert(first >= 0 && count >= 0 && first + count <= file.rows);
  const h5::Part part{first, count};
  const auto list_part = [&](const std::vector<std::int64_t>& begins) -> h5::Part {
    return {begins[std::size_t(first)], begins[std::size_t(first + count)] - begins[std::size_t(first)]};
  };
  const auto program_hash = file.reader.hashes("rows/program_hash", part);
  const auto reference_ratio = file.reader.numbers("rows/reference_ratio", part);
  const auto arguments = file.reader.integers("rows/arguments", list_part(file.argument_begins));
  const auto seconds = file.reader.numbers("rows/seconds", list_part(file.seconds_begins));
  const auto workload = file.positions_of("workload", part, file.head.workloads.size(), "workloads");
  const auto sketch = file.positions_of("sketch", part, file.head.sketches.size(), "sketches");
  const auto status = file.positions_of("status", part, file.statuses.size(), "statuses");
  const auto reason = file.positions_of("reason", part, file.reasons.size(), "reasons");
  const auto clock = file.positions_of("clock", part, file.clocks.size(), "clocks");
  const auto check = file.positions_of("check", part, file.checks.size(), "checks");
  // The list of row i of this part, cut from the part of its flat column.
  const auto list_of = [&](const auto& values, const std::vector<std::int64_t>& begins, std::size_t i) {
    const std::size_t row = std::size_t(first) + i;
    const std::int64_t base = begins[std::size_t(first)];
    return std::remove_cvref_t<decltype(values)>(values.begin() + (begins[row] - base),
                                                 values.begin() + (begins[row + 1] - base));
  };

  std::vector<Dataset::Row> result;
  result.reserve(std::size_t(count));
  for (std::size_t i = 0; i < std::size_t(count); ++i) {
    Dataset::Row row{
        int(workload[i]), int(sketch[i]), list_of(arguments, file.argument_begins, i), program_hash[i], {}};
    row.measurement = {.status = file.statuses[std::size_t(status[i])],
                       .reason = file.reasons[std::size_t(reason[i])],
                       .seconds = list_of(seconds, file.seconds_begins, i),
                       .clock = file.clocks[std::size_t(clock[i])],
                       .reference_ratio = reference_ratio[i],
                       .check = file.checks[std::size_t(check[i])]};
    if (const std::string problem = contradiction(row.measurement); !problem.empty()) {
      file.reader.refuse(fmt::format("row {}: {}", first + std::int64_t(i), problem));
    }
    result.push_back(std::move(row));
  }
  return result;
}

std::vector<Dataset::Row> DatasetFile::rows(std::span<const std::int64_t> positions) const {
  std::vector<std::size_t> order(positions.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return positions[a] < positions[b]; });
  std::vector<Dataset::Row> result(positions.size());
  // Neighbours closer than a chunk are read as one part: chunks are unpacked as a whole anyway.
  for (std::size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin + 1; end < order.size(); ++end) {
      if (positions[order[end]] - positions[order[end - 1]] > h5::row_chunk) break;
    }
    const std::int64_t first = positions[order[begin]];
    std::vector<Dataset::Row> part = rows(first, positions[order[end - 1]] - first + 1);
    // Copied, not moved: a position may occur twice.
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = part[std::size_t(positions[order[i]] - first)];
  }
  return result;
}

Dataset read_dataset(const std::filesystem::path& path) {
  const DatasetFile file(path);
  Dataset dataset = file.head();
  dataset.rows = file.rows(0, file.size());
  return dataset;
}

Dataset merged(const Dataset& a, const Dataset& b) {
  const auto refuse = [&](std::string_view why) {
    throw UserError(fmt::format("datasets of '{}' and '{}' cannot be merged: {}", a.platform, b.platform, why));
  };
  if (a.platform != b.platform) refuse("they are of different platforms");
  if (a.source != b.source) refuse(fmt::format("their times are '{}' and '{}'", a.source, b.source));
  if (!same_description(a.platform_yaml, b.platform_yaml))
    refuse(fmt::format("the platform's YAML changed between them ({})",
                       base::join(differences(a.platform_yaml, b.platform_yaml), ", ")));

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

std::vector<Dataset> by_platform(const std::vector<Dataset>& datasets) {
  std::vector<Dataset> out;
  for (const Dataset& dataset : datasets) {
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const Dataset& known) { return known.platform == dataset.platform; });
    if (same == out.end()) {
      out.push_back(dataset);
    } else {
      *same = merged(*same, dataset);
    }
  }
  return out;
}

}  // namespace graft::datasets
