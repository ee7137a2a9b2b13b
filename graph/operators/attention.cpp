// Attention as its users write it out: a softmax of scaled products of queries and keys, and the products with values;
// and the turning of queries and keys by their positions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "graph/operators/body.h"

namespace graft::graph {
namespace {

using List = std::vector<std::int64_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();

Part unless(Body& body, Part condition, Part then, Part otherwise) {
  return body.node("Where", {condition, otherwise, then});
}

Part counted(Body& body, std::int64_t begin, std::int64_t count, const Shape& shape) {
  List all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), begin);
  return body.reshaped(body.integers(all), shape);
}

// A part, and its shape where one is needed.
struct Shaped {
  Part part = {};
  Shape shape = {};
};

// What is added to scores: 0, or `filter` where `keeps` (of u8) is 0.
Shaped filtered(Body& body, Shaped keeps, double filter, DType type) {
  return {body.node("Where", {keeps.part, body.number(0, type), body.number(filter, type)}), keeps.shape};
}

Shaped both(const Shaped& a, const Shaped& b) {
  if (!a.part) return b;
  if (!b.part) return a;
  return {a.part + b.part, broadcast({a.shape, b.shape})};
}

// Queries [batch,heads,length,size], keys and values of groups of heads, [batch,groups,total,...].
struct Attended {
  Part q, k, v;
  std::int64_t batch = 1, heads = 1, groups = 1, length = 1, total = 1, size = 1, value_size = 1;
  double scale = 1, softcap = 0;
  DType type = DType::f32;
  Shaped bias = {};       // four dimensions, that broadcast to scores
  Shaped is_masked = {};  // of a row that has nothing to attend to: its result is 0. One for each row of the bias
  Shaped sink = {};       // a further score of each row, four dimensions with one at last, whose weight nothing gets
};

class Attention {
 public:
  Attention(Body& body, const Attended& of) : body_(body), of_(of) {
    if (of.heads < 1 || of.groups < 1 || of.heads % of.groups != 0)
      throw Malformed{fmt::format("{} heads in {} groups", of.heads, of.groups)};
    const bool has_groups = of.heads != of.groups;
    const Part q = grouped(of.q, {of.batch, of.heads, of.length, of.size});
    const Part k = grouped(of.k, {of.batch, of.groups, of.total, of.size}, true);
    const Part turned = body.transposed(k, has_groups ? List{0, 1, 2, 4, 3} : List{0, 1, 3, 2});
    raw_ = body.node("MatMul", {q, turned});
    if (of.scale != 1) raw_ = raw_ * body.number(of.scale, of.type);
    capped_ = raw_;
    if (of.softcap > 0) {
      const Part cap = body.number(of.softcap, of.type);
      capped_ = body.node("Tanh", {raw_ / cap}) * cap;
    }
    biased_ = of.bias.part ? capped_ + grouped(of.bias.part, of.bias.shape) : capped_;
    weights_ = softmax();
    y_ = body.node("MatMul", {weights_, grouped(of.v, {of.batch, of.groups, of.total, of.value_size}, true)});
    if (of.is_masked.part) {
      const Part is_masked = grouped(of.is_masked.part, of.is_masked.shape), zero = body.number(0, of.type);
      y_ = unless(body, is_masked, y_, zero);
      weights_ = unless(body, is_masked, weights_, zero);
    }
  }

  // By head, [batch,heads,length,size], and one head after the other, [batch,length,heads*size].
  Part by_head() const { return with_heads(y_, of_.value_size); }
  Part by_row() const {
    return body_.reshaped(body_.transposed(by_head(), {0, 2, 1, 3}),
                          {of_.batch, of_.length, of_.heads * of_.value_size});
  }
  // 0: products, 1: capped, 2: with the bias, 3: after the softmax.
  Part scores(std::int64_t mode) const {
    if (mode < 0 || mode > 3) throw Malformed{fmt::format("qk_matmul_output_mode is {}", mode)};
    return with_heads(mode == 0 ? raw_ : mode == 1 ? capped_ : mode == 2 ? biased_ : weights_, of_.total);
  }

