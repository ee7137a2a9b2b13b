#include "codegen/expression/reference.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "codegen/expression/parse.h"
#include "codegen/expression/workload.h"
#include "tests/expression/support.h"
#include "tests/support/random_expression.h"

namespace graft::codegen {
namespace {

// Row-major elements by index, zero outside: naive evaluations below share nothing with the code under test.
struct View {
  const Elements& values;
  std::vector<std::int64_t> shape;
  double operator()(std::initializer_list<std::int64_t> index) const {
    std::int64_t offset = 0;
    std::size_t d = 0;
    for (const std::int64_t i : index) {
      if (i < 0 || i >= shape[d]) return 0;
      offset = offset * shape[d++] + i;
    }
    return values[std::size_t(offset)];
  }
};

struct Sum {
  double value = 0, magnitude = 0;
  void add(double product) { value += product, magnitude += std::abs(product); }
};

class Checked {
 public:
  explicit Checked(std::string_view text, std::uint64_t seed = 7)
      : computation_(parse_workload(text).computation()), reference_(reference(computation_, seed)) {}
  View operator[](std::string_view name) const {
    const std::size_t t = std::size_t(computation_.tensor_named(name));
    return {reference_.tensors[t], computation_.tensors[t].shape};
  }
  std::int64_t length() const { return reference_.reduction_length[output()]; }
  // The next element of the output, row-major.
  void expect(const Sum& sum) {
    ASSERT_LT(next_, reference_.tensors[output()].size());
    EXPECT_NEAR(reference_.tensors[output()][next_], sum.value, 1e-9) << "element " << next_;
    EXPECT_NEAR(reference_.magnitude[output()][next_], sum.magnitude, 1e-9) << "element " << next_;
    ++next_;
  }
  ~Checked() { EXPECT_EQ(next_, reference_.tensors[output()].size()); }

 private:
  std::size_t output() const { return std::size_t(computation_.stages.back().tensor); }
  Computation computation_;
  Reference reference_;
  std::size_t next_ = 0;
};

TEST(Reference, matmul_of_awkward_sizes) {
  for (const auto& [m, n, k] :
       {std::array{1, 1, 1}, std::array{7, 5, 3}, std::array{1, 9, 300}, std::array{70, 3, 600}}) {
    Checked check("matmul(m=" + std::to_string(m) + ",n=" + std::to_string(n) + ",k=" + std::to_string(k) + ")");
    EXPECT_EQ(check.length(), k);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        Sum sum;
        for (int l = 0; l < k; ++l) sum.add(check["A"]({i, l}) * check["B"]({l, j}));
        check.expect(sum);
      }
  }
}

TEST(Reference, dense_adds_the_magnitude_of_the_bias) {
  Checked check("dense(m=3,n=5,k=4)");
  EXPECT_EQ(check.length(), 5);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) {
      Sum sum;
      for (int l = 0; l < 4; ++l) sum.add(check["X"]({i, l}) * check["W"]({j, l}));
      sum.add(check["bias"]({j}));
      sum.value = std::max(sum.value, 0.0);
      check.expect(sum);
    }
}

TEST(Reference, convolutions_of_every_stride_and_padding) {
  for (int stride = 1; stride <= 3; ++stride)
    for (int pad = 0; pad <= 2; ++pad)
      for (int k : {2, 11}) {  // the vector axis is in the activations once, in the weights once
        const int c = 3, h = 8, w = 9, r = 3, s = 2, n = 2;
        Checked check("conv2d(n=2,c=3,h=8,w=9,r=3,s=2,k=" + std::to_string(k) + ",stride=" + std::to_string(stride) +
                      ",pad=" + std::to_string(pad) + ")");
        EXPECT_EQ(check.length(), c * r * s);
        for (int b = 0; b < n; ++b)
          for (int o = 0; o < k; ++o)
            for (int y = 0; y < (h + 2 * pad - r) / stride + 1; ++y)
              for (int x = 0; x < (w + 2 * pad - s) / stride + 1; ++x) {
                Sum sum;
                for (int i = 0; i < c; ++i)
                  for (int u = 0; u < r; ++u)
                    for (int v = 0; v < s; ++v)
                      sum.add(check["X"]({b, i, stride * y + u - pad, stride * x + v - pad}) *
                              check["W"]({o, i, u, v}));
                check.expect(sum);
              }
      }
}

