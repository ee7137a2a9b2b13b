// LSTM, GRU and RNN, written out step by step: a stage for the products of all steps with the input's weights, and a
// few for each step. Long sequences are refused until programs have loops of steps.
#include <algorithm>
#include <string>
#include <utility>

#include "graph/operators/call.h"

namespace graft::graph {
namespace {

constexpr std::int64_t most_steps = 256;  // of all directions

enum class Cell { lstm, gru, rnn };

std::int64_t gates_of(Cell cell) {
  return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1;
}

class Recurrent {
 public:
  Recurrent(const Call& call, Cell cell) : call_(call), cell_(cell), gates_(gates_of(cell)) {
    batch_first_ = call.integer("layout", 0) != 0;
    const std::string direction = call.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      throw Malformed{fmt::format("direction is {}", in_quotes(direction))};
    reverse_ = direction == "reverse";
    directions_ = direction == "bidirectional" ? 2 : 1;
    if (call.has_attribute("clip")) throw Unsupported{"attribute 'clip'"};
    if (call.integer("input_forget", 0) != 0) throw Unsupported{"attribute 'input_forget'"};
    check_activations();
    if (call.rank(0) != 3 || call.rank(1) != 3 || call.rank(2) != 3)
      throw Malformed{"its input or its weights have not 3 dimensions"};
    steps_ = call.shape(0)[batch_first_ ? 1 : 0];
    batch_ = call.shape(0)[batch_first_ ? 0 : 1];
    units_ = call.shape(2)[2];
    if (units_ > (std::int64_t(1) << 24)) throw Unsupported{"more than 2^24 units"};
    check(1, {directions_, gates_ * units_, call.shape(0)[2]});
    check(2, {directions_, gates_ * units_, units_});
    check(3, {directions_, 2 * gates_ * units_});
    const Shape state = batch_first_ ? Shape{batch_, directions_, units_} : Shape{directions_, batch_, units_};
    check(5, state);
    if (cell == Cell::lstm) {
      check(6, state);
      check(7, {directions_, 3 * units_});
    }
    if (call.has(4)) {
      const std::vector<std::int64_t> lengths = call.integers(4);
      if (std::any_of(lengths.begin(), lengths.end(), [&](std::int64_t length) { return length != steps_; }))
        throw Unsupported{"sequences of different lengths"};
    }
    if (steps_ * directions_ > most_steps) throw Unsupported{fmt::format("more than {} steps", most_steps)};
  }

  Meaning results() {
    Meaning all;
    // Y: the states of all steps; Y_h and Y_c: the last ones.
    const Axes units = {{"b", batch_}, {"u", units_}};
    Axes axes = {{"t", steps_}, {"d", directions_}, {"b", batch_}, {"u", units_}};
    if (batch_first_) axes = {axes[2], axes[0], axes[1], axes[3]};
    all.push_back(result(axes, [&] {
      std::vector<std::string> directions;
      for (std::int64_t d = 0; d < directions_; ++d) {
        std::vector<std::string> states;
        for (std::int64_t t = 0; t < steps_; ++t) states.push_back(load(name("H", d, t), index_of(units)));
        directions.push_back(chosen("t", states, 0, states.size()));
      }
      return chosen("d", directions, 0, directions.size());
    }));
    Axes last = {{"d", directions_}, {"b", batch_}, {"u", units_}};
    if (batch_first_) std::swap(last[0], last[1]);
    for (const char* const state : {"H", "C"}) {
      if (*state == 'C' && cell_ != Cell::lstm) continue;
      all.push_back(result(last, [&] {
        std::vector<std::string> directions;
        for (std::int64_t d = 0; d < directions_; ++d)
          directions.push_back(load(name(state, d, is_reverse(d) ? 0 : steps_ - 1), index_of(units)));
        return chosen("d", directions, 0, directions.size());
      }));
    }
    return all;
  }

 private:
  void check(int number, const Shape& shape) const {
    if (call_.has(number) && call_.shape(number) != shape)
      throw Malformed{fmt::format("operand {} is {}, not {}", number, to_text(call_.shape(number)), to_text(shape))};
  }

  void check_activations() const {
    const Attribute* given = call_.attribute("activations");
    if (!given) return;
    const auto* names = std::get_if<std::vector<std::string>>(given);
    if (!names) throw Malformed{"attribute 'activations' is not a list of texts"};
    std::vector<std::string> usual = {"Tanh"};
    if (cell_ == Cell::lstm) usual = {"Sigmoid", "Tanh", "Tanh"};
    if (cell_ == Cell::gru) usual = {"Sigmoid", "Tanh"};
    for (std::size_t a = 0; a < names->size(); ++a)
      if ((*names)[a] != usual[a % usual.size()])
        throw Unsupported{fmt::format("activation {}", in_quotes((*names)[a]))};
  }

  bool is_reverse(std::int64_t direction) const { return reverse_ || direction == 1; }
  static std::string name(std::string_view what, std::int64_t direction, std::int64_t step) {
    return fmt::format("{}{}_{}", what, direction, step);
  }

  // values[at], by a tree of comparisons.
  static std::string chosen(const std::string& at, const std::vector<std::string>& values, std::size_t begin,
                            std::size_t end) {
    if (end - begin == 1) return values[begin];
    const std::size_t middle = (begin + end) / 2;
    return fmt::format("select({} < {}, {}, {})", at, middle, chosen(at, values, begin, middle),
                       chosen(at, values, middle, end));
  }

