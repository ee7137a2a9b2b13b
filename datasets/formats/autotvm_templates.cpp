#include "datasets/formats/autotvm_templates.h"

#include <algorithm>

#include "datasets/formats/templates.h"

namespace graft::datasets::formats {
namespace {

using SketchPointer = std::shared_ptr<const codegen::Sketch>;
using SketchResult = base::Result<SketchPointer>;
using Operator = Shape::Operator;

const base::Reason other_knobs{"knobs that we do not know, or that do not fit the shapes"},
    other_operator{"arguments that we do not know"};

// What TVM's x86 templates do with the padded copy of the input.
constexpr std::string_view padding_in_blocks = R"(
block P 0 1 / $tile_ic 2 3 1 % $tile_ic
vector P i_1.0
parallel P b.0 i.0 p.0
)";

SketchPointer padded(const Shape& shape, std::string_view file, std::string_view lines) {
  return template_sketch(file, shape.is_padded() ? lines : std::string_view());
}

bool divide(std::int64_t whole, std::initializer_list<std::int64_t> parts) {
  return std::all_of(parts.begin(), parts.end(), [&](std::int64_t part) { return part >= 1 && whole % part == 0; });
}

SketchResult conv2d_nchwc(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::conv2d) return other_operator;
  std::int64_t ic = 0, oc = 0, ow = 0, unroll = 0, oh = 0;
  if (!knobs.factors("tile_ic", 2, &ic) || !knobs.factors("tile_oc", 2, &oc) || !knobs.factors("tile_ow", 2, &ow) ||
      !divide(shape.c, {ic}) || !divide(shape.k, {oc}) || knobs.size() != 4) {
    return other_knobs;
  }
  ow = std::min(ow, shape.out_w);
  const bool is_1x1 = shape.r == 1 && shape.s == 1;
  if (is_1x1) {
    if (!knobs.value("tile_oh", oh) || oh < 1) return other_knobs;
    arguments = {ic, oc, std::min(oh, shape.out_h), ow};
    return padded(shape, "conv2d_nchwc_1x1", padding_in_blocks);
  }
  if (!knobs.value("unroll_kw", unroll) || unroll < 0 || unroll > 1) return other_knobs;
  arguments = {ic, oc, ow, unroll};
  return padded(shape, "conv2d_nchwc", padding_in_blocks);
}

SketchResult depthwise_nchwc(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::depthwise_conv2d) return other_operator;
  std::int64_t ic = 0, oc = 0, ow = 0, unroll = 0;
  if (!knobs.factors("tile_ic", 2, &ic) || !knobs.factors("tile_oc", 2, &oc) || !knobs.factors("tile_ow", 2, &ow) ||
      !knobs.value("unroll_kw", unroll) || unroll < 0 || unroll > 1 || !divide(shape.c, {ic, oc}) ||
      knobs.size() != 4) {
    return other_knobs;
  }
  ow = std::min(ow, shape.out_w);
  if (ic % oc == 0) {
    arguments = {ic, oc, ow, unroll};
    return padded(shape, "depthwise_nchwc_coarse", R"(
block P 0 1 / $tile_ic 2 3 1 % $tile_ic / $tile_oc 1 % $tile_oc
vector P i_2.0
parallel P b.0 i.0 p.0
)");
  }
  if (oc % ic != 0) return base::Reason{"blocks that are read and blocks that are written do not divide each other"};
  arguments = {oc, ic, ow, unroll};
  return padded(shape, "depthwise_nchwc_fine", R"(
block P 0 1 / $tile_oc 1 % $tile_oc / $tile_ic 2 3 1 % $tile_ic
vector P i_2.0
parallel P b.0 i.0 i_1.0 p.0
)");
}

SketchResult dense_pack(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::dense || !shape.is_transposed) return other_operator;
  std::int64_t y[2], x[2], k = 0, inner = 0;
  if (!knobs.factors("tile_y", 3, y) || !knobs.factors("tile_x", 3, x) || !knobs.factors("tile_k", 2, &k) ||
      !knobs.factors("tile_inner", 2, &inner) || knobs.size() != 4 || !divide(shape.m, {y[1], y[0] * y[1]}) ||
      !divide(shape.columns, {x[1], x[0] * x[1]}) || !divide(shape.depth, {k})) {
    return other_knobs;
  }
  inner = std::min(inner, y[1]);
  if (y[1] % inner != 0) return base::Reason{"tile_inner does not divide the innermost part of tile_y"};
  arguments = {x[1], y[0] * y[1], y[1], inner, x[0], k};
  return template_sketch("dense_pack");
}