TEST(Reference, depthwise_convolution) {
  Checked check("depthwise_conv2d(c=3,h=7,w=8,r=3,s=3,stride=2,pad=1)");
  for (int i = 0; i < 3; ++i)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 4; ++x) {
        Sum sum;
        for (int u = 0; u < 3; ++u)
          for (int v = 0; v < 3; ++v) sum.add(check["X"]({0, i, 2 * y + u - 1, 2 * x + v - 1}) * check["W"]({i, u, v}));
        check.expect(sum);
      }
}

TEST(Reference, blocked_convolution) {
  Checked check("conv2d_nchwc(c=8,h=5,w=6,k=6,r=3,s=3,pad=1,block=2)");
  EXPECT_EQ(check.length(), 8 * 9);
  for (int o = 0; o < 3; ++o)
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 6; ++x)
        for (int e = 0; e < 2; ++e) {
          Sum sum;
          for (int i = 0; i < 8; ++i)
            for (int u = 0; u < 3; ++u)
              for (int v = 0; v < 3; ++v)
                sum.add(check["X"]({0, i / 2, y + u - 1, x + v - 1, i % 2}) * check["W"]({o, i / 2, u, v, i % 2, e}));
          check.expect(sum);
        }
}

TEST(Reference, sums_of_products_of_temporaries_carry_their_magnitudes) {
  // D = (A B) C: the magnitude of D is |A| |B| |C|, larger than |A B| |C|.
  Checked check(
      "input A[3,6]; input B[6,5]; input C[5,4]; T[i,j] += A[i,l] * B[l,j] where i=3, j=5, l=6;"
      "output D[i,j] += T[i,l] * C[l,j] where i=3, j=4, l=5");
  EXPECT_EQ(check.length(), 6 + 5);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      Sum sum;
      for (int l = 0; l < 5; ++l)
        for (int m = 0; m < 6; ++m) sum.add(check["A"]({i, m}) * check["B"]({m, l}) * check["C"]({l, j}));
      check.expect(sum);
    }
}

TEST(Reference, roundings_of_both_factors_count) {
  const Computation c = parse_workload(
                            "input A[4,8]; S[i] += A[i,l] where i=4, l=8; T[i] += A[i,l] where i=4, l=5; output "
                            "Y[i] = S[i] * T[i] where i=4")
                            .computation();
  const Reference r = reference(c, 3);
  EXPECT_EQ(r.reduction_length[3], 7 + 4 + 1);
  double s = 0, t = 0;
  for (std::size_t l = 0; l < 8; ++l) s += std::abs(r.tensors[0][l]);
  for (std::size_t l = 0; l < 5; ++l) t += std::abs(r.tensors[0][l]);
  EXPECT_NEAR(r.magnitude[3][0], s * t, 1e-12);
}

TEST(Reference, products_without_an_axis_of_one_operand) {
  Checked check("input A[3,6]; input B[3,6]; output D[i] += A[i,l] * B[i,l] where i=3, l=6");
  for (int i = 0; i < 3; ++i) {
    Sum sum;
    for (int l = 0; l < 6; ++l) sum.add(check["A"]({i, l}) * check["B"]({i, l}));
    check.expect(sum);
  }
}

TEST(Reference, a_batched_transposed_product) {
  Checked check("input A[2,6,3]; input B[2,5,6]; output D[b,j,i] += B[b,j,-l + 5] * A[b,l,i] where b=2, i=3, j=5, l=6");
  for (int b = 0; b < 2; ++b)
    for (int j = 0; j < 5; ++j)
      for (int i = 0; i < 3; ++i) {
        Sum sum;
        for (int l = 0; l < 6; ++l) sum.add(check["B"]({b, j, 5 - l}) * check["A"]({b, l, i}));
        check.expect(sum);
      }
}

