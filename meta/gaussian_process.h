// Regression by a Gaussian process on few observations that come in groups (Rasmussen and Williams, "Gaussian Processes
// for Machine Learning", 2006, chapters 2 and 5): a smooth function of the place, offsets of each kind of place and of
// each group, and noise of each observation. It predicts several places of a new group jointly, so that sums over them
// have honest intervals.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"

namespace graft::meta {

struct Place {
  std::vector<double> at;  // coordinates of comparable scales, about 1 where the function changes
  std::uint64_t kind = 0;  // places of one kind have an offset in common
  bool operator==(const Place&) const = default;
};

struct Observation {
  Place place;
  double value = 0;
  int group = 0;  // made together, so that they may be off together
};

class GaussianProcess {
 public:
  // What is assumed of the function's mean before any observation: a normal distribution.
  struct Prior {
    double mean = 0, deviation = 1;
  };
  // The sizes of the function, its noise and the offsets of kinds and groups, and its width, are those under which each
  // group is most probable given the others (each observation, if there is only one group), and close to usual ones if
  // the observations do not tell. Without observations it predicts the prior.
  GaussianProcess(std::vector<Observation> observations, Prior prior);
  ~GaussianProcess();
  GaussianProcess(GaussianProcess&&) noexcept;
  GaussianProcess& operator=(GaussianProcess&&) noexcept;

  // Values at the places, all of one group that has no observation yet: `count` joint draws, each by place.
  std::vector<std::vector<double>> drawn(const std::vector<Place>& places, std::int64_t count,
                                         base::Stream stream) const;

  struct LeftOut {
    double error = 0;      // of its prediction by the other groups (observations, if there is only one group)
    double deviation = 0;  // that the prediction states
  };
  const std::vector<LeftOut>& left_out() const;  // by observation
  // The part of them within the central 90 % interval of their predictions. Where it is less than 90 %, draws deviate
  // by more, so much that it would not be.
  double coverage() const;

 private:
  struct Fit;
  std::unique_ptr<const Fit> fit_;
};

}  // namespace graft::meta
