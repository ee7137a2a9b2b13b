#include "bench/bandwidth.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "bench/memory.h"

namespace graft::bench {
namespace {

struct Triad {
  static constexpr std::int64_t elements = std::int64_t(8) << 20;  // of each array: 64 MB
  Memory a{elements * 8}, b{elements * 8}, c{elements * 8};
  void run() const {
    auto* const to = static_cast<double*>(a.data());
    const auto* const left = static_cast<const double*>(b.data());
    const auto* const right = static_cast<const double*>(c.data());
    for (std::int64_t i = 0; i < elements; ++i) to[i] = left[i] + 3.0 * right[i];
  }
};

}  // namespace

double stream_gigabytes_per_second(int threads, const Parallel& parallel, const TimingSettings& settings) {
  std::vector<Triad> triads(std::size_t(std::max(1, threads)));
  const auto body = [](void* closure, std::int64_t index) { static_cast<const Triad*>(closure)[index].run(); };
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t repetition = 0; repetition < settings.repetitions; ++repetition) {
    const double begin = now(settings);
    parallel.run(parallel.context, body, triads.data(), std::int64_t(triads.size()));
    best = std::min(best, now(settings) - begin);
  }
  return double(triads.size()) * double(Triad::elements) * 24 / best * 1e-9;
}

}  // namespace graft::bench