TEST(Reference, softmax_through_its_stages) {
  const Computation c =
      parse_workload(
          "input A[4,9]; M[i] max= A[i,l]; E[i,l] = exp(A[i,l] - M[i]); S[i] += E[i,l]; output Y[i,j] = E[i,j] / S[i]"
          " where i=4, l=9, j=9")
          .computation();
  const Reference r = reference(c, 3);
  const Elements& a = r.tensors[0];
  const std::size_t y = std::size_t(c.tensor_named("Y"));
  for (std::size_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < 9; ++j) sum += std::exp(a[i * 9 + j]);
    for (std::size_t j = 0; j < 9; ++j) {
      EXPECT_NEAR(r.tensors[y][i * 9 + j], std::exp(a[i * 9 + j]) / sum, 1e-12);
      EXPECT_GE(r.magnitude[y][i * 9 + j], r.tensors[y][i * 9 + j]);
      EXPECT_LT(r.magnitude[y][i * 9 + j], 100 * r.tensors[y][i * 9 + j]);
    }
  }
  EXPECT_TRUE(r.tensors[std::size_t(c.tensor_named("E"))].empty());
  EXPECT_TRUE(r.magnitude[0].empty());
  EXPECT_EQ(r.reduction_length[0], 0);
}

TEST(Reference, every_operation_and_every_combine) {
  const Computation c =
      parse_workload(
          "input A[5]; input B[5]; output P[i] = neg(A[i]) + sqrt(max(A[i],0.25)) - min(A[i],B[i]) / (B[i] * B[i] + 1);"
          "output L[r] min= A[r + q]; output H[r] max= A[r + q] * B[q] where i=5, r=3, q=3")
          .computation();
  const Reference r = reference(c, 11);
  const Elements &a = r.tensors[0], &b = r.tensors[1];
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(r.tensors[2][i], -a[i] + std::sqrt(std::max(a[i], 0.25)) - std::min(a[i], b[i]) / (b[i] * b[i] + 1),
                1e-14);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(r.tensors[3][i], std::min({a[i], a[i + 1], a[i + 2]}));
    EXPECT_EQ(r.tensors[4][i], std::max({a[i] * b[0], a[i + 1] * b[1], a[i + 2] * b[2]}));
  }
  EXPECT_EQ(r.reduction_length[3], 1);
}

// By lanes of elements and by lanes of terms.
TEST(Reference, products_are_multiplied_and_may_be_off_by_a_rounding_each) {
  const Reference r = reference(parse_workload("input A[90,40]; output R[i] *= 1.5 + A[i,l]; output C[j] *= "
                                               "1.5 + A[l,j] where i=90, j=40, l=40")
                                    .computation(),
                                5);
  for (std::size_t i = 0; i < 40; ++i) {
    double row = 1, column = 1;
    for (std::size_t l = 0; l < 40; ++l)
      row *= 1.5 + r.tensors[0][i * 40 + l], column *= 1.5 + r.tensors[0][l * 40 + i];
    EXPECT_DOUBLE_EQ(r.tensors[1][i], row);
    EXPECT_DOUBLE_EQ(r.tensors[2][i], column);
    EXPECT_GE(r.magnitude[1][i], row);
  }
  EXPECT_EQ(r.reduction_length[1], 40 + 39);  // one rounding for each sum, and one between any two factors
}

TEST(Reference, products_of_integers_wrap_around) {
  const Reference r = reference(parse_workload("input A[30] : u8; output P[z] : u8 *= 2 * A[l] + 1; output W[z] : i32 "
                                               "*= 2 * A[l] + 1 where z=1, l=30")
                                    .computation(),
                                3);
  std::uint8_t bytes = 1;
  std::uint32_t words = 1;
  for (const double a : r.tensors[0]) {
    bytes = std::uint8_t(bytes * (2 * unsigned(a) + 1));
    words *= 2 * unsigned(a) + 1;
  }
  EXPECT_EQ(r.tensors[1][0], bytes);
  EXPECT_EQ(r.tensors[2][0], std::int32_t(words));
}

