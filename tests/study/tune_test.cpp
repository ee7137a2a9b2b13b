#include "study/flows/tune.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "meta/model_file.h"
#include "search/run_directory.h"
#include "study/flows/adapt.h"
#include "study/flows/collect.h"
#include "study/knowledge/prior.h"
#include "study/flows/train.h"
#include "tests/base/support.h"
#include "tests/support/judged_space.h"

namespace graft::study {
namespace {

// A platform whose times are modelled: equal requests give equal results.
TuneRequest small_request(const std::filesystem::path& out) {
  TuneRequest request;
  request.workload = codegen::parse_workload("matmul(m=8,n=16,k=8)");
  request.platform = tasks::platform_named("model:sifive-u54");
  request.explorer = "random";
  request.trials = 4;
  request.batch = 4;
  request.out = out;
  request.command_line = "a test";
  return request;
}

TEST(Tune, GivesTheAnswerThatTheRunHoldsAndIsContinued) {
  const base::Folder folder;
  base::Monitor monitor;
  TuneRequest request = small_request(folder / "run");
  const TuneResult result = tune(request, monitor);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.trials.size(), 4u);
  EXPECT_EQ(result.time.measured, 4);
  ASSERT_TRUE(result.answer.has_value());
  EXPECT_EQ(result.answer->seconds(), result.curve.back().second);
  EXPECT_LE(result.answer->gflops(), result.peak_gflops.value());
  const base::Document kept = base::parse_json(base::read_file(folder / "run" / "best.json"), "best.json");
  EXPECT_EQ(kept.at("schema").as_integer(), 1);
  EXPECT_EQ(kept.at("best"), to_document(result).at("best"));
  const auto read = answer_of(search::read_run(folder / "run"), request.workload);
  EXPECT_EQ(to_document(*read), to_document(*result.answer));

