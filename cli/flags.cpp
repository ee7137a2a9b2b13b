#include "cli/flags.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "base/error.h"
#include "study/space.h"

namespace graft::cli {

void MeasureFlags::declare(Options& options) {
  options.integer("repetitions", repetitions, 1, "timed repetitions of each candidate");
  options.number("minimum-ms", minimum_ms, 1e-3, "least duration of a repetition, in milliseconds");
  options.number("timeout", timeout, 1e-3, "seconds for one candidate in total");
}

void MeasureFlags::check() const {
  if (repetitions > 64) throw base::UserError("--repetitions", fmt::format("must be at most 64, got {}", repetitions));
}

tasks::MeasureSettings MeasureFlags::settings(double abort_factor, const Session& session) const {
  check();
  return Timing::settings(abort_factor, session.threads);
}

void SpaceFlag::declare(Options& options) {
  options.text("space", file, "file with sketches, domains and conditions (examples/matmul.space); default: by rule");
}

codegen::Space SpaceFlag::space(const codegen::Workload& workload, const codegen::Target& target) const {
  return study::space_of({.file = file}, workload, target);
}

void DataFlags::declare(Options& options, const std::string& help) {
  options.positionals("DATA.h5", files, help);
  options.integer("rows", rows, 0,
                  "use at most this many programs of each workload in each file, drawn by the seed; 0: all");
  options.list("workloads", workloads, "use the rows of these workloads only");
  options.list("sketches", sketches, "use the rows of these sketches (graft inspect) only, such as conv2d_NCHWc.x86");
}

void ModelFlags::declare(Options& options) {
  options.text("model", choice.model,
               choice.model.empty()
                   ? "mlp, treegru (a network on trees), or gbt (boosted decision trees on any encoding); "
                     "default: gbt where the "
                     "learner can have trees and the data are not tables, else mlp"
                   : "mlp, treegru (a network on trees), or gbt (boosted decision trees on any encoding)");
  options.text(
      "encoding", choice.encoding,
      "feature list; default: context_relation, for gbt context_relation+on_target, for treegru tree, for tables "
      "columns");
  options.list("hidden", hidden, "widths of the hidden layers; default: 128,64, for treegru (after its slots) 64");
  options.integer("embedding", choice.embedding, 1, "treegru: width of a node's embedded features");
  options.integer("units", choice.units, 1, "treegru: width of a node's state");
  options.integer("slots", choice.slots, 1, "treegru: memory slots that the nodes' states are scattered over");
  options.text("backend", choice.backend, "of networks: native or torch");
  options.text("device", choice.device, "cpu, or cuda: networks on LibTorch's first CUDA device (backend torch)");
  options.integer("steps", choice.steps, 0, "outer steps of the learners, or boosted trees; 0: their own number");
  options.text("loss", choice.loss, "the loss that is minimised: rank, squared or lambda; default: the learner's own");
  options.integer("members", choice.members, 1,
                  "from 2 on an ensemble of this many models, each trained on 80 % of the programs");
  options.text("known-rows", choice.known_rows,
               "of tables: whether the sources' own times of a row are evidence for it: yes, no, or automatic: if the "
               "parameters say next to nothing about the sources' rows");
  options.flag("guard", choice.guard, "let the support choose between the model and regression from scratch");
}

study::ModelChoice ModelFlags::chosen() const {
  study::ModelChoice chosen = choice;
  chosen.hidden = integers_of("--hidden", hidden, 1);
  return chosen;
}

double seconds_of(const char* flag, const std::string& text) {
  try {
    return base::seconds_from(text);
  } catch (const base::UserError& error) {
    throw base::UserError(flag, error.what());
  }
}

void make_output_folder(const std::filesystem::path& out) {
  std::error_code error;
  std::filesystem::create_directory(out, error);
  if (std::filesystem::is_directory(out)) return;
  throw base::UserError("--out", fmt::format("several platforms need a folder, and {} cannot be made one: {}",
                                             out.string(), error ? error.message() : "it is a file"));
}

}  // namespace graft::cli
