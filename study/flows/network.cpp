#include "study/flows/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include "base/duration.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/candidate.h"
#include "graph/fold.h"
#include "graph/inputs.h"
#include "graph/layouts.h"
#include "graph/plan_document.h"
#include "study/flows/compile.h"
#include "study/flows/effort.h"
#include "study/flows/network_choice.h"
#include "study/flows/settings.h"
#include "study/flows/user_function.h"
#include "study/inputs/request.h"

namespace graft::study {
namespace {

const char *const file_name = "network.json", *const constants_name = "constants.bin";
// The key of a network whose constants are in the folder above, with those of other shapes.
const char* const shares_name = "shares_constants";
constexpr double negligible = 0.005;  // of the network's time
// For each kernel, before any gets more; with a choice of forms a third of all, within these.
constexpr std::int64_t first_trials = 4, most_first_trials = 16;
// Candidates a round of a kernel, at most: it shares its budget with others. The same for every effort, so that one may
// continue another.
constexpr std::int64_t most_batch = 8;
constexpr std::int64_t copy_trials = 16;  // of a copy between layouts
// To say beforehand how long a search on this machine takes: of a trial what does not depend on the kernel, above all
// LLVM's part; and how often its program runs, at a middling speed.
constexpr double seconds_per_trial = 0.1, runs_per_trial = 10, operations_per_second = 2e10;

base::Document document_in(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / file_name;
  return base::parse_json(base::read_file(file), file.string());
}

std::string kernel_folder(std::size_t kernel, const codegen::Workload& workload) {
  return fmt::format("kernels/{:03}-{}", kernel, short_name(workload.text()));
}

// MB of constants between two calls of a kernel. Schedules may prepare more than the model has: Winograd's largest
// transforms make four times as many.
double constants_between_calls(const graph::Plan& plan) {
  std::int64_t bytes = 0;
  for (const graph::Plan::Buffer& buffer : plan.buffers) {
    if (buffer.where == graph::Plan::Buffer::Where::constant && buffer.part_of < 0) bytes += buffer.bytes();
  }
  return 4e-6 * double(bytes);
}

NetworkKernel kernel_of(const graph::Plan::Kernel& kernel) {
  return {kernel.workload, kernel.calls, kernel.label, {}, {}, 0, {}, "", kernel.foreign, {}};
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
  if (result.answer) kernel.answer = known_answer(result, request);
}

double sum_of(const std::vector<NetworkKernel>& kernels) {
  double seconds = 0;
  for (const NetworkKernel& kernel : kernels)
    seconds += double(kernel.calls) * kernel.seconds().value_or(std::numeric_limits<double>::infinity());
  return seconds;
}

// A model's file may have another content under its name.
std::string search_identity(const TuneRequest& each) {
  std::uint64_t hash = base::hash_bytes(settings_hash(each));
  if (std::filesystem::is_regular_file(each.model))
    hash = base::hash_combine(hash, base::hash_bytes(file_hash(each.model)));
  return base::to_hex(hash);
}

FinishedSearch finished_search(const NetworkRequest& request, std::int64_t trials) {
  return {search_identity(request.each), trials, request.trials > 0 ? 0 : request.trials_by_kernel,
          request.each.rebuild};
}

// Whether the network has all that is asked for.
bool has(const TunedNetwork& tuned, const NetworkRequest& request) {
  if (!tuned.complete || !tuned.finished || !std::isfinite(tuned.seconds) || request.each.again) return false;
  const FinishedSearch& finished = *tuned.finished;
  if (search_identity(request.each) != finished.settings || request.each.rebuild > finished.rebuild) return false;
  if (request.trials > 0) return request.trials <= finished.trials;
  if (finished.trials_by_kernel > 0) return request.trials_by_kernel <= finished.trials_by_kernel;
  return request.trials_by_kernel * std::int64_t(tuned.kernels.size()) <= finished.trials;
}

// What the folder holds already. UserError if it is of another network.
void check_same(const TunedNetwork& before, const TunedNetwork& now) {
  if (before.model_hash != now.model_hash || before.options != now.options ||
      platform_hash(before.platform) != platform_hash(now.platform))
    throw base::UserError(now.folder.string(),
                          "holds the result of another model, other shapes, constants or storage, or another "
                          "platform; give another folder");
  if (before.layouts_given != now.layouts_given)
    throw base::UserError(now.folder.string(), fmt::format("holds a result with {} layouts; give another folder",
                                                           before.layouts_given ? "given" : "free"));
}

// The search that continues adds to what was spent before.
void add_spent(const TunedNetwork& before, TunedNetwork& now) {
  for (const auto& [on, seconds] : before.spent) {
    const auto same =
        std::find_if(now.spent.begin(), now.spent.end(), [&](const auto& each) { return each.first == on; });
    if (same == now.spent.end())
      now.spent.emplace_back(on, seconds);
    else
      same->second += seconds;
  }
}

// The searches of a network's kernels: those of all alternatives at first, then those that the chosen ones need.
class NetworkSearch {
 public:
  // `deadline` and `watch` began before the network was read. `before`: what the folder has, or nullptr.
  NetworkSearch(const NetworkRequest& request, const base::Deadline& deadline, const base::Stopwatch& watch,
                const Network& network, const TunedNetwork* before, TunedNetwork& out, base::Monitor& monitor)
      : request_(request),
        deadline_(deadline),
        watch_(watch),
        network_(network),
        open_(network.plan),
        before_(before),
        out_(out),
        monitor_(monitor),
        plan_(graph::first_choice(open_)),
        constants_mb_(constants_between_calls(plan_)) {
    for (std::size_t k = 0; k < open_.plan.kernels.size(); ++k)
      if (!open_.plan.kernels[k].foreign) numbers_.emplace(open_.plan.kernels[k].workload.key(), k);
  }