  request.trials = 6;
  const TuneResult more = tune(request, monitor);
  EXPECT_EQ(more.trials.size(), 6u);
  EXPECT_EQ(more.time.measured, 2);
  EXPECT_LE(more.answer->seconds(), result.answer->seconds());
}

// Those of other threads, folders and budgets do; what decides which candidates are measured does not.
TEST(Tune, SaysWhereProductsOfBytesAreSlow) {
  const codegen::Workload bytes("matmul(m=8,n=8,k=8,dtype=i8)"), floats("matmul(m=8,n=8,k=8)");
  const codegen::Target x60 = tasks::platform_named("model:spacemit-x60").target;
  EXPECT_NE(why_bytes_are_slow(bytes, x60).find("spacemit-x60 has no instruction for dot products"), std::string::npos);
  EXPECT_EQ(why_bytes_are_slow(floats, x60), "");
  EXPECT_EQ(why_bytes_are_slow(bytes, tasks::platform_named("model:cortex-a76").target), "");
}

TEST(Tune, RefusesTheRunOfAnotherRequest) {
  const base::Folder folder;
  base::Monitor monitor;
  TuneRequest request = small_request(folder / "run");
  tune(request, monitor);
  request.threads = 2;
  EXPECT_EQ(tune(request, monitor).time.measured, 0);
  request.timing.repetitions = 5;
  EXPECT_NE(base::refusal([&] { tune(request, monitor); }).find("repetitions 3, not 5"), std::string::npos);
}

TEST(Tune, RefusesBeforeThereIsAFolder) {
  const base::Folder folder;
  base::Monitor monitor;
  TuneRequest request = small_request(folder / "run");
  request.explorer = "nobody";
  EXPECT_NE(base::refusal([&] { tune(request, monitor); }).find("nobody"), std::string::npos);
  request.explorer = "evolution";
  request.model = (folder / "no.h5").string();
  EXPECT_NE(base::refusal([&] { tune(request, monitor); }).find("no.h5"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

// A model file knows the fastest program that it was trained on of each workload of its platforms. A search there
// measures that of its own workload, and looks at those of near shapes; one elsewhere, or without the model, does not.
TEST(Tune, BeginsWithTheProgramsThatAModelKnows) {
  const base::Folder folder;
  base::Monitor monitor;
  base::Team team;
  tasks::Shared shared;
  CollectRequest collection;
  for (const char* const text : {"matmul(m=8,n=16,k=8)", "matmul(m=12,n=16,k=8)", "matmul(m=40,n=64,k=40)"})
    collection.workloads.push_back(codegen::parse_workload(text));
  collection.platform = tasks::platform_named("model:sifive-u54");
  collection.samples = 12;
  collection.out = folder / "data.h5";
  collection.command_line = "a test";
  const CollectResult collected = collect(collection, {}, shared, team, monitor);
  TrainRequest training;
  training.data.files = {collection.out.string()};
  training.learner = "ridge";
  training.model.steps = 5;
  training.out = folder / "model.h5";
  training.command_line = "a test";
  ASSERT_TRUE(train(training, team, monitor).has_value());

  TuneRequest request = small_request(folder / "run");
  request.explorer = "evolution";
  request.model = training.out.string();
  const TuneResult result = tune(request, monitor);
  const auto fastest = [&](std::size_t workload) {
    return *search::best_trial(collected.rows[workload].trials, collection.workloads[workload]);
  };
  const auto measures = [](const TuneResult& run, const datasets::Trial& known) {
    return std::any_of(run.trials.begin(), run.trials.end(),
                       [&](const datasets::Trial& trial) { return trial.program_hash == known.program_hash; });
  };
  EXPECT_TRUE(measures(result, fastest(0)));
  const codegen::JudgedSpace space = codegen::judged_space(request.workload, request.platform.target);
  std::set<std::uint64_t> near, moved;
  for (const std::size_t other : {1, 2}) near.insert(codegen::hash(*space.nearest(fastest(other).candidate)));
  const std::string start = (folder / "run" / "start.json").string();
  for (const base::Document& each : base::parse_json(base::read_file(start), start).at("moved").as_list())
    moved.insert(codegen::hash(codegen::candidate_from(each)));
  EXPECT_EQ(moved, near);

  // Nor does one in a user's own space.
  request.space.file = (folder / "plain.space").string();
  base::replace_file(request.space.file,
                     "sketch plain\norder C $order{i.0 j.0 l.0|j.0 i.0 l.0|i.0 l.0 j.0|l.0 i.0 j.0}\n");
  request.out = folder / "own-space";
  tune(request, monitor);
  EXPECT_FALSE(std::filesystem::exists(folder / "own-space" / "start.json"));
  request.space.file.clear();

  request.platform = tasks::platform_named("model:xiangshan-nanhu");
  request.out = folder / "elsewhere";
  tune(request, monitor);
  EXPECT_FALSE(std::filesystem::exists(folder / "elsewhere" / "start.json"));

  // Adapted to it, the model knows what was measured there.
  AdaptRequest adaptation;
  adaptation.model = training.out;
  adaptation.platform = request.platform;
  adaptation.workloads = {request.workload};
  adaptation.shots = 6;
  adaptation.out = folder / "adapted.h5";
  adaptation.command_line = "a test";
  const AdaptResult adapted = adapt(adaptation, monitor);
  request.model = adaptation.out.string();
  request.out = folder / "adapted";
  const TuneResult after = tune(request, monitor);
  EXPECT_TRUE(measures(after, *search::best_trial(search::read_run(adapted.folder).journal.trials, request.workload)));
}

class Notes final : public base::Monitor {
 public:
  void note(std::string_view line) override { lines += std::string(line) + "\n"; }
  std::string lines;
};

// Measurements of the same machine under other settings are of use, as an order of programs; those of another machine
// are not.
TEST(Tune, UsesTheSupportOfAnAdaptedModelAsWhatItIs) {
  const base::Folder folder;
  base::Monitor monitor;
  AdaptRequest adaptation;
  adaptation.platform = tasks::platform_named("model:sifive-u54");
  adaptation.workloads = {codegen::parse_workload("matmul(m=8,n=16,k=8)")};
  adaptation.shots = 6;
  adaptation.out = folder / "adapted.h5";
  adapt(adaptation, monitor);
  const auto support_on = [&](const tasks::Platform& platform, std::string& notes) {
    Notes noted;
    const auto model = model_on(meta::load_model(adaptation.out), platform, noted);
    notes = noted.lines;
    return std::vector<meta::Examples>(model->support().begin(), model->support().end());
  };
  std::string notes;
  EXPECT_EQ(support_on(adaptation.platform, notes).front().workload, adaptation.workloads.front());
  EXPECT_EQ(notes, "");

  const tasks::Platform noisy = tasks::platform_named("model:sifive-u54,noise=1");
  std::vector<meta::Examples> support = support_on(noisy, notes);
  ASSERT_EQ(support.size(), 1u);
  EXPECT_EQ(support.front().platform, noisy.name);
  EXPECT_EQ(support.front().workload.text(), "matmul(m=8,n=16,k=8,dtype=f32) on model:sifive-u54");
  EXPECT_NE(notes.find("measured on model:sifive-u54: it counts as an order"), std::string::npos) << notes;

  tasks::Platform edited = adaptation.platform;
  edited.yaml.replace(edited.yaml.find("gigahertz:"), 10, "gigahertz: 0.5 #");
  support = support_on(edited, notes);
  ASSERT_EQ(support.size(), 1u);
  EXPECT_NE(support.front().workload, adaptation.workloads.front());
  EXPECT_NE(notes.find("before its description changed (modelled.gigahertz)"), std::string::npos) << notes;

  EXPECT_TRUE(support_on(tasks::platform_named("model:cortex-a72"), notes).empty());
  EXPECT_NE(notes.find("what it was adapted from is used"), std::string::npos) << notes;

  // A search takes both, and what it measures itself stays apart.
  TuneRequest request = small_request(folder / "run");
  request.platform = noisy;
  request.model = adaptation.out.string();
  request.explorer = "evolution";
  request.trials = 8;
  const TuneResult result = tune(request, monitor);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.trials.size(), 8u);
}

}  // namespace
}  // namespace graft::study