TEST(Reference, a_row_masked_by_infinities_is_exact) {
  const Reference r =
      reference(parse_workload("input A[7,7]; T[i,j] = select(j <= i, A[i,j], -inf); M[i] max= T[i,l]; E[i,j] = "
                               "exp(T[i,j] - M[i]); S[i] += E[i,l]; output Y[i,j] = E[i,j] / S[i] where i=7, j=7, l=7")
                    .computation(),
                3);
  const std::size_t y = r.tensors.size() - 1;
  for (std::size_t i = 0; i < 7; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j <= i; ++j) sum += std::exp(r.tensors[0][i * 7 + j]);
    for (std::size_t j = 0; j < 7; ++j) {
      EXPECT_NEAR(r.tensors[y][i * 7 + j], j <= i ? std::exp(r.tensors[0][i * 7 + j]) / sum : 0, 1e-10);
      EXPECT_LT(r.magnitude[y][i * 7 + j], 100);
    }
  }
}

void expect_functions_of_the_table(DType type, double error) {
  const Computation c = parse_computation(
      "input A[40]; input B[40]; output R[i] = rsqrt(A[i] + 2); output L[i] = log(A[i] + 2); "
      "output P[i] = pow(A[i] + 2, B[i]); output T[i] = tanh(A[i]); output S[i] = sigmoid(A[i]); "
      "output E[i] = erf(A[i]); output Q[i] = abs(A[i]); output F[i] = floor(A[i] * 8); "
      "output I[i] = sin(A[i]); output O[i] = cos(A[i]); "
      "output N[i] = log(A[i]); output C[i] = select(A[i] < B[i], A[i], 5) where i=40",
      {}, type, "text");
  const Reference r = reference(c, 11);
  for (std::size_t i = 0; i < 40; ++i) {
    const double a = r.tensors[0][i], b = r.tensors[1][i];
    const double expected[] = {
        1 / std::sqrt(a + 2), std::log(a + 2), std::pow(a + 2, b), std::tanh(a), 1 / (1 + std::exp(-a)),
        std::erf(a),          std::abs(a),     std::floor(a * 8),  std::sin(a),  std::cos(a)};
    for (std::size_t t = 0; t < std::size(expected); ++t) {
      EXPECT_NEAR(r.tensors[t + 2][i], expected[t], error * std::abs(expected[t])) << t;
      EXPECT_GE(r.magnitude[t + 2][i], std::abs(expected[t]) * (1 - error)) << t;
      EXPECT_LE(r.magnitude[t + 2][i], 10) << t;
    }
    EXPECT_EQ(std::isnan(r.tensors[12][i]), a < 0);
    EXPECT_EQ(r.tensors[13][i], a < b ? a : 5);
    EXPECT_LE(r.magnitude[13][i], 5);  // what is loaded is exact: so is the choice
  }
}

TEST(Reference, functions_of_the_table) {
  expect_functions_of_the_table(DType::f64, 2e-15);
  expect_functions_of_the_table(DType::f32, 1e-11);  // 1e-4 of what f32 may be off
}

// Where rounding decides, either side is right, and nothing else is.
TEST(Reference, rounded_conditions_and_steps_have_two_right_answers) {
  const Computation c =
      parse_workload(
          "input A[3]; output F[i] = floor(A[i] * 3 - A[i] * 2); output S[i] = select(A[i] * 3 <= A[i] * 2 + "
          "0.5, 7, 1); output X[i] = select(A[i] < 0.1, 7, 1) where i=3")
          .computation();
  const Reference r = reference(c, {{0.5, 0.75, double(0.1f)}, {}, {}, {}});
  const auto allowed = [&](std::size_t t, std::size_t i) {
    return tolerance(DType::f32, r.reduction_length[t], r.magnitude[t][i]);
  };
  const Reference edge = reference(c, {{1, 0.75, 0.5}, {}, {}, {}});
  EXPECT_GE(tolerance(DType::f32, edge.reduction_length[1], edge.magnitude[1][0]), 1);
  EXPECT_LT(tolerance(DType::f32, edge.reduction_length[1], edge.magnitude[1][1]), 1e-5);
  EXPECT_GE(allowed(2, 0), 6);
  EXPECT_LT(allowed(2, 1), 1e-4);
  // 0.1 is compared as f32 has it.
  EXPECT_EQ(r.tensors[3][2], 1);
  EXPECT_LT(allowed(3, 2), 1e-4);
}

