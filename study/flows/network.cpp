#include "study/flows/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "codegen/schedule/candidate.h"
#include "graph/fold.h"
#include "study/flows/compile.h"
#include "study/flows/network_choice.h"
#include "study/inputs/request.h"

namespace graft::study {
namespace {

const char* const file_name = "network.json";
constexpr double negligible = 0.005;      // of the network's time
constexpr std::int64_t first_trials = 4;  // of each kernel, before any gets more

std::string kernel_folder(std::size_t kernel, const codegen::Workload& workload) {
  return fmt::format("kernels/{:03}-{}", kernel, short_name(workload.text()));
}

base::Document shapes_document(const graph::Shapes& shapes) {
  base::Document out = base::Document::map();
  for (const auto& [name, shape] : shapes) {
    base::Document extents = base::Document::list();
    for (const std::int64_t extent : shape) extents.push(extent);
    out.set(name, std::move(extents));
  }
  return out;
}

base::Document constants_document(const graph::Numbers& constants) {
  base::Document out = base::Document::map();
  for (const auto& [name, numbers] : constants) {
    base::Document all = base::Document::list();
    for (const double number : numbers) all.push(number);
    out.set(name, std::move(all));
  }
  return out;
}

std::int64_t bytes_of_constants(const graph::Plan& plan) {
  std::int64_t bytes = 0;
  for (const graph::Plan::Buffer& buffer : plan.buffers) {
    if (buffer.where == graph::Plan::Buffer::Where::constant && buffer.part_of < 0) bytes += buffer.bytes();
  }
  return bytes;
}

NetworkKernel kernel_of(const graph::Plan::Kernel& kernel) {
  return {kernel.workload, kernel.calls, kernel.label, {}, {}, 0, {}, ""};
}

KnownAnswer known_of(const TuneResult& result, const TuneRequest& request) {
  const Answer& answer = *result.answer;
  const base::Document context = context_of(request.command_line);
  return {request.platform.name,
          platform_hash(request.platform),
          result.source,
          answer.candidate,
          answer.program_hash,
          answer.pipeline,
          answer.measurement,
          std::int64_t(result.trials.size()),
          context.at("date").as_string(),
          context.at("graft").as_string(),
          context.at("host").at("cpu").as_string()};
}

void take(const TuneResult& result, const TuneRequest& request, NetworkKernel& kernel) {
  kernel.trials = std::int64_t(result.trials.size());
  kernel.run = result.known_since.empty() ? result.folder : std::filesystem::path();
  kernel.failure = result.failure;
  if (!kernel.run.empty()) {
    for (const datasets::Trial& trial : result.trials) {
      if (trial.measurement.status != datasets::Status::ok) continue;
      kernel.first_seconds = datasets::seconds_of(trial.measurement);
      break;
    }
  }
  if (result.answer) kernel.answer = known_of(result, request);
}

double sum_of(const std::vector<NetworkKernel>& kernels) {
  double seconds = 0;
  for (const NetworkKernel& kernel : kernels)
    seconds += double(kernel.calls) * (kernel.answer ? datasets::seconds_of(kernel.answer->measurement)
                                                     : std::numeric_limits<double>::infinity());
  return seconds;
}

}  // namespace

Network read_network(const std::filesystem::path& model, const graph::Shapes& shapes, const graph::Numbers& constants,
                     const codegen::Target& target) {
  const std::string place = model.string();
  const graph::Graph read = graph::with_numbers(graph::read_onnx(model, shapes), constants, place);
  Network network{model, shapes, constants, read.nodes.size(), graph::folded(read, place), {}};
  network.plan = graph::planned(network.graph, target, place);
  return network;
}

std::filesystem::path network_folder(const NetworkRequest& request) {
  if (!request.each.out.empty()) return request.each.out;
  return std::filesystem::path("runs") / fmt::format("network-{}-{}", short_name(request.model.stem().string()),
                                                     short_name(request.each.platform.name));
}

TunedNetwork tune_network(const NetworkRequest& request, base::Monitor& monitor) {
  const tasks::Platform& platform = request.each.platform;
  const Network network = read_network(request.model, request.shapes, request.constants, platform.target);
  TunedNetwork out{network_folder(request),
                   request.model,
                   file_hash(request.model),
                   request.shapes,
                   request.constants,
                   platform,
                   {},
                   0,
                   {},
                   false};
  if (is_network_folder(out.folder)) {
    const TunedNetwork before = read_tuned_network(out.folder);
    if (before.model_hash != out.model_hash || before.shapes != out.shapes || before.constants != out.constants ||
        platform_hash(before.platform) != platform_hash(platform))
      throw base::UserError(
          out.folder.string(),
          "holds the result of another model, other shapes or constants, or another platform; give another folder");
  }
  TuneAllRequest all;
  const double constants_mb = 1e-6 * double(bytes_of_constants(network.plan));
  for (std::size_t k = 0; k < network.plan.kernels.size(); ++k) {
    out.kernels.push_back(kernel_of(network.plan.kernels[k]));
    TuneRequest search = request.each;
    if (search.timing.constants_mb == 0) search.timing.constants_mb = constants_mb;
    search.workload = network.plan.kernels[k].workload;
    search.out = out.folder / kernel_folder(k, search.workload);
    all.searches.push_back(std::move(search));
    all.weights.push_back(double(network.plan.kernels[k].calls));
    all.names.push_back(out.kernels.back().label);
  }
  if (request.watch)
    all.watch = [&](const std::vector<SearchState>& searches) { request.watch(out.kernels, searches); };
  const std::int64_t kernels = std::int64_t(all.searches.size());
  all.trials = std::max(request.trials > 0 ? request.trials : request.trials_by_kernel * kernels, kernels);
  all.budget_seconds = request.budget_seconds;
  all.first_trials = first_trials;
  all.negligible = negligible;
  if (!all.searches.empty()) {
    const TuneAllResult tuned = tune_all(all, monitor);
    for (std::size_t k = 0; k < out.kernels.size(); ++k) take(tuned.searches[k], all.searches[k], out.kernels[k]);
    out.complete = tuned.complete;
    const bool searched = std::any_of(out.kernels.begin(), out.kernels.end(),
                                      [](const NetworkKernel& kernel) { return !kernel.run.empty(); });
    if (out.complete && searched) choose_in_place(out, monitor);
  } else {
    out.complete = true;
  }
  out.seconds = sum_of(out.kernels);
  base::Document kept = base::Document::map().set("schema", 1);
  for (const auto& [key, value] : to_document(out).as_map()) kept.set(key, value);
  kept.set("platform_description", platform.yaml);
  write_files({{file_name, kept.to_pretty_json() + "\n"}}, false, out.folder);
  return out;
}

// A library of that name has a file of that name, too.
bool is_network_folder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / file_name;
  if (!std::filesystem::exists(file)) return false;
  const base::Document document = base::parse_json(base::read_file(file), file.string());
  const base::Document* const kind = document.is_map() ? document.find("kind") : nullptr;
  return kind != nullptr && kind->is_string() && kind->as_string() == "network";
}

