#include "graph/onnx.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/temporary_folder.h"
#include "graph/fold.h"
#include "tests/base/support.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using graft::base::UserError;
using graft::codegen::contains;
using graft::codegen::refusal;
namespace fs = std::filesystem;

file::GraphFile one_node() {
  file::GraphFile graph;
  graph.open_input("x", {"batch", "3"})
      .weight("w", {3}, {1, 2, 3})
      .node("Add", {"x", "w"}, {"y"}, {}, "sum")
      .output("y");
  return graph;
}

const Value& value_named(const Graph& graph, std::string_view name) {
  for (const Value& value : graph.values)
    if (value.name == name) return value;
  throw UserError("no such value");
}

TEST(Onnx, ReadsValuesNodesAndWeights) {
  const Graph graph = file::read(one_node(), 17, {{"batch", {2}}});
  EXPECT_EQ(graph.version, 17);
  ASSERT_EQ(graph.inputs.size(), 1u);
  const Value& input = graph.values[std::size_t(graph.inputs[0])];
  EXPECT_EQ(input.name, "x");
  EXPECT_EQ(*input.shape, (Shape{2, 3}));
  EXPECT_EQ(value_named(graph, "w").known->number(1), 2);
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(label(graph, graph.nodes[0]), "node 'sum' (Add)");
  EXPECT_EQ(graph.outputs, graph.nodes[0].results);
}

TEST(Onnx, TypesOfTensors) {
  file::GraphFile graph = one_node();
  graph.weight_of(file::tensor("half", {3}, file::f16, file::raw(std::vector<std::uint16_t>{0x3c00, 0xc100, 0x0001})));
  graph.weight_of(file::tensor("brain", {1}, 16, file::raw(std::vector<std::uint16_t>{0x3fc0})));
  graph.weight_of(file::tensor("flag", {2}, file::boolean, std::string("\x00\x02", 2)));
  graph.weight_of(file::tensor("short", {1}, 5, file::raw(std::vector<std::int16_t>{-7})));
  graph.weight_of(file::tensor("word", {1}, 12, file::raw(std::vector<std::uint32_t>{0xffffffff})));
  graph.weight_of(file::tensor("long", {}, file::i64, file::raw(std::vector<std::int64_t>{INT64_MAX})));
  // Typed fields in place of raw data: halves in int32 fields, one value a varint of its own, others packed.
  graph.weight_of(file::integer(1, 2) + file::integer(2, file::f16) + file::bytes(8, "field") +
                  file::integer(5, 0x3c00) + file::bytes(5, file::varint(0x4000)));
  graph.weight_of(file::integer(1, 1) + file::integer(2, file::i8) + file::bytes(8, "byte") + file::integer(5, -3));
  // Two of 4 bits in a byte, the first one below.
  graph.weight_of(file::tensor("nibble", {3}, file::i4, "\x87\x0f"));
  graph.weight_of(file::integer(1, 2) + file::integer(2, file::u4) + file::bytes(8, "half byte") +
                  file::integer(5, 0x87));
  const Graph read = file::read(graph, 17, {{"batch", {1}}});
  const auto number = [&](std::string_view name, std::size_t element) {
    return value_named(read, name).known->number(element);
  };
  EXPECT_EQ(number("half", 0), 1);
  EXPECT_EQ(number("half", 1), -2.5);
  EXPECT_EQ(number("half", 2), 0x1p-24);
  EXPECT_EQ(number("brain", 0), 1.5);
  EXPECT_EQ(number("flag", 0), 0);
  EXPECT_EQ(number("flag", 1), 1);
  EXPECT_EQ(*value_named(read, "short").type, DType::i32);
  EXPECT_EQ(number("short", 0), -7);
  EXPECT_EQ(number("word", 0), 4294967295.0);
  EXPECT_EQ(value_named(read, "long").known->integer(0), INT64_MAX);
  EXPECT_EQ(number("field", 1), 2);
  EXPECT_EQ(number("byte", 0), -3);
  EXPECT_EQ(value_named(read, "nibble").known->integers(), (std::vector<std::int64_t>{7, -8, -1}));
  EXPECT_EQ(value_named(read, "half byte").known->integers(), (std::vector<std::int64_t>{7, 8}));
  // A result of 4 bits would have more here.
  graph.node("Cast", {"x"}, {"q"}, {file::attribute("to", file::i4)});
  EXPECT_TRUE(contains(refusal([&] { file::read(graph, 21, {{"batch", {1}}}); }), "its result has fewer than 8 bits"));
}

