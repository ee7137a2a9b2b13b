// The public face as who links libgraft.so sees it: this program has nothing else of graft's.
#include "graft/graft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>
#include <tuple>

#include "base/files.h"
#include "base/process.h"
#include "tests/base/support.h"

namespace graft {
namespace {

const Workload small("matmul(m=8,n=16,k=8)");
const char* const modelled = "model:sifive-u54";  // equal calls give equal times

TuneSettings few(const std::filesystem::path& out) {
  TuneSettings settings;
  settings.trials = 4;
  settings.model = Model("scratch");
  settings.out = out;
  return settings;
}

template <class Call>
std::pair<Error::Kind, std::string> error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {Error::Kind::failure, "no error"};
}

TEST(Graft, MistakesAreErrorsWithTheirPlace) {
  const auto unknown = error_of([] { Workload("matmull(m=8,n=8,k=8)"); });
  EXPECT_EQ(unknown.first, Error::Kind::mistake);
  EXPECT_NE(unknown.second.find("did you mean 'matmul'?"), std::string::npos) << unknown.second;
  EXPECT_EQ(error_of([] { Platform("nativ"); }).first, Error::Kind::mistake);
  EXPECT_EQ(error_of([] { Model("no/such/model.h5"); }).first, Error::Kind::mistake);
  const auto line = error_of([] {
    predict(Model("analytic"), small, Platform(modelled), {"tile C i 8", "tiel C i 8"});
  });
  EXPECT_EQ(line.first, Error::Kind::mistake);
  EXPECT_NE(line.second.find("schedule 2"), std::string::npos) << line.second;
  TuneSettings none;
  none.trials = 0;
  EXPECT_EQ(error_of([&] { tune(small, Platform(modelled), none); }).second, "trials: must be at least 1, got 0");
  EXPECT_EQ(error_of([] { compile({Answer{}}); }).first, Error::Kind::mistake);
  EXPECT_EQ(error_of([] { compile({}); }).first, Error::Kind::mistake);
}

TEST(Graft, ValuesSayWhatTheyAre) {
  EXPECT_EQ(Workload("matmul(k=8, n=16, m=8)"), small);
  EXPECT_EQ(small.text(), "matmul(m=8,n=16,k=8,dtype=f32)");
  EXPECT_EQ(small.flops(), 2. * 8 * 16 * 8);
  const Platform platform(modelled);
  EXPECT_EQ(platform.name(), modelled);
  EXPECT_EQ(platform.source(), "modelled");
  EXPECT_EQ(Platform::from_yaml(platform.yaml()).yaml(), platform.yaml());
  const std::vector<std::string> known = platforms();
  EXPECT_NE(std::find(known.begin(), known.end(), modelled), known.end());
  EXPECT_EQ(Model().name(), "");
  EXPECT_FALSE(version().empty());
}

TEST(Graft, ARunIsContinuedAndPredicted) {
  const base::Folder folder;
  const Platform platform(modelled);
  std::int64_t told = 0;
  TuneSettings settings = few(folder / "run");
  settings.watch.progress = [&](std::string_view, std::int64_t done, std::int64_t) { told = std::max(told, done); };
  const Answer answer = tune(small, platform, settings);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.trials, 4);
  EXPECT_EQ(told, 4);
  EXPECT_EQ(answer.workload, small.text());
  EXPECT_EQ(answer.source, "modelled");
  EXPECT_EQ(answer.run, folder / "run");
  EXPECT_EQ(answer.curve.back().second, answer.seconds);
  EXPECT_GT(answer.gflops, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "best.json"));

  settings.trials = 6;
  const Answer more = tune(small, platform, settings);
  EXPECT_EQ(more.trials, 6);
  EXPECT_LE(more.seconds, answer.seconds);

  // Its schedule is a text that others start from and that models score.
  settings = few(folder / "another");
  settings.trials = 1;
  settings.start = {more.schedule};
  EXPECT_EQ(tune(small, platform, settings).seconds, more.seconds);
  const std::vector<double> scores =
      predict(Model(), small, platform, {more.schedule, "order C l.0 j.0 i.0", "tile C q 4"});
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_GT(scores[0], scores[1]);
  EXPECT_EQ(scores[2], -std::numeric_limits<double>::infinity());
}

TEST(Graft, ASearchAsksAndIsTold) {
  SearchSettings settings;
  settings.model = Model("scratch");
  settings.start = {"order C l.0 j.0 i.0"};
  Search search(small, Platform(modelled), settings);
  EXPECT_FALSE(search.best());
  const std::vector<std::string> asked = search.ask(3);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0], "order C l.0 j.0 i.0\n");
  search.tell({{asked[0], 3e-6}, {asked[1], 0, "crashed"}, {"tile C i 4", 2e-6}});
  ASSERT_TRUE(search.best());
  EXPECT_EQ(search.best()->schedule, "tile C i 4\n");
  EXPECT_EQ(search.trials().size(), 3u);
  EXPECT_TRUE(std::isnan(search.trials()[1].seconds));
  EXPECT_EQ(error_of([&] { search.tell({{asked[2], 1e-6}, {asked[2], 0}}); }).first, Error::Kind::mistake);
  EXPECT_EQ(search.trials().size(), 3u);
  Search moved = std::move(search);
  EXPECT_EQ(moved.ask(2).size(), 2u);
}

