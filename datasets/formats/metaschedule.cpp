#include "datasets/formats/metaschedule.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/lines.h"
#include "datasets/formats/times.h"

namespace graft::datasets::formats {
namespace {

using Kind = JsonReader::Kind;

constexpr std::size_t longest_name = 80, most_instructions = 65536, most_decisions = 4096, most_workloads = 100'000;
constexpr std::int64_t longest_line = std::int64_t(1) << 26;  // a module of constants is one line

struct Trace {
  std::vector<std::string> blocks;  // in order
  std::uint64_t form = 0;           // of all but the decisions
  std::vector<codegen::Sketch::Column> columns;
  std::vector<std::int64_t> decisions;
};

struct Record {
  std::int64_t workload = 0;
  Trace trace;
  std::vector<double> seconds;
  bool has_seconds = false;
};

void expect_item(JsonReader& reader) {
  if (!reader.next_item()) reader.fail("a record that ends too early");
}

// [[name, inputs, attributes, outputs], ...] up to the postprocessing, which follows from the instructions before.
void read_instructions(JsonReader& reader, Trace& trace, std::vector<std::string>& names) {
  bool postprocessing = false;
  for (reader.begin_list(); reader.next_item();) {
    reader.begin_list();
    expect_item(reader);
    const std::string name(reader.string());
    if (name.size() > longest_name) {
      reader.fail(fmt::format("the name of an instruction has more than {} characters", longest_name));
    }
    postprocessing = postprocessing || name == "EnterPostproc";
    if (!postprocessing) {
      if (names.size() == most_instructions) reader.fail("more instructions than any real trace has");
      names.push_back(name);
      trace.form = base::hash_combine(trace.form, base::hash_bytes(name));
    }
    for (int part = 0; reader.next_item(); ++part) {
      if (name == "GetBlock" && part == 1 && reader.at(Kind::list)) {
        reader.begin_list();
        if (reader.next_item()) {
          const std::string block(reader.string());
          if (!postprocessing && block != "root") trace.blocks.push_back(block);
          while (reader.next_item()) reader.skip();
        }
      } else if (const std::string_view text = reader.raw(); !postprocessing && name != "Annotate") {
        trace.form = base::hash_combine(trace.form, base::hash_bytes(text));
      }
    }
  }
}

// [[instruction, decision], ...]: tile sizes, the number of a category or of a place.
void read_decisions(JsonReader& reader, Trace& trace, const std::vector<std::string>& names) {
  for (reader.begin_list(); reader.next_item();) {
    reader.begin_list();
    expect_item(reader);
    const std::int64_t at = reader.integer();
    expect_item(reader);
    if (at < 0) reader.fail(fmt::format("instruction {}", at));
    if (at >= std::int64_t(names.size())) {
      reader.skip();
    } else {
      const auto add = [&](std::int64_t value) {
        if (trace.decisions.size() == most_decisions) reader.fail("more decisions than any real trace has");
        trace.columns.push_back({fmt::format("{}{}_{}", names[std::size_t(at)], at, trace.columns.size()), {}});
        trace.decisions.push_back(value);
      };
      if (reader.at(Kind::list)) {
        for (reader.begin_list(); reader.next_item();) add(reader.integer());
      } else {
        add(reader.integer());
      }
    }
    while (reader.next_item()) reader.skip();
  }
}

Record read_record(JsonReader& reader) {
  Record record;
  std::vector<std::string> names;
  record.workload = reader.integer();
  expect_item(reader);
  reader.begin_list();
  expect_item(reader);
  reader.begin_list();  // the trace
  expect_item(reader);
  read_instructions(reader, record.trace, names);
  expect_item(reader);
  read_decisions(reader, record.trace, names);
  while (reader.next_item()) reader.skip();
  expect_item(reader);
  if (reader.at(Kind::null)) {
    reader.null();
  } else {
    record.has_seconds = true;
    for (reader.begin_list(); reader.next_item();) {
      const double seconds = reader.any_number();
      if (seconds <= 0) reader.fail(fmt::format("a time of {} seconds", seconds));
      record.seconds.push_back(seconds);
    }
  }
  while (reader.next_item()) reader.skip();
  while (reader.next_item()) reader.skip();
  reader.end();
  return record;
}

class Database {
 public:
  explicit Database(Import& import) : import_(import), dataset_(import.dataset()) {}

