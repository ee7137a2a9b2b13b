// graft's own dot products of bytes and of bf16: which targets have them, that spaces by rule reach them in products
// and windows, and that what they compute is exact.
#include "codegen/machine/dot_products.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/expression/workload.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "tests/machine/support.h"
#include "tests/support/judged_space.h"
#include "tests/support/programs.h"
#include "tests/support/refusal.h"

namespace graft::codegen {
namespace {

using namespace test;

Target target_of(const std::string& triple, const std::string& cpu, const std::string& features, int bits) {
  Target target;
  target.triple = triple, target.cpu = cpu, target.features = features;
  target.vector_bits = bits, target.vector_registers = 32;
  return target;
}

const std::string x86 = "x86_64-unknown-linux-gnu", arm = "aarch64-unknown-linux-gnu",
                  riscv = "riscv64-unknown-linux-gnu";

std::vector<std::string> names_for(const Target& target) {
  std::vector<std::string> names;
  for (const IntrinsicPointer& intrinsic : dot_products(target)) names.push_back(intrinsic->name);
  return names;
}

TEST(DotProducts, TargetsHaveThoseOfTheirInstructions) {
  using Names = std::vector<std::string>;
  Names widest = {"vpdpbusd_512_u8i8", "vpdpbusd_512_i8u8", "vpdpbusd_512_i8i8", "vpmaddwd_512_u8u8"};
  const auto with = [](Names names, const std::string& few_bits) {
    names.push_back(few_bits + "_i8x2"), names.push_back(few_bits + "_i8x4");
    return names;
  };
  EXPECT_EQ(names_for(target_of(x86, "x86-64-v4", "+avx512vnni", 512)), with(widest, "vpdpbusd_512"));
  widest.push_back("vdpbf16ps_512_bf16bf16");
  EXPECT_EQ(names_for(target_of(x86, "sapphirerapids", "", 512)), with(widest, "vpdpbusd_512"));
  EXPECT_EQ(names_for(target_of(x86, "sapphirerapids", "", 256)),
            with({"vpdpbusd_256_u8i8", "vpdpbusd_256_i8u8", "vpdpbusd_256_i8i8", "vpmaddwd_256_u8u8",
                  "vdpbf16ps_256_bf16bf16"},
                 "vpdpbusd_256"));
  EXPECT_EQ(names_for(target_of(x86, "alderlake", "", 256)),
            with({"vpdpbusd_vex_u8i8", "vpdpbusd_vex_i8u8", "vpdpbusd_vex_i8i8", "vpmaddwd_256_u8u8"}, "vpdpbusd_vex"));
  EXPECT_EQ(
      names_for(target_of(x86, "x86-64-v4", "", 512)),
      with({"vpmaddwd_512_u8i8", "vpmaddwd_512_i8u8", "vpmaddwd_512_i8i8", "vpmaddwd_512_u8u8"}, "vpmaddubsw_512"));
  EXPECT_EQ(
      names_for(target_of(x86, "x86-64-v3", "", 256)),
      with({"vpmaddwd_256_u8i8", "vpmaddwd_256_i8u8", "vpmaddwd_256_i8i8", "vpmaddwd_256_u8u8"}, "vpmaddubsw_256"));
  EXPECT_EQ(names_for(target_of(x86, "x86-64-v2", "", 128)), Names());
  EXPECT_EQ(names_for(target_of(arm, "cortex-a76", "", 128)), with({"sdot_i8i8", "udot_u8u8"}, "sdot"));
  EXPECT_EQ(names_for(target_of(arm, "cortex-a72", "", 128)), Names());
  EXPECT_EQ(names_for(target_of(arm, "neoverse-v1", "+i8mm", 128)),
            with({"usdot_u8i8", "usdot_i8u8", "sdot_i8i8", "udot_u8u8", "bfdot_bf16bf16"}, "sdot"));
  EXPECT_EQ(names_for(target_of(riscv, "generic-rv64", "+m,+a,+f,+d,+v", 256)), Names());
}

TEST(DotProducts, TheirTextsAreKnownAsOwn) {
  const auto own = dot_products(target_of(x86, "sapphirerapids", "", 512));
  EXPECT_TRUE(are_dot_products(own));
  EXPECT_TRUE(are_dot_products(parse_intrinsics(to_text(*own[0]), "again")));
  EXPECT_FALSE(are_dot_products(parse_intrinsics(replaced(to_text(*own[0]), "%sum\n", "%c\n"), "other")));
}

struct Types {
  std::string data, weights;
};
const Types all_types[] = {{"u8", "i8"}, {"i8", "u8"}, {"i8", "i8"}, {"u8", "u8"}, {"bf16", "bf16"}};

std::vector<std::string> workloads(const Types& of) {
  const auto typed = [&](std::string text) {
    for (std::size_t at; (at = text.find("DATA")) != std::string::npos;) text.replace(at, 4, of.data);
    for (std::size_t at; (at = text.find("WEIGHTS")) != std::string::npos;) text.replace(at, 7, of.weights);
    for (std::size_t at; of.data == "bf16" && (at = text.find(" i32")) != std::string::npos;)
      text.replace(at, 4, " f32");
    return text;
  };
  return {
      typed("input A[9,24] : DATA; constant B[24,35] : WEIGHTS; output C[i,j] : i32 += A[i,l] * B[l,j] "
            "where i=9, j=35, l=24"),
      typed("input A[9,22] : DATA; input B[22,35] : WEIGHTS; output C[i,j] : i32 += A[i,l] * B[l,j] "
            "where i=9, j=35, l=22"),
      typed("input X[1,8,9,17] : DATA; constant W[20,8,3,3] : WEIGHTS; "
            "P[b,i,p,q] : DATA = pad(X[b,i,p - 1,q - 1], 3) where b=1, i=8, p=11, q=19; "
            "T[b,o,y,x] : i32 += P[b,i,y + u,x + v] * W[o,i,u,v] where b=1, i=8, o=20, y=9, x=17, u=3, v=3; "
            "output Y[b,o,y,x] : u8 = saturate_u8(round(cast_f32(T[b,o,y,x] + 5) * 0.0625) + 7) "
            "where b=1, o=20, y=9, x=17"),
      typed("input X[1,8,6,18] : DATA; constant W[20,8,1,1] : WEIGHTS; "
            "output Y[b,o,y,x] : i32 += X[b,i,2*y,x] * W[o,i,0,0] where b=1, i=8, o=20, y=3, x=18"),
      typed("input X[1,6,7,12] : DATA; constant W[3,3,12,20] : WEIGHTS; "
            "output Y[b,y,x,o] : i32 += X[b,y + u,x + v,i] * W[u,v,i,o] where b=1, i=12, o=20, y=4, x=5, u=3, v=3"),
      typed("input X[1,2,7,6,16] : DATA; constant W[2,2,3,3,16,16] : WEIGHTS; output Y[b,o,y,x,k] : i32 += "
            "X[b,i,y + u,x + v,j] * W[o,i,u,v,j,k] where b=1, o=2, y=5, x=4, k=16, i=2, j=16, u=3, v=3"),
  };
}

// The sketches of a space that hold a dot product.
std::vector<SketchSpace> with_dot_products(const Workload& workload, const Target& target) {
  std::vector<SketchSpace> found;
  const Space space = derive_space(workload, target, dot_products(target));
  for (const SketchSpace& part : space.sketches())
    if (!part.sketch->intrinsics.empty()) found.push_back(part);
  return found;
}

TEST(DotProducts, ProductsAndWindowsOfTheSpaceByRuleAreExact) {
  const Target host = host_target();
  if (dot_products(host).empty()) GTEST_SKIP() << host.cpu << " has no dot products of bytes";
  for (const Types& types : all_types)
    for (const std::string& text : workloads(types)) {
      SCOPED_TRACE(text);
      const Workload workload = parse_workload(text);
      const std::vector<SketchSpace> parts = with_dot_products(workload, host);
      const bool is_float = types.data == "bf16";
      if (host.triple.starts_with("x86") && !is_float) {
        EXPECT_FALSE(parts.empty());
      }
      if (is_float) {
        const auto known = names_for(host);
        EXPECT_EQ(parts.empty(), std::none_of(known.begin(), known.end(),
                                              [](const std::string& name) { return name.ends_with("bf16bf16"); }));
      }
      for (const SketchSpace& part : parts) {
        SCOPED_TRACE(to_text(*part.sketch));
        const JudgedSpace space(workload, host, {part});
        base::Stream stream(3, text);
        for (int draw = 0; draw < 3; ++draw) {
          const auto lowered = program(space.sample(stream), host);
          ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
          expect_as_reference(*lowered, workload.computation(), host);
        }
      }
    }
}

// A product of bytes with numbers of few bits, as networks have it.
std::string few_bits(int bits, int rows = 3) {
  const int places = 8 / bits;
  return fmt::format(
      "input X[{m},3,2,{h},4]:i8; constant B[64,3,2,4]:u8; constant S[64,3]; input R[{m},3]; input T[{m},3]; "
      "P[i,b,j | p,h,l]:i32 += X[i,b,p,h,l] * {number}; "
      "output Y[i,j] += S[j,b] * (R[i,b] * (cast_f32(P[i,b,j]) - {zero} * T[i,b])) where i={m}, b=3, j=64, p=2, h={h}, "
      "l=4",
      fmt::arg("m", rows), fmt::arg("h", places), fmt::arg("zero", 1 << (bits - 1)),
      fmt::arg("number",
               bits == 8 ? "B[j,b,p,l]" : fmt::format("bit_and(B[j,b,p,l] >> {} * h,{})", bits, (1 << bits) - 1)));
}

TEST(DotProducts, NumbersOfFewBits) {
  const Target host = host_target();
  if (dot_products(host).empty()) GTEST_SKIP() << host.cpu << " has no dot products of bytes";
  for (const int bits : {4, 2, 8})
    for (const int rows : {1, 3}) {
      const Workload workload = parse_workload(few_bits(bits, rows));
      SCOPED_TRACE(workload.text());
      const std::vector<SketchSpace> parts = with_dot_products(workload, host);
      ASSERT_EQ(parts.size(), 1);
      const JudgedSpace space(workload, host, {parts.front()});
      base::Stream stream(3, "few bits");
      for (int draw = 0; draw < 4; ++draw) {
        const auto lowered = program(space.sample(stream), host);
        ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
        EXPECT_FALSE(lowered->intrinsics.empty());
        expect_as_reference(*lowered, workload.computation(), host);
      }
    }
}

// Their instruction is in code for other targets, and plain loops compute the same.
TEST(DotProducts, NumbersOfFewBitsOnOtherTargets) {
  for (const auto& [target, instruction] : {std::tuple(target_of(arm, "cortex-a76", "", 128), "sdot"),
                                            std::tuple(target_of(x86, "x86-64-v3", "", 256), "vpmaddubsw"),
                                            std::tuple(target_of(x86, "x86-64-v4", "", 512), "vpmaddubsw"),
                                            std::tuple(target_of(x86, "alderlake", "", 256), "vpdpbusd"),
                                            std::tuple(target_of(x86, "sapphirerapids", "", 512), "vpdpbusd")})
    for (const int bits : {4, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", instruction, bits));
      const Workload workload = parse_workload(few_bits(bits));
      const std::vector<SketchSpace> parts = with_dot_products(workload, target);
      ASSERT_EQ(parts.size(), 1);
      base::Stream stream(4, "few bits");
      const auto lowered = program(JudgedSpace(workload, target, {parts.front()}).sample(stream), target);
      ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
      const auto listed = listing(*lowered, target);
      ASSERT_TRUE(listed.ok()) << listed.reason().text;
      EXPECT_TRUE(contains(listed->assembly, instruction)) << listed->assembly;
      Target plain = target_of(x86, "x86-64-v2", "", 128);
      if (host_target().triple.starts_with("x86"))
        expect_as_reference(without_foreign_intrinsics(*lowered, plain), workload.computation(), plain);
    }
}

// Channels in blocks lie in groups: neither copies nor plain vectors are tried.
TEST(DotProducts, InputsInGroupsLeaveNoOtherSketches) {
  const Target target = target_of(arm, "cortex-a76", "", 128);
  const Workload workload = parse_workload(workloads(all_types[2]).back());
  const Space space = derive_space(workload, target, dot_products(target));
  ASSERT_FALSE(space.sketches().empty());
  for (const SketchSpace& part : space.sketches()) {
    EXPECT_FALSE(part.sketch->intrinsics.empty()) << part.sketch->name;
    EXPECT_FALSE(contains(part.sketch->name, "groups_of")) << part.sketch->name;
  }
}

// Code for targets that this host is not: their instruction is in it.
TEST(DotProducts, OtherTargetsGetTheirInstructions) {
  for (const auto& [target, types, instruction] :
       {std::tuple(target_of(arm, "cortex-a76", "", 128), all_types[2], "sdot"),
        std::tuple(target_of(arm, "cortex-a76", "", 128), all_types[3], "udot"),
        std::tuple(target_of(arm, "neoverse-v1", "+i8mm", 128), all_types[0], "usdot"),
        std::tuple(target_of(arm, "neoverse-v1", "", 128), all_types[4], "bfdot"),
        std::tuple(target_of(x86, "sapphirerapids", "", 512), all_types[4], "vdpbf16ps"),
        std::tuple(target_of(x86, "alderlake", "", 256), all_types[0], "vpdpbusd"),
        std::tuple(target_of(x86, "x86-64-v3", "", 256), all_types[0], "vpmaddwd"),
        std::tuple(target_of(x86, "x86-64-v4", "", 512), all_types[2], "vpmaddwd"),
        std::tuple(target_of(x86, "x86-64-v3", "", 256), all_types[3], "vpmaddwd"),
        std::tuple(target_of(x86, "sapphirerapids", "", 256), all_types[2], "vpdpbusd")}) {
    for (const std::string& text : workloads(types)) {
      SCOPED_TRACE(std::string(instruction) + ": " + text);
      const Workload workload = parse_workload(text);
      const std::vector<SketchSpace> parts = with_dot_products(workload, target);
      ASSERT_FALSE(parts.empty());
      base::Stream stream(4, text);
      const auto lowered = program(JudgedSpace(workload, target, {parts.front()}).sample(stream), target);
      ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
      const auto listed = listing(*lowered, target);
      ASSERT_TRUE(listed.ok()) << listed.reason().text;
      EXPECT_TRUE(contains(listed->assembly, instruction)) << listed->assembly;
      // A machine without it computes the same in plain loops.
      Target plain = target_of(x86, "x86-64-v2", "", 128);
      if (host_target().triple.starts_with("x86")) {
        const LoopProgram loops = without_foreign_intrinsics(*lowered, plain);
        EXPECT_TRUE(loops.intrinsics.empty());
        expect_as_reference(loops, workload.computation(), plain);
      }
    }
  }
}

// Signed data lose their sign on x86-64, so that one instruction does for a group.
TEST(DotProducts, SignedDataBecomeUnsigned) {
  const Target target = target_of(x86, "sapphirerapids", "", 512);
  bool found = false;
  for (const SketchSpace& part : with_dot_products(parse_workload(workloads(all_types[2])[2]), target)) {
    const std::string text = to_text(*part.sketch);
    if (!contains(text, "unsign T P\n")) continue;
    found = true;
    EXPECT_TRUE(contains(text, "layout T.P 0 1/4 2 3 1%4\n")) << text;
    EXPECT_TRUE(contains(text, "fuse T Y")) << text;
  }
  EXPECT_TRUE(found);
}

TEST(DotProducts, ASpaceOfAFileBeginsWithThemFromRules) {
  const Target target = target_of(x86, "sapphirerapids", "", 512);
  const Workload workload = parse_workload(workloads(all_types[0])[0]);
  const Space space =
      parse_space("from rules\n$spread{|parallel C i.0}\n", "test", workload, target, dot_products(target));
  EXPECT_TRUE(std::any_of(space.sketches().begin(), space.sketches().end(),
                          [](const SketchSpace& part) { return !part.sketch->intrinsics.empty(); }));
}

}  // namespace
}  // namespace graft::codegen
