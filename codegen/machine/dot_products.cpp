#include "codegen/machine/dot_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "codegen/machine/backend.h"

namespace graft::codegen {
namespace {

// An instruction that adds the products of a group of 32 bits, the same one for all lanes, with the groups of each
// lane.
struct Instruction {
  std::string_view name, architecture, needs;  // of the triple; LLVM's features
  std::int64_t vector_bits;
  std::string_view code;  // LLVM's name of it
  // Whether it takes a vector's bytes without and those of the other with a sign, in this order.
  bool has_order;
};
constexpr Instruction x86_512{"vpdpbusd_512", "x86_64", "+avx512vnni", 512, "llvm.x86.avx512.vpdpbusd.512", true};
constexpr Instruction x86_256{
    "vpdpbusd_256", "x86_64", "+avx512vnni,+avx512vl", 256, "llvm.x86.avx512.vpdpbusd.256", true};
constexpr Instruction x86_256_vex{"vpdpbusd_vex", "x86_64", "+avxvnni", 256, "llvm.x86.avx512.vpdpbusd.256", true};
// Products of words, twice: of the even bytes and of the odd ones.
constexpr Instruction x86_words_512{"vpmaddwd_512", "x86_64", "+avx512bw", 512, "llvm.x86.avx512.pmaddw.d.512", false};
constexpr Instruction x86_words_256{"vpmaddwd_256", "x86_64", "+avx2", 256, "llvm.x86.avx2.pmadd.wd", false};
constexpr Instruction arm_signed{"sdot", "aarch64", "+dotprod", 128, "llvm.aarch64.neon.sdot.v4i32.v16i8", false};
constexpr Instruction arm_unsigned{"udot", "aarch64", "+dotprod", 128, "llvm.aarch64.neon.udot.v4i32.v16i8", false};
constexpr Instruction arm_mixed{"usdot", "aarch64", "+i8mm", 128, "llvm.aarch64.neon.usdot.v4i32.v16i8", true};
constexpr Instruction x86_bf16_512{
    "vdpbf16ps_512", "x86_64", "+avx512bf16", 512, "llvm.x86.avx512bf16.dpbf16ps.512", false};
constexpr Instruction x86_bf16_256{
    "vdpbf16ps_256", "x86_64", "+avx512bf16,+avx512vl", 256, "llvm.x86.avx512bf16.dpbf16ps.256", false};
constexpr Instruction arm_bf16{"bfdot", "aarch64", "+bf16", 128, "llvm.aarch64.neon.bfdot.v4f32.v8bf16", false};

constexpr Instruction x86_pairs_512{
    "vpmaddubsw_512", "x86_64", "+avx512bw", 512, "llvm.x86.avx512.pmaddubs.w.512", true};
constexpr Instruction x86_pairs_256{"vpmaddubsw_256", "x86_64", "+avx2", 256, "llvm.x86.avx2.pmadd.ub.sw", true};

// The types of the group and of the lanes, and what computes them: the best instruction first.
struct Kind {
  std::string_view group, lanes;
  std::vector<Instruction> by;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"u8", "i8", {x86_512, x86_256, x86_256_vex, x86_words_512, x86_words_256, arm_mixed}},
      {"i8", "u8", {x86_512, x86_256, x86_256_vex, x86_words_512, x86_words_256, arm_mixed}},
      {"i8", "i8", {x86_512, x86_256, x86_256_vex, x86_words_512, x86_words_256, arm_signed}},
      {"u8", "u8", {x86_words_512, x86_words_256, arm_unsigned}},
      {"bf16", "bf16", {x86_bf16_512, x86_bf16_256, arm_bf16}},
  };
  return all;
}

// For bytes times numbers of few bits, which are without a sign in any case.
constexpr Instruction of_few_bits[] = {x86_512, x86_256, x86_256_vex, x86_pairs_512, x86_pairs_256, arm_signed};
// The instruction that sums pairs of words.
std::string_view pairs_of_words(const Instruction& by) {
  return by.vector_bits == 512 ? x86_words_512.code : x86_words_256.code;
}

std::string name_of(const Kind& kind, const Instruction& by) {
  return fmt::format("{}_{}{}", by.name, kind.group, kind.lanes);
}

