// Experiments: their definitions, what is measured of searches and evaluations, and verdicts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "study/experiments/experiment.h"
#include "study/experiments/measures.h"
#include "study/experiments/results.h"
#include "study/experiments/run.h"
#include "tests/base/support.h"
#include "tests/support/refusal.h"

namespace graft::study {
namespace {

using codegen::contains;
using codegen::refusal;

constexpr double never = std::numeric_limits<double>::infinity();

// Two methods, two workloads, two seeds. "b" has 1 s after 4 trials; "a" has 2 s after one trial, 1 s after two and
// 0.5 s in the end.
ExperimentResults results() {
  ExperimentResults all;
  all.experiment = "x";
  for (const std::string workload : {"w1", "w2"}) {
    const double unit = workload == "w1" ? 1 : 10;
    for (std::int64_t seed = 1; seed <= 2; ++seed) {
      all.searches.push_back({"a", workload, "p", seed, {2 * unit, unit, unit, 0.5 * unit}});
      all.searches.push_back({"b", workload, "p", seed, {never, 4 * unit, 2 * unit, unit}});
    }
  }
  return all;
}

Claim claim(const std::string& measure, std::int64_t at = 0, std::int64_t other_at = 0) {
  Claim out;
  out.measure = measure, out.method = "a", out.other = "b", out.at = at, out.other_at = other_at;
  out.at_least = 1;
  return out;
}

TEST(ExperimentMeasures, SpeedIsOfPairs) {
  EXPECT_NEAR(finding(claim("speed"), results()).value.mean, 2, 1e-12);
  EXPECT_NEAR(finding(claim("speed", 1, 4), results()).value.mean, 0.5, 1e-12);
  EXPECT_NEAR(finding(claim("speed", 2, 2), results()).value.mean, 4, 1e-12);
  EXPECT_EQ(finding(claim("speed"), results()).of, 4);
  // Nothing ok yet in the search that is compared: it counts with a hundredth.
  Claim reversed = claim("speed", 1, 1);
  std::swap(reversed.method, reversed.other);
  EXPECT_NEAR(finding(reversed, results()).value.mean, 0.01, 1e-12);
  Claim one = claim("speed");
  one.only = {"w2"};
  EXPECT_EQ(finding(one, results()).of, 2);
}

TEST(ExperimentMeasures, LeastSpeedNamesTheWorkload) {
  ExperimentResults all = results();
  for (search::Searched& search : all.searches) {
    if (search.method == "a" && search.workload == "w2") search.best_seconds.back() = 20;
  }
  const Finding found = finding(claim("least-speed"), all);
  EXPECT_EQ(found.where, "w2");
  EXPECT_NEAR(found.value.mean, 0.5, 1e-12);
  EXPECT_EQ(found.verdict, Finding::Verdict::open);  // without an interval nothing contradicts
  EXPECT_NEAR(found.short_by, 0.5, 1e-12);
  EXPECT_EQ(finding(claim("wins"), all).value.mean, 1);
  EXPECT_EQ(finding(claim("wins"), results()).value.mean, 2);
}

TEST(ExperimentMeasures, TrialsUntilTheOthersSpeed) {
  EXPECT_NEAR(finding(claim("trials"), results()).value.mean, 2, 1e-12);
  EXPECT_NEAR(finding(claim("times-fewer"), results()).value.mean, 2, 1e-12);
  Claim half = claim("trials");
  half.share = 0.5;
  EXPECT_NEAR(finding(half, results()).value.mean, 1, 1e-12);
  Claim more = claim("trials");
  more.share = 10;  // nobody is as fast
  const Finding found = finding(more, results());
  EXPECT_NEAR(found.value.mean, 5, 1e-12);
  EXPECT_EQ(found.never, 4);
}

TEST(ExperimentMeasures, TrialsUntilTheSpeedOfAThird) {
  ExperimentResults all = results();
  for (const std::string workload : {"w1", "w2"}) {
    for (std::int64_t seed = 1; seed <= 2; ++seed)
      all.searches.push_back({"optimum", workload, "p", seed, {workload == "w1" ? 0.5 : 5.0}});
  }
  Claim asked = claim("times-fewer");
  asked.reach = "optimum";
  EXPECT_NEAR(finding(asked, all).value.mean, 5.0 / 4, 1e-12);  // "b" never has it: 5
  EXPECT_EQ(finding(asked, all).never, 0);
  asked.share = 0.5;
  EXPECT_NEAR(finding(asked, all).value.mean, 4.0 / 2, 1e-12);
  asked.measure = "trials";
  EXPECT_NEAR(finding(asked, all).value.mean, 2, 1e-12);
}

TEST(ExperimentMeasures, SpeedOfTheFastest) {
  EXPECT_NEAR(speed_of_fastest(results().searches, "a", 4).mean, 1, 1e-12);
  EXPECT_NEAR(speed_of_fastest(results().searches, "b", 4).mean, 0.5, 1e-12);
  EXPECT_NEAR(speed_of_fastest(results().searches, "b", 1).mean, 0.01, 1e-12);
}

TEST(ExperimentMeasures, SumsCountEachWorkloadByItsWeight) {
  Claim asked = claim("sum");
  EXPECT_NEAR(finding(asked, results()).value.mean, 2, 1e-12);  // (1 + 10) / (0.5 + 5)
  ExperimentResults all = results();
  for (search::Searched& search : all.searches) {
    if (search.method == "b" && search.workload == "w2") search.best_seconds.back() = 5;
  }
  asked.weights = {{"w1", 10}};
  EXPECT_NEAR(finding(asked, all).value.mean, 15.0 / 10, 1e-12);  // (10 * 1 + 5) / (10 * 0.5 + 5)
}

TEST(ExperimentMeasures, VerdictsGoByIntervals) {
  ExperimentResults all = results();
  for (std::size_t s = 0; s < all.searches.size(); ++s)
    all.searches[s].best_seconds.back() *= 1 + 0.01 * double(s);  // an interval that is not a point
  Claim asked = claim("speed");
  EXPECT_EQ(finding(asked, all).verdict, Finding::Verdict::reproduced);
  asked.at_least = 5;
  EXPECT_EQ(finding(asked, all).verdict, Finding::Verdict::contradicted);
  const base::Interval interval = finding(asked, all).value;
  asked.at_least = (interval.mean + interval.high) / 2;
  EXPECT_EQ(finding(asked, all).verdict, Finding::Verdict::open);
  asked.at_least.reset();
  asked.at_most = interval.low / 2;
  EXPECT_EQ(finding(asked, all).verdict, Finding::Verdict::contradicted);
  EXPECT_EQ(finding(claim("speed"), ExperimentResults()).of, 0);
}

TEST(ExperimentMeasures, WhatSearchesFoundIsJudgedByTrialsAndTargets) {
  ExperimentResults all;
  all.evaluation = base::parse_json(R"({"rows":[],"searches":[
    {"target":"t","method":"a","trials":1,"by_seed":[0.4,0.4,0.4]},
    {"target":"u","method":"a","trials":1,"by_seed":[0.9,0.9,0.9]},
    {"target":"t","method":"a","trials":5,"by_seed":[0.9,0.9,0.9]},
    {"target":"u","method":"a","trials":5,"by_seed":[0.9,0.9,0.6]},
    {"target":"t","method":"b","trials":1,"by_seed":[0.4,0.4,0.4]},
    {"target":"u","method":"b","trials":1,"by_seed":[0.4,0.4,0.4]},
    {"target":"t","method":"b","trials":5,"by_seed":[0.8,0.8,0.8]},
    {"target":"u","method":"b","trials":5,"by_seed":[0.9,0.9,0.9]}]})",
                                    "x");
  EXPECT_NEAR(finding(claim("found", 1), all).value.mean, 0.6, 1e-12);  // sqrt(0.4 * 0.9)
  EXPECT_EQ(finding(claim("found", 1), all).of, 2);
  EXPECT_NEAR(finding(claim("found-gain", 1, 1), all).value.mean, 0.2, 1e-12);
  EXPECT_NEAR(finding(claim("found-gain", 5, 1), all).value.low, std::sqrt(0.54) - 0.4, 1e-12);
  Claim least = claim("least-found-gain", 0, 0);
  const Finding found = finding(least, all);
  EXPECT_NEAR(found.value.mean, -0.1, 1e-12);
  EXPECT_EQ(found.where, "u after 5");
  EXPECT_EQ(found.of, 4);
  least.at = 1;
  EXPECT_NEAR(finding(least, all).value.mean, 0, 1e-12);
  least.at = 0;
  least.only = {"t"};
  EXPECT_EQ(finding(least, all).where, "t after 1");
  EXPECT_EQ(finding(least, ExperimentResults()).of, 0);
  all.evaluation = base::parse_json(R"({"rows":[]})", "x");  // of an earlier graft
  EXPECT_EQ(finding(least, all).of, 0);
}

