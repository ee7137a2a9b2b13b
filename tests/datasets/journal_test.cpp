#include "datasets/journal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

base::Document example_head() {
  return base::parse_json(R"({"platform":"native","context":{"seed":1,"noise":0.5,"workloads":["a","b"]}})", "head");
}

// A journal of `count` random trials; its text.
std::string write_journal(const std::filesystem::path& path, std::int64_t count) {
  Journal journal(path, example_head());
  for (std::int64_t i = 0; i < count; ++i) journal.append(random_trial(i, 1));
  return base::read_file(path);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end + 1 - begin));
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

TEST(Journal, ReadsBackEqual) {
  const Folder folder;
  const std::string text = write_journal(folder / "run.jsonl", 200);
  const JournalContent content = read_journal(folder / "run.jsonl");
  EXPECT_EQ(content.head, example_head());
  EXPECT_EQ(content.intact_bytes, std::int64_t(text.size()));
  EXPECT_EQ(content.sketches.size(), 5u);
  ASSERT_EQ(content.trials.size(), 200u);
  for (std::int64_t i = 0; i < 200; ++i) {
    EXPECT_TRUE(same(content.trials[std::size_t(i)], random_trial(i, 1))) << "trial " << i;
  }
}

TEST(Journal, WritesASketchOnceBeforeItsFirstUse) {
  const Folder folder;
  const std::vector<std::string> lines = lines_of(write_journal(folder / "run.jsonl", 100));
  EXPECT_EQ(lines.size(), 1u + 5u + 100u);
  EXPECT_TRUE(lines[0].starts_with(R"({"journal":1,"platform":"native",)")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with(R"({"sketch":0,"text":"sketch tiles_)")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with(R"({"trial":0,"workload":"matmul()")) << lines[2];
}

TEST(Journal, ContinuesWhereItStopped) {
  const Folder folder, whole;
  write_journal(folder / "run.jsonl", 10);
  {
    Journal journal(folder / "run.jsonl", example_head());
    ASSERT_EQ(journal.trials().size(), 10u);
    for (std::int64_t i = 10; i < 20; ++i) journal.append(random_trial(i, 1));
    EXPECT_EQ(journal.trials().size(), 20u);
  }
  EXPECT_EQ(base::read_file(folder / "run.jsonl"), write_journal(whole / "run.jsonl", 20));
}

TEST(Journal, IsOnTheDiskWhenAppendReturns) {
  const Folder folder;
  Journal journal(folder / "run.jsonl", example_head());
  for (std::int64_t i = 0; i < 20; ++i) {
    journal.append(random_trial(i, 1));
    EXPECT_EQ(read_journal(folder / "run.jsonl").trials.size(), std::size_t(i + 1));
  }
}

TEST(Journal, RefusesAnotherHead) {
  const Folder folder;
  const std::string text = write_journal(folder / "run.jsonl", 3);
  const auto refusal = [&](const std::string& head) {
    const std::string message =
        message_of<base::UserError>([&] { Journal(folder / "run.jsonl", base::parse_json(head, "head")); });
    EXPECT_TRUE(contains(message, (folder / "run.jsonl").string() + ":1: ")) << message;
    return message;
  };
  EXPECT_TRUE(contains(refusal(R"({"platform":"native:v3","context":{}})"),
                       R"('platform' is "native" there and "native:v3" now)"));
  EXPECT_TRUE(contains(refusal(R"({"platform":"native","context":{"seed":2,"noise":0.5,"workloads":["a","b"]}})"),
                       "'context.seed' is 1 there and 2 now"));
  EXPECT_TRUE(contains(refusal(R"({"platform":"native","context":{"seed":1,"noise":0.5,"workloads":["a"]}})"),
                       R"('context.workloads' is ["a","b"] there and ["a"] now)"));
  EXPECT_TRUE(contains(refusal(R"({"platform":"native"})"), "'context' is given only there"));
  EXPECT_TRUE(
      contains(refusal(R"({"platform":"native","context":{"seed":1,"noise":0.5,"workloads":["a","b"]},"extra":1})"),
               "'extra' is given only now"));
  EXPECT_EQ(base::read_file(folder / "run.jsonl"), text) << "a refused journal was touched";
}

TEST(Journal, AnotherOrderOfKeysIsTheSameHead) {
  const Folder folder;
  write_journal(folder / "run.jsonl", 3);
  const auto head =
      base::parse_json(R"({"context":{"noise":0.5,"workloads":["a","b"],"seed":1},"platform":"native"})", "head");
  EXPECT_EQ(Journal(folder / "run.jsonl", head).trials().size(), 3u);
}

TEST(Journal, TheSecondDifferenceIsFoundBehindAnotherOrder) {
  const Folder folder;
  Journal(folder / "run.jsonl", base::parse_json(R"({"a":{"x":1,"y":2},"b":3})", "head"));
  EXPECT_TRUE(contains(message_of<base::UserError>([&] {
                         Journal(folder / "run.jsonl", base::parse_json(R"({"a":{"y":2,"x":1},"b":4})", "head"));
                       }),
                       "'b' is 3 there and 4 now"));
}

TEST(Journal, ForgivesATornLastLineAtEveryLength) {
  const Folder folder;
  const std::string text = write_journal(folder / "run.jsonl", 12);
  const std::vector<std::string> lines = lines_of(text);
  // From the head's end on: what a kill can leave of everything after it.
  for (std::size_t length = lines[0].size(); length <= text.size(); ++length) {
    write_plainly(folder / "cut.jsonl", text.substr(0, length));
    std::size_t whole = lines[0].size(), trials = 0;
    for (std::size_t i = 1; i < lines.size() && whole + lines[i].size() <= length; ++i) {
      whole += lines[i].size();
      if (lines[i].starts_with("{\"trial\"")) ++trials;
    }
    const JournalContent content = read_journal(folder / "cut.jsonl");
    EXPECT_EQ(content.intact_bytes, std::int64_t(whole)) << "cut to " << length;
    EXPECT_EQ(content.trials.size(), trials) << "cut to " << length;
    if (length % 151 != 0 && length != text.size()) continue;  // every append waits for the disk
    {
      Journal journal(folder / "cut.jsonl", example_head());
      ASSERT_EQ(journal.trials().size(), trials) << "cut to " << length;
      for (std::size_t i = trials; i < 12; ++i) journal.append(random_trial(std::int64_t(i), 1));
    }
    EXPECT_EQ(base::read_file(folder / "cut.jsonl"), text) << "cut to " << length;
  }
}

TEST(Journal, ATornHeadIsWrittenAnew) {
  const Folder folder;
  const std::string text = write_journal(folder / "run.jsonl", 0);
  for (const std::size_t length :
       {std::size_t(0), std::size_t(1), std::size_t(11), std::size_t(12), std::size_t(60), text.size() - 1}) {
    write_plainly(folder / "cut.jsonl", text.substr(0, length));
    EXPECT_TRUE(contains(message_of<base::UserError>([&] { read_journal(folder / "cut.jsonl"); }), "cut.jsonl:1: "));
    EXPECT_TRUE(Journal(folder / "cut.jsonl", example_head()).trials().empty());
    EXPECT_EQ(base::read_file(folder / "cut.jsonl"), text) << "cut to " << length;
  }
}

TEST(Journal, OtherFilesAreLeftAlone) {
  const Folder folder;
  for (const std::string text : {"a letter without an end", "a letter\n", "{\"a\":1}\n", "[1]\n", "{\"journal\":2}\n",
                                 "{\"journal\":\"x\"}\n", "\n"}) {
    write_plainly(folder / "other", text);
    const std::string message = message_of<base::UserError>([&] { Journal(folder / "other", example_head()); });
    EXPECT_TRUE(contains(message, "other:1")) << message;
    EXPECT_EQ(base::read_file(folder / "other"), text);
  }
  EXPECT_TRUE(contains(message_of<base::UserError>([&] { Journal(folder / "other", example_head()); }), "other:1"));
  message_of<base::UserError>([&] { read_journal(folder / "missing"); });
}

TEST(Journal, ABrokenLineElsewhereIsRefused) {
  const Folder folder;
  const std::vector<std::string> lines = lines_of(write_journal(folder / "run.jsonl", 12));
  const auto refusal = [&](std::size_t line, const std::string& by) {
    std::vector<std::string> broken = lines;
    broken[line] = by;
    write_plainly(folder / "broken.jsonl", joined(broken));
    const std::string message = message_of<base::UserError>([&] { read_journal(folder / "broken.jsonl"); });
    EXPECT_EQ(message_of<base::UserError>([&] { Journal(folder / "broken.jsonl", example_head()); }), message);
    const std::string place = (folder / "broken.jsonl").string() + ":" + std::to_string(line + 1);
    EXPECT_TRUE(message.starts_with(place)) << message;
    EXPECT_TRUE(contains(message, "restore it, or keep only the " + std::to_string(line) + " lines before this one"))
        << message;
    EXPECT_EQ(base::read_file(folder / "broken.jsonl"), joined(broken)) << "a refused journal was touched";
    return message;
  };
  const std::size_t last = lines.size() - 1;
  EXPECT_TRUE(contains(refusal(last, lines[last].substr(0, 20) + "\n"), "not valid JSON"));
  EXPECT_TRUE(contains(refusal(4, "\n"), "not valid JSON"));
  EXPECT_TRUE(contains(refusal(4, "[]\n"), "expected a map"));
  EXPECT_TRUE(contains(refusal(4, "{}\n"), "neither a trial nor a sketch"));
  EXPECT_TRUE(contains(refusal(last, lines[last - 1]), "trial 10 comes after trial 10"));
  const auto refused_trial = [&](const std::string& text) { return refusal(2, text + "\n"); };
  EXPECT_TRUE(contains(refused_trial(R"({"trial":0,"sketch":0,"arguments":[],"program":"0000000000000000"})"),
                       "missing key 'workload'"));
  EXPECT_TRUE(contains(
      refused_trial(
          R"({"trial":0,"workload":"w","sketch":9,"arguments":[],"program":"0000000000000000","status":"crashed"})"),
      "sketch 9 is not written above"));
  EXPECT_TRUE(contains(
      refused_trial(R"({"trial":0,"workload":"w","sketch":0,"arguments":[],"program":"xyz","status":"crashed"})"),
      "xyz"));
  EXPECT_TRUE(contains(
      refused_trial(
          R"({"trial":0,"workload":"w","sketch":0,"arguments":[],"program":"0000000000000000","status":"melted"})"),
      "unknown status 'melted'"));
  EXPECT_TRUE(contains(
      refused_trial(
          R"({"trial":0,"workload":"w","sketch":0,"arguments":[],"program":"0000000000000000","status":"ok","s":1})"),
      "unknown key 's'"));
  EXPECT_TRUE(contains(refused_trial(R"({"sketch":7,"text":"sketch s\n"})"), "sketch 7 out of order"));
  EXPECT_TRUE(contains(refused_trial(R"({"sketch":1,"text":"nonsense"})"), "nonsense"));
}

TEST(Journal, WhatReadingWouldRefuseIsNotWritten) {
  const Folder folder;
  const std::string text = write_journal(folder / "run.jsonl", 3);
  Journal journal(folder / "run.jsonl", example_head());
  Trial trial = random_trial(2, 1);
  EXPECT_TRUE(contains(message_of<base::Failure>([&] { journal.append(trial); }), "trial 2 is the last one"));
  trial.index = 3;
  trial.measurement.status = Status::ok;
  trial.measurement.reason = "";
  trial.measurement.seconds = {std::nan("")};
  EXPECT_TRUE(contains(message_of<base::Failure>([&] { journal.append(trial); }), "trial 3 cannot be recorded"));
  EXPECT_EQ(journal.trials().size(), 3u);
  EXPECT_EQ(base::read_file(folder / "run.jsonl"), text);
}

TEST(Journal, ReasonsMayBeAnyBytes) {
  const Folder folder;
  Trial trial = random_trial(0, 1);
  trial.measurement = {
      .status = Status::crashed, .reason = std::string("\xff\0\n\x1b[31m", 8), .seconds = {}, .clock = "", .check = ""};
  Journal(folder / "run.jsonl", example_head()).append(trial);
  EXPECT_EQ(read_journal(folder / "run.jsonl").trials.size(), 1u);
}

// A child appends for ever and says through a pipe which trials it was told are on the disk; it is killed at some
// moment. Nothing that it said may be lost, and the next child continues.
TEST(Journal, NothingAcknowledgedIsLostBySigkill) {
  const Folder folder;
  const std::filesystem::path path = folder / "run.jsonl";
  constexpr std::uint64_t seed = 11;
  base::Stream moments(seed, "kill");
  std::int64_t acknowledged = -1;
  // On a busy machine a child gets nowhere in a round.
  for (int round = 0; round < 30 || (acknowledged <= 30 && round < 1000); ++round) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        Journal journal(path, example_head());
        for (std::int64_t i = std::int64_t(journal.trials().size());; ++i) {
          journal.append(random_trial(i, seed));
          if (::write(pipe_ends[1], &i, sizeof i) != sizeof i) ::_exit(1);
        }
      } catch (...) {
        ::_exit(2);
      }
    }
    ::close(pipe_ends[1]);
    ::usleep(useconds_t(moments.below(30'000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round << ": the child ended by itself";
    for (std::int64_t index; ::read(pipe_ends[0], &index, sizeof index) == sizeof index;) acknowledged = index;
    ::close(pipe_ends[0]);

    const Journal journal(path, example_head());
    const std::int64_t found = std::int64_t(journal.trials().size());
    // At most the one that was being written is there without having been acknowledged; now it is known, too.
    ASSERT_GE(found, acknowledged + 1) << "round " << round << ", seed " << seed;
    ASSERT_LE(found, acknowledged + 2) << "round " << round << ", seed " << seed;
    for (std::int64_t i = 0; i < found; ++i) {
      ASSERT_TRUE(same(journal.trials()[std::size_t(i)], random_trial(i, seed)))
          << "round " << round << ", trial " << i;
    }
    acknowledged = found - 1;
  }
  EXPECT_GT(acknowledged, 30) << "no child got far enough to be a test";
}

}  // namespace
}  // namespace graft::datasets
