// Searches in a world where things break: programs that crash, hang, answer nonsense or too little, a worker that is
// killed, a disk that is full, a machine that is gone. Each ends with a best program whose results were right, or with
// an error that says what happened; measurements are never lost.
#include <sys/stat.h>

#include <fstream>

#include "datasets/trial.h"
#include "tests/cli/signals.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

using namespace std::chrono_literals;

// native:v2 behind a command that runs what it is given, or does something else instead, by the bytes of the program.
std::string platform_behind(const base::Folder& folder, const std::string& script) {
  const std::string runner = (folder / "runner").string(), file = (folder / "board.yaml").string();
  base::replace_file(runner, "#!/bin/sh\n" + script);
  ::chmod(runner.c_str(), 0755);
  std::string yaml = graft({"platform", "show", "native:v2"}).out;
  yaml.resize(yaml.find("native:\n"));
  yaml.replace(yaml.find("native:v2"), 9, "behind");
  base::replace_file(file, yaml + "remote:\n  prefix: [" + runner + "]\n");
  return file;
}

// A number from 0 to 9 by the program's bytes: the same program always fails in the same way.
const std::string dice = "n=$(($(cksum < \"$1\" | cut -d' ' -f1) % 10))\n";
const std::string crashes = dice + "[ $n -lt 3 ] && { \"$@\" | head -c 50; kill -SEGV $$; }\nexec \"$@\"\n";
const std::string does_not_start = dice + "[ $n -lt 1 ] && kill -SEGV $$\nexec \"$@\"\n";
const std::string hangs = dice + "[ $n -lt 1 ] && { \"$@\" | head -c 50; exec sleep 60; }\nexec \"$@\"\n";
const std::string talks_nonsense = dice + "[ $n -lt 3 ] && { echo '{\"graft\":1'; exit 0; }\nexec \"$@\"\n";
const std::string breaks_off = dice + "[ $n -lt 3 ] && { \"$@\" | head -c 200; exit 0; }\nexec \"$@\"\n";
const std::string lies = dice + "[ $n -lt 3 ] && { \"$@\" | tr '\\000\\001' '\\001\\000'; exit 0; }\nexec \"$@\"\n";
const std::string eats_memory = dice + "[ $n -lt 3 ] && { ulimit -v 1000; }\nexec \"$@\"\n";
const std::string gone = "[ -e \"$0.gone\" ] && exit 255\ntouch \"$0.gone\"\nexec \"$@\"\n";

std::vector<std::string> search(const std::string& platform, const std::string& out, int seed) {
  return quick({"tune",       small,    "--platform", platform, "--model", "random",
                "--explorer", "random", "--trials",   "12",     "--batch", "6",
                "--rebuild",  "0",      "--timeout",  "2",      "--seed",  std::to_string(seed),
                "--out",      out});
}

// Every trial that the run recorded is whole, and its answer, if it has one, is one of them, and was ok.
void expect_sound(const std::filesystem::path& run, const base::Finished& finished, const std::string& what) {
  const std::vector<Recorded> trials = recorded(run / "journal.jsonl");
  if (finished.exit_code == 0) {
    EXPECT_EQ(trials.size(), 12u) << what;
    const base::Document best = base::parse_json(finished.out, "out").at("best");
    EXPECT_GT(best.at("seconds").as_number(), 0) << what;
    EXPECT_EQ(best.at("measurement").at("status").as_string(), "ok") << what;
  } else {
    EXPECT_EQ(finished.exit_code, 1) << what << finished.err;
    EXPECT_NE(finished.err.find("error: "), std::string::npos) << what;
    EXPECT_EQ(finished.out, "") << what;
  }
}

base::Finished searched(std::vector<std::string> command) {
  command.push_back("--json");
  return graft(command);
}

void programs_that_fail(const std::string& script, int seed, const std::string& what) {
  const base::Folder folder;
  const std::string run = (folder / "run").string();
  expect_sound(run, searched(search(platform_behind(folder, script), run, seed)), what);
}

// The worker of a search is killed while it works, several times; the search continues with another one.
void killed_workers(int seed) {
  const base::Folder folder;
  const std::string run = (folder / "run").string();
  std::vector<std::string> command = search("native:v2", run, seed);
  Running running(command);
  for (int kills = 0; kills < 3; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + 40 * (seed % 5)));
    running.kill_children("graft-worker");
  }
  const int status = running.wait();
  EXPECT_TRUE(WIFEXITED(status)) << "seed " << seed;
  expect_sound(run, searched(command), "killed workers");
}

// The disk is full after some bytes: an error that says so, and the same command continues once there is space.
void full_disk(int seed) {
  const base::Folder folder;
  const std::string run = (folder / "run").string();
  std::string line = "ulimit -f " + std::to_string(1 + seed % 8) + "; exec";  // in units of 512 or 1024 bytes
  for (const std::string& word : search("native:v2", run, seed)) line += " '" + word + "'";
  line.insert(line.find("exec") + 4, " '" + std::string(GRAFT_PROGRAM) + "'");
  const base::Finished finished = base::run_process({"sh", "-c", line}, 2min);
  if (finished.exit_code != 0) {
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    EXPECT_NE(finished.err.find("error: "), std::string::npos) << finished.err;
  }
  const std::vector<Recorded> before =
      std::filesystem::exists(run + "/journal.jsonl") ? recorded(run + "/journal.jsonl") : std::vector<Recorded>();
  expect_sound(run, searched(search("native:v2", run, seed)), "full disk");
  const std::vector<Recorded> after = recorded(run + "/journal.jsonl");
  EXPECT_TRUE(after.size() >= before.size() && std::equal(before.begin(), before.end(), after.begin()));
}

// The last three wait half a minute for a machine that may come back.
constexpr int kinds = 10, fast_kinds = 7;

void run_of(int kind, int seed) {
  SCOPED_TRACE("kind " + std::to_string(kind) + ", seed " + std::to_string(seed));
  switch (kind) {
    case 0:
      return programs_that_fail(crashes, seed, "crashes");
    case 1:
      return programs_that_fail(talks_nonsense, seed, "talks nonsense");
    case 2:
      return programs_that_fail(breaks_off, seed, "breaks off");
    case 3:
      return programs_that_fail(lies, seed, "lies");
    case 4:
      return programs_that_fail(eats_memory, seed, "eats memory");
    case 5:
      return killed_workers(seed);
    case 6:
      return full_disk(seed);
    case 7:
      return programs_that_fail(hangs, seed, "hangs");
    case 8:
      return programs_that_fail(does_not_start, seed, "does not start");
    default:
      return programs_that_fail(gone, seed, "is gone");
  }
}

TEST(Faults, EveryRunEndsSoundly) {
  for (int kind = 0; kind < fast_kinds; ++kind) run_of(kind, 1);
}

TEST(Faults, DISABLED_AHundredRunsEndSoundly) {
  for (int number = 0; number < 10 * kinds; ++number) run_of(number % kinds, 1 + number / kinds);
}

}  // namespace
}  // namespace graft::cli
