// Turns embedded programs (network outputs) into scores, given a support, in closed form and with exact
// derivatives, so that networks can be trained through it:
//
//   ridge      Bayesian linear regression of -log seconds, both sides centred within each group, from a Gaussian prior
//   of
//              the weights: w = m + C P^T (P C P^T + s I)^-1 (y - P m). A pairwise squared ranking loss has the same
//              minimum. Differentiated through the solve: R2-D2 (Bertinetto et al. 2019); as posterior: ALPaCA
//              (Harrison et al. 2018). Without support it is the prior's mean.
//   matching   a kernel smoother: the mean of the support's centred -log seconds, weighed by
//              softmax(-sharpness |e - e_i|^2) (matching networks, Vinyals et al. 2016). Nothing without support.
//   prototype  the same towards three prototypes: the mean embeddings of the support's fast, middle and slow thirds of
//              each group, or halves if no group has three rows (prototypical networks, Snell et al. 2017).
//
// It needs no framework and no data set, and uses doubles throughout, because supports are small.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace graft::meta {

#define GRAFT_HEADS(X) X(ridge) X(matching) X(prototype)
enum class HeadKind {
#define X(name) name,
  GRAFT_HEADS(X)
#undef X
};
std::string_view name_of(HeadKind kind);
HeadKind head_kind_named(std::string_view name);  // UserError if unknown

// Embedded programs that were measured, group after group.
struct Embedded {
  std::int64_t width = 0;
  std::vector<double> values;  // rows x width
  std::vector<double> log_seconds;
  std::vector<std::int64_t> sizes;  // of the groups
  std::int64_t rows() const { return std::int64_t(log_seconds.size()); }
};

struct Head {
  HeadKind kind = HeadKind::ridge;
  // ridge: of the weights; s above.
  std::vector<double> mean, covariance;  // width; width x width
  double noise = 1;
  // matching, prototype
  double sharpness = 1;
  std::vector<double> places, labels;  // from the support: rows x width; rows. Empty before
  bool operator==(const Head&) const = default;

  std::int64_t width() const { return std::int64_t(mean.size()); }
  // Scores rows x width embeddings; spread: the posterior standard deviation (ridge), or empty.
  std::vector<double> scores(std::span<const double> embedded) const;
  std::vector<double> spread(std::span<const double> embedded) const;
};

// The head after a support (rows in groups of one are ignored). `prior.mean` decides the width.
Head adapted(const Head& prior, const Embedded& support);

// Gradients of a query's loss by the inputs of the adapted head; `by_scores` is its gradient by the head's scores.
struct HeadGradient {
  std::vector<double> support, query;  // by their embeddings
  std::vector<double> mean;            // by the prior's (ridge)
  double log_scale = 0;                // by the logarithm of a factor of the covariance (ridge), or of the sharpness
};
// Every group of the support has at least two rows.
HeadGradient head_gradient(const Head& prior, const Embedded& support, std::span<const double> query,
                           std::span<const double> by_scores);

}  // namespace graft::meta
