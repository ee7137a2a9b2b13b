// Measurements that a model's file keeps of the platforms that were given back to it (study/flows/train.h): when more
// of such a platform is given back, the model learns from all of them. Without repetitions, checks and failures.
#pragma once

#include <cstdint>
#include <vector>

#include "base/document.h"
#include "datasets/dataset.h"

namespace graft::meta {

// The most programs that are kept, of one platform and of all together: 0.1 KB each in the file.
inline constexpr std::int64_t most_kept_of_a_platform = 1024, most_kept = 8192;

// The ok rows of a dataset, at most `most`: as many of each workload as possible, evenly spaced from its fastest to its
// slowest program, so that the times keep their distribution. A program that was measured more than once is kept once.
datasets::Dataset thinned(const datasets::Dataset& dataset, std::int64_t most);
// All platforms within both bounds; in total, each gets an equal part.
std::vector<datasets::Dataset> thinned(std::vector<datasets::Dataset> kept);
std::int64_t programs_in(const std::vector<datasets::Dataset>& kept);

// {"sketches":[...],"workloads":[...],"platforms":[{"platform":...,"source":...,"yaml":...,"target":{...},
// "rows":[[workload, sketch, "program hash", seconds, argument, ...],...]},...]}; read strictly, UserError with the
// place.
base::Document to_document(const std::vector<datasets::Dataset>& kept);
std::vector<datasets::Dataset> kept_measurements_from(const base::Document& document);

}  // namespace graft::meta