 private:
  Part softmax() const {
    const auto of_rows = [&](Part x) { return body_.node("Softmax", {x}, {{"axis", std::int64_t(-1)}}); };
    if (!of_.sink.part) return of_rows(biased_);
    const std::int64_t axis = of_.heads == of_.groups ? 3 : 4;
    Shape column = {of_.batch, of_.groups, of_.heads / of_.groups, of_.length, 1};
    if (axis == 3) column.erase(column.begin() + 2);
    const Part sink = body_.node("Expand", {grouped(of_.sink.part, of_.sink.shape), body_.integers(column)});
    return body_.part(of_rows(body_.concatenated({biased_, sink}, axis)), axis, 0, of_.total);
  }
  // Heads that share keys get a dimension of their own, so that products broadcast over it.
  Part grouped(Part x, const Shape& shape, bool is_shared = false) const {
    if (of_.heads == of_.groups) return x;
    const bool is_one = is_shared || shape[1] == 1;
    return body_.reshaped(x, {shape[0],
                              is_shared ? of_.groups
                              : is_one  ? 1
                                        : of_.groups,
                              is_one ? 1 : of_.heads / of_.groups, shape[2], shape[3]});
  }
  Part with_heads(Part x, std::int64_t last) const {
    return of_.heads == of_.groups ? x : body_.reshaped(x, {of_.batch, of_.heads, of_.length, last});
  }

  Body& body_;
  const Attended of_;
  Part raw_, capped_, biased_, weights_, y_;
};

// [batch,rows,heads*size] by heads.
Part by_heads(Body& body, Part x, std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t size) {
  return body.transposed(body.reshaped(x, {batch, rows, heads, size}), {0, 2, 1, 3});
}

std::int64_t divided(std::int64_t extent, std::int64_t heads) {
  if (heads < 1 || extent % heads != 0) throw Malformed{fmt::format("{} places in {} heads", extent, heads)};
  return extent / heads;
}

// With dimensions of 1 in front.
Shape of_four(const Shape& shape) {
  if (shape.size() > 4) throw Malformed{fmt::format("its mask is {}", to_text(shape))};
  Shape four(4 - shape.size(), 1);
  four.insert(four.end(), shape.begin(), shape.end());
  return four;
}

void must_fit(const Shaped& bias, const Attended& of) {
  const Shape scores = {of.batch, of.heads, of.length, of.total};
  if (bias.part && broadcast({scores, bias.shape}) != scores)
    throw Malformed{fmt::format("its mask is {}, its scores {}", to_text(bias.shape), to_text(scores))};
}

// Keys whose place compares so with the query's, moved by `distance`; queries begin after `offset` keys, which may be
// one number for each batch.
Shaped placed(Body& body, const Attended& of, const Shaped& offset, const char* comparison, std::int64_t distance = 0) {
  const std::int64_t farthest = of.total + of.length;  // beyond it, a distance changes nothing
  distance = std::clamp(distance, -farthest, farthest);
  const Part query = counted(body, distance, of.length, {1, 1, of.length, 1}) + offset.part;
  return {body.node(comparison, {counted(body, 0, of.total, {1, 1, 1, of.total}), query}),
          {offset.shape[0], 1, of.length, of.total}};
}
Shaped causal(Body& body, const Attended& of, const Shaped& offset) {
  return placed(body, of, offset, "LessOrEqual");
}

void mask_others(Body& body, Attended& of, const Shaped& keeps) {
  of.bias = both(of.bias, filtered(body, keeps, -infinity, of.type));
}

// ---- ONNX's own ----

// Keys, or values, after those of a cache of shape [batch,heads,length,size].
Part after_past(Body& body, Part x, int past) {
  return body.call().has(past) ? body.concatenated({body.operand(past), x}, 2) : x;
}

class OnnxAttention {
 public:
  explicit OnnxAttention(const Call& call) : call_(call), body_(call) {}

