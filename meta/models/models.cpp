#include "meta/models/models.h"

#include <fmt/format.h>

#include "base/error.h"

namespace graft::meta {

bool takes(const NetworkShape& shape, const features::Encoding& encoding) {
  return shape.inputs == std::int64_t(encoding.features.size()) &&
         (shape.kind == NetworkKind::treegru) == (encoding.shape == features::Shape::tree);
}

std::unique_ptr<CostModel> model_from(const std::string& kind, const base::Arrays& state) {
  struct Kind {
    std::string name;
    std::unique_ptr<CostModel> (*read)(const base::Arrays& state);
  };
  static const std::vector<Kind> kinds = {
      {"network", network_model_from},         {"embedding", embedding_model_from}, {"ridge", ridge_model_from},
      {"bayes-ridge", bayes_ridge_model_from}, {"nearest", nearest_model_from},     {"scratch", scratch_model_from},
      {"residual", residual_model_from},       {"gbt", forest_model_from},          {"ensemble", ensemble_model_from},
      {"chosen", chosen_model_from},           {"random", random_model_from},       {"column", column_model_from},
      {"adapted", adapted_model_from}};
  std::vector<std::string> names;
  for (const Kind& known : kinds) {
    if (known.name == kind) return known.read(state);
    names.push_back(known.name);
  }
  throw base::UserError(fmt::format("unknown kind of model '{}'{}", kind, base::did_you_mean(kind, names)));
}

}  // namespace graft::meta
