#include "codegen/expression/padding.h"

#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace graft::codegen {

bool is_padding_copy(const Stage& stage) {
  if (stage.combine != Combine::none || stage.value.nodes.size() != 1) return false;
  if (stage.value.loads.size() != 1 || !stage.value.loads[0].padded) return false;
  std::set<int> axes;
  for (const Affine& form : stage.value.loads[0].index) {
    if (form.terms.size() != 1 || form.terms[0].coefficient != 1) return false;
    if (!axes.insert(form.terms[0].variable).second) return false;
  }
  return true;
}

Computation with_padding_stages(const Computation& computation) {
  Computation result;
  result.tensors = computation.tensors;
  for (const Stage& stage : computation.stages) {
    Stage changed = stage;
    if (!is_padding_copy(stage)) {
      for (Access& access : changed.value.loads) {
        if (!access.padded) continue;
        std::vector<Interval> ranges;
        for (const Axis& axis : stage.axes) ranges.push_back({0, axis.extent - 1});
        const Tensor& source = result.tensors[std::size_t(access.tensor)];
        Tensor padded{source.name + ".pad", source.dtype, {}, Role::temporary};
        for (int copy = 2; result.tensor_named(padded.name) >= 0; ++copy)
          padded.name = fmt::format("{}.pad{}", source.name, copy);
        Stage fill;
        fill.tensor = int(result.tensors.size());
        Access shifted{access.tensor, {}, true, access.outside};
        for (std::size_t d = 0; d < access.index.size(); ++d) {
          const Interval interval = range(access.index[d], ranges);
          padded.shape.push_back(interval.width());
          fill.axes.push_back({fmt::format("p{}", d), interval.width()});
          shifted.index.push_back(Affine::variable(int(d)) + Affine(interval.low));
          access.index[d] += Affine(-interval.low);
        }
        fill.value = Value::load(shifted);
        access.tensor = fill.tensor;
        access.padded = false;
        access.outside = 0;
        result.tensors.push_back(std::move(padded));
        result.stages.push_back(std::move(fill));
      }
    }
    result.stages.push_back(std::move(changed));
  }
  return result;
}

}  // namespace graft::codegen
