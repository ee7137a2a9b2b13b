// Documents of kernel tuners: one JSON document for a run, with an entry for each configuration of a kernel's
// parameters and its outcome. A document may be truncated, if its run is still going on or was stopped:
// complete entries count.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/formats/format.h"
#include "datasets/formats/json.h"

namespace graft::datasets::formats {

// One entry.
struct Configuration {
  std::string kernel;                                       // empty: the document's
  std::vector<std::pair<std::string, std::string>> values;  // parameter, value
  std::vector<double> seconds;                              // all repetitions
  Status status = Status::ok;
  std::string reason;  // empty for ok
};

// Information that applies to all entries of a document.
struct ConfigurationsHead {
  std::string kernel, device;
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // of the problem
  std::vector<std::string> parameters;                      // empty: those of a kernel's first entry, in its order
  std::vector<std::pair<std::string, std::string>> values;  // parameter, value: known before any entry
};

class ConfigurationsDocument {
 public:
  // Reads the file. If it is truncated within the map or list of entries that one of these keys of the
  // outermost map has, the incomplete last entry is skipped. UserError as TextFile.
  ConfigurationsDocument(Import& import, const std::filesystem::path& path,
                         std::initializer_list<std::string_view> keys);

  const std::string& path() const { return path_; }
  JsonReader reader() const { return {text_, path_}; }

  // Rows of all entries; entries that `read` or we refuse are skipped. UserError if there are no
  // parameters.
  void import(const ConfigurationsHead& head, const std::function<Configuration(JsonReader&)>& read);

 private:
  void mend();
  // For the value of every entry; `twice` is its key if an earlier entry had it.
  using Visit = std::function<void(JsonReader& entry, std::string_view twice)>;
  void for_each_entry(const Visit& visit) const;

  Import& import_;
  std::string path_, text_;
  std::vector<std::string> keys_;
};

// The whole file, or, of gzip that is broken or ends in the middle, what comes before that. UserError as TextFile,
// TooMuch for a larger one than any document.
std::string read_document(Import& import, const std::filesystem::path& path);
// The text of a number, a word, true or false; strings without quotes.
std::string scalar_text(JsonReader& reader);
// A number, or a string that is one; NaN and infinite ones, too.
double number_or_text(JsonReader& reader);
// The same in the place of a time: positive, or a mark of a failure (times.h).
double time_value(JsonReader& reader);
// The number in a text; nullopt if it is something else.
std::optional<double> number_in(std::string_view text);

}  // namespace graft::datasets::formats
