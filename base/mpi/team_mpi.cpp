// The only place that knows MPI.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/team.h"

namespace graft::base {
namespace {

// MPI's own waiting takes a whole core, which disturbs what another rank measures on this host. Sleeps for a sixteenth
// of the time that it has waited already, so that short steps are as fast as before.
void wait_for(MPI_Request& request) {
  using namespace std::chrono_literals;
  const auto begin = std::chrono::steady_clock::now();
  for (int is_done = 0;;) {
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (is_done != 0) return;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > 1ms) std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(waited / 16, 10ms));
  }
}

class MpiTeam final : public Team {
 public:
  MpiTeam() {
    int provided = 0;  // one thread of several calls
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  // A rank that fails does not wait for the others: it ends, and mpirun ends them.
  ~MpiTeam() override {
    if (std::uncaught_exceptions() == 0) MPI_Finalize();
  }
  MpiTeam(const MpiTeam&) = delete;
  MpiTeam& operator=(const MpiTeam&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Gathered gather(std::string_view own) override {
    const std::size_t length = own.size();
    std::vector<std::size_t> lengths(static_cast<std::size_t>(size_));
    MPI_Request all_here;
    MPI_Iallgather(&length, sizeof length, MPI_BYTE, lengths.data(), sizeof length, MPI_BYTE, MPI_COMM_WORLD,
                   &all_here);
    wait_for(all_here);
    if (std::accumulate(lengths.begin(), lengths.end(), std::size_t(0)) > std::size_t(std::numeric_limits<int>::max()))
      throw Failure("the ranks have more than MPI, which counts in int, can exchange at once");
    Gathered out(lengths);
    std::vector<int> counts, begins;
    for (int r = 0; r < size_; ++r) {
      counts.push_back(int(out[r].size()));
      begins.push_back(int(out[r].data() - out[0].data()));
    }
    MPI_Allgatherv(own.data(), int(length), MPI_BYTE, out.to(0), counts.data(), begins.data(), MPI_BYTE,
                   MPI_COMM_WORLD);
    return out;
  }

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace

std::unique_ptr<Team> make_mpi_team() {
  return std::make_unique<MpiTeam>();
}

}  // namespace graft::base
