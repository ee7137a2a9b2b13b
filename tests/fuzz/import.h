// Shared by the targets of importers.
#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>
#include <string_view>

#include "base/monitor.h"
#include "datasets/formats/format.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {

using ImportOptions = std::map<std::string, std::string, std::less<>>;

// A file of this text, imported leniently and strictly.
inline void import(const std::string& format, std::string_view text, const std::string& platform = "p",
                   const ImportOptions& options = {}) {
  namespace formats = datasets::formats;
  const int file = ::memfd_create("import", MFD_CLOEXEC);
  promise(file >= 0 && ::write(file, text.data(), text.size()) == ::ssize_t(text.size()), "there is a file");
  const auto read = [&](bool strict) {
    return accepted([&] {
      base::Monitor monitor;
      return formats::imported(format, {{fmt::format("/proc/self/fd/{}", file)}, platform, options, strict}, monitor);
    });
  };
  auto lenient = read(false), strict = read(true);
  ::close(file);
  promise(lenient.has_value() || !strict.has_value(), "a strict import accepts no more", text);
  if (!lenient) return;
  promise(strict.has_value() == lenient->skipped().empty(), "a strict import refuses what is skipped", text);
  for (const auto& [name, dataset] : lenient->datasets()) {
    const formats::Counts& counts = dataset.counts();
    std::int64_t dropped = 0;
    for (const auto& [reason, count] : counts.dropped) dropped += count;
    promise(counts.records == counts.rows + dropped, "every record is a row or dropped", text);
  }
}

}  // namespace graft::fuzz
