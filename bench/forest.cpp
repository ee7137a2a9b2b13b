#include "bench/forest.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <cmath>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/random.h"
#include "codegen/schedule/space.h"
#include "features/encoding.h"
#include "meta/forests/boosting.h"
#include "meta/forests/forest.h"
#include "search/programs.h"
#include "tasks/platform.h"

namespace graft::bench {
namespace {

using Note = std::function<void(std::string)>;

void check(int status) {
  if (status != 0) throw base::Failure(fmt::format("XGBoost: {}", XGBGetLastError()));
}

struct Data {
  base::Matrix rows;
  std::vector<double> log_seconds;
  std::vector<std::int64_t> groups;
};

// Times that the rows explain.
void add_times(Data& out, base::Stream& stream) {
  std::vector<double> weights;
  for (std::int64_t c = 0; c < out.rows.columns; ++c) weights.push_back(stream.normal());
  for (std::int64_t r = 0; r < out.rows.rows; ++r) {
    double sum = 0.1 * stream.normal();
    for (std::int64_t c = 0; c < out.rows.columns; ++c)
      sum += weights[std::size_t(c)] * std::sin(double(out.rows.at(r, c))) / std::sqrt(double(out.rows.columns));
    out.log_seconds.push_back(sum);
  }
}

// Context relations of random candidates.
Data random_data(const NetworkSettings& settings, std::int64_t programs) {
  std::vector<std::string> workloads = settings.workloads;
  if (workloads.empty()) workloads = {"matmul(m=512,n=512,k=512)", "resnet18.C6"};
  const tasks::Platform platform = tasks::platform_named(settings.platform);
  const features::Encoding& encoding = features::encoding_named("context_relation");
  base::Stream stream(settings.seed, "bench forest");
  Data out;
  features::Encoded all;
  search::Programs judge(platform.target);
  for (std::size_t w = 0; w < workloads.size(); ++w) {
    const codegen::Space space = codegen::derive_space(codegen::parse_workload(workloads[w]), platform.target);
    const std::int64_t until = programs * std::int64_t(w + 1) / std::int64_t(workloads.size());
    out.groups.push_back(until - all.programs());
    while (all.programs() < until) {
      const codegen::Candidate candidate = space.sample(stream, judge);
      const base::Result<codegen::LoopProgram> program = codegen::program(candidate, platform.target);
      if (program) features::append(all, encoding.encode({&*program, &candidate, &platform.target}));
    }
  }
  out.rows = meta::tree_rows(all);
  add_times(out, stream);
  return out;
}

Data unrelated_data(std::int64_t programs, std::int64_t features, std::uint64_t seed) {
  base::Stream stream(seed, "bench forest rows");
  Data out{base::Matrix(programs, features), {}, {programs}};
  for (float& value : out.rows.values) value = float(stream.normal());
  add_times(out, stream);
  return out;
}

// XGBoost's model file of a forest: the JSON that it saves, with only what it requires.
std::string model_of(const meta::DecisionForest& forest) {
  std::string trees, groups;
  for (std::int64_t t = 0; t < forest.trees(); ++t) {
    const std::int64_t begin = forest.begins[std::size_t(t)], size = forest.begins[std::size_t(t + 1)] - begin;
    std::vector<std::int64_t> parent(std::size_t(size), 2147483647);
    std::string left, right, up, feature, number, zeros, none;  // none: 0 among real numbers
    for (std::int64_t i = 0; i < size; ++i) {
      const meta::DecisionForest::Node& node = forest.nodes[std::size_t(begin + i)];
      const bool leaf = node.feature < 0;
      if (!leaf) parent[std::size_t(node.left)] = parent[std::size_t(node.left + 1)] = i;
      const char* const comma = i == 0 ? "" : ",";
      left += fmt::format("{}{}", comma, leaf ? -1 : node.left);
      right += fmt::format("{}{}", comma, leaf ? -1 : node.left + 1);
      up += fmt::format("{}{}", comma, parent[std::size_t(i)]);
      feature += fmt::format("{}{}", comma, leaf ? 0 : node.feature);
      number += fmt::format("{}{:.9e}", comma, node.number);
      zeros += fmt::format("{}0", comma);
      none += fmt::format("{}0.0", comma);
    }
    trees += fmt::format(
        R"({}{{"base_weights":[{}],"categories":[],"categories_nodes":[],"categories_segments":[],)"
        R"("categories_sizes":[],"default_left":[{}],"id":{},"left_children":[{}],"loss_changes":[{}],"parents":[{}],)"
        R"("right_children":[{}],"split_conditions":[{}],"split_indices":[{}],"split_type":[{}],"sum_hessian":[{}],)"
        R"("tree_param":{{"num_deleted":"0","num_feature":"{}","num_nodes":"{}","size_leaf_vector":"0"}}}})",
        t == 0 ? "" : ",", none, zeros, t, left, none, up, right, number, feature, zeros, none, forest.features, size);
    groups += t == 0 ? "0" : ",0";
  }
  return fmt::format(
      R"({{"learner":{{"attributes":{{}},"feature_names":[],"feature_types":[],"gradient_booster":{{"model":{{)"
      R"("gbtree_model_param":{{"num_parallel_tree":"1","num_trees":"{}","size_leaf_vector":"0"}},"tree_info":[{}],)"
      R"("trees":[{}]}},"name":"gbtree"}},"learner_model_param":{{"base_score":"0","num_class":"0",)"
      R"("num_feature":"{}","num_target":"1"}},"objective":{{"name":"reg:squarederror",)"
      R"("reg_loss_param":{{"scale_pos_weight":"1"}}}}}},"version":[1,6,0]}})",
      forest.trees(), groups, trees, forest.features);
}

class Peer {
 public:
  explicit Peer(const meta::DecisionForest& forest) {
    check(XGBoosterCreate(nullptr, 0, &handle_));
    const std::string model = model_of(forest);
    check(XGBoosterLoadModelFromBuffer(handle_, model.data(), bst_ulong(model.size())));
    check(XGBoosterSetParam(handle_, "nthread", "1"));
  }
  ~Peer() { XGBoosterFree(handle_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  void score(const base::Matrix& rows, std::vector<float>& scores) const {
    const std::string array =
        fmt::format(R"({{"data":[{},true],"shape":[{},{}],"typestr":"<f4","version":3}})",
                    reinterpret_cast<std::uintptr_t>(rows.values.data()), rows.rows, rows.columns);
    const char* const how = R"({"type":1,"training":false,"iteration_begin":0,"iteration_end":0,"missing":NaN,)"
                            R"("strict_shape":false,"cache_id":0})";
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* out = nullptr;
    check(XGBoosterPredictFromDense(handle_, array.c_str(), how, nullptr, &shape, &dimensions, &out));
    scores.assign(out, out + rows.rows);
  }

 private:
  BoosterHandle handle_ = nullptr;
};

void train_by_xgboost(const Data& data, const meta::BoostingSettings& settings) {
  DMatrixHandle matrix = nullptr;
  BoosterHandle booster = nullptr;
  check(XGDMatrixCreateFromMat(data.rows.values.data(), bst_ulong(data.rows.rows), bst_ulong(data.rows.columns),
                               std::numeric_limits<float>::quiet_NaN(), &matrix));
  const std::vector<float> labels(data.log_seconds.begin(), data.log_seconds.end());
  check(XGDMatrixSetFloatInfo(matrix, "label", labels.data(), bst_ulong(labels.size())));
  check(XGBoosterCreate(&matrix, 1, &booster));
  const auto set = [&](const char* name, const std::string& value) {
    check(XGBoosterSetParam(booster, name, value.c_str()));
  };
  set("nthread", "1");
  set("verbosity", "0");
  set("tree_method", "hist");
  set("max_depth", std::to_string(settings.depth));
  set("eta", fmt::format("{}", settings.rate));
  for (int tree = 0; tree < settings.trees; ++tree) check(XGBoosterUpdateOneIter(booster, tree, matrix));
  XGBoosterFree(booster);
  XGDMatrixFree(matrix);
}

meta::BoostingSettings trees(std::int64_t count, int depth) {
  meta::BoostingSettings out;
  out.trees = count;
  out.depth = depth;
  return out;
}

meta::DecisionForest grown(const Data& data, const meta::BoostingSettings& settings, meta::Loss loss) {
  const meta::Objective objective(loss, data.log_seconds, data.groups);
  return boosted(data.rows, objective, std::vector<float>(data.log_seconds.size(), 0.0f), settings);
}

NetworkRow predict_row(const meta::DecisionForest& forest, const base::Matrix& rows, int depth,
                       const NetworkSettings& settings, const Note& note) {
  NetworkRow row{.what = fmt::format("gbt {} trees of depth {}, {} features, batch {}", forest.trees(), depth,
                                     forest.features, rows.rows),
                 .programs = rows.rows,
                 .contenders = {}};
  note(row.what);
  const meta::ForestScorer scorer(forest);
  const Peer peer(forest);
  const auto count = static_cast<std::size_t>(rows.rows);
  std::vector<float> ours(count), theirs(count), expected;
  peer.score(rows, expected);
  const auto near = [&](const std::vector<float>& scores) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!(std::abs(scores[i] - expected[i]) <= 1e-4f * std::max(1.0f, std::abs(expected[i])))) return false;
    }
    return true;
  };
  row.contenders.push_back(
      {.name = "graft", .call = [&] { scorer.score(rows, ours); }, .check = [&] { return near(ours); }});
  row.contenders.push_back(
      {.name = "xgboost", .call = [&] { peer.score(rows, theirs); }, .check = [&] { return near(theirs); }});
  measure_in_turn(row.contenders, settings.timing);
  for (Contender& contender : row.contenders) contender.call = contender.clear = {}, contender.check = {};
  return row;
}

}  // namespace

