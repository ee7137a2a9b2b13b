// Imports others' measurements and exports our own: one table of importers and one of exporters. An importer reads its
// files in pieces and passes on rows, which go to disk in chunks; unusable records are counted and named, never dropped
// silently. Files may be hostile: nothing in them is executed, names in them are never used as paths, sizes are
// limited. A record that is broken is skipped and counted, with file and line of the first of its kind; faults of the
// whole file are refused.
//
// Nothing is lowered here. Rows name programs as all rows do; if the structure of a record's program is not known, its
// numbers are kept alone (a sketch of columns).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"
#include "datasets/dataset.h"
#include "datasets/formats/lines.h"

namespace graft::datasets::formats {

// The outcome of the records that could be read, for the user: each is a row or dropped.
struct Counts {
  using ByName = std::map<std::string, std::int64_t, std::less<>>;
  struct Template {
    std::int64_t rows = 0, ok = 0, with_program = 0;
  };
  std::int64_t records = 0, rows = 0;
  ByName statuses;                                         // of rows
  ByName reasons;                                          // of rows that are not ok
  ByName without_program;                                  // of rows that are numbers only, by reason
  ByName dropped;                                          // of records that became no row, by reason
  std::map<std::string, Template, std::less<>> templates;  // of rows
};

// One dataset under import.
class ImportedDataset {
 public:
  ImportedDataset(const std::string& platform, std::string_view format);

  Dataset& head() { return writer_.head(); }  // the target may be set until `commit`
  // Positions for rows. TooMuch if there are more than any real file has.
  int position_of(const codegen::Workload& workload);
  int position_of(const std::shared_ptr<const codegen::Sketch>& sketch);
  // `of`: the template or other origin named in the record. `without_program`: why the row is numbers only,
  // empty if its sketch has a program. Rows that were not lowered have program hash 0. Reasons are a few words, as
  // few different ones as possible. UserError without a place (LineReader::located) for more times or arguments than
  // any real record has, and for an invalid measurement (trial.h); TooMuch for more rows than any real file has.
  void add(const Dataset::Row& row, std::string_view of, std::string_view without_program = {});
  // Counts a record that became no row.
  void drop(std::string_view why);
  const Counts& counts() const { return counts_; }
  void commit(const std::filesystem::path& path) { writer_.commit(path); }

 private:
  DatasetWriter writer_;
  Counts counts_;
};

struct ImportSettings {
  std::vector<std::filesystem::path> files;
  std::string platform;                                     // NAME or `import:NAME`
  std::map<std::string, std::string, std::less<>> options;  // of the format, by name
  bool strict = false;                                      // a record that cannot be read is an error
};

// Skipped records, by reason.
struct Skipped {
  std::int64_t count = 0;
  std::string first;  // "<file>:<line>" of the first record, with its fault
};
using SkippedByReason = std::map<std::string, Skipped, std::less<>>;

// One run of an importer.
class Import {
 public:
  Import(ImportSettings settings, std::string format, base::Monitor& monitor);  // its platform becomes NAME

  const ImportSettings& settings() const { return settings_; }
  // The option of that name, or `otherwise`.
  std::string_view option(std::string_view name, std::string_view otherwise = {}) const;
  base::Monitor& monitor() { return monitor_; }
  // The dataset of the named platform, or of another one; made at first use.
  ImportedDataset& dataset() { return dataset(settings_.platform); }
  ImportedDataset& dataset(const std::string& platform);
  // By the platforms' names (without `import:`).
  std::map<std::string, ImportedDataset>& datasets() { return datasets_; }

  // The reader's next line that may be a record; false at the end. Comments ('#'), empty lines, and lines that cannot
  // be read (too long, or a packed file that ends in the middle) are counted.
  bool next_record(LineReader& lines);
  // Runs `work` on the record of this line of a LineReader or TableLines. If it throws a UserError other than TooMuch,
  // the record is skipped; the effects that `work` had before must not matter.
  template <class Reader, class Work>
  void record(const Reader& lines, Work work) {
    try {
      formats::located(lines, lines.file(), work);
    } catch (const TooMuch&) {
      throw;
    } catch (const base::UserError& error) {
      skip(error, lines.file(), lines.is_unfinished());
    }
  }
  // Counts a record of that file that is not a row, and why ("<file>:<line>: <what is wrong>"); a strict import throws
  // it. `is_cut`: the file ends in the middle of it.
  void skip(const base::UserError& why, std::string_view file, bool is_cut = false);
  // Counts a line that is not meant to be a record.
  void ignore(const std::string& what, const std::string& place);
  const SkippedByReason& skipped() const { return skipped_; }
  const SkippedByReason& ignored() const { return ignored_; }
  const std::string& first_skipped() const { return first_skipped_; }  // its error; "" if none was skipped

 private:
  ImportSettings settings_;
  std::string format_;
  base::Monitor& monitor_;
  std::map<std::string, ImportedDataset> datasets_;
  SkippedByReason skipped_, ignored_;
  std::string first_skipped_;
};

struct Option {
  std::string name, help;
};

struct Importer {
  std::string name, help;
  std::vector<Option> options;
  void (*run)(Import& import) = nullptr;  // throws UserError "<file>:<line>: ..."
};
const std::vector<Importer>& importers();

// Runs the importer of that name. UserError for an unknown format or option (did you mean), for no record at all (then
// it is the error of the first skipped record), and all errors of the importer itself.
Import imported(const std::string& format, ImportSettings settings, base::Monitor& monitor);

// Takes a piece of the text.
using TextSink = std::function<void(std::string_view)>;

struct Exporter {
  std::string name, help;
  Counts (*run)(const DatasetFile& from, const TextSink& to) = nullptr;
};
const std::vector<Exporter>& exporters();
// UserError for an unknown format (did you mean).
Counts exported(const std::string& format, const DatasetFile& from, const TextSink& to);

// "import:" and the name, which may be the id of a platform of ours ("import:native:v3"); "import:NAME" itself stays.
// UserError for invalid names (is_platform_name), names that are too long, and those that begin with '.'.
std::string platform_id(const std::string& name);
// The name for which platform_id returns this id, or that of an imported platform of the same name.
std::string_view platform_name(std::string_view id);

}  // namespace graft::datasets::formats
