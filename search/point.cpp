#include "search/point.h"

#include <algorithm>

namespace graft::search {

std::optional<Point> point_of(const codegen::Candidate& candidate, const codegen::Space& space) {
  const std::vector<codegen::SketchSpace>& sketches = space.sketches();
  const auto part = std::find_if(sketches.begin(), sketches.end(), [&](const codegen::SketchSpace& each) {
    return each.sketch == candidate.sketch || *each.sketch == *candidate.sketch;
  });
  if (part == sketches.end() || candidate.arguments.size() != part->sketch->arguments.size()) return std::nullopt;
  Point point{std::size_t(part - sketches.begin()), {}};
  for (const codegen::Domain& domain : part->domains) {
    const auto is_here = [&](const std::vector<std::int64_t>& row) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (candidate.arguments[std::size_t(domain.arguments[i])] != row[i]) return false;
      }
      return true;
    };
    const auto row = std::find_if(domain.values.begin(), domain.values.end(), is_here);
    if (row == domain.values.end()) return std::nullopt;
    point.rows.push_back(std::size_t(row - domain.values.begin()));
  }
  return point;
}

codegen::Candidate candidate_at(const Point& point, const codegen::Space& space) {
  const codegen::SketchSpace& part = space.sketches()[point.sketch];
  codegen::Candidate candidate{space.workload(), part.sketch, std::vector<std::int64_t>(part.sketch->arguments.size())};
  for (std::size_t d = 0; d < part.domains.size(); ++d) {
    const codegen::Domain& domain = part.domains[d];
    for (std::size_t i = 0; i < domain.arguments.size(); ++i)
      candidate.arguments[std::size_t(domain.arguments[i])] = domain.values[point.rows[d]][i];
  }
  return candidate;
}

bool is_of_tables(const codegen::Space& space) {
  return std::all_of(space.sketches().begin(), space.sketches().end(),
                     [](const codegen::SketchSpace& part) { return !part.sketch->columns.empty(); });
}

}  // namespace graft::search
