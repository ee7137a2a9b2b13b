#include "datasets/formats/autotvm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/hash.h"
#include "datasets/formats/autotvm_legacy.h"
#include "datasets/formats/autotvm_tasks.h"
#include "datasets/formats/autotvm_templates.h"
#include "datasets/formats/lines.h"
#include "datasets/formats/times.h"

namespace graft::datasets::formats {
namespace {

using base::UserError;

constexpr std::int64_t longest_record = std::int64_t(1) << 16;
constexpr std::size_t most_knobs = 64, most_values = 256, longest_knob = 64;
constexpr double no_time = 1e9;                  // what AutoTVM writes in the place of a time that there is not
constexpr std::string_view no_knob = "nothing";  // the column of a record without knobs
// A key of exported records: the whole measurement. AutoTVM passes over it.
constexpr std::string_view measurement_key = "graft_measurement";

// By number; tvm.autotvm.measure.MeasureErrorNo.
struct ErrorName {
  Status status;
  std::string_view reason;
};
constexpr std::array errors = {ErrorName{Status::ok, ""},
                               ErrorName{Status::does_not_lower, "instantiation error"},
                               ErrorName{Status::does_not_compile, "compile error (host)"},
                               ErrorName{Status::does_not_compile, "compile error (device)"},
                               ErrorName{Status::crashed, "runtime error"},
                               ErrorName{Status::wrong_result, "wrong answer"},
                               ErrorName{Status::timed_out, "build timeout"},
                               ErrorName{Status::timed_out, "run timeout"},
                               ErrorName{Status::crashed, "unknown error"}};

// The error number that says most of a status.
std::int64_t error_of(Status status) {
  switch (status) {
    case Status::ok:
      return 0;
    case Status::does_not_lower:
    case Status::unsupported:
      return 1;
    case Status::does_not_compile:
      return 3;
    case Status::wrong_result:
      return 5;
    case Status::timed_out:
    case Status::slower_than_limit:
      return 7;
    case Status::crashed:
    case Status::out_of_memory:
    case Status::no_time:
    case Status::not_allowed:
      break;
  }
  return 4;
}

struct Record {
  std::string_view input;    // its text; equal texts are one task
  bool is_legacy = false;    // version 0.1: `input` is [target, template, arguments, key, knob, ...]
  std::string legacy_input;  // what `input` is then
  Knobs knobs;
  std::vector<double> seconds;
  std::int64_t error = 0;
  std::string_view measurement;  // the text of measurement_key; empty: none
};

void read_knob(JsonReader& reader, Knobs& knobs) {
  reader.begin_list();
  const auto item = [&](std::string_view what) {
    if (!reader.next_item()) reader.fail(fmt::format("a knob without {}", what));
  };
  item("a name");
  Knobs::Knob& knob = knobs.next();
  knob.name = reader.string();
  if (knob.name.empty() || knob.name.size() > longest_knob || !is_plain_name(knob.name)) {
    reader.fail("the name of a knob must be letters, digits and '_'");
  }
  if (&knobs.named(knob.name) != &knob) reader.fail(fmt::format("knob '{}' is there twice", knob.name));
  item("a kind");
  const std::string_view kind = reader.string();
  const auto add = [&](std::int64_t value) {
    if (knobs.values.size() == most_values) reader.fail(fmt::format("knobs of more than {} values", most_values));
    knobs.values.push_back(value);
    ++knob.count;
  };
  item("a value");
  if (kind == "sp" || kind == "re") {
    knob.kind = kind == "sp" ? Knobs::Kind::split : Knobs::Kind::reorder;
    for (reader.begin_list(); reader.next_item();) add(reader.integer());
  } else if (kind == "an") {
    knob.kind = Knobs::Kind::annotate;
    for (reader.begin_list(); reader.next_item();) {
      const std::string_view word = reader.string();
      const auto known = std::find(annotations.begin(), annotations.end(), word);
      if (known == annotations.end()) reader.fail(fmt::format("unknown annotation '{}'", word));
      add(known - annotations.begin());
    }
  } else if (kind == "ot") {
    knob.kind = Knobs::Kind::other;
    switch (reader.kind()) {
      case JsonReader::Kind::boolean:
        add(reader.boolean());
        break;
      case JsonReader::Kind::number:
        add(reader.integer());
        break;
      default:
        reader.fail(fmt::format("expected an integer or true or false as the value of knob '{}'", knob.name));
    }
  } else {
    reader.fail(fmt::format("unknown kind of knob '{}'; known: sp, re, an, ot", kind));
  }
  if (reader.next_item()) reader.fail("a knob of more than name, kind and value");
}

// [[seconds, ...], error, ...]
void read_result(JsonReader& reader, Record& record) {
  reader.begin_list();
  if (!reader.next_item()) reader.fail("a result without times");
  record.seconds.clear();
  for (reader.begin_list(); reader.next_item();) {
    const double seconds = reader.any_number();
    if (seconds <= 0) reader.fail(fmt::format("a time of {} seconds", seconds));
    record.seconds.push_back(seconds);
  }
  if (!reader.next_item()) reader.fail("a result without an error number");
  record.error = reader.integer();
  if (record.error < 0 || record.error >= std::int64_t(errors.size())) {
    reader.fail(fmt::format("unknown error number {}", record.error));
  }
  while (reader.next_item()) reader.skip();
}

void read_entity(JsonReader& reader, Record& record) {
  for (reader.begin_list(); reader.next_item();) {
    if (record.knobs.size() == most_knobs) reader.fail(fmt::format("more than {} knobs", most_knobs));
    read_knob(reader, record.knobs);
  }
}

// Whether the map of a configuration has its knobs, under this key.
bool read_config(JsonReader& reader, std::string_view entity, Record& record, std::string* template_key = nullptr) {
  bool found = false;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == entity) {
      found = true;
      read_entity(reader, record);
    } else if (key == "t" && template_key != nullptr) {
      *template_key = reader.raw();
    } else {
      reader.skip();
    }
  }
  return found;
}

