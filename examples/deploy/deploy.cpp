// Asks a library that graft made for the kernel of a shape that is known when the program runs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "kernels.h"

int main(int count, char** arguments) {
  const auto extent = [&](int at, long long usual) { return count > at ? std::stoll(arguments[at]) : usual; };
  const long long m = extent(1, 96), n = extent(2, 80), k = extent(3, 64);
  const kernels_matmul_kernel* kernel = kernels_matmul_for(m, n, k);
  if (kernel == nullptr) {
    std::printf("no kernel for %lld x %lld x %lld\n", m, n, k);
    return 2;
  }
  const auto memory = [](long long bytes) {  // aligned to 64 bytes
    return std::unique_ptr<void, void (*)(void*)>(std::aligned_alloc(64, std::size_t((bytes + 127) / 64 * 64)),
                                                  std::free);
  };
  const auto a = memory(4 * m * k), b = memory(4 * k * n), c = memory(4 * m * n);
  const auto prepared = memory(kernel->prepared_bytes),
             scratch = memory(std::max(kernel->scratch_bytes, kernel->prepare_scratch_bytes));
  float* const left = static_cast<float*>(a.get());
  float* const right = static_cast<float*>(b.get());
  for (long long i = 0; i < m * k; ++i) left[i] = 1;
  for (long long i = 0; i < k * n; ++i) right[i] = 2;
  if (kernel->prepare != nullptr) kernel->prepare(prepared.get(), scratch.get());
  kernel->run(left, right, static_cast<float*>(c.get()), prepared.get(), scratch.get());
  const float first = static_cast<float*>(c.get())[0];
  std::printf("%lld products of 1 and 2 make %g\n", k, static_cast<double>(first));
  return first == 2 * static_cast<float>(k) ? 0 : 1;
}
