// LSTM, GRU and RNN, written out step by step: a stage for the products of all steps with the input's weights, and a
// few for each step. Folding makes layers of few steps of those of many.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
    read_activations();
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
    check(4, {batch_});
    if (call.is_known(4)) {
      const std::vector<std::int64_t> lengths = call.integers(4);
      has_lengths_ = std::any_of(lengths.begin(), lengths.end(), [&](std::int64_t length) { return length < steps_; });
    } else {
      has_lengths_ = call.has(4);
    }
    padded_ = batch_ * gates_ * units_ % rounded_up(1) == 0 ? gates_ * units_ : rounded_up(gates_ * units_);
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
        for (std::int64_t t = 0; t < steps_; ++t)
          states.push_back(load(name(has_lengths_ ? "O" : "H", d, t), index_of(units)));
        directions.push_back(chosen("t", states, 0, states.size()));
      }
      return chosen("d", directions, 0, directions.size());
    }));
    Axes last = {{"d", directions_}, {"b", batch_}, {"u", units_}};
    if (batch_first_) std::swap(last[0], last[1]);
    for (const char* const state : {"H", "C"}) {
      if (*state == 'C' && cell_ != Cell::lstm) continue;
      // Each costs as much as all steps.
      if (!call_.wants(1) && !call_.wants(2)) break;
      all.push_back(result(last, [&] {
        std::vector<std::string> directions;
        for (std::int64_t d = 0; d < directions_; ++d)
          directions.push_back(load(name(state, d, is_reverse(d) ? 0 : steps_ - 1), index_of(units)));
        const std::string value = chosen("d", directions, 0, directions.size());
        // As onnxruntime has it, a sequence of no steps does not keep its state.
        return has_lengths_ ? fmt::format("select({} != 0, {}, 0)", load("x4", {"b"}), value) : value;
      }));
    }
    return all;
  }

 private:
  void check(int number, const Shape& shape) const {
    if (call_.has(number) && call_.shape(number) != shape)
      throw Malformed{fmt::format("operand {} is {}, not {}", number, to_text(call_.shape(number)), to_text(shape))};
  }

  // The functions of each direction, in the order f, g, h; those that take parameters take the next ones of the lists.
  void read_activations() {
    struct Function {
      std::string_view name, text;  // $x, and the parameters $a and $b
      double a = 0, b = 0;
      int parameters = 0;
    };
    static const Function functions[] = {
        {"Sigmoid", "sigmoid($x)"},
        {"Tanh", "tanh($x)"},
        {"Relu", "max($x, 0)"},
        {"Softsign", "($x) / (1 + abs($x))"},
        {"Softplus", "(max($x, 0) + log(1 + exp(neg(abs($x)))))"},
        {"LeakyRelu", "select($x < 0, $a * ($x), $x)", double(0.01f), 0, 1},
        {"ThresholdedRelu", "select($x > $a, $x, 0)", 1, 0, 1},
        {"Elu", "select($x < 0, $a * (exp(min($x, 0)) - 1), $x)", 1, 0, 1},
        {"HardSigmoid", "max(0, min(1, $a * ($x) + $b))", double(0.2f), 0.5, 2},
        {"ScaledTanh", "($a * tanh($b * ($x)))", 1, 1, 2},
        {"Affine", "($a * ($x) + $b)", 1, 0, 2},
    };
    std::vector<std::string> names = {"Tanh"};
    if (cell_ == Cell::lstm) names = {"Sigmoid", "Tanh", "Tanh"};
    if (cell_ == Cell::gru) names = {"Sigmoid", "Tanh"};
    const std::size_t each = names.size(), all = each * std::size_t(directions_);
    for (std::size_t a = each; a < all; ++a) names.push_back(names[a - each]);
    if (const Attribute* given = call_.attribute("activations")) {
      const auto* texts = std::get_if<std::vector<std::string>>(given);
      if (!texts || texts->size() != all)
        throw Malformed{fmt::format("attribute 'activations' is not a list of {} texts", all)};
      names = *texts;
    }
    const auto alphas = call_.number_list("activation_alpha"), betas = call_.number_list("activation_beta");
    std::size_t next_alpha = 0, next_beta = 0;
    const auto next = [](const std::optional<std::vector<double>>& list, std::size_t& at, double otherwise) {
      return number_text(list && at < list->size() ? (*list)[at++] : otherwise);
    };
    for (const std::string& name : names) {
      const auto* function = std::find_if(std::begin(functions), std::end(functions),
                                          [&](const Function& one) { return one.name == name; });
      if (function == std::end(functions)) throw Unsupported{fmt::format("activation {}", in_quotes(name))};
      std::string text(function->text);
      if (function->parameters > 0) replace(text, "$a", next(alphas, next_alpha, function->a));
      if (function->parameters > 1) replace(text, "$b", next(betas, next_beta, function->b));
      activations_.push_back(std::move(text));
    }
    each_ = each;
  }

  static void replace(std::string& text, std::string_view word, const std::string& by) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
      text.replace(at, word.size(), by);
  }

  // Function 0 (f), 1 (g) or 2 (h) of a direction.
  std::string activated(std::int64_t direction, std::size_t number, const std::string& value) const {
    std::string text = activations_[std::size_t(direction) * each_ + number];
    replace(text, "$x", value);
    return text;
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
      if (padded_ > gates_ * units_)
        expression.stage(fmt::format("P{}", d), call_.type(0), {{"t", steps_}, {"b", batch_}, {"j", padded_}},
                         fmt::format("pad({})", load(fmt::format("G{}", d), {"t", "b", "j"})));
      if (has_lengths_ && d == 0)
        expression.stage("M", call_.type(0), {{"t", steps_}, {"b", rounded_up(batch_)}},
                         fmt::format("select(t < pad({}), 1, 0)", expression.operand(4, {"b"})));
      for (std::int64_t s = 0; s < steps_; ++s) step(expression, d, s);
      for (std::int64_t t = 0; t < steps_ && has_lengths_; ++t)
        expression.stage(name("O", d, t), call_.type(0), {{"b", batch_}, {"u", units_}},
                         unless_ended(t, load(name("H", d, t), {"b", "u"}), ""));
    }
    expression.stage("y", call_.type(0), axes, value());
    Shape shape;
    for (const Axis& axis : axes) shape.push_back(axis.extent);
    return expression.result(call_.type(0), shape);
  }

  // Elements up to a whole number of steps of alignment: what a step reads of a value of all steps begins at one, so
  // that steps are the same kernel.
  std::int64_t rounded_up(std::int64_t elements) const {
    const std::int64_t aligned = 64 / codegen::bytes_of(call_.type(0));
    return (elements + aligned - 1) / aligned * aligned;
  }

  // A state after step `t`: beyond the length of a sequence it stays what it was.
  std::string unless_ended(std::int64_t t, const std::string& value, const std::string& before) const {
    if (!has_lengths_) return value;
    return fmt::format("select({} > 0, {}, {})", load("M", {std::to_string(t), "b"}), value,
                       before.empty() ? "0" : before);
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
      std::string sum =
          load(fmt::format("{}{}", padded_ > gates_ * units_ ? 'P' : 'G', d), {std::to_string(t), "b", unit(gate)});
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
    const auto f = [&](const std::string& x) { return activated(d, 0, x); };
    const auto g = [&](const std::string& x) { return activated(d, 1, x); };
    if (cell_ == Cell::rnn) {
      expression.stage(now, type, axes, unless_ended(t, f(gate(0)), h));
    } else if (cell_ == Cell::gru) {
      const bool is_linear_first = call_.integer("linear_before_reset", 0) != 0;
      std::string hidden = fmt::format("{} + {} * ({})", input(2), f(gate(1)), state(2));
      if (!is_linear_first && !h.empty()) {
        // The state is reset before its product.
        const std::string reset = name("Q", d, t), product = name("V", d, t);
        expression.stage(reset, type, axes, fmt::format("{} * {}", f(gate(1)), h));
        expression.stage(
            product, type, axes,
            fmt::format("{} * {}", load(reset, {"b", "l"}), expression.operand(2, {direction, unit(2), "l"})),
            "+=", {{"l", units_}});
        hidden = fmt::format("{} + {} + {}", input(2), load(product, {"b", "u"}), state(2, false));
      } else if (!is_linear_first) {
        hidden = gate(2);
      }
      std::string value = fmt::format("(1 - {}) * {}", f(gate(0)), g(hidden));
      if (!h.empty()) value += fmt::format(" + {} * {}", f(gate(0)), h);
      expression.stage(now, type, axes, unless_ended(t, value, h));
    } else {
      // Gates in the order input, output, forget, cell; the first three may look at the cell's state.
      const std::string c = before(expression, 'C', d, s, "u"), cell = name("C", d, t);
      const auto looked = [&](std::int64_t number, const std::string& at) {
        if (!call_.has(7) || at.empty()) return gate(number);
        return fmt::format("{} + {} * {}", gate(number), expression.operand(7, {direction, unit(number)}), at);
      };
      std::string value = fmt::format("{} * {}", f(looked(0, c)), g(gate(3)));
      if (!c.empty()) value += fmt::format(" + {} * {}", f(looked(2, c)), c);
      expression.stage(cell, type, axes, unless_ended(t, value, c));
      const std::string c_now = load(cell, {"b", "u"});
      expression.stage(now, type, axes,
                       unless_ended(t, fmt::format("{} * {}", f(looked(1, c_now)), activated(d, 2, c_now)), h));
    }
  }

  const Call& call_;
  const Cell cell_;
  const std::int64_t gates_;
  bool batch_first_ = false, reverse_ = false, has_lengths_ = false;
  std::int64_t padded_ = 1;  // the numbers of all gates, in memory
  std::int64_t directions_ = 1, steps_ = 1, batch_ = 1, units_ = 1;
  std::vector<std::string> activations_;  // of $x
  std::size_t each_ = 1;                  // of a direction
};

}  // namespace

std::vector<Row> recurrent_rows() {
  const std::string shared = "activation_alpha activation_beta activations clip direction hidden_size layout ";
  return {
      {"LSTM", 3, 8, shared + "input_forget", [](const Call& call) { return Recurrent(call, Cell::lstm).results(); }},
      {"GRU", 3, 6, shared + "linear_before_reset",
       [](const Call& call) { return Recurrent(call, Cell::gru).results(); }},
      {"RNN", 3, 6, shared, [](const Call& call) { return Recurrent(call, Cell::rnn).results(); }},
  };
}

}  // namespace graft::graph
