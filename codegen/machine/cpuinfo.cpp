#include "codegen/machine/cpuinfo.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/one_line.h"
#include "base/text.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/fatal.h"
#include "codegen/machine/link.h"

namespace graft::codegen {
namespace {

using Lines = std::map<std::string_view, std::string_view>;  // "KEY : value", the first with a key

// The text by processor: the lines from "processor : N" to the next one.
struct Processor {
  std::int64_t number = 0;
  Lines lines;
};
struct Text {
  std::vector<Processor> processors;
  Lines all;

  // What a processor's lines say, or those of the others: older kernels say once what all have.
  std::string_view value(const Processor& processor, std::string_view key) const {
    if (const auto own = processor.lines.find(key); own != processor.lines.end()) return own->second;
    const auto other = all.find(key);
    return other == all.end() ? "" : other->second;
  }
  std::string_view value(std::string_view key) const {
    const auto found = all.find(key);
    return found == all.end() ? "" : found->second;
  }
};

Text parsed(const std::string& cpuinfo) {
  Text text;
  for (const std::string_view line : base::split(cpuinfo, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = base::trim(line.substr(0, colon)), value = base::trim(line.substr(colon + 1));
    if (key == "processor") {
      Processor next;
      std::from_chars(value.data(), value.data() + value.size(), next.number);
      text.processors.push_back(std::move(next));
    } else if (!text.processors.empty()) {
      text.processors.back().lines.emplace(key, value);
    }
    text.all.emplace(key, value);
  }
  if (text.processors.empty()) text.processors.emplace_back();
  return text;
}

bool has_word(std::string_view list, std::string_view word) {
  for (const std::string_view one : base::split(list, ' '))
    if (one == word) return true;
  return false;
}

bool is_known(const Target& target) {
  try {
    check_description(target);
    return true;
  } catch (const base::UserError&) {
    return false;
  }
}

std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// One kind of cores as the text shows it.
struct Kind {
  std::string name;              // for people: "cortex-a55", "thead,c910"
  std::string cpu;               // LLVM's, or ""
  std::vector<std::string> has;  // of riscv64 LLVM's extensions but for lengths of vectors, elsewhere Linux's names
  bool says_what_it_has = true;  // `has` is what the system lists; else nothing is known of it
  std::int64_t vector_bits = 0;  // riscv64: of RVV 1.0 at least
  bool assumes_bits = false;     // for want of anything that says how long they are
  std::string why_no_vectors;    // where the text shows some that are none of ours
  std::vector<std::int64_t> processors;
};

bool has(const Kind& kind, std::string_view name) {
  return std::find(kind.has.begin(), kind.has.end(), name) != kind.has.end();
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

// "rv64imafdcv_zba_zvl256b": letters, then names. Those that LLVM knows; it need not know the latest.
std::vector<std::string> extensions(std::string_view isa, const std::set<std::string>& known) {
  std::vector<std::string> found;
  const auto add = [&](std::string_view name) {
    if (known.contains(std::string(name)) && std::find(found.begin(), found.end(), name) == found.end())
      found.emplace_back(name);
  };
  const auto add_letter = [&](char letter) {
    if (letter == 'g')
      for (const char* each : {"m", "a", "f", "d"}) add(each);
    else if (letter != 'i')
      add(std::string_view(&letter, 1));
  };
  const std::vector<std::string_view> parts = base::split(isa, '_');
  const std::string_view letters = without_version(parts[0]);
  for (const char letter : letters.substr(std::min<std::size_t>(4, letters.size())))
    add_letter(letter);  // after "rv64"
  for (const std::string_view part : std::span(parts).subspan(1)) {
    const std::string_view name = without_version(part);
    if (name.size() == 1)
      add_letter(name[0]);
    else
      add(name);
  }
  return found;
}

bool is_vector_extension(std::string_view name) {
  return name == "v" || name.starts_with("zv");
}

bool is_vector_length(std::string_view name) {
  return name.starts_with("zvl");
}

// The least length that "zvl256b" and the like promise, 0 without one.
std::int64_t promised_bits(const std::vector<std::string>& names) {
  std::int64_t longest = 0;
  for (const std::string& name : names) {
    std::int64_t bits = 0;
    if (is_vector_length(name)) std::from_chars(name.data() + 3, name.data() + name.size(), bits);
    longest = std::max(longest, bits);
  }
  return longest;
}

// The length of vectors of which nothing is said.
std::int64_t least_bits(const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), "v") != names.end() ? 128 : 64;
}

// Why the vectors that a core of RISC-V shows are not RVV 1.0, whose code is another one than that of the draft 0.7.1
// before it. "" if they are.
std::string why_not_rvv(const Text& text, const Processor& processor, std::string_view isa) {
  // Systems of the makers say which version it is.
  for (const char* key : {"cpu-vector", "vector version"}) {
    const std::string_view version = text.value(processor, key);
    double number = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc()) continue;
    return number >= 1 ? "" : fmt::format("'{} : {}'", key, version);
  }
  const auto of_draft = [](std::string_view part) { return part == "xtheadvector"; };
  const std::vector<std::string_view> parts = base::split(isa, '_');
  if (std::any_of(parts.begin(), parts.end(), of_draft)) return "'xtheadvector'";
  // These names are younger than 1.0.
  for (const std::string_view part : std::span(parts).subspan(1))
    if (part.starts_with("zve") || part.starts_with("zvl")) return "";
  // XuanTie's cores with the draft leave architecture and implementation at 0 (Linux: T-Head's errata); where the text
  // does not give these, their names say it.
  constexpr std::uint64_t t_head = 0x5b7;
  const auto vendor = hexadecimal(text.value(processor, "mvendorid")),
             architecture = hexadecimal(text.value(processor, "marchid")),
             implementation = hexadecimal(text.value(processor, "mimpid"));
  const std::string_view design = text.value(processor, "uarch");
  if (vendor == t_head && architecture.value_or(0) == 0 && implementation.value_or(0) == 0)
    return fmt::format("mvendorid {:#x} with marchid and mimpid 0", t_head);
  if (!vendor)
    for (const char* const old : {"thead,c906", "thead,c910", "thead,c920"})
      if (design == old) return fmt::format("'uarch : {}'", design);
  // Linux lists no modes of privilege in 6.5, the first with RVV 1.0, nor long before.
  if (!vendor && parts[0].find_first_of("su", std::min<std::size_t>(4, parts[0].size())) != std::string_view::npos)
    return fmt::format("'{}' is of a system older than RVV 1.0", parts[0]);
  return "";
}

// The same architecture, and no more than a cpu's name and features.
Target named(const Target& target, const std::string& cpu, const std::string& features = "") {
  Target result;
  result.triple = target.triple;
  result.cpu = cpu;
  result.features = features;
  return result;
}

// What LLVM knows of RISC-V.
struct Known {
  std::set<std::string> cpus, extensions;
};

// The name of a core of RISC-V: the text's own, or that of its vendor and architecture where older kernels give none
// (mvendorid, marchid; from /proc/cpuinfo of boards that give both).
std::string riscv_design(const Text& text, const Processor& processor) {
  struct Design {
    std::uint64_t vendor, architecture;
    const char* name;
  };
  constexpr std::array designs{
      Design{0x489, 0x8000000000000007, "sifive,u74"}, Design{0x489, 0x8000000000000008, "sifive,p550"},
      Design{0x710, 0x8000000058000001, "spacemit,x60"}, Design{0x710, 0x8000000058000002, "spacemit,x100"}};
  if (const std::string_view named = text.value(processor, "uarch"); !named.empty()) return std::string(named);
  const auto vendor = hexadecimal(text.value(processor, "mvendorid")),
             architecture = hexadecimal(text.value(processor, "marchid"));
  for (const Design& design : designs)
    if (vendor == design.vendor && architecture == design.architecture) return design.name;
  return "";
}

// LLVM's cpu of a core of RISC-V, or "": "spacemit,x60" is its spacemit-x60, and "sifive,u74-mc" a sifive-u74.
std::string riscv_cpu(std::string_view design, const Known& known) {
  std::string cpu = llvm::sys::detail::getHostCPUNameForRISCV(fmt::format("uarch : {}\n", design)).str();
  if (!cpu.empty()) return cpu;
  cpu = design;
  std::replace(cpu.begin(), cpu.end(), ',', '-');
  while (!cpu.empty() && !known.cpus.contains(cpu)) cpu.resize(cpu.find('-') == std::string::npos ? 0 : cpu.rfind('-'));
  return cpu;
}

Kind riscv_kind(const Text& text, const Processor& processor, const Target& target, const Known& known) {
  Kind kind;
  const std::string_view isa = text.value(processor, "isa");
  kind.has = extensions(isa.empty() ? "rv64imafdc" : isa, known.extensions);
  // What all cores have is in "isa", and the lengths of this one's vectors are in "hart isa" (Linux 6.5).
  const std::int64_t promised =
      std::max(promised_bits(kind.has), promised_bits(extensions(text.value(processor, "hart isa"), known.extensions)));
  std::erase_if(kind.has, is_vector_length);
  const bool shows_vectors = has(kind, "v") || has(kind, "zve64d") || isa.find("xtheadvector") != isa.npos;
  if (shows_vectors) kind.why_no_vectors = why_not_rvv(text, processor, isa);
  kind.name = riscv_design(text, processor);
  kind.cpu = riscv_cpu(kind.name, known);
  if (shows_vectors && kind.why_no_vectors.empty()) {
    const std::int64_t of_cpu = kind.cpu.empty() ? 0 : least_vector_bits(named(target, kind.cpu));
    kind.vector_bits = std::max({promised, of_cpu, least_bits(kind.has)});
    kind.assumes_bits = promised == 0 && of_cpu == 0;
  }
  if (kind.name.empty()) kind.name = isa;
  return kind;
}

// Makers and parts that LLVM 19 has a cpu for and does not find on Linux.
struct Part {
  std::uint64_t maker, first, last;
  const char* cpu;
};
constexpr std::array parts_of_arm{
    Part{0x61, 0x022, 0x029, "apple-m1"},  // Apple: M1, Pro, Max, Ultra, cores of both kinds
    Part{0x61, 0x032, 0x039, "apple-m2"},
    Part{0x61, 0x048, 0x049, "apple-m3"},
};

Kind arm_kind(const Text& text, const Processor& processor, Target target) {
  Kind kind;
  std::string lines;
  for (const char* key : {"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Hardware"})
    if (const std::string_view value = text.value(processor, key); !value.empty())
      lines += fmt::format("{}\t: {}\n", key, value);
  if (!lines.empty()) target.cpu = llvm::sys::detail::getHostCPUNameForARM(lines).str();
  const auto maker = hexadecimal(text.value(processor, "CPU implementer")),
             part = hexadecimal(text.value(processor, "CPU part"));
  for (const Part& known : parts_of_arm)
    if (maker == known.maker && part >= known.first && part <= known.last) target.cpu = known.cpu;
  if (!target.cpu.empty() && target.cpu != "generic" && is_known(target)) kind.cpu = target.cpu;
  kind.name = kind.cpu;
  if (kind.name.empty())
    kind.name = fmt::format("part {} of implementer {}", text.value(processor, "CPU part"),
                            text.value(processor, "CPU implementer"));
  const std::string_view listed = text.value(processor, "Features");
  kind.says_what_it_has = !listed.empty();
  for (const std::string_view word : base::words(listed)) kind.has.emplace_back(word);
  return kind;
}

Kind x86_kind(const Text& text, const Processor& processor) {
  Kind kind;
  const std::string_view listed = text.value(processor, "flags");
  kind.says_what_it_has = !listed.empty();
  for (const std::string_view word : base::words(listed)) kind.has.emplace_back(word);
  kind.name = text.value(processor, "model name");
  if (kind.name.empty()) kind.name = "x86-64";
  return kind;
}

Kind power_kind(const Text& text, const Processor& processor, Target target) {
  Kind kind;
  const std::string_view cpu = text.value(processor, "cpu");
  target.cpu = llvm::sys::detail::getHostCPUNameForPowerPC(fmt::format("cpu\t\t: {}\n", cpu)).str();
  if (target.cpu != "generic" && is_known(target)) kind.cpu = target.cpu;
  kind.name = kind.cpu.empty() ? std::string(cpu) : kind.cpu;
  return kind;
}

// The kinds of the cores, in the order of the text.
template <class Read>
std::vector<Kind> kinds_of(const Text& text, std::initializer_list<const char*> keys, const Read& read) {
  std::map<std::vector<std::string_view>, std::size_t> known;  // by the values of the keys
  std::vector<Kind> kinds;
  for (const Processor& processor : text.processors) {
    std::vector<std::string_view> values;
    for (const char* key : keys) values.push_back(text.value(processor, key));
    const auto [kind, is_new] = known.try_emplace(values, kinds.size());
    if (is_new) kinds.push_back(read(processor));
    kinds[kind->second].processors.push_back(processor.number);
  }
  return kinds;
}

// "0-3, 6" of a sorted list.
std::string ranges(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += first == last ? fmt::format("{}", numbers[first]) : fmt::format("{}-{}", numbers[first], numbers[last]);
    first = last + 1;
  }
  return text;
}

