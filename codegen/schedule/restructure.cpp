#include "codegen/schedule/restructure.h"

#include <fmt/format.h>

#include <algorithm>

namespace graft::codegen {
namespace {

// The stage and its tensor taken out; nobody may read it any more.
void remove_stage(Computation& computation, int stage) {
  const int gone = computation.stages[std::size_t(stage)].tensor;
  computation.stages.erase(computation.stages.begin() + stage);
  computation.tensors.erase(computation.tensors.begin() + gone);
  for (Stage& other : computation.stages) {
    other.tensor -= other.tensor > gone ? 1 : 0;
    for (Access& access : other.value.loads) access.tensor -= access.tensor > gone ? 1 : 0;
  }
}

// Text of the failure, empty if it applied.
std::string absorb(Computation& computation, const Step& step) {
  const auto stage_named = [&](const std::string& name) {
    const int tensor = computation.tensor_named(name);
    return tensor < 0 ? -1 : computation.stage_writing(tensor);
  };
  const int consumer = stage_named(step.stage), producer = stage_named(step.subject);
  if (consumer < 0) return fmt::format("there is no stage {}", step.stage);
  if (producer < 0) return fmt::format("there is no stage {}", step.subject);
  const Stage& source = computation.stages[std::size_t(producer)];
  const int tensor = source.tensor;
  if (source.combine != Combine::none) return fmt::format("{} is a reduction", step.subject);
  if (computation.tensors[std::size_t(tensor)].role != Role::temporary) {
    return fmt::format("{} is an output", step.subject);
  }
  const DType type = computation.tensors[std::size_t(tensor)].dtype;
  if (type != computation.tensors[std::size_t(computation.stages[std::size_t(consumer)].tensor)].dtype) {
    return fmt::format("{} is of another type", step.subject);
  }
  bool reads = false;
  for (std::size_t s = 0; s < computation.stages.size(); ++s) {
    for (const Access& access : computation.stages[s].value.loads) {
      if (access.tensor != tensor) continue;
      if (int(s) != consumer) return fmt::format("{} is read elsewhere, too", step.subject);
      if (access.padded) return fmt::format("{} is read beyond its shape", step.subject);
      reads = true;
    }
  }
  if (!reads) return fmt::format("{} does not read {}", step.stage, step.subject);
  Value& value = computation.stages[std::size_t(consumer)].value;
  value = replace_loads(value, [&](const Access& read) -> std::optional<Value> {
    if (read.tensor != tensor) return std::nullopt;
    return map_accesses(source.value, [&](Access access) {
      for (Affine& form : access.index) form = substitute(form, read.index);
      return access;
    });
  });
  remove_stage(computation, producer);
  return "";
}

}  // namespace

base::Result<Computation> restructured(const Computation& computation, const Schedule& schedule) {
  Computation result = computation;
  for (const Step& step : schedule) {
    if (step.kind != StepKind::absorb) continue;
    const std::string failure = absorb(result, step);
    if (!failure.empty()) return base::Reason{fmt::format("{}: {}", to_text(step), failure)};
  }
  return result;
}

}  // namespace graft::codegen
