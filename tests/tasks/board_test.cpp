// Boards that are this machine: a real sshd on a port of the loopback, whose commands run here or under qemu, and what
// happens when it goes away.
#include "tasks/board.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/one_line.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/cpuinfo.h"
#include "tasks/measurer.h"
#include "tasks/probe.h"
#include "tasks/remote.h"
#include "tests/base/support.h"
#include "tests/tasks/sshd.h"
#include "tests/tasks/support.h"

namespace graft::tasks {
namespace {

using base::Folder;
using datasets::Status;
using test::candidate;
using test::expect_contains;
using test::message_of;
using test::small_matmul;
using test::Sshd;

struct Heard {
  std::vector<Answer> answers;
  AnswerReader reader{2, [this](Answer answer) { answers.push_back(std::move(answer)); }};
};

constexpr const char* answer_text =
    "Welcome to the board!\n{\"board\":{\"governor\":\"performance\\n\",\"millidegrees\":\"45123\"}}\n"
    "{\"graft\":1,\"kernels\":2}\n{\"begin\":0}\n"
    "{\"end\":0,\"first\":1000,\"runs\":4,\"times\":[2000,4000],\"bytes\":3}\nab\n{\"begin\":1}\n";

TEST(AnswerReader, TakesWhatComesInPieces) {
  for (const std::size_t size : {1u, 2u, 7u, 1000u}) {
    Heard heard;
    const std::string_view text = answer_text;
    for (std::size_t at = 0; at < text.size(); at += size) heard.reader.read(text.substr(at, size));
    ASSERT_EQ(heard.answers.size(), 1u) << size;
    EXPECT_EQ(heard.answers[0].kernel, 0);
    EXPECT_NEAR(heard.answers[0].first, 1e-6, 1e-15);
    ASSERT_EQ(heard.answers[0].seconds.size(), 2u);
    EXPECT_NEAR(heard.answers[0].seconds[1], 1e-6, 1e-15);
    EXPECT_EQ(heard.answers[0].outputs, "ab\n");
    EXPECT_EQ(heard.reader.began_kernel(), 1);
    EXPECT_EQ(heard.reader.answered(), 1);
    EXPECT_EQ(heard.reader.state(), "performance governor, 45 C");
    EXPECT_EQ(heard.reader.exit_code(), -1);
    EXPECT_FALSE(heard.reader.is_garbled());
    heard.reader.read("\n{\"exit\":139}\n");
    EXPECT_EQ(heard.reader.exit_code(), 139);
  }
}

TEST(AnswerReader, TakesAnAnswerWithoutOutputs) {
  Heard heard;
  heard.reader.read("{\"graft\":1,\"kernels\":2}\n{\"begin\":0}\n");
  heard.reader.read("{\"end\":0,\"first\":1,\"runs\":1,\"times\":[5],\"bytes\":0}\n");
  ASSERT_EQ(heard.answers.size(), 1u);
  EXPECT_EQ(heard.answers[0].outputs, "");
  heard.reader.read("{\"begin\":1}\n");
  EXPECT_EQ(heard.reader.began_kernel(), 1);
  EXPECT_FALSE(heard.reader.is_garbled());
}

TEST(AnswerReader, HearsNothingMoreBehindWhatIsNoneOfIts) {
  for (const char* const line :
       {"hello\n", "{\"end\":1,\"first\":1,\"runs\":1,\"times\":[],\"bytes\":1}\n", "{\"end\":0}\n",
        "{\"end\":0,\"first\":1,\"runs\":0,\"times\":[],\"bytes\":1}\n",
        "{\"end\":0,\"first\":1,\"runs\":1,\"times\":[],\"bytes\":99999999999}\n", "[1]\n",
        "{\"end\":0,\"first\":0,\"runs\":1,\"times\":[],\"bytes\":1}\n", "{\"begin\":1}\n", "{\"begin\":-5}\n"}) {
    Heard heard;
    heard.reader.read("{\"graft\":1,\"kernels\":2}\n{\"begin\":0}\n");
    heard.reader.read(line);
    EXPECT_TRUE(heard.reader.is_garbled()) << line;
    heard.reader.read("{\"end\":0,\"first\":1,\"runs\":1,\"times\":[5],\"bytes\":1}\nx");
    EXPECT_TRUE(heard.answers.empty()) << line;
  }
  Heard endless;
  endless.reader.read("{\"graft\":1,\"kernels\":2}\n");
  for (int i = 0; i < 40; ++i) endless.reader.read(std::string(1 << 15, 'x'));
  EXPECT_TRUE(endless.reader.is_garbled());
}

Platform platform_of(const Sshd& sshd, const std::string& more = "") {
  return parse_platform("name: ssh:here\ntarget: " + codegen::to_document(codegen::host_target()).to_json() +
                            "\nremote:\n  ssh: board\n  ssh_config: " + sshd.config() + "\n  folder: " + sshd.folder() +
                            "\n  retry_seconds: 0.2\n" + more,
                        "here.yaml");
}

struct Notes : base::Monitor {
  std::vector<std::string> lines;
  void note(std::string_view line) override { lines.emplace_back(line); }
};

std::vector<codegen::Candidate> tilings() {
  std::vector<codegen::Candidate> all;
  for (const int rows : {1, 2, 4, 8})
    for (const int columns : {1, 2, 4, 8, 16})
      all.push_back(candidate(small_matmul(), fmt::format("sketch t\ntile C i {}\ntile C j {}\norder C i.0 j.0 l.0 i.1 "
                                                          "j.1\n",
                                                          rows, columns)));
  return all;
}

std::vector<Measured> measured(Measurer& measurer, const std::vector<codegen::Candidate>& batch,
                               base::Monitor& monitor) {
  std::vector<Measured> results;
  measurer.measure(
      batch, [&](const Measured& one) { results.push_back(one); }, monitor);
  return results;
}

void expect_all_ok(const std::vector<Measured>& results, std::size_t count) {
  ASSERT_EQ(results.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(results[i].position, std::int64_t(i));
    EXPECT_EQ(results[i].measurement.status, Status::ok) << i << " " << results[i].measurement.reason;
    EXPECT_EQ(results[i].measurement.seconds.size(), 3u);
  }
}

MeasureSettings quick() {
  MeasureSettings settings;
  settings.minimum_seconds = 1e-4;
  settings.timeout_seconds = 2;
  return settings;
}

TEST(Board, MeasuresOverSsh) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  Notes notes;
  const auto measurer = make_measurer(platform_of(sshd), quick());
  const auto batch = tilings();
  const auto results = measured(*measurer, batch, notes);
  expect_all_ok(results, batch.size());
  EXPECT_EQ(results[0].measurement.check, "remote");
  EXPECT_TRUE(sshd.leftovers().empty()) << sshd.leftovers().front();
}

// A runner that ends what it runs by a segmentation fault after a part of its output (of head): `often` times in total.
std::string crashing(const Sshd& sshd, const std::string& part, int often) {
  const std::string count = sshd.folder() + "/../count";
  return fmt::format(
      "  runner: [sh, -c, 'n=$(cat {0} 2>/dev/null || echo 0); echo $((n+1)) >{0}; "
      "if [ $n -lt {1} ]; then \"$0\" | head {2}; kill -SEGV $$; fi; exec \"$0\"']\n",
      count, often, part);
}

// One connection stays for all that a measurer sends, and goes with it.
TEST(Board, KeepsItsConnection) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  Notes notes;
  std::vector<codegen::Candidate> batch = tilings();
  batch.resize(2);
  auto measurer = make_measurer(platform_of(sshd), quick());
  expect_all_ok(measured(*measurer, batch, notes), batch.size());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // one for each would be gone
  EXPECT_TRUE(sshd.is_connected());
  measurer.reset();
  for (int i = 0; i < 100 && sshd.is_connected(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(sshd.is_connected());
}

TEST(Board, ACrashBehindAnotherProgramIsNotBelievedAtOnce) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  std::vector<codegen::Candidate> batch = tilings();
  batch.resize(4);
  Notes notes;
  // Both of its lines and the outputs of the first program, then some of the second.
  const std::int64_t output_bytes = small_matmul().computation().tensors.back().bytes();
  const auto measurer =
      make_measurer(platform_of(sshd, crashing(sshd, fmt::format("-c {}", output_bytes + 200), 1)), quick());
  expect_all_ok(measured(*measurer, batch, notes), batch.size());
}

TEST(Board, ACrashCostsItselfOnly) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  std::vector<codegen::Candidate> batch = tilings();
  batch.resize(4);
  Notes notes;
  // Three times right after the first program has begun: the first one of what is left each time.
  const auto measurer = make_measurer(platform_of(sshd, crashing(sshd, "-n 2", 3)), quick());
  const auto results = measured(*measurer, batch, notes);
  ASSERT_EQ(results.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(results[i].measurement.status, Status::crashed);
    expect_contains(results[i].measurement.reason, "signal 11");
  }
  EXPECT_EQ(results[3].measurement.status, Status::ok) << results[3].measurement.reason;
  // The board is not taken for lost meanwhile.
  for (const std::string& line : notes.lines) EXPECT_EQ(line.find("again in"), std::string::npos) << line;
}

