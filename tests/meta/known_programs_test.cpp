#include "meta/known_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "features/encoding.h"
#include "meta/methods/kernel_model.h"
#include "meta/model_file.h"
#include "tests/base/support.h"

namespace graft::meta {
namespace {

datasets::Dataset shipped(const std::string& name) {
  return datasets::read_dataset(std::filesystem::path(GRAFT_SOURCE_DIR) / "datasets/shipped" / (name + ".h5"));
}

// Seconds of the fastest ok row of the workload; of the candidate's rows alone if one is given.
double fastest(const datasets::Dataset& dataset, const codegen::Workload& workload,
               const codegen::Candidate* of = nullptr) {
  double seconds = INFINITY;
  for (const datasets::Dataset::Row& row : dataset.rows) {
    if (!(dataset.workloads[std::size_t(row.workload)] == workload)) continue;
    if (row.measurement.status != datasets::Status::ok) continue;
    if (of != nullptr && codegen::hash(dataset.candidate(row)) != codegen::hash(*of)) continue;
    seconds = std::min(seconds, datasets::seconds_of(row.measurement));
  }
  return seconds;
}

TEST(KnownPrograms, AreTheFastestOfEachWorkloadOverAllFilesOfAPlatform) {
  const std::vector<datasets::Dataset> data = {shipped("model-cortex-a72"), shipped("model-cortex-a72-more"),
                                               shipped("model-haswell")};
  const std::vector<KnownPrograms> known = fastest_programs(data);
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(count(known), 48u);
  for (const KnownPrograms& platform : known) {
    EXPECT_EQ(platform.fastest.size(), 24u);
    EXPECT_EQ(platform.target, platform.platform == "model:haswell" ? data[2].target : data[0].target);
    for (const codegen::Candidate& program : platform.fastest) {
      double least = INFINITY, own = INFINITY;
      for (const datasets::Dataset& dataset : data) {
        if (dataset.platform != platform.platform) continue;
        least = std::min(least, fastest(dataset, program.workload));
        own = std::min(own, fastest(dataset, program.workload, &program));
      }
      EXPECT_EQ(own, least) << platform.platform << " " << program.workload.text();
    }
  }
}

TEST(KnownPrograms, AreOfSchedulesThatStillGiveWhatWasMeasured) {
  datasets::Dataset dataset = shipped("model-haswell");
  for (datasets::Dataset::Row& row : dataset.rows) row.program_hash ^= 1;
  EXPECT_TRUE(fastest_programs({&dataset, 1}).empty());
  for (datasets::Dataset::Row& row : dataset.rows) row.measurement.status = datasets::Status::timed_out;
  EXPECT_TRUE(fastest_programs({&dataset, 1}).empty());
}

TEST(KnownPrograms, AreAddedOnce) {
  const datasets::Dataset haswell = shipped("model-haswell"), znver4 = shipped("model-znver4");
  std::vector<KnownPrograms> known = fastest_programs({&haswell, 1});
  const std::vector<KnownPrograms> first = known;
  add(known, first);
  EXPECT_EQ(to_document(known), to_document(first));
  add(known, fastest_programs({&znver4, 1}));
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(count(known), 48u);
  // Another program of a known workload.
  KnownPrograms more{"model:haswell", haswell.target, {known[0].fastest[0]}};
  ++more.fastest[0].arguments.at(0);
  add(known, {more});
  EXPECT_EQ(known[0].fastest.size(), 25u);
  EXPECT_EQ(known[0].fastest.back().workload, known[0].fastest[0].workload);
}

TEST(KnownPrograms, AreTheSameAsDocuments) {
  const datasets::Dataset dataset = shipped("model-haswell");
  const std::vector<KnownPrograms> known = fastest_programs({&dataset, 1});
  const base::Document document = to_document(known);
  EXPECT_LT(document.at("sketches").as_list().size(), count(known));  // each once
  const std::vector<KnownPrograms> again = known_programs_from(base::parse_json(document.to_json(), "known"));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].platform, "model:haswell");
  EXPECT_EQ(again[0].target, dataset.target);
  ASSERT_EQ(again[0].fastest.size(), known[0].fastest.size());
  for (std::size_t p = 0; p < known[0].fastest.size(); ++p)
    EXPECT_EQ(codegen::hash(again[0].fastest[p]), codegen::hash(known[0].fastest[p]));
  const auto refuses = [](const base::Document& odd) { EXPECT_THROW(known_programs_from(odd), base::UserError); };
  refuses(base::Document(document).set("sketches", base::Document::list()));
  refuses(base::Document(document).set("more", 1));
  base::Document platform = document.at("platforms").as_list()[0];
  platform.set("target", base::Document::map());
  refuses(base::Document(document).set("platforms", base::Document::list().push(platform)));
}

TEST(KnownPrograms, ArePartOfAModelsFileAndOfItsHash) {
  const datasets::Dataset dataset = shipped("model-haswell");
  std::vector<KnownPrograms> known = fastest_programs({&dataset, 1});
  const features::Encoding& encoding = features::encoding_named("context_relation");
  const auto model = make_scratch_model(std::int64_t(encoding.features.size()));
  const base::Folder folder;
  const std::filesystem::path path = folder / "model.h5";
  save_model(*model, encoding, base::Document::map(), "", path, known);
  const ModelFile file = load_model(path);
  EXPECT_EQ(to_document(file.known), to_document(known));
  EXPECT_EQ(file.model->state(), model->state());
  known[0].fastest.pop_back();
  save_model(*model, encoding, base::Document::map(), "", path, known);
  EXPECT_NE(load_model(path).hash, file.hash);
}

}  // namespace
}  // namespace graft::meta
