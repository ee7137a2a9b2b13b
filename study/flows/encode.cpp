#include "study/flows/encode.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "features/encoding.h"
#include "search/programs.h"
#include "study/inputs/field_error.h"

namespace graft::study {
namespace {

// Why an encoding makes no row of a list of steps; empty if it does.
std::string objection(const features::Encoding& encoding) {
  if (encoding.shape != features::Shape::row)
    return fmt::format("has several rows for each program ({})", features::name_of(encoding.shape));
  return encoding.needs_program ? "" : "looks at a sketch's arguments, not at a schedule's steps";
}

const features::Encoding& vector_encoding(const std::string& name) {
  const features::Encoding& encoding = features::encoding_named(name);
  if (const std::string why = objection(encoding); !why.empty())
    throw FieldError("encoding", fmt::format("{} {}; give one of {}", name, why, base::join(vector_encodings(), ", ")));
  return encoding;
}

}  // namespace

std::vector<std::string> vector_encodings() {
  std::vector<std::string> names;
  for (const features::Encoding& encoding : features::encodings()) {
    if (objection(encoding).empty()) names.push_back(encoding.name);
  }
  return names;
}

std::vector<std::string> columns_of(const std::string& encoding) {
  std::vector<std::string> names;
  for (const features::Feature& feature : vector_encoding(encoding).features) names.push_back(feature.name);
  return names;
}

base::Matrix encode(const EncodeRequest& request, std::span<const codegen::Candidate> candidates) {
  const features::Encoding& encoding = vector_encoding(request.encoding);
  search::Programs programs(request.platform.target, &encoding);
  const auto encodings = programs.encodings(candidates, request.threads);
  base::Matrix rows(std::int64_t(candidates.size()), std::int64_t(encoding.features.size()));
  std::fill(rows.values.begin(), rows.values.end(), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (encodings[i] != nullptr) std::ranges::copy(encodings[i]->rows.row(0), rows.row(std::int64_t(i)).begin());
  }
  return rows;
}

}  // namespace graft::study