// What runs on all of these.
Kind common(const std::vector<Kind>& kinds) {
  Kind all = kinds.front();
  for (const Kind& kind : std::span(kinds).subspan(1)) {
    if (kind.cpu != all.cpu) all.cpu.clear();
    all.vector_bits = std::min(all.vector_bits, kind.vector_bits);
    all.assumes_bits = all.assumes_bits || kind.assumes_bits;
    std::erase_if(all.has, [&](const std::string& one) { return !has(kind, one); });
    all.says_what_it_has = all.says_what_it_has && kind.says_what_it_has;
    if (all.why_no_vectors.empty()) all.why_no_vectors = kind.why_no_vectors;
    all.processors.insert(all.processors.end(), kind.processors.begin(), kind.processors.end());
  }
  return all;
}

// Linux's names of extensions that kernels gain from, and LLVM's.
struct Named {
  const char* of_linux;
  const char* of_llvm;
};
constexpr std::array arm_extensions{Named{"asimddp", "dotprod"}, Named{"asimdhp", "fullfp16"}, Named{"i8mm", "i8mm"},
                                    Named{"bf16", "bf16"}};
constexpr std::array x86_extensions{Named{"avx512_vnni", "avx512vnni"}, Named{"avx512_bf16", "avx512bf16"},
                                    Named{"avx_vnni", "avxvnni"}};

