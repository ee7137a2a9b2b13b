#include "cli/print/validated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "cli/report/html.h"
#include "cli/report/plot.h"
#include "codegen/schedule/candidate_program.h"

namespace graft::cli {
namespace {

std::vector<std::size_t> sorted_by(std::size_t count, const std::function<double(std::size_t)>& key) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

std::string section_of(const study::Comparison& one) {
  constexpr double microseconds = 1e6;
  const std::size_t count = one.measured.size();
  const std::vector<std::size_t> by_model = sorted_by(count, [&](std::size_t i) { return one.modelled[i]; });
  Series all{.name = "program", .colour = 0, .dots_only = true, .points = {}};
  Series first{.name = "modelled fastest", .colour = 1, .dots_only = true, .points = {}};
  for (std::size_t rank = 0; rank < count; ++rank) {
    const std::size_t i = by_model[rank];
    (rank < 5 ? first : all).points.push_back({microseconds * one.measured[i], microseconds * one.modelled[i]});
  }
  const Plot plot{.x_label = "measured, µs",
                  .y_label = "modelled, µs",
                  .log_x = true,
                  .log_y = true,
                  .x_from_zero = false,
                  .series = {all, first}};
  const study::Agreement& a = one.agreement;
  std::string out = fmt::format("<h2>{} on {}</h2>\n", escaped(one.workload), escaped(one.platform));
  out +=
      figure(plot, fmt::format("{} programs, Spearman {:.3f}, {:.3f} within the best 30 %; the five modelled fastest "
                               "in another colour, the best of them {:.2f} times as slow as the fastest.",
                               a.programs, a.spearman, a.spearman_of_best, a.top5_regret));
  const std::vector<double> ratios = study::centred_log_ratios(one.modelled, one.measured);
  const std::vector<std::size_t> worst = sorted_by(count, [&](std::size_t i) { return -std::abs(ratios[i]); });
  Table table({"modelled / measured", "measured", "schedule"});
  for (std::size_t i = 0; i < std::min<std::size_t>(3, count); ++i) {
    std::vector<std::string> steps;
    if (const auto schedule = codegen::schedule(one.candidates[worst[i]]))
      for (const codegen::Step& step : *schedule) steps.push_back(codegen::to_text(step));
    table.row({number_text(std::exp(ratios[worst[i]])), seconds_text(one.measured[worst[i]]), base::join(steps, "; ")});
  }
  return out + "<p>Furthest off, the mean ratio taken out:</p>\n" + html_table(table);
}

std::string body_of(const std::vector<study::Comparison>& weakest_first, const study::ValidateRequest& request,
                    const std::string& profile) {
  std::string out =
      "<p>Modelled times come from LLVM's scheduling model of this host's core and a simulator of its caches; measured "
      "ones from running the same machine code here. Core and memory overlap within a phase (about: a loop nest) only. "
      "Nothing was fitted. Weak spots come first: workloads are in the "
      "order of their correlation within the best 30 %.</p>\n";
  out += html_table(table_of(weakest_first));
  out +=
      "<p>Spearman and Kendall: rank correlations. Best 30 %: Spearman within the programs measured fastest. Top-1, "
      "top-5: measured time of the best of the one or five modelled fastest, over the fastest. Rms: of ln(modelled / "
      "measured) around its mean. Again: the same correlations of the odd passes' times with the even passes' ones; "
      "measured times are the fastest of all passes.</p>\n";
  out += fmt::format("<p>Sample: {}, {} schedules a workload, {} passes. Profile: {}.</p>\n",
                     request.space.file.empty() ? "uniform over the derived space" : escaped(request.space.file),
                     request.samples, request.passes, escaped(profile));
  for (const study::Comparison& one : weakest_first) out += section_of(one);
  return out;
}

}  // namespace

Table table_of(const std::vector<study::Comparison>& comparisons) {
  Table table({"platform", "workload", "programs", "max/min", "spearman", "again", "kendall", "best 30 %", "again",
               "top-1", "top-5", "rms"});
  for (const study::Comparison& one : comparisons) {
    const study::Agreement& a = one.agreement;
    table.row({one.platform, one.workload, std::to_string(a.programs), number_text(a.spread, 1),
               number_text(a.spearman), one.repeated ? number_text(one.repeated->spearman) : "", number_text(a.kendall),
               number_text(a.spearman_of_best), one.repeated ? number_text(one.repeated->spearman_of_best) : "",
               number_text(a.top1_regret), number_text(a.top5_regret), number_text(a.rms)});
  }
  return table;
}

std::string validation_page(const study::ValidateResult& result, const study::ValidateRequest& request,
                            const base::Document& context) {
  std::vector<study::Comparison> weakest_first = result.comparisons;
  std::stable_sort(weakest_first.begin(), weakest_first.end(), [](const auto& a, const auto& b) {
    return a.agreement.spearman_of_best < b.agreement.spearman_of_best;
  });
  return whole_page("Modelled against measured",
                    fmt::format("Made by graft {} on {}: {}.", study::graft_version(), study::host_cpu(),
                                context.at("date").as_string()),
                    body_of(weakest_first, request, result.profile));
}

}  // namespace graft::cli