TEST(Board, AConnectionThatIsCutCostsNothing) {
  Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  Notes notes;
  MeasureSettings settings = quick();
  settings.minimum_seconds = 0.02;  // so that there is something to cut
  const auto measurer = make_measurer(platform_of(sshd), settings);
  std::atomic<bool> over = false;
  std::thread cutter([&] {
    while (!over && !sshd.is_connected()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // a second of programs lies before it
    if (!over) sshd.cut();
  });
  const auto batch = tilings();
  const auto results = measured(*measurer, batch, notes);
  over = true;
  cutter.join();
  expect_all_ok(results, batch.size());
  EXPECT_FALSE(notes.lines.empty());
}

TEST(Board, OneThatIsAwayForAWhileIsAskedAgain) {
  Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  sshd.stop();
  Notes notes;
  const auto measurer = make_measurer(platform_of(sshd), quick());
  std::thread back([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    sshd.start();
  });
  const auto batch = tilings();
  const auto results = measured(*measurer, batch, notes);
  back.join();
  expect_all_ok(results, batch.size());
  ASSERT_FALSE(notes.lines.empty());
  expect_contains(notes.lines.front(), "again in 0.2 s");
}

TEST(Board, OneThatStaysAwayIsGivenUp) {
  Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  sshd.stop();
  Notes notes;
  const auto measurer = make_measurer(platform_of(sshd, "  attempts: 2\n"), quick());
  expect_contains(message_of<base::Failure>([&] { measured(*measurer, tilings(), notes); }), "board: ");
}

TEST(Board, TwoBoardsShareTheWorkAndOneMayGo) {
  Sshd first, second;
  if (!first.works() || !second.works()) GTEST_SKIP() << first.why_not();
  const Folder folder;
  base::replace_file(folder / "config", base::read_file(first.config()) + second.host_entry("other"));
  Platform platform = platform_of(first, "  attempts: 2\n");
  Remote remote = *platform.device->runner().where;
  remote.ssh = {"board", "other"};
  remote.ssh_config = (folder / "config").string();
  platform.device = remote_device(remote);
  second.stop();
  Notes notes;
  const auto measurer = make_measurer(platform, quick());
  const auto batch = tilings();
  expect_all_ok(measured(*measurer, batch, notes), batch.size());
}

// 4 kB at a time with pauses, both ways: a delivery takes longer than any single answer may.
TEST(Board, ASlowLinkCostsTimeOnly) {
  const base::Folder folder;
  base::replace_file(folder / "slow",
                     "piece=$(mktemp)\n"
                     "while dd bs=4000 count=1 of=\"$piece\" 2>/dev/null; [ -s \"$piece\" ]; do\n"
                     "  cat \"$piece\"; sleep 0.02\ndone\nrm -f \"$piece\"\n");
  const std::string slow = "sh " + (folder / "slow").string();
  const Sshd sshd("ForceCommand " + slow + " | sh -c \"$SSH_ORIGINAL_COMMAND\" | " + slow + "\n");
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  Notes notes;
  const auto measurer = make_measurer(platform_of(sshd), quick());
  const auto batch = tilings();
  expect_all_ok(measured(*measurer, batch, notes), batch.size());
  EXPECT_TRUE(notes.lines.empty()) << notes.lines.front();
}

TEST(Board, AFullDiskIsSaid) {
  const Sshd sshd("ForceCommand ulimit -f 8; eval \"$SSH_ORIGINAL_COMMAND\"\n");
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  Notes notes;
  const auto measurer = make_measurer(platform_of(sshd), quick());
  expect_contains(message_of<base::Failure>([&] { measured(*measurer, tilings(), notes); }), "no room for ");
  for (const std::string& line : notes.lines) EXPECT_EQ(line.find("again in"), std::string::npos) << line;
  EXPECT_TRUE(sshd.leftovers().empty());
}

TEST(Board, RunsUnderTheRunnerThere) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  Platform platform = platform_of(sshd, "  runner: [qemu-riscv64]\n");
  platform.target = platform_named("model:sifive-p450").target;
  EXPECT_EQ(platform.device->source(), "emulated");
  Notes notes;
  std::vector<codegen::Candidate> batch = tilings();
  batch.resize(3);
  const auto results = measured(*make_measurer(platform, quick()), batch, notes);
  expect_all_ok(results, 3);
  EXPECT_EQ(results[0].measurement.check, "qemu");
}

