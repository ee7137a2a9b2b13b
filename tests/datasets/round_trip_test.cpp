// Exported files can be imported: the same rows, as far as the format can express them (datasets/formats/README.md).

#include "codegen/schedule/candidate_program.h"
#include "codegen/space/space.h"
#include "tests/datasets/formats_support.h"
#include "tests/support/judged_space.h"

namespace graft::datasets::formats {
namespace {

constexpr const char* platforms[] = {"native:v3", "model:sifive-p450", "native,threads=2", "import:board.7_x-y"};

// Rows of every status: samples of derived spaces, programs of others, columns.
Dataset any_dataset(std::uint64_t seed, const std::string& platform) {
  Dataset dataset = random_dataset(0, seed);
  dataset.platform = platform;
  base::Stream stream(seed, "round trip");
  std::vector<codegen::Candidate> candidates;
  for (const char* text :
       {"matmul(m=24,n=32,k=16)", "conv2d(c=8,h=12,w=12,k=16,r=3,s=3,pad=1)", "conv2d_nchwc(c=16,h=9,w=9,k=16,r=3,s=3)",
        "input A[12,20]; output C[i] max= A[i,j] where i=12, j=20"}) {
    const codegen::Workload workload = codegen::parse_workload(text);
    const codegen::JudgedSpace space = codegen::judged_space(workload, dataset.target);
    for (int i = 0; i < 6; ++i) candidates.push_back(space.sample(stream));
    if (const auto program = codegen::program(candidates.back(), dataset.target))
      candidates.push_back(
          {workload, std::make_shared<const codegen::Sketch>(codegen::Sketch::of_program("by_hand", *program)), {}});
  }
  const auto columns = std::make_shared<const codegen::Sketch>(
      codegen::Sketch::of_columns("net", {{"real", {"0.5", "2"}}, {"n", {}}, {"word", {"x, \"y\"", "z"}}}));
  for (int i = 0; i < 6; ++i)
    candidates.push_back(
        {codegen::Workload("table(name=net)"), columns, {stream.below(2), stream.below(99), stream.below(2)}});
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto program = codegen::program(candidates[i], dataset.target);
    dataset.add({std::int64_t(i), candidates[i], program ? codegen::hash(*program) : 0,
                 random_trial(std::int64_t(i), seed).measurement});
  }
  return dataset;
}

// As it is again after both, by its own name; where the format names platforms, `*` gives the same.
Dataset back(const std::string& format, const Dataset& dataset) {
  const Folder folder;
  write_plainly(folder / "exported", exported_text(format, dataset));
  const std::string name(platform_name(dataset.platform));
  const auto all = imported_platforms(format, folder, {folder / "exported"}, name);
  EXPECT_EQ(all.size(), 1u);
  Dataset again = all.at(name).dataset;
  EXPECT_EQ(again.platform, "import:" + name);
  EXPECT_EQ(all.at(name).counts.dropped, Counts::ByName());
  if (format != "autotvm") {
    const auto every = imported_platforms(format, folder, {folder / "exported"}, "*");
    EXPECT_EQ(every.size(), 1u);
    EXPECT_TRUE(same(every.at(name).dataset, again));
  }
  EXPECT_TRUE(exported_text(format, again) == exported_text(format, dataset));
  return again;
}

template <class Check>
void for_each_dataset(Check check) {
  std::uint64_t seed = 0;
  for (const char* platform : platforms) {
    ++seed;
    SCOPED_TRACE(std::string(platform) + ", seed " + std::to_string(seed));
    check(any_dataset(seed, platform));
  }
}

TEST(RoundTrip, ProgramsComeBackWhole) {
  for_each_dataset([](const Dataset& dataset) {
    const Dataset again = back("programs", dataset);
    std::size_t r = 0;
    for (const Dataset::Row& row : dataset.rows) {
      const auto program = codegen::program(dataset.candidate(row), dataset.target);
      if (!program) continue;
      ASSERT_LT(r, again.rows.size());
      const Dataset::Row& other = again.rows[r++];
      const codegen::Candidate candidate = again.candidate(other);
      EXPECT_EQ(candidate.workload, dataset.candidate(row).workload);
      EXPECT_EQ(other.program_hash, row.program_hash);
      EXPECT_EQ(*codegen::program(candidate, again.target), *program);
      EXPECT_TRUE(same(other.measurement, row.measurement));
    }
    EXPECT_EQ(r, again.rows.size());
    EXPECT_GT(r, 12u);
  });
}

TEST(RoundTrip, TablesKeepWorkloadsTimesAndArguments) {
  for_each_dataset([](const Dataset& dataset) {
    const Dataset again = back("table", dataset);
    std::size_t r = 0;
    for (const Dataset::Row& row : dataset.rows) {
      if (row.measurement.status != Status::ok) continue;
      ASSERT_LT(r, again.rows.size());
      const Dataset::Row& other = again.rows[r++];
      EXPECT_EQ(again.candidate(other).workload, dataset.candidate(row).workload);
      EXPECT_EQ(other.measurement.seconds, std::vector<double>{seconds_of(row.measurement)});
    }
    EXPECT_EQ(r, again.rows.size());
    EXPECT_GT(r, 12u);
  });
}

TEST(RoundTrip, AutoTvmKeepsWorkloadsArgumentsAndMeasurements) {
  for_each_dataset([](const Dataset& dataset) {
    const Dataset again = back("autotvm", dataset);
    ASSERT_EQ(again.rows.size(), dataset.rows.size());
    for (std::size_t i = 0; i < dataset.rows.size(); ++i) {
      const Dataset::Row &row = dataset.rows[i], &other = again.rows[i];
      EXPECT_EQ(again.candidate(other).workload, dataset.candidate(row).workload);
      // A record without knobs becomes one of the knob "nothing".
      EXPECT_EQ(other.arguments, row.arguments.empty() ? std::vector<std::int64_t>{0} : row.arguments);
      EXPECT_TRUE(same(other.measurement, row.measurement));
    }
    // Candidates that differ stay apart, and equal ones together.
    for (std::size_t a = 0; a < dataset.rows.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const auto equal = [&](const Dataset& of) {
          return codegen::hash(of.candidate(of.rows[a])) == codegen::hash(of.candidate(of.rows[b]));
        };
        EXPECT_EQ(equal(again), equal(dataset)) << a << ", " << b;
      }
    }
  });
}

