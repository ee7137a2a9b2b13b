#include "meta/methods/parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "meta/methods/methods.h"
#include "meta/state.h"

namespace graft::meta {

bool all_take(const Members& members, const features::Encoding& encoding) {
  return std::all_of(members.begin(), members.end(), [&](const auto& member) { return member->takes(encoding); });
}

void put_part(const CostModel& model, const std::string& name, base::Arrays& arrays) {
  const std::string prefix = name + "/";
  arrays.attributes[prefix + "kind"] = model.kind();
  put_under(prefix, prefix + "state/", model.state(), arrays);
}

std::unique_ptr<CostModel> part_from(const base::Arrays& state, const std::string& name, std::string_view of_kind) {
  const std::string prefix = name + "/";
  const std::string kind = attribute_of(state, prefix + "kind");
  if (kind == of_kind) throw base::UserError(fmt::format("attribute '{}kind': {} in itself", prefix, kind));
  return model_from(kind, arrays_under(prefix, prefix + "state/", state));
}

void put_members(const Members& members, base::Arrays& arrays) {
  put_integers(arrays, "members", {std::int64_t(members.size())});
  for (std::size_t m = 0; m < members.size(); ++m) put_part(*members[m], fmt::format("member{}", m), arrays);
}

Members members_from(const base::Arrays& state, std::string_view of_kind) {
  const std::int64_t count = integer_of(state, "members", 2);
  Members members;
  for (std::int64_t m = 0; m < count; ++m) members.push_back(part_from(state, fmt::format("member{}", m), of_kind));
  return members;
}

Members copies(const Members& members) {
  Members out;
  for (const auto& member : members) out.push_back(member->clone());
  return out;
}

}  // namespace graft::meta
