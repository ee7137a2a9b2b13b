#include "base/files.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/inspect/inspect.h"
#include "cli/result_kind.h"
#include "cli/texts.h"
#include "datasets/groups.h"
#include "datasets/hdf5.h"
#include "datasets/quality.h"
#include "meta/kept_measurements.h"
#include "meta/model_file.h"
#include "tasks/platform.h"

namespace graft::cli {
namespace {

// The part of a card that is a table; the dataset's provenance below has the rest.
void print_quality(const datasets::Dataset& dataset, Output& out) {
  Table table({"workload", "programs", "failed", "max/min", "variation", "of 9 in 10", "gates", "held out in"});
  for (const datasets::Quality& own : datasets::quality(dataset)) {
    table.row({own.workload.text(), std::to_string(own.programs), share_text(own.failed), number_text(own.spread, 1),
               share_text(own.variation), share_text(own.variation_90), gates_text(own),
               datasets::workload_split(datasets::fold_of(own.workload))});
  }
  const datasets::Gates gates;
  const std::string_view role = datasets::role_of(dataset.platform);
  out.line(fmt::format(
      "\ncard: gates are max/min >= {}, failed <= {:.0f} %, variation (of repetitions, median) <= {:.0f} %; split "
      "'platforms': {}\n",
      gates.least_spread, 100 * gates.most_failed, 100 * gates.most_variation, role.empty() ? "in no part" : role));
  out.table(table);
}

// What it wrote for kernels of OpenCL, which have one variant each.
int inspect_opencl(const base::Document& library, const InspectFlags& flags, Session& session) {
  const base::Document::List& functions = library.at("functions").as_list();
  session.output.line(fmt::format("{}: library {} of {} of OpenCL for {}, made by graft {}\n", flags.what,
                                  library.at("name").as_string(), base::counted(functions.size(), "function"),
                                  library.at("platform").as_string(), library.at("graft").as_string()));
  Table table({"function", "workload", "source", "time", "results"});
  for (const base::Document& function : functions)
    table.row({function.at("name").as_string(), function.at("workload").as_string(), function.at("source").as_string(),
               seconds_text(function.at("seconds").as_number()),
               fmt::format("right ({})", function.at("check").as_string())});
  session.output.table(table);
  session.output.json().set("kind", "opencl").set("library", library);
  return done;
}

// What graft compile wrote next to a library (docs/reference/library-json.md).
int inspect_library(const base::Document& library, const InspectFlags& flags, Session& session) {
  Output& out = session.output;
  const base::Document::List& functions = library.at("functions").as_list();
  const std::string platform = library.at("platform").as_string();
  out.line(fmt::format("{}: library {} of {} for {}, made by graft {}\n", flags.what, library.at("name").as_string(),
                       base::counted(functions.size(), "function"), platform, library.at("graft").as_string()));
  Table table({"function", "workload", "variants", "time", "results", "prepared", "scratch"});
  for (const base::Document& function : functions) {
    const base::Document::List& variants = function.at("variants").as_list();
    if (variants.empty()) throw base::UserError(function.place(), "a function without a variant");
    const std::string check = variants.front().at("check").as_string();
    table.row({function.at("name").as_string(), function.at("workload").as_string(), std::to_string(variants.size()),
               seconds_text(variants.front().at("seconds").as_number()),
               check == "none" ? "not checked" : fmt::format("right ({})", check),
               fmt::format("{} bytes", function.at("prepared_bytes").as_integer()),
               fmt::format("{} bytes", function.at("scratch_bytes").as_integer())});
  }
  out.table(table);
  out.json().set("kind", "library").set("library", library);
  return done;
}

// A list of features, whole: as lines that a table has room for.
std::string in_lines(std::string_view features) {
  constexpr std::size_t widest = 80;
  std::string text;
  std::size_t begin = 0;
  for (const std::string_view feature : base::split(features, ',')) {
    if (!text.empty()) text += ',';
    if (text.size() - begin + feature.size() > widest) {
      text += '\n';
      begin = text.size();
    }
    text += feature;
  }
  return text;
}

}  // namespace

int inspect_dataset(const InspectFlags& flags, Session& session) {
  const datasets::Dataset dataset = datasets::read_dataset(flags.what);
  Summary summary;
  for (const codegen::Workload& workload : dataset.workloads) {
    summary.workloads.push_back(workload);
    summary.times.emplace_back();
  }
  for (const datasets::Dataset::Row& row : dataset.rows)
    summary.add(dataset.workloads[std::size_t(row.workload)], row.measurement);
  Output& out = session.output;
  out.line(fmt::format("{}: dataset of {} ({}), {}, {}, {}\n", flags.what, dataset.platform, dataset.source,
                       base::counted(dataset.rows.size(), "row"), base::counted(dataset.workloads.size(), "workload"),
                       base::counted(dataset.sketches.size(), "sketch")));
  out.json()
      .set("kind", "dataset")
      .set("platform", dataset.platform)
      .set("source", dataset.source)
      .set("rows", dataset.rows.size())
      .set("provenance", dataset.provenance)
      .set("target", codegen::to_document(dataset.target))
      .set("card", datasets::card(dataset));
  print_summary(summary, dataset.source, out);
  print_quality(dataset, out);
  out.line("");
  print_fields(dataset.provenance, out);
  return done;
}

int inspect_model(const InspectFlags& flags, Session& session) {
  const meta::ModelFile file = meta::load_model(flags.what);
  const features::Encoding& encoding = *file.encoding;
  Output& out = session.output;
  const bool informed = file.model->is_informed();
  out.line(fmt::format(
      "{}: model {} of kind {}{}, encoding {} {} ({} features), {}\n", flags.what, file.hash, file.model->kind(),
      informed ? "" : " that knows nothing yet", encoding.name, base::to_hex(encoding.hash), encoding.features.size(),
      base::counted(meta::count(file.known), "known program") +
          (file.kept.empty() ? ""
                             : fmt::format(", {} given back by searches",
                                           base::counted(meta::programs_in(file.kept), "measurement")))));
  out.json()
      .set("kind", "model")
      .set("model", std::string(file.model->kind()))
      .set("hash", file.hash)
      .set("informed", informed)
      .set("encoding", encoding.name)
      .set("encoding_hash", base::to_hex(encoding.hash))
      .set("known_programs", meta::count(file.known))
      .set("kept_programs", meta::programs_in(file.kept))
      .set("provenance", file.provenance)
      .set("card", file.card);
  out.text(file.card);
  out.line("");
  print_fields(file.provenance, out);
  return done;
}

int inspect_platform(const InspectFlags& flags, Session& session) {
  const tasks::Platform platform = tasks::platform_named(flags.what);
  session.output.line(fmt::format("{}: platform {} ({}), {}\n", flags.what, platform.name, platform.device->source(),
                                  platform.description));
  base::Document target = codegen::to_document(platform.target);
  // How it is measured, as its YAML says.
  const base::Document described = base::parse_yaml(platform.yaml, flags.what);
  base::Document how = base::Document::map();
  for (const tasks::DeviceKind& kind : tasks::device_kinds())
    if (const base::Document* const value = described.find(kind.key)) how.set(std::string(kind.key), *value);
  base::Document fields = target;
  fields.set("features", base::Document(in_lines(platform.target.features)));
  for (const auto& [key, value] : how.as_map()) fields.set(key, value);
  print_fields(fields, session.output);
  session.output.json()
      .set("kind", "platform")
      .set("platform", platform.name)
      .set("source", platform.device->source())
      .set("target", std::move(target));
  for (const auto& [key, value] : how.as_map()) session.output.json().set(key, value);
  return done;
}

int inspect_result(const InspectFlags& flags, Session& session) {
  const base::Document document = base::parse_json(base::read_file(flags.what), flags.what);
  if (document.find("schema") == nullptr)
    throw base::UserError(flags.what, "JSON, but no result of graft (key 'schema' is missing)");
  const std::string of = kind_of(document);
  if (of == "library") return inspect_library(document, flags, session);
  if (of == "opencl") return inspect_opencl(document, flags, session);
  const bool evaluation = of == "evaluate";
  const std::string kind = evaluation ? "evaluation" : of.starts_with("compare") ? "comparison" : "result";
  session.output.line(fmt::format("{}: {}{}{}; graft report makes a page of it\n", flags.what, kind,
                                  kind == "result" && !of.empty() ? " of graft " + of : "",
                                  evaluation ? ", " + base::counted(document.at("rows").as_list().size(), "row") : ""));
  base::Document head = base::Document::map();
  for (const auto& [key, value] : document.as_map()) {
    if (!value.is_list()) head.set(key, value);
  }
  print_fields(head, session.output);
  session.output.json().set("kind", kind).set("head", head);
  return done;
}

}  // namespace graft::cli
