// The commands that helps and documents show: all of them are read by the program that was built, and what needs
// neither hardware nor minutes nor files of others runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/numpy.h"
#include "base/text.h"
#include "tests/cli/documents.h"
#include "tests/cli/support.h"
#include "tests/graph/support/onnx_file.h"

namespace graft::cli {
namespace {

// By a shell in `folder`, where "graft" is the program that was built.
base::Finished typed(const std::string& command, const std::filesystem::path& folder) {
  const std::string path = std::filesystem::path(GRAFT_PROGRAM).parent_path().string();
  return base::run_process(
      {"sh", "-c", "cd \"$0\" && PATH=\"$1:$PATH\" && eval \"$2\"", folder.string(), path, command},
      std::chrono::minutes(2));
}

const std::vector<std::string>& command_names() {
  static std::vector<std::string> names;
  if (!names.empty()) return names;
  for (const std::string_view line : base::split(graft({"--help"}).out, '\n')) {
    if (!line.starts_with("  ") || line.size() < 3 || line[2] == ' ') continue;
    names.emplace_back(base::trim(line.substr(0, line.find("  ", 2))));
  }
  return names;
}

std::vector<std::string> examples_of_helps() {
  std::vector<std::string> examples;
  for (const std::string& name : command_names()) {
    std::vector<std::string> words{"help"};
    for (const std::string_view word : base::words(name)) words.emplace_back(word);
    const std::string help = graft(words).out;
    const std::size_t begin = help.find("Examples:");
    if (begin == std::string::npos) continue;
    for (const std::string_view line : base::split(std::string_view(help).substr(begin), '\n'))
      if (line.find("graft ") != std::string_view::npos) examples.emplace_back(base::trim(line));
  }
  return examples;
}

// "a|b" in a command means either: "graft import table|logs" is two.
std::vector<std::string> alternatives(const std::string& command) {
  const std::size_t bar = command.find('|');
  if (bar == std::string::npos || command.find('\'') < bar) return {command};
  const std::size_t begin = command.rfind(' ', bar) + 1, end = std::min(command.find(' ', bar), command.size());
  std::vector<std::string> found;
  for (const std::string_view word : base::split(std::string_view(command).substr(begin, end - begin), '|'))
    found.push_back(command.substr(0, begin) + std::string(word) + command.substr(end));
  return found;
}

struct Shown {
  std::string command;
  bool whole;  // a line to type, not a mention in a sentence
};

// Commands in fences ("graft ...", "$ graft ...", ended by a comment or "&&"), and in backticks.
std::vector<Shown> commands_of_text(const std::string& text) {
  std::vector<Shown> found;
  std::string prose;
  bool is_fenced = false;
  std::string open;  // a line that a quote keeps open
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.starts_with("```")) {
      is_fenced = !is_fenced;
      continue;
    }
    if (!is_fenced) {
      prose += std::string(line) + " ";
      continue;
    }
    std::string command(line.starts_with("$ ") ? line.substr(2) : line);
    if (!open.empty()) command = open + " " + std::string(base::trim(command));
    open.clear();
    if (!command.starts_with("graft ")) continue;
    if (std::count(command.begin(), command.end(), '\'') % 2 != 0) {
      open = command;
      continue;
    }
    const std::size_t comment = command.find("  #");
    found.push_back({std::string(base::trim(std::string_view(command).substr(0, comment))), true});
  }
  for (std::size_t at = prose.find("`graft "); at != std::string::npos; at = prose.find("`graft ", at + 1)) {
    const std::size_t end = prose.find('`', at + 1);
    if (end == std::string::npos) break;
    for (const std::string& each : alternatives(prose.substr(at + 1, end - at - 1))) found.push_back({each, false});
  }
  return found;
}

// The command with a word that no command takes, so that it ends when the flags are read, or at a file that is missing.
std::string with_odd_word(const std::string& command) {
  std::size_t end = std::string("graft").size();
  for (const std::string& name : command_names())
    if (command.starts_with("graft " + name + " ") || command == "graft " + name)
      end = std::max(end, std::string("graft ").size() + name.size());
  return command.substr(0, end) + " no-such-word" + command.substr(end);
}

