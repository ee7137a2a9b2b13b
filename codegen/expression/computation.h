// An operator as index expressions: tensors, and stages that each fill one tensor. It says what an operator computes,
// never how.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expression/layout.h"
#include "codegen/expression/value.h"

namespace graft::codegen {

// name of a tensor's part in the operator; `constant` = known before run (weights), so `prepare` may repack it.
enum class Role { input, constant, output, temporary };
std::string_view name_of(Role role);

struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  Role role = Role::temporary;
  // A literal: its elements, row-major, known when code is generated. A temporary that no stage writes.
  std::vector<double> values = {};
  Layout layout = {};  // how `shape` stores the operator's logical index; only restructuring sets it
  bool operator==(const Tensor&) const = default;
  bool is_literal() const { return !values.empty(); }
  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * bytes_of(dtype); }
};

enum class Combine { none, sum, max, min, product };
std::string_view name_of(Combine combine);  // "=", "+=", "max=", "min=", "*="
double identity_of(Combine combine);        // start of a reduction: 0, -inf, +inf (integers: ends of their range), 1
bool is_extreme(Combine combine);           // the result is one of the values: max, min

struct Axis {
  std::string name;
  std::int64_t extent = 1;
  bool operator==(const Axis&) const = default;
};

// T[x0, x1, ...] combine= value. The first rank(T) axes are spatial, axis d runs over dimension d of T; the axes after
// them are reduced. combine == none has no reduction axes. With `index` the element is T[index] instead: forms over the
// leading axes, which are the spatial ones then, one form per dimension, every element of T reached exactly once
// (T[4*t + i] with axes t, i).
struct Stage {
  int tensor = 0;
  std::vector<Axis> axes;
  Combine combine = Combine::none;
  Value value;
  std::vector<Affine> index = {};
  bool operator==(const Stage&) const = default;
};

struct Computation {
  std::vector<Tensor> tensors;
  std::vector<Stage> stages;  // in order of execution; every temporary and output is written by exactly one stage
  bool operator==(const Computation&) const = default;

  int tensor_named(std::string_view name) const;  // -1 if there is none
  int stage_writing(int tensor) const;            // -1 for inputs, constants and literals
  int spatial_axes(const Stage& stage) const;
  bool is_reduction(const Stage& stage) const { return int(stage.axes.size()) > spatial_axes(stage); }
};

// The element that a stage writes, over its axes.
std::vector<Affine> element_of(const Computation& computation, const Stage& stage);

// The types in which a stage computes.
std::vector<NodeType> types_of(const Computation& computation, const Stage& stage);
// The value of the stage that writes a tensor, to be put in place of loads of that tensor in any value: conversions
// that follow from where it stands are written out.
Value as_stored(const Computation& computation, int tensor, Value value);
// The number of elements by which an access moves in its (row-major) tensor per step of a stage's axis;
// indices that are values are not counted.
std::int64_t stride_along(const Computation& computation, const Access& access, int axis);

// Throws UserError if it is not well formed: an index outside its tensor (unless padded), a tensor written twice or
// read before it is written, an extent <= 0, a name twice. Returns its argument.
Computation checked(Computation computation, std::string_view place);

// Arithmetic operations of all stages (adds, multiplies, divisions, compares, specials; a reduction's combine counts as
// one): 2mnk for a matmul. Copies are not counted.
std::int64_t flops(const Computation& computation);

}  // namespace graft::codegen
