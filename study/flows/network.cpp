#include "study/flows/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "base/duration.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "codegen/schedule/candidate.h"
#include "graph/fold.h"
#include "graph/inputs.h"
#include "graph/plan_document.h"
#include "study/flows/compile.h"
#include "study/flows/effort.h"
#include "study/flows/network_choice.h"
#include "study/flows/network_layouts.h"
#include "study/flows/user_function.h"
#include "study/inputs/request.h"
#include "study/inputs/settings.h"

namespace graft::study {
namespace {

const char *const file_name = "network.json", *const constants_name = "constants.bin";
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

// Whether the buffers that were in blocks are, by number, some that can be in this plan; nothing if not.
std::optional<graph::InBlocks> in_blocks_of(const TunedNetwork& tuned, const graph::Forms& forms) {
  graph::InBlocks in_blocks(forms.block.size());
  for (const int buffer : tuned.in_blocks) {
    if (buffer < 0 || std::size_t(buffer) >= in_blocks.size() || forms.block[std::size_t(buffer)] == 0)
      return std::nullopt;
    in_blocks[std::size_t(buffer)] = true;
  }
  return in_blocks;
}

bool is_fused_at(const std::set<int>& values, const graph::Plan& plan) {
  std::set<int> fused;
  for (const graph::Plan::Call& call : plan.calls) fused.insert(call.fused.begin(), call.fused.end());
  return fused == values;
}

// The searches of a network's kernels: those of all forms at first, then those that the chosen ones need.
class NetworkSearch {
 public:
  // `deadline` and `watch` began before the network was read.
  NetworkSearch(const NetworkRequest& request, const base::Deadline& deadline, const base::Stopwatch& watch,
                const Network& network, TunedNetwork& out, base::Monitor& monitor)
      : request_(request),
        deadline_(deadline),
        watch_(watch),
        network_(network),
        out_(out),
        monitor_(monitor),
        constants_mb_(constants_between_calls(network.plan)),
        layouts_(network, out.platform.target, !out.layouts_given, [&](const codegen::Workload& workload) {
          base::QuietMonitor quiet(monitor);
          return known_result(search_of(workload), quiet).has_value();
        }) {}

  void run() {
    const std::optional<NetworkForm> kept = kept_form();
    const bool are_chosen = kept.has_value();
    out_.complete = true;
    form_ = kept ? *kept : layouts_.first();
    plan_ = layouts_.plan(form_);
    if (layouts_.kernels().empty()) return;
    inputs_.seen = std::make_shared<const std::map<std::string, codegen::Seen>>(layouts_.seen(samples()));
    spend("reading, planning, and what kernels are given");
    const TuneAllRequest all = all_forms(are_chosen);
    announce(all);
    const TuneAllResult tuned = tune_all(all, monitor_);
    out_.complete = tuned.complete;
    if (tuned.complete && !tuned.out_of_time) out_.finished = finished_search(request_, all.trials);
    if (deadline_.exists()) out_.spent.emplace_back("the first program of each kernel", tuned.first_seconds);
    out_.spent.emplace_back("search", tuned.search_seconds);
    out_.spent.emplace_back("building the best again", tuned.finish_seconds);
    watch_ = {};
    out_.layouts_chosen = are_chosen || (layouts_.any() && tuned.all_begun);
    out_.fused = form_.fused;
    out_.in_blocks.clear();
    for (std::size_t b = 0; b < form_.in_blocks.size(); ++b)
      if (form_.in_blocks[b]) out_.in_blocks.push_back(int(b));
    TuneAllRequest copies;
    plan_ = layouts_.plan(form_);
    for (const graph::Plan::Kernel& kernel : plan_.kernels) {
      out_.kernels.push_back(kernel_of(kernel));
      if (!kernel.foreign && place_of(kernel.workload) == searches_.size())
        add(kernel, double(kernel.calls), layouts_.kernels().size() + copies.searches.size(), copies);
    }
    copies.trials = copy_trials * std::int64_t(copies.searches.size());
    copies.deadline = deadline_;
    copies.later_programs = programs_in_place(out_.kernels.size());
    const TuneAllResult copied = copies.searches.empty() ? TuneAllResult() : tune_all(copies, monitor_);
    if (!copies.searches.empty()) {
      out_.complete &= copied.complete;
      spend("copies between layouts");
    }
    std::size_t copy = 0;
    for (NetworkKernel& kernel : out_.kernels) {
      if (kernel.foreign) continue;
      const std::size_t place = place_of(kernel.workload);
      if (place < searches_.size())
        take(tuned.searches[place], searches_[place], kernel);
      else
        take(copied.searches[copy], copies.searches[copy], kernel), ++copy;
    }
    const bool searched = std::any_of(out_.kernels.begin(), out_.kernels.end(),
                                      [](const NetworkKernel& kernel) { return !kernel.run.empty(); });
    if (!out_.complete || !searched) return;
    const double round_seconds = programs_in_place(out_.kernels.size()) * tuned.seconds_per_trial;
    if (deadline_.left() < round_seconds) return;
    choose_in_place(plan_, out_, deadline_, monitor_);
    spend("programs within the network");
  }

