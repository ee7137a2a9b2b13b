#include "study/flows/evaluate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/team.h"
#include "study/flows/replay.h"
#include "study/flows/train.h"
#include "study/inputs/field_error.h"
#include "study/inputs/request.h"
#include "tests/base/support.h"

namespace graft::study {
namespace {

TEST(Folds, HoldEveryPlatformOnceAndAreDecidedByTheSeed) {
  const std::vector<std::string> platforms{"a", "b", "c", "d", "e"};
  const auto folds = folds_of(platforms, 2, 7);
  ASSERT_EQ(folds.size(), 2U);
  EXPECT_EQ(folds[0].size(), 3U);
  EXPECT_EQ(folds[1].size(), 2U);
  std::set<std::string> all(folds[0].begin(), folds[0].end());
  all.insert(folds[1].begin(), folds[1].end());
  EXPECT_EQ(all.size(), 5U);
  EXPECT_EQ(folds_of(platforms, 2, 7), folds);
}

TEST(Folds, RefusesANumberThatLeavesAFoldEmptyOrNothingToLearnFrom) {
  EXPECT_THROW(folds_of({"a", "b"}, 1, 0), base::UserError);
  EXPECT_THROW(folds_of({"a", "b"}, 3, 0), base::UserError);
}

TEST(Regimes, HaveNames) {
  for (const auto regime : {meta::Regime::seen, meta::Regime::alone, meta::Regime::unseen, meta::Regime::in_domain})
    EXPECT_EQ(regime_named(name_of(regime)), regime);
  EXPECT_THROW(regime_named("odd"), base::UserError);
}

EvaluationTable::Row row(const std::string& target, const std::string& method, std::int64_t shots,
                         const std::vector<double>& draws) {
  EvaluationTable::Row out;
  out.target = target;
  out.method = method;
  out.source = "modelled";
  out.shots = shots;
  out.measurements = shots;
  out.draws = std::int64_t(draws.size());
  out.workloads = 2;
  double mean = 0;
  for (const double value : draws) mean += value / double(draws.size());
  out.means.values.fill({mean, mean - 0.1, mean + 0.1});
  out.by_draw.emplace();
  out.by_draw->values.fill(draws);
  return out;
}

const Compared kCompared = {{"a", "b"}, {"scratch", "ridge"}, {4}};

Rows rows() {
  return {row("a", "scratch", 4, {0.2, 0.4, 0.6, 0.5}), row("a", "ridge", 4, {0.3, 0.5, 0.7, 0.6}),
          row("b", "scratch", 4, {0.8, 0.1, 0.9, 0.5}), row("b", "ridge", 4, {0.9, 0.2, 1.0, 0.6})};
}

TEST(EvaluationTable, MeansOverTargetsAreTakenDrawByDrawGeometricForTopK) {
  const Rows means = means_over_targets(rows(), kCompared, 1);
  ASSERT_EQ(means.size(), 2U);
  const EvaluationTable::Row& scratch = means[0];
  EXPECT_EQ(scratch.target, "mean of 2");
  EXPECT_EQ(scratch.method, "scratch");
  EXPECT_EQ(scratch.measurements, 8);
  EXPECT_EQ(scratch.workloads, 4);
  const auto& spearman = (*scratch.by_draw)[Metric::spearman];
  const auto& top1 = (*scratch.by_draw)[Metric::top1];
  ASSERT_EQ(spearman.size(), 4U);
  EXPECT_DOUBLE_EQ(spearman[0], 0.5);
  EXPECT_DOUBLE_EQ(top1[0], std::sqrt(0.2 * 0.8));
  EXPECT_DOUBLE_EQ(scratch.means[Metric::spearman].mean, (0.5 + 0.25 + 0.75 + 0.5) / 4);
  EXPECT_LE(scratch.means[Metric::spearman].low, scratch.means[Metric::spearman].mean);
}

// Every draw differs by 0.1, independent of the draws themselves: paired, nothing is uncertain.
TEST(EvaluationTable, DifferencesArePairedByDraw) {
  const auto differences = differences_to("scratch", rows(), 1);
  ASSERT_EQ(differences.size(), 2U);
  for (const EvaluationTable::Difference& each : differences) {
    EXPECT_EQ(each.method, "ridge");
    EXPECT_EQ(each.against, "scratch");
    EXPECT_NEAR(each.means[Metric::spearman].mean, 0.1, 1e-12);
    EXPECT_NEAR(each.means[Metric::spearman].low, 0.1, 1e-12);
    EXPECT_NEAR(each.means[Metric::spearman].high, 0.1, 1e-12);
  }
}

TEST(EvaluationTable, TheFirstOfEqualMethodsWinsAndAnUnknownMeanDoesNot) {
  Rows equal = {row("a", "scratch", 4, {0.5}), row("a", "ridge", 4, {0.5})};
  const Compared one = {{"a"}, {"ridge", "scratch"}, {4}};
  EXPECT_EQ(winners_of(equal, one).at(0).by_spearman, "ridge");
  EXPECT_EQ(winners_of(equal, {{"a"}, {"scratch", "ridge"}, {4}}).at(0).by_spearman, "scratch");

  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  equal[1].means.values.fill({unknown, unknown, unknown});  // of ridge
  equal[0].means.values.fill({-1, -1, -1});
  EXPECT_EQ(winners_of(equal, one).at(0).by_spearman, "scratch");
  equal[0].means = equal[1].means;
  EXPECT_EQ(winners_of(equal, one).at(0).by_top1, "ridge");
}

TEST(EvaluationTable, IsStoredAndReadBackWithWhatItDoesNotKnow) {
  EvaluationTable table;
  table.request = Request("evaluate").set("draws", 4).document();
  table.rows = rows();
  table.rows[0].others = {{"kendall", 0.25}, {"of another graft", "kept"}};
  table.rows[1].means.values.fill({0.5, std::numeric_limits<double>::quiet_NaN(), 0.5});
  table.means = means_over_targets(table.rows, kCompared, 1);
  table.differences = differences_to("scratch", table.rows, 1);
  table.winners = winners_of(table.rows, kCompared);
  table.complete = true;
  const std::string text = to_document(table).to_json();
  const EvaluationTable back = evaluation_table_from(base::parse_json(text, "table.json"));
  EXPECT_EQ(to_document(back).to_json(), text);
  EXPECT_EQ(back.rows[0].others.size(), 2U);
  EXPECT_TRUE(std::isnan(back.rows[1].means[Metric::top1].low));
  EXPECT_TRUE(back.complete);
}

TEST(EvaluationTable, OfOldGraftsMayLackMostAndIsRefusedWithoutAMethod) {
  const std::string interval = R"({"mean":0.5,"low":null,"high":null})";
  const std::string means = R"("spearman":)" + interval + R"(,"top1":)" + interval + R"(,"top5":)" + interval;
  const EvaluationTable old = evaluation_table_from(
      base::parse_json(R"({"rows":[{"target":"a","method":"ridge","shots":4,)" + means + "}]}", "old.json"));
  EXPECT_EQ(old.rows.size(), 1U);
  EXPECT_FALSE(old.rows[0].measurements.has_value());
  EXPECT_TRUE(old.rows[0].source.empty() && !old.rows[0].by_draw && old.winners.empty() && old.request.is_null());
  try {
    evaluation_table_from(base::parse_json(R"({"rows":[{"target":"a"}]})", "bad.json"));
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "bad.json: rows[0]: missing key 'method'");
  }
}

Searches searches() {
  Searches out;
  for (const char* const target : {"a", "b"}) {
    const double of_target = target == std::string("a") ? 0.4 : 0.9;
    for (const auto& [method, more] : {std::pair{"scratch", 0.0}, std::pair{"ridge", 0.1}})
      out.push_back({target, method, "modelled", 5, 2, {}, {of_target + more, of_target / 2 + more, 0.5 + more}});
  }
  return out;
}

TEST(EvaluationTable, SearchesHaveGeometricMeansAndPairedDifferences) {
  const Searches means = search_means_over_targets(searches(), {"a", "b"}, 1);
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0].target, "mean of 2");
  EXPECT_EQ(means[0].workloads, 4);
  EXPECT_DOUBLE_EQ(means[0].by_seed[0], std::sqrt(0.4 * 0.9));
  const auto differences = search_differences_to("scratch", searches(), 1);
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[1].target, "b");
  EXPECT_NEAR(differences[1].found.mean, 0.1, 1e-12);
  EXPECT_NEAR(differences[1].found.high, 0.1, 1e-12);

  EvaluationTable table;
  table.rows = rows();
  table.searches = searches();
  table.search_means = means;
  table.search_differences = differences;
  const std::string text = to_document(table).to_json();
  EXPECT_EQ(to_document(evaluation_table_from(base::parse_json(text, "table.json"))).to_json(), text);
  const base::Document without = to_document(EvaluationTable());
  EXPECT_EQ(without.find("searches"), nullptr);
}

