// The processes that work on one command together. All run the same command; the callers divide the work.
// A single process is a team, too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/monitor.h"
#include "base/parallel.h"

namespace graft::base {

// The bytes of every rank, by rank.
class Gathered {
 public:
  // With sizes[rank] bytes for each rank, uninitialised.
  explicit Gathered(std::span<const std::size_t> lengths);

  std::string_view operator[](int rank) const { return parts_[std::size_t(rank)]; }
  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }
  char* to(int rank) { return bytes_.get() + (parts_[std::size_t(rank)].data() - bytes_.get()); }

 private:
  std::unique_ptr<char[]> bytes_;  // of all ranks, consecutive
  std::vector<std::string_view> parts_;
};

class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  // The bytes of all ranks, by rank. All ranks must call it equally often and in the same order, from one thread at a
  // time; waits for all. If a rank is gone, MPI ends the program.
  virtual Gathered gather(std::string_view own);
};

// The ranks of an MPI program that this process was started as one of. Once in a process.
std::unique_ptr<Team> make_mpi_team();

// body(i) for those i of 0 .. count-1 that are this rank's, every size()-th, on up to `threads` threads.
void parallel_for_own(const Team& team, std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

// work(i) for 0 <= i < count, each done by one rank, which uses up to `threads` threads; every rank gets all results,
// in order: the same for any number of ranks and threads. The results must be sendable (bytes.h).
template <class Work>
auto divided(Team& team, std::int64_t count, int threads, const Work& work) {
  std::vector<std::decay_t<std::invoke_result_t<Work, std::int64_t>>> out(static_cast<std::size_t>(count));
  const std::int64_t rank = team.rank(), size = team.size();
  parallel_for_own(team, count, threads, [&](std::int64_t i) { out[std::size_t(i)] = work(i); });
  if (size == 1) return out;
  BytesOut bytes;
  for (std::int64_t i = rank; i < count; i += size) bytes(out[std::size_t(i)]);
  const Gathered all = team.gather(bytes.bytes());
  for (std::int64_t r = 0; r < size; ++r) {
    if (r == rank) continue;
    BytesIn others(all[int(r)]);
    for (std::int64_t i = r; i < count; i += size) others(out[std::size_t(i)]);
  }
  return out;
}

// The sum of work(i) for 0 <= i < count, vectors of one length; each is made by one rank, which uses up to `threads`
// threads. The second half of the vectors is added to the first, repeatedly, which gives the same bits for
// any number of ranks and threads; of 2, 4, 8, .. ranks each sends one vector only.
std::vector<float> summed(Team& team, std::int64_t count, int threads,
                          const std::function<std::vector<float>(std::int64_t)>& work);

// If one rank is asked to stop, all are. All ranks must ask equally often: each question waits for all.
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