  // In the form that was chosen.
  const graph::Plan& plan() const { return plan_; }

 private:
  // The form of the search that goes on; nothing if none was chosen, or if another graft's plan has no such form.
  std::optional<NetworkForm> kept_form() {
    if (!out_.layouts_chosen || !layouts_.any()) return std::nullopt;
    const std::optional<graph::InBlocks> in_blocks = in_blocks_of(out_, layouts_.forms(out_.fused));
    if (!in_blocks) return std::nullopt;
    NetworkForm form{out_.fused, *in_blocks};
    return is_fused_at(out_.fused, layouts_.plan(form)) ? std::optional(std::move(form)) : std::nullopt;
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
    monitor_.note(fmt::format("{} kernels in {} forms, {} trials: about {} on an idle machine",
                              network_.plan.kernels.size(), all.searches.size(), all.trials,
                              base::seconds_text(seconds)));
  }

  void spend(const char* on) {
    out_.spent.emplace_back(on, watch_.seconds());
    watch_ = {};
  }

  // Numbers that kernels get within the network, when it gets what its program is checked with.
  graph::Samples samples() const {
    const std::string place = network_.model.string();
    const auto inputs = graph::check_inputs(network_.plan.inputs, 1);
    return graph::samples_of_values(network_.graph, inputs, place, monitor_);
  }

  TuneRequest search_of(const codegen::Workload& workload) const {
    TuneRequest search = request_.each;
    if (search.timing.constants_mb == 0) search.timing.constants_mb = constants_mb_;
    search.space.layouts = {};
    search.batch = std::min(search.batch, most_batch);
    search.inputs = inputs_;
    search.workload = workload;
    return search;
  }

  void add(const graph::Plan::Kernel& kernel, double weight, std::size_t folder, TuneAllRequest& all) const {
    all.searches.push_back(search_of(kernel.workload));
    all.searches.back().out = out_.folder / kernel_folder(folder, kernel.workload);
    all.weights.push_back(weight);
    all.names.push_back(kernel.label);
  }

  std::size_t place_of(const codegen::Workload& workload) const {
    const auto place = std::find_if(searches_.begin(), searches_.end(),
                                    [&](const TuneRequest& search) { return search.workload.key() == workload.key(); });
    return std::size_t(place - searches_.begin());
  }

  // The searches of all forms, or of those that are chosen already.
  TuneAllRequest all_forms(bool are_chosen) {
    TuneAllRequest all;
    const std::vector<double> first = layouts_.weights(form_);
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (are_chosen ? first[k] == 0 : !layouts_.is_candidate()[k]) continue;
      kernels_.push_back(k);
      add(layouts_.kernels()[k], first[k], k, all);
    }
    searches_ = all.searches;
    weights_ = all.weights;
    const std::int64_t kernels = std::int64_t(searches_.size());
    all.trials = std::max(request_.trials > 0 ? request_.trials : request_.trials_by_kernel * kernels, kernels);
    all.deadline = deadline_;
    all.later_programs = programs_in_place(searches_.size());
    all.first_trials =
        layouts_.any() ? std::clamp(all.trials / (3 * kernels), first_trials, most_first_trials) : first_trials;
    all.negligible = negligible;
    if (!are_chosen)
      all.reweigh = [this](const std::vector<double>& best_seconds) {
        std::vector<double> best(layouts_.kernels().size(), std::numeric_limits<double>::infinity());
        for (std::size_t s = 0; s < kernels_.size(); ++s) best[kernels_[s]] = best_seconds[s];
        form_ = layouts_.best(best);
        const std::vector<double> weights = layouts_.weights(form_);
        for (std::size_t s = 0; s < kernels_.size(); ++s) weights_[s] = weights[kernels_[s]];
        return weights_;
      };
    if (request_.watch) all.watch = [this](const std::vector<SearchState>& searches) { watch(searches); };
    return all;
  }