TEST(Reference, inputs_are_exact_in_f32_within_bounds_and_fixed_by_seed_and_name) {
  const Computation c = parse_workload("matmul(m=30,n=40,k=50)").computation();
  const Reference r = reference(c, 1), again = reference(c, 1), other = reference(c, 2);
  EXPECT_EQ(r.tensors, again.tensors);
  EXPECT_NE(r.tensors[0], other.tensors[0]);
  double sum = 0, squares = 0;
  for (const double v : r.tensors[0]) {
    EXPECT_EQ(double(float(v)), v);
    EXPECT_LE(std::abs(v), 1);
    sum += v, squares += v * v;
  }
  EXPECT_NEAR(sum / 1500, 0, 0.1);
  EXPECT_NEAR(squares / 1500, 1.0 / 3, 0.05);
  // Another computation with a tensor of the same name and shape gets the same numbers.
  const Computation d =
      parse_workload("input Z[2]; input A[30,50]; output C[i,j] = A[i,j] + Z[0] where i=30, j=50").computation();
  EXPECT_EQ(reference(d, 1).tensors[1], r.tensors[0]);
}

TEST(Reference, integers_are_exact) {
  const Computation c = parse_workload("matmul(m=4,n=5,k=6,dtype=i32)").computation();
  const Reference r = reference(c, 5);
  bool some = false;
  for (const auto& tensor : r.tensors)
    for (const double v : tensor) {
      EXPECT_EQ(v, std::round(v));
      some = some || v != 0;
    }
  EXPECT_TRUE(some);
  for (const double v : r.tensors[0]) EXPECT_LE(std::abs(v), 8);
  EXPECT_EQ(tolerance(DType::i32, r.reduction_length[2], r.magnitude[2][0]), 0);
}

TEST(Reference, bytes_take_all_values_and_are_multiplied_in_the_type_of_the_stage) {
  const Computation c =
      parse_workload(
          "input A[40,30] : u8; input B[30,20] : i8; output C[i,j] : i32 += A[i,l] * B[l,j] where i=40, j=20, l=30")
          .computation();
  const Reference r = reference(c, 3);
  const auto [least_a, most_a] = std::minmax_element(r.tensors[0].begin(), r.tensors[0].end());
  const auto [least_b, most_b] = std::minmax_element(r.tensors[1].begin(), r.tensors[1].end());
  EXPECT_TRUE(*least_a >= 0 && *least_a < 8) << *least_a;
  EXPECT_TRUE(*most_a > 247 && *most_a <= 255) << *most_a;
  EXPECT_TRUE(*least_b >= -128 && *least_b < -120) << *least_b;
  EXPECT_TRUE(*most_b > 119 && *most_b <= 127) << *most_b;
  double sum = 0;
  for (std::size_t l = 0; l < 30; ++l) sum += r.tensors[0][7 * 30 + l] * r.tensors[1][l * 20 + 3];
  EXPECT_EQ(r.tensors[2][7 * 20 + 3], sum);
}

TEST(Reference, integers_wrap_around_in_the_type_of_the_stage) {
  const Reference r =
      reference(parse_workload("input A[64] : u8; output M[i] : u8 = max(A[i] + 200, 100); output N[i] : i8 = A[i];"
                               "output S[z] : u8 += A[i] * A[i] where i=64, z=1")
                    .computation(),
                3);
  std::uint8_t sum = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint8_t a = std::uint8_t(r.tensors[0][i]);
    EXPECT_EQ(r.tensors[1][i], std::max<std::uint8_t>(std::uint8_t(a + 200), 100));
    EXPECT_EQ(r.tensors[2][i], std::int8_t(a));
    sum = std::uint8_t(sum + a * a);
  }
  EXPECT_EQ(r.tensors[3][0], sum);
}

