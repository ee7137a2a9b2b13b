#include "codegen/expression/target.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"

namespace graft::codegen {

namespace {

// The numbers of a target: key, least and greatest value, whether it must be a power of two.
struct Bounds {
  std::int64_t least, greatest;
  bool power_of_two = false;
};
constexpr Bounds vector_bits_bounds{0, 65536, true}, registers_bounds{1, 4096}, cores_bounds{1, 65536},
    cache_bounds{1, std::int64_t(1) << 40}, line_bounds{1, 65536, true};

std::int64_t number(const base::Document& value, std::string_view key, const Bounds& bounds) {
  const std::int64_t n = value.as_integer();
  if (n < bounds.least || n > bounds.greatest)
    throw base::UserError(value.place(),
                          fmt::format("{} must be {} to {}, got {}", key, bounds.least, bounds.greatest, n));
  if (bounds.power_of_two && (n & (n - 1)) != 0)
    throw base::UserError(value.place(), fmt::format("{} must be a power of two, got {}", key, n));
  return n;
}

std::optional<std::int64_t> optional_number(const base::Document& document, std::string_view key,
                                            const Bounds& bounds) {
  const base::Document* value = document.find(key);
  if (!value) return std::nullopt;
  return number(*value, key, bounds);
}

}  // namespace

Target target_from(const base::Document& document) {
  document.only_keys({"triple", "cpu", "features", "vector_bits", "vector_registers", "cores", "threads", "nan",
                      "group_items", "group_bytes", "l1_bytes", "l2_bytes", "l3_bytes", "line_bytes"});
  const auto text = [&](std::string_view key) {
    const base::Document& value = document.at(key);
    if (value.as_string().empty()) throw base::UserError(value.place(), fmt::format("{} must not be empty", key));
    return value.as_string();
  };
  Target target;
  target.triple = text("triple");
  target.cpu = text("cpu");
  if (const base::Document* features = document.find("features")) target.features = features->as_string();
  target.vector_bits = number(document.at("vector_bits"), "vector_bits", vector_bits_bounds);
  // GPUs that only their records describe leave them open.
  const Bounds registers{document.find("group_items") != nullptr ? 0 : registers_bounds.least,
                         registers_bounds.greatest};
  target.vector_registers = number(document.at("vector_registers"), "vector_registers", registers);
  target.cores = optional_number(document, "cores", cores_bounds).value_or(1);
  target.threads = optional_number(document, "threads", {1, target.cores}).value_or(1);
  if (const base::Document* const nan = document.find("nan")) {
    target.ignores_nan = nan->as_string() == "ignore";
    if (!target.ignores_nan && nan->as_string() != "keep")
      throw base::UserError(nan->place(), fmt::format("'{}' is neither keep nor ignore", nan->as_string()));
  }
  target.group_items = optional_number(document, "group_items", registers_bounds).value_or(0);
  target.group_bytes = optional_number(document, "group_bytes", cache_bounds).value_or(0);
  const auto cache_bytes = [&](std::string_view key) {
    const base::Document* const value = document.find(key);
    if (value != nullptr && value->as_integer() == 0)
      throw base::UserError(value->place(),
                            fmt::format("{0} must be at least 1, got 0; leave {0} out where there is no such cache, or "
                                        "where its size is unknown",
                                        key));
    return optional_number(document, key, cache_bounds);
  };
  target.l1_bytes = cache_bytes("l1_bytes");
  target.l2_bytes = cache_bytes("l2_bytes");
  target.l3_bytes = cache_bytes("l3_bytes");
  target.line_bytes = optional_number(document, "line_bytes", line_bounds);
  return target;
}

base::Document to_document(const Target& target) {
  base::Document document = base::Document::map();
  document.set("triple", target.triple);
  document.set("cpu", target.cpu);
  document.set("features", target.features);
  document.set("vector_bits", target.vector_bits);
  document.set("vector_registers", target.vector_registers);
  document.set("cores", target.cores);
  if (target.threads != 1) document.set("threads", target.threads);  // so that hashes of one-thread targets stay
  if (target.ignores_nan) document.set("nan", "ignore");             // likewise
  if (target.group_items != 0) document.set("group_items", target.group_items).set("group_bytes", target.group_bytes);
  const auto known = [&](std::string_view key, const std::optional<std::int64_t>& value) {
    if (value) document.set(std::string(key), *value);
  };
  known("l1_bytes", target.l1_bytes);
  known("l2_bytes", target.l2_bytes);
  known("l3_bytes", target.l3_bytes);
  known("line_bytes", target.line_bytes);
  return document;
}

std::uint64_t hash(const Target& target) {
  return base::hash_bytes(to_document(target).to_json());
}

}  // namespace graft::codegen