std::string text_of(const Kind& kind, const Instruction& by, int group, std::string_view result,
                    const std::string& code) {
  return fmt::format(
      "intrinsic {0}\nneeds {1}\n"
      "computes input A[{2}] : {3}; input B[{4},{2}] : {5}; output C[j] : {6} += A[l] * B[j,l] where j={4}, l={2}\n"
      "body\n{7}end\n",
      name_of(kind, by), by.needs, group, kind.group, by.vector_bits / 32, kind.lanes, result, code);
}

// Two numbers of 16 bits, which are bits here and numbers to the instruction.
IntrinsicPointer dot_product_of_floats(const Kind& kind, const Instruction& by) {
  const std::int64_t lanes = by.vector_bits / 32;
  const std::string name = name_of(kind, by);
  const std::string code = fmt::format(
      "declare <{0} x float> @{2}(<{0} x float>, <{1} x bfloat>, <{1} x bfloat>)\n"
      "define <{0} x float> @{3}(<{0} x float> %c, <2 x i16> %a, <{1} x i16> %b) {{\n"
      "%group = bitcast <2 x i16> %a to i32\n"
      "%one = insertelement <{0} x i32> poison, i32 %group, i32 0\n"
      "%all = shufflevector <{0} x i32> %one, <{0} x i32> poison, <{0} x i32> zeroinitializer\n"
      "%groups = bitcast <{0} x i32> %all to <{1} x bfloat>\n"
      "%columns = bitcast <{1} x i16> %b to <{1} x bfloat>\n"
      "%sum = call <{0} x float> @{2}(<{0} x float> %c, <{1} x bfloat> %groups, <{1} x bfloat> %columns)\n"
      "ret <{0} x float> %sum\n}}\n",
      lanes, 2 * lanes, by.code, name);
  return parse_intrinsics(text_of(kind, by, 2, "f32", code), name).front();
}

// Bytes as words of 16 bits, pairs of which are multiplied and summed: exact, whatever their signs.
IntrinsicPointer dot_product_of_words(const Kind& kind, const Instruction& by) {
  const std::int64_t lanes = by.vector_bits / 32;
  const std::string name = name_of(kind, by), sums = fmt::format("<{} x i32>", lanes),
                    words = fmt::format("<{} x i16>", 2 * lanes);
  const auto split = [&](std::string_view from, std::string_view type) {
    const bool is_signed = type == "i8";
    std::string text = is_signed ? fmt::format("%{0}.up = shl {1} %{0}, {2}\n%{0}.even = ashr {1} %{0}.up, {2}\n", from,
                                               words, "splat (i16 8)")
                                 : fmt::format("%{0}.even = and {1} %{0}, {2}\n", from, words, "splat (i16 255)");
    return text +
           fmt::format("%{0}.odd = {3} {1} %{0}, {2}\n", from, words, "splat (i16 8)", is_signed ? "ashr" : "lshr");
  };
  const std::string code = fmt::format(
                               "declare {0} @{1}({2}, {2})\ndefine {0} @{3}({0} %c, <4 x i8> %a, <{4} x i8> %b) {{\n"
                               "%group = bitcast <4 x i8> %a to i32\n"
                               "%one = insertelement {0} poison, i32 %group, i32 0\n"
                               "%all = shufflevector {0} %one, {0} poison, <{5} x i32> zeroinitializer\n"
                               "%a16 = bitcast {0} %all to {2}\n%b16 = bitcast <{4} x i8> %b to {2}\n",
                               sums, by.code, words, name, 4 * lanes, lanes) +
                           split("a16", kind.group) + split("b16", kind.lanes) +
                           fmt::format(
                               "%even = call {0} @{1}({2} %a16.even, {2} %b16.even)\n"
                               "%odd = call {0} @{1}({2} %a16.odd, {2} %b16.odd)\n"
                               "%more = add {0} %c, %even\n%sum = add {0} %more, %odd\nret {0} %sum\n}}\n",
                               sums, by.code, words);
  return parse_intrinsics(text_of(kind, by, 4, "i32", code), name).front();
}

