#include "codegen/machine/needs.h"

#include <fmt/format.h>
#include <llvm/TargetParser/Triple.h>

#include <cstdint>
#include <map>

#include "codegen/machine/backend.h"
#include "codegen/machine/system_calls.h"

namespace graft::codegen {
namespace {

// One word of what a machine says of itself: a register of CPUID for a leaf and its part, an entry of the auxiliary
// vector, the value of a key of riscv_hwprobe, or a length of vectors in bytes.
struct Word {
  std::uint32_t leaf = 0, part = 0, place = 0;
  auto operator<=>(const Word&) const = default;
};
struct Fact {
  const char* feature;
  Word word;
  int bit;
};

enum : std::uint32_t { eax, ebx, ecx, edx };
constexpr Word leaf_1{1, 0, ecx}, leaf_7b{7, 0, ebx}, leaf_7c{7, 0, ecx}, leaf_7d{7, 0, edx}, leaf_7_1a{7, 1, eax},
    leaf_7_1d{7, 1, edx}, extended{0x80000001, 0, ecx};
// "Intel 64 and IA-32 Architectures Software Developer's Manual", CPUID; AMD's for the extended leaf.
constexpr Fact x86_facts[] = {
    {"sse3", leaf_1, 0},
    {"pclmul", leaf_1, 1},
    {"ssse3", leaf_1, 9},
    {"fma", leaf_1, 12},
    {"sse4.1", leaf_1, 19},
    {"sse4.2", leaf_1, 20},
    {"movbe", leaf_1, 22},
    {"popcnt", leaf_1, 23},
    {"aes", leaf_1, 25},
    {"avx", leaf_1, 28},
    {"f16c", leaf_1, 29},
    {"bmi", leaf_7b, 3},
    {"avx2", leaf_7b, 5},
    {"bmi2", leaf_7b, 8},
    {"avx512f", leaf_7b, 16},
    {"avx512dq", leaf_7b, 17},
    {"adx", leaf_7b, 19},
    {"avx512ifma", leaf_7b, 21},
    {"avx512cd", leaf_7b, 28},
    {"sha", leaf_7b, 29},
    {"avx512bw", leaf_7b, 30},
    {"avx512vl", leaf_7b, 31},
    {"avx512vbmi", leaf_7c, 1},
    {"avx512vbmi2", leaf_7c, 6},
    {"gfni", leaf_7c, 8},
    {"vaes", leaf_7c, 9},
    {"vpclmulqdq", leaf_7c, 10},
    {"avx512vnni", leaf_7c, 11},
    {"avx512bitalg", leaf_7c, 12},
    {"avx512vpopcntdq", leaf_7c, 14},
    {"avx512vp2intersect", leaf_7d, 8},
    {"amx-bf16", leaf_7d, 22},
    {"avx512fp16", leaf_7d, 23},
    {"amx-tile", leaf_7d, 24},
    {"amx-int8", leaf_7d, 25},
    {"avxvnni", leaf_7_1a, 4},
    {"avx512bf16", leaf_7_1a, 5},
    {"amx-fp16", leaf_7_1a, 21},
    {"avxifma", leaf_7_1a, 23},
    {"avxvnniint8", leaf_7_1d, 4},
    {"avxneconvert", leaf_7_1d, 5},
    {"amx-complex", leaf_7_1d, 8},
    {"avxvnniint16", leaf_7_1d, 10},
    {"lzcnt", extended, 5},
    {"sse4a", extended, 6},
    {"xop", extended, 11},
    {"fma4", extended, 16},
    {"tbm", extended, 21},
};
// States that the system must save for the registers of a feature: bits of XCR0.
constexpr Word saved_states{13, 0, 0};
constexpr Fact x86_states[] = {{"avx", saved_states, 1},      {"avx", saved_states, 2},
                               {"avx512f", saved_states, 5},  {"avx512f", saved_states, 6},
                               {"avx512f", saved_states, 7},  {"amx-tile", saved_states, 17},
                               {"amx-tile", saved_states, 18}};

constexpr Word hwcap{16}, hwcap2{26};  // AT_HWCAP, AT_HWCAP2
// Linux, arch/arm64/include/uapi/asm/hwcap.h.
constexpr Fact aarch64_facts[] = {
    {"aes", hwcap, 3},       {"sha2", hwcap, 6},          {"crc", hwcap, 7},      {"lse", hwcap, 8},
    {"fullfp16", hwcap, 10}, {"rdm", hwcap, 12},          {"jsconv", hwcap, 13},  {"complxnum", hwcap, 14},
    {"rcpc", hwcap, 15},     {"dotprod", hwcap, 20},      {"sve", hwcap, 22},     {"fp16fml", hwcap, 23},
    {"sve2", hwcap2, 1},     {"sve2-bitperm", hwcap2, 4}, {"fptoint", hwcap2, 8}, {"i8mm", hwcap2, 13},
    {"bf16", hwcap2, 14},    {"sme", hwcap2, 23},
};
// Linux, arch/powerpc/include/uapi/asm/cputable.h.
constexpr Fact power_facts[] = {
    {"power8-vector", hwcap2, 31}, {"power9-vector", hwcap2, 23}, {"power10-vector", hwcap2, 18}, {"mma", hwcap2, 17}};
constexpr Word extensions{4};  // RISCV_HWPROBE_KEY_IMA_EXT_0
// Linux, Documentation/arch/riscv/hwprobe.rst.
constexpr Fact riscv_facts[] = {
    {"v", extensions, 2},       {"zba", extensions, 3},     {"zbb", extensions, 4},      {"zbs", extensions, 5},
    {"zbc", extensions, 7},     {"zbkb", extensions, 8},    {"zbkc", extensions, 9},     {"zbkx", extensions, 10},
    {"zvbb", extensions, 17},   {"zvbc", extensions, 18},   {"zvkb", extensions, 19},    {"zfh", extensions, 27},
    {"zfhmin", extensions, 28}, {"zvfh", extensions, 30},   {"zvfhmin", extensions, 31}, {"zfa", extensions, 32},
    {"zicond", extensions, 35}, {"zve32x", extensions, 37}, {"zve32f", extensions, 38},  {"zve64x", extensions, 39},
    {"zve64f", extensions, 40}, {"zve64d", extensions, 41}, {"zcb", extensions, 44},
};

std::vector<Fact> facts_of(const Target& target) {
  const auto all = [](const auto& facts) { return std::vector<Fact>(std::begin(facts), std::end(facts)); };
  switch (llvm::Triple(target.triple).getArch()) {
    case llvm::Triple::x86_64:
      return all(x86_facts);
    case llvm::Triple::aarch64:
      return all(aarch64_facts);
    case llvm::Triple::ppc64le:
      return all(power_facts);
    case llvm::Triple::riscv64:
      return all(riscv_facts);
    default:
      return {};
  }
}

bool has(const Target& target, const std::string& feature) {
  return missing_feature(target, "+" + feature).empty();
}

// Parts of what the target's vectors are, of which systems may say the whole alone.
bool is_implied(const Target& target, std::string_view feature) {
  return feature.starts_with("zve") && has(target, "v");
}

// The bits that a target needs, by word.
std::map<Word, std::uint64_t> bits_of(const Target& target) {
  std::map<Word, std::uint64_t> bits;
  const auto add = [&](const Fact& fact) {
    if (has(target, fact.feature) && !is_implied(target, fact.feature)) bits[fact.word] |= std::uint64_t(1) << fact.bit;
  };
  for (const Fact& fact : facts_of(target)) add(fact);
  if (llvm::Triple(target.triple).isX86())
    for (const Fact& fact : x86_states) add(fact);
  return bits;
}

// `i64 @graft.word(leaf, part, place)` by architecture; 0 where the machine does not say.
constexpr std::string_view x86_word = R"(
define internal { i32, i32, i32, i32 } @graft.cpuid(i32 %leaf, i32 %part) noinline nounwind {
  %r = call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 %leaf, i32 %part)
  ret { i32, i32, i32, i32 } %r
}
define internal i64 @graft.word(i32 %leaf, i32 %part, i32 %place) noinline nounwind {
entry:
  %states = icmp eq i32 %leaf, 13
  br i1 %states, label %system, label %machine
system:
  %one = call { i32, i32, i32, i32 } @graft.cpuid(i32 1, i32 0)
  %one_c = extractvalue { i32, i32, i32, i32 } %one, 2
  %osxsave = and i32 %one_c, 134217728
  %tells = icmp ne i32 %osxsave, 0
  br i1 %tells, label %saves, label %none
saves:
  %xcr0 = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx}"(i32 0)
  %low = extractvalue { i32, i32 } %xcr0, 0
  %saved = zext i32 %low to i64
  ret i64 %saved
machine:
  %range = and i32 %leaf, 2147483648
  %range_all = call { i32, i32, i32, i32 } @graft.cpuid(i32 %range, i32 0)
  %last = extractvalue { i32, i32, i32, i32 } %range_all, 0
  %known = icmp uge i32 %last, %leaf
  br i1 %known, label %says, label %none
says:
  %all = call { i32, i32, i32, i32 } @graft.cpuid(i32 %leaf, i32 %part)
  %a = extractvalue { i32, i32, i32, i32 } %all, 0
  %b = extractvalue { i32, i32, i32, i32 } %all, 1
  %c = extractvalue { i32, i32, i32, i32 } %all, 2
  %d = extractvalue { i32, i32, i32, i32 } %all, 3
  %is_a = icmp eq i32 %place, 0
  %is_b = icmp eq i32 %place, 1
  %is_c = icmp eq i32 %place, 2
  %cd = select i1 %is_c, i32 %c, i32 %d
  %bcd = select i1 %is_b, i32 %b, i32 %cd
  %abcd = select i1 %is_a, i32 %a, i32 %bcd
  %said = zext i32 %abcd to i64
  ret i64 %said
none:
  ret i64 0
}
)";

