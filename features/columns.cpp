#include "features/columns.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "features/declared.h"

namespace graft::features {
namespace {

constexpr int version = 3;  // raised when values change though the list does not

// Where a column's values go in the row.
struct Place {
  std::size_t number = 0;   // of the number, and then its logarithm; 0: none
  std::size_t buckets = 0;  // of hashed words; 0: none
  std::unordered_map<std::string, std::size_t> values;
};

struct Layout {
  codegen::TableSchema schema;
  std::vector<Feature> features;
  std::vector<float> empty;                        // a row that lacks all columns
  std::unordered_map<std::string, Place> columns;  // by name
};

void add(Layout& layout, const codegen::TableSchema::Column& column) {
  std::vector<Feature>& list = layout.features;
  const std::string& name = column.name;
  Place place;
  if (column.has_numbers) {
    place.number = list.size();
    list.push_back({name, "column's", "the column, if it is a number"});
    list.push_back({name + ".log", "signed log2", "its logarithm"});
    layout.empty.push_back(float(column.middle));
    layout.empty.push_back(signed_log(column.middle));
  }
  const auto add_value = [&](const std::string& value) {
    place.values.emplace(value, list.size());
    list.push_back({name + "=" + value, "1", "1 if the column has this value"});
  };
  if (!column.numbers.empty() && column.numbers.size() <= most_number_places) {
    for (const std::string& value : column.numbers) add_value(value);
  }
  if (column.words.size() <= most_word_places) {
    for (const std::string& value : column.words) add_value(value);
  } else {
    place.buckets = list.size();
    for (std::size_t b = 0; b < 2 * most_word_places; ++b)
      list.push_back({fmt::format("{}#{}", name, b), std::string(hashed_unit),
                      fmt::format("1 if hash {} of the column's word is {} modulo {}", b / most_word_places,
                                  b % most_word_places, most_word_places)});
  }
  layout.empty.resize(list.size(), 0.0f);
  layout.columns.emplace(name, std::move(place));
}

std::shared_ptr<const Layout> layout_of(codegen::TableSchema schema) {
  auto layout = std::make_shared<Layout>();
  layout->schema = std::move(schema);
  layout->features.push_back({"columns", "1", "columns of the row that the schema has"});
  layout->empty.push_back(0);
  for (const codegen::TableSchema::Column& column : layout->schema.columns) {
    if (!column.names_rows) add(*layout, column);
  }
  return layout;
}

void write(const Place& place, const std::string& value, std::span<float> row) {
  const std::optional<double> number = codegen::number_in(value);
  if (number && place.number > 0) {
    row[place.number] = float(*number);
    row[place.number + 1] = signed_log(*number);
  }
  if (const auto own = place.values.find(value); own != place.values.end()) row[own->second] = 1;
  if (number || place.buckets == 0) return;
  const std::uint64_t hash = base::hash_bytes(value);
  row[place.buckets + hash % most_word_places] = 1;
  row[place.buckets + most_word_places + base::hash_mix(hash) % most_word_places] = 1;
}

Encoded encode(const Layout& layout, const Subject& subject) {
  base::Matrix row(1, std::int64_t(layout.features.size()));
  if (subject.candidate == nullptr || !codegen::is_row_of_table(*subject.candidate))
    return one_row_each(std::move(row));
  const codegen::Candidate& candidate = *subject.candidate;
  row.values = layout.empty;
  for (std::size_t c = 0; c < candidate.arguments.size(); ++c) {
    const auto place = layout.columns.find(candidate.sketch->arguments[c].name);
    if (place == layout.columns.end()) continue;
    row.values.front() += 1;
    write(place->second, codegen::column_value(*candidate.sketch, c, candidate.arguments[c]), row.row(0));
  }
  Encoded encoded = one_row_each(std::move(row));
  encoded.identities = {codegen::row_identity(layout.schema, candidate)};
  return encoded;
}

}  // namespace

Encoding columns(codegen::TableSchema schema) {
  const std::shared_ptr<const Layout> layout = layout_of(std::move(schema));
  Encoding encoding = encoding_of(
      "columns",
      "the columns of tables' rows, joined by name: each as a number and as one of the values that occur; as many as "
      "the tables at hand need",
      Shape::row, layout->features, version, [layout](const Subject& subject) { return encode(*layout, subject); });
  encoding.needs_program = false;
  encoding.of_tables = true;
  if (!layout->schema.columns.empty())
    encoding.schema = std::shared_ptr<const codegen::TableSchema>(layout, &layout->schema);
  return encoding;
}

}  // namespace graft::features
