// The processes that work on one command together. Everyone runs the same command; what is divided is said by who
// calls. One process alone is a team, too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/monitor.h"

namespace graft::base {

class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  // Everyone's bytes, by rank. All ranks call it equally often and in the same order, from one thread at a time; waits
  // for all. When a rank is gone, MPI ends the program.
  virtual std::vector<std::string> gather(std::string_view own) { return {std::string(own)}; }
};

// The ranks of an MPI program that this process was started as one of. Once in a process.
std::unique_ptr<Team> make_mpi_team();

// work(i) for 0 <= i < count, each done by one rank, which uses up to `threads` threads; everyone gets all, in order:
// the same for any number of ranks and threads.
std::vector<std::vector<float>> divided(Team& team, std::int64_t count, int threads,
                                        const std::function<std::vector<float>(std::int64_t)>& work);

// The wish of one rank to stop is that of all. They ask equally often: a question waits for all.
class TeamMonitor final : public Monitor {
 public:
  TeamMonitor(Team& team, Monitor& own) : team_(team), own_(own) {}
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
    own_.progress(what, done, total);
  }
  void note(std::string_view line) override { own_.note(line); }
  bool stop_requested() override;

 private:
  Team& team_;
  Monitor& own_;
};

}  // namespace graft::base
