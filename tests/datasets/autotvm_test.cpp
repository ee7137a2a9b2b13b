#include "datasets/formats/autotvm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/hash.h"
#include "base/monitor.h"
#include "base/random.h"
#include "base/text.h"
#include "codegen/expression/workload.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "datasets/formats/autotvm_tasks.h"
#include "datasets/formats/autotvm_templates.h"
#include "tests/datasets/support.h"
#include "tests/schedule/support.h"
#include "tests/support/gzip.h"

namespace graft::datasets::formats {
namespace {

using base::UserError;
using Numbers = std::vector<std::int64_t>;

std::string record(std::string_view name, std::string_view arguments, std::string_view entity,
                   std::string_view result = "[[0.002, 0.001, 0.0015], 0, 0.1, 1680712014]") {
  return fmt::format(R"({{"input": ["llvm -keys=cpu", "{}", [{}], {{}}], "config": {{"index": 3, "code_hash": null, )"
                     R"("entity": [{}]}}, "result": {}, "version": 0.2, "tvm_version": "0.10.0"}})"
                     "\n",
                     name, arguments, entity, result);
}

std::string convolution(const Numbers& data, const Numbers& weights, std::string_view rest) {
  return fmt::format(R"(["TENSOR", [{}], "float32"], ["TENSOR", [{}], "float32"], {})", fmt::join(data, ", "),
                     fmt::join(weights, ", "), rest);
}

const std::string layer =
    convolution({1, 8, 10, 10}, {12, 8, 3, 3}, R"([1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32")");
const std::string knobs =
    R"(["tile_ic", "sp", [-1, 4]], ["tile_oc", "sp", [-1, 6]], ["tile_ow", "sp", [-1, 5]], ["unroll_kw", "ot", true])";

Import run(const std::filesystem::path& file, bool strict = false) {
  static base::Monitor monitor;
  return imported("autotvm", {{file}, "board", {}, strict}, monitor);
}

Dataset dataset_of(const std::string& text) {
  const Folder folder;
  write_plainly(folder / "log", text);
  Import import = run(folder / "log");
  import.dataset().commit(folder / "out.h5");
  return read_dataset(folder / "out.h5");
}

std::string complaint(const std::string& text) {
  const Folder folder;
  write_plainly(folder / "log", text);
  const std::string message = message_of<UserError>([&] { run(folder / "log", true); });
  const std::string path = (folder / "log").string();
  EXPECT_TRUE(message.starts_with(path)) << message;
  return message.substr(std::min(message.size(), path.size()));
}

// Every form that a record may have: all kinds of failure, all kinds of knobs, operators that we know and others.
TEST(AutoTvm, EveryRecordIsARowOrCounted) {
  std::string log;
  const char* const failures[] = {
      "[[1000000000.0], 1, 0.0, 1]", "[[1000000000.0], 2, 0.0, 1]", "[[1000000000.0], 3, 0.0, 1]", "[[1e9], 4, 10, 1]",
      "[[1000000000.0], 5, 0.0, 1]", "[[1000000000.0], 6, 0.0, 1]", "[[1000000000.0], 7, 0.0, 1]", "[[], 8, 0.0, 1]"};
  log += record("conv2d_NCHWc.x86", layer, knobs);
  for (const char* failure : failures) log += record("conv2d_NCHWc.x86", layer, knobs, failure);
  log += record("conv2d_NCHWc.x86", layer, knobs, "[[0.25], 0, 0.1, 1]");          // measured again
  log += record("conv2d_NCHWc.x86", layer, knobs, "[[], 0, 0.1, 1]");              // no time
  log += record("conv2d_NCHWc.x86", layer, knobs, "[[1000000000.0], 0, 0.1, 1]");  // none either
  log += record("conv2d_NCHWc.x86", layer, knobs, "[[NaN], 0, 0.1, 1]");
  log += record("conv2d_NCHWc.x86", layer, knobs, "[[1000000000.0, 0.5], 0, 0.1, 1]");      // one
  log += record("conv2d_NCHWc.x86", layer, knobs, "[[0.5, Infinity], 0, NaN, -Infinity]");  // one
  log += record("conv2d_NCHWc.x86", layer, R"(["tile", "sp", [-1, 4]])");                   // another template's knobs
  log += record("conv2d_nchw_winograd.cuda", layer, R"(["tile_p", "sp", [-1, 4]], ["ann", "an", ["unroll", "vec"]])");
  log += record("dense.rocm", R"(["TENSOR", [4, 8], "float16"], ["TENSOR", [8, 6], "float16"])", "");

  const Folder folder;
  write_plainly(folder / "log", log);
  Import import = run(folder / "log");
  const Counts& counts = import.dataset().counts();
  EXPECT_EQ(counts.records, 18);
  EXPECT_EQ(counts.rows, 18);
  EXPECT_EQ(counts.dropped, Counts::ByName());
  EXPECT_EQ(counts.statuses, (Counts::ByName{{"ok", 7},
                                             {"does_not_lower", 1},
                                             {"does_not_compile", 2},
                                             {"crashed", 5},
                                             {"wrong_result", 1},
                                             {"timed_out", 2}}));
  EXPECT_EQ(counts.reasons, (Counts::ByName{{"instantiation error", 1},
                                            {"compile error (host)", 1},
                                            {"compile error (device)", 1},
                                            {"runtime error", 1},
                                            {"wrong answer", 1},
                                            {"build timeout", 1},
                                            {"run timeout", 1},
                                            {"unknown error", 1},
                                            {"no time", 1},
                                            {"1e+09 in place of a time", 1},
                                            {"NaN in place of a time", 1}}));
  EXPECT_EQ(counts.templates.at("conv2d_NCHWc.x86").rows, 16);
  EXPECT_EQ(counts.templates.at("conv2d_NCHWc.x86").ok, 5);
  EXPECT_EQ(counts.templates.at("conv2d_NCHWc.x86").with_program, 15);
  EXPECT_EQ(counts.without_program,
            (Counts::ByName{{"conv2d_NCHWc.x86: knobs that we do not know, or that do not fit the shapes", 1},
                            {"conv2d_nchw_winograd.cuda: no sketch for this template", 1},
                            {"dense.rocm: no sketch for this template", 1}}));

  import.dataset().commit(folder / "out.h5");
  const Dataset dataset = read_dataset(folder / "out.h5");
  EXPECT_EQ(dataset.platform, "import:board");
  EXPECT_EQ(dataset.source, "imported");
  ASSERT_EQ(dataset.rows.size(), 18u);
  const Dataset::Row& first = dataset.rows.front();
  EXPECT_EQ(dataset.workloads[std::size_t(first.workload)].text(),
            "conv2d(n=1,c=8,h=10,w=10,k=12,r=3,s=3,stride=1,pad=1,dtype=f32)");
  EXPECT_EQ(first.arguments, (Numbers{4, 6, 5, 1}));
  EXPECT_EQ(first.measurement.seconds, (std::vector<double>{0.002, 0.001, 0.0015}));
  EXPECT_EQ(first.measurement.clock, "wall");
  EXPECT_EQ(dataset.rows[13].measurement.seconds, std::vector<double>{0.5});
  EXPECT_EQ(dataset.rows[14].measurement.seconds, std::vector<double>{0.5});
  EXPECT_EQ(codegen::to_text(*dataset.sketches[std::size_t(dataset.rows[16].sketch)]),
            "sketch conv2d_nchw_winograd.cuda\n"
            "columns $tile_p_1 $ann_0{none|unroll|vec} $ann_1{none|unroll|vec}\n");
  EXPECT_EQ(dataset.rows[16].arguments, (Numbers{4, 1, 2}));
  EXPECT_EQ(dataset.workloads[std::size_t(dataset.rows[17].workload)].text(),
            "table(name=dense.rocm.float16,t0_0=4,t0_1=8,t1_0=8,t1_1=6,all=" +
                base::to_hex(base::hash_bytes(R"([["TENSOR",[4,8],"float16"],["TENSOR",[8,6],"float16"]])")) + ")");
}

TEST(AutoTvm, WorkloadsSayWhatWasComputed) {
  const auto workload = [](std::string_view name, const std::string& arguments) {
    return task_of(base::parse_json(fmt::format(R"(["", "{}", [{}], {{}}])", name, arguments), "input"), "input")
        .workload.text();
  };
  EXPECT_EQ(workload("conv2d_nchw.cuda", convolution({128, 4, 9, 9}, {6, 4, 3, 3}, R"(2, "SAME", 1, "float32")")),
            "conv2d(n=128,c=4,h=9,w=9,k=6,r=3,s=3,stride=2,pad=1,dtype=f32)");
  EXPECT_EQ(workload("conv2d_nchw.cuda", convolution({1, 4, 9, 9}, {6, 4, 2, 2}, R"(1, "VALID", 1, "float32")")),
            "conv2d(n=1,c=4,h=9,w=9,k=6,r=2,s=2,stride=1,pad=0,dtype=f32)");
  EXPECT_EQ(workload("depthwise_conv2d_nchw.cuda", convolution({1, 4, 9, 9}, {4, 1, 3, 3}, R"(1, 1, 1, "float32")")),
            "depthwise_conv2d(n=1,c=4,h=9,w=9,r=3,s=3,stride=1,pad=1,dtype=f32)");
  EXPECT_EQ(
      workload("batch_matmul.cuda",
               R"(["TENSOR", [2, 3, 4], "float32"], ["TENSOR", [2, 4, 5], "float32"], [2, 3, 5], "float32", 0, 0)"),
      "batch_matmul(b=2,m=3,n=5,k=4,dtype=f32)");
  // What differs by direction is an index expression with the operator's names.
  const codegen::Computation uneven =
      codegen::Workload(
          workload("conv2d_NCHWc.x86", convolution({1, 4, 9, 8}, {6, 4, 3, 1}, R"([2, 1], [1, 0, 1, 0], [1, 1])")))
          .computation();
  EXPECT_EQ(codegen::flops(codegen::Workload(workload(
                "conv2d_NCHWc.x86", convolution({1, 4, 9, 8}, {6, 4, 3, 1}, R"([2, 1], [1, 0, 1, 0], [1, 1])")))),
            2 * 6 * 5 * 8 * 4 * 3);
  EXPECT_GE(uneven.tensor_named("P"), 0);
  const codegen::Computation dilated =
      codegen::Workload(
          workload("conv2d_nchw.cuda", convolution({1, 4, 9, 9}, {6, 4, 3, 3}, R"([1, 1], [2, 2, 2, 2], [2, 2])")))
          .computation();
  EXPECT_EQ(dilated.tensors[std::size_t(dilated.tensor_named("Y"))].shape, (Numbers{1, 6, 9, 9}));
  // A type, a layout, a transposition that is another operator's.
  for (const std::string& other :
       {workload("conv2d_nchw.cuda", convolution({1, 4, 9, 9}, {6, 4, 3, 3}, R"([1, 1], [0, 0], [1, 1], "float16")")),
        workload("conv2d_NCHWc.x86",
                 convolution({1, 4, 9, 9}, {6, 4, 3, 3}, R"([1, 1], [0, 0], [1, 1], "NHWC", "NHWC", "float32")")),
        workload(
            "batch_matmul.cuda",
            R"(["TENSOR", [2, 3, 4], "float32"], ["TENSOR", [2, 5, 4], "float32"], [2, 3, 5], "float32", 0, 1)")}) {
    EXPECT_TRUE(other.starts_with("table(name=")) << other;
  }
}

TEST(AutoTvm, WorkloadsThatDifferInNoIntegerAreOthers) {
  const char* const arguments[] = {R"(["TENSOR", [4, 8], "float16"], ["TENSOR", [8, 6], "float16"], true)",
                                   R"(["TENSOR", [4, 8], "float16"], ["TENSOR", [8, 6], "float16"], false)",
                                   R"(["TENSOR", [4, 8], "float16"], ["TENSOR", [8, 6], "int8"], true)",
                                   R"(["TENSOR", [4, 8], "float16"], ["TENSOR", [8, 6], "float16"], "NHWC")"};
  std::string log;
  for (const char* each : arguments) log += record("dense.rocm", each, "");
  EXPECT_EQ(dataset_of(log + record("dense.rocm", arguments[0], "")).workloads.size(), std::size(arguments));
}

TEST(AutoTvm, BrokenRecordsAreRefusedWithTheirPlace) {
  const std::string good = record("conv2d_NCHWc.x86", layer, knobs);
  EXPECT_EQ(complaint(good + "{\"input\": [\n"), ":2:12: expected a value, got the end");
  EXPECT_EQ(complaint(good + "\n[1]\n"), ":3:1: expected a map, got '[1]'");
  EXPECT_EQ(
      complaint("{}"),
      ":1:3: is not a record of AutoTVM: 'input', 'config' with 'entity', or 'result' is missing (of version 0.1: "
      "'i' with a configuration's 'e', or 'r')");
  EXPECT_TRUE(contains(complaint(good + record("t", layer, knobs, "[[NaNs], 0, 0, 0]")), ":2:"));
  EXPECT_TRUE(contains(complaint(record("t", layer, knobs, "[[NaNs], 0, 0, 0]")), "expected a number, got 'NaNs'"));
  EXPECT_TRUE(contains(complaint(record("t", layer, knobs, "[[-0.5], 0, 0, 0]")), "a time of -0.5 seconds"));
  EXPECT_TRUE(contains(complaint(record("t", layer, knobs, "[[0.0], 0, 0, 0]")), "a time of 0 seconds"));
  EXPECT_TRUE(contains(complaint(record("t", layer, knobs, "[[0.5], 9, 0, 0]")), "unknown error number 9"));
  EXPECT_TRUE(
      contains(complaint(record("t", layer, R"(["a", "sp", [1]], ["a", "sp", [2]])")), "knob 'a' is there twice"));
  EXPECT_TRUE(contains(complaint(record("t", layer, R"(["a", "xx", [1]])")), "unknown kind of knob 'xx'"));
  EXPECT_TRUE(contains(complaint(record("t", layer, R"(["a", "an", ["spin"]])")), "unknown annotation 'spin'"));
  EXPECT_TRUE(contains(complaint(record("t", layer, R"(["../a", "ot", 1])")), "the name of a knob must be"));
  EXPECT_TRUE(contains(complaint(record("../../etc/passwd", layer, knobs)), "the name of a template must be"));
  EXPECT_TRUE(contains(complaint(record("t", layer, R"(["a", "ot", "text"])")), "the value of knob 'a'"));
  std::string twice = good;
  twice.replace(twice.find("\"version\""), 9, "\"result\" ");
  EXPECT_TRUE(contains(complaint(twice), "key 'result' is there twice"));
  std::string old = good;
  old.replace(old.find("0.2, \"tvm"), 3, "0.1");
  EXPECT_TRUE(contains(complaint(old), "expected a record of version 0.2"));
  std::string times = "1";
  for (int i = 0; i < 1000; ++i) times += ",1";
  EXPECT_EQ(complaint(good + record("t", layer, knobs, "[[" + times + "], 0, 0, 0]")),
            ":2: a record of 1001 times; at most 1000 are read");
  EXPECT_EQ(complaint(good + record("graft.t", '"' + std::string(2001, 'x') + '"', knobs)),
            ":2: a workload of more than 2000 characters");
  EXPECT_EQ(complaint(""), ": holds no record of this format");
}

TEST(AutoTvm, HostileRecordsCostNothing) {
  EXPECT_TRUE(contains(complaint(record("t", convolution({1000000000, 1000000000, 1000000000}, {1}, "1"), knobs)),
                       "a tensor of more than 2^40 elements"));
  EXPECT_TRUE(contains(complaint(record("t", convolution({-1}, {1}, "1"), knobs)), "a size of -1"));
  EXPECT_TRUE(contains(complaint(record("t", std::string(500, '[') + std::string(500, ']'), knobs)),
                       "nested deeper than 200 levels"));
  std::string many = "[1";
  for (int i = 0; i < 30'000; ++i) many += ", 1";
  EXPECT_TRUE(contains(complaint(record("t", "[\"TENSOR\", " + many + "], \"float32\"]", knobs)),
                       ":1: the line is longer than 65536 bytes"));
  EXPECT_TRUE(contains(complaint(record("t", layer, "[\"a\", \"sp\", " + many.substr(0, 3000) + "]]")),
                       "knobs of more than 256 values"));
  const Folder folder;
  std::string log;
  for (int i = 0; i < 3000; ++i)
    log += record("conv2d_NCHWc.x86", layer, knobs, fmt::format("[[0.{}], 0, 0, 0]", i + 1));
  write_gzip(folder / "whole.gz", log);
  std::string packed = base::read_file(folder / "whole.gz", 1 << 30);
  EXPECT_EQ(packed.size(), log.size());
  std::ifstream in(folder / "whole.gz", std::ios::binary);
  packed.assign(std::istreambuf_iterator<char>(in), {});
  write_plainly(folder / "torn.gz", std::string_view(packed).substr(0, packed.size() / 2));
  const std::string message = message_of<UserError>([&] { run(folder / "torn.gz", true); });
  EXPECT_TRUE(message.starts_with((folder / "torn.gz").string() + ":")) << message;
  EXPECT_TRUE(contains(message, "ends in the middle")) << message;
}

TEST(AutoTvm, PlatformsHaveNamesThatAreNoPaths) {
  EXPECT_EQ(platform_id("a72"), "import:a72");
  EXPECT_EQ(platform_id("import:gtx-1650_ti.2"), "import:gtx-1650_ti.2");
  for (const char* name : {"", "import:", "../a", "a/b", ".hidden", "a b", "a\nb"}) {
    EXPECT_THROW(platform_id(name), UserError) << name;
  }
}

// ---- what the templates did ----

// How often the stores that write buffers named `name` (remainders number theirs) run.
std::int64_t stores_to(const codegen::LoopProgram& program, const std::string& name, codegen::Combine combine) {
  std::int64_t total = 0;
  const auto walk = [&](auto&& self, int begin, int end, std::int64_t trips) -> void {
    for (int n = begin; n < end; n = program.run[std::size_t(n)].end) {
      const codegen::Node& node = program.run[std::size_t(n)];
      if (node.kind == codegen::Node::Kind::loop) {
        self(self, n + 1, node.end, trips * program.loops[std::size_t(node.item)].extent);
        continue;
      }
      const codegen::Store& store = program.stores[std::size_t(node.item)];
      const std::string& buffer = program.buffers[std::size_t(store.target.tensor)].name;
      const bool same =
          buffer.starts_with(name) && buffer.find_first_not_of("0123456789", name.size()) == std::string::npos;
      if (same && store.combine == combine) total += trips;
    }
  };
  walk(walk, 0, int(program.run.size()), 1);
  return total;
}

// Iterations of all loops of a kind around the first store that adds up, in that buffer if one is named.
std::int64_t trips_of(const codegen::LoopProgram& program, codegen::LoopKind kind, std::string_view into = {}) {
  std::vector<int> open;
  for (std::size_t n = 0; n < program.run.size(); ++n) {
    while (!open.empty() && program.run[std::size_t(open.back())].end <= int(n)) open.pop_back();
    const codegen::Node& node = program.run[n];
    if (node.kind == codegen::Node::Kind::loop) {
      open.push_back(int(n));
      continue;
    }
    const codegen::Store& store = program.stores[std::size_t(node.item)];
    const bool is_asked = into.empty() || program.buffers[std::size_t(store.target.tensor)].name == into;
    if (is_asked && store.combine != codegen::Combine::none) {
      std::int64_t trips = 1;
      for (const int at : open) {
        const codegen::Loop& loop = program.loops[std::size_t(program.run[std::size_t(at)].item)];
        if (loop.kind == kind) trips *= loop.extent;
      }
      return trips;
    }
  }
  return 0;
}

using codegen::Combine;
using codegen::LoopKind;

Knobs knobs_of(const std::string& entity) {
  Knobs result;
  const base::Document all = base::parse_json("[" + entity + "]", "entity");
  for (const base::Document& each : all.as_list()) {
    const base::Document& value = each.as_list()[2];
    Knobs::Knob& knob = result.next();
    knob.name = each.as_list()[0].as_string();
    const std::string kind = each.as_list()[1].as_string();
    knob.kind = kind == "sp"   ? Knobs::Kind::split
                : kind == "re" ? Knobs::Kind::reorder
                : kind == "an" ? Knobs::Kind::annotate
                               : Knobs::Kind::other;
    const base::Document::List parts = value.is_list() ? value.as_list() : base::Document::List{value};
    for (const base::Document& part : parts) {
      result.values.push_back(part.is_bool()     ? part.as_bool()
                              : part.is_string() ? std::find(annotations.begin(), annotations.end(), part.as_string()) -
                                                       annotations.begin()
                                                 : part.as_integer());
      ++knob.count;
    }
  }
  return result;
}

// A Reason where there are only knobs.
base::Result<codegen::Candidate> candidate_of(std::string_view name, const std::string& arguments,
                                              const std::string& entity) {
  const Task task =
      task_of(base::parse_json(fmt::format(R"(["", "{}", [{}], {{}}])", name, arguments), "input"), "input");
  codegen::Candidate candidate{task.workload, nullptr, {}};
  auto sketch = template_named(name)->sketch(task.shape, knobs_of(entity), candidate.arguments);
  if (!sketch) return sketch.reason();
  candidate.sketch = *sketch;
  return candidate;
}

// The program of one record; right results are checked here, against the reference.
codegen::LoopProgram rebuilt(std::string_view name, const std::string& arguments, const std::string& entity) {
  const auto candidate = candidate_of(name, arguments, entity);
  if (!candidate) throw std::runtime_error(fmt::format("{} {}: {}", name, entity, candidate.reason().text));
  const auto program = codegen::program(*candidate, codegen::Target());
  if (!program) throw std::runtime_error(fmt::format("{} {}: {}", name, entity, program.reason().text));
  codegen::check(*program, "program");
  const codegen::Computation computation = candidate->workload.padded();
  EXPECT_LE(codegen::test::worst_excess(computation, *program, 1, program->amplification), 0) << name << " " << entity;
  return *program;
}

std::int64_t divisor(base::Stream& stream, std::int64_t whole) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= whole; ++d) {
    if (whole % d == 0) all.push_back(d);
  }
  return all[std::size_t(stream.below(std::int64_t(all.size())))];
}

// A split into `parts`, the outermost of which is -1.
Numbers split(base::Stream& stream, std::int64_t whole, int parts) {
  Numbers result(std::size_t(parts), -1);
  for (std::size_t i = result.size() - 1; i > 0; --i) {
    result[i] = divisor(stream, whole);
    whole /= result[i];
  }
  return result;
}

std::int64_t product(const Numbers& factors) {  // of all parts but the outermost
  return std::accumulate(factors.begin() + 1, factors.end(), std::int64_t(1), std::multiplies<>());
}

std::string knob(std::string_view name, const Numbers& factors) {
  return fmt::format(R"(["{}", "sp", [{}]])", name, fmt::join(factors, ", "));
}

constexpr int configurations = 10;  // of each template

TEST(AutoTvmTemplates, OneProgramInFull) {
  EXPECT_EQ(codegen::to_text(rebuilt("conv2d_NCHWc.x86", layer, knobs)),
            R"(buffer X f32 [1,2,10,10,4] input stored {0 1/4 2 3 1%4}
buffer W f32 [2,2,3,3,4,6] constant stored {0/6 1/4 2 3 1%4 0%6}
buffer Y f32 [1,2,10,10,6] output stored {0 1/6 2 3 1%6}
buffer P f32 [1,2,12,12,4] temporary
buffer Y.tile f32 [5,6] temporary registers
run
  for i.0 2
    for p.0 12
      for q.0 12
        for i_1.0 4
          P[0,i.0,p.0,q.0,i_1.0] = 0
  for i.0 2 parallel
    for p.0 10 parallel
      for q.0 10
        for i_1.0 4 vector
          P[0,i.0,p.0 + 1,q.0 + 1,i_1.0] = X[0,i.0,p.0,q.0,i_1.0]
  for o.0 2 parallel
    for y.0 10 parallel
      for x.0 2
        for x.1 5 unrolled
          for o_1.0 6 vector
            Y.tile[x.1,o_1.0] = 0
        for i.0 2
          for u.0 3
            for i_1.0 4
              for v.0 3 unrolled
                for x.1 5 unrolled
                  for o_1.0 6 vector
                    Y.tile[x.1,o_1.0] += P[0,i.0,y.0 + u.0,5*x.0 + v.0 + x.1,i_1.0] * W[o.0,i.0,u.0,v.0,i_1.0,o_1.0]
        for x.1 5 unrolled
          for o_1.0 6 vector
            Y[0,o.0,y.0,5*x.0 + x.1,o_1.0] = Y.tile[x.1,o_1.0]
)");
}

// Convolutions on CPUs: C=8 12x10 -> K=12, 3x3 or 1x1, padded or not.
TEST(AutoTvmTemplates, BlockedConvolutions) {
  for (std::uint64_t seed = 0; seed < configurations; ++seed) {
    base::Stream stream(seed, "conv2d_NCHWc");
    for (const std::int64_t window : {3, 1}) {
      const std::int64_t pad = stream.below(2), h = 12 + 2 * pad - window + 1, w = 10 + 2 * pad - window + 1;
      const std::int64_t ic = divisor(stream, 8), oc = divisor(stream, 12), ow = 1 + stream.below(w),
                         last = stream.below(2);
      const std::string entity =
          fmt::format(R"({}, {}, {}, ["{}", "ot", {}])", knob("tile_ic", {-1, ic}), knob("tile_oc", {-1, oc}),
                      knob("tile_ow", {-1, ow}), window == 1 ? "tile_oh" : "unroll_kw",
                      window == 1 ? std::to_string(1 + last)
                      : last == 0 ? "false"
                                  : "true");
      const codegen::LoopProgram program =
          rebuilt("conv2d_NCHWc.x86",
                  convolution({1, 8, 12, 10}, {12, 8, window, window}, fmt::format("1, {}, 1", pad)), entity);
      const std::string place = entity + fmt::format(" pad {}", pad);
      const std::int64_t results = 12 * h * w;
      EXPECT_EQ(stores_to(program, "Y.tile", Combine::sum), results * 8 * window * window) << place;
      EXPECT_EQ(stores_to(program, "Y.tile", Combine::none), results) << place;
      EXPECT_EQ(stores_to(program, "Y", Combine::none), results) << place;
      EXPECT_EQ(stores_to(program, "P", Combine::none), pad == 0 ? 0 : 8 * ((12 + 2) * (10 + 2) + 12 * 10)) << place;
      EXPECT_EQ(program.buffers[0].shape, (Numbers{1, 8 / ic, 12, 10, ic})) << place;
      EXPECT_EQ(program.buffers[1].shape, (Numbers{12 / oc, 8 / ic, window, window, ic, oc})) << place;
      EXPECT_EQ(program.buffers[2].shape, (Numbers{1, 12 / oc, h, w, oc})) << place;
      EXPECT_EQ(trips_of(program, LoopKind::vector), oc) << place;
      const std::int64_t rows =
          window == 1 ? h / (1 + last) : h;  // main part; a remainder of rows is a nest of its own
      EXPECT_EQ(trips_of(program, LoopKind::parallel), 12 / oc * rows) << place;
      const std::int64_t unrolled = window == 1 ? (1 + last) * ow : ow * (last == 1 ? 3 : 1);
      EXPECT_EQ(trips_of(program, LoopKind::unrolled), unrolled) << place;
    }
  }
}

TEST(AutoTvmTemplates, BlockedDepthwiseConvolutions) {
  int rebuilt_rows = 0;
  for (std::uint64_t seed = 0; rebuilt_rows < configurations; ++seed) {
    base::Stream stream(seed, "depthwise");
    const std::int64_t pad = stream.below(2), stride = 1 + stream.below(2);
    const std::int64_t h = (9 + 2 * pad - 3) / stride + 1, w = (11 + 2 * pad - 3) / stride + 1;
    const std::int64_t ic = divisor(stream, 24), oc = divisor(stream, 24), ow = 1 + stream.below(w),
                       kw = stream.below(2);
    const std::string entity =
        fmt::format(R"({}, {}, {}, ["unroll_kw", "ot", {}])", knob("tile_ic", {-1, ic}), knob("tile_oc", {-1, oc}),
                    knob("tile_ow", {-1, ow}), kw == 1 ? "true" : "false");
    const std::string arguments = convolution({1, 24, 9, 11}, {24, 1, 3, 3}, fmt::format("{}, {}, 1", stride, pad));
    if (ic % oc != 0 && oc % ic != 0) {
      const auto none = candidate_of("depthwise_conv2d_NCHWc.x86", arguments, entity);
      ASSERT_FALSE(none.ok()) << entity;
      EXPECT_EQ(none.reason().text, "blocks that are read and blocks that are written do not divide each other");
      continue;
    }
    ++rebuilt_rows;
    const codegen::LoopProgram program = rebuilt("depthwise_conv2d_NCHWc.x86", arguments, entity);
    EXPECT_EQ(stores_to(program, "Y.tile", Combine::sum), 24 * h * w * 9) << entity;
    EXPECT_EQ(stores_to(program, "Y", Combine::none), 24 * h * w) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::vector), std::min(ic, oc)) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::parallel), 24 / oc * h) << entity;
    EXPECT_EQ(program.buffers[0].elements(), 24 * 9 * 11);
  }
}

