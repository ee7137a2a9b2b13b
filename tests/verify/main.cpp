// Draws random pairs of a workload and a schedule, compiles them for every x86-64 level that this machine has, and runs
// each twice in the worker: with its buffers ending at inaccessible pages, and beginning at such pages. Results
// are compared with plain loops (definitions.h).
//
//   test_verify [--pairs N] [--seed S] [--first W] [--opencl DEVICE [--items N] [--bytes N]]
//
// A workload depends on the seed and its number alone: `--seed S --first W --pairs 5` runs workload W of that seed.
//
// With a device of OpenCL the same pairs run once as kernels there (no pages guard them: Oclgrind sees what they
// touch), in groups of at most N work-items and N bytes; double precision is left out where the device has none.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "base/installation.h"
#include "base/text.h"
#include "base/within.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/space.h"
#include "tasks/host_runner.h"
#include "tasks/platform.h"
#include "tests/support/judged_space.h"
#include "tests/verify/definitions.h"

namespace graft::verify {
namespace {

using codegen::Candidate;
using codegen::LoopProgram;
using codegen::Target;
using datasets::Status;

constexpr int pairs_a_workload = 5;

// The example as the worker is given it; a Failure where its operands are not those of the workload.
codegen::Reference reference_of(const Example& example, const codegen::Computation& computation) {
  codegen::Reference reference;
  const std::size_t count = computation.tensors.size();
  reference.tensors.resize(count);
  reference.magnitude.resize(count);
  reference.reduction_length.resize(count);
  std::size_t operand = 0;
  for (std::size_t t = 0; t < count; ++t) {
    const codegen::Tensor& tensor = computation.tensors[t];
    if (tensor.role == codegen::Role::temporary) continue;
    const bool written = tensor.role == codegen::Role::output;
    if (!written && operand == example.operands.size()) throw base::Failure("more operands than the definition has");
    reference.tensors[t] = written ? example.output : example.operands[operand++];
    if (std::int64_t(reference.tensors[t].size()) != tensor.elements())
      throw base::Failure(fmt::format("{} has {} elements, the definition {}", tensor.name, tensor.elements(),
                                      reference.tensors[t].size()));
    if (!written) continue;
    reference.magnitude[t] = example.magnitude;
    reference.reduction_length[t] = example.roundings;
  }
  if (operand != example.operands.size()) throw base::Failure("fewer operands than the definition has");
  return reference;
}

// Both guards, or a device of OpenCL; and the example that is in force.
class Check {
 public:
  explicit Check(const std::optional<tasks::Platform>& opencl) : opencl_(opencl) {
    if (!opencl_) {
      runners_.push_back(std::make_unique<tasks::HostRunner>(settings(false), maker()));
      runners_.push_back(std::make_unique<tasks::HostRunner>(settings(true), maker()));
      return;
    }
    const std::string worker = base::own_program("graft-worker-opencl").string(), device = opencl_->name.substr(7);
    runners_.push_back(
        std::make_unique<tasks::HostRunner>(settings(false), maker(), std::vector<std::string>{worker, device}));
  }

  void use(const codegen::Workload& workload, const Example& example) {
    reference_ = reference_of(example, workload.computation());
  }
  // The fault of the reference that the program itself checks with; empty if it equals the loops' result.
  std::string problem_of_reference(const codegen::Computation& computation) const {
    const codegen::Reference own = codegen::reference(computation, reference_.tensors);
    for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
      for (std::size_t i = 0; i < reference_.magnitude[t].size(); ++i) {
        const double size = reference_.magnitude[t][i];
        // Functions of types other than f64 are exact to 1e-11.
        const double functions = computation.tensors[t].dtype == codegen::DType::f64 ? 0 : 1e-11 * size;
        const double allowed = tolerance(codegen::DType::f64, reference_.reduction_length[t], size) + functions;
        const double expected = reference_.tensors[t][i], got = own.tensors[t][i];
        if (!base::within(got, expected, allowed, codegen::largest(codegen::DType::f64)))
          return fmt::format("reference: element {} of {} is {} instead of {}", i, computation.tensors[t].name, got,
                             expected);
      }
    }
    return "";
  }

  // Empty when both runs are right.
  std::string problem(const codegen::Workload& workload, const LoopProgram& program, const Target& target) {
    check(program, workload.text());
    const auto binary = opencl_ ? kernels(program, target) : tasks::compile_for_host(program, target);
    if (!binary && opencl_ && binary.reason().text.find("double precision") != std::string::npos) return "";
    if (!binary) return "does not compile: " + binary.reason().text;
    for (const auto& runner : runners_) {
      const datasets::Measurement measurement = runner->run(workload, *binary);
      if (measurement.status != Status::ok)
        return fmt::format("{}: {}", name_of(measurement.status), measurement.reason);
    }
    return "";
  }

