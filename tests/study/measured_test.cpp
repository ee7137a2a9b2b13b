// What searches measured, as datasets.
#include "study/knowledge/measured.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "search/run_directory.h"
#include "tests/base/support.h"
#include "tests/study/support.h"
#include "tests/support/refusal.h"

namespace graft::study {
namespace {

using codegen::contains;
using codegen::refusal;

// A run of `trials` trials on a platform of this description.
void make_run(const std::filesystem::path& folder, const std::string& platform, std::uint64_t seed, int trials,
              const std::string& clock = "1 GHz") {
  const std::string id = "model:" + platform;
  const std::string yaml = tasks::platform_named(id).yaml + "# " + clock + "\n";
  std::filesystem::create_directories(folder.parent_path());
  search::RunDirectory run(folder, base::Document::map().set("command", "tune").set("platform", id),
                           base::Document::map(), yaml);
  base::Stream stream(seed, "measured");
  for (int i = 0; i < trials; ++i) run.append(trial_of(stream, i, seed * 100 + std::uint64_t(i), 1e-3 * double(i + 1)));
}

TEST(Measured, IsOfRunsOfFoldersOfRunsAndOfDatasets) {
  const base::Folder folder;
  make_run(folder / "lab/a53/one", "cortex-a53", 1, 4);
  make_run(folder / "lab/a53/two", "cortex-a53", 2, 3);
  make_run(folder / "lab/a53/two.before-1", "cortex-a53", 3, 5);  // of what was another machine
  make_run(folder / "haswell", "haswell", 4, 2);
  const auto data = measured_in({folder / "lab", folder / "haswell"});
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(data[0].platform, "model:cortex-a53");
  EXPECT_EQ(data[0].source, "modelled");
  EXPECT_EQ(data[0].target, tasks::platform_named("model:cortex-a53").target);
  EXPECT_EQ(data[0].rows.size(), 7u);
  EXPECT_EQ(data[1].rows.size(), 2u);
  EXPECT_EQ(measured_in({folder / "lab/a53/two.before-1"}).front().rows.size(), 5u);  // if it is named
  datasets::write_dataset(data[1], folder / "haswell.h5");
  EXPECT_EQ(measured_in({folder / "haswell.h5", folder / "haswell"}).front().rows.size(), 2u);  // each once
}

TEST(Measured, RefusesWhatHasNothing) {
  const base::Folder folder;
  std::filesystem::create_directories(folder / "empty");
  EXPECT_TRUE(contains(refusal([&] { return measured_in({folder / "empty"}); }), "no run of graft"));
  EXPECT_TRUE(contains(refusal([&] { return measured_in({folder / "missing"}); }), "missing"));
  make_run(folder / "begun", "haswell", 1, 0);
  EXPECT_TRUE(contains(refusal([&] { return measured_in({folder / "begun"}); }), "has no program that ran"));
}

}  // namespace
}  // namespace graft::study