// `leaf`: which entry of the auxiliary vector, pairs of words of which the first is 0 in the last one.
constexpr std::string_view auxiliary_word = R"(
@graft.auxv = internal constant [16 x i8] c"/proc/self/auxv\00"
define internal i64 @graft.word(i32 %leaf, i32 %part, i32 %place) noinline nounwind {{
entry:
  %entries = alloca [128 x i64], align 16
  %wanted = zext i32 %leaf to i64
  %at = ptrtoint ptr %entries to i64
  %path = ptrtoint ptr @graft.auxv to i64
  %file = call i64 @system(i64 {openat}, i64 -100, i64 %path, i64 0)
  %opened = icmp sgt i64 %file, 2
  br i1 %opened, label %reads, label %none
reads:
  %bytes = call i64 @system(i64 {read}, i64 %file, i64 %at, i64 1024)
  %closed = call i64 @system(i64 {close}, i64 %file, i64 0, i64 0)
  %words = sdiv i64 %bytes, 8
  br label %next
next:
  %i = phi i64 [ 0, %reads ], [ %after, %other ]
  %after = add i64 %i, 2
  %more = icmp sle i64 %after, %words
  br i1 %more, label %look, label %none
look:
  %key_at = getelementptr i64, ptr %entries, i64 %i
  %key = load volatile i64, ptr %key_at
  %value_at = getelementptr i64, ptr %key_at, i64 1
  %value = load volatile i64, ptr %value_at
  %is = icmp eq i64 %key, %wanted
  br i1 %is, label %found, label %other
other:
  br label %next
found:
  ret i64 %value
none:
  ret i64 0
}}
)";

