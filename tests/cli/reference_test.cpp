// The reference pages that are made of the program's lists are those that are committed, and shells complete what the
// program accepts.
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/cli/support.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;
const fs::path committed = fs::path(GRAFT_SOURCE_DIR) / "docs/reference";

TEST(Reference, CommittedPagesAreWhatTheProgramWrites) {
  const base::Folder folder;
  const base::Document written = json_of({"reference", "--out", folder.path().string()});
  EXPECT_GE(written.at("files").as_list().size(), 7u);
  for (const base::Document& file : written.at("files").as_list()) {
    const fs::path name = fs::path(file.as_string()).filename();
    ASSERT_TRUE(fs::exists(committed / name)) << name;
    EXPECT_EQ(base::read_file(file.as_string()), base::read_file(committed / name))
        << name << " is not current; run graft reference --out docs/reference";
  }
}

TEST(Reference, CommittedTypesOfPythonAreWhatTheProgramWrites) {
  const base::Folder folder;
  json_of({"reference", "--out", folder.path().string(), "--stubs", folder.path().string()});
  EXPECT_EQ(base::read_file(folder / "_calls.pyi"),
            base::read_file(fs::path(GRAFT_SOURCE_DIR) / "python/graft/_calls.pyi"))
      << "run graft reference --out docs/reference --stubs python/graft";
}

TEST(Reference, RefusesWhatIsNoFolder) {
  const base::Finished finished = graft({"reference", "--out", "no/such/folder"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("no/such/folder is not a folder"), std::string::npos) << finished.err;
}

// What bash would offer for a line with the cursor at its end, by calling the function as bash does.
std::vector<std::string> completed(const std::string& line, const std::string& breaks = "\"'@><=;|&(:") {
  static const std::string script = graft({"completion", "bash"}).out;
  const base::Folder folder;
  base::replace_file(folder / "graft.bash", script);
  const base::Finished finished = base::run_process(
      {"bash", "-c",
       "set -u; source \"$1\"; COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$3; COMPREPLY=(); _graft; "
       "for word in \"${COMPREPLY[@]}\"; do printf '%s\\n' \"$word\"; done",
       "bash", folder / "graft.bash", line, breaks},
      std::chrono::seconds(20));
  EXPECT_EQ(finished.exit_code, 0) << line << ": " << finished.err;
  EXPECT_EQ(finished.err, "") << line;
  std::vector<std::string> words;
  std::istringstream lines(finished.out);
  for (std::string word; std::getline(lines, word);) words.push_back(word);
  return words;
}

using Words = std::vector<std::string>;
bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(Completion, BashAcceptsTheScript) {
  const base::Folder folder;
  base::replace_file(folder / "graft.bash", graft({"completion", "bash"}).out);
  const base::Finished finished = base::run_process({"bash", "-n", folder / "graft.bash"}, std::chrono::seconds(20));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

TEST(Completion, Commands) {
  EXPECT_EQ(completed("graft tu"), (Words{"tune", "tune-all"}));
  EXPECT_EQ(completed("graft dec"), Words{});
  EXPECT_EQ(completed("graft platform l"), Words{"list"});
  EXPECT_EQ(completed("graft help coll"), Words{"collect"});
  EXPECT_TRUE(has(completed("graft "), "doctor"));
  EXPECT_TRUE(has(completed("graft bench "), "kernels"));
}

TEST(Completion, Flags) {
  EXPECT_EQ(completed("graft tune --tri"), Words{"--trials"});
  EXPECT_TRUE(has(completed("graft doctor --"), "--json"));
  EXPECT_FALSE(has(completed("graft doctor --"), "--trials"));
  EXPECT_EQ(completed("graft platform probe --runn"), Words{"--runner"});
}

TEST(Completion, Platforms) {
  EXPECT_TRUE(has(completed("graft tune resnet18.C2 --platform native"), "native"));
  // In words that readline splits at colons, only the part after the last one is replaced.
  EXPECT_EQ(completed("graft tune resnet18.C2 --platform model:sifive-x"), Words{"sifive-x280"});
  EXPECT_EQ(completed("graft tune resnet18.C2 --platform model:sifive-x", " "), Words{"model:sifive-x280"});
  EXPECT_EQ(completed("graft tune resnet18.C2 --platform=model:sifive-x"), Words{"sifive-x280"});
  EXPECT_EQ(completed("graft evaluate --sources model:pwr9,model:sifive-x"), Words{"sifive-x280"});
  EXPECT_EQ(completed("graft platform show model:pwr"), Words{"pwr9"});
  EXPECT_GE(completed("graft tune resnet18.C2 --platform model:").size(), 14u);
}

TEST(Completion, Workloads) {
  EXPECT_EQ(completed("graft tune layer_n"), Words{"'layer_norm("});
  EXPECT_EQ(completed("graft tune 'layer_n"), Words{"layer_norm("});
  EXPECT_EQ(completed("graft collect suite:sh"), Words{"shipped"});
  EXPECT_EQ(completed("graft tune --again resnet18.C1", " "),
            (Words{"resnet18.C1", "resnet18.C10", "resnet18.C11", "resnet18.C12"}));
  EXPECT_EQ(completed("graft tune 'matmul(m=6"), Words{});
  // As the value of a flag, in lists, and after an equal sign.
  EXPECT_EQ(completed("graft inspect run --workload depthwise_c"), completed("graft tune depthwise_c"));
  EXPECT_EQ(completed("graft adapt --workloads resnet18.C1", " "),
            (Words{"resnet18.C1", "resnet18.C10", "resnet18.C11", "resnet18.C12"}));
  EXPECT_EQ(completed("graft adapt --workloads resnet18.C3,res", " ").size(), 12u);
  EXPECT_TRUE(has(completed("graft adapt --workloads=res"), "resnet18.C2"));
}

TEST(Completion, NamesThatFlagsTake) {
  EXPECT_EQ(completed("graft tune resnet18.C2 --explorer ev"), Words{"evolution"});
  EXPECT_EQ(completed("graft evaluate data.h5 --methods ridge,zero"), Words{"ridge,zero-shot"});
  EXPECT_EQ(completed("graft train data.h5 --learner meta"), Words{"meta-sgd"});
  EXPECT_EQ(completed("graft completion fi"), Words{"fish"});
  EXPECT_EQ(completed("graft tune resnet18.C2 --trials "), Words{});  // then files
}

TEST(Completion, OtherShells) {
  for (const char* shell : {"zsh", "fish"}) {
    const base::Finished finished = graft({"completion", shell});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    for (const char* part : {"tune-all", "model:sifive-x280", "matmul(", "suite:shipped", "trials"})
      EXPECT_NE(finished.out.find(part), std::string::npos) << shell << ": " << part;
  }
  const base::Finished finished = graft({"completion", "bsh"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("did you mean 'bash'"), std::string::npos) << finished.err;
}

}  // namespace
}  // namespace graft::cli
