// Reads at places that are numbers of a run: grids, and regions of an image.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/operators/body.h"

namespace graft::graph {
namespace {

using Numbers = std::vector<double>;

// ---- GridSample, as onnxruntime has it ----

struct Sampling {
  std::string mode, padding;
  bool is_aligned = false;

  explicit Sampling(const Call& call)
      : mode(call.text("mode", call.version() < 20 ? "bilinear" : "linear")),
        padding(call.text("padding_mode", "zeros")),
        is_aligned(call.integer("align_corners", 0) != 0) {
    if (mode == "bilinear") mode = "linear";
    if (mode == "bicubic") mode = "cubic";
    if (mode != "linear" && mode != "cubic" && mode != "nearest")
      throw Malformed{fmt::format("mode is {}", in_quotes(mode))};
    if (padding != "zeros" && padding != "border" && padding != "reflection")
      throw Malformed{fmt::format("padding_mode is {}", in_quotes(padding))};
  }

  // Elements that are read along a dimension, the first of which is `before` the place.
  std::int64_t taps() const { return mode == "cubic" ? 4 : mode == "linear" ? 2 : 1; }
  std::int64_t before() const { return mode == "cubic" ? 1 : 0; }

  // A place in [-1, 1] in elements.
  std::string place(const std::string& at, std::int64_t extent) const {
    return is_aligned ? fmt::format("({} + 1) / 2 * {}", at, extent - 1)
                      : fmt::format("(({} + 1) * {} - 1) / 2", at, extent);
  }
  // The weight of tap t, at `rest` after the element before the place.
  std::string weight(const std::string& rest) const {
    if (mode == "linear") return fmt::format("select(t < 1, 1 - {0}, {0})", rest);
    const std::string d = fmt::format("abs({} + 1 - t)", rest);
    return fmt::format(
        "select({0} <= 1, (1.25 * {0} - 2.25) * {0} * {0} + 1, "
        "((-0.75 * {0} + 3.75) * {0} - 6) * {0} + 3)",
        d);
  }
  // The element that is read for one that may be outside; those that still are have the nearest, or 0 by pad().
  std::string inside(const std::string& at, std::int64_t extent) const {
    if (padding != "reflection") return at;
    if (!is_aligned)
      return fmt::format("select(({0}) % {1} < {2}, ({0}) % {1}, {3} - ({0}) % {1})", at, 2 * extent, extent,
                         2 * extent - 1);
    return extent == 1 ? "0" : fmt::format("{0} - abs({0} - ({1}) % {2})", extent - 1, at, 2 * (extent - 1));
  }
};

Meaning sampled_at_grid(const Call& call) {
  const Sampling how(call);
  const Shape &from = call.shape(0), &grid = call.shape(1);
  const std::size_t n = from.size() < 3 ? 0 : from.size() - 2;
  if (n == 0 || grid.size() != n + 2 || grid.back() != std::int64_t(n) || grid[0] != from[0])
    throw Malformed{fmt::format("its grid is {}, its input {}", to_text(grid), to_text(from))};
  if (n > 3) throw Unsupported{"more than 3 spatial dimensions"};
  if (how.mode == "cubic" && n != 2) throw Unsupported{fmt::format("mode cubic in {} dimensions", n)};
  if (how.mode != "nearest" && !codegen::is_floating(call.type(0))) throw Unsupported{"means of integers"};
  if (elements_of(from) == 0) throw Unsupported{"an input without elements"};
  Shape shape = {from[0], from[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  const Axes axes = axes_over(shape);
  Axes places = axes, taps;
  places.erase(places.begin() + 1);
  Expression expression(call);
  Index read = {"i0", "i1"};
  std::string weight;
  for (std::size_t d = 0; d < n; ++d) {
    Index at = index_of(places);
    at.push_back(std::to_string(n - 1 - d));
    const std::string place = fmt::format("C{}", d), first = fmt::format("F{}", d), t = fmt::format("u{}", d);
    const auto here = [&](const std::string& tensor) { return load(tensor, index_of(places)); };
    expression.stage(place, call.type(1), places, how.place(expression.operand(1, at), from[d + 2]));
    // Beyond 2^30 it is outside all the same; so no integer overflows.
    expression.stage(first, DType::i32, places,
                     fmt::format("cast_i32(max(min({}({}), 1073741824), -1073741824))",
                                 how.mode == "nearest" ? "round" : "floor", here(place)));
    if (how.taps() == 1) {
      read.push_back(how.inside(here(first), from[d + 2]));
      continue;
    }
    Axes weighted = places;
    weighted.push_back({"t", how.taps()});
    const std::string rest = fmt::format("({0} - floor({0}))", here(place)), name = fmt::format("W{}", d);
    expression.stage(name, call.type(0), weighted, how.weight(rest));
    Index of = index_of(places);
    of.push_back(t);
    weight += load(name, of) + " * ";
    taps.push_back({t, how.taps()});
    read.push_back(how.inside(fmt::format("{} + {} - {}", here(first), t, how.before()), from[d + 2]));
  }
  std::string value = expression.operand(0, read);
  if (how.padding == "zeros") value = fmt::format("pad({})", value);
  expression.stage("y", call.type(0), axes, weight + value, taps.empty() ? "=" : "+=", taps);
  return {expression.result(call.type(0), shape)};
}

// ---- AffineGrid ----

constexpr std::int64_t most_places = std::int64_t(1) << 24;

// A product of the places of all elements, and 1, with the matrix of each batch.
Graph affine_grid(const Call& call) {
  const Shape size = call.integers(1);
  const std::size_t n = size.size() < 2 ? 0 : size.size() - 2;
  if ((n != 2 && n != 3) || call.shape(0) != Shape{size[0], std::int64_t(n), std::int64_t(n) + 1})
    throw Malformed{fmt::format("its matrices are {}, its size {}", to_text(call.shape(0)), to_text(size))};
  std::int64_t count = 1;
  for (std::size_t d = 0; d < n; ++d) {
    const std::int64_t extent = size[d + 2];
    if (extent < 1 || extent > most_places) throw Malformed{fmt::format("its size is {}", to_text(size))};
    count *= extent;
    if (count > most_places) throw Unsupported{"a grid of more than 2^24 places"};
  }
  const bool is_aligned = call.integer("align_corners", 0) != 0;
  Numbers places;
  for (std::int64_t at = 0; at < count; ++at) {
    std::int64_t rest = at;
    for (std::size_t d = n; d-- > 0;) {  // the last dimension is the first number
      const std::int64_t extent = size[d + 2], i = rest % extent;
      rest /= extent;
      places.push_back(!is_aligned   ? double(2 * i + 1) / double(extent) - 1
                       : extent == 1 ? 1  // as in onnxruntime
                                     : 2 * double(i) / double(extent - 1) - 1);
    }
    places.push_back(1);
  }
  Body body(call);
  const Part all = body.constant(known(call.type(0), {count, std::int64_t(n) + 1}, codegen::Elements(places)));
  Shape shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(std::int64_t(n));
  return std::move(body).results(
      {body.reshaped(body.node("MatMul", {all, body.transposed(body.operand(0), {0, 2, 1})}), shape)});
}

// ---- DeformConv ----

// A convolution of images whose elements are taken from their places and what an operand adds to these: GridSample
// takes them, for all elements of the window in turn, and a product combines them.
Graph deformed_convolution(const Call& call) {
  const Shape &x = call.shape(0), &weight = call.shape(1), &offset = call.shape(2);
  if (x.size() != 4) throw Unsupported{fmt::format("{} spatial dimensions", std::int64_t(x.size()) - 2)};
  const std::int64_t groups = call.integer("group", 1), parts = call.integer("offset_group", 1);
  const Shape strides = call.list("strides").value_or(Shape{1, 1}), pads = call.list("pads").value_or(Shape(4));
  const Shape dilations = call.list("dilations").value_or(Shape{1, 1});
  if (weight.size() != 4 || strides.size() != 2 || dilations.size() != 2 || pads.size() != 4)
    throw Malformed{fmt::format("its weights are {}, its input {}", to_text(weight), to_text(x))};
  const std::int64_t taps = weight[2] * weight[3], channels = x[1];
  if (groups < 1 || parts < 1 || channels % parts != 0 || weight[1] * groups != channels || offset.size() != 4 ||
      offset[0] != x[0] || offset[1] != parts * taps * 2)
    throw Malformed{fmt::format("its offsets are {} for windows of {} x {}", to_text(offset), weight[2], weight[3])};
  if (call.has(4) && call.shape(4) != Shape{x[0], parts * taps, offset[2], offset[3]})
    throw Malformed{fmt::format("its mask is {}, its offsets {}", to_text(call.shape(4)), to_text(offset))};
  const std::int64_t rows = offset[2], columns = offset[3];
  if (taps * rows * columns > most_places) throw Unsupported{"more than 2^24 places"};
  // Where each element of each window is without offsets, so that -1 and 1 are the edges of the input.
  Numbers places;
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t at = 0; at < rows * columns; ++at) {
      const auto place = [&](std::size_t d, std::int64_t window, std::int64_t element) {
        const double whole =
            double(window) * double(strides[d]) - double(pads[d]) + double(element) * double(dilations[d]);
        return (2 * whole + 1) / double(x[d + 2]) - 1;
      };
      places.push_back(place(1, at % columns, tap % weight[3]));
      places.push_back(place(0, at / columns, tap / weight[3]));
    }
  Body body(call);
  const auto constant = [&](const Shape& shape, Numbers numbers) {
    return body.constant(known(call.type(2), shape, codegen::Elements(std::move(numbers))));
  };
  const Part by_tap =
      body.transposed(body.reshaped(body.operand(2), {x[0], parts, taps, 2, rows, columns}), {0, 1, 2, 4, 5, 3});
  const Part turned = body.node("Gather", {by_tap, body.integers({1, 0})}, {{"axis", std::int64_t(-1)}});
  const Part grid = turned * constant({2}, {2 / double(x[3]), 2 / double(x[2])}) +
                    constant({taps, rows, columns, 2}, std::move(places));
  const Part taken =
      body.node("GridSample", {body.reshaped(body.operand(0), {x[0] * parts, channels / parts, x[2], x[3]}),
                               body.reshaped(grid, {x[0] * parts, taps * rows, columns, 2})});
  Part windows = body.reshaped(taken, {x[0], parts, channels / parts, taps, rows, columns});
  if (call.has(4)) windows = windows * body.reshaped(body.operand(4), {x[0], parts, 1, taps, rows, columns});
  const Part y = body.node("Conv",
                           {body.reshaped(windows, {x[0], channels * taps, rows, columns}),
                            body.reshaped(body.operand(1), {weight[0], weight[1] * taps, 1, 1}), body.operand(3)},
                           {{"group", groups}});
  return std::move(body).results({y});
}

// ---- RoiAlign ----

// Along one dimension of regions: the first element of each sample, and the weights of it and the next.
struct Side {
  std::string name;         // of the dimension
  int begin = 0;            // the number of the region that is where it begins; where it ends follows two later
  std::int64_t extent = 1;  // of the image
  std::int64_t bins = 1, samples = 1;
};

void samples_of(const Call& call, Expression& expression, const Side& side, double offset) {
  const DType type = call.type(0);
  const std::string scale = number_text(call.number("spatial_scale", 1)), name = side.name;
  const auto edge = [&](int number) {
    return fmt::format("({} * {} - {})", expression.operand(1, {"r", std::to_string(number)}), scale, offset);
  };
  const std::string length = fmt::format("({} - {})", edge(side.begin + 2), edge(side.begin));
  // Without half a pixel a region has one element at least.
  const std::string least = offset == 0 ? fmt::format("max({}, 1)", length) : length;
  const Axes axes = {{"r", call.shape(1)[0]}, {"b", side.bins}, {"s", side.samples}};
  expression.stage(
      "P" + name, type, axes,
      fmt::format("{} + (b + (s + 0.5) / {}) * ({} / {})", edge(side.begin), side.samples, least, side.bins));
  const std::string place = load("P" + name, index_of(axes));
  expression.stage("C" + name, type, axes, fmt::format("min(max({}, 0), {})", place, side.extent - 1));
  const std::string within = load("C" + name, index_of(axes));
  expression.stage("F" + name, DType::i32, axes, fmt::format("cast_i32(floor({}))", within));
  Axes weighted = axes;
  weighted.push_back({"t", 2});
  const std::string rest = fmt::format("({0} - floor({0}))", within);
  expression.stage(
      "W" + name, type, weighted,
      fmt::format("select({0} < -1, 0, select({0} > {1}, 0, select(t < 1, 1 - {2}, {2})))", place, side.extent, rest));
}

Meaning aligned_regions(const Call& call) {
  const Shape &from = call.shape(0), &regions = call.shape(1);
  if (from.size() != 4 || regions.size() != 2 || regions[1] != 4 || call.shape(2) != Shape{regions[0]})
    throw Malformed{fmt::format("its input is {}, its regions {}", to_text(from), to_text(regions))};
  const std::string mode = call.text("mode", "avg");
  const std::string coordinates =
      call.text("coordinate_transformation_mode", call.version() < 16 ? "output_half_pixel" : "half_pixel");
  if (mode != "avg" && mode != "max") throw Malformed{fmt::format("mode is {}", in_quotes(mode))};
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    throw Malformed{fmt::format("coordinate_transformation_mode is {}", in_quotes(coordinates))};
  const std::int64_t rows = call.integer("output_height", 1), columns = call.integer("output_width", 1);
  const std::int64_t samples = call.integer("sampling_ratio", 0);
  if (rows < 1 || columns < 1 || rows > 4096 || columns > 4096 || samples < 0 || samples > 4096)
    throw Malformed{fmt::format("{} x {} bins of {} samples", rows, columns, samples)};
  if (samples == 0)
    throw Unsupported{"sampling_ratio 0, as many samples as a region has elements; export the model with a number"};
  Expression expression(call);
  const double offset = coordinates == "half_pixel" ? 0.5 : 0;
  samples_of(call, expression, {"y", 1, from[2], rows, samples}, offset);
  samples_of(call, expression, {"x", 0, from[3], columns, samples}, offset);
  const Axes axes = {{"r", regions[0]}, {"c", from[1]}, {"p", rows}, {"q", columns}};
  const Axes reduced = {{"u", samples}, {"v", samples}, {"s", 2}, {"t", 2}};
  const std::string x = expression.operand(0, {expression.operand(2, {"r"}), "c", "Fy[r,p,u] + s", "Fx[r,q,v] + t"});
  const std::string value = fmt::format("Wy[r,p,u,s] * Wx[r,q,v,t] * {}", x);
  const Shape shape = {regions[0], from[1], rows, columns};
  const bool is_mean = mode == "avg";
  // The largest is one of the parts of means, as in onnxruntime.
  expression.stage(is_mean ? "T" : "y", call.type(0), axes, value, is_mean ? "+=" : "max=", reduced);
  if (is_mean) expression.stage("y", call.type(0), axes, fmt::format("T[r,c,p,q] / {}", samples * samples));
  return {expression.result(call.type(0), shape)};
}

}  // namespace

std::vector<Row> sampling_rows() {
  return {
      {"GridSample", 2, 2, "align_corners mode padding_mode", sampled_at_grid},
      composed("AffineGrid", 2, 2, "align_corners", affine_grid),
      composed("DeformConv", 3, 5, "dilations group kernel_shape offset_group pads strides", deformed_convolution),
      {"RoiAlign", 3, 3, "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale",
       aligned_regions},
  };
}

}  // namespace graft::graph
