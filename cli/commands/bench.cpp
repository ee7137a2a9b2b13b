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

base::Document list_of(const std::vector<std::string>& words) {
  base::Document list = base::Document::list();
  for (const std::string& word : words) list.push(word);
  return list;
}

int become_bench(const char* what, base::Document request, const Session& session) {
  request.set("what", what).set("json", session.output.is_json()).set("quiet", session.progress.is_quiet());
  request.set("seed", std::int64_t(session.seed));
  std::string program = base::own_folder() / "graft-bench", argument = request.to_json();
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  execv(program.c_str(), arguments);
  throw base::Failure(
      fmt::format("{}: cannot be started: {}; build the target graft-bench", program, std::strerror(errno)));
}

namespace {

struct KernelFlags {
  std::vector<std::string> runs, baselines;
  std::int64_t repetitions = 20, threads = 1, trials = 0;
  double minimum_ms = 10, slow_seconds = 0.5;
  bool rebuild = false;

  base::Document request() const {
    base::Document request = base::Document::map();
    request.set("runs", list_of(runs)).set("baselines", list_of(baselines)).set("repetitions", repetitions);
    request.set("threads", threads).set("trials", trials).set("rebuild", rebuild);
    return request.set("minimum_seconds", minimum_ms * 1e-3).set("slow_seconds", slow_seconds);
  }
};

struct CompileFlags {
  std::string workload = "matmul(m=512,n=512,k=512)", platform = "native";
  std::int64_t candidates = 200, slow_candidates = 40, repetitions = 20;
  std::vector<std::string> runs;

  base::Document request() const {
    base::Document request = base::Document::map();
    request.set("workload", workload).set("platform", platform).set("candidates", candidates);
    request.set("slow_candidates", slow_candidates).set("repetitions", repetitions);
    return request.set("runs", list_of(runs));
  }
};

struct MeasurerFlags {
  std::string workload = "matmul(m=512,n=512,k=512)", platform = "native";
  std::int64_t trials = 300, batch = 32, repeats = 20, repetitions = 3;
  double minimum_ms = 1;
  std::vector<std::string> runs;

  base::Document request() const {
    base::Document request = base::Document::map();
    request.set("workload", workload).set("platform", platform).set("trials", trials).set("batch", batch);
    request.set("repeats", repeats).set("repetitions", repetitions).set("minimum_seconds", minimum_ms * 1e-3);
    return request.set("runs", list_of(runs));
  }
};

}  // namespace

Command bench_kernels_command() {
  return {
      .name = "bench kernels",
      .help = "the best kernels of tuned runs next to OpenBLAS, oneDNN, clang -O3 and gcc -Ofast, results checked",
      .examples = {"graft bench kernels runs/mm512", "graft bench kernels runs/c2 runs/c6 --baselines onednn_direct"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<KernelFlags>();
        options.positionals("RUN", flags->runs, "run folders that graft tune wrote on a native platform");
        options.list("baselines", flags->baselines, "only these; default: all that fit the workload");
        options.integer("repetitions", flags->repetitions, 1, "of each kernel, taken in turn");
        options.number("minimum-ms", flags->minimum_ms, 0, "one repetition is at least so long");
        options.number("slow-seconds", flags->slow_seconds, 0, "what takes longer is repeated three times only");
        options.integer("threads", flags->threads, 1, "of our kernels and of the libraries; from 2 on wall time");
        options.integer("trials", flags->trials, 0, "the best of this many first trials of a run; 0: of all");
        options.flag("rebuild", flags->rebuild, "ours is compiled with every pipeline and the fastest counts");
        return [flags](Session& session) { return become_bench("kernels", flags->request(), session); };
      }};
}

Command bench_compile_command() {
  return {.name = "bench compile",
          .help = "candidates compiled per second and core, by pipeline and phase",
          .examples = {"graft bench compile", "graft bench compile runs/mm512 --candidates 500"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<CompileFlags>();
            options.positionals("RUN", flags->runs, "run folders whose best kernels are compiled, too",
                                Options::optional);
            options.text("workload", flags->workload, "whose random candidates are compiled");
            options.text("platform", flags->platform, "platform whose code the candidates become");
            options.integer("candidates", flags->candidates, 1, "random candidates to compile");
            options.integer("slow-candidates", flags->slow_candidates, 1,
                            "how many of the candidates are also compiled by the slow pipeline O3");
            options.integer("repetitions", flags->repetitions, 1, "of compiling a best kernel");
            return [flags](Session& session) { return become_bench("compile", flags->request(), session); };
          }};
}

Command bench_measure_command() {
  return {.name = "bench measure",
          .help = "candidates compiled, checked and measured per second, and how well a time repeats",
          .examples = {"graft bench measure", "graft bench measure runs/mm512 --trials 1000"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<MeasurerFlags>();
            options.positionals("RUN", flags->runs,
                                "run folders whose best kernels are repeated (default: the best found)",
                                Options::optional);
            options.text("workload", flags->workload, "whose random candidates are measured");
            options.text("platform", flags->platform, "a native one");
            options.integer("trials", flags->trials, 1, "random candidates");
            options.integer("batch", flags->batch, 1, "candidates a round, as in graft tune");
            options.integer("repetitions", flags->repetitions, 1, "of each candidate; the least counts");
            options.number("minimum-ms", flags->minimum_ms, 0, "one repetition is at least so long");
            options.integer("repeats", flags->repeats, 2, "of a good kernel's whole measurement");
            return [flags](Session& session) { return become_bench("measure", flags->request(), session); };
          }};
}

}  // namespace graft::cli