  Graph graph() && {
    read_shapes();
    Part key = part(1, of_.groups), value = part(2, of_.groups);
    for (const int past : {4, 5}) {
      if (!call_.has(past)) continue;
      const Shape& shape = call_.shape(past);
      if (shape.size() != 4) throw Malformed{fmt::format("its cache is {}", to_text(shape))};
      if (past == 4) past_ = shape[2];
    }
    if (call_.has(4) != call_.has(5)) throw Malformed{"it has a cache of keys or of values alone"};
    of_.total += past_;
    of_.q = part(0, of_.heads);
    of_.k = key = after_past(body_, key, 4);
    of_.v = value = after_past(body_, value, 5);
    add_bias();
    const Attention attention(body_, of_);
    std::vector<Part> results = {call_.rank(0) == 3 ? attention.by_row() : attention.by_head(), key, value};
    if (call_.wants(3)) results.push_back(attention.scores(call_.integer("qk_matmul_output_mode", 0)));
    return std::move(body_).results(results);
  }

 private:
  void read_shapes() {
    const Shape &q = call_.shape(0), &k = call_.shape(1), &v = call_.shape(2);
    if (q.size() != k.size() || q.size() != v.size() || (q.size() != 3 && q.size() != 4))
      throw Malformed{fmt::format("queries {}, keys {}, values {}", to_text(q), to_text(k), to_text(v))};
    const bool is_flat = q.size() == 3;
    of_.type = call_.type(0);
    of_.batch = q[0];
    of_.heads = is_flat ? call_.integer("q_num_heads", 0) : q[1];
    of_.groups = is_flat ? call_.integer("kv_num_heads", 0) : k[1];
    of_.length = q[is_flat ? 1 : 2], of_.total = k[is_flat ? 1 : 2];
    of_.size = is_flat ? divided(q[2], of_.heads) : q[3];
    of_.value_size = is_flat ? divided(v[2], of_.groups) : v[3];
    if (k[0] != q[0] || v[0] != q[0] || v[is_flat ? 1 : 2] != of_.total ||
        (is_flat ? divided(k[2], of_.groups) : k[3]) != of_.size || (!is_flat && v[1] != of_.groups))
      throw Malformed{fmt::format("queries {}, keys {}, values {}", to_text(q), to_text(k), to_text(v))};
    of_.scale = call_.number("scale", 1 / std::sqrt(double(of_.size)));
    of_.softcap = call_.number("softcap", 0);
  }

  Part part(int operand, std::int64_t heads) {
    const Shape& shape = call_.shape(operand);
    if (shape.size() == 4) return body_.operand(operand);
    return by_heads(body_, body_.operand(operand), shape[0], shape[1], heads, divided(shape[2], heads));
  }

  // The mask may name fewer keys than there are: the others are masked.
  Shaped given_bias() {
    Shape shape = of_four(call_.shape(3));
    const bool is_boolean = call_.type(3) == DType::u8;
    Part mask = body_.reshaped(body_.operand(3), shape);
    if (const std::int64_t missing = of_.total - shape[3]; missing > 0) {
      const Part pads = body_.integers({0, 0, 0, 0, 0, 0, 0, missing});
      mask = body_.node("Pad", {mask, pads, body_.number(is_boolean ? 0 : -infinity, call_.type(3))});
      shape[3] = of_.total;
    }
    return is_boolean ? filtered(body_, {mask, shape}, -infinity, of_.type) : Shaped{mask, shape};
  }

  void add_bias() {
    Shaped offset = {body_.integers({past_}), {1}};
    if (call_.has(3)) of_.bias = given_bias();
    if (call_.has(6)) {
      if (call_.has(4)) throw Malformed{"it has a cache and numbers of keys"};
      const Part keys = body_.reshaped(body_.operand(6), {of_.batch, 1, 1, 1});
      offset = {keys - body_.integers({of_.length}), {of_.batch}};
      mask_others(body_, of_,
                  {body_.node("Less", {counted(body_, 0, of_.total, {1, 1, 1, of_.total}), keys}),
                   {of_.batch, 1, 1, of_.total}});
    }
    if (call_.integer("is_causal", 0) != 0) mask_others(body_, of_, causal(body_, of_, offset));
    const std::int64_t left = call_.integer("left_window_size", -1), right = call_.integer("right_window_size", -1);
    if (left >= 0) mask_others(body_, of_, placed(body_, of_, offset, "GreaterOrEqual", -left));
    if (right >= 0) mask_others(body_, of_, placed(body_, of_, offset, "LessOrEqual", right));
    must_fit(of_.bias, of_);
    if (!call_.has(3) && !call_.has(6) && left < 0) return;  // each row has a key
    Shape rows = of_.bias.shape;
    rows[3] = 1;
    const Part largest = body_.node("ReduceMax", {of_.bias.part, body_.integers({3})});
    of_.is_masked = {body_.node("Equal", {largest, body_.number(-infinity, of_.type)}), rows};
  }

