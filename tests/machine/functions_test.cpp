// Functions of index expressions as machine code of several levels of this host, scalar and vector, against the
// mathematical library in a wider type; and that no target's code calls a library.
#include <fmt/format.h>

#include <bit>
#include <functional>
#include <limits>

#include "base/random.h"
#include "tests/machine/support.h"

namespace graft::codegen {
namespace {

using namespace test;

using Wide = long double;

struct Function {
  std::string text;  // of x and y
  std::function<Wide(Wide, Wide)> exact;
  double reach = 20;                                 // where most happens: half of the arguments are up to here
  double most = std::numeric_limits<double>::max();  // finite arguments are up to here
};

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"exp(x)", [](Wide x, Wide) { return std::exp(x); }, 110},
      {"sqrt(x)", [](Wide x, Wide) { return std::sqrt(x); }},
      {"rsqrt(x)", [](Wide x, Wide) { return 1 / std::sqrt(x); }},
      {"log(x)", [](Wide x, Wide) { return std::log(x); }, 3},
      {"pow(x, y)", [](Wide x, Wide y) { return std::pow(x, y); }, 4},
      {"pow(x, 0.75)", [](Wide x, Wide) { return std::pow(x, Wide(0.75)); }},
      {"pow(x, -0.25)", [](Wide x, Wide) { return std::pow(x, Wide(-0.25)); }},
      {"pow(x, -2.5)", [](Wide x, Wide) { return std::pow(x, Wide(-2.5)); }, 4},
      {"pow(x, -3)", [](Wide x, Wide) { return std::pow(x, Wide(-3)); }, 4},
      {"pow(x, 4)", [](Wide x, Wide) { return std::pow(x, Wide(4)); }, 4},
      {"pow(x, 0)", [](Wide, Wide) { return Wide(1); }},
      {"tanh(x)", [](Wide x, Wide) { return std::tanh(x); }},
      {"sigmoid(x)", [](Wide x, Wide) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
       110},
      {"erf(x)", [](Wide x, Wide) { return std::erf(x); }, 7},
      {"sin(x)", [](Wide x, Wide) { return std::sin(x); }, 400, 0x1p20},
      {"cos(x)", [](Wide x, Wide) { return std::cos(x); }, 400, 0x1p20},
      {"abs(x)", [](Wide x, Wide) { return std::abs(x); }},
      {"floor(x)", [](Wide x, Wide) { return std::floor(x); }},
      {"select(x < y, x, 2)", [](Wide x, Wide y) { return x < y ? x : 2; }},
      {"select(x <= y, x, 2)", [](Wide x, Wide y) { return x <= y ? x : 2; }},
      {"select(x > y, x, 2)", [](Wide x, Wide y) { return x > y ? x : 2; }},
      {"select(x >= y, x, 2)", [](Wide x, Wide y) { return x >= y ? x : 2; }},
      {"select(x == y, x, 2)", [](Wide x, Wide y) { return x == y ? x : 2; }},
      {"select(x != y, x, 2)", [](Wide x, Wide y) { return x != y ? x : 2; }},
  };
  return all;
}

std::string program_text(const std::string& function, const std::string& type, std::int64_t count, bool vector) {
  std::string value;
  const std::string at = vector ? "[16*i+v]" : "[i]";
  for (const char c : function.substr(function.find('(')))
    value += c == 'x' ? "X" + at : c == 'y' ? "Y" + at : std::string(1, c);
  return fmt::format("buffer X {0} [{1}] input\nbuffer Y {0} [{1}] input\nbuffer Z {0} [{1}] output\nrun\n", type,
                     count) +
         (vector ? fmt::format("  for i {}\n    for v 16 vector\n  ", count / 16)
                 : fmt::format("  for i {}\n", count)) +
         fmt::format("    Z{} = {}{}\n", at, function.substr(0, function.find('(')), value);
}

template <class T>
std::vector<double> special() {
  using Limits = std::numeric_limits<T>;
  std::vector<double> values;
  for (const T size : {T(0),
                       Limits::denorm_min(),
                       Limits::min(),
                       Limits::max(),
                       Limits::infinity(),
                       Limits::quiet_NaN(),
                       T(1),
                       std::nextafter(T(1), T(2)),
                       std::nextafter(T(1), T(0)),
                       T(0.5),
                       T(2),
                       T(3),
                       T(2.5),
                       T(88.72),
                       T(88.73),
                       T(87.4),
                       T(103.9),
                       T(104),
                       T(9.01),
                       T(10),
                       T(19.1),
                       T(3.9),
                       T(4),
                       T(6),
                       T(709.78),
                       T(745.1),
                       T(1e5),
                       T(8388607.5),
                       T(16777217)})
    for (const T value : {size, -size}) values.push_back(double(value));
  return values;
}