TEST(ExperimentMeasures, ScoresAreMeansOverTargetsByDraw) {
  ExperimentResults all;
  all.evaluation = base::parse_json(R"({"rows":[
    {"target":"t","method":"a","shots":8,"by_draw":{"spearman":[0.5,0.6,0.7],"top1":[1,1,1]}},
    {"target":"u","method":"a","shots":8,"by_draw":{"spearman":[0.7,0.8,0.9],"top1":[1,1,1]}},
    {"target":"t","method":"b","shots":8,"by_draw":{"spearman":[0.4,0.5,0.6],"top1":[1,1,1]}},
    {"target":"u","method":"b","shots":8,"by_draw":{"spearman":[0.6,0.7,0.8],"top1":[1,1,1]}}]})",
                                    "x");
  Claim score = claim("score", 8, 8);
  score.metric = "spearman";
  EXPECT_NEAR(finding(score, all).value.mean, 0.7, 1e-12);
  EXPECT_EQ(finding(score, all).of, 2);
  score.only = {"t"};
  EXPECT_NEAR(finding(score, all).value.mean, 0.6, 1e-12);
  EXPECT_EQ(finding(score, ExperimentResults()).of, 0);
  Claim gain = claim("gain", 8, 8);
  gain.metric = "spearman";
  const Finding found = finding(gain, all);
  EXPECT_NEAR(found.value.mean, 0.1, 1e-12);
  EXPECT_NEAR(found.value.low, 0.1, 1e-12);  // of pairs: every draw gains as much
}

