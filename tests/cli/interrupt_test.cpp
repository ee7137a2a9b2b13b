// One SIGINT ends every long command soon, by exit code 130, and the same command continues to the same result;
// and what does not fit into memory is refused before anything is taken.
#include <sys/stat.h>

#include <algorithm>
#include <functional>

#include "base/random.h"
#include "datasets/dataset.h"
#include "tests/cli/signals.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

using namespace std::chrono_literals;

// A command that is interrupted again and again.
struct Victim {
  std::string name;
  std::vector<std::string> command;
  std::filesystem::path journal;      // of its trials; none: ""
  std::vector<std::string> makes;     // files and folders that it leaves
  std::function<std::string()> made;  // what they say, in a text that is the same for every way there
};

class Interrupt : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new base::Folder;
    ASSERT_EQ(
        graft(quick({"collect", small, other, "--platform", "native:v2", "--samples", "30", "--out", file("v2.h5")}))
            .exit_code,
        0);
    ASSERT_EQ(graft(quick({"collect", "--programs", file("v2.h5"), "--platform", "native:v3", "--out", file("v3.h5")}))
                  .exit_code,
              0);
    ASSERT_EQ(
        graft({"train", file("v2.h5"), file("v3.h5"), "--out", file("model.h5"), "--learner", "ridge", "--steps", "20"})
            .exit_code,
        0);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string file(const std::string& name) { return (*folder_ / name).string(); }

  static std::vector<Victim> victims() {
    const auto candidates = [](const std::string& journal) {
      std::string text;
      std::vector<std::uint64_t> all;
      for (const Recorded& trial : recorded(journal)) all.push_back(trial.first);
      std::sort(all.begin(), all.end());
      for (const std::uint64_t candidate : all) text += std::to_string(candidate) + " ";
      return text;
    };
    const auto readable = [](const std::string& model) {
      return graft({"inspect", model}).exit_code == 0 ? std::string("readable") : "not readable";
    };
    const std::vector<std::string> data{file("v2.h5"), file("v3.h5")};
    const auto with = [&](std::vector<std::string> first, const std::vector<std::string>& last) {
      first.insert(first.end(), data.begin(), data.end());
      first.insert(first.end(), last.begin(), last.end());
      return first;
    };
    return {
        // What a search proposes depends on the times that it saw.
        {"tune",
         quick({"tune", small, "--platform", "native:v2", "--model", file("model.h5"), "--trials", "48", "--batch",
                "16", "--rebuild", "1", "--out", file("tuned")}),
         file("tuned/journal.jsonl"),
         {"tuned"},
         [] {
           const base::Document best = base::parse_json(base::read_file(file("tuned/best.json")), "best.json");
           return std::to_string(recorded(file("tuned/journal.jsonl")).size()) + " trials, " +
                  (best.at("complete").as_bool() ? "complete" : "not complete");
         }},
        {"collect",
         quick({"collect", small, other, "--platform", "native:v2", "--samples", "40", "--out", file("made.h5")}),
         file("made.h5.run/journal.jsonl"),
         {"made.h5", "made.h5.run"},
         [=] {
           return candidates(file("made.h5.run/journal.jsonl")) +
                  std::to_string(datasets::read_dataset(file("made.h5")).rows.size());
         }},
        {"adapt",
         quick({"adapt", file("model.h5"), "--platform", "native:v2", "--workloads", small + "," + other, "--shots",
                "16", "--out", file("adapted.h5")}),
         file("adapted.h5.run/journal.jsonl"),
         {"adapted.h5", "adapted.h5.run"},
         [=] { return candidates(file("adapted.h5.run/journal.jsonl")) + readable(file("adapted.h5")); }},
        {"train",
         with({"train"}, {"--out", file("trained.h5"), "--losses", file("losses.csv"), "--learner", "maml", "--steps",
                          "120", "--hidden", "16"}),
         "",
         {"trained.h5", "trained.h5.checkpoints", "losses.csv"},
         [=] { return base::read_file(file("losses.csv")) + readable(file("trained.h5")); }},
        {"evaluate",
         with({"evaluate"}, {"--methods", "scratch,ridge,finetune", "--shots", "0,8", "--draws", "6", "--hidden", "16",
                             "--steps", "60", "--out", file("judged.json")}),
         "",
         {"judged.json"},
         [] { return base::parse_json(base::read_file(file("judged.json")), "judged.json").at("rows").to_json(); }},
        {"compare",
         with({"compare"}, {"--out", file("compared.html")}),
         "",
         {"compared.html"},
         [] { return std::to_string(std::filesystem::exists(file("compared.html"))); }},
    };
  }

  // Interrupts the command at moments spread over its run, and lets it continue, `times` times in total. The seconds
  // that each took to end.
  static std::vector<double> interrupted_often(const Victim& victim, int times, double longest_seconds,
                                               std::uint64_t seed) {
    const auto fresh = [&] {
      for (const std::string& name : victim.makes) std::filesystem::remove_all(file(name));
    };
    fresh();
    const auto begin = std::chrono::steady_clock::now();
    const base::Finished alone = graft(victim.command);
    EXPECT_EQ(alone.exit_code, 0) << alone.err;
    const std::string expected = victim.made();
    const auto whole =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
    fresh();

    std::vector<double> seconds;
    std::vector<Recorded> before;
    base::Stream stream(seed, victim.name);
    for (int runs = 0; int(seconds.size()) < times && runs < 200 * times; ++runs) {
      const auto after = std::chrono::milliseconds(stream.below(std::max<std::int64_t>(1, whole)));
      const Signalled ended = signalled(victim.command, SIGINT, after, true);
      const std::string where = victim.name + ", seed " + std::to_string(seed) + ", run " + std::to_string(runs);
      EXPECT_TRUE(WIFEXITED(ended.status)) << where << ": ended by signal " << WTERMSIG(ended.status);
      const int code = WEXITSTATUS(ended.status);
      EXPECT_TRUE(code == 130 || code == 0) << where << ": exit code " << code;
      if (!victim.journal.empty()) {
        const std::vector<Recorded> now = recorded(victim.journal);
        EXPECT_TRUE(now.size() >= before.size() && std::equal(before.begin(), before.end(), now.begin()))
            << where << ": a recorded trial is gone or another one";
        expect_distinct(now);
        before = now;
      }
      if (code == 130) {
        EXPECT_LT(ended.seconds, longest_seconds) << where;
        seconds.push_back(ended.seconds);
      } else {  // it was done before: what it made is as if it had been left alone
        EXPECT_EQ(victim.made(), expected) << where;
        fresh();
        before.clear();
      }
      if (::testing::Test::HasFailure()) return seconds;
    }
    EXPECT_EQ(int(seconds.size()), times) << victim.name;
    const base::Finished finished = graft(victim.command);
    EXPECT_EQ(finished.exit_code, 0) << victim.name << ": " << finished.err;
    EXPECT_EQ(victim.made(), expected) << victim.name;
    return seconds;
  }

 private:
  static base::Folder* folder_;
};
base::Folder* Interrupt::folder_ = nullptr;

