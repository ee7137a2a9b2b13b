#include "tasks/modelled/caches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "tests/support/judged_space.h"

namespace graft::tasks {
namespace {

using codegen::LoopProgram;

LoopProgram parsed(const std::string& text) {
  return codegen::parse_program(text, "test");
}
LoopProgram matmul(int size, const std::string& order) {
  std::string text = fmt::format(
      "buffer A f32 [{0},{0}] input\nbuffer B f32 [{0},{0}] input\nbuffer C f32 [{0},{0}] output\nrun\n", size);
  std::string indent = "  ";
  for (char loop : order) {
    text += fmt::format("{}for {} {}\n", indent, loop, size);
    indent += "  ";
  }
  return parsed(text + indent + "C[i,j] += A[i,k] * B[k,j]\n");
}

// The oracle: every element of two consecutive runs, through lists; counts of the second run. Knows nothing of
// lines that stay for a while, of sampling or of prefetching. Its sets are chosen within pages, so the addresses of
// pages do not matter; its second TLB has one set.
class Oracle {
 public:
  Oracle(const LoopProgram& program, const Geometry& geometry) : program_(program), geometry_(geometry) {
    std::int64_t workspace = 0, end = 0;
    const auto in_own_pages = [&](std::int64_t bytes) {  // ending where the last page does
      const std::int64_t padded = (bytes + 63) / 64 * 64, page = geometry.page_bytes;
      end += page + (padded + page - 1) / page * page;
      return end - padded;
    };
    for (const codegen::Buffer& buffer : program.buffers) {
      const bool lies_there = buffer.scope == codegen::Scope::memory && !buffer.is_literal();
      if (!lies_there) {
        bases_.push_back(-1);
      } else if (buffer.role != codegen::Role::temporary) {
        bases_.push_back(in_own_pages(buffer.bytes()));
      } else {
        bases_.push_back(workspace);
        workspace += (buffer.bytes() + 63) / 64 * 64;
      }
    }
    const std::int64_t begin = in_own_pages(std::max<std::int64_t>(workspace, 1));
    for (std::size_t b = 0; b < bases_.size(); ++b)
      if (program.buffers[b].role == codegen::Role::temporary && bases_[b] >= 0) bases_[b] += begin;
    for (const CacheLevel& level : geometry.levels)
      caches_.push_back(
          {std::size_t(level.ways), std::vector<Set>(std::size_t(level.bytes / geometry.line_bytes / level.ways))});
    values_.resize(program.loops.size());
  }

  Traffic run() {
    walk(0, int(program_.run.size()));
    traffic_ = {};
    traffic_.levels.resize(caches_.size());
    counting_ = true;
    walk(0, int(program_.run.size()));
    return traffic_;
  }

 private:
  using Set = std::list<std::pair<std::int64_t, bool>>;  // line or page, dirty; the latest first
  struct Cache {
    std::size_t ways;
    std::vector<Set> sets;
    Set& set_of(std::int64_t line) { return sets[std::size_t(line) % sets.size()]; }
  };

