// The only place that knows MPI.
#include <mpi.h>

#include <exception>
#include <limits>

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
    if (own.size() > std::size_t(std::numeric_limits<int>::max()))  // MPI counts in int
      throw Failure("a rank has more than MPI can send at once");
    const int length = int(own.size());
    std::vector<int> lengths(static_cast<std::size_t>(size_));
    MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::vector<std::string> out;
    for (const int each : lengths) out.emplace_back(std::size_t(each), '\0');
    own.copy(out[std::size_t(rank_)].data(), own.size());
    std::vector<MPI_Request> sent(lengths.size());
    for (int r = 0; r < size_; ++r)
      MPI_Ibcast(out[std::size_t(r)].data(), lengths[std::size_t(r)], MPI_BYTE, r, MPI_COMM_WORLD,
                 &sent[std::size_t(r)]);
    MPI_Waitall(size_, sent.data(), MPI_STATUSES_IGNORE);
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