TEST(AutoTvmTemplates, DenseAndBatchedProductsOnCpus) {
  const std::string dense = R"(["TENSOR", [12, 24], "float32"], ["TENSOR", [16, 24], "float32"], null, "float32")";
  const std::string batched =
      R"(["TENSOR", [3, 12, 24], "float32"], ["TENSOR", [3, 24, 16], "float32"], [3, 12, 16], "float32", 0, 0)";
  for (std::uint64_t seed = 0; seed < configurations; ++seed) {
    base::Stream stream(seed, "dense");
    const Numbers y = split(stream, 12, 3), x = split(stream, 16, 3), k = split(stream, 24, 2),
                  inner{-1, divisor(stream, y[2])};
    const std::string packed = fmt::format("{}, {}, {}, {}", knob("tile_y", y), knob("tile_x", x), knob("tile_k", k),
                                           knob("tile_inner", inner));
    const codegen::LoopProgram pack = rebuilt("dense_pack.x86", dense, packed);
    EXPECT_EQ(stores_to(pack, "Y.tile", Combine::sum), 12 * 16 * 24) << packed;
    EXPECT_EQ(trips_of(pack, LoopKind::vector), x[2]) << packed;
    EXPECT_EQ(trips_of(pack, LoopKind::unrolled), k[1] * inner[1]) << packed;
    EXPECT_EQ(trips_of(pack, LoopKind::parallel), 12 / product(y) * (16 / product(x))) << packed;
    EXPECT_EQ(pack.buffers[1].shape, (Numbers{16 / x[2], 24, x[2]})) << packed;

    const Numbers rows = split(stream, 12, 2), columns = split(stream, 16, 2);
    const std::string plain =
        fmt::format("{}, {}, {}", knob("tile_y", rows), knob("tile_x", columns), knob("tile_k", k));
    const std::int64_t parts = 24 / k[1];  // products that one element of the vector adds up
    const codegen::LoopProgram nopack = rebuilt("dense_nopack.x86", dense, plain);
    const codegen::LoopProgram product = rebuilt("batch_matmul.x86", batched, plain);
    EXPECT_EQ(stores_to(nopack, "Y", Combine::sum), 12 * 16 * k[1]) << plain;
    EXPECT_EQ(stores_to(product, "C.tile", Combine::sum), 3 * 12 * 16 * k[1]) << plain;
    if (parts > 1) {
      EXPECT_EQ(stores_to(nopack, "Y.rf.tile", Combine::sum), 12 * 16 * 24) << plain;
      EXPECT_EQ(stores_to(product, "C.rf", Combine::sum), 3 * 12 * 16 * 24) << plain;
      EXPECT_EQ(trips_of(nopack, LoopKind::vector), k[1]) << plain;
      EXPECT_EQ(trips_of(product, LoopKind::vector), k[1]) << plain;
    }
    EXPECT_EQ(trips_of(nopack, LoopKind::parallel), 12 / rows[1] * (16 / columns[1])) << plain;
    EXPECT_EQ(trips_of(product, LoopKind::parallel), 3 * (12 / rows[1]) * (16 / columns[1])) << plain;
  }
}

