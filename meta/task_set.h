// Encoded measurements: the only place where a label is made. A label is log seconds; it is not normalised by a best
// time, which is unknown on a new platform.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/arrays.h"
#include "base/monitor.h"
#include "base/team.h"
#include "datasets/dataset.h"
#include "features/encoding.h"

namespace graft::meta {

// Programs of one workload on one platform with their times; losses and metrics compare only inside a group.
struct Examples {
  std::string platform;
  codegen::Workload workload;
  features::Encoded features;       // of the task set's encoding, raw (models normalise)
  std::vector<double> log_seconds;  // natural logarithm, by program
  std::vector<std::uint64_t> program_hashes;
  std::int64_t size() const { return features.programs(); }
};

// The examples of these programs, in this order.
Examples chosen(const Examples& examples, const std::vector<std::int64_t>& programs);

struct TaskSet {
  const features::Encoding* encoding = nullptr;
  // What `encoding` points to if it was made for the tables among the datasets (features::made_for); else null.
  std::shared_ptr<const features::Encoding> own_encoding;
  std::vector<std::string> notes;              // where the joining of tables is in doubt, for the user
  std::vector<Examples> groups;                // by platform, then workload, in order of the datasets
  std::map<std::string, std::string> sources;  // platform -> native / remote / imported / modelled
  std::int64_t stale_rows = 0;  // lower to a different program today than was measured (or not at all): left out
  // Rows left out because the encoding needs programs and they have none: rows of tables, and imported ones whose steps
  // do not apply here. By sketch, in order.
  struct WithoutProgram {
    std::string sketch;
    std::string reason;  // of the first
    std::int64_t rows = 0;
    template <class Bytes, class Self>
    static void fields(Bytes& bytes, Self& self) {
      bytes(self.sketch), bytes(self.reason), bytes(self.rows);
    }
  };
  std::vector<WithoutProgram> without_program;
};

// Lowers and encodes every `ok` row once per program (datasets::groups). A row without a program hash (imported, or of
// a table) is not compared with one. An encoding of tables is made for all tables of the datasets, unless it has a
// schema: then they are seen through that, and must have a column of it. The ranks of a team that was given the same
// datasets share the work and get the same. UserError for an emulated source or if nothing is left. Stopped when the
// monitor asks for it, before the next few programs; on one of several ranks, which would wait for each other, it is
// not asked.
TaskSet make_task_set(const std::vector<datasets::Dataset>& datasets, const features::Encoding& encoding, int threads,
                      base::Team* team = nullptr, base::Monitor* monitor = nullptr);

// What a model that knows the tables of the schema cannot see of these datasets, for people. UserError where it sees
// nothing of one.
std::vector<std::string> unknown_columns(std::span<const datasets::Dataset> datasets,
                                         const codegen::TableSchema& schema);

std::vector<std::string> platforms(const TaskSet& tasks);  // in order
TaskSet only_platforms(const TaskSet& tasks, const std::vector<std::string>& names);
TaskSet without_platform(const TaskSet& tasks, const std::string& name);  // UserError (did you mean) if unknown
// A misleading source, to measure its cost: the labels of these platforms mirrored within each workload, so
// that its fastest program has the slowest one's time and vice versa. UserError (did you mean) if one is unknown.
TaskSet with_reversed_labels(TaskSet tasks, const std::vector<std::string>& names);

}  // namespace graft::meta
