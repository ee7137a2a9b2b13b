#include "codegen/schedule/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace graft::codegen {

int stage_named(const Computation& computation, std::string_view name) {
  const int tensor = computation.tensor_named(name);
  return tensor < 0 ? -1 : computation.stage_writing(tensor);
}

std::string fresh_axis(std::string name, const std::vector<Axis>& known) {
  while (std::any_of(known.begin(), known.end(), [&](const Axis& axis) { return axis.name == name; })) name += '_';
  return name;
}

int add_temporary(Computation& computation, std::string name, DType dtype, std::vector<std::int64_t> shape,
                  std::vector<double> values) {
  while (computation.tensor_named(name) >= 0) name += '_';
  computation.tensors.push_back({std::move(name), dtype, std::move(shape), Role::temporary, std::move(values)});
  return int(computation.tensors.size()) - 1;
}

void remove_stage(Computation& computation, int stage) {
  const int gone = computation.stages[std::size_t(stage)].tensor;
  computation.stages.erase(computation.stages.begin() + stage);
  computation.tensors.erase(computation.tensors.begin() + gone);
  for (Stage& other : computation.stages) {
    other.tensor -= other.tensor > gone ? 1 : 0;
    for (Access& access : other.value.loads) access.tensor -= access.tensor > gone ? 1 : 0;
  }
}

void replace_stage(Computation& computation, int stage, std::vector<Stage> by) {
  const auto at = computation.stages.erase(computation.stages.begin() + stage);
  computation.stages.insert(at, std::make_move_iterator(by.begin()), std::make_move_iterator(by.end()));
}

void split_axis(const Computation& computation, Stage& stage, int axis, const AxisParts& parts) {
  const int count = int(parts.steps.size());
  const int spatial = computation.spatial_axes(stage);
  std::vector<Affine> by;
  for (int a = 0; a < int(stage.axes.size()); ++a) {
    Affine form = Affine::variable(a <= axis ? a : a + count - 1);
    if (a == axis) {
      form = {};
      for (int part = 0; part < count; ++part) form += Affine::variable(axis + part, parts.steps[std::size_t(part)]);
    }
    by.push_back(std::move(form));
  }
  if (axis < spatial) {
    stage.index = element_of(computation, stage);
    for (Affine& form : stage.index) form = substitute(form, by);
  } else {
    for (Affine& form : stage.index) form = substitute(form, by);
  }
  stage.value = substitute(stage.value, by);
  const std::string name = stage.axes[std::size_t(axis)].name;
  stage.axes.erase(stage.axes.begin() + axis);
  for (int part = 0; part < count; ++part) {
    std::string own = part == 0 ? name : fresh_axis(fmt::format("{}_{}", name, part), stage.axes);
    stage.axes.insert(stage.axes.begin() + axis + part, {std::move(own), parts.extents[std::size_t(part)]});
  }
}

}  // namespace graft::codegen
