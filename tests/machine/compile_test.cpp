#include "codegen/machine/compile.h"

#include <signal.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "tests/machine/support.h"

namespace graft::codegen {
namespace {

using namespace test;

std::string with(std::string text, const std::string& word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
  return text;
}

Target target(const char* triple, const char* cpu, const char* features) {
  Target t;
  t.triple = triple, t.cpu = cpu, t.features = features;
  return t;
}

constexpr const char* naive_matmul = R"(buffer A f32 [9,11] input
buffer B f32 [11,13] input
buffer C f32 [9,13] output
run
  for i 9
    for j 13
      C[i,j] = 0
      for k 11
        C[i,j] += A[i,k] * B[k,j]
)";

TEST(Compile, NaiveMatmulInEveryType) {
  for (const char* type : {"f32", "f64", "i32"}) expect_right(with(naive_matmul, "f32", type));
}

TEST(Compile, RegisterTileWithUnrolledReduction) {
  const char* text = R"(buffer A f32 [16,24] input
buffer B f32 [24,64] input
buffer C f32 [16,64] output
buffer acc f32 [4,32] temporary registers
run
  for i.0 4
    for j.0 2
      for i.1 4 unrolled
        for j.1 2 unrolled
          for j.v 16 vector
            acc[i.1,16*j.1+j.v] = 0
      for k.0 6
        for k.1 4 unrolled
          for i.1 4 unrolled
            for j.1 2 unrolled
              for j.v 16 vector
                acc[i.1,16*j.1+j.v] += A[4*i.0+i.1,4*k.0+k.1] * B[4*k.0+k.1,32*j.0+16*j.1+j.v]
      for i.1 4 unrolled
        for j.1 2 unrolled
          for j.v 16 vector
            C[4*i.0+i.1,32*j.0+16*j.1+j.v] = acc[i.1,16*j.1+j.v]
)";
  for (const char* type : {"f32", "f64", "i32"}) expect_right(with(text, "f32", type));
}

TEST(Compile, OddVectorsStayInTheirBuffers) {
  for (int lanes : {1, 2, 3, 7, 13, 17})
    expect_right(with(R"(buffer A f32 [5,6] input
buffer B f32 [6,LANES] input
buffer C f32 [5,LANES] output
buffer acc f32 [LANES] temporary registers
run
  for i 5
    for v LANES vector
      acc[v] = 0
    for k 6
      for v LANES vector
        acc[v] += A[i,k] * B[k,v]
    for v LANES vector
      C[i,v] = acc[v]
)",
                      "LANES", std::to_string(lanes)));
}

TEST(Compile, StridedLoadsAndStores) {
  // The last load of stride 2 ends at the buffer's last element.
  expect_right(R"(buffer A f32 [31] input
buffer B f32 [48] input
buffer C f32 [16] output
buffer D f32 [46] output
run
  for v 16 vector
    C[v] = A[2*v] + B[3*v]
  for w 46
    D[w] = 0
  for v 16 vector
    D[3*v] = A[v] * B[47-v]
)");
}

TEST(Compile, RegistersReadAndWrittenInDifferentWidths) {
  expect_right(R"(buffer A f32 [8] input
buffer C f32 [8] output
buffer D f32 [5] output
buffer r f32 [8] temporary registers
run
  for v 8 vector
    r[v] = A[v]
  for n 3
    for u 2 unrolled
      r[3*u+1] += A[n]
    for v 4 vector
      r[v+2] max= A[v+n]
  for v 8 vector
    C[v] = r[v]
  for v 5 vector
    D[v] = r[v+3]
)");
}

