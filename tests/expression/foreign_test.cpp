// Functions for what no loop over indices says, against plain ones.
#include "codegen/expression/foreign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/random.h"

namespace graft::codegen {
namespace {

using Integers = std::vector<std::int64_t>;

Integers result_of(const Foreign& foreign, std::vector<Elements> operands) {
  const Computation computation = computation_of(foreign).value();
  operands.emplace_back();
  Integers all;
  for (const double number : evaluated(foreign, computation, operands)) all.push_back(std::int64_t(number));
  return all;
}

// Rows behind the number of them: those that count, and whether the others repeat the last one.
Integers rows_of(const Integers& result, std::int64_t first, std::int64_t most, std::int64_t width) {
  const std::int64_t count = result[0];
  const auto at = [&](std::int64_t row, std::int64_t i) { return result[std::size_t(8 + first + row * width + i)]; };
  for (std::int64_t row = count; row < most; ++row)
    for (std::int64_t i = 0; i < width; ++i) EXPECT_EQ(at(row, i), count > 0 ? at(count - 1, i) : 0) << row;
  Integers rows;
  for (std::int64_t row = 0; row < count; ++row)
    for (std::int64_t i = 0; i < width; ++i) rows.push_back(at(row, i));
  return rows;
}

TEST(Foreign, PlacesThatAreNotZero) {
  base::Stream random(1, "mask");
  for (const Integers& shape : {Integers{7}, Integers{3, 5}, Integers{2, 3, 4}, Integers{1, 1}}) {
    const std::int64_t elements = std::accumulate(shape.begin(), shape.end(), std::int64_t(1), std::multiplies<>());
    for (int draw = 0; draw < 8; ++draw) {
      Elements mask(DType::u8, elements);
      for (std::int64_t e = 0; e < elements; ++e)
        mask.set(std::size_t(e), draw == 0 ? 0 : double(random.below(2) * (1 + random.below(255))));
      Integers numbers = {std::int64_t(shape.size()), elements};
      numbers.insert(numbers.end(), shape.begin(), shape.end());
      const Integers result = result_of({"graft_non_zero", numbers}, {mask});
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::int64_t step =
            std::accumulate(shape.begin() + std::ptrdiff_t(d) + 1, shape.end(), std::int64_t(1), std::multiplies<>());
        Integers wanted;
        for (std::int64_t e = 0; e < elements; ++e)
          if (std::as_const(mask)[std::size_t(e)] != 0) wanted.push_back(e / step % shape[d]);
        EXPECT_EQ(rows_of(result, std::int64_t(d) * elements, elements, 1), wanted);
      }
    }
  }
}

TEST(Foreign, DifferentRowsInOrderOrAsTheyCome) {
  base::Stream random(2, "rows");
  for (const bool are_integers : {true, false})
    for (const bool is_sorted : {true, false})
      for (const std::int64_t rows : {1, 2, 9, 40})
        for (const std::int64_t width : {1, 3}) {
          Elements operand(are_integers ? DType::i64 : DType::f64, rows * width);
          std::vector<std::vector<double>> all;
          for (std::int64_t row = 0; row < rows; ++row) {
            all.emplace_back();
            for (std::int64_t i = 0; i < width; ++i) {
              all.back().push_back(double(random.below(3) - 1) * (are_integers ? 1e12 : 0.25));
              operand.set(std::size_t(row * width + i), all.back().back());
            }
          }
          const Integers result =
              result_of({"graft_unique", {rows, width, are_integers, is_sorted}}, {std::move(operand)});
          std::vector<std::vector<double>> different;
          for (const auto& row : all)
            if (std::find(different.begin(), different.end(), row) == different.end()) different.push_back(row);
          if (is_sorted) std::sort(different.begin(), different.end());
          ASSERT_EQ(result[0], std::int64_t(different.size()));
          const Integers first = rows_of(result, 0, rows, 1), times = rows_of(result, 2 * rows, rows, 1);
          for (std::size_t g = 0; g < different.size(); ++g) {
            EXPECT_EQ(first[g], std::find(all.begin(), all.end(), different[g]) - all.begin());
            EXPECT_EQ(times[g], std::count(all.begin(), all.end(), different[g]));
          }
          for (std::int64_t row = 0; row < rows; ++row)
            EXPECT_EQ(different[std::size_t(result[std::size_t(8 + rows + row)])], all[std::size_t(row)]);
        }
}

// Integers beyond the precision of doubles that are neighbours are different.
TEST(Foreign, RowsOfLargeIntegersAreExact) {
  const std::int64_t all[] = {9007199254740993, 9007199254740992, 9007199254740993};
  const Elements operand(DType::i64, std::string(reinterpret_cast<const char*>(all), sizeof all));
  EXPECT_EQ(rows_of(result_of({"graft_unique", {3, 1, 1, 1}}, {operand}), 0, 3, 1), (Integers{1, 0}));
}

struct Corners {
  double y0, x0, y1, x1;
};

double overlap(const Corners& a, const Corners& b) {
  const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0),
               width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (height <= 0 || width <= 0) return 0;
  const double common = height * width;
  return common / ((a.y1 - a.y0) * (a.x1 - a.x0) + (b.y1 - b.y0) * (b.x1 - b.x0) - common);
}

