// Embedded programs under a head in closed form: the model of `r2d2`, `matching`, `proto` and `latent` (embedding.h).
#pragma once

#include <memory>
#include <vector>

#include "meta/cost_model.h"
#include "meta/methods/heads.h"
#include "meta/network.h"
#include "meta/normalisation.h"

namespace graft::meta {

// kind "embedding": a network of several outputs under a head in closed form. adapted = adapted of heads.h.
struct EmbeddingState {
  NetworkShape shape;
  Normalisation normalisation;
  std::vector<float> theta;
  Head head;
};
std::unique_ptr<CostModel> make_embedding_model(EmbeddingState state);
std::unique_ptr<CostModel> embedding_model_from(const base::Arrays& state);

}  // namespace graft::meta
