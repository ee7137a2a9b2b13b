#include "study/flows/predict_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/random.h"
#include "base/statistics.h"
#include "graph/layouts.h"
#include "study/flows/explained.h"
#include "study/flows/kernel_speed.h"
#include "study/flows/network.h"
#include "tasks/probe.h"

namespace graft::study {
namespace {

constexpr std::int64_t draws = 2000;
// Kernels are measured one by one, with operands in caches, and each is the fastest of several that were tried. A
// network's time is a larger sum: by a factor whose logarithm is normal, and by the transfer of constants that caches
// cannot hold, which takes up to a few times as long as at the speed of the fastest kernel that reads that much. Both
// as seen with six networks (docs/notebook), from recurrent ones to ResNet-18. Modelled times have neither.
constexpr double together_mean = 0.1, together_deviation = 0.12;
constexpr double slowest_transfer = 4;

EstimatedSeconds estimated(const std::vector<double>& seconds) {
  return {base::median(seconds), base::quantile(seconds, 0.05), base::quantile(seconds, 0.95)};
}

base::Document document_of(const EstimatedSeconds& estimate) {
  return base::Document::map().set("seconds", estimate.seconds).set("low", estimate.low).set("high", estimate.high);
}

// The median factor between estimate and time.
double typical_factor_of(const meta::GaussianProcess& model) {
  std::vector<double> factors;
  for (const meta::GaussianProcess::LeftOut& each : model.left_out()) factors.push_back(std::exp(std::abs(each.error)));
  return base::median(factors);
}

// Bytes of constants that have to come from memory in each run: all that are read, if a core's caches cannot hold them.
double bytes_from_memory(const graph::Plan& plan, const codegen::Target& target) {
  std::map<std::size_t, double> read;  // by buffer
  for (const graph::Plan::Call& call : plan.calls) {
    if (plan.kernels[std::size_t(call.kernel)].foreign) continue;
    const KernelWork work = kernel_work_of(plan.kernels[std::size_t(call.kernel)].workload);
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const std::size_t whole = graph::whole_of(plan, call.operands[i]);
      if (plan.buffers[whole].where == graph::Plan::Buffer::Where::constant) read[whole] += work.operand_bytes[i];
    }
  }
  double bytes = 0;
  for (const auto& [buffer, part] : read) bytes += std::min(part, double(plan.buffers[buffer].bytes()));
  return bytes > double(target.l2_bytes.value_or(0)) ? bytes : 0;
}

struct Known {
  const Roofline& roofline;
  const std::vector<MeasuredKernel>& measured;
  std::map<std::uint64_t, double> seconds;  // by Workload::key
};

// The plan that tune_network would choose if its kernels took the known times, or else their estimates.
graph::Plan likely_plan(const graph::OpenPlan& open, const Known& known, std::uint64_t seed) {
  if (!graph::has_alternatives(open)) return graph::first_choice(open);
  const std::vector<graph::Plan::Kernel>& kernels = open.plan.kernels;
  std::vector<double> best(kernels.size(), 0);
  std::vector<bool> is_known;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const auto found = known.seconds.find(kernels[k].workload.key());
    is_known.push_back(kernels[k].foreign || found != known.seconds.end());
    if (!kernels[k].foreign && is_known[k]) best[k] = found->second;
  }
  const std::vector<bool> candidates = graph::candidates(open, is_known);
  std::vector<std::size_t> estimated;
  std::vector<codegen::Workload> workloads;
  std::vector<meta::Place> places;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (!candidates[k]) best[k] = std::numeric_limits<double>::infinity();
    if (is_known[k] || std::isinf(best[k])) continue;
    estimated.push_back(k);
    workloads.push_back(kernels[k].workload);
    places.push_back(speed_place(kernels[k].workload));
  }
  const meta::GaussianProcess model = speed_model(known.roofline, known.measured, workloads);
  const auto drawn = model.drawn(places, draws, base::Stream(seed, "predict network: forms"));
  for (std::size_t e = 0; e < estimated.size(); ++e) {
    std::vector<double> reached;
    for (const std::vector<double>& all : drawn) reached.push_back(all[e]);
    best[estimated[e]] = known.roofline.least_seconds(kernel_work_of(workloads[e])) / std::exp(base::median(reached));
  }
  return graph::best_choice(open, best);
}

}  // namespace

