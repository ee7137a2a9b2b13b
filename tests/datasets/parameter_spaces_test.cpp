#include "datasets/formats/parameter_spaces.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "codegen/space/table_schema.h"

namespace graft::datasets::formats {
namespace {

const char* const own = R"(name: stencil
sizes: {n: 4096}
parameters:
  tile_x: [16, 32, 64]
  tile_y: {from: 1, to: 64, powers_of: 2}
  width: {from: 8, to: 24, step: 8}
  ratio: {from: 0.5, to: 1.0, step: 0.25}
  flags: ["-O2", "-O3"]
  unroll: [false, true]
constraints:
  - tile_x * tile_y <= 256
  - unroll or flags == '-O2'
default: {tile_x: 16, tile_y: 16, flags: "-O2", unroll: false, width: 8, ratio: 0.5}
)";

const char* const t1 = R"({"General": {"FormatVersion": 1}, "ConfigurationSpace": {
  "TuningParameters": [
    {"Name": "block", "Type": "int", "Values": "[16, 32, 64]", "Default": 32},
    {"Name": "pad", "Type": "bool", "Values": "[True, False]"}],
  "Conditions": [{"Expression": "not pad or block % 32 == 0", "Parameters": ["block", "pad"]}]},
  "KernelSpecification": {"KernelName": "conv", "ProblemSize": [4096, 128]}})";

TEST(ParameterSpaces, OfOurOwn) {
  const codegen::ParameterSpace space = parse_parameter_space(own, "stencil.yaml");
  EXPECT_EQ(space.workload().text(), "table(name=stencil,n=4096)");
  EXPECT_EQ(space.combinations(), 3. * 7 * 3 * 3 * 2 * 2);
  // 16: 1..16, 32: 1..8, 64: 1..4 -> 5 + 4 + 3; three of the four pairs of flags and unroll.
  EXPECT_EQ(*space.size(), 12. * 3 * 3 * 3);
  EXPECT_EQ(space.to_document(space.standard()).to_json(),
            R"({"tile_x":16,"tile_y":16,"width":8,"ratio":0.5,"flags":"-O2","unroll":false})");
}

TEST(ParameterSpaces, SizesAreKnownInConstraints) {
  const std::string text =
      "sizes: {n: 514, m: 6}\nparameters: {t: [1, 2, 3, 257]}\nconstraints: ['n % t == 0', 't < m']\n";
  EXPECT_EQ(*parse_parameter_space(text, "s.yaml").size(), 2.);
}

std::vector<std::string> values_of(const std::string& values) {
  std::vector<std::string> texts;
  const codegen::ParameterSpace space = parse_parameter_space("parameters: {a: " + values + "}", "s.yaml");
  for (const codegen::Scalar& value : space.parameters().front().values) texts.push_back(codegen::scalar_text(value));
  return texts;
}

