#include "cli/print/imported.h"

#include <utility>

namespace graft::cli {

namespace formats = datasets::formats;

namespace {

base::Document document_of(const formats::Counts::ByName& counts) {
  base::Document document = base::Document::map();
  for (const auto& [name, count] : counts) document.set(name, count);
  return document;
}

}  // namespace

base::Document document_of(const formats::Counts& counts) {
  base::Document templates = base::Document::list();
  for (const auto& [name, of] : counts.templates) {
    base::Document entry = base::Document::map();
    entry.set("template", name).set("rows", of.rows).set("ok", of.ok).set("with_program", of.with_program);
    templates.push(std::move(entry));
  }
  base::Document document = base::Document::map();
  document.set("records", counts.records)
      .set("rows", counts.rows)
      .set("statuses", document_of(counts.statuses))
      .set("reasons", document_of(counts.reasons))
      .set("without_program", document_of(counts.without_program))
      .set("dropped", document_of(counts.dropped))
      .set("templates", std::move(templates));
  return document;
}

base::Document document_of(const formats::SkippedByReason& all) {
  base::Document list = base::Document::list();
  for (const auto& [reason, skipped] : all) {
    base::Document entry = base::Document::map();
    list.push(entry.set("reason", reason).set("count", skipped.count).set("first", skipped.first));
  }
  return list;
}

void print(Output& out, std::string_view title, const formats::SkippedByReason& all) {
  if (all.empty()) return;
  Table table({std::string(title), "count", "first"});
  for (const auto& [reason, skipped] : all) table.row({reason, std::to_string(skipped.count), skipped.first});
  out.line("");
  out.table(table);
}

void print(Output& out, const formats::Counts& counts) {
  Table templates({"template", "rows", "ok", "with program"});
  for (const auto& [name, of] : counts.templates) {
    templates.row({name, std::to_string(of.rows), std::to_string(of.ok), std::to_string(of.with_program)});
  }
  out.table(templates);
  const auto listed = [&](std::string_view title, const formats::Counts::ByName& names) {
    if (names.empty()) return;
    Table table({std::string(title), "records"});
    for (const auto& [name, count] : names) table.row({name, std::to_string(count)});
    out.line("");
    out.table(table);
  };
  listed("status", counts.statuses);
  listed("failed because", counts.reasons);
  listed("no program because", counts.without_program);
  listed("no row because", counts.dropped);
}

}  // namespace graft::cli
