#include "datasets/formats/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"
#include "base/one_line.h"
#include "base/text.h"
#include "base/units.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/configurations.h"
#include "datasets/formats/table_columns.h"
#include "datasets/formats/times.h"

namespace graft::datasets::formats {
namespace {

constexpr std::string_view without_program = "a table's row";
constexpr std::size_t longest_word = 40;  // in a reason

// What a cell says of the time, which has no seconds if it is a mark of a failure.
Measurement measurement_of(std::string_view cell, const TableRoles::Time& time, const TableRoles& roles,
                           const std::string& column) {
  const bool is_inverse = roles.is_inverse;
  Measurement measurement;
  measurement.clock = "imported";
  const auto failed = [&](std::string reason) {
    measurement.status = Status::crashed;
    measurement.reason = std::move(reason);
    return measurement;
  };
  if (roles.rule != nullptr && !roles.rule->failure.empty() && cell.starts_with(roles.rule->failure))
    return failed(fmt::format("{} in place of a time", base::one_line(cell, longest_word)));
  std::optional<double> number = number_in(cell);
  const std::optional<double> seconds = number || is_inverse ? std::nullopt : seconds_with_unit(cell);
  const double unit = is_inverse ? 1 : seconds ? std::copysign(1, time.seconds) : time.seconds;
  if (seconds) number = seconds;
  const auto refuse = [&] {
    throw base::UserError(
        fmt::format("column '{}': expected a {} > 0, got '{}'; leave the cell empty if it was not measured", column,
                    is_inverse ? "value" : "time", cell.substr(0, 40)));
  };
  if (!number || *number * unit <= 0) refuse();
  if (!is_inverse || !std::isfinite(*number)) {
    if (std::string mark = mark_in(*number, unit); !mark.empty()) return failed(std::move(mark));
  }
  measurement.seconds = {is_inverse ? 1 / *number : *number * unit};
  if (!std::isfinite(measurement.seconds.front())) refuse();
  return measurement;
}

// The name and, for columns that say the workload, their words; integers are its sizes.
codegen::Workload workload_of(const std::string& name, const std::vector<int>& chosen,
                              const std::vector<std::string>& cells, const Columns& columns) {
  std::string words = name;
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (const int column : chosen) {
    const std::string_view cell = base::trim(cells[std::size_t(column)]);
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), size);
    if (error == std::errc() && end == cell.data() + cell.size()) {
      sizes.emplace_back(columns.names()[std::size_t(column)], size);
      continue;
    }
    const bool is_plain = !cell.empty() && std::all_of(cell.begin(), cell.end(), [](char c) {
      return std::isalnum((unsigned char)c) || c == '_' || c == '.';
    });
    words += "." + std::string(cell);
    if (!is_plain) words += "." + base::to_hex(base::hash_bytes(cell));
  }
  return table_workload(words, sizes);
}

// What a tuner says of configurations that it has not measured yet.
constexpr std::string_view not_measured_yet[] = {"RUNNING", "WAITING", "TrialState.RUNNING", "TrialState.WAITING"};

class FileImport {
 public:
  FileImport(Import& import, const std::filesystem::path& path)
      : import_(import),
        path_(path),
        form_(table_form(import, path)),
        tuples_(lines_for_tuples()),
        columns_(seen_columns()),
        roles_(table_roles(import, path, columns_, tuples_, TableLines(import, path, form_, false))) {}

  void run() {
    const auto sketch = columns_.sketch(roles_.name, roles_.configuration);
    TableLines lines(import_, path_, form_, true);
    formats::located(lines, lines.file(), [&] {
      for (const TableRoles::Time& time : roles_.times) targets_.push_back(target_of(time, sketch));
    });
    while (lines.next()) add(lines);
  }

 private:
  struct Target {
    const TableRoles::Time* time;
    ImportedDataset* dataset;
    Dataset::Row row;
  };

  Tuples lines_for_tuples() {
    TableLines lines(import_, path_, form_, false);
    return Tuples(lines);
  }

