#include "meta/normalisation.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "meta/state.h"

namespace graft::meta {

features::Encoded Normalisation::apply(features::Encoded programs) const {
  assert(programs.rows.columns == features());
  for (std::int64_t r = 0; r < programs.rows.rows; ++r) {
    const std::span<float> row = programs.rows.row(r);
    for (std::size_t c = 0; c < row.size(); ++c) {
      const float value = (row[c] - mean[c]) * scale[c];
      row[c] = std::isfinite(value) ? std::clamp(value, -clip, clip) : 0.0f;
    }
  }
  return programs;
}

Normalisation fit_normalisation(std::span<const Examples> groups) {
  assert(!groups.empty());
  const std::size_t columns = std::size_t(groups.front().features.rows.columns);
  std::vector<double> mean(columns, 0.0), squares(columns, 0.0);
  std::int64_t rows = 0;
  // Two passes: the variance of a feature far from zero does not survive the one-pass formula.
  for (const Examples& group : groups) {
    rows += group.features.rows.rows;
    for (std::int64_t r = 0; r < group.features.rows.rows; ++r) {
      const auto row = group.features.rows.row(r);
      for (std::size_t c = 0; c < columns; ++c) mean[c] += double(row[c]);
    }
  }
  assert(rows > 0);
  for (double& value : mean) value /= double(rows);
  for (const Examples& group : groups) {
    for (std::int64_t r = 0; r < group.features.rows.rows; ++r) {
      const auto row = group.features.rows.row(r);
      for (std::size_t c = 0; c < columns; ++c) squares[c] += (double(row[c]) - mean[c]) * (double(row[c]) - mean[c]);
    }
  }
  Normalisation out;
  for (std::size_t c = 0; c < columns; ++c) {
    const double deviation = std::sqrt(squares[c] / double(rows));
    const bool varies = deviation > 1e-5 * std::max(1.0, std::abs(mean[c]));
    out.mean.push_back(float(mean[c]));
    out.scale.push_back(varies ? float(1 / deviation) : 0.0f);
  }
  return out;
}

void put(const Normalisation& normalisation, base::Arrays& arrays) {
  put_values(arrays, "mean", normalisation.mean);
  put_values(arrays, "scale", normalisation.scale);
}

Normalisation normalisation_from(const base::Arrays& arrays) {
  Normalisation out{values_of(arrays, "mean"), {}};
  out.scale = values_of(arrays, "scale", out.features());
  return out;
}

}  // namespace graft::meta
