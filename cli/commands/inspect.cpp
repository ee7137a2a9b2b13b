#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/statistics.h"
#include "base/text.h"
#include "cli/commands/best.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "codegen/expression/parse.h"
#include "codegen/machine/compile.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/space.h"
#include "datasets/groups.h"
#include "datasets/hdf5.h"
#include "datasets/journal.h"
#include "datasets/quality.h"
#include "features/example.h"
#include "meta/model_file.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string what, platform, workload, encoding = "context_relation";
  SpaceFlag space;
  bool program = false, assembly = false, features = false;
  bool wants_program() const { return program || assembly || features; }
};

// Rows of a dataset or trials of a journal, by workload.
struct Times {
  std::int64_t rows = 0;
  std::vector<double> seconds;  // of those that are ok
};
struct Summary {
  std::vector<codegen::Workload> workloads;
  std::vector<Times> times;
  datasets::FailureCounts failures;

  void add(const codegen::Workload& workload, const datasets::Measurement& measurement) {
    auto found = std::find(workloads.begin(), workloads.end(), workload);
    if (found == workloads.end()) {
      workloads.push_back(workload);
      times.emplace_back();
      found = workloads.end() - 1;
    }
    Times& own = times[std::size_t(found - workloads.begin())];
    ++own.rows;
    failures.add(measurement);
    if (measurement.status == datasets::Status::ok) own.seconds.push_back(datasets::seconds_of(measurement));
  }
};

void print_summary(const Summary& summary, std::string_view source, Output& out) {
  Table table({"workload", "rows", "ok", fmt::format("best {}", seconds_word(source)), "median", "max/min"});
  base::Document rows = base::Document::list();
  for (std::size_t w = 0; w < summary.workloads.size(); ++w) {
    const Times& times = summary.times[w];
    base::Document row = base::Document::map();
    row.set("workload", summary.workloads[w].text).set("rows", times.rows).set("ok", times.seconds.size());
    if (times.seconds.empty()) {
      table.row({summary.workloads[w].text, std::to_string(times.rows), "0", "-", "-", "-"});
    } else {
      const auto [best, worst] = std::minmax_element(times.seconds.begin(), times.seconds.end());
      const double median = base::median(times.seconds);
      table.row({summary.workloads[w].text, std::to_string(times.rows), std::to_string(times.seconds.size()),
                 seconds_text(*best), seconds_text(median), number_text(*worst / *best, 1)});
      row.set("best_seconds", *best).set("median_seconds", median).set("worst_seconds", *worst);
    }
    rows.push(std::move(row));
  }
  out.table(table);
  out.json().set("workloads", std::move(rows));
  print_failures(summary.failures, out);
}

// A map as lines of text, nested keys with dots.
void print_fields(const base::Document& map, const std::string& prefix, Table& table) {
  for (const auto& [key, value] : map.as_map()) {
    if (value.is_map()) {
      print_fields(value, prefix + key + ".", table);
    } else {
      const std::string text = value.is_string() ? value.as_string() : value.to_json();
      std::string field = prefix + key;
      for (const std::string_view line : base::split(base::trim(text), '\n'))
        table.row({std::exchange(field, ""), std::string(line)});
    }
  }
}

void print_fields(const base::Document& map, Output& out) {
  Table table({"field", "value"});
  print_fields(map, "", table);
  if (!table.empty()) out.table(table);
}

// What is asked about one program, `pipeline` as a run names it.
void print_program(const codegen::Candidate& candidate, const std::string& pipeline, const codegen::Target& target,
                   const Flags& flags, Session& session) {
  Output& out = session.output;
  const auto program = codegen::program(candidate, target);
  if (!program) throw base::Failure(fmt::format("this candidate does not lower: {}", program.reason().text));
  out.line(fmt::format("schedule of sketch {}:", candidate.sketch->name));
  const base::Document schedule = schedule_document(candidate);
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
  if (flags.assembly) {
    const auto text = codegen::assembly(*program, target, study::pipeline_named(pipeline, target));
    if (!text) throw base::Failure(fmt::format("no assembly: {}", text.reason().text));
    out.line("\nassembly for " + target.cpu + ":");
    out.text(*text);
    out.json().set("assembly", *text);
  }
}

