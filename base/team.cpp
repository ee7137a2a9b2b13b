#include "base/team.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace graft::base {

Gathered::Gathered(std::span<const std::size_t> lengths)
    : bytes_(std::make_unique_for_overwrite<char[]>(std::accumulate(lengths.begin(), lengths.end(), std::size_t(0)))) {
  const char* next = bytes_.get();
  for (const std::size_t length : lengths) {
    parts_.emplace_back(next, length);
    next += length;
  }
}

Gathered Team::gather(std::string_view own) {
  const std::size_t length = own.size();
  Gathered out({&length, 1});
  own.copy(out.to(0), length);
  return out;
}

void parallel_for_own(const Team& team, std::int64_t count, int threads,
                      const std::function<void(std::int64_t)>& body) {
  const std::int64_t rank = team.rank(), size = team.size();
  const std::int64_t own = count > rank ? (count - rank + size - 1) / size : 0;
  parallel_for(own, threads, [&](std::int64_t i) { body(rank + i * size); });
}

std::vector<float> summed(Team& team, std::int64_t count, int threads,
                          const std::function<std::vector<float>(std::int64_t)>& work) {
  const std::int64_t rank = team.rank(), size = team.size();
  std::vector<std::vector<float>> sums(static_cast<std::size_t>(count));
  parallel_for_own(team, count, threads, [&](std::int64_t i) { sums[std::size_t(i)] = work(i); });

  std::int64_t left = count;
  const auto half = [&] { return std::int64_t(std::bit_ceil(std::uint64_t(left)) / 2); };
  const auto add_second_half = [&](std::int64_t first, std::int64_t step) {
    const std::int64_t kept = half();
    for (std::int64_t i = first; i + kept < left; i += step) {
      std::vector<float>&sum = sums[std::size_t(i)], &more = sums[std::size_t(i + kept)];
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += more[k];
      more = {};
    }
    left = kept;
  };
  while (left > 1 && half() % size == 0) add_second_half(rank, size);  // both are this rank's
  if (size > 1) {
    std::string sent;
    for (std::int64_t i = rank; i < left; i += size) {
      const std::vector<float>& sum = sums[std::size_t(i)];
      sent.append(reinterpret_cast<const char*>(sum.data()), sizeof(float) * sum.size());
    }
    const Gathered all = team.gather(sent);
    const std::size_t length = left == 0 ? 0 : all[0].size() / std::size_t((left + size - 1) / size);  // of one
    for (std::int64_t i = 0; i < left; ++i) {
      const std::string_view bytes = all[int(i % size)].substr(std::size_t(i / size) * length, length);
      sums[std::size_t(i)].resize(length / sizeof(float));
      std::memcpy(sums[std::size_t(i)].data(), bytes.data(), length);
    }
    while (left > 1) add_second_half(0, 1);
  }
  return count == 0 ? std::vector<float>() : std::move(sums.front());
}

bool TeamMonitor::stop_requested() {
  const Gathered wishes = team_.gather(own_.stop_requested() ? "stop" : "");
  return std::any_of(wishes.begin(), wishes.end(), [](std::string_view wish) { return !wish.empty(); });
}

}  // namespace graft::base
