// Random computations as text: every operation, type, form of index and way to combine. Not all of them have a meaning:
// those are refused when they are read.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "codegen/expression/value.h"

namespace graft::codegen::test {

class RandomExpression {
 public:
  explicit RandomExpression(std::uint64_t seed) : stream_(seed, "expression") {}

  std::string text() {
    for (std::int64_t& extent : extents_) extent = 1 + stream_.below(stream_.below(8) == 0 ? 300 : 20);
    const bool reduced = stream_.below(3) > 0;
    const std::string combine = reduced ? one_of({"+=", "+=", "*=", "max=", "min="}) : "=", first = type();
    std::string last = type();
    axes_ = reduced ? 3 : 2;
    std::string stages = fmt::format("T[i,j] : {} {} ", first, combine);
    if (reduced) {
      // What is reduced is of the type it is reduced in. The form of a product is worth being drawn often.
      inputs_ += fmt::format("input W[{},{}] : {}; ", extents_[2], extents_[1], type());
      const std::string by = one_of({"W[l,j]", "W[l,j]", "(W[l,j] - 3)", "max(W[l,0], 1)"});
      stages += stream_.below(2) == 0 ? fmt::format("cast_{0}({1}) * cast_{0}({2}); ", first, value(2), by)
                                      : fmt::format("cast_{}(({}) + {}); ", first, value(3), by);
    } else {
      stages += value(3) + "; ";
    }
    axes_ = 2;
    stages +=
        fmt::format("output Y[i,j] : {} = {}", last, one_of({"T[i,j]", "T[i,j] + " + value(1), "max(T[i,j], 1)"}));
    return fmt::format("{}{} where i={}, j={}{}", inputs_, stages, extents_[0], extents_[1],
                       reduced ? fmt::format(", l={}", extents_[2]) : "");
  }

 private:
  std::string one_of(const std::vector<std::string>& choices) {
    return choices[std::size_t(stream_.below(std::int64_t(choices.size())))];
  }
  std::string type() { return one_of({"f32", "f32", "f64", "f16", "bf16", "i32", "i8", "u8", "i64"}); }

  // An input with this index; `least`, `most`: what the indices reach.
  std::string load() {
    struct Index {
      std::string text;
      std::int64_t least, most;
    };
    std::vector<Index> index;
    const bool padded = stream_.below(4) == 0;
    for (std::int64_t d = 1 + stream_.below(2); d-- > 0;) {
      const auto axis = [&] { return std::size_t(stream_.below(axes_)); };
      const std::size_t a = axis(), b = axis();
      const char x = "ijl"[a], y = "ijl"[b];
      const std::int64_t last = extents_[a] - 1, other = extents_[b] - 1;
      switch (a == b ? stream_.below(3) : stream_.below(5)) {
        case 0:
          index.push_back({std::string(1, x), 0, last});
          break;
        case 1:
          index.push_back({fmt::format("{} - {}", last, x), 0, last});
          break;
        case 2:
          index.push_back({"0", 0, 0});
          break;
        case 3:
          index.push_back({fmt::format("2*{} + {}", x, y), 0, 2 * last + other});
          break;
        default:
          index.push_back({fmt::format("{} + {}", x, y), 0, last + other});
          break;
      }
      if (padded) index.back().text += " - 2";
    }
    const std::string name = fmt::format("A{}", count_++);
    std::string shape, at;
    for (const Index& own : index) {
      shape +=
          (shape.empty() ? "" : ",") + std::to_string(padded ? std::max<std::int64_t>(1, own.most - 3) : own.most + 1);
      at += (at.empty() ? "" : ",") + own.text;
    }
    if (!padded && stream_.below(5) == 0) {
      const std::string by = fmt::format("N{}", count_++);
      inputs_ += fmt::format("input {}[{}] : {}; ", by, extents_[0], one_of({"i32", "i64", "u8"}));
      at = by + "[i]" + (index.size() == 1 ? "" : "," + index[1].text);
    }
    inputs_ += fmt::format("input {}[{}] : {}; ", name, shape, type());
    return padded ? fmt::format("pad({}[{}])", name, at) : fmt::format("{}[{}]", name, at);
  }

  std::string value(int depth) {
    if (depth == 0 || stream_.below(6) == 0) {
      if (stream_.below(4) > 0) return load();
      return one_of({"2", "0.75", "-3", "100", "i", "j"});
    }
    const std::string a = value(depth - 1), cast = one_of({"cast_f32", "cast_f32", "cast_f64"});
    switch (stream_.below(10)) {
      case 0:
        return fmt::format("{}({})", one_of({"neg", "abs"}), a);
      case 1:
        return fmt::format("{}({}({}))", one_of({"tanh", "sigmoid", "erf", "floor", "round"}), cast, a);
      case 2:
        return fmt::format(fmt::runtime(one_of({"sqrt(abs({}({})))", "exp(min({}({}), 4))", "rsqrt(abs({}({})) + 1)",
                                                "log(abs({}({})) + 0.5)", "pow(abs({}({})) + 0.1, 1.5)"})),
                           cast, a);
      case 3:
        return fmt::format("{}({})",
                           one_of({"cast_f32", "cast_f64", "cast_i32", "cast_i8", "cast_u8", "cast_f16", "cast_bf16",
                                   "cast_i64", "saturate_i32", "saturate_i8", "saturate_u8"}),
                           a);
      case 4:
        return fmt::format("select({} {} {}, {}, {})", a, one_of({"<", "<=", ">", ">=", "==", "!="}), value(depth - 1),
                           value(depth - 1), value(depth - 1));
      case 5:
        return fmt::format("cast_i32({}) {} {}", a, one_of({"%", "<<", ">>", "/"}),
                           one_of({"3", "2", "5", "cast_i32(i)"}));
      case 6:
        return fmt::format("{}({}, {})", one_of({"max", "min"}), a, value(depth - 1));
      default:
        return fmt::format("({}) {} ({})", a, one_of({"+", "-", "*", "*", "/"}), value(depth - 1));
    }
  }

  base::Stream stream_;
  std::array<std::int64_t, 3> extents_{};
  std::int64_t axes_ = 2;
  int count_ = 0;
  std::string inputs_;
};

}  // namespace graft::codegen::test