// Features by which what the system lists differs from what the cpu's name says.
std::string differing(const Kind& kind, const Target& target, std::span<const Named> extensions) {
  if (!kind.says_what_it_has) return "";
  std::vector<std::string> features;
  for (const auto& [of_linux, of_llvm] : extensions) {
    const bool listed = has(kind, of_linux), implied = missing_feature(target, fmt::format("+{}", of_llvm)).empty();
    if (listed != implied) features.push_back(fmt::format("{}{}", listed ? '+' : '-', of_llvm));
  }
  return base::join(features, ",");
}

void describe_riscv(const Kind& kind, Target& target) {
  target.cpu = kind.cpu.empty() ? "generic-rv64" : kind.cpu;
  std::vector<std::string> features;
  for (const std::string& name : kind.has) features.push_back("+" + name);
  target.features = base::join(features, ",");
  target = with_vectors(target, kind.vector_bits);
}

void describe_arm(const Kind& kind, Target& target) {
  target.cpu = kind.cpu.empty() ? "generic" : kind.cpu;
  target.vector_bits = 128;
  target.features = differing(kind, target, arm_extensions);
  // A cpu that has SVE where the system does not allow it. The other way round its length is not known.
  if (kind.says_what_it_has && !has(kind, "sve") && missing_feature(target, "+sve").empty())
    target.features += target.features.empty() ? "-sve" : ",-sve";
}

