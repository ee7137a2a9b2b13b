#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/installation.h"
#include "base/named_fields.h"
#include "bench/settings.h"
#include "cli/commands/commands.h"

namespace graft::cli {

namespace {

// graft-bench links the libraries that graft is compared with, so it is a separate program; this process executes it.
int become_bench(const bench::KernelSettings& settings, const Session& session) {
  base::Document request = base::Document::map();
  request.set("json", session.output.is_json()).set("quiet", session.progress.is_quiet());
  request.set("settings", base::document_of(settings));
  std::string program = base::own_folder() / "graft-bench", argument = request.to_json();
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  execv(program.c_str(), arguments);
  throw base::Failure(
      fmt::format("{}: cannot be started: {}; build the target graft-bench", program, std::strerror(errno)));
}

}  // namespace

Command bench_kernels_command() {
  struct Flags {
    bench::KernelSettings settings;
    double minimum_ms = 1e3 * settings.timing.minimum_seconds;
  };
  return {
      .name = "bench kernels",
      .help = "the best kernels of tuned runs next to OpenBLAS, oneDNN, clang -O3 and gcc -Ofast, results checked",
      .examples = {"graft bench kernels runs/mm512", "graft bench kernels runs/c2 runs/c6 --baselines onednn_direct"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        bench::KernelSettings& settings = flags->settings;
        options.positionals("RUN", settings.runs, "run folders that graft tune wrote on a native platform");
        options.list("baselines", settings.baselines, "only these; default: all that fit the workload");
        options.integer("repetitions", settings.timing.repetitions, 1, "of each kernel, taken in turn");
        options.number("minimum-ms", flags->minimum_ms, 0, "one repetition is at least so long");
        options.number("slow-seconds", settings.timing.slow_seconds, 0,
                       "what takes longer is repeated three times only");
        options.integer("threads", settings.threads, 1, "of our kernels and of the libraries; from 2 on wall time");
        options.integer("trials", settings.trials, 0, "the best of this many first trials of a run; 0: of all");
        options.flag("rebuild", settings.rebuild, "ours is compiled with every pipeline and the fastest counts");
        return [flags](Session& session) {
          flags->settings.timing.minimum_seconds = flags->minimum_ms * 1e-3;
          return become_bench(flags->settings, session);
        };
      }};
}

}  // namespace graft::cli
