#include "datasets/kinship.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/document.h"
#include "base/error.h"

namespace graft::datasets {
namespace {

constexpr std::string_view for_people[] = {"name", "long_name", "description"};

void flatten(const base::Document& node, const std::string& prefix, std::map<std::string, std::string>& values) {
  if (!node.is_map()) {
    values[prefix] = node.to_json();
    return;
  }
  for (const auto& [key, value] : node.as_map()) flatten(value, prefix.empty() ? key : prefix + "." + key, values);
}

// What counts of a description, by dotted key; nullopt for a text that is not YAML.
std::optional<std::map<std::string, std::string>> values_of(std::string_view yaml) {
  try {
    const base::Document document = base::parse_yaml(yaml, "platform");
    if (!document.is_map()) return std::nullopt;
    std::map<std::string, std::string> values;
    flatten(document, "", values);
    if (document.find("target") != nullptr) {
      for (const std::string_view key : for_people) values.erase(std::string(key));
    }
    return values;
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

bool is_native(std::string_view id) {
  return id == "native" || id.starts_with("native:");
}

std::string_view architecture(const codegen::Target& target) {
  return std::string_view(target.triple).substr(0, target.triple.find('-'));
}

}  // namespace

std::string_view machine_of(std::string_view id) {
  return id.substr(0, id.find(','));
}

bool same_description(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto left = values_of(a), right = values_of(b);
  return left && right && *left == *right;
}

std::vector<std::string> differences(std::string_view a, std::string_view b) {
  const auto left = values_of(a), right = values_of(b);
  if (!left || !right) return {};
  std::set<std::string> keys;
  for (const auto* const one : {&*left, &*right}) {
    const auto& other = one == &*left ? *right : *left;
    for (const auto& [key, value] : *one) {
      const auto found = other.find(key);
      if (found == other.end() || found->second != value) keys.insert(key);
    }
  }
  return {keys.begin(), keys.end()};
}

Kinship kinship(const PlatformIdentity& a, const PlatformIdentity& b) {
  if (a.yaml.empty() || b.yaml.empty() ? a.id == b.id : same_description(a.yaml, b.yaml))
    return Kinship::same_description;
  if (machine_of(a.id) == machine_of(b.id)) return Kinship::same_machine;
  if (a.target == nullptr || b.target == nullptr || architecture(*a.target) != architecture(*b.target) ||
      a.target->vector_bits != b.target->vector_bits)
    return Kinship::none;
  if (is_native(machine_of(a.id)) && is_native(machine_of(b.id))) return Kinship::same_host;
  return a.target->cpu == b.target->cpu ? Kinship::same_kind : Kinship::same_code;
}

}  // namespace graft::datasets
