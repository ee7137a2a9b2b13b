#include "tests/graph/support/naive.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace graft::graph {
namespace {

using Place = std::vector<std::int64_t>;

std::int64_t count_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t(1), std::multiplies<>());
}

void for_each(const Shape& shape, const std::function<void(const Place&)>& visit) {
  Place at(shape.size(), 0);
  for (std::int64_t e = 0, all = count_of(shape); e < all; ++e) {
    std::int64_t rest = e;
    for (std::size_t d = shape.size(); d-- > 0;) at[d] = rest % shape[d], rest /= shape[d];
    visit(at);
  }
}

std::size_t offset(const Shape& shape, const Place& at) {
  std::int64_t result = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) result = result * shape[d] + at[d];
  return std::size_t(result);
}

double get(const Naive& x, const Place& at) {
  return x.numbers.at(offset(x.shape, at));
}

Naive made(const Shape& shape, const std::function<double(const Place&)>& f) {
  Naive y{shape, {}};
  for_each(shape, [&](const Place& at) { y.numbers.push_back(f(at)); });
  return y;
}

// x as if it had the shape of which `at` is a place.
double broadcast(const Naive& x, const Place& at) {
  Place own(x.shape.size());
  for (std::size_t d = 0; d < own.size(); ++d) own[d] = x.shape[d] == 1 ? 0 : at[at.size() - own.size() + d];
  return get(x, own);
}

Shape common(const std::vector<Naive>& all) {
  Shape shape;
  for (const Naive& x : all) {
    if (x.shape.size() > shape.size()) shape.insert(shape.begin(), x.shape.size() - shape.size(), 1);
    for (std::size_t d = 1; d <= x.shape.size(); ++d) {
      std::int64_t& extent = shape[shape.size() - d];
      extent = std::max(extent, x.shape[x.shape.size() - d]);
    }
  }
  return shape;
}

// A node with the tensors that it takes.
struct Step {
  const Node& node;
  int version = 0;
  std::vector<const Naive*> operands;  // nullptr: left out

  bool has(std::size_t o) const { return o < operands.size() && operands[o] != nullptr; }
  const Naive& x(std::size_t o = 0) const { return *operands.at(o); }
  Place whole(std::size_t o) const {
    Place all;
    for (const double number : x(o).numbers) all.push_back(std::int64_t(std::clamp(number, -0x1p60, 0x1p60)));
    return all;
  }
  template <class T>
  T get(const std::string& name, T otherwise) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? otherwise : std::get<T>(found->second);
  }
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const { return get(name, otherwise); }
  double number(const std::string& name, double otherwise) const { return get(name, otherwise); }
  std::string text(const std::string& name, const std::string& otherwise) const { return get(name, otherwise); }
  Place list(const std::string& name, const Place& otherwise) const { return get(name, otherwise); }
  // An operand, or an attribute in older versions.
  Place given(const std::string& name) const { return has(1) ? whole(1) : list(name, {}); }
  std::size_t axis(std::int64_t given) const {
    return std::size_t(given < 0 ? given + std::int64_t(x().shape.size()) : given);
  }
};

Naive mapped(const Step& s, const std::function<double(double)>& f) {
  Naive y = s.x();
  for (double& each : y.numbers) each = f(each);
  return y;
}

Naive folded_pairs(const Step& s, const std::function<double(double, double)>& f) {
  std::vector<Naive> all;
  for (const Naive* operand : s.operands) all.push_back(*operand);
  return made(common(all), [&](const Place& at) {
    double value = broadcast(all[0], at);
    for (std::size_t i = 1; i < all.size(); ++i) value = f(value, broadcast(all[i], at));
    return value;
  });
}

struct Windows {
  Place kernel, strides, dilations, begins, ends, outputs;
};

Windows windows(const Step& s, const Place& kernel) {
  const std::size_t n = kernel.size();
  Windows w{kernel, s.list("strides", Place(n, 1)), s.list("dilations", Place(n, 1)), Place(n, 0), Place(n, 0), {}};
  const std::string automatic = s.text("auto_pad", "NOTSET");
  const Place pads = s.list("pads", Place(2 * n, 0));
  for (std::size_t d = 0; d < n; ++d) {
    const std::int64_t extent = s.x().shape[d + 2], reach = (w.kernel[d] - 1) * w.dilations[d] + 1;
    if (automatic.starts_with("SAME")) {
      const std::int64_t wanted = (extent + w.strides[d] - 1) / w.strides[d];
      const std::int64_t total = std::max<std::int64_t>(0, (wanted - 1) * w.strides[d] + reach - extent);
      w.begins[d] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.ends[d] = total - w.begins[d];
    } else if (automatic == "NOTSET") {
      w.begins[d] = pads[d], w.ends[d] = pads[n + d];
    }
    const std::int64_t room = extent + w.begins[d] + w.ends[d] - reach;
    std::int64_t outputs = room / w.strides[d] + 1;
    if (s.integer("ceil_mode", 0) != 0 && room % w.strides[d] != 0 &&
        outputs * w.strides[d] < extent + w.begins[d])  // one that begins in the end padding is left out
      ++outputs;
    w.outputs.push_back(outputs);
  }
  return w;
}

