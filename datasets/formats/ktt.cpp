#include "datasets/formats/ktt.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/units.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/configurations.h"
#include "datasets/formats/times.h"

namespace graft::datasets::formats {
namespace {

using Kind = JsonReader::Kind;

// ktt::ResultStatus, but Ok.
struct Failure {
  std::string_view word;
  Status status;
};
constexpr Failure failures[] = {
    {"ComputationFailed", Status::crashed},
    {"ValidationFailed", Status::wrong_result},
    {"CompilationFailed", Status::does_not_compile},
    {"DeviceLimitsExceeded", Status::unsupported},
};
constexpr std::size_t longest_reason = 80;

struct Head : ConfigurationsHead {
  std::optional<double> unit;  // seconds
  bool is_results = false;
};

Head read_head(JsonReader reader) {
  Head head;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == "Metadata") {
      reader.begin_map();
      while (reader.next_key(key)) {
        if (key == "TimeUnit") {
          const std::string unit(reader.string());
          head.unit = base::seconds_per(unit, reader.place());
        } else if (key == "Device") {
          head.device = reader.string();
        } else {
          reader.skip();
        }
      }
    } else if (key == "results" || key == "cache") {
      reader.fail("results in another form than KTT's own; import them as the format kernel_tuner");
    } else if (key == "Results") {
      head.is_results = true;
      reader.apart();
    } else {
      reader.skip();
    }
  }
  reader.end();
  return head;
}

// [{"Name": .., "Value": ..}, ...]
void read_configuration(JsonReader& reader, Configuration& result) {
  for (reader.begin_list(); reader.next_item();) {
    std::optional<std::string> name, value;
    reader.begin_map();
    for (std::string_view key; reader.next_key(key);) {
      if (key == "Name") {
        name = reader.string();
      } else if (key == "Value") {
        value = scalar_text(reader);
      } else {
        reader.skip();
      }
    }
    if (!name || !value) reader.fail("a parameter without 'Name' or 'Value'");
    result.values.emplace_back(*name, *value);
  }
}

// The total of all launches.
double read_durations(JsonReader& reader) {
  double sum = 0;
  for (reader.begin_list(); reader.next_item();) {
    reader.begin_map();
    for (std::string_view key; reader.next_key(key);) {
      if (key == "Duration") {
        sum += number_or_text(reader);
      } else {
        reader.skip();
      }
    }
  }
  return sum;
}

Configuration read_result(JsonReader& reader, double unit) {
  Configuration result;
  std::optional<std::string> status;
  std::optional<double> total, sum;
  reader.begin_map();
  for (std::string_view key; reader.next_key(key);) {
    if (key == "Configuration") {
      read_configuration(reader, result);
    } else if (key == "KernelName") {
      result.kernel = reader.string();
    } else if (key == "Status") {
      status = reader.string();
    } else if (key == "TotalDuration") {
      total = number_or_text(reader);
    } else if (key == "ComputationResults") {
      sum = read_durations(reader);
    } else {
      reader.skip();
    }
  }
  if (!status) reader.fail("a result without 'Status'");
  if (*status != "Ok") {
    const auto known = std::find_if(std::begin(failures), std::end(failures),
                                    [&](const Failure& each) { return each.word == *status; });
    result.status = known == std::end(failures) ? Status::crashed : known->status;
    result.reason = status->empty() ? "no reason" : status->substr(0, longest_reason);
    return result;
  }
  if (!total) total = sum;
  if (!total) reader.fail("a result without 'TotalDuration' and 'ComputationResults'");
  if (*total <= 0) reader.fail(fmt::format("a time of {}", *total));
  Times times = times_in({&*total, 1}, unit);
  result.seconds = std::move(times.seconds);
  result.reason = std::move(times.mark);
  if (!result.reason.empty()) result.status = Status::crashed;
  return result;
}

void import_document(Import& import, const std::filesystem::path& path) {
  ConfigurationsDocument document(import, path, {"Results"});
  const Head head = read_head(document.reader());
  if (!head.is_results) throw base::UserError(document.path(), "no results of KTT: 'Results' is missing");
  const std::string_view said = import.option("unit");
  std::optional<double> unit = head.unit;
  if (!said.empty()) unit = base::seconds_per(said, "option unit");
  if (!unit) {
    throw base::UserError(document.path(),
                          "'Metadata' has no 'TimeUnit'; give the unit of times by option unit=us (or s, ms, ns)");
  }
  if (head.unit && *head.unit != *unit) {
    throw base::UserError("option unit",
                          fmt::format("'{}', but {} names another unit; leave the option out", said, document.path()));
  }
  document.import(head, [&](JsonReader& entry) { return read_result(entry, *unit); });
}

}  // namespace

void import_ktt(Import& import) {
  for (const std::filesystem::path& file : import.settings().files) import_document(import, file);
}

}  // namespace graft::datasets::formats