std::string annotation(base::Stream& stream, int loops, bool vector) {
  std::vector<std::string> words;
  const std::int64_t which = vector ? stream.below(loops + 1) : loops;
  for (int i = 0; i < loops; ++i)
    words.push_back(i == which ? "\"vec\"" : stream.below(2) == 0 ? "\"none\"" : "\"unroll\"");
  return fmt::format("[{}]", fmt::join(words, ", "));
}

TEST(AutoTvmTemplates, ConvolutionsOnArm) {
  for (std::uint64_t seed = 0; seed < configurations; ++seed) {
    base::Stream stream(seed, "arm");
    const std::int64_t pad = stream.below(2), stride = 1 + stream.below(2);
    const std::int64_t h = (10 + 2 * pad - 3) / stride + 1, w = (13 + 2 * pad - 3) / stride + 1;
    const std::int64_t vc = divisor(stream, 12), vh = divisor(stream, h), vw = divisor(stream, w);
    const std::string spatial = annotation(stream, 3, true);
    const std::string entity =
        fmt::format(R"({}, {}, {}, ["reorder_0", "re", [{}]], ["ann_reduce", "an", {}], ["ann_spatial", "an", {}])",
                    knob("tile_co", {-1, vc}), knob("tile_oh", {-1, vh}), knob("tile_ow", {-1, vw}),
                    stream.below(2) == 0 ? "0, 1, 2, 3, 4, 5, 6, 7, 8, 9" : "0, 1, 2, 3, 4, 5, 6, 9, 7, 8",
                    annotation(stream, 2, false), spatial);
    const codegen::LoopProgram program =
        rebuilt("conv2d_nchw_spatial_pack.arm_cpu",
                convolution({1, 4, 10, 13}, {12, 4, 3, 3}, fmt::format("{0}, {1}, 1", stride, pad)), entity);
    EXPECT_EQ(stores_to(program, "Y.tile", Combine::sum), 12 * h * w * 4 * 9) << entity;
    EXPECT_EQ(stores_to(program, "Y", Combine::none), 12 * h * w) << entity;
    const std::int64_t copied = h / vh * (w / vw) * 4 * ((vh - 1) * stride + 3) * ((vw - 1) * stride + 3);
    EXPECT_EQ(stores_to(program, pad == 0 ? "Y.X" : "Y.P", Combine::none), copied) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::parallel), 12 / vc) << entity;

    const std::string depthwise = fmt::format(R"({}, {}, {}, ["ann", "an", {}])", knob("tile_c", {-1, vc}),
                                              knob("tile_h", {-1, vh}), knob("tile_w", {-1, vw}), spatial);
    const codegen::LoopProgram single =
        rebuilt("depthwise_conv2d_nchw.arm_cpu",
                convolution({1, 12, 10, 13}, {12, 1, 3, 3}, fmt::format("{0}, {1}, 1", stride, pad)), depthwise);
    EXPECT_EQ(stores_to(single, "Y.tile", Combine::sum), 12 * h * w * 9) << depthwise;
    EXPECT_EQ(stores_to(single, pad == 0 ? "Y.X" : "Y.P", Combine::none),
              12 * (h / vh) * ((vh - 1) * stride + 3) * ((w - 1) * stride + 3))
        << depthwise;
  }
}