  Columns seen_columns() {
    TableLines lines(import_, path_, form_, false);
    Columns columns(tuples_.names(lines.head()), lines.head_place());
    while (lines.next()) {
      const std::vector<std::string> cells = tuples_.apart(lines.cells());
      formats::located(lines, lines.file(), [&] {
        for (std::size_t c = 0; c < cells.size(); ++c) {
          if (columns.problem(int(c), cells[c]).empty()) columns.see(int(c), cells[c]);
        }
      });
    }
    return columns;
  }

  Target target_of(const TableRoles::Time& time, const std::shared_ptr<const codegen::Sketch>& sketch) {
    Target target;
    target.time = &time;
    target.dataset = &import_.dataset(time.platform);
    target.dataset->head().provenance.set("unit", time.unit);
    target.row.sketch = target.dataset->position_of(sketch);
    if (roles_.workload.empty() && !roles_.is_exported)
      target.row.workload =
          target.dataset->position_of(roles_.computation ? *roles_.computation : table_workload(roles_.name));
    return target;
  }

  // The record of this line, for every platform.
  void add(const TableLines& lines) {
    const std::vector<std::string> cells = tuples_.apart(lines.cells());
    std::vector<std::int64_t> arguments;
    std::optional<codegen::Workload> workload;
    bool is_good = false;
    import_.record(lines, [&] {
      for (const int column : roles_.configuration) {
        const std::string& cell = cells[std::size_t(column)];
        const std::string problem = columns_.problem(column, cell);
        if (!problem.empty()) throw base::UserError(problem);
        arguments.push_back(columns_.argument(column, cell));
      }
      if (roles_.is_exported) workload = codegen::Workload{cells.front()};
      if (!roles_.workload.empty()) workload = workload_of(roles_.name, roles_.workload, cells, columns_);
      is_good = true;
    });
    for (Target& target : targets_) {
      if (!is_good) return;
      target.row.arguments = arguments;
      std::optional<Measurement> measurement;
      bool is_read = false;
      import_.record(lines, [&] {
        measurement = measured(cells, target, lines.place());
        is_read = true;
        if (!measurement) return;
        target.row.measurement = *measurement;
        if (workload) target.row.workload = target.dataset->position_of(*workload);
        target.dataset->add(target.row, roles_.name, without_program);
      });
      if (is_read && !measurement) target.dataset->drop(why_not_measured(cells, target));
    }
  }

  // Nothing: it was not measured.
  std::optional<Measurement> measured(const std::vector<std::string>& cells, const Target& target,
                                      std::string_view place) const {
    if (const std::string failure = failure_in(cells); !failure.empty()) {
      if (is_not_measured_yet(cells)) return std::nullopt;
      Measurement measurement;
      measurement.clock = "imported";
      measurement.status = Status::crashed;
      measurement.reason = failure;
      return measurement;
    }
    if (!why_not_measured(cells, target).empty()) return std::nullopt;
    TableRoles::Time time = *target.time;
    if (roles_.units >= 0)
      time.seconds =
          std::copysign(base::seconds_per(base::trim(cells[std::size_t(roles_.units)]), place), time.seconds);
    if (roles_.divisor >= 0) {
      const std::optional<double> divisor = number_in(cells[std::size_t(roles_.divisor)]);
      if (!divisor || *divisor <= 0) throw base::UserError("the time of no iteration");
      time.seconds /= *divisor;
    }
    return measurement_of(base::trim(cells[std::size_t(time.column)]), time, roles_,
                          columns_.names()[std::size_t(time.column)]);
  }

  // "" if there is a time.
  std::string why_not_measured(const std::vector<std::string>& cells, const Target& target) const {
    if (is_not_measured_yet(cells)) return "not measured yet";
    if (base::trim(cells[std::size_t(target.time->column)]).empty()) return "not measured on this platform";
    if (roles_.units >= 0 && !base::is_unit_of_time(base::trim(cells[std::size_t(roles_.units)])))
      return "has no unit of time";
    return "";
  }

  bool is_not_measured_yet(const std::vector<std::string>& cells) const {
    return roles_.validity >= 0 &&
           std::find(std::begin(not_measured_yet), std::end(not_measured_yet),
                     base::trim(cells[std::size_t(roles_.validity)])) != std::end(not_measured_yet);
  }

