// How fast boosted trees score and train on one core, beside XGBoost on the same trees.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/networks.h"

namespace graft::bench {

// Rows of "graft bench predict" and "graft bench train" for forests on rows of `batch` random candidates. XGBoost is
// given the very trees that ours scores (1e-4 apart at most), through its in-place prediction, which caches nothing.
std::vector<NetworkRow> forest_predict_rows(const NetworkSettings& settings,
                                            const std::function<void(std::string)>& note);
// Beside ours (objective and gradients included) XGBoost's own training with its squared error.
std::vector<NetworkRow> forest_train_rows(const NetworkSettings& settings,
                                          const std::function<void(std::string)>& note);

}  // namespace graft::bench
