#include "tasks/modelled/profile.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <optional>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "tasks/board.h"

namespace graft::tasks {
namespace {

using base::Document;
using base::UserError;

// The numbers of a profile: said once, for reading, checking and refusing.
struct Field {
  std::string_view key;
  std::variant<double Profile::*, std::int64_t Profile::*, bool Profile::*> member;
  double least = 0, greatest = 0;
  enum { always, with_l2, with_l3, with_l2_tlb, if_wanted } given = always;
};
constexpr std::array profile_fields{
    Field{"gigahertz", &Profile::gigahertz, 0.01, 20},
    Field{"out_of_order", &Profile::out_of_order},
    Field{"mispredict_cycles", &Profile::mispredict_cycles, 0, 1000},
    Field{"dispatch_width", &Profile::dispatch_width, 0, 64, Field::if_wanted},
    Field{"memory_parallelism", &Profile::memory_parallelism, 1, 1000},
    Field{"l1_ways", &Profile::l1_ways, 1, 1024},
    Field{"l2_ways", &Profile::l2_ways, 1, 1024, Field::with_l2},
    Field{"l2_shared", &Profile::l2_shared, 0, 0, Field::with_l2},
    Field{"l2_latency_cycles", &Profile::l2_latency_cycles, 1, 10000, Field::with_l2},
    Field{"l3_ways", &Profile::l3_ways, 1, 1024, Field::with_l3},
    Field{"l3_shared", &Profile::l3_shared, 0, 0, Field::with_l3},
    Field{"l3_latency_cycles", &Profile::l3_latency_cycles, 1, 10000, Field::with_l3},
    Field{"memory_nanoseconds", &Profile::memory_nanoseconds, 1, 100000},
    Field{"memory_gigabytes_per_second", &Profile::memory_gigabytes_per_second, 0.01, 100000},
    Field{"prefetch_streams", &Profile::prefetch_streams, 0, 256},
    Field{"page_bytes", &Profile::page_bytes, 1024, 1 << 30},
    Field{"huge_page_bytes", &Profile::huge_page_bytes, 0, 1 << 30, Field::if_wanted},
    Field{"tlb_entries", &Profile::tlb_entries, 1, 4096},
    Field{"l2_tlb_entries", &Profile::l2_tlb_entries, 0, 1 << 20},
    Field{"l2_tlb_ways", &Profile::l2_tlb_ways, 1, 1024, Field::with_l2_tlb},
    Field{"l2_tlb_cycles", &Profile::l2_tlb_cycles, 0, 10000, Field::with_l2_tlb},
    Field{"page_walk_cycles", &Profile::page_walk_cycles, 0, 100000},
    Field{"fork_join_microseconds", &Profile::fork_join_microseconds, 0, 100000},
    Field{"noise_percent", &Profile::noise_percent, 0, 50, Field::if_wanted},
};

bool applies(const Field& field, const codegen::Target& target, const Profile& profile) {
  switch (field.given) {
    case Field::with_l2:
      return target.l2_bytes.has_value();
    case Field::with_l3:
      return target.l3_bytes.has_value();
    case Field::with_l2_tlb:
      return profile.l2_tlb_entries > 0;
    default:
      return true;
  }
}
std::string_view what_it_describes(const Field& field) {
  if (field.given == Field::with_l2_tlb) return "l2_tlb_entries above 0";
  return field.given == Field::with_l2 ? "l2_bytes in the target" : "l3_bytes in the target";
}

}  // namespace

Profile profile_from(const Document& map, const Document& whole, const codegen::Target& target) {
  const Document& target_node = whole.at("target");
  std::vector<std::string_view> keys{"qemu", "model_cpu", "wide_model_cpu"};
  for (const Field& field : profile_fields) keys.push_back(field.key);
  map.only_keys(keys);
  for (const std::string_view key : {"l1_bytes", "line_bytes"}) target_node.at(key);
  Profile profile;
  for (const Field& field : profile_fields) {
    const Document* const node = map.find(field.key);
    if (!applies(field, target, profile)) {
      if (node != nullptr)
        throw UserError(node->place(),
                        fmt::format("{} without {}; add that, or drop the key", field.key, what_it_describes(field)));
      continue;
    }
    if (node == nullptr && field.given == Field::if_wanted) continue;
    const Document& given = map.at(field.key);
    std::visit(
        [&](auto member) {
          auto& value = profile.*member;
          if constexpr (std::is_same_v<decltype(value), bool&>)
            value = given.as_bool();
          else if constexpr (std::is_same_v<decltype(value), std::int64_t&>)
            value = given.as_integer();
          else
            value = given.as_number();
        },
        field.member);
  }
  check_profile(profile, target, [&](std::string_view key) {
    const Document* node = map.find(key);
    if (node == nullptr) node = target_node.find(key);
    return node == nullptr ? map.place() : node->place();
  });
  if (const Document* cpu = map.find("model_cpu")) profile.model_cpu = cpu->as_string();
  if (const Document* cpu = map.find("wide_model_cpu")) profile.wide_model_cpu = cpu->as_string();
  if (const Document* qemu = map.find("qemu")) profile.qemu = command_from(*qemu);
  return profile;
}

void check_profile(const Profile& profile, const codegen::Target& target,
                   const std::function<std::string(std::string_view key)>& place) {
  for (const Field& field : profile_fields) {
    if (std::holds_alternative<bool Profile::*>(field.member) || !applies(field, target, profile)) continue;
    const double value = std::visit([&](auto member) { return double(profile.*member); }, field.member);
    if (!(value >= field.least && value <= field.greatest)) {
      const bool of_a_level = field.given == Field::with_l2 || field.given == Field::with_l3;
      throw UserError(
          place(field.key),
          fmt::format("{} must be {:g} to {:g}, got {:g}{}", field.key, field.least, field.greatest, value,
                      of_a_level && value == 0 ? fmt::format("; where there is no such cache, leave out all "
                                                             "keys that begin with {}, in the target, too",
                                                             field.key.substr(0, 3))
                                               : ""));
    }
  }
  const auto power_of_two = [&](std::string_view key, std::int64_t value, std::int64_t least) {
    if (value < least || !std::has_single_bit(std::uint64_t(value)))
      throw UserError(place(key), fmt::format("{} must be a power of two of at least {}, got {}", key, least, value));
  };
  const auto given = [&](std::string_view key, const std::optional<std::int64_t>& bytes) {
    if (!bytes) throw UserError(place(key), fmt::format("a modelled platform needs {} in its target", key));
    return *bytes;
  };
  const std::int64_t line_bytes = given("line_bytes", target.line_bytes);
  power_of_two("line_bytes", line_bytes, 8);
  power_of_two("page_bytes", profile.page_bytes, line_bytes);
  if (profile.huge_page_bytes != 0) power_of_two("huge_page_bytes", profile.huge_page_bytes, 2 * profile.page_bytes);
  const auto level = [&](std::string_view key, std::int64_t bytes, std::int64_t ways) {
    constexpr std::int64_t most = std::int64_t(8) << 30;
    if (bytes <= 0 || bytes > most || bytes % (ways * line_bytes) != 0)
      throw UserError(place(key), fmt::format("{} of a modelled platform must be a multiple of {} ways of {} bytes, at "
                                              "most {}, got {}",
                                              key, ways, line_bytes, most, bytes));
  };
  level("l1_bytes", given("l1_bytes", target.l1_bytes), profile.l1_ways);
  if (target.l2_bytes) level("l2_bytes", *target.l2_bytes, profile.l2_ways);
  if (target.l3_bytes) level("l3_bytes", *target.l3_bytes, profile.l3_ways);
  if (target.l3_bytes && !target.l2_bytes) given("l2_bytes", target.l2_bytes);
  if (profile.l2_tlb_entries > 0 && profile.l2_tlb_entries % profile.l2_tlb_ways != 0)
    throw UserError(place("l2_tlb_entries"), fmt::format("l2_tlb_entries must be a multiple of {} ways, got {}",
                                                         profile.l2_tlb_ways, profile.l2_tlb_entries));
}

}  // namespace graft::tasks
