#include "tests/graph/support/random_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>

#include "graph/operators.h"

namespace graft::graph {
namespace {

using List = std::vector<std::int64_t>;
using Attributes = std::map<std::string, Attribute>;

// What the numbers of a value are within.
struct Range {
  double low = 0, high = 0;
  double most() const { return std::max(std::abs(low), std::abs(high)); }
};
constexpr double most = 40;  // of all numbers

class Builder {
 public:
  Builder(std::uint64_t seed, const RandomSizes& sizes) : sizes_(sizes), random_(seed) {
    graph_.name = "random " + std::to_string(seed);
    graph_.version = sizes.version;
  }

  Graph built() {
    const std::int64_t inputs = 1 + below(3);
    for (std::int64_t i = 0; i < inputs; ++i) add_input();
    const auto makers = steps();
    while (int(graph_.nodes.size()) < sizes_.nodes) {
      const std::size_t values = graph_.values.size(), nodes = graph_.nodes.size(), all = floats_.size();
      if ((this->*makers[std::size_t(below(std::int64_t(makers.size())))])()) continue;
      graph_.values.resize(values);
      graph_.nodes.resize(nodes);
      ranges_.resize(values);
      floats_.resize(all);
    }
    finish();
    return std::move(graph_);
  }

  static std::vector<std::string> operators(bool jumps) {
    RandomSizes sizes;
    sizes.jumps = jumps;
    std::set<std::string> names;
    for (std::uint64_t seed = 0; seed < 1000; ++seed, sizes.version = seed % 2 == 0 ? 17 : 21)
      for (const Node& node : Builder(seed, sizes).built().nodes) names.insert(node.operation);
    return {names.begin(), names.end()};
  }

 private:
  using Step = bool (Builder::*)();
  // Those that occur more than once are as much likelier.
  std::vector<Step> steps() const {
    std::vector<Step> all = {
        &Builder::function,     &Builder::function,     &Builder::function,  &Builder::two_operands,
        &Builder::two_operands, &Builder::two_operands, &Builder::several,   &Builder::convolution,
        &Builder::convolution,  &Builder::transposed,   &Builder::pooling,   &Builder::whole_pooling,
        &Builder::product,      &Builder::product,      &Builder::gemm,      &Builder::einstein,
        &Builder::softmax,      &Builder::norm,         &Builder::reduction, &Builder::reduction,
        &Builder::transpose,    &Builder::reshape,      &Builder::flat,      &Builder::new_axis,
        &Builder::repeated,     &Builder::concat,       &Builder::split,     &Builder::slice,
        &Builder::pad,          &Builder::gather,       &Builder::blocks,    &Builder::resize,
        &Builder::running_sum,  &Builder::triangle,     &Builder::recurrent, &Builder::chosen,
        &Builder::by_shape,     &Builder::embedding};
    if (sizes_.jumps) all.insert(all.end(), {&Builder::rounded, &Builder::compared, &Builder::place});
    return all;
  }

  std::int64_t below(std::int64_t count) { return std::int64_t(random_() % std::uint64_t(count)); }
  std::int64_t within(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool one_in(std::int64_t count) { return below(count) == 0; }
  double real(double low, double high) { return double(float(low + (high - low) * double(random_() >> 11) * 0x1p-53)); }
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[std::size_t(below(std::int64_t(all.size())))];
  }

  const Shape& shape(int value) const { return *graph_.values[std::size_t(value)].shape; }
  int rank(int value) const { return int(shape(value).size()); }
  Range range(int value) const { return ranges_[std::size_t(value)]; }

  int add_value(Value value, Range range) {
    graph_.values.push_back(std::move(value));
    ranges_.push_back(range);
    return int(graph_.values.size()) - 1;
  }

  void add_input() {
    Shape shape;
    const std::int64_t rank = within(1, 4);
    for (std::int64_t d = 0; d < rank; ++d) shape.push_back(one_in(6) ? 1 : within(2, sizes_.most_extent));
    if (rank == 4) shape[0] = within(1, 2);
    const std::string name = "x" + std::to_string(graph_.inputs.size());
    const int value =
        add_value({.name = name, .origin = Value::Origin::input, .type = DType::f32, .shape = shape}, {-1, 1});
    graph_.inputs.push_back(value);
    floats_.push_back(value);
  }

  int constant(Known array, Range range) {
    return add_value({.name = "c" + std::to_string(graph_.values.size()),
                      .origin = Value::Origin::constant,
                      .type = array->type,
                      .shape = array->shape,
                      .known = array},
                     range);
  }
  int numbers(const Shape& shape, double low, double high) {
    std::vector<double> all(std::size_t(elements_of(shape)));
    for (double& each : all) each = real(low, high);
    return constant(known(DType::f32, shape, codegen::Elements(all)), {low, high});
  }
  int integers(const List& all) { return constant(known_vector(all), {}); }
  int number(double value) { return constant(known(DType::f32, {}, codegen::Elements({value})), {value, value}); }

  // A list that was an attribute before a version, and is an operand since.
  void give(const std::string& name, const List& list, int since, std::vector<int>& operands, Attributes& attributes) {
    if (sizes_.version < since)
      attributes[name] = list;
    else
      operands.push_back(integers(list));
  }