TEST(KnownRows, AreThoseOfAnEqualRequestWithAllTheirDraws) {
  const base::Folder folder;
  const std::filesystem::path file = folder / "known_rows.json";
  EvaluationTable table;
  table.request = Request("evaluate").set("draws", 4).document();
  table.rows = rows();
  table.rows[1].by_draw.reset();
  base::replace_file(file, to_document(table).to_json());
  EXPECT_EQ(known_results(file, table.request).rows.size(), 3U);
  EXPECT_TRUE(known_results(file, Request("evaluate").set("draws", 5).document()).rows.empty());
  EXPECT_TRUE(known_results("", table.request).rows.empty());
  base::replace_file(file, "not of graft");
  EXPECT_TRUE(known_results(file, table.request).rows.empty());
  std::filesystem::remove(file);
  EXPECT_TRUE(known_results(file, table.request).rows.empty());
}

// Tables of 30 rows on four platforms, of which one contradicts the others.
EvaluateRequest small_request(const base::Folder& folder) {
  const auto sketch = std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("t", {{"n", {}}}));
  EvaluateRequest request;
  for (const char* const platform : {"import:a", "import:b", "import:c", "import:d"}) {
    datasets::Dataset data;
    data.platform = platform;
    data.source = "imported";
    for (int i = 0; i < 30; ++i) {
      datasets::Measurement measurement;
      measurement.seconds = {platform == std::string("import:d") ? 40.0 - i : 1.0 + i};
      data.add({0, {codegen::Workload("table(name=t)"), sketch, {i}}, 0, measurement});
    }
    const std::filesystem::path file = folder / (std::string(platform).substr(7) + ".h5");
    datasets::write_dataset(data, file);
    request.data.files.push_back(file.string());
  }
  request.methods = {"scratch", "ridge"};
  request.model.hidden = {4};
  request.model.steps = 20;
  request.shots = {4};
  request.draws = 3;
  request.out = folder / "table.json";
  return request;
}