// The definition: of what is left, always the box with the highest score, and without those that overlap it.
TEST(Foreign, BoxesThatOverlapBetterOnesAreLeftOut) {
  base::Stream random(3, "boxes");
  constexpr std::int64_t batches = 2, classes = 3, boxes = 40;
  for (const std::int64_t most : {1, 4, 40})
    for (const bool is_centre : {false, true})
      for (const bool has_threshold : {false, true}) {
        std::vector<Corners> corners;
        Elements numbers(DType::f32, batches * boxes * 4), scores(DType::f32, batches * classes * boxes);
        for (std::int64_t b = 0; b < batches * boxes; ++b) {
          const double y = double(random.below(64)) / 16, x = double(random.below(64)) / 16,
                       h = double(4 + random.below(32)) / 16, w = double(4 + random.below(32)) / 16;
          corners.push_back({y, x, y + h, x + w});
          // Two corners in any order, or the centre with the sides (x first).
          const bool turned = random.below(2) == 1;
          const double given[] = {y + (turned ? h : 0), x + (turned ? w : 0), y + (turned ? 0 : h),
                                  x + (turned ? 0 : w)},
                       centre[] = {x + w / 2, y + h / 2, w, h};
          for (int i = 0; i < 4; ++i) numbers.set(std::size_t(4 * b + i), is_centre ? centre[i] : given[i]);
        }
        for (std::int64_t s = 0; s < batches * classes * boxes; ++s)
          scores.set(std::size_t(s), double(random.below(16)) / 16);  // with equal ones
        const Integers result =
            result_of({"graft_non_max_suppression", {batches, classes, boxes, most, is_centre, has_threshold}},
                      {numbers, scores, Elements(DType::f32, std::string("\0\0\0\x3f", 4)),
                       Elements(DType::f32, std::string("\0\0\x80\x3e", 4))});  // 0.5, 0.25
        Integers wanted;
        for (std::int64_t batch = 0; batch < batches; ++batch)
          for (std::int64_t c = 0; c < classes; ++c) {
            std::set<std::int64_t> left;
            const auto score = [&](std::int64_t box) {
              return std::as_const(scores)[std::size_t((batch * classes + c) * boxes + box)];
            };
            const auto box_of = [&](std::int64_t box) { return corners[std::size_t(batch * boxes + box)]; };
            for (std::int64_t box = 0; box < boxes; ++box)
              if (!has_threshold || score(box) > 0.25) left.insert(box);
            for (std::int64_t taken = 0; taken < most && !left.empty(); ++taken) {
              const std::int64_t best = *std::max_element(
                  left.begin(), left.end(), [&](std::int64_t a, std::int64_t b) { return score(a) < score(b); });
              wanted.insert(wanted.end(), {batch, c, best});
              std::erase_if(left,
                            [&](std::int64_t box) { return box == best || overlap(box_of(box), box_of(best)) > 0.5; });
            }
          }
        EXPECT_EQ(rows_of(result, 0, batches * classes * most, 3), wanted) << most << " " << is_centre << has_threshold;
      }
}

TEST(Foreign, TheLargestOrLeastInOrder) {
  base::Stream random(4, "numbers");
  for (const bool are_integers : {true, false})
    for (const bool is_largest : {true, false})
      for (const std::int64_t k : {1, 3, 20}) {
        constexpr std::int64_t rows = 3, extent = 20;
        Elements operand(are_integers ? DType::i64 : DType::f64, rows * extent);
        for (std::int64_t e = 0; e < rows * extent; ++e)
          operand.set(std::size_t(e), !are_integers && random.below(8) == 0 ? NAN : double(random.below(9)) - 4);
        const Integers result = result_of({"graft_top_k", {rows, extent, k, are_integers, is_largest}}, {operand});
        for (std::int64_t row = 0; row < rows; ++row) {
          Integers order(extent);
          std::iota(order.begin(), order.end(), 0);
          const auto rank = [&](std::int64_t place) {
            const double number = std::as_const(operand)[std::size_t(row * extent + place)];
            return std::isnan(number) ? 100 : number;
          };
          std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return is_largest ? rank(a) > rank(b) : rank(a) < rank(b);
          });
          for (std::int64_t i = 0; i < k; ++i)
            EXPECT_EQ(result[std::size_t(8 + row * k + i)], order[std::size_t(i)]) << row << " " << i;
        }
      }
}

TEST(Foreign, WhatItDoesNotTakeIsAReason) {
  const std::vector<Foreign> wrong = {{"graft_sort", {1}},
                                      {"graft_unique", {3, 1, 1}},
                                      {"graft_unique", {3, 1, 2, 0}},
                                      {"graft_unique", {-3, 1, 1, 0}},
                                      {"graft_unique", {std::int64_t(1) << 62, 4, 1, 0}},
                                      {"graft_unique", {0, 4, 1, 0}},
                                      {"graft_top_k", {1, 4, 5, 0, 0}},
                                      {"graft_non_zero", {2, 6, 2, 2}},
                                      {"graft_non_zero", {3, 6, 2, 3}},
                                      {"graft_non_max_suppression", {1, 1, 4, 5, 0, 0}}};
  for (const Foreign& foreign : wrong) EXPECT_FALSE(computation_of(foreign).ok()) << foreign.function;
}

}  // namespace
}  // namespace graft::codegen
