#include "cli/commands/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/shortened.h"
#include "base/text.h"
#include "codegen/expression/suites.h"
#include "codegen/schedule/template.h"
#include "datasets/groups.h"
#include "meta/methods/methods.h"

namespace graft::cli {

base::Document context_of(const Session& session) {
  return study::context_of(session.command_line);
}

std::string seconds_word(std::string_view source) {
  return source == "modelled" ? "modelled seconds" : "seconds";
}

void MeasureFlags::declare(Options& options) {
  options.integer("repetitions", repetitions, 1, "timed repetitions of each candidate");
  options.number("minimum-ms", minimum_ms, 1e-3, "least duration of a repetition, in milliseconds");
  options.number("timeout", timeout, 1e-3, "seconds for one candidate in all");
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

void SpaceFlag::put(base::Document& request) const {
  study::put({.file = file}, request);
}

std::vector<codegen::Workload> workloads_of(const std::vector<std::string>& texts) {
  std::vector<codegen::Workload> all;
  for (const std::string& text : texts) {
    for (const codegen::Workload& workload : codegen::parse_workloads(text)) {
      if (std::find(all.begin(), all.end(), workload) != all.end())
        throw base::UserError(base::shortened(workload.text), "this workload is given twice");
      all.push_back(workload);
    }
  }
  return all;
}

void print_failures(const datasets::FailureCounts& failures, Output& out) {
  constexpr std::size_t most_shown = 10;
  const std::vector<datasets::FailureKind> kinds = failures.kinds();
  base::Document list = base::Document::list();
  Table table({"failed", "reason"});
  for (const datasets::FailureKind& kind : kinds) {
    base::Document entry = base::Document::map();
    entry.set("count", kind.count)
        .set("status", std::string(datasets::name_of(kind.status)))
        .set("reason", kind.reason);
    list.push(std::move(entry));
    if (table.rows().size() < most_shown) table.row({std::to_string(kind.count), datasets::to_text(kind)});
  }
  out.json().set("failures", std::move(list));
  if (table.empty()) return;
  out.line("");
  out.table(table);
  if (kinds.size() > most_shown) out.line(fmt::format("and {} more reasons (--json)", kinds.size() - most_shown));
}

std::string status_line(const base::Document& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts.as_map()) parts.push_back(fmt::format("{} {}", count.as_integer(), name));
  return parts.empty() ? "none" : base::join(parts, ", ");
}

void check_output_folder(const std::filesystem::path& out) {
  const std::filesystem::path folder = out.has_parent_path() ? out.parent_path() : ".";
  if (!std::filesystem::is_directory(folder)) {
    throw base::UserError(
        "--out", fmt::format("{}: the folder {} does not exist; make it first", out.string(), folder.string()));
  }
  if (std::filesystem::is_directory(out))
    throw base::UserError("--out", fmt::format("{} is a folder; name a file", out.string()));
}

namespace {

// What `work` returns. What is wrong with the user's wish is said of these flags.
template <class Work>
auto naming(const std::string& flags, const Work& work) {
  try {
    return work();
  } catch (const base::UserError& error) {
    throw base::UserError(flags, error.what());
  }
}

// Trees take any rows, and no network is left whose kind could be wrong.
bool is_trees(const NetworkFlags& flags) {
  return flags.model == "gbt";
}

meta::NetworkKind kind_of(const NetworkFlags& flags) {
  if (is_trees(flags)) return meta::NetworkKind::mlp;
  return naming("--model", [&] { return meta::network_kind_named(flags.model); });
}

// Layers before the output: of the MLP, of the TreeGRU's decoder.
std::vector<std::string> hidden_of(const NetworkFlags& flags) {
  if (!flags.hidden.empty()) return flags.hidden;
  if (kind_of(flags) == meta::NetworkKind::treegru) return {"64"};
  return {"128", "64"};
}

}  // namespace

NetworkFlags::NetworkFlags() {
  const meta::NetworkShape::Tree widths;
  embedding = widths.embedding;
  units = widths.units;
  slots = widths.slots;
}

void NetworkFlags::declare(Options& options) {
  options.text("model", model,
               model.empty() ? "mlp, treegru (a network on trees), or gbt (boosted decision trees on any encoding); "
                               "default: gbt where the "
                               "learner can have trees and the data are no tables, else mlp"
                             : "mlp, treegru (a network on trees), or gbt (boosted decision trees on any encoding)");
  options.text(
      "encoding", encoding,
      "feature list; default: context_relation, for gbt context_relation+on_target, for treegru tree, for tables "
      "columns");
  options.list("hidden", hidden, "widths of the hidden layers; default: 128,64, for treegru (behind its slots) 64");
  options.integer("embedding", embedding, 1, "treegru: width of a node's embedded features");
  options.integer("units", units, 1, "treegru: width of a node's state");
  options.integer("slots", slots, 1, "treegru: memory slots that the nodes' states are scattered over");
  options.text("backend", backend, "of networks: native or torch");
  options.text("device", device, "cpu, or cuda: networks on LibTorch's first CUDA device (backend torch)");
  options.integer("steps", steps, 0, "outer steps of the learners, or boosted trees; 0: their own number");
  options.text("loss", loss, "what is descended: rank, squared or lambda; default: the learner's own");
  options.integer("members", members, 1, "from 2 on an ensemble: so many models, each trained on 80 % of the programs");
  options.flag("guard", guard, "let the support choose between the model and regression from scratch");
}

std::string NetworkFlags::used_learner(const std::string& learner) const {
  return naming("--model", [&] { return meta::method_with(learner, is_trees(*this)).name; });
}

void NetworkFlags::choose_model(const std::string& learner) {
  if (!model.empty()) return;
  const bool network = !hidden.empty() || backend != "native" || device != "cpu" || encoding == "tree";
  model = meta::prefers_trees(meta::method_named(learner)) && !network ? "gbt" : "mlp";
  model_is_chosen = true;
}

void NetworkFlags::check_learner(const std::string& learner) const {
  const meta::Method& method = meta::method_named(learner);
  naming("--model", [&] { meta::check_made_of(method, is_trees(*this)); });
}

void NetworkFlags::fit(const std::vector<datasets::Dataset>& data) {
  if (!encoding.empty() || kind_of(*this) == meta::NetworkKind::treegru || !meta::are_tables(data)) return;
  encoding = meta::encoding_of_tables().name;
  if (model_is_chosen) model = "mlp";
}

const features::Encoding& NetworkFlags::used_encoding() const {
  const meta::NetworkKind kind = kind_of(*this);
  const features::Encoding& used =
      encoding.empty() ? meta::usual_encoding(is_trees(*this), kind) : features::encoding_named(encoding);
  if (!is_trees(*this)) naming("--model, --encoding", [&] { meta::check_fits(kind, used); });
  return used;
}

std::string NetworkFlags::used_backend() const {
  const std::vector<std::string> known{"native", "torch"}, devices{"cpu", "cuda"};
  if (std::find(known.begin(), known.end(), backend) == known.end())
    throw base::UserError("--backend",
                          fmt::format("unknown backend '{}'{}", backend, base::did_you_mean(backend, known)));
  if (std::find(devices.begin(), devices.end(), device) == devices.end())
    throw base::UserError("--device", fmt::format("expected cpu or cuda, got '{}'", device));
  if (device == "cpu") return backend;
  meta::check_backend("torch-cuda");
  return "torch-cuda";
}

meta::LearnerSettings NetworkFlags::settings(const Session& session) const {
  meta::LearnerSettings settings;
  settings.network.kind = kind_of(*this);
  settings.network.hidden = integers_of("--hidden", hidden_of(*this), 1);
  settings.network.tree = {embedding, units, slots};
  settings.backend = used_backend();
  settings.trees = is_trees(*this);
  if (!loss.empty()) settings.loss = meta::loss_named(loss);
  settings.members = int(std::min<std::int64_t>(members, 1000));
  settings.steps = steps;
  settings.guard = guard;
  settings.seed = session.seed;
  settings.threads = session.threads;
  return settings;
}

void NetworkFlags::put(base::Document& request) const {
  request.set("model", model)
      .set("encoding", used_encoding().name)
      .set("encoding_hash", base::to_hex(used_encoding().hash));
  if (!is_trees(*this)) request.set("hidden", base::join(hidden_of(*this), ","));
  if (kind_of(*this) == meta::NetworkKind::treegru)
    request.set("embedding", embedding).set("units", units).set("slots", slots);
  put_training(request);
  if (members > 1) request.set("members", members);
  if (guard) request.set("guard", true);
}

void NetworkFlags::put_training(base::Document& request) const {
  request.set("backend", used_backend()).set("steps", steps);
  if (!loss.empty()) request.set("loss", loss);
}

base::Document interval_document(const base::Interval& value) {
  base::Document out = base::Document::map();
  return out.set("mean", value.mean).set("low", value.low).set("high", value.high);
}

base::Interval interval_from(const base::Document& document) {
  const auto number = [&](const char* key) {
    const base::Document& value = document.at(key);
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.as_number();
  };
  return {number("mean"), number("low"), number("high")};
}

std::string interval_text(const base::Interval& value, std::string_view number) {
  const auto text = [&](double each) { return fmt::format(fmt::runtime(number), each); };
  if (!std::isfinite(value.mean)) return "-";
  if (!std::isfinite(value.low)) return text(value.mean);
  return fmt::format("{} [{}, {}]", text(value.mean), text(value.low), text(value.high));
}

void DataFlags::declare(Options& options, const std::string& help) {
  options.positionals("DATA.h5", files, help);
  options.integer("rows", rows, 0,
                  "use at most so many programs of each workload in each file, drawn by the seed; 0: all");
  options.list("sketches", sketches, "use the rows of these sketches (graft inspect) only, such as conv2d_NCHWc.x86");
}

std::vector<datasets::Dataset> DataFlags::read(const Session& session) const {
  std::vector<datasets::Dataset> all = read_datasets(files, session.progress);
  if (rows == 0 && sketches.empty()) return all;
  std::set<std::string> distinct;
  for (const datasets::Dataset& dataset : all) {
    for (const auto& sketch : dataset.sketches) distinct.insert(sketch->name);
  }
  const std::vector<std::string> known(distinct.begin(), distinct.end());
  for (const std::string& name : sketches) {
    if (!distinct.contains(name))
      throw base::UserError("--sketches", fmt::format("no row is of '{}'{}", name, base::did_you_mean(name, known)));
  }
  for (datasets::Dataset& dataset : all) dataset = datasets::narrowed(dataset, sketches, rows, session.seed);
  return all;
}

void DataFlags::put(base::Document& request) const {
  if (rows > 0) request.set("rows", rows);
  if (!sketches.empty()) request.set("sketches", base::join(sketches, ","));
}

std::string gates_text(const datasets::Quality& quality) {
  return quality.missed.empty() ? "passed" : "missed: " + base::join(quality.missed, ", ");
}

std::string share_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "-";
}

void note_left_out(const meta::TaskSet& tasks, Progress& progress) {
  if (tasks.stale_rows > 0) {
    progress.note(
        fmt::format("{} rows are stale (their programs lower to something else today) and left out", tasks.stale_rows));
  }
  for (const meta::TaskSet::WithoutProgram& each : tasks.without_program)
    progress.note(fmt::format("{} rows have no program and are left out: {}", each.rows, each.reason));
}

}  // namespace graft::cli
