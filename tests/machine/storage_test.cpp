// f16 and bf16 in memory: conversions as machine code of several levels of this host, exact; kernels against the
// reference; and that no target's code calls a library for them.
#include <fmt/format.h>

#include <bit>

#include "base/float16.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/space.h"
#include "tests/machine/support.h"
#include "tests/support/judged_space.h"
#include "tests/support/programs.h"

namespace graft::codegen {
namespace {

using namespace test;

// A copy from one type to another, of vectors and of scalars.
std::string copy_text(const std::string& from, const std::string& to, std::int64_t count, bool vector) {
  const std::string at = vector ? "[16*i+v]" : "[i]";
  return fmt::format("buffer X {} [{}] input\nbuffer Y {} [{}] output\nrun\n  for i {}\n", from, count, to, count,
                     vector ? count / 16 : count) +
         fmt::format("{0}    Y{1} = X{1}\n", vector ? "    for v 16 vector\n  " : "", at);
}

std::vector<double> copied(const std::string& from, const std::string& to, const std::vector<double>& numbers,
                           bool vector, const Target& target) {
  const LoopProgram program = parsed(copy_text(from, to, std::int64_t(numbers.size()), vector));
  const auto object = compile(program, target);
  EXPECT_TRUE(object.ok()) << object.reason().text;
  const auto library = link_shared({&*object});
  EXPECT_TRUE(library.ok()) << library.reason().text;
  return executed(program, *object, *library, {numbers, std::vector<double>(numbers.size())})[1];
}

bool is_same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

std::vector<Target> all_levels() {
  std::vector<Target> all = levels();
  all.push_back(host_target());  // with instructions for bf16, where it has them
  return all;
}

TEST(Storage, EveryNumberIsReadAsItIs) {
  for (const std::string type : {"f16", "bf16"}) {
    std::string bytes;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) bytes += {char(bits & 0xff), char(bits >> 8)};
    const std::vector<double> numbers = numbers_from(bytes, *dtype_of(type));
    for (const Target& target : all_levels())
      for (const bool vector : {false, true}) {
        const std::vector<double> got = copied(type, "f32", numbers, vector, target);
        for (std::size_t i = 0; i < numbers.size(); ++i)
          ASSERT_TRUE(is_same(got[i], numbers[i])) << type << " " << i << ": " << got[i] << " on " << target.cpu;
      }
  }
}

TEST(Storage, NumbersAreRoundedToTheNearest) {
  for (const std::string type : {"f16", "bf16"}) {
    const DType dtype = *dtype_of(type);
    // All numbers of 16 bits, the middles between neighbours, and numbers of f32 next to these.
    std::vector<double> numbers;
    for (std::uint32_t bits = 0; bits + 1 < (type == "f16" ? 0x7c00u : 0x7f80u); bits += 3) {
      std::string bytes = {char(bits & 0xff), char(bits >> 8), char((bits + 1) & 0xff), char((bits + 1) >> 8)};
      const std::vector<double> ends = numbers_from(bytes, dtype);
      const float middle = float(ends[0] / 2 + ends[1] / 2);
      for (const float number : {float(ends[0]), middle, std::nextafterf(middle, 0), std::nextafterf(middle, INFINITY)})
        for (const float sign : {1.0F, -1.0F}) numbers.push_back(double(sign * number));
    }
    for (const double number :
         {65504.0, 65519.0, 65520.0, 1e5, 3.4e38, double(INFINITY), -double(INFINITY), double(NAN), 0.0, -0.0})
      numbers.push_back(number);
    while (numbers.size() % 16 != 0) numbers.push_back(1);
    for (const Target& target : all_levels())
      for (const bool vector : {false, true}) {
        const std::vector<double> got = copied("f32", type, numbers, vector, target);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const double wanted = rounded_to(numbers[i], dtype);
          // Instructions may take numbers below the least normal one for 0.
          if (type == "bf16" && std::abs(numbers[i]) < 0x1p-126 && got[i] == 0) continue;
          ASSERT_TRUE(is_same(got[i], wanted))
              << numbers[i] << " as " << type << ": " << got[i] << " instead of " << wanted << " on " << target.cpu;
        }
      }
  }
}

TEST(Storage, KernelsOfAllOperatorsAreAsTheReference) {
  const Target host = host_target();
  for (const std::string type : {"f16", "bf16"})
    for (const std::string text : {
             "matmul(m=9,n=20,k=14,dtype=TYPE)",
             "conv2d(c=4,h=7,w=8,k=6,r=3,s=3,pad=1,dtype=TYPE)",
             "conv2d_residual(c=4,h=5,w=6,k=20,r=3,s=3,pad=1,dtype=TYPE)",
             "depthwise_conv2d(c=5,h=9,w=9,r=3,s=3,pad=1,dtype=TYPE)",
             "max_pool2d(c=3,h=8,w=8,r=3,s=3,stride=2,pad=1,dtype=TYPE)",
             "softmax(m=5,n=37,dtype=TYPE)",
             "layer_norm(m=5,n=37,dtype=TYPE)",
             "input A[9,24] : TYPE; constant B[24,35] : TYPE; constant c[35]; T[i,j] : f32 += A[i,l] * B[l,j]; "
             "output Y[i,j] : TYPE = max(T[i,j] + c[j], 0) where i=9, j=35, l=24",
             "input A[9,4]; output M[i] : TYPE max= A[i,l] where i=9, l=4",
             "input A[40] : TYPE; output B[i] : f64 = cast_TYPE(A[i] * 0.3) + 1 where i=40",
         }) {
      std::string own = text;
      for (std::size_t at; (at = own.find("TYPE")) != std::string::npos;) own.replace(at, 4, type);
      SCOPED_TRACE(own);
      const Workload workload = parse_workload(own);
      const Space space = derive_space(workload, host);
      ASSERT_FALSE(space.sketches().empty());
      for (const SketchSpace& part : space.sketches()) {
        SCOPED_TRACE(to_text(*part.sketch));
        const JudgedSpace judged(workload, host, {part});
        base::Stream stream(3, own);
        const auto lowered = program(judged.sample(stream), host);
        ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
        expect_as_reference(*lowered, workload.computation(), host);
      }
    }
}

TEST(Storage, NoTargetCallsALibrary) {
  const struct {
    const char *triple, *cpu, *features;
    std::int64_t bits;
  } targets[] = {{"x86_64-unknown-linux-gnu", "x86-64", "", 128},
                 {"x86_64-unknown-linux-gnu", "haswell", "", 256},
                 {"x86_64-unknown-linux-gnu", "znver4", "", 512},
                 {"aarch64-unknown-linux-gnu", "cortex-a72", "", 128},
                 {"aarch64-unknown-linux-gnu", "neoverse-v1", "", 256},
                 {"riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 0},
                 {"riscv64-unknown-linux-gnu", "sifive-x280", "", 512},
                 {"riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+v,+zvfhmin,+zfhmin", 256}};
  for (const auto& [triple, cpu, features, bits] : targets) {
    Target target;
    target.triple = triple, target.cpu = cpu, target.features = features;
    target.vector_bits = bits, target.vector_registers = 32;
    for (const std::string type : {"f16", "bf16"})
      for (const bool vector : {false, true})
        for (const auto& [from, to] : {std::pair(type, std::string("f32")), std::pair(std::string("f32"), type)}) {
          const auto object = compile(parsed(copy_text(from, to, 64, vector)), target);
          EXPECT_TRUE(object.ok()) << from << " to " << to << " on " << cpu << ": " << object.reason().text;
        }
  }
}

}  // namespace
}  // namespace graft::codegen
