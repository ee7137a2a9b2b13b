// Grid search without a model: every point of the space once, the sketches in turn. Consecutive points are a fixed
// stride apart, so that the first few represent all: in the order of their numbers they would
// be in one corner.
#pragma once

#include <cstdint>
#include <vector>

#include "search/explorer.h"
#include "search/point.h"

namespace graft::search {

struct GridSettings {
  double stride = 0.6180339887498949;  // share of a sketch's points between one and the next; 0: in order
  int most_refused = 10000;            // consecutive points without a new program, after which a batch ends
};

class Grid : public Explorer {
 public:
  Grid(const codegen::Space& space, std::uint64_t seed, const GridSettings& settings);
  void told(std::span<const datasets::Trial> trials) override { proposed_.add(trials); }

 private:
  Proposal proposal(int count, Scorer& scorer) override;

  // A walk over all points of a sketch. A point's rows are the digits of its number, the first domain's the highest.
  struct Walk {
    Point at;
    std::vector<std::size_t> stride;  // digits; no common factor with the number of points, so that all are visited
    double left = 0;                  // points
  };
  void advance(Walk& walk) const;

  const codegen::Space& space_;
  GridSettings settings_;
  std::vector<Walk> walks_;
  std::size_t turn_ = 0;
  KnownPrograms proposed_;
};

}  // namespace graft::search
