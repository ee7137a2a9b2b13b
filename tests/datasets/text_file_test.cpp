#include "datasets/formats/text_file.h"

#include "datasets/formats/lines.h"
#include "tests/datasets/formats_support.h"

namespace graft::datasets::formats {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view mark = "\xef\xbb\xbf";

std::string in_utf16(std::string_view text, bool is_big_endian) {
  std::string result;
  for (const char c : text) result += is_big_endian ? std::string{'\0', c} : std::string{c, '\0'};
  return result;
}

// Beginnings of files as other programs write them.
TEST(TextFile, OtherKindsAreNamedWithWhatToDo) {
  const std::string csv = "tile,time_ms\n8,0.5\n16,0.25\n";
  const std::tuple<std::string, std::string, std::string> kinds[] = {
      {"\xff\xfe" + in_utf16(csv, false), "text in UTF-16", "iconv -f UTF-16 -t UTF-8"},
      {"\xfe\xff" + in_utf16(csv, true), "text in UTF-16", "iconv -f UTF-16 -t UTF-8"},
      {in_utf16(csv, false), "text in UTF-16", "iconv -f UTF-16LE -t UTF-8"},
      {in_utf16(csv, true), "text in UTF-16", "iconv -f UTF-16BE -t UTF-8"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n", "a pointer of git-lfs",
       "git lfs pull"},
      {std::string("SQLite format 3\0\x10\0\x01\x01"sv), "a database of SQLite", "sqlite3 -header -csv"},
      {std::string("PK\x03\x04\x14\0\0\0"sv), "a zip archive", "unpack it"},
      {std::string("\x89HDF\r\n\x1a\n\0"sv), "an HDF5 file", "needs no import"},
      {std::string(257, 'a') + "ustar", "a tar archive", "unpack it"},
      {"BZh91AY", "packed by bzip2", "bunzip2"},
      {std::string("\xfd\x37zXZ\0\0"sv), "packed by xz", "unxz"},
      {"\x28\xb5\x2f\xfd", "packed by zstd", "unzstd"},
      {"PAR1\x15", "a Parquet file", "CSV"},
      {std::string("\x18\0\0\0IREE\x01"sv), "a module that IREE compiled", "import that as table"},
      {"module attributes {hal.device.targets = [#hal.device.target<\"hip\">]} {\n", "code of IREE", "table"},
      {R"({"child_paths": {"add_kernel.ttir": "/cache/add_kernel.ttir"}})", "an index of Triton's cache", "table"},
      {R"({"hash": "ab", "target": {"backend": "cuda", "arch": 80}, "num_warps": 4, "num_ctas": 1, "num_stages": 3})",
       "what Triton's cache keeps of a compiled kernel", "table"},
      {R"({"key": [1024], "configs_timings": [[{"kwargs": {"BLOCK": 64}}, [0.5, 0.5, 0.6]]]})",
       "what Triton's autotuner keeps of one kernel", "table"},
      {R"({"XBLOCK": 64, "num_warps": 4, "num_stages": 1, "configs_hash": "ab", "found_by_coordesc": false})",
       "as PyTorch's inductor keeps it", "table"},
      {"AUTOTUNE mm(64x64, 64x64)\n  triton_mm_3 0.0072 ms 100.0%\n", "a log of the autotuning of PyTorch's inductor",
       "table"},
      {std::string("\x80\x04\x95\0"sv), "a pickle of Python", "CSV"},
      {"\n<!DOCTYPE html>\n<html lang=\"en\">", "a web page", "download the file itself"},
      {std::string("tile\0\x01\x02time"sv), "not text", "text"},
  };
  const Folder folder;
  for (const auto& [text, name, remedy] : kinds) {
    SCOPED_TRACE(name);
    const std::optional<ForeignFile> kind = foreign_file(text);
    ASSERT_TRUE(kind);
    EXPECT_TRUE(contains(kind->name, name)) << kind->name;
    EXPECT_TRUE(contains(kind->remedy, remedy)) << kind->remedy;
    // Whatever format it is given as, packed or not, and although an import passes over broken records.
    for (const bool is_packed : {false, true}) {
      for (const Importer& importer : importers()) {
        write_plainly(folder / "in", is_packed ? gzipped(text, folder) : text);
        const std::string message =
            message_of<base::UserError>([&] { imported_platforms(importer.name, folder, {folder / "in"}, "p"); });
        EXPECT_EQ(message, (folder / "in").string() + ": is " + kind->name + "; " + kind->remedy) << importer.name;
      }
    }
  }
}

TEST(TextFile, WhatFormatsReadIsNotAnotherKind) {
  for (const char* text :
       {"", "a", "tile,time_ms\n8,0.5\n", "# module {iree}\na,b\n", "kernel,config\nmm,#iree_codegen.x\n",
        "{\"input\": [\"llvm\", \"t\", [], {}], \"version\": 0.2}", R"({"num_warps": 4, "num_stages": 3, "time": 1})",
        R"({"tune_params_keys": ["num_warps", "num_stages"], "cache": {}})", "version,time\n1,2\n",
        "tuner,note\nb,in AUTOTUNE y 5 ms of it\n", "größe,time_ms\n1,2\n", "PKW,time\n",
        "\xef\xbb\xbftile,time_ms\n"}) {
    EXPECT_FALSE(foreign_file(text)) << text << ": " << foreign_file(text)->name;
  }
}

// A byte-order mark is nothing, in whatever format.
TEST(TextFile, ByteOrderMarksAreLeftOut) {
  const Folder folder;
  write_plainly(folder / "in", std::string(mark) + "one\ntwo");
  LineReader lines(folder / "in");
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.text(), "one");
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.text(), "two");
  EXPECT_FALSE(lines.next());

  const std::pair<const char*, std::string> texts[] = {
      {"table", "tile,time_ms\n8,0.5\n"},
      {"table", "\"tile\",time_ms\n8,0.5\n"},
      {"programs", R"({"workload": "fill", "seconds": [0.5], "program":)"
                   R"( "buffer A f32 [4] output\nrun\n  for i 4\n    A[i] = 0\n"})"},
      {"kernel_tuner", R"({"tune_params_keys": ["a"], "cache": {"1": {"a": 1, "time": 2.0}}})"},
      {"ktt", R"({"Metadata": {"TimeUnit": "Microseconds"}, "Results": [{"Status": "Ok", "KernelName": "k",)"
              R"( "TotalDuration": 5, "Configuration": [{"Name": "a", "Value": 1}]}]})"},
      {"autotvm",
       R"({"input": ["llvm", "t", [["TENSOR", [4], "float32"]], {}], "config": {"entity": [["x", "ot", 1]]},)"
       R"( "result": [[0.5], 0, 0.1, 1], "version": 0.2})"},
  };
  for (const auto& [format, text] : texts) {
    std::map<std::string, std::string, std::less<>> options;
    if (std::string_view(format) == "table") options["time"] = "time_ms";
    EXPECT_EQ(imported_text(format, "in", text, options).dataset.rows.size(), 1u) << format;
    EXPECT_EQ(imported_text(format, "in", std::string(mark) + text, options).dataset.rows.size(), 1u) << format;
  }
}

// Read in pieces of any size, the text is that of the file.
TEST(TextFile, PiecesMayBeSmall) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i);
  write_plainly(folder / "in", std::string(mark) + text);
  for (const std::size_t size : {1, 7, 4093, 4096, 20000}) {
    TextFile file(folder / "in");
    std::string read, piece(size, '\0');
    for (std::size_t got; (got = file.read({piece.data(), size})) > 0;) read += piece.substr(0, got);
    EXPECT_EQ(read, text) << size;
  }
}

}  // namespace
}  // namespace graft::datasets::formats
