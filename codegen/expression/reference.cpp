#include "codegen/expression/reference.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/parallel.h"
#include "base/random.h"
#include "codegen/expression/evaluator.h"
#include "codegen/expression/inputs.h"

namespace graft::codegen {

namespace {

// The monitor of a whole evaluation, for its threads: reports the finished part of the work, if that takes seconds.
class Meter final : public base::Monitor {
 public:
  explicit Meter(base::Monitor& to) : to_(to) {}
  bool stop_requested() override {
    const std::lock_guard lock(mutex_);
    return to_.stop_requested();
  }
  void expect(double work) { total_ = work, done_ = 0, percent_ = 0; }
  void spent(double work) {
    constexpr double told = 0x1p30;
    const std::lock_guard lock(mutex_);
    done_ += work;
    const std::int64_t percent = std::int64_t(100 * std::min(1.0, done_ / total_));
    if (total_ < told || percent == percent_) return;
    percent_ = percent;
    to_.progress("expected results, in %", percent, 100);
  }

 private:
  base::Monitor& to_;
  std::mutex mutex_;
  double done_ = 0, total_ = 0;
  std::int64_t percent_ = 0;
};

// Work of one point of a stage in multiply-adds of ProductSum.
double point_work(const Stage& stage) {
  return 2 * double(stage.value.nodes.size());
}
double points_of(const Stage& stage) {
  double points = 1;
  for (const Axis& axis : stage.axes) points *= double(axis.extent);
  return points;
}

// What an evaluator gives for the elements of a list, or for all if it is empty.
Evaluator::Results results_of(const Evaluator& of, std::span<const std::int64_t> list, double work_of_point,
                              int threads, Meter& meter) {
  constexpr double work_each = 0x1p20;  // of what a thread takes at a time
  const double work = double(of.terms()) * work_of_point;
  const std::int64_t count = list.empty() ? of.elements() : std::int64_t(list.size()),
                     each = std::max<std::int64_t>(1, std::int64_t(work_each / work));
  Evaluator::Results results;
  results.value.resize(std::size_t(count));
  if (of.has_magnitude()) results.magnitude.resize(std::size_t(count));
  base::parallel_for((count + each - 1) / each, threads, [&](std::int64_t chunk) {
    Evaluator evaluator = of;
    const std::int64_t first = chunk * each, own = std::min(count - first, each);
    base::check_stop(meter);
    evaluator.run(list, first, own, results, meter);
    meter.spent(double(own) * work);
  });
  return results;
}
// Sums of products as a blocked matrix product. The factors are loads, or are computed first where they vary along
// fewer axes than the product: a padded access, a conversion, bytes less their zero point. One spatial axis that only
// one factor (B) has is the vector axis; the spatial axes that only the other factor (A) has make points; what is left
// is walked outside. A panel of B is copied, so that its lanes are adjacent for any stride in the tensor.
class ProductSum {
 public:
  // Nothing when the stage is of another form, or no axis belongs to one factor alone.
  static std::optional<ProductSum> match(const Computation& computation, const Stage& stage,
                                         const std::vector<Data>& data) {
    const Value& value = stage.value;
    const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
    if (stage.combine != Combine::sum || !is_product(value) || !stage.index.empty()) return std::nullopt;
    ProductSum sum;
    sum.type_ = types_of(computation, stage).back().result;
    if (sum.type_ != tensor.dtype) return std::nullopt;
    const std::size_t axes = stage.axes.size(), spatial = tensor.shape.size();
    Factor a = factor(computation, stage, data, value.root().a), b = factor(computation, stage, data, value.root().b);
    for (const Factor* const of : {&a, &b}) {
      constexpr double least_uses = 8, most_points = 0x1p24;  // for what is computed first: 16 bytes a point
      if (of->load < 0 && of->points > std::min(most_points, points_of(stage) / least_uses)) return std::nullopt;
    }
    std::size_t lane = spatial;
    bool lane_in_a = false;
    for (std::size_t s = 0; s < spatial; ++s) {
      if (stage.axes[s].extent == 1 || (a.at.along[s] == 0) == (b.at.along[s] == 0)) continue;
      if (lane != spatial && stage.axes[s].extent <= stage.axes[lane].extent) continue;
      lane = s;
      lane_in_a = a.at.along[s] != 0;
    }
    if (lane == spatial) return std::nullopt;
    if (lane_in_a) std::swap(a, b);

    const std::vector<std::int64_t> out = strides_of(tensor.shape);
    std::vector<std::size_t> points, outer, reduced;
    for (std::size_t s = 0; s < axes; ++s) {
      if (s == lane) continue;
      (s >= spatial ? reduced : b.at.along[s] == 0 ? points : outer).push_back(s);
    }
    const auto walk = [&](const std::vector<std::size_t>& over, std::int64_t a0, std::int64_t b0) {
      std::vector<std::int64_t> extents, of_a, of_b, of_out;
      for (std::size_t s : over) {
        extents.push_back(stage.axes[s].extent);
        of_a.push_back(a.at.along[s]);
        of_b.push_back(b.at.along[s]);
        of_out.push_back(s < spatial ? out[s] : 0);
      }
      Walk made(std::move(extents));
      made.track(a0, std::move(of_a));
      made.track(b0, std::move(of_b));
      made.track(0, std::move(of_out));
      return made;
    };
    sum.points_ = walk(points, 0, 0);
    sum.outer_ = walk(outer, a.at.start, b.at.start);
    sum.reduced_ = walk(reduced, 0, 0);
    sum.lanes_ = stage.axes[lane].extent;
    sum.lane_of_b_ = b.at.along[lane];
    sum.lane_of_out_ = out[lane];
    sum.a_ = std::move(a);
    sum.b_ = std::move(b);
    return sum;
  }

