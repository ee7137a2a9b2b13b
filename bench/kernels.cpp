#include "bench/kernels.h"

#include <cblas.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>

#include "base/files.h"
#include "base/process.h"
#include "base/statistics.h"
#include "bench/c_source.h"
#include "codegen/expression/reference.h"
#include "codegen/machine/link.h"
#include "codegen/schedule/lower.h"
#include "search/run_directory.h"
#include "tasks/platform.h"

namespace graft::bench {
namespace {

using namespace codegen;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// 64-byte aligned memory of floats.
class Memory {
 public:
  explicit Memory(std::int64_t bytes) : bytes_(std::max<std::int64_t>(64, (bytes + 63) / 64 * 64)) {
    data_ = std::aligned_alloc(64, std::size_t(bytes_));
    std::memset(data_, 0, std::size_t(bytes_));
  }
  ~Memory() { std::free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data() const { return data_; }
  float* floats() const { return static_cast<float*>(data_); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_;
  void* data_;
};

// A shared object that lies in memory or in a file, open as long as this lives.
class Library {
 public:
  static Library from_bytes(const std::string& bytes) {
    const int descriptor = memfd_create("graft-bench", MFD_CLOEXEC);
    if (descriptor < 0 || write(descriptor, bytes.data(), bytes.size()) != ssize_t(bytes.size())) {
      throw base::Failure("cannot hold a kernel in memory");
    }
    Library library(fmt::format("/proc/self/fd/{}", descriptor));
    close(descriptor);
    return library;
  }
  explicit Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw base::Failure(fmt::format("cannot load {}: {}", path, dlerror()));
  }
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Library& operator=(Library&&) = delete;

  template <class Function>
  Function* function(const std::string& name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name.c_str()));
  }

 private:
  void* handle_;
};

// Goes with what clang left in it, also when a kernel fails.
struct TemporaryFolder {
  TemporaryFolder() : path((std::filesystem::temp_directory_path() / "graft-bench-XXXXXX").string()) {
    if (mkdtemp(path.data()) == nullptr) throw base::Failure("cannot make a temporary folder");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path;
};

// The memory of one workload: parameters in the order of the computation's tensors (without temporaries).
struct Parameters {
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<void*> pointers;
};

Parameters parameters_of(const Computation& computation, const Reference& expected) {
  Parameters parameters;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const Tensor& tensor = computation.tensors[t];
    if (tensor.role == Role::temporary) continue;
    if (tensor.dtype != DType::f32)
      throw base::UserError(fmt::format("bench compares f32 only; {} is {}", tensor.name, name_of(tensor.dtype)));
    parameters.memory.push_back(std::make_unique<Memory>(tensor.bytes()));
    if (tensor.role != Role::output) {
      std::copy(expected.tensors[t].begin(), expected.tensors[t].end(), parameters.memory.back()->floats());
    }
    parameters.pointers.push_back(parameters.memory.back()->data());
  }
  return parameters;
}

void clear_outputs(const Computation& computation, const Parameters& parameters) {
  std::size_t position = 0;
  for (const Tensor& tensor : computation.tensors) {
    if (tensor.role == Role::temporary) continue;
    const Memory& memory = *parameters.memory[position++];
    if (tensor.role == Role::output) std::memset(memory.data(), 0xff, std::size_t(memory.bytes()));
  }
}

bool outputs_right(const Computation& computation, const Reference& expected, const Parameters& parameters) {
  std::size_t position = 0;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const Tensor& tensor = computation.tensors[t];
    if (tensor.role == Role::temporary) continue;
    const float* values = parameters.memory[position++]->floats();
    if (tensor.role != Role::output) continue;
    for (std::size_t i = 0; i < expected.tensors[t].size(); ++i) {
      const double error = std::abs(double(values[i]) - expected.tensors[t][i]);
      if (!(error <= tolerance(DType::f32, expected.reduction_length[t], expected.magnitude[t][i]))) return false;
    }
  }
  return true;
}

struct Contender {
  std::string name;
  std::function<void()> call;
  Timing timing;
  int calls = 1;  // in one repetition
  int repetitions = 0;
  std::vector<double> seconds;
};

