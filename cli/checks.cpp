#include "cli/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "codegen/expression/reference.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/link.h"
#include "codegen/schedule/lower.h"
#include "meta/network.h"
#include "tasks/host_runner.h"
#include "tasks/opencl.h"
#include "tasks/platform.h"

namespace graft::cli {
namespace {

using Look = std::function<std::string()>;  // a description of what was found; throws if nothing was

Check checked(std::string name, bool required, std::string remedy, const Look& look) {
  Check check{std::move(name), required, false, "", std::move(remedy)};
  try {
    check.found = look();
    check.good = true;
  } catch (const std::exception& error) {
    check.found = error.what();
  }
  if (check.good) check.remedy.clear();
  return check;
}

// First line that a program prints with --version.
std::string version_of(const std::string& program) {
  const base::Finished finished = base::run_process({program, "--version"}, std::chrono::seconds(20));
  if (finished.exit_code != 0) throw base::Failure(fmt::format("{} --version fails", program));
  return finished.out.substr(0, finished.out.find('\n'));
}

codegen::Workload small_workload() {
  return codegen::parse_workload("matmul(m=8,n=8,k=8)");
}

std::string compiled_for(const std::string& triple, const std::string& cpu) {
  codegen::Target target;
  target.triple = triple;
  target.cpu = cpu;
  codegen::check_target(target);
  const auto object = codegen::compile(codegen::naive_program(small_workload().computation()), target);
  if (!object) throw base::Failure(object.reason().text);
  return fmt::format("compiles for {}", cpu);
}

std::string linked() {
  const codegen::Computation computation = small_workload().computation();
  const codegen::Target target = codegen::host_target();
  const auto object = codegen::compile(codegen::naive_program(computation), target);
  if (!object) throw base::Failure(object.reason().text);
  const auto library = codegen::link_shared({&*object});
  if (!library) throw base::Failure(library.reason().text);
  return fmt::format("links in process ({} bytes)", library->size());
}

std::string worker_runs() {
  tasks::MeasureSettings settings;
  settings.repetitions = 0;  // checks only
  tasks::HostRunner runner(settings);
  const codegen::Workload workload = small_workload();
  const datasets::Measurement result =
      runner.run(workload, codegen::naive_program(workload.computation()), codegen::host_target());
  if (result.status != datasets::Status::ok) {
    throw base::Failure(fmt::format("a plain matmul ends as {}: {}", datasets::name_of(result.status), result.reason));
  }
  return "runs a plain matmul, results are right";
}

std::string level_runs(const std::string& id) {
  const tasks::Platform platform = tasks::platform_named(id);
  return fmt::format("{} bit vectors", platform.target.vector_bits);
}

std::string environment() {
  std::string set;
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
    if (const char* value = std::getenv(name)) set += fmt::format("{}{}={}", set.empty() ? "" : ", ", name, value);
  }
  if (!set.empty()) throw base::Failure(set + " is set");
  return "no variable cripples OpenBLAS";
}

}  // namespace

std::vector<Check> checks_of_this_machine() {
  const std::string install_llvm = "install llvm-19 and liblld-19, and build again";
  std::vector<Check> checks;
  const auto add = [&](std::string name, bool required, std::string remedy, const Look& look) {
    checks.push_back(checked(std::move(name), required, std::move(remedy), look));
  };
  add("worker", true, "build graft-worker, or install it next to graft", worker_runs);
  add("LLVM x86-64", true, install_llvm, [] { return compiled_for("x86_64-unknown-linux-gnu", "x86-64-v3"); });
  add("LLVM riscv64", true, install_llvm, [] { return compiled_for("riscv64-unknown-linux-gnu", "sifive-p450"); });
  add("LLVM aarch64", true, install_llvm, [] { return compiled_for("aarch64-unknown-linux-gnu", "cortex-a72"); });
  add("lld", true, install_llvm, linked);
  for (const std::string level : {"v2", "v3", "v4"}) {
    add("native:" + level, false, "none: this cpu has no such instructions; the other levels work",
        [&] { return level_runs("native:" + level); });
  }
  add("platforms", true, "install share/graft/platforms next to bin/graft", [] {
    const auto ids = tasks::platform_ids();
    const auto shipped =
        std::count_if(ids.begin(), ids.end(), [](const std::string& id) { return !id.starts_with("native"); });
    if (shipped == 0) throw base::Failure("no platform is shipped with the program");
    return fmt::format("{} shipped", shipped);
  });
  for (const std::string program : {"qemu-riscv64", "qemu-aarch64"}) {
    add(program, false, "apt install qemu-user (checks of cross-compiled code are left out)",
        [&] { return version_of(program); });
  }
  add("OpenCL", false, "apt install ocl-icd-libopencl1 and the GPU's driver (pocl-opencl-icd runs kernels on this cpu)",
      [] { return base::join(tasks::opencl_devices(), ", "); });
  add("clang-19", false, "apt install clang-19 (benchmarks, and `--call` of a file of C, need it)",
      [] { return version_of("clang-19"); });
  add("environment", false, "unset it before you compare with OpenBLAS", environment);
  return checks;
}

}  // namespace graft::cli