// `leaf`: the key of riscv_hwprobe, for all cores.
constexpr std::string_view riscv_word = R"(
define internal i64 @graft.word(i32 %leaf, i32 %part, i32 %place) noinline nounwind {
  %pair = alloca [2 x i64], align 16
  %key = zext i32 %leaf to i64
  store volatile i64 %key, ptr %pair
  %value_at = getelementptr i64, ptr %pair, i64 1
  store volatile i64 0, ptr %value_at
  %at = ptrtoint ptr %pair to i64
  %r = call i64 asm sideeffect "ecall", "={x10},{x17},{x10},{x11},{x12},{x13},{x14},~{memory}"(i64 258, i64 %at, i64 1, i64 0, i64 0, i64 0)
  %value = load volatile i64, ptr %value_at
  %done = icmp eq i64 %r, 0
  %said = select i1 %done, i64 %value, i64 0
  ret i64 %said
}
)";

// The length of vectors in bytes, of a machine that has them.
std::string length_text(const Target& target) {
  constexpr std::string_view sve =
      "  %said = call i64 @system(i64 167, i64 51, i64 0, i64 0)\n  %bytes = and i64 %said, "
      "65535\n";  // prctl(PR_SVE_GET_VL)
  constexpr std::string_view vlenb = "  %bytes = call i64 asm sideeffect \"csrr $0, 0xc22\", \"=r\"()\n";
  return std::string(llvm::Triple(target.triple).isAArch64() ? sve : vlenb);
}