  // Work of the whole sum.
  double work(const Stage& stage) const {
    const auto first = [&](const Factor& of) { return of.load < 0 ? of.points * point_work(stage) : 0; };
    return points_of(stage) + first(a_) + first(b_);
  }

  // False, and nothing done, if a number may be beyond the integers that double has.
  bool run(const Computation& computation, const Stage& stage, const std::vector<Data>& data, Data& out,
           const ReferenceSettings& settings, Meter& meter) const {
    const Computed a(computation, stage, data, a_, settings, meter), b(computation, stage, data, b_, settings, meter);
    const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
    const std::size_t elements = std::size_t(tensor.elements());
    const auto multiplied = [&](const Elements& left, const Elements& right) {
      std::vector<double> sums(elements, 0), none;
      multiply<false>(left, right, sums, none, settings.threads, meter);
      return sums;
    };
    if (!is_floating(type_)) {
      const double largest = a.largest() * b.largest();  // of a product, and of its sum
      constexpr double exact = 0x1p53;
      const bool is_sized = a.magnitude != nullptr || b.magnitude != nullptr;
      if (!(largest * double(reduced_.points()) <= exact) || (is_sized && largest > highest(type_))) return false;
      std::vector<double> value = multiplied(*a.value, *b.value);
      for (double& number : value) number = kept(number, tensor.dtype);
      if (is_sized) {
        // |a| and |b| may both be larger by their magnitudes: what that adds.
        std::vector<double> most = multiplied(a.with_magnitude(), b.with_magnitude());
        const std::vector<double> least = multiplied(a.sizes(), b.sizes());
        for (std::size_t e = 0; e < elements; ++e) most[e] -= least[e];
        out.magnitude = std::move(most);
      }
      out.value = std::move(value);
      return true;
    }
    if (!settings.magnitudes) {
      out.value = multiplied(*a.value, *b.value);
      return true;
    }
    std::vector<double> value(elements, 0), magnitude(elements, 0);
    const bool plain = a.magnitude == nullptr && b.magnitude == nullptr;
    if (plain) {
      multiply<true>(*a.value, *b.value, value, magnitude, settings.threads, meter);
    } else {
      value = multiplied(*a.value, *b.value);
      magnitude = multiplied(a.magnitude_or_size(), b.magnitude_or_size());
    }
    out.value = std::move(value);
    out.magnitude = std::move(magnitude);
    return true;
  }

