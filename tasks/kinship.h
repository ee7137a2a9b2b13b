// Kinship of platforms (datasets/kinship.h) as this room knows them.
#pragma once

#include "datasets/kinship.h"
#include "tasks/platform.h"

namespace graft::tasks {

using datasets::Kinship;

// Refers to the platform.
inline datasets::PlatformIdentity identity_of(const Platform& platform) {
  return {platform.name, platform.yaml, &platform.target};
}
inline Kinship kinship(const Platform& a, const Platform& b) {
  return datasets::kinship(identity_of(a), identity_of(b));
}
inline bool same_description(const Platform& a, const Platform& b) {
  return kinship(a, b) == Kinship::same_description;
}

}  // namespace graft::tasks
