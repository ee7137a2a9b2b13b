#include "bench/shapes.h"

#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace graft::bench {
namespace {

using namespace codegen;
using Shape = std::vector<std::int64_t>;

// The axis that an index is, or -1.
int axis_of(const Affine& index, int axes) {
  for (int axis = 0; axis < axes; ++axis) {
    if (index == Affine::variable(axis)) return axis;
  }
  return -1;
}

// Whether the access is T[batch..., first, second].
bool reads(const Access& access, int batch_axes, int axes, int first, int second) {
  if (access.padded || int(access.index.size()) != batch_axes + 2) return false;
  for (int d = 0; d < batch_axes; ++d) {
    if (axis_of(access.index[std::size_t(d)], axes) != d) return false;
  }
  return axis_of(access.index[std::size_t(batch_axes)], axes) == first &&
         axis_of(access.index[std::size_t(batch_axes) + 1], axes) == second;
}

// name(key=value,...) -> values that are whole numbers; empty for an index expression.
std::map<std::string, std::int64_t, std::less<>> parameters_of(std::string_view text) {
  std::map<std::string, std::int64_t, std::less<>> values;
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return values;
  for (const std::string_view part : base::split(text.substr(open + 1, text.size() - open - 2), ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return {};
    const std::string_view number = part.substr(equals + 1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc() && end == number.data() + number.size()) values.emplace(part.substr(0, equals), value);
  }
  return values;
}

}  // namespace

std::optional<MatrixProduct> matrix_product(const Computation& computation) {
  if (computation.stages.size() != 1) return std::nullopt;
  const Stage& stage = computation.stages[0];
  const int axes = int(stage.axes.size()), batch_axes = axes - 3;
  if (stage.combine != Combine::sum || batch_axes < 0 || batch_axes > 1 || computation.spatial_axes(stage) != axes - 1)
    return std::nullopt;
  const Value& value = stage.value;
  if (value.nodes.size() != 3 || value.loads.size() != 2 || value.root().op != Op::mul) return std::nullopt;
  const int i = batch_axes, j = i + 1, l = j + 1;
  for (const auto& [first, second] : {std::pair(0, 1), std::pair(1, 0)}) {
    const Access &a = value.loads[std::size_t(first)], &b = value.loads[std::size_t(second)];
    const bool a_plain = reads(a, batch_axes, axes, i, l), a_turned = reads(a, batch_axes, axes, l, i);
    const bool b_plain = reads(b, batch_axes, axes, l, j), b_turned = reads(b, batch_axes, axes, j, l);
    if (!(a_plain || a_turned) || !(b_plain || b_turned)) continue;
    const auto extent = [&](int axis) { return stage.axes[std::size_t(axis)].extent; };
    const MatrixProduct product{batch_axes == 1 ? extent(0) : 1,
                                extent(i),
                                extent(j),
                                extent(l),
                                a.tensor,
                                b.tensor,
                                stage.tensor,
                                a_turned,
                                b_turned};
    // A part of a larger matrix would need its pitch.
    const std::int64_t taken = product.batch * product.k;
    if (computation.tensors[std::size_t(a.tensor)].elements() == taken * product.m &&
        computation.tensors[std::size_t(b.tensor)].elements() == taken * product.n)
      return product;
  }
  return std::nullopt;
}

std::optional<Convolution> convolution(const Workload& workload) {
  const auto values = parameters_of(workload.text());
  const auto value = [&](std::string_view name, std::int64_t otherwise) {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  };
  for (const char* needed : {"c", "h", "w", "r", "s"}) {
    if (!values.contains(needed)) return std::nullopt;
  }
  Convolution conv{.n = value("n", 1),
                   .c = values.at("c"),
                   .h = values.at("h"),
                   .w = values.at("w"),
                   .r = values.at("r"),
                   .s = values.at("s"),
                   .stride = value("stride", 1),
                   .pad = value("pad", 0),
                   .dilation = value("dilation", 1),
                   .block = value("block", 1)};
  const bool depthwise = !values.contains("k");
  conv.k = depthwise ? conv.c : values.at("k");
  conv.groups = depthwise ? conv.c : value("groups", 1);
  const std::int64_t group_c = conv.c / conv.groups;

  // The layouts that the text means; operators with other layouts are not recognised here.
  const bool blocked = conv.block > 1;
  Shape x{conv.n, conv.c / conv.block, conv.h, conv.w}, y{conv.n, conv.k / conv.block, conv.out_h(), conv.out_w()}, w;
  if (depthwise) {
    w = {conv.c / conv.block, conv.r, conv.s};
  } else if (blocked) {
    w = {conv.k / conv.block, group_c / conv.block, conv.r, conv.s, conv.block};
  } else {
    w = {conv.k, group_c, conv.r, conv.s};
  }
  if (blocked) {
    for (Shape* shape : {&x, &y, &w}) shape->push_back(conv.block);
  }
  const Computation computation = workload.computation();
  std::vector<Shape> shapes;
  for (const Tensor& tensor : computation.tensors) {
    if (tensor.role != Role::temporary) shapes.push_back(tensor.shape);
  }
  if (shapes == std::vector<Shape>{x, w, y}) return conv;
  conv.channels_last = true;
  const Shape x_last{conv.n, conv.h, conv.w, conv.c}, y_last{conv.n, conv.out_h(), conv.out_w(), conv.k};
  Shape w_last{conv.r, conv.s, conv.c};
  if (!depthwise) w_last.push_back(conv.k);
  if (blocked || (conv.groups > 1 && !depthwise) || shapes != std::vector<Shape>{x_last, w_last, y_last})
    return std::nullopt;
  return conv;
}

}  // namespace graft::bench
