#include "meta/kept_measurements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "datasets/groups.h"
#include "meta/methods/kernel_model.h"
#include "meta/model_file.h"
#include "tests/base/support.h"

namespace graft::meta {
namespace {

// Programs of two workloads: `first` of one and `second` of the other, with times 1, 2, 3, ... of each.
datasets::Dataset measured(std::int64_t first, std::int64_t second, const std::string& platform = "board") {
  datasets::Dataset out;
  out.platform = platform;
  out.source = "remote";
  out.platform_yaml = "name: " + platform;
  out.target.triple = "x86_64-unknown-linux-gnu";
  out.target.cpu = "x86-64-v3";
  out.target.vector_bits = 256;
  out.target.vector_registers = 16;
  out.sketches.push_back(
      std::make_shared<const codegen::Sketch>(codegen::parse_sketch("sketch s\ntile C i $n\n", "sketch")));
  for (const std::int64_t count : {first, second}) {
    out.workloads.push_back(
        codegen::parse_workload(out.workloads.empty() ? "matmul(m=8,n=8,k=8)" : "matmul(m=16,n=8,k=8)"));
    for (std::int64_t i = 0; i < count; ++i) {
      datasets::Measurement measurement;
      measurement.seconds = {double(i + 1)};
      out.rows.push_back({int(out.workloads.size()) - 1,
                          0,
                          {i + 1},
                          std::uint64_t(1000 * out.workloads.size() + std::size_t(i)),
                          measurement});
    }
  }
  return out;
}

std::vector<double> seconds_in(const datasets::Dataset& data, int workload) {
  std::vector<double> out;
  for (const datasets::Dataset::Row& row : data.rows) {
    if (row.workload == workload) out.push_back(datasets::seconds_of(row.measurement));
  }
  return out;
}

TEST(KeptMeasurements, AreSpreadEvenlyFromTheFastest) {
  const datasets::Dataset thin = thinned(measured(100, 3), 13);
  EXPECT_EQ(seconds_in(thin, 0), (std::vector<double>{1, 11, 21, 31, 41, 51, 61, 71, 81, 91}));
  EXPECT_EQ(seconds_in(thin, 1), (std::vector<double>{1, 2, 3}));  // all of a small one
  EXPECT_EQ(thinned(measured(5, 3), 100).rows.size(), 8u);
}

TEST(KeptMeasurements, HoldOnlyWhatRan) {
  datasets::Dataset data = measured(4, 1);
  data.rows[0].measurement = {};
  data.rows[0].measurement.status = datasets::Status::crashed;
  data.rows[2].program_hash = data.rows[1].program_hash;  // the same program
  EXPECT_EQ(seconds_in(thinned(data, 100), 0), (std::vector<double>{2, 4}));
}

TEST(KeptMeasurements, AreBoundedInTotal) {
  std::vector<datasets::Dataset> many;
  for (int p = 0; p < 10; ++p) many.push_back(measured(900, 900, "p" + std::to_string(p)));
  const std::vector<datasets::Dataset> kept = thinned(many);
  EXPECT_LE(programs_in(kept), most_kept);
  EXPECT_EQ(kept.size(), 10u);
  EXPECT_EQ(programs_in(thinned({measured(900, 900)})), most_kept_of_a_platform);
}

TEST(KeptMeasurements, AreTheSameInAFile) {
  const base::Folder folder;
  const std::vector<datasets::Dataset> kept = {measured(3, 2), measured(1, 2, "other")};
  const features::Encoding& encoding = features::encoding_named("context_relation");
  const auto model = make_scratch_model(std::int64_t(encoding.features.size()));
  save_model(*model, encoding, base::Document::map(), "", folder / "kept.h5", {}, kept);
  save_model(*model, encoding, base::Document::map(), "", folder / "none.h5");
  const ModelFile file = load_model(folder / "kept.h5");
  ASSERT_EQ(file.kept.size(), 2u);
  EXPECT_NE(file.hash, load_model(folder / "none.h5").hash);
  for (std::size_t p = 0; p < 2; ++p) {
    EXPECT_EQ(file.kept[p].platform, kept[p].platform);
    EXPECT_EQ(file.kept[p].source, "remote");
    EXPECT_EQ(file.kept[p].platform_yaml, kept[p].platform_yaml);
    EXPECT_EQ(file.kept[p].target, kept[p].target);
    ASSERT_EQ(file.kept[p].rows.size(), kept[p].rows.size());
    for (std::size_t r = 0; r < kept[p].rows.size(); ++r) {
      const datasets::Dataset::Row &read = file.kept[p].rows[r], &row = kept[p].rows[r];
      EXPECT_EQ(codegen::hash(file.kept[p].candidate(read)), codegen::hash(kept[p].candidate(row)));
      EXPECT_EQ(read.program_hash, row.program_hash);
      EXPECT_EQ(datasets::seconds_of(read.measurement), datasets::seconds_of(row.measurement));
    }
  }
}

// Rows of a table: of a number and of a word.
datasets::Dataset table() {
  datasets::Dataset out = measured(3, 0);
  out.sketches = {std::make_shared<const codegen::Sketch>(
      codegen::parse_sketch("sketch t\ncolumns $tile $order{ijk|ikj}\n", "sketch"))};
  out.workloads = {codegen::Workload("table(name=sum)")};
  for (datasets::Dataset::Row& row : out.rows) row.arguments.push_back(row.arguments.front() % 2);
  return out;
}

TEST(KeptMeasurements, AreRowsOfTablesToo) {
  const datasets::Dataset given = table();
  const std::vector<datasets::Dataset> read = kept_measurements_from(to_document({given}));
  ASSERT_EQ(read.front().rows.size(), 3u);
  for (std::size_t r = 0; r < 3; ++r)
    EXPECT_EQ(codegen::hash(read.front().candidate(read.front().rows[r])),
              codegen::hash(given.candidate(given.rows[r])));
  datasets::Dataset wrong = table();
  wrong.rows.front().arguments.back() = 2;  // `order` has two values
  EXPECT_THROW(kept_measurements_from(to_document({wrong})), base::UserError);
  wrong = measured(1, 0);
  wrong.workloads = {codegen::Workload("table(name=sum)")};  // steps of nothing
  EXPECT_THROW(kept_measurements_from(to_document({wrong})), base::UserError);
}

TEST(KeptMeasurements, AreReadStrictly) {
  const std::string text = to_document({measured(1, 1)}).to_json();
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string changed = text;
    const std::size_t at = changed.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    changed.replace(at, part.size(), other);
    return base::parse_json(changed, "kept");
  };
  EXPECT_EQ(kept_measurements_from(base::parse_json(text, "kept")).front().rows.size(), 2u);
  EXPECT_THROW(kept_measurements_from(with("[0,0,\"", "[7,0,\"")), base::UserError);  // no such workload
  EXPECT_THROW(kept_measurements_from(with("\"platform\":", "\"platfrom\":")), base::UserError);
  EXPECT_THROW(kept_measurements_from(with("\"rows\":[[", "\"rows\":[[],[")), base::UserError);
  EXPECT_THROW(kept_measurements_from(with(",1]]", ",1,1]]")), base::UserError);  // one argument
}

}  // namespace
}  // namespace graft::meta