struct Image {
  std::int64_t h, w, pad;
  std::int64_t high() const { return (h + 2 * pad - 2 + 3) / 4; }  // rows of tiles
  std::int64_t wide() const { return (w + 2 * pad - 2 + 3) / 4; }
};

std::string winograd_knobs(std::int64_t p, std::int64_t k, std::int64_t c, std::string_view reduce,
                           std::string_view spatial) {
  return fmt::format(R"({}, {}, {}, ["ann_reduce", "an", {}], ["ann_spatial", "an", {}])", knob("tile_p", {-1, p}),
                     knob("tile_k", {-1, k}), knob("tile_c", {-1, c}), reduce, spatial);
}

std::vector<std::int64_t> shape_of(const codegen::LoopProgram& program, std::string_view buffer) {
  for (const codegen::Buffer& each : program.buffers) {
    if (each.name == buffer) return each.shape;
  }
  return {};
}

// C=6 -> K=12 in tiles of 4x4 results: 6x6 products for each tile, channel and channel.
TEST(AutoTvmTemplates, WinogradOnArm) {
  constexpr Image images[] = {{8, 8, 1}, {10, 13, 1}, {10, 16, 0}, {10, 18, 0}};  // the first and the last: whole tiles
  constexpr std::int64_t c = 6, k = 12;
  int rebuilt_rows = 0, refused = 0;
  for (std::uint64_t seed = 0; rebuilt_rows < configurations || refused == 0; ++seed) {
    base::Stream stream(seed, "winograd");
    const Image& image = images[stream.below(4)];
    const std::int64_t high = image.high(), wide = image.wide(), tiles = high * wide;
    const std::int64_t p = divisor(stream, tiles), tk = divisor(stream, k), tc = divisor(stream, c);
    const std::string reduce = annotation(stream, 1, false), spatial = annotation(stream, 2, true);
    const std::string entity = winograd_knobs(p, tk, tc, reduce, spatial);
    const std::string place = entity + fmt::format(" {}x{} pad {}", image.h, image.w, image.pad);
    const std::string arguments =
        convolution({1, c, image.h, image.w}, {k, c, 3, 3}, fmt::format("1, {}, 1", image.pad));
    if (wide % p != 0 && p % wide != 0) {  // 3 or 6 tiles of three rows of four
      const auto none = candidate_of("conv2d_nchw_winograd.arm_cpu", arguments, entity);
      ASSERT_FALSE(none.ok()) << place;
      EXPECT_EQ(none.reason().text, "tile_p is neither a part of a row of tiles nor whole rows");
      ++refused;
      continue;
    }
    ++rebuilt_rows;
    const codegen::LoopProgram program = rebuilt("conv2d_nchw_winograd.arm_cpu", arguments, entity);
    const std::int64_t rows = std::max<std::int64_t>(1, p / wide), columns = std::min(p, wide);
    EXPECT_EQ(shape_of(program, "Y.U"), (Numbers{6, 6, k / tk, c, tk})) << place;
    EXPECT_EQ(shape_of(program, "Y.V"), (Numbers{6, 6, 1, high / rows, wide / columns, c, rows, columns})) << place;
    EXPECT_EQ(shape_of(program, "Y.M"), (Numbers{6, 6, 1, 1, tk, high / rows, wide / columns, rows, columns})) << place;

    // Neighbours in a row share two columns of data.
    const std::int64_t columns_read = tiles / p * rows * (4 * columns + 2);
    EXPECT_EQ(stores_to(program, "Y.V.rows", Combine::none), 6 * columns_read * c) << place;
    EXPECT_EQ(stores_to(program, "Y.V.rows.tile", Combine::sum), 6 * 6 * columns_read * c) << place;
    EXPECT_EQ(stores_to(program, "Y.V", Combine::none), 36 * tiles * c) << place;
    EXPECT_EQ(stores_to(program, "Y.V.tile", Combine::sum), 36 * 6 * tiles * c) << place;
    EXPECT_EQ(stores_to(program, "Y.M", Combine::none), 36 * tiles * k) << place;
    EXPECT_EQ(stores_to(program, "Y.M.tile", Combine::sum), 36 * tiles * k * c) << place;
    EXPECT_EQ(stores_to(program, "Y.rows", Combine::none), 24 * tiles * k) << place;
    EXPECT_EQ(stores_to(program, "Y.rows.tile", Combine::sum), 24 * 6 * tiles * k) << place;
    const std::int64_t h = image.h + 2 * image.pad - 2, w = image.w + 2 * image.pad - 2;
    const bool is_whole = h % 4 == 0 && w % 4 == 0;
    EXPECT_EQ(stores_to(program, "Y", Combine::none), h * w * k) << place;
    EXPECT_EQ(stores_to(program, "Y.tiles", Combine::none), is_whole ? 0 : 16 * tiles * k) << place;
    EXPECT_EQ(stores_to(program, is_whole ? "Y.tile" : "Y.tiles.tile", Combine::sum), 16 * 6 * tiles * k) << place;
    const std::int64_t padded = c * ((4 * high + 2) * (4 * wide + 2) + image.h * image.w);
    EXPECT_EQ(stores_to(program, "P", Combine::none), image.pad == 0 ? 0 : padded) << place;
    EXPECT_EQ(stores_to(program, "X.pad", Combine::none), image.pad == 0 && !is_whole ? padded : 0) << place;

    const bool k_vector = spatial.starts_with("[\"vec"), k_unrolled = spatial.starts_with("[\"unroll");
    const bool p_vector = spatial.ends_with("vec\"]"), p_unrolled = spatial.ends_with("unroll\"]");
    EXPECT_EQ(trips_of(program, LoopKind::parallel, "Y.V.tile"), tiles / p) << place;
    EXPECT_EQ(trips_of(program, LoopKind::vector, "Y.V.tile"), columns) << place;
    EXPECT_EQ(trips_of(program, LoopKind::unrolled, "Y.V.tile"), 36 * 6 * rows) << place;
    EXPECT_EQ(trips_of(program, LoopKind::parallel, "Y.M.tile"), k / tk) << place;
    EXPECT_EQ(trips_of(program, LoopKind::vector, "Y.M.tile"), k_vector ? tk : p_vector ? columns : 1) << place;
    EXPECT_EQ(trips_of(program, LoopKind::unrolled, "Y.M.tile"), (k_unrolled ? tk : 1) *
                                                                     (p_unrolled ? p
                                                                      : p_vector ? rows
                                                                                 : 1) *
                                                                     (reduce == "[\"unroll\"]" ? tc : 1))
        << place;
    const std::int64_t at_once =
        trips_of(program, LoopKind::vector, "Y.M.tile") * trips_of(program, LoopKind::unrolled, "Y.M.tile");
    EXPECT_EQ(trips_of(program, LoopKind::serial, "Y.M.tile"), 36 * tiles * tk * c / at_once) << place;
  }
}

