#include "cli/print/searching.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cli/texts.h"

namespace graft::cli {

Table searching_table(const std::vector<std::string>& names, const std::vector<double>& weights,
                      const std::vector<study::SearchState>& searches, std::string_view source) {
  const auto one = [&](std::size_t s) {
    return searches[s].best_seconds.empty() ? std::numeric_limits<double>::infinity() : searches[s].best_seconds.back();
  };
  std::vector<std::size_t> order(searches.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] * one(a) > weights[b] * one(b); });
  double sum = 0;
  for (const std::size_t s : order) sum += std::isfinite(one(s)) ? weights[s] * one(s) : 0;
  Table table({"calls", kind_of_times(source) + "time of one", "share", "gain", "trials",
               "layer"});  // what is long last: terminals are narrow
  for (const std::size_t s : order) {
    const study::SearchState& search = searches[s];
    const bool timed = std::isfinite(one(s));
    table.row({fmt::format("{:g}", weights[s]), timed ? seconds_text(one(s)) : "-",
               timed ? share_text(weights[s] * one(s) / sum) : "-",
               timed && std::isfinite(search.best_seconds.front())
                   ? fmt::format("{:.2f}x", search.best_seconds.front() / one(s))
                   : "-",
               search.known ? "known" : std::to_string(search.trials), layer_name(names[s])});
  }
  return table;
}

}  // namespace graft::cli
