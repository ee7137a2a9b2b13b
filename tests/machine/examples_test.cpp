// The index expressions of examples/expressions: their reference against plain loops, machine code of their plain
// programs and of random schedules against the reference.
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "base/random.h"
#include "codegen/expression/workload.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "tests/machine/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using namespace test;

using List = std::vector<double>;

struct Example {
  const char* name;
  // The output from the operands, in the order of their declaration.
  std::function<List(const std::vector<List>&)> plain;
};

// Calls body(first element, elements) for every row.
template <class Body>
void rows(std::size_t count, std::size_t length, Body body) {
  for (std::size_t row = 0; row < count; ++row) body(row * length, length);
}

const Example examples[] = {
    {"rms_norm",
     [](const std::vector<List>& of) {
       List y(48 * 96);
       rows(48, 96, [&](std::size_t at, std::size_t n) {
         double squares = 0;
         for (std::size_t j = 0; j < n; ++j) squares += of[0][at + j] * of[0][at + j];
         for (std::size_t j = 0; j < n; ++j)
           y[at + j] = of[0][at + j] / std::sqrt(squares / double(n) + 1e-5) * of[1][j];
       });
       return y;
     }},
    {"gelu",
     [](const std::vector<List>& of) {
       List y;
       for (const double x : of[0]) y.push_back(x * std::erfc(-x / std::sqrt(2)) / 2);
       return y;
     }},
    {"conv2d_strides_pads",
     [](const std::vector<List>& of) {
       List y(16 * 9 * 20);
       for (int o = 0; o < 16; ++o)
         for (int row = 0; row < 9; ++row)
           for (int column = 0; column < 20; ++column)
             for (int c = 0; c < 8; ++c)
               for (int u = 0; u < 3; ++u)
                 for (int v = 0; v < 5; ++v) {
                   const int from_row = 2 * row + u - 1, from_column = column + v - 2;
                   if (from_row < 0 || from_row >= 17 || from_column < 0 || from_column >= 20) continue;
                   y[std::size_t((o * 9 + row) * 20 + column)] +=
                       of[0][std::size_t((c * 17 + from_row) * 20 + from_column)] *
                       of[1][std::size_t(((o * 8 + c) * 3 + u) * 5 + v)];
                 }
       return y;
     }},
    {"separable_conv2d",
     [](const std::vector<List>& of) {
       List y(5 * 7 * 24);
       for (int row = 0; row < 5; ++row)
         for (int column = 0; column < 7; ++column) {
           List between(16);
           for (int c = 0; c < 16; ++c) {
             double sum = of[2][std::size_t(c)];
             for (int u = 0; u < 3; ++u)
               for (int v = 0; v < 3; ++v) {
                 const int from_row = 2 * row + u - 1, from_column = 2 * column + v - 1;
                 if (from_row < 0 || from_row >= 9 || from_column < 0 || from_column >= 14) continue;
                 sum += of[0][std::size_t((from_row * 14 + from_column) * 16 + c)] *
                        of[1][std::size_t((u * 3 + v) * 16 + c)];
               }
             between[std::size_t(c)] = std::clamp(sum, 0.0, 6.0);
           }
           for (int o = 0; o < 24; ++o) {
             double sum = of[4][std::size_t(o)];
             for (int c = 0; c < 16; ++c) sum += between[std::size_t(c)] * of[3][std::size_t(c * 24 + o)];
             y[std::size_t((row * 7 + column) * 24 + o)] = sum;
           }
         }
       return y;
     }},
    {"matmul_broadcast",
     [](const std::vector<List>& of) {
       List y;
       for (std::size_t row = 0; row < 4 * 24; ++row)
         for (std::size_t j = 0; j < 48; ++j) {
           double sum = of[2][j];
           for (std::size_t l = 0; l < 40; ++l) sum += of[0][row * 40 + l] * of[1][l * 48 + j];
           y.push_back(sum > 0 ? sum : 0);
         }
       return y;
     }},
    {"softmax",
     [](const std::vector<List>& of) {
       List y(32 * 100);
       rows(32, 100, [&](std::size_t at, std::size_t n) {
         double sum = 0;
         for (std::size_t j = 0; j < n; ++j) sum += std::exp(of[0][at + j]);
         for (std::size_t j = 0; j < n; ++j) y[at + j] = std::exp(of[0][at + j]) / sum;
       });
       return y;
     }},
    {"layer_norm",
     [](const std::vector<List>& of) {
       List y(40 * 64);
       rows(40, 64, [&](std::size_t at, std::size_t n) {
         double mean = 0, variance = 0;
         for (std::size_t j = 0; j < n; ++j) mean += of[0][at + j] / double(n);
         for (std::size_t j = 0; j < n; ++j) variance += std::pow(of[0][at + j] - mean, 2) / double(n);
         for (std::size_t j = 0; j < n; ++j)
           y[at + j] = (of[0][at + j] - mean) / std::sqrt(variance + 1e-5) * of[1][j] + of[2][j];
       });
       return y;
     }},
    {"int8_layer",
     [](const std::vector<List>& of) {
       List y;
       for (std::size_t i = 0; i < 32; ++i)
         for (std::size_t j = 0; j < 48; ++j) {
           double sum = of[2][j];
           for (std::size_t l = 0; l < 64; ++l) sum += of[0][i * 64 + l] * of[1][j * 64 + l];
           y.push_back(std::clamp(std::nearbyint(sum * of[3][j] / 256) - 3, -128.0, 127.0));
         }
       return y;
     }},
    {"causal_softmax",
     [](const std::vector<List>& of) {
       List y(24 * 24);
       for (std::size_t i = 0; i < 24; ++i) {
         double sum = 0;
         for (std::size_t j = 0; j <= i; ++j) sum += std::exp(of[0][i * 24 + j]);
         for (std::size_t j = 0; j <= i; ++j) y[i * 24 + j] = std::exp(of[0][i * 24 + j]) / sum;
       }
       return y;
     }},
    {"embedding",
     [](const std::vector<List>& of) {
       List y;
       for (std::size_t i = 0; i < 20; ++i)
         for (std::size_t j = 0; j < 32; ++j)
           y.push_back(of[1][std::size_t(std::clamp(of[0][i], 0.0, 49.0)) * 32 + j] + of[2][i * 32 + j]);
       return y;
     }},
    {"upsample",
     [](const std::vector<List>& of) {
       List y;
       for (std::size_t c = 0; c < 4; ++c)
         for (std::size_t p = 0; p < 20; ++p)
           for (std::size_t q = 0; q < 36; ++q) y.push_back(of[0][(c * 10 + p / 2) * 12 + q / 3]);
       return y;
     }},
    {"depth_to_space",
     [](const std::vector<List>& of) {
       List y;
       for (std::size_t c = 0; c < 8; ++c)
         for (std::size_t p = 0; p < 20; ++p)
           for (std::size_t q = 0; q < 24; ++q)
             y.push_back(of[0][(((p % 2 * 2 + q % 2) * 8 + c) * 10 + p / 2) * 12 + q / 2]);
       return y;
     }},
};