  void watch(const std::vector<SearchState>& searches) const {
    std::vector<NetworkKernel> kernels;
    std::vector<SearchState> states;
    for (std::size_t s = 0; s < searches.size(); ++s) {
      if (weights_[s] == 0) continue;
      kernels.push_back(kernel_of(layouts_.kernels()[kernels_[s]]));
      kernels.back().calls = std::int64_t(weights_[s]);
      states.push_back(searches[s]);
    }
    request_.watch(kernels, states);
  }

  const NetworkRequest& request_;
  const base::Deadline& deadline_;
  base::Stopwatch watch_;
  const Network& network_;
  TunedNetwork& out_;
  base::Monitor& monitor_;
  double constants_mb_;
  codegen::InputSource inputs_;
  NetworkLayouts layouts_;
  NetworkForm form_;
  graph::Plan plan_;
  std::vector<std::size_t> kernels_;   // that are searched, of layouts_
  std::vector<TuneRequest> searches_;  // of these
  std::vector<double> weights_;        // of these
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
  Network network{model, options, read.nodes.size(), graph::folded(read, place), {}};
  network.plan = graph::planned(network.graph, target, place, options.storage);
  return network;
}

std::filesystem::path network_folder(const NetworkRequest& request) {
  if (!request.each.out.empty()) return request.each.out;
  return std::filesystem::path("runs") / fmt::format("network-{}-{}", short_name(request.model.stem().string()),
                                                     short_name(request.each.platform.name));
}

TunedNetwork tune_network(const NetworkRequest& asked, base::Monitor& monitor) {
  check_settings(asked);
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
    out.fused = before->fused;
    out.in_blocks = before->in_blocks;
    out.layouts_chosen = before->layouts_chosen;
    out.finished = before->finished;
  }
  const std::vector<graph::Draw> draws = graph::draws_of(network.graph, request.model.string(), monitor);
  for (std::size_t i = 0; i < draws.size(); ++i) network.plan.inputs[i].draw = draws[i];
  NetworkSearch search(request, deadline, watch, network, out, monitor);
  search.run();
  if (before) add_spent(*before, out);
  out.seconds = sum_of(out.kernels);
  graph::StoredPlan plan = graph::stored(search.plan());
  base::Document kept = base::Document::map().set("schema", 1);
  for (const auto& [key, value] : to_document(out).as_map()) kept.set(key, value);
  if (out.finished)
    kept.set("finished", base::Document::map()
                             .set("settings", out.finished->settings)
                             .set("trials", out.finished->trials)
                             .set("trials_by_kernel", out.finished->trials_by_kernel)
                             .set("rebuild", out.finished->rebuild));
  kept.set("platform_description", platform.yaml);
  kept.set("plan", std::move(plan.document));
  write_files({{constants_name, std::move(plan.constants)}}, false, out.folder);
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

graph::Plan plan_of(const TunedNetwork& tuned) {
  const std::filesystem::path file = tuned.folder / file_name, constants = tuned.folder / constants_name;
  const base::Document document = base::parse_json(base::read_file(file), file.string());
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
  const base::Document document = base::parse_json(base::read_file(file), file.string());
  TunedNetwork out;
  out.folder = folder;
  out.model = document.at("model").as_string();
  out.model_hash = document.at("model_hash").as_string();
  for (const Setting& option : settings_of(out.options, {})) {
    if (const base::Document* const value = document.find(option.key)) option.set(*value);
  }
  out.platform = tasks::parse_platform(document.at("platform_description").as_string(), file.string());
  if (const base::Document* const fused = document.find("fused"))
    for (const base::Document& value : fused->as_list()) out.fused.insert(int(value.as_integer()));
  if (const base::Document* const in_blocks = document.find("in_blocks"))
    for (const base::Document& buffer : in_blocks->as_list()) out.in_blocks.push_back(int(buffer.as_integer()));
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
  const auto set_numbers = [&](const std::string& name, const auto& numbers) {
    if (numbers.empty()) return;
    base::Document list = base::Document::list();
    for (const int number : numbers) list.push(std::int64_t(number));
    out.set(name, std::move(list));
  };
  set_numbers("fused", network.fused);
  set_numbers("in_blocks", network.in_blocks);
  if (network.layouts_given) out.set("layouts_given", true);
  if (network.layouts_chosen) out.set("layouts_chosen", true);
  out.set("nodes", base::Document::map().set("file", network.file_nodes).set("folded", network.nodes));
  return out.set("kernels", std::move(kernels)).set("complete", network.complete);
}

}  // namespace graft::study