  void run() {
    out_.complete = true;
    const bool are_chosen = keep_choice();
    find_kernels(are_chosen);
    const double trial_seconds = kernels_.empty() ? 0 : search(are_chosen);
    search_copies();
    bool searched = false;
    for (const graph::Plan::Kernel& kernel : plan_.kernels) {
      NetworkKernel& own = out_.kernels.emplace_back(kernel_of(kernel));
      if (!kernel.foreign) take(found_.at(number_of(kernel)), request_of(number_of(kernel)), own);
      searched |= !own.run.empty();
    }
    if (!out_.complete || !searched) return;
    if (deadline_.left() < programs_in_place(out_.kernels.size()) * trial_seconds) return;
    choose_in_place(plan_, out_, deadline_, monitor_);
    spend("programs within the network");
  }

  // With the alternatives that were chosen.
  const graph::Plan& plan() const { return plan_; }

 private:
  // By kernel of all alternatives: not known; what is not tuned takes no part.
  std::vector<double> no_seconds() const {
    std::vector<double> seconds;
    for (const graph::Plan::Kernel& kernel : open_.plan.kernels) seconds.push_back(kernel.foreign ? 0 : INFINITY);
    return seconds;
  }

  // Takes the choice that the folder has, by the kernels of its plan. False if none was made, or if another graft made
  // other kernels of the model.
  bool keep_choice() {
    if (before_ == nullptr || !before_->layouts_chosen || !graph::has_alternatives(open_)) return false;
    std::vector<double> seconds = no_seconds();
    for (const NetworkKernel& kernel : before_->kernels)
      if (const auto number = numbers_.find(kernel.workload.key()); number != numbers_.end())
        seconds[number->second] = kernel.seconds().value_or(1);
    graph::Plan plan = graph::best_choice(open_, seconds);
    const bool is_kept = std::all_of(plan.kernels.begin(), plan.kernels.end(), [&](const graph::Plan::Kernel& kernel) {
      return kernel.foreign || std::isfinite(seconds[number_of(kernel)]);
    });
    if (is_kept) plan_ = std::move(plan);
    return is_kept;
  }