IntrinsicPointer dot_product(const Kind& kind, const Instruction& by) {
  if (kind.group == "bf16") return dot_product_of_floats(kind, by);
  if (by.name.starts_with("vpmaddwd")) return dot_product_of_words(kind, by);
  const std::int64_t lanes = by.vector_bits / 32;
  const bool is_x86 = by.architecture == "x86_64";
  // Vectors are of groups on x86-64, of bytes on AArch64.
  const std::string sums = fmt::format("<{} x i32>", lanes), bytes = fmt::format("<{} x i8>", 4 * lanes),
                    operand = is_x86 ? sums : bytes;
  const auto as_operand = [&](std::string_view name, std::string_view from) {
    return is_x86 ? fmt::format("%{} = bitcast {} {} to {}\n", name, bytes, from, sums) : "";
  };
  const auto call = [&](std::string_view name, std::string_view sum, std::string_view first, std::string_view second) {
    return fmt::format("%{} = call {} @{}({} {}, {} {}, {} {})\n", name, sums, by.code, sums, sum, operand, first,
                       operand, second);
  };
  const auto splat = [&](std::string_view name, std::string_view group) {
    std::string text = fmt::format(
        "%{0}.one = insertelement {1} poison, i32 {2}, i32 0\n"
        "%{0}.all = shufflevector {1} %{0}.one, {1} poison, <{3} x i32> zeroinitializer\n",
        name, sums, group, lanes);
    if (!is_x86) text += fmt::format("%{0}.bytes = bitcast {1} %{0}.all to {2}\n", name, sums, bytes);
    return text;
  };
  const auto all_of = [&](std::string_view name) { return fmt::format("%{}.{}", name, is_x86 ? "all" : "bytes"); };
  const std::string columns = is_x86 ? "%columns" : "%b";
  std::string code = "%group = bitcast <4 x i8> %a to i32\n" + as_operand("columns", "%b");
  if (kind.group == kind.lanes && by.has_order) {
    // (a + 128) * b - 128 * b; the latter is the same for all groups that the lanes meet.
    code += "%shifted = xor i32 %group, -2139062144\n" + splat("group", "%shifted") + splat("offset", "-2139062144") +
            call("more", "%c", all_of("group"), columns) + call("less", "zeroinitializer", all_of("offset"), columns) +
            fmt::format("%sum = sub {} %more, %less\n", sums);
  } else {
    const bool is_swapped = by.has_order && kind.group == "i8";
    code += splat("group", "%group") +
            (is_swapped ? call("sum", "%c", columns, all_of("group")) : call("sum", "%c", all_of("group"), columns));
  }
  const std::string name = name_of(kind, by);
  const std::string whole = fmt::format(
      "declare {0} @{1}({0}, {2}, {2})\ndefine {0} @{3}({0} %c, <4 x i8> %a, {4} %b) {{\n{5}ret {0} %sum\n}}\n", sums,
      by.code, operand, name, bytes, code);
  return parse_intrinsics(text_of(kind, by, 4, "i32", whole), name).front();
}

