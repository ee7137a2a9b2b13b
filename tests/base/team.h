// A team of threads in one process.
#pragma once

#include <barrier>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/team.h"

namespace graft::base::test {

// Runs part(team) on `size` threads, each with a rank of one team; rethrows the first rank's exception.
inline void as_team(int size, const std::function<void(Team&)>& part) {
  struct Shared {
    explicit Shared(int count) : barrier(count), texts(std::size_t(count)) {}
    std::barrier<> barrier;
    std::vector<std::string> texts;
  };
  class Member final : public Team {
   public:
    Member(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return int(shared_.texts.size()); }
    Gathered gather(std::string_view own) override {
      shared_.texts[std::size_t(rank_)] = own;
      shared_.barrier.arrive_and_wait();
      std::vector<std::size_t> lengths;
      for (const std::string& text : shared_.texts) lengths.push_back(text.size());
      Gathered all(lengths);
      for (int r = 0; r < size(); ++r) shared_.texts[std::size_t(r)].copy(all.to(r), lengths[std::size_t(r)]);
      shared_.barrier.arrive_and_wait();
      return all;
    }

   private:
    Shared& shared_;
    int rank_;
  };
  Shared shared(size);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Member member(shared, rank);
        part(member);
      } catch (...) {
        thrown[std::size_t(rank)] = std::current_exception();
        shared.barrier.arrive_and_drop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& each : thrown) {
    if (each != nullptr) std::rethrow_exception(each);
  }
}

}  // namespace graft::base::test