  // Finds the kernels to search: those of the choice, or all that it depends on.
  void find_kernels(bool are_chosen) {
    known_.resize(open_.plan.kernels.size());
    std::vector<double> calls = weights(), seconds = no_seconds();
    std::vector<bool> wanted, is_known;
    for (std::size_t k = 0; k < known_.size(); ++k) {
      wanted.push_back(k < open_.kernels_of_calls && seconds[k] > 0 && (!are_chosen || calls[k] > 0));
      if (wanted[k]) known_[k] = known_result(request_of(k), monitor_);
      is_known.push_back(!wanted[k] || known_[k].has_value());
    }
    const std::vector<bool> candidates = are_chosen ? wanted : graph::candidates(open_, is_known);
    for (std::size_t k = 0; k < known_.size(); ++k) {
      if (!candidates[k] || seconds[k] == 0) continue;
      if (!wanted[k]) known_[k] = known_result(request_of(k), monitor_);  // a copy
      kernels_.push_back(k);
      seconds[k] = 0;
    }
    if (!are_chosen) plan_ = graph::best_choice(open_, seconds);
  }

  // Seconds of a trial.
  double search(bool are_chosen) {
    const graph::Samples samples = graph::samples_of_values(network_.graph, graph::check_inputs(open_.plan.inputs, 1),
                                                            network_.model.string(), monitor_);
    inputs_.seen = std::make_shared<const std::map<std::string, codegen::Seen>>(graph::seen_by_kernels(open_, samples));
    spend("reading, planning, and what kernels are given");
    const TuneAllRequest all = all_alternatives(are_chosen);
    announce(all);
    const TuneAllResult tuned = tune(kernels_, all);
    if (tuned.complete && !tuned.out_of_time) out_.finished = finished_search(request_, all.trials);
    if (deadline_.exists()) out_.spent.emplace_back("the first program of each kernel", tuned.first_seconds);
    out_.spent.emplace_back("search", tuned.search_seconds);
    out_.spent.emplace_back("building the best again", tuned.finish_seconds);
    watch_ = {};
    out_.layouts_chosen = are_chosen || (graph::has_alternatives(open_) && tuned.all_begun);
    return tuned.seconds_per_trial;
  }

  // The copies of the choice that were not searched with the others.
  void search_copies() {
    TuneAllRequest all;
    std::vector<std::size_t> kernels;
    for (const graph::Plan::Kernel& kernel : plan_.kernels) {
      if (kernel.foreign || found_.contains(number_of(kernel))) continue;
      kernels.push_back(number_of(kernel));
      known_[kernels.back()] = known_result(request_of(kernels.back()), monitor_);
      add(kernels.back(), double(kernel.calls), all);
    }
    if (kernels.empty()) return;
    all.trials = copy_trials * std::int64_t(kernels.size());
    all.deadline = deadline_;
    all.later_programs = programs_in_place(plan_.kernels.size());
    tune(kernels, all);
    spend("copies between layouts");
  }

  TuneAllResult tune(const std::vector<std::size_t>& kernels, const TuneAllRequest& all) {
    TuneAllResult tuned = tune_all(all, monitor_);
    out_.complete &= tuned.complete;
    for (std::size_t s = 0; s < kernels.size(); ++s) found_[kernels[s]] = std::move(tuned.searches[s]);
    return tuned;
  }

  // What a round of programs within the network takes, in trials: each kernel is compiled once.
  static double programs_in_place(std::size_t kernels) { return double(kernels); }

  // What makes integers slow here, and about how long the search will take.
  void announce(const TuneAllRequest& all) const {
    for (const TuneRequest& search : all.searches) {
      const std::string note = why_bytes_are_slow(search.workload, out_.platform.target);
      if (note.empty()) continue;
      monitor_.note(note);
      break;
    }
    if (deadline_.exists() || !out_.platform.device->is_this_host()) return;
    double operations = 0;
    for (const TuneRequest& search : all.searches) operations += double(codegen::flops(search.workload));
    const double seconds =
        double(all.trials) *
        (seconds_per_trial + runs_per_trial * operations / double(all.searches.size()) / operations_per_second);
    monitor_.note(fmt::format("{} kernels in {} forms, {} trials: about {} on an idle machine", plan_.kernels.size(),
                              all.searches.size(), all.trials, base::seconds_text(seconds)));
  }

