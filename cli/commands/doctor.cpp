#include "cli/checks.h"
#include "cli/commands/commands.h"
#include "study/inputs/request.h"

namespace graft::cli {
namespace {

int doctor(Session& session) {
  Table table({"check", "state", "found", "remedy"});
  base::Document rows = base::Document::list();
  bool well = true;
  for (const Check& check : checks_of_this_machine()) {
    const std::string state = check.good ? "ok" : check.required ? "FAILS" : "absent";
    well = well && (check.good || !check.required);
    table.row({check.name, state, check.found, check.remedy});
    base::Document row = base::Document::map();
    row.set("check", check.name)
        .set("required", check.required)
        .set("ok", check.good)
        .set("found", check.found)
        .set("remedy", check.remedy);
    rows.push(std::move(row));
  }
  session.output.table(table);
  session.output.line(well ? "graft works on this machine" : "graft does not work here yet: see FAILS");
  session.output.json()
      .set("graft", std::string(study::graft_version()))
      .set("ok", well)
      .set("checks", std::move(rows));
  return well ? done : failed;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .help = "what works on this machine, and the remedy for what does not",
          .declare = [](Options&) -> Action { return doctor; }};
}

}  // namespace graft::cli
