#include "datasets/clean.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "study/inputs/output.h"
#include "study/inputs/request.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string dataset, out;
};

int clean(const Flags& flags, Session& session) {
  study::check_output("out", flags.out, study::Writes::cleaned_dataset, {flags.dataset});
  datasets::Cleaned cleaned = datasets::cleaned(datasets::read_dataset(flags.dataset));
  const std::int64_t kept = std::int64_t(cleaned.dataset.rows.size());
  const std::int64_t all = kept + std::int64_t(cleaned.dropped.size());
  base::Document made = cleaned.dataset.provenance.at("cleaned");
  made.set("of", study::file_hash(flags.dataset)).set("by", study::context_of(session.command_line).at("graft"));
  cleaned.dataset.provenance.set("cleaned", made);
  datasets::write_dataset(cleaned.dataset, flags.out);

  Output& out = session.output;
  Table table({"dropped", "rows", "because"});
  base::Document dropped = base::Document::map();
#define X(name, description)                                                            \
  table.row({#name, std::to_string(cleaned.count(datasets::Drop::name)), description}); \
  dropped.set(#name, cleaned.count(datasets::Drop::name));
  GRAFT_DROPS(X)
#undef X
  out.line(fmt::format("{}: {} of {} rows kept in {}\n", flags.dataset, kept, all, flags.out));
  out.table(table);
  out.line(fmt::format("\noutliers taken out of rows that stayed: {} repetitions of {} rows", cleaned.repetitions,
                       cleaned.steadied_rows));
  base::Document rows = base::Document::list();
  for (const datasets::Cleaned::Dropped& each : cleaned.dropped) {
    base::Document entry = base::Document::map();
    entry.set("row", each.row).set("why", std::string(name_of(each.why)));
    rows.push(std::move(entry));
  }
  out.json()
      .set("rows", all)
      .set("kept", kept)
      .set("dropped", std::move(dropped))
      .set("dropped_rows", std::move(rows))
      .set("repetitions", cleaned.repetitions)
      .set("steadied_rows", cleaned.steadied_rows)
      .set("out", flags.out);
  return done;
}

}  // namespace

Command clean_command() {
  return {.name = "clean",
          .help = "drop failed rows, duplicates, impossible times and repeat outliers of a dataset",
          .examples = {"graft clean v3.h5 --out v3-clean.h5"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positional("DATA.h5", flags->dataset, "dataset; it stays as it is");
            options.text("out", flags->out, "dataset to write", Options::required);
            return [flags](Session& session) { return clean(*flags, session); };
          }};
}

}  // namespace graft::cli