  const Call& call_;
  Body body_;
  Attended of_;
  std::int64_t past_ = 0;
};

Graph attention(const Call& call) {
  return OnnxAttention(call).graph();
}

// ---- onnxruntime's own ----

// A mask of keys: lengths [batch], ends and begins [2*batch], [batch,total] or [batch,length,total].
Shaped padding(Body& body, int operand, const Attended& of, double filter) {
  const Call& call = body.call();
  const Shape& shape = call.shape(operand);
  const auto at_key = [&] { return body.cast(counted(body, 0, of.total, {1, 1, 1, of.total}), call.type(operand)); };
  const auto number = [&](std::int64_t begin) {
    return body.reshaped(body.part(body.operand(operand), 0, begin, begin + of.batch), {of.batch, 1, 1, 1});
  };
  Shaped keeps = {{}, {of.batch, 1, 1, of.total}};
  if (shape == Shape{of.batch} || shape == Shape{2 * of.batch}) {
    keeps.part = body.node("Less", {at_key(), number(0)});
    if (shape[0] != of.batch)
      keeps.part = body.node("And", {keeps.part, body.node("GreaterOrEqual", {at_key(), number(of.batch)})});
  } else if (shape == Shape{of.batch, of.total} || shape == Shape{of.batch, of.length, of.total}) {
    if (shape.size() == 3) keeps.shape[2] = of.length;
    const Part mask = body.reshaped(body.operand(operand), keeps.shape);
    keeps.part = body.node("Greater", {mask, body.cast(body.number(0, DType::f32), call.type(operand))});
  } else {
    throw Unsupported{fmt::format("a mask of the shape {}", to_text(shape))};
  }
  return filtered(body, keeps, filter, of.type);
}

// What both of onnxruntime's add to scores: operands are a mask and a bias.
void add_bias(Body& body, Attended& of, int mask, int bias, std::int64_t past) {
  const Call& call = body.call();
  if (call.has(mask)) of.bias = padding(body, mask, of, call.number("mask_filter_value", -10000));
  if (call.integer("unidirectional", 0) != 0)
    of.bias = both(of.bias, filtered(body, causal(body, of, {body.integers({past}), {1}}), -infinity, of.type));
  if (call.has(bias)) of.bias = both(of.bias, {body.operand(bias), of_four(call.shape(bias))});
  must_fit(of.bias, of);
}

double scale_of(const Call& call, std::int64_t size) {
  const double scale = call.number("scale", 0);
  return scale != 0 ? scale : 1 / std::sqrt(double(size));
}

Graph multi_head_attention(const Call& call) {
  if (call.rank(0) != 3 || !call.has(1) || !call.has(2)) throw Unsupported{"packed queries, keys and values"};
  for (const int number : {8, 9})
    if (call.has(number)) throw Unsupported{"a cache that is shared"};
  const Shape &q = call.shape(0), &k = call.shape(1), &v = call.shape(2);
  const bool is_flat = k.size() == 3;
  if (v.size() != k.size() || (!is_flat && k.size() != 4)) throw Unsupported{"packed keys and values"};
  Body body(call);
  Attended of;
  of.type = call.type(0), of.batch = q[0], of.length = q[1];
  of.heads = of.groups = call.integer("num_heads", 0);
  of.size = divided(q[2], of.heads), of.value_size = is_flat ? divided(v[2], of.heads) : v[3];
  of.total = k[is_flat ? 1 : 2];
  of.scale = scale_of(call, of.size);
  Part parts[3] = {body.operand(0), body.operand(1), body.operand(2)};
  if (call.has(3)) {
    if (!is_flat) throw Unsupported{"a bias of keys that are there by heads"};
    std::int64_t begin = 0;
    for (int p = 0; p < 3; ++p) {
      const std::int64_t end = begin + call.shape(p).back();
      parts[p] = parts[p] + body.part(body.operand(3), 0, begin, end);
      begin = end;
    }
    if (call.shape(3) != Shape{begin}) throw Malformed{fmt::format("its bias is {}", to_text(call.shape(3)))};
  }
  of.q = by_heads(body, parts[0], of.batch, of.length, of.heads, of.size);
  of.k = is_flat ? by_heads(body, parts[1], of.batch, of.total, of.heads, divided(k[2], of.heads)) : parts[1];
  of.v = is_flat ? by_heads(body, parts[2], of.batch, of.total, of.heads, of.value_size) : parts[2];
  of.k = after_past(body, of.k, 6), of.v = after_past(body, of.v, 7);
  const std::int64_t past = call.has(6) && call.rank(6) == 4 ? call.shape(6)[2] : 0;
  of.total += past;
  add_bias(body, of, 4, 5, past);
  const Attention attention(body, of);
  return std::move(body).results({attention.by_row(), of.k, of.v});
}

