#include "study/inputs/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/shortened.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/dot_products.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/recognise.h"
#include "codegen/schedule/rules.h"
#include "codegen/schedule/template.h"
#include "study/inputs/field_error.h"

namespace graft::study {
namespace {

codegen::Space space_of_file(const std::string& file, const codegen::Workload& workload,
                             const codegen::Target& target) {
  codegen::Space space =
      codegen::parse_space(base::read_file(file), file, workload, target, codegen::dot_products(target));
  base::Stream stream(0, "space");
  try {
    search::Programs programs(target);
    (void)space.sample(stream, programs);
  } catch (const base::UserError& error) {
    throw base::UserError(file, error.what());
  }
  return space;
}

}  // namespace

codegen::Space space_of(const SpaceSource& source, const codegen::Workload& workload, const codegen::Target& target) {
  if (!source.file.empty()) {
    if (!source.intrinsics.empty())
      throw FieldError("intrinsics", "goes with the space by rule; a file of `space` holds its own intrinsics");
    if (source.layouts == codegen::Layouts::free)
      throw FieldError("layouts", "free goes with the space by rule; a file of `space` has its own layout steps");
    return space_of_file(source.file, workload, target);
  }
  std::vector<codegen::IntrinsicPointer> intrinsics;
  if (!source.intrinsics.empty())
    intrinsics = codegen::parse_intrinsics(base::read_file(source.intrinsics), source.intrinsics);
  for (const codegen::IntrinsicPointer& intrinsic : intrinsics) {
    if (const auto lacks = codegen::lacks_feature(*intrinsic, target))
      throw base::UserError(source.intrinsics, lacks->text);
  }
  std::vector<codegen::IntrinsicPointer> all = codegen::dot_products(target);
  for (const codegen::IntrinsicPointer& intrinsic : intrinsics)
    codegen::append_intrinsic(all, intrinsic, source.intrinsics);
  codegen::Space space = codegen::derive_space(workload, target, all, source.layouts.value_or(codegen::Layouts::given));
  for (const codegen::IntrinsicPointer& intrinsic : intrinsics) {
    const bool used = std::any_of(space.sketches().begin(), space.sketches().end(), [&](const auto& sketch) {
      return codegen::intrinsic_named(sketch.sketch->intrinsics, intrinsic->name) != nullptr;
    });
    if (!used)
      throw base::UserError(source.intrinsics, fmt::format("{} computes no part of '{}'", intrinsic->name,
                                                           base::shortened(workload.text())));
  }
  return space;
}

base::Result<codegen::Candidate> in_space(const codegen::Candidate& candidate, const codegen::Space& space,
                                          search::Programs& programs) {
  const bool is_same = candidate.workload == space.workload();
  if (!is_same && candidate.workload.key() == space.workload().key()) {
    if (auto found = codegen::renamed(candidate, space, programs.target())) return found;
  }
  if (!is_same) return space.nearest(candidate, programs);
  if (const auto identity = programs.identity(candidate); !identity) return identity.reason();
  const bool is_known = std::any_of(space.sketches().begin(), space.sketches().end(), [&](const auto& part) {
    return part.sketch == candidate.sketch || *part.sketch == *candidate.sketch;
  });
  if (is_known) return candidate;
  const base::Result<codegen::Schedule> steps = codegen::schedule(candidate);
  base::Result<codegen::Candidate> found = steps ? codegen::recognised(*steps, space) : steps.reason();
  return found ? std::move(found) : candidate;
}

std::vector<codegen::Candidate> in_space(const std::vector<codegen::Candidate>& start, const codegen::Space& space,
                                         search::Programs& programs) {
  std::vector<codegen::Candidate> found;
  for (const codegen::Candidate& candidate : start) {
    base::Result<codegen::Candidate> own = in_space(candidate, space, programs);
    if (!own)
      throw base::UserError(base::shortened(space.workload().text()),
                            fmt::format("cannot start from this schedule: {}", own.reason().text));
    found.push_back(std::move(own).value());
  }
  return found;
}

}  // namespace graft::study