TEST(Compile, ReductionsByMaxMinAndAcrossLanes) {
  for (const char* type : {"f32", "f64", "i32"})
    expect_right(with(R"(buffer A f32 [6,24] input
buffer H f32 [6] output
buffer L f32 [6] output
buffer S f32 [6] output
buffer P f32 [6] output
buffer m f32 [1] temporary registers
run
  for i 6
    m[0] = -1000
    for k 24
      m[0] max= A[i,k]
    H[i] = m[0]
    L[i] = 1000
    for v 24 vector
      L[i] min= A[i,v]
    S[i] = 0
    P[i] = 3
    for k 2
      for v 12 vector
        S[i] += A[i,12*k+v]
        P[i] += A[i,12*k+v] * A[i,v]
)",
                      "f32", type));
}

TEST(Compile, EpilogueWithExpAndSqrt) {
  for (const char* type : {"f32", "f64"})
    expect_right(with(R"(buffer A f32 [4,19] input
buffer B f32 [19] constant
buffer C f32 [4,19] output
buffer D f32 [4,19] output
run
  for i 4
    for v 19 vector
      C[i,v] = max(A[i,v] + B[v], 0) * exp(A[i,v])
      D[i,v] = sqrt(exp(B[v] * 8)) / (2 - A[i,v]) - min(A[i,v], 0.25)
)",
                      "f32", type),
                 std::string(type) == "f32" ? 2e-6 : 1e-14);
}

// The whole range of exp: relative error, overflow to infinity, underflow to zero.
TEST(Compile, ExpIsAccurateEverywhere) {
  for (const char* type : {"f32", "f64"}) {
    const bool single = std::string(type) == "f32";
    const LoopProgram program = parsed(with(R"(buffer X f32 [4000] input
buffer Y f32 [4000] output
run
  for i 250
    for v 16 vector
      Y[16*i+v] = exp(X[16*i+v])
)",
                                            "f32", type));
    Numbers inputs = inputs_of(program, 1);
    const double edge = single ? 87.0 : 708.0;
    for (int i = 0; i < 4000; ++i) {
      const double x = -edge + 2 * edge * i / 3999;
      inputs[0][std::size_t(i)] = single ? double(float(x)) : x;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    inputs[0][0] = infinity, inputs[0][1] = -infinity, inputs[0][2] = 1e4, inputs[0][3] = -1e4, inputs[0][4] = 0;
    const auto object = compile(program, host_target());
    ASSERT_TRUE(object.ok()) << object.reason().text;
    const auto library = link_shared({&*object});
    ASSERT_TRUE(library.ok()) << library.reason().text;
    const Numbers got = executed(program, *object, *library, inputs);
    EXPECT_EQ(got[1][0], infinity);
    EXPECT_EQ(got[1][1], 0);
    EXPECT_EQ(got[1][2], infinity);
    EXPECT_EQ(got[1][3], 0);
    EXPECT_EQ(got[1][4], 1);
    for (std::size_t i = 5; i < 4000; ++i) {
      const double expected = std::exp(inputs[0][i]);
      ASSERT_LE(std::abs(got[1][i] - expected), (single ? 3e-7 : 6e-16) * expected)
          << type << " exp(" << inputs[0][i] << ")";
    }
  }
}

TEST(Compile, LoadsAreConvertedToTheTargetsType) {
  expect_right(R"(buffer A f32 [12] input
buffer B i32 [12] input
buffer C f64 [12] output
buffer D i32 [12] output
buffer E f32 [12] output
run
  for v 12 vector
    C[v] = A[v] * B[v]
    D[v] = B[v] * 3 - A[v]
    E[v] = B[v] + 0.5
)");
}

TEST(Compile, PrepareRepacksIntoTheWorkspace) {
  expect_right(R"(buffer A f32 [6,8] input
buffer B f32 [8,32] constant
buffer C f32 [6,32] output
buffer packed f32 [2,8,16] temporary
buffer row f32 [8] temporary
prepare
  for j.0 2 parallel
    for k 8
      for v 16 vector
        packed[j.0,k,v] = B[k,16*j.0+v]
run
  for i 6
    for v 8 vector
      row[v] = A[i,v]
    for j.0 2
      for v 16 vector
        C[i,16*j.0+v] = 0
      for k 8
        for v 16 vector
          C[i,16*j.0+v] += row[k] * packed[j.0,k,v]
)");
}

