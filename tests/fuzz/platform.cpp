// Descriptions of platforms, and code for them. The first line of the text is a workload; the rest is the YAML of a
// target, or numbers that choose one from all that LLVM knows: architecture, cpu, vector bits, a seed, and features,
// negative ones to switch off.
#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "base/document.h"
#include "base/random.h"
#include "base/text.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/compile.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "tests/fuzz/target.h"
#include "tests/support/judged_space.h"

namespace graft::fuzz {
namespace {

std::vector<std::int64_t> numbers_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view word : base::words(text)) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) return {};
    numbers.push_back(number);
  }
  return numbers;
}

std::string chosen(const std::set<std::string>& names, std::int64_t number) {
  return *std::next(names.begin(), std::ptrdiff_t(std::uint64_t(number) % names.size()));
}

// The YAML of a target of these numbers.
std::string target_of(const std::vector<std::int64_t>& numbers) {
  constexpr const char* architectures[] = {"riscv64", "x86_64", "aarch64",  "powerpc64le", "riscv32", "arm",
                                           "s390x",   "i686",   "mips64el", "loongarch64", "ppc64",   "thumbv7em"};
  codegen::Target target;
  target.triple =
      fmt::format("{}-unknown-linux-gnu", architectures[std::uint64_t(numbers[0]) % std::size(architectures)]);
  target.cpu = "generic";
  if (numbers[1] != 0) target.cpu = chosen(codegen::cpu_names(target), numbers[1]);
  const std::set<std::string> known = codegen::feature_names(target);
  for (std::size_t i = 4; i < numbers.size(); ++i) {
    if (!target.features.empty()) target.features += ',';
    target.features += (numbers[i] < 0 ? "-" : "+") + chosen(known, numbers[i]);
  }
  target.vector_bits = numbers[2];
  target.vector_registers = 32;
  return to_document(target).to_pretty_json();
}

void compile_for(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const auto workload = accepted([&] { return codegen::parse_workload(text.substr(0, end)); });
  if (!workload || codegen::flops(*workload) > 100000) return;
  text.remove_prefix(end);
  const std::vector<std::int64_t> numbers = numbers_of(text);
  const auto target = accepted([&] {
    const std::string yaml = numbers.size() < 4 ? std::string(text) : target_of(numbers);
    codegen::Target read = codegen::target_from(base::parse_yaml(yaml, "text"));
    codegen::check_target(read);
    return read;
  });
  if (!target) return;
  // What is refused nowhere is compiled, or fails with a reason: nothing ends the process.
  const auto compiled = [&](const codegen::LoopProgram& program) {
    try {
      (void)codegen::compile(program, *target);
    } catch (const codegen::GaveUp&) {
    }
  };
  compiled(codegen::naive_program(workload->computation()));
  base::Stream stream(numbers.size() < 4 ? 1 : std::uint64_t(numbers[3]), "platform");
  const codegen::JudgedSpace space = codegen::judged_space(*workload, *target);
  if (space.sketches().empty()) return;
  for (int i = 0; i < 2; ++i)
    if (const auto program = codegen::program(space.sample(stream), *target)) compiled(*program);
}

}  // namespace

void examine(std::string_view text) {
  // A thread keeps what it made for each target until it ends.
  std::thread([&] { compile_for(text); }).join();
}

}  // namespace graft::fuzz