TEST(Graft, SchedulesAreEncoded) {
  const std::vector<std::string> names = feature_names("analytic");
  const std::vector<float> rows = encode(small, Platform(modelled), {"tile C i 8", "tile C q 4"}, "analytic");
  ASSERT_EQ(rows.size(), 2 * names.size());
  EXPECT_TRUE(std::isfinite(rows[0]));
  EXPECT_TRUE(std::isnan(rows[names.size()]));
  EXPECT_EQ(error_of([] { encode(small, Platform(modelled), {}, "tree"); }).first, Error::Kind::mistake);
}

TEST(Graft, ADatasetIsRows) {
  const Dataset data = read_dataset(GRAFT_SOURCE_DIR "/datasets/shipped/model-sifive-u54.h5");
  EXPECT_EQ(data.platform, modelled);
  EXPECT_EQ(data.source, "modelled");
  EXPECT_EQ(Platform::from_yaml(data.yaml).yaml(), data.yaml);
  ASSERT_FALSE(data.rows.empty());
  const Dataset::Row& row = data.rows.front();
  const std::string& workload = data.workloads.at(std::size_t(row.workload));
  EXPECT_EQ(Workload(workload).text(), workload);
  EXPECT_EQ(data.sketches.at(std::size_t(row.sketch)).substr(0, 7), "sketch ");
  EXPECT_EQ(row.status, "ok");
  EXPECT_EQ(row.seconds, row.repetitions.front());
  EXPECT_TRUE(std::isfinite(predict(Model("analytic"), Workload(workload), Platform(modelled), {row.schedule})[0]));
  EXPECT_EQ(error_of([] { read_dataset("none.h5"); }).first, Error::Kind::mistake);
}

TEST(Graft, AModelIsAdapted) {
  const base::Folder folder;
  const Platform platform(modelled);
  AdaptSettings settings;
  settings.shots = 6;
  const Adapted adapted = adapt(Model(), platform, {small}, folder / "adapted.h5", settings);
  ASSERT_EQ(adapted.workloads.size(), 1u);
  EXPECT_EQ(adapted.workloads[0].workload, small.text());
  EXPECT_EQ(adapted.workloads[0].programs, 6);
  EXPECT_GE(adapted.workloads[0].before, -1);
  TuneSettings with = few(folder / "run");
  with.model = adapted.model;
  EXPECT_EQ(tune(small, platform, with).trials, 4);
  EXPECT_EQ(error_of([&] { adapt(Model(), platform, {}, folder / "none.h5"); }).second,
            "workloads, from: nothing to adapt to; name workloads to measure, or runs");
}

