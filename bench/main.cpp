// graft-bench: `graft bench kernels` becomes it, so that `graft` itself loads no peer library. Its one argument is a
// JSON object (a second one it gives itself): {"json": ..., "quiet": ..., "settings": KernelSettings}.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/error.h"
#include "base/named_fields.h"
#include "bench/blas.h"
#include "bench/kernels.h"
#include "bench/settings.h"

namespace {

using namespace graft;

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

int run(const base::Document& request, const std::string& openblas_chose) {
  auto settings = base::value_from<bench::KernelSettings>(request.at("settings"));
  settings.openblas_chose = openblas_chose;
  settings.timing.wall = settings.threads > 1;
  const bool quiet = request.at("quiet").as_bool();
  const std::vector<bench::KernelRow> rows = bench::bench_kernels(settings, [quiet](const std::string& line) {
    if (!quiet) fmt::print(stderr, "{}\n", line);
  });
  fmt::print("{}",
             request.at("json").as_bool() ? to_document(rows, settings).to_json() + "\n" : to_text(rows, settings));
  if (all_right(rows)) return 0;
  fmt::print(stderr, "error: a kernel of ours computes wrong results\n");
  return 1;
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
