#include "cli/commands/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/installation.h"
#include "cli/commands/commands.h"

namespace graft::cli {

int become_bench(const char* what, base::Document settings, const Session& session) {
  base::Document request = base::Document::map();
  request.set("what", what).set("json", session.output.is_json()).set("quiet", session.progress.is_quiet());
  request.set("settings", std::move(settings));
  std::string program = base::own_folder() / "graft-bench", argument = request.to_json();
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  execv(program.c_str(), arguments);
  throw base::Failure(
      fmt::format("{}: cannot be started: {}; build the target graft-bench", program, std::strerror(errno)));
}

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
          return become_bench("kernels", flags->settings, session);
        };
      }};
}

Command bench_compile_command() {
  return {.name = "bench compile",
          .help = "candidates compiled per second and core, by pipeline and phase",
          .examples = {"graft bench compile", "graft bench compile runs/mm512 --candidates 500"},
          .declare = [](Options& options) -> Action {
            const auto settings = std::make_shared<bench::CompileSettings>();
            options.positionals("RUN", settings->runs, "run folders whose best kernels are compiled, too",
                                Options::optional);
            options.text("workload", settings->workload, "whose random candidates are compiled");
            options.text("platform", settings->platform, "platform whose code the candidates become");
            options.integer("candidates", settings->candidates, 1, "random candidates to compile");
            options.integer("slow-candidates", settings->slow_candidates, 1,
                            "how many of the candidates are also compiled by the slow pipeline O3");
            options.integer("repetitions", settings->repetitions, 1, "of compiling a best kernel");
            return [settings](Session& session) {
              settings->seed = session.seed;
              return become_bench("compile", *settings, session);
            };
          }};
}

Command bench_measure_command() {
  struct Flags {
    bench::MeasurerSettings settings;
    double minimum_ms = 1e3 * settings.minimum_seconds;
  };
  return {.name = "bench measure",
          .help = "candidates compiled, checked and measured per second, and how well a time repeats",
          .examples = {"graft bench measure", "graft bench measure runs/mm512 --trials 1000"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            bench::MeasurerSettings& settings = flags->settings;
            options.positionals("RUN", settings.runs,
                                "run folders whose best kernels are repeated (default: the best found)",
                                Options::optional);
            options.text("workload", settings.workload, "whose random candidates are measured");
            options.text("platform", settings.platform, "a native one");
            options.integer("trials", settings.trials, 1, "random candidates");
            options.integer("batch", settings.batch, 1, "candidates a round, as in graft tune");
            options.integer("repetitions", settings.repetitions, 1, "of each candidate; the least counts");
            options.number("minimum-ms", flags->minimum_ms, 0, "one repetition is at least so long");
            options.integer("repeats", settings.repeats, 2, "of a good kernel's whole measurement");
            return [flags](Session& session) {
              flags->settings.seed = session.seed;
              flags->settings.minimum_seconds = flags->minimum_ms * 1e-3;
              return become_bench("measure", flags->settings, session);
            };
          }};
}

}  // namespace graft::cli
