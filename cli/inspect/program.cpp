#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/shortened.h"
#include "base/text.h"
#include "cli/inspect/inspect.h"
#include "codegen/expression/parse.h"
#include "codegen/expression/suites.h"
#include "codegen/machine/compile.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/space.h"
#include "search/programs.h"
#include "study/knowledge/answer.h"

namespace graft::cli {

void print_program(const codegen::Candidate& candidate, const std::string& pipeline, const codegen::Target& target,
                   const InspectFlags& flags, Session& session) {
  Output& out = session.output;
  const auto program = codegen::program(candidate, target);
  if (!program) throw base::Failure(fmt::format("this candidate does not lower: {}", program.reason().text));
  out.line(fmt::format("schedule of sketch {}:", candidate.sketch->name));
  const base::Document schedule = study::schedule_document(candidate);
  for (const base::Document& step : schedule.as_list()) out.line("  " + step.as_string());
  out.json().set("schedule", schedule).set("program_hash", base::to_hex(codegen::hash(*program)));
  if (flags.program) {
    out.line("\nprogram " + base::to_hex(codegen::hash(*program)) + ":");
    out.text(codegen::to_text(*program));
    out.json().set("program", codegen::to_document(*program)).set("program_text", codegen::to_text(*program));
  }
  if (flags.features) {
    const features::Encoding& encoding = features::encoding_named(flags.encoding);
    const features::Encoded encoded = encoding.encode({&*program, &candidate, &target});
    base::Document rows = base::Document::list();
    out.line(fmt::format("\nfeatures ({}):", encoding.name));
    for (std::int64_t r = 0; r < encoded.rows.rows; ++r) {
      Table table({"feature", "value", "unit", "definition"});
      base::Document values = base::Document::map();
      for (std::size_t f = 0; f < encoding.features.size(); ++f) {
        const features::Feature& feature = encoding.features[f];
        const float value = encoded.rows.at(r, std::int64_t(f));
        table.row({feature.name, fmt::format("{:.6g}", value), feature.unit, feature.definition});
        values.set(feature.name, double(value));
      }
      if (encoding.shape == features::Shape::rows) out.line(fmt::format("row {}:", r));
      if (encoding.shape == features::Shape::tree)
        out.line(fmt::format("node {}, in {}:", r, encoded.parents[std::size_t(r)]));
      out.table(table);
      rows.push(std::move(values));
    }
    out.json().set("features", encoding.shape == features::Shape::row ? rows.as_list().front() : std::move(rows));
  }
  if (flags.ir || flags.assembly) {
    const auto listing = codegen::listing(*program, target, codegen::pipeline_named(pipeline, target));
    if (!listing) throw base::Failure(fmt::format("no code: {}", listing.reason().text));
    if (flags.ir) {
      out.line("\nLLVM IR:");
      out.text(listing->ir);
      out.json().set("llvm_ir", listing->ir);
    }
    if (flags.assembly) {
      out.line("\nassembly for " + target.cpu + ":");
      out.text(listing->assembly);
      out.json().set("assembly", listing->assembly);
    }
  }
}

int inspect_suite(const InspectFlags& flags, Session& session) {
  base::Document workloads = base::Document::list();
  for (const codegen::Workload& workload : codegen::parse_workloads(flags.what)) {
    session.output.line(workload.text());
    workloads.push(workload.text());
  }
  session.output.json().set("kind", "suite").set("workloads", std::move(workloads));
  return done;
}

int inspect_workload(const InspectFlags& flags, Session& session) {
  const codegen::Workload workload = codegen::parse_workload(flags.what);
  const tasks::Platform platform = tasks::platform_named(flags.platform.empty() ? "native" : flags.platform);
  const codegen::Computation computation = workload.computation();
  const codegen::Space space = flags.space.space(workload, platform.target);
  Output& out = session.output;
  out.json()
      .set("kind", "workload")
      .set("workload", workload.text())
      .set("computation", codegen::to_text(computation))
      .set("flops", codegen::flops(workload))
      .set("platform", platform.name)
      .set("space_size", space.size())
      .set("space_hash", base::to_hex(space.hash()));
  if (flags.wants_program()) {
    base::Stream stream(session.seed, "inspect");
    out.line(fmt::format("a random candidate of {} for {} (--seed {})", workload.text(), platform.name, session.seed));
    search::Programs programs(platform.target);
    print_program(space.sample(stream, programs), "", platform.target, flags, session);
    return done;
  }
  out.line(fmt::format("workload {}\n\n{}\n", base::shortened(workload.text()), codegen::to_text(computation)));
  out.line(fmt::format("arithmetic operations: {}", codegen::flops(workload)));
  out.line(fmt::format("space for {}: {:.4g} points in {}\n", platform.name, space.size(),
                       base::counted(space.sketches().size(), "sketch")));
  base::Document sketches = base::Document::list();
  for (const codegen::SketchSpace& sketch : space.sketches()) {
    out.text(codegen::to_text(*sketch.sketch));
    Table table({"domain", "values"});
    for (const codegen::Domain& domain : sketch.domains) table.row({domain.name, std::to_string(domain.values.size())});
    out.table(table);
    for (const codegen::Condition& condition : sketch.forbids) out.line("forbid " + condition.text());
    out.line("");
    sketches.push(codegen::to_text(*sketch.sketch));
  }
  out.json().set("sketches", std::move(sketches));
  return done;
}

}  // namespace graft::cli