// The fields of the structs are settings of the tables, with the same defaults; `more` has all of them.
TEST(Graft, SettingsAreGivenByFieldOrByKeyword) {
  const auto usual = [](const char* call, const char* keyword) {
    for (const SettingInfo& setting : settings_of(call)) {
      if (setting.keyword == keyword) return setting.usual;
    }
    ADD_FAILURE() << call << ": no " << keyword;
    return Value();
  };
  const TuneSettings tune_usual;
  EXPECT_EQ(usual("tune", "trials"), Value(tune_usual.trials));
  EXPECT_EQ(usual("tune", "budget_seconds"), Value(tune_usual.budget_seconds));
  EXPECT_EQ(usual("tune", "stop_after"), Value(tune_usual.stop_after));
  EXPECT_EQ(usual("tune", "again"), Value(tune_usual.again));
  EXPECT_EQ(usual("tune", "repetitions"), Value(tune_usual.timing.repetitions));
  EXPECT_EQ(usual("tune", "repetition_seconds"), Value(tune_usual.timing.repetition_seconds));
  EXPECT_EQ(usual("tune", "timeout_seconds"), Value(tune_usual.timing.timeout_seconds));
  EXPECT_EQ(usual("adapt", "shots"), Value(AdaptSettings().shots));
  EXPECT_EQ(usual("train", "learner"), Value(TrainSettings().learner));
  EXPECT_EQ(usual("train", "model"), Value(TrainSettings().learning.model));
  EXPECT_EQ(usual("evaluate", "methods"), Value(EvaluateSettings().methods));
  EXPECT_EQ(usual("evaluate", "shots"), Value(EvaluateSettings().shots));
  EXPECT_EQ(usual("evaluate", "draws"), Value(EvaluateSettings().draws));
  EXPECT_EQ(usual("evaluate", "regime"), Value(EvaluateSettings().regime));
  const NetworkSettings network_usual;
  EXPECT_EQ(usual("tune_network", "shapes"), Value(network_usual.shapes));
  EXPECT_EQ(usual("tune_network", "constants"), Value(network_usual.constants));
  EXPECT_EQ(usual("tune_network", "storage"), Value(network_usual.storage));
  EXPECT_EQ(usual("tune_network", "activations"), Value(network_usual.activations));
  EXPECT_EQ(usual("tune_network", "effort"), Value(network_usual.effort));
  EXPECT_EQ(usual("tune_network", "trials"), Value(network_usual.trials));
  EXPECT_EQ(usual("tune_network", "trials_by_kernel"), Value(network_usual.trials_by_kernel));
  EXPECT_EQ(usual("tune_network", "budget_seconds"), Value(network_usual.budget_seconds));
  EXPECT_EQ(error_of([] { settings_of("tun"); }).first, Error::Kind::mistake);

  const base::Folder folder;
  TuneSettings settings = few(folder / "run");
  settings.more = {{"trials", std::int64_t(6)}, {"explorer", "random"}, {"batch", std::int64_t(3)}};
  EXPECT_EQ(tune(small, Platform(modelled), settings).trials, 6);  // over the field
  settings.more["trails"] = std::int64_t(6);
  EXPECT_EQ(error_of([&] { tune(small, Platform(modelled), settings); }).second,
            "trails: no setting of this call; did you mean 'trials'?");
  settings.more = {{"random_share", 2.0}};
  EXPECT_EQ(error_of([&] { tune(small, Platform(modelled), settings); }).second,
            "random_share: must be at most 1, got 2");
  settings.more = {{"repetition_seconds", 1e-9}};
  EXPECT_EQ(error_of([&] { tune(small, Platform(modelled), settings); }).second,
            "repetition_seconds: must be at least 1e-06, got 1e-09");
  settings.more = {{"batch", "many"}};
  EXPECT_NE(error_of([&] { tune(small, Platform(modelled), settings); }).second.find("batch: "), std::string::npos);
}

// An ONNX file: y = max(x, 0) of 2 rows of an open number of columns.
std::string relu_file() {
  const auto number = [](int field, int value) { return std::string{char(field << 3), char(value)}; };
  const auto part = [](int field, const std::string& content) {
    return std::string{char(field << 3 | 2), char(content.size())} + content;
  };
  const std::string shape = part(1, number(1, 2)) + part(1, part(2, "columns"));
  const std::string input = part(1, "x") + part(2, part(1, number(1, 1) + part(2, shape)));
  const std::string node = part(1, "x") + part(2, "y") + part(4, "Relu");
  return number(1, 8) + part(7, part(1, node) + part(11, input) + part(12, part(1, "y"))) + part(8, number(2, 17));
}

// Ended by its budget, the program's search goes on from Python where the module is there, from here, and back.
TEST(Graft, ASearchOfANetworkGoesOnThroughEveryDoor) {
  const base::Folder folder;
  const std::filesystem::path model = folder / "relu.onnx", run = folder / "run";
  base::replace_file(model, relu_file());
  const auto program = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{GRAFT_PROGRAM, "tune",   model,   "--shape", "columns=64",
                                   "--platform",  modelled, "--out", run};
    words.insert(words.end(), {"--effort", "quick", "--quiet", "--json"});
    words.insert(words.end(), more.begin(), more.end());
    const base::Finished finished = base::run_process(words, std::chrono::minutes(2));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out;
  };
  const std::filesystem::path file = run / "network.json";
  program({"--budget", "0.01s"});
  EXPECT_EQ(base::read_file(file).find("\"finished\""), std::string::npos);
  const std::string modules = GRAFT_PYTHON_MODULES;
  if (!modules.empty()) {
    const std::string call =
        "import sys, graft; graft.tune_network(sys.argv[1], sys.argv[2], shapes={'columns': [64]}, "
        "effort='quick', out=sys.argv[3])";
    const base::Finished finished =
        base::run_process({"/usr/bin/env", "PYTHONPATH=" + modules, GRAFT_PYTHON, "-c", call, model, modelled, run},
                          std::chrono::minutes(2));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_NE(base::read_file(file).find("\"finished\""), std::string::npos);
  }
  NetworkSettings settings;
  settings.shapes = {{"columns", {64}}};
  settings.out = run;
  settings.effort = "quick";
  settings.trials = 20;
  const TunedNetwork tuned = tune_network(model, Platform(modelled), settings);
  EXPECT_TRUE(tuned.complete);
  ASSERT_EQ(tuned.kernels.size(), 1u);
  EXPECT_EQ(tuned.kernels[0].trials, 20);
  // The same, and less, is there already, whoever asks.
  const std::string before = base::read_file(file);
  program({"--trials", "20"});
  program({});
  settings.trials = 0;
  EXPECT_EQ(tune_network(model, Platform(modelled), settings).seconds, tuned.seconds);
  EXPECT_EQ(base::read_file(file), before);
}