// A table of algorithms, tiles and unrollings as an import would make it: with only these algorithms, with an
// identifier in front, or in another order of its columns.
datasets::Dataset table_of(const std::string& platform, const std::vector<std::string>& algorithms, bool has_id,
                           bool is_turned, double factor) {
  using Column = codegen::Sketch::Column;
  std::vector<Column> columns = {{"algo", algorithms}, {"tile", {"1", "2", "4", "8"}}, {"unroll", {}}};
  if (is_turned) std::swap(columns[0], columns[2]);
  if (has_id) columns.insert(columns.begin(), {"id", {}});
  const auto sketch = std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns(platform.substr(7), columns));
  datasets::Dataset data;
  data.platform = platform;
  data.source = "imported";
  int id = 0;
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    for (int t = 0; t < 4; ++t) {
      for (int u = 0; u < 6; ++u) {
        std::vector<std::int64_t> arguments = {std::int64_t(a), t, 10 + 3 * u};
        if (is_turned) std::swap(arguments[0], arguments[2]);
        if (has_id) arguments.insert(arguments.begin(), 7 * id % 101);
        ++id;
        datasets::Measurement measurement;
        // "fft" is fastest although it is in the middle of the alphabet.
        const double base = algorithms[a] == "fft"      ? 1
                            : algorithms[a] == "direct" ? 4
                            : algorithms[a] == "gemm"   ? 2
                                                        : 8;
        measurement.seconds = {factor * (base + 0.2 * t + 0.01 * u)};
        data.add({0, {codegen::Workload("table(name=t)"), sketch, std::move(arguments)}, 0, measurement});
      }
    }
  }
  return data;
}

