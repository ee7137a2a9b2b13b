#include "study/flows/kernel_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/hash.h"
#include "search/run_directory.h"
#include "study/flows/network_shapes.h"
#include "study/inputs/field_error.h"
#include "study/inputs/request.h"
#include "study/knowledge/answer.h"
#include "study/knowledge/library.h"
#include "tasks/kinship.h"

namespace graft::study {
namespace {

namespace fs = std::filesystem;

// Before anything is measured: a tuned kernel takes about two and a half times the least time.
constexpr meta::GaussianProcess::Prior prior = {-0.9, 0.6};
constexpr std::size_t most_kernels = 400;  // for the model: its work grows with their third power
constexpr std::int64_t usual_near_bytes = 1 << 20;

// Collects kernels, each once.
class Kernels {
 public:
  void add(const codegen::Workload& workload, double seconds, const codegen::Candidate& candidate, int source) {
    const MeasuredKernel kernel{workload, seconds, source, does_less_arithmetic(candidate)};
    const auto [place, is_new] = places_.emplace(workload.key(), all_.size());
    if (is_new) {
      all_.push_back(kernel);
    } else if (MeasuredKernel& known = all_[place->second]; seconds < known.seconds) {
      known = kernel;
    }
  }
  std::vector<MeasuredKernel> all() && { return std::move(all_); }

 private:
  std::vector<MeasuredKernel> all_;
  std::map<std::uint64_t, std::size_t> places_;
};

void check_platform(const fs::path& folder, const tasks::Platform& measured, const tasks::Platform& platform) {
  if (!tasks::same_description(measured, platform))
    throw base::UserError(folder.string(),
                          fmt::format("was measured on {}, not on {}; give folders of that platform", measured.name,
                                      platform.name == measured.name ? "what has that name now" : platform.name));
}

void add_run(const fs::path& folder, const tasks::Platform& platform, int source, Kernels& kernels) {
  const search::RunContent run = search::read_run(folder);
  check_platform(folder, search::platform_of(run), platform);
  std::set<std::string> seen;
  for (const datasets::Trial& trial : run.journal.trials) {
    const codegen::Workload& workload = trial.candidate.workload;
    if (!codegen::names_computation(workload) || !seen.insert(workload.text()).second) continue;
    if (const std::optional<Answer> answer = answer_of(run, workload))
      kernels.add(workload, answer->seconds(), answer->candidate, source);
  }
}

void add_network(const fs::path& folder, const tasks::Platform& platform, int source, Kernels& kernels) {
  const TunedNetwork network = read_tuned_network(folder);
  check_platform(folder, network.platform, platform);
  for (const NetworkKernel& kernel : network.kernels)
    if (kernel.answer)
      kernels.add(kernel.workload, datasets::seconds_of(kernel.answer->measurement), kernel.answer->candidate, source);
}

void add_folder(const fs::path& folder, const tasks::Platform& platform, int source, Kernels& kernels) {
  if (is_network_folder(folder)) {
    for (const fs::path& each : networks_in(folder)) add_network(each, platform, source, kernels);
    return;
  }
  if (fs::is_directory(folder) && search::recorded_request(folder)) return add_run(folder, platform, source, kernels);
  std::vector<fs::path> runs;
  if (fs::is_directory(folder)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory() && search::recorded_request(entry.path())) runs.push_back(entry.path());
    }
  }
  if (runs.empty())
    throw base::UserError(folder.string(),
                          "neither a tuned network, nor a run, nor a folder of runs; graft tune makes such folders");
  std::sort(runs.begin(), runs.end());
  for (const fs::path& run : runs) add_run(run, platform, source, kernels);
}

double points_of(const codegen::Stage& stage) {
  double points = 1;
  for (const codegen::Axis& axis : stage.axes) points *= double(axis.extent);
  return points;
}

double squared(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// A hash of a stage without its extents, coefficients and constants.
std::uint64_t kind_of(const codegen::Stage& stage, int spatial) {
  std::uint64_t hash = base::hash_combine(std::uint64_t(stage.combine), std::uint64_t(spatial));
  for (const codegen::ValueNode& node : stage.value.nodes) hash = base::hash_combine(hash, std::uint64_t(node.op));
  for (const codegen::Access& access : stage.value.loads) {
    hash = base::hash_combine(hash, access.index.size());
    for (const codegen::Affine& form : access.index) {
      for (const codegen::Term& term : form.terms) hash = base::hash_combine(hash, std::uint64_t(term.variable));
      hash = base::hash_combine(hash, form.terms.size());
    }
  }
  return hash;
}

}  // namespace

std::vector<MeasuredKernel> measured_kernels(const std::optional<fs::path>& library,
                                             const std::vector<fs::path>& folders, const tasks::Platform& platform) {
  Kernels kernels;
  int source = 0;
  for (const fs::path& folder : folders) add_folder(folder, platform, source++, kernels);
  if (library) {
    if (!fs::is_directory(*library))
      throw FieldError("library", fmt::format("{}: no such folder; graft tune writes one if it is given a library",
                                              library->string()));
    const std::string hash = platform_hash(platform);
    for (const KnownAnswer& answer : Library(*library).all()) {
      if (answer.platform_hash == hash)
        kernels.add(answer.candidate.workload, datasets::seconds_of(answer.measurement), answer.candidate, source);
    }
  }
  return std::move(kernels).all();
}