SketchResult dense_nopack(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::dense || !shape.is_transposed) return other_operator;
  std::int64_t y = 0, x = 0, k = 0;
  if (!knobs.factors("tile_y", 2, &y) || !knobs.factors("tile_x", 2, &x) || !knobs.factors("tile_k", 2, &k) ||
      knobs.size() != 3 || !divide(shape.m, {y}) || !divide(shape.columns, {x}) || !divide(shape.depth, {k})) {
    return other_knobs;
  }
  arguments = {k, y, x, k == shape.depth ? 1 : 0};
  return template_sketch("dense_nopack");
}

// Tile sizes in elements from the parts of a split, outermost part left out. False if they are not such a split.
template <std::size_t parts>
bool sizes(const Knobs& knobs, std::string_view name, std::int64_t whole, std::int64_t (&into)[parts]) {
  if (!knobs.factors(name, parts + 1, into)) return false;
  for (std::size_t i = parts - 1; i-- > 0;) {
    if (into[i] > whole / into[i + 1]) return false;
    into[i] *= into[i + 1];
  }
  return divide(whole, {into[0]});
}

// How many of these loops, innermost first, TVM unrolls by itself: as long as there are no more copies than
// auto_unroll_max_step. -1 if there is no such knob.
std::int64_t unrolled(const Knobs& knobs, std::initializer_list<std::int64_t> trips) {
  std::int64_t most = 0, explicitly = 0, copies = 1, count = 0;
  if (!knobs.value("auto_unroll_max_step", most) || !knobs.value("unroll_explicit", explicitly)) return -1;
  for (const std::int64_t trip : trips) {
    if (trip > most / copies) break;
    copies *= trip;
    ++count;
  }
  return count;
}

SketchResult conv2d_cuda(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::conv2d) return other_operator;
  std::int64_t f[3], y[3], x[3], rc[1], ry[1], rx[1];
  if (!sizes(knobs, "tile_f", shape.k, f) || !sizes(knobs, "tile_y", shape.out_h, y) ||
      !sizes(knobs, "tile_x", shape.out_w, x) || !sizes(knobs, "tile_rc", shape.c, rc) ||
      !sizes(knobs, "tile_ry", shape.r, ry) || !sizes(knobs, "tile_rx", shape.s, rx) || knobs.size() != 8) {
    return other_knobs;
  }
  const std::int64_t unroll = unrolled(knobs, {x[2], y[2], f[2], rx[0], ry[0], rc[0]});
  if (unroll < 0) return other_knobs;
  arguments = {shape.is_padded(), f[0], f[1], f[2], y[0], y[1], y[2], x[0], x[1], x[2], rc[0], ry[0], rx[0], unroll};
  return template_sketch("conv2d_cuda");
}

SketchResult depthwise_cuda(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::depthwise_conv2d) return other_operator;
  std::int64_t f[3], y[3], x[3];
  if (!sizes(knobs, "tile_f", shape.c, f) || !sizes(knobs, "tile_y", shape.out_h, y) ||
      !sizes(knobs, "tile_x", shape.out_w, x) || knobs.size() != 5) {
    return other_knobs;
  }
  const std::int64_t unroll = unrolled(knobs, {shape.s, shape.r, x[2], y[2], f[2]});
  if (unroll < 0) return other_knobs;
  arguments = {shape.is_padded(), f[0], f[1], f[2], y[0], y[1], y[2], x[0], x[1], x[2], unroll};
  return template_sketch("depthwise_cuda");
}

SketchResult batch_matmul_cuda(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::batch_matmul) return other_operator;
  std::int64_t y[2], x[2], k[1];
  if (!sizes(knobs, "tile_y", shape.m, y) || !sizes(knobs, "tile_x", shape.columns, x) ||
      !sizes(knobs, "tile_k", shape.depth, k) || knobs.size() != 5) {
    return other_knobs;
  }
  const std::int64_t unroll = unrolled(knobs, {x[1], y[1], k[0]});
  if (unroll < 0) return other_knobs;
  arguments = {y[0], y[1], x[0], x[1], k[0], unroll};
  return template_sketch("batch_matmul_cuda");
}

SketchResult dense_large_batch(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::dense) return other_operator;
  std::int64_t x[3], y[3], k[2];
  if (!sizes(knobs, "tile_x", shape.m, x) || !sizes(knobs, "tile_y", shape.columns, y) ||
      !sizes(knobs, "tile_k", shape.depth, k) || knobs.size() != 3) {
    return other_knobs;
  }
  arguments = {x[0], x[1], x[2], y[0], y[1], y[2], k[0], k[1]};
  return template_sketch("dense_large_batch");
}