// Ends after the flags were read, in a folder where no file is that it names. Empty when they were understood.
std::string misread(const std::string& command, bool whole) {
  const base::Folder folder;
  std::string text = command.substr(command.find("graft "));  // without "mpirun -n 2"
  if (const std::size_t redirected = text.find(" >"); redirected != std::string::npos) text.resize(redirected);
  if (text.find("...") != std::string::npos || text.find('[') < text.find('\'')) {  // "RUN...", "[W...]"
    std::string plain;
    for (const std::string_view word : base::split(text, ' '))
      if (word != "..." && !word.starts_with("[")) plain += (plain.empty() ? "" : " ") + std::string(word);
    text = plain;
  }
  const base::Finished finished = typed(with_odd_word(text), folder.path());
  if (text.find("--help") != std::string::npos) return "";
  if (finished.exit_code != 2 && finished.exit_code != 1)
    return "ended with exit code " + std::to_string(finished.exit_code) + ": " + finished.err;
  for (const char* const understood : {"does not take this", "no such file", "does not exist", "no-such-word",
                                       "error: workload:", "build the target graft-bench", "cannot run x86-64-v"})
    if (finished.err.find(understood) != std::string::npos) return "";
  for (const char* const in_prose : {"missing", "needs a value"})  // "graft tune --layouts free", "with graft import"
    if (!whole && finished.err.find(in_prose) != std::string::npos) return "";
  for (const std::string_view word : base::words(text)) {  // a placeholder where only known words go: "import FORMAT"
    const bool is_placeholder = std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (is_placeholder && finished.err.find("'" + std::string(word) + "'") != std::string::npos) return "";
  }
  return finished.err;
}

// Why an example does not run here; it begins with these words (after "mpirun").
const std::map<std::string, std::string>& not_run() {
  static const std::map<std::string, std::string> reasons = {
      {"mpirun ", "hosts, and a user who is not root; team_test runs the same"},
      {"graft platform probe ssh://", "a board; board_test has one"},
      {"graft platform probe --opencl", "a device of OpenCL; opencl_test asks the one that may be here"},
      {"graft tune 'matmul(m=512,n=512,k=512)' --platform opencl:0", "a device of OpenCL; opencl_test tunes for it"},
      {"graft platform validate", "minutes"},
      {"graft collect", "minutes; flow_test runs smaller ones"},
      {"graft import autotvm", "files of others; import_test has some"},
      {"graft import table", "files of others"},
      {"graft import programs", "files of others"},
      {"graft compare runs/", "measures for a minute; flow_test runs smaller ones"},
      {"graft train", "minutes; flow_test runs smaller ones"},
      {"graft adapt", "minutes; flow_test runs smaller ones"},
      {"graft evaluate", "minutes; flow_test runs smaller ones"},
      {"graft compile", "runs of several workloads; compile_test makes some"},
      {"graft tune-all", "minutes; tune_all_test runs smaller ones"},
      {"graft experiment", "the folder experiments/; experiment_test has one"},
      {"graft reference", "a folder to write to; reference_test has one"},
      {"graft library", "a library; library_test makes some"},
      {"graft run", "a tuned network; network_test has one"},
      {"graft inspect resnet18.onnx", "a network; network_test has one"},
      {"graft inspect runs/resnet18", "a tuned network; network_test has one"},
      {"graft report runs/resnet18 ", "a tuned network; network_test has one"},
      {"graft tune space.yaml --run", "a program of the user's; own_test has one"},
      {"graft export kernel_tuner runs/own", "a search of a program of the user's; own_test makes one"},
      {"graft bench", "the program graft-bench, which test_bench runs"},
  };
  return reasons;
}

std::string shortened(std::string example) {
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"--trials 256", "--trials 2 --minimum-ms 0.1"},
                                                        {"--trials 64", "--trials 2"},
                                                        {"m=512,n=512,k=512", "m=64,n=64,k=64"}})
    if (const std::size_t at = example.find(from); at != std::string::npos) example.replace(at, from.size(), to);
  if (example.find("examples/matmul.space") != std::string::npos) example += " --trials 2 --minimum-ms 0.1";
  return example;
}

TEST(Examples, OfEveryHelpAreUnderstood) {
  const std::vector<std::string> examples = examples_of_helps();
  EXPECT_GE(examples.size(), 40u);
  for (const std::string& example : examples) EXPECT_EQ(misread(example, true), "") << example;
}

// Pages that graft writes, and dated notes about earlier versions, show no commands of today.
TEST(Examples, OfEveryDocumentAreUnderstood) {
  const std::filesystem::path source = GRAFT_SOURCE_DIR;
  std::size_t commands = 0;
  for (const std::filesystem::path& document : documents()) {
    const std::string name = document.string();
    if (name.starts_with("docs/notebook/") || name == "docs/reference/cli.md" || name.ends_with("/page.md")) continue;
    for (const auto& [command, whole] : commands_of_text(base::read_file(source / document))) {
      EXPECT_EQ(misread(command, whole), "") << name << ": " << command;
      ++commands;
    }
  }
  EXPECT_GE(commands, 150u);
}

