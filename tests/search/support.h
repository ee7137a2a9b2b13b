// Shared by tests of searches: a platform without noise, models that know it or learn it, small spaces.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "codegen/schedule/candidate_program.h"
#include "codegen/space/space.h"
#include "search/programs.h"
#include "search/run_directory.h"
#include "search/scorer.h"
#include "tasks/measurer.h"
#include "tests/base/support.h"
#include "tests/support/judged_space.h"
#include "tests/support/target.h"

namespace graft::search {

inline const features::Encoding& encoding() {
  return features::encoding_named("context_relation");
}

// A platform without noise: log seconds are a fixed linear function of the features.
inline float log_seconds_of(std::span<const float> row) {
  static const std::vector<double> weights = [] {
    base::Stream stream(9, "truth");
    std::vector<double> drawn;
    for (std::size_t i = 0; i < encoding().features.size(); ++i) drawn.push_back(0.01 * stream.normal());
    return drawn;
  }();
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) sum += weights[i] * double(row[i]);
  return float(sum);
}

inline double seconds_of_program(const codegen::Candidate& candidate) {
  const auto program = codegen::program(candidate, small_target());
  return std::exp(double(log_seconds_of(encoding().encode({.program = &*program}).rows.row(0))));
}

class FakeMeasurer : public tasks::Measurer {
 public:
  void measure(std::span<const codegen::Candidate> candidates,
               const std::function<void(const tasks::Measured&)>& on_trial, base::Monitor&) override {
    for (std::size_t i = 0; i < candidates.size() && measured < stop_after; ++i) {
      datasets::Measurement measurement;
      measurement.seconds = {seconds_of_program(candidates[i])};
      measurement.clock = "wall";
      measurement.check = "none";
      if (measured < fail_first || (fail_every > 0 && measured % fail_every == 0)) {
        measurement.status = datasets::Status::crashed;
        measurement.reason = "a test";
        measurement.seconds.clear();
      }
      ++measured;
      on_trial({std::int64_t(i), codegen::hash(*codegen::program(candidates[i], small_target())), measurement});
    }
  }
  std::int64_t measured = 0, stop_after = 1 << 30, fail_every = 0, fail_first = 0;
};

// Scores a program by the nearest program that it was adapted on.
class NearestRow : public meta::CostModel {
 public:
  meta::Scores score(const features::Encoded& programs) const override {
    const base::Matrix& features = programs.rows;
    meta::Scores scores{std::vector<float>(std::size_t(features.rows)), std::vector<float>(std::size_t(features.rows))};
    for (std::int64_t r = 0; r < features.rows; ++r) {
      double best = INFINITY;
      for (const meta::Examples& group : known) {
        for (std::int64_t s = 0; s < group.size(); ++s) {
          double distance = 0;
          for (std::int64_t c = 0; c < features.columns; ++c)
            distance += std::pow(features.at(r, c) - group.features.rows.at(s, c), 2);
          if (distance < best) {
            best = distance;
            scores.mean[std::size_t(r)] = float(-group.log_seconds[std::size_t(s)]);
          }
        }
      }
    }
    return scores;
  }
  std::unique_ptr<meta::CostModel> fitted(std::span<const meta::Examples> examples) const override {
    auto model = std::make_unique<NearestRow>();
    model->known.assign(examples.begin(), examples.end());
    return model;
  }
  std::unique_ptr<meta::CostModel> clone() const override { return std::make_unique<NearestRow>(*this); }
  bool is_informed() const override { return !known.empty(); }
  bool takes(const features::Encoding&) const override { return true; }
  std::string_view kind() const override { return "nearest_row"; }
  base::Arrays state() const override { return {}; }
  std::vector<meta::Examples> known;
};

// Knows the platform.
class Oracle : public meta::CostModel {
 public:
  meta::Scores score(const features::Encoded& programs) const override {
    const base::Matrix& features = programs.rows;
    meta::Scores scores{{}, std::vector<float>(std::size_t(features.rows))};
    for (std::int64_t r = 0; r < features.rows; ++r) scores.mean.push_back(-log_seconds_of(features.row(r)));
    return scores;
  }
  std::unique_ptr<meta::CostModel> fitted(std::span<const meta::Examples>) const override { return clone(); }
  std::unique_ptr<meta::CostModel> clone() const override { return std::make_unique<Oracle>(*this); }
  bool is_informed() const override { return true; }
  bool takes(const features::Encoding&) const override { return true; }
  std::string_view kind() const override { return "oracle"; }
  base::Arrays state() const override { return {}; }
};

using base::Folder;

inline base::Document request(int seed) {
  base::Document document = base::Document::map();
  document.set("command", "test").set("seed", seed);
  return document;
}

// What candidates come to on the target of all these tests; the same for all who ask.
inline Programs& shared_programs() {
  static Programs known(small_target(), &encoding());
  return known;
}

inline const codegen::JudgedSpace& space() {
  static const codegen::JudgedSpace known =
      codegen::judged_space(codegen::parse_workload("matmul(m=64,n=64,k=64)"), small_target());
  return known;
}

inline const codegen::JudgedSpace& space_of_two_sketches() {
  static const codegen::JudgedSpace known =
      codegen::judged_space(codegen::parse_workload("conv2d(c=8,h=18,w=18,k=16,r=3,s=3,stride=2)"), small_target());
  EXPECT_EQ(known.sketches().size(), 2u);
  return known;
}

}  // namespace graft::search
