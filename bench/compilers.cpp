#include "bench/compilers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/one_line.h"
#include "base/process.h"
#include "base/temporary_folder.h"
#include "bench/c_source.h"
#include "bench/library.h"
#include "codegen/schedule/lower.h"

namespace graft::bench {
namespace {

using namespace codegen;

// The file may go once it is loaded.
Library built(const std::vector<std::string>& compiler, const std::string& source) {
  const base::TemporaryFolder folder("bench");  // goes with what a compiler left in it, also when one fails
  const std::string c = folder / "baseline.c", so = folder / "baseline.so";
  base::replace_file(c, source);
  std::vector<std::string> command = compiler;
  command.insert(command.end(), {"-shared", "-fPIC", "-o", so, c, "-lm"});
  const base::Finished finished = base::run_process(command, std::chrono::minutes(1));
  if (finished.exit_code != 0) throw base::Failure(compiler[0] + ": " + base::one_line(finished.err));
  return Library(so);
}

// nullopt if a computation has no reduction to interchange.
std::vector<std::pair<std::string, LoopProgram>> loops_of(const Computation& computation) {
  std::vector<std::pair<std::string, LoopProgram>> result;
  result.emplace_back("naive", naive_program(computation));
  const Computation form = with_padding_stages(computation);
  Schedule interchanged;
  for (const Stage& stage : form.stages) {
    if (!form.is_reduction(stage) || form.spatial_axes(stage) == 0) continue;
    Step step{StepKind::order, form.tensors[std::size_t(stage.tensor)].name, "", {}, {}};
    const std::size_t last_spatial = std::size_t(form.spatial_axes(stage)) - 1;
    for (std::size_t a = 0; a < stage.axes.size(); ++a) {
      if (a != last_spatial) step.loops.push_back(stage.axes[a].name + ".0");
    }
    step.loops.push_back(stage.axes[last_spatial].name + ".0");
    interchanged.push_back(std::move(step));
  }
  if (interchanged.empty()) return result;
  base::Result<LoopProgram> other = lower(form, interchanged, 1);
  if (other) result.emplace_back("interchanged", std::move(other).value());
  return result;
}

Contender contender_of(const Problem& problem, const std::string& name, const std::vector<std::string>& command,
                       const std::string& source) {
  const auto library = std::make_shared<Library>(built(command, source));
  library->function<void(void* const*)>("baseline_prepare")(problem.buffers().data());
  return {.name = name,
          .call = [library, run = library->function<void(void* const*)>("baseline"),
                   buffers = problem.buffers()] { run(buffers.data()); },
          .check = [&problem] { return problem.outputs_right(); },
          .clear = [&problem] { problem.clear_outputs(); },
          .how = fmt::format("{}", fmt::join(command, " "))};
}

bool is_right(const Contender& contender) {
  contender.clear();
  contender.call();
  return contender.check();
}

}  // namespace

const std::vector<CCompiler>& c_compilers() {
  static const std::vector<CCompiler> all = {
      {"clang", {"clang-19", "-O3", "-march=native"}, {}},
      {"gcc", {"gcc", "-Ofast", "-march=native"}, {"-fno-finite-math-only"}},
  };
  return all;
}

std::vector<Contender> c_contenders(const Problem& problem, const std::vector<std::string>& wanted) {
  const bool wraps = std::any_of(problem.computation().tensors.begin(), problem.computation().tensors.end(),
                                 [](const Tensor& tensor) { return !is_floating(tensor.dtype); });
  std::vector<Contender> contenders;
  for (const auto& [order, program] : loops_of(problem.computation())) {
    const std::string source = to_c(program, "baseline");
    for (const CCompiler& compiler : c_compilers()) {
      const std::string name = compiler.name + "_" + order;
      if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
      std::vector<std::string> command = compiler.command;
      if (wraps) command.emplace_back("-fwrapv");
      Contender contender = contender_of(problem, name, command, source);
      if (!compiler.careful.empty() && !is_right(contender)) {
        command.insert(command.end(), compiler.careful.begin(), compiler.careful.end());
        contender = contender_of(problem, name, command, source);
      }
      contenders.push_back(std::move(contender));
    }
  }
  return contenders;
}

base::Document c_context() {
  base::Document context = base::Document::map();
  for (const CCompiler& compiler : c_compilers()) {
    std::string version = "not found";
    try {
      const base::Finished told = base::run_process({compiler.command[0], "--version"}, std::chrono::seconds(10));
      if (told.exit_code == 0) version = told.out.substr(0, told.out.find('\n'));
    } catch (const base::Failure&) {
      // Not there: its contenders will say so.
    }
    context.set(compiler.name, fmt::format("{}: {}", fmt::join(compiler.command, " "), version));
  }
  return context;
}

}  // namespace graft::bench
