#include "datasets/failures.h"

#include <algorithm>

#include "base/text.h"

namespace graft::datasets {
namespace {

constexpr std::size_t longest_text = 160;

}  // namespace

std::string to_text(const FailureKind& kind) {
  std::string text(name_of(kind.status));
  if (!kind.reason.empty()) text += ": " + kind.reason;
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  if (text.size() > longest_text) text = text.substr(0, longest_text - 3) + "...";
  return text;
}

void FailureCounts::add(const Measurement& measurement) {
  if (measurement.status == Status::ok) return;
  const auto [at, is_new] =
      positions_.try_emplace({measurement.status, base::without_numbers(measurement.reason)}, kinds_.size());
  if (is_new) kinds_.push_back({measurement.status, measurement.reason, 0});
  ++kinds_[at->second].count;
}

std::vector<FailureKind> FailureCounts::kinds() const {
  std::vector<FailureKind> sorted = kinds_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const FailureKind& a, const FailureKind& b) { return a.count > b.count; });
  return sorted;
}

}  // namespace graft::datasets
