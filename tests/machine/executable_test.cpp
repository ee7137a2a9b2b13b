// Cross-compiled kernels with their freestanding runtime, run by qemu-user, compared with the reference.
#include "base/document.h"
#include "base/process.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"
#include "tests/machine/executables.h"
#include "tests/machine/support.h"
#include "tests/support/refusal.h"

namespace graft::codegen {
namespace {

using namespace test;

constexpr const char* tiled_matmul = R"(buffer A f32 [12,20] input
buffer B f32 [20,45] input
buffer C f32 [12,45] output
buffer acc f32 [4,16] temporary registers
buffer edge f32 [13] temporary registers
buffer packed f32 [20,16] temporary
run
  for j.0 2
    for k 20
      for v 16 vector
        packed[k,v] = B[k,16*j.0+v]
    for i.0 3
      for i.1 4 unrolled
        for v 16 vector
          acc[i.1,v] = 0
      for k 20
        for i.1 4 unrolled
          for v 16 vector
            acc[i.1,v] += A[4*i.0+i.1,k] * packed[k,v]
      for i.1 4 unrolled
        for v 16 vector
          C[4*i.0+i.1,16*j.0+v] = acc[i.1,v]
  for i 12 parallel
    for v 13 vector
      edge[v] = 0
    for k 20
      for v 13 vector
        edge[v] += A[i,k] * B[k,v+32]
    for v 13 vector
      C[i,v+32] = edge[v]
)";

struct Answer {
  std::vector<double> seconds;
  std::vector<double> outputs;
};

// Runs an executable (with `prefix`) and parses its answer.
Answer answer_of(const std::string& executable, const std::vector<std::string>& prefix, DType type) {
  const base::Finished finished = run_program(executable, prefix);
  EXPECT_EQ(finished.exit_code, 0) << "signal " << finished.signal << " " << finished.err;
  Answer answer;
  std::size_t at = 0;
  const auto line = [&] {
    const std::size_t end = std::min(finished.out.find('\n', at), finished.out.size());
    const base::Document document = base::parse_json(std::string_view(finished.out).substr(at, end - at), "answer");
    at = end + 1;
    return document;
  };
  EXPECT_EQ(line().at("graft").as_integer(), 1);
  EXPECT_EQ(line().at("begin").as_integer(), 0);
  const base::Document end = line();
  const double runs = end.at("runs").as_number();
  EXPECT_GT(end.at("first").as_integer(), 0);
  for (const base::Document& time : end.at("times").as_list()) answer.seconds.push_back(time.as_number() * 1e-9 / runs);
  answer.outputs = numbers_from(std::string_view(finished.out).substr(at), type);
  EXPECT_EQ(std::int64_t(finished.out.size() - at), end.at("bytes").as_integer());
  return answer;
}

void expect_right_on(const Target& target, const std::vector<std::string>& prefix) {
  if (!prefix.empty() && !starts(prefix.front())) GTEST_SKIP() << prefix.front() << " is not installed";
  for (const char* type : {"f32", "f64", "i32"}) {
    SCOPED_TRACE(std::string(type) + " on " + target.cpu + " " + target.features);
    std::string text = tiled_matmul;
    for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos; at += 3) text.replace(at, 3, type);
    const LoopProgram program = parse_program(text, "test");
    const Computation what = parse_workload(std::string("matmul(m=12,n=45,k=20,dtype=") + type + ")").computation();
    const Reference expected = reference(what, 7);
    for (const Pipeline& pipeline : pipelines()) {
      const auto object = compile(program, target, pipeline);
      ASSERT_TRUE(object.ok()) << object.reason().text;
      const auto executable = link_executable({&*object}, target, what, expected, {});
      ASSERT_TRUE(executable.ok()) << executable.reason().text;
      const DType dtype = *dtype_of(type);
      const Answer answer = answer_of(*executable, prefix, dtype);
      ASSERT_EQ(answer.seconds.size(), 3u);
      for (double s : answer.seconds) {
        EXPECT_GT(s, 0);
        EXPECT_LT(s, 10);
      }
      const std::size_t c = std::size_t(what.tensor_named("C"));
      ASSERT_EQ(answer.outputs.size(), expected.tensors[c].size());
      for (std::size_t i = 0; i < expected.tensors[c].size(); ++i)
        ASSERT_LE(std::abs(answer.outputs[i] - expected.tensors[c][i]),
                  tolerance(dtype, expected.reduction_length[c], expected.magnitude[c][i]))
            << i;
    }
  }
}

