// Quantised operators of onnxruntime that others compute.
#include <string>
#include <utility>

#include "graph/operators/body.h"

namespace graft::graph {
namespace {

struct Quantised {
  Part numbers, scale, zero;
};

Quantised quantised(Body& body, Part x) {
  const std::vector<Part> all = body.nodes("DynamicQuantizeLinear", {x}, 3);
  return {all[0], all[1], all[2]};
}

// The sum of products of integers, times both scales.
Part scaled_product(Body& body, const Quantised& a, const Quantised& b) {
  const Part sum = body.node("MatMulInteger", {a.numbers, b.numbers, a.zero, b.zero});
  return body.cast(sum, DType::f32) * (a.scale * b.scale);
}

Graph integer_product_in_floats(const Call& call) {
  Body body(call);
  Part y = scaled_product(body, {body.operand(0), body.operand(2), body.operand(4)},
                          {body.operand(1), body.operand(3), body.operand(5)});
  if (call.has(6)) y = y + body.operand(6);
  return std::move(body).results({y});
}

Graph product_of_quantised(const Call& call) {
  Body body(call);
  Part y = scaled_product(body, quantised(body, body.operand(0)), {body.operand(1), body.operand(2), body.operand(3)});
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

// An LSTM whose input, and whose state before each step, is quantised for its product with weights of bytes.
class QuantisedLstm {
 public:
  explicit QuantisedLstm(const Call& call) : call_(call), body_(call) {
    const std::string direction = call.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      throw Malformed{fmt::format("direction is {}", in_quotes(direction))};
    is_reverse_ = direction == "reverse";
    directions_ = direction == "bidirectional" ? 2 : 1;
    if (const Attribute* given = call.attribute("activations")) {
      const auto* texts = std::get_if<std::vector<std::string>>(given);
      for (std::size_t t = 0; texts && t < texts->size(); ++t)
        if ((*texts)[t] != (t % 3 == 0 ? "Sigmoid" : "Tanh"))
          throw Unsupported{fmt::format("activation {}", in_quotes((*texts)[t]))};
    }
    if (call.rank(0) != 3 || call.rank(1) != 3 || call.rank(2) != 3)
      throw Malformed{"its input or its weights have not 3 dimensions"};
    for (const int operand : {4, 7})
      if (call.has(operand)) throw Unsupported{operand == 4 ? "lengths of sequences" : "peepholes"};
    steps_ = call.shape(0)[0], batch_ = call.shape(0)[1], units_ = call.shape(2)[1];
    if (steps_ < 1 || steps_ * directions_ > 256) throw Unsupported{fmt::format("{} steps, not 1 to 256", steps_)};
    check(1, {directions_, call.shape(0)[2], 4 * units_});
    check(2, {directions_, units_, 4 * units_});
    if (call.has(3)) check(3, {directions_, 8 * units_});
    for (const int state : {5, 6})
      if (call.has(state)) check(state, {directions_, batch_, units_});
  }

  Graph made() && {
    const Quantised x = quantised(body_, body_.operand(0));
    std::vector<Part> states, last, cells;
    for (std::int64_t d = 0; d < directions_; ++d) {
      std::vector<Part> of_steps(static_cast<std::size_t>(steps_));
      auto [h, c] = run(d, x, of_steps);
      states.push_back(body_.concatenated(of_steps, 0));
      last.push_back(body_.reshaped(h, {1, batch_, units_}));
      cells.push_back(body_.reshaped(c, {1, batch_, units_}));
    }
    return std::move(body_).results(
        {body_.concatenated(states, 1), body_.concatenated(last, 0), body_.concatenated(cells, 0)});
  }

 private:
  void check(int operand, const Shape& shape) const {
    if (call_.shape(operand) != shape)
      throw Malformed{fmt::format("operand {} is {}, not {}", operand, to_text(call_.shape(operand)), to_text(shape))};
  }

  // Weights of a direction: operand `numbers`, its scale and its zero point, of the matrix or of each column.
  Quantised weights(std::int64_t direction, int numbers, int scale) {
    const auto of = [&](int operand, Shape shape) {
      return body_.reshaped(body_.part(body_.operand(operand), 0, direction, direction + 1), shape);
    };
    const Shape& matrix = call_.shape(numbers);
    const Shape each = call_.rank(scale) == 2 ? Shape{4 * units_} : Shape{};
    const Part zero = call_.has(scale + 1) ? of(scale + 1, each) : Part();
    return {of(numbers, {matrix[1], matrix[2]}), of(scale, each), zero};
  }

  Part begin(std::int64_t direction, int operand) {
    const Shape shape = {batch_, units_};
    if (call_.has(operand))
      return body_.reshaped(body_.part(body_.operand(operand), 0, direction, direction + 1), shape);
    return body_.node("Expand", {body_.number(0, DType::f32), body_.integers(shape)});
  }

  // The last state and cell of a direction; `of_steps` gets the states of all steps.
  std::pair<Part, Part> run(std::int64_t direction, const Quantised& x, std::vector<Part>& of_steps) {
    Part given = scaled_product(body_, x, weights(direction, 1, 8));
    if (call_.has(3)) {
      const Part both = body_.reshaped(body_.part(body_.operand(3), 0, direction, direction + 1), {2, 4 * units_});
      given = given + body_.part(both, 0, 0, 1) + body_.part(both, 0, 1, 2);
    }
    const Quantised recurrent = weights(direction, 2, 10);
    Part h = begin(direction, 5), c = begin(direction, 6);
    for (std::int64_t step = 0; step < steps_; ++step) {
      const std::int64_t t = is_reverse_ || direction == 1 ? steps_ - 1 - step : step;
      const Part sum = body_.reshaped(body_.part(given, 0, t, t + 1), {batch_, 4 * units_}) +
                       scaled_product(body_, quantised(body_, h), recurrent);
      const auto gate = [&](std::int64_t number, const char* activation) {
        return body_.node(activation, {body_.part(sum, 1, number * units_, (number + 1) * units_)});
      };
      const Part kept = gate(2, "Sigmoid") * c;
      c = kept + gate(0, "Sigmoid") * gate(3, "Tanh");
      h = gate(1, "Sigmoid") * body_.node("Tanh", {c});
      of_steps[std::size_t(t)] = body_.reshaped(h, {1, 1, batch_, units_});
    }
    return {h, c};
  }

  const Call& call_;
  Body body_;
  bool is_reverse_ = false;
  std::int64_t directions_ = 1, steps_ = 0, batch_ = 0, units_ = 0;
};

Graph quantised_lstm(const Call& call) {
  return QuantisedLstm(call).made();
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
      composed("com.microsoft.DynamicQuantizeLSTM", 10, 12, "activations direction hidden_size", quantised_lstm),
      composed("com.microsoft.QLinearConcat", 5, -1, "axis", quantised_parts),
  };
}

}  // namespace graft::graph
