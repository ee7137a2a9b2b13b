#include "bench/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/statistics.h"
#include "bench/bandwidth.h"
#include "bench/blas.h"
#include "bench/compilers.h"
#include "bench/library.h"
#include "bench/onednn.h"
#include "bench/peak.h"
#include "bench/problem.h"
#include "bench/threads.h"
#include "bench/tuned.h"
#include "codegen/program/peak.h"
#include "codegen/schedule/candidate_program.h"
#include "study/knowledge/answer.h"

namespace graft::bench {
namespace {

using namespace codegen;

constexpr const char* serial_name = "graft_1_thread";

bool is_among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_wanted(std::vector<Contender> found, const std::vector<std::string>& wanted, std::vector<Contender>& to) {
  for (Contender& contender : found) {
    if (is_among(contender.name, wanted)) to.push_back(std::move(contender));
  }
}

// The problem's parameters as stored for a program: in separate memory if it has a layout for them.
class Stored {
 public:
  Stored(const Problem& problem, const LoopProgram& program) : problem_(problem), buffers_(problem.buffers()) {
    for (std::size_t p = 0; p < buffers_.size(); ++p) {
      if (program.buffers[p].layout.is_plain()) continue;
      own_.push_back({int(p), program.buffers[p], Memory(program.buffers[p].bytes())});
      buffers_[p] = own_.back().memory.data();
    }
    pack();
  }
  const std::vector<void*>& buffers() const { return buffers_; }
  void pack() const {
    for (const OwnBuffer& own : own_) {
      const DType type = own.buffer.dtype;
      const std::string stored =
          as_bytes(packed(own.buffer.layout, own.buffer.shape, numbers_from(bytes_of_parameter(own), type)), type);
      std::copy(stored.begin(), stored.end(), static_cast<char*>(own.memory.data()));
    }
  }
  void unpack() const {  // outputs
    for (const OwnBuffer& own : own_) {
      if (own.buffer.role != Role::output) continue;
      const DType type = own.buffer.dtype;
      const std::string_view stored(static_cast<const char*>(own.memory.data()), std::size_t(own.buffer.bytes()));
      const std::string plain =
          as_bytes(unpacked(own.buffer.layout, own.buffer.shape, numbers_from(stored, type)), type);
      std::copy(plain.begin(), plain.end(), static_cast<char*>(problem_.buffers()[std::size_t(own.parameter)]));
    }
  }

 private:
  struct OwnBuffer {
    int parameter;
    Buffer buffer;
    Memory memory;
  };
  std::string_view bytes_of_parameter(const OwnBuffer& own) const {
    return {static_cast<const char*>(problem_.buffers()[std::size_t(own.parameter)]), std::size_t(own.buffer.bytes())};
  }
  const Problem& problem_;
  std::vector<void*> buffers_;
  std::vector<OwnBuffer> own_;
};

// "X 0 1/16 2 3 1%16, Y ...": the parameters that are not stored as the workload says.
std::string layouts_of(const LoopProgram& program) {
  std::string text;
  for (const Buffer& buffer : program.buffers)
    if (!buffer.layout.is_plain())
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", buffer.name, to_text(buffer.layout));
  return text;
}

// Ours as code of one pipeline. `problem` must outlive it.
Contender our_contender(const Problem& problem, const LoopProgram& program, const Target& target,
                        const Pipeline& pipeline, Parallel parallel) {
  const auto kernel = std::make_shared<Kernel>(program, target, pipeline);
  const auto stored = std::make_shared<const Stored>(problem, program);
  kernel->prepare(stored->buffers().data());
  return {.name = "graft",
          .call = [kernel, stored, parallel] { kernel->run(stored->buffers().data(), parallel); },
          .check =
              [&problem, stored, amplification = program.amplification] {
                stored->unpack();
                return problem.outputs_right(amplification);
              },
          .clear =
              [&problem, stored] {
                problem.clear_outputs();
                stored->pack();
              },
          .how = pipeline.name};
}

KernelRow bench_one(const Tuned& best, const std::vector<std::string>& wanted, const KernelSettings& settings,
                    ThreadPool& pool, double bandwidth) {
  const Target& target = best.platform.target;
  const Problem problem(best.workload);
  const base::Result<LoopProgram> program = codegen::program(best.trial.candidate, target);
  if (!program) {
    throw base::UserError(
        best.workload.text(),
        fmt::format("the recorded schedule does not lower today: {}; tune again", program.reason().text));
  }
  const Parallel parallel = settings.threads > 1 ? pool.parallel() : in_order();

  std::vector<Contender> contenders{peak_contender(target, int(settings.threads), parallel)};
  if (settings.rebuild) {
    for (const Pipeline& pipeline : pipelines()) {
      contenders.push_back(our_contender(problem, *program, target, pipeline, parallel));
    }
  } else {
    contenders.push_back(our_contender(problem, *program, target, pipeline_named(best.pipeline, target), parallel));
  }
  const std::size_t first_baseline = contenders.size();
  if (is_among(serial_name, wanted)) {
    contenders.push_back(our_contender(problem, *program, target, pipeline_named(best.pipeline, target), in_order()));
    contenders.back().name = serial_name;
  }
  add_wanted(openblas_contenders(problem, int(settings.threads)), wanted, contenders);
  add_wanted(onednn_contenders(problem, int(settings.threads)), wanted, contenders);
  add_wanted(c_contenders(problem, wanted), wanted, contenders);
  measure_in_turn(contenders, settings.timing);

  KernelRow row{.run = best.run,
                .workload = best.workload.text(),
                .pipeline = {},
                .layouts = layouts_of(*program),
                .trial = best.trial.index,
                .trials = best.trials,
                .program = base::to_hex(hash(*program)),
                .flops = problem.flops(),
                .peak_flops = peak_flops(peak_program(target)) * double(settings.threads),
                .memory_gigabytes_per_second = bandwidth,
                .ours = {},
                .peak = {},
                .baselines = {}};
  // A wrong one is never the fastest, and shows when it is the only one.
  const auto fastest = std::min_element(contenders.begin() + 1, contenders.begin() + std::ptrdiff_t(first_baseline),
                                        [](const Contender& a, const Contender& b) {
                                          if (a.timing.right != b.timing.right) return a.timing.right;
                                          return a.timing.best < b.timing.best;
                                        });
  row.ours = *fastest;
  row.pipeline = fastest->how;
  row.peak = contenders.front();
  row.baselines.assign(contenders.begin() + std::ptrdiff_t(first_baseline), contenders.end());
  // What they hold on to goes with the problem.
  for (Contender* contender : {&row.ours, &row.peak})
    *contender = {contender->name, {}, {}, {}, contender->how, contender->timing};
  for (Contender& contender : row.baselines) contender = {contender.name, {}, {}, {}, contender.how, contender.timing};
  if (study::does_less_arithmetic(best.trial.candidate)) row.ours.how += " (Winograd)";
  return row;
}

}  // namespace

const std::vector<std::string>& baseline_names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names{"openblas",   "onednn",       "onednn_direct",    "onednn_winograd",
                                   "onednn_any", "onednn_plain", "onednn_reordered", serial_name};
    for (const CCompiler& compiler : c_compilers()) {
      for (const char* order : {"_naive", "_interchanged"}) names.push_back(compiler.name + order);
    }
    return names;
  }();
  return all;
}

