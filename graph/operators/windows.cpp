// Convolutions and pooling: windows of one to three (or more) spatial dimensions after batch and channels.
#include <algorithm>
#include <string>
#include <utility>

#include "graph/operators/sums.h"

namespace graft::graph {
namespace {

constexpr std::int64_t most = std::int64_t(1) << 20;  // of strides, pads and the like

std::vector<std::int64_t> attribute_of(const Call& call, const std::string& name, std::size_t count,
                                       std::int64_t otherwise, std::int64_t least) {
  std::vector<std::int64_t> values = call.list(name).value_or(std::vector<std::int64_t>(count, otherwise));
  if (values.size() != count) throw Malformed{fmt::format("{} has {} numbers, not {}", name, values.size(), count)};
  for (const std::int64_t value : values)
    if (value < least || value > most) throw Malformed{fmt::format("{} has {}", name, value)};
  return values;
}

std::size_t spatial_rank(const Call& call) {
  if (call.rank(0) < 3) throw Malformed{fmt::format("its input {} has no spatial dimensions", to_text(call.shape(0)))};
  return call.shape(0).size() - 2;
}

// What convolutions and pooling share: all but the output's extents.
std::vector<Window> windows_of(const Call& call, const Shape& kernel) {
  const std::size_t n = spatial_rank(call);
  if (kernel.size() != n) throw Malformed{fmt::format("its kernel has {} dimensions, its input {}", kernel.size(), n)};
  const auto strides = attribute_of(call, "strides", n, 1, 1), dilations = attribute_of(call, "dilations", n, 1, 1);
  const auto pads = attribute_of(call, "pads", 2 * n, 0, -most);
  std::vector<Window> windows(n);
  for (std::size_t d = 0; d < n; ++d) {
    if (pads[d] < 0 || pads[n + d] < 0) throw Unsupported{"pads that crop"};
    if (kernel[d] < 1 || kernel[d] > most) throw Malformed{fmt::format("its kernel is {}", to_text(kernel))};
    windows[d] = {call.shape(0)[d + 2], kernel[d], strides[d], dilations[d], pads[d], pads[n + d]};
  }
  return windows;
}

// Fills pads that follow from the extents, and the output's extents.
void slide(const Call& call, std::vector<Window>& windows) {
  const std::string mode = call.text("auto_pad", "NOTSET");
  const bool rounds_up = call.integer("ceil_mode", 0) != 0;
  for (Window& window : windows) {
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const std::int64_t output = (window.input + window.stride - 1) / window.stride;
      const std::int64_t total =
          std::max<std::int64_t>(0, (output - 1) * window.stride + window.reach() - window.input);
      window.begin = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      window.end = total - window.begin;
    } else if (mode == "VALID") {
      window.begin = window.end = 0;
    } else if (mode != "NOTSET") {
      throw Malformed{fmt::format("auto_pad is {}", in_quotes(mode))};
    }
    const std::int64_t room = window.input + window.begin + window.end - window.reach();
    if (room < 0)
      throw Malformed{fmt::format("a window of {} is larger than its padded input of {}", window.reach(),
                                  window.input + window.begin + window.end)};
    window.output = (rounds_up ? room + window.stride - 1 : room) / window.stride + 1;
    // A window that begins in the pads at the end is left out.
    if (rounds_up && (window.output - 1) * window.stride >= window.input + window.begin) --window.output;
  }
}

Shape outputs(const std::vector<Window>& windows, std::int64_t batch, std::int64_t channels) {
  Shape shape = {batch, channels};
  for (const Window& window : windows) shape.push_back(window.output);
  return shape;
}

Axes spatial_axes(const std::vector<Window>& windows) {
  Axes axes;
  for (const Window& window : windows) axes.push_back({fmt::format("y{}", axes.size()), window.output});
  return axes;
}

Axes kernel_axes(const std::vector<Window>& windows) {
  Axes axes;
  for (const Window& window : windows) axes.push_back({fmt::format("u{}", axes.size()), window.kernel});
  return axes;
}

Index joined(Index first, const Index& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}
Axes joined(Axes first, const Axes& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

// The last stage: the sum in T, and the bias of each channel.
Result with_bias(const Call& call, Expression& expression, const Shape& shape) {
  if (call.has(2)) {
    const Axes axes = axes_over(shape);
    expression.stage("y", call.type(0), axes,
                     fmt::format("{} + {}", load("T", index_of(axes)), expression.operand(2, {axes[1].name})));
  }
  return expression.result(call.type(0), shape);
}

Meaning convolution(const Call& call) {
  call.same_types();
  const Convolution sums(call, 1);
  check_bias(call, 2, sums.channels);
  Expression expression(call);
  Padded padded(call, expression, sums.windows, "");
  const std::string x = padded.load(sums.input_channel), w = expression.operand(1, sums.weights);
  expression.stage(call.has(2) ? "T" : "y", call.type(0), sums.axes, fmt::format("{} * {}", x, w), "+=", sums.reduced,
                   sums.element);
  return {with_bias(call, expression, sums.shape)};
}

// Batch, and channels of a transposed convolution: those that a group reads and writes.
struct Channels {
  std::int64_t batch = 1, groups = 1, in = 1, out = 1;

  // A channel of a group, of which each has `extent`.
  std::string of_group(std::int64_t extent, const std::string& axis) const {
    return groups > 1 ? fmt::format("{} + {}", form(extent, "g"), axis) : axis;
  }
  Axes axes() const {
    Axes axes = {{"b", batch}};
    if (groups > 1) axes.push_back({"g", groups});
    axes.push_back({"o", out});
    return axes;
  }
};

// Each element of the input is stride elements apart from the next, zeros between them; the windows of that.
void sums_of_spread(const Call& call, Expression& expression, const std::vector<Window>& windows, const Channels& by) {
  const std::size_t n = windows.size();
  const bool is_spread = std::any_of(windows.begin(), windows.end(), [](const Window& w) { return w.stride > 1; });
  if (is_spread) {
    Axes axes = {{"b", by.batch}, {"c", by.groups * by.in}};
    Index element = index_of(axes), index = index_of(axes);
    for (std::size_t d = 0; d < n; ++d) {
      axes.push_back({fmt::format("p{}", d), windows[d].input});
      index.push_back(axes.back().name);
      element.push_back(axes.back().name);
      if (windows[d].stride == 1) continue;
      axes.push_back({fmt::format("e{}", d), windows[d].stride});
      element.back() = fmt::format("{} + {}", form(windows[d].stride, index.back()), axes.back().name);
    }
    std::string value = expression.operand(0, index);
    for (std::size_t d = 0; d < n; ++d)
      if (windows[d].stride > 1) value = fmt::format("select(e{} < 1, {}, 0)", d, value);
    expression.stage("D", call.type(0), axes, value, "=", {}, element);
  }
  Index element;
  if (by.groups > 1) element = joined({"b", by.of_group(by.out, "o")}, index_of(spatial_axes(windows)));
  Index index = {"b", by.of_group(by.in, "i")};
  for (std::size_t d = 0; d < n; ++d)
    index.push_back(fmt::format("{} - {}", form(1, fmt::format("y{}", d), windows[d].begin),
                                form(windows[d].dilation, fmt::format("u{}", d))));
  const std::string x = fmt::format("pad({})", is_spread ? load("D", index) : expression.operand(0, index));
  const std::string w = expression.operand(1, joined({by.of_group(by.in, "i"), "o"}, index_of(kernel_axes(windows))));
  Axes reduced = kernel_axes(windows);
  reduced.insert(reduced.begin(), {"i", by.in});
  expression.stage(call.has(2) ? "T" : "y", call.type(0), joined(by.axes(), spatial_axes(windows)),
                   fmt::format("{} * {}", x, w), "+=", reduced, element);
}

// Sums along one dimension without zeros between inputs: place s*q + e, of stride s, is result s*q + e - offset, and
// sums the inputs q - v, v from `first` on, times the weights s*v + e + shift, which are zeros beyond the window. In
// steps of two with an offset of one the phases are counted from the results: place 2*q + e is result 2*q + e, and sums
// the inputs q + e - v times the weights 2*v + 1 - e + shift, so that no place is beyond the results.
struct Phases {
  bool from_results;
  std::int64_t offset, shift, first, taps;

  Phases(const Window& window, bool aligned)
      : from_results(aligned && window.stride == 2 && window.begin % 2 == 1),
        offset(aligned && !from_results ? window.begin % window.stride : 0),
        shift(window.begin - offset - std::int64_t(from_results)),
        first(-((window.stride - 1 + shift) / window.stride)),
        taps((window.kernel - 1 - shift + window.stride * (1 - first)) / window.stride) {}
};

// A group with fewer results' channels has vectors along places: no axis of places is contiguous where phases are
// neighbours, so each phase has its sums to itself, and they are put together afterwards.
constexpr std::int64_t few_channels = 8;

// Where results begin within a window (`offset`), there are fewer sums with weights that are zeros, but there may be
// places beyond the results, so that these are copied.
void sums_in_phases(const Call& call, Expression& expression, const std::vector<Window>& windows, const Channels& by) {
  const auto phases_of = [&](bool aligned) {
    std::vector<Phases> phases;
    for (const Window& window : windows) phases.emplace_back(window, aligned);
    return phases;
  };
  const auto products = [](const std::vector<Phases>& phases) {
    std::int64_t count = 1;
    for (const Phases& each : phases) count *= each.taps;
    return count;
  };
  std::vector<Phases> phases = phases_of(false);
  const bool is_exact =
      std::all_of(windows.begin(), windows.end(), [](const Window& w) { return w.output % w.stride == 0; });
  const bool aligned = !is_exact || products(phases_of(true)) < products(phases);
  if (aligned) phases = phases_of(true);

  Axes axes = by.axes(), reduced = {{"i", by.in}}, phase_axes, place_axes;
  Index element = {"b", by.of_group(by.out, "o")}, x = {"b", by.of_group(by.in, "i")};
  Axes weight_axes = {{"c", by.groups * by.in}};
  Index weight = {"c", "o"}, w = {by.of_group(by.in, "i"), "o"}, kept = {by.of_group(by.in, "i")};
  bool x_is_padded = false, w_is_copied = false;
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const Window& window = windows[d];
    const auto& [from_results, offset, shift, first, taps] = phases[d];
    const std::int64_t s = window.stride, steps = (window.output + offset + s - 1) / s;
    const std::string q = fmt::format("q{}", d), e = fmt::format("e{}", d), v = fmt::format("v{}", d);
    axes.push_back({q, steps});
    axes.push_back({e, s});
    place_axes.push_back({q, steps});
    phase_axes.push_back({e, s});
    reduced.push_back({v, taps});
    element.push_back(fmt::format("{} + {}", form(s, q), e));
    x.push_back(fmt::format("{}{} - {}", form(1, q, -first), from_results ? " + " + e : "", v));
    x_is_padded |= first + taps - 1 > 0 || steps - 1 + std::int64_t(from_results) - first >= window.input;
    weight_axes.push_back({e, s});
    weight_axes.push_back({v, taps});
    weight.push_back(from_results ? fmt::format("{} - {}", form(s, v, s * first + shift + 1), e)
                                  : fmt::format("{} + {}", form(s, v, s * first + shift), e));
    w_is_copied |= (s > 1 && taps > 1) || s * first + shift < 0 || s * (first + taps) + shift - 1 >= window.kernel;
    kept.push_back(e);
    kept.push_back(v);
    w.push_back(weight.back());
  }
  // Weights that are padded, or of several steps, which packing could not turn: the results' channels are innermost, so
  // that vectors can run along them.
  weight_axes.push_back({"o", by.out});
  kept.push_back("o");
  if (w_is_copied)
    expression.stage("W", call.type(0), weight_axes, fmt::format("pad({})", expression.operand(1, weight)));
  // What is copied has the channels innermost, too, unless they are few: then places are, phase by phase.
  const bool has_few = by.out < few_channels;
  if (aligned && !has_few) std::rotate(element.begin() + 1, element.begin() + 2, element.end());
  const std::string from = expression.operand(0, x), result = call.has(2) ? "T" : "y";
  const std::string value = fmt::format("{} * {}", x_is_padded ? fmt::format("pad({})", from) : from,
                                        w_is_copied ? load("W", kept) : expression.operand(1, w));
  const bool has_offset = std::any_of(phases.begin(), phases.end(), [](const Phases& each) { return each.offset > 0; });
  const bool is_copied = aligned && (!has_few || !is_exact || has_offset);
  const std::string whole = is_copied ? "S" : result;  // all places
  if (has_few) {
    const Axes by_phase = joined(joined(phase_axes, by.axes()), place_axes);
    expression.stage("R", call.type(0), by_phase, value, "+=", reduced);
    expression.stage(whole, call.type(0), axes, load("R", index_of(by_phase)), "=", {}, element);
  } else {
    expression.stage(whole, call.type(0), axes, value, "+=", reduced, element);
  }
  if (!is_copied) return;
  const Axes all = joined({{"b", by.batch}, {"c", by.groups * by.out}}, spatial_axes(windows));
  Index place = {"b"};
  if (has_few) place.push_back("c");
  for (std::size_t d = 0; d < windows.size(); ++d) place.push_back(form(1, fmt::format("y{}", d), phases[d].offset));
  if (!has_few) place.push_back("c");
  expression.stage(result, call.type(0), all, load("S", place));
}

Meaning transposed_convolution(const Call& call) {
  call.same_types();
  const std::size_t n = spatial_rank(call);
  const Shape& weights = call.shape(1);
  if (weights.size() != n + 2)
    throw Malformed{fmt::format("its weights {} do not fit its input {}", to_text(weights), to_text(call.shape(0)))};
  const Shape kernel(weights.begin() + 2, weights.end());
  if (const auto given = call.list("kernel_shape"); given && *given != kernel)
    throw Malformed{fmt::format("kernel_shape is {}, its weights {}", to_text(*given), to_text(weights))};
  std::vector<Window> windows = windows_of(call, kernel);
  const auto more = attribute_of(call, "output_padding", n, 0, 0);
  const auto shape_given = call.list("output_shape");
  if (shape_given && shape_given->size() != n) throw Malformed{"output_shape has another number of dimensions"};
  const std::string mode = call.text("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    throw Malformed{fmt::format("auto_pad is {}", in_quotes(mode))};
  const bool is_same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  for (std::size_t d = 0; d < n; ++d) {
    Window& window = windows[d];
    const std::int64_t whole = window.stride * (window.input - 1) + more[d] + window.reach();
    if (mode == "VALID") window.begin = window.end = 0;
    if (shape_given || is_same) {
      window.output = shape_given ? (*shape_given)[d] : window.input * window.stride;
      if (window.output < 1 || window.output > most)
        throw Malformed{fmt::format("its output has an extent of {}", window.output)};
      const std::int64_t total = std::max<std::int64_t>(0, whole - window.output);
      window.begin = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else {
      window.output = whole - window.begin - window.end;
      if (window.output < 1) throw Malformed{fmt::format("its output has an extent of {}", window.output)};
    }
  }
  const std::int64_t batch = call.shape(0)[0], channels = call.shape(0)[1], groups = call.integer("group", 1);
  if (groups < 1 || groups > most || weights[1] > most || weights[0] != channels || channels % groups != 0)
    throw Malformed{fmt::format("its weights {} in {} groups do not fit its input {}", to_text(weights), groups,
                                to_text(call.shape(0)))};
  const std::int64_t out = weights[1];
  check_bias(call, 2, out * groups);
  const bool in_phases = std::any_of(windows.begin(), windows.end(), [](const Window& w) { return w.stride > 1; }) &&
                         std::all_of(windows.begin(), windows.end(),
                                     [](const Window& w) { return w.dilation == 1 && w.begin < w.kernel; });
  Expression expression(call);
  const Channels by{batch, groups, channels / groups, out};
  in_phases ? sums_in_phases(call, expression, windows, by) : sums_of_spread(call, expression, windows, by);
  return {with_bias(call, expression, outputs(windows, batch, out * groups))};
}

std::vector<Window> pools_of(const Call& call) {
  const auto kernel = call.list("kernel_shape");
  if (!kernel) throw Malformed{"kernel_shape is missing"};
  std::vector<Window> windows = windows_of(call, *kernel);
  slide(call, windows);
  return windows;
}

Axes pool_axes(const Call& call, const std::vector<Window>& windows) {
  return joined({{"b", call.shape(0)[0]}, {"c", call.shape(0)[1]}}, spatial_axes(windows));
}

// The place of each window's largest element in the whole input, as if it had one dimension: row-major, or with the
// spatial dimensions in reverse order.
Result places_of_largest(const Call& call, const std::vector<Window>& windows, const Shape& shape) {
  const bool in_reverse = call.integer("storage_order", 0) != 0;
  const Axes axes = pool_axes(call, windows), reduced = kernel_axes(windows);
  const std::int64_t image = product(call.shape(0), 2, call.shape(0).size());
  std::string place = fmt::format("{} + {}", form(call.shape(0)[1] * image, "b"), form(image, "c"));
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const std::size_t d = in_reverse ? i : windows.size() - 1 - i;
    const Window& window = windows[d];
    place += fmt::format(" + {} + {} - {}", form(window.stride * stride, axes[d + 2].name),
                         form(window.dilation * stride, reduced[d].name), window.begin * stride);
    stride *= window.input;
  }
  Expression expression(call);
  Padded padded(call, expression, windows, "-inf");
  expression.stage("M", call.type(0), axes, padded.load("c"), "max=", reduced);
  expression.stage("y", DType::i64, axes,
                   fmt::format("select({} == {}, position({}), {})", padded.load("c"), load("M", index_of(axes)), place,
                               elements_of(call.shape(0))),
                   "min=", reduced);
  return expression.result(DType::i64, shape);
}

Meaning largest_of_windows(const Call& call) {
  const std::vector<Window> windows = pools_of(call);
  const Shape shape = outputs(windows, call.shape(0)[0], call.shape(0)[1]);
  Expression expression(call);
  Padded padded(call, expression, windows, "-inf");
  expression.stage("y", call.type(0), pool_axes(call, windows), padded.load("c"), "max=", kernel_axes(windows));
  Meaning results = {expression.result(call.type(0), shape)};
  if (call.wants(1)) results.push_back(places_of_largest(call, windows, shape));
  return results;
}

// Where elements of operand 0 may be put: to their windows, or anywhere if the result has a shape of its own. A place
// is in several windows only if these overlap: then they are looked through, by axes of their own.
struct Candidates {
  Shape shape = {};  // of the result
  Index index = {};
  Axes axes = {};
  std::string number = "0";  // of a candidate, in order
  bool is_padded = false;
};

void look_through(Candidates& candidates, std::int64_t extent) {
  candidates.axes.push_back({fmt::format("u{}", candidates.axes.size()), extent});
  candidates.number = fmt::format("({}) * {} + {}", candidates.number, extent, candidates.axes.back().name);
}

Candidates candidates_of(const Call& call, const std::vector<Window>& windows) {
  Candidates result{.shape = {call.shape(0)[0], call.shape(0)[1]}, .index = {"i0", "i1"}};
  for (const Window& window : windows) {
    const std::int64_t extent = (window.input - 1) * window.stride + window.kernel - window.begin - window.end;
    if (extent < 1) throw Malformed{fmt::format("its result has an extent of {}", extent)};
    const std::string place = form(1, fmt::format("i{}", result.shape.size()), window.begin);
    result.index.push_back(fmt::format("({}) / {}", place, window.stride));
    result.shape.push_back(extent);
    const std::int64_t each = (window.kernel + window.stride - 1) / window.stride;
    if (each == 1) continue;
    look_through(result, each);
    result.index.back() += " - " + result.axes.back().name;
    result.is_padded = true;
  }
  if (!call.has(2)) return result;
  Candidates anywhere{.shape = call.integers(2)};
  if (anywhere.shape.size() != result.shape.size())
    throw Malformed{
        fmt::format("its output_shape is {}, its input {}", to_text(anywhere.shape), to_text(call.shape(0)))};
  for (const std::int64_t extent : anywhere.shape)
    if (extent < 1) throw Malformed{fmt::format("its output_shape is {}", to_text(anywhere.shape))};
  for (const std::int64_t extent : call.shape(0)) look_through(anywhere, extent);
  anywhere.index = index_of(anywhere.axes);
  return anywhere;
}

// The opposite of MaxPool with the places of its results: the last one of a place counts, as in onnxruntime.
Meaning put_back(const Call& call) {
  const auto kernel = call.list("kernel_shape");
  if (!kernel) throw Malformed{"kernel_shape is missing"};
  if (call.shape(1) != call.shape(0))
    throw Malformed{fmt::format("its places are {}, its input {}", to_text(call.shape(1)), to_text(call.shape(0)))};
  const Candidates candidates = candidates_of(call, windows_of(call, *kernel));
  std::int64_t count = 1;
  for (const Axis& axis : candidates.axes) count *= axis.extent;
  bound_comparisons(candidates.shape, count, "updates");
  std::string place = "0";
  const Axes axes = axes_over(candidates.shape);
  for (const Axis& axis : axes) place = fmt::format("({}) * {} + {}", place, axis.extent, axis.name);
  Expression expression(call);
  const auto read = [&](int number, std::string_view outside) {
    const std::string value = expression.operand(number, candidates.index);
    return candidates.is_padded ? fmt::format("pad({}, {})", value, outside) : value;
  };
  const std::string is_here = fmt::format("select({} == position({}), ", read(1, "-1"), place);
  if (candidates.axes.empty())
    return {element_wise(expression, call.type(0), candidates.shape, fmt::format("{}{}, 0)", is_here, read(0, "0")))};
  expression.stage("L", DType::i32, axes, fmt::format("{}position({}), -1)", is_here, candidates.number),
                   "max=", candidates.axes);
  expression.stage(
      "y", call.type(0), axes,
      fmt::format("select({} == position({}), {}, 0)", load("L", index_of(axes)), candidates.number, read(0, "0")),
      "+=", candidates.axes);
  return {expression.result(call.type(0), candidates.shape)};
}

Meaning mean_of_windows(const Call& call) {
  if (!codegen::is_floating(call.type(0))) throw Unsupported{"means of integers"};
  const std::vector<Window> windows = pools_of(call);
  const bool with_pads = call.integer("count_include_pad", 0) != 0;
  const Shape shape = outputs(windows, call.shape(0)[0], call.shape(0)[1]);
  const Axes axes = pool_axes(call, windows);
  Expression expression(call);
  Padded padded(call, expression, windows, "");
  expression.stage("T", call.type(0), axes, padded.load("c"), "+=", kernel_axes(windows));
  // The cells of a window that count, along each dimension: a literal where windows differ.
  std::int64_t count = 1;
  std::string divisor;
  for (std::size_t d = 0; d < windows.size(); ++d) {
    const Window& window = windows[d];
    if (window.output > most) throw Unsupported{"a row of more than 2^20 windows"};
    std::vector<double> counts;
    for (std::int64_t y = 0; y < window.output; ++y)
      counts.push_back(double(std::max<std::int64_t>(1, window.cells(y, with_pads))));
    if (std::all_of(counts.begin(), counts.end(), [&](double each) { return each == counts.front(); })) {
      count *= std::int64_t(counts.front());
    } else {
      expression.literal(fmt::format("n{}", d), call.type(0), {window.output}, counts);
      divisor += fmt::format(" * n{}[y{}]", d, d);
    }
  }
  expression.stage("y", call.type(0), axes, fmt::format("{} / ({}{})", load("T", index_of(axes)), count, divisor));
  return {expression.result(call.type(0), shape)};
}

// One element for each channel.
Meaning of_channels(const Call& call, bool is_mean) {
  if (is_mean && !codegen::is_floating(call.type(0))) throw Unsupported{"means of integers"};
  const std::size_t n = spatial_rank(call);
  Shape shape = call.shape(0);
  const Shape spatial(shape.begin() + 2, shape.end());
  std::fill(shape.begin() + 2, shape.end(), 1);
  const Axes axes = axes_over(shape);
  const Axes reduced = axes_over(spatial, "u");
  Expression expression(call);
  const std::string x = expression.operand(0, joined({"i0", "i1"}, index_of(reduced)));
  expression.stage(is_mean ? "T" : "y", call.type(0), axes, x, is_mean ? "+=" : "max=", reduced);
  if (is_mean)
    expression.stage("y", call.type(0), axes,
                     fmt::format("{} / {}", load("T", index_of(axes)), product(spatial, 0, n)));
  return {expression.result(call.type(0), shape)};
}
Meaning means_of_channels(const Call& call) {
  return of_channels(call, true);
}
Meaning largest_of_channels(const Call& call) {
  return of_channels(call, false);
}

}  // namespace

std::int64_t Window::cells(std::int64_t place, bool with_pads) const {
  const std::int64_t first = place * stride - begin, last = input + (with_pads ? end : 0) - 1;
  const std::int64_t before = with_pads || first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  const std::int64_t until = last < first ? 0 : std::min(kernel, (last - first) / dilation + 1);
  return until - before;
}

Padded::Padded(const Call& call, Expression& expression, const std::vector<Window>& windows, std::string_view outside,
               bool is_computed)
    : expression_(expression), windows_(windows) {
  is_padded_ = std::any_of(windows.begin(), windows.end(), [](const Window& window) { return window.is_padded(); });
  if (!is_padded_) return;
  Axes axes = {{"b", call.shape(0)[0]}, {"c", call.shape(0)[1]}};
  Index index = index_of(axes);
  for (std::size_t d = 0; d < windows.size(); ++d) {
    axes.push_back({fmt::format("p{}", d), windows[d].padded()});
    index.push_back(form(1, axes.back().name, -windows[d].begin));
  }
  const std::string x = expression.operand(0, index);
  std::string value =
      fmt::format("pad({}{}{})", x, outside.empty() || is_computed ? "" : ", ", is_computed ? "" : outside);
  for (std::size_t d = 0; is_computed && d < windows.size(); ++d) {
    const Window& window = windows[d];
    if (window.begin + window.input < window.padded())
      value = fmt::format("select(p{} < {}, {}, {})", d, window.begin + window.input, value, outside);
    if (window.begin > 0) value = fmt::format("select(p{} < {}, {}, {})", d, window.begin, outside, value);
  }
  expression.stage("P", call.type(0), axes, value);
}

std::string Padded::load(const std::string& channel) {
  Index index = {"b", channel};
  for (std::size_t d = 0; d < windows_.size(); ++d)
    index.push_back(fmt::format("{} + {}", form(windows_[d].stride, fmt::format("y{}", d)),
                                form(windows_[d].dilation, fmt::format("u{}", d))));
  return is_padded_ ? graph::load("P", index) : expression_.operand(0, index);
}

Convolution::Convolution(const Call& call, int operand) {
  const std::size_t n = spatial_rank(call);
  const Shape& own = call.shape(operand);
  if (own.size() != n + 2)
    throw Malformed{fmt::format("its weights {} do not fit its input {}", to_text(own), to_text(call.shape(0)))};
  const Shape kernel(own.begin() + 2, own.end());
  if (const auto given = call.list("kernel_shape"); given && *given != kernel)
    throw Malformed{fmt::format("kernel_shape is {}, its weights {}", to_text(*given), to_text(own))};
  windows = windows_of(call, kernel);
  slide(call, windows);
  const std::int64_t batch = call.shape(0)[0], inputs = call.shape(0)[1], groups = call.integer("group", 1);
  if (groups < 1 || groups > most || own[1] > most || own[1] * groups != inputs || own[0] % groups != 0)
    throw Malformed{fmt::format("its weights {} in {} groups do not fit its input {}", to_text(own), groups,
                                to_text(call.shape(0)))};
  const std::int64_t in = own[1], out = own[0] / groups;
  channels = own[0];
  axes = {{"b", batch}};
  std::string channel = "o", weight_channel = "i";
  if (groups > 1) axes.push_back({"g", groups});
  if (groups > 1 && out > 1) channel = fmt::format("{} + o", form(out, "g"));
  if (groups > 1 && out == 1) channel = "g";
  if (channel != "g") axes.push_back({"o", out});
  axes = joined(axes, spatial_axes(windows));
  reduced = kernel_axes(windows);
  if (groups > 1 && in == 1) {
    input_channel = "g", weight_channel = "0";
  } else {
    reduced.insert(reduced.begin(), {"i", in});
    if (groups > 1) input_channel = fmt::format("{} + i", form(in, "g"));
  }
  if (channel != "o" && channel != "g") element = joined({"b", channel}, index_of(spatial_axes(windows)));
  weights = joined({channel, weight_channel}, index_of(kernel_axes(windows)));
  shape = outputs(windows, batch, channels);
}

void check_bias(const Call& call, int operand, std::int64_t channels) {
  if (call.has(operand) && call.shape(operand) != Shape{channels})
    throw Malformed{fmt::format("its bias is {}, it has {} channels", to_text(call.shape(operand)), channels)};
}

std::vector<Row> window_rows() {
  return {
      {"Conv", 2, 3, "auto_pad dilations group kernel_shape pads strides", convolution},
      {"ConvTranspose", 2, 3, "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
       transposed_convolution},
      {"MaxPool", 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", largest_of_windows},
      {"MaxUnpool", 2, 3, "kernel_shape pads strides", put_back},
      {"AveragePool", 1, 1, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
       mean_of_windows},
      {"GlobalAveragePool", 1, 1, "", means_of_channels},
      {"GlobalMaxPool", 1, 1, "", largest_of_channels},
  };
}

}  // namespace graft::graph