std::vector<NetworkRow> forest_predict_rows(const NetworkSettings& settings, const Note& note) {
  std::vector<NetworkRow> rows;
  const std::int64_t known = std::max<std::int64_t>(settings.batch, 1024);
  const auto add = [&](const Data& data, std::int64_t count, int depth) {
    const meta::DecisionForest forest = grown(data, trees(count, depth), meta::Loss::squared);
    for (const std::int64_t programs : {std::int64_t(1), settings.batch}) {
      base::Matrix batch(programs, data.rows.columns);
      std::copy_n(data.rows.values.begin(), batch.values.size(), batch.values.begin());
      rows.push_back(predict_row(forest, batch, depth, settings, note));
    }
  };
  add(unrelated_data(known, 164, settings.seed), 100, 6);
  add(random_data(settings, known), 400, 4);
  return rows;
}

std::vector<NetworkRow> forest_train_rows(const NetworkSettings& settings, const Note& note) {
  std::vector<NetworkRow> rows;
  const Data data = random_data(settings, settings.batch);
  const meta::BoostingSettings how = trees(20, 4);
  for (const meta::Loss loss : {meta::Loss::squared, meta::Loss::rank, meta::Loss::lambda}) {
    NetworkRow row{.what = fmt::format("gbt {} trees of depth {} by loss {}, {} features, {} programs", how.trees,
                                       how.depth, name_of(loss), data.rows.columns, data.rows.rows),
                   .programs = data.rows.rows * how.trees,
                   .contenders = {}};
    note(row.what);
    row.contenders.push_back({.name = "graft", .call = [&] { grown(data, how, loss); }, .check = [] { return true; }});
    row.contenders.push_back(
        {.name = "xgboost", .call = [&] { train_by_xgboost(data, how); }, .check = [] { return true; }});
    measure_in_turn(row.contenders, settings.timing);
    for (Contender& contender : row.contenders) contender.call = contender.clear = {}, contender.check = {};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace graft::bench
