#include "study/flows/train.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "meta/methods/methods.h"
#include "study/inputs/field_error.h"

namespace graft::study {
namespace {

// Rows of a table: what they are made of has columns, not steps.
std::vector<datasets::Dataset> tables() {
  datasets::Dataset data;
  data.sketches.push_back(std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("t", {{"n", {}}})));
  return {data};
}

ModelChoice left_open() {
  ModelChoice choice;
  choice.model.clear();
  return choice;
}

TEST(ModelPlan, HasTreesWhereNobodySaysOtherwiseAndTheDataAreNoTables) {
  ModelPlan plan(left_open(), "residual", 1, 1);
  EXPECT_EQ(plan.model(), "gbt");
  EXPECT_TRUE(plan.settings().trees);
  EXPECT_EQ(plan.encoding().name, "context_relation+on_target");
  plan.fit(tables());
  EXPECT_EQ(plan.model(), "mlp");
  EXPECT_FALSE(plan.settings().trees);
  EXPECT_EQ(plan.encoding().name, meta::encoding_of_tables().name);
  EXPECT_EQ(plan.settings().network.hidden, (std::vector<std::int64_t>{128, 64}));
}

TEST(ModelPlan, HasANetworkWhereAFlagIsOfNetworksOrTheLearnerHasNoTrees) {
  ModelChoice choice = left_open();
  choice.hidden = {8};
  EXPECT_EQ(ModelPlan(choice, "residual", 1, 1).model(), "mlp");
  EXPECT_EQ(ModelPlan(left_open(), "maml", 1, 1).model(), "mlp");
}

TEST(ModelPlan, KeepsTreesOfALearnerThatHasNothingElse) {
  ModelPlan plan(left_open(), "gbt", 1, 1);
  plan.fit(tables());
  EXPECT_EQ(plan.model(), "gbt");
  EXPECT_TRUE(plan.settings().trees);
  EXPECT_EQ(plan.encoding().name, meta::encoding_of_tables().name);
}

TEST(ModelPlan, KeepsWhatWasAskedFor) {
  ModelChoice choice;
  choice.model = "gbt";
  choice.encoding = "context_relation";
  ModelPlan plan(choice, "residual", 1, 1);
  plan.fit(tables());
  EXPECT_EQ(plan.model(), "gbt");
  EXPECT_EQ(plan.encoding().name, "context_relation");
}

TEST(ModelPlan, RefusesWhatDoesNotGoTogetherByField) {
  const auto fields_of = [](const ModelChoice& choice) -> std::string {
    try {
      ModelPlan(choice, "maml", 1, 1).learner_for("maml");
    } catch (const FieldError& error) {
      return error.fields();
    }
    return "";
  };
  ModelChoice choice;
  EXPECT_EQ(fields_of(choice), "");
  choice.model = "gbt";
  EXPECT_EQ(fields_of(choice), "model");
  choice.model = "mlp";
  choice.encoding = "tree";
  EXPECT_EQ(fields_of(choice), "model, encoding");
}

TEST(KnownPlatforms, CountsThoseOfAllThatAModelWasContinuedFrom) {
  EXPECT_EQ(known_platforms(base::Document::map()), 1);
  const auto provenance = [](const char* text) { return base::parse_json(text, "provenance"); };
  EXPECT_EQ(known_platforms(provenance(R"({"platforms":["a","b"]})")), 2);
  EXPECT_EQ(known_platforms(provenance(R"({"platforms":["c"],"continues":{"platforms":["a","b"]}})")), 3);
  EXPECT_EQ(known_platforms(provenance(R"({"prior":{"platforms":["c"],"continues":{"platforms":["a","b"]}}})")), 3);
}

TEST(Card, SaysWhatAModelWasMadeOf) {
  meta::TaskSet tasks;
  tasks.encoding = &features::encoding_named("context_relation");
  tasks.groups.resize(3);
  for (std::size_t g = 0; g < 3; ++g) {
    tasks.groups[g].platform = g < 2 ? "native" : "model:pwr9";
    tasks.groups[g].workload = codegen::Workload(g == 0 ? "matmul(m=1)" : "matmul(m=2)");
    tasks.groups[g].features.begins = {0, 1, 2};
  }
  tasks.sources = {{"native", "native"}, {"model:pwr9", "modelled"}};
  CardText text{"residual", "gbt", 7, "2025-01-31T12:00:00Z", "", {}, "Judged so."};
  const std::string card = card_of(text, tasks);
  for (const char* part : {"* learner: residual (gbt), seed 7\n", "* encoding: context_relation\n",
                           "* 6 measured programs of 2 workloads:\n", "| native | native | 2 | 4 |\n",
                           "| model:pwr9 | modelled | 1 | 2 |\n", "\nJudged so."})
    EXPECT_NE(card.find(part), std::string::npos) << part << card;
  EXPECT_EQ(card.find("Held out"), std::string::npos);
  EXPECT_EQ(card.find("continues"), std::string::npos);
  text.base_platforms = 13;
  EXPECT_NE(card_of(text, tasks).find("It continues a model of 13 platforms"), std::string::npos);
  text.hold_out = "model:a64fx";
  EXPECT_NE(card_of(text, tasks).find("Held out, never seen in training: model:a64fx."), std::string::npos);
}

}  // namespace
}  // namespace graft::study
