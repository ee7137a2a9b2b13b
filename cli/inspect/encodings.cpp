#include <fmt/format.h>

#include "base/hash.h"
#include "cli/inspect/inspect.h"
#include "codegen/program/forms.h"
#include "features/example.h"

namespace graft::cli {

int inspect_encoding(const features::Encoding& encoding, Session& session) {
  const features::Example example;
  const features::Encoded encoded = encoding.encode(example.subject());
  // The last of several rows: the innermost part.
  const std::int64_t row = encoded.rows.rows - 1;
  Output& out = session.output;
  out.line(fmt::format("encoding {} {}: {}\n", encoding.name, base::to_hex(encoding.hash), encoding.description));
  out.line(fmt::format("shape {}, {} columns; the example is this program{}:\n", features::name_of(encoding.shape),
                       encoding.features.size(),
                       encoding.shape == features::Shape::row ? "" : fmt::format("'s row {}", row)));
  out.text(codegen::to_text(example.program()));
  out.line("");
  Table table({"feature", "unit", "example", "definition"});
  base::Document list = base::Document::list();
  for (std::size_t f = 0; f < encoding.features.size(); ++f) {
    const features::Feature& feature = encoding.features[f];
    const float value = encoded.rows.at(row, std::int64_t(f));
    table.row({feature.name, feature.unit, fmt::format("{:.6g}", value), feature.definition});
    base::Document entry = base::Document::map();
    entry.set("name", feature.name).set("unit", feature.unit).set("definition", feature.definition);
    list.push(entry.set("example", double(value)));
  }
  out.table(table);
  out.json()
      .set("kind", "encoding")
      .set("encoding", encoding.name)
      .set("encoding_hash", base::to_hex(encoding.hash))
      .set("description", encoding.description)
      .set("shape", std::string(features::name_of(encoding.shape)))
      .set("example_program", codegen::to_text(example.program()))
      .set("features", std::move(list));
  return done;
}

int inspect_encodings(Session& session) {
  Table table({"encoding", "shape", "columns", "what it is"});
  base::Document list = base::Document::list();
  for (const features::Encoding& encoding : features::encodings()) {
    const std::string shape(features::name_of(encoding.shape));
    table.row({encoding.name, shape, std::to_string(encoding.features.size()), encoding.description});
    base::Document entry = base::Document::map();
    entry.set("name", encoding.name).set("shape", shape).set("columns", encoding.features.size());
    list.push(entry.set("hash", base::to_hex(encoding.hash)).set("description", encoding.description));
  }
  session.output.table(table);
  session.output.json().set("kind", "encodings").set("encodings", std::move(list));
  return done;
}

}  // namespace graft::cli