const char* const rows_with_temporaries = R"(buffer A f32 [6,8] input
buffer C f32 [6,8] output
buffer D f32 [6] output
buffer total f32 [1] temporary
buffer row f32 [8] temporary
run
  total[0] = 0
  for i 6 parallel
    for v 8 vector
      row[v] = A[i,v] + 1
    for j 8
      C[i,j] = row[7-j]
  for i 6
    total[0] += C[i,0]
  for i 6 parallel
    D[i] = total[0] + C[i,1]
)";

TEST(Compile, ParallelLoopsWithPrivateTemporaries) {
  expect_right(rows_with_temporaries, 1e-5, 4, 4 + 4);
  expect_right(rows_with_temporaries, 1e-5, 100, 7 + 6);  // the first nest needs nothing of the second: one task more
}

TEST(Compile, CodeForOneThreadNeverCallsParallelFor) {
  expect_right(rows_with_temporaries);
}

// Loops fused into one range of tasks, with remainders in nests of their own and a tile for each slot.
TEST(Compile, BandsWithRemaindersAreOneCallOfParallelFor) {
  const std::string text = R"(buffer A f32 [11,7] input
buffer C f32 [11,7] output
buffer tile f32 [4,3] temporary
buffer tile2 f32 [4,1] temporary
run
  for i.0 2 parallel
    for j.0 2 parallel
      for i.1 4
        for j.1 3
          tile[i.1,j.1] = A[4*i.0+i.1,3*j.0+j.1] * 2
      for i.1 4
        for j.1 3
          C[4*i.0+i.1,3*j.0+j.1] = tile[3-i.1,2-j.1]
  for i.0 2 parallel
    for i.1 4
      tile2[i.1,0] = A[4*i.0+i.1,6]
    for i.1 4
      C[4*i.0+i.1,6] = tile2[3-i.1,0]
  for j.0 2 parallel
    for i.1 3
      for j.1 3
        C[8+i.1,3*j.0+j.1] = A[8+i.1,3*j.0+j.1]
  for i.1 3
    C[8+i.1,6] = A[8+i.1,6]
)";
  for (const std::int64_t threads : {2, 3, 8}) expect_right(text, 1e-5, threads, threads);
  EXPECT_EQ(signature(parsed(text)).scratch_bytes, 64 + 64);
  EXPECT_EQ(signature(parsed(text), 3).scratch_bytes, 3 * 64 + 3 * 64);
}

TEST(Compile, ParallelLoopsOfOneIterationAreTasksToo) {
  expect_right(R"(buffer C f32 [2,6] output
buffer t f32 [6] temporary
run
  for i 1 parallel
    for j 6
      t[j] = 3
    for j 6
      C[0,j] = t[5-j]
  for i 1 parallel
    for j 6
      C[1,j] = 4
)",
               1e-5, 2, 2);
  expect_right("buffer C f32 [2] output\nrun\n  for i 1 parallel\n    for j 2\n      C[j] = 3\n", 1e-5, 2, 0);
  expect_right(R"(buffer C f32 [4,6] output
run
  for i 1 parallel
    for j 1 parallel
      for k 4
        C[k+i,j] = 3
  for i 1 parallel
    for j 4 parallel
      for k 5
        C[j,1+k+i] = 2
)",
               1e-5, 2, 2);
}

TEST(Compile, ExtentOneLoopsOfAnyKind) {
  expect_right(R"(buffer A f32 [3] input
buffer C f32 [3] output
run
  for p 1 parallel
    for s 1
      for u 3 unrolled
        for v 1 vector
          C[u+v] = A[2-u+s+p]
)");
}