PredictedNetwork predict_network(const PredictNetworkRequest& request) {
  Network network = read_network(request.model, request.options, request.platform.target);
  graph::add_layouts(network.plan, request.platform.target);
  const std::vector<MeasuredKernel> measured = measured_kernels(
      request.library.empty() ? std::nullopt : std::optional(request.library), request.from, request.platform);
  const std::optional<Roofline> roofline = roofline_of(request.platform, measured);
  if (!roofline) {
    const std::string modelled = tasks::modelled_platform_of(request.platform.target.cpu);
    throw base::UserError(
        request.platform.name,
        "no kernel that was measured on it is known; `library` or `from` name folders with some, and "
        "graft tune makes such folders" +
            (modelled.empty() ? "" : fmt::format("; its core is also modelled: the platform {} needs none", modelled)));
  }
  Known known{*roofline, measured, {}};
  std::map<std::uint64_t, bool> does_less;  // by Workload::key
  for (const MeasuredKernel& kernel : measured) {
    known.seconds.emplace(kernel.workload.key(), kernel.seconds);
    does_less.emplace(kernel.workload.key(), kernel.does_less);
  }
  const graph::Plan plan = likely_plan(network.plan, known, request.seed);
  std::vector<codegen::Workload> unknown;
  std::vector<meta::Place> places;
  for (const graph::Plan::Kernel& kernel : plan.kernels) {
    if (kernel.foreign || known.seconds.contains(kernel.workload.key())) continue;
    unknown.push_back(kernel.workload);
    places.push_back(speed_place(kernel.workload));
  }
  const meta::GaussianProcess model = speed_model(*roofline, measured, unknown);
  const auto drawn = model.drawn(places, draws, base::Stream(request.seed, "predict network: kernels"));

  PredictedNetwork out;
  out.model = request.model;
  out.platform = request.platform.name;
  out.source = request.platform.device->source();
  out.records = std::int64_t(measured.size());
  out.operations_per_second = roofline->operations_per_second;
  out.bytes_per_second = roofline->bytes_per_second;
  out.coverage = measured.empty() ? std::nan("") : model.coverage();
  out.typical_factor = typical_factor_of(model);
  std::vector<double> sums(std::size_t(draws), 0), late(sums.size(), 0);
  std::size_t next = 0;  // of `unknown`
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const graph::Plan::Kernel& kernel = plan.kernels[k];
    if (kernel.foreign) {
      out.not_estimated.push_back(kernel.label);
      continue;
    }
    PredictedKernel& each = out.kernels.emplace_back();
    each.workload = kernel.workload.text();
    each.label = kernel.label;
    each.calls = kernel.calls;
    if (const std::optional<Roof> roof = roof_of(request.platform, kernel.workload))
      each.bound_seconds = work_of(kernel.workload).seconds_below(*roof);
    const double fastest = roofline->least_seconds(kernel_work_of(kernel.workload));
    std::vector<double> seconds(sums.size());
    if (const auto found = known.seconds.find(kernel.workload.key()); found != known.seconds.end()) {
      each.known = true;
      each.does_less = does_less.at(kernel.workload.key());
      std::fill(seconds.begin(), seconds.end(), found->second);
    } else {
      for (std::size_t d = 0; d < seconds.size(); ++d) seconds[d] = fastest * std::exp(-drawn[d][next]);
      ++next;
    }
    each.one = estimated(seconds);
    for (std::size_t d = 0; d < sums.size(); ++d) sums[d] += double(kernel.calls) * seconds[d];
  }
  if (!request.platform.device->is_exact()) {
    const double transfer =
        slowest_transfer * bytes_from_memory(plan, request.platform.target) / roofline->far_bytes_per_second;
    base::Stream stream(request.seed, "predict network: all calls");
    for (std::size_t d = 0; d < sums.size(); ++d) {
      late[d] = transfer * stream.uniform();
      sums[d] = sums[d] * std::exp(together_mean + together_deviation * stream.normal()) + late[d];
    }
  }
  out.from_memory = estimated(late);
  out.total = estimated(sums);
  return out;
}

base::Document to_document(const PredictedNetwork& network) {
  base::Document kernels = base::Document::list();
  for (const PredictedKernel& kernel : network.kernels)
    kernels.push(
        base::Document::map()
            .set("workload", kernel.workload)
            .set("calls", kernel.calls)
            .set("label", kernel.label)
            .set("known", kernel.known)
            .set("bound_seconds", kernel.bound_seconds ? base::Document(*kernel.bound_seconds) : base::Document())
            .set("one", document_of(kernel.one)));
  base::Document not_estimated = base::Document::list();
  for (const std::string& label : network.not_estimated) not_estimated.push(label);
  return base::Document::map()
      .set("model", network.model.string())
      .set("platform", network.platform)
      .set("source", network.source)
      .set("total", document_of(network.total))
      .set("from_memory", document_of(network.from_memory))
      .set("kernels", std::move(kernels))
      .set("not_estimated", std::move(not_estimated))
      .set("records", network.records)
      .set("coverage", network.coverage)
      .set("typical_factor", network.typical_factor)
      .set("operations_per_second", network.operations_per_second)
      .set("bytes_per_second", network.bytes_per_second);
}

}  // namespace graft::study