 private:
  static tasks::MeasureSettings settings(bool in_front) {
    tasks::MeasureSettings settings;
    settings.repetitions = 0;
    settings.guard_in_front = in_front;
    return settings;
  }
  tasks::MakeReference maker() {
    return [this](const codegen::Workload&, std::uint64_t) { return reference_; };
  }

  base::Result<tasks::HostBinary> kernels(const LoopProgram& program, const Target& target) const {
    auto code = opencl_->device->code(program, target, "", "graft");
    if (!code) return code.reason();
    return tasks::HostBinary{std::move(code->bytes), std::move(code->signature), std::move(code->symbol)};
  }

  codegen::Reference reference_;
  std::optional<tasks::Platform> opencl_;
  std::vector<std::unique_ptr<tasks::HostRunner>> runners_;
};

// A candidate in the words in which it can be looked at.
std::string shown(const Candidate& candidate) {
  const auto steps = codegen::schedule(candidate);
  return steps ? to_text(*steps) : steps.reason().text;
}

class Run {
 public:
  Run(std::uint64_t seed, std::int64_t pairs, const std::optional<tasks::Platform>& opencl)
      : seed_(seed), pairs_(pairs), opencl_(opencl), check_(opencl) {
    if (opencl) {
      targets_ = {opencl->target};
      intrinsics_.clear();
      return;
    }
    for (const char* const id : {"native:v2", "native:v3", "native:v4"}) {
      try {
        targets_.push_back(tasks::platform_named(id).target);
      } catch (const base::UserError& error) {
        std::printf("skipped: %s\n", error.what());
      }
    }
    if (targets_.empty()) throw base::Failure("this machine runs none of the x86-64 levels");
  }

  // An error that is planted must be seen, or nothing that follows means anything.
  void try_out() {
    base::Stream stream(1, "verify");
    Example example = definitions().front().draw(stream);
    example.output.back() += 1;
    const codegen::Workload workload = codegen::parse_workload(example.workload);
    Check check(opencl_);
    check.use(workload, example);
    const std::string problem = check.problem(workload, naive_program(workload.computation()), targets_[0]);
    if (!problem.starts_with("wrong_result")) throw base::Failure("a planted error was not seen: " + problem);
  }

  void from(std::int64_t first) {
    for (std::int64_t number = first; done_ < pairs_; ++number) workload(number);
  }

  int report() const {
    for (const auto* counts : {&counts_, &steps_})
      for (const auto& [name, count] : *counts) std::printf("%6lld  %s\n", static_cast<long long>(count), name.c_str());
    std::printf("%lld pairs of %lld workloads, seed %llu: %lld distinct programs, %d failures\n",
                static_cast<long long>(done_), static_cast<long long>(workloads_),
                static_cast<unsigned long long>(seed_), static_cast<long long>(programs_.size()), failures_);
    return failures_ == 0 ? 0 : 1;
  }

 private:
  void workload(std::int64_t number) {
    base::Stream stream(seed_, "verify", std::uint64_t(number));
    const Definition& definition = definitions()[std::size_t(stream.below(std::int64_t(definitions().size())))];
    const Example example = definition.draw(stream);
    ++workloads_;
    std::string what = example.workload;
    try {
      const codegen::Workload workload = codegen::parse_workload(example.workload);
      check_.use(workload, example);
      const std::string doubt = check_.problem_of_reference(workload.computation());
      if (!doubt.empty()) fail(number, what, doubt);
      std::optional<Candidate> previous;
      for (int i = 0; i < pairs_a_workload && done_ < pairs_; ++i) {
        Target target = targets_[std::size_t(stream.below(std::int64_t(targets_.size())))];
        if (!opencl_) target.threads = 1 + stream.below(2);
        what = fmt::format("{} on {}, {} threads", example.workload, target.cpu, target.threads);
        if (target.threads > 1) ++steps_["for two threads"];
        ++done_;
        ++counts_[std::string(definition.name)];
        std::string problem;
        if (i == 0) {
          const LoopProgram program = naive_program(workload.computation());
          programs_.insert(base::hash_combine(hash(program), hash(workload)));
          problem = check_.problem(workload, program, target);
        } else {
          const auto layouts = !opencl_ && stream.below(3) == 0 ? codegen::Layouts::free : codegen::Layouts::given;
          const codegen::JudgedSpace space = judged_space(workload, target, intrinsics_, layouts);
          const Candidate candidate = with_prefetch(drawn(space, previous, stream), target, stream);
          what += "\n" + shown(candidate);
          count_steps(candidate);
          const auto program = codegen::program(candidate, target);
          if (program) programs_.insert(base::hash_combine(hash(*program), hash(workload)));
          problem = program ? check_.problem(workload, *program, target) : "does not lower: " + program.reason().text;
          previous = candidate;
        }
        if (!problem.empty()) fail(number, what, problem);
      }
    } catch (const base::UserError& error) {
      fail(number, what, error.what());
    } catch (const base::Failure& error) {
      fail(number, what, error.what());
    }
  }