// Zero-shot quality on the second table by methods that see parameters alone.
double zero_shot(const datasets::Dataset& first, const datasets::Dataset& second, const std::string& method,
                 const std::string& known_rows = "no") {
  const base::Folder folder;
  base::Monitor monitor;
  EvaluateRequest request;
  for (const datasets::Dataset* const data : {&first, &second}) {
    request.data.files.push_back((folder / (data->platform.substr(7) + ".h5")).string());
    datasets::write_dataset(*data, request.data.files.back());
  }
  request.methods = {method};
  request.model.steps = 200;
  request.model.known_rows = known_rows;
  request.shots = {0};
  request.draws = 1;
  request.targets = {second.platform};
  return evaluate(request, monitor).rows.front().means[Metric::spearman].mean;
}

TEST(Evaluate, TablesAreJoinedByNamesAndValues) {
  const std::vector<std::string> all = {"direct", "fft", "gemm", "winograd"}, some = {"fft", "gemm", "winograd"};
  const datasets::Dataset a = table_of("import:a", all, false, false, 1);
  for (const std::string method : {"zero-shot", "ridge"}) {
    EXPECT_GT(zero_shot(a, table_of("import:b", some, false, false, 2), method), 0.97) << method;  // lacks a value
    EXPECT_GT(zero_shot(a, table_of("import:b", all, false, true, 2), method), 0.97) << method;    // other order
    EXPECT_GT(zero_shot(a, table_of("import:b", all, true, false, 2), method), 0.97) << method;    // one more column
    EXPECT_GT(zero_shot(a, table_of("import:b", some, true, true, 2), method, "yes"), 0.99) << method;
  }
}

TEST(Evaluate, TablesOfAnyNumberOfColumnsAndValues) {
  std::vector<codegen::Sketch::Column> columns;
  for (int c = 0; c < 40; ++c) columns.push_back({fmt::format("c{}", c), {}});
  const auto wide = std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("t", columns));
  std::vector<std::string> names;
  for (int k = 0; k < 24; ++k) names.push_back(fmt::format("k{:02}", k));
  const auto named = std::make_shared<const codegen::Sketch>(
      codegen::Sketch::of_columns("t", {{"kernel", names}, {"tile", {"1", "2", "4", "8"}}}));
  std::vector<datasets::Dataset> of_columns(2), of_names(2);
  for (int p = 0; p < 2; ++p) {
    base::Stream stream(3, "rows");  // the same rows on both
    for (datasets::Dataset* const data : {&of_columns[std::size_t(p)], &of_names[std::size_t(p)]}) {
      data->platform = p == 0 ? "import:a" : "import:b";
      data->source = "imported";
    }
    for (int r = 0; r < 200; ++r) {
      std::vector<std::int64_t> arguments;
      for (int c = 0; c < 40; ++c) arguments.push_back(stream.below(32));
      datasets::Measurement measurement;
      measurement.seconds = {(1 + p) * std::exp(0.1 * double(arguments[35]))};
      of_columns[std::size_t(p)].add(
          {0, {codegen::Workload("table(name=t)"), wide, std::move(arguments)}, 0, measurement});
    }
    for (int k = 0; k < 24; ++k) {
      for (int t = 0; t < 4; ++t) {
        datasets::Measurement measurement;
        measurement.seconds = {(1 + p) * (1 + double(k * 7 % 24) + 0.1 * t)};
        of_names[std::size_t(p)].add({0, {codegen::Workload("table(name=t)"), named, {k, t}}, 0, measurement});
      }
    }
  }
  EXPECT_GT(zero_shot(of_columns[0], of_columns[1], "ridge"), 0.9);
  EXPECT_GT(zero_shot(of_names[0], of_names[1], "ridge"), 0.97);
}

TEST(Evaluate, JudgesEachTargetInTurnAndStoresTheTable) {
  const base::Folder folder;
  base::Monitor monitor;
  const EvaluateRequest request = small_request(folder);
  std::vector<std::string> told;
  const EvaluationTable table =
      evaluate(request, monitor, [&](const EvaluationTable& so_far, const std::string& target) {
        told.push_back(target);
        EXPECT_NE(so_far.find(target, "ridge", 4), nullptr);
        EXPECT_FALSE(so_far.complete);
      });
  EXPECT_EQ(told, (std::vector<std::string>{"import:a", "import:b", "import:c", "import:d"}));
  EXPECT_EQ(table.rows.size(), 8U);
  EXPECT_EQ(table.means.size(), 2U);
  EXPECT_EQ(table.differences.size(), 5U);
  EXPECT_EQ(table.winners.size(), 4U);
  EXPECT_TRUE(table.complete);
  EXPECT_GT(table.find("import:a", "ridge", 4)->means[Metric::spearman].mean, 0.9);
  const base::Document stored = base::parse_json(base::read_file(request.out), "table.json");
  EXPECT_EQ(to_document(evaluation_table_from(stored)).at("rows").to_json(), to_document(table).at("rows").to_json());
}