// Everywhere a loop's iterations begin, and beyond the ends of buffers, where pages cannot be touched.
TEST(Compile, PrefetchesChangeNothing) {
  const std::string text = R"(buffer A f32 [40,64] input
buffer C f32 [40,64] output
buffer T f32 [64] temporary
run
  for i 40 prefetch A[i + 39,0], A[i - 39,63], C[i + 2,16]
    for u 2 unrolled prefetch A[i + 1,32*u]
      for j 32
        T[32*u + j] = A[i,32*u + j]
    for o 1 prefetch T[63]
      for v 64 vector
        C[i,v] = T[v] + 1
)";
  expect_right(text);
  const auto listed = listing(parsed(text), host_target());
  ASSERT_TRUE(listed.ok()) << listed.reason().text;
  std::size_t prefetches = 0;
  const std::string_view call = "call void @llvm.prefetch";
  for (std::size_t at = 0; (at = listed->ir.find(call, at)) != std::string::npos; at += call.size()) ++prefetches;
  EXPECT_EQ(prefetches, 3u + 2 + 1) << listed->ir;
  const std::pair<const char*, const char*> targets[] = {{"x86_64-unknown-linux-gnu", "x86-64-v2"},
                                                         {"aarch64-unknown-linux-gnu", "cortex-a53"},
                                                         {"powerpc64le-unknown-linux-gnu", "pwr9"},
                                                         {"riscv64-unknown-linux-gnu", "sifive-u54"}};
  for (const auto& [triple, cpu] : targets) {
    Target target;
    target.triple = triple;
    target.cpu = cpu;
    const auto object = compile(parsed(text), target);
    EXPECT_TRUE(object.ok()) << cpu << ": " << object.reason().text;
  }
}

// Random affine nests: any kinds of loops, strides and offsets.
TEST(Compile, RandomNestsAgreeWithTheInterpreter) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::uint64_t state = seed * 0x9e3779b97f4a7c15u;
    const auto random = [&](int n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return int((state >> 33) % std::uint64_t(n));
    };
    const int ei = 1 + random(5), ek = 1 + random(6), ev = 1 + random(20);
    const int si = random(4), sk = random(4), sv = random(5), ti = random(2), tv = random(2), s2 = random(3);
    const auto size = [&](int a, int b, int c) { return a * (ei - 1) + b * (ek - 1) + c * (ev - 1) + 3; };
    const char* kinds[] = {"", " unrolled"};
    const char* combines[] = {"+=", "max=", "min="};
    const char* types[] = {"f32", "f64", "i32"};
    const std::string type = types[random(3)];
    const std::string n = std::to_string(size(si, sk, sv)), m = std::to_string(size(0, s2, 1)),
                      c = std::to_string(ei * ev);
    const auto s = [](int x) { return std::to_string(x); };
    const std::string c_index = ti || tv ? (tv ? s(ev) + "*i+v" : s(ev) + "*i") : "i+v";
    const std::string text =
        "buffer A " + type + " [" + n + "] input\nbuffer B " + type + " [" + m + "] input\nbuffer C " + type + " [" +
        s(std::max(ei * ev, ei + ev)) + "] output\nrun\n  for z " + s(std::max(ei * ev, ei + ev)) +
        "\n    C[z] = 1\n  for i " + s(ei) + kinds[random(2)] + "\n    for k " + s(ek) + kinds[random(2)] +
        "\n      for v " + s(ev) + (random(3) ? " vector" : "") + "\n        C[" + c_index + "] " +
        combines[random(3)] + " A[" + s(si) + "*i+" + s(sk) + "*k+" + s(sv) + "*v+2] * B[" + s(s2) + "*k+v] \n";
    expect_right(text);
  }
}