void measure_in_turn(std::vector<Contender>& contenders, const KernelSettings& settings) {
  for (Contender& contender : contenders) {
    const double begin = thread_seconds();
    contender.call();
    const double once = thread_seconds() - begin;
    contender.repetitions = once > settings.slow_seconds ? 3 : settings.repetitions;
    contender.calls = std::max(1, int(std::ceil(settings.minimum_seconds / std::max(once, 1e-9))));
  }
  for (int repetition = 0; repetition < settings.repetitions; ++repetition) {
    for (Contender& contender : contenders) {
      if (repetition >= contender.repetitions) continue;
      const double begin = thread_seconds();
      for (int call = 0; call < contender.calls; ++call) contender.call();
      contender.seconds.push_back((thread_seconds() - begin) / contender.calls);
    }
  }
  for (Contender& contender : contenders) {
    contender.timing.best = *std::min_element(contender.seconds.begin(), contender.seconds.end());
    contender.timing.worst = *std::max_element(contender.seconds.begin(), contender.seconds.end());
    contender.timing.median = base::median(contender.seconds);
  }
}

// clang-19 on the C text; nullopt where there is no clang.
std::optional<Library> built_by_clang(const std::string& source, const std::filesystem::path& folder,
                                      const std::string& name) {
  const std::filesystem::path c = folder / (name + ".c"), so = folder / (name + ".so");
  base::replace_file(c, source);
  const base::Finished finished =
      base::run_process({"clang-19", "-O3", "-march=native", "-shared", "-fPIC", "-o", so.string(), c.string(), "-lm"},
                        std::chrono::minutes(1));
  if (finished.exit_code != 0) throw base::Failure("clang-19: " + finished.err.substr(0, 500));
  return Library(so.string());
}

// The plain nest of every stage, and the same with the last reduction loop outside of the last spatial one.
std::vector<std::pair<std::string, LoopProgram>> naive_programs(const Computation& computation) {
  const Computation form = with_padding_stages(computation);
  Schedule interchanged;
  for (const Stage& stage : form.stages) {
    if (!form.is_reduction(stage)) continue;
    Step step{StepKind::order, form.tensors[std::size_t(stage.tensor)].name, "", {}, {}};
    const std::size_t last_spatial = std::size_t(form.spatial_axes(stage)) - 1;
    for (std::size_t a = 0; a < stage.axes.size(); ++a) {
      if (a != last_spatial) step.loops.push_back(stage.axes[a].name + ".0");
    }
    step.loops.push_back(stage.axes[last_spatial].name + ".0");
    interchanged.push_back(std::move(step));
  }
  std::vector<std::pair<std::string, LoopProgram>> result;
  result.emplace_back("clang_naive", naive_program(computation));
  base::Result<LoopProgram> other = lower(form, interchanged, 1);
  if (other) result.emplace_back("clang_interchanged", std::move(other).value());
  return result;
}

// A call with `count` pointers, for C functions whose parameters are only known now.
std::function<void()> call_with(const Library& library, const std::string& name, const std::vector<void*>& p) {
  switch (p.size()) {
    case 2:
      return [f = library.function<void(void*, void*)>(name), p] { f(p[0], p[1]); };
    case 3:
      return [f = library.function<void(void*, void*, void*)>(name), p] { f(p[0], p[1], p[2]); };
    case 4:
      return [f = library.function<void(void*, void*, void*, void*)>(name), p] { f(p[0], p[1], p[2], p[3]); };
    default:
      throw base::UserError(fmt::format("bench compares kernels of 2 to 4 parameters, not {}", p.size()));
  }
}

