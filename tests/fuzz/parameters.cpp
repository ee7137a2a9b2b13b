// Spaces of parameters, ours and T1. What is accepted has a default and points, which meet the constraints, and are the
// same after they were written and read.
#include <algorithm>
#include <vector>

#include "base/random.h"
#include "datasets/formats/parameter_spaces.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

class AnyPoint final : public codegen::Judge {
 public:
  base::Result<std::uint64_t> identity(const codegen::Candidate& candidate) override { return hash(candidate) | 1; }
};

void check(const codegen::ParameterSpace& space, const codegen::Candidate& point, std::string_view text) {
  const std::vector<codegen::Scalar> values = space.values_of(point);
  std::vector<const codegen::Scalar*> pointers;
  for (const codegen::Scalar& value : values) pointers.push_back(&value);
  promise(std::all_of(space.constraints().begin(), space.constraints().end(),
                      [&](const codegen::Constraint& constraint) { return constraint.holds(pointers); }),
          "a point meets the constraints", text);
  const std::string written = space.to_document(point).to_json();
  const auto read = read_back(written, [&] { return space.point(base::parse_json(written, "point")); });
  promise(read.ok() && read->arguments == point.arguments, "a point is the same after it was read", text, written);
}

}  // namespace

void examine(std::string_view text) {
  const auto space = accepted([&] { return datasets::formats::parse_parameter_space(text, "text"); });
  if (!space) return;
  check(*space, space->standard(), text);
  AnyPoint judge;
  const codegen::Space points = space->space(judge);
  base::Stream stream(1, "fuzz");
  for (int i = 0; i < 3; ++i) {
    const auto drawn = accepted([&] { return points.sample(stream, judge); });
    if (!drawn) continue;  // a space of which no point was found in time
    check(*space, *drawn, text);
    if (const auto changed = points.mutate(*drawn, stream, judge)) check(*space, *changed, text);
  }
}

}  // namespace graft::fuzz
