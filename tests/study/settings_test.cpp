// The tables of settings: what each says is true of requests, and runs that were stored continue.
#include "study/flows/settings.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "codegen/schedule/rules.h"
#include "meta/model_file.h"
#include "search/run_directory.h"
#include "study/experiments/settings.h"
#include "study/flows/adapt.h"
#include "study/flows/collect.h"
#include "study/flows/evaluate.h"
#include "study/flows/train.h"
#include "study/flows/tune.h"
#include "study/inputs/field_error.h"
#include "study/knowledge/prior.h"
#include "tests/base/support.h"
#include "tests/support/refusal.h"

namespace graft::study {
namespace {

using codegen::contains;
using codegen::refusal;

const char* const small = "matmul(m=16,n=16,k=16)";

// A run's request as it was stored, with what this machine's files decide.
base::Document stored(const std::string& text, const tasks::Platform& platform) {
  base::Document request = base::parse_json(text, "stored");
  request.set("platform", platform.name).set("platform_hash", platform_hash(platform));
  return request;
}

base::Document kept_in(const std::filesystem::path& run) {
  return *search::recorded_request(run);
}

TuneRequest small_search(const std::filesystem::path& out) {
  TuneRequest request;
  request.workload = codegen::parse_workload(small);
  request.platform = tasks::platform_named("model:sifive-p450");
  request.model = "black-box";
  request.trials = 8;
  request.batch = 4;
  request.out = out;
  return request;
}

// The identities of runs that graft 0.1.0 stored before there were tables.
const char* const plain_search = R"json({"command":"tune","workload":"matmul(m=16,n=16,k=16,dtype=f32)",
    "source":"modelled","explorer":"evolution","batch":4,"model":"black-box","seed":1,"repetitions":3,
    "minimum_ms":1.0,"timeout":10.0})json";
const char* const chosen_search = R"json({"command":"tune","workload":"matmul(m=16,n=16,k=16,dtype=f32)",
    "source":"modelled","explorer":"annealing","batch":4,"model":"analytic","seed":3,"selection":{"acquisition":"ucb",
    "bound":2.0,"selection":"diverse","diversity":0.2,"preselected":3.0,"random_share":0.1},"layouts":"free",
    "repetitions":2,"minimum_ms":0.5,"timeout":5.0})json";
const char* const search_of_space = R"json({"command":"tune","workload":"matmul(m=16,n=16,k=16,dtype=f32)",
    "source":"modelled","explorer":"evolution","batch":4,"seed":1,"transfer":"frozen","repetitions":3,
    "minimum_ms":1.0,"timeout":10.0})json";
const char* const collection = R"json({"command":"collect","workloads":["matmul(m=16,n=16,k=16,dtype=f32)"],
    "source":"modelled","explorer":"random","seed":1,"evolved":0.5,"repetitions":3,"minimum_ms":1.0,
    "timeout":10.0})json";
const char* const collection_of_programs = R"json({"command":"collect",
    "workloads":["matmul(m=16,n=16,k=16,dtype=f32)"],"source":"modelled","explorer":"listed","seed":1,
    "repetitions":3,"minimum_ms":1.0,"timeout":10.0})json";
const char* const adaptation = R"json({"command":"adapt","workloads":["matmul(m=16,n=16,k=16,dtype=f32)"],
    "source":"modelled","shots":6,"seed":1,"repetitions":3,"minimum_ms":1.0,"timeout":10.0})json";
const char* const evaluation = R"json({"methods":"scratch,zero-shot","shots":"0,2","draws":3,"regime":"seen",
    "train_workloads":"","judge_workloads":"","seed":1})json";
const char* const chosen_evaluation = R"json({"methods":"scratch,zero-shot","shots":"0,2","draws":3,"regime":"seen",
    "train_workloads":"","judge_workloads":"","seed":1,"support":"kmeans","judge_last":2,
    "sources_know_judged":true,"sources":"a,b","misleading":"c","folds":3})json";

