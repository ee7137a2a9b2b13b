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
  const std::vector<KnownProgram> known = fastest_programs(data);
  EXPECT_EQ(known.size(), 48u);  // 24 workloads of each platform
  for (const KnownProgram& program : known) {
    double least = INFINITY, own = INFINITY;
    for (const datasets::Dataset& dataset : data) {
      if (dataset.platform != program.platform) continue;
      least = std::min(least, fastest(dataset, program.candidate.workload));
      own = std::min(own, fastest(dataset, program.candidate.workload, &program.candidate));
    }
    EXPECT_EQ(own, least) << program.platform << " " << program.candidate.workload.text;
  }
}

TEST(KnownPrograms, AreOfSchedulesThatStillGiveWhatWasMeasured) {
  datasets::Dataset dataset = shipped("model-haswell");
  for (datasets::Dataset::Row& row : dataset.rows) row.program_hash ^= 1;
  EXPECT_TRUE(fastest_programs({&dataset, 1}).empty());
  for (datasets::Dataset::Row& row : dataset.rows) row.measurement.status = datasets::Status::timed_out;
  EXPECT_TRUE(fastest_programs({&dataset, 1}).empty());
}

TEST(KnownPrograms, AreTheSameAsDocuments) {
  const datasets::Dataset dataset = shipped("model-haswell");
  const std::vector<KnownProgram> known = fastest_programs({&dataset, 1});
  const base::Document document = to_document(known);
  EXPECT_LT(document.at("sketches").as_list().size(), known.size());  // each once
  const std::vector<KnownProgram> again = known_programs_from(base::parse_json(document.to_json(), "known"));
  ASSERT_EQ(again.size(), known.size());
  for (std::size_t p = 0; p < known.size(); ++p) {
    EXPECT_EQ(again[p].platform, known[p].platform);
    EXPECT_EQ(codegen::hash(again[p].candidate), codegen::hash(known[p].candidate));
  }
  base::Document odd = document;
  odd.set("sketches", base::Document::list());
  EXPECT_THROW(known_programs_from(odd), base::UserError);
  odd = document;
  odd.set("more", 1);
  EXPECT_THROW(known_programs_from(odd), base::UserError);
}

TEST(KnownPrograms, ArePartOfAModelsFileAndOfItsHash) {
  const datasets::Dataset dataset = shipped("model-haswell");
  std::vector<KnownProgram> known = fastest_programs({&dataset, 1});
  const features::Encoding& encoding = features::encoding_named("context_relation");
  const auto model = make_scratch_model(std::int64_t(encoding.features.size()));
  const base::Folder folder;
  const std::filesystem::path path = folder / "model.h5";
  save_model(*model, encoding, base::Document::map(), "", path, known);
  const ModelFile file = load_model(path);
  EXPECT_EQ(to_document(file.known), to_document(known));
  EXPECT_EQ(file.model->state(), model->state());
  known.pop_back();
  save_model(*model, encoding, base::Document::map(), "", path, known);
  EXPECT_NE(load_model(path).hash, file.hash);
}

}  // namespace
}  // namespace graft::meta
