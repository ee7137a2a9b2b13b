#include "codegen/schedule/winograd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "codegen/schedule/stages.h"

namespace graft::codegen {
namespace {

// Thrown inside this file only, becomes the Reason of `winograd`.
struct DoesNotApply {
  std::string text;
};

// Winograd's matrices for tiles of m results and 3 taps, row-major: `frequencies` = m + 2 rows in g and b, m in a.
struct Winograd {
  std::int64_t m, frequencies;
  std::vector<double> g, b, a;
};

const Winograd& winograd_of(std::int64_t m) {
  static const Winograd two = {2,
                               4,
                               {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1},
                               {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1},
                               {1, 1, 1, 0, 0, 1, -1, -1}};
  static const Winograd four = {4,
                                6,
                                {1.0 / 4, 0, 0, -1.0 / 6, -1.0 / 6, -1.0 / 6, -1.0 / 6, 1.0 / 6, -1.0 / 6, 1.0 / 24,
                                 1.0 / 12, 1.0 / 6, 1.0 / 24, -1.0 / 12, 1.0 / 6, 0, 0, 1},
                                {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                                 0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1},
                                {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1}};
  if (m == 2) return two;
  if (m == 4) return four;
  throw DoesNotApply{fmt::format("tiles of 2 and 4 are known, not {}", m)};
}

double row_sum(const std::vector<double>& matrix, std::int64_t columns, std::int64_t row) {
  double sum = 0;
  for (std::int64_t c = 0; c < columns; ++c) sum += std::abs(matrix[std::size_t(row * columns + c)]);
  return sum;
}

// restructure.h, amplification.
double amplification_of(const Winograd& by, std::int64_t channels) {
  double worst = 0;
  for (std::int64_t i = 0; i < by.m; ++i) {
    double sum = 0;
    for (std::int64_t f = 0; f < by.frequencies; ++f)
      sum +=
          std::abs(by.a[std::size_t(i * by.frequencies + f)]) * row_sum(by.g, 3, f) * row_sum(by.b, by.frequencies, f);
    worst = std::max(worst, sum / 3);
  }
  // Both dimensions of each transform; two more for elements of G that are rounded themselves.
  const double transforms = double(2 * (3 + 2 * by.frequencies) + 2);
  const double roundings = (double(channels) + transforms) / (9 * double(channels));
  return std::max(1.0, worst * worst * roundings / 4);
}

bool mentions(const Affine& form, int axis) {
  return form.coefficient(axis) != 0;
}
bool mentions(const Access& access, int axis) {
  return std::any_of(access.index.begin(), access.index.end(),
                     [&](const Affine& form) { return mentions(form, axis); });
}

// One of the two dimensions of a convolution.
struct Slide {
  int result = 0, tap = 0;            // axes of the stage
  std::size_t data = 0, weights = 0;  // dimensions
};
struct Convolution {
  Access data, weights;
  Slide y, x;
};

// Places where the data slide by a spatial axis under taps of a reduced one, and the weights have a dimension for the
// tap.
std::vector<Slide> slides(const Computation& computation, const Stage& stage, const Access& data,
                          const Access& weights) {
  const int spatial = computation.spatial_axes(stage);
  std::vector<Slide> found;
  const auto dimensions_with = [](const Access& access, int axis) {
    return std::count_if(access.index.begin(), access.index.end(), [&](const Affine& f) { return mentions(f, axis); });
  };
  for (std::size_t d = 0; d < data.index.size(); ++d) {
    const Terms& terms = data.index[d].terms;
    if (terms.size() != 2 || terms[0].coefficient != 1 || terms[1].coefficient != 1) continue;
    const int result = terms[0].variable, tap = terms[1].variable;
    if (result >= spatial || tap < spatial || stage.axes[std::size_t(tap)].extent != 3) continue;
    const auto own = std::find(weights.index.begin(), weights.index.end(), Affine::variable(tap));
    if (own == weights.index.end() || dimensions_with(weights, tap) != 1 || dimensions_with(weights, result) != 0 ||
        dimensions_with(data, tap) != 1 || dimensions_with(data, result) != 1)
      continue;
    found.push_back({result, tap, d, std::size_t(own - weights.index.begin())});
  }
  return found;
}

Convolution convolution_of(const Computation& computation, const Stage& stage) {
  const Value& value = stage.value;
  if (!is_floating(computation.tensors[std::size_t(stage.tensor)].dtype))
    throw DoesNotApply{"its numbers are integers"};
  if (stage.combine != Combine::sum || value.nodes.size() != 3 || value.loads.size() != 2 || !is_product(value) ||
      value.loads[0].padded || value.loads[1].padded || !stage.index.empty())
    throw DoesNotApply{"is not a sum of products of two operands"};
  for (const bool swapped : {false, true}) {
    const Access& data = value.loads[swapped ? 1 : 0];
    const Access& weights = value.loads[swapped ? 0 : 1];
    const std::vector<Slide> found = slides(computation, stage, data, weights);
    if (found.size() == 2 && found[0].result != found[1].result && found[0].tap != found[1].tap)
      return {data, weights, found[0], found[1]};
  }
  throw DoesNotApply{"is not a convolution of 3 x 3 taps with stride 1"};
}

// A dimension of a tensor that is being made: its axis, and whether it belongs to the channels that go innermost.
struct Dimension {
  Axis axis;
  bool inner = false;
  int source = -1;  // its source: a dimension or an axis, depending on its user
};

// Channels last, unless the last one is a channel as it is: blocked layouts keep their order.
void channels_innermost(std::vector<Dimension>& dimensions) {
  if (dimensions.empty() || dimensions.back().inner) return;
  std::stable_partition(dimensions.begin(), dimensions.end(), [](const Dimension& d) { return !d.inner; });
}

class Restructurer {
 public:
  explicit Restructurer(Computation& computation) : computation_(computation) {}

