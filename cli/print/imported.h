// The outcome of the records of an import or an export, for people and as documents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "cli/output.h"
#include "datasets/formats/format.h"

namespace graft::cli {

// {"records":..,"rows":..,"statuses":{..},"reasons":{..},"dropped":{..},"templates":[..]}
base::Document document_of(const datasets::formats::Counts& counts);
// [{"reason":..,"count":..,"first":..}]
base::Document document_of(const datasets::formats::SkippedByReason& all);

void print(Output& out, std::string_view title, const datasets::formats::SkippedByReason& all);
void print(Output& out, const datasets::formats::Counts& counts);

// "autotvm (...); table (...)": of the list of importers, or exporters.
template <class Entry>
std::string names_of(const std::vector<Entry>& table) {
  std::string text;
  for (const Entry& entry : table) text += (text.empty() ? "" : "; ") + entry.name + " (" + entry.help + ")";
  return text;
}

}  // namespace graft::cli