TEST(Reference, a_float_evaluation_lies_within_the_tolerance_and_a_wrong_one_outside) {
  const Computation c = parse_workload("dense(m=8,n=8,k=200)").computation();
  const Reference r = reference(c, 9);
  int outside = 0;
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      float sum = 0, without_last = 0;
      for (std::size_t l = 0; l < 200; ++l) {
        without_last = sum;
        sum += float(r.tensors[0][i * 200 + l]) * float(r.tensors[1][j * 200 + l]);
      }
      const auto error = [&](float total) {
        const double y = std::max(0.0f, total + float(r.tensors[2][j]));
        return std::abs(y - r.tensors[4][i * 8 + j]);
      };
      const double allowed = tolerance(DType::f32, r.reduction_length[4], r.magnitude[4][i * 8 + j]);
      EXPECT_LE(error(sum), allowed);
      outside += error(without_last) > allowed;
    }
  EXPECT_GT(outside, 20);  // where ReLU does not hide it
}

TEST(Reference, literals_are_what_they_say_and_those_that_are_rounded_count) {
  const auto of = [](const char* literal) {
    return reference(parse_computation(std::string("input A[2]; literal B[2,2] = {") + literal +
                                           "}; output C[i] += B[i,l] * A[l] where i=2, l=2",
                                       {}, DType::f32, "text"),
                     3);
  };
  const Reference r = of("1,0,-2,0.5");
  EXPECT_EQ(r.tensors[2][0], r.tensors[0][0]);
  EXPECT_EQ(r.tensors[2][1], -2 * r.tensors[0][0] + 0.5 * r.tensors[0][1]);
  EXPECT_EQ(r.magnitude[2][1], 2 * std::abs(r.tensors[0][0]) + 0.5 * std::abs(r.tensors[0][1]));
  EXPECT_EQ(r.reduction_length[2], 2);
  EXPECT_EQ(of("1,0,-2,0.1").reduction_length[2], 3);
}

TEST(Reference, an_f64_output_of_f32_work_has_the_tolerance_of_f32) {
  const Computation c =
      parse_workload("input A[4,8]; T[i] += A[i,l]; output Y[i] : f64 = T[i] * 2 where i=4, l=8").computation();
  const Reference r = reference(c, 9);
  for (std::size_t i = 0; i < 4; ++i) {
    const double allowed = tolerance(DType::f64, r.reduction_length[2], r.magnitude[2][i]);
    EXPECT_GT(allowed, 4 * std::numeric_limits<float>::epsilon() * r.magnitude[2][i]);
    EXPECT_LT(allowed, 100 * std::numeric_limits<float>::epsilon() * r.magnitude[2][i]);
  }
}

TEST(Tolerance, is_four_eps_k_magnitude_and_never_below_the_smallest_normal) {
  EXPECT_DOUBLE_EQ(tolerance(DType::f32, 10, 2.0), 80 * 0x1p-23);
  EXPECT_DOUBLE_EQ(tolerance(DType::f64, 10, 2.0), 80 * 0x1p-52);
  EXPECT_EQ(tolerance(DType::f32, 10, 0), std::numeric_limits<float>::min());
  EXPECT_EQ(tolerance(DType::f64, 10, 0), std::numeric_limits<double>::min());
}

// A sum of products in many parts, one with magnitudes of its own, and stages that are interpreted.
const char* const several_kinds[] = {
    "matmul(m=67,n=131,k=300)", "conv2d(c=5,h=9,w=11,k=70,r=3,s=3,pad=1)", "dense(m=33,n=65,k=70)",
    "input A[200,10]; input B[10,60]; input C[60,100]; T[i,j] += A[i,l] * B[l,j] where i=200, j=60, l=10;"
    "output D[i,j] += T[i,l] * C[l,j] where i=200, j=100, l=60",
    "input A[40,90]; M[i] max= A[i,l]; E[i,l] = exp(A[i,l] - M[i]); S[i] += E[i,l]; output Y[i,j] = E[i,j] / S[i]"
    " where i=40, l=90, j=90"};