// Queries of more heads than keys and values have, after those of a cache with room for what is new, or of one that
// grows. How many keys there are, only a run may know (seqlens_k).
class GroupedAttention {
 public:
  explicit GroupedAttention(const Call& call) : call_(call), body_(call) {}

  Graph graph() && {
    refuse();
    read_shapes();
    Part q = body_.operand(0), k = body_.operand(1), v = body_.operand(2);
    if (!k) {
      const std::int64_t keys = of_.heads * of_.size, values = keys + of_.groups * of_.size;
      k = body_.part(q, 2, keys, values);
      v = body_.part(q, 2, values, call_.shape(0)[2]);
      q = body_.part(q, 2, 0, keys);
    }
    read_lengths();
    if (call_.integer("do_rotary", 0) != 0) q = turned(q, of_.heads), k = turned(k, of_.groups);
    of_.q = by_heads(body_, q, of_.batch, of_.length, of_.heads, of_.size);
    of_.k = cached(by_heads(body_, k, of_.batch, of_.length, of_.groups, of_.size), 3);
    of_.v = cached(by_heads(body_, v, of_.batch, of_.length, of_.groups, of_.size), 4);
    add_bias();
    return std::move(body_).results({Attention(body_, of_).by_row(), of_.k, of_.v});
  }

 private:
  void refuse() const {
    for (const char* const name : {"kv_cache_bit_width", "qk_output", "sliding_window_cache"})
      if (call_.integer(name, 0) != 0) throw Unsupported{name};
    for (const char* const name : {"k_quant_type", "v_quant_type"})
      if (call_.text(name, "NONE") != "NONE") throw Unsupported{name};
    constexpr const char* others[] = {"k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens"};
    for (int o = 0; o < 5; ++o)
      if (call_.has(12 + o)) throw Unsupported{others[o]};
    if (call_.has(1) != call_.has(2) || call_.has(3) != call_.has(4))
      throw Malformed{"it has keys without values, or values without keys"};
  }

  void read_shapes() {
    const Shape& q = call_.shape(0);
    of_.heads = call_.integer("num_heads", 0), of_.groups = call_.integer("kv_num_heads", 0);
    if (q.size() != 3 || of_.groups < 1 || of_.heads < of_.groups || of_.heads > q[2] || of_.heads % of_.groups != 0)
      throw Malformed{fmt::format("queries {} of {} heads in {} groups", to_text(q), of_.heads, of_.groups)};
    const bool is_packed = !call_.has(1);
    of_.type = call_.type(0), of_.batch = q[0], of_.length = q[1];
    of_.size = of_.value_size = divided(q[2], is_packed ? of_.heads + 2 * of_.groups : of_.heads);
    of_.scale = scale_of(call_, of_.size);
    of_.softcap = call_.number("softcap", 0);
    for (const int number : {1, 2})
      if (const Shape own = {of_.batch, of_.length, of_.groups * of_.size}; !is_packed && call_.shape(number) != own)
        throw Malformed{fmt::format("operand {} is {}, not {}", number, to_text(call_.shape(number)), to_text(own))};
    if (!call_.has(3)) return;
    if (call_.rank(3) == 4) past_ = call_.shape(3)[2];
    for (const int number : {3, 4})
      if (const Shape own = {of_.batch, of_.groups, past_, of_.size}; call_.shape(number) != own)
        throw Malformed{fmt::format("its cache is {}, not {}", to_text(call_.shape(number)), to_text(own))};
  }