TEST(Experiments, KnowWhetherTheyNeedMeasurementsOfOthers) {
  Experiment experiment;
  EXPECT_FALSE(needs_others(experiment, ""));
  experiment.data = {base::Document("a.h5"), base::Document::map().set("collect", base::Document::list())};
  EXPECT_FALSE(needs_others(experiment, ""));
  experiment.data.push_back(base::Document::map().set("import", "table"));
  EXPECT_TRUE(needs_others(experiment, ""));
  EXPECT_FALSE(needs_others(experiment, "theirs"));
  Experiment peers;
  peers.kind = Experiment::Kind::peers;
  EXPECT_TRUE(needs_others(peers, "theirs"));
}

TEST(ExperimentResults, AreTheSameAfterAFile) {
  ExperimentResults all = results();
  all.complete = true;
  all.times["a"] = {800, 1.5, 2.5, 20};
  all.context = base::Document::map().set("date", "2025-01-31T12:00:00Z");
  const ExperimentResults again = results_from(base::parse_json(to_document(all).to_json(), "results.json"));
  EXPECT_EQ(to_document(again), to_document(all));
  EXPECT_EQ(again.times.at("a").measured, 800);
  EXPECT_EQ(again.times.at("a").learning, 2.5);
  ASSERT_EQ(again.searches.size(), all.searches.size());
  for (std::size_t s = 0; s < all.searches.size(); ++s)
    EXPECT_EQ(again.searches[s].best_seconds, all.searches[s].best_seconds);
  EXPECT_THROW(results_from(base::parse_json(R"({"experiment":"x"})", "y")), base::UserError);
}

const std::string definition = R"yaml(
id: E1
title: a
question: b
kind: search
platforms: [native]
workloads: ["matmul(m=8,n=8,k=8)"]
seeds: 2
methods:
  a: {trials: 800, explorer: annealing}
  b: {trials: 2000, explorer: random}
counts: [100, 800]
claims:
  - {text: c, measure: trials, method: a, other: b, other_at: 2000, at_most: 200}
quick: {seeds: 1, trials: 0.01}
)yaml";