// All exponents, and as many numbers in between.
template <class T>
Numbers arguments(const Function& function, std::int64_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  base::Stream stream(3, function.text);
  const std::vector<double> ends = special<T>();
  Numbers numbers(3, std::vector<double>(std::size_t(count), 0));
  for (std::size_t i = 0; i < std::size_t(count); ++i) {
    double &x = numbers[0][i], &y = numbers[1][i];
    const auto pattern = [&] { return double(std::bit_cast<T>(Bits(stream.bits() >> (64 - 8 * sizeof(T))))); };
    const auto near = [&](double reach) { return double(T((2 * stream.uniform() - 1) * reach)); };
    x = i % 2 == 0 ? pattern() : near(function.reach);
    // Powers of every size, whole ones and any.
    const double bits_of_result = near(sizeof(T) == 4 ? 160 : 1100) / std::log2(std::abs(x));
    const double choices[] = {
        bits_of_result, std::round(bits_of_result), near(20), double(stream.below(13) - 6), pattern(), x};
    y = double(T(choices[stream.below(6)]));
    if (i < ends.size() * ends.size()) x = ends[i / ends.size()], y = ends[i % ends.size()];
    if (std::isfinite(x) && std::abs(x) > function.most) x = near(function.most);
  }
  return numbers;
}

// |got - exact| in units of the last place of T; 0 for the same infinity, or NaN for NaN.
template <class T>
double error(T got, Wide exact) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(got) || std::isnan(exact)) return std::isnan(got) && std::isnan(exact) ? 0 : 1e9;
  if (Wide(got) == exact || (std::isinf(got) && got == T(exact))) return 0;
  constexpr Wide beyond = Wide(2) * Limits::max();
  const auto bounded = [&](Wide value) { return std::clamp(value, -beyond, beyond); };
  constexpr int least = Limits::min_exponent - 1, most = Limits::max_exponent - 1;
  const int exponent = exact == 0 ? least : std::clamp(std::ilogb(exact), least, most);
  return double(std::abs(bounded(got) - bounded(exact)) / std::ldexp(Wide(1), exponent - Limits::digits + 1));
}

template <class T>
void expect_accurate(const std::string& type, std::int64_t most, double allowed) {
  for (const Function& function : functions()) {
    const std::int64_t count = function.text.starts_with("select") ? most / 16 : most;
    const Numbers inputs = arguments<T>(function, count);
    std::vector<Wide> exact;
    for (std::size_t i = 0; i < std::size_t(count); ++i) exact.push_back(function.exact(inputs[0][i], inputs[1][i]));
    for (const Target& target : levels()) {
      for (const bool vector : {false, true}) {
        const LoopProgram program = parsed(program_text(function.text, type, count, vector));
        const auto object = compile(program, target);
        ASSERT_TRUE(object.ok()) << object.reason().text;
        const auto library = link_shared({&*object});
        ASSERT_TRUE(library.ok()) << library.reason().text;
        const std::vector<double> got = executed(program, *object, *library, inputs)[2];
        double worst = 0;
        std::size_t at = 0;
        for (std::size_t i = 0; i < std::size_t(count); ++i) {
          if (function.text == "exp(x)" && std::isnan(inputs[0][i])) continue;  // must be a number
          const double off = error(T(got[i]), exact[i]);
          if (off > worst) worst = off, at = i;
        }
        EXPECT_LE(worst, allowed) << function.text << " in " << type << (vector ? " vectors" : "") << " of "
                                  << target.cpu << ": x " << inputs[0][at] << ", y " << inputs[1][at] << ": " << got[at]
                                  << " instead of " << double(exact[at]);
        ::testing::Test::RecordProperty(fmt::format("{}_{}_{}_{}", function.text.substr(0, function.text.find('(')),
                                                    type, target.cpu, vector ? "vector" : "scalar"),
                                        fmt::format("{:.2f}", worst));
      }
    }
  }
}

