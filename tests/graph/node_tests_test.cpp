// The tests that ONNX publishes with its operators (backend/test/data/node of its Python package), where there is a
// copy: -D GRAFT_ONNX_NODE_TESTS=FOLDER when configuring. A table by operator is printed; what fails is named with the
// reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/monitor.h"
#include "graph/fold.h"
#include "graph/onnx.h"
#include "graph/operators.h"
#include "graph/reference.h"

namespace {

namespace fs = std::filesystem;
using namespace graft::graph;
using graft::base::UserError;
using graft::codegen::Elements;

struct Outcome {
  bool passes = false;
  std::string operation, reason;
};

std::vector<Known> tensors(const fs::path& folder, const std::string& kind) {
  std::vector<Known> all;
  for (int i = 0;; ++i) {
    const fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return all;
    all.push_back(fs::file_size(path) == 0 ? nullptr
                                           : parse_onnx_tensor(graft::base::read_file(path), path.filename().string()));
  }
}

// Why the results are wrong, or "". The tolerances are those of ONNX's own runner.
std::string difference(const Graph& graph, const std::vector<Elements>& results, const std::vector<Known>& expected) {
  if (results.size() != expected.size()) return "another number of outputs";
  for (std::size_t o = 0; o < results.size(); ++o) {
    const Value& value = graph.values[std::size_t(graph.outputs[o])];
    if (*value.shape != expected[o]->shape)
      return "shape " + to_text(*value.shape) + " instead of " + to_text(expected[o]->shape);
    if (*value.type != expected[o]->type) return "another type";
    for (std::size_t e = 0; e < results[o].size(); ++e) {
      const double is = results[o][e], should = expected[o]->number(e);
      if (std::isnan(is) && std::isnan(should)) continue;
      if (is == should || std::abs(is - should) <= 1e-7 + 1e-3 * std::abs(should)) continue;
      return "element " + std::to_string(e) + " is " + std::to_string(is) + ", not " + std::to_string(should);
    }
  }
  return "";
}

// With inputs from number `constant` on as constants: many of these tests give shapes and axes as inputs.
std::string attempt(const fs::path& test, std::size_t constant, std::string& operation) {
  try {
    const std::vector<Known> given = tensors(test / "test_data_set_0", "input");
    const std::vector<Known> expected = tensors(test / "test_data_set_0", "output");
    const std::string bytes = graft::base::read_file(test / "model.onnx");
    Graph graph = parse_onnx(bytes, "model", test);
    std::map<std::string, Elements> inputs;
    std::map<std::string, Known> constants;
    if (graph.inputs.size() != given.size()) return "another number of inputs";
    for (std::size_t i = 0; i < given.size(); ++i) {
      Value& value = graph.values[std::size_t(graph.inputs[i])];
      value.shape = given[i]->shape;
      if (!given[i]) return "an input without data";
      if (i >= constant || elements_of(given[i]->shape) == 0)
        constants[value.name] = given[i];
      else
        inputs[value.name] = given[i]->elements();
    }
    graph = with_constants(std::move(graph), constants, "model");
    // The operator that it is of, or the first that is not known.
    for (const Node& node : graph.nodes)
      if (is_known(operation) || operation == "(not read)") operation = node.operation;
    const Graph ready = folded(graph, "model");
    graft::base::Monitor nobody;
    return difference(ready, reference(ready, inputs, "model", nobody), expected);
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(NodeTests, GiveWhatOnnxPublishes) {
  const fs::path folder = GRAFT_ONNX_NODE_TESTS;
  if (folder.empty()) GTEST_SKIP() << "no copy of ONNX's node tests: -D GRAFT_ONNX_NODE_TESTS=FOLDER";
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> failed;  // by operator: test, reason
  std::map<std::string, int> passed;
  std::vector<fs::path> tests;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) tests.push_back(entry.path());
  std::sort(tests.begin(), tests.end());
  for (const fs::path& test : tests) {
    if (!fs::exists(test / "model.onnx")) continue;
    std::string operation = "(not read)", reason;
    for (const std::size_t constant : {std::size_t(99), std::size_t(1), std::size_t(0)}) {
      const std::string now = attempt(test, constant, operation);
      // The last attempt that got as far as numbers says most.
      if (reason.empty() || now.empty() || now.find("cannot be computed") == std::string::npos) reason = now;
      if (now.empty()) break;
    }
    if (reason.empty())
      ++passed[operation];
    else
      failed[operation].emplace_back(test.filename().string(), reason);
  }
  int known_passed = 0, known_all = 0;
  std::set<std::string> operations;
  for (const auto& [operation, count] : passed) operations.insert(operation);
  for (const auto& [operation, tests_of] : failed) operations.insert(operation);
  for (const std::string& operation : operations) {
    const int good = passed[operation], all = good + int(failed[operation].size());
    std::printf("%-28s %3d of %3d%s\n", operation.c_str(), good, all, is_known(operation) ? "" : "  (not known)");
    if (is_known(operation) || operation == "(not read)")
      for (const auto& [test, reason] : failed[operation]) std::printf("    %s: %s\n", test.c_str(), reason.c_str());
    if (is_known(operation)) known_passed += good, known_all += all;
  }
  std::printf("operators that are known: %d of %d\n", known_passed, known_all);
  EXPECT_GE(known_passed, known_all * 0.95);
}

}  // namespace