// Every function of index expressions, as vectors and element by element, within 4 ulp.
void expect_functions_right_on(const Target& target, const std::vector<std::string>& prefix) {
  if (!starts(prefix.front())) GTEST_SKIP() << prefix.front() << " is not installed";
  const std::vector<std::string> functions = {"exp(X[_])",
                                              "sqrt(X[_])",
                                              "rsqrt(X[_])",
                                              "log(X[_])",
                                              "pow(X[_],Y[_])",
                                              "tanh(X[_])",
                                              "sigmoid(X[_])",
                                              "erf(X[_])",
                                              "abs(X[_])",
                                              "floor(X[_])",
                                              "select(X[_] < Y[_],X[_],Y[_])"};
  constexpr std::size_t count = 640;
  const auto replaced = [](std::string text, const std::string& by) {
    for (std::size_t at = 0; (at = text.find('_', at)) != std::string::npos; at += by.size()) text.replace(at, 1, by);
    return text;
  };
  std::string expression = "input X[640]; input Y[640]; ",
              buffers = "buffer X f32 [640] input\nbuffer Y f32 [640] input\n";
  for (std::size_t f = 0; f < functions.size(); ++f) {
    const char name = char('A' + f);
    expression += std::string(f ? "; " : "") + "output " + name + "[i] = " + replaced(functions[f], "i");
    buffers += std::string("buffer ") + name + " f32 [640] output\n";
  }
  const Computation what = parse_workload(expression + " where i=640").computation();
  std::vector<std::vector<double>> operands(what.tensors.size());
  for (std::size_t i = 0; i < count; ++i) {
    // Every exponent of both signs, and what is near 0.
    const double size = i < 512 ? std::ldexp(1.375, int(i / 2) - 140) : double(i - 512) / 12;
    operands[0].push_back(double(float(i % 2 ? -size : size)));
    operands[1].push_back(i % 3 ? double(i % 7) - 3 : 0.375 * double(i % 5));
  }
  const Reference expected = reference(what, {operands.begin(), operands.end()});
  for (const bool vector : {false, true}) {
    std::string text = buffers + (vector ? "run\n  for i 40\n    for v 16 vector\n" : "run\n  for i 640\n");
    for (std::size_t f = 0; f < functions.size(); ++f) {
      const std::string at = vector ? "16*i+v" : "i";
      text += std::string(vector ? "      " : "    ") + char('A' + f) + "[" + at + "] = " + replaced(functions[f], at) +
              "\n";
    }
    const auto object = compile(parse_program(text, "test"), target);
    ASSERT_TRUE(object.ok()) << object.reason().text;
    const auto executable = link_executable({&*object}, target, what, expected, {});
    ASSERT_TRUE(executable.ok()) << executable.reason().text;
    const std::vector<double> got = answer_of(*executable, prefix, DType::f32).outputs;
    ASSERT_EQ(got.size(), functions.size() * count);
    for (std::size_t f = 0; f < functions.size(); ++f)
      for (std::size_t i = 0; i < count; ++i) {
        const double right = expected.tensors[f + 2][i], value = got[f * count + i];
        if ((std::isnan(right) && std::isnan(value)) || float(right) == float(value)) continue;
        const double place = std::ldexp(1, std::max(std::ilogb(right) - 23, -149));
        ASSERT_LE(std::abs(value - right), 4 * place)
            << functions[f] << (vector ? " as vectors" : "") << " of " << operands[0][i] << " and " << operands[1][i];
      }
  }
}