void describe_x86(const Kind& kind, Target& target) {
  const auto has_all = [&](std::initializer_list<const char*> all) {
    return std::all_of(all.begin(), all.end(), [&](const char* flag) { return has(kind, flag); });
  };
  const bool v2 = has_all({"sse4_2", "ssse3", "popcnt", "cx16"}),
             v3 = v2 && has_all({"avx2", "fma", "bmi2", "f16c", "movbe"});
  const bool v4 = v3 && has_all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  target.cpu = v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64";
  target.vector_bits = v4 ? 512 : v3 ? 256 : 128;
  target.vector_registers = v4 ? 32 : 16;
  // These bring the levels below with them.
  const std::span<const Named> extensions(x86_extensions);
  target.features = v4 ? differing(kind, target, extensions) : v3 ? differing(kind, target, extensions.last(1)) : "";
}

void describe_power(const Kind& kind, Target& target) {
  target.cpu = kind.cpu.empty() ? "ppc64le" : kind.cpu;
  target.vector_bits = 128;  // VSX, which each 64-bit system of little end has
  target.vector_registers = 64;
}

// An instruction of an extension, and of no other that may be missing where this one is there.
struct Instruction {
  const char* extension;
  const char* text;
};
constexpr std::array riscv_instructions{
    Instruction{"zba", "sh1add a0, a0, a0"},
    Instruction{"zbb", "cpop a0, a0"},
    Instruction{"zbs", "bset a0, a0, a0"},
    Instruction{"zbc", "clmulr a0, a0, a0"},
    Instruction{"zbkb", "pack a0, a0, a0"},
    Instruction{"zbkc", "clmul a0, a0, a0"},
    Instruction{"zbkx", "xperm8 a0, a0, a0"},
    Instruction{"zcb", "c.zext.b a0"},
    Instruction{"zicond", "czero.eqz a0, a0, a0"},
    Instruction{"zfa", "fround.s fa0, fa0"},
    Instruction{"zfhmin", "fcvt.s.h fa0, fa0"},
    Instruction{"zfh", "fadd.h fa0, fa0, fa0"},
    Instruction{"zvfhmin", "vsetivli zero, 4, e16, m1, ta, ma\nvfwcvt.f.f.v v8, v16"},
    Instruction{"zvfh", "vsetivli zero, 4, e16, m1, ta, ma\nvfadd.vv v8, v8, v8"},
    Instruction{"zvbb", "vsetivli zero, 4, e32, m1, ta, ma\nvcpop.v v8, v8"},
    Instruction{"zvkb", "vsetivli zero, 4, e32, m1, ta, ma\nvandn.vv v8, v8, v8"},
    Instruction{"zvbc", "vsetivli zero, 2, e64, m1, ta, ma\nvclmul.vv v8, v8, v8"},
};
constexpr std::array arm_instructions{
    Instruction{"lse", "ldadd w0, w1, [sp]"},
    Instruction{"fullfp16", "fadd v0.8h, v0.8h, v0.8h"},
    Instruction{"dotprod", "udot v0.4s, v0.16b, v0.16b"},
    Instruction{"i8mm", "smmla v0.4s, v0.16b, v0.16b"},
    Instruction{"bf16", "bfmmla v0.4s, v0.8h, v0.8h"},
};
constexpr std::array x86_instructions{
    Instruction{"f16c", "vcvtph2ps %xmm1, %xmm1"},
    Instruction{"bmi2", "pextq %rax, %rax, %rax"},
    Instruction{"avx512vnni", "vpdpbusd %zmm1, %zmm1, %zmm1"},
    Instruction{"avx512bf16", "vdpbf16ps %zmm1, %zmm1, %zmm1"},
    Instruction{"avxvnni", "{vex} vpdpbusd %ymm1, %ymm1, %ymm1"},
};

