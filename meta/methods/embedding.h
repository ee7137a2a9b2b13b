// The gradient of an episode through a head in closed form (heads.h): how well an embedding, once its head is
// adapted to the support, ranks the query. Only first derivatives of the network are needed, for the head is
// differentiated through its solution.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "meta/gradient/inner_loop.h"
#include "meta/learner.h"
#include "meta/methods/heads.h"

namespace graft::meta {

// The measured times of a support batch, group after group.
struct Measured {
  std::vector<double> log_seconds;
  std::vector<std::int64_t> sizes;
};

template <class T>
struct EmbeddingGradient {
  T query_loss = 0;
  std::vector<T> theta;
  std::vector<double> mean;  // by the prior's
  double log_scale = 0;      // as in HeadGradient
};

// All zero if a group of the support has fewer than two rows, or the query has nothing to compare.
template <class T>
EmbeddingGradient<T> embedding_gradient(const NetworkOf<T>& network, std::span<const T> theta, const Head& prior,
                                        const Batch<T>& support, const Measured& measured, const Batch<T>& query);

std::unique_ptr<Learner> make_r2d2_learner();
std::unique_ptr<Learner> make_matching_learner();
std::unique_ptr<Learner> make_proto_learner();
std::unique_ptr<Learner> make_latent_learner();

}  // namespace graft::meta
