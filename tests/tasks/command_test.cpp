#include "tasks/command.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/monitor.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "datasets/formats/parameter_spaces.h"

namespace graft::tasks {
namespace {

using datasets::Status;

// What it does is its first argument.
const char* const script = R"(case "$1" in
  ok) echo "checksum: 42"; echo "time = 2.5 ms" ;;
  slower) echo "time = 5"; echo "checksum: 42.0000001" ;;
  wrong) echo "checksum: 43"; echo "time = 1" ;;
  silent) echo "checksum: 42" ;;
  fails) echo "no such device" >&2; exit 3 ;;
  crashes) kill -SEGV $$ ;;
  hangs) sleep 1000 ;;
  forks) sleep 1000 & echo $! > "$2/../child"; echo "checksum: 42"; echo "time = 2" ;;
  prints) yes ;;
  memory) echo "terminate called after throwing an instance of 'std::bad_alloc'" >&2; exit 134 ;;
  negative) echo "time = -1" ;;
esac
)";

std::unique_ptr<Measurer> measurer_of(const Command& command, const codegen::ParameterSpace& space,
                                      const MeasureSettings& settings) {
  return command_device(command, &space)->measurer({}, settings, nullptr);
}

class CommandTest : public ::testing::Test {
 protected:
  CommandTest() { std::ofstream(folder_ / "script.sh") << script; }

  codegen::ParameterSpace space() const {
    return datasets::formats::parse_parameter_space(
        "parameters: {mode: [ok, slower, wrong, silent, fails, crashes, hangs, forks, prints, memory, negative]}\n"
        "default: {mode: ok}\n",
        "modes.yaml");
  }
  Command command() const {
    return {.run = "sh '" + (folder_ / "script.sh").string() + "' {mode} {dir}", .time = "time:ms"};
  }

  datasets::Measurement measured(const Command& command, const std::string& mode) {
    const codegen::ParameterSpace modes = space();
    MeasureSettings settings;
    settings.repetitions = 2;
    settings.timeout_seconds = mode == "hangs" ? 0.3 : 60;
    const auto measurer = measurer_of(command, modes, settings);
    const codegen::Candidate candidate = *modes.point(base::Document::map().set("mode", mode));
    std::vector<datasets::Measurement> out;
    base::Monitor monitor;
    measurer->measure(
        std::span(&candidate, 1), [&](const Measured& each) { out.push_back(each.measurement); }, monitor);
    EXPECT_EQ(out.size(), 1u);
    return out.front();
  }

  base::TemporaryFolder folder_{"command-test"};
};

TEST_F(CommandTest, EveryEndHasItsStatus) {
  const datasets::Measurement ok = measured(command(), "ok");
  EXPECT_EQ(ok.status, Status::ok);
  EXPECT_EQ(ok.seconds, (std::vector<double>{0.0025, 0.0025}));
  for (const auto& [mode, status, reason] :
       {std::tuple("silent", Status::no_time, "prints no time 'time'; its last line: 'checksum: 42'"),
        std::tuple("fails", Status::crashed, "exit code 3: no such device"),
        std::tuple("crashes", Status::crashed, "signal Segmentation fault"),
        std::tuple("hangs", Status::timed_out, "not ready after 0.3 s"),
        std::tuple("prints", Status::crashed, "prints more than 16 MiB"),
        std::tuple("negative", Status::no_time, "a time of -0.001 s"),
        std::tuple("memory", Status::out_of_memory,
                   "exit code 134: terminate called after throwing an instance of 'std::bad_alloc'")}) {
    const datasets::Measurement measurement = measured(command(), mode);
    EXPECT_EQ(measurement.status, status) << mode;
    EXPECT_EQ(measurement.reason, reason) << mode;
    EXPECT_EQ(datasets::contradiction(measurement), "") << mode;
  }
}