std::span<const Instruction> instructions_of(const Target& target) {
  const llvm::Triple triple(target.triple);
  if (triple.isRISCV64()) return riscv_instructions;
  if (triple.isAArch64()) return arm_instructions;
  if (triple.getArch() == llvm::Triple::x86_64) return x86_instructions;
  return {};
}

// Both have 12 bytes.
const std::string line_data = "first: .ascii \"{\\\"graft\\\":1}\\n\"\nsecond: .ascii \"{\\\"begin\\\":0}\\n\"\n";

// Assembly that writes one of them; "" for architectures that graft makes no programs for.
std::string write_text(const Target& target, std::string_view line) {
  switch (llvm::Triple(target.triple).getArch()) {
    case llvm::Triple::riscv64:
      return fmt::format("li a7, 64\nli a0, 1\nlla a1, {}\nli a2, 12\necall\n", line);
    case llvm::Triple::aarch64:
      return fmt::format("mov x8, #64\nmov x0, #1\nadr x1, {}\nmov x2, #12\nsvc #0\n", line);
    case llvm::Triple::x86_64:
      return fmt::format("movl $1, %eax\nmovl $1, %edi\nleaq {}(%rip), %rsi\nmovl $12, %edx\nsyscall\n", line);
    case llvm::Triple::ppc64le:
      // Position-independent by the address of what follows a call.
      return fmt::format("bl 1f\n1: mflr 4\naddi 4, 4, {}-1b\nli 0, 4\nli 3, 1\nli 5, 12\nsc\n", line);
    default:
      return "";
  }
}

