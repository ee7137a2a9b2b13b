// The only place that knows MPI.
#include <mpi.h>

#include <exception>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/team.h"

namespace graft::base {
namespace {

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

  std::vector<std::string> gather(std::string_view own) override {
    constexpr std::size_t most = std::numeric_limits<int>::max();  // MPI counts in int
    if (own.size() > most / std::size_t(size_)) throw Failure("a rank has more than MPI can send at once");
    const int length = int(own.size());
    std::vector<int> lengths(static_cast<std::size_t>(size_)), begins(lengths.size());
    MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0);
    std::string all(std::size_t(begins.back()) + std::size_t(lengths.back()), '\0');
    MPI_Allgatherv(own.data(), length, MPI_BYTE, all.data(), lengths.data(), begins.data(), MPI_BYTE, MPI_COMM_WORLD);
    std::vector<std::string> out;
    for (std::size_t r = 0; r < lengths.size(); ++r)
      out.push_back(all.substr(std::size_t(begins[r]), std::size_t(lengths[r])));
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