Naive convolution(const Step& s) {
  const Naive &x = s.x(), &k = s.x(1);
  const Windows w = windows(s, Place(k.shape.begin() + 2, k.shape.end()));
  const std::int64_t groups = s.integer("group", 1), each = k.shape[0] / groups;
  Shape shape = {x.shape[0], k.shape[0]};
  shape.insert(shape.end(), w.outputs.begin(), w.outputs.end());
  return made(shape, [&](const Place& at) {
    double sum = s.has(2) ? s.x(2).numbers[std::size_t(at[1])] : 0;
    Shape inner = k.shape;
    inner[0] = 1;
    for_each(inner, [&](const Place& in) {
      Place from = {at[0], at[1] / each * k.shape[1] + in[1]}, of = in;
      of[0] = at[1];
      for (std::size_t d = 0; d < w.kernel.size(); ++d) {
        from.push_back(at[d + 2] * w.strides[d] + in[d + 2] * w.dilations[d] - w.begins[d]);
        if (from.back() < 0 || from.back() >= x.shape[d + 2]) return;
      }
      sum += get(x, from) * get(k, of);
    });
    return sum;
  });
}

Naive transposed_convolution(const Step& s) {
  const Naive &x = s.x(), &k = s.x(1);
  const std::size_t n = k.shape.size() - 2;
  const Windows w = windows(s, Place(k.shape.begin() + 2, k.shape.end()));
  const Place more = s.list("output_padding", Place(n, 0));
  const std::int64_t groups = s.integer("group", 1), each = x.shape[1] / groups;
  Shape shape = {x.shape[0], k.shape[1] * groups};
  for (std::size_t d = 0; d < n; ++d)
    shape.push_back((x.shape[d + 2] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 + more[d] -
                    w.begins[d] - w.ends[d]);
  Naive y = made(shape, [&](const Place& at) { return s.has(2) ? s.x(2).numbers[std::size_t(at[1])] : 0.0; });
  for_each(x.shape, [&](const Place& at) {
    Shape inner = k.shape;
    inner[0] = 1;
    for_each(inner, [&](const Place& in) {
      Place to = {at[0], at[1] / each * k.shape[1] + in[1]}, of = in;
      of[0] = at[1];
      for (std::size_t d = 0; d < n; ++d) {
        to.push_back(at[d + 2] * w.strides[d] + in[d + 2] * w.dilations[d] - w.begins[d]);
        if (to.back() < 0 || to.back() >= shape[d + 2]) return;
      }
      y.numbers[offset(shape, to)] += get(x, at) * get(k, of);
    });
  });
  return y;
}

Naive pooled(const Step& s, bool is_mean) {
  const Naive& x = s.x();
  const Windows w = windows(s, s.list("kernel_shape", {}));
  Shape shape = {x.shape[0], x.shape[1]};
  shape.insert(shape.end(), w.outputs.begin(), w.outputs.end());
  return made(shape, [&](const Place& at) {
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    std::int64_t inside = 0, with_pads = 0;
    for_each(w.kernel, [&](const Place& in) {
      Place from = {at[0], at[1]};
      bool is_inside = true, is_padded = true;
      for (std::size_t d = 0; d < w.kernel.size(); ++d) {
        from.push_back(at[d + 2] * w.strides[d] + in[d] * w.dilations[d] - w.begins[d]);
        is_inside = is_inside && from.back() >= 0 && from.back() < x.shape[d + 2];
        is_padded = is_padded && from.back() < x.shape[d + 2] + w.ends[d];
      }
      with_pads += is_padded;
      if (!is_inside) return;
      ++inside;
      sum += get(x, from);
      largest = std::max(largest, get(x, from));
    });
    if (!is_mean) return largest;
    return sum / double(s.integer("count_include_pad", 0) != 0 ? with_pads : inside);
  });
}

// y[at] = f(all of x that has the same place but on the axes).
Naive reduced(const Naive& x, const Place& axes, bool keeps,
              const std::function<double(const std::vector<double>&)>& f) {
  const auto is_reduced = [&](std::size_t d) {
    return std::find(axes.begin(), axes.end(), std::int64_t(d)) != axes.end();
  };
  Shape kept = x.shape, inner = x.shape, shape;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    (is_reduced(d) ? kept : inner)[d] = 1;
    if (keeps || !is_reduced(d)) shape.push_back(kept[d]);
  }
  Naive y = made(kept, [&](const Place& at) {
    std::vector<double> all;
    for_each(inner, [&](const Place& in) {
      Place from = at;
      for (std::size_t d = 0; d < from.size(); ++d) from[d] += in[d];
      all.push_back(get(x, from));
    });
    return f(all);
  });
  y.shape = shape;
  return y;
}

double sum_of(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0);
}
double mean_of(const std::vector<double>& all) {
  return sum_of(all) / double(all.size());
}