  // What the row says of its failure; "" if it is good. A list must have good items only.
  std::string failure_in(const std::vector<std::string>& cells) const {
    if (roles_.validity < 0) return "";
    std::string_view cell = base::trim(cells[std::size_t(roles_.validity)]);
    const std::string reason =
        fmt::format("{} {}", columns_.names()[std::size_t(roles_.validity)], base::one_line(cell, longest_word));
    if (cell.starts_with('[') && cell.ends_with(']')) cell = cell.substr(1, cell.size() - 2);
    for (const std::string_view item : base::split(cell, ',')) {
      const auto& good = roles_.rule->good;
      if (std::find(good.begin(), good.end(), base::trim(item)) == good.end()) return reason;
    }
    return "";
  }

  Import& import_;
  const std::filesystem::path& path_;
  TableForm form_;
  Tuples tuples_;
  Columns columns_;
  TableRoles roles_;
  std::vector<Target> targets_;
};

// --- out

std::string argument_text(const codegen::Sketch& sketch, int argument, std::int64_t value) {
  if (sketch.arguments[std::size_t(argument)].alternatives == 0) return fmt::format("{}", value);
  const auto in_line = [&](const codegen::Sketch::Line& line) -> const std::vector<std::string>* {
    for (const codegen::Sketch::Token& token : line) {
      if (token.argument == argument) return &token.alternatives;
    }
    return nullptr;
  };
  const std::vector<std::string>* alternatives = in_line(sketch.columns);
  for (const codegen::Sketch::Line& line : sketch.lines) {
    if (alternatives == nullptr) alternatives = in_line(line);
  }
  if (alternatives == nullptr || value < 0 || value >= std::int64_t(alternatives->size())) {
    return fmt::format("{}", value);
  }
  return (*alternatives)[std::size_t(value)];
}

}  // namespace

void import_table(Import& import) {
  for (const std::filesystem::path& file : import.settings().files) FileImport(import, file).run();
}

Counts export_table(const DatasetFile& from, const TextSink& to) {
  const Dataset& head = from.head();
  std::vector<std::string> names;  // of arguments, of all sketches
  for (const auto& sketch : head.sketches) {
    for (const codegen::Sketch::Argument& argument : sketch->arguments) {
      if (std::find(names.begin(), names.end(), argument.name) == names.end()) names.push_back(argument.name);
    }
  }
  const bool sketches = head.sketches.size() > 1 || names.empty();
  const std::string platform(platform_name(head.platform));
  std::vector<std::string> cells{std::string(workload_column)};
  if (sketches) cells.push_back("sketch");
  for (std::string name : names) {
    while (name == platform || std::find(cells.begin(), cells.end(), name) != cells.end()) name += '_';
    cells.push_back(std::move(name));
  }
  cells.push_back(platform);
  const auto write = [&] {
    std::vector<std::string> quoted;
    for (const std::string& cell : cells) quoted.push_back(csv_cell(cell));
    to(base::join(quoted, ",") + "\n");
  };
  write();

  Counts counts;
  constexpr std::int64_t piece = 4096;
  for (std::int64_t begin = 0; begin < from.size(); begin += piece) {
    for (const Dataset::Row& row : from.rows(begin, std::min(piece, from.size() - begin))) {
      ++counts.records;
      if (row.measurement.status != Status::ok) {
        ++counts.dropped[fmt::format("status {}", datasets::name_of(row.measurement.status))];
        continue;
      }
      const codegen::Sketch& sketch = *head.sketches[std::size_t(row.sketch)];
      cells.assign(1, head.workloads[std::size_t(row.workload)].text());
      // Sketches of one name, as all programs of others are, stay apart.
      if (sketches) cells.push_back(fmt::format("{}.{}", sketch.name, base::to_hex(sketch.hash)));
      for (const std::string& name : names) {
        const int argument = sketch.argument_named(name);
        cells.push_back(argument < 0 || std::size_t(argument) >= row.arguments.size()
                            ? ""
                            : argument_text(sketch, argument, row.arguments[std::size_t(argument)]));
      }
      cells.push_back(fmt::format("{}", datasets::seconds_of(row.measurement)));
      write();
      ++counts.rows;
    }
  }
  return counts;
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos && base::trim(text) == text) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace graft::datasets::formats