  // A value: mostly the last one, or one that was made before.
  int any() { return one_in(2) ? floats_.back() : one_of(floats_); }
  std::optional<int> any_of_rank(int low, int high) {
    for (int attempt = 0; attempt < 6; ++attempt)
      if (const int x = any(); rank(x) >= low && rank(x) <= high) return x;
    return std::nullopt;
  }

  // Results of the node; empty if its values would be too many or too large. Operands: -1 for those left out.
  std::vector<int> add(const std::string& operation, std::vector<int> operands, Attributes attributes, Range range,
                       int count = 1, bool is_float = true) {
    if (!(range.most() <= most)) return {};
    Node node{operation + "_" + std::to_string(graph_.nodes.size()),
              operation,
              std::move(attributes),
              std::move(operands),
              {}};
    for (int r = 0; r < count; ++r)
      node.results.push_back(add_value({.name = "v" + std::to_string(graph_.values.size())}, range));
    const auto results = results_of(graph_, node, *operands_of(graph_, node), graph_.name);
    if (!results) throw std::logic_error(graph_.name + ": " + label(graph_, node) + ": " + results.reason().text);
    for (int r = 0; r < count; ++r) {
      const Result& result = (*results)[std::size_t(r)];
      const std::int64_t elements = elements_of(result.shape);
      if (elements < 1 || elements > sizes_.most_elements) return {};
      Value& value = graph_.values[std::size_t(node.results[std::size_t(r)])];
      value.type = result.type;
      value.shape = result.shape;
      if (is_float) floats_.push_back(node.results[std::size_t(r)]);
    }
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.back().results;
  }
  bool added(const std::string& operation, std::vector<int> operands, Attributes attributes, Range range,
             int count = 1) {
    return !add(operation, std::move(operands), std::move(attributes), range, count).empty();
  }

  // The last node's value is an output, and so is what nobody takes.
  void finish() {
    std::vector<bool> is_read(graph_.values.size());
    for (const Node& node : graph_.nodes)
      for (const int operand : node.operands)
        if (operand >= 0) is_read[std::size_t(operand)] = true;
    for (const Node& node : graph_.nodes)
      for (const int result : node.results)
        if (result >= 0 && (!is_read[std::size_t(result)] || one_in(12))) graph_.outputs.push_back(result);
    for (Value& value : graph_.values)
      if (value.origin == Value::Origin::computed) value.type = {}, value.shape = {}, value.known = {};
  }

  bool function() {
    struct Function {
      const char* name;
      double low = -most, high = most;  // where it may be called
      std::function<double(double)> f;  // rising or falling there
    };
    static const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    static const std::vector<Function> functions = {
        {"Relu", -most, most, [](double v) { return std::max(v, 0.0); }},
        {"Sigmoid", -most, most, sigmoid},
        {"Tanh", -most, most, [](double v) { return std::tanh(v); }},
        {"Neg", -most, most, [](double v) { return -v; }},
        {"Exp", -most, 3, [](double v) { return std::exp(v); }},
        {"Log", 0.05, most, [](double v) { return std::log(v); }},
        {"Sqrt", 0.05, most, [](double v) { return std::sqrt(v); }},
        {"Reciprocal", 0.2, most, [](double v) { return 1 / v; }},
        {"Erf", -most, most, [](double v) { return std::erf(v); }},
        {"Softplus", -most, most, [](double v) { return std::log1p(std::exp(v)); }},
        {"Softsign", -most, most, [](double v) { return v / (1 + std::abs(v)); }},
        {"Identity", -most, most, [](double v) { return v; }},
        {"Dropout", -most, most, [](double v) { return v; }},
    };
    const int x = any();
    const Range in = range(x);
    const std::int64_t choice = below(std::int64_t(functions.size()) + 10);
    if (choice < std::int64_t(functions.size())) {
      const Function& one = functions[std::size_t(choice)];
      if (in.low < one.low || in.high > one.high) return false;
      const double a = one.f(in.low), b = one.f(in.high);
      return added(one.name, {x}, {}, {std::min(a, b), std::max(a, b)});
    }
    const double alpha = real(0.1, 1.5);
    switch (choice - std::int64_t(functions.size())) {
      case 0:
        return added("Abs", {x}, {}, {in.low > 0 ? in.low : in.high < 0 ? -in.high : 0, in.most()});
      case 1:
        return added("Sin", {x}, {}, {-1, 1});
      case 2:
        return added("Cos", {x}, {}, {-1, 1});
      case 3:
        return added("LeakyRelu", {x}, {{"alpha", alpha}}, {std::min(in.low, 1.5 * in.low), std::max(in.high, 0.0)});
      case 4:
        return added("Elu", {x}, {{"alpha", alpha}}, {-1.5, std::max(in.high, 0.0)});
      case 5:
        return added("Selu", {x}, {}, {-1.8, std::max(1.06 * in.high, 0.0)});
      case 6:
        return added("HardSigmoid", {x}, {{"alpha", alpha}, {"beta", real(0, 1)}}, {0, 1});
      case 7:
        return sizes_.version >= 14 && added("HardSwish", {x}, {}, {-0.4, std::max(in.high, 0.0)});
      case 8:
        return sizes_.version >= 20 && added("Gelu", {x}, {{"approximate", one_of<std::string>({"none", "tanh"})}},
                                             {-0.2, std::max(in.high, 0.0)});
      default: {
        const double low = real(-1, 0.5), high = real(0.5, 2);
        const bool has_low = !one_in(4), has_high = !one_in(4);
        return added("Clip", {x, has_low ? number(low) : -1, has_high ? number(high) : -1}, {},
                     {has_low ? low : std::min(in.low, high), has_high ? high : std::max(in.high, low)});
      }
    }
  }