TEST(Evaluate, TakesOverTheRowsOfKnownTargetsAsTheyAre) {
  const base::Folder folder;
  base::Monitor monitor;
  const EvaluateRequest request = small_request(folder);
  EvaluationTable earlier = evaluate(request, monitor);
  earlier.rows.resize(3);  // the first target, and half of the second one
  for (auto& known : earlier.rows) known.others.emplace_back("of another graft", known.method);
  base::replace_file(request.out, to_document(earlier).to_json());
  const EvaluationTable table = evaluate(request, monitor);
  ASSERT_EQ(table.rows.size(), 8U);
  for (const auto& each : table.rows) {
    const bool carried = !each.others.empty() && each.others.back().first == "of another graft";
    EXPECT_EQ(carried, each.target == "import:a") << each.target << " " << each.method;
  }
  EXPECT_TRUE(table.complete);
}

TEST(Evaluate, WithFoldsJudgesTheirPlatformsInTheirOrder) {
  const base::Folder folder;
  base::Monitor monitor;
  EvaluateRequest request = small_request(folder);
  request.folds = 2;
  const EvaluationTable table = evaluate(request, monitor);
  std::vector<std::string> judged;
  for (const auto& fold : folds_of({"import:a", "import:b", "import:c", "import:d"}, 2, request.seed))
    judged.insert(judged.end(), fold.begin(), fold.end());
  ASSERT_EQ(table.rows.size(), 8U);
  for (std::size_t t = 0; t < judged.size(); ++t) EXPECT_EQ(table.rows[2 * t].target, judged[t]);
}

TEST(Evaluate, RefusesWhatDoesNotGoTogetherBeforeItReads) {
  base::Monitor monitor;
  EvaluateRequest request;
  request.data.files = {"there/is/none.h5"};
  request.methods = {"scratch", "ridge"};
  request.shots = {4};
  const auto refused = [&] { return base::refusal<FieldError>([&] { evaluate(request, monitor); }); };
  request.against = "maml";
  EXPECT_EQ(refused(), "against: maml is none of `methods`");
  request.against.clear();
  request.folds = 2;
  request.sources = {"a"};
  EXPECT_EQ(refused(), "folds: decides targets and sources; cannot be combined with `target` or `sources`");
  request.folds = 0;
  request.regime = meta::Regime::in_domain;
  EXPECT_EQ(refused(), "judge_last, sources, folds, misleading, support: cannot be combined with `regime` in-domain");
}

TEST(ReplayedSearches, WithoutAnythingOkCountAsAHundredth) {
  ReplayedWorkload fast, failed;
  fast.best_recorded = failed.best_recorded = 1;
  fast.curve = {{1, 2.0}, {3, 1.0}};
  failed.curve = {{4, 1.0}};
  const std::vector<ReplayedWorkload> both = {fast, failed};
  EXPECT_DOUBLE_EQ(mean_share_after(both, 2), std::sqrt(0.5 * 0.01));
  EXPECT_DOUBLE_EQ(mean_share_after(both, 4), 1);
}

EvaluateRequest search_request(const base::Folder& folder) {
  EvaluateRequest request = small_request(folder);
  request.methods = {"ridge"};
  request.targets = {"import:a"};
  request.search = true;
  request.search_counts = {1, 5, 10};
  return request;
}

double found(const EvaluationTable& table, const std::string& method, std::int64_t trials) {
  return search_of(table.searches, "import:a", method, trials)->found.mean;
}

