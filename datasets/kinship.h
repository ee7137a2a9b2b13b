// What two platforms have in common: the one answer to whether measurements, programs and files of one are of use on
// the other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/expression/target.h"

namespace graft::datasets {

// What is known of a platform; "" and null: not known.
struct PlatformIdentity {
  std::string_view id;                      // "native:v3,threads=2"
  std::string_view yaml = {};               // its full description
  const codegen::Target* target = nullptr;  // its code
};

// From nothing to everything in common.
enum class Kinship {
  none,
  same_code,        // architecture and vectors: what one runs, the other runs
  same_kind,        // and the cpu, real or modelled
  same_host,        // of native platforms: code for the same vectors, tuned for another cpu
  same_machine,     // under other settings (",threads=2"), or its description was changed
  same_description  // whatever the names; of unknown descriptions: the same id
};
Kinship kinship(const PlatformIdentity& a, const PlatformIdentity& b);

// Whether all of two YAML texts is equal but names, descriptions for people, comments and order. Where it says no
// target (imported measurements), the name is all there is and counts.
bool same_description(std::string_view a, std::string_view b);
// The keys that make two descriptions different: "target.l2_bytes".
std::vector<std::string> differences(std::string_view a, std::string_view b);

// The id without settings: "native:v3" of "native:v3,threads=2".
std::string_view machine_of(std::string_view id);

}  // namespace graft::datasets