TEST_F(CommandTest, WhatItLeavesRunningIsKilled) {
  Command forking = command();
  forking.run = "sh '" + (folder_ / "script.sh").string() + "' {mode} '" + (folder_ / "sub").string() + "'";
  std::filesystem::create_directory(folder_ / "sub");
  EXPECT_EQ(measured(forking, "forks").status, Status::ok);
  const pid_t child = pid_t(std::stol(base::read_file(folder_ / "child")));
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    gone = ::kill(child, 0) != 0 && errno == ESRCH;
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

TEST_F(CommandTest, ResultsAreComparedWithTheDefaults) {
  Command checked = command();
  checked.check = "checksum";
  EXPECT_EQ(measured(checked, "ok").check, "command");
  EXPECT_EQ(measured(checked, "wrong").reason, "checksum is 43, not 42");
  EXPECT_EQ(measured(checked, "slower").status, Status::wrong_result);
  checked.check = "checksum:1e-6";
  EXPECT_EQ(measured(checked, "slower").status, Status::ok);
  EXPECT_EQ(measured(checked, "wrong").status, Status::wrong_result);
  checked.check = "*";
  EXPECT_EQ(measured(checked, "forks").status, Status::ok);  // the same but for its time
  EXPECT_EQ(measured(checked, "wrong").reason, "its output is checksum: 43, not checksum: 42");
}

// What the default prints, and what another configuration does: the reason if that is wrong; with "refused: " why
// nothing can be compared with the default.
TEST_F(CommandTest, AllThatFollowsTheNameIsCompared) {
  struct Example {
    const char *check, *standard, *other, *reason;
  };
  MeasureSettings settings;
  settings.repetitions = 1;
  const codegen::ParameterSpace modes = space();
  for (const Example& example : {
           Example{"sum", "sum: 1.0 2.0 3.0", "sum: 1.0 2.0 3.0", ""},
           Example{"sum", "sum: 1.0 2.0 3.0", "sum: 1.0 2.0 9.0", "sum is 1.0 2.0 9.0, not 1.0 2.0 3.0"},
           Example{"sum:1e-3", "sum: 1.0 2.0 3.0", "sum: 1.0 2.0 3.001", ""},
           Example{"sum:1e-3", "sum: 1.0 2.0 3.0", "sum: 1.0 2.0 3.01", "sum is 1.0 2.0 3.01, not 1.0 2.0 3.0"},
           Example{"sum:1e-3", "sum: 1.0 2.0 3.0", "sum: 1.0 2.0", "sum is 1.0 2.0, not 1.0 2.0 3.0"},
           Example{"sum:1e-6:1e-3", "sum: 0.0 2.0", "sum: 0.0009 2.0", ""},
           Example{"sum:1e-6:1e-3", "sum: 0.0 2.0", "sum: 0.0011 2.0", "sum is 0.0011 2.0, not 0.0 2.0"},
           Example{"sum:1e-3", "sum: 1.0", "sum: nan", "sum is nan, not 1.0"},
           Example{"sum:1e-3", "sum: 1,234.5 ok", "sum: 1,234.6 ok", ""},
           Example{"sum:1e-3", "sum: 1.0 ok", "sum: 1.0 bad", "sum is 1.0 bad, not 1.0 ok"},
           Example{"all", "all good", "all bad", "all is bad, not good"},
           Example{"sum", "sum: 1 time: 2", "sum: 1 time: 3", ""},
           Example{"sum", "sum: 1, time: 2", "sum: 1, time: 3", ""},
           Example{"sum", "time: 2 sum: 1", "time: 3 sum: 1", ""},
           Example{"sum", R"({"sum": [1, 2], "time": 3})", R"({"sum": [1, 3], "time": 2})",
                   "sum is [1, 3], not [1, 2]"},
           Example{"sum", "sum: 1\nsum: 2", "sum: 3\nsum: 2", "sum is 3, not 1"},
           Example{"sum", "sum: 1\nsum: 2", "sum: 1", "sum has 1 line, not 2"},
           Example{"sum", "sum: 1", "summary: 1", "prints no 'sum'"},
           Example{"*", "a 1\ntime 5", "a 1\ntime 6", ""},
           Example{"*:1e-3", "a 1\ntime 5", "a 1.0001\ntime 6", ""},
           Example{"sum", "sum: nan", "sum: nan", "refused: sum is nan"},
           Example{"sum", "sum: 1 -nan", "sum: 1 -nan", "refused: sum is 1 -nan"},
           Example{"sum", "sum:", "sum:", "refused: sum is empty"},
           Example{"*", "time 5", "time 6", "refused: its output is empty"},
           Example{"sum", "sum: $$", "sum: 1", "refused: sum changes from run to run"},
       }) {
    const std::string what = fmt::format("{}: {} and {}", example.check, example.standard, example.other);
    Command command;
    // $$, the number of the shell's process, differs from run to run.
    std::string standard = example.standard;
    if (standard.ends_with("$$")) standard = standard.substr(0, standard.size() - 2) + "'$$'";
    command.run = fmt::format("case {{mode}} in ok) echo '{}';; *) echo '{}';; esac", standard, example.other);
    if (std::string_view(example.check).starts_with('*') || standard.find("time") != std::string::npos)
      command.time = "time";
    command.shell = true;
    command.check = example.check;
    const std::unique_ptr<Measurer> measurer = measurer_of(command, modes, settings);
    const codegen::Candidate other = *modes.point(base::Document::map().set("mode", "wrong"));
    std::string reason;
    base::Monitor monitor;
    try {
      measurer->measure(
          std::span(&other, 1), [&](const Measured& one) { reason = one.measurement.reason; }, monitor);
    } catch (const base::Failure& failure) {
      reason = failure.what();
      const std::size_t at = reason.find(": ");
      reason = "refused" + (at == std::string::npos ? reason : reason.substr(at));
    }
    EXPECT_EQ(reason.substr(0, std::string_view(example.reason).size()), example.reason) << what << ": " << reason;
    EXPECT_EQ(reason.empty(), std::string_view(example.reason).empty()) << what << ": " << reason;
  }
}

TEST_F(CommandTest, TimesAreReadWhereverTheyArePrinted) {
  Command printing = command();
  printing.shell = true;
  const auto with = [&](const std::string& run, const char* time) {
    printing.run = run + "; : {mode}";
    printing.time = time;
    return measured(printing, "ok");
  };
  EXPECT_EQ(with("echo 'time: 1.2 s' >&2; echo done", "time:ms").seconds, (std::vector<double>{1.2, 1.2}));
  EXPECT_EQ(with("printf '\\033[1mTime (ms)\\033[0m: 2\\n'", "time").seconds, (std::vector<double>{2e-3, 2e-3}));
  EXPECT_EQ(with("printf '{\\n\"time\": 2,\\n\"time_unit\": \"us\"\\n}\\n'", "time").seconds,
            (std::vector<double>{2e-6, 2e-6}));
  EXPECT_EQ(with("echo 'setup time: 1'; echo 'kernel time: 2'", "time").reason,
            "'time' is in several places: 'setup time: 1' and 'kernel time: 2'; take more of the line "
            "into the name");
  EXPECT_EQ(with("echo 'time: 35 GFLOPS'", "time").reason,
            "not understood: 'time: 35 GFLOPS': its unit is not one of time");
}

TEST_F(CommandTest, TheDefaultIsMeasuredForItselfAndTheComparison) {
  Command counted;
  const std::string starts = (folder_ / "starts").string();
  counted.run = "echo {mode} >> " + starts + "; echo checksum 42; echo time 1";
  counted.time = "time";
  counted.shell = true;
  counted.check = "checksum";
  MeasureSettings settings;
  settings.repetitions = 1;
  const codegen::ParameterSpace modes = space();
  const std::unique_ptr<Measurer> measurer = measurer_of(counted, modes, settings);
  const std::vector<codegen::Candidate> candidates = {modes.standard(),
                                                      *modes.point(base::Document::map().set("mode", "wrong"))};
  std::vector<Status> statuses;
  base::Monitor monitor;
  measurer->measure(
      candidates, [&](const Measured& one) { statuses.push_back(one.measurement.status); }, monitor);
  EXPECT_EQ(statuses, (std::vector<Status>{Status::ok, Status::ok}));
  // The default twice: what changes from run to run is nothing to compare with.
  EXPECT_EQ(base::split(base::trim(base::read_file(starts)), '\n').size(), 3u);
}

TEST_F(CommandTest, BuildsFirstAndFindsTimesByName) {
  Command built = command();
  built.build = "sh -c 'test {mode} != wrong && echo {mode} > {dir}/made'";
  built.shell = true;
  built.run = "m=$(cat {dir}/made); echo \"{\\\"runs\\\": [0.5, 0.25], \\\"made\\\": \\\"$m\\\"}\"";
  built.time = "runs";
  EXPECT_EQ(measured(built, "ok").seconds, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(measured(built, "wrong").status, Status::does_not_compile);
  built.time = "/\"runs\": \\[([0-9.]+)/:us";
  EXPECT_EQ(measured(built, "ok").seconds, (std::vector<double>{0.5e-6, 0.5e-6}));
  built.time = "";
  EXPECT_EQ(measured(built, "ok").clock, "wall");
}

TEST_F(CommandTest, OneProcessAnswersWithLinesOfJson) {
  std::ofstream(folder_ / "answers.sh") << R"(while read -r line; do
  echo "note: $line"
  case "$line" in
    *'"ok"'*) echo '{"seconds":[0.5,0.25],"check":"a"}' ;;
    *slower*) echo '{"seconds":0.75,"check":"a"}' ;;
    *wrong*) echo '{"seconds":0.75,"check":"b"}' ;;
    *fails*) echo '{"status":"unsupported","reason":"too many threads"}' ;;
    *negative*) echo '{"seconds":-1}' ;;
    *silent*) echo '{"seconds":"x"}' ;;
    *hangs*) sleep 1000 ;;
    *crashes*) kill -SEGV $$ ;;
    *memory*) exit 0 ;;
  esac
