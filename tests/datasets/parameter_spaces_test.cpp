#include "datasets/formats/parameter_spaces.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

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

TEST(ParameterSpaces, OfT1) {
  const codegen::ParameterSpace space = parse_parameter_space(t1, "conv.json");
  EXPECT_EQ(space.workload().text(), "table(name=conv,size0=4096,size1=128)");
  EXPECT_EQ(*space.size(), 5);
  EXPECT_EQ(space.to_document(space.standard()).to_json(), R"({"block":32,"pad":true})");
}

TEST(ParameterSpaces, RefusedWithThePlace) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      parse_parameter_space(text, "s.yaml");
      return "";
    } catch (const base::UserError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal("parameters:\n  a: [1, 2]\nconstraint: []\n"),
            "s.yaml:3:1: unknown key 'constraint'; did you mean 'constraints'?");
  EXPECT_EQ(refusal("parameters:\n  a: [1, 2]\nconstraints:\n  - b > 1\n"),
            "s.yaml:4:5: unknown parameter 'b'; known: a (at 1 of 'b > 1')");
  EXPECT_EQ(refusal("parameters:\n  a: [1, 2]\ndefault: {a: 3}\n"), "s.yaml:3:11: the default 3 is not a value of 'a'");
  EXPECT_EQ(refusal("parameters:\n  a: [1, 2]\nconstraints: [a > 1]\ndefault: {a: 1}\n"),
            "s.yaml:4:1: the default does not meet a > 1");
  std::string many = "parameters:\n";
  for (int i = 0; i < 1000000; ++i) many += "  p" + std::to_string(i) + ": [1]\n";
  EXPECT_NE(refusal(many).find("at most 4194304 are read"), std::string::npos);
  for (const char* const text :
       {"", "[1]", "parameters: {}", "parameters: {a: 3}", "parameters: {a: [[1]]}", "parameters: {a: {from: 1}}",
        "parameters: {a: {from: 3, to: 1}}", "parameters: {a: {from: 1, to: 9999999}}",
        "parameters: {a: {from: 0.5, to: 1.0}}", "parameters: {a: {from: 1, to: 9, step: 0}}",
        "parameters: {a: {from: 0.0, to: 1.0, step: 1e-300}}", "{\"ConfigurationSpace\": {}}",
        "{\"ConfigurationSpace\": {\"TuningParameters\": [{\"Name\": \"a\", \"Values\": \"[i for i in x]\"}]}}"})
    EXPECT_NE(refusal(text), "") << text;
}

}  // namespace
}  // namespace graft::datasets::formats
