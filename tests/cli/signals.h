// Runs of the program that a signal ends, and the files that they leave.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "datasets/journal.h"

namespace graft::cli {

// A run of graft without output.
class Running {
 public:
  explicit Running(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GRAFT_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      const int nothing = ::open("/dev/null", O_RDWR);
      for (const int descriptor : {0, 1, 2}) ::dup2(nothing, descriptor);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~Running() {
    if (process_ < 0) return;
    signal(SIGKILL);
    wait();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void signal(int number) const { ::kill(process_, number); }
  // Kills its descendants of this name.
  void kill_children(const std::string& name) const {
    std::map<pid_t, std::pair<pid_t, std::string>> processes;  // parent and name
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "stat");
      pid_t process = 0, parent = 0;
      std::string called, state;
      if (file >> process >> called >> state >> parent) processes[process] = {parent, called};
    }
    for (const auto& [process, about] : processes) {
      if (about.second != "(" + name + ")") continue;
      for (pid_t at = about.first; processes.contains(at); at = processes.at(at).first) {
        if (at == process_) ::kill(process, SIGKILL);
      }
    }
  }
  // Its wait status.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(process_, -1), &status, 0);
    return status;
  }
  // Waits until it catches the signal (before that, the signal ends any program), or has ended.
  void wait_until_it_catches(int number) const {
    for (;;) {
      std::ifstream file("/proc/" + std::to_string(process_) + "/status");
      std::string key, state;
      std::uint64_t caught = 0;
      while (file >> key) {
        if (key == "State:") file >> state;
        if (key == "SigCgt:") file >> std::hex >> caught;
      }
      if (state.empty() || state == "Z" || (caught >> (number - 1) & 1) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  pid_t process_ = -1;
};

struct Signalled {
  int status = 0;      // of wait
  double seconds = 0;  // from the signal to the end
};

// Starts graft and sends the signal after a while. With `caught` the delay begins once graft catches it.
inline Signalled signalled(std::vector<std::string> arguments, int signal, std::chrono::milliseconds after,
                           bool caught = false) {
  Running run(std::move(arguments));
  if (caught) run.wait_until_it_catches(signal);
  std::this_thread::sleep_for(after);
  const auto begin = std::chrono::steady_clock::now();
  run.signal(signal);
  const int status = run.wait();
  return {status, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

// The identity of a trial: the candidate and its measurement.
using Recorded = std::pair<std::uint64_t, std::vector<double>>;

inline std::vector<Recorded> recorded(const std::filesystem::path& journal) {
  std::vector<Recorded> all;
  if (!std::filesystem::exists(journal) || base::read_file(journal).find('\n') == std::string::npos) return all;
  for (const datasets::Trial& trial : datasets::read_journal(journal).trials) {
    all.emplace_back(codegen::hash(trial.candidate), trial.measurement.seconds);
  }
  return all;
}

inline void expect_distinct(const std::vector<Recorded>& trials) {
  std::set<std::uint64_t> candidates;
  for (const Recorded& trial : trials) candidates.insert(trial.first);
  EXPECT_EQ(candidates.size(), trials.size()) << "a candidate was measured twice";
}

}  // namespace graft::cli
