#include "datasets/formats/programs.h"

#include <algorithm>

#include "codegen/schedule/candidate_program.h"
#include "tests/datasets/formats_support.h"

namespace graft::datasets::formats {
namespace {

// The example of the room's README.
constexpr std::string_view tiled =
    R"("buffer A f32 [64,64] input\nbuffer B f32 [64,64] input\nbuffer C f32 [64,64] output\nrun\n)"
    R"(  for i 64\n    for j 64\n      C[i,j] = 0\n)"
    R"(  for i.0 8\n    for l 64\n      for i.1 8\n        for j 64\n)"
    R"(          C[8*i.0 + i.1,j] += A[8*i.0 + i.1,l] * B[l,j]\n")";
constexpr std::string_view scaled = R"({"buffers": [{"name": "x", "dtype": "f32", "shape": [8], "role": "input"},
  {"name": "y", "dtype": "f32", "shape": [8], "role": "output"}],
  "run": [{"for": "i", "extent": 8, "body": [{"store": "y[i] = 2 * x[i]"}]}]})";

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string record(std::string_view program, std::string_view rest = R"("seconds": [0.5, 0.25])",
                   std::string_view workload = "matmul(m=64,n=64,k=64)") {
  return one_line(R"({"workload": ")" + std::string(workload) + R"(", "program": )" + std::string(program) + ", " +
                  std::string(rest) + "}") +
         "\n";
}

TEST(ProgramsFormat, LinesBecomeProgramsWithTimes) {
  const Imported in =
      imported_text("programs", "nests.jsonl",
                    record(tiled) + record(tiled, R"("seconds": [0.75], "name": "again", "clock": "wall")") + "\n" +
                        record(scaled, R"("seconds": [1e-6])", "scale_8") +
                        record(scaled, R"("status": "crashed", "reason": "signal 11")", "scale_8"));
  const Dataset& data = in.dataset;
  ASSERT_EQ(data.rows.size(), 4u);
  EXPECT_EQ(data.workloads, (std::vector<codegen::Workload>{codegen::Workload("matmul(m=64,n=64,k=64,dtype=f32)"),
                                                            codegen::Workload("scale_8")}));
  EXPECT_EQ(data.rows[0].measurement.seconds, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(data.rows[1].measurement.clock, "wall");
  EXPECT_EQ(data.sketches[std::size_t(data.rows[1].sketch)]->name, "again");
  EXPECT_EQ(data.rows[3].measurement.status, Status::crashed);
  EXPECT_EQ(data.rows[3].measurement.reason, "signal 11");
  // What was imported is the program, for every later stage.
  const auto program = codegen::program(data.candidate(data.rows[0]), data.target);
  ASSERT_TRUE(program);
  EXPECT_EQ(codegen::hash(*program), data.rows[0].program_hash);
  EXPECT_EQ(data.rows[0].program_hash, data.rows[1].program_hash);
  ASSERT_EQ(program->loops.size(), 6u);
  EXPECT_EQ(program->loops[2].extent, 8);
  EXPECT_EQ(program->loops[3].extent, 64);
  EXPECT_EQ(in.counts.templates.at("program").with_program, 4);
}

TEST(ProgramsFormat, PlatformsAreTakenApart) {
  const Folder folder;
  const auto of = [](std::string_view platform) {
    return record(tiled, R"("seconds": [1], "platform": ")" + std::string(platform) + "\"");
  };
  write_plainly(folder / "in", of("a") + of("import:b") + of("b"));
  const auto all = imported_platforms("programs", folder, {folder / "in"}, "*");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at("b").dataset.rows.size(), 2u);
  for (const char* name : {"a", "import:a"}) {
    const auto one = imported_platforms("programs", folder, {folder / "in"}, name);
    ASSERT_TRUE(one.contains("a")) << name;
    EXPECT_EQ(one.at("a").dataset.rows.size(), 1u);
    EXPECT_EQ(one.at("a").counts.dropped.at("of another platform"), 2);
  }
  EXPECT_TRUE(
      contains(message_of<base::UserError>([&] { imported_platforms("programs", folder, {folder / "in"}, "c"); }),
               "holds no record of platform c, but of a, b; give its name, or '*'"));
  write_plainly(folder / "in", of("a") + of("../b"));
  EXPECT_TRUE(contains(
      message_of<base::UserError>([&] { imported_platforms("programs", folder, {folder / "in"}, "*", {}, true); }),
      "in:2: '../b' is not a name of a platform"));
  write_plainly(folder / "in", record(tiled));
  EXPECT_TRUE(contains(
      message_of<base::UserError>([&] { imported_platforms("programs", folder, {folder / "in"}, "*", {}, true); }),
      "in:1: missing key 'platform'"));
}

