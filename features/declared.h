// What the encodings share: how a list of features is declared, and how counts become numbers.
//
// A list is a macro of X(name, unit, definition); the positions of the columns and the features' names, units and
// definitions are generated from it:
//
//   #define GRAFT_OF_THINGS(X) X(weight, "log2", "...") X(length, "log2", "...")
//   struct OfThing { enum { GRAFT_OF_THINGS(GRAFT_COLUMN) count }; };
//   constexpr Declared of_things[] = {GRAFT_OF_THINGS(GRAFT_DECLARED)};
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "features/encoding.h"

namespace graft::features {

struct Declared {
  std::string_view name, unit, definition;
};
#define GRAFT_COLUMN(name, unit, definition) name,
#define GRAFT_DECLARED(name, unit, definition) Declared{#name, unit, definition},

void declare(std::vector<Feature>& list, std::string_view prefix, std::span<const Declared> declared);

// The encoding of this list, hashed with `version`, which is raised when values change but the list
// does not.
Encoding encoding_of(std::string name, std::string description, Shape shape, std::vector<Feature> features, int version,
                     std::function<Encoded(const Subject& subject)> encode);

// Unit "log2": counts x enter as log2(1 + x), so that 0 means "none" and there is no logarithm of 0.
inline float log_count(double count) {
  return float(std::log2(1 + count));
}
// Unit "signed log2": negative values keep their sign.
inline float signed_log(double number) {
  return number < 0 ? -log_count(-number) : log_count(number);
}

}  // namespace graft::features