// Bytes of both signs, and numbers of 8 bits without one: each product of a vector is one instruction with its sum.
TEST(Executable, ProductsOfBytesOnRiscv64) {
  Target target = board("riscv64-unknown-linux-gnu", "spacemit-x60", "-zicond", 256);
  const std::vector<std::string> prefix = {"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256"};
  for (const auto& [a, b] : {std::pair("i8", "i8"), std::pair("u8", "i8"), std::pair("u8", "u8")}) {
    const std::string product = "cast_i32(A[@]) * cast_i32(B[k,#])";
    const auto written = [&](std::string row, std::string lane) {
      std::string text = product;
      text.replace(text.find('@'), 1, row + ",k");
      text.replace(text.find('#'), 1, lane);
      return text;
    };
    const LoopProgram program = parse_program(
        fmt::format("buffer A {} [4,64] input\nbuffer B {} [64,8] input\nbuffer C i32 [4,8] output\n"
                    "buffer tile i32 [4,8] temporary registers\nrun\n  for i 4 unrolled\n    for v 8 vector\n"
                    "      tile[i,v] = 0\n  for k 64\n    for i 4 unrolled\n      for v 8 vector\n"
                    "        tile[i,v] += {}\n  for i 4 unrolled\n    for v 8 vector\n      C[i,v] = tile[i,v]\n",
                    a, b, written("i", "v")),
        "test");
    const auto listed = listing(program, target);
    ASSERT_TRUE(listed.ok()) << listed.reason().text;
    EXPECT_TRUE(contains(listed->assembly, "vwmacc")) << listed->assembly;
    EXPECT_FALSE(contains(listed->assembly, "vwmul")) << listed->assembly;
    const Computation what =
        parse_workload(fmt::format("input A[4,64]: {}; input B[64,8]: {}; output C[i,j | k]: i32 += "
                                   "{} where i=4, j=8, k=64",
                                   a, b, written("i", "j")))
            .computation();
    std::vector<Elements> operands(what.tensors.size());
    for (std::size_t t = 0; t < 2; ++t) {
      operands[t] = Elements(what.tensors[t].dtype, what.tensors[t].elements());
      const double low = lowest(what.tensors[t].dtype), count = highest(what.tensors[t].dtype) - low + 1;
      for (std::size_t e = 0; e < operands[t].size(); ++e)
        operands[t].set(e, e % 5 == 0   ? low
                           : e % 7 == 0 ? low + count - 1
                                        : low + double((e * 37) % std::size_t(count)));
    }
    const Reference expected = reference(what, operands);
    if (!starts(prefix.front())) GTEST_SKIP() << prefix.front() << " is not installed";
    const auto object = compile(program, target);
    ASSERT_TRUE(object.ok()) << object.reason().text;
    const auto executable = link_executable({&*object}, target, what, expected, {});
    ASSERT_TRUE(executable.ok()) << executable.reason().text;
    const std::vector<double> got = answer_of(*executable, prefix, DType::i32).outputs;
    EXPECT_EQ(Elements(got), expected.tensors[std::size_t(what.tensor_named("C"))]) << a << " " << b;
  }
}

