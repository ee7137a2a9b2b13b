// Operators whose results are drawn when a model is read.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/graph/support/onnx_file.h"
#include "tests/graph/support/small.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using file::attribute;
using file::GraphFile;
using graft::codegen::Elements;

std::vector<double> numbers_of(const Elements& elements) {
  std::vector<double> all;
  for (std::size_t e = 0; e < elements.size(); ++e) all.push_back(elements[e]);
  return all;
}

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments_of(const std::vector<double>& numbers) {
  Moments of;
  for (const double number : numbers) of.mean += number / double(numbers.size());
  for (const double number : numbers) of.deviation += std::pow(number - of.mean, 2) / double(numbers.size());
  of.deviation = std::sqrt(of.deviation);
  return of;
}

const std::vector<std::int64_t> shape = {50, 200};

GraphFile drawn(const std::string& operation, const std::vector<std::string>& operands,
                std::vector<std::string> attributes, const std::string& name = "draw") {
  GraphFile made;
  return made.input("x", shape).node(operation, operands, {"r"}, std::move(attributes), name).output("r");
}

std::vector<double> results(const GraphFile& made) {
  return numbers_of(file::results(made, {{"x", Elements(std::vector<double>(10'000, 0.25))}}).front());
}

TEST(Random, NumbersHaveTheMomentsThatAreAskedFor) {
  const auto normal = moments_of(
      results(drawn("RandomNormal", {}, {attribute("shape", shape), attribute("mean", 3.0), attribute("scale", 2.0)})));
  EXPECT_NEAR(normal.mean, 3, 0.1);
  EXPECT_NEAR(normal.deviation, 2, 0.1);
  const auto uniform =
      moments_of(results(drawn("RandomUniformLike", {"x"}, {attribute("low", -1.0), attribute("high", 3.0)})));
  EXPECT_NEAR(uniform.mean, 1, 0.1);
  EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12.0), 0.05);
  EXPECT_NEAR(moments_of(results(drawn("Bernoulli", {"x"}, {}))).mean, 0.25, 0.02);
}

// Equal in every run; others by another seed or, without one, another name.
TEST(Random, SeedsAndNamesDecide) {
  const auto normal = [](std::vector<std::string> attributes, const std::string& name) {
    return results(drawn("RandomNormalLike", {"x"}, std::move(attributes), name));
  };
  EXPECT_EQ(normal({}, "a"), normal({}, "a"));
  EXPECT_NE(normal({}, "a"), normal({}, "b"));
  EXPECT_EQ(normal({attribute("seed", 7.0)}, "a"), normal({attribute("seed", 7.0)}, "b"));
  EXPECT_NE(normal({attribute("seed", 7.0)}, "a"), normal({attribute("seed", 8.0)}, "a"));
}

TEST(Random, ClassesByTheirLogarithms) {
  GraphFile made;
  made.input("x", {1, 3})
      .node("Multinomial", {"x"}, {"r"}, {attribute("sample_size", std::int64_t(20'000))})
      .output("r");
  const auto classes =
      numbers_of(file::results(made, {{"x", Elements{std::log(0.5), std::log(0.2), std::log(0.3)}}}).front());
  std::vector<double> shares(3);
  for (const double one : classes) shares.at(std::size_t(one)) += 1.0 / 20'000;
  EXPECT_NEAR(shares[0], 0.5, 0.02);
  EXPECT_NEAR(shares[1], 0.2, 0.02);
}

TEST(Random, TooManyAreRefused) {
  const auto refused = graft::codegen::refusal([] {
    return file::results(drawn("RandomNormal", {}, {attribute("shape", std::vector<std::int64_t>{1 << 20, 1 << 20})}),
                         {});
  });
  EXPECT_NE(refused.find("more than 67108864 numbers"), std::string::npos) << refused;
  const auto of_integers = graft::codegen::refusal(
      [] { return file::results(drawn("RandomUniformLike", {"x"}, {attribute("dtype", file::i32)}), {}); });
  EXPECT_NE(of_integers.find("random numbers of i32"), std::string::npos) << of_integers;
}

}  // namespace
