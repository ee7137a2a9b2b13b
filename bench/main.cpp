// graft-bench: `graft bench ...` becomes it, so that `graft` itself loads no peer library. Its one argument is a JSON
// object (a second one it gives itself): {"what": "kernels|compile|measure|features|predict|train|store", "json": ...,
// "quiet": ..., "settings": one of bench/settings.h}.
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
#include "base/named_fields.h"
#include "bench/blas.h"
#include "bench/compile.h"
#include "bench/features.h"
#include "bench/kernels.h"
#include "bench/measure.h"
#include "bench/networks.h"
#include "bench/settings.h"
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

using Note = std::function<void(std::string)>;

// What is asked for, and how its result is printed.
struct Request {
  Document settings;
  bool json = false;
  Note note;
};

// Prints a result, in text or as JSON; the exit code, which is that of a failure where it is not right.
template <class Result, class Settings>
int printed(const Result& result, const Settings& settings, const Request& request, bool right = true,
            const char* wrong = "") {
  fmt::print("{}", request.json ? to_document(result, settings).to_json() + "\n" : to_text(result, settings));
  if (right) return 0;
  fmt::print(stderr, "error: {}\n", wrong);
  return 1;
}

int kernels(const Request& request, const std::string& openblas_chose) {
  auto settings = base::value_from<bench::KernelSettings>(request.settings);
  settings.openblas_chose = openblas_chose;
  settings.timing.wall = settings.threads > 1;
  const std::vector<bench::KernelRow> rows = bench::bench_kernels(settings, request.note);
  return printed(rows, settings, request, all_right(rows), "a kernel of ours computes wrong results");
}

int compile(const Request& request) {
  const auto settings = base::value_from<bench::CompileSettings>(request.settings);
  return printed(bench::bench_compile(settings, request.note), settings, request);
}

int measure(const Request& request) {
  const auto settings = base::value_from<bench::MeasurerSettings>(request.settings);
  return printed(bench::bench_measure(settings, request.note), settings, request);
}

int features(const Request& request) {
  const auto settings = base::value_from<bench::FeatureSettings>(request.settings);
  const std::vector<bench::FeatureRow> rows = bench::bench_features(settings, request.note);
  return printed(rows, settings, request, all_finite(rows), "an encoding has values that are not finite");
}

int networks(const Request& request, bool training) {
  const auto settings = base::value_from<bench::NetworkSettings>(request.settings);
  const std::vector<bench::NetworkRow> rows =
      training ? bench::bench_train(settings, request.note) : bench::bench_predict(settings, request.note);
  return printed(rows, settings, request, all_right(rows), "our network and LibTorch's do not agree");
}

int store(const Request& request) {
  const auto settings = base::value_from<bench::StoreSettings>(request.settings);
  const bench::StoreBench result = bench::bench_store(settings, request.note);
  return printed(result, settings, request, result.equal, "what was read is not what was written");
}

int run(const Document& document, const std::string& openblas_chose) {
  const bool quiet = document.at("quiet").as_bool();
  const Request request{document.at("settings"), document.at("json").as_bool(), [quiet](const std::string& line) {
                          if (!quiet) fmt::print(stderr, "{}\n", line);
                        }};
  const std::string& what = document.at("what").as_string();
  if (what == "kernels") return kernels(request, openblas_chose);
  if (what == "compile") return compile(request);
  if (what == "measure") return measure(request);
  if (what == "features") return features(request);
  if (what == "predict" || what == "train") return networks(request, what == "train");
  if (what == "store") return store(request);
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
