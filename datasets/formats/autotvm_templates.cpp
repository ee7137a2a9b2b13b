#include "datasets/formats/autotvm_templates.h"

#include <algorithm>

#include "datasets/formats/templates.h"

namespace graft::datasets::formats {
namespace {

using SketchPointer = std::shared_ptr<const codegen::Sketch>;
using Made = base::Result<SketchPointer>;
using Operator = Shape::Operator;

const base::Reason other_knobs{"other knobs than those we know"}, other_operator{"arguments that we do not know"};

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

Made conv2d_nchwc(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
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

Made depthwise_nchwc(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
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

Made dense_pack(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::dense) return other_operator;
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

Made dense_nopack(const Shape& shape, const Knobs& knobs, std::vector<std::int64_t>& arguments) {
  if (shape.op != Operator::dense) return other_operator;
  std::int64_t y = 0, x = 0, k = 0;
  if (!knobs.factors("tile_y", 2, &y) || !knobs.factors("tile_x", 2, &x) || !knobs.factors("tile_k", 2, &k) ||
      knobs.size() != 3 || !divide(shape.m, {y}) || !divide(shape.columns, {x}) || !divide(shape.depth, {k})) {
    return other_knobs;
  }
  arguments = {k, y, x, k == shape.depth ? 1 : 0};
  return template_sketch("dense_nopack");
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
  };
  return table;
}

const Template* template_named(std::string_view name) {
  const std::vector<Template>& all = autotvm_templates();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Template& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace graft::datasets::formats