  void walk(int begin, int end) {
    for (int n = begin; n < end; n = program_.run[std::size_t(n)].end) {
      const codegen::Node& node = program_.run[std::size_t(n)];
      if (node.kind == codegen::Node::Kind::store) {
        const codegen::Store& store = program_.stores[std::size_t(node.item)];
        for (const codegen::Access& access : store.value.loads) touch(access, false);
        touch(store.target, true);
        continue;
      }
      std::int64_t& value = values_[std::size_t(node.item)];
      for (value = 0; value < program_.loops[std::size_t(node.item)].extent; ++value) walk(n + 1, node.end);
    }
  }
  void touch(const codegen::Access& access, bool writes) {
    const std::size_t b = std::size_t(access.tensor);
    if (bases_[b] < 0) return;
    const std::int64_t element = codegen::evaluate(codegen::offset(program_, access), values_);
    const std::int64_t address = bases_[b] + element * codegen::bytes_of(program_.buffers[b].dtype);
    translate(address / geometry_.page_bytes);
    const std::int64_t line = address / geometry_.line_bytes;
    for (std::size_t level = 0; level < caches_.size(); ++level) {
      Cache& cache = caches_[level];
      Set& set = cache.set_of(line);
      const auto found = std::find_if(set.begin(), set.end(), [&](const auto& entry) { return entry.first == line; });
      const bool dirty = level == 0 && writes;
      if (found != set.end()) {
        found->second |= dirty;
        set.splice(set.begin(), set, found);
        return;
      }
      if (counting_) traffic_.levels[level].scattered += 1;
      set.push_front({line, dirty});
      if (set.size() > cache.ways) {
        const auto [old, was_dirty] = set.back();
        set.pop_back();
        if (was_dirty) write_back(level, old);
      }
    }
  }
  void write_back(std::size_t level, std::int64_t line) {
    if (counting_) traffic_.levels[level].written += 1;
    if (level + 1 == caches_.size()) return;
    for (auto& [other, dirty] : caches_[level + 1].set_of(line))
      if (other == line) {
        dirty = true;
        return;
      }
    write_back(level + 1, line);
  }
  void translate(std::int64_t page) {
    if (looked_up(tlb_, page, geometry_.tlb_entries)) return;
    if (counting_) traffic_.tlb_misses += 1;
    if (looked_up(l2_tlb_, page, geometry_.l2_tlb_entries)) return;
    if (counting_) traffic_.page_walks += 1;
  }
  static bool looked_up(std::list<std::int64_t>& pages, std::int64_t page, std::int64_t entries) {
    const auto found = std::find(pages.begin(), pages.end(), page);
    const bool hit = found != pages.end();
    if (hit) pages.erase(found);
    pages.push_front(page);
    if (std::int64_t(pages.size()) > entries) pages.pop_back();
    return hit;
  }