// Ours have no booleans and no integers of 16 bits; what the model says of its ends, and CastLike, must know of them.
TEST(Onnx, TypesOfFewerValuesAreFollowed) {
  file::GraphFile graph;
  graph.input("x", {2}).input("flag", {2}, file::boolean).input("short", {2}, 5);
  graph.node("Less", {"x", "x"}, {"less"}).node("Reshape", {"less", "shape"}, {"moved"}).integers("shape", {1}, {2});
  graph.node("CastLike", {"x", "moved"}, {"decided"}).node("CastLike", {"x", "short"}, {"cut"});
  graph.node("CastLike", {"x", "x"}, {"same"});
  graph.output("decided").output("cut").output("same");
  const Graph read = file::read(graph, 19);
  const auto to = [&](std::size_t node) { return std::get<std::int64_t>(read.nodes[node].attributes.at("to")); };
  EXPECT_EQ(to(2), file::boolean);
  EXPECT_EQ(to(3), 5);
  EXPECT_EQ(read.nodes[4].operation, "CastLike");
  const Graph result = folded(read, "m.onnx");
  const auto declared = [&](int value) { return result.values[std::size_t(value)].declared; };
  EXPECT_EQ(declared(result.inputs[1]), "bool");
  EXPECT_EQ(declared(result.inputs[2]), "int16");
  EXPECT_EQ(declared(result.outputs[0]), "bool");
  EXPECT_EQ(declared(result.outputs[1]), "int16");
  EXPECT_EQ(declared(result.outputs[2]), "");
}

TEST(Onnx, SeveralShapesAreTheirCombinations) {
  const graft::base::Folder folder;
  file::GraphFile two;
  two.open_input("x", {"batch", "3"}).open_input("s", {"batch", "length"}).node("Relu", {"x"}, {"y"}).output("y");
  graft::base::replace_file(folder / "m.onnx", two.model());
  const auto each = [&](const Shapes& shapes) { return each_shape(folder / "m.onnx", shapes); };
  EXPECT_EQ(each({}), std::vector<Shapes>{{}});
  EXPECT_EQ(each({{"batch", {4}}}), (std::vector<Shapes>{{{"batch", {4}}}}));
  EXPECT_EQ(each({{"batch", {1, 2, 1}}}), (std::vector<Shapes>{{{"batch", {1}}}, {{"batch", {2}}}}));
  EXPECT_EQ(each({{"batch", {1, 2}}, {"length", {7, 9}}}), (std::vector<Shapes>{{{"batch", {1}}, {"length", {7}}},
                                                                                {{"batch", {1}}, {"length", {9}}},
                                                                                {{"batch", {2}}, {"length", {7}}},
                                                                                {{"batch", {2}}, {"length", {9}}}}));
  EXPECT_EQ(each({{"x", {1, 3, 5, 3}}}), (std::vector<Shapes>{{{"x", {1, 3}}}, {{"x", {5, 3}}}}));
  EXPECT_EQ(each({{"x", {1, 3, 5}}}), (std::vector<Shapes>{{{"x", {1, 3, 5}}}}));  // which read_onnx refuses
  Shape many(65);
  std::iota(many.begin(), many.end(), 1);
  EXPECT_TRUE(contains(refusal([&] { each({{"batch", many}}); }), "more than 64 shapes"));
}

TEST(Onnx, ShapesAreGivenByInputOrDimension) {
  EXPECT_EQ(*value_named(file::read(one_node(), 17, {{"x", {5, 3}}}), "x").shape, (Shape{5, 3}));
  const auto message = [](const Shapes& shapes) { return refusal([&] { return file::read(one_node(), 17, shapes); }); };
  EXPECT_EQ(message({}),
            "m.onnx: the file leaves the shape of 'x' [batch,3] open; give the whole shape by the input's name, or the "
            "extent by the name of a dimension");
  EXPECT_EQ(message({{"x", {5, 4}}}), "m.onnx: input 'x': its dimension 1 is 3; 4 is given");
  EXPECT_EQ(message({{"x", {5}}}), "m.onnx: input 'x': has 2 dimensions; the shape [5] is given");
  EXPECT_EQ(message({{"batch", {1, 2}}}), "m.onnx: dimension 'batch': takes one extent; [1,2] is given");
  EXPECT_EQ(message({{"batch", {std::int64_t(1) << 40}}}),
            "m.onnx: input 'x': its shape [1099511627776,3] has too many elements");
  EXPECT_TRUE(contains(message({{"bath", {1}}}), "did you mean 'batch'?"));

  file::GraphFile open;  // an extent without a name, a negative one, and no shape at all
  open.open_input("a", {"", "-1"}).node("Relu", {"a"}, {"b"}).output("b");
  EXPECT_TRUE(contains(refusal([&] { return file::read(open); }), "'a' [?,?]"));
  EXPECT_EQ(*value_named(file::read(open, 17, {{"a", {4, 5}}}), "a").shape, (Shape{4, 5}));
  file::GraphFile zero;  // what it says, or another one is given: some exporters mean an open one
  zero.open_input("a", {"0", "3"}).node("Relu", {"a"}, {"b"}).output("b");
  EXPECT_EQ(*value_named(file::read(zero), "a").shape, (Shape{0, 3}));
  EXPECT_EQ(*value_named(file::read(zero, 17, {{"a", {2, 3}}}), "a").shape, (Shape{2, 3}));
  EXPECT_EQ(file::results(zero, {{"a", {}}}, 17, {{"a", {0, 3}}}).front().size(), 0u);
}

