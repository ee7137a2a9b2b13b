#include "meta/forests/boosting.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace graft::meta {
namespace {

void check(int status) {
  if (status != 0) throw base::Failure(fmt::format("XGBoost: {}", XGBGetLastError()));
}

class Matrix {
 public:
  explicit Matrix(const base::Matrix& rows) {
    check(XGDMatrixCreateFromMat(rows.values.data(), bst_ulong(rows.rows), bst_ulong(rows.columns),
                                 std::numeric_limits<float>::quiet_NaN(), &handle));
  }
  ~Matrix() { XGDMatrixFree(handle); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  DMatrixHandle handle = nullptr;
};

class Booster {
 public:
  explicit Booster(const Matrix& matrix) { check(XGBoosterCreate(&matrix.handle, 1, &handle)); }
  ~Booster() { XGBoosterFree(handle); }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  void set(const char* name, const std::string& value) { check(XGBoosterSetParam(handle, name, value.c_str())); }
  BoosterHandle handle = nullptr;
};

// The columns in which rows differ, each of several equal ones once: of a feature list made for any program most say
// nothing about a few workloads, and training time is proportional to their number.
std::vector<std::int64_t> telling_columns(const base::Matrix& rows) {
  std::vector<std::int64_t> telling;
  std::unordered_set<std::uint64_t> seen;
  std::vector<float> column(std::size_t(rows.rows));
  for (std::int64_t c = 0; c < rows.columns; ++c) {
    for (std::int64_t r = 0; r < rows.rows; ++r) column[std::size_t(r)] = rows.at(r, c);
    const bool varies = std::any_of(column.begin(), column.end(), [&](float value) { return value != column.front(); });
    const std::string_view bytes(reinterpret_cast<const char*>(column.data()), column.size() * sizeof(float));
    if (varies && seen.insert(base::hash_bytes(bytes)).second) telling.push_back(c);
  }
  return telling;
}

// A tree in XGBoost's text form, a line a node, in any order:
//   0:[f12<0.5] yes=1,no=2,missing=2
//   1:leaf=0.25
// whose feature 12 is column 12 of `columns`.
void append_tree(DecisionForest& forest, std::string_view text, const std::vector<std::int64_t>& columns) {
  struct Node {
    std::int32_t feature = -1;
    float number = 0;
    std::size_t yes = 0, no = 0;
  };
  std::vector<Node> read;
  base::Cursor cursor(text, "XGBoost's tree");
  while (!cursor.at_end()) {
    const auto id = std::size_t(cursor.integer());
    if (id >= read.size()) read.resize(id + 1);
    cursor.expect(":");
    if (cursor.accept("leaf=")) {
      read[id] = {-1, float(cursor.number()), 0, 0};
      continue;
    }
    cursor.expect("[f");
    Node node;
    node.feature = std::int32_t(columns[std::size_t(cursor.integer())]);
    cursor.expect("<");
    node.number = float(cursor.number());
    cursor.expect("] yes=");
    node.yes = std::size_t(cursor.integer());
    cursor.expect(",no=");
    node.no = std::size_t(cursor.integer());
    cursor.expect(",missing=");
    cursor.integer();
    read[id] = node;
  }
  // Breadth first: `queue` is the nodes' order.
  std::vector<std::size_t> queue{0};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const Node& node = read[queue[i]];
    forest.nodes.push_back({node.feature, node.number, 0});
    if (node.feature < 0) continue;
    forest.nodes.back().left = std::int32_t(queue.size());
    queue.push_back(node.yes);
    queue.push_back(node.no);
  }
  forest.begins.push_back(std::int64_t(forest.nodes.size()));
}

// Multiples of 2^-17: their sums are exact in double precision, so that histograms do not depend on the order in which
// threads add to them.
float coarse(double value) {
  return float(std::nearbyint(value * 0x1p17) * 0x1p-17);
}

// The rows, of these columns alone.
base::Matrix columns_of(const base::Matrix& rows, const std::vector<std::int64_t>& columns) {
  base::Matrix out(rows.rows, std::int64_t(columns.size()));
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    for (std::size_t c = 0; c < columns.size(); ++c) out.at(r, std::int64_t(c)) = rows.at(r, columns[c]);
  }
  return out;
}

void set(Booster& booster, const BoostingSettings& settings) {
  booster.set("nthread", std::to_string(settings.threads));
  booster.set("tree_method", "hist");
  booster.set("objective", "reg:squarederror");  // not used: the derivatives are ours
  booster.set("base_score", "0");
  booster.set("max_depth", std::to_string(settings.depth));
  booster.set("max_bin", "64");
  booster.set("eta", fmt::format("{}", settings.rate));
  booster.set("lambda", fmt::format("{}", settings.lambda));
  booster.set("min_child_weight", fmt::format("{}", settings.least_weight));
  booster.set("colsample_bytree", fmt::format("{}", settings.features));
  booster.set("seed", std::to_string(settings.seed % 2147483647));
}

}  // namespace

DecisionForest boosted(const base::Matrix& rows, const Objective& objective, std::span<const float> start,
                       const BoostingSettings& settings, const std::function<void(std::int64_t)>& on_tree) {
  assert(objective.rows() == rows.rows && std::int64_t(start.size()) == rows.rows);
  assert(settings.depth <= DecisionForest::deepest);
  DecisionForest forest;
  forest.features = rows.columns;
  if (objective.empty() || settings.trees == 0) return forest;

  check(XGBSetGlobalConfig(R"({"verbosity": 0})"));
  const std::vector<std::int64_t> columns = telling_columns(rows);
  if (columns.empty()) return forest;
  const base::Matrix telling = columns_of(rows, columns);
  const Matrix matrix(telling);
  Booster booster(matrix);
  set(booster, settings);

  const std::size_t count = std::size_t(rows.rows);
  std::vector<float> scores(start.begin(), start.end()), gradient(count), diagonal(count);
  const char* const predict =
      R"({"type": 1, "training": true, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})";
  double scale = 0;  // so that the mean curvature is 1 at first for any loss
  for (std::int64_t made = 0; made < settings.trees; ++made) {
    objective.newton<float>(scores, gradient, diagonal);
    if (made == 0) {
      double sum = 0;
      for (const float value : diagonal) sum += double(value);
      if (!(sum > 0)) return forest;  // scores too far apart for any slope
      scale = double(count) / sum;
    }
    for (std::size_t i = 0; i < count; ++i) {
      gradient[i] = coarse(scale * double(gradient[i]));
      diagonal[i] = coarse(scale * double(diagonal[i]));
    }
    check(XGBoosterBoostOneIter(booster.handle, matrix.handle, gradient.data(), diagonal.data(), bst_ulong(count)));
    const bst_ulong* shape = nullptr;
    bst_ulong dimensions = 0;
    const float* added = nullptr;
    check(XGBoosterPredictFromDMatrix(booster.handle, matrix.handle, predict, &shape, &dimensions, &added));
    for (std::size_t i = 0; i < count; ++i) scores[i] = start[i] + added[i];
    if (on_tree) on_tree(made + 1);
  }

  bst_ulong trees = 0;
  const char** texts = nullptr;
  check(XGBoosterDumpModelEx(booster.handle, "", 0, "text", &trees, &texts));
  for (bst_ulong t = 0; t < trees; ++t) append_tree(forest, texts[t], columns);
  return forest;
}

base::Matrix tree_rows(const features::Encoded& programs) {
  base::Matrix rows = features::summed(programs);
  for (float& value : rows.values) {
    if (!std::isfinite(value)) value = 0;
  }
  return rows;
}

}  // namespace graft::meta
