#include "features/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "features/declared.h"

namespace graft::features {
namespace {

constexpr int version = 1;  // raised when values change though the list does not

constexpr int argument_columns = 1 + most_alternatives;
constexpr int buckets_begin = most_arguments * argument_columns;

std::vector<Feature> declared_knobs() {
  std::vector<Feature> list;
  for (int a = 0; a < most_arguments; ++a) {
    list.push_back(
        {fmt::format("a{:02}", a), "signed log2",
         fmt::format("argument {} of the sketch, if it is a number; which one that is, the sketch says", a)});
    for (int c = 0; c < most_alternatives; ++c) {
      const bool last = c + 1 == most_alternatives;
      list.push_back(
          {fmt::format("a{:02}.is{}", a, c), "1",
           fmt::format("1 if argument {} is a choice, of alternative {}{}", a, c, last ? " or behind" : "")});
    }
  }
  for (int s = 0; s < sketch_buckets; ++s) {
    list.push_back({fmt::format("sketch{:02}", s), "1",
                    fmt::format("1 if the hash of the sketch is {} modulo {}", s, sketch_buckets)});
  }
  return list;
}

Encoded encode_knobs(const Subject& subject) {
  base::Matrix row(1, buckets_begin + sketch_buckets);
  if (subject.candidate == nullptr) return one_row_each(std::move(row));
  const codegen::Sketch& sketch = *subject.candidate->sketch;
  const std::vector<std::int64_t>& arguments = subject.candidate->arguments;
  const std::size_t count = std::min({arguments.size(), sketch.arguments.size(), std::size_t(most_arguments)});
  for (std::size_t a = 0; a < count; ++a) {
    const std::span<float> out = row.row(0).subspan(a * argument_columns, argument_columns);
    if (sketch.arguments[a].alternatives == 0) {
      out[0] = signed_log(double(arguments[a]));
    } else {
      const std::int64_t choice = std::clamp<std::int64_t>(arguments[a], 0, most_alternatives - 1);
      out[std::size_t(1 + choice)] = 1;
    }
  }
  row.at(0, buckets_begin + std::int64_t(sketch.hash % sketch_buckets)) = 1;
  return one_row_each(std::move(row));
}

}  // namespace

Encoding knobs() {
  Encoding encoding = encoding_of(
      "knobs",
      "the arguments of a candidate's sketch, and which sketch; across sketches positions mean different things",
      Shape::row, declared_knobs(), version, encode_knobs);
  encoding.needs_program = false;
  return encoding;
}

}  // namespace graft::features