Naive reduction(const Step& s) {
  Place axes = s.given("axes");
  for (std::int64_t& axis : axes) axis = std::int64_t(s.axis(axis));
  if (axes.empty())
    for (std::size_t d = 0; d < s.x().shape.size(); ++d) axes.push_back(std::int64_t(d));
  const std::string kind = s.node.operation.substr(6);
  return reduced(s.x(), axes, s.integer("keepdims", 1) != 0, [&](const std::vector<double>& all) {
    double squares = 0, absolute = 0, powers = 0, product = 1;
    for (const double each : all)
      squares += each * each, absolute += std::abs(each), powers += std::exp(each), product *= each;
    if (kind == "Sum") return sum_of(all);
    if (kind == "Mean") return mean_of(all);
    if (kind == "Max") return *std::max_element(all.begin(), all.end());
    if (kind == "Min") return *std::min_element(all.begin(), all.end());
    if (kind == "L1") return absolute;
    if (kind == "L2") return std::sqrt(squares);
    if (kind == "SumSquare") return squares;
    if (kind == "LogSumExp") return std::log(powers);
    if (kind == "Prod") return product;
    throw std::logic_error("naive: " + s.node.operation);
  });
}

Naive softmax(const Step& s, bool is_log) {
  const std::size_t axis = s.axis(s.integer("axis", -1));
  Place axes = {std::int64_t(axis)};
  for (std::size_t d = axis + 1; s.version < 13 && d < s.x().shape.size(); ++d) axes.push_back(std::int64_t(d));
  const Naive largest = reduced(
      s.x(), axes, true, [](const std::vector<double>& all) { return *std::max_element(all.begin(), all.end()); });
  const Naive x = made(s.x().shape, [&](const Place& at) { return get(s.x(), at) - broadcast(largest, at); });
  const Naive sums = reduced(x, axes, true, [](const std::vector<double>& all) {
    double sum = 0;
    for (const double each : all) sum += std::exp(each);
    return sum;
  });
  return made(x.shape, [&](const Place& at) {
    const double sum = broadcast(sums, at);
    return is_log ? get(x, at) - std::log(sum) : std::exp(get(x, at)) / sum;
  });
}

// (x - mean) / sqrt(variance + epsilon) over the axes.
Naive normalised(const Step& s, const Place& axes) {
  const Naive& x = s.x();
  const double epsilon = s.number("epsilon", 1e-5);
  const Naive means = reduced(x, axes, true, mean_of);
  const Naive variances = reduced(x, axes, true, [](const std::vector<double>& all) {
    double sum = 0;
    for (const double each : all) sum += (each - mean_of(all)) * (each - mean_of(all));
    return sum / double(all.size());
  });
  return made(x.shape, [&](const Place& at) {
    return (get(x, at) - broadcast(means, at)) / std::sqrt(broadcast(variances, at) + epsilon);
  });
}

Naive product(const Naive& a, const Naive& b) {
  Naive x = a, y = b;
  if (a.shape.size() == 1) x.shape.insert(x.shape.begin(), 1);
  if (b.shape.size() == 1) y.shape.push_back(1);
  const auto batch = [](const Naive& m) { return Naive{Shape(m.shape.begin(), m.shape.end() - 2), {}}; };
  Shape shape = common({batch(x), batch(y)});
  const std::size_t batches = shape.size();
  shape.push_back(x.shape[x.shape.size() - 2]);
  shape.push_back(y.shape.back());
  Naive result = made(shape, [&](const Place& at) {
    double sum = 0;
    for (std::int64_t l = 0; l < x.shape.back(); ++l) {
      Place left(at.begin(), at.begin() + std::ptrdiff_t(batches)), right = left;
      left.push_back(at[batches]), left.push_back(l);
      right.push_back(l), right.push_back(at[batches + 1]);
      sum += broadcast(x, left) * broadcast(y, right);
    }
    return sum;
  });
  if (b.shape.size() == 1) result.shape.pop_back();
  if (a.shape.size() == 1) result.shape.erase(result.shape.end() - (b.shape.size() == 1 ? 1 : 2));
  return result;
}

Naive gemm(const Step& s) {
  const auto turned = [](const Naive& m) {
    return made({m.shape[1], m.shape[0]}, [&](const Place& at) { return get(m, {at[1], at[0]}); });
  };
  const Naive a = s.integer("transA", 0) != 0 ? turned(s.x()) : s.x();
  const Naive b = s.integer("transB", 0) != 0 ? turned(s.x(1)) : s.x(1);
  const Naive y = product(a, b);
  return made(y.shape, [&](const Place& at) {
    return s.number("alpha", 1) * get(y, at) + (s.has(2) ? s.number("beta", 1) * broadcast(s.x(2), at) : 0);
  });
}

