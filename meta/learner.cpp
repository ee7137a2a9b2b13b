#include "meta/learner.h"

#include <fmt/format.h>

#include "base/error.h"

namespace graft::meta {

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