// The system call that ends a program with 0.
std::string leave_text(const Target& target) {
  switch (llvm::Triple(target.triple).getArch()) {
    case llvm::Triple::riscv64:
      return "li a7, 93\nli a0, 0\necall\n";
    case llvm::Triple::aarch64:
      return "mov x8, #93\nmov x0, #0\nsvc #0\n";
    case llvm::Triple::x86_64:
      return "movl $60, %eax\nmovl $0, %edi\nsyscall\n";
    default:
      return "li 0, 1\nli 3, 0\nsc\n";
  }
}

base::Reason no_programs(const Target& target) {
  return {fmt::format("graft makes no programs for boards of {}", target.triple)};
}

// Runs instead of anything else: no kernel in it.
base::Result<std::string> assembled(const Target& target, const std::string& text) {
  const auto object = guarded(target, [&] {
    llvm::LLVMContext context;
    const Pipeline pipeline{"probe", "", "", 1, {}};
    llvm::TargetMachine& machine = target_machine(target, pipeline.codegen_level);
    const std::unique_ptr<llvm::Module> module = empty_module(context, machine);
    module->setModuleInlineAsm(".globl _start\n_start:\n" + text);
    return generate(*module, machine, pipeline, llvm::CodeGenFileType::ObjectFile);
  });
  if (!object) return object.reason();
  return link_program({*object});
}

}  // namespace

Target with_vectors(Target target, std::int64_t bits) {
  std::vector<std::string> features;
  const auto keep = [&](const auto& is_kept) {
    for (const std::string_view feature : base::split(target.features, ','))
      if (!feature.empty() && is_kept(feature.substr(1))) features.emplace_back(feature);
  };
  if (llvm::Triple(target.triple).isRISCV()) {
    const bool may_be_v = bits >= 128;  // shorter ones have its instructions by the name of zve64d
    keep([&](std::string_view name) {
      return !is_vector_length(name) && (bits > 0 || !is_vector_extension(name)) && (may_be_v || name != "v");
    });
    // A cpu may bring longer vectors with its name.
    if (least_vector_bits(named(target, target.cpu)) > bits) target.cpu = "generic-rv64";
    Target described = named(target, "", base::join(features, ","));
    if (bits > 0 && !missing_feature(described, "+zve64d").empty()) {
      features.emplace_back(may_be_v ? "+v" : "+zve64d");
      described.features = base::join(features, ",");
    }
    if (bits > least_vector_bits(described)) features.push_back(fmt::format("+zvl{}b", bits));
    target.vector_bits = bits;
  } else if (llvm::Triple(target.triple).isAArch64() && bits > 0) {
    keep([](std::string_view name) { return name != "sve"; });
    features.emplace_back("+sve");
    target.vector_bits = bits;
  } else {
    return target;
  }
  target.features = base::join(features, ",");
  return target;
}

