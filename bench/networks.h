// The speed of scoring and training cost models on one core, compared with LibTorch on the same networks and with the
// oneDNN products alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/document.h"
#include "bench/settings.h"
#include "bench/timing.h"

namespace graft::bench {

// One network on one batch: the times of ours and the others.
struct NetworkRow {
  std::string what;                   // "mlp 164-256-256-1, batch 1024"
  std::int64_t programs = 0;          // of the batch
  int threads = 1;                    // that all contenders have; from 2 on wall time
  double nodes = 0, shared = 0;       // of trees: nodes per program, and after merging equal subtrees (0: no trees)
  std::vector<Contender> contenders;  // ours first: "graft", then "torch", "onednn" (products alone), "unshared"
};

// "graft bench predict": scores per second. UserError for an unknown workload or platform. Without LibTorch's plug-in
// its column is missing, with a note.
std::vector<NetworkRow> bench_predict(const NetworkSettings& settings, const std::function<void(std::string)>& note);
// "graft bench train": programs per second through forward, rank loss, backward and Adam's step.
std::vector<NetworkRow> bench_train(const NetworkSettings& settings, const std::function<void(std::string)>& note);

bool all_right(const std::vector<NetworkRow>& rows);  // LibTorch's results equal ours
base::Document to_document(const std::vector<NetworkRow>& rows, const NetworkSettings& settings);
std::string to_text(const std::vector<NetworkRow>& rows, const NetworkSettings& settings);

}  // namespace graft::bench
