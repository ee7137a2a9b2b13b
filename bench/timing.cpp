#include "bench/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/statistics.h"

namespace graft::bench {
namespace {

Timing timing_of(const std::vector<double>& seconds) {
  Timing timing;
  timing.best = *std::min_element(seconds.begin(), seconds.end());
  timing.worst = *std::max_element(seconds.begin(), seconds.end());
  timing.median = base::median(seconds);
  timing.spread = spread_of(seconds);
  timing.repetitions = int(seconds.size());
  timing.right = true;
  return timing;
}

}  // namespace

double spread_of(std::span<const double> values) {
  if (values.size() < base::least_for_interval) return std::numeric_limits<double>::quiet_NaN();
  return (base::quantile(values, 0.75) - base::quantile(values, 0.25)) / base::median(values);
}

std::string spread_text(double spread) {
  return std::isfinite(spread) ? fmt::format("{:.1f}%", 100 * spread) : "-";
}

double now(const TimingSettings& settings) {
  return settings.wall ? base::wall_seconds() : base::thread_seconds();
}

void measure_in_turn(std::vector<Contender>& contenders, const TimingSettings& settings) {
  struct Plan {
    Contender* contender;
    int repetitions, calls;  // calls in one repetition
    std::vector<double> seconds;
  };
  std::vector<Plan> plans;
  for (Contender& contender : contenders) {
    if (contender.clear) contender.clear();
    double begin = now(settings);
    contender.call();
    double once = now(settings) - begin;
    if (!contender.check()) continue;
    if (once < settings.slow_seconds) {  // the first call was cold
      begin = now(settings);
      contender.call();
      once = now(settings) - begin;
    }
    plans.push_back({&contender,
                     once < settings.slow_seconds ? int(settings.repetitions) : std::min(3, int(settings.repetitions)),
                     std::max(1, int(std::ceil(settings.minimum_seconds / std::max(once, 1e-9)))),
                     {}});
  }
  for (int repetition = 0; repetition < int(settings.repetitions); ++repetition) {
    for (Plan& plan : plans) {
      if (repetition >= plan.repetitions) continue;
      const double begin = now(settings);
      for (int call = 0; call < plan.calls; ++call) plan.contender->call();
      plan.seconds.push_back((now(settings) - begin) / plan.calls);
    }
  }
  for (const Plan& plan : plans) plan.contender->timing = timing_of(plan.seconds);
}

base::Document to_document(const Timing& timing) {
  base::Document entry = base::Document::map();
  entry.set("right", timing.right);
  if (!timing.right) return entry;
  entry.set("best_seconds", timing.best).set("median_seconds", timing.median).set("worst_seconds", timing.worst);
  entry.set("spread", timing.spread).set("repetitions", timing.repetitions);
  return entry;
}

}  // namespace graft::bench
