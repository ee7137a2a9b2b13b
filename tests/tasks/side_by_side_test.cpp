#include "tasks/side_by_side.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
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

// Fails, at once, with what it is told; the others take their time.
class Failing final : public Measurer {
 public:
  using Fails = std::function<bool(const codegen::Candidate&, int measured)>;
  Failing(Fails fails, int& count) : fails_(std::move(fails)), count_(count) {}
  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor&) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Measured measured{std::int64_t(i), 7, {}};
      if (fails_(candidates[i], count_++))
        measured.measurement = without_times(datasets::Status::crashed, "no route to host");
      else
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      on_trial(measured);
    }
  }

 private:
  Fails fails_;
  int& count_;
};

struct Told final : base::Monitor {
  void note(std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

// Rounds of candidates whose first argument is their number: those that are told as failed.
std::set<std::int64_t> failed_of(const std::vector<Failing::Fails>& devices, std::vector<int>& counts, Told& monitor,
                                 int rounds = 5, std::int64_t size = 8) {
  counts.assign(devices.size(), 0);
  std::vector<std::unique_ptr<Measurer>> members;
  for (std::size_t d = 0; d < devices.size(); ++d) members.push_back(std::make_unique<Failing>(devices[d], counts[d]));
  const std::unique_ptr<Measurer> all = side_by_side(std::move(members));
  std::set<std::int64_t> failed;
  for (int round = 0; round < rounds; ++round) {
    std::vector<codegen::Candidate> candidates(std::size_t(size), codegen::Candidate{});
    for (std::int64_t i = 0; i < size; ++i) candidates[std::size_t(i)].arguments = {round * size + i};
    std::set<std::int64_t> told;
    all->measure(
        candidates,
        [&](const Measured& measured) {
          EXPECT_TRUE(told.insert(measured.position).second);
          if (measured.measurement.status != datasets::Status::ok) failed.insert(round * size + measured.position);
        },
        monitor);
    EXPECT_EQ(std::int64_t(told.size()), size);
  }
  return failed;
}

TEST(SideBySide, ADeadOneIsSetAsideAndNothingFailsForIt) {
  const Failing::Fails works = [](const codegen::Candidate&, int) { return false; },
                       dead = [](const codegen::Candidate&, int) { return true; },
                       dies = [](const codegen::Candidate&, int measured) { return measured >= 6; };
  for (const std::vector<Failing::Fails>& devices :
       {std::vector{works, dead}, {dead, works}, {dead, works, dead}, {works, dies}, {dead, dead, works, works}}) {
    Told monitor;
    std::vector<int> counts;
    EXPECT_EQ(failed_of(devices, counts, monitor), std::set<std::int64_t>());
    for (const std::string& line : monitor.lines)
      EXPECT_NE(line.find("is set aside: 3 configurations failed on it alone: no route to host"), std::string::npos);
  }
  Told monitor;
  std::vector<int> counts;
  failed_of({works, dead}, counts, monitor, 20);
  EXPECT_EQ(monitor.lines.size(), 1u);
  EXPECT_LT(counts[1], 10);
}

TEST(SideBySide, WhatFailsEverywhereIsToldAsItIs) {
  const Failing::Fails odd = [](const codegen::Candidate&candidate, int) { return candidate.arguments[0] % 2 == 1; },
                       all = [](const codegen::Candidate&, int) { return true; };
  std::set<std::int64_t> odds, every;
  for (std::int64_t i = 0; i < 40; ++i) every.insert(i);
  for (std::int64_t i = 1; i < 40; i += 2) odds.insert(i);
  for (const std::size_t devices : {1, 2, 3}) {
    Told monitor;
    std::vector<int> counts;
    EXPECT_EQ(failed_of(std::vector<Failing::Fails>(devices, odd), counts, monitor), odds);
    EXPECT_EQ(failed_of(std::vector<Failing::Fails>(devices, all), counts, monitor), every);
    EXPECT_EQ(monitor.lines, std::vector<std::string>());
  }
}

}  // namespace
}  // namespace graft::tasks
