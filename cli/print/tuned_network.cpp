#include "cli/print/tuned_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/duration.h"
#include "cli/print/best.h"
#include "cli/texts.h"

namespace graft::cli {

double seconds_of(const study::NetworkKernel& kernel) {
  return double(kernel.calls) * kernel.seconds().value_or(std::numeric_limits<double>::infinity());
}

std::vector<std::size_t> by_share(const study::TunedNetwork& network) {
  std::vector<std::size_t> order(network.kernels.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return seconds_of(network.kernels[a]) > seconds_of(network.kernels[b]);
  });
  return order;
}

std::vector<std::optional<study::Roof>> roofs_of(const study::TunedNetwork& network) {
  std::vector<std::optional<study::Roof>> roofs;
  for (const study::NetworkKernel& kernel : network.kernels)
    roofs.push_back(study::roof_of(network.platform, kernel.workload));
  return roofs;
}

Table kernels_table(const study::TunedNetwork& network, const std::vector<std::optional<study::Roof>>& roofs) {
  const bool bounded = std::any_of(roofs.begin(), roofs.end(), [](const auto& roof) { return roof.has_value(); });
  const std::string kind = kind_of_times(network.platform.device->source());
  std::vector<std::string> head{"kernel", "layer", "calls", kind + "time of one", "share", "GFLOP/s", "FLOP/byte"};
  if (bounded) head.emplace_back("of the bound");
  head.insert(head.end(), {"trials", "gain"});
  Table table(head);
  for (const std::size_t k : by_share(network)) {
    const study::NetworkKernel& kernel = network.kernels[k];
    const study::Work work = study::work_of(kernel.workload);
    const double one = kernel.seconds().value_or(HUGE_VAL);
    const bool known = kernel.answer || kernel.foreign_seconds;
    std::vector<std::string> cells{
        std::to_string(k),
        layer_name(kernel.label),
        std::to_string(kernel.calls),
        known ? seconds_text(one) : "-",
        std::isfinite(network.seconds) ? share_text(seconds_of(kernel) / network.seconds) : "-",
        known ? fmt::format("{:.1f}", work.operations / one * 1e-9) : "-",
        fmt::format("{:.3g}", work.intensity())};
    if (bounded)
      cells.push_back(kernel.answer && roofs[k] ? of_bound_text(work.seconds_below(*roofs[k]) / one,
                                                                study::does_less_arithmetic(kernel.answer->candidate))
                                                : "-");
    cells.push_back(kernel.foreign                ? "not tuned"
                    : known && kernel.run.empty() ? "known"
                                                  : std::to_string(kernel.trials));
    cells.push_back(kernel.first_seconds && known ? fmt::format("{:.2f}x", *kernel.first_seconds / one) : "-");
    table.row(std::move(cells));
  }
  return table;
}

void print(const study::TunedNetwork& network, Output& out) {
  const std::string source = network.platform.device->source();
  out.line(fmt::format("{} on {}{}", network.model.string(), network.platform.name, times_note(source)));
  out.table(kernels_table(network, roofs_of(network)));
  if (std::isfinite(network.seconds))
    out.line(fmt::format("\nsum of all calls: {}", time_text(network.seconds, source)));
  if (network.in_place_seconds)
    out.line(fmt::format("within the network: {}", seconds_text(*network.in_place_seconds)));
  std::vector<std::string> spent;
  double all = 0;
  for (const auto& [on, seconds] : network.spent) {
    all += seconds;
    spent.push_back(fmt::format("{} {}", on, base::seconds_text(seconds)));
  }
  if (!spent.empty()) out.line(fmt::format("time: {} ({})", base::seconds_text(all), fmt::join(spent, ", ")));
  out.line(fmt::format("folder: {}", network.folder.string()));
}

void print(const study::ShapedNetworks& networks, Output& out) {
  if (networks.parts.size() == 1 && networks.parts.front().network.folder == networks.folder)
    return print(networks.parts.front().network, out);
  const study::TunedNetwork& first = networks.parts.front().network;
  const std::string source = first.platform.device->source();
  out.line(fmt::format("{} on {}{}", first.model.string(), first.platform.name, times_note(source)));
  Table table(
      {"network", kind_of_times(source) + "time of all calls", "within the network", "use", "kernels", "trials"});
  for (const auto& [network, use] : networks.parts) {
    std::int64_t trials = 0;
    for (const study::NetworkKernel& kernel : network.kernels) trials += kernel.trials;
    table.row({network.folder.filename().string(), std::isfinite(network.seconds) ? seconds_text(network.seconds) : "-",
               network.in_place_seconds ? seconds_text(*network.in_place_seconds) : "-", fmt::format("{:.3g}", use),
               std::to_string(network.kernels.size()), std::to_string(trials)});
  }
  out.table(table);
  out.line(fmt::format("\nfolder: {}", networks.folder.string()));
}

}  // namespace graft::cli
