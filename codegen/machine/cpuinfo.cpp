#include "codegen/machine/cpuinfo.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/link.h"

namespace graft::codegen {
namespace {

// The value of "KEY : value" in the first line with that key.
std::string value_of(const std::string& cpuinfo, std::string_view key) {
  for (const std::string_view line : base::split(cpuinfo, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && base::trim(line.substr(0, colon)) == key)
      return std::string(base::trim(line.substr(colon + 1)));
  }
  return "";
}

bool has_word(const std::string& list, std::string_view word) {
  for (const std::string_view one : base::split(list, ' '))
    if (one == word) return true;
  return false;
}

bool is_known(const Target& target) {
  try {
    check_target(target);
    return true;
  } catch (const base::UserError&) {
    return false;
  }
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "zba" of "zba1p0": older kernels add versions.
std::string_view without_version(std::string_view extension) {
  std::size_t end = extension.size();
  while (end > 0 && is_digit(extension[end - 1])) --end;
  if (end == extension.size() || end == 0 || extension[end - 1] != 'p') return extension;
  std::size_t begin = end - 1;
  while (begin > 0 && is_digit(extension[begin - 1])) --begin;
  return begin == end - 1 ? extension : extension.substr(0, begin);
}

// "rv64imafdcv_zba_zvl256b": letters, then names. `has_rvv`: whether "v" means RVV 1.0.
void read_riscv(const std::string& isa, bool has_rvv, Target& target) {
  std::vector<std::string> features;
  const auto add = [&](const std::string& name) {
    Target with = target;
    with.features = "+" + name;
    if (is_known(with)) features.push_back("+" + name);  // LLVM need not know the latest
  };
  const std::vector<std::string_view> parts = base::split(isa, '_');
  const auto add_letter = [&](char letter) {
    if (letter == 'g')
      for (const char* each : {"m", "a", "f", "d"}) add(each);
    else if (letter != 'i' && (letter != 'v' || has_rvv))
      add(std::string(1, letter));
  };
  const std::string_view letters = without_version(parts[0]);
  for (const char letter : letters.substr(std::min<std::size_t>(4, letters.size())))
    add_letter(letter);  // after "rv64"
  for (const std::string_view part : std::span(parts).subspan(1)) {
    const std::string_view name = without_version(part);
    if (name.size() == 1)
      add_letter(name[0]);
    else if (has_rvv || !name.starts_with("zv"))
      add(std::string(name));
  }
  if (isa.empty()) features = {"+m", "+a", "+f", "+d", "+c"};
  target.features = base::join(features, ",");
  std::int64_t longest = 128;
  bool vectors = false;
  for (const std::string& feature : features) {
    vectors = vectors || feature == "+v";
    std::int64_t bits = 0;
    if (feature.starts_with("+zvl")) std::from_chars(feature.data() + 4, feature.data() + feature.size(), bits);
    longest = std::max(longest, bits);
  }
  if (vectors) target.vector_bits = longest;
}

// Those of Linux's names that kernels gain from and no length of vectors depends on.
std::string arm_features(const std::string& listed) {
  std::vector<std::string> features;
  for (const auto& [linux_name, name] :
       {std::pair{"asimddp", "+dotprod"}, {"asimdhp", "+fullfp16"}, {"i8mm", "+i8mm"}, {"bf16", "+bf16"}})
    if (has_word(listed, linux_name)) features.emplace_back(name);
  return base::join(features, ",");
}

// Runs instead of anything else: no kernel in it.
base::Result<std::string> assembled(const Target& target, const std::string& text) {
  llvm::LLVMContext context;
  const Pipeline pipeline{"probe", "", "", 1, {}};
  llvm::TargetMachine& machine = target_machine(target, pipeline.codegen_level);
  const std::unique_ptr<llvm::Module> module = empty_module(context, machine);
  module->setModuleInlineAsm(".globl _start\n_start:\n" + text);
  auto object = generate(*module, machine, pipeline, llvm::CodeGenFileType::ObjectFile);
  if (!object) return object.reason();
  return link_program({*object});
}

}  // namespace

Target target_of_cpuinfo(const std::string& machine, const std::string& cpuinfo) {
  initialise_llvm();
  Target target;
  target.triple = machine + "-unknown-linux-gnu";
  target.vector_registers = 32;
  if (machine == "riscv64") {
    target.cpu = llvm::sys::detail::getHostCPUNameForRISCV(cpuinfo).str();
    const std::string design = value_of(cpuinfo, "uarch");
    const bool by_design = target.cpu.empty();
    if (by_design) {  // "spacemit,x60" is LLVM's spacemit-x60
      target.cpu = design;
      std::replace(target.cpu.begin(), target.cpu.end(), ',', '-');
    }
    if (target.cpu.empty() || !is_known(target)) target.cpu = "generic-rv64";
    const std::string vendor = value_of(cpuinfo, "mvendorid");
    const bool old_rvv = design.starts_with("thead,c9") || vendor == "0x5b7";
    read_riscv(value_of(cpuinfo, "isa"), !old_rvv, target);
    // Such a name brings vectors of its own, which a system without them does not allow.
    if (by_design && target.vector_bits == 0) target.cpu = "generic-rv64";
  } else if (machine == "aarch64") {
    target.cpu = cpuinfo.empty() ? "generic" : llvm::sys::detail::getHostCPUNameForARM(cpuinfo).str();
    if (target.cpu.empty() || !is_known(target)) target.cpu = "generic";
    if (target.cpu == "generic") target.features = arm_features(value_of(cpuinfo, "Features"));
    target.vector_bits = 128;
  } else if (machine == "x86_64") {
    const std::string flags = value_of(cpuinfo, "flags");
    const auto has = [&](std::initializer_list<const char*> all) {
      for (const char* flag : all)
        if (!has_word(flags, flag)) return false;
      return true;
    };
    const bool v2 = has({"sse4_2", "ssse3", "popcnt", "cx16"}),
               v3 = v2 && has({"avx2", "fma", "bmi2", "f16c", "movbe"});
    const bool v4 = v3 && has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
    target.cpu = v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64";
    target.vector_bits = v4 ? 512 : v3 ? 256 : 128;
    target.vector_registers = v4 ? 32 : 16;
  } else {
    throw base::UserError(machine, "graft makes programs for boards of x86_64, aarch64 and riscv64");
  }
  return target;
}

std::string machine_of_cpuinfo(const std::string& cpuinfo) {
  if (value_of(cpuinfo, "isa").starts_with("rv64")) return "riscv64";
  if (has_word(value_of(cpuinfo, "Features"), "asimd")) return "aarch64";  // a 32-bit system calls it neon
  if (has_word(value_of(cpuinfo, "flags"), "sse2")) return "x86_64";
  return "";
}

std::int64_t cores_of_cpuinfo(const std::string& cpuinfo) {
  std::int64_t cores = 0;
  for (const std::string_view line : base::split(cpuinfo, '\n'))
    cores += base::trim(line.substr(0, line.find(':'))) == "processor" ? 1 : 0;
  return std::max<std::int64_t>(1, cores);
}

std::string name_of_cpuinfo(const std::string& cpuinfo) {
  for (const char* key : {"Model", "model name", "uarch"})
    if (std::string value = value_of(cpuinfo, key); !value.empty()) return value;
  return "";
}

base::Result<std::string> probe_program(const Target& target) {
  // Both lines have 12 bytes.
  const std::string lines = "first: .ascii \"{\\\"graft\\\":1}\\n\"\nsecond: .ascii \"{\\\"begin\\\":0}\\n\"\n";
  switch (llvm::Triple(target.triple).getArch()) {
    case llvm::Triple::riscv64: {
      const auto write = [](const char* line) {
        return fmt::format("li a7, 64\nli a0, 1\nlla a1, {}\nli a2, 12\necall\n", line);
      };
      return assembled(target, ".option arch, rv64gc\n" + write("first") +
                                   "mul a0, a0, a0\nfcvt.d.l fa0, a0\nfmadd.d fa0, fa0, fa0, fa0\naddi sp, sp, -16\n"
                                   "amoadd.w a0, a0, (sp)\nc.nop\n" +
                                   write("second") +
                                   ".option arch, +v\ncsrr a0, vlenb\nvsetivli zero, 4, e32, m1, ta, ma\n"
                                   "vadd.vv v8, v8, v8\nli a7, 93\necall\n" +
                                   lines);
    }
    case llvm::Triple::aarch64: {
      const auto write = [](const char* line) {
        return fmt::format("mov x8, #64\nmov x0, #1\nadr x1, {}\nmov x2, #12\nsvc #0\n", line);
      };
      return assembled(target, write("first") + "fmla v0.4s, v0.4s, v0.4s\n" + write("second") +
                                   ".arch_extension sve\ncntb x0\nmov x8, #93\nsvc #0\n" + lines);
    }
    case llvm::Triple::x86_64: {
      const auto write = [](const char* line) {
        return fmt::format("movl $1, %eax\nmovl $1, %edi\nleaq {}(%rip), %rsi\nmovl $12, %edx\nsyscall\n", line);
      };
      const char* const longest =
          target.vector_bits == 512   ? "vpaddb %zmm1, %zmm1, %zmm1\nvfmadd231ps %zmm1, %zmm1, %zmm1\n"
          : target.vector_bits == 256 ? "vpaddb %ymm1, %ymm1, %ymm1\nvfmadd231ps %ymm1, %ymm1, %ymm1\n"
          : target.cpu == "x86-64"    ? ""
                                      : "pcmpgtq %xmm1, %xmm1\n";
      return assembled(target, write("first") + "addpd %xmm1, %xmm1\n" + write("second") + longest +
                                   fmt::format("movl $60, %eax\nmovl ${}, %edi\nsyscall\n", target.vector_bits / 8) +
                                   lines);
    }
    default:
      return base::Reason{fmt::format("graft makes no programs for boards of {}", target.triple)};
  }
}

}  // namespace graft::codegen
