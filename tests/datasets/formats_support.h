// Shared by the tests of importers: a file with a given text, imported, and the result.
#pragma once

#include <zlib.h>

#include <string>
#include <utility>

#include "base/monitor.h"
#include "datasets/formats/format.h"
#include "tests/datasets/support.h"

namespace graft::datasets::formats {

struct Imported {
  Dataset dataset;
  Counts counts;
  SkippedByReason skipped, ignored;  // of the whole import
};

// All datasets that an import of these files makes, by platform.
inline std::map<std::string, Imported> imported_platforms(const std::string& format, const Folder& folder,
                                                          std::vector<std::filesystem::path> files,
                                                          const std::string& platform,
                                                          std::map<std::string, std::string, std::less<>> options = {},
                                                          bool strict = false) {
  base::Monitor monitor;
  Import import = imported(format, {std::move(files), platform, std::move(options), strict}, monitor);
  std::map<std::string, Imported> result;
  for (auto& [name, dataset] : import.datasets()) {
    dataset.commit(folder / (name + ".h5"));
    result[name] = {read_dataset(folder / (name + ".h5")), dataset.counts(), import.skipped(), import.ignored()};
  }
  return result;
}

// Imports one file of this text, for platform "p".
inline Imported imported_text(const std::string& format, const std::string& name, std::string_view text,
                              std::map<std::string, std::string, std::less<>> options = {}) {
  const Folder folder;
  write_plainly(folder / name, text);
  return imported_platforms(format, folder, {folder / name}, "p", std::move(options)).at("p");
}

// The error of a strict import of a file "in" with this text, without the folder.
inline std::string refusal_of(const std::string& format, std::string_view text,
                              std::map<std::string, std::string, std::less<>> options = {}) {
  const Folder folder;
  write_plainly(folder / "in", text);
  std::string message = message_of<base::UserError>(
      [&] { imported_platforms(format, folder, {folder / "in"}, "p", std::move(options), true); });
  const std::string own = folder.path().string() + "/";
  for (std::size_t at; (at = message.find(own)) != std::string::npos;) message.erase(at, own.size());
  return message;
}

// The same for tables whose times are seconds unless the options say otherwise.
inline std::map<std::string, std::string, std::less<>> in_seconds(
    std::map<std::string, std::string, std::less<>> options) {
  if (!options.contains("unit") && !options.contains("higher-is-better")) options["unit"] = "s";
  return options;
}
inline Imported imported_table(const std::string& name, std::string_view text,
                               std::map<std::string, std::string, std::less<>> options = {}) {
  return imported_text("table", name, text, in_seconds(std::move(options)));
}
inline std::string refusal_of_table(std::string_view text,
                                    std::map<std::string, std::string, std::less<>> options = {}) {
  return refusal_of("table", text, in_seconds(std::move(options)));
}

inline std::string gzipped(const std::string& text, const Folder& folder) {
  const std::filesystem::path path = folder / "packed";
  const gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, text.data(), unsigned(text.size()));
  ::gzclose(file);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string exported_text(const std::string& format, const Dataset& dataset) {
  const Folder folder;
  write_dataset(dataset, folder / "data.h5");
  std::string text;
  exported(format, DatasetFile(folder / "data.h5"), [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace graft::datasets::formats
