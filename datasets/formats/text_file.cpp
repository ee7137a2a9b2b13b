#include "datasets/formats/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "base/error.h"
#include "base/letters.h"
#include "base/text.h"

namespace graft::datasets::formats {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
constexpr std::string_view as_table =
    "write a line of CSV for each configuration with its time, and import that as table";

// Bytes at one place of a file.
struct Signature {
  std::size_t offset;
  std::string_view bytes, name, remedy;
};
constexpr std::string_view unpack = "unpack it and import the files in it";
constexpr std::string_view to_csv = "write its rows as CSV and import that as table";
constexpr Signature signatures[] = {
    {0, "\xff\xfe"sv, "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"},
    {0, "\xfe\xff"sv, "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"},
    {0, "version https://git-lfs.github.com/"sv, "a pointer of git-lfs in place of the file",
     "fetch the file: git lfs pull"},
    {0, "SQLite format 3\0"sv, "a database of SQLite",
     "write a table of it as CSV (sqlite3 -header -csv FILE 'select * from TABLE') and import that as table; "
     "configurations that are pickles in it, as OpenTuner's, are written by a script of the program's own classes"},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file",
     "a dataset of graft needs no import; write the rows of any other as CSV"},
    {0, "PK\x03\x04"sv, "a zip archive (workbooks of spreadsheets and .npz are such ones)",
     "unpack it and import the files in it; save the sheet of a workbook as CSV"},
    {0, "PK\x05\x06"sv, "an empty zip archive", "import the files that it was to hold"},
    {257, "ustar"sv, "a tar archive", unpack},
    {0, "\x1f\x8b"sv, "packed by gzip twice", "unpack it once"},
    {0, "BZh"sv, "packed by bzip2", "unpack it: bunzip2"},
    {0, "\xfd\x37zXZ\0"sv, "packed by xz", "unpack it: unxz"},
    {0, "\x28\xb5\x2f\xfd"sv, "packed by zstd", "unpack it: unzstd"},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive", unpack},
    {0, "PAR1"sv, "a Parquet file", to_csv},
    {0, "ARROW1"sv, "an Arrow file", to_csv},
    {0, "\x80\x03"sv, "a pickle of Python", to_csv},
    {0, "\x80\x04"sv, "a pickle of Python", to_csv},
    {0, "\x80\x05"sv, "a pickle of Python", to_csv},
    {0, "\x93NUMPY"sv, "an array of numpy", to_csv},
    {0, "\xd0\xcf\x11\xe0"sv, "a workbook of a spreadsheet", "save its sheet as CSV"},
    {0, "%PDF"sv, "a PDF document", to_csv},
    {0,
     "\x7f"
     "ELF"sv,
     "a program or a library", "import the times that were measured with it"},
    {4, "IREE"sv, "a module that IREE compiled, which holds no times", as_table},
};

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// Files of text that no format reads.
std::optional<ForeignFile> other_text(std::string_view begin) {
  const std::string_view text = base::trim(begin);
  if (const std::string html = base::lower_case(text.substr(0, 14));
      html.starts_with("<!doctype html") || html.starts_with("<html"))
    return ForeignFile{"a web page", "download the file itself, not the page that shows it"};
  if (has_any(text, {"module {", "module @", "module attributes"}) &&
      has_any(text, {"hal.executable", "#hal.", "iree_codegen.", "iree_hal."}))
    return ForeignFile{"code of IREE, which holds no times", std::string(as_table)};
  if (!text.starts_with('{')) {
    const bool is_code = text.starts_with('#') || text.starts_with("import ") || text.starts_with("from ");
    if (is_code && has_any(text, {"torch._inductor"}))
      return ForeignFile{"code that PyTorch's inductor generated, which holds no times", std::string(as_table)};
    if ((text.starts_with("AUTOTUNE ") || has_any(text, {"\nAUTOTUNE "})) && has_any(text, {" ms "}))
      return ForeignFile{"a log of the autotuning of PyTorch's inductor", std::string(as_table)};
    return std::nullopt;
  }
  if (has_any(text, {"\"configs_timings\""}))
    return ForeignFile{"what Triton's autotuner keeps of one kernel", std::string(as_table)};
  if (has_any(text, {"\"child_paths\""}))
    return ForeignFile{"an index of Triton's cache, which holds no times", std::string(as_table)};
  if (has_any(text, {"\"found_by_coordesc\"", "\"triton_cache_hash\"", "\"configs_hash\""}))
    return ForeignFile{
        "the fastest configuration of a kernel, as PyTorch's inductor keeps it without those it was compared with",
        std::string(as_table)};
  if (has_any(text, {"\"num_warps\""}) && has_any(text, {"\"num_stages\""}) && has_any(text, {"\"hash\""}) &&
      has_any(text, {"\"triton_version\"", "\"cluster_dims\"", "\"num_ctas\"", "\"target\""}))
    return ForeignFile{"what Triton's cache keeps of a compiled kernel, which holds no times", std::string(as_table)};
  return std::nullopt;
}

}  // namespace

std::optional<ForeignFile> foreign_file(std::string_view begin) {
  for (const Signature& each : signatures) {
    if (begin.size() < each.offset || !begin.substr(each.offset).starts_with(each.bytes)) continue;
    return ForeignFile{std::string(each.name), std::string(each.remedy)};
  }
  begin = begin.substr(0, bytes_of_kind);
  if (const std::size_t zero = begin.find('\0'); zero != std::string_view::npos) {
    // Letters of most languages have one byte of zero in UTF-16.
    std::size_t zeros[2] = {0, 0};
    for (std::size_t i = 0; i < begin.size(); ++i) zeros[i % 2] += begin[i] == '\0';
    const std::size_t most = std::max(zeros[0], zeros[1]), least = std::min(zeros[0], zeros[1]);
    if (begin.size() >= 4 && 4 * most > begin.size() && 8 * least < most)
      return ForeignFile{"text in UTF-16",
                         fmt::format("convert it: iconv -f UTF-16{} -t UTF-8", zeros[0] > zeros[1] ? "BE" : "LE")};
    return ForeignFile{"not text", "import what the tool writes as text"};
  }
  return other_text(begin);
}

TextFile::TextFile(const std::filesystem::path& path) : input_(path) {
  begin_.resize(bytes_of_kind);
  std::size_t got = 0;
  try {
    got = input_.read({begin_.data(), begin_.size()});
  } catch (const base::UserError&) {
    fault_ = std::current_exception();  // said by `read`, whose callers know what came before
  }
  begin_.resize(got);
  if (const std::optional<ForeignFile> kind = foreign_file(begin_))
    throw base::UserError(path.string(), fmt::format("is {}; {}", kind->name, kind->remedy));
  if (begin_.starts_with(byte_order_mark)) begin_.erase(0, byte_order_mark.size());
}

std::size_t TextFile::read(std::span<char> into) {
  const std::size_t size = std::min(begin_.size(), into.size());
  std::memcpy(into.data(), begin_.data(), size);
  begin_.erase(0, size);
  if (size == into.size()) return size;
  if (fault_ != nullptr) {
    if (size > 0) return size;
    std::rethrow_exception(fault_);
  }
  std::size_t more = 0;
  try {
    more = input_.read(into.subspan(size));
  } catch (const base::UserError&) {
    if (size == 0) throw;
    fault_ = std::current_exception();
  }
  return size + more;
}

}  // namespace graft::datasets::formats