  void read() {
    std::vector<std::filesystem::path> of_records;
    for (const std::filesystem::path& file : import_.settings().files) {
      if (!read_workloads(file)) of_records.push_back(file);
    }
    for (const std::filesystem::path& file : of_records) read_records(file);
  }

 private:
  // A line of workloads begins with a string, one of records with a number.
  static bool begins_workload(JsonReader& reader) {
    reader.begin_list();
    expect_item(reader);
    return reader.at(Kind::string);
  }

  // By the first line that says it.
  static bool is_of_workloads(const std::filesystem::path& path) {
    for (LineReader lines(path, longest_line);;) {
      try {
        if (!lines.next()) return false;
        JsonReader reader = lines.json();
        return begins_workload(reader);
      } catch (const base::UserError&) {  // a comment, or broken
      }
    }
  }

  // False, and nothing is read, if this is another kind of file.
  bool read_workloads(const std::filesystem::path& path) {
    if (!is_of_workloads(path)) return false;
    for (LineReader lines(path, longest_line); import_.next_record(lines);) {
      std::string hash;  // stays empty for a workload that cannot be read: the next ones keep their numbers
      import_.record(lines, [&] {
        JsonReader reader = lines.json();
        if (!begins_workload(reader)) lines.fail("a tuning record among workloads");
        const std::string read(reader.string());
        if (read.empty() || read.size() > longest_name) lines.fail("no hash of a workload");
        while (reader.next_item()) reader.skip();
        reader.end();
        hash = read;
      });
      hashes_.push_back(std::move(hash));
      if (hashes_.size() > most_workloads) {
        throw TooMuch(lines.place(), fmt::format("more than {} workloads; import fewer files", most_workloads));
      }
    }
    return true;
  }

  void read_records(const std::filesystem::path& path) {
    for (LineReader lines(path, longest_line); import_.next_record(lines);) {
      import_.record(lines, [&] {
        JsonReader reader = lines.json();
        if (begins_workload(reader)) lines.fail("a workload among tuning records");
        const Record record = read_record(reader);
        if (record.workload < 0 || record.workload >= std::int64_t(hashes_.size())) {
          lines.fail(fmt::format("workload {}, but there are {}; give the database's file of workloads, too",
                                 record.workload, hashes_.size()));
        }
        if (hashes_[std::size_t(record.workload)].empty()) {
          lines.fail(fmt::format("workload {}, which could not be read", record.workload));
        }
        row(record);
      });
    }
  }

  void row(const Record& record) {
    const auto [name, is_new] = names_.try_emplace(record.workload);
    if (is_new) {
      for (const std::string& block : record.trace.blocks) name->second += (name->second.empty() ? "" : "_") + block;
      name->second = name->second.substr(0, longest_name);
    }
    Dataset::Row row;
    Measurement& measurement = row.measurement;
    measurement.clock = "imported";
    Times times = times_in(record.seconds);
    measurement.seconds = std::move(times.seconds);
    measurement.reason = std::move(times.mark);
    if (!measurement.reason.empty()) measurement.status = Status::crashed;
    const auto [sketch, is_new_form] = sketches_.try_emplace({record.trace.form, record.trace.columns.size()});
    if (is_new_form) {
      std::vector<codegen::Sketch::Column> columns = record.trace.columns;
      if (columns.empty()) columns.push_back({"none", {}});
      sketch->second = std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns(
          fmt::format("{}_{}", name->second, base::to_hex(record.trace.form).substr(0, 8)), columns));
    }
    row.arguments = record.trace.decisions;
    if (row.arguments.empty()) row.arguments.push_back(0);
    row.workload =
        dataset_.position_of(table_workload(fmt::format("{}_{}", name->second, hashes_[std::size_t(record.workload)])));
    row.sketch = dataset_.position_of(sketch->second);
    dataset_.add(row, name->second, "a trace, which is not replayed");
  }

  Import& import_;
  ImportedDataset& dataset_;
  std::vector<std::string> hashes_;
  std::map<std::int64_t, std::string> names_;  // by workload: of the blocks of its first trace
  std::map<std::pair<std::uint64_t, std::size_t>, std::shared_ptr<const codegen::Sketch>> sketches_;
};

}  // namespace

void import_metaschedule(Import& import) {
  Database(import).read();
}

}  // namespace graft::datasets::formats
