#include "graph/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace graft::graph {
namespace {

using codegen::Access;
using codegen::Affine;
using codegen::Combine;
using codegen::Computation;
using codegen::DType;
using codegen::Op;
using codegen::Role;
using codegen::Stage;
using codegen::Tensor;

}  // namespace

std::vector<int> factors_to_store(const Computation& computation, DType storage) {
  std::vector<int> found;
  for (const Stage& stage : computation.stages) {
    const codegen::Value& value = stage.value;
    if (stage.combine != Combine::sum || value.root().op != Op::mul || value.nodes.size() != 3 ||
        value.loads.size() != 2)
      continue;
    for (const std::size_t load : {0, 1}) {
      const int own = value.loads[load].tensor, other = value.loads[1 - load].tensor;
      const Tensor& factor = computation.tensors[std::size_t(own)];
      if (factor.role == Role::constant && factor.dtype == DType::f32 && factor.shape.size() > 1 &&
          computation.tensors[std::size_t(other)].dtype == storage &&
          std::find(found.begin(), found.end(), own) == found.end())
        found.push_back(own);
    }
  }
  return found;
}

void store_copies(Computation& computation, DType storage) {
  for (const Stage& stage : computation.stages) {
    Tensor& copy = computation.tensors[std::size_t(stage.tensor)];
    if (stage.combine == Combine::none && stage.value.root().op == Op::load && copy.role == Role::temporary &&
        computation.tensors[std::size_t(stage.value.loads[std::size_t(stage.value.root().load)].tensor)].dtype ==
            storage)
      copy.dtype = storage;
  }
}

void store_as(Part& part, int tensor, DType storage) {
  Computation& computation = part.computation;
  const int writer = computation.stage_writing(tensor);
  const auto reads = [&](const Stage& stage) {
    return std::any_of(stage.value.loads.begin(), stage.value.loads.end(),
                       [&](const Access& access) { return access.tensor == tensor; });
  };
  const Combine combine = writer < 0 ? Combine::none : computation.stages[std::size_t(writer)].combine;
  const bool is_sum = combine != Combine::none && !is_extreme(combine);  // or a product
  if (!is_sum && !(writer >= 0 && std::any_of(computation.stages.begin(), computation.stages.end(), reads))) {
    computation.tensors[std::size_t(tensor)].dtype = storage;
    return;
  }
  // The sums become a temporary, and a copy of it the output.
  Tensor output = computation.tensors[std::size_t(tensor)];
  output.dtype = storage;
  Tensor& sums = computation.tensors[std::size_t(tensor)];
  sums.role = Role::temporary;
  sums.name =
      fmt::format("t{}", std::count_if(computation.tensors.begin(), computation.tensors.end(), [](const Tensor& t) {
                           return t.role == Role::temporary;
                         }) - 1);
  Stage copy;
  copy.tensor = int(computation.tensors.size());
  Access access{tensor, {}, false};
  for (std::size_t d = 0; d < output.shape.size(); ++d) {
    copy.axes.push_back({fmt::format("i{}", d), output.shape[d]});
    access.index.push_back(Affine::variable(int(d)));
  }
  copy.value = codegen::Value::load(std::move(access));
  computation.stages.push_back(std::move(copy));
  computation.tensors.push_back(std::move(output));
  part.values.push_back(std::exchange(part.values[std::size_t(tensor)], -1));
}

}  // namespace graft::graph
