// A space, and trials of it, that several tests of this room need.
#pragma once

#include <string>

#include "base/random.h"
#include "codegen/space/space.h"
#include "datasets/trial.h"
#include "tests/support/judged_space.h"
#include "tests/support/target.h"

namespace graft::study {

inline const codegen::JudgedSpace& space() {
  static const codegen::JudgedSpace known =
      codegen::judged_space(codegen::parse_workload("matmul(m=64,n=64,k=64)"), small_target());
  return known;
}

// One `ok` trial of a drawn schedule, identified by its program's hash.
inline datasets::Trial trial_of(base::Stream& stream, std::int64_t index, std::uint64_t program_hash, double seconds) {
  datasets::Trial trial{index, space().sample(stream), program_hash, {}};
  trial.measurement.seconds = {seconds};
  trial.measurement.check = "host";
  return trial;
}

}  // namespace graft::study
