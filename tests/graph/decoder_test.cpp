// Attention over a cache of keys and values, as decoders are exported for onnxruntime, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "graph/fold.h"
#include "tests/graph/support/drawn.h"
#include "tests/graph/support/onnx_file.h"
#include "tests/support/refusal.h"

namespace {

using namespace graft::graph;
using file::attribute;
using file::GraphFile;
using graft::codegen::contains;
using graft::codegen::Elements;
using graft::codegen::refusal;
using Numbers = std::vector<double>;

class Random : public Drawn {
 public:
  using Drawn::Drawn;
  Numbers numbers(std::int64_t count) {
    Numbers all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(double(upto(65) - 32) / 16);
    return all;
  }
};

// One node; the tables of positions are constants.
struct Step {
  std::int64_t batch = 1, heads = 2, groups = 1, size = 4, length = 1, past = 8, total = 8;
  std::int64_t window = -1, turned = 0;  // turned: places of a head that turn
  double softcap = 0;
  bool is_packed = false, is_interleaved = false, is_causal = true, has_bias = false, has_sink = false,
       is_smooth = false, has_places = false, is_total_known = true;
  std::int64_t all() const { return std::max(past, total); }
  std::int64_t begin(std::int64_t filled) const { return total == length ? 0 : filled - length; }
};

struct Given {
  Numbers q, k, v, past_k, past_v, filled, cosine, sine, bias, sink, places;
};

constexpr std::int64_t positions = 64;

Given given_to(const Step& of, Random& random) {
  Given all;
  all.q = random.numbers(of.batch * of.length * of.heads * of.size);
  all.k = random.numbers(of.batch * of.length * of.groups * of.size),
  all.v = random.numbers(std::int64_t(all.k.size()));
  all.past_k = random.numbers(of.batch * of.groups * of.past * of.size);
  all.past_v = random.numbers(std::int64_t(all.past_k.size()));
  // One batch is as long as the total says where nothing is longer.
  for (std::int64_t b = 0; b < of.batch; ++b) {
    const bool grows = of.total > of.past || of.total == of.length;
    all.filled.push_back(double(b == 0 && grows ? of.total : of.length + random.upto(of.total - of.length + 1)));
  }
  all.cosine = random.numbers(positions * of.turned / 2), all.sine = random.numbers(positions * of.turned / 2);
  all.bias = random.numbers(of.heads * of.length * of.total), all.sink = random.numbers(of.heads);
  for (std::int64_t row = 0; row < of.batch * of.length; ++row)
    all.places.push_back(double(random.upto(positions / 2)));
  return all;
}

// Row `row` of a head, turned by its place.
Numbers turned(const Step& of, const Given& given, Numbers row, std::int64_t place) {
  const std::int64_t half = of.turned / 2;
  const Numbers old = row;
  for (std::int64_t i = 0; i < half; ++i) {
    const std::size_t first = std::size_t(of.is_interleaved ? 2 * i : i),
                      second = std::size_t(of.is_interleaved ? 2 * i + 1 : half + i);
    const double cosine = given.cosine[std::size_t(place * half + i)], sine = given.sine[std::size_t(place * half + i)];
    row[first] = old[first] * cosine - old[second] * sine;
    row[second] = old[first] * sine + old[second] * cosine;
  }
  return row;
}

// By which a row is turned. A first prompt begins at the first place that is given.
std::int64_t place_of(const Step& of, const Given& given, std::int64_t b, std::int64_t i) {
  if (!of.has_places) return of.begin(std::int64_t(given.filled[std::size_t(b)])) + i;
  const bool is_first = of.total == of.length && (of.is_total_known || of.past == 0);
  return std::int64_t(is_first ? given.places[0] : given.places[std::size_t(b * of.length + i)]) + (is_first ? i : 0);
}

Numbers piece(const Numbers& all, std::int64_t row, std::int64_t size) {
  return {all.begin() + row * size, all.begin() + (row + 1) * size};
}

// Caches with what is new: [batch][group][place][size].
Numbers filled(const Step& of, const Given& given, bool is_key) {
  const Numbers &past = is_key ? given.past_k : given.past_v, &news = is_key ? given.k : given.v;
  Numbers all;
  for (std::int64_t b = 0; b < of.batch; ++b)
    for (std::int64_t g = 0; g < of.groups; ++g)
      for (std::int64_t t = 0; t < of.all(); ++t) {
        const std::int64_t i = t - of.begin(std::int64_t(given.filled[std::size_t(b)]));
        Numbers row(std::size_t(of.size), 0);
        if (i >= 0 && i < of.length) {
          row = piece(news, (b * of.length + i) * of.groups + g, of.size);
          if (is_key) row = turned(of, given, row, place_of(of, given, b, i));
        } else if (t < of.past) {
          row = piece(past, (b * of.groups + g) * of.past + t, of.size);
        }
        all.insert(all.end(), row.begin(), row.end());
      }
  return all;
}

double score_of(const Step& of, const Given& given, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t t,
                const Numbers& keys) {
  const std::int64_t lengths = std::int64_t(given.filled[std::size_t(b)]), place = of.begin(lengths) + i;
  if (of.is_causal ? t > place : t >= lengths) return -std::numeric_limits<double>::infinity();
  if (of.window > 0 && t <= place - of.window) return -std::numeric_limits<double>::infinity();
  const Numbers row = piece(given.q, (b * of.length + i) * of.heads + h, of.size);
  const Numbers q = turned(of, given, row, place_of(of, given, b, i));
  const Numbers k = piece(keys, (b * of.groups + h / (of.heads / of.groups)) * of.all() + t, of.size);
  double score = 0;
  for (std::size_t d = 0; d < q.size(); ++d) score += q[d] * k[d];
  score /= std::sqrt(double(of.size));
  if (of.softcap > 0) score = of.softcap * std::tanh(score / of.softcap);
  return of.has_bias ? score + given.bias[std::size_t((h * of.length + i) * of.total + t)] : score;
}

Numbers attended(const Step& of, const Given& given, const Numbers& keys, const Numbers& values) {
  Numbers y;
  for (std::int64_t b = 0; b < of.batch; ++b)
    for (std::int64_t i = 0; i < of.length; ++i)
      for (std::int64_t h = 0; h < of.heads; ++h) {
        Numbers row(std::size_t(of.size), 0);
        double sum = of.has_sink ? std::exp(given.sink[std::size_t(h)]) : of.is_smooth ? 1 : 0;
        for (std::int64_t t = 0; t < of.total; ++t) {
          const double weight = std::exp(score_of(of, given, b, h, i, t, keys));
          const Numbers v = piece(values, (b * of.groups + h / (of.heads / of.groups)) * of.all() + t, of.size);
          for (std::size_t d = 0; d < v.size(); ++d) row[d] += weight * v[d];
          sum += weight;
        }
        for (const double each : row) y.push_back(each / sum);
      }
  return y;
}

std::vector<std::string> attributes_of(const Step& of) {
  std::vector<std::string> all = {attribute("num_heads", of.heads), attribute("kv_num_heads", of.groups)};
  if (of.turned > 0) all.push_back(attribute("do_rotary", 1));
  if (of.is_interleaved) all.push_back(attribute("rotary_interleaved", 1));
  if (of.window > 0) all.push_back(attribute("local_window_size", of.window));
  if (of.softcap > 0) all.push_back(attribute("softcap", of.softcap));
  if (!of.is_causal) all.push_back(attribute("causal", 0));
  if (of.is_smooth) all.push_back(attribute("smooth_softmax", 1));
  return all;
}

std::vector<float> floats(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Queries with keys and values in one tensor.
Numbers together(const Step& of, const Given& given) {
  Numbers all;
  for (std::int64_t row = 0; row < of.batch * of.length; ++row) {
    const Numbers parts[] = {piece(given.q, row, of.heads * of.size), piece(given.k, row, of.groups * of.size),
                             piece(given.v, row, of.groups * of.size)};
    for (const Numbers& part : parts) all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<Elements> results_of(const Step& of, const Given& given, const std::vector<std::string>& attributes) {
  GraphFile graph;
  std::map<std::string, Elements> inputs;
  const auto input = [&](const std::string& name, const Shape& shape, const Numbers& numbers, int type = file::f32) {
    if (elements_of(shape) == 0) return std::string();
    graph.input(name, shape, type);
    inputs[name] = numbers;
    return name;
  };
  Numbers lengths = given.filled;
  for (double& length : lengths) --length;
  const std::int64_t columns = (of.heads + 2 * of.groups) * of.size;
  const Shape one = {of.batch, of.length, of.groups * of.size}, cache = {of.batch, of.groups, of.past, of.size};
  std::vector<std::string> operands;
  if (of.is_packed)
    operands = {input("q", {of.batch, of.length, columns}, together(of, given)), "", ""};
  else
    operands = {input("q", {of.batch, of.length, of.heads * of.size}, given.q), input("k", one, given.k),
                input("v", one, given.v)};
  operands.push_back(input("past.k", cache, given.past_k)), operands.push_back(input("past.v", cache, given.past_v));
  operands.push_back(input("lengths", {of.batch}, lengths, file::i32));
  operands.emplace_back("total");
  if (of.is_total_known)
    graph.weight_of(file::tensor("total", {}, file::i32, file::raw(std::vector<std::int32_t>{std::int32_t(of.total)})));
  else
    (void)input("total", {1}, {double(of.total)}, file::i32);
  if (of.turned > 0) {
    graph.weight("cos", {positions, of.turned / 2}, floats(given.cosine));
    graph.weight("sin", {positions, of.turned / 2}, floats(given.sine));
  }
  for (const char* const name : {"cos", "sin"}) operands.emplace_back(of.turned > 0 ? name : "");
  operands.push_back(of.has_places ? input("places", {of.batch, of.length}, given.places, file::i64) : "");
  operands.push_back(of.has_bias ? input("bias", {1, of.heads, of.length, of.total}, given.bias) : "");
  operands.push_back(of.has_sink ? input("sink", {of.heads}, given.sink) : "");
  graph.node("com.microsoft.GroupQueryAttention", operands, {"y", "k.all", "v.all"}, attributes);
  return file::results(graph.output("y").output("k.all").output("v.all"), inputs, 21);
}

void expect_near(const Elements& is, const Numbers& should) {
  ASSERT_EQ(is.size(), should.size());
  for (std::size_t e = 0; e < should.size(); ++e)
    EXPECT_NEAR(is[e], should[e], 1e-6 * (1 + std::abs(should[e]))) << "element " << e;
}

Step drawn(Random& random) {
  Step of;
  of.batch = 1 + random.upto(2), of.groups = 1 + random.upto(2), of.heads = of.groups * (1 + random.upto(3));
  of.length = 1 + random.upto(4);
  const std::int64_t kind = random.upto(3);
  of.past = kind == 0 ? 0 : 5 + random.upto(4);
  // A first prompt; a cache that grows; one with room.
  of.total = kind == 0       ? of.length
             : kind == 1     ? of.past + of.length
             : random.coin() ? of.length
                             : of.past - random.upto(2);
  of.is_total_known = kind == 1 || random.coin();
  if (random.coin())
    of.turned = random.coin() ? 4 : 2, of.is_interleaved = random.coin(), of.has_places = random.coin();
  of.is_packed = random.coin(), of.is_causal = random.upto(4) != 0;
  if (of.is_causal && random.coin()) of.window = 1 + random.upto(4);
  if (random.coin()) of.softcap = 2;
  of.has_bias = random.coin(), of.has_sink = random.upto(3) == 0, of.is_smooth = random.upto(3) == 0;
  return of;
}

TEST(Decoder, GroupedAttentionOverACache) {
  Random random(1);
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    const Step of = drawn(random);
    const Given given = given_to(of, random);
    const Numbers keys = filled(of, given, true), values = filled(of, given, false);
    const std::vector<Elements> is = results_of(of, given, attributes_of(of));
    expect_near(is[0], attended(of, given, keys, values));
    expect_near(is[1], keys);
    expect_near(is[2], values);
  }
}

// A window of keys is a mask that says the same; a row without keys gives 0.
TEST(Decoder, WindowsOfKeys) {
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const std::int64_t length = 1 + random.upto(5), keys = 1 + random.upto(6), past = random.upto(2) * 3;
    const std::int64_t left = random.upto(5) - 1, all = past + keys;
    const std::int64_t right = random.upto(5) == 0 ? INT64_MAX : random.upto(4) - 1;
    const bool is_causal = random.coin();
    std::map<std::string, Elements> inputs;
    std::string mask;
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t j = 0; j < all; ++j) {
        const bool is_far = (left >= 0 && j < past + i - left) || (right >= 0 && j - past - i > right);
        mask += is_far || (is_causal && j > past + i) ? '\0' : '\1';
      }
    GraphFile graph;
    const auto input = [&](const std::string& name, std::int64_t rows) {
      if (rows == 0) return std::string();
      graph.input(name, {1, 2, rows, 3});
      inputs[name] = random.numbers(2 * rows * 3);
      return name;
    };
    const std::vector<std::string> first = {input("q", length), input("k", keys), input("v", keys)};
    const std::string past_k = input("past.k", past), past_v = input("past.v", past);
    graph.weight_of(file::tensor("mask", {length, all}, file::boolean, mask));
    graph.node("Attention", {first[0], first[1], first[2], "", past_k, past_v}, {"y"},
               {attribute("left_window_size", left), attribute("right_window_size", right),
                attribute("is_causal", std::int64_t(is_causal))});
    graph.node("Attention", {first[0], first[1], first[2], "mask", past_k, past_v}, {"z"});
    const std::vector<Elements> is = file::results(graph.output("y").output("z"), inputs, 25);
    expect_near(is[0], is[1].numbers());
  }
}

TEST(Decoder, WhatIsNotComputedIsRefusedByName) {
  Random random(2);
  const auto said = [&](const Step& of, const std::vector<std::string>& further) {
    std::vector<std::string> attributes = attributes_of(of);
    attributes.insert(attributes.end(), further.begin(), further.end());
    return refusal([&] { (void)results_of(of, given_to(of, random), attributes); });
  };
  EXPECT_TRUE(contains(said({}, {attribute("qk_output", 1)}), "qk_output"));
  EXPECT_TRUE(contains(said({}, {attribute("sliding_window_cache", 1)}), "sliding_window_cache"));
  EXPECT_TRUE(contains(said({}, {attribute("k_quant_type", "PER_TENSOR")}), "k_quant_type"));
  EXPECT_TRUE(contains(said({.heads = 3, .groups = 2}, {}), "of 3 heads in 2 groups"));
  GraphFile graph;
  graph.input("x", {1, 4}).node("com.microsoft.QMoE", {"x"}, {"y"}).output("y");
  EXPECT_TRUE(contains(refusal([&] { (void)file::results(graph, {}, 21); }), "'com.microsoft.QMoE'"));
}

}  // namespace
