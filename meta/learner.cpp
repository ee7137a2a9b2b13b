#include "meta/learner.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace graft::meta {

std::string_view name_of(KnownRowsUse use) {
  switch (use) {
#define X(name)            \
  case KnownRowsUse::name: \
    return #name;
    GRAFT_KNOWN_ROWS_USES(X)
#undef X
  }
  return "";
}

KnownRowsUse known_rows_use_named(std::string_view name) {
  std::vector<std::string> names;
#define X(use)                                \
  if (name == #use) return KnownRowsUse::use; \
  names.emplace_back(#use);
  GRAFT_KNOWN_ROWS_USES(X)
#undef X
  throw base::UserError(fmt::format("unknown use of known rows '{}'{}", name, base::did_you_mean(name, names)));
}

void check_fits(NetworkKind kind, const features::Encoding& encoding) {
  const bool tree = encoding.shape == features::Shape::tree;
  if (tree == (kind == NetworkKind::treegru)) return;
  throw base::UserError(
      tree
          ? fmt::format("encoding {} makes trees, which {} does not take; use treegru", encoding.name, name_of(kind))
          : fmt::format("encoding {} makes no trees, which {} needs; use encoding tree", encoding.name, name_of(kind)));
}

bool takes(const NetworkShape& shape, const features::Encoding& encoding) {
  return shape.inputs == std::int64_t(encoding.features.size()) &&
         (shape.kind == NetworkKind::treegru) == (encoding.shape == features::Shape::tree);
}

}  // namespace graft::meta
