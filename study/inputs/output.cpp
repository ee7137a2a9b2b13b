#include "study/inputs/output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "datasets/dataset.h"
#include "datasets/hdf5.h"
#include "study/inputs/field_error.h"

namespace graft::study {
namespace {

bool may_replace_dataset(const std::filesystem::path& file, Writes writes) {
  if (writes == Writes::collected_dataset) return true;  // only its own, which collect checks
  const char* const made_by = writes == Writes::imported_dataset  ? "imported"
                              : writes == Writes::cleaned_dataset ? "cleaned"
                                                                  : nullptr;
  if (made_by == nullptr) return false;
  const base::Document provenance = datasets::DatasetFile(file).head().provenance;
  return provenance.is_map() && provenance.find(made_by) != nullptr;
}

}  // namespace

void check_output(std::string_view field, const std::filesystem::path& out, Writes writes,
                  const std::vector<std::string>& inputs) {
  const std::filesystem::path folder = out.has_parent_path() ? out.parent_path() : ".";
  if (!std::filesystem::is_directory(folder))
    throw FieldError(field,
                     fmt::format("{}: the folder {} does not exist; make it first", out.string(), folder.string()));
  if (std::filesystem::is_directory(out))
    throw FieldError(field, fmt::format("{} is a folder; name a file", out.string()));
  if (!std::filesystem::exists(out)) return;
  const bool is_input = std::any_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
    std::error_code error;
    return std::filesystem::equivalent(input, out, error);
  });
  if (is_input) throw FieldError(field, fmt::format("{} is one of the inputs; choose another name", out.string()));
  std::string kind;
  try {
    kind = datasets::kind_of_file(out);
  } catch (const base::UserError&) {
    return;  // not HDF5
  }
  const bool is_dataset = kind == "dataset";
  if (is_dataset ? may_replace_dataset(out, writes) : kind != "arrays" || writes == Writes::model) return;
  throw FieldError(field, fmt::format("{} is a {}; choose another name, or remove it first", out.string(),
                                      is_dataset ? "dataset" : "model"));
}

}  // namespace graft::study