TEST(Functions, AreWithinFourUlpOverAllOfF32) {
  expect_accurate<float>("f32", 1 << 20, 4);
}
TEST(Functions, AreWithinFourUlpInF64) {
  expect_accurate<double>("f64", 1 << 16, 4);
}

// Signs of zeros do not count as an error in ulp.
TEST(Functions, KeepTheSignOfZeros) {
  const struct {
    const char* function;
    double x, y;
    bool negative;
  } cases[] = {{"tanh(x)", -0.0, 0, true},  {"erf(x)", -0.0, 0, true},      {"floor(x)", -0.0, 0, true},
               {"abs(x)", -0.0, 0, false},  {"rsqrt(x)", -0.0, 0, true},    {"pow(x, y)", -0.0, 3, true},
               {"tanh(x)", 0.0, 0, false},  {"pow(x, y)", -0.0, 2, false},  {"pow(x, y)", -0.0, -3, true},
               {"floor(x)", 0.5, 0, false}, {"pow(x, y)", -2, -9999, true}, {"pow(x, y)", -0.0, 2.5, false},
               {"sin(x)", -0.0, 0, true}};
  for (const auto& one : cases)
    for (const Target& target : levels()) {
      const LoopProgram program = parsed(program_text(one.function, "f32", 16, true));
      const auto object = compile(program, target);
      ASSERT_TRUE(object.ok()) << object.reason().text;
      const auto library = link_shared({&*object});
      const Numbers inputs = {std::vector<double>(16, one.x), std::vector<double>(16, one.y),
                              std::vector<double>(16, 0)};
      const std::vector<double> all = executed(program, *object, *library, inputs)[2];
      for (const double got : all)
        EXPECT_EQ(std::signbit(got), one.negative)
            << one.function << " of " << one.x << " and " << one.y << ": " << got;
    }
}

// Where the remainder of pi has few digits that are right, or none.
TEST(Functions, SinesOfHugeNumbersStayWithinOne) {
  const std::string text = program_text("sin(x)", "f32", 4096, true);
  base::Stream stream(5, "huge");
  Numbers inputs(3, std::vector<double>(4096, 0));
  for (double& x : inputs[0]) x = double(float(std::exp2(20 + 107 * stream.uniform())));
  for (const Target& target : levels()) {
    const LoopProgram program = parsed(text);
    const auto object = compile(program, target);
    ASSERT_TRUE(object.ok()) << object.reason().text;
    const auto library = link_shared({&*object});
    const std::vector<double> got = executed(program, *object, *library, inputs)[2];
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_LE(std::abs(got[i]), 1) << inputs[0][i];
      if (inputs[0][i] < 0x1p26) {
        EXPECT_NEAR(got[i], std::sin(inputs[0][i]), 1e-6) << inputs[0][i];
      }
    }
  }
}

TEST(Functions, OfIntegersAreExact) {
  for (const char* type : {"i32", "i8", "u8"}) {
    const std::string head = fmt::format(
        "buffer A {0} [40] input\nbuffer B {0} [40] input\nbuffer C {0} [40] output\nbuffer D {0} [40] output\n"
        "buffer E {0} [40] output\nrun\n",
        type);
    expect_right(head +
                 "  for v 40 vector\n    C[v] = abs(A[v])\n    D[v] = select(A[v] <= B[v], A[v] + 1, 7)\n"
                 "    E[v] = select(A[v] != B[v], B[v], 3)\n");
    expect_right(head +
                 "  for v 40\n    C[v] = abs(A[v])\n    D[v] = select(A[v] > B[v], A[v] + 1, 7)\n"
                 "    E[v] = select(A[v] == B[v], B[v], 3)\n");
  }
}

// A condition that all lanes share, arms that they share, and a sum of selected values.
TEST(Functions, SelectMixesLanesAndScalars) {
  expect_right(R"(buffer A f32 [4,19] input
buffer B f32 [4] input
buffer C f32 [4,19] output
buffer D f32 [4,19] output
buffer S f32 [4] output
run
  for i 4
    for v 19 vector
      C[i,v] = select(B[i] > 0, A[i,v], neg(A[i,v]))
      D[i,v] = select(A[i,v] > B[i], 1, B[i])
      S[i] += select(A[i,v] > 0, A[i,v], 0.5)
)");
}