// Numbers of few bits, several in each byte: groups of signed bytes, one for each place in a byte, times what has that
// place. Sums of all places of a pair of bytes fit 16 bits, so that products of pairs are exact.
IntrinsicPointer dot_product_of_few_bits(int bits, const Instruction& by) {
  const std::int64_t lanes = by.vector_bits / 32;
  const int places = 8 / bits, mask = (1 << bits) - 1;
  const bool is_x86 = by.architecture == "x86_64", is_pairs = by.name.starts_with("vpmaddubsw");
  const std::string name = fmt::format("{}_i8x{}", by.name, places), sums = fmt::format("<{} x i32>", lanes),
                    words = fmt::format("<{} x i16>", 2 * lanes), bytes = fmt::format("<{} x i8>", 4 * lanes);
  const std::string operand = is_x86 && !is_pairs ? sums : bytes, result = is_pairs ? words : sums;
  std::string code = is_pairs ? fmt::format("declare {0} @{1}({2}, {2})\ndeclare {3} @{4}({0}, {0})\n", words, by.code,
                                            bytes, sums, pairs_of_words(by))
                              : fmt::format("declare {0} @{1}({0}, {2}, {2})\n", sums, by.code, operand);
  code += fmt::format(
      "define {0} @{1}({0} %c, <{2} x i8> %a, {3} %b) {{\n"
      "%groups = bitcast <{2} x i8> %a to <{4} x i32>\n%shifted0 = bitcast {3} %b to {5}\n",
      sums, name, 4 * places, bytes, places, words);
  for (int place = 0; place < places; ++place) {
    if (place > 0) code += fmt::format("%shifted{} = lshr {} %shifted0, splat (i16 {})\n", place, words, bits * place);
    code += fmt::format(
        "%kept{0} = and {1} %shifted{0}, splat (i16 {2})\n%numbers{0} = bitcast {1} %kept{0} to {3}\n"
        "%group{0} = extractelement <{4} x i32> %groups, i32 {0}\n"
        "%one{0} = insertelement {5} poison, i32 %group{0}, i32 0\n"
        "%all{0} = shufflevector {5} %one{0}, {5} poison, <{6} x i32> zeroinitializer\n"
        "%factors{0} = bitcast {5} %all{0} to {3}\n",
        place, words, 257 * mask, operand, places, sums, lanes);
    const std::string before = place > 0 ? fmt::format("%sum{}", place - 1) : "%c";
    if (is_pairs) {
      code += fmt::format("%{3}{0} = call {1} @{4}({2} %numbers{0}, {2} %factors{0})\n", place, words, bytes,
                          place > 0 ? "pairs" : "sum", by.code);
      if (place > 0) code += fmt::format("%sum{0} = add {1} {2}, %pairs{0}\n", place, words, before);
    } else {
      code += fmt::format("%sum{0} = call {1} @{2}({1} {3}, {4} %numbers{0}, {4} %factors{0})\n", place, sums, by.code,
                          before, operand);
    }
  }
  code += is_pairs ? fmt::format("%wide = call {0} @{1}({2} %sum{3}, {2} splat (i16 1))\n%sum = add {0} %c, %wide\n",
                                 sums, pairs_of_words(by), words, places - 1)
                   : "";
  code += fmt::format("ret {} %sum{}\n}}\n", sums, is_pairs ? "" : std::to_string(places - 1));
  const std::string text = fmt::format(
      "intrinsic {0}\nneeds {1}\ncomputes input A[{2},4] : i8; input B[{3},4] : u8; "
      "output C[j] : i32 += A[h,l] * bit_and(B[j,l] >> {4} * h,{5}) where j={3}, h={2}, l=4\nbody\n{6}end\n",
      name, by.needs, places, lanes, bits, mask, code);
  return parse_intrinsics(text, name).front();
}

bool runs_on(const Instruction& instruction, const Target& target) {
  const std::string_view architecture = std::string_view(target.triple).substr(0, target.triple.find('-'));
  return instruction.architecture == architecture && target.vector_bits >= instruction.vector_bits &&
         missing_feature(target, std::string(instruction.needs)).empty();
}

}  // namespace

std::vector<IntrinsicPointer> dot_products(const Target& target) {
  std::vector<IntrinsicPointer> result;
  const auto best = [&](std::span<const Instruction> all) {
    const auto by =
        std::find_if(all.begin(), all.end(), [&](const Instruction& each) { return runs_on(each, target); });
    return by == all.end() ? nullptr : &*by;
  };
  for (const Kind& kind : kinds())
    if (const Instruction* const by = best(kind.by)) result.push_back(dot_product(kind, *by));
  if (const Instruction* const by = best(of_few_bits))
    for (const int bits : {4, 2}) result.push_back(dot_product_of_few_bits(bits, *by));
  return result;
}

bool are_dot_products(std::span<const IntrinsicPointer> intrinsics) {
  static const std::vector<IntrinsicPointer> all = [] {
    std::vector<IntrinsicPointer> made;
    for (const Kind& kind : kinds())
      for (const Instruction& by : kind.by) made.push_back(dot_product(kind, by));
    for (const Instruction& by : of_few_bits)
      for (const int bits : {4, 2}) made.push_back(dot_product_of_few_bits(bits, by));
    return made;
  }();
  return std::all_of(intrinsics.begin(), intrinsics.end(), [](const IntrinsicPointer& intrinsic) {
    return std::any_of(all.begin(), all.end(), [&](const IntrinsicPointer& own) { return *own == *intrinsic; });
  });
}

}  // namespace graft::codegen