TEST(Identities, OfStoredSearchesStay) {
  const base::Folder folder;
  base::Monitor monitor;
  TuneRequest request = small_search(folder / "run");
  tune(request, monitor);
  EXPECT_EQ(Request::hash_of(kept_in(request.out)), Request::hash_of(stored(plain_search, request.platform)));

  request.start = {schedule_from(base::read_file(folder / "run" / "best.json"), "best.json", request.workload)};
  request.history = {request.out};
  request.platform = tasks::platform_named("model:cortex-a72");
  request.model = "analytic";
  request.explorer = "annealing";
  request.selection = {search::Acquisition::ucb, 2, search::Selection::diverse, 0.2, 3, 0.1};
  request.space.layouts = codegen::Layouts::free;
  request.timing = {.repetitions = 2, .minimum_ms = 0.5, .timeout = 5};
  request.seed = 3;
  request.out = folder / "other";
  tune(request, monitor);
  base::Document other = stored(chosen_search, request.platform);
  for (const char* const of_candidates : {"history", "start"})
    other.set(of_candidates, kept_in(request.out).at(of_candidates));
  EXPECT_EQ(Request::hash_of(kept_in(request.out)), Request::hash_of(other));

  request = small_search(folder / "space");
  request.space.file = (folder / "own.space").string();
  base::replace_file(request.space.file, "sketch plain\norder C $order{i.0 j.0 l.0|j.0 i.0 l.0|l.0 i.0 j.0}\n");
  request.model = shipped_model().string();
  request.transfer = "frozen";
  tune(request, monitor);
  base::Document own = stored(search_of_space, request.platform);
  own.set("space", file_hash(request.space.file)).set("model", meta::load_model(shipped_model()).hash);
  EXPECT_EQ(Request::hash_of(kept_in(request.out)), Request::hash_of(own)) << kept_in(request.out).to_json();
}

TEST(Identities, OfStoredCollectionsAndAdaptationsStay) {
  const base::Folder folder;
  base::Monitor monitor;
  base::Team alone;
  tasks::Shared shared;
  CollectRequest request;
  request.workloads = {codegen::parse_workload(small)};
  request.platform = tasks::platform_named("model:sifive-p450");
  request.samples = 8;
  request.evolved = 0.5;
  request.out = folder / "c.h5";
  collect(request, Pool(), shared, alone, monitor);
  EXPECT_EQ(Request::hash_of(kept_in(folder / "c.h5.run")), Request::hash_of(stored(collection, request.platform)));
  CollectRequest listed = request;
  listed.evolved = 0;
  listed.programs = {request.out.string()};
  listed.out = folder / "listed.h5";
  collect(listed, Pool(read_datasets(listed.programs, monitor)), shared, alone, monitor);
  base::Document programs = stored(collection_of_programs, request.platform);
  programs.set("programs", base::Document::list().push(file_hash(request.out)));
  EXPECT_EQ(Request::hash_of(kept_in(folder / "listed.h5.run")), Request::hash_of(programs));

  AdaptRequest adapting;
  adapting.platform = request.platform;
  adapting.workloads = request.workloads;
  adapting.shots = 6;
  adapting.out = folder / "a.h5";
  adapt(adapting, monitor);
  base::Document adapted = stored(adaptation, request.platform);
  adapted.set("model", meta::load_model(shipped_model()).hash);
  EXPECT_EQ(Request::hash_of(kept_in(folder / "a.h5.run")), Request::hash_of(adapted));
}

TEST(Identities, OfStoredEvaluationsStay) {
  EvaluateRequest request;
  request.methods = {"scratch", "zero-shot"};
  request.shots = {0, 2};
  request.draws = 3;
  base::Document plain = base::Document::map();
  put_settings(request, plain);
  EXPECT_EQ(Request::hash_of(plain), Request::hash_of(base::parse_json(evaluation, "stored")));
  request.judge_last = 2;
  request.sources_know_judged = true;
  request.support = "kmeans";
  request.sources = {"a", "b"};
  request.misleading = {"c"};
  request.folds = 3;
  base::Document all = base::Document::map();
  put_settings(request, all);
  EXPECT_EQ(Request::hash_of(all), Request::hash_of(base::parse_json(chosen_evaluation, "stored")));
}

// How a batch is chosen is part of what a run is.
TEST(Identities, HoldHowABatchIsChosen) {
  const base::Folder folder;
  base::Monitor monitor;
  TuneRequest request = small_search(folder / "run");
  request.explorer = "annealing";
  request.selection.acquisition = search::Acquisition::ei;
  request.selection.selection = search::Selection::diverse;
  const TuneResult first = tune(request, monitor), again = tune(request, monitor);
  EXPECT_EQ(first.curve, again.curve);
  EXPECT_EQ(again.time.measured, 0);
  request.selection.acquisition = search::Acquisition::ucb;
  EXPECT_TRUE(contains(refusal([&] { tune(request, monitor); }), "selection"));
}

