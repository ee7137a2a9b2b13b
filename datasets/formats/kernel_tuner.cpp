#include "datasets/formats/kernel_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "codegen/space/table_schema.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/configurations.h"
#include "datasets/formats/times.h"

namespace graft::datasets::formats {
namespace {

using Kind = JsonReader::Kind;

// Texts in place of a time (cache files) or under "invalidity" (T4), and their meaning here.
struct Failure {
  std::string_view word;
  Status status;
};
constexpr Failure failures[] = {
    {"CompilationFailedConfig", Status::does_not_compile},
    {"RuntimeFailedConfig", Status::crashed},
    {"InvalidConfig", Status::unsupported},  // beyond the device's threads or memory
    {"compile", Status::does_not_compile},
    {"runtime", Status::crashed},
    {"timeout", Status::timed_out},
    {"constraints", Status::unsupported},
    {"correctness", Status::wrong_result},
};
constexpr std::string_view no_failure = "correct";
constexpr std::size_t longest_reason = 80;
constexpr double millisecond = 1e-3;  // the unit where none is named: Kernel Tuner's own

void fail_with(Configuration& configuration, std::string_view word) {
  const auto known =
      std::find_if(std::begin(failures), std::end(failures), [&](const Failure& each) { return each.word == word; });
  configuration.status = known == std::end(failures) ? Status::crashed : known->status;
  configuration.reason = word.empty() ? "no reason" : word.substr(0, longest_reason);
}

// What the whole document says; a cache file does so in front of its entries.
struct Head : ConfigurationsHead {
  std::string objective;
  std::optional<double> unit;  // seconds
  bool is_cache = false, is_results = false, is_space = false;
  std::vector<std::string> described;  // parameters, by their values
  std::vector<std::string> restrictions;
};

// {"block_size_x": [16, 32], ...}: every value of every parameter.
void read_values(JsonReader& reader, Head& head) {
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    const std::string name(key);
    head.described.push_back(name);
    for (reader.begin_list(); reader.next_item();) head.values.emplace_back(name, scalar_text(reader));
  }
}

std::vector<std::pair<std::string, std::int64_t>> read_sizes(JsonReader& reader) {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  const auto one = [&] {
    // A size may be an expression of parameters, which says nothing.
    if (reader.at(Kind::number)) {
      sizes.emplace_back(fmt::format("size{}", sizes.size()), reader.integer());
    } else {
      reader.skip();
    }
  };
  if (reader.at(Kind::list)) {
    for (reader.begin_list(); reader.next_item();) one();
  } else {
    one();
  }
  return sizes;
}

// "timeunit", "time_unit", "TimeUnit".
bool names_unit_of_time(std::string_view key) {
  std::string letters;
  for (const char c : key) {
    if (c != '_' && c != ' ' && c != '-') letters += char(std::tolower((unsigned char)c));
  }
  return letters == "timeunit" || letters == "timeunits";
}

// Seconds of the unit that is named; nothing for "" and null. UserError for an unknown one.
std::optional<double> read_unit(JsonReader& reader) {
  if (reader.at(Kind::null)) {
    reader.null();
    return std::nullopt;
  }
  const std::string unit(reader.string());
  if (unit.empty()) return std::nullopt;
  return base::seconds_per(unit, reader.place());
}

void read_metadata(JsonReader& reader, Head& head) {
  if (!reader.at(Kind::map)) return reader.skip();
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (names_unit_of_time(key)) {
      head.unit = read_unit(reader);
    } else if (key == "device" && reader.at(Kind::string)) {
      head.device = reader.string();
    } else {
      reader.skip();
    }
  }
}

// A T1 space's conditions.
void read_restrictions(JsonReader& reader, Head& head) {
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key != "Conditions") {
      reader.skip();
      continue;
    }
    for (reader.begin_list(); reader.next_item();) {
      reader.begin_map();
      for (std::string_view part; reader.next_key(part);) {
        if (part == "Expression") {
          head.restrictions.emplace_back(reader.string());
        } else {
          reader.skip();
        }
      }
    }
  }
}

Head read_head(JsonReader reader) {
  Head head;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == "kernel_name") {
      head.kernel = reader.string();
    } else if (key == "device_name") {
      head.device = reader.string();
    } else if (key == "objective" && reader.at(Kind::string)) {
      head.objective = reader.string();
    } else if (key == "problem_size") {
      head.sizes = read_sizes(reader);
    } else if (key == "tune_params_keys") {
      for (reader.begin_list(); reader.next_item();) head.parameters.emplace_back(reader.string());
    } else if (key == "tune_params") {
      read_values(reader, head);
    } else if (key == "metadata") {
      read_metadata(reader, head);
    } else if (names_unit_of_time(key)) {
      head.unit = read_unit(reader);
    } else if (key == "ConfigurationSpace") {
      head.is_space = true;
      read_restrictions(reader, head);
    } else if (key == "Results") {
      reader.fail("results of KTT; import them as the format ktt");
    } else if (key == "cache" || key == "results") {
      (key == "cache" ? head.is_cache : head.is_results) = true;
      reader.apart();
    } else {
      reader.skip();
    }
  }
  reader.end();
  if (head.parameters.empty()) head.parameters = head.described;
  return head;
}