  // Another value that broadcasts with this one, or a constant that does.
  int partner(int x, bool only_into = false) {
    if (!only_into) {
      for (int attempt = 0; attempt < 4; ++attempt) {
        const int y = any();
        bool fits = true;
        for (int d = 1; d <= std::min(rank(x), rank(y)); ++d) {
          const std::int64_t a = shape(x)[std::size_t(rank(x) - d)], b = shape(y)[std::size_t(rank(y) - d)];
          fits = fits && (a == b || a == 1 || b == 1);
        }
        if (fits) return y;
      }
    }
    Shape shape = this->shape(x);
    shape.erase(shape.begin(), shape.begin() + below(rank(x) + 1));
    for (std::int64_t& extent : shape)
      if (one_in(3)) extent = 1;
    return one_in(2) ? numbers(shape, 0.5, 2) : numbers(shape, -1, 1);
  }

  static Range product_of(Range a, Range b) {
    const double all[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    return {*std::min_element(all, all + 4), *std::max_element(all, all + 4)};
  }

  bool two_operands() {
    int x = any(), y = partner(x);
    if (one_in(3)) std::swap(x, y);
    if (graph_.values[std::size_t(x)].known && graph_.values[std::size_t(y)].known) return false;
    const Range a = range(x), b = range(y);
    switch (below(8)) {
      case 0:
        return added("Add", {x, y}, {}, {a.low + b.low, a.high + b.high});
      case 1:
        return added("Sub", {x, y}, {}, {a.low - b.high, a.high - b.low});
      case 2:
        return added("Mul", {x, y}, {}, product_of(a, b));
      case 3:
        if (b.low < 0.3 && b.high > -0.3) return false;
        return added("Div", {x, y}, {}, product_of(a, {1 / b.high, 1 / b.low}));
      case 4:
        return added("Max", {x, y}, {}, {std::max(a.low, b.low), std::max(a.high, b.high)});
      case 5:
        return added("Min", {x, y}, {}, {std::min(a.low, b.low), std::min(a.high, b.high)});
      case 6: {
        const double exponent = one_of<double>({2, 3, 0.5, -1});
        if ((exponent < 2 && a.low < 0.1) || graph_.values[std::size_t(x)].known) return false;
        const double low = std::pow(a.low, exponent), high = std::pow(a.high, exponent);
        return added("Pow", {x, number(exponent)}, {}, {std::min({low, high, 0.0}), std::max(low, high)});
      }
      default: {
        const int slope = partner(x, true);
        if (graph_.values[std::size_t(x)].known) return false;
        return added("PRelu", {x, slope}, {}, {-2 * a.most(), 2 * a.most()});
      }
    }
  }

  bool several() {
    const int x = any(), y = partner(x), z = partner(x, true);
    const Range a = range(x), b = range(y), c = range(z);
    const double sum = a.most() + b.most() + c.most();
    const bool is_mean = one_in(2);
    return added(is_mean ? "Mean" : "Sum", {x, y, z}, {}, {-sum, sum});
  }

  // A condition known before.
  bool chosen() {
    const int x = any(), y = partner(x);
    Shape shape = this->shape(x);
    if (!shape.empty() && one_in(2)) shape.front() = 1;
    List bits(std::size_t(elements_of(shape)));
    for (std::int64_t& bit : bits) bit = below(2);
    const int condition = constant(known(DType::u8, shape, bits), {});
    return added("Where", {condition, x, y}, {},
                 {std::min(range(x).low, range(y).low), std::max(range(x).high, range(y).high)});
  }

  // Windows over the spatial dimensions of a value, with attributes that fit.
  struct Windows {
    Shape kernel;
    Attributes attributes;
    bool fits = true;
  };
  // With gaps, windows may leave out elements in between; onnxruntime refuses automatic pads then.
  Windows windows(int x, bool may_be_automatic, bool has_dilations = true) {
    const bool has_gaps = !may_be_automatic;
    Windows result;
    const int dimensions = rank(x) - 2;
    List strides, dilations, begins, ends;
    for (int d = 0; d < dimensions; ++d) {
      const std::int64_t extent = shape(x)[std::size_t(d + 2)];
      result.kernel.push_back(within(1, std::min<std::int64_t>(3, extent)));
      strides.push_back(within(1, result.kernel.back() == 1 && !has_gaps ? 1 : 2));
      dilations.push_back(has_dilations && one_in(3) ? 2 : 1);
      begins.push_back(below(result.kernel.back()));
      ends.push_back(below(result.kernel.back()));
      const std::int64_t reach = (result.kernel.back() - 1) * dilations.back() + 1;
      result.fits = result.fits && reach <= extent;
    }
    result.attributes["kernel_shape"] = result.kernel;
    result.attributes["strides"] = strides;
    if (has_dilations) result.attributes["dilations"] = dilations;
    if (may_be_automatic && one_in(4)) {
      result.attributes["auto_pad"] = one_of<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"});
      if (has_dilations) result.attributes["dilations"] = List(dilations.size(), 1);
    } else {
      begins.insert(begins.end(), ends.begin(), ends.end());
      result.attributes["pads"] = begins;
    }
    return result;
  }

  bool convolution() {
    const auto x = any_of_rank(3, 4);
    if (!x) return false;
    Windows window = windows(*x, true);
    if (!window.fits) return false;
    const std::int64_t channels = shape(*x)[1];
    std::int64_t groups = 1;
    if (one_in(3)) groups = one_in(2) ? channels : channels % 2 == 0 ? 2 : 1;
    const std::int64_t outputs = groups * within(1, 3);
    Shape weights = {outputs, channels / groups};
    weights.insert(weights.end(), window.kernel.begin(), window.kernel.end());
    const double spread = 1 / std::sqrt(double(elements_of(weights) / outputs));
    const double sum = range(*x).most() * spread * double(elements_of(weights) / outputs) + 1;
    std::vector<int> operands = {*x, numbers(weights, -spread, spread)};
    if (one_in(2)) operands.push_back(numbers({outputs}, -1, 1));
    window.attributes["group"] = groups;
    const std::vector<int> results = add("Conv", operands, window.attributes, {-sum, sum});
    if (results.empty()) return false;
    if (one_in(3)) (void)batch_norm(results.front());
    return true;
  }

  bool batch_norm(int x) {
    const Shape channels = {shape(x)[1]};
    const double bound = 2 * (range(x).most() + 1) / std::sqrt(0.5) + 1;
    return added(
        "BatchNormalization",
        {x, numbers(channels, -2, 2), numbers(channels, -1, 1), numbers(channels, -1, 1), numbers(channels, 0.5, 2)},
        {{"epsilon", real(1e-5, 1e-2)}}, {-bound, bound});
  }

  bool transposed() {
    const auto x = any_of_rank(3, 4);
    if (!x) return false;
    Windows window = windows(*x, false);
    if (!window.fits) return false;
    const std::int64_t channels = shape(*x)[1], groups = channels % 2 == 0 && one_in(3) ? 2 : 1, outputs = within(1, 2);
    Shape weights = {channels, outputs};
    weights.insert(weights.end(), window.kernel.begin(), window.kernel.end());
    const auto& strides = std::get<List>(window.attributes["strides"]);
    List more;
    for (const std::int64_t stride : strides) more.push_back(below(stride));
    window.attributes["output_padding"] = more;
    window.attributes["group"] = groups;
    const std::int64_t terms = channels / groups * elements_of(window.kernel);
    const double spread = 1 / std::sqrt(double(terms)), sum = range(*x).most() * spread * double(terms) + 1;
    std::vector<int> operands = {*x, numbers(weights, -spread, spread)};
    if (one_in(2)) operands.push_back(numbers({groups * outputs}, -1, 1));
    // Pads may leave nothing.
    for (std::size_t d = 0; d < window.kernel.size(); ++d) {
      const auto& pads = std::get<List>(window.attributes["pads"]);
      const std::int64_t extent =
          (shape(*x)[d + 2] - 1) * strides[d] + window.kernel[d] + more[d] - pads[d] - pads[d + window.kernel.size()];
      if (extent < 1) return false;
    }
    return added("ConvTranspose", operands, window.attributes, {-sum, sum});
  }

  bool pooling() {
    const auto x = any_of_rank(3, 4);
    if (!x) return false;
    const bool is_mean = one_in(2);
    Windows window = windows(*x, true, !is_mean);
    if (!window.fits) return false;
    if (is_mean) window.attributes["count_include_pad"] = below(2);
    if (!window.attributes.contains("auto_pad")) window.attributes["ceil_mode"] = below(2);
    const Range in = range(*x);
    return added(is_mean ? "AveragePool" : "MaxPool", {*x}, window.attributes,
                 is_mean ? Range{std::min(in.low, 0.0), std::max(in.high, 0.0)} : in);
  }

  bool whole_pooling() {
    const auto x = any_of_rank(3, 4);
    return x && added(one_in(2) ? "GlobalAveragePool" : "GlobalMaxPool", {*x}, {}, range(*x));
  }

  bool product() {
    const auto x = any_of_rank(1, 4);
    if (!x) return false;
    const std::int64_t inner = shape(*x).back();
    const double spread = 1 / std::sqrt(double(inner));
    // With another value, if one fits, or with weights.
    for (int attempt = 0; attempt < 4; ++attempt) {
      const int y = any();
      if (rank(*x) < 2 || rank(y) != 2 || shape(y)[0] != inner) continue;
      const double sum = range(*x).most() * range(y).most() * double(inner);
      return added("MatMul", {*x, y}, {}, {-sum, sum});
    }
    Shape weights = {inner, within(1, 6)};
    if (rank(*x) >= 3 && one_in(3))
      weights.insert(weights.begin(), one_in(2) ? 1 : shape(*x)[std::size_t(rank(*x) - 3)]);
    if (one_in(6)) weights = {inner};
    const double sum = range(*x).most() * spread * double(inner);
    return added("MatMul", {*x, numbers(weights, -spread, spread)}, {}, {-sum, sum});
  }

  bool gemm() {
    const auto x = any_of_rank(2, 2);
    if (!x) return false;
    const bool a = one_in(3), b = one_in(2);
    const std::int64_t rows = shape(*x)[a ? 1 : 0], inner = shape(*x)[a ? 0 : 1], columns = within(1, 6);
    const double spread = 1 / std::sqrt(double(inner)), sum = 2 * range(*x).most() * spread * double(inner) + 2;
    std::vector<int> operands = {*x, numbers(b ? Shape{columns, inner} : Shape{inner, columns}, -spread, spread)};
    if (!one_in(4))
      operands.push_back(numbers(one_of<Shape>({{columns}, {1, columns}, {rows, 1}, {rows, columns}, {1}}), -1, 1));
    return added(
        "Gemm", operands,
        {{"transA", std::int64_t(a)}, {"transB", std::int64_t(b)}, {"alpha", real(0.5, 2)}, {"beta", real(0.5, 2)}},
        {-sum, sum});
  }

  bool einstein() {
    const auto x = any_of_rank(2, 4);
    if (!x) return false;
    const std::string axes = std::string("abcd").substr(0, std::size_t(rank(*x)));
    const std::int64_t inner = shape(*x).back();
    const int weights = numbers({within(1, 4), inner}, -1, 1);
    const double sum = range(*x).most() * double(inner);
    std::string to = axes;
    to.back() = 'z';
    if (one_in(2)) std::swap(to.front(), to.back());
    return added("Einsum", {*x, weights}, {{"equation", axes + ",z" + axes.back() + "->" + to}}, {-sum, sum});
  }

  bool softmax() {
    const int x = any();
    if (rank(x) == 0) return false;
    const std::int64_t axis = within(-rank(x), rank(x) - 1);
    if (one_in(2)) return added("Softmax", {x}, {{"axis", axis}}, {0, 1});
    const Range in = range(x);
    return added("LogSoftmax", {x}, {{"axis", axis}}, {in.low - in.high - std::log(double(elements_of(shape(x)))), 0});
  }

  bool norm() {
    const int x = any();
    const std::int64_t kind = below(sizes_.version >= 21 ? 4 : 3);
    const double epsilon = real(0.01, 0.1);
    if (kind == 0 && rank(x) >= 1 && sizes_.version >= 17) {
      const std::int64_t axis = within(0, rank(x) - 1);
      const Shape row(shape(x).begin() + axis, shape(x).end());
      const double bound = 2 * std::sqrt(double(elements_of(row))) + 1;
      std::vector<int> operands = {x, numbers(row, -2, 2)};
      if (one_in(2)) operands.push_back(numbers(row, -1, 1));
      return added("LayerNormalization", operands, {{"axis", one_in(2) ? axis : axis - rank(x)}, {"epsilon", epsilon}},
                   {-bound, bound});
    }
    if (rank(x) < 3) return false;
    if (kind == 1) return batch_norm(x);
    const Shape channels = {shape(x)[1]};
    const double bound = 2 * std::sqrt(double(elements_of(shape(x)) / shape(x)[0])) + 1;
    std::vector<int> operands = {x, numbers(channels, -2, 2), numbers(channels, -1, 1)};
    if (kind == 3)
      return added("GroupNormalization", operands,
                   {{"epsilon", epsilon}, {"num_groups", channels[0] % 2 == 0 ? std::int64_t(2) : std::int64_t(1)}},
                   {-bound, bound});
    return added("InstanceNormalization", operands, {{"epsilon", epsilon}}, {-bound, bound});
  }

  bool reduction() {
    const int x = any();
    if (rank(x) == 0) return false;
    List axes;
    double count = 1;
    for (std::int64_t d = 0; d < rank(x); ++d) {
      if (one_in(2)) continue;
      axes.push_back(one_in(2) ? d : d - rank(x));
      count *= double(shape(x)[std::size_t(d)]);
    }
    if (axes.empty()) count = double(elements_of(shape(x)));
    Attributes attributes = {{"keepdims", below(2)}};
    const Range in = range(x);
    const double sum = in.most() * count;
    static const std::vector<std::string> names = {"ReduceSum",       "ReduceMean",      "ReduceMax",
                                                   "ReduceMin",       "ReduceL1",        "ReduceL2",
                                                   "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd"};
    const std::string name = one_of(names);
    Range out = {-sum, sum};
    if (name == "ReduceMean" || name == "ReduceMax" || name == "ReduceMin") out = in;
    if (name == "ReduceL2") out = {0, sum};
    if (name == "ReduceSumSquare") out = {0, in.most() * sum};
    if (name == "ReduceLogSumExp") out = {in.low, in.high + std::log(count)};
    if (name == "ReduceProd")
      out = {-std::pow(std::max(in.most(), 1.0), count), std::pow(std::max(in.most(), 1.0), count)};
    std::vector<int> operands = {x};
    if (!axes.empty()) give("axes", axes, name == "ReduceSum" ? 13 : 18, operands, attributes);
    return added(name, operands, attributes, out);
  }

  bool transpose() {
    const auto x = any_of_rank(2, 4);
    if (!x) return false;
    List order;
    for (int d = 0; d < rank(*x); ++d) order.insert(order.begin() + below(d + 1), d);
    return added("Transpose", {*x}, {{"perm", order}}, range(*x));
  }

  bool reshape() {
    const int x = any();
    std::int64_t left = elements_of(shape(x));
    List to;
    while (left > 1 && to.size() < 3) {
      std::vector<std::int64_t> factors;
      for (std::int64_t f = 2; f <= left; ++f)
        if (left % f == 0) factors.push_back(f);
      to.push_back(one_of(factors));
      left /= to.back();
    }
    if (left > 1 || one_in(4)) to.push_back(left);
    if (!to.empty() && one_in(3)) to[std::size_t(below(std::int64_t(to.size())))] = -1;
    return added("Reshape", {x, integers(to)}, {}, range(x));
  }

  bool flat() {
    const int x = any();
    return rank(x) > 1 && added("Flatten", {x}, {{"axis", within(-rank(x), rank(x))}}, range(x));
  }

  bool new_axis() {
    const int x = any();
    List ones;
    for (std::int64_t d = 0; d < rank(x); ++d)
      if (shape(x)[std::size_t(d)] == 1) ones.push_back(d);
    std::vector<int> operands = {x};
    Attributes attributes;
    if (!ones.empty() && one_in(2)) {
      give("axes", {one_of(ones)}, 13, operands, attributes);
      return added("Squeeze", operands, attributes, range(x));
    }
    give("axes", {within(-rank(x) - 1, rank(x))}, 13, operands, attributes);
    return rank(x) < 4 && added("Unsqueeze", operands, attributes, range(x));
  }

  bool repeated() {
    const int x = any();
    if (rank(x) == 0) return false;
    if (one_in(2)) {
      List repeats;
      for (int d = 0; d < rank(x); ++d) repeats.push_back(one_in(3) ? within(2, 3) : 1);
      return added("Tile", {x, integers(repeats)}, {}, range(x));
    }
    Shape to = shape(x);
    for (std::int64_t& extent : to)
      if (extent == 1) extent = within(1, 4);
    if (to.size() < 4 && one_in(3)) to.insert(to.begin(), within(1, 3));
    return added("Expand", {x, integers(to)}, {}, range(x));
  }

  bool concat() {
    const int x = any();
    if (rank(x) == 0) return false;
    const std::int64_t axis = within(0, rank(x) - 1);
    std::vector<int> parts = {x};
    Range all = range(x);
    const std::int64_t count = within(1, 3);
    for (std::int64_t i = 0; i < count; ++i) {
      int part = any();
      Shape own = shape(x), other = shape(part);
      own[std::size_t(axis)] = within(1, 3);
      if (other.size() == own.size()) other[std::size_t(axis)] = own[std::size_t(axis)];
      if (other != own) part = numbers(own, -1, 1);
      all = {std::min(all.low, range(part).low), std::max(all.high, range(part).high)};
      parts.insert(parts.begin() + below(std::int64_t(parts.size()) + 1), part);
    }
    return added("Concat", parts, {{"axis", one_in(2) ? axis : axis - rank(x)}}, all);
  }

  bool split() {
    const int x = any();
    if (rank(x) == 0) return false;
    const std::int64_t axis = within(0, rank(x) - 1), extent = shape(x)[std::size_t(axis)];
    if (extent < 2) return false;
    const std::int64_t first = within(1, extent - 1);
    std::vector<int> operands = {x};
    Attributes attributes = {{"axis", axis}};
    if (extent % 2 != 0 || one_in(2))
      give("split", {first, extent - first}, 13, operands, attributes);
    else if (sizes_.version >= 18)
      attributes["num_outputs"] = std::int64_t(2);
    return added("Split", operands, attributes, range(x), 2);
  }

  bool slice() {
    const int x = any();
    List starts, ends, axes, steps;
    for (std::int64_t d = 0; d < rank(x); ++d) {
      const std::int64_t extent = shape(x)[std::size_t(d)];
      if (one_in(2)) continue;
      const std::int64_t a = below(extent), b = within(a + 1, extent);
      const bool is_back = one_in(4);
      axes.push_back(one_in(2) ? d : d - rank(x));
      steps.push_back((is_back ? -1 : 1) * within(1, 2));
      starts.push_back(is_back ? b - 1 : one_in(3) ? a - extent : a);
      ends.push_back(is_back ? a == 0 ? INT64_MIN : a - 1 : one_in(4) ? INT64_MAX : b);
    }
    if (axes.empty()) return false;
    return added("Slice", {x, integers(starts), integers(ends), integers(axes), integers(steps)}, {}, range(x));
  }

  bool pad() {
    const int x = any();
    if (rank(x) == 0) return false;
    const std::string mode = one_of<std::string>({"constant", "constant", "reflect", "edge"});
    List pads;
    for (int side = 0; side < 2; ++side) {
      for (int d = 0; d < rank(x); ++d) {
        const std::int64_t extent = shape(x)[std::size_t(d)], limit = mode == "reflect" ? extent - 1 : 2;
        std::int64_t pad = one_in(2) ? 0 : below(std::min<std::int64_t>(limit, 2) + 1);
        if (mode == "constant" && extent > 4 && one_in(6)) pad = -1;
        pads.push_back(pad);
      }
    }
    std::vector<int> operands = {x, integers(pads)};
    const double filled = mode == "constant" && one_in(2) ? real(-1, 1) : 0;
    if (mode == "constant" && filled != 0) operands.push_back(number(filled));
    return added("Pad", operands, {{"mode", mode}}, {std::min(range(x).low, filled), std::max(range(x).high, filled)});
  }

  bool gather() {
    const int x = any();
    if (rank(x) == 0) return false;
    const std::int64_t axis = within(0, rank(x) - 1), extent = shape(x)[std::size_t(axis)];
    const Shape shape = one_of<Shape>({{}, {1}, {3}, {2, 2}});
    List indices(std::size_t(elements_of(shape)));
    for (std::int64_t& index : indices) index = within(-extent, extent - 1);
    return added("Gather", {x, constant(known(DType::i64, shape, indices), {})}, {{"axis", axis}}, range(x));
  }

  // Rows of a table by numbers that are an input.
  bool embedding() {
    if (!one_in(4)) return false;
    const Shape shape = {within(1, 5)};
    for (const int input : graph_.inputs)
      if (*graph_.values[std::size_t(input)].type == DType::i64) return false;
    const int table = numbers({within(2, 5), within(1, 6)}, -1, 1);
    const int rows =
        add_value({.name = "rows", .origin = Value::Origin::input, .type = DType::i64, .shape = shape}, {});
    graph_.inputs.push_back(rows);
    return added("Gather", {table, rows}, {}, {-1, 1});
  }

  bool blocks() {
    const auto x = any_of_rank(4, 4);
    if (!x) return false;
    const Shape& from = shape(*x);
    if (from[1] % 4 == 0)
      return added("DepthToSpace", {*x},
                   {{"blocksize", std::int64_t(2)}, {"mode", one_of<std::string>({"DCR", "CRD"})}}, range(*x));
    if (from[2] % 2 == 0 && from[3] % 2 == 0)
      return added("SpaceToDepth", {*x}, {{"blocksize", std::int64_t(2)}}, range(*x));
    return false;
  }

  bool resize() {
    const auto x = any_of_rank(3, 4);
    if (!x || sizes_.version < 13) return false;
    const std::string mode = one_of<std::string>({"nearest", "nearest", "linear", "cubic"});
    const int dimensions = rank(*x) - 2;
    if (mode == "cubic" && dimensions != 2) return false;
    Attributes attributes = {
        {"mode", mode},
        {"coordinate_transformation_mode",
         one_of<std::string>({"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"})}};
    if (mode == "nearest")
      attributes["nearest_mode"] = one_of<std::string>({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
    if (mode == "cubic") attributes["cubic_coeff_a"] = double(-0.75f);
    const double bound = range(*x).most() * (mode == "cubic" ? 2 : 1);
    if (one_in(2)) {
      List sizes = {shape(*x)[0], shape(*x)[1]};
      for (int d = 0; d < dimensions; ++d) {
        const std::int64_t extent = shape(*x)[std::size_t(d + 2)];
        // The nearest place jumps: only factors that single precision holds, too.
        sizes.push_back(mode != "nearest"              ? within(1, 2 * extent)
                        : extent % 2 == 0 && one_in(2) ? extent / 2
                                                       : extent * within(1, 3));
      }
      return added("Resize", {*x, -1, -1, integers(sizes)}, attributes, {-bound, bound});
    }
    std::vector<double> scales = {1, 1};
    for (int d = 0; d < dimensions; ++d) scales.push_back(one_of<double>({2, 1, 1.5, 0.5, 3}));
    for (int d = 0; d < dimensions; ++d) {
      const double extent = scales[std::size_t(d + 2)] * double(shape(*x)[std::size_t(d + 2)]);
      if (extent < 1) return false;
      // Whether these two modes count with the extent before it is rounded is where implementations differ.
      std::string& coordinates = std::get<std::string>(attributes["coordinate_transformation_mode"]);
      if (extent != std::floor(extent) && (coordinates == "align_corners" || coordinates == "pytorch_half_pixel"))
        coordinates = "half_pixel";
    }
    const int given = constant(known(DType::f32, {std::int64_t(scales.size())}, codegen::Elements(scales)), {});
    return added("Resize", {*x, -1, given}, attributes, {-bound, bound});
  }

  bool running_sum() {
    const int x = any();
    if (rank(x) == 0) return false;
    const std::int64_t axis = within(-rank(x), rank(x) - 1);
    const double sum = range(x).most() * double(shape(x)[std::size_t(axis < 0 ? axis + rank(x) : axis)]);
    return added("CumSum", {x, constant(known(DType::i64, {}, std::span(&axis, 1)), {})},
                 {{"exclusive", below(2)}, {"reverse", below(2)}}, {-sum, sum});
  }

  bool triangle() {
    const auto x = any_of_rank(2, 4);
    if (!x || sizes_.version < 14) return false;
    std::vector<int> operands = {*x};
    const std::int64_t diagonal = within(-2, 2);
    if (one_in(2)) operands.push_back(constant(known(DType::i64, {}, std::span(&diagonal, 1)), {}));
    return added("Trilu", operands, {{"upper", below(2)}},
                 {std::min(range(*x).low, 0.0), std::max(range(*x).high, 0.0)});
  }

  bool recurrent() {
    const auto x = any_of_rank(3, 3);
    if (!x) return false;
    const bool is_lstm = one_in(2);
    const std::int64_t gates = is_lstm ? 4 : 3, units = within(1, 4), width = shape(*x)[2];
    const std::string direction = one_of<std::string>({"forward", "reverse", "bidirectional"});
    const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
    std::vector<int> operands = {*x, numbers({directions, gates * units, width}, -0.6, 0.6),
                                 numbers({directions, gates * units, units}, -0.6, 0.6)};
    const bool has_bias = one_in(2), has_state = one_in(2);
    if (has_bias || has_state) operands.push_back(has_bias ? numbers({directions, 2 * gates * units}, -0.6, 0.6) : -1);
    const Shape state = {directions, shape(*x)[1], units};
    if (has_state) operands.insert(operands.end(), {-1, numbers(state, -1, 1)});
    if (has_state && is_lstm) operands.push_back(numbers(state, -1, 1));
    Attributes attributes = {{"direction", direction}, {"hidden_size", units}};
    if (!is_lstm) attributes["linear_before_reset"] = below(2);
    return added(is_lstm ? "LSTM" : "GRU", operands, attributes, {-10, 10}, is_lstm ? 3 : 2);
  }

  // What exporters write for x.view(x.shape[0], -1).
  bool by_shape() {
    const auto x = any_of_rank(2, 4);
    if (!x) return false;
    const std::vector<int> all = add("Shape", {*x}, {}, {}, 1, false);
    if (all.empty()) return false;
    const std::vector<int> first = add("Gather", {all[0], integers({0})}, {{"axis", std::int64_t(0)}}, {}, 1, false);
    const std::vector<int> to = add("Concat", {first[0], integers({-1})}, {{"axis", std::int64_t(0)}}, {}, 1, false);
    graph_.values[std::size_t(to[0])].known = known_vector(List{shape(*x)[0], -1});  // until all is built
    return added("Reshape", {*x, to[0]}, {}, range(*x));
  }

  bool rounded() {
    const int x = any();
    const Range in = range(x);
    return added(one_of<std::string>({"Floor", "Ceil", "Round", "Sign"}), {x}, {},
                 {std::floor(std::min(in.low, -1.0)), std::ceil(std::max(in.high, 1.0))});
  }

  bool compared() {
    const int x = any(), y = partner(x);
    const std::string name = one_of<std::string>({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"});
    std::vector<int> condition = add(name, {x, y}, {}, {}, 1, false);
    if (condition.empty()) return false;
    if (one_in(3)) condition = add("Not", condition, {}, {}, 1, false);
    if (one_in(2)) return added("Cast", condition, {{"to", std::int64_t(1)}}, {0, 1});
    return added("Where", {condition[0], x, y}, {},
                 {std::min(range(x).low, range(y).low), std::max(range(x).high, range(y).high)});
  }

  bool place() {
    const int x = any();
    if (rank(x) == 0) return false;
    const std::int64_t axis = within(-rank(x), rank(x) - 1);
    const std::vector<int> at =
        add(one_of<std::string>({"ArgMax", "ArgMin"}), {x},
            {{"axis", axis}, {"keepdims", below(2)}, {"select_last_index", below(2)}}, {}, 1, false);
    return !at.empty() && added("Cast", at, {{"to", std::int64_t(1)}}, {0, most});
  }

  const RandomSizes sizes_;
  std::mt19937_64 random_;
  Graph graph_;
  std::vector<Range> ranges_;  // by value
  std::vector<int> floats_;    // what further nodes may take
};

}  // namespace

Graph random_graph(std::uint64_t seed, const RandomSizes& sizes) {
  return Builder(seed, sizes).built();
}

std::map<std::string, codegen::Elements> random_inputs(const Graph& graph, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::map<std::string, codegen::Elements> inputs;
  for (const int input : graph.inputs) {
    const Value& value = graph.values[std::size_t(input)];
    std::vector<double> numbers(std::size_t(elements_of(*value.shape)));
    for (double& number : numbers)
      number = codegen::is_floating(*value.type) ? double(float(double(random() >> 11) * 0x1p-52 - 1))
                                                 : double(random() % 2);
    inputs[value.name] = numbers;
  }
  return inputs;
}

std::vector<std::string> operators_of_random_graphs(bool jumps) {
  return Builder::operators(jumps);
}

}  // namespace graft::graph