CpuinfoTarget target_of_cpuinfo(const std::string& machine, const std::string& cpuinfo, std::int64_t core) {
  initialise_llvm();
  const Text text = parsed(cpuinfo);
  CpuinfoTarget result;
  Target& target = result.target;
  target.triple = (machine == "ppc64le" ? "powerpc64le" : machine) + "-unknown-linux-gnu";
  target.vector_registers = 32;
  std::vector<Kind> kinds;
  if (machine == "riscv64") {
    const Known known = {cpu_names(target), feature_names(target)};
    kinds =
        kinds_of(text, {"isa", "hart isa", "uarch", "mvendorid", "marchid", "mimpid", "cpu-vector", "vector version"},
                 [&](const Processor& processor) { return riscv_kind(text, processor, target, known); });
  } else if (machine == "aarch64") {
    kinds = kinds_of(text, {"CPU implementer", "CPU part", "CPU variant", "Features"},
                     [&](const Processor& processor) { return arm_kind(text, processor, target); });
  } else if (machine == "x86_64") {
    kinds =
        kinds_of(text, {"model name", "flags"}, [&](const Processor& processor) { return x86_kind(text, processor); });
  } else if (machine == "ppc64le") {
    kinds = kinds_of(text, {"cpu"}, [&](const Processor& processor) { return power_kind(text, processor, target); });
  } else {
    throw base::UserError(machine, "graft makes programs for boards of x86_64, aarch64, riscv64 and ppc64le");
  }

  Kind kind = common(kinds);
  if (core >= 0) {
    const auto has_it = [&](const Kind& one) {
      return std::find(one.processors.begin(), one.processors.end(), core) != one.processors.end();
    };
    const auto chosen = std::find_if(kinds.begin(), kinds.end(), has_it);
    if (chosen == kinds.end())
      throw base::UserError(fmt::format("core {}", core),
                            fmt::format("/proc/cpuinfo lists {} only; choose one of them", ranges(kind.processors)));
    kind = *chosen;
  }
  target.cores = std::int64_t(kind.processors.size());
  result.assumes_vector_bits = kind.assumes_bits && kind.vector_bits > 0;
  if (machine == "riscv64") describe_riscv(kind, target);
  if (machine == "aarch64") describe_arm(kind, target);
  if (machine == "x86_64") describe_x86(kind, target);
  if (machine == "ppc64le") describe_power(kind, target);

  if (kinds.size() > 1) {
    std::vector<std::string> each;
    for (const Kind& one : kinds)
      each.push_back(
          fmt::format("{} {} ({})", one.processors.size(), base::one_line(one.name), ranges(one.processors)));
    result.kinds = std::int64_t(kinds.size());
    result.notes.push_back(fmt::format("cores of {} kinds: {}; described is {}", kinds.size(), base::join(each, ", "),
                                       core >= 0 ? fmt::format("the kind of core {}", core)
                                                 : "what all of them run; with --core N the kind of core N"));
  }
  if (!kind.why_no_vectors.empty())
    result.notes.push_back(fmt::format("no vectors: {} means RVV 0.7.1, whose code differs from that of RVV 1.0",
                                       base::one_line(kind.why_no_vectors)));
  return result;
}

std::string machine_of_cpuinfo(const std::string& cpuinfo) {
  const Text text = parsed(cpuinfo);
  if (text.value("isa").starts_with("rv64")) return "riscv64";
  if (has_word(text.value("Features"), "asimd")) return "aarch64";  // a 32-bit system calls it neon
  if (has_word(text.value("flags"), "sse2")) return "x86_64";
  if (text.value("cpu").starts_with("POWER")) return "ppc64le";  // of which end it does not say; few are big
  return "";
}