  // A cache that is as long as all there may be keeps its length, whatever a run fills of it.
  void read_lengths() {
    if (elements_of(call_.shape(5)) != of_.batch)
      throw Malformed{fmt::format("{} lengths for {} batches", to_text(call_.shape(5)), of_.batch)};
    const bool is_known = call_.is_known(6) || past_ == 0;
    const std::int64_t all = call_.is_known(6) ? std::int64_t(call_.scalar(6)) : past_ == 0 ? of_.length : past_;
    of_.total = std::max(all, past_);
    if (all < of_.length || of_.total > most_keys)
      throw Malformed{fmt::format("{} keys and values, {} of them new", of_.total, of_.length)};
    is_first_ = is_known && all == of_.length;
    const Part lengths = body_.cast(body_.reshaped(body_.operand(5), {of_.batch}), DType::i64);
    filled_ = lengths + body_.integers({1});
    begin_ = is_first_ ? body_.node("Expand", {body_.integers({0}), body_.integers({of_.batch})})
                       : body_.node("Max", {filled_ - body_.integers({of_.length}), body_.integers({0})});
  }

  // By the places of rows, which follow those of the cache if none are given.
  Part turned(Part x, std::int64_t heads) {
    Part places = body_.operand(9);
    if (!places) {
      places = body_.reshaped(begin_, {of_.batch, 1}) + counted(body_, 0, of_.length, {1, of_.length});
    } else if (is_first_) {
      const Part all = body_.reshaped(places, {elements_of(call_.shape(9))});
      places = body_.part(all, 0, 0, 1);
    }
    if (call_.rank(7) != 2) throw Malformed{fmt::format("its cosines are {}", to_text(call_.shape(7)))};
    const std::int64_t half = call_.shape(7)[1];
    Body::Attributes attributes = {{"interleaved", call_.integer("rotary_interleaved", 0)}, {"num_heads", heads}};
    if (2 * half != of_.size) attributes["rotary_embedding_dim"] = 2 * half;
    return body_.node("com.microsoft.RotaryEmbedding", {x, places, body_.operand(7), body_.operand(8)}, attributes);
  }

  // What is new, in its place in the cache; [batch,groups,length,size].
  Part cached(Part x, int past) {
    if (of_.total == of_.length) return x;
    const Shape missing = {of_.batch, of_.groups, of_.total - past_, of_.size};
    const Part zeros = body_.node("Expand", {body_.number(0, of_.type), body_.integers(missing)});
    Part all = past_ == 0 ? zeros : body_.operand(past);
    if (past_ != 0 && missing[2] != 0) all = body_.concatenated({all, zeros}, 2);
    return body_.node("TensorScatter", {all, x, begin_}, {{"axis", std::int64_t(2)}});
  }

  void add_bias() {
    const Shape rows = {of_.batch, 1, 1, 1};
    const Shaped begin = {body_.reshaped(begin_, rows), rows};
    if (call_.integer("causal", 1) != 0)
      mask_others(body_, of_, causal(body_, of_, begin));
    else
      mask_others(
          body_, of_,
          {body_.node("Less", {counted(body_, 0, of_.total, {1, 1, 1, of_.total}), body_.reshaped(filled_, rows)}),
           {of_.batch, 1, 1, of_.total}});
    if (const std::int64_t window = call_.integer("local_window_size", -1); window > 0)
      mask_others(body_, of_, placed(body_, of_, begin, "Greater", -window));
    if (call_.has(10)) {
      Shape shape = of_four(call_.shape(10));
      Part bias = body_.reshaped(body_.operand(10), shape);
      if (const std::int64_t missing = of_.total - shape[3]; missing > 0)
        bias = body_.node("Pad", {bias, body_.integers({0, 0, 0, 0, 0, 0, 0, missing}), body_.number(0, of_.type)});
      shape[3] = std::max(shape[3], of_.total);
      of_.bias = both(of_.bias, {bias, shape});
    }
    must_fit(of_.bias, of_);
    if (call_.has(11))
      of_.sink = {body_.reshaped(body_.operand(11), {1, of_.heads, 1, 1}), {1, of_.heads, 1, 1}};
    else if (call_.integer("smooth_softmax", 0) > 0)
      of_.sink = {body_.reshaped(body_.number(0, of_.type), {1, 1, 1, 1}), {1, 1, 1, 1}};
  }