std::vector<double> read_times(JsonReader& reader) {
  std::vector<double> times;
  for (reader.begin_list(); reader.next_item();) times.push_back(time_value(reader));
  return times;
}

// The times of a configuration from its repetitions or, without any, from its one time; a mark in the place of that one
// (or of all repetitions) is a failure.
void take_times(Configuration& result, const std::vector<double>& repetitions, std::optional<double> time,
                double unit) {
  Times times = times_in(repetitions, unit);
  std::string mark = time ? mark_in(*time, unit) : times.mark;
  if (repetitions.empty() && time && mark.empty()) times.seconds = {*time * unit};
  result.seconds = std::move(times.seconds);
  if (result.status != Status::ok || mark.empty()) return;
  result.status = Status::crashed;
  result.reason = std::move(mark);
}

// A cache file's entry: parameters and results together. The objective may not be a time ("GFLOP/s"): then only its
// word for a failure is used.
Configuration read_cached(JsonReader& reader, const Head& head, double unit) {
  Configuration result;
  std::vector<double> repetitions;
  std::optional<double> time;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (std::find(head.parameters.begin(), head.parameters.end(), key) != head.parameters.end()) {
      const std::string name(key);
      result.values.emplace_back(name, scalar_text(reader));
    } else if (key == "times") {
      repetitions = read_times(reader);
    } else if ((key == "time" || key == head.objective) && reader.at(Kind::string)) {
      const std::string word(reader.string());
      if (const std::optional<double> number = number_in(word); !number) {
        fail_with(result, word);
      } else if (key == "time") {
        if (*number <= 0) reader.fail(fmt::format("a time of {}", word.substr(0, longest_reason)));
        time = number;
      }
    } else if (key == "time" && reader.at(Kind::null)) {
      reader.null();
      fail_with(result, "null in place of a time");
    } else if (key == "time") {
      time = time_value(reader);
    } else {
      reader.skip();
    }
  }
  if (result.status == Status::ok && repetitions.empty() && !time) reader.fail("a configuration without 'time'");
  take_times(result, repetitions, time, unit);
  return result;
}

// One of T4's "measurements", and the unit that it names.
struct Measured {
  std::string name;
  std::optional<double> value, unit;
};

Measured read_measured(JsonReader& reader) {
  Measured result;
  std::string unit, unit_place;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == "name") {
      result.name = reader.string();
    } else if (key == "value" && reader.at(Kind::number)) {
      result.value = reader.any_number();
    } else if (key == "value" && reader.at(Kind::string)) {
      result.value = number_in(reader.string());
    } else if (key == "unit" && reader.at(Kind::string)) {
      unit = reader.string();
      unit_place = reader.place();
    } else {
      reader.skip();
    }
  }
  // Other measurements have other units.
  const bool is_time = result.name == "time" || result.name == "runtime";
  if (!is_time) result.value.reset();
  if (is_time && !unit.empty()) result.unit = base::seconds_per(unit, unit_place);
  return result;
}

// An entry of T4's "results". The unit of a time is the nearest one that is named: its own, then the result's, the
// document's; repetitions have none of their own but in front of that of the measurement `time`.
Configuration read_result(JsonReader& reader, std::optional<double> document_unit) {
  Configuration result;
  std::vector<double> repetitions;
  std::optional<double> unit, times_unit;
  Measured time;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == "configuration") {
      reader.begin_map();
      for (std::string_view parameter; reader.next_key(parameter);) {
        const std::string name(parameter);
        result.values.emplace_back(name, scalar_text(reader));
      }
    } else if (key == "invalidity") {
      if (const std::string_view word = reader.string(); word != no_failure) fail_with(result, word);
    } else if (key == "times") {
      reader.begin_map();
      for (std::string_view part; reader.next_key(part);) {
        if (part == "runtimes") {
          repetitions = read_times(reader);
        } else if (part == "unit" || names_unit_of_time(part)) {
          times_unit = read_unit(reader);
        } else {
          reader.skip();
        }
      }
    } else if (key == "measurements") {
      for (reader.begin_list(); reader.next_item();) {
        if (const Measured measured = read_measured(reader); measured.value) time = measured;
      }
    } else if (names_unit_of_time(key)) {
      unit = read_unit(reader);
    } else {
      reader.skip();
    }
  }
  if (!unit) unit = document_unit;
  if (!repetitions.empty()) {
    if (!times_unit) times_unit = unit ? unit : time.unit;
    take_times(result, repetitions, std::nullopt, times_unit.value_or(millisecond));
  } else if (result.status == Status::ok) {
    if (!time.value) reader.fail("a result without runtimes and without a measurement 'time'");
    if (*time.value <= 0) reader.fail(fmt::format("a time of {}", *time.value));
    if (time.unit) unit = time.unit;
    take_times(result, {}, time.value, unit.value_or(millisecond));
  }
  return result;
}