TEST(Board, AnswersScripts) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  Board board(*platform_of(sshd).device->runner().where, 0);
  EXPECT_EQ(board.shell("printf \"it's %d\" $((6*7))", std::chrono::seconds(20)), "it's 42");
  EXPECT_THROW(board.shell("exit 3", std::chrono::seconds(20)), base::Failure);
}

// What cannot get better ends with the first failure, in one line that says what helps.
TEST(Board, WhatCannotGetBetterIsNotAskedAgain) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  const Folder folder;
  const auto config = [&](const std::string& name, const std::string& from, const std::string& to) {
    std::string text = base::read_file(sshd.config());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    base::replace_file(folder / name, text);
    return (folder / name).string();
  };
  std::vector<codegen::Candidate> batch = tilings();
  batch.resize(1);
  const auto refused = [&](const std::string& what, const std::function<void(Remote&)>& change) {
    SCOPED_TRACE(what);
    Platform platform = platform_of(sshd, "  attempts: 100\n");
    Remote remote = *platform.device->runner().where;
    change(remote);
    platform.device = remote_device(remote);
    Notes notes;
    const std::string message =
        message_of<base::Failure>([&] { measured(*make_measurer(platform, quick()), batch, notes); });
    for (const std::string& line : notes.lines) EXPECT_EQ(line.find("again in"), std::string::npos) << line;
    EXPECT_EQ(message, base::one_line(message, std::string::npos));
    EXPECT_LT(message.size(), 500u) << message;
    return message;
  };
  const std::string missing = refused("config", [](Remote& r) { r.ssh_config = "/no/such/config"; });
  expect_contains(missing, "Can't open user config file /no/such/config: No such file or directory; ssh_config must");
  const std::string bad = config("bad", "IdentitiesOnly yes", "IdentitiesOlny yes");
  expect_contains(refused("option", [&](Remote& r) { r.ssh_config = bad; }),
                  "Bad configuration option: identitiesolny");
  const std::string strict = config("strict", "StrictHostKeyChecking no", "StrictHostKeyChecking yes");
  expect_contains(refused("host key", [&](Remote& r) { r.ssh_config = strict; }),
                  "Host key verification failed; log in once by hand");
  const std::string keyless = config("keyless", "IdentityFile ", "IdentityFile /no/such");
  expect_contains(refused("key", [&](Remote& r) { r.ssh_config = keyless; }),
                  "); ssh must let you in without a question");
  expect_contains(refused("folder", [](Remote& r) { r.folder = "/no/such/folder"; }),
                  "no file can be made in /no/such/folder");
  expect_contains(refused("runner", [](Remote& r) { r.runner = {"no-such-program"}; }),
                  "install 'no-such-program' there");
  expect_contains(refused("words",
                          [](Remote& r) {
                            r.runner = {"sh", "-c", "printf '\\033[1mone\\ntwo' >&2; exit 3"};
                          }),
                  "ended with exit code 3 before its first line: one; two; try");
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  const auto unknown = [](Remote& r) { r.runner = {"qemu-riscv64", "-cpu", "max"}; };
  expect_contains(refused("cpu", unknown), "unable to find CPU model 'max'; 'qemu-riscv64 -cpu help' lists");
}

