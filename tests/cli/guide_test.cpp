// A guide as it is typed: the lines that begin with "$ " in its blocks run in their order, and what is shown of their
// output comes, but for numbers.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

struct Typed {
  std::string command;             // of several lines, where it has a here-document
  std::vector<std::string> shown;  // of its output
};

std::vector<Typed> typed_lines(const std::string& guide) {
  std::vector<Typed> all;
  bool is_fenced = false, is_document = false;
  for (const std::string_view line : base::split(guide, '\n')) {
    if (line.starts_with("```")) {
      is_fenced = !is_fenced;
    } else if (!is_fenced) {
      continue;
    } else if (is_document) {
      all.back().command += std::string(line) + "\n";
      is_document = line != "END";
    } else if (line.starts_with("$ ")) {
      all.push_back({std::string(line.substr(2)) + "\n", {}});
      is_document = line.ends_with("<<'END'");
    } else if (!all.empty() && line != "...") {
      all.back().shown.emplace_back(line);
    }
  }
  return all;
}

// The words of a line without digits in them: times and counts differ.
std::vector<std::string_view> plain_words(std::string_view line) {
  std::vector<std::string_view> words = base::words(line);
  std::erase_if(words, [](std::string_view word) {
    return word == "us" || word == "ms" ||
           std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  return words;
}

bool has_line(const std::string& output, const std::string& shown) {
  const std::vector<std::string_view> wanted = plain_words(shown);
  const std::vector<std::string_view> lines = base::split(output, '\n');
  return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) { return plain_words(line) == wanted; });
}

// Shorter searches than those of the guide.
std::string shortened(std::string command) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"--effort quick", "--trials 22 --minimum-ms 0.1"}, {"--shots 8", "--shots 4 --minimum-ms 0.1"}})
    if (const std::size_t at = command.find(from); at != std::string::npos) command.replace(at, from.size(), to);
  return command;
}

bool runs(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// What runs in a folder with the examples, and programs of its own in bin/.
class Guide : public testing::Test {
 protected:
  Guide() {
    fs::create_directory_symlink(fs::path(GRAFT_SOURCE_DIR) / "examples", folder_ / "examples");
    fs::create_directory(folder_ / "bin");
    fs::create_symlink("/usr/bin/python3", folder_ / "bin/python3");  // Debian's, which has the package onnx
  }

  void follow(const std::string& guide, std::size_t least_commands) const {
    const std::string path = (folder_ / "bin").string() + ":" + fs::path(GRAFT_PROGRAM).parent_path().string();
    const std::vector<Typed> all =
        typed_lines(base::read_file(fs::path(GRAFT_SOURCE_DIR) / "docs/guides" / (guide + ".md")));
    EXPECT_GE(all.size(), least_commands);
    for (const Typed& typed : all) {
      const base::Finished finished = base::run_process({"sh", "-c", "cd \"$0\" && PATH=\"$1:$PATH\" && eval \"$2\"",
                                                         folder_.path().string(), path, shortened(typed.command)},
                                                        std::chrono::minutes(5));
      ASSERT_EQ(finished.exit_code, 0) << typed.command << finished.err;
      for (const std::string& line : typed.shown)
        EXPECT_TRUE(has_line(finished.out, line)) << typed.command << "shows: " << line << "\nit wrote:\n"
                                                  << finished.out;
    }
  }

  base::Folder folder_;
};

// The board is this machine, reached by a program in place of ssh.
TEST_F(Guide, BeforeTheBoardIsThereRunsAsTyped) {
  for (const char* const needed :
       {"qemu-riscv64 --version", "echo 'int main(void) {}' | riscv64-linux-gnu-gcc -static -x c - -o /dev/null",
        "/usr/bin/python3 -c 'import onnx'"})
    if (!runs(needed)) GTEST_SKIP() << needed << " does not run";
  base::replace_file(folder_ / "bin/ssh", "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n");
  fs::permissions(folder_ / "bin/ssh", fs::perms::owner_all);
  follow("before-the-board", 12);
}

TEST_F(Guide, TuneForAGpuRunsAsTyped) {
  for (const char* const needed : {GRAFT_PROGRAM " platform probe --opencl 0",
                                   "echo '#include <CL/cl.h>\nint main(void) {}' | cc -x c - -lOpenCL -o /dev/null"})
    if (!runs(needed)) GTEST_SKIP() << needed << " does not run";
  follow("tune-for-a-gpu", 6);
}

}  // namespace
}  // namespace graft::cli
