#include "meta/task_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "codegen/space/table_schema.h"
#include "datasets/groups.h"
#include "datasets/joined_tables.h"

namespace graft::meta {
namespace {

struct EncodedRow {
  features::Encoded features;  // no rows: left out
  std::uint64_t program_hash = 0;
  bool stale = false;
  std::string reason;  // why there is no program for an encoding that needs one
};

EncodedRow encoded_row(const datasets::Dataset& dataset, const datasets::Dataset::Row& row,
                       const features::Encoding& encoding) {
  const codegen::Candidate candidate = dataset.candidate(row);
  // Imported rows may hold no hash: there is nothing to compare with, and often no need to lower.
  if (row.program_hash == 0 && !encoding.needs_program && !codegen::is_row_of_table(candidate))
    return {encoding.encode({nullptr, &candidate, &dataset.target}), codegen::hash(candidate), false, ""};
  const base::Result<codegen::CandidateProgram> made = codegen::identified_program(candidate, dataset.target);
  if (!made && row.program_hash == 0) return {{}, 0, false, made.reason().text};
  if (!made) return {{}, 0, true, ""};
  if (made->program == nullptr && encoding.needs_program) return {{}, 0, false, "a row of a table has no program"};
  if (made->program != nullptr && row.program_hash != 0 && made->identity != row.program_hash) return {{}, 0, true, ""};
  return {encoding.encode({made->program.get(), &candidate, &dataset.target}), made->identity, false, ""};
}

void count_without(std::vector<TaskSet::WithoutProgram>& all, const TaskSet::WithoutProgram& more) {
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.sketch == more.sketch; });
  if (found == all.end()) found = all.insert(all.end(), {more.sketch, more.reason, 0});
  found->rows += more.rows;
}

// What becomes of some rows of one group.
struct Piece {
  features::Encoded features;
  std::vector<double> log_seconds;
  std::vector<std::uint64_t> program_hashes;
  std::int64_t stale_rows = 0;
  std::vector<TaskSet::WithoutProgram> without_program;

  template <class Bytes, class Self>
  static void fields(Bytes& bytes, Self& self) {
    bytes(self.features), bytes(self.log_seconds), bytes(self.program_hashes), bytes(self.stale_rows);
    bytes(self.without_program);
  }
};

Piece piece_of(const datasets::Dataset& dataset, std::span<const std::int64_t> rows,
               const features::Encoding& encoding) {
  Piece out;
  for (const std::int64_t r : rows) {
    const datasets::Dataset::Row& row = dataset.rows[std::size_t(r)];
    const EncodedRow encoded = encoded_row(dataset, row, encoding);
    if (encoded.stale) ++out.stale_rows;
    if (!encoded.reason.empty())
      count_without(out.without_program, {dataset.sketches[std::size_t(row.sketch)]->name, encoded.reason, 1});
    if (encoded.features.rows.rows == 0) continue;
    features::append(out.features, encoded.features);
    out.log_seconds.push_back(std::log(datasets::seconds_of(row.measurement)));
    out.program_hashes.push_back(encoded.program_hash);
  }
  return out;
}

}  // namespace

std::vector<std::string> unknown_columns(std::span<const datasets::Dataset> datasets,
                                         const codegen::TableSchema& schema) {
  std::vector<std::string> notes;
  for (const datasets::Dataset& dataset : datasets) {
    std::set<std::string> known, unknown;
    for (const auto& sketch : dataset.sketches) {
      if (sketch->columns.empty()) continue;
      for (const codegen::Sketch::Argument& column : sketch->arguments) {
        const bool is_known = std::any_of(schema.columns.begin(), schema.columns.end(),
                                          [&](const auto& each) { return each.name == column.name; });
        (is_known ? known : unknown).insert(column.name);
      }
    }
    if (unknown.empty()) continue;
    const std::string names = base::join({unknown.begin(), unknown.end()}, ", ");
    if (known.empty())
      throw base::UserError(dataset.platform, fmt::format("the model knows none of the columns {}; columns are joined "
                                                          "by name: rename them and import again",
                                                          names));
    notes.push_back(fmt::format("{}: the model does not know, and does not see: {}", dataset.platform, names));
  }
  return notes;
}

Examples chosen(const Examples& examples, const std::vector<std::int64_t>& programs) {
  Examples out{examples.platform, examples.workload, features::chosen(examples.features, programs), {}, {}};
  for (const std::int64_t program : programs) {
    out.log_seconds.push_back(examples.log_seconds[std::size_t(program)]);
    out.program_hashes.push_back(examples.program_hashes[std::size_t(program)]);
  }
  return out;
}

namespace {

// The requested encoding, or for rows of tables one that is made for the columns of these.
TaskSet begun(const std::vector<datasets::Dataset>& datasets, const features::Encoding& requested) {
  TaskSet out;
  out.encoding = &requested;
  if (requested.schema != nullptr) {
    out.notes = unknown_columns(datasets, *requested.schema);
  } else if (requested.of_tables) {
    datasets::JoinedTables joined = datasets::joined_tables(datasets);
    out.notes = std::move(joined.notes);
    out.own_encoding =
        std::make_shared<const features::Encoding>(features::made_for(requested, std::move(joined.schema)));
    out.encoding = out.own_encoding.get();
  }
  return out;
}

// Rows that one thread or rank encodes.
struct Part {
  std::size_t group;
  std::span<const std::int64_t> rows;
};

std::vector<Part> parts_of(const std::vector<datasets::Group>& groups) {
  constexpr std::size_t rows_each = 64;
  std::vector<Part> parts;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::span<const std::int64_t> rest = groups[g].rows; !rest.empty();) {
      const std::size_t count = std::min(rows_each, rest.size());
      parts.push_back({g, rest.first(count)});
      rest = rest.subspan(count);
    }
  }
  return parts;
}