TEST(Compile, ObjectsNeedNothingAndHashTheirCode) {
  const LoopProgram program = parsed(naive_matmul);
  const Target host = host_target();
  const auto first = compile(program, host), second = compile(program, host);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->hash, second->hash);
  EXPECT_EQ(first->bytes, second->bytes);
  EXPECT_EQ(compile(program, host, search_pipeline(host), "other")->hash, first->hash) << "names are not code";
  EXPECT_NE(compile(parsed(with(naive_matmul, "B[k,j]", "B[k,0]")), host)->hash, first->hash);
  EXPECT_NE(compile(parsed(with(naive_matmul, "C[i,j] = 0", "C[i,j] = 1.5")), host)->hash, first->hash);
  EXPECT_GT(first->ir_instructions, 10);
  EXPECT_EQ(first->symbol, "graft");
}

TEST(Compile, SignatureListsParametersInOrder) {
  const Signature s = signature(parsed(naive_matmul));
  ASSERT_EQ(s.parameters.size(), 3u);
  EXPECT_EQ(s.parameters[0].name, "A");
  EXPECT_EQ(s.parameters[2].role, Role::output);
  EXPECT_EQ(s.parameters[2].bytes, 9 * 13 * 4);
  EXPECT_EQ(s.parameters[1].shape, (std::vector<std::int64_t>{11, 13}));
  EXPECT_EQ(s.prepared_bytes, 0);
  EXPECT_EQ(s.scratch_bytes, 0);
}

TEST(Compile, ManyObjectsInOneLibrary) {
  const LoopProgram program = parsed(naive_matmul);
  std::vector<Code> objects;
  for (int i = 0; i < 4; ++i)
    objects.push_back(*compile(program, host_target(), search_pipeline(host_target()), "k" + std::to_string(i)));
  const auto library = link_shared({&objects[0], &objects[1], &objects[2], &objects[3]});
  ASSERT_TRUE(library.ok()) << library.reason().text;
  const Numbers inputs = inputs_of(program, 3);
  expect_near(program, executed(program, objects[3], *library, inputs), interpreted(program, inputs), 1e-5);
  const auto twice = link_shared({&objects[0], &objects[0]});
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.reason().text.find("duplicate symbol"), std::string::npos) << twice.reason().text;
  EXPECT_TRUE(link_shared({&objects[0]}).ok()) << "the linker works again after an error";
}

TEST(Compile, ThreadsCompileAndLinkAtTheSameTime) {
  const LoopProgram program = parsed(naive_matmul);
  const Target host = host_target();
  const std::uint64_t alone = compile(program, host)->hash;
  std::vector<std::uint64_t> hashes(16);
  std::vector<int> linked(16);
  base::parallel_for(16, 4, [&](std::int64_t i) {
    const auto object = compile(program, host);
    if (!object) return;
    hashes[std::size_t(i)] = object->hash;
    linked[std::size_t(i)] = link_shared({&*object}).ok();
  });
  EXPECT_EQ(hashes, std::vector<std::uint64_t>(16, alone));
  EXPECT_EQ(linked, std::vector<int>(16, 1));
}

void expect_refused(const std::string& text, const std::string& words) {
  Target target = host_target();
  target.threads = 2;
  const auto object = compile(parsed(text), target);
  ASSERT_FALSE(object.ok()) << text;
  EXPECT_NE(object.reason().text.find(words), std::string::npos) << object.reason().text;
}

TEST(Compile, RefusesWhatItCannotExpress) {
  expect_refused(R"(buffer C f32 [4] output
run
  for b 4 block_x
    C[b] = 1
)",
                 "block_x: loop 'b' is for a GPU");
  expect_refused(R"(buffer C f32 [4,4] output
run
  for i 4
    for j 4 parallel
      C[i,j] = 1
)",
                 "parallel: loop 'j' is not outermost");
  expect_refused(R"(buffer C f32 [4] output
run
  for j 4 parallel
    C[0] += 1
)",
                 "parallel: iterations of 'j' may meet in the same elements of 'C'");
  expect_refused(R"(buffer C f32 [4] output
buffer r f32 [4] temporary registers
run
  for i 4
    C[i] = r[0]
)",
                 "registers: 'r' is read before it is written");
  expect_refused(R"(buffer C i32 [4] output
run
  for i 4
    C[i] = exp(1)
)",
                 "C: exp needs a floating-point type, not i32");
  expect_refused(R"(buffer C f32 [64,64,64] output
run
  for i 64 unrolled
    for j 64 unrolled
      for k 64 unrolled
        C[i,j,k] = 1
)",
                 "unrolled: more than");
}