TEST(AutoTvmTemplates, WinogradTakesWhatItsKnobsFit) {
  const auto reason = [](std::string_view arguments, const std::string& entity) {
    const auto made = candidate_of("conv2d_nchw_winograd.arm_cpu", std::string(arguments), entity);
    return made.ok() ? std::string("made") : made.reason().text;
  };
  const std::string good = convolution({2, 6, 10, 13}, {12, 6, 3, 3}, "1, 1, 1");
  const std::string none = R"(["none"])", both = R"(["none", "none"])";
  const std::string usual = winograd_knobs(2, 4, 3, none, both);
  const char *other_operator = "arguments that we do not know",
             *other_knobs = "knobs that we do not know, or that do not fit the shapes";
  EXPECT_EQ(reason(good, usual), "made");
  EXPECT_EQ(reason(good, winograd_knobs(12, 4, 3, none, both)), "made");  // all of an image
  EXPECT_EQ(reason(good, winograd_knobs(24, 4, 3, none, both)),           // two images
            "tile_p is neither a part of a row of tiles nor whole rows");
  // Uneven padding is an index expression, with the operator's names.
  EXPECT_EQ(stores_to(rebuilt("conv2d_nchw_winograd.arm_cpu",
                              convolution({2, 6, 10, 13}, {12, 6, 3, 3}, "1, [0, 2, 1, 0], 1"), usual),
                      "Y.M.tile", Combine::sum),
            2 * 36 * 3 * 4 * 12 * 6);
  for (const char* other : {"2, 1, 1", "1, 1, 2"}) {
    EXPECT_EQ(reason(convolution({2, 6, 10, 13}, {12, 6, 3, 3}, other), usual), other_operator) << other;
  }
  EXPECT_EQ(reason(convolution({2, 6, 10, 13}, {12, 6, 5, 5}, "1, 1, 1"), usual), other_operator);
  EXPECT_EQ(reason(convolution({2, 6, 10, 13}, {12, 6, 3, 3}, R"(1, 1, 1, "float16")"), usual), other_operator);
  EXPECT_EQ(reason(good, winograd_knobs(5, 4, 3, none, both)), other_knobs);
  EXPECT_EQ(reason(good, winograd_knobs(2, 5, 3, none, both)), other_knobs);
  EXPECT_EQ(reason(good, winograd_knobs(2, 4, 4, none, both)), other_knobs);
  EXPECT_EQ(reason(good, winograd_knobs(0, 4, 3, none, both)), other_knobs);
  EXPECT_EQ(reason(good, winograd_knobs(2, 4, 3, R"(["vec"])", both)), other_knobs);
  EXPECT_EQ(reason(good, winograd_knobs(2, 4, 3, none, R"(["vec", "vec"])")), other_knobs);
  EXPECT_EQ(reason(good, winograd_knobs(2, 4, 3, none, none)), other_knobs);
  EXPECT_EQ(reason(good, usual + R"(, ["tile_x", "sp", [-1, 1]])"), other_knobs);
  EXPECT_EQ(reason(good, R"(["tile_p", "sp", [-1, 2]])"), other_knobs);
}

