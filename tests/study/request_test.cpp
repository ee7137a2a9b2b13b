#include "study/inputs/request.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"
#include "study/flows/settings.h"
#include "tests/base/support.h"

namespace graft::study {
namespace {

TEST(Request, IsEqualWhateverTheOrderOfItsFields) {
  Request one("tune"), other("tune");
  one.set("seed", 1).set("platform", "native");
  other.set("platform", "native").set("seed", 1);
  EXPECT_EQ(one.document().to_json(), R"({"command":"tune","seed":1,"platform":"native"})");
  EXPECT_EQ(one.hash(), other.hash());
  EXPECT_EQ(Request::hash_of(base::parse_json(one.document().to_json(), "text")), one.hash());
  EXPECT_NE(Request("collect").set("seed", 1).set("platform", "native").hash(), one.hash());
  EXPECT_NE(other.set("seed", 2).hash(), one.hash());
}

TEST(Request, SaysHowLongCandidatesAreTimed) {
  Request request("tune");
  const Timing timing{.repetitions = 5, .minimum_ms = 0.1, .timeout = 3};
  put_settings(timing, request.fields());
  EXPECT_EQ(request.document().to_json(), R"({"command":"tune","repetitions":5,"minimum_ms":0.1,"timeout":3.0})");
  const tasks::MeasureSettings settings = timing.settings(2, 7);
  EXPECT_EQ(settings.repetitions, 5);
  EXPECT_EQ(settings.minimum_seconds, 0.1 * 1e-3);
  EXPECT_EQ(settings.timeout_seconds, 3);
  EXPECT_EQ(settings.abort_factor, 2);
  EXPECT_EQ(settings.threads, 7);
}

TEST(Names, AreOfLettersDigitsAndDashes) {
  EXPECT_EQ(short_name("matmul(m=64,n=64)"), "matmul-m-64-n-64");
  const std::string long_one = short_name(std::string(80, 'a')), another = short_name(std::string(81, 'a'));
  EXPECT_EQ(long_one.size(), 60u);
  EXPECT_NE(long_one, another);
  EXPECT_EQ(dataset_file_name("model:sifive-p450"), "model-sifive-p450.h5");
}

TEST(Context, SaysWithWhichCommandAndProgram) {
  const base::Document context = context_of("graft tune x");
  EXPECT_EQ(context.at("command").as_string(), "graft tune x");
  EXPECT_EQ(context.at("graft").as_string(), graft_version());
  EXPECT_FALSE(context.at("host").at("cpu").as_string().empty());
}

TEST(WorkloadsOf, TakeSuitesForTheirWorkloadsAndRefuseOneThatIsGivenTwice) {
  const auto suite = workloads_of({"suite:resnet18"});
  EXPECT_GT(suite.size(), 5U);
  EXPECT_EQ(workloads_of({"matmul(m=8,n=8,k=8)", "suite:resnet18"}).size(), suite.size() + 1);
  EXPECT_THROW(workloads_of({"suite:resnet18", "resnet18.C2"}), base::UserError);
  EXPECT_THROW(workloads_of({"matmul(m=8,n=8,k=8)", "matmul(m=8,n=8,k=8,dtype=f32)"}), base::UserError);
}

}  // namespace
}  // namespace graft::study
