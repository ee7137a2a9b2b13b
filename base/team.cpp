#include "base/team.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/error.h"
#include "base/parallel.h"

namespace graft::base {

std::vector<std::vector<float>> divided(Team& team, std::int64_t count, int threads,
                                        const std::function<std::vector<float>(std::int64_t)>& work) {
  std::vector<std::vector<float>> out(static_cast<std::size_t>(count));
  const std::int64_t rank = team.rank(), size = team.size();
  const std::int64_t own = count > rank ? (count - rank + size - 1) / size : 0;
  parallel_for(own, threads, [&](std::int64_t i) { out[std::size_t(rank + i * size)] = work(rank + i * size); });
  if (size == 1) return out;

  std::string bytes;  // of each piece its length, then its values
  const auto put = [&](const void* from, std::size_t length) { bytes.append(static_cast<const char*>(from), length); };
  for (std::int64_t i = rank; i < count; i += size) {
    const std::uint64_t length = out[std::size_t(i)].size();
    put(&length, sizeof length);
    put(out[std::size_t(i)].data(), length * sizeof(float));
  }
  const std::vector<std::string> all = team.gather(bytes);
  for (std::int64_t r = 0; r < size; ++r) {
    if (r == rank) continue;
    std::string_view rest = all[std::size_t(r)];
    const auto take = [&](void* to, std::size_t length) {
      if (rest.size() < length) throw Failure("a rank sent less than its share");
      std::memcpy(to, rest.data(), length);
      rest.remove_prefix(length);
    };
    for (std::int64_t i = r; i < count; i += size) {
      std::uint64_t length = 0;
      take(&length, sizeof length);
      if (length > rest.size() / sizeof(float)) throw Failure("a rank sent less than its share");
      out[std::size_t(i)].resize(length);
      take(out[std::size_t(i)].data(), length * sizeof(float));
    }
  }
  return out;
}

bool TeamMonitor::stop_requested() {
  const std::vector<std::string> wishes = team_.gather(own_.stop_requested() ? "stop" : "");
  return std::any_of(wishes.begin(), wishes.end(), [](const std::string& wish) { return !wish.empty(); });
}

}  // namespace graft::base