  template <class Value>
  Result result(const Axes& axes, const Value& value) const {
    Expression expression(call_);
    for (std::int64_t d = 0; d < directions_; ++d) {
      expression.stage(
          fmt::format("G{}", d), call_.type(0), {{"t", steps_}, {"b", batch_}, {"j", gates_ * units_}},
          fmt::format("{} * {}", expression.operand(0, batch_first_ ? Index{"b", "t", "l"} : Index{"t", "b", "l"}),
                      expression.operand(1, {std::to_string(d), "j", "l"})),
          "+=", {{"l", call_.shape(0)[2]}});
      for (std::int64_t s = 0; s < steps_; ++s) step(expression, d, s);
    }
    expression.stage("y", call_.type(0), axes, value());
    Shape shape;
    for (const Axis& axis : axes) shape.push_back(axis.extent);
    return expression.result(call_.type(0), shape);
  }

  // The state before a step at unit `unit`; "" for none, which is 0.
  std::string before(Expression& expression, char state, std::int64_t d, std::int64_t s,
                     const std::string& unit) const {
    const int initial = state == 'H' ? 5 : 6;
    if (s > 0) {
      const std::int64_t t = is_reverse(d) ? steps_ - s : s - 1;
      return load(name(std::string(1, state), d, t), {"b", unit});
    }
    if (!call_.has(initial)) return "";
    const std::string direction = std::to_string(d);
    return expression.operand(initial, batch_first_ ? Index{"b", direction, unit} : Index{direction, "b", unit});
  }

  void step(Expression& expression, std::int64_t d, std::int64_t s) const {
    const std::int64_t t = is_reverse(d) ? steps_ - 1 - s : s;
    const std::string direction = std::to_string(d), recurrent = name("Z", d, t);
    const Axes axes = {{"b", batch_}, {"u", units_}};
    const DType type = call_.type(0);
    const std::string h = before(expression, 'H', d, s, "u"), h_inner = before(expression, 'H', d, s, "l");
    if (!h.empty())
      expression.stage(recurrent, type, {{"b", batch_}, {"j", gates_ * units_}},
                       fmt::format("{} * {}", h_inner, expression.operand(2, {direction, "j", "l"})),
                       "+=", {{"l", units_}});
    const auto unit = [&](std::int64_t gate) { return gate == 0 ? "u" : fmt::format("u + {}", gate * units_); };
    const auto input = [&](std::int64_t gate) {
      std::string sum = load(fmt::format("G{}", d), {std::to_string(t), "b", unit(gate)});
      if (call_.has(3)) sum += fmt::format(" + {}", expression.operand(3, {direction, unit(gate)}));
      return sum;
    };
    const auto state = [&](std::int64_t gate, bool with_product = true) {
      std::string sum = with_product && !h.empty() ? load(recurrent, {"b", unit(gate)}) : "0";
      if (call_.has(3)) sum += fmt::format(" + {}", expression.operand(3, {direction, unit(gates_ + gate)}));
      return sum;
    };
    const auto gate = [&](std::int64_t number) { return fmt::format("{} + {}", input(number), state(number)); };
    const std::string now = name("H", d, t);
    if (cell_ == Cell::rnn) {
      expression.stage(now, type, axes, fmt::format("tanh({})", gate(0)));
    } else if (cell_ == Cell::gru) {
      const bool is_linear_first = call_.integer("linear_before_reset", 0) != 0;
      std::string hidden = fmt::format("{} + sigmoid({}) * ({})", input(2), gate(1), state(2));
      if (!is_linear_first && !h.empty()) {
        // The state is reset before its product.
        const std::string reset = name("Q", d, t), product = name("V", d, t);
        expression.stage(reset, type, axes, fmt::format("sigmoid({}) * {}", gate(1), h));
        expression.stage(
            product, type, axes,
            fmt::format("{} * {}", load(reset, {"b", "l"}), expression.operand(2, {direction, unit(2), "l"})),
            "+=", {{"l", units_}});
        hidden = fmt::format("{} + {} + {}", input(2), load(product, {"b", "u"}), state(2, false));
      } else if (!is_linear_first) {
        hidden = gate(2);
      }
      std::string value = fmt::format("(1 - sigmoid({})) * tanh({})", gate(0), hidden);
      if (!h.empty()) value += fmt::format(" + sigmoid({}) * {}", gate(0), h);
      expression.stage(now, type, axes, value);
    } else {
      // Gates in the order input, output, forget, cell; the first three may look at the cell's state.
      const std::string c = before(expression, 'C', d, s, "u"), cell = name("C", d, t);
      const auto looked = [&](std::int64_t number, const std::string& at) {
        if (!call_.has(7) || at.empty()) return gate(number);
        return fmt::format("{} + {} * {}", gate(number), expression.operand(7, {direction, unit(number)}), at);
      };
      std::string value = fmt::format("sigmoid({}) * tanh({})", looked(0, c), gate(3));
      if (!c.empty()) value += fmt::format(" + sigmoid({}) * {}", looked(2, c), c);
      expression.stage(cell, type, axes, value);
      expression.stage(
          now, type, axes,
          fmt::format("sigmoid({}) * tanh({})", looked(1, load(cell, {"b", "u"})), load(cell, {"b", "u"})));
    }
  }

  const Call& call_;
  const Cell cell_;
  const std::int64_t gates_;
  bool batch_first_ = false, reverse_ = false;
  std::int64_t directions_ = 1, steps_ = 1, batch_ = 1, units_ = 1;
};

}  // namespace

std::vector<Row> recurrent_rows() {
  const std::string shared = "activations clip direction hidden_size layout ";
  return {
      {"LSTM", 3, 8, shared + "input_forget", [](const Call& call) { return Recurrent(call, Cell::lstm).results(); }},
      {"GRU", 3, 6, shared + "linear_before_reset",
       [](const Call& call) { return Recurrent(call, Cell::gru).results(); }},
      {"RNN", 3, 6, shared, [](const Call& call) { return Recurrent(call, Cell::rnn).results(); }},
  };
}

}  // namespace graft::graph
