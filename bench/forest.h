// The speed of scoring and training boosted trees on one core, compared with XGBoost on the same trees.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/networks.h"

namespace graft::bench {

// Rows of "graft bench predict" and "graft bench train" for forests on rows of `batch` random candidates. XGBoost gets
// exactly the trees that ours scores (at most 1e-4 apart), through its in-place prediction, which does not cache.
std::vector<NetworkRow> forest_predict_rows(const NetworkSettings& settings,
                                            const std::function<void(std::string)>& note);
// Compares ours (including objective and gradients) with XGBoost's own training with its squared error.
std::vector<NetworkRow> forest_train_rows(const NetworkSettings& settings,
                                          const std::function<void(std::string)>& note);

}  // namespace graft::bench