  // A sample, or what search makes of earlier ones.
  static Candidate drawn(const codegen::JudgedSpace& space, const std::optional<Candidate>& previous,
                         base::Stream& stream) {
    const std::int64_t way = previous ? stream.below(3) : 2;
    if (way < 2) {
      const base::Result<Candidate> made =
          way == 0 ? space.mutate(*previous, stream) : space.crossover(*previous, space.sample(stream), stream);
      if (made) return *made;
    }
    return space.sample(stream);
  }

  // One prefetch more, where a few random ones have one that applies: derived sketches have none.
  static Candidate with_prefetch(Candidate candidate, const Target& target, base::Stream& stream) {
    const auto steps = codegen::schedule(candidate);
    if (!steps || steps->empty()) return candidate;
    const codegen::Computation form = candidate.workload.padded();
    for (int tries = 0; tries < 4; ++tries) {
      const codegen::Step& step = (*steps)[std::size_t(stream.below(std::int64_t(steps->size())))];
      if (step.kind != codegen::StepKind::order) continue;
      const codegen::Tensor& tensor = form.tensors[std::size_t(stream.below(std::int64_t(form.tensors.size())))];
      const std::string& loop = step.loops[std::size_t(stream.below(std::int64_t(step.loops.size())))];
      const std::string line = fmt::format("prefetch {} {} {} {}", step.stage, tensor.name, loop, 1 + stream.below(3));
      Candidate more = candidate;
      more.sketch = std::make_shared<codegen::Sketch>(with_lines(*candidate.sketch, line, "prefetch"));
      if (codegen::program(more, target)) return more;
    }
    return candidate;
  }

  // How many schedules have a step of each kind.
  void count_steps(const Candidate& candidate) {
    std::set<std::string> kinds;
    if (const auto steps = codegen::schedule(candidate))
      for (const codegen::Step& step : *steps) kinds.insert("with " + std::string(name_of(step.kind)));
    for (const std::string& kind : kinds) ++steps_[kind];
  }

  void fail(std::int64_t number, const std::string& what, const std::string& problem) {
    ++failures_;
    std::printf("--seed %llu --first %lld --pairs %d: %s\n%s\n", static_cast<unsigned long long>(seed_),
                static_cast<long long>(number), pairs_a_workload, problem.c_str(), what.c_str());
    std::fflush(stdout);
  }

  std::uint64_t seed_;
  std::int64_t pairs_;
  std::optional<tasks::Platform> opencl_;
  std::int64_t done_ = 0, workloads_ = 0;
  int failures_ = 0;
  std::vector<Target> targets_;
  std::vector<codegen::IntrinsicPointer> intrinsics_ = codegen::parse_intrinsics(
      base::read_file(GRAFT_SOURCE_DIR "/examples/intrinsics/outer_4x4.txt"), "outer_4x4.txt");
  Check check_;
  std::map<std::string, std::int64_t> counts_, steps_;
  std::set<std::uint64_t> programs_;
};

int run(const std::vector<std::string>& words) {
  std::map<std::string, std::int64_t> options = {{"--pairs", 5000}, {"--seed", 1},  {"--first", 0},
                                                 {"--opencl", -1},  {"--items", 0}, {"--bytes", 0}};
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const auto option = options.find(words[i]);
    if (option == options.end() || i + 1 == words.size())
      throw base::UserError(words[i],
                            "expected --pairs N, --seed S, --first W, --opencl DEVICE, --items N or --bytes N");
    option->second = base::Cursor(words[i + 1], words[i]).integer();
  }
  std::optional<tasks::Platform> opencl;
  if (const std::int64_t device = options.at("--opencl"); device >= 0) {
    opencl = tasks::platform_named(fmt::format("opencl:{}", device));
    if (options.at("--items") > 0) opencl->target.group_items = options.at("--items");
    if (options.at("--bytes") > 0) opencl->target.group_bytes = options.at("--bytes");
  }
  Run all(std::uint64_t(options.at("--seed")), options.at("--pairs"), opencl);
  all.try_out();
  all.from(options.at("--first"));
  return all.report();
}

}  // namespace
}  // namespace graft::verify

int main(int argc, char** argv) {
  try {
    return graft::verify::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