SketchResult batch_matmul_x86(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::batch_matmul) return other_operator;
  std::int64_t y[1], x[1], k[1];
  if (!sizes(knobs, "tile_y", shape.m, y) || !sizes(knobs, "tile_x", shape.columns, x) ||
      !sizes(knobs, "tile_k", shape.depth, k) || knobs.size() != 3) {
    return other_knobs;
  }
  arguments = {k[0], y[0], x[0], k[0] == shape.depth ? 1 : 0};
  return template_sketch("batch_matmul_x86");
}

// What an annotation says of some loops: of three, these are height, width, channels.
template <int loops>
struct Annotated {
  std::int64_t vector = 0;  // 0: none, else the number of the loop from 1 on
  std::int64_t unrolled[loops] = {};
};
template <int loops>
bool annotated(const Knobs& knobs, std::string_view name, Annotated<loops>& into) {
  const Knobs::Knob& knob = knobs.named(name);
  if (knob.kind != Knobs::Kind::annotate || knob.count != loops) return false;
  for (int i = 0; i < loops; ++i) {
    const std::string_view word = annotations[std::size_t(knobs.values[std::size_t(knob.first + i)])];
    if (word == "vec" && into.vector != 0) return false;
    if (word == "vec") into.vector = i + 1;
    into.unrolled[i] = word == "unroll";
  }
  return true;
}

// The loops within a tile as the sketch lists their orders: a vector is innermost wherever TVM has its loop.
constexpr std::int64_t in_order = 0;  // height, width, channels
constexpr std::int64_t orders_with_vector[2][3] = {{4, 2, 0},
                                                   {3, 1, 0}};  // channels last / first, by the vector's loop

SketchResult conv2d_spatial_pack(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::conv2d || shape.dilation_h != 1 || shape.dilation_w != 1) return other_operator;
  std::int64_t co[1], oh[1], ow[1];
  Annotated<3> spatial;
  const Knobs::Knob &reduce = knobs.named("ann_reduce"), &order = knobs.named("reorder_0");
  if (!sizes(knobs, "tile_co", shape.k, co) || !sizes(knobs, "tile_oh", shape.out_h, oh) ||
      !sizes(knobs, "tile_ow", shape.out_w, ow) || !annotated(knobs, "ann_spatial", spatial) ||
      reduce.kind != Knobs::Kind::annotate || reduce.count != 2 || order.kind != Knobs::Kind::reorder ||
      order.count != 10 || knobs.size() != 6) {
    return other_knobs;
  }
  constexpr std::int64_t channels_last[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                         channels_first[] = {0, 1, 2, 3, 4, 5, 6, 9, 7, 8};
  const auto given = knobs.values.begin() + order.first;
  const bool is_first = std::equal(given, given + 10, channels_first);
  if (!is_first && !std::equal(given, given + 10, channels_last)) return other_knobs;
  const auto reduced = [&](int i) {
    return std::int64_t(annotations[std::size_t(knobs.values[std::size_t(reduce.first + i)])] == "unroll");
  };
  std::int64_t inner = is_first ? 1 : in_order;
  if (spatial.vector > 0) inner = orders_with_vector[is_first][spatial.vector - 1];
  arguments = {co[0],
               shape.is_padded(),
               oh[0],
               ow[0],
               inner,
               spatial.vector,
               reduced(0),
               reduced(1),
               spatial.unrolled[0],
               spatial.unrolled[1],
               spatial.unrolled[2]};
  return template_sketch("conv2d_spatial_pack");
}

// TVM numbers tiles along the rows of an image, one row after the other, and splits the numbers. False where such a
// block is not a rectangle.
bool rectangle(std::int64_t block, std::int64_t high, std::int64_t wide, std::int64_t& rows, std::int64_t& columns) {
  columns = std::min(block, wide);
  rows = block / columns;
  return rows * columns == block && divide(wide, {columns}) && divide(high, {rows});
}

