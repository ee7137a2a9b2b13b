#include "meta/methods/analytic.h"

#include <fmt/format.h>

#include "base/error.h"

namespace graft::meta {
namespace {

class ColumnModel final : public CostModel {
 public:
  Scores score(const features::Encoded& programs) const override {
    const std::size_t count = std::size_t(programs.programs());
    Scores out{std::vector<float>(count), std::vector<float>(count, 0.0f)};
    for (std::size_t p = 0; p < count; ++p) out.mean[p] = -programs.rows.at(programs.begins[p], 0);
    return out;
  }
  std::unique_ptr<CostModel> fitted(std::span<const Examples>) const override {
    return std::make_unique<ColumnModel>();
  }
  std::unique_ptr<CostModel> clone() const override { return std::make_unique<ColumnModel>(); }
  bool is_informed() const override { return true; }
  bool takes(const features::Encoding& encoding) const override { return !encoding.features.empty(); }
  std::string_view kind() const override { return "column"; }
  base::Arrays state() const override { return {}; }
};

class AnalyticLearner final : public Learner {
 public:
  std::unique_ptr<CostModel> train(const TaskSet& tasks, const LearnerSettings&, base::Monitor&) const override {
    if (tasks.encoding->name != "analytic")
      throw base::UserError(fmt::format("learner analytic: its prediction is the encoding analytic; {} was requested",
                                        tasks.encoding->name));
    return make_column_model();
  }
};

}  // namespace

std::unique_ptr<CostModel> make_column_model() {
  return std::make_unique<ColumnModel>();
}

std::unique_ptr<CostModel> column_model_from(const base::Arrays&) {
  return make_column_model();
}

std::unique_ptr<Learner> make_analytic_learner() {
  return std::make_unique<AnalyticLearner>();
}

}  // namespace graft::meta
