// One run has one best: all commands name the same program and time.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/support.h"

namespace graft::cli {
namespace {

// `tune`, best.json, `inspect`, its program and its assembly, and `report`, of the run of `arguments` in `folder`.
// Returns the result of tune.
base::Document expect_one_best(std::vector<std::string> arguments, const std::string& folder, const std::string& page) {
  arguments.insert(arguments.end(), {"--out", folder});
  const base::Document tuned = json_of(arguments);
  const base::Document& best = tuned.at("best");
  EXPECT_EQ(base::parse_json(base::read_file(folder + "/best.json"), "best.json").at("best"), best);

  const base::Document listed = json_of({"inspect", folder}).at("best").as_list().at(0);
  const base::Document shown = json_of({"inspect", folder, "--program"});
  const base::Document assembled = json_of({"inspect", folder, "--assembly"});
  for (const base::Document* said : {&listed, &shown, &assembled}) {
    EXPECT_EQ(said->at("seconds"), best.at("seconds"));
    EXPECT_EQ(said->at("schedule"), best.at("schedule"));
    EXPECT_EQ(said->find("pipeline") == nullptr, best.find("pipeline") == nullptr);
    if (const base::Document* pipeline = best.find("pipeline")) {
      EXPECT_EQ(said->at("pipeline"), *pipeline);
    }
  }
  EXPECT_EQ(shown.at("program_hash"), best.at("program"));
  EXPECT_EQ(assembled.at("program_hash"), best.at("program"));

  // The run, and its best.json.
  EXPECT_EQ(graft({"report", folder, folder + "/best.json", "--out", page}).exit_code, 0);
  const std::string html = base::read_file(page);
  const std::string text = graft({"inspect", folder}).out,
                    before = "\nbest of " + tuned.at("workload").as_string() + ": ";
  const std::size_t begin = text.find(before) + before.size();
  const std::string seconds = text.substr(begin, text.find_first_of("\n(,", begin) - begin);
  std::string schedule;
  for (const base::Document& step : best.at("schedule").as_list()) schedule += step.as_string() + "\n";
  schedule.pop_back();
  for (const std::string& part :
       {"<td>" + seconds.substr(0, seconds.find_last_not_of(' ') + 1) + "</td>", "<pre>" + schedule + "</pre>"}) {
    const std::size_t first = html.find(part);
    EXPECT_NE(first, std::string::npos) << part;
    EXPECT_NE(html.find(part, first + 1), std::string::npos) << part;
  }
  return tuned;
}

TEST(Answer, IsOneForTuneInspectAndReport) {
  const base::Folder folder;
  int runs = 0;
  for (const std::string platform : {"native:v3", "model:sifive-p450", "model:sifive-x280", "model:cortex-a72"}) {
    for (const char* const seed : {"1", "2", "3"}) {
      SCOPED_TRACE(platform + " " + seed);
      const std::string run = (folder / std::to_string(runs++)).string();
      expect_one_best(quick({"tune", small, "--platform", platform, "--trials", "12", "--batch", "6", "--explorer",
                             "random", "--seed", seed}),
                      run, run + ".html");
    }
  }
}

// What qemu finds wrong is nobody's best, and it stays so when the run is asked later. The first three programs run on
// vectors of 128 bits, which are not what this cpu's code expects.
TEST(Answer, IsNoProgramThatFailsUnderQemu) {
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  const base::Folder folder;
  const std::string qemu = (folder / "qemu-that-errs").string(), runs = (folder / "runs").string();
  base::replace_file(qemu, "#!/bin/sh\n[ \"$1\" = --version ] && exec qemu-riscv64 --version\necho >> " + runs +
                               "\nvlen=512\n[ $(wc -l < " + runs +
                               ") -le 3 ] && vlen=128\n"
                               "exec qemu-riscv64 -cpu rv64,v=true,vlen=$vlen,elen=64,vext_spec=v1.0 \"$@\"\n");
  std::filesystem::permissions(qemu, std::filesystem::perms::owner_all);
  std::string yaml = graft({"platform", "show", "model:sifive-x280"}).out;
  const std::size_t at = yaml.find("qemu: [");
  ASSERT_NE(at, std::string::npos);
  yaml.replace(at, yaml.find(']', at) + 1 - at, "qemu: [\"" + qemu + "\"]");
  base::replace_file(folder / "errs.yaml", yaml);
  const std::string run = (folder / "run").string();
  const std::vector<std::string> command = {"tune",       small,   "--platform", (folder / "errs.yaml").string(),
                                            "--trials",   "24",    "--batch",    "12",
                                            "--explorer", "random"};
  const base::Document tuned = expect_one_best(command, run, run + ".html");
  const double seconds = tuned.at("best").at("seconds").as_number();
  EXPECT_EQ(tuned.at("check").as_string(), "qemu");
  EXPECT_GT(seconds, tuned.at("curve").as_list().back().as_list().at(1).as_number());
  EXPECT_TRUE(tuned.at("builds").as_list().empty());

  // Again, nothing runs under qemu.
  const std::string known = base::read_file(runs);
  const base::Document again = expect_one_best(command, run, run + ".html");
  EXPECT_EQ(again.at("best"), tuned.at("best"));
  EXPECT_EQ(base::read_file(runs), known);
  // For a run made by an older version, the answer is the fastest trial.
  std::filesystem::remove(run + "/builds.json");
  const base::Document fastest = json_of({"inspect", run}).at("best").as_list().at(0);
  EXPECT_EQ(fastest.at("seconds"), tuned.at("curve").as_list().back().as_list().at(1));
  EXPECT_EQ(expect_one_best(command, run, run + ".html").at("best").at("seconds"), fastest.at("seconds"));
}

}  // namespace
}  // namespace graft::cli