  static constexpr std::int64_t most_keys = 1 << 24;
  const Call& call_;
  Body body_;
  Attended of_;
  std::int64_t past_ = 0;
  bool is_first_ = false;  // nothing of the cache is filled
  Part filled_, begin_;    // [batch]: how many keys there are, and the place of the first new one
};

Graph grouped_attention(const Call& call) {
  return GroupedAttention(call).graph();
}

// Projections of one input, and their attention.
Graph projected_attention(const Call& call) {
  if (call.has(6)) throw Unsupported{"a cache that is shared"};
  for (const char* const name : {"do_rotary", "past_present_share_buffer"})
    if (call.integer(name, 0) != 0) throw Unsupported{name};
  if (call.rank(0) != 3 || call.rank(1) != 2)
    throw Malformed{fmt::format("its input is {}, its weights are {}", to_text(call.shape(0)), to_text(call.shape(1)))};
  const Shape& x = call.shape(0);
  const std::int64_t all = call.shape(1)[1];
  const List sizes = call.list("qkv_hidden_sizes").value_or(List(3, all / 3));
  if (sizes.size() != 3 || std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)) != all)
    throw Malformed{fmt::format("{} columns of weights", all)};
  Body body(call);
  Attended of;
  of.type = call.type(0), of.batch = x[0], of.length = of.total = x[1];
  of.heads = of.groups = call.integer("num_heads", 0);
  of.size = divided(sizes[0], of.heads), of.value_size = divided(sizes[2], of.heads);
  of.scale = scale_of(call, of.size);
  Part together = body.node("MatMul", {body.operand(0), body.operand(1)});
  if (call.has(2)) together = together + body.operand(2);
  const std::vector<Part> parts = body.nodes("Split", {together, body.integers(sizes)}, 3, {{"axis", std::int64_t(2)}});
  const auto heads = [&](int p) {
    return by_heads(body, parts[std::size_t(p)], of.batch, of.length, of.heads,
                    divided(sizes[std::size_t(p)], of.heads));
  };
  of.q = heads(0), of.k = heads(1), of.v = heads(2);
  std::int64_t past = 0;
  if (call.has(4)) {
    if (call.rank(4) != 5 || call.shape(4)[0] != 2)
      throw Malformed{fmt::format("its cache is {}", to_text(call.shape(4)))};
    past = call.shape(4)[3];
    const auto cached = [&](std::int64_t which) {
      return body.reshaped(body.part(body.operand(4), 0, which, which + 1),
                           {call.shape(4).begin() + 1, call.shape(4).end()});
    };
    of.k = body.concatenated({cached(0), of.k}, 2), of.v = body.concatenated({cached(1), of.v}, 2);
    of.total += past;
  }
  add_bias(body, of, 3, 5, past);
  std::vector<Part> results = {Attention(body, of).by_row()};
  if (call.wants(1)) {
    const auto row = [&](Part one, std::int64_t size) {
      return body.reshaped(one, {1, of.batch, of.heads, of.total, size});
    };
    results.push_back(body.concatenated({row(of.k, of.size), row(of.v, of.value_size)}, 0));
  }
  return std::move(body).results(results);
}

// ---- positions ----

// Numbers of operands.
struct Turning {
  int cosine, sine, places;
  bool is_onnx;
};

// Cosines or sines for each row, [batch,rows,half].
Part by_place(Body& body, int table, const Turning& of, std::int64_t batch, std::int64_t rows) {
  const Call& call = body.call();
  if (!call.has(of.places)) return body.operand(table);
  Part places = body.operand(of.places);
  if (elements_of(call.shape(of.places)) == 1 && !of.is_onnx) {
    places = body.reshaped(places, {1, 1}) + counted(body, 0, rows, {1, rows});
    places = body.node("Expand", {places, body.integers({batch, rows})});
  }
  return body.node("Gather", {body.operand(table), places}, {{"axis", std::int64_t(0)}});
}

