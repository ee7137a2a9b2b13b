// The place of a result, looked at before hours of work.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace graft::study {

// What is written: a dataset or a model is replaced by its own kind only.
enum class Writes { text, model, imported_dataset, cleaned_dataset, collected_dataset };

// FieldError for the field if the file's folder does not exist, if it is a folder itself, one of the inputs, or a
// dataset or model that such a command has not made.
void check_output(std::string_view field, const std::filesystem::path& out, Writes writes,
                  const std::vector<std::string>& inputs = {});

}  // namespace graft::study
