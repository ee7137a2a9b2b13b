#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "base/files.h"
#include "tests/base/support.h"

namespace graft::base {
namespace {

using namespace std::chrono_literals;
using Received = Partner::Received;

Finished shell(const std::string& script, std::chrono::milliseconds deadline = 60s, std::int64_t limit = 64 << 20) {
  return run_process({"sh", "-c", script}, deadline, limit);
}

// Another run of this program, doing one of the disabled tests at the end of this file.
std::vector<std::string> this_program_as(const std::string& role) {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_also_run_disabled_tests",
          "--gtest_filter=Role.DISABLED_" + role};
}

// A zombie has ended: who reaps it is not our business.
bool ended(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.at(name_end + 2) == 'Z';
}

bool ends_soon(pid_t process) {
  for (int i = 0; i < 1000; ++i) {
    if (ended(process)) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

std::string receive_line(Partner& partner) {
  std::string line;
  for (char c; partner.receive(&c, 1, 60s) == Received::all && c != '\n';) line += c;
  return line;
}

TEST(RunProcess, TalksWithAProgram) {
  const std::string input(5'000'000, 'x');  // more than a pipe holds, both ways
  std::string heard;
  Exchange exchange;
  exchange.input = input;
  exchange.on_output = [&](std::string_view piece) { heard += piece; };
  const Finished echoed = run_process({"cat"}, exchange, 60s);
  EXPECT_EQ(echoed.exit_code, 0);
  EXPECT_EQ(heard, input);
  EXPECT_TRUE(echoed.out.empty());

  // A program that takes nothing ends us not.
  heard.clear();
  const Finished deaf = run_process({"sh", "-c", "exec <&-; echo deaf; exit 3"}, exchange, 60s);
  EXPECT_EQ(deaf.exit_code, 3);
  EXPECT_EQ(heard, "deaf\n");

  // An input that stays open does not end `cat`; silence does.
  exchange.input = "a little";
  exchange.input_ends = false;
  exchange.silence = 300ms;
  heard.clear();
  const Finished waiting = run_process({"cat"}, exchange, 60s);
  EXPECT_TRUE(waiting.timed_out);
  EXPECT_EQ(heard, "a little");
  // As long as it is heard of, it may go on.
  const Finished slow = run_process({"sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.1; echo $i; done"}, exchange, 60s);
  EXPECT_FALSE(slow.timed_out);
  EXPECT_EQ(slow.exit_code, 0);
  // Nor longer than it is wanted.
  int asked = 0;
  exchange.silence = 60s;
  exchange.stop = [&] { return ++asked == 2; };
  const Finished unwanted = run_process({"sleep", "60"}, exchange, 60s);
  EXPECT_TRUE(unwanted.timed_out);
  EXPECT_EQ(unwanted.signal, SIGKILL);
}

// A copy of the process has none of its threads.
TEST(RunProcess, WorksInACopyOfTheProcess) {
  EXPECT_EQ(shell("exit 3").exit_code, 3);
  const pid_t copy = ::fork();
  if (copy == 0) {
    ::alarm(60);  // in place of waiting for ever
    ::_exit(shell("exit 4").exit_code == 4 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(copy, &status, 0), copy);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(shell("exit 5").exit_code, 5);
}

TEST(Dialogue, GoesOnAfterAnExchange) {
  Dialogue echo(
      {"sh", "-c", "while read -r word; do echo \"$word\"; echo aside >&2; [ \"$word\" != end ] || exit 4; done"});
  std::string heard;
  Exchange exchange;
  exchange.input_ends = false;
  exchange.on_output = [&](std::string_view piece) { heard += piece; };
  exchange.done = [&] { return heard.ends_with("\n"); };
  for (const std::string word : {"one", "two"}) {
    heard.clear();
    const std::string line = word + "\n";
    exchange.input = line;
    EXPECT_FALSE(echo.exchange(exchange, 60s).has_value());
    EXPECT_EQ(heard, line);
    EXPECT_TRUE(echo.alive());
  }
  exchange.input = "end\n";
  exchange.done = {};
  const std::optional<Finished> finished = echo.exchange(exchange, 60s);
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(finished->exit_code, 4);
  EXPECT_TRUE(finished->out.empty());
  EXPECT_TRUE(finished->err.ends_with("aside\n"));
  EXPECT_FALSE(echo.alive());
}

TEST(Dialogue, EndsWithTheObject) {
  std::string number;
  {
    Dialogue sleeper({"sh", "-c", "echo $$; exec sleep 60"});
    Exchange exchange;
    exchange.input_ends = false;
    exchange.on_output = [&](std::string_view piece) { number += piece; };
    exchange.done = [&] { return number.ends_with("\n"); };
    EXPECT_FALSE(sleeper.exchange(exchange, 60s).has_value());
    EXPECT_EQ(::kill(std::stoi(number), 0), 0);
  }
  EXPECT_NE(::kill(std::stoi(number), 0), 0);
  EXPECT_THROW(Dialogue({"graft-no-such-program"}), Failure);
}

TEST(Dialogue, SeesThatTheProgramEndedMeanwhile) {
  Dialogue brief({"true"});
  for (int i = 0; i < 500 && brief.alive(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(brief.alive());
}

TEST(RunProcess, collects_output_and_exit_code) {
  const Finished finished = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.signal, 0);
  EXPECT_FALSE(finished.timed_out);
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
}

TEST(RunProcess, hands_arguments_over_untouched) {
  EXPECT_EQ(run_process({"printf", "%s|", "a b", "", "$HOME", "*"}, 60s).out, "a b||$HOME|*|");
}

TEST(RunProcess, has_an_empty_input) {
  EXPECT_EQ(shell("cat; echo end").out, "end\n");
}

TEST(RunProcess, tells_signals_from_exit_codes) {
  const Finished finished = shell("kill -SEGV $$");
  EXPECT_EQ(finished.signal, SIGSEGV);
  EXPECT_EQ(finished.exit_code, -1);
  EXPECT_FALSE(finished.timed_out);
}

TEST(RunProcess, throws_when_the_program_cannot_start) {
  EXPECT_EQ(refusal<Failure>([] { run_process({"no-such-program-here"}, 1s); }),
            "cannot start 'no-such-program-here': no such file or directory");
  EXPECT_EQ(refusal<Failure>([] { run_process({"/proc/self/status"}, 1s); }),
            "cannot start '/proc/self/status': permission denied");
}

TEST(RunProcess, takes_much_output_on_both_pipes) {
  const Finished finished = shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end");
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out.size(), 3'000'004u);
  EXPECT_EQ(finished.err.size(), 3'000'000u);
}

TEST(RunProcess, drops_output_beyond_the_limit_and_lets_the_program_end) {
  const Finished finished = shell("printf 12345678; head -c 1000000 /dev/zero >&2; exit 5", 60s, 5);
  EXPECT_EQ(finished.out, "12345");
  EXPECT_EQ(finished.err.size(), 5u);
  EXPECT_EQ(finished.exit_code, 5);
}

TEST(RunProcess, kills_the_whole_group_at_the_deadline) {
  const Finished finished = shell("sleep 1000 & echo $!; exec sleep 1000", 500ms);
  EXPECT_TRUE(finished.timed_out);
  EXPECT_EQ(finished.signal, SIGKILL);
  EXPECT_EQ(finished.exit_code, -1);
  ASSERT_FALSE(finished.out.empty());  // what came before the deadline is kept
  EXPECT_TRUE(ends_soon(std::stoi(finished.out)));
}

TEST(RunProcess, does_not_wait_for_what_the_program_left_running) {
  const Finished finished = shell("sleep 1000 & echo $!", 300s);  // it holds both pipes
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_FALSE(finished.timed_out);
  EXPECT_TRUE(ends_soon(std::stoi(finished.out)));
}

TEST(RunProcess, takes_deadlines_without_end) {
  EXPECT_EQ(run_process({"echo", "x"}, std::chrono::milliseconds::max()).out, "x\n");
  EXPECT_TRUE(run_process({"sleep", "1000"}, 0ms).timed_out);
}

TEST(RunProcess, gives_none_of_our_descriptors_and_signal_settings_away) {
  const int open_descriptor = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  ASSERT_GE(open_descriptor, 3);
  const auto previous = ::signal(SIGPIPE, SIG_IGN);
  // The shell's own list: 0, 1, 2 and the folder that `ls` reads.
  EXPECT_EQ(run_process({"ls", "/proc/self/fd"}, 60s).out, "0\n1\n2\n3\n");
  EXPECT_EQ(shell("kill -PIPE $$").signal, SIGPIPE);
  ::signal(SIGPIPE, previous);
  ::close(open_descriptor);
}

TEST(RunProcess, works_from_many_threads) {
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(8);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([&, i] { outputs[i] = run_process({"echo", std::to_string(i)}, 60s).out; });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i], std::to_string(i) + "\n");
}

TEST(Partner, talks_over_descriptor_3) {
  Partner partner({"sh", "-c", "exec cat <&3 >&3"}, 0);
  EXPECT_TRUE(partner.alive());
  // Much more than a socket's buffer, so that messages go and come in parts. The partner answers as it reads.
  std::string message(50'000, 'x'), answer(message.size(), ' ');
  for (int i = 0; i < 20; ++i) {
    message[std::size_t(i)] = char('a' + i);
    ASSERT_TRUE(partner.send(message.data(), message.size()));
    ASSERT_EQ(partner.receive(answer.data(), answer.size(), 60s), Received::all);
    ASSERT_EQ(answer, message);
  }
  EXPECT_TRUE(partner.send(nullptr, 0));
  EXPECT_EQ(partner.receive(nullptr, 0, 0ms), Received::all);
}

TEST(Partner, passes_descriptors_along) {
  const int memory = ::memfd_create("shared", MFD_CLOEXEC);
  ASSERT_GE(memory, 0);
  ASSERT_EQ(::pwrite(memory, "from the parent", 15, 0), 15);
  Partner partner(this_program_as("writes_into_a_received_descriptor"), 0);
  ASSERT_TRUE(partner.send("go", 2, {memory, memory}));
  char done = 0;
  ASSERT_EQ(partner.receive(&done, 1, 60s), Received::all);
  EXPECT_EQ(done, 'y');
  char text[16] = {};
  ASSERT_EQ(::pread(memory, text, 15, 0), 15);
  EXPECT_STREQ(text, "FROM the parent");
  ::close(memory);
}

TEST(Partner, answers_too_late) {
  Partner partner({"sh", "-c", "printf ab >&3; sleep 1000"}, 0);
  char bytes[3];
  EXPECT_EQ(partner.receive(bytes, 3, 300ms), Received::timed_out);
  EXPECT_TRUE(partner.alive());
  partner.kill();
  EXPECT_FALSE(partner.alive());
  EXPECT_FALSE(partner.send("x", 1));
  EXPECT_EQ(partner.receive(bytes, 1, 60s), Received::gone);
  partner.kill();
}

TEST(Partner, is_seen_to_end) {
  Partner partner({"sh", "-c", "printf last >&3; exit 1"}, 0);
  char bytes[8];
  EXPECT_EQ(partner.receive(bytes, 4, 60s), Received::all);  // what it said before counts
  EXPECT_EQ(partner.receive(bytes, 1, 60s), Received::gone);
  for (int i = 0; i < 1000 && partner.alive(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(partner.alive());
  EXPECT_FALSE(partner.send("x", 1));
}

TEST(Partner, can_be_heard_after_its_end) {
  Partner partner({"sh", "-c", "printf last >&3"}, 0);
  while (partner.alive()) std::this_thread::sleep_for(10ms);
  char bytes[5];
  EXPECT_EQ(partner.receive(bytes, 4, 60s), Received::all);
  EXPECT_EQ(partner.receive(bytes, 1, 60s), Received::gone);
}

TEST(Partner, throws_when_the_program_cannot_start) {
  EXPECT_EQ(refusal<Failure>([] { Partner({"no-such-program-here"}, 0); }),
            "cannot start 'no-such-program-here': no such file or directory");
}

TEST(Partner, has_its_memory_limited) {
  Partner partner({"sh", "-c", "ulimit -v >&3; ulimit -c >&3"}, std::int64_t(512) << 20);
  EXPECT_EQ(receive_line(partner), "524288");
  EXPECT_EQ(receive_line(partner), "0");
  Partner unlimited({"sh", "-c", "ulimit -v >&3"}, 0);
  EXPECT_EQ(receive_line(unlimited), "unlimited");
}

TEST(Partner, inherits_four_descriptors_only) {
  const int open_descriptor = ::open("/dev/null", O_RDONLY);
  Partner partner({"sh", "-c", "ls /proc/self/fd >&3; readlink /proc/self/fd/0 >&3"}, 0);
  for (const char* expected : {"0", "1", "2", "3", "4"}) EXPECT_EQ(receive_line(partner), expected);  // 4: of `ls`
  EXPECT_EQ(receive_line(partner), "/dev/null");
  ::close(open_descriptor);
}

TEST(Partner, takes_its_children_along) {
  pid_t child;
  {
    Partner partner({"sh", "-c", "sleep 1000 & echo $! >&3; wait"}, 0);
    child = std::stoi(receive_line(partner));
    EXPECT_FALSE(ended(child));
  }
  EXPECT_TRUE(ends_soon(child));
}

TEST(Partner, dies_with_its_parent) {
  Partner parent(this_program_as("holds_a_partner"), 0);
  pid_t child = 0;
  ASSERT_EQ(parent.receive(&child, sizeof child, 60s), Received::all);
  ASSERT_GT(child, 0);
  EXPECT_FALSE(ended(child));
  parent.kill();  // not the child: that leads a group of its own
  EXPECT_TRUE(ends_soon(child));
}

// The kernel's "parent" is the thread that forked.
TEST(Partner, outlives_the_thread_that_made_it) {
  std::unique_ptr<Partner> partner;
  std::thread([&] {
    partner = std::make_unique<Partner>(std::vector<std::string>{"sh", "-c", "exec cat <&3 >&3"}, 0);
  }).join();
  std::this_thread::sleep_for(100ms);
  char answer = 0;
  ASSERT_TRUE(partner->send("x", 1));
  EXPECT_EQ(partner->receive(&answer, 1, 60s), Received::all);
  EXPECT_EQ(answer, 'x');
}

// What other runs of this program do (see `this_program_as`).

TEST(Role, DISABLED_writes_into_a_received_descriptor) {
  char bytes[2], control[CMSG_SPACE(2 * sizeof(int))];
  iovec piece{bytes, 2};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ASSERT_EQ(::recvmsg(3, &message, 0), 2);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  ASSERT_TRUE(header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(2 * sizeof(int)));
  int received[2];
  std::memcpy(received, CMSG_DATA(header), sizeof received);
  const bool written = ::pwrite(received[1], "FROM", 4, 0) == 4;
  ASSERT_EQ(::write(3, written ? "y" : "n", 1), 1);
}

TEST(Role, DISABLED_holds_a_partner) {
  Partner partner({"sh", "-c", "echo $$ >&3; exec sleep 1000"}, 0);
  const pid_t child = std::stoi(receive_line(partner));
  ASSERT_EQ(::write(3, &child, sizeof child), ssize_t(sizeof child));
  for (;;) ::pause();
}

}  // namespace
}  // namespace graft::base
