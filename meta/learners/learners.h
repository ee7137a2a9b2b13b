// Makers of the learners; the table of learner.h lists them.
#pragma once

#include <memory>

#include "meta/learner.h"

namespace graft::meta {

std::unique_ptr<Learner> make_random_learner();
std::unique_ptr<Learner> make_analytic_learner();
std::unique_ptr<Learner> make_scratch_learner();
std::unique_ptr<Learner> make_pooled_learner();
std::unique_ptr<Learner> make_pooled_head_learner();
std::unique_ptr<Learner> make_ridge_learner();
std::unique_ptr<Learner> make_bayes_ridge_learner();
std::unique_ptr<Learner> make_residual_learner();
std::unique_ptr<Learner> make_nearest_learner();
std::unique_ptr<Learner> make_adaptive_learner();
std::unique_ptr<Learner> make_maml_learner();
std::unique_ptr<Learner> make_fomaml_learner();
std::unique_ptr<Learner> make_reptile_learner();
std::unique_ptr<Learner> make_anil_learner();
std::unique_ptr<Learner> make_meta_sgd_learner();
std::unique_ptr<Learner> make_maml_plus_plus_learner();
std::unique_ptr<Learner> make_cavia_learner();
std::unique_ptr<Learner> make_hyper_learner();
std::unique_ptr<Learner> make_r2d2_learner();
std::unique_ptr<Learner> make_matching_learner();
std::unique_ptr<Learner> make_proto_learner();
std::unique_ptr<Learner> make_latent_learner();
std::unique_ptr<Learner> make_gbt_learner();
std::unique_ptr<Learner> make_gbt_scratch_learner();

}  // namespace graft::meta
