// Resize and its forerunner Upsample: dimension by dimension, each result a weighted sum of few elements whose places
// and weights are literals. Nearest elements need no weights.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "graph/operators/call.h"

namespace graft::graph {
namespace {

constexpr std::int64_t most = std::int64_t(1) << 20;  // elements along a dimension

struct Settings {
  std::string mode, coordinates, nearest;
  double outside = 0;                          // what is outside of the operand, for tf_crop_and_resize
  std::vector<double> begins = {}, ends = {};  // its part of each dimension, from 0 to 1
  double cubic = -0.75;
  bool excludes_outside = false;
  bool is_antialiased = false;  // where fewer elements result, each is a mean of all that it covers
};

// Where element `at` of the result is in the operand: in single precision and with the result's length in whole
// elements, as onnxruntime computes it.
float place_of(const Settings& settings, std::size_t dimension, float at, float input, float output, float scale) {
  const std::string& kind = settings.coordinates;
  const float half_pixel = (at + 0.5f) / scale - 0.5f;
  if (kind == "half_pixel") return half_pixel;
  if (kind == "pytorch_half_pixel") return output > 1 ? half_pixel : 0;
  if (kind == "align_corners") return output > 1 ? at * (input - 1) / (output - 1) : 0;
  if (kind == "asymmetric") return at / scale;
  if (kind == "half_pixel_symmetric") return input / 2 * (1 - output / (scale * input)) + half_pixel;
  if (kind == "tf_crop_and_resize") {
    const float begin = float(settings.begins[dimension]), end = float(settings.ends[dimension]);
    if (output == 1) return (begin + end) / 2 * (input - 1);
    return begin * (input - 1) + at * (end - begin) * (input - 1) / (output - 1);
  }
  throw Malformed{fmt::format("coordinate_transformation_mode is {}", in_quotes(kind))};
}

double rounded(const std::string& mode, double place) {
  if (mode == "round_prefer_floor") return std::ceil(place - 0.5);
  if (mode == "round_prefer_ceil") return std::floor(place + 0.5);
  if (mode == "floor") return std::floor(place);
  if (mode == "ceil") return std::ceil(place);
  throw Malformed{fmt::format("nearest_mode is {}", in_quotes(mode))};
}

struct Taps {
  std::int64_t each = 1;  // for one element of the result
  std::vector<double> places, weights;
  std::vector<double> is_outside;  // by element of the result, where `Settings::outside` is used
};

// The weight of an element at a distance from the place.
double weight_at(const Settings& settings, double distance) {
  const double x = std::abs(distance), a = settings.cubic;
  if (settings.mode == "linear") return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Taps taps_of(const Settings& settings, std::size_t dimension, std::int64_t input, std::int64_t output, double scale) {
  const auto inside = [&](double place) { return std::clamp(place, 0.0, double(input - 1)); };
  const double reach = settings.mode == "linear" ? 1 : 2, stretch = settings.is_antialiased ? std::min(scale, 1.0) : 1;
  Taps taps;
  taps.each = settings.mode == "nearest" ? 1 : std::int64_t(std::ceil(2 * reach / stretch));
  if (taps.each * output > most) throw Unsupported{"means of more than 2^20 elements"};
  for (std::int64_t y = 0; y < output; ++y) {
    const double place = place_of(settings, dimension, float(y), float(input), float(output), float(scale));
    if (settings.coordinates == "tf_crop_and_resize") taps.is_outside.push_back(place != inside(place) ? 1 : 0);
    if (settings.mode == "nearest") {
      taps.places.push_back(inside(rounded(settings.nearest, place)));
      continue;
    }
    const double begin = std::floor(place - reach / stretch) + 1;
    std::vector<double> weights;
    double total = 0;
    for (std::int64_t t = 0; t < taps.each; ++t) {
      const double at = begin + double(t);
      const bool counts = !settings.excludes_outside || at == inside(at);
      weights.push_back(counts ? weight_at(settings, (at - place) * stretch) : 0);
      total += weights.back();
      taps.places.push_back(inside(at));
    }
    for (const double weight : weights) taps.weights.push_back(weight / total);
  }
  return taps;
}

// Scales follow from sizes, or sizes from scales, if either is empty.
Meaning resized(const Call& call, const Settings& settings, const std::vector<double>& scales,
                const std::vector<std::int64_t>& sizes) {
  if (settings.mode != "nearest" && settings.mode != "linear" && settings.mode != "cubic")
    throw Malformed{fmt::format("mode is {}", in_quotes(settings.mode))};
  const Shape& from = call.shape(0);
  Shape shape = from;
  Expression expression(call);
  std::string before;
  std::vector<std::pair<std::size_t, double>> changed;
  std::vector<std::int64_t> wanted;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (!sizes.empty() && (sizes[d] < 1 || sizes[d] > most)) throw Malformed{fmt::format("a size is {}", sizes[d])};
    if (!scales.empty() && !(scales[d] > 0 && scales[d] <= double(most)))
      throw Malformed{fmt::format("a scale is {}", scales[d])};
    const double scale = scales.empty() ? double(sizes[d]) / double(from[d]) : scales[d];
    const double extent = sizes.empty() ? std::floor(float(from[d]) * float(scale)) : double(sizes[d]);
    if (extent < 1 || (extent > double(most) && scale != 1))
      throw Malformed{fmt::format("its result has an extent of {}", extent)};
    wanted.push_back(std::int64_t(extent));
    if (scale != 1 || !settings.begins.empty()) changed.emplace_back(d, scale);
  }
  if (changed.empty()) return {same_elements(call, shape)};
  // Means of integers are rounded as in onnxruntime: towards zero at the end, or to the nearest (halves away from 0)
  // after each dimension, the last one first, if they are of many.
  const bool rounds = settings.mode != "nearest" && !codegen::is_floating(call.type(0));
  const bool rounds_each = rounds && settings.is_antialiased;
  const DType type = rounds ? DType::f32 : call.type(0);
  if (rounds_each) std::reverse(changed.begin(), changed.end());
  for (std::size_t n = 0; n < changed.size(); ++n) {
    const auto [d, scale] = changed[n];
    const Taps taps = taps_of(settings, d, from[d], wanted[d], scale);
    shape[d] = wanted[d];
    const Axes axes = axes_over(shape);
    Index index = index_of(axes);
    const std::string places = fmt::format("n{}", d), weights = fmt::format("w{}", d), at = index[d];
    const std::int64_t factor = wanted[d] / from[d];
    bool is_whole = taps.each == 1 && factor * from[d] == wanted[d];  // each element `factor` times
    for (std::size_t y = 0; y < taps.places.size() && is_whole; ++y)
      is_whole = std::int64_t(taps.places[y]) == std::int64_t(y) / factor;
    if (is_whole) {
      index[d] = fmt::format("{} / {}", at, factor);
    } else if (taps.each == 1) {
      expression.literal(places, DType::i32, {wanted[d]}, taps.places);
      index[d] = load(places, {at});
    } else {
      expression.literal(places, DType::i32, {wanted[d], taps.each}, taps.places);
      expression.literal(weights, type, {wanted[d], taps.each}, taps.weights);
      index[d] = load(places, {at, "t"});
    }
    const std::string value = before.empty() ? expression.operand(0, index) : load(before, index);
    const bool is_cropped = std::count(taps.is_outside.begin(), taps.is_outside.end(), 1) > 0;
    const bool is_last = n + 1 == changed.size(), ends = rounds_each || (rounds && is_last);
    const std::string next = is_last ? "y" : fmt::format("R{}", d);
    before = is_cropped || ends ? fmt::format("S{}", d) : next;
    if (taps.each == 1)
      expression.stage(before, type, axes, value);
    else
      expression.stage(
          before, type, axes,
          fmt::format("{} * {}", load(weights, {at, "t"}), rounds ? fmt::format("cast_f32({})", value) : value),
          "+=", {{"t", taps.each}});
    if (!is_cropped && !ends) continue;
    std::string result = load(before, index_of(axes));
    if (rounds_each) result = fmt::format("select({0} < 0, neg(floor(0.5 - {0})), floor({0} + 0.5))", result);
    if (ends) result = fmt::format("cast_{}({})", codegen::name_of(call.type(0)), result);
    if (is_cropped) {
      expression.literal(fmt::format("o{}", d), DType::i32, {wanted[d]}, taps.is_outside);
      result = fmt::format("select({} != 0, {}, {})", load(fmt::format("o{}", d), {at}), number_text(settings.outside),
                           result);
    }
    expression.stage(next, ends ? call.type(0) : type, axes, result);
    before = next;
  }
  return {expression.result(call.type(0), shape)};
}

Meaning resize(const Call& call) {
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    throw Malformed{fmt::format("keep_aspect_ratio_policy is {}", in_quotes(policy))};
  const bool is_old = call.version() < 11;
  Settings settings{.mode = call.text("mode", "nearest"),
                    .coordinates = call.text("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel"),
                    .nearest = call.text("nearest_mode", is_old ? "floor" : "round_prefer_floor"),
                    .cubic = call.number("cubic_coeff_a", -0.75),
                    .excludes_outside = call.integer("exclude_outside", 0) != 0,
                    .is_antialiased = call.integer("antialias", 0) != 0};
  const int scales_at = is_old ? 1 : 2;
  std::vector<double> scales;
  std::vector<std::int64_t> sizes;
  if (call.has(scales_at)) scales = call.numbers(scales_at);
  if (call.has(3)) sizes = call.integers(3);
  // An operand without elements is one that is left out.
  if (scales.empty() == sizes.empty()) throw Malformed{"it has not one of scales and sizes"};
  std::vector<std::int64_t> order;
  for (int d = 0; d < call.rank(0); ++d) order.push_back(d);
  order = call.list("axes").value_or(order);
  (void)call.axes(order, call.rank(0));
  if (std::max(scales.size(), sizes.size()) != order.size())
    throw Malformed{"its scales or sizes do not fit its input"};
  const auto extent = [&](std::size_t a) {
    return float(call.shape(0)[std::size_t(call.axis(order[a], call.rank(0)))]);
  };
  if (!sizes.empty() && policy != "stretch") {  // one scale for all
    for (std::size_t a = 0; a < order.size(); ++a) scales.push_back(float(sizes[a]) / extent(a));
    const double scale = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                                : *std::max_element(scales.begin(), scales.end());
    if (!(scale > 0 && scale <= double(most))) throw Malformed{fmt::format("a scale is {}", scale)};
    scales.assign(order.size(), scale);
    for (std::size_t a = 0; a < order.size(); ++a) sizes[a] = std::int64_t(std::round(float(scale) * extent(a)));
  }
  if (settings.coordinates == "tf_crop_and_resize") {
    const std::vector<double> parts = call.numbers(1);
    if (parts.size() != 2 * order.size()) throw Malformed{"its roi does not fit its input"};
    settings.outside = call.number("extrapolation_value", 0);
    settings.begins.assign(call.shape(0).size(), 0);
    settings.ends.assign(call.shape(0).size(), 1);
    for (std::size_t a = 0; a < order.size(); ++a) {
      const std::size_t d = std::size_t(call.axis(order[a], call.rank(0)));
      settings.begins[d] = parts[a];
      settings.ends[d] = parts[order.size() + a];
    }
  }
  std::vector<double> all_scales(scales.empty() ? 0 : call.shape(0).size(), 1);
  std::vector<std::int64_t> all_sizes = sizes.empty() ? sizes : call.shape(0);
  for (std::size_t a = 0; a < order.size(); ++a) {
    const std::size_t d = std::size_t(call.axis(order[a], call.rank(0)));
    if (!scales.empty()) all_scales[d] = scales[a];
    if (!sizes.empty()) all_sizes[d] = sizes[a];
  }
  return resized(call, settings, all_scales, all_sizes);
}

Meaning upsample(const Call& call) {
  std::vector<double> scales =
      call.version() < 9 ? call.number_list("scales").value_or(std::vector<double>()) : call.numbers(1);
  if (scales.size() != call.shape(0).size()) throw Malformed{"its scales do not fit its input"};
  return resized(call, {.mode = call.text("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"}, scales,
                 {});
}

}  // namespace

std::vector<Row> resize_rows() {
  return {
      {"Resize", 1, 4,
       "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
       "keep_aspect_ratio_policy mode nearest_mode",
       resize},
      {"Upsample", 1, 2, "mode scales", upsample},
  };
}

}  // namespace graft::graph