KernelWork kernel_work_of(const codegen::Workload& workload) {
  const codegen::Computation& computation = workload.computation();
  KernelWork work;
  work.operations = double(codegen::flops(computation));
  std::vector<double> reads(computation.tensors.size(), 0);
  for (const codegen::Stage& stage : computation.stages)
    for (const codegen::Access& access : stage.value.loads) reads[std::size_t(access.tensor)] += points_of(stage);
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const codegen::Tensor& tensor = computation.tensors[t];
    if (tensor.role == codegen::Role::temporary) continue;
    const double bytes = double(tensor.bytes());
    if (tensor.role == codegen::Role::output) {
      work.bytes += bytes;
      continue;
    }
    work.operand_bytes.push_back(std::min(bytes, reads[t] * double(codegen::bytes_of(tensor.dtype))));
    work.bytes += work.operand_bytes.back();
  }
  return work;
}

double Roofline::least_seconds(const KernelWork& work) const {
  return std::max({work.operations / operations_per_second, work.bytes / bytes_per_second,
                   (work.bytes - near_bytes) / far_bytes_per_second});
}

std::optional<Roofline> roofline_of(const tasks::Platform& platform, const std::vector<MeasuredKernel>& kernels) {
  const codegen::Target& target = platform.target;
  const double vector_bytes = std::max(4.0, double(target.vector_bits) / 8);
  Roofline out;
  out.near_bytes = double(target.l2_bytes.value_or(usual_near_bytes));
  if (const std::optional<tasks::Limits> limits = platform.device->limits()) {
    const double cycles = limits->gigahertz * 1e9 * double(target.threads);
    out.operations_per_second =
        platform.device->peak_flops_per_second(platform).value_or(2 * vector_bytes / 4 * cycles);
    out.bytes_per_second = vector_bytes * cycles;  // a load in each cycle
    out.near_bytes = std::max(out.near_bytes, double(target.l3_bytes.value_or(0)));
    out.far_bytes_per_second = limits->memory_gigabytes_per_second * 1e9;
  } else if (kernels.empty()) {
    return std::nullopt;
  } else {
    // What any core does, for kernels that say nothing of arithmetic: a product and a sum on each lane of a vector, in
    // every cycle of 1 GHz.
    out.operations_per_second = 2 * vector_bytes / 4 * 1e9 * double(target.threads);
  }
  for (const MeasuredKernel& kernel : kernels) {
    const KernelWork work = kernel_work_of(kernel.workload);
    out.operations_per_second = std::max(out.operations_per_second, work.operations / kernel.seconds);
    out.bytes_per_second = std::max(out.bytes_per_second, work.bytes / kernel.seconds);
    if (work.bytes > out.near_bytes)
      out.far_bytes_per_second = std::max(out.far_bytes_per_second, work.bytes / kernel.seconds);
  }
  if (out.far_bytes_per_second == 0) out.far_bytes_per_second = out.bytes_per_second;
  return out;
}

meta::Place speed_place(const codegen::Workload& workload) {
  const codegen::Computation& computation = workload.computation();
  const KernelWork work = kernel_work_of(workload);
  // What takes most of the time.
  const codegen::Stage& stage =
      *std::max_element(computation.stages.begin(), computation.stages.end(),
                        [](const codegen::Stage& a, const codegen::Stage& b) { return points_of(a) < points_of(b); });
  const int spatial = computation.spatial_axes(stage);
  double reduced = 1;
  for (std::size_t a = std::size_t(spatial); a < stage.axes.size(); ++a) reduced *= double(stage.axes[a].extent);
  int innermost = spatial - 1;
  while (innermost > 0 && stage.axes[std::size_t(innermost)].extent == 1) --innermost;
  double apart = 0;
  for (const codegen::Access& access : stage.value.loads) {
    if (innermost >= 0 && std::abs(codegen::stride_along(computation, access, innermost)) > 1) apart = 1;
    if (!access.gathered.empty()) apart = 1;
  }
  double special = 0;
  for (const codegen::Stage& each : computation.stages)
    special += points_of(each) * double(codegen::arithmetic(each.value).special);
  const bool reduces = computation.is_reduction(stage);
  std::vector<double> at = {
      reduces ? 1.5 : 0,
      reduces && codegen::is_product(stage.value) ? 1.5 : 0,
      std::log2(1 + work.operations / work.bytes) / 2,
      std::log2(work.bytes) / 4,
      std::log2(reduced) / 4,
      innermost < 0 ? 0 : std::log2(double(std::min<std::int64_t>(stage.axes[std::size_t(innermost)].extent, 64))) / 3,
      apart,
      2 * std::log2(1 + special / points_of(stage)),
  };
  return {std::move(at), kind_of(stage, spatial)};
}

meta::GaussianProcess speed_model(const Roofline& roofline, const std::vector<MeasuredKernel>& kernels,
                                  const std::vector<codegen::Workload>& workloads) {
  std::vector<meta::Place> wanted;
  for (const codegen::Workload& workload : workloads) wanted.push_back(speed_place(workload));
  std::vector<std::pair<double, meta::Observation>> near;
  for (const MeasuredKernel& kernel : kernels) {
    const double reached = roofline.least_seconds(kernel_work_of(kernel.workload)) / kernel.seconds;
    if (!(reached > 0)) continue;
    meta::Observation observation{speed_place(kernel.workload), std::log(reached), kernel.source};
    double distance = std::numeric_limits<double>::infinity();
    for (const meta::Place& place : wanted) distance = std::min(distance, squared(place.at, observation.place.at));
    near.emplace_back(distance, std::move(observation));
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (near.size() > most_kernels) near.resize(most_kernels);
  std::vector<meta::Observation> observations;
  for (auto& [distance, observation] : near) observations.push_back(std::move(observation));
  return {std::move(observations), prior};
}

}  // namespace graft::study
