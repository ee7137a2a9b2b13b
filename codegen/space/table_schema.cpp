#include "codegen/space/table_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/hash.h"

namespace graft::codegen {
namespace {

const TableSchema::Kernel* kernel_of(const TableSchema& schema, const std::string& workload) {
  for (const TableSchema::Kernel& kernel : schema.kernels) {
    if (std::find(kernel.workloads.begin(), kernel.workloads.end(), workload) != kernel.workloads.end()) return &kernel;
  }
  return nullptr;
}

std::uint64_t hash_of(std::string_view name, std::string_view value) {
  return base::hash_combine(base::hash_bytes(name), base::hash_bytes(value));
}

base::Document texts(const std::vector<std::string>& values) {
  base::Document list = base::Document::list();
  for (const std::string& value : values) list.push(value);
  return list;
}

std::vector<std::string> texts_from(const base::Document& list) {
  std::vector<std::string> values;
  for (const base::Document& value : list.as_list()) values.push_back(value.as_string());
  return values;
}

}  // namespace

bool is_row_of_table(const Candidate& candidate) {
  return !candidate.sketch->columns.empty() && candidate.arguments.size() == candidate.sketch->columns.size();
}

std::string column_value(const Sketch& sketch, std::size_t column, std::int64_t argument) {
  const std::vector<std::string>& alternatives = sketch.columns[column].alternatives;
  if (alternatives.empty() || argument < 0 || argument >= std::int64_t(alternatives.size()))
    return fmt::format("{}", argument);
  return alternatives[std::size_t(argument)];
}

std::uint64_t hash_by_name(const Candidate& row) {
  std::vector<std::string> names;
  for (const Sketch::Argument& argument : row.sketch->arguments) names.push_back(argument.name);
  std::sort(names.begin(), names.end());
  return base::hash_combine(hash(row.workload), hash_by_name(row, names));
}

std::uint64_t hash_by_name(const Candidate& row, const std::vector<std::string>& columns) {
  std::uint64_t hash = 1;
  for (const std::string& name : columns) {
    const int column = row.sketch->argument_named(name);
    if (column < 0) return 0;
    hash = base::hash_combine(
        hash, hash_of(name, column_value(*row.sketch, std::size_t(column), row.arguments[std::size_t(column)])));
  }
  return hash == 0 ? 1 : hash;
}

std::uint64_t row_identity(const TableSchema& schema, const Candidate& candidate) {
  if (!is_row_of_table(candidate)) return 0;
  const TableSchema::Kernel* kernel = kernel_of(schema, candidate.workload.text());
  if (kernel == nullptr && schema.kernels.size() == 1) kernel = &schema.kernels.front();
  if (kernel == nullptr || kernel->key.empty()) return 0;
  const std::uint64_t row = hash_by_name(candidate, kernel->key);
  if (row == 0) return 0;
  return std::max<std::uint64_t>(1, base::hash_combine(base::hash_bytes(kernel->workloads.front()), row));
}

const std::string& joined_name(const TableSchema& schema, const std::string& workload) {
  const TableSchema::Kernel* const kernel = kernel_of(schema, workload);
  return kernel == nullptr ? workload : kernel->workloads.front();
}

base::Document to_document(const TableSchema& schema) {
  base::Document columns = base::Document::list(), kernels = base::Document::list();
  for (const TableSchema::Column& column : schema.columns) {
    base::Document entry = base::Document::map();
    columns.push(entry.set("name", column.name)
                     .set("numbers", texts(column.numbers))
                     .set("words", texts(column.words))
                     .set("has_numbers", column.has_numbers)
                     .set("middle", column.middle)
                     .set("names_rows", column.names_rows));
  }
  for (const TableSchema::Kernel& kernel : schema.kernels) {
    base::Document entry = base::Document::map();
    kernels.push(entry.set("workloads", texts(kernel.workloads)).set("key", texts(kernel.key)));
  }
  base::Document out = base::Document::map();
  return out.set("columns", std::move(columns)).set("kernels", std::move(kernels));
}

TableSchema table_schema_from(const base::Document& document) {
  document.only_keys({"columns", "kernels"});
  TableSchema schema;
  std::set<std::string> names;
  for (const base::Document& entry : document.at("columns").as_list()) {
    entry.only_keys({"name", "numbers", "words", "has_numbers", "middle", "names_rows"});
    TableSchema::Column& column = schema.columns.emplace_back();
    column.name = entry.at("name").as_string();
    if (!names.insert(column.name).second) throw base::UserError(entry.place(), "a column that is there twice");
    column.numbers = texts_from(entry.at("numbers"));
    column.words = texts_from(entry.at("words"));
    column.has_numbers = entry.at("has_numbers").as_bool();
    column.middle = entry.at("middle").as_number();
    column.names_rows = entry.at("names_rows").as_bool();
  }
  for (const base::Document& entry : document.at("kernels").as_list()) {
    entry.only_keys({"workloads", "key"});
    TableSchema::Kernel& kernel = schema.kernels.emplace_back();
    kernel.workloads = texts_from(entry.at("workloads"));
    kernel.key = texts_from(entry.at("key"));
    if (kernel.workloads.empty()) throw base::UserError(entry.place(), "a kernel without a workload");
  }
  return schema;
}

}  // namespace graft::codegen
