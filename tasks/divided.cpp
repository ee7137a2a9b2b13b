#include "tasks/divided.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/error.h"

namespace graft::tasks {
namespace {

// Takes its notes; nothing stops a share.
class NotesAlone final : public base::Monitor {
 public:
  explicit NotesAlone(base::Monitor& to) : to_(to) {}
  void note(std::string_view line) override { to_.note(line); }

 private:
  base::Monitor& to_;
};

// Part of a batch; results are exchanged, and may be journaled, after each.
constexpr std::int64_t slice_of_a_rank = 8;

class DividedMeasurer final : public Measurer {
 public:
  DividedMeasurer(std::unique_ptr<Measurer> own, base::Team& team) : own_(std::move(own)), team_(team) {}

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    const std::int64_t all = std::int64_t(candidates.size()), size = team_.size();
    for (std::int64_t first = 0; first < all; first += size * slice_of_a_rank) {
      if (monitor.stop_requested()) return;
      const std::int64_t last = std::min(all, first + size * slice_of_a_rank);
      for (const Measured& measured :
           slice(candidates.subspan(std::size_t(first), std::size_t(last - first)), monitor)) {
        Measured told = measured;
        told.position += first;
        on_trial(told);
      }
    }
  }

 private:
  // Candidate i is the rank's i % size.
  std::vector<Measured> slice(std::span<const codegen::Candidate> candidates, base::Monitor& monitor) {
    const std::size_t rank = std::size_t(team_.rank()), size = std::size_t(team_.size());
    std::vector<codegen::Candidate> share;
    for (std::size_t i = rank; i < candidates.size(); i += size) share.push_back(candidates[i]);
    base::Document results = base::Document::list();
    NotesAlone undisturbed(monitor);
    const auto note = [&](const Measured& measured) {
      base::Document result = base::Document::map();
      results.push(result.set("program", std::size_t(measured.program_hash))
                       .set("measurement", datasets::to_document(measured.measurement)));
    };
    if (!share.empty()) own_->measure(share, note, undisturbed);

    std::vector<Measured> out(candidates.size());
    const base::Gathered answers = team_.gather(results.to_json());
    for (std::size_t r = 0; r < size; ++r) {
      const base::Document answer = base::parse_json(answers[int(r)], fmt::format("answer of rank {}", r));
      std::size_t i = r;
      for (const base::Document& result : answer.as_list()) {
        if (i >= out.size()) break;
        out[i] = {std::int64_t(i), result.at("program").as_u64(), datasets::measurement_from(result.at("measurement"))};
        i += size;
      }
      if (i < out.size()) throw base::Failure(fmt::format("rank {} measured less than its share", r));
    }
    return out;
  }

  const std::unique_ptr<Measurer> own_;
  base::Team& team_;
};

}  // namespace

std::unique_ptr<Measurer> make_divided_measurer(std::unique_ptr<Measurer> own, base::Team& team) {
  return std::make_unique<DividedMeasurer>(std::move(own), team);
}

}  // namespace graft::tasks