Naive einstein(const Step& s) {
  const std::string equation = s.text("equation", "");
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string terms[] = {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1)};
  const std::string to = equation.substr(arrow + 2);
  std::map<char, std::int64_t> extents;
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t d = 0; d < terms[t].size(); ++d) extents[terms[t][d]] = s.x(t).shape[d];
  std::string reduced_axes;
  for (const auto& [axis, extent] : extents)
    if (to.find(axis) == std::string::npos) reduced_axes += axis;
  Shape shape, inner;
  for (const char axis : to) shape.push_back(extents[axis]);
  for (const char axis : reduced_axes) inner.push_back(extents[axis]);
  return made(shape, [&](const Place& at) {
    double sum = 0;
    for_each(inner, [&](const Place& in) {
      const auto place = [&](char axis) {
        const std::size_t kept = to.find(axis);
        return kept != std::string::npos ? at[kept] : in[reduced_axes.find(axis)];
      };
      Place left, right;
      for (const char axis : terms[0]) left.push_back(place(axis));
      for (const char axis : terms[1]) right.push_back(place(axis));
      sum += get(s.x(), left) * get(s.x(1), right);
    });
    return sum;
  });
}

Naive reshaped(Naive x, Shape shape) {
  std::int64_t others = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) shape[d] = x.shape[d];
    if (shape[d] != -1) others *= shape[d];
  }
  for (std::int64_t& extent : shape)
    if (extent == -1) extent = std::int64_t(x.numbers.size()) / others;
  x.shape = shape;
  return x;
}

Naive slice(const Step& s) {
  const Naive& x = s.x();
  const Place starts = s.whole(1), ends = s.whole(2), axes = s.whole(3), steps = s.whole(4);
  Shape shape = x.shape;
  Place begins(shape.size(), 0), strides(shape.size(), 1);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::size_t d = s.axis(axes[a]);
    const auto within = [&](double at, double low, double high) {
      return std::int64_t(std::clamp(at < 0 ? at + double(x.shape[d]) : at, low, high));
    };
    const double extent = double(x.shape[d]);
    const bool is_back = steps[a] < 0;
    begins[d] = is_back ? within(double(starts[a]), 0, extent - 1) : within(double(starts[a]), 0, extent);
    const std::int64_t end = is_back ? within(double(ends[a]), -1, extent - 1) : within(double(ends[a]), 0, extent);
    strides[d] = steps[a];
    shape[d] = 0;
    for (std::int64_t at = begins[d]; is_back ? at > end : at < end; at += steps[a]) ++shape[d];
  }
  return made(shape, [&](const Place& at) {
    Place from = begins;
    for (std::size_t d = 0; d < from.size(); ++d) from[d] += at[d] * strides[d];
    return get(x, from);
  });
}

Naive pad(const Step& s) {
  const Naive& x = s.x();
  const Place pads = s.whole(1);
  const std::string mode = s.text("mode", "constant");
  Shape shape = x.shape;
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] += pads[d] + pads[shape.size() + d];
  return made(shape, [&](const Place& at) {
    Place from = at;
    for (std::size_t d = 0; d < from.size(); ++d) {
      from[d] -= pads[d];
      const std::int64_t last = x.shape[d] - 1;
      if (mode == "edge") from[d] = std::clamp<std::int64_t>(from[d], 0, last);
      if (mode == "reflect" && from[d] < 0) from[d] = -from[d];
      if (mode == "reflect" && from[d] > last) from[d] = 2 * last - from[d];
      if (from[d] < 0 || from[d] > last) return s.has(2) ? s.x(2).numbers[0] : 0.0;
    }
    return get(x, from);
  });
}

