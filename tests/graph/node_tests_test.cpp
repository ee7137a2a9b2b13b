// The tests that ONNX publishes with its operators. They are written by its Python package (python3-onnx) when the
// build is configured; -D GRAFT_ONNX_NODE_TESTS=FOLDER takes others (backend/test/data/node of the package of a newer
// release). A table by operator is printed. What fails is listed here with its reason: a test that fails besides is a
// fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/monitor.h"
#include "base/text.h"
#include "graph/fold.h"
#include "graph/onnx.h"
#include "graph/operators.h"
#include "graph/wire.h"
#include "tests/graph/support/reference.h"

namespace {

namespace fs = std::filesystem;
using namespace graft::graph;
using graft::base::UserError;
using graft::codegen::Elements;

std::vector<Known> tensors(const fs::path& folder, const std::string& kind) {
  std::vector<Known> all;
  for (int i = 0;; ++i) {
    const fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return all;
    all.push_back(fs::file_size(path) == 0 ? nullptr
                                           : parse_onnx_tensor(graft::base::read_file(path), path.filename().string()));
  }
}

// Tensors of bfloat16 have whole numbers in some releases: the bits. Others as they are.
Known as_declared(const Known& tensor, std::optional<DType> declared) {
  if (!declared || !graft::codegen::is_floating(*declared) || tensor->type != DType::i32) return tensor;
  std::vector<double> numbers;
  for (const std::int64_t bits : tensor->integers())
    numbers.push_back(double(std::bit_cast<float>(std::uint32_t(bits) << 16)));
  return known(*declared, tensor->shape, Elements(numbers));
}

// The first `count` along the only axis in which the shape has more than is wanted, as an output says that they count.
std::optional<Elements> counted(const Elements& elements, const Shape& shape, const Shape& wanted, double count) {
  if (shape.size() != wanted.size()) return std::nullopt;
  std::size_t axis = 0;
  while (axis < shape.size() && shape[axis] == wanted[axis]) ++axis;
  if (axis == shape.size() || wanted[axis] != std::int64_t(count) || wanted[axis] > shape[axis]) return std::nullopt;
  if (!std::equal(shape.begin() + std::ptrdiff_t(axis) + 1, shape.end(), wanted.begin() + std::ptrdiff_t(axis) + 1))
    return std::nullopt;
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= std::size_t(shape[d]);
  std::vector<double> some;
  for (std::size_t e = 0; e < elements.size(); ++e)
    if (std::int64_t(e / inner) % shape[axis] < wanted[axis]) some.push_back(elements[e]);
  return Elements(some);
}

// Why the results are wrong, or "". The tolerances are those of ONNX's own runner. Behind the model's outputs there may
// be how many rows of these count.
std::string difference(const Graph& graph, std::vector<Elements> results, const std::vector<Known>& expected) {
  if (results.size() < expected.size()) return "another number of outputs";
  for (std::size_t o = expected.size(); o < results.size(); ++o)
    if (!graph.values[std::size_t(graph.outputs[o])].name.ends_with(".count")) return "another number of outputs";
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const Value& value = graph.values[std::size_t(graph.outputs[o])];
    if (*value.shape != expected[o]->shape) {
      const auto some = results.size() == expected.size()
                            ? std::nullopt
                            : counted(results[o], *value.shape, expected[o]->shape, std::as_const(results).back()[0]);
      if (!some) return "shape " + to_text(*value.shape) + " instead of " + to_text(expected[o]->shape);
      results[o] = *some;
    }
    const Known all = as_declared(expected[o], value.type);
    if (*value.type != all->type) return "another type";
    for (std::size_t e = 0; e < results[o].size(); ++e) {
      const double is = std::as_const(results)[o][e], should = all->number(e);
      if (std::isnan(is) && std::isnan(should)) continue;
      if (is == should || std::abs(is - should) <= 1e-7 + 1e-3 * std::abs(should)) continue;
      return "element " + std::to_string(e) + " is " + std::to_string(is) + ", not " + std::to_string(should);
    }
  }
  return "";
}