int inspect_workload(const Flags& flags, Session& session) {
  const codegen::Workload workload = codegen::parse_workload(flags.what);
  const tasks::Platform platform = tasks::platform_named(flags.platform.empty() ? "native" : flags.platform);
  const codegen::Computation computation = codegen::computation(workload);
  const codegen::Space space = flags.space.space(workload, platform.target);
  Output& out = session.output;
  out.json()
      .set("kind", "workload")
      .set("workload", workload.text)
      .set("computation", codegen::to_text(computation))
      .set("flops", codegen::flops(workload))
      .set("platform", platform.name)
      .set("space_size", space.size())
      .set("space_hash", base::to_hex(space.hash()));
  if (flags.wants_program()) {
    base::Stream stream(session.seed, "inspect");
    out.line(fmt::format("a random candidate of {} for {} (--seed {})", workload.text, platform.name, session.seed));
    print_program(space.sample(stream), "", platform.target, flags, session);
    return done;
  }
  out.line(fmt::format("workload {}\n\n{}\n", workload.text, codegen::to_text(computation)));
  out.line(fmt::format("arithmetic operations: {}", codegen::flops(workload)));
  out.line(fmt::format("space for {}: {:.4g} points in {} sketches\n", platform.name, space.size(),
                       space.sketches().size()));
  base::Document sketches = base::Document::list();
  for (const codegen::SketchSpace& sketch : space.sketches()) {
    out.text(codegen::to_text(*sketch.sketch));
    Table table({"domain", "values"});
    for (const codegen::Domain& domain : sketch.domains) table.row({domain.name, std::to_string(domain.values.size())});
    out.table(table);
    for (const codegen::Condition& condition : sketch.forbids) out.line("forbid " + condition.text);
    out.line("");
    sketches.push(codegen::to_text(*sketch.sketch));
  }
  out.json().set("sketches", std::move(sketches));
  return done;
}

