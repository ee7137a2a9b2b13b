// A space with a judge by a target: what a candidate comes to is its program. For tests that draw from spaces.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "codegen/schedule/template.h"
#include "codegen/space/space.h"

namespace graft::codegen {

class JudgedSpace : public Space, private Judge {
 public:
  JudgedSpace(Workload workload, Target target, std::vector<SketchSpace> sketches)
      : JudgedSpace(Space(std::move(workload), std::move(sketches)), std::move(target)) {}
  JudgedSpace(Space space, Target target) : Space(std::move(space)), target_(std::move(target)) {}

  const Target& target() const { return target_; }
  Candidate sample(base::Stream& stream) const { return Space::sample(stream, judge()); }
  base::Result<Candidate> mutate(const Candidate& candidate, base::Stream& stream) const {
    return Space::mutate(candidate, stream, judge());
  }
  base::Result<Candidate> crossover(const Candidate& a, const Candidate& b, base::Stream& stream) const {
    return Space::crossover(a, b, stream, judge());
  }
  base::Result<Candidate> nearest(const Candidate& other) const { return Space::nearest(other, judge()); }
  base::Result<Candidate> admitted(const Candidate& candidate) const { return Space::admitted(candidate, judge()); }
  std::optional<base::Reason> refusal(const Candidate& candidate) const {
    const auto found = Space::identity(candidate, judge());
    return found ? std::nullopt : std::optional(found.reason());
  }
  bool valid(const Candidate& candidate) const { return !refusal(candidate); }
  JudgedSpace only(std::span<const Candidate> points) const { return {Space::only(points, judge()), target_}; }

 private:
  base::Result<std::uint64_t> identity(const Candidate& candidate) override {
    const base::Result<CandidateProgram> found = identified_program(candidate, target_);
    if (!found) return found.reason();
    return found->identity;
  }
  Judge& judge() const { return const_cast<JudgedSpace&>(*this); }

  Target target_;
};

inline JudgedSpace judged_space(const Workload& workload, const Target& target,
                                std::span<const IntrinsicPointer> intrinsics = {}, Layouts layouts = Layouts::given) {
  return {derive_space(workload, target, intrinsics, layouts), target};
}
inline JudgedSpace judged_space(std::string_view text, std::string_view place, const Workload& workload,
                                const Target& target) {
  return {parse_space(text, place, workload, target), target};
}

}  // namespace graft::codegen
