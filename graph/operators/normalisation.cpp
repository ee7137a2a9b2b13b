// Softmax and normalisations: statistics over some axes, then each element by them.
#include <algorithm>
#include <string>
#include <utility>

#include "graph/operators/call.h"

namespace graft::graph {
namespace {

// Over one axis from version 13 on, over all from `axis` on before.
Meaning softmax_of(const Call& call, bool is_logarithm) {
  const bool is_flat = call.version() < 13;
  const int axis = call.axis(call.integer("axis", is_flat ? 1 : -1), call.rank(0));
  const Axes axes = axes_over(call.shape(0));
  Axes kept, reduced;
  Index index = index_of(axes);
  for (int d = 0; d < int(axes.size()); ++d) {
    if (d != axis && !(is_flat && d > axis)) {
      kept.push_back(axes[std::size_t(d)]);
      continue;
    }
    reduced.push_back({fmt::format("r{}", d), axes[std::size_t(d)].extent});
    index[std::size_t(d)] = reduced.back().name;
  }
  const std::string largest = load("M", index_of(kept)), total = load("S", index_of(kept));
  Expression expression(call);
  const DType type = call.type(0);
  expression.stage("M", type, kept, expression.operand(0, index), "max=", reduced);
  if (is_logarithm) {
    expression.stage("S", type, kept, fmt::format("exp({} - {})", expression.operand(0, index), largest),
                     "+=", reduced);
    expression.stage("y", type, axes,
                     fmt::format("{} - {} - log({})", expression.operand(0, index_of(axes)), largest, total));
  } else {
    expression.stage("E", type, axes, fmt::format("exp({} - {})", expression.operand(0, index_of(axes)), largest));
    expression.stage("S", type, kept, load("E", index), "+=", reduced);
    expression.stage("y", type, axes, fmt::format("{} / {}", load("E", index_of(axes)), total));
  }
  return {expression.result(type, call.shape(0))};
}
Meaning softmax(const Call& call) {
  return softmax_of(call, false);
}
Meaning log_softmax(const Call& call) {
  return softmax_of(call, true);
}

void check_channels(const Call& call, int first, int last, std::int64_t channels) {
  for (int number = first; number <= last; ++number)
    if (call.shape(number) != Shape{channels})
      throw Malformed{
          fmt::format("operand {} is {}, its input has {} channels", number, to_text(call.shape(number)), channels)};
}

std::int64_t channels_of(const Call& call) {
  if (call.rank(0) < 2) throw Malformed{fmt::format("its input {} has no channels", to_text(call.shape(0)))};
  return call.shape(0)[1];
}

Meaning batch_normalisation(const Call& call) {
  if (call.integer("training_mode", 0) != 0) throw Unsupported{"training_mode"};
  if (call.version() < 9 && call.integer("spatial", 1) == 0) throw Unsupported{"spatial=0"};
  for (int result = 1; result < 5; ++result) call.refuse_result(result, "statistics");
  check_channels(call, 1, 4, channels_of(call));
  const Axes axes = axes_over(call.shape(0));
  Expression expression(call);
  const auto of_channel = [&](int number) { return expression.operand(number, {"i1"}); };
  const std::string x = expression.operand(0, index_of(axes)), scale = of_channel(1), shift = of_channel(2);
  const std::string mean = of_channel(3);
  Result result = element_wise(expression, call.type(0), call.shape(0),
                               fmt::format("({} - {}) * ({} / sqrt({} + {})) + {}", x, mean, scale, of_channel(4),
                                           number_text(call.number("epsilon", double(1e-5f))), shift));
  return Meaning(std::size_t(std::max(1, call.results())), result);
}

// x minus its mean, over the root of its variance: stages D, and V, the sum of its squares, over `reduced`.
void centred(Expression& expression, DType type, const Axes& axes, const Axes& kept, const Axes& reduced,
             const std::string& x, const std::string& x_reduced, const Index& reduced_index, std::int64_t count) {
  expression.stage("S", type, kept, x_reduced, "+=", reduced);
  expression.stage("D", type, axes, fmt::format("{} - {} / {}", x, load("S", index_of(kept)), count));
  const std::string difference = load("D", reduced_index);
  expression.stage("V", type, kept, fmt::format("{0} * {0}", difference), "+=", reduced);
}

std::string normalised(const Axes& axes, const Axes& kept, std::int64_t count, double epsilon) {
  return fmt::format("{} / sqrt({} / {} + {})", load("D", index_of(axes)), load("V", index_of(kept)), count,
                     number_text(epsilon));
}

Meaning layer_normalisation(const Call& call) {
  if (call.integer("stash_type", 1) != 1) throw Unsupported{"stash_type"};
  const int axis = call.axis(call.integer("axis", -1), call.rank(0));
  const Axes axes = axes_over(call.shape(0));
  const Axes kept(axes.begin(), axes.begin() + axis);
  Axes reduced;
  Index index = index_of(axes);
  for (std::size_t d = std::size_t(axis); d < axes.size(); ++d) {
    reduced.push_back({fmt::format("r{}", d), axes[d].extent});
    index[d] = reduced.back().name;
  }
  for (int number = 1; number < 3; ++number)
    if (call.has(number) && broadcast({call.shape(0), call.shape(number)}) != call.shape(0))
      throw Malformed{
          fmt::format("operand {} is {}, its input {}", number, to_text(call.shape(number)), to_text(call.shape(0)))};
  const std::int64_t count = product(call.shape(0), std::size_t(axis), axes.size());
  const double epsilon = call.number("epsilon", double(1e-5f));
  const auto begun = [&] {
    Expression expression(call);
    centred(expression, call.type(0), axes, kept, reduced, expression.operand(0, index_of(axes)),
            expression.operand(0, index), index, count);
    return expression;
  };
  Expression expression = begun();
  std::string value = fmt::format("{} * {}", normalised(axes, kept, count, epsilon), expression.broadcast(1, axes));
  if (call.has(2)) value += fmt::format(" + {}", expression.broadcast(2, axes));
  expression.stage("y", call.type(0), axes, value);
  Meaning results = {expression.result(call.type(0), call.shape(0))};

  // The statistics, which have extents of 1 in place of those that they are over.
  Shape shape = call.shape(0);
  std::fill(shape.begin() + axis, shape.end(), 1);
  Expression mean(call);
  mean.stage("S", call.type(0), kept, mean.operand(0, index), "+=", reduced);
  mean.stage("y", call.type(0), axes_over(shape), fmt::format("{} / {}", load("S", index_of(kept)), count));
  results.push_back(mean.result(call.type(0), shape));
  Expression deviation = begun();
  deviation.stage("y", call.type(0), axes_over(shape),
                  fmt::format("1 / sqrt({} / {} + {})", load("V", index_of(kept)), count, number_text(epsilon)));
  results.push_back(deviation.result(call.type(0), shape));
  return results;
}

// Statistics over all but batch and groups of channels; `by_channel`: scale and shift of each channel, else each group.
Meaning normalised_groups(const Call& call, std::int64_t groups, bool by_channel) {
  const std::int64_t channels = channels_of(call);
  if (groups < 1 || channels % groups != 0) throw Malformed{fmt::format("{} channels in {} groups", channels, groups)};
  check_channels(call, 1, 2, by_channel ? channels : groups);
  const std::int64_t each = channels / groups;
  const Shape& shape = call.shape(0);
  const Axes spatial = axes_over({shape.begin() + 2, shape.end()}, "y");
  const Axes kept = {{"b", shape[0]}, {"g", groups}};
  Axes axes = kept, reduced = {{"q", each}};
  axes.push_back({"c", each});
  const auto channel = [&](const std::string& within) { return fmt::format("{} + {}", form(each, "g"), within); };
  Index index = {"b", channel("c")}, reduced_x = {"b", channel("q")}, reduced_index = {"b", "g", "q"};
  for (std::size_t d = 0; d < spatial.size(); ++d) {
    axes.push_back(spatial[d]);
    reduced.push_back({fmt::format("r{}", d), spatial[d].extent});
    index.push_back(spatial[d].name);
    reduced_x.push_back(reduced.back().name);
    reduced_index.push_back(reduced.back().name);
  }
  const std::int64_t count = each * product(shape, 2, shape.size());
  Expression expression(call);
  centred(expression, call.type(0), axes, kept, reduced, expression.operand(0, index), expression.operand(0, reduced_x),
          reduced_index, count);
  const Index of = {by_channel ? channel("c") : "g"};
  const std::string scale = expression.operand(1, of);
  expression.stage("y", call.type(0), axes,
                   fmt::format("{} * {} + {}", normalised(axes, kept, count, call.number("epsilon", double(1e-5f))),
                               scale, expression.operand(2, of)),
                   "=", {}, index);
  return {expression.result(call.type(0), shape)};
}

// One where the largest element is, the first of several; over one axis, or all from `axis` on before version 13.
Meaning hardmax(const Call& call) {
  const bool is_flat = call.version() < 13;
  const int axis = call.axis(call.integer("axis", is_flat ? 1 : -1), call.rank(0));
  const Axes axes = axes_over(call.shape(0));
  Axes kept, reduced;
  Index index = index_of(axes);
  std::string place, reduced_place;  // in the order of memory
  std::int64_t count = 1;
  for (int d = int(axes.size()) - 1; d >= 0; --d) {
    const Axis& one = axes[std::size_t(d)];
    if (d != axis && !(is_flat && d > axis)) {
      kept.insert(kept.begin(), one);
      continue;
    }
    reduced.insert(reduced.begin(), {fmt::format("r{}", d), one.extent});
    index[std::size_t(d)] = reduced.front().name;
    place = form(count, one.name) + (place.empty() ? "" : " + " + place);
    reduced_place = form(count, reduced.front().name) + (reduced_place.empty() ? "" : " + " + reduced_place);
    count *= one.extent;
  }
  Expression expression(call);
  const std::string x = expression.operand(0, index);
  expression.stage("M", call.type(0), kept, x, "max=", reduced);
  expression.stage("A", DType::i32, kept,
                   fmt::format("select({} == {}, {}, {})", x, load("M", index_of(kept)), reduced_place, count),
                   "min=", reduced);
  return {element_wise(expression, call.type(0), call.shape(0),
                       fmt::format("select({} == {}, 1, 0)", load("A", index_of(kept)), place))};
}

Meaning instance_normalisation(const Call& call) {
  return normalised_groups(call, channels_of(call), true);
}

Meaning group_normalisation(const Call& call) {
  if (call.integer("stash_type", 1) != 1) throw Unsupported{"stash_type"};
  return normalised_groups(call, call.integer("num_groups", 0), call.version() >= 21);
}

// By the squares of `size` neighbouring channels.
Meaning local_response(const Call& call) {
  channels_of(call);
  const std::int64_t size = call.integer("size", 0);
  if (size < 1 || size > (1 << 20)) throw Malformed{fmt::format("size is {}", size)};
  const Axes axes = axes_over(call.shape(0));
  Index index = index_of(axes);
  index[1] = fmt::format("i1 + r - {}", (size - 1) / 2);
  Expression expression(call);
  const std::string x = fmt::format("pad({})", expression.operand(0, index));
  expression.stage("S", call.type(0), axes, fmt::format("{0} * {0}", x), "+=", {{"r", size}});
  return {element_wise(
      expression, call.type(0), call.shape(0),
      fmt::format("{} / pow({} + {} * {}, {})", expression.operand(0, index_of(axes)),
                  number_text(call.number("bias", 1)), number_text(call.number("alpha", double(1e-4f)) / double(size)),
                  load("S", index_of(axes)), number_text(call.number("beta", 0.75))))};
}

}  // namespace

std::vector<Row> normalisation_rows() {
  return {
      {"Softmax", 1, 1, "axis", softmax},
      {"LogSoftmax", 1, 1, "axis", log_softmax},
      {"Hardmax", 1, 1, "axis", hardmax},
      {"BatchNormalization", 5, 5, "epsilon momentum spatial training_mode", batch_normalisation},
      {"LayerNormalization", 2, 3, "axis epsilon stash_type", layer_normalisation},
      {"InstanceNormalization", 3, 3, "epsilon", instance_normalisation},
      {"GroupNormalization", 3, 3, "epsilon num_groups stash_type", group_normalisation},
      {"LRN", 1, 1, "alpha beta bias size", local_response},
  };
}

}  // namespace graft::graph
