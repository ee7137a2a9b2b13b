#include "datasets/quality.h"

#include <cmath>

#include "datasets/groups.h"
#include "datasets/h5.h"
#include "tests/datasets/support.h"

namespace graft::datasets {
namespace {

Trial timed(const std::string& workload, std::uint64_t program, std::vector<double> seconds) {
  Trial trial;
  trial.candidate = {codegen::Workload(workload), sketch_numbered(0), {std::int64_t(program), 1, 0, 0}};
  trial.program_hash = program;
  trial.measurement.seconds = std::move(seconds);
  trial.measurement.clock = "thread_cpu";
  trial.measurement.check = "host";
  return trial;
}

Trial failed(const std::string& workload, std::uint64_t program) {
  Trial trial = timed(workload, program, {});
  trial.measurement.status = Status::crashed;
  trial.measurement.reason = "signal 11";
  return trial;
}

const std::string w = "matmul(m=8,n=8,k=8,dtype=f32)", v = "matmul(m=16,n=16,k=16,dtype=f32)";

Dataset example() {
  Dataset dataset;
  dataset.platform = "model:a64fx";
  dataset.source = "modelled";
  dataset.provenance = base::Document::map();
  dataset.provenance.set("graft", "0.1.0").set("command", "graft collect");
  for (int i = 1; i <= 10; ++i) dataset.add(timed(w, std::uint64_t(i), {1e-6 * i, 1e-6 * i}));
  dataset.add(timed(w, 10, {1e-5}));  // a program twice
  dataset.add(timed(v, 1, {1e-6, 3e-6}));
  dataset.add(timed(v, 2, {4e-6}));
  dataset.add(failed(v, 3));
  return dataset;
}

TEST(Quality, CountsAndGates) {
  const std::vector<Quality> all = quality(example());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].rows, 11);
  EXPECT_EQ(all[0].ok, 11);
  EXPECT_EQ(all[0].programs, 10);
  EXPECT_DOUBLE_EQ(all[0].spread, 10);
  EXPECT_EQ(all[0].variation, 0);
  EXPECT_TRUE(all[0].missed.empty());
  EXPECT_EQ(all[1].ok, 2);
  EXPECT_DOUBLE_EQ(all[1].failed, 1.0 / 3);
  EXPECT_DOUBLE_EQ(all[1].spread, 4);
  EXPECT_DOUBLE_EQ(all[1].variation, std::sqrt(2.0) / 2);  // 1 and 3: deviation sqrt(2), mean 2
  EXPECT_EQ(all[1].missed, (std::vector<std::string>{"spread", "failed", "variation"}));
  EXPECT_TRUE(quality(example(), {.least_spread = 3, .most_failed = 0.5, .most_variation = 1})[1].missed.empty());
}

TEST(Quality, NothingMeasuredPassesNoSpread) {
  Dataset dataset;
  dataset.add(failed(w, 1));
  const Quality own = quality(dataset).front();
  EXPECT_TRUE(std::isnan(own.spread));
  EXPECT_TRUE(std::isnan(own.variation));
  EXPECT_EQ(own.missed, (std::vector<std::string>{"spread", "failed"}));
}

TEST(Card, SaysWhoHowAndInWhichPart) {
  const base::Document document = card(example());
  EXPECT_EQ(document.at("platform").at("id").as_string(), "model:a64fx");
  EXPECT_EQ(document.at("made").at("command").as_string(), "graft collect");
  EXPECT_EQ(document.at("measured").at("rows").as_integer(), 14);
  EXPECT_EQ(document.at("measured").at("statuses").at("crashed").as_integer(), 1);
  EXPECT_EQ(document.at("measured").at("clocks").at("thread_cpu").as_integer(), 14);
  EXPECT_EQ(document.at("gates").at("passed").as_integer(), 1);
  EXPECT_EQ(document.at("splits").at("platforms").as_string(), "source");
  std::size_t held_out = 0;
  for (const auto& [name, workloads] : document.at("splits").at("held_out").as_map()) {
    held_out += workloads.as_list().size();
  }
  EXPECT_EQ(held_out, 2u);  // each in one part
}

TEST(Card, StandsInTheFile) {
  const Folder folder;
  write_dataset(example(), folder / "d.h5");
  const h5::Reader reader(folder / "d.h5", "dataset");
  EXPECT_EQ(reader.text("card"), card(example()).to_json());
  EXPECT_EQ(card(read_dataset(folder / "d.h5")).to_json(), card(example()).to_json());
}

}  // namespace
}  // namespace graft::datasets
