#include "study/flows/predict.h"

#include "search/scorer.h"
#include "study/knowledge/prior.h"

namespace graft::study {

std::vector<float> predict(const PredictRequest& request, std::span<const codegen::Candidate> candidates,
                           base::Monitor& monitor) {
  PriorRequest asked;
  asked.model = request.model;
  asked.seed = request.seed;
  asked.threads = request.threads;
  const Prior prior = prior_of(asked, request.platform, monitor);
  search::Programs programs(request.platform.target, prior.encoding.get());
  search::Scorer scorer(programs, request.threads);
  scorer.use(prior.model.get());
  return scorer.scores(candidates);
}

}  // namespace graft::study
