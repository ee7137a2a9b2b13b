// graft tune --watch: a machine that becomes another one in the course of a search.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "tests/cli/signals.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

// A command that runs programs as they are, or by an emulator once a file exists: many times slower. False, and nothing
// else is looked at, if this machine itself seemed to become another one meanwhile, as a virtual one may.
bool slower_machine_makes_history() {
  const base::Folder folder;
  const std::string runner = (folder / "runner").string(), file = (folder / "board.yaml").string();
  const std::string run = (folder / "run").string(), slow = (folder / "slow").string();
  base::replace_file(runner, "#!/bin/sh\n[ -e " + slow + " ] && exec qemu-x86_64 \"$@\"\nexec \"$@\"\n");
  ::chmod(runner.c_str(), 0755);
  std::string yaml = graft({"platform", "show", "native:v2"}).out;
  yaml.resize(yaml.find("native:\n"));
  yaml.replace(yaml.find("native:v2"), 9, "changing");
  base::replace_file(file, yaml + "remote:\n  prefix: [" + runner + "]\n");
  const auto searched = [&](const std::string& trials) {
    return json_of(quick({"tune", small, "--platform", file, "--model", "scratch", "--trials", trials, "--batch", "8",
                          "--watch", "8", "--out", run}));
  };
  const base::Document before = searched("16");
  const base::Document again = searched("16");
  if (std::filesystem::exists(run + ".before-1")) return false;
  EXPECT_EQ(again.at("best"), before.at("best"));

  base::replace_file(slow, "");
  const base::Document after = searched("40");
  if (std::filesystem::exists(run + ".before-2")) return false;
  EXPECT_TRUE(std::filesystem::exists(run + ".before-1"));
  EXPECT_EQ(recorded(run + ".before-1/journal.jsonl").size(), 16u);  // nothing is lost
  EXPECT_EQ(recorded(run + "/journal.jsonl").size(), 24u);
  EXPECT_EQ(after.at("trials").as_integer(), 24);
  EXPECT_GT(after.at("best").at("seconds").as_number(), 2 * before.at("best").at("seconds").as_number());
  // Programs that were among the fastest before are measured early.
  std::vector<Recorded> old = recorded(run + ".before-1/journal.jsonl");
  const std::vector<Recorded> fresh = recorded(run + "/journal.jsonl");
  const auto seconds = [](const Recorded& trial) {
    return trial.second.empty() ? HUGE_VAL : *std::min_element(trial.second.begin(), trial.second.end());
  };
  std::sort(old.begin(), old.end(), [&](const Recorded& a, const Recorded& b) { return seconds(a) < seconds(b); });
  EXPECT_TRUE(std::any_of(fresh.begin(), fresh.begin() + 8, [&](const Recorded& trial) {
    return std::any_of(old.begin(), old.begin() + 4, [&](const Recorded& each) { return each.first == trial.first; });
  }));

  // It continues as its present run.
  const base::Document later = searched("48");
  if (std::filesystem::exists(run + ".before-2")) return false;
  EXPECT_EQ(later.at("trials").as_integer(), 32);
  return true;
}

TEST(Watch, ASlowerMachineMakesHistoryOfTheRun) {
  bool stayed = false;
  for (int attempt = 0; attempt < 8 && !stayed; ++attempt) stayed = slower_machine_makes_history();
  EXPECT_TRUE(stayed) << "a machine that stays the same was taken for another one, eight times";
}

}  // namespace
}  // namespace graft::cli
