#include "features/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "features/analytic.h"
#include "features/arguments.h"
#include "features/autotvm_curve.h"
#include "features/columns.h"
#include "features/context_relation.h"
#include "features/declared.h"
#include "features/loop_context.h"
#include "features/stores.h"
#include "features/target_facts.h"
#include "features/tree.h"

namespace graft::features {

const std::vector<Encoding>& encodings() {
  static const std::vector<Encoding> all = [] {
    std::vector<Encoding> list{context_relation(),
                               context_relation_released(),
                               context_relation_published(),
                               loop_context(),
                               stores(),
                               tree(),
                               analytic(),
                               knobs(),
                               columns()};
    const std::size_t alone = list.size();
    for (std::size_t e = 0; e < alone; ++e) {
      if (list[e].shape == Shape::row) list.push_back(joined(list[e], target_facts()));
    }
    list.push_back(on_target());
    list.push_back(joined(context_relation(), on_target()));
    return list;
  }();
  return all;
}

const Encoding& encoding_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Encoding& encoding : encodings()) {
    if (encoding.name == name) return encoding;
    known.push_back(encoding.name);
  }
  throw base::UserError(fmt::format("unknown encoding '{}'{}", name, base::did_you_mean(name, known)));
}

std::uint64_t hash_of(std::string_view name, int version, std::span<const Feature> features) {
  std::uint64_t hash = base::hash_combine(base::hash_bytes(name), std::uint64_t(version));
  for (const Feature& feature : features) {
    for (const std::string* text : {&feature.name, &feature.unit, &feature.definition})
      hash = base::hash_combine(hash, base::hash_bytes(*text));
  }
  return hash;
}

void declare(std::vector<Feature>& list, std::string_view prefix, std::span<const Declared> declared) {
  for (const Declared& one : declared)
    list.push_back({std::string(prefix) + std::string(one.name), std::string(one.unit), std::string(one.definition)});
}

Encoding encoding_of(std::string name, std::string description, Shape shape, std::vector<Feature> features, int version,
                     std::function<Encoded(const Subject& subject)> encode) {
  const std::uint64_t hash = hash_of(name, version, features);
  Encoding encoding;
  encoding.name = std::move(name);
  encoding.description = std::move(description);
  encoding.shape = shape;
  encoding.features = std::move(features);
  encoding.hash = hash;
  encoding.encode = std::move(encode);
  return encoding;
}

Encoding joined(const Encoding& encoding, const Encoding& other) {
  assert(encoding.shape == Shape::row && other.shape == Shape::row);
  Encoding both;
  both.name = encoding.name + "+" + other.name;
  both.description = encoding.description + "; and " + other.description;
  both.features = encoding.features;
  both.features.insert(both.features.end(), other.features.begin(), other.features.end());
  // It changes also if the values of its parts change.
  both.hash = base::hash_combine(base::hash_combine(base::hash_bytes(both.name), encoding.hash), other.hash);
  both.needs_program = encoding.needs_program || other.needs_program;
  both.of_tables = encoding.of_tables || other.of_tables;
  both.schema = encoding.schema != nullptr ? encoding.schema : other.schema;
  both.encode = [first = encoding.encode, second = other.encode](const Subject& subject) {
    Encoded left = first(subject), right = second(subject);
    base::Matrix row(1, left.rows.columns + right.rows.columns);
    std::copy(right.rows.values.begin(), right.rows.values.end(),
              std::copy(left.rows.values.begin(), left.rows.values.end(), row.values.begin()));
    Encoded joint = one_row_each(std::move(row));
    joint.identities = std::move(left.identities.empty() ? right.identities : left.identities);
    return joint;
  };
  return both;
}

Encoding made_for(const Encoding& encoding, codegen::TableSchema schema) {
  assert(encoding.of_tables);
  Encoding of_columns = columns(std::move(schema));
  return encoding.name == of_columns.name ? of_columns : joined(of_columns, target_facts());
}

Encoded one_row_each(base::Matrix rows) {
  Encoded encoded;
  encoded.begins.resize(std::size_t(rows.rows) + 1);
  std::iota(encoded.begins.begin(), encoded.begins.end(), std::int64_t(0));
  encoded.rows = std::move(rows);
  return encoded;
}

void append(Encoded& all, const Encoded& more) {
  if (all.rows.columns == 0) all.rows.columns = more.rows.columns;
  assert(all.rows.columns == more.rows.columns || more.rows.rows == 0);
  if (!all.identities.empty() || !more.identities.empty()) {
    all.identities.resize(std::size_t(all.programs()), 0);
    all.identities.insert(all.identities.end(), more.identities.begin(), more.identities.end());
    all.identities.resize(std::size_t(all.programs() + more.programs()), 0);
  }
  for (std::int64_t p = 0; p < more.programs(); ++p)
    all.begins.push_back(all.rows.rows + more.begins[std::size_t(p + 1)]);
  all.rows.rows += more.rows.rows;
  all.rows.values.insert(all.rows.values.end(), more.rows.values.begin(), more.rows.values.end());
  all.parents.insert(all.parents.end(), more.parents.begin(), more.parents.end());
}

base::Matrix summed(const Encoded& programs) {
  base::Matrix sums(programs.programs(), programs.rows.columns);
  for (std::int64_t p = 0; p < sums.rows; ++p) {
    for (std::int64_t r = programs.begins[std::size_t(p)]; r < programs.begins[std::size_t(p + 1)]; ++r) {
      for (std::int64_t c = 0; c < sums.columns; ++c) sums.at(p, c) += programs.rows.at(r, c);
    }
  }
  return sums;
}

Encoded chosen(const Encoded& from, std::span<const std::int64_t> programs) {
  Encoded result;
  result.rows.columns = from.rows.columns;
  for (const std::int64_t p : programs) {
    const std::int64_t begin = from.begins[std::size_t(p)], end = from.begins[std::size_t(p + 1)];
    result.rows.rows += end - begin;
    result.begins.push_back(result.rows.rows);
    const auto copied = [&](auto& to, const auto& all, std::int64_t width) {
      to.insert(to.end(), all.begin() + begin * width, all.begin() + end * width);
    };
    copied(result.rows.values, from.rows.values, from.rows.columns);
    if (!from.parents.empty()) copied(result.parents, from.parents, 1);
    if (!from.identities.empty()) result.identities.push_back(from.identities[std::size_t(p)]);
  }
  return result;
}

std::string_view name_of(Shape shape) {
  switch (shape) {
    case Shape::row:
      return "row";
    case Shape::rows:
      return "rows";
    case Shape::tree:
      return "tree";
  }
  return "";
}

Encoded encode(const Encoding& encoding, std::span<const codegen::LoopProgram> programs, int threads) {
  assert(encoding.encode);
  std::vector<Encoded> each(programs.size());
  base::parallel_for(std::int64_t(programs.size()), threads, [&](std::int64_t p) {
    each[std::size_t(p)] = encoding.encode({.program = &programs[std::size_t(p)]});
  });
  Encoded all;
  all.rows.columns = std::int64_t(encoding.features.size());
  for (const Encoded& one : each) append(all, one);
  return all;
}

}  // namespace graft::features