 private:
  struct Factor {
    int node = 0;                   // of the stage's value
    int load = -1;                  // the tensor that it is loaded from as it is; -1: computed first
    std::vector<std::size_t> axes;  // along which it varies
    double points = 1;              // along these
    Form at;                        // where it is: in the tensor, or in what is computed
  };

  static Factor factor(const Computation& computation, const Stage& stage, const std::vector<Data>& data, int node) {
    const Value part = part_of(stage.value, node);
    std::vector<std::int64_t> shape;
    Factor out{.node = node, .load = -1, .axes = {}, .points = 1, .at = {}};
    std::vector<char> varies(stage.axes.size(), 0);
    const auto mark = [&](const Affine& form) {
      for (const Term& term : form.terms) varies[std::size_t(term.variable)] = 1;
    };
    for (const Access& access : part.loads) std::for_each(access.index.begin(), access.index.end(), mark);
    std::for_each(part.positions.begin(), part.positions.end(), mark);
    std::vector<Affine> index;
    for (std::size_t a = 0; a < varies.size(); ++a) {
      if (!varies[a]) continue;
      out.axes.push_back(a);
      out.points *= double(stage.axes[a].extent);
      shape.push_back(stage.axes[a].extent);
      index.push_back(Affine::variable(int(a)));
    }
    out.at = flat(index, shape, stage.axes.size());
    if (part.root().op != Op::load || part.loads.back().padded || !part.loads.back().gathered.empty()) return out;
    const Access& access = part.loads.back();
    const Tensor& tensor = computation.tensors[std::size_t(access.tensor)];
    if (!is_floating(tensor.dtype) && !data[std::size_t(access.tensor)].magnitude.empty()) return out;
    out.load = access.tensor;
    out.at = flat(access.index, tensor.shape, stage.axes.size());
    return out;
  }

  // The numbers of a factor.
  struct Computed {
    Computed(const Computation& computation, const Stage& stage, const std::vector<Data>& data, const Factor& of,
             const ReferenceSettings& settings, Meter& meter) {
      if (of.load >= 0) {
        const Data& from = data[std::size_t(of.load)];
        value = &from.value;
        if (settings.magnitudes && !from.magnitude.empty()) magnitude = &from.magnitude;
        return;
      }
      const DType type = types_of(computation, stage).back().operands;
      const Evaluator evaluator(
          computation, stage, data,
          {.node = of.node, .type = type, .combine = Combine::none, .elements = of.axes, .terms = {}, .target = of.at},
          settings.magnitudes);
      Evaluator::Results results = results_of(evaluator, {}, point_work(stage), settings.threads, meter);
      own_value = std::move(results.value);
      value = &own_value;
      if (results.magnitude.empty()) return;
      own_magnitude = std::move(results.magnitude);
      magnitude = &own_magnitude;
    }
    Computed(const Computed&) = delete;
    Computed& operator=(const Computed&) = delete;

    std::vector<double> sizes() const {
      std::vector<double> out = value->numbers();
      for (double& number : out) number = std::abs(number);
      return out;
    }
    // For floating point.
    Elements magnitude_or_size() const { return magnitude != nullptr ? *magnitude : Elements(sizes()); }
    // For integers: |value| + magnitude.
    std::vector<double> with_magnitude() const {
      std::vector<double> out = sizes();
      for (std::size_t i = 0; i < out.size() && magnitude != nullptr; ++i) out[i] += (*magnitude)[i];
      return out;
    }
    double largest() const {
      const std::vector<double> all = with_magnitude();
      return *std::max_element(all.begin(), all.end());
    }

