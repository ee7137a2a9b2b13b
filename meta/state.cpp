#include "meta/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace graft::meta {

void put_values(base::Arrays& arrays, const std::string& name, const std::vector<float>& values) {
  arrays.arrays[name] = {{std::int64_t(values.size())}, values};
}

const std::vector<float>& values_of(const base::Arrays& arrays, const std::string& name, std::int64_t expected) {
  const auto found = arrays.arrays.find(name);
  if (found == arrays.arrays.end()) throw base::UserError(fmt::format("array '{}' is missing", name));
  const std::vector<float>& values = found->second.values;
  if (expected >= 0 && std::int64_t(values.size()) != expected) {
    throw base::UserError(fmt::format("array '{}': {} values, expected {}", name, values.size(), expected));
  }
  return values;
}

bool whole_number(float value, std::int64_t low, std::int64_t high) {
  return value >= float(low) && value < float(high) && std::trunc(value) == value;
}

const std::string& attribute_of(const base::Arrays& arrays, const std::string& name) {
  const auto found = arrays.attributes.find(name);
  if (found == arrays.attributes.end()) throw base::UserError(fmt::format("attribute '{}' is missing", name));
  return found->second;
}

std::int64_t integer_of(const base::Arrays& arrays, const std::string& name, std::int64_t least) {
  const std::vector<std::int64_t> values = integers_of(arrays, name, least);
  if (values.size() != 1) throw base::UserError(fmt::format("attribute '{}': expected one integer", name));
  return values.front();
}

double number_of(const base::Arrays& arrays, const std::string& name) {
  base::Cursor cursor(attribute_of(arrays, name), fmt::format("attribute '{}'", name));
  const double value = cursor.number();
  if (!cursor.at_end()) cursor.fail("expected one number");
  return value;
}

void put_integers(base::Arrays& arrays, const std::string& name, const std::vector<std::int64_t>& values) {
  arrays.attributes[name] = fmt::format("{}", fmt::join(values, ","));
}

std::vector<std::int64_t> integers_of(const base::Arrays& arrays, const std::string& name, std::int64_t least) {
  const std::string& text = attribute_of(arrays, name);
  std::vector<std::int64_t> values;
  base::Cursor cursor(text, fmt::format("attribute '{}'", name));
  while (!cursor.at_end()) {
    if (!values.empty()) cursor.expect(",");
    values.push_back(cursor.integer());
    if (values.back() < least) cursor.fail(fmt::format("{} is less than {}", values.back(), least));
  }
  return values;
}

void put_hashes(base::Arrays& arrays, const std::string& name, const std::vector<std::uint64_t>& hashes) {
  std::vector<float> pieces;
  for (const std::uint64_t hash : hashes) {
    for (int shift = 48; shift >= 0; shift -= 16) pieces.push_back(float((hash >> shift) & 0xffff));
  }
  put_values(arrays, name, pieces);
}

std::vector<std::uint64_t> hashes_of(const base::Arrays& arrays, const std::string& name, std::int64_t expected) {
  const std::vector<float>& pieces = values_of(arrays, name, expected < 0 ? -1 : 4 * expected);
  if (pieces.size() % 4 != 0) throw base::UserError(fmt::format("array '{}': not four numbers for each hash", name));
  std::vector<std::uint64_t> hashes(pieces.size() / 4, 0);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!whole_number(pieces[i], 0, 1 << 16))
      throw base::UserError(fmt::format("array '{}': {} is not a number of 16 bits", name, pieces[i]));
    hashes[i / 4] = hashes[i / 4] << 16 | std::uint64_t(pieces[i]);
  }
  return hashes;
}

void put_under(const std::string& array_prefix, const std::string& attribute_prefix, const base::Arrays& part,
               base::Arrays& arrays) {
  for (const auto& [name, array] : part.arrays) arrays.arrays[array_prefix + name] = array;
  for (const auto& [name, text] : part.attributes) arrays.attributes[attribute_prefix + name] = text;
}

base::Arrays arrays_under(const std::string& array_prefix, const std::string& attribute_prefix,
                          const base::Arrays& arrays) {
  base::Arrays out;
  for (const auto& [name, array] : arrays.arrays) {
    if (name.starts_with(array_prefix)) out.arrays[name.substr(array_prefix.size())] = array;
  }
  for (const auto& [name, text] : arrays.attributes) {
    if (name.starts_with(attribute_prefix)) out.attributes[name.substr(attribute_prefix.size())] = text;
  }
  return out;
}

void put(const NetworkShape& shape, base::Arrays& arrays) {
  arrays.attributes["network"] = name_of(shape.kind);
  put_integers(arrays, "hidden", shape.hidden);
  if (shape.outputs != 1) put_integers(arrays, "outputs", {shape.outputs});
  if (shape.context.size > 0) put_integers(arrays, "context", {shape.context.size, shape.context.everywhere ? 1 : 0});
  if (shape.kind == NetworkKind::treegru)
    put_integers(arrays, "tree", {shape.tree.embedding, shape.tree.units, shape.tree.slots});
}

NetworkShape shape_from(const base::Arrays& arrays, std::int64_t inputs) {
  constexpr std::int64_t widest = 1 << 16;  // more is a broken file, not a network of ours
  NetworkShape shape{inputs, integers_of(arrays, "hidden", 1)};
  if (arrays.attributes.contains("network")) shape.kind = network_kind_named(attribute_of(arrays, "network"));
  if (arrays.attributes.contains("outputs")) shape.outputs = integer_of(arrays, "outputs", 1);
  std::vector<std::int64_t> widths = shape.hidden;
  widths.push_back(shape.outputs);
  if (arrays.attributes.contains("context")) {
    const std::vector<std::int64_t> context = integers_of(arrays, "context", 0);
    if (context.size() != 2 || context[0] == 0) throw base::UserError("attribute 'context': expected size and extent");
    shape.context = {context[0], context[1] != 0};
    widths.push_back(context[0]);
  }
  if (shape.kind == NetworkKind::treegru) {
    const std::vector<std::int64_t> tree = integers_of(arrays, "tree", 1);
    if (tree.size() != 3) throw base::UserError("attribute 'tree': expected the widths of embedding, units and slots");
    shape.tree = {tree[0], tree[1], tree[2]};
    widths.insert(widths.end(), tree.begin(), tree.end());
  }
  for (const std::int64_t width : widths) {
    if (width > widest) throw base::UserError(fmt::format("a layer of width {}: at most {} expected", width, widest));
  }
  return shape;
}

NetworkShape scoring_shape_from(const base::Arrays& arrays, std::int64_t inputs) {
  NetworkShape shape = shape_from(arrays, inputs);
  if (shape.outputs != 1) throw base::UserError("attribute 'outputs': a score is one number");
  return shape;
}

}  // namespace graft::meta