std::string runs_text(const Target& target, std::size_t number) {
  std::string text = fmt::format("define internal i1 @graft.runs{}() noinline nounwind {{\n", number);
  int checks = 0;
  const auto unless = [&](const std::string& wrong) {
    text += fmt::format("  br i1 {}, label %no, label %check{}\ncheck{}:\n", wrong, checks, checks);
    ++checks;
  };
  for (const auto& [word, bits] : bits_of(target)) {
    text += fmt::format(
        "  %word{0} = call i64 @graft.word(i32 {1}, i32 {2}, i32 {3})\n  %has{0} = and i64 %word{0}, {4}\n"
        "  %lacks{0} = icmp ne i64 %has{0}, {4}\n",
        checks, word.leaf, word.part, word.place, bits);
    unless(fmt::format("%lacks{}", checks));
  }
  if (code_attributes(target).vscale_least > 0) {
    text += length_text(target) + fmt::format("  %short = icmp ult i64 %bytes, {}\n", target.vector_bits / 8);
    unless("%short");
  }
  return text + "  ret i1 true\nno:\n  ret i1 false\n}\n";
}

}  // namespace

std::vector<std::string> needs(const Target& target) {
  std::vector<std::string> all;
  for (const Fact& fact : facts_of(target))
    if (has(target, fact.feature) && !is_implied(target, fact.feature)) all.emplace_back(fact.feature);
  return all;
}

std::string machine_text(const std::vector<Target>& targets) {
  std::string text;
  switch (llvm::Triple(targets.front().triple).getArch()) {
    case llvm::Triple::x86_64:
      text = x86_word;
      break;
    case llvm::Triple::aarch64:
      text = fmt::format(auxiliary_word, fmt::arg("openat", 56), fmt::arg("read", 63), fmt::arg("close", 57));
      break;
    case llvm::Triple::ppc64le:
      text = fmt::format(auxiliary_word, fmt::arg("openat", 286), fmt::arg("read", 3), fmt::arg("close", 6));
      break;
    case llvm::Triple::riscv64:
      text = riscv_word;
      break;
    default:
      break;
  }
  for (std::size_t k = 0; k < targets.size(); ++k) text += runs_text(targets[k], k);
  return text;
}

std::string runs_here_text(const std::string& symbol) {
  return fmt::format(
      "define i32 @{}() nounwind {{\n  %runs = call i1 @graft.runs0()\n  %is = zext i1 %runs to i32\n  ret "
      "i32 %is\n}}\n",
      symbol);
}

Target least_target(const Target& target) {
  const llvm::Triple triple(target.triple);
  Target least;
  least.triple = target.triple;
  if (triple.getArch() == llvm::Triple::x86_64) {
    least.cpu = "x86-64";
  } else if (triple.isRISCV64()) {
    least.cpu = "generic-rv64";
    for (const char* extension : {"m", "a", "f", "d", "c"})
      if (has(target, extension)) least.features += fmt::format("{}+{}", least.features.empty() ? "" : ",", extension);
  } else if (facts_of(target).empty()) {
    return target;
  }
  return least;
}

}  // namespace graft::codegen