std::string with(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  result.replace(result.find(from), from.size(), to);
  return result;
}

TEST(ProgramsFormat, BrokenLinesAreRefused) {
  std::string deep = R"({"for": "x", "extent": 2, "body": [)";
  std::string nest, close;
  for (int i = 0; i < 90; ++i) {
    nest += deep;
    close += "]}";
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) many += ", 1";
  const std::pair<std::string, const char*> refusals[] = {
      {"{\n", "in:1"},
      {R"({"workload": "scale_8"})", "in:1: missing key 'program'"},
      {record(tiled, R"("seconds": [])"), "in:1: status ok without a time"},
      {record(tiled, R"("seconds": [-1])"), "in:1: a time of -1 seconds"},
      {record(tiled, R"("seconds": [0])"), "in:1: a time of 0 seconds"},
      {record(tiled, R"("seconds": [NaN])"), "in:1"},
      {record(tiled, R"("seconds": [1e999])"), "in:1"},
      {record(tiled, R"("seconds": [1], "seconds": [2])"), "seconds"},
      {record(tiled, R"("second": [1])"), "unknown key 'second'; did you mean 'seconds'"},
      {record(tiled, R"("status": "broken")"), "unknown status 'broken'"},
      {record(tiled) + record(with(tiled, "B[l,j]", "B[l,j + 1]")), "in:2: program:12"},
      {record(with(tiled, "B[l,j]", "B[x,j]")), "no loop 'x' around this store"},
      {record(with(tiled, "for l 64", "for l 0")), "in:1: program:9"},
      {record(with(tiled, "[64,64] output", "[64,65] output")),
       "the program's parameters are A f32 [64,64] input, B f32 [64,64] input, C f32 [64,65] output; those of "
       "matmul(m=64,n=64,k=64,dtype=f32) are"},
      {record(tiled, R"("seconds": [1])", "matmul(m=64,n=64,kk=64)"), "in:1: workload"},
      {record(with(scaled, "[8], \"role\": \"output\"", "[1000000000000, 1000000000000], \"role\": \"output\""),
              R"("seconds": [1])", "x"),
       "in:1: program.buffers[1]"},
      {record(with(scaled, R"({"store": "y[i] = 2 * x[i]"})", nest + R"({"store": "y[i] = 2 * x[i]"})" + close),
              R"("seconds": [1])", "x"),
       "more than 64 loops"},
      {record(tiled, "\"seconds\": [1" + many + "]"), "in:1: a record of 1001 times; at most 1000 are read"},
      {record(scaled, R"("seconds": [1], "platform": "q")", "x"),
       "in: holds no record of platform p, but of q; give its name"},
  };
  for (const auto& [text, words] : refusals) {
    const std::string message = refusal_of("programs", text);
    EXPECT_TRUE(contains(message, words)) << text << ": " << message;
  }
}

TEST(ProgramsFormat, OurOwnProgramsComeBack) {
  Dataset data = random_dataset(0, 1);
  const codegen::Workload workload = codegen::parse_workload("matmul(m=8,n=8,k=8)");
  const auto sketch = std::make_shared<const codegen::Sketch>(codegen::parse_sketch("sketch s\ntile C i $n\n", "test"));
  Measurement measurement;
  measurement.seconds = {0.5};
  data.add({0, {workload, sketch, {4}}, 1, measurement});
  data.add({1, {workload, sketch, {0}}, 1, measurement});  // does not lower
  data.add({2,
            {codegen::Workload("table(name=x)"),
             std::make_shared<const codegen::Sketch>(codegen::Sketch::of_columns("x", {{"a", {}}})),
             {1}},
            0,
            measurement});
  const std::string text = exported_text("programs", data);
  const Folder folder;
  write_plainly(folder / "in", text);
  const auto back = imported_platforms("programs", folder, {folder / "in"}, "native:v3");
  ASSERT_EQ(back.at("native:v3").dataset.rows.size(), 1u);
  const Dataset& own = back.at("native:v3").dataset;
  EXPECT_EQ(*codegen::program(own.candidate(own.rows[0]), own.target),
            *codegen::program(data.candidate(data.rows[0]), data.target));
  EXPECT_EQ(own.rows[0].measurement.seconds, std::vector<double>{0.5});
}

}  // namespace
}  // namespace graft::datasets::formats