std::vector<std::string> default_baselines(int threads) {
  const base::Document compilers = c_context();
  std::vector<std::string> names;
  for (const std::string& name : baseline_names()) {
    const base::Document* compiler = compilers.find(name.substr(0, name.find('_')));
    const bool there = compiler == nullptr || !compiler->as_string().ends_with("not found");
    const bool fits = threads > 1 ? compiler == nullptr : name != serial_name;
    if (there && fits) names.push_back(name);
  }
  return names;
}

std::vector<KernelRow> bench_kernels(const KernelSettings& settings, const std::function<void(std::string)>& note) {
  for (const std::string& name : settings.baselines) {
    if (!is_among(name, baseline_names())) {
      throw base::UserError("--baselines",
                            fmt::format("unknown baseline '{}'{}", name, base::did_you_mean(name, baseline_names())));
    }
  }
  const std::vector<std::string> wanted =
      settings.baselines.empty() ? default_baselines(int(settings.threads)) : settings.baselines;
  std::vector<Tuned> tuned;  // refusals come before anything is measured
  for (const std::string& run : settings.runs) {
    for (Tuned& best : tuned_kernels(run, settings.trials)) tuned.push_back(std::move(best));
  }
  ThreadPool pool(int(settings.threads));
  const double bandwidth = stream_gigabytes_per_second(
      int(settings.threads), settings.threads > 1 ? pool.parallel() : in_order(), settings.timing);
  std::vector<KernelRow> rows;
  for (const Tuned& best : tuned) {
    note(fmt::format("{}: {}", best.run, best.workload.text()));
    rows.push_back(bench_one(best, wanted, settings, pool, bandwidth));
  }
  return rows;
}

std::vector<Summary> summaries(const std::vector<KernelRow>& rows) {
  std::vector<Summary> result;
  for (const std::string& name : baseline_names()) {
    std::vector<double> speedups;
    for (const KernelRow& row : rows) {
      for (const Contender& baseline : row.baselines) {
        if (baseline.name == name && baseline.timing.right && row.ours.timing.right)
          speedups.push_back(baseline.timing.best / row.ours.timing.best);
      }
    }
    if (speedups.empty()) continue;
    const double speedup = base::geometric_mean(speedups);
    result.push_back({name, int(speedups.size()), speedup, 1 - 1 / speedup});
  }
  return result;
}

std::vector<Nearness> nearness(const std::vector<KernelRow>& rows) {
  std::map<std::string, std::vector<double>> shares;
  for (const KernelRow& row : rows) {
    if (row.ours.timing.right) shares[row.workload].push_back(row.gflops(row.ours.timing) / row.peak_gflops());
  }
  std::vector<Nearness> result;
  for (const auto& [workload, values] : shares) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    result.push_back({workload, int(values.size()), base::median(values), *least, *most});
  }
  return result;
}

bool all_right(const std::vector<KernelRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const KernelRow& row) { return row.ours.timing.right; });
}

}  // namespace graft::bench
