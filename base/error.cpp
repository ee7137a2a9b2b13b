#include "base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace graft::base {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::size_t allowed = std::max<std::size_t>(2, word.size() / 3);
  const std::string* nearest = nullptr;
  std::size_t nearest_distance = allowed + 1;
  for (const std::string& candidate : known) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= nearest_distance) continue;  // a lower bound of the distance, and it keeps long words cheap
    const std::size_t distance = edit_distance(word, candidate);
    // Short words are within two edits of each other although they share hardly a letter; nobody meant them.
    if (distance < nearest_distance && distance < longer && distance <= word.size()) {
      nearest = &candidate;
      nearest_distance = distance;
    }
  }
  if (nearest) return fmt::format("; did you mean '{}'?", *nearest);
  if (known.empty() || known.size() > 40) return "";
  return fmt::format("; known: {}", fmt::join(known, ", "));
}

}  // namespace graft::base