// The part of a card that is a table; what it says of the making, the dataset's provenance says below.
void print_quality(const datasets::Dataset& dataset, Output& out) {
  Table table({"workload", "programs", "failed", "max/min", "variation", "of 9 in 10", "gates", "held out in"});
  for (const datasets::Quality& own : datasets::quality(dataset)) {
    table.row({own.workload.text, std::to_string(own.programs), share_text(own.failed), number_text(own.spread, 1),
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

int inspect_dataset(const Flags& flags, Session& session) {
  const datasets::Dataset dataset = datasets::read_dataset(flags.what);
  Summary summary;
  for (const codegen::Workload& workload : dataset.workloads) {
    summary.workloads.push_back(workload);
    summary.times.emplace_back();
  }
  for (const datasets::Dataset::Row& row : dataset.rows)
    summary.add(dataset.workloads[std::size_t(row.workload)], row.measurement);
  Output& out = session.output;
  out.line(fmt::format("{}: dataset of {} ({}), {} rows, {} workloads, {} sketches\n", flags.what, dataset.platform,
                       dataset.source, dataset.rows.size(), dataset.workloads.size(), dataset.sketches.size()));
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

int inspect_model(const Flags& flags, Session& session) {
  const meta::ModelFile file = meta::load_model(flags.what);
  const features::Encoding& encoding = features::encoding_named(file.encoding);
  Output& out = session.output;
  const bool informed = file.model->is_informed();
  out.line(fmt::format("{}: model {} of kind {}{}, encoding {} {} ({} features)\n", flags.what, file.hash,
                       file.model->kind(), informed ? "" : " that knows nothing yet", file.encoding,
                       base::to_hex(encoding.hash), encoding.features.size()));
  out.json()
      .set("kind", "model")
      .set("model", std::string(file.model->kind()))
      .set("hash", file.hash)
      .set("informed", informed)
      .set("encoding", file.encoding)
      .set("encoding_hash", base::to_hex(encoding.hash))
      .set("provenance", file.provenance)
      .set("card", file.card);
  out.text(file.card);
  out.line("");
  print_fields(file.provenance, out);
  return done;
}

Summary summary_of(const std::vector<datasets::Trial>& trials) {
  Summary summary;
  for (const datasets::Trial& trial : trials) summary.add(trial.candidate.workload, trial.measurement);
  return summary;
}

int inspect_journal(const Flags& flags, Session& session) {
  const datasets::JournalContent journal = datasets::read_journal(flags.what);
  Output& out = session.output;
  out.line(fmt::format("{}: journal, {} trials ({})\n", flags.what, journal.trials.size(),
                       status_line(status_counts(journal.trials))));
  out.json()
      .set("kind", "journal")
      .set("head", journal.head)
      .set("trials", journal.trials.size())
      .set("statuses", status_counts(journal.trials));
  const base::Document* request = journal.head.find("request");
  const base::Document* source = request == nullptr ? nullptr : request->find("source");
  print_summary(summary_of(journal.trials), source == nullptr ? "" : source->as_string(), out);
  out.line("");
  print_fields(journal.head, out);
  return done;
}

int inspect_run(const Flags& flags, Session& session) {
  const search::RunContent run = search::read_run(flags.what);
  const Summary summary = summary_of(run.journal.trials);
  const std::string source = run.request.at("source").as_string();
  Output& out = session.output;
  out.json()
      .set("kind", "run")
      .set("request", run.request)
      .set("trials", run.journal.trials.size())
      .set("statuses", status_counts(run.journal.trials));
  if (flags.wants_program()) {
    if (summary.workloads.empty()) throw base::UserError(flags.what, "no trial is recorded yet");
    const codegen::Workload workload =
        flags.workload.empty() ? summary.workloads.front() : codegen::parse_workload(flags.workload);
    const std::optional<study::Answer> best = study::answer_of(run, workload);
    if (!best) throw base::UserError(flags.what, fmt::format("no trial of {} is ok", base::shortened(workload.text)));
    const tasks::Platform platform =
        flags.platform.empty() ? search::platform_of(run) : tasks::platform_named(flags.platform);
    if (platform_hash(platform) != run.request.at("platform_hash").as_string()) {
      session.progress.note(
          fmt::format("{} is described differently today than when this run was made", platform.name));
    }
    const bool built = !best->pipeline.empty();
    out.line(fmt::format("best of {} on {}: {} {}{}", workload.text, platform.name, seconds_text(best->seconds()),
                         source == "modelled" ? "(modelled)" : "", built ? "built by " + best->pipeline : ""));
    out.json().set("workload", workload.text).set("seconds", best->seconds());
    if (built) out.json().set("pipeline", best->pipeline);
    print_program(best->candidate, best->pipeline, platform.target, flags, session);
    return done;
  }
  out.line(fmt::format("{}: run of graft {}, {} trials ({})\n", flags.what, run.request.at("command").as_string(),
                       run.journal.trials.size(), status_line(status_counts(run.journal.trials))));
  print_fields(run.request, out);
  out.line("");
  print_summary(summary, source, out);
  base::Document best = base::Document::list();
  for (const codegen::Workload& workload : summary.workloads) {
    const std::optional<study::Answer> answer = study::answer_of(run, workload);
    if (!answer) continue;
    const double seconds = answer->seconds(), gflops = answer->gflops();
    const bool built = !answer->pipeline.empty();
    const auto peak = peak_gflops(run.request.at("platform").as_string(), workload);
    const std::string checked = checked_text(source, answer->measurement.check);
    out.line(fmt::format("\nbest of {}: {}{}{}", workload.text, seconds_text(seconds),
                         source == "modelled" ? " (modelled)" : "", built ? ", built by " + answer->pipeline : ""));
    out.line(fmt::format("{} GFLOP/s{}{}", number_text(gflops, 2), peak ? ", " + of_peak_text(gflops, *peak) : "",
                         checked.empty() ? "" : ", results " + checked));
    const base::Document schedule = schedule_document(answer->candidate);
    for (const base::Document& step : schedule.as_list()) out.line("  " + step.as_string());
    base::Document entry = base::Document::map();
    entry.set("workload", workload.text).set("seconds", seconds).set("gflops", gflops).set("schedule", schedule);
    if (peak) entry.set("peak_gflops", *peak);
    if (built) entry.set("pipeline", answer->pipeline);
    best.push(std::move(entry));
  }
  out.json().set("best", std::move(best));
  return done;
}

int inspect_platform(const Flags& flags, Session& session) {
  const tasks::Platform platform = tasks::platform_named(flags.what);
  session.output.line(fmt::format("{}: platform {} ({}), {}\n", flags.what, platform.name, tasks::source_of(platform),
                                  platform.description));
  print_fields(codegen::to_document(platform.target), session.output);
  session.output.json()
      .set("kind", "platform")
      .set("platform", platform.name)
      .set("source", tasks::source_of(platform))
      .set("target", codegen::to_document(platform.target));
  return done;
}

// An encoding's list, and its values of one program.
int inspect_encoding(const features::Encoding& encoding, Session& session) {
  const features::Example example;
  const features::Encoded encoded = encoding.encode(example.subject());
  // Of several rows, the last: the innermost part.
  const std::int64_t row = encoded.rows.rows - 1;
  Output& out = session.output;
  out.line(fmt::format("encoding {} {}: {}\n", encoding.name, base::to_hex(encoding.hash), encoding.description));
  out.line(fmt::format("shape {}, {} columns; the example is this program{}:\n", features::name_of(encoding.shape),
                       encoding.features.size(),
                       encoding.shape == features::Shape::row ? "" : fmt::format("'s row {}", row)));
  out.text(codegen::to_text(example.program()));
  out.line("");
  Table table({"feature", "unit", "example", "definition"});
  base::Document list = base::Document::list();
  for (std::size_t f = 0; f < encoding.features.size(); ++f) {
    const features::Feature& feature = encoding.features[f];
    const float value = encoded.rows.at(row, std::int64_t(f));
    table.row({feature.name, feature.unit, fmt::format("{:.6g}", value), feature.definition});
    base::Document entry = base::Document::map();
    entry.set("name", feature.name).set("unit", feature.unit).set("definition", feature.definition);
    list.push(entry.set("example", double(value)));
  }
  out.table(table);
  out.json()
      .set("kind", "encoding")
      .set("encoding", encoding.name)
      .set("encoding_hash", base::to_hex(encoding.hash))
      .set("description", encoding.description)
      .set("shape", std::string(features::name_of(encoding.shape)))
      .set("example_program", codegen::to_text(example.program()))
      .set("features", std::move(list));
  return done;
}

int inspect_encodings(Session& session) {
  Table table({"encoding", "shape", "columns", "what it is"});
  base::Document list = base::Document::list();
  for (const features::Encoding& encoding : features::encodings()) {
    const std::string shape(features::name_of(encoding.shape));
    table.row({encoding.name, shape, std::to_string(encoding.features.size()), encoding.description});
    base::Document entry = base::Document::map();
    entry.set("name", encoding.name).set("shape", shape).set("columns", encoding.features.size());
    list.push(entry.set("hash", base::to_hex(encoding.hash)).set("description", encoding.description));
  }
  session.output.table(table);
  session.output.json().set("kind", "encodings").set("encodings", std::move(list));
  return done;
}

// What graft tune, evaluate and others print with --json.
int inspect_result(const Flags& flags, Session& session) {
  const base::Document document = base::parse_json(base::read_file(flags.what), flags.what);
  if (document.find("schema") == nullptr)
    throw base::UserError(flags.what, "JSON, but no result of graft (key 'schema' is missing)");
  const bool evaluation = document.find("rows") != nullptr, comparison = document.find("families") != nullptr;
  const std::string kind = evaluation ? "evaluation" : comparison ? "comparison" : "result";
  session.output.line(fmt::format("{}: {}{}; graft report makes a page of it\n", flags.what, kind,
                                  evaluation ? fmt::format(", {} rows", document.at("rows").as_list().size()) : ""));
  base::Document head = base::Document::map();
  for (const auto& [key, value] : document.as_map()) {
    if (!value.is_list()) head.set(key, value);
  }
  print_fields(head, session.output);
  session.output.json().set("kind", kind).set("head", head);
  return done;
}

int inspect(const Flags& flags, Session& session) {
  const std::filesystem::path path = flags.what;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return inspect_run(flags, session);
  if (std::filesystem::exists(path, error)) {
    if (flags.wants_program()) {
      throw base::UserError(flags.what, "--program, --assembly and --features need a run or a workload");
    }
    const std::string extension = path.extension().string();
    if (extension == ".space") {
      throw base::UserError(flags.what, "a space is read for a workload: graft inspect WORKLOAD --space FILE");
    }
    if (extension == ".yaml" || extension == ".yml") return inspect_platform(flags, session);
    if (extension == ".jsonl") return inspect_journal(flags, session);
    if (extension == ".json") return inspect_result(flags, session);
    return datasets::kind_of_file(path) == "dataset" ? inspect_dataset(flags, session) : inspect_model(flags, session);
  }
  if (flags.what == "encodings") return inspect_encodings(session);
  for (const features::Encoding& encoding : features::encodings()) {
    if (encoding.name == flags.what) return inspect_encoding(encoding, session);
  }
  const bool looks_like_path =
      flags.what.find_first_of("([=") == std::string::npos && !flags.what.starts_with("resnet18.");
  if (looks_like_path) {
    throw base::UserError(base::shortened(flags.what),
                          "no such file, run or encoding, and no workload (which looks like 'matmul(m=64,n=64,k=64)')");
  }
  return inspect_workload(flags, session);
}

}  // namespace

Command inspect_command() {
  return {
      .name = "inspect",
      .help = "what is this dataset, model, run, journal, platform, workload or encoding",
      .examples = {"graft inspect data.h5", "graft inspect 'matmul(m=64,n=64,k=64)' --platform model:sifive-p450",
                   "graft inspect runs/c2 --program --assembly", "graft inspect context_relation"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        options.positional("WHAT", flags->what,
                           "a file, a run's folder, a workload, an encoding's name, or 'encodings' for all of them");
        options.text(
            "platform", flags->platform,
            "of a workload: whose space (default: native); of a run: another than its own, for the program there");
        options.text("workload", flags->workload, "of a run with several: whose best program");
        flags->space.declare(options);
        options.flag("program", flags->program, "the loop program: the run's best, or a random one of the workload");
        options.flag("assembly", flags->assembly, "its machine code");
        options.flag("features", flags->features, "what a cost model sees of it");
        options.text("encoding", flags->encoding, "feature list");
        return [flags](Session& session) { return inspect(*flags, session); };
      }};
}

}  // namespace graft::cli