TEST(Reference, threads_change_no_bit) {
  base::Monitor nobody;
  for (const char* const text : several_kinds) {
    const Computation c = parse_workload(text).computation();
    const Reference alone = reference(c, 3);
    ReferenceSettings settings;
    settings.threads = 3;
    const Reference shared = reference(c, 3, settings, nobody);
    EXPECT_EQ(shared.tensors, alone.tensors) << text;
    EXPECT_EQ(shared.magnitude, alone.magnitude) << text;
    EXPECT_EQ(shared.reduction_length, alone.reduction_length) << text;
    EXPECT_EQ(shared.computed, shared.elements) << text;
  }
}

TEST(Reference, a_sample_has_the_values_of_the_whole_and_what_is_left_out_allows_any_number) {
  base::Monitor nobody;
  for (const char* const text : several_kinds) {
    const Computation c = parse_workload(text).computation();
    const Reference whole = reference(c, 3);
    ReferenceSettings settings;
    settings.most_work = 0;
    settings.sampled_work = 20000;
    const Reference some = reference(c, 3, settings, nobody);
    EXPECT_EQ(some.elements, whole.elements) << text;
    EXPECT_GE(some.computed, 16) << text;
    EXPECT_LT(some.computed, some.elements) << text;
    std::int64_t computed = 0;
    for (std::size_t t = 0; t < c.tensors.size(); ++t) {
      const Tensor& tensor = c.tensors[t];
      if (tensor.role == Role::input || tensor.role == Role::constant) {
        EXPECT_EQ(some.tensors[t], whole.tensors[t]) << text;
      }
      if (tensor.role != Role::output) continue;
      for (std::size_t e = 0; e < whole.tensors[t].size(); ++e) {
        if (std::isinf(some.magnitude[t][e])) {
          EXPECT_TRUE(std::isinf(tolerance(tensor.dtype, some.reduction_length[t], some.magnitude[t][e])));
          continue;
        }
        ++computed;
        EXPECT_NEAR(some.tensors[t][e], whole.tensors[t][e], 1e-9) << text << ", element " << e;
        EXPECT_NEAR(some.magnitude[t][e], whole.magnitude[t][e], 1e-9) << text << ", element " << e;
      }
      // Where tiles that do not divide an extent leave their tails.
      for (const std::size_t corner : {std::size_t(0), whole.tensors[t].size() - 1})
        EXPECT_FALSE(std::isinf(some.magnitude[t][corner])) << text;
      EXPECT_EQ(some.reduction_length[t], whole.reduction_length[t]) << text;
    }
    EXPECT_EQ(computed, some.computed) << text;
    const Reference again = reference(c, 3, settings, nobody), other = reference(c, 4, settings, nobody);
    EXPECT_EQ(some.magnitude, again.magnitude) << text;
    EXPECT_NE(some.magnitude, other.magnitude) << text;
  }
}

// Elements one by one and in rows, sums of products and other stages: the same numbers and magnitudes.
TEST(Reference, samples_of_random_expressions_have_the_values_of_the_whole) {
  base::Monitor nobody;
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::string text = test::RandomExpression(seed).text();
    std::optional<Computation> c;
    try {
      c = parse_workload(text).computation();
    } catch (const base::UserError&) {
      continue;  // without a meaning
    }
    ReferenceSettings settings;
    settings.most_work = 0;
    settings.sampled_work = 3000;
    const Reference whole = reference(*c, seed), some = reference(*c, seed, settings, nobody);
    settings.magnitudes = false;
    const Reference values = reference(*c, seed, settings, nobody);
    const std::size_t t = std::size_t(c->tensor_named("Y"));
    const auto near = [](double a, double b, double size) {
      return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 * size;
    };
    for (const std::int64_t sampled : some.tensors[t].sample()) {
      const std::size_t e = std::size_t(sampled);
      const double value = some.tensors[t][e], magnitude = some.magnitude[t][e];
      ASSERT_TRUE(near(value, whole.tensors[t][e], std::max(std::abs(value), magnitude)))
          << value << " and " << whole.tensors[t][e] << " in " << text;
      ASSERT_TRUE(near(magnitude, whole.magnitude[t][e], magnitude))
          << magnitude << " and " << whole.magnitude[t][e] << " in " << text;
      ASSERT_TRUE(near(values.tensors[t][e], value, 0)) << text;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10000);
}