SketchResult conv2d_winograd_arm(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  constexpr std::int64_t results = 4;  // in each direction of a tile
  if (shape.op != Operator::conv2d || shape.r != 3 || shape.s != 3 || shape.stride_h != 1 || shape.stride_w != 1 ||
      shape.dilation_h != 1 || shape.dilation_w != 1) {
    return other_operator;
  }
  const std::int64_t high = (shape.out_h + results - 1) / results, wide = (shape.out_w + results - 1) / results;
  std::int64_t block[1], k[1], c[1], rows = 0, columns = 0;
  Annotated<1> reduce;
  Annotated<2> spatial;
  if (!sizes(knobs, "tile_p", shape.n * high * wide, block) || !sizes(knobs, "tile_k", shape.k, k) ||
      !sizes(knobs, "tile_c", shape.c, c) || !annotated(knobs, "ann_reduce", reduce) || reduce.vector != 0 ||
      !annotated(knobs, "ann_spatial", spatial) || knobs.size() != 5) {
    return other_knobs;
  }
  if (!rectangle(block[0], high, wide, rows, columns)) {
    return base::Reason{"tile_p is neither a part of a row of tiles nor whole rows"};
  }
  const bool is_whole = shape.out_h % results == 0 && shape.out_w % results == 0;
  std::int64_t copied = 0;  // what zeros surround: nothing, P, or X, which then ends within a tile
  if (shape.is_padded()) {
    copied = 1;
  } else if (!is_whole) {
    copied = 2;
  }
  const auto loop = [&](int i) { return spatial.vector == i + 1 ? 2 : spatial.unrolled[i]; };
  arguments = {k[0], rows, columns, copied, is_whole, c[0], loop(0), loop(1), reduce.unrolled[0]};
  return template_sketch("conv2d_winograd_arm");
}

SketchResult depthwise_arm(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::depthwise_conv2d) return other_operator;
  std::int64_t c[1], h[1], w[1];
  Annotated<3> spatial;
  if (!sizes(knobs, "tile_c", shape.c, c) || !sizes(knobs, "tile_h", shape.out_h, h) ||
      !sizes(knobs, "tile_w", shape.out_w, w) || !annotated(knobs, "ann", spatial) || knobs.size() != 4) {
    return other_knobs;
  }
  constexpr std::int64_t orders[] = {0, 1, 2, 0};  // by the vector's loop
  arguments = {c[0],
               shape.is_padded(),
               h[0],
               w[0],
               orders[spatial.vector],
               spatial.vector,
               spatial.unrolled[0],
               spatial.unrolled[1],
               spatial.unrolled[2]};
  return template_sketch("depthwise_arm");
}

}  // namespace

void Knobs::clear() {
  values.clear();
  used_ = 0;
}

Knobs::Knob& Knobs::next() {
  if (used_ == knobs_.size()) knobs_.emplace_back();
  Knob& knob = knobs_[used_++];
  knob.name.clear();
  knob.first = int(values.size());
  knob.count = 0;
  return knob;
}

const Knobs::Knob& Knobs::named(std::string_view name) const {
  static const Knob none;
  const auto found = std::find_if(begin(), end(), [&](const Knob& knob) { return knob.name == name; });
  return found == end() ? none : *found;
}

bool Knobs::factors(std::string_view name, std::size_t parts, std::int64_t* into) const {
  const Knob& knob = named(name);
  if (knob.kind != Kind::split || knob.count != int(parts)) return false;
  for (std::size_t i = 1; i < parts; ++i) {
    into[i - 1] = values[std::size_t(knob.first) + i];
    if (into[i - 1] < 1 || into[i - 1] > (std::int64_t(1) << 31)) return false;
  }
  return true;
}

bool Knobs::value(std::string_view name, std::int64_t& into) const {
  const Knob& knob = named(name);
  if (knob.kind != Kind::other || knob.count != 1) return false;
  into = values[std::size_t(knob.first)];
  return true;
}

const std::vector<Template>& autotvm_templates() {
  static const std::vector<Template> table = {
      {"conv2d_NCHWc.x86", conv2d_nchwc},
      {"depthwise_conv2d_NCHWc.x86", depthwise_nchwc},
      {"dense_pack.x86", dense_pack},
      {"dense_nopack.x86", dense_nopack},
      {"batch_matmul.x86", batch_matmul_x86},
      {"conv2d_nchw_spatial_pack.arm_cpu", conv2d_spatial_pack},
      {"conv2d_nchw_winograd.arm_cpu", conv2d_winograd_arm},
      {"depthwise_conv2d_nchw.arm_cpu", depthwise_arm},
      {"conv2d_nchw.cuda", conv2d_cuda},
      {"depthwise_conv2d_nchw.cuda", depthwise_cuda},
      {"batch_matmul.cuda", batch_matmul_cuda},
      {"dense_large_batch.gpu", dense_large_batch},
  };
  return table;
}

const Template* template_named(std::string_view name) {
  const std::vector<Template>& all = autotvm_templates();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Template& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace graft::datasets::formats
