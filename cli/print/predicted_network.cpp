#include "cli/print/predicted_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/print/best.h"
#include "cli/texts.h"

namespace graft::cli {
namespace {

std::string range_text(const study::EstimatedSeconds& estimate) {
  return fmt::format("{} to {}", seconds_text(estimate.low), seconds_text(estimate.high));
}

}  // namespace

void print(const study::PredictedNetwork& network, Output& out) {
  const std::string_view word = measured_word(network.source);
  out.line(fmt::format("{} on {}{}; estimated, nothing was run", network.model.string(), network.platform,
                       times_note(network.source)));
  std::vector<std::size_t> order(network.kernels.size());
  std::iota(order.begin(), order.end(), 0);
  const auto seconds = [&](std::size_t k) { return double(network.kernels[k].calls) * network.kernels[k].one.seconds; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds(a) > seconds(b); });
  const bool bounded =
      std::any_of(network.kernels.begin(), network.kernels.end(),
                  [](const study::PredictedKernel& kernel) { return kernel.bound_seconds.has_value(); });
  std::vector<std::string> head{"layer", "calls", kind_of_times(network.source) + "time of one", "90 % interval",
                                "share"};
  if (bounded) head.emplace_back("of the bound");
  Table table(head);
  double known_seconds = 0;
  std::size_t known = 0;
  for (const std::size_t k : order) {
    const study::PredictedKernel& kernel = network.kernels[k];
    if (kernel.known) ++known, known_seconds += seconds(k);
    std::vector<std::string> cells{
        layer_name(kernel.label), std::to_string(kernel.calls), seconds_text(kernel.one.seconds),
        kernel.known ? std::string(word) : range_text(kernel.one), share_text(seconds(k) / network.total.seconds)};
    if (bounded)
      cells.push_back(kernel.bound_seconds ? of_bound_text(*kernel.bound_seconds / kernel.one.seconds, kernel.does_less)
                                           : "-");
    table.row(std::move(cells));
  }
  out.table(table);
  out.line(fmt::format("\ntime: {}, 90 % interval {}", time_text(network.total.seconds, network.source),
                       range_text(network.total)));
  if (network.from_memory.high > 0)
    out.line(fmt::format("of which constants that come from memory: {} to {}", seconds_text(network.from_memory.low),
                         seconds_text(network.from_memory.high)));
  if (!network.not_estimated.empty())
    out.line(fmt::format("not estimated, as it is not tuned: {}", base::join(network.not_estimated, ", ")));
  out.line(fmt::format("{}: {} of {}, {} of the time", word, known, base::counted(network.kernels.size(), "kernel"),
                       share_text(known_seconds / network.total.seconds)));
  out.line(fmt::format("fastest known: {:.4g} GFLOP/s, {:.4g} GB/s", network.operations_per_second * 1e-9,
                       network.bytes_per_second * 1e-9));
  if (network.records == 0) {
    out.line("no time of a kernel is known: the interval is wide; --library and --from take results of graft tune");
    return;
  }
  out.line(fmt::format("each of {} predicted by the others: typically {:.2f} times off, {} within 90 % intervals",
                       base::counted(std::size_t(network.records), fmt::format("{} kernel", word)),
                       network.typical_factor, share_text(network.coverage)));
}

}  // namespace graft::cli