TEST(EvaluatedSearches, APerfectModelFindsTheFastestAtOnce) {
  const base::Folder folder;
  base::Monitor monitor;
  EvaluateRequest request = search_request(folder);
  request.sources = {"import:b", "import:c"};
  request.model.known_rows = "yes";  // their times of the same rows, which are the target's, too
  const EvaluationTable table = evaluate(request, monitor);
  EXPECT_EQ(table.searches.size(), 4U * 3U);  // random, scratch and trees search, too
  EXPECT_DOUBLE_EQ(found(table, "ridge", 1), 1);
  EXPECT_LT(found(table, "random", 1), 0.9);
  EXPECT_LT(found(table, "scratch", 1), 0.9);
  for (const char* const method : {"ridge", "random", "scratch", "gbt-scratch"})
    EXPECT_LE(found(table, method, 1), found(table, method, 10)) << method;
  EXPECT_EQ(search_of(table.searches, "import:a", "random", 1)->by_seed.size(), 3U);  // as many as draws
  EXPECT_EQ(table.search_differences.size(), 3U * 3U);
  EXPECT_EQ(table.search_differences.front().against, "scratch");

  const base::Document stored = base::parse_json(base::read_file(request.out), "table.json");
  std::filesystem::remove(request.out);
  request.threads = 3;
  EXPECT_EQ(to_document(evaluate(request, monitor)).at("searches").to_json(), stored.at("searches").to_json());
}

TEST(EvaluatedSearches, AreThoseOfReplayWithTheSameModelAndSeed) {
  const base::Folder folder;
  base::Monitor monitor;
  base::Team alone;
  EvaluateRequest request = search_request(folder);
  request.sources = {"import:b", "import:d"};  // of which one is wrong
  request.search_methods = {"ridge", "zero-shot"};
  request.search_seeds = 2;
  const EvaluationTable table = evaluate(request, monitor);
  TrainRequest training;
  training.data.files = {request.data.files[1], request.data.files[3]};
  training.learner = "ridge";
  training.model = request.model;
  training.out = folder / "ridge.model.h5";
  ASSERT_TRUE(train(training, alone, monitor));
  ReplayRequest replayed;
  replayed.data = request.data.files[0];
  replayed.model = training.out.string();
  replayed.batch = request.search_batch;
  replayed.trials = request.search_counts.back();
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    replayed.seed = request.seed + seed;
    const ReplayResult result = replay(replayed, monitor);
    for (const std::int64_t count : request.search_counts)
      EXPECT_DOUBLE_EQ(search_of(table.searches, "import:a", "ridge", count)->by_seed[seed], result.share_after(count));
  }
  EXPECT_EQ(table.search_differences.front().against, "ridge");  // scratch is not among them
}

TEST(EvaluatedSearches, WithJudgeLastLookAtJudgedProgramsOnly) {
  const base::Folder folder;
  base::Monitor monitor;
  EvaluateRequest request = search_request(folder);
  request.judge_last = 10;
  request.search_counts = {10};
  EXPECT_DOUBLE_EQ(found(evaluate(request, monitor), "random", 10), 1);  // all of them
  request.judge_last = 0;
  EXPECT_LT(found(evaluate(request, monitor), "random", 10), 1);
}

TEST(EvaluatedSearches, OfATargetAreMadeAgainWhereSomeAreMissing) {
  const base::Folder folder;
  base::Monitor monitor;
  EvaluateRequest request = search_request(folder);
  request.targets = {"import:a", "import:b"};
  EvaluationTable earlier = evaluate(request, monitor);
  const std::string whole = to_document(earlier).at("searches").to_json();
  EXPECT_EQ(earlier.search_means.size(), 4U * 3U);
  earlier.searches.pop_back();
  for (auto& known : earlier.rows) known.others.emplace_back("of another graft", known.method);
  base::replace_file(request.out, to_document(earlier).to_json());
  const EvaluationTable table = evaluate(request, monitor);
  EXPECT_EQ(to_document(table).at("searches").to_json(), whole);
  EXPECT_EQ(table.rows[0].others.back().first, "of another graft");
  EXPECT_NE(table.rows[1].others.back().first, "of another graft");
}

TEST(EvaluatedSearches, RefuseWhatCannotBe) {
  base::Monitor monitor;
  EvaluateRequest request;
  request.data.files = {"there/is/none.h5"};
  request.search = true;
  const auto refused = [&] { return base::refusal<FieldError>([&] { evaluate(request, monitor); }); };
  request.search_counts = {5, 5};
  EXPECT_EQ(refused(), "search_counts: expected numbers of trials that rise");
  request.search_counts = {0};
  EXPECT_EQ(refused(), "search_counts: must be at least 1, got 0");
  request.search_counts = {5};
  request.regime = meta::Regime::in_domain;
  EXPECT_EQ(refused(), "search: cannot be combined with `regime` in-domain");
}

}  // namespace
}  // namespace graft::study