// Tests that fail, and why they may. '*' is any text.
struct Exception {
  std::string_view tests, reason;
};
constexpr std::string_view chosen = "graph/README.md: another answer than ONNX's reference has";
constexpr Exception exceptions[] = {
    {"test_batchnorm_*_training_mode", "training"},
    {"test_training_dropout*", "training"},
    {"test_cast*STRING*", "texts"},
    {"test_equal_string*", "texts"},
    {"test_cast*FLOAT_to_BFLOAT16*", "numbers of 16 bits keep what they have in 32 here"},
    {"test_cast*FLOAT8*", "8 bits of floating point"},
    {"test_*quantizelinear_e?m*", "8 bits of floating point"},
    {"test_cast_*INT4*", "4 bits"},
    {"test_cast_*INT2*", "2 bits"},
    {"test_quantizelinear_blocked_symmetric", "integers of 16 bits, which are wider here"},
    {"test_quantizelinear_*int16", "integers of 16 bits, which are wider here"},
    {"test_dynamicquantizelinear", "a quotient that single precision rounds to below a half"},
    {"test_dynamicquantizelinear_expanded", "a quotient that single precision rounds to a half, and then up"},
    {"test_bernoulli*", "random numbers"},
    {"test_*_opt", "optional values"},
    {"test_*_seq*", "sequences"},
    {"test_scan_sum", "a Scan of version 8, whose first dimension is a batch"},
    {"test_resize_downsample_scales_*_align_corners", chosen},
    {"test_maxunpool_export_with_output_shape", chosen},
    {"test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True", chosen},
};

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*')
    return matches(pattern.substr(1), text) || (!text.empty() && matches(pattern, text.substr(1)));
  return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
         matches(pattern.substr(1), text.substr(1));
}

const Exception* exception_of(std::string_view test) {
  for (const Exception& one : exceptions)
    if (matches(one.tests, test)) return &one;
  return nullptr;
}

// The operators that networks are made of: all of them are known, and tested by ONNX.
constexpr std::string_view expected_operators =
    "Abs Add And ArgMax AveragePool BatchNormalization Cast Clip Concat Constant ConstantOfShape Conv ConvTranspose "
    "Cos "
    "ConvInteger DepthToSpace DequantizeLinear Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand "
    "Flatten GRU Gather Gemm GlobalAveragePool GlobalMaxPool "
    "Greater GreaterOrEqual HardSigmoid HardSwish Identity If InstanceNormalization LSTM LayerNormalization LeakyRelu "
    "Less "
    "LessOrEqual Log LogSoftmax Loop MatMul MatMulInteger Max MaxPool Min Mod Mul Neg Not Or PRelu Pad Pow QLinearConv "
    "QLinearMatMul QuantizeLinear Range Reciprocal ReduceL1 "
    "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu "
    "Reshape "
    "Resize Scan Shape Sigmoid Sin Size Slice Softmax Softplus Split Sqrt Squeeze Sub Tanh Tile Transpose Unsqueeze "
    "Where "
    "Xor";

// Folding takes these apart itself.
bool is_computed(const std::string& operation) {
  return is_known(operation) || operation == "If" || operation == "Loop" || operation == "Scan";
}

// What can be said of a model that is not read.
struct Sketch {
  std::string operation;  // the last, or the first that is not known
  std::vector<std::string> inputs;
};

Sketch sketch_of(const std::string& model) {
  Sketch sketch;
  Field field, part, word;
  for (Fields fields(model); fields.next(field);) {
    if (field.number != 7) continue;
    for (Fields parts(field.as_bytes()); parts.next(part);) {
      if (part.number != 1 && part.number != 11) continue;
      std::map<int, std::string> words;
      for (Fields all(part.as_bytes()); all.next(word);)
        if (word.type == 2) words[word.number] = word.as_bytes();
      if (part.number == 11)
        sketch.inputs.push_back(words[1]);
      else if (sketch.operation.empty() || is_computed(sketch.operation))
        sketch.operation = words[7].empty() ? words[4] : words[7] + "." + words[4];
    }
  }
  return sketch;
}