  void spend(const char* on) {
    out_.spent.emplace_back(on, watch_.seconds());
    watch_ = {};
  }

  TuneRequest request_of(std::size_t kernel) const {
    TuneRequest search = request_.each;
    if (search.timing.constants_mb == 0) search.timing.constants_mb = constants_mb_;
    search.space.layouts = {};
    search.batch = std::min(search.batch, most_batch);
    search.inputs = inputs_;
    search.workload = open_.plan.kernels[kernel].workload;
    search.out = out_.folder / kernel_folder(kernel, search.workload);
    return search;
  }

  void add(std::size_t kernel, double weight, TuneAllRequest& all) const {
    all.searches.push_back(request_of(kernel));
    all.known.push_back(known_[kernel]);
    all.weights.push_back(weight);
    all.names.push_back(open_.plan.kernels[kernel].label);
  }

  std::size_t number_of(const graph::Plan::Kernel& kernel) const { return numbers_.at(kernel.workload.key()); }

  // By kernel of all alternatives: how often the plan calls it.
  std::vector<double> weights() const {
    std::vector<double> weights(open_.plan.kernels.size());
    for (const graph::Plan::Kernel& kernel : plan_.kernels)
      if (!kernel.foreign) weights[number_of(kernel)] = double(kernel.calls);
    return weights;
  }

  // The searches of all alternatives, or of those that are chosen already.
  TuneAllRequest all_alternatives(bool are_chosen) {
    TuneAllRequest all;
    const std::vector<double> calls = weights();
    for (const std::size_t kernel : kernels_) add(kernel, calls[kernel], all);
    const std::int64_t copies = std::count_if(kernels_.begin(), kernels_.end(),
                                              [&](std::size_t kernel) { return kernel >= open_.kernels_of_calls; });
    const std::int64_t kernels = std::int64_t(kernels_.size()) - copies;
    all.trials = std::max(request_.trials > 0 ? request_.trials : request_.trials_by_kernel * kernels, kernels);
    all.deadline = deadline_;
    all.later_programs = programs_in_place(kernels_.size());
    all.first_trials = graph::has_alternatives(open_)
                           ? std::clamp(all.trials / (3 * kernels), first_trials, most_first_trials)
                           : first_trials;
    if (request_.trials == 0) all.trials += copies * all.first_trials;
    all.negligible = negligible;
    if (!are_chosen) all.reweigh = [this](const std::vector<double>& best_seconds) { return choose(best_seconds); };
    if (request_.watch) all.watch = [this](const std::vector<SearchState>& searches) { watch(searches); };
    return all;
  }

  // Chooses by the best times of the searches; their weights from then on.
  std::vector<double> choose(const std::vector<double>& best_seconds) {
    std::vector<double> seconds = no_seconds();
    for (std::size_t s = 0; s < kernels_.size(); ++s) seconds[kernels_[s]] = best_seconds[s];
    plan_ = graph::best_choice(open_, seconds);
    const std::vector<double> calls = weights();
    std::vector<double> chosen;
    for (const std::size_t kernel : kernels_) chosen.push_back(calls[kernel]);
    return chosen;
  }

  void watch(const std::vector<SearchState>& searches) const {
    const std::vector<double> calls = weights();
    std::vector<NetworkKernel> kernels;
    std::vector<SearchState> states;
    for (std::size_t s = 0; s < searches.size(); ++s) {
      if (calls[kernels_[s]] == 0) continue;
      kernels.push_back(kernel_of(open_.plan.kernels[kernels_[s]]));
      kernels.back().calls = std::int64_t(calls[kernels_[s]]);
      states.push_back(searches[s]);
    }
    request_.watch(kernels, states);
  }