// An argument may have the name of another column.
TEST(RoundTrip, NamesOfColumnsStayApart) {
  Dataset dataset = random_dataset(0, 1);
  dataset.platform = "import:seconds";
  Measurement measurement;
  measurement.seconds = {0.5};
  const auto sketch = [](const char* name) {
    return std::make_shared<const codegen::Sketch>(
        codegen::Sketch::of_columns(name, {{"sketch", {}}, {"seconds", {}}, {"graft_workload", {}}}));
  };
  dataset.add({0, {codegen::Workload("a"), sketch("x"), {1, 2, 3}}, 0, measurement});
  dataset.add({1, {codegen::Workload("b"), sketch("y"), {1, 2, 4}}, 0, measurement});
  const std::string text = exported_text("table", dataset);
  EXPECT_TRUE(text.starts_with("graft_workload,sketch,sketch_,seconds_,graft_workload_,seconds\n")) << text;
  EXPECT_EQ(back("table", dataset).rows.size(), 2u);
}

// What importing reads out of tables of others, units and tuples, is not read out of ours.
TEST(RoundTrip, NamesAndWordsOfTablesMeanNothing) {
  for (const char* platform : {"import:fps", "import:mean_time_ms", "import:board_latency_us"}) {
    SCOPED_TRACE(platform);
    Dataset dataset = random_dataset(0, 1);
    dataset.platform = platform;
    Measurement measurement;
    const auto sketch = std::make_shared<const codegen::Sketch>(
        codegen::Sketch::of_columns("x", {{"tile", {"(1, 2)", "(4, 8)"}}, {"time(ms)", {}}}));
    for (int i = 0; i < 3; ++i) {
      measurement.seconds = {0.5 + i};
      dataset.add({i, {codegen::Workload("a"), sketch, {i % 2, 7}}, 0, measurement});
    }
    const Dataset again = back("table", dataset);
    ASSERT_EQ(again.rows.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(again.rows[i].measurement.seconds, dataset.rows[i].measurement.seconds);
      EXPECT_EQ(again.rows[i].arguments, (std::vector<std::int64_t>{std::int64_t(i) % 2, 0}));
    }
  }
}

}  // namespace
}  // namespace graft::datasets::formats