// One that was there before may refuse while it boots.
TEST(Board, OneThatRefusesAfterItWasThereIsAskedAgain) {
  Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  Board board(*platform_of(sshd).device->runner().where, 0);
  const auto program = codegen::probe_program(codegen::host_target());
  ASSERT_TRUE(program.ok());
  const auto run = [&] { return board.run(*program, 1, std::chrono::seconds(20), [](const Answer&) {}); };
  EXPECT_TRUE(run().started);
  const std::string key = sshd.folder() + "/../user.pub";
  std::filesystem::rename(key, key + ".away");
  const Delivery refused = run();
  EXPECT_FALSE(refused.started);
  EXPECT_FALSE(refused.permanent);
  expect_contains(refused.reason, "Permission denied (");
  std::filesystem::rename(key + ".away", key);
  EXPECT_TRUE(run().started);
}

TEST(Board, IsProbed) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  Remote remote;
  remote.ssh = {"board"};
  remote.ssh_config = sshd.config();
  remote.folder = sshd.folder();
  const Probed host = probed(remote);
  const Platform same = parse_platform(host.yaml, "probed");
  expect_contains(host.saw, fmt::format("{} bits", codegen::host_target().vector_bits));
  EXPECT_EQ(same.name, "ssh:board");
  EXPECT_EQ(same.device->source(), "remote");
  EXPECT_EQ(same.target.cores, codegen::host_target().cores);
  EXPECT_EQ(same.target.l1_bytes, codegen::host_target().l1_bytes);
  EXPECT_EQ(same.device->runner().where->folder, sshd.folder());
  Notes notes;
  std::vector<codegen::Candidate> batch = tilings();
  batch.resize(2);
  expect_all_ok(measured(*make_measurer(same, quick()), batch, notes), 2);

  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  remote.runner = {"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256"};
  const Probed emulated = probed(remote);
  EXPECT_EQ(emulated.saw, "riscv64 with RVV 1.0 of 256 bits");
  const Platform riscv = parse_platform(emulated.yaml, "probed");
  EXPECT_EQ(riscv.device->source(), "emulated");
  EXPECT_EQ(riscv.target.triple, "riscv64-unknown-linux-gnu");
  EXPECT_EQ(riscv.target.vector_bits, 256);
  EXPECT_FALSE(riscv.target.l1_bytes);
  expect_all_ok(measured(*make_measurer(riscv, quick()), batch, notes), 2);
}