Graph turned_by_place(const Call& call, const Turning& of) {
  if (call.integer("is_packed_batching", 0) != 0) throw Unsupported{"is_packed_batching"};
  if (call.number("scale", 1) != 1) throw Unsupported{"scale"};
  const Shape& x = call.shape(0);
  if (x.size() != 3 && x.size() != 4) throw Malformed{fmt::format("its input is {}", to_text(x))};
  if (call.rank(of.cosine) < 2) throw Malformed{fmt::format("its cosines are {}", to_text(call.shape(of.cosine)))};
  const bool is_flat = x.size() == 3;
  const std::int64_t half = call.shape(of.cosine).back(), batch = x[0], rows = x[is_flat ? 1 : 2];
  const std::int64_t named = call.integer("num_heads", 0), turned = call.integer("rotary_embedding_dim", 0);
  const std::int64_t heads = !is_flat ? x[1] : named > 0 ? named : divided(x[2], std::max<std::int64_t>(1, 2 * half));
  const std::int64_t size = is_flat ? divided(x[2], heads) : x[3], width = turned > 0 ? turned : size;
  if (2 * half != width || width > size)
    throw Malformed{fmt::format("{} cosines for {} of {} places", half, width, size)};
  Body body(call);
  // Rows, then heads, or the other way.
  const Shape shape = is_flat ? Shape{batch, rows, heads, size} : x;
  const auto table = [&](int number) {
    return body.reshaped(by_place(body, number, of, batch, rows),
                         is_flat ? Shape{batch, rows, 1, half} : Shape{batch, 1, rows, half});
  };
  const Part cosine = table(of.cosine), sine = table(of.sine);
  const Part all = is_flat ? body.reshaped(body.operand(0), shape) : body.operand(0);
  const Part part = width == size ? all : body.part(all, 3, 0, width);
  const bool is_interleaved = call.integer("interleaved", 0) != 0;
  const auto halves = [&](std::int64_t which) {
    if (!is_interleaved) return body.part(part, 3, which * half, (which + 1) * half);
    const Part pairs = body.reshaped(part, {shape[0], shape[1], shape[2], half, 2});
    return body.reshaped(body.part(pairs, 4, which, which + 1), {shape[0], shape[1], shape[2], half});
  };
  const Part first = halves(0), second = halves(1);
  Part real = first * cosine - second * sine, imaginary = first * sine + second * cosine;
  if (is_interleaved) {
    const Shape column = {shape[0], shape[1], shape[2], half, 1};
    const Part pairs = body.concatenated({body.reshaped(real, column), body.reshaped(imaginary, column)}, 4);
    real = body.reshaped(pairs, {shape[0], shape[1], shape[2], width});
  }
  std::vector<Part> parts = {real};
  if (!is_interleaved) parts.push_back(imaginary);
  if (width != size) parts.push_back(body.part(all, 3, width, size));
  const Part y = parts.size() == 1 ? real : body.concatenated(parts, 3);
  return std::move(body).results({is_flat ? body.reshaped(y, x) : y});
}

}  // namespace

std::vector<Row> attention_rows() {
  const auto turned = [](Turning of) { return [of](const Call& call) { return turned_by_place(call, of); }; };
  return {
      composed("Attention", 3, 7,
               "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale "
               "softcap softmax_precision",
               attention),
      composed("com.microsoft.MultiHeadAttention", 1, 10, "mask_filter_value num_heads scale unidirectional",
               multi_head_attention),
      composed("com.microsoft.GroupQueryAttention", 6, 17,
               "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads qk_output "
               "rotary_interleaved scale sliding_window_cache smooth_softmax softcap v_quant_type",
               grouped_attention),
      composed(
          "com.microsoft.Attention", 2, 7,
          "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim scale "
          "unidirectional",
          projected_attention),
      composed("RotaryEmbedding", 3, 4, "interleaved num_heads rotary_embedding_dim", turned({1, 2, 3, true})),
      composed("com.microsoft.RotaryEmbedding", 4, 4,
               "interleaved is_packed_batching num_heads rotary_embedding_dim scale", turned({2, 3, 1, false})),
  };
}

}  // namespace graft::graph
