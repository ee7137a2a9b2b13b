// Learners that train a network through its own adaptation.
#pragma once

#include <memory>

#include "meta/learner.h"

namespace graft::meta {

std::unique_ptr<Learner> make_maml_learner();
std::unique_ptr<Learner> make_fomaml_learner();
std::unique_ptr<Learner> make_anil_learner();
std::unique_ptr<Learner> make_meta_sgd_learner();
std::unique_ptr<Learner> make_maml_plus_plus_learner();
std::unique_ptr<Learner> make_cavia_learner();
std::unique_ptr<Learner> make_hyper_learner();
std::unique_ptr<Learner> make_reptile_learner();

}  // namespace graft::meta
