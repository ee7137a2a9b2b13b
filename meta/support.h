// What to measure first on a new platform: which few of many programs form the support. Only features are used,
// so the choice is the same for every model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "features/encoding.h"

namespace graft::meta {

// random:    uniformly.
// kmeans:    for each of k clusters the program nearest to its centre (Lloyd's iterations from k-means++ seeds).
// d_optimal: greedily the program that a linear model is least certain of: the largest determinant of the support's
// Gram matrix. uncertain: the same for a Gaussian process with a Gaussian kernel: the largest posterior variance.
// Distances are of features centred and scaled over the programs to choose from, a program's rows summed.
#define GRAFT_SUPPORT_CHOICES(X) X(random) X(kmeans) X(d_optimal) X(uncertain)
enum class SupportChoice {
#define X(name) name,
  GRAFT_SUPPORT_CHOICES(X)
#undef X
};
std::string_view name_of(SupportChoice choice);
SupportChoice support_choice_named(std::string_view name);  // UserError (did you mean)

// `count` distinct programs (all if there are fewer), in the order of choice.
std::vector<std::int64_t> chosen_support(SupportChoice choice, const features::Encoded& programs, std::int64_t count,
                                         base::Stream stream);

}  // namespace graft::meta
