// What several commands need: how to measure, where a result comes from, names of files, tables that more than one
// prints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/statistics.h"
#include "cli/command.h"
#include "codegen/schedule/space.h"
#include "datasets/dataset.h"
#include "datasets/failures.h"
#include "datasets/quality.h"
#include "features/encoding.h"
#include "meta/cost_model.h"
#include "meta/learner.h"
#include "meta/model_file.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "study/answer.h"
#include "study/pool.h"
#include "study/prior.h"
#include "study/request.h"
#include "study/rounds.h"
#include "study/space.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::cli {

using study::dataset_file_name;
using study::file_hash;
using study::graft_version;
using study::host_cpu;
using study::model_identity;
using study::model_on;
using study::nothing_ok_text;
using study::platform_hash;
using study::read_datasets;
using study::run_rounds;
using study::schedule_document;
using study::shipped_model;
using study::short_name;
using study::status_counts;

// Where the result of this session's command comes from (study/request.h).
base::Document context_of(const Session& session);

// "modelled seconds" for modelled platforms: such a time is never called a measurement.
std::string seconds_word(std::string_view source);

// --repetitions, --minimum-ms, --timeout: how long a candidate is timed.
struct MeasureFlags : study::Timing {
  void declare(Options& options);
  void check() const;  // UserError for what no measurer takes
  tasks::MeasureSettings settings(double abort_factor, const Session& session) const;  // checked
};

// The reasons why trials or rows failed, by count; nothing if none did. JSON: "failures".
void print_failures(const datasets::FailureCounts& failures, Output& out);

std::string status_line(const base::Document& counts);  // "40 ok, 1 wrong_result"

// --space FILE: a user's space (codegen/schedule/template.h) in place of the derived one.
struct SpaceFlag {
  std::string file;
  void declare(Options& options);
  // UserError when none of its schedules is possible: before there is a folder, not in the middle of a run.
  codegen::Space space(const codegen::Workload& workload, const codegen::Target& target) const;
  void put(base::Document& request) const;  // the file's hash
};

// The workloads that texts name, suites (`suite:shipped`) among them. UserError for one that is given twice.
std::vector<codegen::Workload> workloads_of(const std::vector<std::string>& texts);

// The place behind an unreadable --out is checked before hours of work: UserError when its folder does not exist.
void check_output_folder(const std::filesystem::path& out);

// --model, --encoding, --hidden, --embedding, --units, --slots, --backend, --steps: which network is trained, on what.
struct NetworkFlags {
  std::string model = "mlp", encoding, backend = "native", device = "cpu", loss;
  std::vector<std::string> hidden;
  std::int64_t embedding, units, slots, steps = 0, members = 1;
  bool guard = false, model_is_chosen = false;
  NetworkFlags();
  void declare(Options& options);
  // The learner that --learner and --model mean together: with gbt, trees take the place of the pooled network and of
  // the regression from scratch. UserError for a learner of networks.
  std::string used_learner(const std::string& learner) const;
  // Where no --model is asked for: trees if the learner can have them, no flag is of networks alone and the data are no
  // tables (`fit`), else an MLP.
  void choose_model(const std::string& learner);
  // UserError for a learner of networks with --model gbt, whatever it is asked for.
  void check_learner(const std::string& learner) const;
  // Where no encoding is asked for, rows of tables have the one that they can have: columns.
  void fit(const std::vector<datasets::Dataset>& data);
  // UserError when model and encoding do not go together.
  const features::Encoding& used_encoding() const;
  std::string used_backend() const;  // UserError for --device cuda where LibTorch has none
  meta::LearnerSettings settings(const Session& session) const;
  void put(base::Document& request) const;           // what decides the numbers
  void put_training(base::Document& request) const;  // of these what a model that is continued has not of its own
};

// {"mean":...,"low":...,"high":...}, null for what is not known, and back.
base::Document interval_document(const base::Interval& value);
base::Interval interval_from(const base::Document& document);
// "0.713 [0.650, 0.780]", "0.713" where there is no interval, "-" where there is no mean. `number`: a format of fmt.
std::string interval_text(const base::Interval& value, std::string_view number = "{:.3f}");

// DATA.h5..., --rows, --sketches: what is learned from, and judged on.
struct DataFlags {
  std::vector<std::string> files, sketches;
  std::int64_t rows = 0;
  void declare(Options& options, const std::string& help);
  std::vector<datasets::Dataset> read(const Session& session) const;  // UserError for sketches that occur nowhere
  void put(base::Document& request) const;                            // but the files
};

// "passed", or which gates it missed; a share in per cent, "-" for none.
std::string gates_text(const datasets::Quality& quality);
std::string share_text(double share);

// Notes which rows a task set leaves out, and why.
void note_left_out(const meta::TaskSet& tasks, Progress& progress);

}  // namespace graft::cli
