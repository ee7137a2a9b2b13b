// A tuned network as files for linking, or run here: its program (network_program.h), checked against the network in
// double precision.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/numpy.h"
#include "codegen/machine/sequence.h"
#include "graph/check.h"
#include "study/flows/compile.h"
#include "study/flows/network_program.h"

namespace graft::study {

// How a program's results are: each call's, on the operands that it read, element by element, and the outputs'.
struct NetworkCheck {
  double of_bound = 0;                       // the worst call's error, as a part of what rounding may do: right up to 1
  std::string call;                          // which one
  std::string difference;                    // of its worst element, for people
  std::int64_t elements = 0, unbounded = 0;  // of all calls (graph/check.h)
  std::vector<graph::OutputError> outputs;   // against double precision throughout
  bool right() const { return of_bound <= 1; }
};

struct CompileNetworkRequest {
  std::filesystem::path folder;  // of tune_networks
  CompileFormat format = CompileFormat::library;
  std::string name = "";         // of the library and its functions; "": as the model's file
  bool weights_in_file = false;  // NAME.weights, instead of data of the code
  bool exported = false;         // codegen::Library::exported
  std::uint64_t seed = 1;        // of the inputs of the check
};

struct CompiledNetwork {
  std::string name, platform;
  std::string check, unchecked;  // "host", "qemu", "remote", or "none" and why
  std::optional<NetworkCheck> results;
  std::int64_t arena_bytes = 0, peak_bytes = 0;  // of memory, and what lives at once at most
  std::int64_t weights_bytes = 0;
  std::size_t calls = 0, kernels = 0;
  std::map<std::string, std::string> files;  // contents by name; nothing is written
  bool executable = false;                   // the files are programs
  // For a network of several shapes: "batch=4", and what differs by shape, for each; the arena is the largest one's, and
  // `kernels` are those of all.
  std::string shape;
  std::vector<CompiledNetwork> shapes;
};

// Failure if the program gives wrong results. UserError and base::Stopped as program_of, and for a program that checks
// itself of several shapes.
CompiledNetwork compile_network(const CompileNetworkRequest& request, base::Monitor& monitor);

struct RunNetworkRequest {
  std::filesystem::path folder;                    // of tune_networks: the shapes of `inputs` say which network
  std::map<std::string, base::NumpyArray> inputs;  // by name; those that are missing are made from the seed
#include "study/inputs/settings/run_network.def"
};

struct NetworkRun {
  std::vector<codegen::Sequence::Tensor> tensors;  // the outputs
  std::vector<std::string> outputs;                // their bytes
  std::vector<double> seconds;                     // of one run, by repetition
  double median_seconds = 0;
  std::string where;                    // "host", "qemu", "remote"
  std::optional<NetworkCheck> results;  // if it was checked
};

// Runs it on this machine, the platform's boards, or under its qemu. Failure where it cannot be run.
NetworkRun run_network(const RunNetworkRequest& request, base::Monitor& monitor);

}  // namespace graft::study