TEST(Reference, integers_that_are_left_out_of_a_sample_allow_any_number) {
  base::Monitor nobody;
  ReferenceSettings settings;
  settings.most_work = 0;
  settings.sampled_work = 1;
  const Reference some =
      reference(parse_workload("matmul(m=40,n=50,k=6,dtype=i32)").computation(), 3, settings, nobody);
  EXPECT_LT(some.computed, some.elements);
  EXPECT_EQ(tolerance(DType::i32, 6, 0), 0);
  EXPECT_EQ(tolerance(DType::i32, 6, 1), 1);
  EXPECT_TRUE(std::isinf(tolerance(DType::i32, 6, some.magnitude[2][51]) +
                         tolerance(DType::i32, 6, some.magnitude[2][52]) +
                         tolerance(DType::i32, 6, some.magnitude[2][53])));
}

// Asks to stop once a tenth of a second is over.
class StopSoon final : public base::Monitor {
 public:
  bool stop_requested() override { return std::chrono::steady_clock::now() - begin_ > std::chrono::milliseconds(100); }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

TEST(Reference, stops_in_the_middle_of_whatever_is_large) {
  for (const char* const text : {"matmul(m=3000,n=3000,k=3000)",
                                 "input A[1000]; output Y[z] += A[i] * A[l] * A[m] where z=1, i=1000, l=1000, m=1000",
                                 "conv2d(c=512,h=100,w=100,k=512,r=3,s=3,pad=1)",
                                 "input A[3000,3000]; output Y[i,j] max= A[i,l] * A[l,j] where i=3000, j=3000, l=3000",
                                 "input A[30000,2]; output Y[i] += exp(A[l,0]) * A[i,1] where i=30000, l=30000"}) {
    StopSoon monitor;
    ReferenceSettings settings;
    settings.threads = 2;
    settings.most_work = std::numeric_limits<double>::infinity();
    EXPECT_THROW((void)reference(parse_workload(text).computation(), 1, settings, monitor), base::Stopped) << text;
    EXPECT_LT(monitor.seconds(), 10) << text;
  }
}

TEST(Reference, of_an_output_of_many_elements_a_sample_is_held) {
  base::Monitor nobody;
  ReferenceSettings settings;
  settings.most_elements = 1000;
  settings.sampled_work = 4000;
  for (const char* const text :
       {"input A[300,400]; output C[i,j] = A[i,j] * 2 where i=300, j=400",
        "input A[300,400]; T[i,j] = A[i,j] * 2; output C[i,j] = T[i,j] + T[i,0] where i=300, j=400",
        "matmul(m=300,n=400,k=1)"}) {
    const Computation c = parse_workload(text).computation();
    const Reference some = reference(c, 3, settings, nobody), whole = reference(c, 3);
    const std::size_t t = std::size_t(c.stages.back().tensor);
    const Elements& values = some.tensors[t];
    ASSERT_TRUE(values.is_sample()) << text;
    EXPECT_EQ(std::int64_t(values.sample().size()), some.computed) << text;
    EXPECT_LT(some.computed, 2000) << text;
    EXPECT_EQ(values.size(), 120000u) << text;
    for (const std::int64_t e : values.sample()) EXPECT_EQ(values[std::size_t(e)], whole.tensors[t][std::size_t(e)]);
    for (const std::int64_t corner : {0, 399, 299 * 400, 300 * 400 - 1})
      EXPECT_FALSE(std::isinf(some.magnitude[t][std::size_t(corner)])) << text << corner;
  }
}

TEST(Reference, a_large_product_is_sampled_in_seconds) {
  base::Monitor nobody;
  const StopSoon watch;
  const Reference some =
      reference(parse_workload("matmul(m=2048,n=2048,k=2048)").computation(), 1, ReferenceSettings{}, nobody);
  EXPECT_LT(some.computed, some.elements);
  EXPECT_GT(some.computed, 10000);
  EXPECT_LT(watch.seconds(), 60);
}

}  // namespace
}  // namespace graft::codegen