TunedNetwork read_tuned_network(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / file_name;
  if (!std::filesystem::exists(folder)) throw base::UserError(folder.string(), "no such file or folder");
  if (!is_network_folder(folder))
    throw base::UserError(folder.string(), "is not the folder of a network; `graft tune MODEL.onnx` makes one");
  const base::Document document = base::parse_json(base::read_file(file), file.string());
  TunedNetwork out;
  out.folder = folder;
  out.model = document.at("model").as_string();
  out.model_hash = document.at("model_hash").as_string();
  for (const auto& [name, extents] : document.at("shapes").as_map())
    for (graph::Shape& shape = out.shapes[name]; const base::Document& extent : extents.as_list())
      shape.push_back(extent.as_integer());
  for (const auto& [name, numbers] : document.at("constants").as_map())
    for (std::vector<double>& all = out.constants[name]; const base::Document& number : numbers.as_list())
      all.push_back(number.as_number());
  out.platform = tasks::parse_platform(document.at("platform_description").as_string(), file.string());
  for (const base::Document& each : document.at("kernels").as_list()) {
    NetworkKernel& kernel = out.kernels.emplace_back();
    kernel.workload = codegen::parse_workload(each.at("workload").as_string());
    kernel.calls = each.at("calls").as_integer();
    kernel.label = each.at("label").as_string();
    kernel.trials = each.at("trials").as_integer();
    if (const base::Document* const run = each.find("run")) kernel.run = folder / run->as_string();
    if (const base::Document* const first = each.find("first_seconds")) kernel.first_seconds = first->as_number();
    if (const base::Document* const failure = each.find("failure")) kernel.failure = failure->as_string();
    if (const base::Document* const answer = each.find("answer")) kernel.answer = known_answer_from(*answer);
  }
  out.seconds = sum_of(out.kernels);
  if (const base::Document* const in_place = document.find("in_place_seconds"))
    out.in_place_seconds = in_place->as_number();
  out.complete = document.at("complete").as_bool();
  return out;
}

base::Document to_document(const TunedNetwork& network) {
  base::Document kernels = base::Document::list();
  for (const NetworkKernel& kernel : network.kernels) {
    base::Document each = base::Document::map()
                              .set("workload", kernel.workload.text())
                              .set("calls", kernel.calls)
                              .set("label", kernel.label)
                              .set("trials", kernel.trials);
    if (kernel.answer) each.set("seconds", datasets::seconds_of(kernel.answer->measurement));
    if (kernel.first_seconds) each.set("first_seconds", *kernel.first_seconds);
    if (!kernel.run.empty()) each.set("run", kernel.run.lexically_relative(network.folder).string());
    if (!kernel.failure.empty()) each.set("failure", kernel.failure);
    if (kernel.answer) each.set("answer", to_document(*kernel.answer));
    kernels.push(std::move(each));
  }
  base::Document out = base::Document::map();
  out.set("kind", "network")
      .set("model", network.model.string())
      .set("model_hash", network.model_hash)
      .set("shapes", shapes_document(network.shapes))
      .set("constants", constants_document(network.constants))
      .set("platform", network.platform.name);
  if (std::isfinite(network.seconds)) out.set("seconds", network.seconds);
  if (network.in_place_seconds) out.set("in_place_seconds", *network.in_place_seconds);
  return out.set("kernels", std::move(kernels)).set("complete", network.complete);
}

}  // namespace graft::study