TEST_F(Interrupt, EndsEveryLongCommandSoonAndLosesNothing) {
  for (const Victim& victim : victims()) {
    interrupted_often(victim, 3, 10, 11);
    if (HasFailure()) return;
  }
}

// 216 times, on a machine that does nothing else.
TEST_F(Interrupt, DISABLED_EndsEveryLongCommandWithinTwoSeconds) {
  for (const Victim& victim : victims()) {
    std::vector<double> seconds = interrupted_often(victim, 36, 2, 110);
    if (HasFailure()) return;
    std::sort(seconds.begin(), seconds.end());
    std::printf("%s: %zu interruptions, median %.3f s, longest %.3f s\n", victim.name.c_str(), seconds.size(),
                seconds[seconds.size() / 2], seconds.back());
  }
}

// It waits for someone to read what it writes, and sees nothing else: the last resort.
TEST_F(Interrupt, EndsWhatLooksAtNoRequest) {
  std::filesystem::create_directory(file("never-read"));
  ASSERT_EQ(::mkfifo(file("never-read/journal.jsonl").c_str(), 0600), 0);
  const Signalled ended = signalled(
      {"tune", small, "--platform", "native:v2", "--trials", "2", "--out", file("never-read")}, SIGINT, 3000ms, true);
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 130);
  EXPECT_GT(ended.seconds, 1);
  EXPECT_LT(ended.seconds, 10);
}