void import_document(Import& import, const std::filesystem::path& path) {
  ConfigurationsDocument document(import, path, {"cache", "results"});
  Head head = read_head(document.reader());
  if (head.is_space) {
    base::Document& provenance = import.dataset().head().provenance;
    const base::Document* const others = provenance.is_map() ? provenance.find("restrictions") : nullptr;
    base::Document all = others == nullptr ? base::Document::list() : *others;
    for (const std::string& restriction : head.restrictions) all.push(restriction);
    provenance.set("restrictions", std::move(all));
    return;
  }
  if (!head.is_cache && !head.is_results) {
    throw base::UserError(document.path(),
                          "neither a cache of Kernel Tuner ('cache'), nor T4 results ('results'), nor a T1 space "
                          "('ConfigurationSpace')");
  }
  if (head.is_cache && head.parameters.empty()) {
    throw base::UserError(document.path(), "no parameters: 'tune_params_keys' or 'tune_params' of a cache name them");
  }
  if (const std::string_view said = import.option("unit"); !said.empty()) {
    const double unit = base::seconds_per(said, "option unit");
    if (head.unit && *head.unit != unit) {
      throw base::UserError(
          "option unit", fmt::format("'{}', but {} names another unit; leave the option out", said, document.path()));
    }
    head.unit = unit;
  }
  document.import(head, [&](JsonReader& entry) {
    return head.is_cache ? read_cached(entry, head, head.unit.value_or(millisecond)) : read_result(entry, head.unit);
  });
}

}  // namespace

void import_kernel_tuner(Import& import) {
  for (const std::filesystem::path& file : import.settings().files) import_document(import, file);
}

namespace {

// How a failure is written: in place of a time in a cache file, and as T4's "invalidity".
struct FailureWords {
  const char* cached;
  const char* invalidity;
};
FailureWords words_of(Status status) {
  switch (status) {
    case Status::does_not_compile:
      return {"CompilationFailedConfig", "compile"};
    case Status::unsupported:
    case Status::does_not_lower:
    case Status::not_allowed:
      return {"InvalidConfig", "constraints"};
    case Status::wrong_result:
      return {"RuntimeFailedConfig", "correctness"};
    case Status::timed_out:
    case Status::slower_than_limit:
      return {"RuntimeFailedConfig", "timeout"};
    default:
      return {"RuntimeFailedConfig", "runtime"};
  }
}

base::Document value_document(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const std::optional<double> number = codegen::number_in(text);
  if (!number) return text;
  const bool is_whole = *number == std::floor(*number) && std::abs(*number) < 1e15;
  return is_whole ? base::Document(std::int64_t(*number)) : base::Document(*number);
}

base::Document milliseconds_of(const Measurement& measurement) {
  base::Document list = base::Document::list();
  for (const double seconds : measurement.seconds) list.push(seconds / millisecond);
  return list;
}

// The values of each column that occur, in order.
struct Occurring {
  std::vector<std::string> names;
  std::vector<std::map<std::int64_t, std::string>> values;  // by argument
};

// Calls `entry(row, configuration)` for each row of the table of the first one.
template <class Entry>
Counts for_each_row(const DatasetFile& from, Entry entry) {
  Counts counts;
  constexpr std::int64_t piece = 4096;
  std::optional<std::pair<int, int>> table;
  for (std::int64_t begin = 0; begin < from.size(); begin += piece) {
    for (const Dataset::Row& row : from.rows(begin, std::min(piece, from.size() - begin))) {
      ++counts.records;
      const codegen::Sketch& sketch = *from.head().sketches[std::size_t(row.sketch)];
      if (sketch.columns.empty() || row.arguments.size() != sketch.columns.size()) {
        ++counts.dropped["no row of a table"];
        continue;
      }
      if (!table) table = std::pair(row.workload, row.sketch);
      if (*table != std::pair(row.workload, row.sketch)) {
        ++counts.dropped["a row of another table"];
        continue;
      }
      base::Document configuration = base::Document::map();
      for (std::size_t c = 0; c < row.arguments.size(); ++c)
        configuration.set(sketch.arguments[c].name, value_document(codegen::column_value(sketch, c, row.arguments[c])));
      entry(row, configuration);
      ++counts.rows;
    }
  }
  return counts;
}

// "conv" and 4096, 128 of "table(name=conv,size0=4096,size1=128)".
std::pair<std::string, base::Document> kernel_of(const codegen::Workload& workload) {
  std::string name = workload.text();
  base::Document sizes = base::Document::list();
  std::string_view rest = workload.text();
  constexpr std::string_view begin = "table(name=";
  if (rest.starts_with(begin) && rest.ends_with(')')) {
    rest = rest.substr(begin.size(), rest.size() - begin.size() - 1);
    const std::vector<std::string_view> parts = base::split(rest, ',');
    name = parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::string_view size = parts[i].substr(std::min(parts[i].find('=') + 1, parts[i].size()));
      if (const std::optional<double> number = codegen::number_in(size)) sizes.push(std::int64_t(*number));
    }
  }
  return {name, sizes};
}

}  // namespace