// Version 0.1: [target, template, arguments, {}, workload, config]. False: without knobs.
bool read_legacy_input(JsonReader& reader, Record& record) {
  bool config = false;
  std::string template_key = "null";
  record.is_legacy = true;
  record.legacy_input = "[";
  reader.begin_list();
  int part = 0;
  for (; reader.next_item(); ++part) {
    if (part == 0 && reader.at(JsonReader::Kind::list)) {
      reader.fail("a record of auto_scheduler; import it as the format auto_scheduler");
    } else if (part < 3) {
      record.legacy_input += fmt::format("{},", reader.raw());
    } else if (part == 5) {
      config = read_config(reader, "e", record, &template_key);
    } else {
      reader.skip();
    }
  }
  if (part < 3) reader.fail("'i' must be [target, template, arguments, ...]");
  record.legacy_input += template_key;
  for (const Knobs::Knob& knob : record.knobs) record.legacy_input += fmt::format(",\"{}\"", knob.name);
  record.legacy_input += "]";
  record.input = record.legacy_input;
  return config;
}

void check_version(JsonReader& reader, double expected) {
  if (!reader.at(JsonReader::Kind::number)) {
    reader.fail(fmt::format("expected a record of AutoTVM, version 0.1 or 0.2, got version {}", reader.raw()));
  }
  const double version = reader.number();
  if (version != expected) reader.fail(fmt::format("expected a record of version {}, got {}", expected, version));
}

void read_record(JsonReader reader, Record& record) {
  record.input = record.measurement = {};
  record.is_legacy = false;
  record.knobs.clear();
  bool config = false, result = false;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == "input") {
      record.input = reader.raw();
      record.is_legacy = false;
    } else if (key == "config") {
      config = read_config(reader, "entity", record);
    } else if (key == "i") {
      config = read_legacy_input(reader, record);
    } else if (key == "result" || key == "r") {
      result = true;
      read_result(reader, record);
    } else if (key == measurement_key) {
      record.measurement = reader.raw();
    } else if (key == "version" || key == "v") {
      check_version(reader, key == "v" ? 0.1 : 0.2);
    } else {
      reader.skip();
    }
  }
  reader.end();
  if (record.input.empty() || !config || !result) {
    reader.fail(
        "is not a record of AutoTVM: 'input', 'config' with 'entity', or 'result' is missing (of version 0.1: 'i' with "
        "a configuration's 'e', or 'r')");
  }
}

// Data of all records with the same input.
struct TaskHere {
  Task task;
  const Template* known = nullptr;  // nullptr: no sketch for this template
  int workload = 0;                 // position in the dataset
};