std::string name_of_cpuinfo(const std::string& cpuinfo) {
  const Text text = parsed(cpuinfo);
  for (const char* key : {"Model", "model name", "uarch", "cpu"})
    if (const std::string_view value = text.value(key); !value.empty()) return std::string(value);
  return riscv_design(text, text.processors.front());
}

base::Result<std::string> probe_program(const Target& target) {
  const std::string first = write_text(target, "first"), second = write_text(target, "second");
  switch (llvm::Triple(target.triple).getArch()) {
    case llvm::Triple::riscv64:
      return assembled(target, ".option arch, rv64gc\n" + first +
                                   "mul a0, a0, a0\nfcvt.d.l fa0, a0\nfmadd.d fa0, fa0, fa0, fa0\naddi sp, sp, -16\n"
                                   "amoadd.w a0, a0, (sp)\nc.nop\n" +
                                   second +
                                   ".option arch, +v\ncsrr a0, vlenb\nvsetivli zero, 4, e32, m1, ta, ma\n"
                                   "vadd.vv v8, v8, v8\nli a7, 93\necall\n" +
                                   line_data);
    case llvm::Triple::aarch64:
      return assembled(target, first + "fmla v0.4s, v0.4s, v0.4s\n" + second +
                                   ".arch_extension sve\ncntb x0\nmov x8, #93\nsvc #0\n" + line_data);
    case llvm::Triple::x86_64: {
      const char* const longest =
          target.vector_bits == 512   ? "vpaddb %zmm1, %zmm1, %zmm1\nvfmadd231ps %zmm1, %zmm1, %zmm1\n"
          : target.vector_bits == 256 ? "vpaddb %ymm1, %ymm1, %ymm1\nvfmadd231ps %ymm1, %ymm1, %ymm1\n"
          : target.cpu == "x86-64"    ? ""
                                      : "pcmpgtq %xmm1, %xmm1\n";
      return assembled(target, first + "addpd %xmm1, %xmm1\n" + second + longest +
                                   fmt::format("movl $60, %eax\nmovl ${}, %edi\nsyscall\n", target.vector_bits / 8) +
                                   line_data);
    }
    case llvm::Triple::ppc64le:
      return assembled(
          target, first + "xvmaddasp 0, 1, 2\n" + second + "xvmaddasp 0, 1, 2\nli 0, 1\nli 3, 16\nsc\n" + line_data);
    default:
      return no_programs(target);
  }
}

std::vector<std::string> extensions_to_try(const Target& target) {
  std::vector<std::string> found;
  for (const auto& [extension, text] : instructions_of(target))
    if (missing_feature(target, fmt::format("+{}", extension)).empty()) found.emplace_back(extension);
  return found;
}

base::Result<std::string> extension_program(const Target& target, const std::vector<std::string>& extensions) {
  if (write_text(target, "first").empty()) return no_programs(target);
  std::string text = write_text(target, "first") + write_text(target, "second");
  for (const auto& [extension, instruction] : instructions_of(target))
    if (std::find(extensions.begin(), extensions.end(), extension) != extensions.end())
      text += fmt::format("{}\n", instruction);
  return assembled(target, text + leave_text(target) + line_data);
}

Target without_extensions(Target target, const std::vector<std::string>& extensions) {
  std::vector<std::string> features;
  for (const std::string_view feature : base::split(target.features, ',')) {
    const bool is_left_out = std::find(extensions.begin(), extensions.end(),
                                       feature.substr(std::min<std::size_t>(1, feature.size()))) != extensions.end();
    if (!feature.empty() && !is_left_out) features.emplace_back(feature);
  }
  for (const std::string& extension : extensions) {
    target.features = base::join(features, ",");
    if (missing_feature(target, "+" + extension).empty()) features.push_back("-" + extension);
  }
  target.features = base::join(features, ",");
  return target;
}

}  // namespace graft::codegen