    const Elements *value = nullptr, *magnitude = nullptr;  // no magnitude: of floating point |value|, of integers 0
    Elements own_value, own_magnitude;
  };
  static constexpr std::size_t width = 4;  // lanes of a panel; two points of them keep their sums in SSE registers
  static constexpr std::size_t depth = 256, block = 64;  // a panel stays in L1, the points of a block in L2

  // A part of the product: some lanes and points at one place outside.
  struct Part {
    std::int64_t outer_a, outer_b, outer_out;
    std::int64_t lane, lane_end;
    std::size_t point, point_end;
  };
  struct Points {
    std::vector<std::int64_t> a, out;
  };

  // Every element is the work of one part, which adds up in one order: the same for any number of threads.
  template <bool with_magnitude>
  void multiply(const Elements& a, const Elements& b, std::vector<double>& out, std::vector<double>& magnitude,
                int threads, Meter& meter) const {
    constexpr std::int64_t lanes_each = 64, points_each = 1024;
    constexpr double work_each = 0x1p20;  // at least, of what a thread takes at a time
    Points points;
    Walk at = points_;
    for (std::int64_t p = at.points(); p-- > 0; at.advance()) {
      points.a.push_back(at[0]);
      points.out.push_back(at[2]);
    }
    const std::int64_t count = std::int64_t(points.a.size());
    const std::int64_t lane_parts = (lanes_ + lanes_each - 1) / lanes_each,
                       point_parts = (count + points_each - 1) / points_each,
                       parts = outer_.points() * lane_parts * point_parts;
    const double work =
        double(std::min(lanes_, lanes_each)) * double(std::min(count, points_each)) * double(reduced_.points());
    const std::int64_t each = std::max<std::int64_t>(1, std::int64_t(work_each / work));
    base::parallel_for((parts + each - 1) / each, threads, [&](std::int64_t chunk) {
      Walk outer = outer_;
      for (std::int64_t part = chunk * each; part < std::min(parts, (chunk + 1) * each); ++part) {
        outer.go_to(part / (lane_parts * point_parts));
        const std::int64_t lane = part / point_parts % lane_parts * lanes_each,
                           point = part % point_parts * points_each;
        multiply_part<with_magnitude>({outer[0], outer[1], outer[2], lane, std::min(lanes_, lane + lanes_each),
                                       std::size_t(point), std::size_t(std::min(count, point + points_each))},
                                      points, a, b, out, magnitude, meter);
      }
    });
  }

  template <bool with_magnitude>
  void multiply_part(const Part& part, const Points& points, const Elements& a, const Elements& b,
                     std::vector<double>& out, std::vector<double>& magnitude, Meter& meter) const {
    std::array<std::int64_t, depth> step_a, step_b;
    std::array<double, depth * width> panel;
    std::vector<double> rows(block * depth);  // of A, of the points of a block
    Walk reduced = reduced_;
    std::int64_t left = reduced.points();
    while (left > 0) {
      const std::size_t steps = std::size_t(std::min<std::int64_t>(left, depth));
      left -= std::int64_t(steps);
      for (std::size_t k = 0; k < steps; ++k, reduced.advance()) {
        step_a[k] = reduced[0];
        step_b[k] = reduced[1];
      }
      base::check_stop(meter);
      meter.spent(double(steps) * double(part.lane_end - part.lane) * double(part.point_end - part.point) /
                  (with_magnitude ? 1 : 2));
      for (std::size_t first = part.point; first < part.point_end; first += block) {
        const std::size_t last = std::min(first + block, part.point_end);
        for (std::size_t p = first; p < last; ++p)
          for (std::size_t k = 0; k < steps; ++k)
            rows[(p - first) * depth + k] = a[std::size_t(part.outer_a + points.a[p] + step_a[k])];
        for (std::int64_t lane = part.lane; lane < part.lane_end; lane += width) {
          const std::size_t used = std::size_t(std::min<std::int64_t>(width, part.lane_end - lane));
          for (std::size_t k = 0; k < steps; ++k)
            for (std::size_t l = 0; l < width; ++l)
              panel[k * width + l] =
                  l < used ? b[std::size_t(part.outer_b + step_b[k] + (lane + std::int64_t(l)) * lane_of_b_)] : 0;
          const auto add = [&](std::size_t point, const double* sums, std::vector<double>& to) {
            for (std::size_t l = 0; l < used; ++l)
              to[std::size_t(part.outer_out + points.out[point] + (lane + std::int64_t(l)) * lane_of_out_)] += sums[l];
          };
          for (std::size_t p = first; p < last; p += 2) {
            // An odd last point is computed twice and added once.
            const std::size_t q = std::min(p + 1, last - 1);
            double sums[2][width] = {}, sizes[2][width] = {};
            kernel<with_magnitude>(&rows[(p - first) * depth], &rows[(q - first) * depth], panel.data(), steps, sums,
                                   sizes);
            add(p, sums[0], out);
            if (q != p) add(q, sums[1], out);
            if constexpr (with_magnitude) {
              add(p, sizes[0], magnitude);
              if (q != p) add(q, sizes[1], magnitude);
            }
          }
        }
      }
    }
  }