class AutoTvm {
 public:
  explicit AutoTvm(Import& import) : import_(import), dataset_(import.dataset()) {}

  void file(const std::filesystem::path& path) {
    LineReader lines(path, longest_record);
    while (import_.next_record(lines)) {
      import_.record(lines, [&] {
        read_record(lines.json(), record_);
        row_.measurement = measured(lines);
        add(task(lines), lines);
      });
      if (dataset_.counts().records % 10'000 == 0) {
        import_.monitor().progress(path.filename().string(), lines.number(), 0);
      }
    }
  }

 private:
  // As version 0.2 has it.
  base::Document input(const LineReader& lines) const {
    const base::Document read = base::parse_json(record_.input, lines.place());
    if (!record_.is_legacy) return read;
    std::vector<std::string> knobs;
    for (const Knobs::Knob& knob : record_.knobs) knobs.push_back(knob.name);
    const base::Document& key = read.as_list().at(3);
    return present_input(read, key.is_string() ? key.as_string() : "", knobs);
  }

  // Neighbouring records tend to be of one task.
  const TaskHere& task(const LineReader& lines) {
    if (last_ != nullptr && *last_text_ == record_.input) return *last_;
    constexpr std::size_t most_tasks = 2000;  // that are remembered
    last_ = nullptr;                          // this record may be skipped
    if (tasks_.size() > most_tasks) tasks_.clear();
    auto known = tasks_.find(std::string(record_.input));
    if (known == tasks_.end()) {
      TaskHere made;
      made.task = task_of(input(lines), lines.place());
      made.known = template_named(made.task.name);
      made.workload = dataset_.position_of(made.task.workload);
      known = tasks_.emplace(std::string(record_.input), std::move(made)).first;
    }
    last_text_ = &known->first;
    last_ = &known->second;
    return *last_;
  }

  // What the record says of the measurement.
  Measurement measured(const LineReader& lines) const {
    if (!record_.measurement.empty()) {
      return measurement_from(base::parse_json(record_.measurement, lines.place()));
    }
    const ErrorName& error = errors[std::size_t(record_.error)];
    Measurement measurement;
    measurement.status = error.status;
    measurement.reason = error.reason;
    if (record_.error == 0) {
      Times times = times_in(record_.seconds);
      measurement.seconds = std::move(times.seconds);
      measurement.reason = std::move(times.mark);
      if (!measurement.reason.empty()) measurement.status = Status::crashed;
    }
    measurement.clock = "wall";
    measurement.check = "none";
    return measurement;
  }

  void add(const TaskHere& of, const LineReader& lines) {
    row_.workload = of.workload;
    row_.arguments.clear();
    std::string why = "no sketch for this template";
    std::shared_ptr<const codegen::Sketch> sketch;
    if (of.known != nullptr) {
      base::Result<std::shared_ptr<const codegen::Sketch>> made =
          of.known->sketch(of.task.shape, record_.knobs, row_.arguments);
      if (made) {
        sketch = std::move(*made);
        why.clear();
      } else {
        why = made.reason().text;
      }
    }
    if (!sketch) {
      row_.arguments.clear();
      sketch = knobs_only(of.task.name, lines);
      why = fmt::format("{}: {}", of.task.name, why);
    }
    row_.sketch = dataset_.position_of(sketch);
    dataset_.add(row_, of.task.name, why);
  }

  // A sketch of columns, one for every value of every knob; the outermost part of a split follows from the others.
  std::shared_ptr<const codegen::Sketch> knobs_only(const std::string& name, const LineReader& lines) {
    std::string text = fmt::format("sketch {}\ncolumns", name);
    for (const Knobs::Knob& knob : record_.knobs) {
      for (int i = 0; i < knob.count; ++i) {
        const std::int64_t value = record_.knobs.values[std::size_t(knob.first + i)];
        const bool follows = knob.kind == Knobs::Kind::split && i == 0;
        if (follows) continue;
        text += fmt::format(" ${}", knob.name);
        if (knob.count > 1) text += fmt::format("_{}", i);
        if (knob.kind == Knobs::Kind::annotate) text += fmt::format("{{{}}}", fmt::join(annotations, "|"));
        row_.arguments.push_back(value);
      }
    }
    if (row_.arguments.empty()) {  // a template without knobs
      text += fmt::format(" ${}", no_knob);
      row_.arguments.push_back(0);
    }
    auto known = columns_.find(text);
    if (known == columns_.end()) {
      known =
          columns_
              .emplace(text, std::make_shared<const codegen::Sketch>(codegen::parse_sketch(text + "\n", lines.place())))
              .first;
    }
    return known->second;
  }