TEST(Examples, OfHelpsThatNeedNoHardwareRun) {
  const base::Folder folder;
  const std::filesystem::path source = GRAFT_SOURCE_DIR;
  for (const char* const name : {"examples", "datasets"})
    std::filesystem::create_directory_symlink(source / name, folder / name);
  for (const char* const name : {"v3.h5", "data.h5"})
    std::filesystem::create_symlink(source / "datasets/shipped/common/model-cortex-a72.h5", folder / name);
  std::filesystem::create_symlink(source / "models/base.h5", folder / "adapted.h5");
  const auto make = [&](const std::string& command) {
    const base::Finished finished = typed(command, folder.path());
    ASSERT_EQ(finished.exit_code, 0) << command << "\n" << finished.err;
  };
  make("graft tune '" + small + "' --model scratch --trials 2 --minimum-ms 0.1 --rebuild 0 --out runs/scratch");
  base::replace_file(folder / "resnet18.onnx",
                     graph::file::GraphFile().input("x", {2, 3}).node("Exp", {"x"}, {"y"}).output("y").model());
  base::replace_file(folder / "x.npy", base::npy_of({2, 3}, "<f4", std::string(24, '\0')));
  make("graft tune resnet18.onnx --trials 1 --out runs/resnet18");
  make("cp -r runs/scratch runs/with-model && cp runs/scratch/best.json p450.json");

  const bool has_qemu = std::system("qemu-riscv64 --version >/dev/null 2>&1") == 0;
  std::set<std::string> used;
  std::size_t run = 0;
  for (const std::string& example : examples_of_helps()) {
    const auto reason = std::find_if(not_run().begin(), not_run().end(),
                                     [&](const auto& entry) { return example.starts_with(entry.first); });
    if (reason != not_run().end()) {
      used.insert(reason->first);
      continue;
    }
    if (!has_qemu && example.find("qemu-") != std::string::npos) continue;
    const base::Finished finished = typed(shortened(example), folder.path());
    EXPECT_EQ(finished.exit_code, 0) << example << "\n" << finished.err;
    ++run;
  }
  EXPECT_GE(run, 12u);
  for (const auto& [words, why] : not_run()) EXPECT_TRUE(used.contains(words)) << "no example begins with: " << words;
}

// Nothing is written where no program of ours runs.
TEST(Probe, WritesNothingWhereNoProgramRuns) {
  const base::Folder folder;
  const std::string out = (folder / "board.yaml").string();
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"platform", "probe"});
    arguments.insert(arguments.end(), {"--out", out});
    const base::Finished finished = graft(arguments);
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(lines_in(finished.err), 1u) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(out));
    return finished.err;
  };
  EXPECT_NE(refused({"--runner", "/no/such/qemu-riscv64"}).find("cannot start '/no/such/qemu-riscv64'"),
            std::string::npos);
  EXPECT_NE(refused({"ssh://board", "--ssh-config", "/no/such/config"}).find("ssh_config must name a file"),
            std::string::npos);
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  EXPECT_NE(refused({"--runner", "qemu-riscv64 -cpu max"}).find("'qemu-riscv64 -cpu help' lists"), std::string::npos);
  const base::Finished good =
      graft({"platform", "probe", "--runner", "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=512", "--out", out});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_NE(good.out.find("riscv64 with RVV 1.0 of 512 bits"), std::string::npos) << good.out;
  EXPECT_NE(graft({"inspect", out}).out.find("(emulated)"), std::string::npos);
}

// The place of a result's check is printed, and its speed relative to the platform's peak if that is known.
TEST(Results, SayWhereTheyWereCheckedAndHowNearTheyComeToThePeak) {
  const base::Folder folder;
  const auto tuned = [&](const std::string& platform, const std::string& name) {
    const std::string run = (folder / name).string();
    const base::Finished finished = graft(quick({"tune", "matmul(m=24,n=32,k=16)", "--platform", platform, "--model",
                                                 "scratch", "--trials", "2", "--rebuild", "0", "--out", run}));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out + graft({"inspect", run}).out;
  };
  const std::string board = (folder / "board.yaml").string();  // a command before the program makes it one
  EXPECT_EQ(graft({"platform", "probe", "--runner", "env", "--out", board}).exit_code, 0);
  const std::string measured = tuned(board, "board");
  EXPECT_NE(measured.find("right on the board"), std::string::npos) << measured;
  EXPECT_EQ(measured.find("this host"), std::string::npos) << measured;
  EXPECT_EQ(measured.find("of the peak"), std::string::npos) << measured;
  const std::string native = tuned("native", "native");
  EXPECT_NE(native.find("right on this host"), std::string::npos) << native;
  EXPECT_EQ(native.find("of the peak"), std::string::npos) << native;
  const std::string modelled = tuned("model:haswell", "modelled");
  EXPECT_NE(modelled.find("of the peak"), std::string::npos) << modelled;
  EXPECT_NE(modelled.find(" % of 80 (fp32 multiply-adds)"), std::string::npos) << modelled;
  const std::string page = (folder / "page.html").string();
  EXPECT_EQ(graft({"report", (folder / "modelled").string(), "--out", page}).exit_code, 0);
  EXPECT_NE(base::read_file(page).find(" % of 80 (fp32 multiply-adds)"), std::string::npos);
}

}  // namespace
}  // namespace graft::cli