TEST(AutoTvmTemplates, TileSizesDoNotWrapAround) {
  // 2147418113 * 429509837 * 20 is 4, modulo 2^64.
  const std::string entity =
      R"(["tile_f", "sp", [-1, 2147418113, 429509837, 20]], ["tile_y", "sp", [-1, 1, 1, 1]], )"
      R"(["tile_x", "sp", [-1, 1, 1, 1]], ["tile_rc", "sp", [-1, 1]], ["tile_ry", "sp", [-1, 1]], )"
      R"(["tile_rx", "sp", [-1, 1]], ["auto_unroll_max_step", "ot", 0], ["unroll_explicit", "ot", 0])";
  const Dataset dataset =
      dataset_of(record("conv2d_nchw.cuda", convolution({1, 4, 8, 8}, {4, 4, 3, 3}, "[1, 1], [1, 1], [1, 1]"), entity));
  EXPECT_FALSE(dataset.sketches.at(0)->columns.empty());  // numbers only
}

TEST(AutoTvmTemplates, KernelsOfGpus) {
  for (std::uint64_t seed = 0; seed < configurations; ++seed) {
    base::Stream stream(seed, "gpu");
    const std::int64_t pad = stream.below(2), stride = 1 + stream.below(2);
    const std::int64_t h = (9 + 2 * pad - 3) / stride + 1, w = (11 + 2 * pad - 3) / stride + 1;
    const Numbers f = split(stream, 12, 4), y = split(stream, h, 4), x = split(stream, w, 4);
    const std::int64_t rc = divisor(stream, 6), ry = divisor(stream, 3), rx = divisor(stream, 3);
    const std::string tiles = fmt::format("{}, {}, {}", knob("tile_f", f), knob("tile_y", y), knob("tile_x", x));
    const std::string unroll = R"(["auto_unroll_max_step", "ot", 512], ["unroll_explicit", "ot", 0])";
    const std::string entity = fmt::format("{}, {}, {}, {}, {}", tiles, knob("tile_rc", {-1, rc}),
                                           knob("tile_ry", {-1, ry}), knob("tile_rx", {-1, rx}), unroll);
    const codegen::LoopProgram program = rebuilt(
        "conv2d_nchw.cuda", convolution({2, 6, 9, 11}, {12, 6, 3, 3}, fmt::format("{}, {}, 1", stride, pad)), entity);
    const std::int64_t bf = product(f), by = product(y), bx = product(x);
    const std::int64_t blocks = 2 * (12 / bf) * (h / by) * (w / bx), steps = (6 / rc) * (3 / ry) * (3 / rx);
    EXPECT_EQ(stores_to(program, "Y.tile", Combine::sum), 2 * 12 * h * w * 6 * 9) << entity;
    EXPECT_EQ(stores_to(program, pad == 0 ? "Y.X" : "Y.P", Combine::none),
              blocks * steps * rc * ((by - 1) * stride + ry) * ((bx - 1) * stride + rx))
        << entity;
    EXPECT_EQ(stores_to(program, "Y.W", Combine::none), blocks * steps * bf * rc * ry * rx) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::block_z), 2 * (12 / bf)) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::block_y), h / by) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::block_x), w / bx) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::virtual_thread), f[1] * y[1] * x[1]) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::thread_z), f[2]) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::thread_y), y[2]) << entity;
    EXPECT_EQ(trips_of(program, LoopKind::thread_x), x[2]) << entity;

    const std::string single_entity = fmt::format("{}, {}", tiles, unroll);
    const codegen::LoopProgram single =
        rebuilt("depthwise_conv2d_nchw.cuda",
                convolution({2, 12, 9, 11}, {12, 1, 3, 3}, fmt::format("{}, {}, 1", stride, pad)), single_entity);
    EXPECT_EQ(stores_to(single, "Y.tile", Combine::sum), 2 * 12 * h * w * 9) << single_entity;
    EXPECT_EQ(stores_to(single, pad == 0 ? "Y.X" : "Y.P", Combine::none),
              blocks * bf * ((by - 1) * stride + 3) * ((bx - 1) * stride + 3))
        << single_entity;
    EXPECT_EQ(stores_to(single, "Y.W", Combine::none), blocks * bf * 9) << single_entity;

    const Numbers ty = split(stream, 12, 3), tx = split(stream, 16, 3), k = split(stream, 24, 2);
    const std::string product_entity =
        fmt::format("{}, {}, {}, {}", knob("tile_y", ty), knob("tile_x", tx), knob("tile_k", k), unroll);
    const codegen::LoopProgram batched = rebuilt(
        "batch_matmul.cuda",
        R"(["TENSOR", [3, 12, 24], "float32"], ["TENSOR", [3, 24, 16], "float32"], [3, 12, 16], "float32", 0, 0)",
        product_entity);
    EXPECT_EQ(stores_to(batched, "C.tile", Combine::sum), 3 * 12 * 16 * 24) << product_entity;
    EXPECT_EQ(stores_to(batched, "C.A", Combine::none), 3 * (16 / product(tx)) * 12 * 24) << product_entity;
    EXPECT_EQ(stores_to(batched, "C.B", Combine::none), 3 * (12 / product(ty)) * 16 * 24) << product_entity;
    EXPECT_EQ(trips_of(batched, LoopKind::thread_x), tx[1]) << product_entity;

    const Numbers dx = split(stream, 12, 4), dy = split(stream, 16, 4), dk = split(stream, 24, 3);
    const std::string dense_entity =
        fmt::format("{}, {}, {}", knob("tile_x", dx), knob("tile_y", dy), knob("tile_k", dk));
    for (const char* weights : {"16, 24", "24, 16"}) {
      const codegen::LoopProgram dense = rebuilt(
          "dense_large_batch.gpu",
          fmt::format(R"(["TENSOR", [12, 24], "float32"], ["TENSOR", [{}], "float32"])", weights), dense_entity);
      EXPECT_EQ(stores_to(dense, "Y.tile", Combine::sum), 12 * 16 * 24) << dense_entity;
      EXPECT_EQ(stores_to(dense, "Y.X", Combine::none), (16 / product(dy)) * 12 * 24) << dense_entity;
      EXPECT_EQ(stores_to(dense, "Y.W", Combine::none), (12 / product(dx)) * 16 * 24) << dense_entity;
    }
  }
}