  Import& import_;
  ImportedDataset& dataset_;
  Record record_;
  Dataset::Row row_;
  std::unordered_map<std::string, TaskHere> tasks_;  // by the text of their input
  const std::string* last_text_ = nullptr;
  const TaskHere* last_ = nullptr;
  std::unordered_map<std::string, std::shared_ptr<const codegen::Sketch>> columns_;  // by text
};

// "graft.<sketch>.<hash>": sketches of one name, as all programs of others are, stay apart. One that was exported
// before keeps its name.
std::string exported_name(const codegen::Sketch& sketch) {
  if (!sketch.columns.empty() && sketch.name.starts_with(exported_prefix)) return sketch.name;
  const std::string hash = base::to_hex(sketch.hash);
  std::string name = sketch.name.substr(0, longest_template - exported_prefix.size() - 1 - hash.size());
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !is_plain_name({&c, 1});
      },
      '_');
  return fmt::format("{}{}.{}", exported_prefix, name, hash);
}

// Why our importer, whose limits are those of real logs, would refuse it; "" if it would not.
std::string_view not_exported(const codegen::Sketch& sketch) {
  if (sketch.arguments.size() > most_knobs) return "more arguments than a record has knobs";
  const bool long_name = std::any_of(sketch.arguments.begin(), sketch.arguments.end(),
                                     [](const auto& argument) { return argument.name.size() > longest_knob; });
  return long_name ? "an argument whose name is too long for a knob" : "";
}

}  // namespace

void import_autotvm(Import& import) {
  AutoTvm records(import);
  for (const std::filesystem::path& file : import.settings().files) records.file(file);
}

Counts export_autotvm(const DatasetFile& from, const TextSink& to) {
  constexpr std::int64_t block = 8192;
  const Dataset& head = from.head();
  Counts counts;
  for (std::int64_t first = 0; first < from.size(); first += block) {
    for (const Dataset::Row& row : from.rows(first, std::min(block, from.size() - first))) {
      const codegen::Sketch& sketch = *head.sketches[std::size_t(row.sketch)];
      const Measurement& measurement = row.measurement;
      const bool is_ok = measurement.status == Status::ok;
      ++counts.records;
      if (const std::string_view why = not_exported(sketch); !why.empty()) {
        ++counts.dropped[std::string(why)];
        continue;
      }
      base::Document entity = base::Document::list(), seconds = base::Document::list();
      for (std::size_t a = 0; a < row.arguments.size(); ++a) {
        if (sketch.arguments[a].name == no_knob) continue;
        entity.push(base::Document::List{sketch.arguments[a].name, "ot", row.arguments[a]});
      }
      for (const double each : measurement.seconds) {
        if (is_ok) seconds.push(each);
      }
      if (!is_ok) seconds.push(no_time);
      base::Document config = base::Document::map(), record = base::Document::map();
      config.set("index", counts.records - 1).set("code_hash", base::Document()).set("entity", std::move(entity));
      const base::Document::List arguments = {head.workloads[std::size_t(row.workload)].text()};
      record
          .set("input", base::Document::List{std::string(platform_name(head.platform)), exported_name(sketch),
                                             arguments, base::Document::map()})
          .set("config", std::move(config))
          .set("result", base::Document::List{std::move(seconds), error_of(measurement.status), 0, 0})
          .set("version", 0.2)
          .set("tvm_version", "graft")
          .set(std::string(measurement_key), to_document(measurement));
      const std::string line = record.to_json();
      if (std::int64_t(line.size()) > longest_record) {
        ++counts.dropped["a record that is too long"];
        continue;
      }
      to(line + "\n");
      ++counts.rows;
      ++counts.statuses[std::string(name_of(measurement.status))];
      Counts::Template& of = counts.templates[sketch.name];
      ++of.rows;
      of.ok += is_ok;
    }
  }
  return counts;
}

}  // namespace graft::datasets::formats
