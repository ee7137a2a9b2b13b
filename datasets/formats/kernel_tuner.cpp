#include "datasets/formats/kernel_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/json.h"
#include "datasets/formats/lines.h"

namespace graft::datasets::formats {
namespace {

using Kind = JsonReader::Kind;

// What stands in the place of a time (cache files) or under "invalidity" (T4), and what it means here.
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

// Of which kernel, on which device, over which parameters. A cache file says it in front of its configurations.
struct Head {
  std::string kernel, device, objective;
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::vector<std::string> parameters;  // in the file's order, or that of the first configuration
};

// The text of a scalar; strings without quotes.
std::string scalar_text(JsonReader& reader) {
  switch (reader.kind()) {
    case Kind::string:
      return std::string(reader.string());
    case Kind::list:
    case Kind::map:
      reader.fail("expected a number, a word, true or false");
    default:
      return std::string(reader.raw());
  }
}

// {"block_size_x": [16, 32], ...}: every value of every parameter.
template <class Visit>
void read_values(JsonReader& reader, Visit visit) {
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    const std::string name(key);
    for (reader.begin_list(); reader.next_item();) visit(name, scalar_text(reader));
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

// One configuration with its times, as either kind of file has it.
struct Configuration {
  std::vector<std::pair<std::string, std::string>> values;  // parameter, value
  std::optional<std::string> failure;
  std::vector<double> milliseconds;  // the repetitions, else the one time
  const std::string* value_of(std::string_view parameter) const {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& each) { return each.first == parameter; });
    return found == values.end() ? nullptr : &found->second;
  }
};

double time_of(JsonReader& reader) {
  const double value = reader.number();
  if (value <= 0) reader.fail(fmt::format("a time of {}", value));
  return value;
}

std::vector<double> times_of(JsonReader& reader) {
  std::vector<double> times;
  for (reader.begin_list(); reader.next_item();) times.push_back(time_of(reader));
  return times;
}

// A cache file's entry: parameters and results side by side. What was tuned for may be no time ("GFLOP/s"): of it only
// the word of a failure counts.
Configuration read_cached(JsonReader& reader, const std::vector<std::string>& parameters,
                          const std::string& objective) {
  Configuration result;
  std::optional<double> time;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (std::find(parameters.begin(), parameters.end(), key) != parameters.end()) {
      const std::string name(key);
      result.values.emplace_back(name, scalar_text(reader));
    } else if (key == "times") {
      result.milliseconds = times_of(reader);
    } else if ((key == "time" || key == objective) && reader.at(Kind::string)) {
      result.failure = reader.string();
    } else if (key == "time") {
      time = time_of(reader);
    } else {
      reader.skip();
    }
  }
  if (!result.failure && result.milliseconds.empty()) {
    if (!time) reader.fail("a configuration without 'time'");
    result.milliseconds = {*time};
  }
  return result;
}

// An entry of T4's "results".
Configuration read_result(JsonReader& reader) {
  Configuration result;
  std::optional<double> time;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == "configuration") {
      reader.begin_map();
      for (std::string_view parameter; reader.next_key(parameter);) {
        const std::string name(parameter);
        result.values.emplace_back(name, scalar_text(reader));
      }
    } else if (key == "invalidity") {
      if (const std::string_view word = reader.string(); word != no_failure) result.failure = word;
    } else if (key == "times") {
      reader.begin_map();
      for (std::string_view part; reader.next_key(part);) {
        if (part == "runtimes") {
          result.milliseconds = times_of(reader);
        } else {
          reader.skip();
        }
      }
    } else if (key == "measurements") {
      for (reader.begin_list(); reader.next_item();) {
        std::string name, unit;
        std::optional<double> value;
        reader.begin_map();
        for (std::string_view part; reader.next_key(part);) {
          if (part == "name") {
            name = reader.string();
          } else if (part == "value" && reader.at(Kind::number)) {
            value = reader.number();
          } else if (part == "unit" && reader.at(Kind::string)) {
            unit = reader.string();
          } else {
            reader.skip();
          }
        }
        if ((name == "time" || name == "runtime") && value) {
          time = *value * (unit.empty() ? 1 : 1e3 * seconds_per(unit, reader.place()));
        }
      }
    } else {
      reader.skip();
    }
  }
  if (result.values.empty()) reader.fail("a result without 'configuration'");
  if (!result.failure && result.milliseconds.empty()) {
    if (!time) reader.fail("a result without runtimes and without a measurement 'time'");
    if (*time <= 0) reader.fail(fmt::format("a time of {}", *time));
    result.milliseconds = {*time};
  }
  return result;
}

Measurement measurement_of(const Configuration& configuration) {
  Measurement measurement;
  measurement.clock = "imported";
  for (const double each : configuration.milliseconds) measurement.seconds.push_back(1e-3 * each);
  if (!configuration.failure) return measurement;
  const auto known = std::find_if(std::begin(failures), std::end(failures),
                                  [&](const Failure& each) { return each.word == *configuration.failure; });
  measurement.status = known == std::end(failures) ? Status::crashed : known->status;
  measurement.reason = configuration.failure->substr(0, longest_reason);
  return measurement;
}

class Document {
 public:
  Document(Import& import, const std::filesystem::path& path)
      : import_(import), path_(path.string()), text_(base::read_file(path, largest_document)) {}

