#include "meta/task_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/parallel.h"
#include "codegen/schedule/candidate.h"
#include "datasets/episodes.h"

namespace graft::meta {
namespace {

// One dataset per platform, in order of their first.
std::vector<datasets::Dataset> by_platform(const std::vector<datasets::Dataset>& datasets) {
  std::vector<datasets::Dataset> out;
  for (const datasets::Dataset& dataset : datasets) {
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const auto& known) { return known.platform == dataset.platform; });
    if (same == out.end()) {
      out.push_back(dataset);
    } else {
      *same = datasets::merged(*same, dataset);
    }
  }
  return out;
}

}  // namespace

Examples chosen(const Examples& examples, const std::vector<std::int64_t>& programs) {
  Examples out{examples.platform, examples.workload, features::chosen(examples.features, programs), {}, {}};
  for (const std::int64_t program : programs) {
    out.log_seconds.push_back(examples.log_seconds[std::size_t(program)]);
    out.program_hashes.push_back(examples.program_hashes[std::size_t(program)]);
  }
  return out;
}

TaskSet make_task_set(const std::vector<datasets::Dataset>& datasets, const features::Encoding& encoding, int threads) {
  TaskSet out;
  out.encoding = &encoding;
  for (const datasets::Dataset& dataset : by_platform(datasets)) {
    if (dataset.source == "emulated") {
      throw base::UserError(dataset.platform,
                            "times under an emulator say nothing about hardware; leave this dataset out");
    }
    out.sources[dataset.platform] = dataset.source;
    for (const datasets::Group& group : datasets::groups(dataset)) {
      // Row by row, so that no more than `threads` programs are alive at a time.
      std::vector<features::Encoded> encoded(group.rows.size());  // no rows: stale
      base::parallel_for(std::int64_t(group.rows.size()), threads, [&](std::int64_t i) {
        const datasets::Dataset::Row& row = dataset.rows[std::size_t(group.rows[std::size_t(i)])];
        const codegen::Candidate candidate = dataset.candidate(row);
        const auto program = codegen::program(candidate, dataset.target);
        if (!program || codegen::hash(*program) != row.program_hash) return;
        encoded[std::size_t(i)] = encoding.encode({&*program, &candidate, &dataset.target});
      });
      Examples kept{group.platform, group.workload, {}, {}, {}};
      for (std::size_t i = 0; i < group.rows.size(); ++i) {
        if (encoded[i].rows.rows == 0) {
          ++out.stale_rows;
          continue;
        }
        const datasets::Dataset::Row& row = dataset.rows[std::size_t(group.rows[i])];
        features::append(kept.features, encoded[i]);
        kept.log_seconds.push_back(std::log(datasets::seconds_of(row.measurement)));
        kept.program_hashes.push_back(row.program_hash);
      }
      if (kept.size() > 0) out.groups.push_back(std::move(kept));
    }
  }
  if (out.groups.empty()) {
    throw base::UserError(
        fmt::format("no usable measurement in {} datasets ({} rows are stale: their programs lower to something "
                    "else today); collect again",
                    datasets.size(), out.stale_rows));
  }
  return out;
}

std::vector<std::string> platforms(const TaskSet& tasks) {
  std::vector<std::string> names;
  for (const Examples& group : tasks.groups) {
    if (std::find(names.begin(), names.end(), group.platform) == names.end()) names.push_back(group.platform);
  }
  return names;
}

TaskSet only_platforms(const TaskSet& tasks, const std::vector<std::string>& names) {
  const std::vector<std::string> known = platforms(tasks);
  TaskSet out;
  out.encoding = tasks.encoding;
  out.stale_rows = tasks.stale_rows;
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw base::UserError(fmt::format("no measurements of platform '{}'{}", name, base::did_you_mean(name, known)));
    }
    if (const auto source = tasks.sources.find(name); source != tasks.sources.end()) out.sources.insert(*source);
  }
  for (const Examples& group : tasks.groups) {
    if (std::find(names.begin(), names.end(), group.platform) != names.end()) out.groups.push_back(group);
  }
  return out;
}

TaskSet without_platform(const TaskSet& tasks, const std::string& name) {
  std::vector<std::string> names = platforms(tasks);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw base::UserError(fmt::format("no measurements of platform '{}'{}", name, base::did_you_mean(name, names)));
  }
  names.erase(found);
  return only_platforms(tasks, names);
}

}  // namespace graft::meta