  // The factor on errors.
  double apply(const Step& step) {
    const int stage = stage_named(computation_, step.stage);
    if (stage < 0) throw DoesNotApply{fmt::format("there is no stage {}", step.stage)};
    return winograd(stage, winograd_of(step.sizes[0]));
  }

 private:
  // T[axes] += matrix[transformed, summed] * source, the new tensor's dimensions being `dimensions`, of which
  // `transformed` is one. `summed` is one more axis, after them.
  Stage transform(int tensor, std::vector<Axis> axes, int matrix, int transformed, Axis summed, Access source) const {
    Stage stage;
    stage.tensor = tensor;
    stage.combine = Combine::sum;
    const int behind = int(axes.size());
    summed.name = fresh_axis(summed.name, axes);
    axes.push_back(std::move(summed));
    stage.axes = std::move(axes);
    Access element{matrix, {Affine::variable(transformed), Affine::variable(behind)}, false};
    stage.value = Value::apply(Op::mul, Value::load(std::move(element)), Value::load(std::move(source)));
    return stage;
  }

  static std::vector<std::int64_t> extents_of(const std::vector<Axis>& axes) {
    std::vector<std::int64_t> extents;
    for (const Axis& axis : axes) extents.push_back(axis.extent);
    return extents;
  }

  // Axes with names that differ: those of `leading`, then those of the dimensions.
  static std::vector<Axis> axes_of(std::vector<Axis> leading, const std::vector<Dimension>& dimensions) {
    for (const Dimension& dimension : dimensions)
      leading.push_back({fresh_axis(dimension.axis.name, leading), dimension.axis.extent});
    return leading;
  }

  bool is_read_padded(int tensor) const {
    for (const Stage& stage : computation_.stages)
      for (const Access& access : stage.value.loads)
        if (access.tensor == tensor && access.padded) return true;
    return false;
  }

  // A tensor of which `needed` elements of each dimension may be read: the tensor itself, when it is a padding copy
  // made longer, or a padding copy of it, which is added to `made`.
  int with_zeros_behind(int tensor, std::vector<std::int64_t> needed, std::vector<Stage>& made) {
    Tensor& data = computation_.tensors[std::size_t(tensor)];
    for (std::size_t d = 0; d < needed.size(); ++d) needed[d] = std::max(needed[d], data.shape[d]);
    if (needed == data.shape) return tensor;
    const int writer = computation_.stage_writing(tensor);
    if (writer >= 0 && data.role == Role::temporary && !is_read_padded(tensor)) {
      Stage& stage = computation_.stages[std::size_t(writer)];
      if (stage.value.nodes.size() == 1 && stage.value.loads.size() == 1 && stage.value.loads[0].padded) {
        for (std::size_t d = 0; d < needed.size(); ++d) stage.axes[d].extent = needed[d];
        data.shape = needed;
        return tensor;
      }
    }
    Stage copy;
    Access all{tensor, {}, true};
    for (std::size_t d = 0; d < needed.size(); ++d) {
      copy.axes.push_back({fmt::format("p{}", d), needed[d]});
      all.index.push_back(Affine::variable(int(d)));
    }
    copy.value = Value::load(std::move(all));
    const DType dtype = data.dtype;
    copy.tensor = add_temporary(computation_, data.name + ".pad", dtype, std::move(needed));
    made.push_back(std::move(copy));
    return made.back().tensor;
  }

