// graft-bench: `graft bench` starts it, so that `graft` itself loads no peer library.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "bench/kernels.h"

namespace {

using namespace graft;

std::string cell(const bench::KernelRow& row, const bench::Timing& timing) {
  if (!timing.right) return "wrong result";
  const double gflops = row.flops * 1e-9;
  return fmt::format("{:.1f} ({:.1f}..{:.1f})", gflops / timing.best, gflops / timing.worst, gflops / timing.best);
}

void print(const std::vector<bench::KernelRow>& rows) {
  for (const bench::KernelRow& row : rows) {
    fmt::print("{}\n  {:<20} {:<26} {}\n", row.workload, "", "GFLOP/s (worst..best)", "graft is faster by");
    fmt::print("  {:<20} {:<26}\n", "graft", cell(row, row.ours));
    for (const auto& [name, timing] : row.baselines) {
      fmt::print("  {:<20} {:<26} {:.2f}x\n", name, cell(row, timing), timing.best / row.ours.best);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("Times graft beside the libraries and compilers that people would otherwise use", "graft bench");
  app.require_subcommand(1);
  bool json = false;
  std::vector<std::string> runs;
  bench::KernelSettings settings;
  CLI::App* kernels =
      app.add_subcommand("kernels", "the best kernels of runs that `graft tune` made, beside OpenBLAS and clang -O3");
  kernels->add_option("RUN", runs, "run folders")->required();
  kernels->add_option("--repetitions", settings.repetitions, "of each kernel, taken in turn")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  kernels->add_flag("--json", json, "one object on standard output");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    for (const char* variable : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
      if (std::getenv(variable) != nullptr) {
        throw base::UserError(variable, "is set and slows OpenBLAS down; unset it, or the comparison is worth nothing");
      }
    }
    std::vector<bench::KernelRow> rows;
    for (const std::string& run : runs) {
      for (bench::KernelRow& row : bench::bench_kernels(run, settings)) rows.push_back(std::move(row));
    }
    if (json) {
      base::Document document = base::Document::map();
      document.set("schema", 1).set("context", bench::bench_context()).set("rows", bench::to_document(rows));
      fmt::print("{}\n", document.to_json());
    } else {
      print(rows);
    }
  } catch (const base::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return 0;
}