TEST(Examples, ComputeWhatPlainLoopsDo) {
  const Target host = host_target();
  for (const Example& example : examples) {
    SCOPED_TRACE(example.name);
    std::ifstream file(std::string(GRAFT_SOURCE_DIR) + "/examples/expressions/" + example.name + ".txt");
    std::ostringstream text;
    text << file.rdbuf();
    const Workload workload = parse_workload(text.str());
    const Computation what = workload.computation();

    const Reference expected = reference(what, 5);
    std::vector<List> operands;
    std::size_t output = 0;
    for (std::size_t t = 0; t < what.tensors.size(); ++t) {
      const Role role = what.tensors[t].role;
      if (role == Role::input || role == Role::constant) operands.push_back(expected.tensors[t].numbers());
      if (role == Role::output) output = t;
    }
    const List plain = example.plain(operands);
    ASSERT_EQ(plain.size(), expected.tensors[output].size());
    for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(expected.tensors[output][i], plain[i], 1e-11) << i;

    expect_as_reference(naive_program(what), what, host);
    const JudgedSpace space = judged_space(workload, host);
    base::Stream stream(13, "random schedules");
    for (int draw = 0; draw < 4; ++draw) {
      SCOPED_TRACE(draw);
      const auto lowered = program(space.sample(stream), host);
      ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
      expect_as_reference(*lowered, what, host);
    }
  }
}

}  // namespace
}  // namespace graft::codegen