  const NetworkRequest& request_;
  const base::Deadline& deadline_;
  base::Stopwatch watch_;
  const Network& network_;
  const graph::OpenPlan& open_;
  const TunedNetwork* const before_;
  TunedNetwork& out_;
  base::Monitor& monitor_;
  graph::Plan plan_;
  double constants_mb_;
  codegen::InputSource inputs_;
  std::map<std::uint64_t, std::size_t> numbers_;  // of kernels, by key
  std::vector<std::optional<TuneResult>> known_;  // by kernel
  std::vector<std::size_t> kernels_;              // that are searched
  std::map<std::size_t, TuneResult> found_;       // by kernel
};

}  // namespace

std::optional<double> NetworkKernel::seconds() const {
  if (answer) return datasets::seconds_of(answer->measurement);
  return foreign ? std::optional(foreign_seconds.value_or(0)) : std::nullopt;
}

Network read_network(const std::filesystem::path& model, const NetworkOptions& options, const codegen::Target& target) {
  const std::string place = model.string();
  graph::Graph read = graph::with_numbers(graph::read_onnx(model, options.shapes), options.constants, place);
  if (!options.functions.empty())
    read = graph::with_functions(std::move(read), read_functions(options.functions), place);
  Network network{model, options, read.nodes.size(), {}, {}, {}};
  read = graph::with_few_bits(std::move(read), {options.storage.block, options.activations == codegen::DType::i8});
  network.graph = graph::folded(read, place, {}, &network.passes);
  network.plan = graph::open_plan(network.graph, target, place, options.storage.type);
  return network;
}

std::filesystem::path network_folder(const NetworkRequest& request) {
  if (!request.each.out.empty()) return request.each.out;
  return std::filesystem::path("runs") / fmt::format("network-{}-{}", short_name(request.model.stem().string()),
                                                     short_name(request.each.platform.name));
}

TunedNetwork tune_network(const NetworkRequest& asked, base::Monitor& monitor) {
  check_settings(asked);
  if (asked.each.platform.target.group_items > 0)
    throw base::UserError(asked.each.platform.name,
                          "networks for GPUs are not compiled; tune their operators one by one");
  const NetworkRequest request = with_effort(asked);
  const base::Deadline deadline(request.budget_seconds);
  const base::Stopwatch watch;
  const tasks::Platform& platform = request.each.platform;
  Network network = read_network(request.model, request.options, platform.target);
  TunedNetwork out;
  out.folder = network_folder(request);
  out.model = request.model;
  out.model_hash = file_hash(request.model);
  out.options = request.options;
  out.platform = platform;
  out.file_nodes = network.file_nodes;
  out.nodes = network.graph.nodes.size();
  out.layouts_given = request.each.space.layouts == codegen::Layouts::given;
  std::optional<TunedNetwork> before;
  if (is_network_folder(out.folder)) {
    before = read_tuned_network(out.folder);
    check_same(*before, out);
    if (has(*before, request)) {
      monitor.note(fmt::format(
          "{}: already has what is asked for ({} trials in all forms of its kernels); ask for more to continue it",
          out.folder.string(), before->finished->trials));
      return *std::move(before);
    }
    out.layouts_chosen = before->layouts_chosen;
    out.finished = before->finished;
  }
  const std::vector<graph::Draw> draws = graph::draws_of(network.graph, request.model.string(), monitor);
  for (std::size_t i = 0; i < draws.size(); ++i) network.plan.plan.inputs[i].draw = draws[i];
  if (!out.layouts_given) graph::add_layouts(network.plan, platform.target);
  NetworkSearch search(request, deadline, watch, network, before ? &*before : nullptr, out, monitor);
  search.run();
  if (before) add_spent(*before, out);
  out.seconds = sum_of(out.kernels);
  graph::StoredConstants constants;
  base::Document plan = graph::stored(search.plan(), constants);
  base::Document kept = base::Document::map().set("schema", 1);
  for (const auto& [key, value] : to_document(out).as_map()) kept.set(key, value);
  if (out.finished)
    kept.set("finished", base::Document::map()
                             .set("settings", out.finished->settings)
                             .set("trials", out.finished->trials)
                             .set("trials_by_kernel", out.finished->trials_by_kernel)
                             .set("rebuild", out.finished->rebuild));
  kept.set("platform_description", platform.yaml);
  kept.set("plan", std::move(plan));
  write_files({{constants_name, constants.taken()}}, false, out.folder);
  write_files({{file_name, kept.to_pretty_json() + "\n"}}, false, out.folder);
  return out;
}

void keep_kernels(const TunedNetwork& network) {
  base::Document kept = document_in(network.folder);
  const base::Document now = to_document(network);
  for (const char* const key : {"kernels", "seconds"}) kept.set(key, now.at(key));
  write_files({{file_name, kept.to_pretty_json() + "\n"}}, false, network.folder);
}

void share_constants(const std::vector<TunedNetwork>& networks) {
  std::vector<base::Document> documents;
  bool are_shared = true;
  for (const TunedNetwork& network : networks) {
    documents.push_back(document_in(network.folder));
    are_shared = are_shared && documents.back().find(shares_name) != nullptr;
  }
  if (are_shared) return;
  graph::StoredConstants constants;
  for (std::size_t n = 0; n < networks.size(); ++n)
    documents[n].set(shares_name, true).set("plan", graph::stored(plan_of(networks[n]), constants));
  write_files({{constants_name, constants.taken()}}, false, networks.front().folder.parent_path());
  for (std::size_t n = 0; n < networks.size(); ++n) {
    write_files({{file_name, documents[n].to_pretty_json() + "\n"}}, false, networks[n].folder);
    std::filesystem::remove(networks[n].folder / constants_name);
  }
}

// A library of that name has a file of that name, too.
bool is_network_folder(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / file_name)) return false;
  const base::Document document = document_in(folder);
  const base::Document* const kind = document.is_map() ? document.find("kind") : nullptr;
  return kind != nullptr && kind->is_string() && (kind->as_string() == "network" || kind->as_string() == "networks");
}