// An undefined symbol is a refusal of compile().
TEST(Functions, CallNoLibraryOnAnyTarget) {
  const struct {
    const char *triple, *cpu, *features;
    std::int64_t bits;
  } targets[] = {{"x86_64-unknown-linux-gnu", "x86-64", "", 128},
                 {"x86_64-unknown-linux-gnu", "x86-64-v2", "", 128},
                 {"x86_64-unknown-linux-gnu", "haswell", "", 256},
                 {"x86_64-unknown-linux-gnu", "x86-64-v4", "", 512},
                 {"aarch64-unknown-linux-gnu", "cortex-a72", "", 128},
                 {"aarch64-unknown-linux-gnu", "a64fx", "", 512},
                 {"riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 0},
                 {"riscv64-unknown-linux-gnu", "sifive-u54", "", 0},
                 {"riscv64-unknown-linux-gnu", "sifive-x280", "", 512},
                 {"powerpc64le-unknown-linux-gnu", "pwr9", "", 128}};
  for (const auto& [triple, cpu, features, bits] : targets) {
    Target target;
    target.triple = triple, target.cpu = cpu, target.features = features;
    target.vector_bits = bits, target.vector_registers = 32;
    for (const char* type : {"f32", "f64"})
      for (const Function& function : functions())
        for (const bool vector : {false, true}) {
          const auto object = compile(parsed(program_text(function.text, type, 64, vector)), target);
          EXPECT_TRUE(object.ok()) << function.text << " in " << type << " on " << cpu << ": " << object.reason().text;
        }
  }
}

// Numbers give the same results, with fewer instructions; AArch64 has instructions that keep NaN.
TEST(Functions, OfTargetsThatIgnoreNanAreShorter) {
  const LoopProgram program = parsed(R"(buffer A f32 [64] input
buffer B f32 [64] input
buffer C f32 [64] output
buffer D f32 [1] output
run
  for i 4
    for v 16 vector
      C[16*i+v] = min(max(A[16*i+v], B[16*i+v]), 3)
      D[0] max= A[16*i+v]
)");
  for (const auto& [triple, cpu, bits] : {std::tuple("x86_64-unknown-linux-gnu", "haswell", 256),
                                          std::tuple("riscv64-unknown-linux-gnu", "sifive-x280", 512),
                                          std::tuple("aarch64-unknown-linux-gnu", "cortex-a72", 128)}) {
    Target target;
    target.triple = triple, target.cpu = cpu, target.vector_bits = bits, target.vector_registers = 32;
    const auto instructions = [&](bool ignores_nan) {
      target.ignores_nan = ignores_nan;
      const std::string assembly = listing(program, target)->assembly;
      return std::count(assembly.begin(), assembly.end(), '\n');
    };
    if (target.triple.starts_with("aarch64"))
      EXPECT_EQ(instructions(true), instructions(false)) << cpu;
    else
      EXPECT_LT(instructions(true), instructions(false)) << cpu;
  }
  Target here = host_target();
  here.ignores_nan = true;
  Numbers numbers = {std::vector<double>(64), std::vector<double>(64), std::vector<double>(64), {-INFINITY}};
  base::Stream stream(7, "numbers");
  for (std::size_t i = 0; i < 64; ++i)
    numbers[0][i] = double(stream.below(9)) - 4, numbers[1][i] = double(stream.below(9)) - 4;
  const auto object = compile(program, here);
  ASSERT_TRUE(object.ok()) << object.reason().text;
  const auto library = link_shared({&*object});
  ASSERT_TRUE(library.ok()) << library.reason().text;
  const Numbers results = executed(program, *object, *library, numbers);
  for (std::size_t i = 0; i < 64; ++i)
    EXPECT_EQ(results[2][i], std::min(std::max(numbers[0][i], numbers[1][i]), 3.0)) << i;
  EXPECT_EQ(results[3][0], *std::max_element(numbers[0].begin(), numbers[0].end()));
}

TEST(Functions, OfIntegersThatNeedFractionsAreRefused) {
  for (const char* function :
       {"exp(x)", "sqrt(x)", "rsqrt(x)", "log(x)", "pow(x, y)", "tanh(x)", "sigmoid(x)", "erf(x)", "floor(x)"}) {
    const auto object = compile(parsed(program_text(function, "i32", 16, true)), host_target());
    ASSERT_FALSE(object.ok()) << function;
    EXPECT_NE(object.reason().text.find(" needs a floating-point type, not i32"), std::string::npos)
        << object.reason().text;
  }
}

}  // namespace
}  // namespace graft::codegen
