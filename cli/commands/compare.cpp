#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>

#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"
#include "cli/report/page.h"
#include "datasets/agreement.h"

namespace graft::cli {
namespace {

struct Flags {
  std::vector<std::string> datasets;
  std::string out;
  std::int64_t least_programs = 10;
};

template <class Cell, class Value>
base::Document square_of(const datasets::Square<Cell>& cells, Value value) {
  base::Document rows = base::Document::list();
  for (const std::vector<Cell>& row : cells) {
    base::Document values = base::Document::list();
    for (const Cell& cell : row) values.push(value(cell));
    rows.push(std::move(values));
  }
  return rows;
}

base::Document to_document(const datasets::Agreement::Family& family) {
  base::Document workloads = base::Document::list();
  for (const codegen::Workload& workload : family.workloads) workloads.push(workload.text);
  base::Document document = base::Document::map();
  document.set("family", family.name)
      .set("workloads", std::move(workloads))
      .set("spearman", square_of(family.spearman, [](const auto& cell) { return cell.value.mean; }))
      .set("low", square_of(family.spearman, [](const auto& cell) { return cell.value.low; }))
      .set("high", square_of(family.spearman, [](const auto& cell) { return cell.value.high; }))
      .set("programs", square_of(family.spearman, [](const auto& cell) { return cell.programs; }));
  return document;
}

base::Document regret_document(const datasets::Square<datasets::Agreement::Regret>& regret) {
  base::Document document = base::Document::map();
  document.set("mean", square_of(regret, [](const auto& cell) { return cell.value.mean; }))
      .set("low", square_of(regret, [](const auto& cell) { return cell.value.low; }))
      .set("high", square_of(regret, [](const auto& cell) { return cell.value.high; }))
      .set("worst", square_of(regret, [](const auto& cell) { return cell.worst; }))
      .set("worst_workload", square_of(regret, [](const auto& cell) { return cell.worst_workload; }));
  return document;
}

// Platforms have numbers in the heads of columns, so that many fit on a line.
template <class Cell, class Value>
void print_square(const datasets::Agreement& agreement, const datasets::Square<Cell>& cells, const std::string& corner,
                  Value value, Output& out) {
  std::vector<std::string> head{corner};
  for (std::size_t p = 0; p < agreement.platforms.size(); ++p) head.push_back(std::to_string(p + 1));
  Table table(head);
  for (std::size_t p = 0; p < agreement.platforms.size(); ++p) {
    std::vector<std::string> row{fmt::format("{} ({})", agreement.platforms[p].name, p + 1)};
    for (const Cell& cell : cells[p]) {
      const double number = value(cell);
      row.push_back(std::isfinite(number) ? fmt::format("{:.2f}", number) : "-");
    }
    table.row(std::move(row));
  }
  out.line("");
  out.table(table);
}

int compare(const Flags& flags, Session& session) {
  if (!flags.out.empty()) check_output_folder(flags.out);
  const datasets::Agreement agreement =
      datasets::agreement(read_datasets(flags.datasets), int(std::min<std::int64_t>(flags.least_programs, 1'000'000)));
  Output& out = session.output;
  base::Document platforms = base::Document::list(), families = base::Document::list();
  Table table({"platform", "source"});
  for (const datasets::Agreement::Platform& platform : agreement.platforms) {
    base::Document entry = base::Document::map();
    entry.set("platform", platform.name).set("source", platform.source);
    platforms.push(std::move(entry));
    table.row({platform.name, platform.source});
  }
  out.table(table);
  for (const datasets::Agreement::Family& family : agreement.families) {
    families.push(to_document(family));
    print_square(
        agreement, family.spearman, fmt::format("Spearman: {} ({})", family.name, family.workloads.size()),
        [](const auto& cell) { return cell.value.mean; }, out);
  }
  print_square(
      agreement, agreement.regret, "regret: best of row on column", [](const auto& cell) { return cell.value.mean; },
      out);
  print_square(
      agreement, agreement.regret, "largest of a workload", [](const auto& cell) { return cell.worst; }, out);
  out.json()
      .set("platforms", std::move(platforms))
      .set("families", std::move(families))
      .set("regret", regret_document(agreement.regret));
  if (!flags.out.empty()) {
    const base::Document context = context_of(session);
    base::replace_file(flags.out, page({}, {{"compare", out.json()}},
                                       fmt::format("Made by graft {} on {} from {} datasets.", graft_version(),
                                                   context.at("date").as_string(), flags.datasets.size())));
    out.json().set("out", flags.out);
    out.line("\n" + flags.out + ": the same as heat maps, with intervals");
  }
  return done;
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .help = "do platforms agree on what is fast: rank correlations and regret on common programs",
          .examples = {"graft compare datasets/shipped/common/*.h5 --out platforms.html"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positionals("DATA.h5", flags->datasets,
                                "datasets of at least two platforms, of the same programs (graft collect --programs)");
            options.integer("least-programs", flags->least_programs, 2,
                            "common programs of a workload without which two platforms are not compared on it");
            options.text("out", flags->out, "page with heat maps to write");
            return [flags](Session& session) { return compare(*flags, session); };
          }};
}

}  // namespace graft::cli