TEST(AutoTvm, OwnRowsComeBack) {
  const Folder folder;
  Dataset dataset = random_dataset(200, 3);
  write_dataset(dataset, folder / "own.h5");
  std::string log;
  const Counts counts =
      exported("autotvm", DatasetFile(folder / "own.h5"), [&](std::string_view text) { log += text; });
  EXPECT_EQ(counts.records, 200);
  const Dataset again = dataset_of(log);
  ASSERT_EQ(again.rows.size(), dataset.rows.size());
  for (std::size_t i = 0; i < again.rows.size(); ++i) {
    const Dataset::Row &before = dataset.rows[i], &after = again.rows[i];
    EXPECT_EQ(dataset.workloads[std::size_t(before.workload)], again.workloads[std::size_t(after.workload)]);
    const codegen::Sketch& sketch = *dataset.sketches[std::size_t(before.sketch)];
    EXPECT_EQ("graft." + sketch.name + "." + base::to_hex(sketch.hash),
              again.sketches[std::size_t(after.sketch)]->name);
    EXPECT_EQ(before.arguments, after.arguments);
    EXPECT_TRUE(same(before.measurement, after.measurement));
  }
}

TEST(AutoTvm, ExportsKeepProgramsApartAndFitTheImporter) {
  const auto program = [](int extent) {
    return std::make_shared<const codegen::Sketch>(codegen::Sketch::of_program(
        "program", codegen::parse_program(
                       fmt::format("buffer y f32 [{0}] output\nrun\n  for i {0}\n    y[i] = 1\n", extent), "test")));
  };
  const auto columns = [](std::string_view name, int count, std::string_view column) {
    return std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns(
        name, std::vector<codegen::Sketch::Column>(std::size_t(count), {std::string(column), {}})));
  };
  Dataset dataset = random_dataset(0, 1);
  Measurement measurement;
  measurement.seconds = {0.5};
  dataset.add({0, {codegen::Workload("fill"), program(4), {}}, 1, measurement});
  dataset.add({1, {codegen::Workload("fill"), program(8), {}}, 2, measurement});
  dataset.add({2, {codegen::Workload("fill"), columns(std::string(150, 'a'), 1, "c"), {1}}, 0, measurement});
  dataset.add({3, {codegen::Workload("fill"), columns("wide", 65, "c"), Numbers(65, 1)}, 0, measurement});
  dataset.add({4, {codegen::Workload("fill"), columns("named", 1, std::string(65, 'c')), {1}}, 0, measurement});
  const Folder folder;
  write_dataset(dataset, folder / "own.h5");
  std::string log;
  const Counts counts =
      exported("autotvm", DatasetFile(folder / "own.h5"), [&](std::string_view text) { log += text; });
  EXPECT_EQ(counts.records, 5);
  EXPECT_EQ(counts.rows, 3);
  EXPECT_EQ(counts.dropped, (Counts::ByName{{"more arguments than a record has knobs", 1},
                                            {"an argument whose name is too long for a knob", 1}}));
  const Dataset again = dataset_of(log);
  ASSERT_EQ(again.rows.size(), 3u);
  EXPECT_EQ(again.sketches.size(), 3u);
}

