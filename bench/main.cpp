// graft-bench: `graft bench ...` becomes it, so that `graft` itself loads no peer library. Its one argument is a JSON
// object (a second one it gives itself): {"what": "kernels|compile|measure|features|predict|train|store", "json": ...,
// "quiet": ..., and the flags of that command by name}. The flags, their defaults and their help are
// cli/commands/bench.cpp's.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/error.h"
#include "bench/blas.h"
#include "bench/compile.h"
#include "bench/features.h"
#include "bench/kernels.h"
#include "bench/measure.h"
#include "bench/networks.h"
#include "bench/store.h"

namespace {

using namespace graft;
using base::Document;

// Variables that slow peers down, or give them other threads than they are told to use.
constexpr const char* crippling[] = {"OPENBLAS_CORETYPE",  "OPENBLAS_L2_SIZE",   "OPENBLAS_NUM_THREADS",
                                     "GOTO_NUM_THREADS",   "OMP_NUM_THREADS",    "DNNL_MAX_CPU_ISA",
                                     "ONEDNN_MAX_CPU_ISA", "DNNL_CPU_ISA_HINTS", "ONEDNN_CPU_ISA_HINTS"};

[[noreturn]] void start_again(char* request, const std::string& told) {
  std::string second = told;
  char name[] = "graft-bench";
  char* const arguments[] = {name, request, second.data(), nullptr};
  execv("/proc/self/exe", arguments);
  throw base::Failure("graft-bench cannot start itself again");
}

// Libraries look at the environment when they are loaded, so a program that wants it otherwise starts itself again.
// First without what cripples them ("clean"), then, for a processor that OpenBLAS does not know, with the core that it
// should have taken (its own choice is told). Returns that choice, "" for a processor that it knows.
std::string with_fair_peers(int count, char** arguments) {
  if (count == 3 && std::string_view(arguments[2]) != "clean") return arguments[2];
  if (count == 2) {
    for (const char* variable : crippling) {
      if (std::getenv(variable) == nullptr) continue;
      fmt::print(stderr, "note: {} is set and may slow a baseline down; measured without it\n", variable);
      unsetenv(variable);
      count = 0;
    }
    if (count == 0) start_again(arguments[1], "clean");
  }
  const std::optional<std::string> better = bench::better_openblas_core();
  if (!better) return "";
  setenv("OPENBLAS_CORETYPE", better->c_str(), 1);
  start_again(arguments[1], bench::openblas_core());
}

std::vector<std::string> texts(const Document& list) {
  std::vector<std::string> result;
  for (const Document& entry : list.as_list()) result.push_back(entry.as_string());
  return result;
}

std::vector<std::filesystem::path> paths(const Document& list) {
  std::vector<std::filesystem::path> result;
  for (const std::string& text : texts(list)) result.emplace_back(text);
  return result;
}

using Note = std::function<void(std::string)>;

// The result, in text or as JSON; the exit code.
int kernels(const Document& request, bool json, const Note& note, const std::string& openblas_chose) {
  bench::KernelSettings settings;
  settings.openblas_chose = openblas_chose;
  settings.runs = paths(request.at("runs"));
  settings.baselines = texts(request.at("baselines"));
  settings.threads = int(request.at("threads").as_integer());
  settings.trials = request.at("trials").as_integer();
  settings.rebuild = request.at("rebuild").as_bool();
  settings.timing.repetitions = int(request.at("repetitions").as_integer());
  settings.timing.minimum_seconds = request.at("minimum_seconds").as_number();
  settings.timing.slow_seconds = request.at("slow_seconds").as_number();
  settings.timing.wall = settings.threads > 1;
  const std::vector<bench::KernelRow> rows = bench::bench_kernels(settings, note);
  fmt::print("{}", json ? to_document(rows, settings).to_json() + "\n" : to_text(rows, settings));
  if (all_right(rows)) return 0;
  fmt::print(stderr, "error: a kernel of ours computes wrong results\n");
  return 1;
}

int compile(const Document& request, bool json, const Note& note) {
  bench::CompileSettings settings;
  settings.workload = request.at("workload").as_string();
  settings.platform = request.at("platform").as_string();
  settings.candidates = request.at("candidates").as_integer();
  settings.slow_candidates = request.at("slow_candidates").as_integer();
  settings.repetitions = int(request.at("repetitions").as_integer());
  settings.runs = paths(request.at("runs"));
  settings.seed = request.at("seed").as_u64();
  const auto rows = bench::bench_compile(settings, note);
  fmt::print("{}", json ? to_document(rows, settings).to_json() + "\n" : to_text(rows, settings));
  return 0;
}

int measure(const Document& request, bool json, const Note& note) {
  bench::MeasureBench settings;
  settings.workload = request.at("workload").as_string();
  settings.platform = request.at("platform").as_string();
  settings.trials = request.at("trials").as_integer();
  settings.batch = request.at("batch").as_integer();
  settings.repeats = int(request.at("repeats").as_integer());
  settings.runs = paths(request.at("runs"));
  settings.seed = request.at("seed").as_u64();
  settings.measure.repetitions = int(request.at("repetitions").as_integer());
  settings.measure.minimum_seconds = request.at("minimum_seconds").as_number();
  const auto result = bench::bench_measure(settings, note);
  fmt::print("{}", json ? to_document(result, settings).to_json() + "\n" : to_text(result, settings));
  return 0;
}

int features(const Document& request, bool json, const Note& note) {
  bench::FeatureSettings settings;
  settings.workloads = texts(request.at("workloads"));
  settings.platform = request.at("platform").as_string();
  settings.candidates = request.at("candidates").as_integer();
  settings.encodings = texts(request.at("encodings"));
  settings.repetitions = int(request.at("repetitions").as_integer());
  settings.seed = request.at("seed").as_u64();
  const std::vector<bench::FeatureRow> rows = bench::bench_features(settings, note);
  fmt::print("{}", json ? to_document(rows, settings).to_json() + "\n" : to_text(rows, settings));
  if (all_finite(rows)) return 0;
  fmt::print(stderr, "error: an encoding has values that are not finite\n");
  return 1;
}

int networks(const Document& request, bool json, const Note& note, bool training) {
  bench::NetworkSettings settings;
  settings.workloads = texts(request.at("workloads"));
  settings.platform = request.at("platform").as_string();
  settings.batch = request.at("batch").as_integer();
  settings.threads = int(request.at("threads").as_integer());
  settings.seed = request.at("seed").as_u64();
  settings.timing.repetitions = int(request.at("repetitions").as_integer());
  settings.timing.minimum_seconds = request.at("minimum_seconds").as_number();
  const std::vector<bench::NetworkRow> rows =
      training ? bench::bench_train(settings, note) : bench::bench_predict(settings, note);
  fmt::print("{}", json ? to_document(rows, settings).to_json() + "\n" : to_text(rows, settings));
  if (all_right(rows)) return 0;
  fmt::print(stderr, "error: our network and LibTorch's do not agree\n");
  return 1;
}

int store(const Document& request, bool json, const Note& note) {
  bench::StoreSettings settings;
  settings.file = request.at("file").as_string();
  settings.rows = request.at("rows").as_integer();
  settings.episodes = int(request.at("episodes").as_integer());
  settings.repetitions = int(request.at("repetitions").as_integer());
  settings.seed = request.at("seed").as_u64();
  const bench::StoreBench result = bench::bench_store(settings, note);
  fmt::print("{}", json ? to_document(result, settings).to_json() + "\n" : to_text(result, settings));
  if (result.equal) return 0;
  fmt::print(stderr, "error: what was read is not what was written\n");
  return 1;
}

int run(const Document& request, const std::string& openblas_chose) {
  const bool json = request.at("json").as_bool(), quiet = request.at("quiet").as_bool();
  const Note note = [quiet](const std::string& line) {
    if (!quiet) fmt::print(stderr, "{}\n", line);
  };
  const std::string& what = request.at("what").as_string();
  if (what == "kernels") return kernels(request, json, note, openblas_chose);
  if (what == "compile") return compile(request, json, note);
  if (what == "measure") return measure(request, json, note);
  if (what == "features") return features(request, json, note);
  if (what == "predict" || what == "train") return networks(request, json, note, what == "train");
  if (what == "store") return store(request, json, note);
  throw base::UserError("what", fmt::format("'{}' is nothing to measure; start it as graft bench", what));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 2 && count != 3) throw base::UserError("graft-bench is started by graft bench");
    const std::string openblas_chose = with_fair_peers(count, arguments);
    return run(base::parse_json(arguments[1], "graft-bench"), openblas_chose);
  } catch (const base::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