std::vector<graph::Plan::Tensor> inputs_in(const std::filesystem::path& folder) {
  return graph::inputs_from(document_in(folder).at("plan"));
}

graph::Plan plan_of(const TunedNetwork& tuned) {
  const std::filesystem::path file = tuned.folder / file_name;
  const base::Document document = document_in(tuned.folder);
  const bool shares = document.find(shares_name) != nullptr;
  const std::filesystem::path constants =
      (shares ? (tuned.folder / "").parent_path().parent_path() : tuned.folder) / constants_name;
  const base::Document* const plan = document.find("plan");
  if (plan == nullptr)
    throw base::UserError(file.string(),
                          "was written by an earlier graft, which kept no plan; run the same graft tune "
                          "again: it measures nothing that it knows");
  std::vector<graph::Plan::Kernel> kernels;
  for (const NetworkKernel& kernel : tuned.kernels)
    kernels.push_back({kernel.workload, kernel.calls, kernel.label, kernel.foreign});
  return graph::plan_from(*plan, std::move(kernels), base::read_file(constants), constants.string());
}

TunedNetwork read_tuned_network(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / file_name;
  if (!std::filesystem::exists(folder)) throw base::UserError(folder.string(), "no such file or folder");
  if (!is_network_folder(folder))
    throw base::UserError(folder.string(), "is not the folder of a network; `graft tune MODEL.onnx` makes one");
  const base::Document document = document_in(folder);
  if (document.at("kind").as_string() == "networks")
    throw base::UserError(folder.string(),
                          "is of several shapes; give one of the folders within it, such as " +
                              (folder / document.at("networks").as_list().at(0).at("folder").as_string()).string());
  TunedNetwork out;
  out.folder = folder;
  out.model = document.at("model").as_string();
  out.model_hash = document.at("model_hash").as_string();
  for (const Setting& option : settings_of(out.options, {})) {
    if (const base::Document* const value = document.find(option.key)) option.set(*value);
  }
  out.platform = tasks::parse_platform(document.at("platform_description").as_string(), file.string());
  if (const base::Document* const nodes = document.find("nodes")) {
    out.file_nodes = std::size_t(nodes->at("file").as_u64());
    out.nodes = std::size_t(nodes->at("folded").as_u64());
  }
  if (const base::Document* const given = document.find("layouts_given")) out.layouts_given = given->as_bool();
  if (const base::Document* const chosen = document.find("layouts_chosen")) out.layouts_chosen = chosen->as_bool();
  for (const base::Document& each : document.at("kernels").as_list()) {
    NetworkKernel& kernel = out.kernels.emplace_back();
    kernel.workload = codegen::parse_workload(each.at("workload").as_string());
    kernel.calls = each.at("calls").as_integer();
    kernel.label = each.at("label").as_string();
    kernel.trials = each.at("trials").as_integer();
    if (const base::Document* const run = each.find("run")) kernel.run = folder / run->as_string();
    if (const base::Document* const first = each.find("first_seconds")) kernel.first_seconds = first->as_number();
    if (const base::Document* const failure = each.find("failure")) kernel.failure = failure->as_string();
    if (const base::Document* const foreign = each.find("foreign")) {
      kernel.foreign = std::make_shared<const codegen::Foreign>(foreign_from(*foreign));
      if (const base::Document* const seconds = each.find("seconds")) kernel.foreign_seconds = seconds->as_number();
    }
    if (const base::Document* const answer = each.find("answer")) kernel.answer = known_answer_from(*answer);
  }
  out.seconds = sum_of(out.kernels);
  if (const base::Document* const in_place = document.find("in_place_seconds"))
    out.in_place_seconds = in_place->as_number();
  if (const base::Document* const spent = document.find("spent_seconds"))
    for (const auto& [on, seconds] : spent->as_map()) out.spent.emplace_back(on, seconds.as_number());
  out.complete = document.at("complete").as_bool();
  if (const base::Document* const finished = document.find("finished"))
    out.finished = {finished->at("settings").as_string(), finished->at("trials").as_integer(),
                    finished->at("trials_by_kernel").as_integer(), finished->at("rebuild").as_integer()};
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
    if (kernel.foreign) {
      each.set("foreign", to_document(*kernel.foreign));
      if (kernel.foreign_seconds) each.set("seconds", *kernel.foreign_seconds);
    }
    if (kernel.first_seconds) each.set("first_seconds", *kernel.first_seconds);
    if (!kernel.run.empty()) each.set("run", kernel.run.lexically_relative(network.folder).string());
    if (!kernel.failure.empty()) each.set("failure", kernel.failure);
    if (kernel.answer) each.set("answer", to_document(*kernel.answer));
    kernels.push(std::move(each));
  }
  base::Document out = base::Document::map();
  out.set("kind", "network").set("model", network.model.string()).set("model_hash", network.model_hash);
  NetworkOptions options = network.options;
  for (const Setting& option : settings_of(options, {}))
    if (option.decides == Decides::result || !option.is_usual()) out.set(option.key, option.value());
  out.set("platform", network.platform.name).set("source", network.platform.device->source());
  if (std::isfinite(network.seconds)) out.set("seconds", network.seconds);
  if (network.in_place_seconds) out.set("in_place_seconds", *network.in_place_seconds);
  if (!network.spent.empty()) {
    base::Document spent = base::Document::map();
    for (const auto& [on, seconds] : network.spent) spent.set(on, seconds);
    out.set("spent_seconds", std::move(spent));
  }
  if (network.layouts_given) out.set("layouts_given", true);
  if (network.layouts_chosen) out.set("layouts_chosen", true);
  out.set("nodes", base::Document::map().set("file", network.file_nodes).set("folded", network.nodes));
  return out.set("kernels", std::move(kernels)).set("complete", network.complete);
}

}  // namespace graft::study