KernelRow bench_one(const Workload& workload, const datasets::Trial& best, const tasks::Platform& platform,
                    const KernelSettings& settings, const std::filesystem::path& folder) {
  const Computation c = computation(workload);
  const Reference expected = reference(c, 1);
  const Parameters parameters = parameters_of(c, expected);
  base::Result<LoopProgram> program = codegen::program(best.candidate, platform.target);
  if (!program)
    throw base::UserError(workload.text, "the recorded schedule does not lower today: " + program.reason().text);
  base::Result<Object> object = compile(*program, platform.target);
  if (!object) throw base::UserError(workload.text, object.reason().text);
  base::Result<std::string> linked = link_shared({&*object});
  if (!linked) throw base::Failure(linked.reason().text);
  const Library ours = Library::from_bytes(*linked);
  const Memory workspace(object->signature.workspace_bytes);
  void* const* buffers = parameters.pointers.data();
  ours.function<void(void* const*, void*)>(object->symbol + "_prepare")(buffers, workspace.data());
  auto* const run = ours.function<void(void* const*, void*, void*, void*)>(object->symbol + "_run");

  std::vector<Contender> contenders;
  contenders.push_back({"graft", [&] { run(buffers, workspace.data(), nullptr, nullptr); }, {}, 1, 0, {}});
  if (workload.text.starts_with("matmul(")) {
    const int m = int(c.tensors[0].shape[0]), k = int(c.tensors[0].shape[1]), n = int(c.tensors[1].shape[1]);
    float *a = parameters.memory[0]->floats(), *b = parameters.memory[1]->floats(),
          *out = parameters.memory[2]->floats();
    contenders.push_back(
        {"openblas",
         [=] { cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, a, k, b, n, 0.0f, out, n); },
         {},
         1,
         0,
         {}});
  }
  std::vector<Library> libraries;
  for (const auto& [name, naive] : naive_programs(c)) {
    std::optional<Library> library = built_by_clang(to_c(naive, "baseline"), folder, name);
    libraries.push_back(std::move(*library));
    contenders.push_back({name, call_with(libraries.back(), "baseline", parameters.pointers), {}, 1, 0, {}});
  }

  for (Contender& contender : contenders) {
    clear_outputs(c, parameters);
    contender.call();
    contender.timing.right = outputs_right(c, expected, parameters);
  }
  measure_in_turn(contenders, settings);
  KernelRow row{workload.text, double(flops(workload)), contenders[0].timing, {}};
  for (std::size_t i = 1; i < contenders.size(); ++i) row.baselines[contenders[i].name] = contenders[i].timing;
  return row;
}

}  // namespace

std::vector<KernelRow> bench_kernels(const std::filesystem::path& run, const KernelSettings& settings) {
  openblas_set_num_threads(1);
  const search::RunContent content = search::read_run(run);
  const tasks::Platform platform = tasks::platform_named(content.request.at("platform").as_string());
  if (!std::holds_alternative<tasks::Native>(platform.how)) {
    throw base::UserError(
        run.string(), fmt::format("{} is not this machine; bench compares kernels of native platforms", platform.name));
  }
  const TemporaryFolder folder;
  std::vector<Workload> workloads;
  for (const datasets::Trial& trial : content.journal.trials) {
    if (std::find(workloads.begin(), workloads.end(), trial.candidate.workload) == workloads.end())
      workloads.push_back(trial.candidate.workload);
  }
  std::vector<KernelRow> rows;
  for (const Workload& workload : workloads) {
    const std::optional<datasets::Trial> best = search::best_trial(content.journal.trials, workload);
    if (best) rows.push_back(bench_one(workload, *best, platform, settings, folder.path));
  }
  return rows;
}

base::Document to_document(const std::vector<KernelRow>& rows) {
  base::Document list = base::Document::list();
  for (const KernelRow& row : rows) {
    const auto gflops = [&](const Timing& timing) { return row.flops / timing.best * 1e-9; };
    base::Document baselines = base::Document::map(), spread = base::Document::map();
    const auto add_spread = [&](const std::string& name, const Timing& timing) {
      base::Document entry = base::Document::map();
      entry.set("best_seconds", timing.best).set("median_seconds", timing.median).set("worst_seconds", timing.worst);
      entry.set("right", timing.right);
      spread.set(name, entry);
    };
    add_spread("graft", row.ours);
    for (const auto& [name, timing] : row.baselines) {
      baselines.set(name, gflops(timing));
      add_spread(name, timing);
    }
    base::Document entry = base::Document::map();
    entry.set("name", row.workload).set("value", gflops(row.ours)).set("unit", "GFLOP/s");
    entry.set("baselines", baselines).set("timings", spread);
    list.push(entry);
  }
  return list;
}

base::Document bench_context() {
  base::Document context = base::Document::map();
  context.set("openblas_core", std::string(openblas_get_corename()));
  context.set("openblas_config", std::string(openblas_get_config()));
  context.set("threads", 1).set("clock", "thread_cpu").set("estimator", "best of the repetitions, taken in turn");
  const base::Finished clang = base::run_process({"clang-19", "--version"}, std::chrono::seconds(10));
  context.set("clang", clang.out.substr(0, clang.out.find('\n')));
  return context;
}

}  // namespace graft::bench