  template <bool with_magnitude>
  static void kernel(const double* a0, const double* a1, const double* panel, std::size_t steps,
                     double (&sums)[2][width], double (&sizes)[2][width]) {
    double s0[width] = {}, s1[width] = {}, m0[width] = {}, m1[width] = {};
    for (std::size_t k = 0; k < steps; ++k) {
      const double x0 = a0[k], x1 = a1[k];
      for (std::size_t l = 0; l < width; ++l) {
        const double y0 = x0 * panel[k * width + l], y1 = x1 * panel[k * width + l];
        s0[l] += y0;
        s1[l] += y1;
        if constexpr (with_magnitude) {
          m0[l] += std::abs(y0);
          m1[l] += std::abs(y1);
        }
      }
    }
    for (std::size_t l = 0; l < width; ++l) {
      sums[0][l] = s0[l], sums[1][l] = s1[l];
      sizes[0][l] = m0[l], sizes[1][l] = m1[l];
    }
  }

  // Tracked numbers of each walk: offset in A, in B, in the output.
  Walk points_{{}}, outer_{{}}, reduced_{{}};
  std::int64_t lanes_ = 0, lane_of_b_ = 0, lane_of_out_ = 0;
  Factor a_, b_;
  DType type_ = DType::f32;
};

double work_of(const Computation& computation, const Stage& stage) {
  const auto product = ProductSum::match(computation, stage, std::vector<Data>(computation.tensors.size()));
  return product ? product->work(stage) : points_of(stage) * point_work(stage);
}

// The elements of a stage's tensor that are computed, by their numbers in the order of its spatial axes.
struct Wanted {
  bool all = true;
  std::vector<std::int64_t> elements;  // rising; of those that are not all
};
struct Plan {
  std::vector<Wanted> wanted;  // by stage
  double work = 0;
};

Plan complete_plan(const Computation& computation) {
  Plan plan{std::vector<Wanted>(computation.stages.size()), 0};
  for (const Stage& stage : computation.stages) plan.work += work_of(computation, stage);
  return plan;
}

// The ends of all axes together, and `count` points drawn by the seed; rising.
std::vector<std::int64_t> sample(const Tensor& tensor, std::uint64_t seed, std::int64_t count) {
  constexpr std::size_t most_ends = 1024;
  std::vector<std::int64_t> out{0};
  for (const std::int64_t extent : tensor.shape) {
    for (std::int64_t& offset : out) offset *= extent;
    const std::size_t before = out.size();
    if (extent == 1 || 2 * before > most_ends) continue;
    for (std::size_t i = 0; i < before; ++i) out.push_back(out[i] + extent - 1);
  }
  base::Stream stream(seed, "checked elements of " + tensor.name);
  for (std::int64_t i = 0; i < count; ++i) out.push_back(stream.below(tensor.elements()));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// What `count` drawn elements of each output need. Given up, with the work so far, once that is more than `most`. Of a
// tensor of more than `most_elements` a part is computed even if all of it takes less work.
Plan sampled_plan(const Computation& computation, std::uint64_t seed, std::int64_t count, double most,
                  std::int64_t most_elements, Meter& meter) {
  Plan plan{std::vector<Wanted>(computation.stages.size()), 0};
  std::vector<std::vector<bool>> marks(computation.tensors.size());  // wanted elements of what stages read
  std::vector<char> all(computation.tensors.size(), 0);
  const std::vector<Data> nothing(computation.tensors.size());
  for (std::size_t s = computation.stages.size(); s-- > 0 && plan.work <= most;) {
    const Stage& stage = computation.stages[s];
    const std::size_t t = std::size_t(stage.tensor);
    const Tensor& tensor = computation.tensors[t];
    const std::int64_t elements = tensor.elements();
    Wanted& wanted = plan.wanted[s];
    wanted.all = all[t] != 0 || !stage.index.empty();  // with an index, elements are not numbered in their order
    if (tensor.role == Role::output) wanted.elements = sample(tensor, seed, count);
    if (!wanted.all && !marks[t].empty()) {
      for (const std::int64_t e : wanted.elements) marks[t][std::size_t(e)] = true;
      wanted.elements.clear();
      for (std::int64_t e = 0; e < elements; ++e) {
        if (marks[t][std::size_t(e)]) wanted.elements.push_back(e);
      }
    }
    std::vector<bool>().swap(marks[t]);
    const double own = double(wanted.elements.size()) * (points_of(stage) / double(elements)) * point_work(stage);
    const double whole = work_of(computation, stage);
    const bool many = elements > most_elements && std::int64_t(wanted.elements.size()) < elements / 2;
    if (wanted.all || (own >= whole && !many)) wanted = {};
    plan.work += wanted.all ? whole : own;

    std::vector<char> made(stage.value.loads.size());  // loads of what stages make
    for (std::size_t l = 0; l < made.size(); ++l) {
      const int from = stage.value.loads[l].tensor;
      made[l] = computation.stage_writing(from) >= 0 ? 1 : 0;
      if (!made[l]) continue;
      if (wanted.all || !stage.value.loads[l].gathered.empty()) all[std::size_t(from)] = 1;
      marks[std::size_t(from)].resize(std::size_t(computation.tensors[std::size_t(from)].elements()));
    }
    if (wanted.all || plan.work > most || std::find(made.begin(), made.end(), 1) == made.end()) continue;
    Evaluator evaluator(computation, stage, nothing, Evaluator::task_of(computation, stage), false);
    const auto mark = [&](std::size_t load, std::int64_t offset) {
      if (made[load] != 0) marks[std::size_t(stage.value.loads[load].tensor)][std::size_t(offset)] = true;
    };
    for (const std::int64_t e : wanted.elements) evaluator.reads(e, meter, mark);
  }
  return plan;
}

Plan plan_of(const Computation& computation, std::uint64_t seed, const ReferenceSettings& settings, Meter& meter) {
  constexpr std::int64_t least = 16;
  Plan plan = complete_plan(computation);
  const bool many = std::any_of(computation.tensors.begin(), computation.tensors.end(), [&](const Tensor& tensor) {
    return tensor.role == Role::output && tensor.elements() > settings.most_elements;
  });
  if (plan.work <= settings.most_work && !many) return plan;
  double dearest = 1;  // of an output's element, in its own stage
  for (const Stage& stage : computation.stages) {
    const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
    if (tensor.role == Role::output)
      dearest = std::max(dearest, points_of(stage) / double(tensor.elements()) * point_work(stage));
  }
  std::int64_t count = std::max(least, std::int64_t(std::min(settings.sampled_work / dearest, 0x1p20)));
  for (;; count = std::max(least, count / 4)) {
    const double most = count == least ? std::numeric_limits<double>::infinity() : 2 * settings.sampled_work;
    Plan sampled = sampled_plan(computation, seed, count, most, settings.most_elements, meter);
    if (sampled.work <= most) return many || sampled.work < plan.work ? sampled : plan;
  }
}

// What comes from outside.
std::vector<Data> given(const Computation& computation, std::vector<Elements> operands) {
  assert(operands.size() == computation.tensors.size());
  std::vector<Data> data(operands.size());
  for (std::size_t t = 0; t < data.size(); ++t) {
    if (computation.stage_writing(int(t)) >= 0) continue;
    const Tensor& tensor = computation.tensors[t];
    data[t].value = tensor.is_literal() ? Elements(tensor.values) : std::move(operands[t]);
    assert(std::int64_t(data[t].value.size()) == tensor.elements());
    // A literal such as 1/3 is rounded once, to the type that holds it.
    if (tensor.is_literal() && is_floating(tensor.dtype)) {
      data[t].depth = std::any_of(tensor.values.begin(), tensor.values.end(),
                                  [&](double v) { return rounded_to(v, tensor.dtype) != v; });
    }
  }
  return data;
}

// A copy of what comes from outside needs no magnitude of its own, and its readers are twice as fast without one.
bool copies_what_is_given(const Computation& computation, const Stage& stage, const std::vector<Data>& data) {
  const Value& value = stage.value;
  return stage.combine == Combine::none && value.nodes.size() == 1 && value.loads.size() == 1 &&
         data[std::size_t(value.loads[0].tensor)].magnitude.empty() &&
         computation.tensors[std::size_t(stage.tensor)].role == Role::temporary;
}

// The tensor that a stage writes.
Data computed(const Computation& computation, const Stage& stage, const Wanted& wanted, const std::vector<Data>& data,
              const ReferenceSettings& settings, Meter& meter) {
  Data out;
  out.depth = depth_of(computation, stage, data);
  const std::int64_t elements = computation.tensors[std::size_t(stage.tensor)].elements();
  if (!wanted.all && wanted.elements.empty()) return out;  // no one reads it
  const auto product = wanted.all ? ProductSum::match(computation, stage, data) : std::nullopt;
  if (product && product->run(computation, stage, data, out, settings, meter)) return out;
  const bool sized = settings.magnitudes && !copies_what_is_given(computation, stage, data);
  const Evaluator evaluator(computation, stage, data, Evaluator::task_of(computation, stage), sized);
  Evaluator::Results results = results_of(evaluator, wanted.elements, point_work(stage), settings.threads, meter);
  if (wanted.all) {
    out.value = std::move(results.value);
    out.magnitude = std::move(results.magnitude);
    return out;
  }
  out.value = Elements(wanted.elements, std::move(results.value), elements, 0);
  const bool is_output = computation.tensors[std::size_t(stage.tensor)].role == Role::output;
  if (is_output) results.magnitude.resize(wanted.elements.size());  // of integers 0, if none
  if (!results.magnitude.empty())
    out.magnitude =
        Elements(wanted.elements, std::move(results.magnitude), elements, std::numeric_limits<double>::infinity());
  return out;
}

Reference evaluated(const Computation& computation, std::vector<Elements> operands, const Plan& plan,
                    const ReferenceSettings& settings, Meter& meter) {
  meter.expect(plan.work);
  std::vector<Data> data = given(computation, std::move(operands));
  Reference result;
  for (std::size_t s = 0; s < computation.stages.size(); ++s) {
    const Stage& stage = computation.stages[s];
    const Wanted& wanted = plan.wanted[s];
    const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
    Data& out = data[std::size_t(stage.tensor)];
    out = computed(computation, stage, wanted, data, settings, meter);
    if (tensor.role == Role::output) {
      result.elements += tensor.elements();
      result.computed += wanted.all ? tensor.elements() : std::int64_t(wanted.elements.size());
    }
    const auto is_zero = [](double m) { return m == 0; };
    if (!is_floating(tensor.dtype) && wanted.all && std::all_of(out.magnitude.begin(), out.magnitude.end(), is_zero))
      out.magnitude = {};
  }
  const std::size_t count = data.size();
  result.tensors.resize(count);
  result.magnitude.resize(count);
  result.reduction_length.resize(count);
  for (std::size_t t = 0; t < count; ++t) {
    const Role role = computation.tensors[t].role;
    if (role == Role::temporary) continue;
    result.tensors[t] = std::move(data[t].value);
    if (role != Role::output) continue;
    result.magnitude[t] = std::move(data[t].magnitude);
    if (result.magnitude[t].empty() && settings.magnitudes)
      result.magnitude[t] = Elements(DType::f64, std::int64_t(result.tensors[t].size()));
    result.reduction_length[t] = std::max<std::int64_t>(1, data[t].depth);
  }
  return result;
}

}  // namespace

Reference reference(const Computation& computation, std::uint64_t seed) {
  ReferenceSettings all;
  all.most_work = std::numeric_limits<double>::infinity();
  base::Monitor nobody;
  return reference(computation, seed, all, nobody);
}

Reference reference(const Computation& computation, std::uint64_t seed, const ReferenceSettings& settings,
                    base::Monitor& monitor) {
  Meter meter(monitor);
  const Plan plan = plan_of(computation, seed, settings, meter);
  std::optional<Plan> some;  // a few elements of every output
  const Undefined undefined = [&](std::vector<Elements>& operands) {
    constexpr std::int64_t drawn = 64;
    constexpr double any = std::numeric_limits<double>::infinity();
    ReferenceSettings without = settings;
    without.magnitudes = false;
    if (!some) some = sampled_plan(computation, seed, drawn, any, settings.most_elements, meter);
    Reference found = evaluated(computation, std::move(operands), *some, without, meter);
    std::int64_t count = 0;
    for (std::size_t t = 0; t < found.tensors.size(); ++t) {
      if (computation.tensors[t].role != Role::output) continue;
      const Elements& values = found.tensors[t];
      const auto look = [&](std::size_t e) {
        count += std::abs(values[e]) <= largest(computation.tensors[t].dtype) ? 0 : 1;
      };
      for (const std::int64_t e : values.sample()) look(std::size_t(e));
      for (std::size_t e = 0; !values.is_sample() && e < values.size(); ++e) look(e);
    }
    operands = std::move(found.tensors);
    return count;
  };
  return evaluated(computation, made_inputs(computation, seed, settings.seen, undefined, meter), plan, settings, meter);
}

Reference reference(const Computation& computation, std::vector<Elements> operands, const ReferenceSettings& settings,
                    base::Monitor& monitor) {
  Meter meter(monitor);
  return evaluated(computation, std::move(operands), complete_plan(computation), settings, meter);
}

Reference reference(const Computation& computation, std::vector<Elements> operands) {
  base::Monitor nobody;
  return reference(computation, std::move(operands), {}, nobody);
}

double tolerance(DType dtype, std::int64_t reduction_length, double magnitude) {
  if (std::isinf(magnitude)) return magnitude;
  if (!is_floating(dtype)) return magnitude;
  // Subnormal numbers may be lost, but for those of f16, which are as exact as its least normal ones.
  const double least = dtype == DType::f64   ? std::numeric_limits<double>::min()
                       : dtype == DType::f16 ? 0x1p-24
                                             : double(std::numeric_limits<float>::min());
  return std::max(least, error_of(magnitude, dtype, reduction_length));
}

}  // namespace graft::codegen