  void read() {
    head();
    if (is_space_) {
      base::Document& provenance = import_.dataset().head().provenance;
      const base::Document* const others = provenance.is_map() ? provenance.find("restrictions") : nullptr;
      base::Document all = others == nullptr ? base::Document::list() : *others;
      for (const std::string& restriction : restrictions_) all.push(restriction);
      provenance.set("restrictions", std::move(all));
      return;
    }
    if (!has_rows_)
      throw base::UserError(path_,
                            "neither a cache of Kernel Tuner ('cache'), nor T4 results "
                            "('results'), nor a T1 space ('ConfigurationSpace')");
    columns();
    rows();
  }

 private:
  JsonReader reader() const { return {text_, path_}; }
  template <class Work>
  void located(const JsonReader& reader, Work work) const {
    formats::located(reader, path_, work);
  }

  // Every configuration of the document, whichever form it has.
  template <class Visit>
  void for_each_configuration(Visit visit) const {
    JsonReader reader = this->reader();
    reader.begin_map();
    for (std::string_view key; reader.next_key(key);) {
      if (key == "cache") {
        reader.begin_map();
        for (std::string_view id; reader.next_key(id);)
          visit(read_cached(reader, head_.parameters, head_.objective), reader);
      } else if (key == "results") {
        for (reader.begin_list(); reader.next_item();) visit(read_result(reader), reader);
      } else {
        reader.skip();
      }
    }
    reader.end();
  }

  void head() {
    std::vector<std::string> described;  // parameters, by their values
    JsonReader reader = this->reader();
    reader.begin_map();
    for (std::string_view key; reader.next_key(key);) {
      if (key == "kernel_name") {
        head_.kernel = reader.string();
      } else if (key == "device_name") {
        head_.device = reader.string();
      } else if (key == "objective" && reader.at(Kind::string)) {
        head_.objective = reader.string();
      } else if (key == "problem_size") {
        head_.sizes = read_sizes(reader);
      } else if (key == "tune_params_keys") {
        for (reader.begin_list(); reader.next_item();) head_.parameters.emplace_back(reader.string());
      } else if (key == "tune_params") {
        reader.begin_map();
        for (std::string_view name; reader.next_key(name); reader.skip()) described.emplace_back(name);
      } else if (key == "cache" || key == "results") {
        has_rows_ = true;
        reader.skip();
      } else if (key == "ConfigurationSpace") {
        is_space_ = true;
        read_space(reader);
      } else {
        reader.skip();
      }
    }
    reader.end();
    if (head_.parameters.empty()) head_.parameters = std::move(described);
  }

  // T1: only what restricts the space is of interest; the values stand in the results, too.
  void read_space(JsonReader& reader) {
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
            restrictions_.emplace_back(reader.string());
          } else {
            reader.skip();
          }
        }
      }
    }
  }

  void columns() {
    if (head_.parameters.empty()) {
      for_each_configuration([&](const Configuration& configuration, JsonReader&) {
        if (!head_.parameters.empty()) return;
        for (const auto& [parameter, value] : configuration.values) head_.parameters.push_back(parameter);
      });
    }
    if (head_.parameters.empty()) {
      throw base::UserError(path_,
                            "no parameters: 'tune_params_keys' or 'tune_params' of a cache name them, "
                            "'configuration' of T4 results does");
    }
    columns_.emplace(head_.parameters, path_);
    // The values of the space are known in front of the results: then every device has the same sketch.
    JsonReader reader = this->reader();
    reader.begin_map();
    for (std::string_view key; reader.next_key(key);) {
      if (key != "tune_params") {
        reader.skip();
        continue;
      }
      read_values(reader, [&](const std::string& name, const std::string& value) {
        const int column = columns_->named(name);
        if (column >= 0) located(reader, [&] { columns_->see(column, value); });
      });
    }
    for_each_configuration([&](const Configuration& configuration, JsonReader& at) {
      for (std::size_t c = 0; c < head_.parameters.size(); ++c) {
        const std::string* value = configuration.value_of(head_.parameters[c]);
        if (value == nullptr) at.fail(fmt::format("a configuration without '{}'", head_.parameters[c]));
        located(at, [&] { columns_->see(int(c), *value); });
      }
      if (configuration.values.size() != head_.parameters.size()) {
        at.fail(fmt::format("a configuration of {} parameters; others have {}", configuration.values.size(),
                            head_.parameters.size()));
      }
    });
  }

  void rows() {
    std::vector<int> all;
    for (int c = 0; c < int(head_.parameters.size()); ++c) all.push_back(c);
    const std::string name = head_.kernel.empty() ? std::filesystem::path(path_).stem().stem().string() : head_.kernel;
    const auto sketch = columns_->sketch(name, all);
    ImportedDataset& dataset = import_.dataset();
    base::Document& provenance = dataset.head().provenance;
    if (!head_.device.empty()) provenance.set("device", head_.device);
    Dataset::Row row;
    located(reader(), [&] { row.workload = dataset.position_of(table_workload(name, head_.sizes)); });
    row.sketch = dataset.position_of(sketch);
    for_each_configuration([&](const Configuration& configuration, const JsonReader& at) {
      row.arguments.clear();
      for (std::size_t c = 0; c < head_.parameters.size(); ++c)
        row.arguments.push_back(columns_->argument(int(c), *configuration.value_of(head_.parameters[c])));
      row.measurement = measurement_of(configuration);
      dataset.count_record();
      located(at, [&] { dataset.add(row, name, "a kernel of parameters"); });
    });
  }

  Import& import_;
  std::string path_, text_;
  Head head_;
  std::vector<std::string> restrictions_;
  bool is_space_ = false, has_rows_ = false;
  std::optional<Columns> columns_;
};

}  // namespace

void import_kernel_tuner(Import& import) {
  for (const std::filesystem::path& file : import.settings().files) Document(import, file).read();
}

}  // namespace graft::datasets::formats