// With inputs from number `constant` on as constants: many of these tests give shapes and axes as inputs.
std::string attempt(const fs::path& test, const std::string& model, const std::vector<std::string>& names,
                    std::size_t constant) {
  try {
    std::vector<Known> given = tensors(test / "test_data_set_0", "input");
    const std::vector<Known> expected = tensors(test / "test_data_set_0", "output");
    Shapes shapes;
    for (std::size_t i = 0; i < std::min(names.size(), given.size()); ++i)
      if (given[i] && given[i]->size() == 0) shapes[names[i]] = given[i]->shape;
    Graph graph = parse_onnx(model, "model", test, shapes);
    std::map<std::string, Elements> inputs;
    std::map<std::string, Known> constants;
    if (graph.inputs.size() != given.size()) return "another number of inputs";
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i]) return "an input without data";
      Value& value = graph.values[std::size_t(graph.inputs[i])];
      value.shape = given[i]->shape;
      given[i] = as_declared(given[i], value.type);
      if (i >= constant)
        constants[value.name] = given[i];
      else
        inputs[value.name] = given[i]->elements();
    }
    graph = with_constants(std::move(graph), constants, "model");
    const Graph ready = folded(graph, "model");
    graft::base::Monitor nobody;
    return difference(ready, reference(ready, inputs, "model", nobody), expected);
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(NodeTests, GiveWhatOnnxPublishes) {
  const fs::path own = GRAFT_ONNX_NODE_TESTS, debians = GRAFT_DEBIANS_ONNX_NODE_TESTS;
  const fs::path folder = own.empty() && !debians.empty() ? debians / "node" : own;
  if (folder.empty())
    GTEST_SKIP()
        << "no copy of ONNX's node tests: install python3-onnx, or configure with -D GRAFT_ONNX_NODE_TESTS=FOLDER";
  struct Count {
    int passed = 0, all = 0;
  };
  std::map<std::string, Count> by_operator;
  std::map<const Exception*, Count> by_exception;
  std::vector<fs::path> tests;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "model.onnx")) tests.push_back(entry.path());
  std::sort(tests.begin(), tests.end());
  for (const fs::path& test : tests) {
    const std::string model = graft::base::read_file(test / "model.onnx");
    const auto [operation, inputs] = sketch_of(model);
    std::string reason;
    for (const std::size_t constant : {std::size_t(99), std::size_t(1), std::size_t(0)}) {
      const std::string now = attempt(test, model, inputs, constant);
      // The last attempt that got as far as numbers says most.
      if (reason.empty() || now.empty() || now.find("cannot be computed") == std::string::npos) reason = now;
      if (now.empty()) break;
    }
    const std::string name = test.filename().string();
    const Exception* exception = exception_of(name);
    ++by_exception[exception].all;
    by_exception[exception].passed += reason.empty();
    if (exception && exception->reason == chosen) continue;
    Count& count = by_operator[operation];
    ++count.all;
    count.passed += reason.empty();
    if (!reason.empty())
      std::printf("%s: %s\n", name.c_str(), exception ? std::string(exception->reason).c_str() : reason.c_str());
    if (reason.empty() || exception || !is_computed(operation)) continue;
    ADD_FAILURE() << name << " (" << operation << "): " << reason;
  }
  const std::vector<std::string_view> expected = graft::base::words(expected_operators);
  Count common;
  for (const auto& [operation, count] : by_operator) {
    std::printf("%-28s %3d of %3d%s\n", operation.c_str(), count.passed, count.all,
                is_computed(operation) ? "" : "  (not known)");
    if (std::find(expected.begin(), expected.end(), operation) != expected.end())
      common.passed += count.passed, common.all += count.all;
  }
  std::printf("operators that networks are made of: %d of %d\n", common.passed, common.all);
  // Tests of later releases are of types that are not computed with, in good part.
  if (own.empty()) {
    EXPECT_GE(common.passed, common.all * 0.95);
  }
  for (const Exception& one : exceptions) {
    const Count& count = by_exception[&one];
    EXPECT_TRUE(count.all == 0 || count.passed < count.all)
        << one.tests << ": passes, and is an exception: " << one.reason;
  }
  for (const std::string_view operation : expected)
    EXPECT_TRUE(is_computed(std::string(operation)) && by_operator[std::string(operation)].all > 0) << operation;
}

}  // namespace