TEST_F(Interrupt, EndsALongReference) {
  // Too few operations for a sample, some seconds of work.
  const std::vector<std::string> command{
      "tune", "matmul(m=1500,n=1500,k=1500)", "--platform", "native:v2", "--trials", "4", "--out", file("large")};
  const Signalled ended = signalled(command, SIGINT, 1500ms, true);
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 130);
  EXPECT_LT(ended.seconds, 10);
}

// On a machine that does nothing else.
TEST_F(Interrupt, DISABLED_ALargeProductHasATrialWithin20SecondsAndEndsWithinTwo) {
  const std::vector<std::string> command{
      "tune", "matmul(m=4096,n=4096,k=4096)", "--platform", "native", "--trials", "64", "--out", file("4096")};
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Running run(command);
  while (recorded(file("4096/journal.jsonl")).empty() && seconds() < 100) std::this_thread::sleep_for(50ms);
  std::printf("first trial after %.1f s\n", seconds());
  EXPECT_LT(seconds(), 20);
  const auto asked = std::chrono::steady_clock::now();
  run.signal(SIGINT);
  const int status = run.wait();
  const double ended = std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
  std::printf("ended after %.2f s\n", ended);
  EXPECT_LT(ended, 2);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130);
}

TEST_F(Interrupt, WhatDoesNotFitIntoMemoryIsRefusedBeforeThereIsAnything) {
  const std::string board = file("board.yaml");
  base::replace_file(board,
                     "name: board\ntarget:\n  triple: x86_64-unknown-linux-gnu\n  cpu: x86-64-v2\n  vector_bits: 128\n"
                     "  vector_registers: 16\n  cores: 1\n  l1_bytes: 32768\n  line_bytes: 64\n"
                     "remote:\n  prefix: [env]\n");
  const std::string square = "input A[1000000,1000000]; output C[i,j] = A[i,j] * 2 where i=1000000, j=1000000";
  for (const std::string& platform : {std::string("native:v2"), std::string("model:cortex-a53"), board}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"tune", square, "--trials", "2"},
          {"collect", square, "--samples", "2"},
          {"adapt", file("model.h5"), "--workloads", square, "--shots", "2"}}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--platform", platform, "--out", file("too-large")});
      const base::Finished finished = graft(words);
      EXPECT_EQ(finished.exit_code, 2) << platform << ": " << finished.err;
      EXPECT_EQ(lines_in(finished.err), 1u) << finished.err;
      EXPECT_NE(finished.err.find(" TB of memory, "), std::string::npos) << finished.err;
      EXPECT_NE(finished.err.find(" are available"), std::string::npos) << finished.err;
      EXPECT_FALSE(std::filesystem::exists(file("too-large")));
      EXPECT_FALSE(std::filesystem::exists(file("too-large.run")));
    }
  }
  const base::Finished product =
      graft({"tune", "matmul(m=1000000,n=1000000,k=8)", "--platform", "native:v2", "--out", file("too-large")});
  EXPECT_EQ(product.exit_code, 2);
  EXPECT_NE(product.err.find(" TB of memory, "), std::string::npos) << product.err;
}

}  // namespace
}  // namespace graft::cli