TEST(Tables, NameEachSettingOnceAndSayWhatItIs) {
  for (const SettledCall& call : settled_calls()) {
    std::set<std::string> keys, flags, keywords;
    for (const Setting& setting : call.settings) {
      EXPECT_FALSE(setting.help.empty()) << call.name << ": " << setting.key;
      EXPECT_EQ(setting.help.find("--"), std::string::npos) << call.name << ": " << setting.key << " names a flag";
      EXPECT_TRUE(keys.insert(setting.key).second) << call.name << ": " << setting.key;
      EXPECT_TRUE(flags.insert(setting.flag_name()).second) << call.name << ": " << setting.key;
      EXPECT_TRUE(keywords.insert(setting.keyword_name()).second) << call.name << ": " << setting.key;
      EXPECT_TRUE(setting.is_usual()) << call.name << ": " << setting.key;
    }
  }
}

TEST(Tables, RefuseWhatIsBeyondTheRangeWhoeverAsks) {
  base::Monitor monitor;
  const base::Folder folder;
  TuneRequest request = small_search(folder / "run");
  request.timing.repetitions = 65;
  EXPECT_TRUE(contains(refusal([&] { tune(request, monitor); }), "repetitions: must be at most 64, got 65"));
  request.timing.repetitions = 3;
  request.selection.random_share = 2;
  EXPECT_TRUE(contains(refusal([&] { tune(request, monitor); }), "random_share: must be at most 1, got 2"));
  request.selection.random_share = 0;
  request.again = true;
  EXPECT_TRUE(contains(refusal([&] { tune(request, monitor); }), "again: goes with `library`"));
  request.again = false;
  request.space.file = (folder / "own.space").string();
  request.space.layouts = codegen::Layouts::free;
  EXPECT_TRUE(contains(refusal([&] { tune(request, monitor); }), "layouts: free goes with the space by rule"));
  request.space.intrinsics = "some.txt";
  EXPECT_TRUE(contains(refusal([&] { tune(request, monitor); }), "intrinsics: goes with the space by rule"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  EvaluateRequest evaluating;
  evaluating.shots = {4, -1};
  EXPECT_TRUE(contains(refusal([&] { check_settings(evaluating); }), "shots: must be at least 0, got -1"));
}

TEST(Tables, TakeValuesByKeyAndByKeyword) {
  TuneRequest request;
  const Settings settings = settings_of(request);
  setting_of(settings, "stop_after")->set(7);
  EXPECT_EQ(request.stop_after, 7);
  setting_of(settings, "layouts")->set("free");
  EXPECT_EQ(request.space.layouts, codegen::Layouts::free);
  setting_of(settings, "history")->set(base::Document::list().push("a").push("b"));
  EXPECT_EQ(request.history.size(), 2u);
  setting_of(settings, "minimum_ms")->set_by_keyword(0.5);
  EXPECT_EQ(request.timing.minimum_ms, 500);
  EXPECT_EQ(setting_of(settings, "minimum_ms")->usual_by_keyword(), base::Document(1e-3));
  EXPECT_TRUE(contains(refusal([&] { setting_of(settings, "minimum_ms")->set_by_keyword(1e-9); }),
                       "repetition_seconds: must be at least 1e-06, got 1e-09"));
  EXPECT_TRUE(contains(refusal([&] { setting_of(settings, "acquisition")->set("eii"); }), "acquisition: unknown"));
  EXPECT_TRUE(contains(refusal([&] { setting_of(settings, "batch")->set("many"); }), "expected an integer"));
  EXPECT_EQ(setting_of(settings, "workload"), nullptr);
}

TEST(Tables, GiveTheKeysOfExperiments) {
  const std::string_view besides[] = {"library"};
  const auto set = [&](const std::string& text) {
    TuneRequest request;
    set_all(base::parse_yaml(text, "x.yaml"), settings_of(request), besides);
    return request;
  };
  const TuneRequest request = set("transfer: frozen\nrandom_share: 0.5\nlibrary: {trials: 3}\nstop_after: 9\n");
  EXPECT_EQ(request.transfer, "frozen");
  EXPECT_EQ(request.selection.random_share, 0.5);
  EXPECT_EQ(request.stop_after, 9);
  EXPECT_TRUE(request.library.empty());
  EXPECT_TRUE(contains(refusal([&] { set("random_shar: 1\n"); }), "x.yaml:1:1: unknown key 'random_shar'"));
  EXPECT_TRUE(contains(refusal([&] { set("batch: 0\n"); }), "x.yaml:1:1: batch: must be at least 1, got 0"));
  EXPECT_TRUE(contains(refusal([&] { set("layouts: fre\n"); }), "'fre' is not given, free or default"));
  // A run's folder is the experiment's own.
  EXPECT_TRUE(contains(refusal([&] { set("out: x\n"); }), "unknown key 'out'"));
}

}  // namespace
}  // namespace graft::study