std::string error_of(const Target& target) {
  try {
    check_target(target);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

// A description that contradicts itself would end the process in LLVM.
TEST(Targets, VectorsAreAtLeastAsLongAsTheExtensionsSay) {
  const auto error = [](const std::string& cpu, const std::string& features, std::int64_t bits) {
    Target riscv = target("riscv64-unknown-linux-gnu", cpu.c_str(), ("+m," + features).c_str());
    riscv.vector_bits = bits;
    std::string key;
    try {
      check_target(riscv);
    } catch (const TargetError& refused) {
      EXPECT_EQ(refused.key(), "vector_bits");
      return std::string(refused.what());
    }
    EXPECT_TRUE(compile(parsed(naive_matmul), riscv).ok());
    return std::string();
  };
  const std::string remedy = "; write 512 or more, or 0 for code without vectors";
  EXPECT_EQ(error("generic-rv64", "+v,+zvl512b", 256),
            "vector_bits 256 is less than the 512 that +zvl512b says" + remedy);
  EXPECT_EQ(error("sifive-x280", "", 256),
            "vector_bits 256 is less than the 512 that the cpu 'sifive-x280' has" + remedy);
  EXPECT_NE(error("spacemit-x60", "", 128).find("128 is less than the 256 that the cpu 'spacemit-x60' has"),
            std::string::npos);
  EXPECT_NE(error("generic-rv64", "+zba, +v", 64).find("64 is less than the 128 that +v says"), std::string::npos);
  EXPECT_EQ(error("generic-rv64", "+v,+zvl512b", 512), "");
  EXPECT_EQ(error("generic-rv64", "+v,+zvl512b", 1024), "");
  EXPECT_EQ(error("generic-rv64", "+v,+zvl512b", 0), "");
  EXPECT_EQ(error("generic-rv64", "+zve32f", 64), "");
  Target sve = target("aarch64-unknown-linux-gnu", "a64fx", "");
  sve.vector_bits = 4096;
  EXPECT_EQ(error_of(sve), "vector_bits 4096 is more than the 2048 that SVE may have");
}

TEST(Targets, WhatLlvmGivesUpOnIsRefusedWithItsKey) {
  const auto key = [](const std::string& triple, const std::string& cpu, const std::string& features) -> std::string {
    try {
      check_target(target(triple.c_str(), cpu.c_str(), features.c_str()));
    } catch (const TargetError& refused) {
      EXPECT_NE(std::string(refused.what()).find(refused.key()), std::string::npos) << refused.what();
      return refused.key();
    }
    return "";
  };
  EXPECT_EQ(key("riscv64-unknown-linux-gnu", "generic-rv64", "+f,+zfinx"), "features");
  EXPECT_EQ(key("riscv64-unknown-linux-gnu", "generic-rv64", "+zvl256b"), "features");
  EXPECT_EQ(key("x86_64-unknown-linux-gnu", "x86-64", "-64bit"), "features");
  EXPECT_EQ(key("x86_64-unknown-linux-gnu", "x86-64-v3", ""), "");
  // LLVM is of use afterwards, on the same thread.
  EXPECT_TRUE(compile(parsed(naive_matmul), target("riscv64-unknown-linux-gnu", "generic-rv64", "+f")).ok());
}

TEST(Pipelines, SearchIsOneOfThem) {
  std::set<std::string> names;
  for (const Pipeline& pipeline : pipelines()) EXPECT_TRUE(names.insert(pipeline.name).second) << pipeline.name;
  const auto known = [](const Pipeline& pipeline) {
    return std::count(pipelines().begin(), pipelines().end(), pipeline) == 1;
  };
  EXPECT_TRUE(known(search_pipeline(target("x86_64-unknown-linux-gnu", "x86-64-v4", ""))));
  EXPECT_TRUE(known(search_pipeline(target("riscv64-unknown-linux-gnu", "", "+v"))));
  const LoopProgram program = parsed(naive_matmul);
  const Target host = host_target();
  EXPECT_EQ(compile(program, host)->bytes, compile(program, host, search_pipeline(host))->bytes);
}

TEST(Pipelines, PassesOfTheCodeGeneratorAreLeftOutByName) {
  const LoopProgram program = parsed(R"(buffer A f32 [64] input
buffer C f32 [64] output
run
  for i 8
    for v 8 vector
      C[8*i+v] = A[8*i+v]
)");
  const Target machine = target("x86_64-unknown-linux-gnu", "x86-64-v3", "");
  Pipeline pipeline{"all", "", "", 1, {}};
  const std::string all = listing(program, machine, pipeline)->assembly;
  EXPECT_NE(all.find("vzeroupper"), std::string::npos) << all;
  pipeline.left_out = {"X86 vzeroupper inserter", "no-such-pass"};
  const std::string less = listing(program, machine, pipeline)->assembly;
  EXPECT_EQ(less.find("vzeroupper"), std::string::npos) << less;
}

TEST(Pipelines, PassesFollowWhetherALoopRepeatsAnAccess) {
  const std::string moving =
      "buffer A f32 [6,64] input\nbuffer C f32 [6] output\nrun\n  for k 64\n    for i 6\n"
      "      C[i] += A[i,k]\n";
  const std::string repeating =
      "buffer A f32 [6,64] input\nbuffer C f32 [6] output\nrun\n  for i 6\n    for k 64\n"
      "      C[i] += A[i,k]\n";
  const Target host = host_target();
  const Pipeline never{"never", "", "no-such-pass", 1, {}}, always{"always", "no-such-pass", "", 1, {}};
  EXPECT_TRUE(compile(parsed(moving), host, never).ok());
  EXPECT_THROW(compile(parsed(moving), host, always), base::UserError);
  EXPECT_TRUE(compile(parsed(repeating), host, always).ok());
  EXPECT_THROW(compile(parsed(repeating), host, never), base::UserError);
  // The loop around it is not asked, nor are loops that are gone when LLVM sees them.
  EXPECT_THROW(compile(parsed(with(moving, "for i 6", "for i 6 unrolled")), host, never), base::UserError);
  EXPECT_TRUE(compile(parsed(with(repeating, "for k 64", "for k 64 unrolled")), host, never).ok());
}

TEST(Pipelines, CodeDoesNotDependOnWhatWasCompiledBefore) {
  const Target host = host_target();
  const std::string other =
      "buffer A f32 [32] input\nbuffer C f32 [32] output\nrun\n  for i 2\n    for v 16 vector\n"
      "      C[16*i+v] = exp(A[16*i+v])\n";
  std::map<std::string, std::string> alone;
  for (const Pipeline& pipeline : pipelines())
    std::thread([&] { alone[pipeline.name] = compile(parsed(naive_matmul), host, pipeline)->bytes; }).join();
  for (int round = 0; round < 2; ++round)
    for (const Pipeline& pipeline : pipelines()) {
      ASSERT_TRUE(compile(parsed(other), host, pipeline).ok());
      EXPECT_EQ(compile(parsed(naive_matmul), host, pipeline)->bytes, alone[pipeline.name]) << pipeline.name;
    }
}

TEST(Targets, UnknownOnesAreRefusedWithARemedy) {
  EXPECT_EQ(error_of(target("riscv64-unknown-linux-gnu", "sifive-x280", "")), "");
  EXPECT_EQ(error_of(target("aarch64-unknown-linux-gnu", "cortex-a53", "")), "");
  EXPECT_EQ(error_of(target("powerpc64le-unknown-linux-gnu", "pwr9", "")), "");
  EXPECT_EQ(error_of(target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,-fma")), "");
  EXPECT_EQ(error_of(target("riscv64-unknown-linux-gnu", "", "+v,+zvl256b")), "");
  EXPECT_NE(error_of(target("riscv64-unknown-linux-gnu", "sifive-x28", ""))
                .find("does not know the cpu 'sifive-x28' for "
                      "riscv64; did you mean 'sifive-x280'?"),
            std::string::npos)
      << error_of(target("riscv64-unknown-linux-gnu", "sifive-x28", ""));
  EXPECT_NE(error_of(target("x86_64-unknown-linux-gnu", "haswell", "+avx22")).find("the feature 'avx22'"),
            std::string::npos);
  EXPECT_NE(error_of(target("x86_64-unknown-linux-gnu", "haswell", "avx2")).find("must begin with + or -"),
            std::string::npos);
  EXPECT_NE(error_of(target("z80-unknown-linux-gnu", "", "")).find("triple 'z80-unknown-linux-gnu'"),
            std::string::npos);
  EXPECT_NE(error_of(target("riscv64-unknown-linux-gnu", "sifive-e31", "")).find("not a 64-bit cpu"),
            std::string::npos);
  EXPECT_THROW(compile(parsed(naive_matmul), target("riscv64-unknown-linux-gnu", "nonsense", "")), base::UserError);
}

TEST(Targets, TheHostIsDescribed) {
  const Target host = host_target();
  EXPECT_EQ(error_of(host), "");
  EXPECT_FALSE(host.cpu.empty());
  EXPECT_GE(host.cores, 1);
  EXPECT_TRUE(host.vector_bits == 0 || host.vector_bits >= 64);
  EXPECT_GE(host.vector_registers, 8);
  EXPECT_EQ(host, host_target());
}

TEST(Listing, ShowsTheVectorCode) {
  Target target;
  target.triple = "x86_64-unknown-linux-gnu", target.cpu = "x86-64-v3", target.vector_bits = 256;
  const auto code = listing(parsed(R"(buffer A f32 [64] input
buffer C f32 [64] output
run
  for i 8
    for v 8 vector
      C[8*i+v] += A[8*i+v] * A[0]
)"),
                            target);
  ASSERT_TRUE(code.ok()) << code.reason().text;
  EXPECT_NE(code->ir.find("<8 x float>"), std::string::npos);
  EXPECT_NE(code->ir.find("!prof"), std::string::npos);
  EXPECT_EQ(code->ir.find("vfmadd"), std::string::npos);
  EXPECT_NE(code->assembly.find("vfmadd"), std::string::npos) << code->assembly;
  EXPECT_NE(code->assembly.find("graft_run"), std::string::npos);
  EXPECT_EQ(code->assembly.find("<8 x float>"), std::string::npos);
}

// A linked library must not leave handlers in a program that has its own (Slurm's, a debugger's, a sanitizer's).
TEST(Link, LeavesSignalsToTheProgram) {
  const auto object = compile(parsed(naive_matmul), host_target());
  ASSERT_TRUE(object.ok());
  ASSERT_TRUE(link_shared({&*object}).ok());
  for (const int signal : {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGSEGV, SIGSYS}) {
    struct sigaction action {};
    ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << signal;
  }
  stack_t stack{};
  ASSERT_EQ(sigaltstack(nullptr, &stack), 0);
  EXPECT_EQ(stack.ss_flags, SS_DISABLE);
}

}  // namespace
}  // namespace graft::codegen
