// How the parameters of a trained network move to a new platform: gradient steps with meta-learned rates (the inner
// loop that the network was trained for), then a descent on the same support by gradient steps or by Adam. Chosen
// inside the training sources and stored with the model; the right number of steps depends on the size of the support.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/arrays.h"
#include "meta/gradient/inner_loop.h"
#include "meta/normalisation.h"

namespace graft::meta {

struct Adaptation {
  // One choice of rate and number of steps, right for about `shots` support rows per workload. With the squared loss,
  // gradient steps follow the directions that many programs agree on first: a regularised regression in the kernel of
  // the network's gradients (Jacot et al. 2018). Adam's do not.
  struct Descent {
    std::int64_t shots = 0, steps = 0;
    float rate = 0;
    bool adam = false;
    bool operator==(const Descent&) const = default;
  };

  Loss loss = Loss::rank;
  Rates<float> rates;             // the gradient steps
  std::vector<Descent> descents;  // empty: none
  bool head_only = false;         // the descent moves the last layer alone
  bool operator==(const Adaptation&) const = default;

  // The descent whose shots are nearest on a logarithmic scale (the first of equals); nullptr if there is none.
  const Descent* descent_for(double shots_per_workload) const;
};

// A trained network, and how it adapts.
struct NetworkState {
  NetworkShape shape;
  Normalisation normalisation;
  std::vector<float> theta;
  Adaptation adaptation;
};

// Refers to `programs`, which must outlive it.
Inputs<float> inputs_of(const features::Encoded& programs);

// Programs of all groups, concatenated, and their loss.
struct JoinedExamples {
  features::Encoded programs;  // as they are
  Objective objective;
};
JoinedExamples joined_examples(Loss loss, std::span<const Examples> groups);

// The same as one batch, features normalised.
Batch<float> batch_of(const Normalisation& normalisation, Loss loss, std::span<const Examples> groups);

// The descent on the full batch from `theta` on, of the head's blocks alone if `head_only`; `on_step(k)` is told after
// each of the steps (k = 1 .. descent.steps), if given.
void descend(const Network& network, std::vector<float>& theta, const Batch<float>& support,
             const Adaptation::Descent& descent, bool head_only, const std::function<void(std::int64_t)>& on_step = {});

// `theta` adapted to the support. If parameters diverge (not finite), the earlier ones are restored.
std::vector<float> adapted_parameters(const Network& network, const Adaptation& adaptation,
                                      std::span<const float> theta, const Batch<float>& support,
                                      double shots_per_workload);

void put(const Adaptation& adaptation, base::Arrays& arrays);
// layout: of the network that adapts; empty for trees, which have no inner steps. UserError if rates do not fit it.
Adaptation adaptation_from(const base::Arrays& arrays, const std::vector<ParameterBlock>& layout);

}  // namespace graft::meta
