// Programs of one's own: graft tune SPACE --run.
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <set>

#include "base/random.h"
#include "tests/cli/json_tables.h"
#include "tests/cli/signals.h"
#include "tests/cli/support.h"

namespace graft::cli {
namespace {

std::vector<std::string> tuned(const std::filesystem::path& folder, std::int64_t trials) {
  return {"tune",          (folder / "space.yaml").string(),
          "--run",         "sh -c 'echo time $((100 + ({x} - 7) * ({x} - 7) + {y}))'",
          "--time",        "time:us",
          "--repetitions", "1",
          "--trials",      std::to_string(trials),
          "--out",         (folder / "run").string()};
}

void write_space(const std::filesystem::path& folder) {
  std::ofstream(folder / "space.yaml") << "parameters: {x: {from: 0, to: 30}, y: {from: 0, to: 30}}\n"
                                          "constraints: [x + y <= 40]\n";
}

TEST(Own, KilledTwentyTimesNothingIsLostOrMeasuredTwice) {
  const base::Folder folder;
  write_space(folder.path());
  const std::filesystem::path journal = folder / "run" / "journal.jsonl";
  base::Stream stream(11, "kills");
  std::vector<Recorded> before;
  std::int64_t trials = 40;
  for (int killed = 0; killed < 20;) {
    const int status =
        signalled(tuned(folder.path(), trials), SIGKILL, std::chrono::milliseconds(20 + stream.below(250))).status;
    if (WIFSIGNALED(status)) {
      ++killed;
    } else {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      trials += 20;
    }
    const std::vector<Recorded> now = recorded(journal);
    ASSERT_TRUE(now.size() >= before.size() && std::equal(before.begin(), before.end(), now.begin()));
    before = now;
  }
  const base::Document result = json_of(tuned(folder.path(), trials));
  EXPECT_EQ(result.at("trials").as_integer(), trials);
  const std::vector<Recorded> all = recorded(journal);
  EXPECT_EQ(std::int64_t(all.size()), trials);
  expect_distinct(all);
}

TEST(Own, DevicesHaveCommandsOfTheirOwn) {
  const base::Folder folder;
  write_space(folder.path());
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {
        "tune",  (folder / "space.yaml").string(), "--time", "time:us", "--repetitions", "1", "--trials", "6",
        "--out", (folder / "run").string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  // A comma in a command separates nothing.
  const std::string fast = "=sh -c 'echo time $((100 + {x} + {y})), ok'",
                    slow = "=sh -c 'echo time $((200 + {x} + {y}))'";
  const base::Document result =
      json_of(with({"--device", "fast" + fast, "--device", "slow" + slow, "--device", "fast" + fast}));
  const base::Document::List& devices = result.at("devices").as_list();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].at("platform").as_string(), "command:fast");
  EXPECT_EQ(devices[1].at("platform").as_string(), "command:slow");
  EXPECT_LT(devices[0].at("best").at("seconds").as_number(), 2e-4);
  EXPECT_GT(devices[1].at("best").at("seconds").as_number(), 1.9e-4);
  EXPECT_EQ(recorded(folder / "run" / "fast" / "journal.jsonl").size(), 6u);
  EXPECT_EQ(graft(with({"--device", "fast" + fast, "--run", "true {x} {y}"})).exit_code, 2);
  EXPECT_EQ(graft(with({"--device", "fast" + fast, "--device", "slow"})).exit_code, 2);
  EXPECT_EQ(graft(with({"--device", "slow"})).exit_code, 2);
}

TEST(Own, TheStencilOfTheExamplesIsTunedCheckedShownAndExported) {
  const std::filesystem::path examples = std::filesystem::path(GRAFT_SOURCE_DIR) / "examples" / "own";
  const base::Folder folder;
  const std::string run = (folder / "run").string();
  const base::Document result =
      json_of({"tune", (examples / "stencil.yaml").string(), "--build",
               "gcc {flags:words} {level} -DN=130 -DTILE_X={tile_x} -DTILE_Y={tile_y} -DUNROLL={unroll} '" +
                   (examples / "stencil.c").string() + "' -o {dir}/stencil",
               "--run", "{dir}/stencil", "--time", "time:ms", "--check", "checksum:1e-4", "--repetitions", "1",
               "--trials", "6", "--out", run});
  EXPECT_EQ(result.at("statuses").to_json(), R"({"ok":6})");
  JsonTables::of_the_project().check("`tune` (command)", result);
  EXPECT_GT(result.at("best").at("configuration").at("tile_x").as_integer(), 0);
  EXPECT_EQ(result.at("best").at("measurement").at("check").as_string(), "command");
  const base::Finished shown = graft({"inspect", run});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_NE(shown.out.find("tile_x = "), std::string::npos);
  const base::Finished page = graft({"report", run, "--out", (folder / "page.html").string()});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_NE(base::read_file(folder / "page.html").find("Best configuration of run"), std::string::npos);
  EXPECT_EQ(graft({"export", "t4", run, "--out", (folder / "t4.json").string()}).exit_code, 0);
  EXPECT_EQ(graft({"import", "kernel_tuner", (folder / "t4.json").string(), "--platform", "here", "--out",
                   (folder / "here.h5").string()})
                .exit_code,
            0);
}

TEST(Own, TheProductInOpenClIsTunedWhereThereIsADevice) {
  const std::filesystem::path examples = std::filesystem::path(GRAFT_SOURCE_DIR) / "examples" / "own";
  const base::Folder folder;
  const std::string program = (folder / "matmul").string(), kernel = (examples / "matmul.cl").string();
  const auto runs = [](const std::vector<std::string>& argv) {
    return base::run_process(argv, std::chrono::minutes(2)).exit_code == 0;
  };
  if (!runs({"gcc", "-O2", (examples / "matmul.c").string(), "-lOpenCL", "-o", program}))
    GTEST_SKIP() << "OpenCL's headers or its loader are not installed";
  if (!runs({program, kernel, "4", "4", "1", "1", "8", "1", "1", "0"}))
    GTEST_SKIP() << "OpenCL has no device here (pocl-opencl-icd is one)";
  const base::Document result =
      json_of({"tune", (examples / "matmul.yaml").string(), "--run",
               "'" + program + "' '" + kernel + "' {bm} {bn} {tm} {tn} {tk} {vw} {unroll} {local}", "--time", "time:ms",
               "--check", "checksum:1e-6", "--repetitions", "1", "--timeout", "100", "--trials", "3", "--out",
               (folder / "run").string()});
  EXPECT_EQ(result.at("statuses").to_json(), R"({"ok":3})");
}

std::vector<std::string> with_output(const std::filesystem::path& folder, const std::string& shell,
                                     std::vector<std::string> more) {
  std::ofstream(folder / "space.yaml") << "parameters: {x: {from: 1, to: 12}}\ndefault: {x: 6}\n";
  std::vector<std::string> all = {
      "tune",  (folder / "space.yaml").string(), "--shell", "--run", shell, "--repetitions", "1", "--trials", "12",
      "--out", (folder / "run").string()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::int64_t best_x(const base::Document& result) {
  return result.at("best").at("configuration").at("x").as_integer();
}

// The fastest is 3 in each.
TEST(Own, TheUnitThatIsPrintedCounts) {
  for (const auto& [shell, flag] : {
           std::pair("test {x} = 3 && echo 'time: 950 us' || echo 'time: 1.'{x}' ms'", "time:ms"),
           std::pair("test {x} = 3 && echo 'time: 1.2 ms' || echo 'time: 1.1 s'; : {x}", "time:ms"),
           std::pair("test {x} = 3 && echo 'time: 1,234.5 us' || echo 'time: 3,'{x}'00.5 us'", "time:us"),
           std::pair("test {x} = 3 && echo 'time: 1,2 ms' || echo 'time: 1,9'{x}' ms'", "time:ms"),
           std::pair("test {x} = 3 && echo 'time: 0.9000D-03' || echo 'time: 0.1'{x}'D-01'", "time"),
           std::pair("echo 'setup time: 0.'{x}; test {x} = 3 && echo 'kernel time: 1.5' || echo 'kernel time: 2'",
                     "kernel time"),
           std::pair("printf '\\033[1mTime (ms)\\033[0m: %s\\n' $(( ({x} - 3) * ({x} - 3) + 1 )) >&2", "time"),
       }) {
    const base::Folder folder;
    EXPECT_EQ(best_x(json_of(with_output(folder.path(), shell, {"--time", flag}))), 3) << shell;
  }
  const base::Folder folder;
  const base::Finished several =
      graft(with_output(folder.path(), "echo 'setup time: 0.'{x}; echo 'kernel time: 1.5'", {"--time", "time"}));
  EXPECT_EQ(several.exit_code, 1);
  EXPECT_NE(several.err.find("no_time"), std::string::npos) << several.err;
  EXPECT_NE(several.err.find("'setup time: 0."), std::string::npos) << several.err;
}

TEST(Own, MoreOfAMeasureMayBeBetterAndOthersBounded) {
  const base::Folder folder;
  const std::string shell = "echo speed: $(({x} * 10)) GFLOPS; echo energy: $(({x} * {x})) mJ";
  const base::Document fastest = json_of(with_output(folder.path(), shell, {"--maximize", "speed:GFLOP/s"}));
  JsonTables::of_the_project().check("`tune` (command)", fastest);
  EXPECT_EQ(best_x(fastest), 12);
  EXPECT_EQ(fastest.at("best").at("goal").at("value").as_number(), 120);
  EXPECT_NEAR(fastest.at("best").at("seconds").as_number(), 1 / 120e9, 1e-20);
  const base::Finished shown = graft({"inspect", (folder.path() / "run").string()});
  EXPECT_NE(shown.out.find("best speed"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find(": 120 GFLOP/s"), std::string::npos) << shown.out;
  const std::filesystem::path page = folder.path() / "page.html";
  EXPECT_EQ(graft({"report", (folder.path() / "run").string(), "--out", page.string()}).exit_code, 0);
  const std::string html = base::read_file(page);
  for (const char* const part : {"120 GFLOP/s, trial", "Best speed so far", "speed, GFLOP/s"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  const base::Folder other;
  const base::Document bounded =
      json_of(with_output(other.path(), shell, {"--maximize", "speed:GFLOP/s", "--also", "energy:J<=50mJ"}));
  JsonTables::of_the_project().check("`tune` (command)", bounded);
  EXPECT_EQ(best_x(bounded), 7);
  EXPECT_NEAR(bounded.at("best").at("measurement").at("also").at("energy").as_number(), 0.049, 1e-12);
  EXPECT_EQ(bounded.at("statuses").at("not_allowed").as_integer(), 5);
  const base::Folder least;
  EXPECT_EQ(best_x(json_of(with_output(least.path(), shell, {"--minimize", "energy"}))), 1);
  EXPECT_EQ(graft(with_output(least.path(), shell, {"--minimize", "energy", "--maximize", "speed"})).exit_code, 2);
  EXPECT_EQ(graft(with_output(least.path(), shell, {"--time", "GFLOPS"})).exit_code, 2);
  EXPECT_EQ(graft(with_output(least.path(), shell, {"--also", "energy<=many"})).exit_code, 2);
}

TEST(Own, ADeadDeviceOfSeveralIsSetAside) {
  const base::Folder folder;
  write_space(folder.path());
  const std::string works = "pi=sh -c 'sleep 0.02; echo time $((100 + {x} + {y}))'",
                    dead = "pi=sh -c 'echo no route to host {x} {y} >&2; exit 255'";
  const base::Finished finished =
      graft({"tune", (folder / "space.yaml").string(), "--time", "time:us", "--repetitions", "1", "--trials", "24",
             "--batch", "8", "--out", (folder / "run").string(), "--device", works, "--device", dead, "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(base::parse_json(finished.out, "out").at("statuses").to_json(), R"({"ok":24})");
  EXPECT_NE(finished.err.find("one of 2 equal devices is set aside"), std::string::npos) << finished.err;
  EXPECT_NE(finished.err.find("no route to host"), std::string::npos) << finished.err;
}

TEST(Own, ASecondLineOfAnAnswerEndsTheSearch) {
  const base::Folder folder;
  write_space(folder.path());
  std::ofstream(folder / "answers.py")
      << "import json, sys\n"
         "for line in sys.stdin:\n"
         "    question = json.loads(line)\n"
         "    time = 1 + question['configuration']['x']\n"
         "    for _ in range(2 if question['request'] == 3 else 1):\n"
         "        print(json.dumps({'request': question['request'], 'seconds': time}))\n"
         "    sys.stdout.flush()\n";
  const base::Finished finished = graft({"tune", (folder / "space.yaml").string(), "--persistent", "--run",
                                         "python3 '" + (folder / "answers.py").string() + "'", "--trials", "8", "--out",
                                         (folder / "run").string()});
  EXPECT_EQ(finished.exit_code, 1);
  // Whether it came with the first or after the next request.
  EXPECT_NE(finished.err.find("error: the persistent program "), std::string::npos) << finished.err;
  EXPECT_LE(recorded(folder / "run" / "journal.jsonl").size(), 3u);
}

TEST(Own, MistakesAreOneLine) {
  const base::Folder folder;
  write_space(folder.path());
  const std::string space = (folder / "space.yaml").string();
  const auto refused = [](std::vector<std::string> arguments, const std::string& text) {
    const base::Finished finished = graft(std::move(arguments));
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_NE(finished.err.find(text), std::string::npos) << finished.err;
    EXPECT_EQ(lines_in(finished.err), 1u) << finished.err;
  };
  refused({"tune", space, "--run", "./a {x} {z}"}, "{z} is not a parameter of the space");
  refused({"tune", space, "--run", "./a {x}"}, "does not depend on the parameter 'y'");
  refused({"tune", space, "--time", "t"}, "--run: missing");
  refused({"tune", (folder / "none.yaml").string(), "--run", "./a"}, "none.yaml");
  EXPECT_FALSE(std::filesystem::exists("runs"));
}

}  // namespace
}  // namespace graft::cli