TEST(Onnx, WeightsMayBeListedAsInputs) {
  file::GraphFile graph = one_node();
  graph.input("w", Shape{3});
  EXPECT_EQ(file::read(graph, 17, {{"batch", {1}}}).inputs.size(), 1u);
}

TEST(Onnx, VersionsThatAreNotKnownAreRefused) {
  EXPECT_TRUE(contains(refusal([] { return file::read(one_node(), 0); }), "opset"));
  EXPECT_TRUE(contains(refusal([] { return file::read(one_node(), 99); }), "opset"));
}

TEST(Onnx, TensorsThatAreNotWhatTheyClaim) {
  const auto message = [](std::string_view tensor) {
    return refusal([&] { return file::read(one_node().weight_of(tensor), 17, {{"batch", {1}}}); });
  };
  EXPECT_EQ(message(file::tensor("t", {1 << 29}, file::f32, "abcd")),
            "m.onnx: tensor 't': its shape [536870912] of float needs 2147483648 bytes of data, the file has 4");
  EXPECT_TRUE(contains(message(file::tensor("t", {-1}, file::f32, "")), "has the extent -1"));
  EXPECT_TRUE(contains(message(file::tensor("t", {1 << 30, 1 << 30, 1 << 30}, file::f32, "")), "too large"));
  EXPECT_TRUE(contains(message(file::tensor("t", {1}, 8, "")), "its type is string"));
  EXPECT_TRUE(contains(message(file::tensor("t", {1}, 77, "")), "its type is number 77"));
  EXPECT_TRUE(contains(message(file::tensor("w", {1}, file::u8, "a")), "is there twice"));
  EXPECT_TRUE(contains(message(file::integer(1, 1) + file::integer(2, file::f32) + file::integer(7, 3)),
                       "its numbers are not of its type"));
}

TEST(Onnx, ExternalDataStaysInTheFolder) {
  const graft::base::TemporaryFolder folder("graph_onnx");
  fs::create_directory(folder.path() / "models");
  for (const char* const name : {"outside.bin", "models/w.bin"}) {
    std::ofstream stream(folder.path() / name, std::ios::binary);
    stream << std::string(4, '\0') << file::raw(std::vector<float>{7, 8});
  }
  fs::create_symlink(folder.path() / "outside.bin", folder.path() / "models" / "link.bin");
  const auto read = [&](std::string_view location, std::string_view offset = "4", std::string_view length = "8") {
    file::GraphFile graph;
    std::string tensor = file::integer(1, 2) + file::integer(2, file::f32) + file::bytes(8, "w") + file::integer(14, 1);
    for (const auto& [key, value] :
         {std::pair(std::string_view("location"), location), {"offset", offset}, {"length", length}})
      tensor += file::bytes(13, file::bytes(1, key) + file::bytes(2, value));
    graph.weight_of(tensor).node("Relu", {"w"}, {"y"}).output("y");
    return parse_onnx(graph.model(), "m.onnx", folder.path() / "models");
  };
  EXPECT_EQ(value_named(read("w.bin"), "w").known->number(1), 8);
  for (const char* const location : {"../outside.bin", "/etc/passwd", "", "link.bin", "a/../../outside.bin"})
    EXPECT_TRUE(contains(refusal([&] { return read(location); }), "is not a file in the model's folder")) << location;
  EXPECT_TRUE(contains(refusal([&] { return read("none.bin"); }), "has no file"));
  EXPECT_TRUE(contains(refusal([&] { return read("w.bin", "8"); }), "bytes are needed"));
  EXPECT_TRUE(contains(refusal([&] { return read("w.bin", "99"); }), "bytes are needed"));
  EXPECT_TRUE(contains(refusal([&] { return read("w.bin", "0", "4"); }), "bytes are needed"));
  EXPECT_TRUE(contains(refusal([&] { return read("w.bin", "-4"); }), "offset is '-4'"));
}