Naive gather(const Step& s) {
  const Naive &x = s.x(), &indices = s.x(1);
  const std::size_t axis = s.axis(s.integer("axis", 0));
  Shape shape(x.shape.begin(), x.shape.begin() + std::ptrdiff_t(axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + std::ptrdiff_t(axis) + 1, x.shape.end());
  return made(shape, [&](const Place& at) {
    const auto first = at.begin() + std::ptrdiff_t(axis), last = first + std::ptrdiff_t(indices.shape.size());
    Place from(at.begin(), first);
    const std::int64_t index = std::int64_t(get(indices, Place(first, last)));
    from.push_back(index < 0 ? index + x.shape[axis] : index);
    from.insert(from.end(), last, at.end());
    return get(x, from);
  });
}

Naive blocks_to_space(const Step& s) {
  const Naive& x = s.x();
  const std::int64_t block = s.integer("blocksize", 1), channels = x.shape[1] / block / block;
  const bool is_crd = s.text("mode", "DCR") == "CRD";
  return made({x.shape[0], channels, x.shape[2] * block, x.shape[3] * block}, [&](const Place& at) {
    const std::int64_t p = at[2] % block, q = at[3] % block;
    const std::int64_t channel = is_crd ? (at[1] * block + p) * block + q : (p * block + q) * channels + at[1];
    return get(x, {at[0], channel, at[2] / block, at[3] / block});
  });
}

Naive space_to_blocks(const Step& s) {
  const Naive& x = s.x();
  const std::int64_t block = s.integer("blocksize", 1), channels = x.shape[1];
  return made({x.shape[0], channels * block * block, x.shape[2] / block, x.shape[3] / block}, [&](const Place& at) {
    const std::int64_t part = at[1] / channels;
    return get(x, {at[0], at[1] % channels, at[2] * block + part / block, at[3] * block + part % block});
  });
}

// Along one axis: the weights of the places that a result is made of.
std::map<std::int64_t, double> resized_from(const Step& s, std::int64_t at, double scale, std::int64_t from,
                                            std::int64_t to) {
  const std::string mode = s.text("mode", "nearest"),
                    coordinates = s.text("coordinate_transformation_mode", "half_pixel");
  double x = (double(at) + 0.5) / scale - 0.5;
  if (coordinates == "asymmetric") x = double(at) / scale;
  if (coordinates == "align_corners") x = to == 1 ? 0 : double(at) * double(from - 1) / double(to - 1);
  if (coordinates == "pytorch_half_pixel" && to <= 1) x = 0;
  const auto inside = [&](double place) { return std::int64_t(std::clamp(place, 0.0, double(from - 1))); };
  std::map<std::int64_t, double> weights;
  if (mode == "nearest") {
    const std::string rounding = s.text("nearest_mode", "round_prefer_floor");
    double place = std::floor(x + 0.5);
    if (rounding == "round_prefer_floor") place = std::ceil(x - 0.5);
    if (rounding == "floor") place = std::floor(x);
    if (rounding == "ceil") place = std::ceil(x);
    weights[inside(place)] = 1;
  } else if (mode == "linear") {
    const double left = std::floor(x), part = x - left;
    weights[inside(left)] += 1 - part;
    weights[inside(left + 1)] += part;
  } else {
    const double a = s.number("cubic_coeff_a", -0.75), left = std::floor(x);
    for (int tap = -1; tap <= 2; ++tap) {
      const double d = std::abs(x - left - tap);
      weights[inside(left + tap)] +=
          d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
  }
  return weights;
}

Naive resized(const Step& s) {
  Naive y = s.x();
  for (std::size_t d = 0; d < s.x().shape.size(); ++d) {
    const std::int64_t from = y.shape[d];
    const std::int64_t to =
        s.has(3) ? std::int64_t(s.x(3).numbers[d]) : std::int64_t(std::floor(double(from) * s.x(2).numbers[d]));
    const double scale = s.has(3) ? double(to) / double(from) : s.x(2).numbers[d];
    if (to == from && scale == 1) continue;
    Shape shape = y.shape;
    shape[d] = to;
    y = made(shape, [&](const Place& at) {
      double sum = 0;
      for (const auto& [place, weight] : resized_from(s, at[d], scale, from, to)) {
        Place in = at;
        in[d] = place;
        sum += weight * get(y, in);
      }
      return sum;
    });
  }
  return y;
}

Naive running_sum(const Step& s) {
  const Naive& x = s.x();
  const std::size_t axis = s.axis(std::int64_t(s.x(1).numbers[0]));
  const bool is_exclusive = s.integer("exclusive", 0) != 0, is_reverse = s.integer("reverse", 0) != 0;
  return made(x.shape, [&](const Place& at) {
    double sum = 0;
    Place from = at;
    for (from[axis] = 0; from[axis] < x.shape[axis]; ++from[axis]) {
      const bool is_before = is_reverse ? from[axis] > at[axis] : from[axis] < at[axis];
      if (is_before || (!is_exclusive && from[axis] == at[axis])) sum += get(x, from);
    }
    return sum;
  });
}

double sigmoid(double v) {
  return 1 / (1 + std::exp(-v));
}

// Y and the last states.
std::vector<Naive> recurrent(const Step& s, bool is_lstm) {
  const Naive &x = s.x(), &w = s.x(1), &r = s.x(2);
  const std::int64_t steps = x.shape[0], batch = x.shape[1], width = x.shape[2], directions = w.shape[0],
                     units = r.shape[2], gates = is_lstm ? 4 : 3;
  const std::string direction = s.text("direction", "forward");
  const bool is_linear_first = s.integer("linear_before_reset", 0) != 0;
  Naive y{{steps, directions, batch, units}, std::vector<double>(std::size_t(steps * directions * batch * units))};
  Naive last_h{{directions, batch, units}, std::vector<double>(std::size_t(directions * batch * units))},
      last_c = last_h;
  for (std::int64_t d = 0; d < directions; ++d) {
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<double> h(std::size_t(units), 0), c = h;
      for (std::int64_t u = 0; u < units; ++u) {
        if (s.has(5)) h[std::size_t(u)] = get(s.x(5), {d, b, u});
        if (s.has(6)) c[std::size_t(u)] = get(s.x(6), {d, b, u});
      }
      for (std::int64_t step = 0; step < steps; ++step) {
        const std::int64_t t = direction == "reverse" || d == 1 ? steps - 1 - step : step;
        const auto from_x = [&](std::int64_t gate, std::int64_t u) {
          double sum = s.has(3) ? get(s.x(3), {d, gate * units + u}) : 0;
          for (std::int64_t i = 0; i < width; ++i) sum += get(x, {t, b, i}) * get(w, {d, gate * units + u, i});
          return sum;
        };
        const auto from_h = [&](std::int64_t gate, std::int64_t u, const std::vector<double>& state, bool has_bias) {
          double sum = has_bias && s.has(3) ? get(s.x(3), {d, (gates + gate) * units + u}) : 0;
          for (std::int64_t i = 0; i < units; ++i) sum += state[std::size_t(i)] * get(r, {d, gate * units + u, i});
          return sum;
        };
        const auto gate = [&](std::int64_t number, std::int64_t u) {
          return from_x(number, u) + from_h(number, u, h, true);
        };
        std::vector<double> next(h.size()), reset(h.size());
        if (!is_lstm)
          for (std::int64_t u = 0; u < units; ++u) reset[std::size_t(u)] = sigmoid(gate(1, u)) * h[std::size_t(u)];
        for (std::int64_t u = 0; u < units; ++u) {
          const std::size_t at = std::size_t(u);
          if (is_lstm) {
            c[at] = sigmoid(gate(2, u)) * c[at] + sigmoid(gate(0, u)) * std::tanh(gate(3, u));
            next[at] = sigmoid(gate(1, u)) * std::tanh(c[at]);
          } else {
            const double z = sigmoid(gate(0, u));
            const double inner =
                is_linear_first ? sigmoid(gate(1, u)) * from_h(2, u, h, true) : from_h(2, u, reset, true);
            next[at] = (1 - z) * std::tanh(from_x(2, u) + inner) + z * h[at];
          }
        }
        h = next;
        for (std::int64_t u = 0; u < units; ++u) y.numbers[offset(y.shape, {t, d, b, u})] = h[std::size_t(u)];
      }
      for (std::int64_t u = 0; u < units; ++u) {
        last_h.numbers[offset(last_h.shape, {d, b, u})] = h[std::size_t(u)];
        last_c.numbers[offset(last_c.shape, {d, b, u})] = c[std::size_t(u)];
      }
    }
  }
  return {y, last_h, last_c};
}

std::vector<Naive> split(const Step& s) {
  const Naive& x = s.x();
  const std::size_t axis = s.axis(s.integer("axis", 0)), count = s.node.results.size();
  Place sizes = s.given("split");
  if (sizes.empty()) sizes = Place(count, x.shape[axis] / std::int64_t(count));
  std::vector<Naive> parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    Shape shape = x.shape;
    shape[axis] = size;
    parts.push_back(made(shape, [&](Place at) {
      at[axis] += begin;
      return get(x, at);
    }));
    begin += size;
  }
  return parts;
}