TEST(ParameterSpaces, StepsAndPowersOfFractionsAreTheNumbersThatWereMeant) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(values_of("{from: 0.1, to: 0.7, step: 0.1}"), (Texts{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"}));
  EXPECT_EQ(values_of("{from: 0, to: 1, step: 0.3}"), (Texts{"0", "0.3", "0.6", "0.9"}));
  EXPECT_EQ(values_of("{from: 0.125, to: 4, powers_of: 2}"), (Texts{"0.125", "0.25", "0.5", "1", "2", "4"}));
  EXPECT_EQ(values_of("{from: 0.001, to: 10, powers_of: 10}"), (Texts{"0.001", "0.01", "0.1", "1", "10"}));
  EXPECT_EQ(values_of("{from: 1, to: 4, powers_of: 1.5}"), (Texts{"1", "1.5", "2.25", "3.375"}));
}

TEST(ParameterSpaces, ADefaultOfSomeParametersIsCompleted) {
  const std::string text = "parameters: {a: [4, 8], b: [1, 2], c: [x, y]}\ndefault: {a: 8, c: y}\n";
  const codegen::ParameterSpace space = parse_parameter_space(text, "s.yaml");
  EXPECT_EQ(space.to_document(space.standard()).to_json(), R"({"a":8,"b":1,"c":"y"})");
  for (const codegen::Tunable& parameter : space.parameters()) EXPECT_TRUE(parameter.standard);
  try {
    parse_parameter_space(text + "constraints: [b > 1]\n", "s.yaml");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("the default, with the first values of parameters that it does not name, does not meet b > 1"),
              std::string::npos)
        << error.what();
  }
}

TEST(ParameterSpaces, DifferentWordsAreDifferentPoints) {
  const codegen::ParameterSpace space = parse_parameter_space(
      R"(parameters: {w: ["a#b", "a|b", "a}b", "a_b", "a b", " a b", "a b ", "a\nb", "a\tb", "a%23b", "a%b", "", " ", "%"]})",
      "s.yaml");
  std::set<std::uint64_t> hashes;
  for (const codegen::Scalar& value : space.parameters().front().values) {
    const std::string& word = std::get<std::string>(value);
    const base::Result<codegen::Candidate> point = space.point(base::Document::map().set("w", word));
    ASSERT_TRUE(point) << word;
    EXPECT_TRUE(hashes.insert(codegen::hash_by_name(*point)).second) << word;
    EXPECT_EQ(std::get<std::string>(space.values_of(*point).front()), word);
  }
  // Journals and datasets hold them so.
  const codegen::Sketch read = codegen::parse_sketch(codegen::to_text(*space.sketch()), "sketch");
  EXPECT_TRUE(read == *space.sketch());
}

TEST(ParameterSpaces, OfT1) {
  const codegen::ParameterSpace space = parse_parameter_space(t1, "conv.json");
  EXPECT_EQ(space.workload().text(), "table(name=conv,size0=4096,size1=128)");
  EXPECT_EQ(*space.size(), 5);
  EXPECT_EQ(space.to_document(space.standard()).to_json(), R"({"block":32,"pad":true})");
}

std::string refusal(const std::string& text) {
  try {
    parse_parameter_space(text, "s.yaml");
    return "";
  } catch (const base::UserError& error) {
    return error.what();
  }
}

TEST(ParameterSpaces, RefusedWithThePlace) {
  EXPECT_EQ(refusal("parameters:\n  a: [1, 2]\nconstraint: []\n"),
            "s.yaml:3:1: unknown key 'constraint'; did you mean 'constraints'?");
  EXPECT_EQ(refusal("parameters:\n  a: [1, 2]\nconstraints:\n  - b > 1\n"),
            "s.yaml:4:5: unknown parameter 'b'; known: a (at 1 of 'b > 1')");
  EXPECT_EQ(refusal("parameters:\n  a: [1, 2]\ndefault: {a: 3}\n"), "s.yaml:3:11: the default 3 is not a value of 'a'");
  EXPECT_EQ(refusal("parameters:\n  a: [1, 2]\nconstraints: [a > 1]\ndefault: {a: 1}\n"),
            "s.yaml:4:1: the default does not meet a > 1");
  for (const char* const text :
       {"", "[1]", "parameters: {}", "parameters: {a: 3}", "parameters: {a: [[1]]}", "parameters: {a: {from: 1}}",
        "parameters: {a: {from: 3, to: 1}}", "parameters: {a: {from: 1, to: 9999999}}",
        "parameters: {a: {from: 0.5, to: 1.0}}", "parameters: {a: {from: 1, to: 9, step: 0}}",
        "parameters: {a: {from: 0.0, to: 1.0, step: 1e-300}}", "{\"ConfigurationSpace\": {}}",
        "{\"ConfigurationSpace\": {\"TuningParameters\": [{\"Name\": \"a\", \"Values\": \"[i for i in x]\"}]}}"})
    EXPECT_NE(refusal(text), "") << text;
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// `count` lines with "N" in place of which is the line's number.
std::string numbered(const std::string& line, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    for (const char c : line) out += c == 'N' ? std::to_string(i) : std::string(1, c);
    out += '\n';
  }
  return out;
}

TEST(ParameterSpaces, HostileOnesAreRefusedInALineAndSoon) {
  std::string different, flat = "p0";
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < i; ++j) different += "  - p" + std::to_string(i) + " != p" + std::to_string(j) + "\n";
  }
  for (int i = 1; i < 500; ++i) flat += " + p" + std::to_string(i);
  const std::string pair = "parameters: {a: [1, 2, 3], b: [1, 2, 3]}\nconstraints:\n  - ";
  const std::string three = "parameters:\n" + numbered("  pN: {from: 1, to: 16000}", 3) + "constraints:\n";
  const std::string one = "parameters: {a: ";
  const std::pair<std::string, std::string> cases[] = {
      {"parameters:\n" + numbered("  pN: [1]", 1000000), "at most 4194304 are read"},
      {"parameters:\n" + numbered("  pN: [1]", 130000) + "constraints:\n" + numbered("  - pN > 0", 130000),
       "130000 parameters; at most 512 are taken"},
      {"parameters: {a: [1]}\nconstraints:\n" + numbered("  - a > N", 200000), "200000 constraints; at most 4096"},
      {"parameters:\n" + numbered("  pN: [1]", 100000) + "default:\n" + numbered("  pN: 1", 100000),
       "100000 parameters; at most 512"},
      {R"({"ConfigurationSpace": {"TuningParameters": [{"Name": "a", "Values": [1]}, {"Name": "a", "Values": [2]}]}})",
       "parameter 'a' is there twice"},
      {"parameters: {a: [1], a: [2]}", "key 'a' is given twice"},
      {"parameters: {a: [1, 2, 1]}", "has the value 1 twice"},
      {"{\"parameters\": {\"" + repeated("a", 100000) + "\": [1]}}", "is not a name"},
      // Contradictory: at once, in a cycle, and in a way that takes more than can be looked at.
      {pair + "a > b\n  - b > a", "contradictory: no point meets a > b; b > a"},
      {three + "  - p0 < p1\n  - p1 < p2\n  - p2 < p0\n", "no point was found that meets"},
      {"parameters:\n" + numbered("  pN: {from: 1, to: 15}", 16) + "constraints:\n" + different,
       "no point was found that meets"},
      {"parameters:\n" + numbered("  pN: {from: 1, to: 100}", 150) + "constraints:\n" + "  - (" +
           flat.substr(0, flat.find(" + p150")) + ") ** 2 == 2\n",
       "no point was found that meets"},
      {pair + "a // 0 == 1", "contradictory"},
      {pair + "a % (b - b) < 1 or 1 / (a - a) > 0", "contradictory"},
      {pair + "2 ** 2 ** 2 ** 62 > a", "contradictory"},
      // Deep and long.
      {pair + "a == " + repeated("(", 100000) + "1" + repeated(")", 100000), "more than 65536 characters"},
      {pair + "a == " + repeated("(", 30000) + "1" + repeated(")", 30000), "in each other"},
      {pair + "a == " + repeated("- ", 30000) + "1", "in each other"},
      {pair + repeated("not ", 15000) + "a", "in each other"},
      {pair + "a" + repeated(" + 1", 10000) + " > 0", "more than 4096 operations"},
      {one + repeated("[", 100000), ""},
      {one + repeated("{b: ", 100000), ""},
      {"{\"parameters\": " + repeated("[", 100000), ""},
      {"parameters:\n" + numbered("  pN: [1, 2]", 200) + "constraints:\n" +
           repeated("  - " + flat.substr(0, flat.find(" + p190")) + " > 0\n", 400),
       "constraints of 152400 operations in all; at most 65536 are taken"},
      // Ranges and bounds.
      {one + "{from: 1, to: 1000000000000000000}}", "more than 1048576 values"},
      {one + "{from: -9223372036854775808, to: 9223372036854775807}}", "more than 1048576 values"},
      {one + "{from: 1, to: 1000000000000000000000}}", ""},
      {one + "{from: .nan, to: 1, step: 0.1}}", ""},
      {one + "{from: 0, to: .nan, step: 0.1}}", ""},
      {one + "{from: 0, to: 1, step: .nan}}", ""},
      {one + "{from: -.inf, to: .inf, step: 1}}", ""},
      {one + "{from: 1, to: .inf, powers_of: 2}}", ""},
      {one + "{from: 1.0, to: 2.0, step: 1e-17}}", ""},
      {one + "[1, .nan]}", "expected a finite number"},
      {one + "[.inf]}", "expected a finite number"},
      {"{\"parameters\": {\"a\": [1e999]}}", ""},
  };
  for (const auto& [text, expected] : cases) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string said = refusal(text);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const std::string beginning = text.substr(0, 200);
    EXPECT_NE(said, "") << beginning;
    EXPECT_NE(said.find(expected), std::string::npos) << beginning << "\n" << said.substr(0, 500);
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    EXPECT_LT(said.size(), 1000u) << said;     // 200 levels of a place
    EXPECT_LT(took.count(), 60) << beginning;  // some seconds where nothing else runs
  }
}

TEST(ParameterSpaces, LargeOnesAreRead) {
  std::string sum = "p0";
  for (int i = 1; i < 512; ++i) sum += " + p" + std::to_string(i);
  const std::string large = "parameters:\n" + numbered("  pN: {from: 1, to: 3}", 512) + "constraints:\n";
  const codegen::ParameterSpace together = parse_parameter_space(large + "  - " + sum + " > 600\n", "large.yaml");
  EXPECT_FALSE(together.size());
  const codegen::ParameterSpace chain =
      parse_parameter_space("parameters:\n" + numbered("  pN: {from: 1, to: 700}", 100) + "constraints:\n" +
                                numbered("  - (p1 + pN) % 7 == 0", 100),
                            "chain.yaml");
  EXPECT_FALSE(chain.size());
  const codegen::ParameterSpace powers =
      parse_parameter_space("parameters: {a: {from: 1, to: 1000000000000000000, powers_of: 2}}", "powers.yaml");
  EXPECT_EQ(*powers.size(), 60);
}

}  // namespace
}  // namespace graft::datasets::formats