TEST(Onnx, GraphsThatCannotRun) {
  const auto message = [](const file::GraphFile& graph) { return refusal([&] { return file::read(graph); }); };
  file::GraphFile cycle;
  cycle.input("x", Shape{1}).node("Add", {"x", "b"}, {"a"}, {}, "first").node("Relu", {"a"}, {"b"}).output("b");
  EXPECT_TRUE(contains(message(cycle), "node 'first' (Add): waits for its own result"));
  file::GraphFile missing;
  missing.input("x", Shape{1}).node("Add", {"x", "z"}, {"a"}).output("a");
  EXPECT_EQ(message(missing), "m.onnx: node 0 (Add): operand 'z' is neither given nor computed");
  file::GraphFile twice;
  twice.input("x", Shape{1}).node("Relu", {"x"}, {"a"}).node("Abs", {"x"}, {"a"}).output("a");
  EXPECT_EQ(message(twice), "m.onnx: node 1 (Abs): computes 'a', as node 0 (Relu) does");
  file::GraphFile overwritten;
  overwritten.input("x", Shape{1}).node("Relu", {"x"}, {"x"}).output("x");
  EXPECT_EQ(message(overwritten), "m.onnx: node 0 (Relu): computes 'x', which is given already");
  file::GraphFile nothing;
  nothing.input("x", Shape{1});
  EXPECT_EQ(message(nothing), "m.onnx: has a graph without outputs");
  file::GraphFile unknown_output;
  unknown_output.input("x", Shape{1}).output("y");
  EXPECT_EQ(message(unknown_output), "m.onnx: output 'y' is neither given nor computed");
}

TEST(Onnx, NumbersOfPartsAreLimited) {
  file::GraphFile graph;
  graph.input("x", Shape{1});
  for (int n = 0; n < 50; ++n) graph.node("Relu", {"x"}, {"y" + std::to_string(n)});
  graph.output("y0");
  OnnxLimits limits;
  limits.most_nodes = 49;
  EXPECT_EQ(refusal([&] { return parse_onnx(graph.model(), "m.onnx", ".", {}, limits); }),
            "m.onnx: has more than 49 nodes");
  limits = {};
  limits.most_messages = 100;
  EXPECT_EQ(refusal([&] { return parse_onnx(graph.model(), "m.onnx", ".", {}, limits); }),
            "m.onnx: has more than 100 parts");
  std::string inner = file::GraphFile().node("Relu", {"x"}, {"y"}).output("y").content();
  for (int depth = 0; depth < 40; ++depth)
    inner =
        file::GraphFile().node("If", {"x"}, {"y"}, {file::graph_attribute("then_branch", inner)}).output("y").content();
  file::GraphFile deep;
  deep.input("x", Shape{1}).node("If", {"x"}, {"y"}, {file::graph_attribute("then_branch", inner)}).output("y");
  EXPECT_EQ(refusal([&] { return file::read(deep); }), "m.onnx: graphs within graphs are deeper than 16");
}

// Each node waits for the next one in the file.
TEST(Onnx, LongChainsAreRead) {
  file::GraphFile graph;
  graph.input("x", Shape{1});
  constexpr int length = 20000;
  for (int n = length; n > 0; --n)
    graph.node("Relu", {n == 1 ? "x" : "v" + std::to_string(n - 1)}, {"v" + std::to_string(n)});
  graph.output("v" + std::to_string(length));
  const Graph read = file::read(graph);
  EXPECT_EQ(read.values[std::size_t(read.nodes.back().results[0])].name, "v" + std::to_string(length));
}

// Whatever bytes are cut off or changed: a graph, or one line.
TEST(Onnx, DamagedFilesAreRefusedInOneLine) {
  file::GraphFile graph = one_node();
  graph.node("If", {"y"}, {"z"},
             {file::graph_attribute("then_branch", file::GraphFile().node("Relu", {"y"}, {"q"}).output("q").content()),
              file::attribute("k", std::vector<std::int64_t>{1, 2})});
  const std::string whole = graph.model();
  int refused = 0;
  const auto judge = [&](const std::string& bytes) {
    try {
      (void)folded(parse_onnx(bytes, "m.onnx", ".", {{"batch", {1}}}), "m.onnx");
    } catch (const UserError& error) {
      ++refused;
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length) judge(whole.substr(0, length));
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = whole;
      changed[at] = char(changed[at] ^ (1 << bit));
      judge(changed);
    }
  EXPECT_GT(refused, 500);
}

}  // namespace