Naive concat(const Step& s) {
  const std::size_t axis = s.axis(s.integer("axis", 0));
  Shape shape = s.x().shape;
  shape[axis] = 0;
  for (const Naive* part : s.operands) shape[axis] += part->shape[axis];
  return made(shape, [&](Place at) {
    std::size_t part = 0;
    for (; at[axis] >= s.x(part).shape[axis]; ++part) at[axis] -= s.x(part).shape[axis];
    return get(s.x(part), at);
  });
}

Naive of_channels(const Naive& x, const std::function<double(double value, std::size_t channel)>& f) {
  return made(x.shape, [&](const Place& at) { return f(get(x, at), std::size_t(at[1])); });
}

using Meaning = std::function<std::vector<Naive>(const Step&)>;

Place spatial(const Step& s) {
  Place axes;
  for (std::size_t d = 2; d < s.x().shape.size(); ++d) axes.push_back(std::int64_t(d));
  return axes;
}

const std::map<std::string, Meaning>& meanings() {
  static const std::map<std::string, Meaning> by_name = [] {
    std::map<std::string, Meaning> table;
    const auto one = [&](const std::string& name, std::function<Naive(const Step&)> f) {
      table[name] = [f = std::move(f)](const Step& s) { return std::vector{f(s)}; };
    };
    const auto map = [&](const std::string& name, std::function<double(const Step&, double)> f) {
      one(name, [f = std::move(f)](const Step& s) { return mapped(s, [&](double v) { return f(s, v); }); });
    };
    const auto pairs = [&](const std::string& name, std::function<double(double, double)> f) {
      one(name, [f = std::move(f)](const Step& s) { return folded_pairs(s, f); });
    };
    map("Relu", [](const Step&, double v) { return std::max(v, 0.0); });
    map("Sigmoid", [](const Step&, double v) { return sigmoid(v); });
    map("Tanh", [](const Step&, double v) { return std::tanh(v); });
    map("Neg", [](const Step&, double v) { return -v; });
    map("Not", [](const Step&, double v) { return v == 0 ? 1.0 : 0.0; });
    map("Abs", [](const Step&, double v) { return std::abs(v); });
    map("Exp", [](const Step&, double v) { return std::exp(v); });
    map("Log", [](const Step&, double v) { return std::log(v); });
    map("Sqrt", [](const Step&, double v) { return std::sqrt(v); });
    map("Reciprocal", [](const Step&, double v) { return 1 / v; });
    map("Erf", [](const Step&, double v) { return std::erf(v); });
    map("Sin", [](const Step&, double v) { return std::sin(v); });
    map("Cos", [](const Step&, double v) { return std::cos(v); });
    map("Softplus", [](const Step&, double v) { return std::log1p(std::exp(v)); });
    map("Softsign", [](const Step&, double v) { return v / (1 + std::abs(v)); });
    map("Floor", [](const Step&, double v) { return std::floor(v); });
    map("Ceil", [](const Step&, double v) { return std::ceil(v); });
    map("Round", [](const Step&, double v) { return std::nearbyint(v); });
    map("Sign", [](const Step&, double v) { return double((v > 0) - (v < 0)); });
    for (const char* same : {"Identity", "Dropout", "Cast"}) map(same, [](const Step&, double v) { return v; });
    map("Gelu", [](const Step& s, double v) {
      const double inner = s.text("approximate", "none") == "tanh"
                               ? std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v))
                               : std::erf(v / std::sqrt(2.0));
      return v / 2 * (1 + inner);
    });
    map("LeakyRelu", [](const Step& s, double v) { return v < 0 ? s.number("alpha", 0.01) * v : v; });
    map("Elu", [](const Step& s, double v) { return v < 0 ? s.number("alpha", 1) * std::expm1(v) : v; });
    map("Selu", [](const Step&, double v) {
      return 1.05070102214813232421875 * (v > 0 ? v : 1.67326319217681884765625 * std::expm1(v));
    });
    map("HardSigmoid", [](const Step& s, double v) {
      return std::clamp(s.number("alpha", 0.2) * v + s.number("beta", 0.5), 0.0, 1.0);
    });
    map("HardSwish", [](const Step&, double v) { return v * std::clamp(v / 6 + 0.5, 0.0, 1.0); });
    map("Clip", [](const Step& s, double v) {
      if (s.has(1)) v = std::max(v, s.x(1).numbers[0]);
      return s.has(2) ? std::min(v, s.x(2).numbers[0]) : v;
    });
    pairs("Add", std::plus<>());
    pairs("Sum", std::plus<>());
    pairs("Sub", std::minus<>());
    pairs("Mul", std::multiplies<>());
    pairs("Div", std::divides<>());
    pairs("Max", [](double a, double b) { return std::max(a, b); });
    pairs("Min", [](double a, double b) { return std::min(a, b); });
    pairs("Pow", [](double a, double b) { return std::pow(a, b); });
    pairs("PRelu", [](double a, double b) { return a < 0 ? a * b : a; });
    pairs("Less", [](double a, double b) { return a < b ? 1.0 : 0.0; });
    pairs("LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; });
    pairs("Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; });
    pairs("GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; });
    pairs("Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; });
    one("Mean", [](const Step& s) {
      Naive y = folded_pairs(s, std::plus<>());
      for (double& each : y.numbers) each /= double(s.operands.size());
      return y;
    });
    one("Where", [](const Step& s) {
      return made(common({s.x(0), s.x(1), s.x(2)}), [&](const Place& at) {
        return broadcast(s.x(0), at) != 0 ? broadcast(s.x(1), at) : broadcast(s.x(2), at);
      });
    });
    one("Conv", convolution);
    one("ConvTranspose", transposed_convolution);
    one("MaxPool", [](const Step& s) { return pooled(s, false); });
    one("AveragePool", [](const Step& s) { return pooled(s, true); });
    one("GlobalAveragePool", [](const Step& s) { return reduced(s.x(), spatial(s), true, mean_of); });
    one("GlobalMaxPool", [](const Step& s) {
      return reduced(s.x(), spatial(s), true,
                     [](const std::vector<double>& all) { return *std::max_element(all.begin(), all.end()); });
    });
    one("BatchNormalization", [](const Step& s) {
      return of_channels(s.x(), [&](double v, std::size_t c) {
        return (v - s.x(3).numbers[c]) / std::sqrt(s.x(4).numbers[c] + s.number("epsilon", 1e-5)) * s.x(1).numbers[c] +
               s.x(2).numbers[c];
      });
    });
    one("InstanceNormalization", [](const Step& s) {
      return of_channels(normalised(s, spatial(s)),
                         [&](double v, std::size_t c) { return v * s.x(1).numbers[c] + s.x(2).numbers[c]; });
    });
    one("GroupNormalization", [](const Step& s) {
      const Shape& shape = s.x().shape;
      const std::int64_t groups = s.integer("num_groups", 1);
      Naive grouped = reshaped(s.x(), {shape[0], groups, -1});
      grouped = normalised(Step{s.node, s.version, {&grouped}}, {2});
      return of_channels(reshaped(grouped, shape),
                         [&](double v, std::size_t c) { return v * s.x(1).numbers[c] + s.x(2).numbers[c]; });
    });
    one("LayerNormalization", [](const Step& s) {
      Place axes;
      for (std::size_t d = s.axis(s.integer("axis", -1)); d < s.x().shape.size(); ++d) axes.push_back(std::int64_t(d));
      const Naive y = normalised(s, axes);
      return made(y.shape, [&](const Place& at) {
        return get(y, at) * broadcast(s.x(1), at) + (s.has(2) ? broadcast(s.x(2), at) : 0);
      });
    });
    one("MatMul", [](const Step& s) { return product(s.x(), s.x(1)); });
    one("Gemm", gemm);
    one("Einsum", einstein);
    one("Softmax", [](const Step& s) { return softmax(s, false); });
    one("LogSoftmax", [](const Step& s) { return softmax(s, true); });
    for (const char* kind : {"Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSumExp", "Prod"})
      one(std::string("Reduce") + kind, reduction);
    for (const bool is_largest : {true, false})
      one(is_largest ? "ArgMax" : "ArgMin", [is_largest](const Step& s) {
        const bool is_last = s.integer("select_last_index", 0) != 0;
        return reduced(
            s.x(), {std::int64_t(s.axis(s.integer("axis", 0)))}, s.integer("keepdims", 1) != 0,
            [&](const std::vector<double>& all) {
              std::size_t best = 0;
              for (std::size_t i = 1; i < all.size(); ++i)
                if ((is_largest ? all[i] > all[best] : all[i] < all[best]) || (is_last && all[i] == all[best]))
                  best = i;
              return double(best);
            });
      });
    one("Transpose", [](const Step& s) {
      const Place order = s.list("perm", {});
      Shape shape;
      for (const std::int64_t d : order) shape.push_back(s.x().shape[std::size_t(d)]);
      return made(shape, [&](const Place& at) {
        Place from(at.size());
        for (std::size_t d = 0; d < at.size(); ++d) from[std::size_t(order[d])] = at[d];
        return get(s.x(), from);
      });
    });
    one("Shape", [](const Step& s) {
      return Naive{{std::int64_t(s.x().shape.size())}, {s.x().shape.begin(), s.x().shape.end()}};
    });
    one("Reshape", [](const Step& s) { return reshaped(s.x(), s.whole(1)); });
    one("Flatten", [](const Step& s) {
      const std::size_t axis = s.axis(s.integer("axis", 1));
      return reshaped(s.x(), {count_of(Shape(s.x().shape.begin(), s.x().shape.begin() + std::ptrdiff_t(axis))), -1});
    });
    one("Squeeze", [](const Step& s) {
      Naive y = s.x();
      for (const std::int64_t axis : s.given("axes")) y.shape[s.axis(axis)] = -1;
      std::erase(y.shape, -1);
      return y;
    });
    one("Unsqueeze", [](const Step& s) {
      Naive y = s.x();
      Place axes = s.given("axes");
      for (std::int64_t& axis : axes)
        if (axis < 0) axis += std::int64_t(y.shape.size() + axes.size());
      std::sort(axes.begin(), axes.end());
      for (const std::int64_t axis : axes) y.shape.insert(y.shape.begin() + axis, 1);
      return y;
    });
    one("Expand", [](const Step& s) {
      const Shape shape = common({s.x(), Naive{s.whole(1), {}}});
      return made(shape, [&](const Place& at) { return broadcast(s.x(), at); });
    });
    one("Tile", [](const Step& s) {
      Shape shape = s.x().shape;
      for (std::size_t d = 0; d < shape.size(); ++d) shape[d] *= s.whole(1)[d];
      return made(shape, [&](Place at) {
        for (std::size_t d = 0; d < at.size(); ++d) at[d] %= s.x().shape[d];
        return get(s.x(), at);
      });
    });
    one("Concat", concat);
    table["Split"] = split;
    one("Slice", slice);
    one("Pad", pad);
    one("Gather", gather);
    one("DepthToSpace", blocks_to_space);
    one("SpaceToDepth", space_to_blocks);
    one("Resize", resized);
    one("CumSum", running_sum);
    one("Trilu", [](const Step& s) {
      const std::int64_t diagonal = s.has(1) ? std::int64_t(s.x(1).numbers[0]) : 0;
      const bool is_upper = s.integer("upper", 1) != 0;
      return made(s.x().shape, [&](const Place& at) {
        const std::int64_t place = at[at.size() - 1] - at[at.size() - 2];
        return (is_upper ? place >= diagonal : place <= diagonal) ? get(s.x(), at) : 0.0;
      });
    });
    table["LSTM"] = [](const Step& s) { return recurrent(s, true); };
    table["GRU"] = [](const Step& s) { return recurrent(s, false); };
    return table;
  }();
  return by_name;
}

}  // namespace

std::vector<Naive> naive(const Graph& graph, const std::map<std::string, codegen::Elements>& inputs) {
  std::vector<Naive> values(graph.values.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.origin == Value::Origin::input) values[v] = {*value.shape, inputs.at(value.name).numbers()};
    if (value.origin != Value::Origin::constant) continue;
    values[v].shape = *value.shape;
    for (std::size_t e = 0; e < value.known->size(); ++e) values[v].numbers.push_back(value.known->number(e));
  }
  for (const Node& node : graph.nodes) {
    Step step{node, graph.version, {}};
    for (const int operand : node.operands)
      step.operands.push_back(operand < 0 ? nullptr : &values[std::size_t(operand)]);
    const auto meaning = meanings().find(node.operation);
    if (meaning == meanings().end()) throw std::logic_error("naive: " + node.operation);
    std::vector<Naive> results = meaning->second(step);
    for (std::size_t r = 0; r < node.results.size(); ++r)
      if (node.results[r] >= 0) values[std::size_t(node.results[r])] = std::move(results[r]);
  }
  std::vector<Naive> outputs;
  for (const int output : graph.outputs) outputs.push_back(values[std::size_t(output)]);
  return outputs;
}

}  // namespace graft::graph
