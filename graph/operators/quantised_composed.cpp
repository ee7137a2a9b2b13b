// Quantised operators of onnxruntime that others compute.
#include <string>
#include <utility>

#include "graph/operators/body.h"

namespace graft::graph {
namespace {

// The sum of products of integers, times both scales.
Part scaled_product(Body& body, Part a, Part a_scale, Part a_zero, int b, int b_scale, int b_zero) {
  const Part sum = body.node("MatMulInteger", {a, body.operand(b), a_zero, body.operand(b_zero)});
  return body.cast(sum, DType::f32) * (a_scale * body.operand(b_scale));
}

Graph integer_product_in_floats(const Call& call) {
  Body body(call);
  Part y = scaled_product(body, body.operand(0), body.operand(2), body.operand(4), 1, 3, 5);
  if (call.has(6)) y = y + body.operand(6);
  return std::move(body).results({y});
}

Graph product_of_quantised(const Call& call) {
  Body body(call);
  const std::vector<Part> a = body.nodes("DynamicQuantizeLinear", {body.operand(0)}, 3);
  Part y = scaled_product(body, a[0], a[1], a[2], 1, 2, 3);
  if (call.has(4)) y = y + body.operand(4);
  return std::move(body).results({y});
}

// The operand from number `first` on, its scale and zero point.
Part dequantised(Body& body, int first) {
  return body.node("DequantizeLinear", {body.operand(first), body.operand(first + 1), body.operand(first + 2)});
}

// X with scale and zero point, then those of the result, which is of the type of X.
template <class Meaning>
Graph in_floats(const Call& call, const Meaning& meaning) {
  Body body(call);
  const Part y = meaning(body, dequantised(body, 0));
  const Part zero = call.has(4) ? body.operand(4) : body.number(0, call.type(0));
  return std::move(body).results({body.node("QuantizeLinear", {y, body.operand(3), zero})});
}

Graph quantised_sigmoid(const Call& call) {
  return in_floats(call, [](Body& body, Part x) { return body.node("Sigmoid", {x}); });
}

Graph quantised_leaky(const Call& call) {
  return in_floats(call, [&](Body& body, Part x) { return body.node("LeakyRelu", {x}, kept(call, {"alpha"})); });
}

Graph quantised_softmax(const Call& call) {
  const std::int64_t version = call.integer("opset", 13);
  const std::int64_t axis = call.axis(call.integer("axis", version < 13 ? 1 : -1), call.rank(0));
  if (version < 13 && axis + 1 != call.rank(0)) throw Unsupported{"several axes"};
  return in_floats(call, [&](Body& body, Part x) { return body.node("Softmax", {x}, {{"axis", axis}}); });
}

Graph quantised_windows(const Call& call) {
  if (call.integer("channels_last", 0) != 0) throw Unsupported{"channels_last"};
  return in_floats(call, [&](Body& body, Part x) {
    return body.node("AveragePool", {x},
                     kept(call, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
  });
}

// Scale and zero point of the result, then three operands for each part.
Graph quantised_parts(const Call& call) {
  if (call.operands() < 5 || (call.operands() - 2) % 3 != 0)
    throw Malformed{fmt::format("has {} operands", call.operands())};
  Body body(call);
  std::vector<Part> parts;
  for (int first = 2; first < call.operands(); first += 3) parts.push_back(dequantised(body, first));
  const Part y = body.concatenated(parts, call.integer("axis", 0));
  return std::move(body).results({body.node("QuantizeLinear", {y, body.operand(0), body.operand(1)})});
}

}  // namespace

std::vector<Row> quantised_composed_rows() {
  return {
      composed("com.microsoft.MatMulIntegerToFloat", 4, 7, "", integer_product_in_floats),
      composed("com.microsoft.DynamicQuantizeMatMul", 3, 5, "", product_of_quantised),
      composed("com.microsoft.QLinearSigmoid", 4, 5, "", quantised_sigmoid),
      composed("com.microsoft.QLinearLeakyRelu", 4, 5, "alpha", quantised_leaky),
      composed("com.microsoft.QLinearSoftmax", 4, 5, "axis opset", quantised_softmax),
      composed("com.microsoft.QLinearAveragePool", 4, 5,
               "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides", quantised_windows),
      composed("com.microsoft.QLinearConcat", 5, -1, "axis", quantised_parts),
  };
}

}  // namespace graft::graph
