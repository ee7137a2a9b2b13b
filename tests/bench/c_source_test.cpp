// The C that compilers get: of every operation in every type, of every operator, and of all index expressions in the
// documents and examples, compiled by each compiler that is there and compared with the reference.
#include "bench/c_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "bench/compilers.h"
#include "bench/problem.h"
#include "codegen/schedule/lower.h"
#include "tests/cli/documents.h"

namespace graft::bench {
namespace {

using codegen::DType;
using codegen::Op;
using codegen::parse_workload;

void expect_right(const std::string& text) {
  SCOPED_TRACE(text);
  const Problem problem(parse_workload(text));
  const std::vector<std::string> wanted{"clang_naive", "gcc_naive"};
  std::vector<Contender> contenders;
  ASSERT_NO_THROW(contenders = c_contenders(problem, wanted));
  EXPECT_EQ(contenders.size(), wanted.size());
  for (const Contender& contender : contenders) {
    contender.clear();
    EXPECT_FALSE(contender.check()) << contender.name;
    contender.call();
    EXPECT_TRUE(contender.check()) << contender.name << ", " << contender.how;
  }
}

// "A[i] + B[i]", "exp(A[i])", "select(A[i] < B[i], A[i], B[i])"
std::string use_of(Op op) {
  const std::string name(codegen::name_of(op)), sign(codegen::sign_of(op));
  if (codegen::is_comparison(op)) return "select(A[i] " + sign + " B[i], A[i], 3)";
  if (op == Op::select) return "select(A[i] < 2, B[i], A[i])";
  if (op == Op::constant) return "7";
  if (op == Op::load) return "A[i]";
  if (op == Op::position) return "i";
  if (codegen::operands_of(op) == 2) return sign.empty() ? name + "(A[i], B[i])" : "A[i] " + sign + " B[i]";
  return name + "(A[i])";
}

TEST(CSource, OfEveryOperationInEveryTypeIsRight) {
  const std::map<Op, std::string> all = {
#define X(name, ...) {Op::name, #name},
      GRAFT_OPS(X)
#undef X
  };
#define X(type, element) DType::type,
  for (const DType type : {GRAFT_DTYPES(X)}) {
#undef X
    // All operations of the type in one computation: an output each.
    const std::string of(codegen::name_of(type));
    std::string text = "input A[40] : " + of + "; input B[40] : " + of;
    int outputs = 0;
    for (const auto& [op, name] : all) {
      if (codegen::is_floating(type) ? codegen::needs_integers(op) : codegen::needs_floating(op)) continue;
      const std::string more = "; output Y" + std::to_string(outputs) + "[i] : " + of + " = " + use_of(op);
      try {
        (void)parse_workload(text + more + " where i=40");
      } catch (const base::UserError& error) {
        ADD_FAILURE() << name << " of " << of << ": " << error.what();
        continue;
      }
      text += more;
      ++outputs;
    }
    const bool sums = codegen::computed_in(type) == type;  // nothing is summed in a type of storage alone
    for (const char* combine : {"+=", "max=", "min="})
      if (sums || combine[0] != '+')
        text += "; output R" + std::to_string(outputs++) + "[z] : " + of + " " + combine + " A[l]";
    EXPECT_GE(outputs, 15);
    expect_right(text + " where i=40, l=40, z=1");
  }
}

TEST(CSource, OfMixedTypesLiteralsAndInfinitiesIsRight) {
  for (const char* text : {
           "input A[9,17] : u8; input B[17,33] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=9, j=33, l=17",
           "input A[40] : i8; S[z] : i32 += A[l] * A[l]; output Y[i] : f32 = A[i] * 0.125 + S[0] where i=40, l=40, z=1",
           "input A[9] : f64; output Y[i] : f32 = A[i] / 3 where i=9",
           "input X[6,7]; M[i] max= X[i,l]; E[i,j] = exp(X[i,j] - M[i]); S[i] += E[i,l];"
           "output Y[i,j] = E[i,j] / S[i] where i=6, j=7, l=7",
           "input A[40] : i32; output Y[i] : i8 = max(min(A[i] * 40, 127), -128) where i=40",
           "input A[40]; output Y[i] : u8 = saturate_u8(round(A[i] * 300)) where i=40",
           "input A[40]; output Y[i] : i64 = A[i] * 300 where i=40",
           "input T[12] : i32; input X[5,7]; output Y[i,j] = X[T[i],6 - j] + select(j < i, i, 0) where i=12, j=7",
           "input X[10]; output Y[2*i + a] = X[i / 3] + X[i % 4] where i=12, a=2",
           "input A[20]; literal K[3] = {1,-2,1}; output Y[i] += A[i + l] * K[l] where i=18, l=3",
           // Not a number for all inputs, and infinite.
           "input A[40]; output Y[i] = sqrt(-1 - A[i] * A[i]) where i=40",
           "input A[40]; output Y[i] = log(A[i] - A[i]) where i=40",
       })
    expect_right(text);
}

// Small extents that suit all operators together.
std::string small(const codegen::Operator& of) {
  const std::map<std::string, int> extents = {{"m", 5}, {"n", 6}, {"k", 8}, {"c", 8}, {"h", 7}, {"w", 9},
                                              {"t", 5}, {"r", 2}, {"s", 2}, {"a", 2}, {"b", 2}};
  std::string text;
  for (const codegen::Operator::Parameter& parameter : of.parameters) {
    int value = parameter.has_default ? 0 : 4;
    if (const auto known = extents.find(parameter.name); known != extents.end() && !parameter.has_default)
      value = known->second;
    if (parameter.name == "groups") value = 2;
    if (parameter.name == "block") value = 4;
    if (value > 0) text += (text.empty() ? "" : ",") + parameter.name + "=" + std::to_string(value);
  }
  return of.name + "(" + text + ")";
}

TEST(CSource, OfEveryOperatorIsRight) {
  for (const codegen::Operator& of : codegen::operators()) expect_right(small(of));
}

// The expressions in quotes, backticks and blocks, and the files of examples.
std::set<std::string> expressions() {
  const std::filesystem::path root = GRAFT_SOURCE_DIR;
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(root / "examples" / "expressions"))
    texts.push_back(base::read_file(entry.path()));
  const std::regex quoted("[`']((input|constant) [^`'\n]* where [^`'\n]*)[`']"),
      block("\n((input|constant) .* where .*)\n");
  for (const std::filesystem::path& document : cli::documents()) {
    const std::string content = base::read_file(root / document);
    for (const std::regex& form : {quoted, block})
      for (std::sregex_iterator at(content.begin(), content.end(), form), end; at != end; ++at)
        texts.push_back((*at)[1]);
  }
  std::set<std::string> found;
  for (const std::string& text : texts) {
    try {
      const codegen::Workload workload = parse_workload(text);
      if (codegen::flops(workload) < 20'000'000) found.insert(workload.text());
    } catch (const base::UserError&) {
      // A fault that a document explains, or extents by the parameters of an operator.
    }
  }
  return found;
}

TEST(CSource, OfExpressionsInDocumentsAndExamplesIsRight) {
  const std::set<std::string> all = expressions();
  EXPECT_GE(all.size(), 8u);
  for (const std::string& text : all) expect_right(text);
}

}  // namespace
}  // namespace graft::bench
