// Networks: their kernels are tuned with one budget, and what was found is kept in a folder that compile, run and
// report read. `graph` says what the kernels are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "graph/alternatives.h"
#include "graph/few_bits.h"
#include "graph/fold.h"
#include "graph/graph.h"
#include "graph/onnx.h"
#include "graph/plan.h"
#include "study/flows/tune.h"
#include "study/flows/tune_all.h"
#include "study/knowledge/library.h"
#include "tasks/platform.h"

namespace graft::study {

// The answer for a kernel of the plan.
struct NetworkKernel {
  codegen::Workload workload;
  std::int64_t calls = 0;
  std::string label;                    // of its first call
  std::optional<KnownAnswer> answer;    // nothing: not found yet, or nothing ok
  std::optional<double> first_seconds;  // of its first ok trial; nothing if the answer is the library's
  std::int64_t trials = 0;
  std::filesystem::path run;  // empty if the answer is the library's
  std::string failure;        // why there is no answer
  // A kernel that is not tuned: what computes it, and what a call takes within the network where that was timed.
  std::shared_ptr<const codegen::Foreign> foreign = nullptr;
  std::optional<double> foreign_seconds = {};

  bool has_program() const { return answer.has_value() || foreign != nullptr; }
  std::optional<double> seconds()
      const;  // of one call; 0 if it is foreign and was not timed, nothing without a program
};

// What a model's file leaves open, and how its numbers are stored.
struct NetworkOptions {
#include "study/inputs/settings/network_options.def"
  bool operator==(const NetworkOptions&) const = default;
};

struct NetworkRequest {
  std::filesystem::path model;  // ONNX
#include "study/inputs/settings/network.def"
  // What the searches of all kernels have in common: platform, settings, library. Its `workload`, `trials` and budget
  // are not used, `out` is the network's folder, `stop_after` is of a single kernel, and `rebuild` at most as `effort`
  // says.
  TuneRequest each;
  // Called after each round with the kernels, which have no answers yet, and how their searches are.
  std::function<void(const std::vector<NetworkKernel>&, const std::vector<SearchState>&)> watch;
};

// A network, read, folded, and planned for a platform's target. Only tuning, predicting and inspecting a model need it.
struct Network {
  std::filesystem::path model;
  NetworkOptions options;
  std::size_t file_nodes = 0;  // before folding
  std::vector<graph::Pass> passes;
  graph::Graph graph;    // folded
  graph::OpenPlan plan;  // without other layouts
};
// UserError as the parts of graph.
Network read_network(const std::filesystem::path& model, const NetworkOptions& options, const codegen::Target& target);

// What a search that ended by itself was for: the same, or less of it, is answered by what it found.
struct FinishedSearch {
  std::string settings;               // a hash of all that decides what is searched
  std::int64_t trials = 0;            // in total
  std::int64_t trials_by_kernel = 0;  // by which the total was given; 0: by itself
  std::int64_t rebuild = 0;           // TuneRequest::rebuild
};

struct TunedNetwork {
  std::filesystem::path folder, model;
  std::string model_hash;
  NetworkOptions options;
  tasks::Platform platform;
  bool layouts_given = false;                         // by request: none was chosen
  bool layouts_chosen = false;                        // by times of the kernels of all alternatives
  std::size_t file_nodes = 0, nodes = 0;              // of the model's file, and after folding
  std::vector<NetworkKernel> kernels;                 // in the plan's order
  double seconds = 0;                                 // the sum of all calls; infinite while a kernel has no answer
  std::optional<double> in_place_seconds;             // the same of its calls within the network, on this machine alone
  std::vector<std::pair<std::string, double>> spent;  // seconds of all searches here, by what they were spent on
  bool complete = false;                              // false: stopped; the same request continues it
  std::optional<FinishedSearch> finished;             // the largest; nothing if time ended it
};

// What the tuned network does, as its folder has it: the model's file is not needed. Its kernels are those of `tuned`.
// UserError for a folder of an earlier graft, which kept no plan, and as plan_from (graph/plan_document.h).
graph::Plan plan_of(const TunedNetwork& tuned);

// The inputs of the network of a folder.
std::vector<graph::Plan::Tensor> inputs_in(const std::filesystem::path& folder);

// The default folder: "runs/network-MODEL-PLATFORM".
std::filesystem::path network_folder(const NetworkRequest& request);

// Tunes the kernels, and writes the result to network.json in the folder: the plan, its kernels and their answers; the
// constants of the plan are in constants.bin next to it. Where there are alternatives (graph/alternatives.h), the
// kernels of all get their first trials, then the alternatives with the least sum are chosen, and only what they need
// is tuned; when the search is continued, they stay. Kernels without which the network is less than 0.5 % faster get no
// more than their first trials. A folder that has what is asked for already is left as it is, and its result returned;
// more trials continue it. Errors as tune; a kernel for which nothing is found does not end the others.
TunedNetwork tune_network(const NetworkRequest& request, base::Monitor& monitor);

// Whether a folder has the result of tune_network, or of tune_networks (network_shapes.h); and the result of the first.
// UserError for a file that is broken, and for several networks.
bool is_network_folder(const std::filesystem::path& folder);
TunedNetwork read_tuned_network(const std::filesystem::path& folder);
// Replaces what the folder has of the kernels, which may have other answers now.
void keep_kernels(const TunedNetwork& network);
// Stores the constants of these networks' plans once, in the folder that theirs are in.
void share_constants(const std::vector<TunedNetwork>& networks);

// {"kind":"network","model":...,"seconds":...,"kernels":[...]}
base::Document to_document(const TunedNetwork& network);

}  // namespace graft::study