  double winograd(int number, const Winograd& by) {
    const Stage stage = computation_.stages[std::size_t(number)];
    const Convolution convolution = convolution_of(computation_, stage);
    const Access& data = convolution.data;
    const Access& weights = convolution.weights;
    const Slide &y = convolution.y, &x = convolution.x;
    const Tensor tensor = computation_.tensors[std::size_t(stage.tensor)];
    const DType dtype = tensor.dtype;
    const int spatial = computation_.spatial_axes(stage);
    const auto axis_at = [&](int a) -> const Axis& { return stage.axes[std::size_t(a)]; };
    const auto tiles = [&](const Slide& slide) { return (axis_at(slide.result).extent + by.m - 1) / by.m; };
    const Axis ty{"t" + axis_at(y.result).name, tiles(y)}, tx{"t" + axis_at(x.result).name, tiles(x)};
    const Axis fy{"f" + axis_at(y.result).name, by.frequencies}, fx{"f" + axis_at(x.result).name, by.frequencies};
    const Axis iy{"i" + axis_at(y.result).name, by.m}, ix{"i" + axis_at(x.result).name, by.m};
    const Axis point{"p", by.frequencies};

    const int g = add_temporary(computation_, tensor.name + ".G", dtype, {by.frequencies, 3}, by.g);
    const int b = add_temporary(computation_, tensor.name + ".B", dtype, {by.frequencies, by.frequencies}, by.b);
    const int a = add_temporary(computation_, tensor.name + ".A", dtype, {by.m, by.frequencies}, by.a);
    std::vector<Stage> made;

    // Name and extent of a dimension that the stage reads at `form`.
    const auto named = [&](const Affine& form, std::int64_t extent) {
      return Axis{form.terms.size() == 1 ? axis_at(form.terms[0].variable).name : "d", extent};
    };
    const auto axes_in = [&](const Affine& form, const auto& holds) {
      return std::any_of(form.terms.begin(), form.terms.end(), [&](const Term& term) { return holds(term.variable); });
    };
    const auto of_weights = [&](int axis) { return mentions(weights, axis); };
    const auto of_results = [&](int axis) { return axis < spatial && !mentions(data, axis); };

    // U: the weights' dimensions but the taps'.
    std::vector<Dimension> weight_dimensions;
    const std::vector<std::int64_t> weights_shape = computation_.tensors[std::size_t(weights.tensor)].shape;
    for (std::size_t d = 0; d < weights.index.size(); ++d)
      if (d != y.weights && d != x.weights)
        weight_dimensions.push_back(
            {named(weights.index[d], weights_shape[d]), axes_in(weights.index[d], of_results), int(d)});
    channels_innermost(weight_dimensions);
    const std::vector<Axis> half_axes = axes_of({fy, axis_at(x.tap)}, weight_dimensions);
    const int half_u = add_temporary(computation_, tensor.name + ".U.rows", dtype, extents_of(half_axes));
    Access whole_weights{weights.tensor, std::vector<Affine>(weights.index.size()), false};
    Access half_weights{half_u, {Affine::variable(0)}, false};
    for (std::size_t i = 0; i < weight_dimensions.size(); ++i)
      whole_weights.index[std::size_t(weight_dimensions[i].source)] = Affine::variable(int(i) + 2);
    whole_weights.index[y.weights] = Affine::variable(int(half_axes.size()));
    whole_weights.index[x.weights] = Affine::variable(1);
    made.push_back(transform(half_u, half_axes, g, 0, axis_at(y.tap), whole_weights));

    const std::vector<Axis> u_axes = axes_of({fy, fx}, weight_dimensions);
    const int u = add_temporary(computation_, tensor.name + ".U", dtype, extents_of(u_axes));
    half_weights.index.push_back(Affine::variable(int(u_axes.size())));
    for (std::size_t i = 0; i < weight_dimensions.size(); ++i)
      half_weights.index.push_back(Affine::variable(int(i) + 2));
    made.push_back(transform(u, u_axes, g, 1, axis_at(x.tap), half_weights));

    // V: the data's dimensions, rows and columns in tiles.
    std::vector<std::int64_t> needed(data.index.size(), 1);
    needed[y.data] = data.index[y.data].constant + by.m * ty.extent + 2;
    needed[x.data] = data.index[x.data].constant + by.m * tx.extent + 2;
    const int source = with_zeros_behind(data.tensor, std::move(needed), made);
    std::vector<Dimension> data_dimensions;
    const std::vector<std::int64_t> data_shape = computation_.tensors[std::size_t(source)].shape;
    for (std::size_t d = 0; d < data.index.size(); ++d) {
      const bool tile = d == y.data || d == x.data;
      const Axis axis = d == y.data ? ty : d == x.data ? tx : named(data.index[d], data_shape[d]);
      data_dimensions.push_back({axis, !tile && axes_in(data.index[d], of_weights), int(d)});
    }
    channels_innermost(data_dimensions);
    std::vector<Dimension> row_dimensions = data_dimensions;  // tiles of rows, single columns
    for (Dimension& dimension : row_dimensions)
      if (dimension.source == int(x.data)) dimension.axis = {axis_at(x.result).name, by.m * tx.extent + 2};
    const std::vector<Axis> row_axes = axes_of({fy}, row_dimensions);
    const int half_v = add_temporary(computation_, tensor.name + ".V.rows", dtype, extents_of(row_axes));
    Access whole_data{source, std::vector<Affine>(data.index.size()), false};
    for (std::size_t i = 0; i < row_dimensions.size(); ++i) {
      const std::size_t d = std::size_t(row_dimensions[i].source);
      const int axis = int(i) + 1;
      if (d == y.data)
        whole_data.index[d] = Affine::variable(axis, by.m) + Affine::variable(int(row_axes.size()));
      else
        whole_data.index[d] = Affine::variable(axis);
      if (d == y.data || d == x.data) whole_data.index[d] += Affine(data.index[d].constant);
    }
    made.push_back(transform(half_v, row_axes, b, 0, point, whole_data));

    const std::vector<Axis> v_axes = axes_of({fy, fx}, data_dimensions);
    const int v = add_temporary(computation_, tensor.name + ".V", dtype, extents_of(v_axes));
    Access half_data{half_v, {Affine::variable(0)}, false};
    for (std::size_t i = 0; i < data_dimensions.size(); ++i) {
      const bool column = data_dimensions[i].source == int(x.data);
      half_data.index.push_back(Affine::variable(int(i) + 2, column ? by.m : 1));
      if (column) half_data.index.back() += Affine::variable(int(v_axes.size()));
    }
    made.push_back(transform(v, v_axes, b, 1, point, half_data));

    // M: the spatial axes with tiles for rows and columns; reduced over the rest.
    std::vector<Dimension> result_dimensions;
    for (int s = 0; s < spatial; ++s)
      result_dimensions.push_back({s == y.result   ? ty
                                   : s == x.result ? tx
                                                   : axis_at(s),
                                   s != y.result && s != x.result && of_results(s), s});
    channels_innermost(result_dimensions);
    Stage products;
    products.axes = axes_of({fy, fx}, result_dimensions);
    products.tensor = add_temporary(computation_, tensor.name + ".M", dtype, extents_of(products.axes));
    std::vector<Affine> new_axis(stage.axes.size());  // by axis of the stage
    for (std::size_t i = 0; i < result_dimensions.size(); ++i)
      new_axis[std::size_t(result_dimensions[i].source)] = Affine::variable(int(i) + 2);
    std::int64_t channels = 1;
    for (int r = spatial; r < int(stage.axes.size()); ++r) {
      if (r == y.tap || r == x.tap) continue;
      new_axis[std::size_t(r)] = Affine::variable(int(products.axes.size()));
      products.axes.push_back({fresh_axis(axis_at(r).name, products.axes), axis_at(r).extent});
      products.combine = Combine::sum;
      channels *= axis_at(r).extent;
    }
    Access from_v{v, {Affine::variable(0), Affine::variable(1)}, false}, from_u = from_v;
    from_u.tensor = u;
    for (const Dimension& dimension : data_dimensions) {
      const std::size_t d = std::size_t(dimension.source);
      from_v.index.push_back(d == y.data   ? new_axis[std::size_t(y.result)]
                             : d == x.data ? new_axis[std::size_t(x.result)]
                                           : substitute(data.index[d], new_axis));
    }
    for (const Dimension& dimension : weight_dimensions)
      from_u.index.push_back(substitute(weights.index[std::size_t(dimension.source)], new_axis));
    products.value = Value::apply(Op::mul, Value::load(from_v), Value::load(from_u));
    const int m = products.tensor;
    made.push_back(std::move(products));

    // Back: rows, then columns into the results.
    const std::vector<Axis> back_axes = axes_of({iy, fx}, result_dimensions);
    const int half_m = add_temporary(computation_, tensor.name + ".rows", dtype, extents_of(back_axes));
    Access from_m{m, {Affine::variable(int(back_axes.size())), Affine::variable(1)}, false};
    for (std::size_t i = 0; i < result_dimensions.size(); ++i) from_m.index.push_back(Affine::variable(int(i) + 2));
    made.push_back(transform(half_m, back_axes, a, 0, fy, from_m));

    std::vector<Axis> result_axes;
    std::vector<int> axis_of(std::size_t(spatial), 0);  // of the results, by axis of the stage: tiles for rows, columns
    std::vector<Affine> element(std::size_t(spatial), Affine(0));
    int row = 0, column = 0;
    for (int s = 0; s < spatial; ++s) {
      axis_of[std::size_t(s)] = int(result_axes.size());
      const bool in_rows = s == y.result, in_columns = s == x.result;
      element[std::size_t(s)] = Affine::variable(int(result_axes.size()), in_rows || in_columns ? by.m : 1);
      const Axis& axis = in_rows ? ty : in_columns ? tx : axis_at(s);
      result_axes.push_back({fresh_axis(axis.name, result_axes), axis.extent});
      if (!in_rows && !in_columns) continue;
      (in_rows ? row : column) = int(result_axes.size());
      element[std::size_t(s)] += Affine::variable(int(result_axes.size()));
      result_axes.push_back({fresh_axis((in_rows ? iy : ix).name, result_axes), by.m});
    }
    Access from_rows{half_m, {Affine::variable(row), Affine::variable(int(result_axes.size()))}, false};
    for (const Dimension& dimension : result_dimensions)
      from_rows.index.push_back(Affine::variable(axis_of[std::size_t(dimension.source)]));
    Stage results = transform(stage.tensor, result_axes, a, column, fx, from_rows);
    results.index = element;

    // Whole tiles if the results end within one.
    std::vector<std::int64_t> whole = tensor.shape;
    whole[std::size_t(y.result)] = by.m * ty.extent;
    whole[std::size_t(x.result)] = by.m * tx.extent;
    if (whole == tensor.shape) {
      made.push_back(std::move(results));
    } else if (tensor.role == Role::temporary && !is_read_padded(stage.tensor)) {
      computation_.tensors[std::size_t(stage.tensor)].shape = whole;
      made.push_back(std::move(results));
    } else {
      results.tensor = add_temporary(computation_, tensor.name + ".tiles", dtype, whole);
      Stage cut;
      cut.tensor = stage.tensor;
      cut.axes.assign(stage.axes.begin(), stage.axes.begin() + spatial);
      Access from_tiles{results.tensor, {}, false};
      for (int s = 0; s < spatial; ++s) from_tiles.index.push_back(Affine::variable(s));
      cut.value = Value::load(std::move(from_tiles));
      made.push_back(std::move(results));
      made.push_back(std::move(cut));
    }
    replace_stage(computation_, number, std::move(made));
    return amplification_of(by, channels);
  }

  Computation& computation_;
};

}  // namespace

base::Result<double> winograd(Computation& computation, const Step& step) {
  try {
    return Restructurer(computation).apply(step);
  } catch (const DoesNotApply& failure) {
    return base::Reason{failure.text};
  }
}

}  // namespace graft::codegen