  const LoopProgram& program_;
  const Geometry geometry_;
  std::vector<std::int64_t> bases_, values_;
  std::vector<Cache> caches_;
  std::list<std::int64_t> tlb_, l2_tlb_;
  Traffic traffic_;
  bool counting_ = false;
};

// At most 64 sets of 64 bytes in a page of 4096.
Geometry tiny(std::int64_t l1_ways, std::int64_t l1_sets, std::int64_t tlb_entries) {
  Geometry geometry;
  geometry.levels = {{l1_ways * l1_sets * 64, l1_ways, false}, {4 * 32 * 64, 4, false}, {8 * 64 * 64, 8, true}};
  geometry.tlb_entries = tlb_entries;
  geometry.l2_tlb_entries = 2 * tlb_entries;
  geometry.l2_tlb_ways = 2 * tlb_entries;
  return geometry;
}

void expect_as_the_oracle(const LoopProgram& program, const Geometry& geometry, const std::string& what) {
  const Traffic exact = simulate_caches(program, geometry, {0});
  const Traffic oracle = Oracle(program, geometry).run();
  ASSERT_EQ(exact.levels.size(), oracle.levels.size());
  for (std::size_t level = 0; level < exact.levels.size(); ++level) {
    EXPECT_EQ(exact.levels[level].missed(), oracle.levels[level].missed()) << what << " level " << level;
    EXPECT_EQ(exact.levels[level].written, oracle.levels[level].written) << what << " level " << level;
  }
  EXPECT_EQ(exact.tlb_misses, oracle.tlb_misses) << what;
  EXPECT_EQ(exact.page_walks, oracle.page_walks) << what;
}

TEST(Caches, AgreeWithEveryElementThroughLists) {
  for (const Geometry& geometry : {tiny(1, 16, 2), tiny(2, 16, 4), tiny(4, 8, 3), tiny(8, 2, 64)})
    for (const char* order : {"ijk", "ikj", "jki", "kji"})
      expect_as_the_oracle(matmul(37, order), geometry, fmt::format("{} {}", order, geometry.levels[0].ways));
}

TEST(Caches, AgreeOnSampledSchedulesOfOperators) {
  codegen::Target target;
  target.triple = "riscv64-unknown-linux-gnu";
  target.cpu = "sifive-x280";
  target.vector_bits = 512;
  target.vector_registers = 32;
  target.l1_bytes = 4096;
  target.l2_bytes = 16384;
  target.line_bytes = 64;
  const std::uint64_t seed = 3;
  for (const char* text : {"matmul(m=24,n=40,k=17)", "conv2d(n=1,c=4,h=9,w=10,k=8,r=3,s=3,stride=1,pad=1)",
                           "depthwise_conv2d(n=1,c=8,h=11,w=9,r=3,s=3,stride=2,pad=1)", "softmax(m=9,n=70)"}) {
    const codegen::JudgedSpace space = codegen::judged_space(codegen::parse_workload(text), target);
    base::Stream stream(seed, "caches");
    for (int i = 0; i < 8; ++i) {
      const auto program = codegen::program(space.sample(stream), target);
      ASSERT_TRUE(program) << program.reason().text;
      expect_as_the_oracle(*program, tiny(2 + 2 * (i % 2), 16, 4), fmt::format("{} seed {} {}", text, seed, i));
    }
  }
}

TEST(Caches, AccessesThatPushEachOtherOutMissEveryTime) {
  // Three rows of one set, two ways: nothing ever hits, for as long as the line lasts.
  const LoopProgram program = parsed(R"(buffer A f32 [3,1024] input
buffer C f32 [1024] output
run
  for j 1024
    C[j] = A[0,j] + A[1,j] + A[2,j]
)");
  const Geometry geometry = tiny(2, 64, 16);
  EXPECT_GE(simulate_caches(program, geometry, {0}).levels[0].missed(), 3 * 1024);
  expect_as_the_oracle(program, geometry, "three rows");
  expect_as_the_oracle(program, tiny(4, 16, 16), "three rows, four ways");
  expect_as_the_oracle(program, tiny(2, 64, 2), "three rows, two pages");
}

TEST(Caches, PowersOfTwoConflict) {
  const auto column = [](int width) {
    return parsed(
        fmt::format("buffer A f32 [64,{}] input\nbuffer C f32 [1] output\nrun\n  for r 10\n    for i 64\n"
                    "      C[0] += A[i,0]\n",
                    width));
  };
  Geometry geometry;
  geometry.levels = {{32768, 8, false}, {262144, 8, false}};
  // 64 lines of 512: they fit, unless all of them want one set.
  EXPECT_EQ(simulate_caches(column(1024 + 16), geometry).levels[0].missed(), 0);
  EXPECT_GE(simulate_caches(column(1024), geometry).levels[0].missed(), 10 * 64);
  // The second cache sees pages at any address.
  EXPECT_LT(simulate_caches(column(1024), geometry).levels[1].missed(), 10 * 32);
}

TEST(Caches, SeeWhichLinesAPrefetcherWould) {
  Geometry geometry = tiny(4, 16, 16);
  const LoopProgram stream =
      parsed("buffer A f32 [65536] input\nbuffer C f32 [65536] output\nrun\n  for i 65536\n    C[i] = A[i]\n");
  const LevelTraffic seen = simulate_caches(stream, geometry, {0}).levels[0];
  EXPECT_GT(seen.prefetched, 0.99 * seen.missed());
  const LoopProgram column = parsed(
      "buffer A f32 [512,1024] input\nbuffer C f32 [512,1024] output\nrun\n  for j 1024\n    for i 512\n"
      "      C[i,j] = A[i,j]\n");
  const LevelTraffic scattered = simulate_caches(column, geometry, {0}).levels[0];
  EXPECT_LT(scattered.prefetched, 0.01 * scattered.missed());
  geometry.prefetch_streams = 0;
  EXPECT_EQ(simulate_caches(stream, geometry, {0}).levels[0].prefetched, 0);
}

TEST(Caches, RegistersLiteralsAndPreparationCostNothing) {
  const std::string run = "run\n  for i 4096\n    C[i] = B[i]\n";
  const LoopProgram plain = parsed("buffer B f32 [4096] constant\nbuffer C f32 [4096] output\n" + run);
  const LoopProgram prepared = parsed(
      "buffer B f32 [4096] constant\nbuffer C f32 [4096] output\nbuffer P f32 [4096] temporary\nprepare\n  for p 4096\n"
      "    P[p] = B[p]\n" +
      run);
  const Geometry geometry = tiny(4, 16, 16);
  EXPECT_EQ(simulate_caches(plain, geometry, {0}).levels, simulate_caches(prepared, geometry, {0}).levels);
}

TEST(Caches, HugePagesNeedFewTranslations) {
  const LoopProgram column = parsed(
      "buffer A f32 [1024,1024] input\nbuffer C f32 [1] output\nrun\n  for j 16\n    for i 1024\n      C[0] += "
      "A[i,j]\n");
  Geometry geometry = tiny(4, 16, 32);
  EXPECT_GE(simulate_caches(column, geometry, {0}).tlb_misses, 16 * 1024);
  geometry.huge_page_bytes = 2 << 20;
  EXPECT_LE(simulate_caches(column, geometry, {0}).tlb_misses, 4);
}

TEST(Caches, SamplingStaysNearTheWhole) {
  codegen::Target target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "haswell";
  target.vector_bits = 256;
  target.vector_registers = 16;
  target.l1_bytes = 32768;
  target.l2_bytes = 262144;
  target.line_bytes = 64;
  Geometry geometry;
  geometry.levels = {{32768, 8, false}, {262144, 8, false}, {2097152, 16, true}};
  geometry.l2_tlb_entries = 1024;
  geometry.l2_tlb_ways = 8;
  std::vector<double> errors;
  for (const char* text : {"matmul(m=128,n=128,k=128)", "conv2d(n=1,c=16,h=20,w=20,k=16,r=3,s=3,stride=1,pad=1)"}) {
    const codegen::JudgedSpace space = codegen::judged_space(codegen::parse_workload(text), target);
    base::Stream stream(5, "sampling");
    for (int i = 0; i < 10; ++i) {
      const auto program = codegen::program(space.sample(stream), target);
      ASSERT_TRUE(program) << program.reason().text;
      const Traffic whole = simulate_caches(*program, geometry, {0}), some = simulate_caches(*program, geometry);
      EXPECT_LT(some.simulated, whole.simulated);
      EXPECT_EQ(some, simulate_caches(*program, geometry)) << "not the same twice";
      // Relative to a program that misses a line in a hundred touches at least: fewer cost no time.
      const double few = whole.touches / 100;
      errors.push_back(std::fabs(std::log((some.levels[0].missed() + few) / (whole.levels[0].missed() + few))));
    }
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.05);
  EXPECT_LT(errors.back(), 0.4);
}

TEST(Caches, SamplingCostsAboutWhatItIsAllowed) {
  Geometry geometry;
  geometry.levels = {{32768, 8, false}, {262144, 8, false}};
  const LoopProgram large = matmul(1024, "ijk");
  for (std::int64_t touches : {5000, 50000})
    EXPECT_LT(simulate_caches(large, geometry, {touches}).simulated, 40 * touches);
  EXPECT_GT(simulate_caches(large, geometry).touches, 1e9);
}

TEST(Geometry, SharesAreOfSharedLevels) {
  Geometry geometry = tiny(4, 16, 8);
  const Geometry share = share_of(geometry, 4);
  EXPECT_EQ(share.levels[1], geometry.levels[1]);
  EXPECT_EQ(share.levels[2].bytes, geometry.levels[2].bytes / 4);
  EXPECT_EQ(share_of(geometry, 1), geometry);
  EXPECT_EQ(share_of(geometry, 1000000).levels[2].bytes, 8 * 64);
  EXPECT_NE(hash(geometry), hash(share));
  // 63 and 65 parts of a cache are none of a power of two.
  const LoopProgram stream =
      parsed("buffer A f32 [65536] input\nbuffer C f32 [1] output\nrun\n  for i 65536\n    C[0] += A[i]\n");
  EXPECT_EQ(simulate_caches(stream, share_of(geometry, 3), {0}).levels[2].missed(), 4096);
}

}  // namespace
}  // namespace graft::tasks