// The logs that others published (datasets/README.md), where a directory of them was named at configure time.
TEST(AutoTvm, PublishedLogsAreReadWhole) {
  const std::filesystem::path folder = std::filesystem::path(GRAFT_REAL_DATA) / "autotvm-logs";
  if (std::string_view(GRAFT_REAL_DATA).empty() || !std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no published logs: configure with -DGRAFT_REAL_DATA=DIR, which holds autotvm-logs/*.log.gz";
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().string().ends_with("droplet.log.gz")) continue;
    ++files;
    // Counted without our reader: lines, and names of templates in them.
    const std::string text = base::read_file(entry.path());
    std::map<std::string, std::int64_t> raw;
    std::int64_t lines = 0;
    for (const std::string_view line : base::split(text, '\n')) {
      if (line.empty()) continue;
      ++lines;
      const std::size_t name = line.find("\", \"") + 4;
      ++raw[std::string(line.substr(name, line.find('"', name) - name))];
    }
    Import import = run(entry.path());
    const Counts& counts = import.dataset().counts();
    EXPECT_EQ(counts.records, lines) << entry.path();
    EXPECT_EQ(counts.rows, lines) << entry.path();
    for (const auto& [name, rows] : raw) EXPECT_EQ(counts.templates.at(name).rows, rows) << entry.path() << " " << name;
    EXPECT_EQ(counts.templates.size(), raw.size()) << entry.path();
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace graft::datasets::formats