void refuse_empty(const TaskSet& tasks, std::size_t datasets) {
  if (!tasks.groups.empty()) return;
  if (tasks.stale_rows == 0 && !tasks.without_program.empty()) {
    const TaskSet::WithoutProgram& first = tasks.without_program.front();
    throw base::UserError(
        fmt::format("no row has a program, which encoding '{}' looks at ({}); choose the encoding "
                    "'columns' or 'knobs'",
                    tasks.encoding->name, first.reason));
  }
  throw base::UserError(
      fmt::format("no usable measurement in {} datasets ({} rows are stale: their programs lower to something "
                  "else today); collect again",
                  datasets, tasks.stale_rows));
}

}  // namespace

TaskSet make_task_set(const std::vector<datasets::Dataset>& datasets, const features::Encoding& requested, int threads,
                      base::Team* team, base::Monitor* monitor) {
  base::Team alone;
  base::Monitor nobody;
  base::SharedMonitor shared(monitor == nullptr || (team != nullptr && team->size() > 1) ? nobody : *monitor);
  TaskSet out = begun(datasets, requested);
  const features::Encoding& encoding = *out.encoding;
  for (const datasets::Dataset& dataset : datasets::by_platform(datasets)) {
    datasets::refuse_emulated(dataset.platform, dataset.source);
    out.sources[dataset.platform] = dataset.source;
    const std::vector<datasets::Group> groups = datasets::groups(dataset);
    const std::vector<Part> parts = parts_of(groups);
    const std::vector<Piece> pieces =
        base::divided(team == nullptr ? alone : *team, std::int64_t(parts.size()), threads, [&](std::int64_t i) {
          base::check_stop(shared);
          return piece_of(dataset, parts[std::size_t(i)].rows, encoding);
        });
    for (std::size_t i = 0; i < parts.size();) {
      const datasets::Group& group = groups[parts[i].group];
      Examples kept{group.platform, group.workload, {}, {}, {}};
      for (const std::size_t g = parts[i].group; i < parts.size() && parts[i].group == g; ++i) {
        const Piece& piece = pieces[i];
        out.stale_rows += piece.stale_rows;
        for (const TaskSet::WithoutProgram& some : piece.without_program) count_without(out.without_program, some);
        features::append(kept.features, piece.features);
        kept.log_seconds.insert(kept.log_seconds.end(), piece.log_seconds.begin(), piece.log_seconds.end());
        kept.program_hashes.insert(kept.program_hashes.end(), piece.program_hashes.begin(), piece.program_hashes.end());
      }
      if (kept.size() > 0) out.groups.push_back(std::move(kept));
    }
  }
  refuse_empty(out, datasets.size());
  return out;
}

std::vector<std::string> platforms(const TaskSet& tasks) {
  std::vector<std::string> names;
  for (const Examples& group : tasks.groups) {
    if (std::find(names.begin(), names.end(), group.platform) == names.end()) names.push_back(group.platform);
  }
  return names;
}

namespace {

void check_known(const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw base::UserError(fmt::format("no measurements of platform '{}'{}", name, base::did_you_mean(name, known)));
}

}  // namespace

TaskSet only_platforms(const TaskSet& tasks, const std::vector<std::string>& names) {
  const std::vector<std::string> known = platforms(tasks);
  TaskSet out;
  out.encoding = tasks.encoding;
  out.own_encoding = tasks.own_encoding;
  out.notes = tasks.notes;
  out.stale_rows = tasks.stale_rows;
  out.without_program = tasks.without_program;
  for (const std::string& name : names) {
    check_known(name, known);
    if (const auto source = tasks.sources.find(name); source != tasks.sources.end()) out.sources.insert(*source);
  }
  for (const Examples& group : tasks.groups) {
    if (std::find(names.begin(), names.end(), group.platform) != names.end()) out.groups.push_back(group);
  }
  return out;
}

TaskSet without_platform(const TaskSet& tasks, const std::string& name) {
  std::vector<std::string> names = platforms(tasks);
  check_known(name, names);
  std::erase(names, name);
  return only_platforms(tasks, names);
}

TaskSet with_reversed_labels(TaskSet tasks, const std::vector<std::string>& names) {
  const std::vector<std::string> known = platforms(tasks);
  for (const std::string& name : names) check_known(name, known);
  for (Examples& group : tasks.groups) {
    if (std::find(names.begin(), names.end(), group.platform) == names.end()) continue;
    const auto [least, most] = std::minmax_element(group.log_seconds.begin(), group.log_seconds.end());
    const double ends = *least + *most;
    for (double& label : group.log_seconds) label = ends - label;
  }
  return tasks;
}

}  // namespace graft::meta
