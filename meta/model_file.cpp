#include "meta/model_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "datasets/hdf5.h"
#include "meta/kept_measurements.h"
#include "meta/methods/methods.h"
#include "meta/state.h"

namespace graft::meta {
namespace {

constexpr const char* schema = "1";
// The file's own attributes; everything else is the model's state.
constexpr const char* own = "model/";

std::string own_attribute(const char* name) {
  return std::string(own) + name;
}

std::uint64_t hash_of(const base::Arrays& state) {
  std::uint64_t hash = 0;
  const auto add = [&](std::string_view bytes) { hash = base::hash_combine(hash, base::hash_bytes(bytes)); };
  const auto add_numbers = [&](const auto& numbers) {
    add({reinterpret_cast<const char*>(numbers.data()), std::span(numbers).size_bytes()});
  };
  for (const auto& [name, text] : state.attributes) add(name), add(text);
  for (const auto& [name, array] : state.arrays) add(name), add_numbers(array.shape), add_numbers(array.values);
  return hash;
}

// That of the name, with the columns and values of the model's tables.
std::shared_ptr<const features::Encoding> encoding_of(const base::Arrays& file) {
  const features::Encoding& named = features::encoding_named(attribute_of(file, own_attribute("encoding")));
  const auto tables = file.attributes.find(own_attribute("tables"));
  if (tables == file.attributes.end()) return {std::shared_ptr<void>(), &named};
  if (!named.of_tables) throw base::UserError(fmt::format("columns of tables with encoding {}", named.name));
  return std::make_shared<const features::Encoding>(
      features::made_for(named, codegen::table_schema_from(base::parse_json(tables->second, "tables"))));
}

}  // namespace

void save_model(const CostModel& model, const features::Encoding& encoding, const base::Document& provenance,
                const std::string& card, const std::filesystem::path& path, const std::vector<KnownPrograms>& known,
                const std::vector<datasets::Dataset>& kept) {
  base::Arrays file = model.state();
  file.attributes[own_attribute("schema")] = schema;
  file.attributes[own_attribute("kind")] = model.kind();
  file.attributes[own_attribute("encoding")] = encoding.name;
  file.attributes[own_attribute("encoding_hash")] = base::to_hex(encoding.hash);
  file.attributes[own_attribute("provenance")] = provenance.to_json();
  file.attributes[own_attribute("card")] = card;
  if (encoding.schema != nullptr)
    file.attributes[own_attribute("tables")] = codegen::to_document(*encoding.schema).to_json();
  if (!known.empty()) file.attributes[own_attribute("known")] = to_document(known).to_json();
  if (!kept.empty()) file.attributes[own_attribute("kept")] = to_document(kept).to_json();
  datasets::write_arrays(file, path);
}

ModelFile load_model(const std::filesystem::path& path) {
  base::Arrays file = datasets::read_arrays(path);
  try {
    if (!file.attributes.contains(own_attribute("kind"))) throw base::UserError("not a model; graft train writes them");
    if (const std::string& found = attribute_of(file, own_attribute("schema")); found != schema) {
      throw base::UserError(fmt::format("schema {} of models; this graft reads {}", found, schema));
    }
    ModelFile out;
    out.encoding = encoding_of(file);
    const features::Encoding& encoding = *out.encoding;
    const std::string made_with = attribute_of(file, own_attribute("encoding_hash"));
    const std::string now = base::to_hex(encoding.hash);
    if (made_with != now) {
      throw base::UserError(
          fmt::format("made with encoding {} {}; this graft has {}; train again", encoding.name, made_with, now));
    }
    out.provenance = base::parse_json(attribute_of(file, own_attribute("provenance")), "provenance");
    out.card = attribute_of(file, own_attribute("card"));
    if (const auto known = file.attributes.find(own_attribute("known")); known != file.attributes.end())
      out.known = known_programs_from(base::parse_json(known->second, "known"));
    if (const auto kept = file.attributes.find(own_attribute("kept")); kept != file.attributes.end())
      out.kept = kept_measurements_from(base::parse_json(kept->second, "kept"));
    const std::string kind = attribute_of(file, own_attribute("kind"));
    for (const char* const said : {"provenance", "card", "schema"}) file.attributes.erase(own_attribute(said));
    out.hash = base::to_hex(hash_of(file));
    std::erase_if(file.attributes, [](const auto& entry) { return entry.first.starts_with(own); });
    out.model = model_from(kind, file);
    if (!out.model->takes(encoding))
      throw base::UserError(fmt::format("a model of other features than those of encoding {}", encoding.name));
    return out;
  } catch (const base::UserError& error) {
    throw base::UserError(path.string(), error.what());
  }
}

}  // namespace graft::meta
