#include "study/flows/compare.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "study/inputs/field_error.h"

namespace graft::study {
namespace {

search::Searched searched(const std::string& method, std::int64_t seed, std::vector<double> best_seconds) {
  return {method, "matmul(m=8,n=8,k=8,dtype=f32)", "native", seed, std::move(best_seconds)};
}

TEST(Compare, TheMethodOfARunIsTheFolderThatItIsIn) {
  EXPECT_EQ(method_of("runs/scratch/s1"), "scratch");
  EXPECT_EQ(method_of("runs/scratch/s1/"), "scratch");
  EXPECT_EQ(method_of("runs/base/../scratch/./s1"), "scratch");
}

TEST(Compare, TheUsualCountsAreThoseThatAllSearchesHave) {
  const std::vector<search::Searched> searches = {searched("a", 1, std::vector<double>(40, 1.0)),
                                                  searched("b", 1, std::vector<double>(20, 1.0))};
  EXPECT_EQ(counts_of({}, searches), (std::vector<std::int64_t>{8, 16}));
  EXPECT_EQ(counts_of({3, 9}, searches), (std::vector<std::int64_t>{3, 9}));
  EXPECT_EQ(counts_of({}, {searched("a", 1, {1.0, 1.0})}), (std::vector<std::int64_t>{2}));
  EXPECT_THROW(counts_of({9, 3}, searches), FieldError);
}

TEST(Compare, RefusesAShareOfMoreThanAllBeforeRunsAreRead) {
  base::Monitor monitor;
  CompareRequest request;
  request.runs = {"there/is/none"};
  for (const double near : {0.0, 1.5, -1.0}) {
    request.near = near;
    EXPECT_THROW(compare(request, monitor), FieldError) << near;
  }
}

TEST(Compare, AResultIsADocumentWithNullForWhatIsNotKnown) {
  CompareResult result;
  result.trials = {1, 2};
  result.against = "a";
  result.near = 0.95;
  result.methods = search::compare_searches({searched("a", 1, {2.0, 1.0}), searched("b", 1, {1.0, 1.0})}, result.trials,
                                            "a", result.near, 1);
  const base::Document document = base::parse_json(to_document(result).to_json(), "compare.json");
  ASSERT_EQ(document.at("methods").as_list().size(), 2U);
  const base::Document& b = document.at("methods").as_list()[1];
  EXPECT_EQ(b.at("method").as_string(), "b");
  EXPECT_EQ(b.at("speed").as_list()[0].at("mean").as_number(), 1);
  EXPECT_EQ(b.at("slower").as_list()[0].at("mean").as_number(), -0.5);
  EXPECT_TRUE(b.at("speed").as_list()[0].at("low").is_null());  // one search has no interval
}

}  // namespace
}  // namespace graft::study
