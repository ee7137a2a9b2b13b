#include "datasets/trial.h"

#include <cmath>
#include <limits>
#include <set>

#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

TEST(Status, NamesGoBothWays) {
  std::set<std::string> names;
#define X(name)                                         \
  EXPECT_EQ(status_of(#name), Status::name);            \
  EXPECT_EQ(name_of(Status::name), std::string(#name)); \
  names.insert(std::string(name_of(Status::name)));
  GRAFT_STATUSES(X)
#undef X
  EXPECT_EQ(names.size(), 11u);
  EXPECT_FALSE(status_of("OK"));
  EXPECT_FALSE(status_of(""));
}

TEST(Measurement, EstimatorIsTheMinimumOfAnOkOne) {
  Measurement measurement;
  measurement.seconds = {3e-3, 1e-3, 2e-3};
  EXPECT_EQ(seconds_of(measurement), 1e-3);
  measurement.status = Status::slower_than_limit;
  EXPECT_TRUE(std::isnan(seconds_of(measurement)));
  EXPECT_TRUE(std::isnan(seconds_of(Measurement{})));
}

TEST(Measurement, TheMedianIsAnEstimatorToo) {
  Measurement measurement;
  measurement.estimator = median;
  measurement.seconds = {3e-3, 1e-6, 2e-3};
  EXPECT_EQ(seconds_of(measurement), 2e-3);
  measurement.seconds.push_back(4e-3);
  EXPECT_EQ(seconds_of(measurement), 3e-3);  // the upper one
  EXPECT_EQ(to_document(measurement).to_json(),
            R"({"status":"ok","seconds":[0.003,1e-06,0.002,0.004],"estimator":"median"})");
  EXPECT_EQ(seconds_of(measurement_from(to_document(measurement))), 3e-3);
  const Measurement by_minimum = with_minimum(measurement);
  EXPECT_EQ(by_minimum.seconds, (std::vector<double>{3e-3, 4e-3}));
  EXPECT_EQ(by_minimum.estimator, "");
  EXPECT_EQ(seconds_of(by_minimum), 3e-3);
  measurement.estimator = "mode";
  EXPECT_EQ(contradiction(measurement), "unknown estimator 'mode'");
}

TEST(Measurement, DocumentReadsBackEqual) {
  for (std::int64_t i = 0; i < 200; ++i) {
    const Measurement measurement = random_trial(i, 1).measurement;
    const std::string text = to_document(measurement).to_json();
    EXPECT_TRUE(same(measurement, measurement_from(base::parse_json(text, "m")))) << "trial " << i << ": " << text;
  }
}

TEST(Measurement, DocumentHasStatusesByName) {
  Measurement measurement;
  measurement.seconds = {0.5, 0.25};
  measurement.clock = "wall";
  EXPECT_EQ(to_document(measurement).to_json(), R"({"status":"ok","seconds":[0.5,0.25],"clock":"wall"})");
  measurement = {.status = Status::timed_out, .reason = "ran over 10 s", .seconds = {}, .clock = "", .check = "none"};
  EXPECT_EQ(to_document(measurement).to_json(), R"({"status":"timed_out","reason":"ran over 10 s","check":"none"})");
}

TEST(Measurement, WrongDocumentsAreRefused) {
  const auto refusal = [](const std::string& text) {
    return message_of<base::UserError>([&] { measurement_from(base::parse_json(text, "m.json")); });
  };
  EXPECT_TRUE(contains(refusal(R"({"status":"timd_out"})"), "unknown status 'timd_out'; did you mean 'timed_out'?"));
  EXPECT_TRUE(contains(refusal(R"({"seconds":[1]})"), "missing key 'status'"));
  EXPECT_TRUE(contains(refusal(R"({"status":"crashed","secnds":[1]})"), "did you mean 'seconds'?"));
  EXPECT_TRUE(contains(refusal(R"({"status":"ok"})"), "m.json: status ok without a time"));
  EXPECT_TRUE(contains(refusal(R"({"status":"ok","seconds":[1,null]})"), "expected a number"));
  EXPECT_TRUE(contains(refusal(R"({"status":"ok","seconds":[-1]})"), "a time of -1 seconds"));
  EXPECT_TRUE(contains(refusal(R"({"status":"ok","seconds":[1],"reason":"r"})"), "status ok with a reason"));
  EXPECT_TRUE(contains(refusal(R"({"status":"slower_than_limit"})"), "without its bound"));
  EXPECT_TRUE(contains(refusal(R"({"status":"crashed","reference_ratio":0})"), "reference_ratio 0"));
}

TEST(Measurement, ContradictionsAreNamed) {
  Measurement measurement;
  EXPECT_NE(contradiction(measurement), "");
  measurement.seconds = {1};
  EXPECT_EQ(contradiction(measurement), "");
  for (const double wrong : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    measurement.seconds = {1, wrong};
    EXPECT_NE(contradiction(measurement), "") << wrong;
  }
  measurement = {};
  measurement.status = Status::crashed;
  EXPECT_EQ(contradiction(measurement), "");
}

}  // namespace
}  // namespace graft::datasets