Counts export_kernel_tuner(const DatasetFile& from, const TextSink& to) {
  Occurring occurring;
  std::optional<codegen::Workload> workload;
  for_each_row(from, [&](const Dataset::Row& row, const base::Document& configuration) {
    if (!workload) {
      workload = from.head().workloads[std::size_t(row.workload)];
      for (const auto& [name, value] : configuration.as_map()) occurring.names.push_back(name);
      occurring.values.resize(occurring.names.size());
    }
    std::size_t c = 0;
    for (const auto& [name, value] : configuration.as_map()) {
      occurring.values[c].emplace(row.arguments[c], value.to_json());
      ++c;
    }
  });
  base::Document keys = base::Document::list();
  std::string values;
  for (std::size_t c = 0; c < occurring.names.size(); ++c) {
    keys.push(occurring.names[c]);
    std::vector<std::string> texts;
    for (const auto& [argument, text] : occurring.values[c]) texts.push_back(text);
    values += fmt::format("{}{}: [{}]", c > 0 ? ",\n" : "", base::Document(occurring.names[c]).to_json(),
                          base::join(texts, ", "));
  }
  const auto [kernel, sizes] = kernel_of(workload.value_or(codegen::Workload()));
  to(
      fmt::format("{{\n\"device_name\": {},\n\"kernel_name\": {},\n\"problem_size\": {},\n\"tune_params_keys\": "
                  "{},\n\"tune_params\": {{\n{}\n}},\n\"objective\": \"time\",\n\"cache\": {{",
                  base::Document(std::string(platform_name(from.head().platform))).to_json(),
                  base::Document(kernel).to_json(), sizes.to_json(), keys.to_json(), values));
  bool first = true;
  const Counts counts = for_each_row(from, [&](const Dataset::Row& row, base::Document configuration) {
    std::vector<std::string> key;
    for (const auto& [name, value] : configuration.as_map())
      key.push_back(value.is_string() ? value.as_string() : value.to_json());
    if (row.measurement.status == Status::ok) {
      configuration.set("time", datasets::seconds_of(row.measurement) / millisecond)
          .set("times", milliseconds_of(row.measurement));
    } else {
      configuration.set("time", words_of(row.measurement.status).cached);
    }
    to(fmt::format("{}\n{}: {}", first ? "" : ",", base::Document(base::join(key, ",")).to_json(),
                   configuration.to_json()));
    first = false;
  });
  to("\n}\n}\n");
  return counts;
}

Counts export_t4(const DatasetFile& from, const TextSink& to) {
  base::Document metadata = base::Document::map();
  metadata.set("device", std::string(platform_name(from.head().platform))).set("timeunit", "milliseconds");
  to(fmt::format("{{\"schema_version\": \"1.0.0\",\n\"metadata\": {},\n\"results\": [", metadata.to_json()));
  bool first = true;
  const Counts counts = for_each_row(from, [&](const Dataset::Row& row, const base::Document& configuration) {
    const bool ok = row.measurement.status == Status::ok;
    base::Document entry = base::Document::map();
    entry.set("configuration", configuration)
        .set("objectives", base::Document::list().push("time"))
        .set("invalidity", ok ? std::string(no_failure) : words_of(row.measurement.status).invalidity)
        .set("correctness", int(ok));
    if (ok) {
      base::Document time = base::Document::map();
      time.set("name", "time").set("value", datasets::seconds_of(row.measurement) / millisecond).set("unit", "ms");
      entry.set("measurements", base::Document::list().push(std::move(time)))
          .set("times", base::Document::map().set("runtimes", milliseconds_of(row.measurement)));
    }
    to(fmt::format("{}\n{}", first ? "" : ",", entry.to_json()));
    first = false;
  });
  to("\n]}\n");
  return counts;
}

}  // namespace graft::datasets::formats