TEST(Experiments, AreReadWholeAndQuick) {
  const base::Folder folder;
  std::filesystem::create_directories(folder / "first");
  base::replace_file(folder / "first/experiment.yaml", definition);
  const Experiment whole = read_experiment(folder / "first"), quick = read_experiment(folder / "first", true);
  EXPECT_EQ(whole.name, "first");
  EXPECT_EQ(whole.seeds, 2);
  EXPECT_EQ(whole.methods[1].trials, 2000);
  EXPECT_EQ(whole.claims[0].at_most, 200);
  EXPECT_EQ(quick.seeds, 1);
  EXPECT_EQ(quick.methods[0].trials, 8);
  EXPECT_EQ(quick.methods[1].trials, 20);
  EXPECT_EQ(quick.claims[0].other_at, 20);
  EXPECT_EQ(quick.counts, (std::vector<std::int64_t>{1, 8}));
  EXPECT_NE(whole.definition, quick.definition);

  // Texts decide no result; methods do.
  const auto definition_of = [&](const std::string& from, const std::string& to) {
    std::string changed = definition;
    changed.replace(changed.find(from), from.size(), to);
    base::replace_file(folder / "first/experiment.yaml", changed);
    return read_experiment(folder / "first").definition;
  };
  EXPECT_EQ(definition_of("question: b", "question: c"), whole.definition);
  EXPECT_EQ(definition_of("at_most: 200", "at_most: 100"), whole.definition);
  EXPECT_NE(definition_of("trials: 800", "trials: 900"), whole.definition);
}

TEST(Experiments, ASumHasTheWeightsOfItsClaim) {
  const base::Folder folder;
  std::filesystem::create_directories(folder / "layers");
  std::string layers = definition;
  layers.replace(layers.find("kind: search"), 12, "kind: layers\nbaselines: [c]");
  const std::size_t claims = layers.find("  - {text");
  layers.replace(
      claims, layers.find('\n', claims) - claims,
      "  - {text: d, measure: sum, method: a, other: c, weights: {\"matmul(m=8,n=8,k=8)\": 4}, at_least: 1}");
  base::replace_file(folder / "layers/experiment.yaml", layers);
  const Experiment read = read_experiment(folder / "layers");
  EXPECT_EQ(read.claims[0].weights, (std::map<std::string, double>{{"matmul(m=8,n=8,k=8,dtype=f32)", 4}}));
  layers.replace(layers.find("baselines: [c]"), 14, "baselines: [c, e]");
  base::replace_file(folder / "layers/experiment.yaml", layers);
  EXPECT_NE(read_experiment(folder / "layers").definition, read.definition);
  EXPECT_TRUE(contains(refusal([&] {
                         base::replace_file(folder / "layers/experiment.yaml", definition + "weights: {}\n");
                         read_experiment(folder / "layers");
                       }),
                       "unknown key 'weights'"));
}

TEST(Experiments, OfPeersAreGatheredFromFiles) {
  base::Folder folder;
  std::filesystem::create_directories(folder / "them");
  const std::string peers = R"(
id: P1
title: t
question: q
kind: peers
platforms: [host]
workloads: [net]
seeds: 2
methods: {ours: {trials: 2}}
baselines: [theirs]
counts: [1]
claims: [{text: c, measure: speed, method: ours, other: theirs, only: [net], at_least: 1}]
)";
  base::replace_file(folder / "them/experiment.yaml", peers);
  const Experiment experiment = read_experiment(folder / "them");
  const auto gather = [&](const std::string& searches) {
    base::replace_file(folder / "s.json", "{\"searches\": [" + searches + "]}");
    return gathered(experiment, {folder / "s.json"});
  };
  const auto search = [](const std::string& method, int seed, int trials = 2, const std::string& workload = "net") {
    return R"({"method": ")" + method + R"(", "workload": ")" + workload + R"(", "platform": "host", "seed": )" +
           std::to_string(seed) + R"(, "trials": )" + std::to_string(trials) + R"(, "best": [[1, 2.0]]})";
  };
  const std::string both = search("ours", 1) + "," + search("ours", 2);
  const ExperimentResults results = gather(both + "," + search("theirs", 2, 1));
  EXPECT_TRUE(results.complete);
  EXPECT_EQ(results.definition, experiment.definition);
  EXPECT_EQ(finding(experiment.claims[0], results).of, 1);
  EXPECT_NEAR(finding(experiment.claims[0], results).value.mean, 1, 1e-12);
  EXPECT_TRUE(
      contains(refusal([&] { gather(search("ours", 1)); }), "ours, net, host, seed 2: is in none of the files"));
  EXPECT_TRUE(contains(refusal([&] { gather(both + "," + search("ours", 2)); }), "seed 2: is there twice"));
  EXPECT_TRUE(contains(refusal([&] { gather(search("ours", 1, 3)); }), "has 3 trials, and them asks for 2"));
  EXPECT_TRUE(contains(refusal([&] { gather(search("others", 1)); }), "not of them"));
  EXPECT_TRUE(contains(refusal([&] { gather(search("ours", 1, 2, "other")); }), "not of them"));
  base::replace_file(folder / "them/experiment.yaml",
                     std::string(peers).replace(peers.find("only: [net]"), 11, "only: [nat]"));
  EXPECT_TRUE(contains(refusal([&] { read_experiment(folder / "them"); }), "did you mean 'net'"));
}

