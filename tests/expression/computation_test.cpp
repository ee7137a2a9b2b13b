#include "codegen/expression/computation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "codegen/expression/workload.h"
#include "tests/expression/support.h"

namespace graft::codegen {
namespace {

Value load(int tensor, std::vector<Affine> index) {
  return Value::load({.tensor = tensor, .index = std::move(index)});
}

// C[i,j] += A[i,l] * B[l,j], 3 x 4 x 5
Computation matmul() {
  Computation c;
  c.tensors = {{"A", DType::f32, {3, 5}, Role::input},
               {"B", DType::f32, {5, 4}, Role::constant},
               {"C", DType::f32, {3, 4}, Role::output}};
  const Affine i = Affine::variable(0), j = Affine::variable(1), l = Affine::variable(2);
  c.stages = {{.tensor = 2,
               .axes = {{"i", 3}, {"j", 4}, {"l", 5}},
               .combine = Combine::sum,
               .value = Value::apply(Op::mul, load(0, {i, l}), load(1, {l, j}))}};
  return c;
}

std::string refusal_of(const std::function<void(Computation&)>& change) {
  Computation c = matmul();
  change(c);
  return refusal([&] { return checked(c, "here"); });
}

TEST(Computation, accepts_a_matmul_and_returns_it) {
  EXPECT_EQ(checked(matmul(), "here"), matmul());
  const Computation c = matmul();
  EXPECT_EQ(c.tensor_named("B"), 1);
  EXPECT_EQ(c.tensor_named("D"), -1);
  EXPECT_EQ(c.stage_writing(2), 0);
  EXPECT_EQ(c.stage_writing(0), -1);
  EXPECT_EQ(c.spatial_axes(c.stages[0]), 2);
  EXPECT_TRUE(c.is_reduction(c.stages[0]));
  EXPECT_EQ(c.tensors[0].elements(), 15);
  EXPECT_EQ(c.tensors[0].bytes(), 60);
}

TEST(Computation, refuses_an_index_outside_its_tensor) {
  const std::string message = refusal_of([](Computation& c) { c.stages[0].value.loads[0].index[0] += 1; });
  EXPECT_EQ(message, "here: C: index 0 of A runs through 1..3, outside of 0..2; use pad(...) for zeros outside");
  EXPECT_TRUE(contains(refusal_of([](Computation& c) { c.stages[0].value.loads[1].index[1] += -2; }), "-2..1"));
}

TEST(Computation, a_padded_index_may_lie_outside) {
  EXPECT_EQ(refusal_of([](Computation& c) {
              c.stages[0].value.loads[0].index[0] += -1;
              c.stages[0].value.loads[0].padded = true;
            }),
            "no error");
}

TEST(Computation, refuses_what_is_not_well_formed) {
  struct Case {
    std::function<void(Computation&)> change;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {[](Computation& c) { c.stages.push_back(c.stages[0]); }, "C: is written twice"},
      {[](Computation& c) { c.stages.clear(); }, "C: is never written"},
      {[](Computation& c) { c.tensors[1].name = "A"; }, "A: appears twice"},
      {[](Computation& c) { c.tensors[0].shape[1] = 0; }, "A: extent 0 must be at least 1"},
      {[](Computation& c) { c.tensors[0].shape[1] = std::int64_t(1) << 31; }, "A: extent 2147483648 must be at most"},
      {[](Computation& c) {
         c.tensors[0].shape = {1 << 21, 1 << 21};
       },
       "A: 4.4e+12 elements are too many"},
      {[](Computation& c) { c.stages[0].axes[2].extent = 0; }, "C: axis l: extent 0 must be at least 1"},
      {[](Computation& c) { c.stages[0].axes[2].name = "i"; }, "C: axis i appears twice"},
      {[](Computation& c) { c.stages[0].axes[0].extent = 2; }, "axis i runs through 2 elements of a dimension of 3"},
      {[](Computation& c) { c.stages[0].value.loads[0].tensor = 2; }, "reads C before it is written"},
      {[](Computation& c) { c.stages[0].value.loads[0].index.pop_back(); }, "A has 2 dimensions, got 1 indices"},
      {[](Computation& c) { c.stages[0].combine = Combine::none; }, "axis l is not on the left of '='"},
      {[](Computation& c) { c.tensors[2].role = Role::temporary; }, "here: there is no output"},
      {[](Computation& c) { c.stages[0].tensor = 0; }, "A: an input cannot be written"},
      {[](Computation& c) { c.stages[0].value.loads[0].index[0] = Affine::variable(9); }, "names no axis"},
      {[](Computation& c) { c.tensors[2].dtype = DType::i32; }, "C: reduces values of type f32 into i32"},
      {[](Computation& c) { c.stages[0].value = Value::constant(NAN); }, "a constant must be a number"},
      {[](Computation& c) { c.stages[0].value.loads[0].index[0] = Affine::variable(0, std::int64_t(1) << 60); },
       "index 0 of A is too large"},
  };
  for (const Case& one : cases) EXPECT_TRUE(contains(refusal_of(one.change), one.expected)) << refusal_of(one.change);
}

TEST(Computation, refuses_a_reduction_of_nothing) {
  const std::string message = refusal_of([](Computation& c) {
    c.stages[0].axes.pop_back();
    c.stages[0].value = Value::constant(1);
  });
  EXPECT_EQ(message, "here: C: '+=' has no axis to reduce over; write '='");
}

TEST(Computation, integers_have_no_fractions) {
  const auto integers = [](Computation& c) {
    for (Tensor& tensor : c.tensors) tensor.dtype = DType::i32;
  };
  EXPECT_EQ(refusal_of(integers), "no error");
  EXPECT_TRUE(contains(refusal_of([&](Computation& c) {
                         integers(c);
                         c.stages[0].value = Value::apply(Op::mul, c.stages[0].value, Value::constant(0.5));
                       }),
                       "0.5 is not an integer"));
  EXPECT_TRUE(contains(refusal_of([&](Computation& c) {
                         integers(c);
                         c.stages[0].value = Value::apply(Op::exp, c.stages[0].value);
                       }),
                       "exp needs a floating-point type"));
}

TEST(Computation, flops_count_operations_and_the_combine) {
  EXPECT_EQ(flops(matmul()), 2 * 3 * 4 * 5);
  Computation copy = matmul();
  copy.stages[0].axes.pop_back();
  copy.stages[0].combine = Combine::none;
  copy.stages[0].value = load(0, {Affine::variable(0), Affine::variable(1)});
  EXPECT_EQ(flops(copy), 0);
}

TEST(Combine, names_and_identities) {
  EXPECT_EQ(name_of(Combine::max), "max=");
  EXPECT_EQ(identity_of(Combine::sum), 0);
  EXPECT_EQ(identity_of(Combine::max), -INFINITY);
  EXPECT_EQ(identity_of(Combine::min), INFINITY);
  EXPECT_EQ(identity_of(Combine::product), 1);
  EXPECT_EQ(name_of(Role::temporary), "temporary");
}

TEST(Computation, more_operations_than_64_bits_hold_are_the_largest_number) {
  std::string value = "A[i,j] * B[k]";
  for (int i = 0; i < 200; ++i) value += " + A[i,j] * B[k]";
  const Computation c = parse_workload("input A[100000,100000]; input B[5000000]; output Y[i] += " + value +
                                       " where i=100000, j=100000, k=5000000")
                            .computation();
  EXPECT_EQ(flops(c), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace graft::codegen