TEST(Board, OneThatDoesNotAnswerIsNotProbed) {
  Remote remote;
  remote.ssh = {"board"};
  remote.ssh_config = "/dev/null";
  EXPECT_THROW(probed(remote), base::Failure);
}

TEST(Board, OneWhereNoProgramRunsIsNotProbed) {
  const Sshd sshd;
  if (!sshd.works()) GTEST_SKIP() << sshd.why_not();
  const auto refused = [&](const std::vector<std::string>& runner, const std::string& folder) {
    Remote remote;
    remote.ssh = {"board"};
    remote.ssh_config = sshd.config();
    remote.folder = folder;
    remote.runner = runner;
    return message_of<base::Failure>([&] { probed(remote); });
  };
  expect_contains(refused({"no-such-program"}, sshd.folder()), "install 'no-such-program' there");
  expect_contains(refused({"true"}, sshd.folder()), "ended without a word before its first line");
  expect_contains(refused({}, "/no/such/folder"), "give a folder that exists");
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  expect_contains(refused({"qemu-riscv64", "-cpu", "max"}, sshd.folder()), "unable to find CPU model 'max'");
}

// On this machine, without a board.
TEST(Probe, ARunnerHereAndThisMachine) {
  EXPECT_EQ(parse_platform(probed_here().yaml, "here").name, "native");
  if (std::system("qemu-riscv64 --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "qemu-riscv64 is not installed";
  const auto of = [](std::vector<std::string> prefix) {
    Remote remote;
    remote.prefix = std::move(prefix);
    return probed(remote);
  };
  const Probed scalar = of({"qemu-riscv64"});
  EXPECT_EQ(scalar.saw, "riscv64 without RVV 1.0");
  const Platform platform = parse_platform(scalar.yaml, "here");
  EXPECT_EQ(platform.name, "here:riscv64");
  EXPECT_EQ(platform.target.vector_bits, 0);
  EXPECT_EQ(platform.device->runner().where->prefix, std::vector<std::string>{"qemu-riscv64"});
  expect_contains(message_of<base::Failure>([&] { of({"qemu-riscv64", "-cpu", "max"}); }), "-cpu help' lists");
  expect_contains(message_of<base::Failure>([&] { of({"/no/such/qemu-riscv64"}); }),
                  "cannot start '/no/such/qemu-riscv64': no such file or directory; install it");
}

}  // namespace
}  // namespace graft::tasks
