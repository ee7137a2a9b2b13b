// Private to this folder: the records of a table in memory, where a file has no lines of cells (JSON), or where more is
// known of the program that wrote it than its columns say (table_rules.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

struct TableRecords {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // each as long as the head
  std::vector<std::int64_t> lines;             // of the file, where each row begins
  std::vector<std::string> keys;               // of the JSON map around the records
  int named(std::string_view column) const;    // -1 if there is none
};

// Whether a file begins as JSON of maps does. UserError as TextFile.
bool is_json(const std::filesystem::path& path);

// JSON lines, a list of maps, or the longest list in a map: an item is a row. Maps in it become columns by their path
// ("parameters.tile", "stats.min"), short lists of numbers and words a cell ("[8, 16]"), null an empty one.
// Configurations that items of a list name by a number (SMAC: "configs", "config_id") become columns "config.NAME" of
// theirs. Items that cannot be read are skipped. UserError for a file that is too large, or not JSON.
TableRecords json_records(Import& import, const std::filesystem::path& path);

}  // namespace graft::datasets::formats
