#include "tasks/side_by_side.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace graft::tasks {
namespace {

// Says in `check` which one it is. Both have measured one before either goes on, so that neither is left out.
class Device final : public Measurer {
 public:
  Device(char name, std::atomic<int>& begun, std::int64_t fails_after = 1 << 20)
      : name_(name), begun_(begun), left_(fails_after) {}
  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    if (!std::exchange(has_begun_, true)) ++begun_;
    while (begun_ < 2) std::this_thread::yield();
    for (std::size_t i = 0; i < candidates.size() && !monitor.stop_requested(); ++i) {
      if (left_-- == 0) throw base::Failure("unplugged");
      Measured measured{std::int64_t(i), 7, {}};
      measured.measurement.check = std::string(1, name_);
      on_trial(measured);
    }
  }

 private:
  char name_;
  std::atomic<int>& begun_;
  std::int64_t left_;
  bool has_begun_ = false;
};

struct Two {
  std::atomic<int> begun = 0;
  std::unique_ptr<Measurer> devices;
  explicit Two(std::int64_t fails_after, std::int64_t first_fails_after = 1 << 20) {
    std::vector<std::unique_ptr<Measurer>> members;
    members.push_back(std::make_unique<Device>('a', begun, first_fails_after));
    members.push_back(std::make_unique<Device>('b', begun, fails_after));
    devices = side_by_side(std::move(members));
  }
};

TEST(SideBySide, EachIsMeasuredOnceByOneOfThem) {
  Two two(1 << 20);
  base::Monitor monitor;
  const std::vector<codegen::Candidate> candidates(20);
  std::set<std::int64_t> positions;
  std::set<std::string> names;
  two.devices->measure(
      candidates,
      [caller = std::this_thread::get_id(), &positions, &names](const Measured& measured) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        EXPECT_TRUE(positions.insert(measured.position).second);
        names.insert(measured.measurement.check);
      },
      monitor);
  EXPECT_EQ(positions.size(), 20u);
  EXPECT_EQ(*positions.rbegin(), 19);
  EXPECT_EQ(names, (std::set<std::string>{"a", "b"}));
}

TEST(SideBySide, OneThatFailsIsLeftOutAndTheOthersMeasureAll) {
  struct Notes final : base::Monitor {
    void note(std::string_view line) override { lines.emplace_back(line); }
    std::vector<std::string> lines;
  } monitor;
  for (const std::int64_t fails_after : {0, 3}) {
    Two two(fails_after);
    monitor.lines.clear();
    for (int round = 0; round < 2; ++round) {
      std::multiset<std::int64_t> positions;
      two.devices->measure(
          std::vector<codegen::Candidate>(20),
          [&](const Measured& measured) {
            positions.insert(measured.position);
            if (round == 1) {
              EXPECT_EQ(measured.measurement.check, "a");
            }
          },
          monitor);
      EXPECT_EQ(positions.size(), 20u);
      EXPECT_EQ(std::set<std::int64_t>(positions.begin(), positions.end()).size(), 20u);
      if (monitor.lines.empty()) break;  // "b" was too slow to get as far as to its fault
    }
    if (fails_after == 0) {
      EXPECT_EQ(monitor.lines, std::vector<std::string>{"one of 2 equal devices is left out: unplugged"});
    }
  }
}

TEST(SideBySide, WhatTheLastOneThrowsEndsAll) {
  Two two(0, 0);
  base::Monitor monitor;
  EXPECT_THROW(two.devices->measure(
                   std::vector<codegen::Candidate>(2), [](const Measured&) {}, monitor),
               base::Failure);
  Two other(1 << 20);
  EXPECT_THROW(
      other.devices->measure(
          std::vector<codegen::Candidate>(20), [](const Measured&) { throw base::Failure("disk full"); }, monitor),
      base::Failure);
}

TEST(SideBySide, StopsOnRequest) {
  struct Stops final : base::Monitor {
    bool stop_requested() override { return true; }
  } monitor;
  Two two(1 << 20);
  int told = 0;
  two.devices->measure(
      std::vector<codegen::Candidate>(100000), [&](const Measured&) { ++told; }, monitor);
  EXPECT_LT(told, 100000);
}

}  // namespace
}  // namespace graft::tasks
