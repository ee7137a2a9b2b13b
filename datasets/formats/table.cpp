#include "datasets/formats/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "datasets/formats/columns.h"
#include "datasets/formats/lines.h"

namespace graft::datasets::formats {
namespace {

constexpr std::string_view every_platform = "*";
constexpr std::string_view without_program = "a table's row";
// The first column of an exported table, and of no other: behind it stands the configuration, last the seconds.
constexpr std::string_view workload_column = "graft_workload";

bool is_exported(const Columns& columns) {
  return columns.names().front() == workload_column;
}

std::string workload_name(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  for (const std::string_view extension : {".gz", ".csv"}) {
    if (name.size() > extension.size() && name.ends_with(extension)) name.resize(name.size() - extension.size());
  }
  return name;
}

std::string_view option(const Import& import, std::string_view name, std::string_view otherwise) {
  const auto found = import.settings().options.find(name);
  return found == import.settings().options.end() ? otherwise : std::string_view(found->second);
}

// Which columns say what was measured, and which hold times.
struct Roles {
  std::vector<int> configuration, times;
};

Roles roles_of(const Import& import, const Columns& columns, const std::string& place) {
  const int count = int(columns.names().size());
  const std::string& platform = import.settings().platform;
  const std::string from(option(import, "times-from", ""));
  int first = columns.named(from.empty() ? platform : from);
  if (!from.empty() && first < 0) {
    throw base::UserError(
        place, fmt::format("no column '{}' (option times-from){}", from, base::did_you_mean(from, columns.names())));
  }
  if (is_exported(columns) && from.empty()) first = count - 1;
  for (int c = 0; c < count && from.empty() && !is_exported(columns); ++c) {
    if (columns.has_fraction(c) && (first < 0 || c < first)) first = c;
  }
  if (first < 0) {
    throw base::UserError(place,
                          "no column with fractions, so which ones are times is unknown; name the first one: "
                          "--options times-from=COLUMN");
  }
  const int begin = is_exported(columns) ? 1 : 0;
  if (first <= begin) {
    throw base::UserError(place, fmt::format("column '{}' is taken for a time, and nothing stands before it that says "
                                             "what was measured; name the first time: --options times-from=COLUMN",
                                             columns.names()[std::size_t(first)]));
  }
  Roles roles;
  std::vector<std::string> known;
  for (int c = begin; c < count; ++c) {
    if (c < first) {
      roles.configuration.push_back(c);
    } else {
      known.push_back(columns.names()[std::size_t(c)]);
      if (platform == every_platform || platform == known.back()) roles.times.push_back(c);
    }
  }
  if (roles.times.empty()) {
    throw base::UserError(place,
                          fmt::format("no column of times '{}'{}", platform, base::did_you_mean(platform, known)));
  }
  return roles;
}

// Cells of the reader's line; as many as the head has.
std::vector<std::string> cells_of(const LineReader& lines, std::size_t count) {
  std::vector<std::string> cells = csv_cells(lines.text(), lines.place());
  if (cells.size() != count) lines.fail(fmt::format("{} cells; the head has {}", cells.size(), count));
  return cells;
}

double seconds_of(std::string_view cell, double unit, const std::string& column, const LineReader& lines) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const double seconds = value * unit;
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(seconds) || seconds <= 0) {
    lines.fail(fmt::format("column '{}': expected a time > 0, got '{}'; leave the cell empty if it was not measured",
                           column, cell));
  }
  return seconds;
}

void import_file(Import& import, const std::filesystem::path& path) {
  const std::string_view unit_name = option(import, "unit", "s");
  const double unit = seconds_per(unit_name, "--options unit");
  const std::string place = path.string() + ":1";
  const auto head = [&](LineReader& lines) {
    if (!lines.next()) throw base::UserError(place, "an empty file; expected a line with the names of the columns");
    std::string_view text = lines.text();
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    return csv_cells(text, lines.place());
  };

  LineReader first(path);
  Columns columns(head(first), place);
  const std::size_t count = columns.names().size();
  while (first.next()) {
    const std::vector<std::string> cells = cells_of(first, count);
    first.located([&] {
      for (std::size_t c = is_exported(columns) ? 1 : 0; c < count; ++c) columns.see(int(c), cells[c]);
    });
  }
  const Roles roles = roles_of(import, columns, place);
  const std::string name = workload_name(path);
  import.monitor().note(fmt::format("{}: what was measured is said by {} columns ({} to {}); times: {}", name,
                                    roles.configuration.size(),
                                    columns.names()[std::size_t(roles.configuration.front())],
                                    columns.names()[std::size_t(roles.configuration.back())], roles.times.size()));
  const codegen::Workload workload = table_workload(name);
  const auto sketch = columns.sketch(name, roles.configuration);

  struct Target {
    int column;
    ImportedDataset* dataset;
    Dataset::Row row;
  };
  std::vector<Target> targets;
  LineReader second(path);
  head(second);
  second.located([&] {
    for (const int column : roles.times) {
      ImportedDataset& dataset = import.dataset(columns.names()[std::size_t(column)]);
      dataset.head().provenance.set("unit", std::string(unit_name));
      Dataset::Row row{
          is_exported(columns) ? 0 : dataset.position_of(workload), dataset.position_of(sketch), {}, 0, {}};
      row.measurement.clock = "imported";
      targets.push_back({column, &dataset, std::move(row)});
    }
  });
  while (second.next()) {
    const std::vector<std::string> cells = cells_of(second, count);
    std::vector<std::int64_t> arguments;
    for (const int column : roles.configuration)
      arguments.push_back(columns.argument(column, cells[std::size_t(column)]));
    for (Target& target : targets) {
      target.dataset->count_record();
      const std::string_view cell = base::trim(cells[std::size_t(target.column)]);
      if (cell.empty()) {
        target.dataset->drop("not measured on this platform");
        continue;
      }
      if (is_exported(columns))
        second.located([&] { target.row.workload = target.dataset->position_of({cells.front()}); });
      target.row.arguments = arguments;
      target.row.measurement.seconds = {seconds_of(cell, unit, columns.names()[std::size_t(target.column)], second)};
      second.located([&] { target.dataset->add(target.row, name, without_program); });
    }
  }
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
      cells.assign(1, head.workloads[std::size_t(row.workload)].text);
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

std::vector<std::string> csv_cells(std::string_view line, std::string_view place) {
  std::vector<std::string> cells{""};
  std::size_t at = 0;
  for (;;) {
    std::string& cell = cells.back();
    if (at < line.size() && line[at] == '"') {
      for (++at;; ++at) {
        if (at >= line.size()) throw base::UserError(place, "a quote that is never closed on this line");
        if (line[at] != '"') {
          cell += line[at];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          cell += line[at++];
        } else {
          ++at;
          break;
        }
      }
      if (at < line.size() && line[at] != ',') throw base::UserError(place, "text behind a closing quote");
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      cell = base::trim(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) return cells;
    ++at;
    cells.emplace_back();
  }
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace graft::datasets::formats
