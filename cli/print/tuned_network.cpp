#include "cli/print/tuned_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/shortened.h"
#include "cli/texts.h"

namespace graft::cli {

void print(const study::TunedNetwork& network, Output& out) {
  out.line(fmt::format("{} on {}", network.model.string(), network.platform.name));
  std::vector<std::size_t> order(network.kernels.size());
  std::iota(order.begin(), order.end(), 0);
  const auto seconds = [&](std::size_t k) {
    const study::NetworkKernel& kernel = network.kernels[k];
    return kernel.answer ? double(kernel.calls) * datasets::seconds_of(kernel.answer->measurement) : HUGE_VAL;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds(a) > seconds(b); });
  const double sum = network.seconds;
  Table table({"layer", "calls", "time of one", "share", "GFLOP/s", "trials", "gain"});
  for (const std::size_t k : order) {
    const study::NetworkKernel& kernel = network.kernels[k];
    if (!kernel.answer) {
      table.row({base::shortened(kernel.label), std::to_string(kernel.calls), "-", "", "",
                 std::to_string(kernel.trials), ""});
      continue;
    }
    const double one = datasets::seconds_of(kernel.answer->measurement);
    table.row({base::shortened(kernel.label), std::to_string(kernel.calls), seconds_text(one),
               std::isfinite(sum) ? fmt::format("{:.1f} %", 100 * seconds(k) / sum) : "",
               fmt::format("{:.1f}", double(codegen::flops(kernel.workload)) / one * 1e-9),
               kernel.run.empty() ? "known" : std::to_string(kernel.trials),
               kernel.first_seconds ? fmt::format("{:.2f}x", *kernel.first_seconds / one) : ""});
  }
  out.table(table);
  if (std::isfinite(sum)) out.line(fmt::format("\nsum of all calls: {}", seconds_text(sum)));
  out.line(fmt::format("folder: {}", network.folder.string()));
}

}  // namespace graft::cli
