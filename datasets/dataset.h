// The measurements of one platform in columns, stored as one HDF5 file: workloads, sketches, arguments, program
// hashes, all repetitions, status, provenance, the platform's YAML. Rows name programs; features are derived from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "codegen/expression/target.h"
#include "datasets/trial.h"

namespace graft::datasets {

struct Dataset {
  std::string platform;       // id: "native:v3", "model:sifive-p450"
  std::string source;         // "native", "remote", "imported", "modelled", "emulated"
  std::string platform_yaml;  // verbatim
  codegen::Target target;
  base::Document provenance;  // who made it, how, when, with which versions

  std::vector<codegen::Workload> workloads;
  std::vector<std::shared_ptr<const codegen::Sketch>> sketches;

  struct Row {
    int workload = 0, sketch = 0;  // positions above
    std::vector<std::int64_t> arguments;
    std::uint64_t program_hash = 0;
    Measurement measurement;
  };
  std::vector<Row> rows;

  codegen::Candidate candidate(const Row& row) const;
  // Adds the workload and sketch if they are new.
  void add(const Trial& trial);
};

// UserError at `place` for the source "emulated": such times are of no hardware, so no model learns from them and no
// table compares them.
void refuse_emulated(std::string_view place, std::string_view source);

// Replaces the file as a whole (temporary file, fsync, rename). Equal datasets give equal files. Throws Failure, also
// for a contradictory measurement (trial.h).
void write_dataset(const Dataset& dataset, const std::filesystem::path& path);
// Throws UserError for a file that is missing, truncated, not HDF5, of a newer schema, or inconsistent ("<file>: ...").
Dataset read_dataset(const std::filesystem::path& path);

// Writes the same file row by row, for measurements that need not fit into memory: rows are compressed as they are
// added, about 50 bytes are kept for each. `commit` writes the whole file; without it none is written.
class DatasetWriter {
 public:
  explicit DatasetWriter(Dataset head);  // without rows
  ~DatasetWriter();
  DatasetWriter(DatasetWriter&& other) noexcept;
  DatasetWriter& operator=(DatasetWriter&& other) noexcept;

  // The contents so far, without rows; its platform, target and provenance may be changed until `commit`.
  Dataset& head();
  std::int64_t rows() const;
  // Positions for rows; new entries are added.
  int position_of(const codegen::Workload& workload);
  int position_of(const std::shared_ptr<const codegen::Sketch>& sketch);
  // Failure for a contradictory measurement (trial.h).
  void add(const Dataset::Row& row);
  // Called once, last. Throws Failure.
  void commit(const std::filesystem::path& path);

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

// A dataset's file whose rows are read by position, without unpacking others: for episodes of files
// that are large. Cheapest if the rows of a workload are adjacent, as `graft collect` writes them. Errors as
// read_dataset: for rows, when they are read.
class DatasetFile {
 public:
  explicit DatasetFile(const std::filesystem::path& path);
  ~DatasetFile();
  DatasetFile(DatasetFile&& other) noexcept;
  DatasetFile& operator=(DatasetFile&& other) noexcept;

  const Dataset& head() const;                                                   // all but the rows
  std::int64_t size() const;                                                     // number of rows
  std::vector<Dataset::Row> rows(std::int64_t first, std::int64_t count) const;  // the rows must exist
  std::vector<Dataset::Row> rows(std::span<const std::int64_t> positions) const;
  // The columns that identify rows, for all rows.
  struct Key {
    int workload = 0;
    Status status = Status::ok;
    std::uint64_t program_hash = 0;
  };
  std::vector<Key> keys() const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

// The rows of both (same platform and equal YAML, or UserError); rows of the same candidate are kept once (the later
// one wins).
Dataset merged(const Dataset& a, const Dataset& b);
// One dataset per platform, in order of their first.
std::vector<Dataset> by_platform(const std::vector<Dataset>& datasets);

}  // namespace graft::datasets