TEST(Executable, FunctionsOnRiscv64Scalar) {
  expect_functions_right_on(board("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 0), {"qemu-riscv64"});
}
TEST(Executable, FunctionsOnRiscv64Vector256) {
  expect_functions_right_on(board("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v,+zvl256b", 256),
                            {"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256"});
}
TEST(Executable, FunctionsOnAarch64) {
  expect_functions_right_on(board("aarch64-unknown-linux-gnu", "cortex-a72", "", 128), {"qemu-aarch64"});
}
TEST(Executable, FunctionsOnAarch64WithLongScalableVectors) {
  expect_functions_right_on(board("aarch64-unknown-linux-gnu", "a64fx", "", 512),
                            {"qemu-aarch64", "-cpu", "max,sve512=on"});
}

TEST(Executable, Riscv64Scalar) {
  expect_right_on(board("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c", 0), {"qemu-riscv64"});
}
TEST(Executable, Riscv64Vector128) {
  expect_right_on(board("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v", 128),
                  {"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128"});
}
TEST(Executable, Riscv64Vector256) {
  expect_right_on(board("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v,+zvl256b", 256),
                  {"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256"});
}
TEST(Executable, Riscv64CodeForShortVectorsRunsOnLongOnes) {
  expect_right_on(board("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v", 128),
                  {"qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=512"});
}
TEST(Executable, Aarch64) {
  expect_right_on(board("aarch64-unknown-linux-gnu", "cortex-a72", "", 128), {"qemu-aarch64"});
}
TEST(Executable, Aarch64WithLongScalableVectors) {
  expect_right_on(board("aarch64-unknown-linux-gnu", "a64fx", "", 512), {"qemu-aarch64", "-cpu", "max,sve512=on"});
}
TEST(Executable, Powerpc64le) {
  expect_right_on(board("powerpc64le-unknown-linux-gnu", "pwr9", "", 128), {"qemu-ppc64le", "-cpu", "power9"});
}
#ifdef __x86_64__
TEST(Executable, X86OnThisMachine) {
  expect_right_on(board("x86_64-unknown-linux-gnu", "x86-64", "", 128), {});
}
#endif

#ifdef __x86_64__
// What an executable of matmuls says, run as `settings` ask: a map for each line, and the bytes after each end.
std::vector<base::Document> lines_of(const std::vector<const Code*>& objects, const Target& target,
                                     const Computation& what, const Reference& expected, const RunSettings& settings,
                                     std::vector<std::string>* outputs = nullptr) {
  const auto executable = link_executable(objects, target, what, expected, settings);
  EXPECT_TRUE(executable.ok());
  const base::Finished finished = run_program(*executable, {});
  EXPECT_EQ(finished.exit_code, 0);
  std::vector<base::Document> lines;
  for (std::size_t at = 0; at < finished.out.size();) {
    const std::size_t end = finished.out.find('\n', at);
    lines.push_back(base::parse_json(std::string_view(finished.out).substr(at, end - at), "line"));
    at = end + 1;
    if (lines.back().find("end") == nullptr) continue;
    const std::size_t bytes = std::size_t(lines.back().at("bytes").as_integer());
    if (outputs != nullptr) outputs->push_back(finished.out.substr(at, bytes));
    at += bytes;
  }
  return lines;
}

TEST(Executable, RunsSeveralKernelsInTheirOrder) {
  const Target target = board("x86_64-unknown-linux-gnu", "x86-64", "", 128);
  const Computation what = parse_workload("matmul(m=12,n=45,k=20,dtype=f32)").computation();
  const Reference expected = reference(what, 7);
  const std::string wrong =
      std::string(tiled_matmul).replace(std::string(tiled_matmul).rfind("C[i,v+32] = edge[v]"), 19, "C[i,v+32] = 0");
  const auto right = compile(parse_program(tiled_matmul, "test"), target, search_pipeline(target), "graft0");
  const auto other = compile(parse_program(wrong, "test"), target, search_pipeline(target), "graft1");
  ASSERT_TRUE(right.ok() && other.ok());
  std::vector<std::string> outputs;
  RunSettings settings;
  settings.repetitions = 2;
  settings.minimum_seconds = 1e-4;
  const auto lines = lines_of({&*right, &*other}, target, what, expected, settings, &outputs);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].at("kernels").as_integer(), 2);
  for (const std::size_t k : {0u, 1u}) {
    EXPECT_EQ(lines[1 + 2 * k].at("begin").as_integer(), std::int64_t(k));
    EXPECT_EQ(lines[2 + 2 * k].at("end").as_integer(), std::int64_t(k));
    EXPECT_EQ(lines[2 + 2 * k].at("times").as_list().size(), 2u);
    EXPECT_GT(lines[2 + 2 * k].at("runs").as_integer(), 1);  // a microsecond each
  }
  const std::size_t c = std::size_t(what.tensor_named("C"));
  const std::vector<double> first = numbers_from(outputs[0], DType::f32), second = numbers_from(outputs[1], DType::f32);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_NEAR(first[i], expected.tensors[c][i], 1e-4) << i;
    EXPECT_EQ(second[i], i % 45 < 32 ? first[i] : 0) << i;  // nothing is left of the first one's
  }
}

TEST(Executable, DoesNotTimeWhatIsTooSlowOrOnlyChecked) {
  const Target target = board("x86_64-unknown-linux-gnu", "x86-64", "", 128);
  const Computation what = parse_workload("matmul(m=12,n=45,k=20,dtype=f32)").computation();
  const Reference expected = reference(what, 7);
  const auto object = compile(parse_program(tiled_matmul, "test"), target);
  ASSERT_TRUE(object.ok());
  RunSettings slow, check;
  slow.abort_seconds = 1e-9;
  check.repetitions = 0;
  for (const RunSettings& settings : {slow, check}) {
    const auto lines = lines_of({&*object}, target, what, expected, settings);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_GT(lines[2].at("first").as_integer(), 0);
    EXPECT_TRUE(lines[2].at("times").as_list().empty());
  }
}
#endif

TEST(Executable, IsRefusedWhereSystemCallsAreNotKnown) {
  const Target target = board("s390x-unknown-linux-gnu", "z14", "", 128);
  const auto object = compile(parse_program(tiled_matmul, "test"), target);
  ASSERT_TRUE(object.ok()) << object.reason().text;
  const Computation what = parse_workload("matmul(m=12,n=45,k=20,dtype=f32)").computation();
  const auto executable = link_executable({&*object}, target, what, reference(what, 1), {});
  ASSERT_FALSE(executable.ok());
  EXPECT_NE(executable.reason().text.find("no system calls known for s390x"), std::string::npos);
}

}  // namespace
}  // namespace graft::codegen
