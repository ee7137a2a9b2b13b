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
#include "base/text.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/table_columns.h"
#include "datasets/formats/times.h"

namespace graft::datasets::formats {
namespace {

constexpr std::string_view without_program = "a table's row";

// What a cell says of the time, which has no seconds if it is a mark of a failure.
Measurement measurement_of(std::string_view cell, const TableRoles::Time& time, bool is_inverse,
                           const std::string& column) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const double unit = is_inverse ? 1 : time.seconds;
  const auto refuse = [&] {
    throw base::UserError(
        fmt::format("column '{}': expected a {} > 0, got '{}'; leave the cell empty if it was not measured", column,
                    is_inverse ? "value" : "time", cell.substr(0, 40)));
  };
  if (error != std::errc() || end != cell.data() + cell.size() || value * unit <= 0) refuse();
  Measurement measurement;
  measurement.clock = "imported";
  if (!is_inverse || !std::isfinite(value)) measurement.reason = mark_in(value, unit);
  if (!measurement.reason.empty()) {
    measurement.status = Status::crashed;
    return measurement;
  }
  measurement.seconds = {is_inverse ? 1 / value : value * unit};
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

void import_file(Import& import, const std::filesystem::path& path) {
  const TableForm form = table_form(import, path);
  TableLines probe(import, path, form, false);
  const Tuples tuples(probe);
  TableLines first(import, path, form, false);
  Columns columns(tuples.names(first.head()), first.head_place());
  while (first.next()) {
    const std::vector<std::string> cells = tuples.apart(first.cells());
    formats::located(first, first.file(), [&] {
      for (std::size_t c = 0; c < cells.size(); ++c) {
        if (columns.problem(int(c), cells[c]).empty()) columns.see(int(c), cells[c]);
      }
    });
  }
  const TableRoles roles = table_roles(import, path, columns, tuples, first);
  const auto sketch = columns.sketch(roles.name, roles.configuration);

  struct Target {
    const TableRoles::Time* time;
    ImportedDataset* dataset;
    Dataset::Row row;
  };
  std::vector<Target> targets;
  TableLines second(import, path, form, true);
  formats::located(second, second.file(), [&] {
    for (const TableRoles::Time& time : roles.times) {
      ImportedDataset& dataset = import.dataset(time.platform);
      dataset.head().provenance.set("unit", time.unit);
      Dataset::Row row{0, dataset.position_of(sketch), {}, 0, {}};
      if (roles.workload.empty() && !roles.is_exported) {
        row.workload = dataset.position_of(roles.computation ? *roles.computation : table_workload(roles.name));
      }
      targets.push_back({&time, &dataset, std::move(row)});
    }
  });
  while (second.next()) {
    const std::vector<std::string> cells = tuples.apart(second.cells());
    std::vector<std::int64_t> arguments;
    std::optional<codegen::Workload> workload;
    bool is_good = false;
    import.record(second, [&] {
      for (const int column : roles.configuration) {
        const std::string& cell = cells[std::size_t(column)];
    if (const std::string problem = columns.problem(column, cell); !problem.empty()) {
      throw base::UserError(problem);
    }
    arguments.push_back(columns.argument(column, cell));
  }
  if (roles.is_exported) workload = codegen::Workload{cells.front()};
  if (!roles.workload.empty()) workload = workload_of(roles.name, roles.workload, cells, columns);
  is_good = true;
});
if (!is_good) continue;
for (Target& target : targets) {
  const std::string_view cell = base::trim(cells[std::size_t(target.time->column)]);
  TableRoles::Time time = *target.time;
  if (roles.units >= 0) {
    const std::string_view unit = base::trim(cells[std::size_t(roles.units)]);
    const bool has_unit = is_unit_of_time(unit);
    if (!has_unit || is_summary(cells.front())) {
      target.dataset->drop(has_unit ? "sums up other rows" : "has no unit of time");
      continue;
    }
    time.seconds = seconds_per(unit, second.place());
  }
  if (cell.empty()) {
    target.dataset->drop("not measured on this platform");
    continue;
  }
      import.record(second, [&] {
        target.row.arguments = arguments;
      target.row.measurement =
          measurement_of(cell, time, roles.is_inverse, columns.names()[std::size_t(target.time->column)]);
      if (workload) target.row.workload = target.dataset->position_of(*workload);
      target.dataset->add(target.row, roles.name, without_program);
});
}  // namespace
}  // namespace graft::datasets::formats
}

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
  for (const std::filesystem::path& file : import.settings().files) import_file(import, file);
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