TEST(Experiments, SearchesOfAnEvaluationHaveMethodsOfItAndOthers) {
  const base::Folder folder;
  std::filesystem::create_directories(folder / "found");
  const std::string known =
      "id: E1\ntitle: a\nquestion: b\nkind: evaluate\ndata: [a.h5]\nmethods:\n  far: {method: residual, sources: [a]}\n"
      "counts: [0]\nsearch:\n  seeds: 4\n  counts: [20, 1]\n  methods: {far: , random: , near: {method: ridge}}\n"
      "claims:\n  - {text: d, measure: found-gain, method: far, other: near, at: 1, at_least: 0}\n";
  const auto read = [&](const std::string& from, const std::string& to) {
    std::string changed = known;
    changed.replace(changed.find(from), from.size(), to);
    base::replace_file(folder / "found/experiment.yaml", changed);
    return read_experiment(folder / "found");
  };
  const Experiment experiment = read("", "");
  ASSERT_TRUE(experiment.searches);
  EXPECT_EQ(experiment.searches->seeds, 4);
  EXPECT_EQ(experiment.searches->counts, (std::vector<std::int64_t>{1, 20}));
  ASSERT_EQ(experiment.searches->methods.size(), 3u);
  EXPECT_EQ(experiment.searches->methods[0].settings.at("method").as_string(), "residual");
  EXPECT_EQ(experiment.searches->methods[2].settings.at("method").as_string(), "ridge");
  EXPECT_NE(read("seeds: 4", "seeds: 5").definition, experiment.definition);
  const auto refused = [&](const std::string& from, const std::string& to) { return refusal([&] { read(from, to); }); };
  EXPECT_TRUE(contains(refused("far: ,", "far: {method: ridge},"), "'far' is a method of the experiment"));
  EXPECT_TRUE(contains(refused("other: near", "other: nearer"), "'nearer' is not a method of this experiment"));
  EXPECT_TRUE(contains(refused("counts: [20, 1]", "counts: [0]"), "expected numbers of trials"));
  EXPECT_TRUE(contains(refused("seeds: 4", "sedes: 4"), "unknown key 'sedes'"));
  const std::size_t search = known.find("search:");
  EXPECT_TRUE(contains(refused(known.substr(search, known.find("claims:") - search), ""), "without `search`"));
}

TEST(Experiments, RefuseWhatDoesNotGoTogether) {
  const base::Folder folder;
  std::filesystem::create_directories(folder / "first");
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string changed = definition;
    changed.replace(changed.find(from), from.size(), to);
    base::replace_file(folder / "first/experiment.yaml", changed);
    return refusal([&] { read_experiment(folder / "first"); });
  };
  EXPECT_TRUE(
      contains(refused("kind: search", "kind: sarch"), "'sarch' is neither search, layers, evaluate nor peers"));
  EXPECT_TRUE(contains(refused("method: a, other", "method: c, other"), "'c' is not a method of this experiment"));
  EXPECT_TRUE(contains(refused("measure: trials", "measure: trails"), "unknown measure 'trails'"));
  EXPECT_TRUE(
      contains(refused("measure: trials", "measure: gain"), "'gain' is not a measure of experiments of this kind"));
  EXPECT_TRUE(contains(refused("at_most: 200", "at_most: 200, at_least: 1"), "expected one of at_least and at_most"));
  EXPECT_TRUE(contains(refused("seeds: 2", "seeds: 2\nsearch: {}"), "only of an evaluation"));
  EXPECT_TRUE(contains(refused("seeds: 2", "seeds: 0"), "seeds: expected at least 1"));
  EXPECT_TRUE(contains(refused("title: a", "titel: a"), "unknown key 'titel'"));
  EXPECT_TRUE(contains(refused("platforms: [native]", "platforms: []"), "a search needs platforms and workloads"));
}

}  // namespace
}  // namespace graft::study