TEST(Graft, AStopLeavesAnAnswerOrSaysThatThereIsNone) {
  const base::Folder folder;
  TuneSettings settings = few(folder / "none");
  settings.watch.stop = [] { return true; };
  EXPECT_EQ(error_of([&] { tune(small, Platform(modelled), settings); }).first, Error::Kind::stopped);
  settings = few(folder / "some");
  settings.trials = 1000;
  std::int64_t told = 0;
  settings.watch.progress = [&](std::string_view, std::int64_t done, std::int64_t) { told = done; };
  settings.watch.stop = [&] { return told >= 8; };
  const Answer answer = tune(small, Platform(modelled), settings);
  EXPECT_FALSE(answer.complete);
  EXPECT_GE(answer.trials, 8);
  EXPECT_LT(answer.trials, 1000);
}

TEST(Graft, AnswersOfRunsAndOfALibraryOfAnswersAreCompiled) {
  const base::Folder folder;
  const Platform platform("native:v2");
  TuneSettings settings = few(folder / "run");
  settings.timing.repetition_seconds = 1e-4;
  settings.library = folder / "answers";
  const Answer found = tune(small, platform, settings), known = tune(small, platform, settings);
  EXPECT_EQ(found.known_since, "");
  EXPECT_NE(known.known_since, "");
  EXPECT_EQ(known.run, "");
  EXPECT_EQ(known.schedule, found.schedule);
  EXPECT_EQ(known.trials, found.trials);
  CompileSettings names;
  names.names = {{small.text(), "multiply"}};
  const Compiled one = compile({found}, names), other = compile({known}, names);
  EXPECT_EQ(one.files, other.files);
  ASSERT_EQ(one.functions.size(), 1u);
  EXPECT_EQ(one.functions[0].name, "multiply");
  EXPECT_EQ(one.functions[0].check, "host");
  write(one, folder / "new/lib");
  for (const auto& [name, content] : one.files) EXPECT_TRUE(std::filesystem::exists(folder / "new/lib" / name)) << name;
  EXPECT_TRUE(one.files.contains("libkernels.a"));
  const auto twice = error_of([&] { compile({found, known}); });
  EXPECT_NE(twice.second.find("a second run of"), std::string::npos) << twice.second;
}

TEST(Graft, AnAnswerIsReadFromItsRunAndFromText) {
  const base::Folder folder;
  const Answer answer = tune(small, Platform(modelled), few(folder / "run"));
  const std::string content = compile({answer}).files.at("kernels.json");
  for (const Answer& again : {answer_of(folder / "run"), answer_from(to_text(answer))}) {
    EXPECT_EQ(again.schedule, answer.schedule);
    EXPECT_EQ(again.seconds, answer.seconds);
    EXPECT_EQ(again.curve, answer.curve);
    EXPECT_EQ(std::tie(again.trials, again.complete, again.check, again.run),
              std::tie(answer.trials, answer.complete, answer.check, answer.run));
    EXPECT_EQ(compile({again}).files.at("kernels.json"), content);
  }
  EXPECT_EQ(error_of([&] { answer_of(folder / "none"); }).first, Error::Kind::mistake);
  EXPECT_EQ(error_of([] { answer_from("{}"); }).first, Error::Kind::mistake);
  EXPECT_EQ(error_of([] { to_text({}); }).first, Error::Kind::mistake);
}

TEST(Graft, AQuestionIsStopped) {
  Search search(small, Platform(modelled), {Model("scratch")});
  int asked = 0;
  EXPECT_EQ(search.ask(3000, [&] { return ++asked > 1; }).size(), 1000u);
  EXPECT_EQ(search.ask(2).size(), 2u);
}

TEST(Graft, CallsAtTheSameTimeGiveWhatTheyGiveAlone) {
  const base::Folder folder;
  const Platform platform("native:v2");
  TuneSettings settings = few(folder / "run");
  settings.timing.repetition_seconds = 1e-4;
  const Answer answer = tune(small, platform, settings);
  const auto all = [&] {
    return std::tuple(compile({answer}).files, predict(Model("analytic"), small, platform, {answer.schedule}),
                      encode(small, platform, {answer.schedule}), Search(small, platform, {Model("scratch")}).ask(3));
  };
  const auto alone = all();
  std::vector<std::thread> threads;
  std::vector<int> equal(3);
  for (int& mine : equal) threads.emplace_back([&] { mine = all() == alone; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(3, 1));
}

}  // namespace
}  // namespace graft