done
)";
  const Command persistent{
      .run = "sh '" + (folder_ / "answers.sh").string() + "'", .persistent = true, .check = "check"};
  EXPECT_EQ(measured(persistent, "ok").seconds, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(measured(persistent, "slower").seconds, (std::vector<double>{0.75}));
  EXPECT_EQ(measured(persistent, "wrong").status, Status::wrong_result);
  EXPECT_EQ(measured(persistent, "fails").status, Status::unsupported);
  EXPECT_EQ(measured(persistent, "fails").reason, "too many threads");
  EXPECT_EQ(measured(persistent, "negative").status, Status::crashed);
  EXPECT_EQ(measured(persistent, "silent").status, Status::crashed);
  EXPECT_EQ(measured(persistent, "hangs").status, Status::timed_out);
  EXPECT_EQ(measured(persistent, "crashes").reason, "signal Segmentation fault");
  EXPECT_EQ(measured(persistent, "memory").reason, "ended without an answer");
}

// What the program does with each request, and the message that its second answer leads to. After the answer `pause`
// the next request waits.
TEST_F(CommandTest, AnswersAreThoseOfTheirRequests) {
  const codegen::ParameterSpace modes = space();
  const auto said = [&](const std::string& does, int pause = 0) -> std::string {
    std::ofstream(folder_ / "answers.sh") << "while read -r line; do\n"
                                          << "r=${line#*request\\\":}; r=${r%%,*}; c=${line#*configuration\\\":}; "
                                             "c=${c%%\\}*}\\}\n"
                                          << does << "\ndone\n";
    const auto measurer = measurer_of({.run = "sh '" + (folder_ / "answers.sh").string() + "'", .persistent = true},
                                      modes, MeasureSettings());
    const std::vector<codegen::Candidate> candidates = {*modes.point(base::Document::map().set("mode", "ok")),
                                                        *modes.point(base::Document::map().set("mode", "wrong")),
                                                        *modes.point(base::Document::map().set("mode", "slower"))};
    std::string all;
    base::Monitor monitor;
    try {
      measurer->measure(
          candidates,
          [&](const Measured& one) {
            all += one.measurement.status == Status::ok ? fmt::format("{};", one.measurement.seconds.front())
                                                        : one.measurement.reason + ";";
            if (--pause == 0) std::this_thread::sleep_for(std::chrono::milliseconds(600));
          },
          monitor);
    } catch (const base::Failure& failure) {
      all += failure.what();
    }
    return all;
  };
  EXPECT_EQ(said(R"(echo "{\"request\":$r,\"seconds\":$r}")"), "1;2;3;");
  EXPECT_EQ(said(R"(echo note; echo "{\"configuration\":$c,\"seconds\":$r}")"), "1;2;3;");
  EXPECT_EQ(said(R"(echo "{\"seconds\":$r}")"), "1;2;3;");
  const std::string twice = "the persistent program prints a second line for a request: ";
  EXPECT_EQ(said(R"(printf "{\"seconds\":$r}\n{\"seconds\":9}\n")").substr(0, twice.size()), twice);
  // Some time after the first one.
  EXPECT_EQ(said(R"(sleep 0.5; echo "{\"seconds\":$r}"; sleep 0.1; echo "{\"seconds\":9}")").substr(0, twice.size()),
            twice);
  const std::string unasked = "1;2;the persistent program prints before it is asked: ";
  EXPECT_EQ(said(R"(echo "{\"seconds\":$r}"; [ $r = 2 ] && { sleep 0.2; echo "{\"seconds\":9}"; })", 2)
                .substr(0, unasked.size()),
            unasked);
  // At once, or after the next request.
  const std::string numbered =
      said(R"(echo "{\"request\":$r,\"seconds\":$r}"; echo "{\"request\":$r,\"seconds\":$r}")");
  EXPECT_NE(numbered.find("the persistent program "), std::string::npos) << numbered;
  EXPECT_EQ(numbered.find("2;"), std::string::npos) << numbered;
  const std::string late = "1;the persistent program does not answer request 2: ";
  EXPECT_EQ(said(R"([ $r = 1 ] || echo "{\"request\":1,\"seconds\":5}"; echo "{\"request\":$r,\"seconds\":$r}")")
                .substr(0, late.size()),
            late);
  const std::string echo = R"(1;the persistent program does not answer for {"mode":"wrong"}: )";
  EXPECT_EQ(said(R"(: ${first:=$c}; echo "{\"configuration\":$first,\"seconds\":1}")").substr(0, echo.size()), echo);
  const std::string silent = "1;the persistent program does not say which request it answers: ";
  EXPECT_EQ(said(R"([ $r = 1 ] && echo "{\"request\":$r,\"seconds\":$r}" || echo "{\"seconds\":$r}")")
                .substr(0, silent.size()),
            silent);
  // A line of JSON that is not an answer costs the configuration, and the answer after it is not taken for the next.
  EXPECT_NE(said(R"([ $r = 2 ] && echo "{\"level\":1}"; echo "{\"seconds\":$r}")").find(";3;"), std::string::npos);
}

TEST_F(CommandTest, AnswersHaveOtherMeasuresAndWhatIsChecked) {
  std::ofstream(folder_ / "answers.sh") << R"(while read -r line; do
  case "$line" in
    *'"ok"'*) echo '{"value":[2,4],"also":{"energy":0.25},"check":"1.0 2.0"}' ;;
    *slower*) echo '{"value":2,"also":{"energy":0.75},"check":"1.0 2.0"}' ;;
    *wrong*) echo '{"value":2,"also":{"energy":0.25},"check":"1.0 3.0"}' ;;
    *silent*) echo '{"value":2,"also":{"energy":0.25}}' ;;
    *fails*) echo '{"value":2,"check":"1.0 2.0"}' ;;
    *negative*) echo '{"value":0,"also":{"energy":0.25},"check":"1.0 2.0"}' ;;
  esac
done
)";
  Command persistent{.run = "sh '" + (folder_ / "answers.sh").string() + "'", .persistent = true};
  persistent.maximize = "speed:GFLOPS";
  persistent.also = {"energy:J<=500mJ"};
  persistent.check = "check:1e-6";
  const datasets::Measurement ok = measured(persistent, "ok");
  EXPECT_EQ(ok.seconds, (std::vector<double>{1 / 2e9, 1 / 4e9}));
  EXPECT_EQ(ok.also.front(), std::pair(std::string("energy"), 0.25));
  EXPECT_EQ(measured(persistent, "slower").reason, "'energy' is 0.75, above 500mJ");
  EXPECT_EQ(measured(persistent, "wrong").reason, "check is 1.0 3.0, not 1.0 2.0");
  EXPECT_EQ(measured(persistent, "silent").reason, "prints no 'check'");
  EXPECT_EQ(measured(persistent, "fails").status, Status::crashed);
  EXPECT_EQ(measured(persistent, "negative").status, Status::crashed);
  // Nothing to compare with.
  persistent.run = "sh -c 'while read -r line; do echo \"{\\\"value\\\":2,\\\"also\\\":{\\\"energy\\\":0}}\"; done'";
  EXPECT_THROW(measured(persistent, "ok"), base::Failure);
}

TEST_F(CommandTest, OtherMeasuresAreKeptAndBounded) {
  Command printing = command();
  printing.shell = true;
  printing.time = "";
  printing.maximize = "speed:GFLOPS";
  printing.also = {"energy:J<=0.5", "temperature"};
  printing.check = "sum";
  const auto with = [&](const std::string& text) {
    printing.run = fmt::format("echo '{}'; echo sum 7; : {{mode}}", text);
    return measured(printing, "ok");
  };
  const datasets::Measurement good = with("speed: 2, energy: 350 mJ, temperature: 61.5");
  EXPECT_EQ(good.reason, "");
  ASSERT_EQ(good.seconds.size(), 2u);
  EXPECT_DOUBLE_EQ(good.seconds.front(), 0.5e-9);
  ASSERT_EQ(good.also.size(), 2u);
  EXPECT_EQ(good.also[0].first, "energy");
  EXPECT_DOUBLE_EQ(good.also[0].second, 0.35);
  EXPECT_EQ(good.also[1], std::pair(std::string("temperature"), 61.5));
  const std::string fails = "the default configuration, which others are compared with, fails: ";
  const auto failure_of = [&](const std::string& text) -> std::string {
    try {
      with(text);
      return "";
    } catch (const base::Failure& failure) {
      return std::string(failure.what()).substr(fails.size());
    }
  };
  EXPECT_EQ(failure_of("speed: 2, energy: 600 mJ, temperature: 61.5"), "not_allowed: 'energy' is 0.6 J, above 0.5");
  EXPECT_EQ(failure_of("speed: 2, energy: 350 mJ"), "no_time: prints no number 'temperature'; its last line: 'sum 7'");
  EXPECT_EQ(failure_of("speed: 2 s, energy: 350 mJ, temperature: 3").substr(0, 23), "no_time: not understood");
  EXPECT_EQ(failure_of("speed: 0, energy: 350 mJ, temperature: 3"), "no_time: 'speed' is 0");
}

TEST_F(CommandTest, AMeasureHasOneQuantity) {
  Command printing = command();
  printing.shell = true;
  printing.time = "";
  printing.maximize = "speed";
  printing.run = "test {mode} = ok && echo speed: 3 || echo speed: 2 GFLOPS";
  const codegen::ParameterSpace modes = space();
  const auto measurer = measurer_of(printing, modes, MeasureSettings());
  const std::vector<codegen::Candidate> candidates = {modes.standard(),
                                                      *modes.point(base::Document::map().set("mode", "wrong"))};
  std::vector<std::string> reasons;
  base::Monitor monitor;
  measurer->measure(
      candidates, [&](const Measured& one) { reasons.push_back(one.measurement.reason); }, monitor);
  EXPECT_EQ(reasons, (std::vector<std::string>{"", "'speed' has FLOP/s, and had no unit before"}));
}

// Each time that the program is started it prints the next of the times.
TEST_F(CommandTest, AGlitchIsNotTheBest) {
  const auto times_of = [&](int repetitions, const std::string& times) {
    std::ofstream(folder_ / "times") << times;
    Command glitching = command();
    glitching.run = "cd '" + folder_.path().string() + "'; echo time $(head -n 1 times) {mode}; sed -i 1d times";
    glitching.shell = true;
    glitching.time = "time";
    MeasureSettings settings;
    settings.repetitions = repetitions;
    const codegen::ParameterSpace modes = space();
    const auto measurer = measurer_of(glitching, modes, settings);
    const std::vector<codegen::Candidate> candidates = {modes.standard(),
                                                        *modes.point(base::Document::map().set("mode", "wrong"))};
    std::vector<double> seconds;
    base::Monitor monitor;
    measurer->measure(
        candidates, [&](const Measured& one) { seconds.push_back(datasets::seconds_of(one.measurement)); }, monitor);
    return seconds;
  };
  EXPECT_EQ(times_of(3, "1\n0.003\n1.1\n2\n2.1\n2.2\n"), (std::vector<double>{1, 2.1}));
  EXPECT_EQ(times_of(1, "1\n0.003\n1.2\n"), (std::vector<double>{1, 1.2}));  // measured again
  EXPECT_EQ(times_of(1, "1\n0.5\n0.51\n"), (std::vector<double>{1, 0.51}));  // and it is the best
  EXPECT_EQ(times_of(1, "1\n0.9\n"), (std::vector<double>{1, 0.9}));         // not far below
  EXPECT_EQ(times_of(2, "1\n1\n0.003\n1.2\n"), (std::vector<double>{1, 1.2}));
}

TEST_F(CommandTest, MistakesAreRefused) {
  const codegen::ParameterSpace modes = space();
  const auto refusal = [&](const Command& command) -> std::string {
    try {
      measurer_of(command, modes, MeasureSettings());
      return "";
    } catch (const base::UserError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal({.run = "./a {mod}"}), "run: {mod} is not a parameter of the space; did you mean 'mode'?");
  EXPECT_NE(refusal({.run = "./a"}).find("does not depend on the parameter 'mode'"), std::string::npos);
  EXPECT_EQ(refusal({.run = "./a '{mode}"}), "run: a quote is not closed");
  EXPECT_NE(refusal({.run = "./a {mode}", .time = "time:parsec"}).find("unknown unit"), std::string::npos);
  EXPECT_NE(refusal({.run = "./a {mode}", .time = "/(/"}).find("regular expression"), std::string::npos);
  EXPECT_NE(refusal({.run = "./a {mode}", .check = "sum:x"}).find("not a tolerance"), std::string::npos);
  EXPECT_EQ(refusal({.run = "awk '{ print }' {mode} '${HOME}'"}), "");
  // Without a shell its words would be the program's.
  EXPECT_EQ(refusal({.run = "OMP_NUM_THREADS={mode} ./a"}),
            "run: 'OMP_NUM_THREADS=' is an assignment: write env before it, or say `shell`, so that a shell reads the "
            "command");
  EXPECT_EQ(refusal({.run = "./a {mode} | sort"}),
            "run: '|' is a word of a shell, and none reads the command: say `shell`, or put it in quotes if the "
            "program is to get it");
  for (const char* const words : {"&& ./b", "> out", ">out", "2>&1", "2> out", "< in", "; ./b", "&", "|| true", "$HOME",
                                  "a; b", "${HOME}/x", "-n$(nproc)", "`nproc`"})
    EXPECT_NE(refusal({.run = fmt::format("./a {{mode}} {}", words)}).find("is a word of a shell"), std::string::npos)
        << words;
  EXPECT_NE(refusal({.run = "cd x ./a {mode}"}).find("'cd' is a word of a shell"), std::string::npos);
  for (const char* const words : {"'&&' \">\" \\| '$HOME'", "a=b -D{mode}=2 1 2 a&b x>y -DX=$ 100$", "env A={mode}"})
    EXPECT_EQ(refusal({.run = fmt::format("./a {{mode}} {}", words)}), "") << words;
  EXPECT_EQ(refusal({.run = "OMP_NUM_THREADS={mode} ./a && ./b > $HOME/x", .shell = true}), "");
}

TEST_F(CommandTest, AWholeFractionStaysAFraction) {
  const codegen::ParameterSpace alphas =
      datasets::formats::parse_parameter_space("parameters: {alpha: [0.5, 1.0, 2.0], n: [1, 2]}\n", "a.yaml");
  const auto at = [&](double alpha) { return *alphas.point(base::Document::map().set("alpha", alpha).set("n", 1)); };
  EXPECT_EQ(command_line({.run = "./a {alpha} {n}"}, alphas, at(0.5)), "./a 0.5 1");
  EXPECT_EQ(command_line({.run = "./a {alpha} {n}"}, alphas, at(1.0)), "./a 1.0 1");
}

TEST_F(CommandTest, TheCommandIsShownAsAShellTakesIt) {
  const codegen::ParameterSpace flags =
      datasets::formats::parse_parameter_space("parameters: {f: ['-O2 -g', \"it's\"], n: [4]}\n", "f.yaml");
  const auto at = [&](const char* value) { return *flags.point(base::Document::map().set("f", value).set("n", 4)); };
  EXPECT_EQ(command_line({.run = "./a \"{f}\" -n{n}"}, flags, at("-O2 -g")), "./a '-O2 -g' -n4");
  EXPECT_EQ(command_line({.run = "cc {f:words} a.c"}, flags, at("-O2 -g")), "cc -O2 -g a.c");
  EXPECT_EQ(command_line({.run = "cc {f:words} a.c", .shell = true}, flags, at("-O2 -g")), "cc -O2 -g a.c");
  EXPECT_EQ(command_line({.run = "./a {f} | cat", .shell = true}, flags, at("it's")), "./a 'it'\\''s' | cat");
}

}  // namespace
}  // namespace graft::tasks
