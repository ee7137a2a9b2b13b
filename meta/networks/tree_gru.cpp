#include "meta/networks/tree_gru.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <utility>

#include "meta/networks/dense.h"
#include "meta/networks/packed_trees.h"

namespace graft::meta {
namespace {

constexpr Transposed no = Transposed::no, yes = Transposed::yes;

// Blocks of the layout; the decoder's layers follow.
enum Block {
  embedding_weight,
  embedding_bias,
  gates_weight,
  gates_bias,
  state_weight,
  state_bias,
  slots_weight,
  decoder
};

// One pass over a batch, on numbers N: what forward computes and backward needs.
//
// A node's row is [S | e | r*S], so that the gates' input [S e] and the new state's [e r*S] are contiguous. Its gates
// are [r | z | n]. S of a leaf is 0: its row has only e, its gates only z and n.
template <class N>
struct Pass {
  Values<N> x, rows, gates, h, shares, slots;  // by node: x (no slopes), rows, gates, h, shares; by program: slots
  std::vector<Values<N>> decoded;              // by program, of each layer of the decoder
};

template <class T>
class TreeGru final : public NetworkOf<T> {
 public:
  using Tape = typename NetworkOf<T>::Tape;

  TreeGru(const NetworkShape& shape, bool share_equal)
      : layout_(tree_gru_layout(shape)), shape_(shape), share_equal_(share_equal) {
    assert(inputs() > 0 && embedded() > 0 && units() > 0 && shape.tree.slots > 0);
  }

  std::int64_t inputs() const override { return shape_.inputs; }
  std::int64_t parameters() const override { return layout_.back().offset + layout_.back().size; }
  const std::vector<ParameterBlock>& layout() const override { return layout_; }

  std::unique_ptr<Tape> forward(std::span<const T> theta, const Inputs<T>& programs,
                                std::span<T> scores) const override {
    auto tape = std::make_unique<Record>();
    tape->programs = programs;
    tape->packed = pack(programs, inputs(), share_equal_);
    up<T>(constants(theta), *tape, true, tape->pass, {scores.data(), nullptr, shape_.outputs});
    return tape;
  }

  void score(std::span<const T> theta, const Inputs<T>& programs, std::span<T> scores) const override {
    Record record;
    record.programs = programs;
    record.packed = pack(programs, inputs(), share_equal_);
    up<T>(constants(theta), record, false, record.pass, {scores.data(), nullptr, shape_.outputs});
  }

  void backward(std::span<const T> theta, const Tape& tape, std::span<const T> u,
                std::span<T> gradient) const override {
    const auto& record = static_cast<const Record&>(tape);
    down<T>(constants(theta), record, record.pass, {u.data(), nullptr, shape_.outputs},
            {gradient.data(), nullptr, parameters()});
  }

  std::unique_ptr<Tape> tangent_forward(std::span<const T> theta, const Tape& tape, std::span<const T> v,
                                        std::span<T> score_tangent) const override {
    auto tangent = std::make_unique<TangentRecord>();
    const auto& record = static_cast<const Record&>(tape);
    std::vector<T> again(score_tangent.size());
    up<Dual<T>>({theta.data(), v.data(), parameters()}, record, true, tangent->pass,
                {again.data(), score_tangent.data(), shape_.outputs});
    return tangent;
  }

  void tangent_backward(std::span<const T> theta, const Tape& tape, const Tape& tangent_tape, std::span<const T> v,
                        std::span<const T> u, std::span<const T> du, std::span<T> gradient) const override {
    down<Dual<T>>({theta.data(), v.data(), parameters()}, static_cast<const Record&>(tape),
                  static_cast<const TangentRecord&>(tangent_tape).pass, {u.data(), du.data(), shape_.outputs},
                  {nullptr, gradient.data(), parameters()});
  }

 private:
  struct Record final : Tape {
    Inputs<T> programs;
    PackedTrees packed;
    Pass<T> pass;
  };
  struct TangentRecord final : Tape {
    Pass<Dual<T>> pass;
  };

  std::int64_t embedded() const { return shape_.tree.embedding; }
  std::int64_t units() const { return shape_.tree.units; }
  std::int64_t slots() const { return shape_.tree.slots; }
  std::int64_t row_width() const { return embedded() + 2 * units(); }
  static ConstView<T> constants(std::span<const T> values) { return {values.data(), nullptr, 1}; }

  template <class N>
  ConstView<N> block(ConstView<N> theta, std::size_t which) const {
    return block_of<N>(theta, layout_[which]);
  }
  template <class N>
  View<N> block(View<N> theta, std::size_t which) const {
    return block_of<N>(theta, layout_[which]);
  }
  template <class N>
  Dense<N> embedding(ConstView<N> theta) const {
    return dense<N>(theta, layout_[embedding_weight], layout_[embedding_bias], true);
  }
  template <class N>
  Dense<N> decoder_layer(ConstView<N> theta, std::size_t l) const {
    const std::size_t at = decoder + 2 * l;
    return dense<N>(theta, layout_[at], layout_[at + 1], at + 2 < layout_.size());
  }
  std::size_t decoder_layers() const { return (layout_.size() - decoder) / 2; }

  // keep: for backward; without, a level's rows, gates and x are overwritten by the next level's.
  template <class N>
  void up(ConstView<N> theta, const Record& record, bool keep, Pass<N>& pass, View<N> scores) const {
    const PackedTrees& packed = record.packed;
    std::int64_t most = packed.nodes();
    if (!keep) {
      most = 0;
      for (std::size_t l = 0; l + 1 < packed.levels.size(); ++l)
        most = std::max(most, packed.levels[l + 1] - packed.levels[l]);
    }
    pass.x = Values<N>(most, inputs());
    pass.rows = Values<N>(most, row_width());
    pass.gates = Values<N>(most, 3 * units());
    pass.h = Values<N>(packed.nodes(), units());
    for (std::size_t l = 0; l + 1 < packed.levels.size(); ++l) {
      level_up<N>(theta, record, pass, l, keep ? packed.levels[l] : 0);
    }
    scatter<N>(theta, record, pass);
    ConstView<N> below = pass.slots.view();
    pass.decoded.resize(decoder_layers() - 1);
    for (std::size_t l = 0; l < decoder_layers(); ++l) {
      const Dense<N> layer = decoder_layer<N>(theta, l);
      const bool last = l + 1 == decoder_layers();
      if (!last) pass.decoded[l] = Values<N>(record.programs.programs(), layer.out);
      meta::forward<N>(layer, record.programs.programs(), below, last ? scores : pass.decoded[l].view());
      if (!last) below = pass.decoded[l].view();
    }
  }

  // Nodes of one height; their rows begin at `at`.
  template <class N>
  void level_up(ConstView<N> theta, const Record& record, Pass<N>& pass, std::size_t level, std::int64_t at) const {
    const PackedTrees& packed = record.packed;
    const std::int64_t first = packed.levels[level], count = packed.levels[level + 1] - first, width = units();
    ConstView<N> x = pass.x.row(at);
    x.slope = nullptr;
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(pass.x.row(at + i).value, record.programs.x.data() + packed.rows[first + i] * inputs(),
                  sizeof(T) * std::size_t(inputs()));
    }
    const View<N> rows = pass.rows.row(at), e = rows.from(0, width), gates = pass.gates.row(at), h = pass.h.row(first);
    meta::forward<N>(embedding<N>(theta), count, x, e);
    const ConstView<N> gate_weight = block<N>(theta, gates_weight), gate_bias = block<N>(theta, gates_bias),
                       state = block<N>(theta, state_weight), state_shift = block<N>(theta, state_bias);
    const View<N> n_gate = gates.from(0, 2 * width);
    if (level == 0) {
      multiply<N>(no, no, count, width, embedded(), e, gate_weight.from(width, width), 0, gates.from(0, width));
      multiply<N>(no, no, count, width, embedded(), e, state, 0, n_gate);
    } else {
      sum_children<N>(packed, first, count, pass.h.view(), rows);
      multiply<N>(no, no, count, 2 * width, width + embedded(), rows, gate_weight, 0, gates);
      with_wide_vectors([&]() GRAFT_INLINED {
        for (std::int64_t i = 0; i < count; ++i) {
          const View<N> g = gates.from(i, 0), s = rows.from(i, 0), rs = s.from(0, width + embedded());
#pragma omp simd
          for (std::int64_t j = 0; j < width; ++j) {
            const N r = sigmoid(g.at(j) + gate_bias.at(j));
            g.put(j, r);
            rs.put(j, r * s.at(j));
          }
        }
      });
      multiply<N>(no, no, count, width, width + embedded(), e, state, 0, n_gate);
    }
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::int64_t i = 0; i < count; ++i) {
        const View<N> g = gates.from(i, 0), s = rows.from(i, 0), to = h.from(i, 0);
        const auto gate = [&](std::int64_t j) GRAFT_INLINED {
          const N z = sigmoid(g.at(width + j) + gate_bias.at(width + j));
          const N n = hyperbolic_tangent(g.at(2 * width + j) + state_shift.at(j));
          g.put(width + j, z);
          g.put(2 * width + j, n);
          return std::pair(z, n);
        };
        if (level == 0) {  // a loop of its own: a load that depends on something makes no vectors
#pragma omp simd
          for (std::int64_t j = 0; j < width; ++j) {
            const auto [z, n] = gate(j);
            to.put(j, n - z * n);
          }
        } else {
#pragma omp simd
          for (std::int64_t j = 0; j < width; ++j) {
            const auto [z, n] = gate(j);
            to.put(j, n + z * (s.at(j) - n));
          }
        }
      }
    });
  }

  template <class N>
  void sum_children(const PackedTrees& packed, std::int64_t first, std::int64_t count, ConstView<N> h,
                    View<N> sums) const {
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::int64_t i = 0; i < count; ++i) {
        const View<N> sum = sums.from(i, 0);
        const std::int64_t begin = packed.child_begins[first + i], end = packed.child_begins[first + i + 1];
        const ConstView<N> eldest = h.from(packed.children[begin], 0);
#pragma omp simd
        for (std::int64_t j = 0; j < units(); ++j) sum.put(j, eldest.at(j));
        for (std::int64_t c = begin + 1; c < end; ++c) {
          const ConstView<N> child = h.from(packed.children[c], 0);
#pragma omp simd
          for (std::int64_t j = 0; j < units(); ++j) sum.put(j, sum.at(j) + child.at(j));
        }
      }
    });
  }

  template <class N>
  void scatter(ConstView<N> theta, const Record& record, Pass<N>& pass) const {
    const PackedTrees& packed = record.packed;
    const std::int64_t count = slots(), width = units();
    pass.shares = Values<N>(packed.nodes(), count);
    const View<N> shares = pass.shares.view();
    multiply<N>(no, no, packed.nodes(), count, width, pass.h.view(), block<N>(theta, slots_weight), 0, shares);
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::int64_t i = 0; i < packed.nodes(); ++i) {
        const View<N> share = shares.from(i, 0);
        T top = share.value[0];
        for (std::int64_t s = 1; s < count; ++s) top = share.value[s] > top ? share.value[s] : top;
        for (std::int64_t s = 0; s < count; ++s) share.value[s] -= top;
      }
      // For all nodes at once: a node's slots alone would leave most of a vector empty.
#pragma omp simd
      for (std::int64_t i = 0; i < packed.nodes() * count; ++i) shares.value[i] = exponential(shares.value[i]);
      for (std::int64_t i = 0; i < packed.nodes(); ++i) {
        const View<N> share = shares.from(i, 0);
        T sum = 0;
        for (std::int64_t s = 0; s < count; ++s) sum += share.value[s];
        const T scale = 1 / sum;
#pragma omp simd
        for (std::int64_t s = 0; s < count; ++s) share.value[s] *= scale;
        if constexpr (is_dual<N>) {
          T mean = 0;
          for (std::int64_t s = 0; s < count; ++s) mean += share.value[s] * share.slope[s];
          for (std::int64_t s = 0; s < count; ++s) share.slope[s] = share.value[s] * (share.slope[s] - mean);
        }
      }
    });
    pass.slots = Values<N>(record.programs.programs(), count * width);
    pass.slots.clear();
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::int64_t p = 0; p < record.programs.programs(); ++p) {
        for (std::int64_t row = record.programs.begins[p]; row < record.programs.begins[p + 1]; ++row) {
          const std::int64_t node = packed.node_of_row[row];
          const ConstView<N> h = pass.h.row(node);
          for (std::int64_t s = 0; s < count; ++s) {
            const View<N> slot = pass.slots.view().from(p, s * width);
            const N share = shares.from(node, s).at(0);
#pragma omp simd
            for (std::int64_t j = 0; j < width; ++j) slot.put(j, slot.at(j) + share * h.at(j));
          }
        }
      }
    });
  }

  template <class N>
  void down(ConstView<N> theta, const Record& record, const Pass<N>& pass, ConstView<N> u, View<N> gradient) const {
    const PackedTrees& packed = record.packed;
    const std::int64_t programs = record.programs.programs(), width = units(), count = slots();
    // The decoder.
    Values<N> by_output(programs, shape_.outputs);
    for (std::int64_t p = 0; p < programs; ++p) {
      for (std::int64_t o = 0; o < shape_.outputs; ++o) by_output.row(p).put(o, u.from(p, o).at(0));
    }
    for (std::size_t l = decoder_layers(); l-- > 0;) {
      const Dense<N> layer = decoder_layer<N>(theta, l);
      const ConstView<N> in = l == 0 ? pass.slots.view() : pass.decoded[l - 1].view();
      const ConstView<N> out = l + 1 == decoder_layers() ? ConstView<N>() : pass.decoded[l].view();
      meta::backward<N>(layer, programs, in, out, by_output.view(), block<N>(gradient, decoder + 2 * l),
                        block<N>(gradient, decoder + 2 * l + 1));
      Values<N> by_input(programs, layer.in);
      backward_to_input<N>(layer, programs, by_output.view(), by_input.view());
      by_output = std::move(by_input);
    }
    // The slots: by h directly, and by the shares.
    Values<N> by_h(packed.nodes(), width), by_shares(packed.nodes(), count);
    by_h.clear();
    by_shares.clear();
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::int64_t p = 0; p < programs; ++p) {
        for (std::int64_t row = record.programs.begins[p]; row < record.programs.begins[p + 1]; ++row) {
          const std::int64_t node = packed.node_of_row[row];
          const ConstView<N> h = pass.h.row(node), share = pass.shares.row(node);
          const View<N> to_h = by_h.row(node), to_share = by_shares.row(node);
          for (std::int64_t s = 0; s < count; ++s) {
            const ConstView<N> slot = by_output.view().from(p, s * width);
            const N part = share.at(s);
#pragma omp simd
            for (std::int64_t j = 0; j < width; ++j) to_h.put(j, to_h.at(j) + part * slot.at(j));
            to_share.put(s, to_share.at(s) + product<N>(width, slot, h));
          }
        }
      }
      for (std::int64_t i = 0; i < packed.nodes(); ++i) {  // to the logits
        const ConstView<N> share = pass.shares.row(i);
        const View<N> by = by_shares.row(i);
        const N mean = product<N>(count, share, by);
        for (std::int64_t s = 0; s < count; ++s) by.put(s, share.at(s) * (by.at(s) - mean));
      }
    });
    multiply<N>(yes, no, width, count, packed.nodes(), pass.h.view(), by_shares.view(), 0,
                block<N>(gradient, slots_weight));
    multiply<N>(no, yes, packed.nodes(), width, count, by_shares.view(), block<N>(theta, slots_weight), 1, by_h.view());
    // The trees.
    Values<N> by_gates(packed.nodes(), 3 * width), by_rows(packed.nodes(), row_width());
    for (std::size_t l = packed.levels.size() - 1; l-- > 0;)
      level_down<N>(theta, packed, pass, l, by_h, by_gates, by_rows);
    recurrent_gradient<N>(packed, pass, by_gates.view(), gradient);
    ConstView<N> x = pass.x.view();
    x.slope = nullptr;
    meta::backward<N>(embedding<N>(theta), packed.nodes(), x, pass.rows.view().from(0, width),
                      by_rows.view().from(0, width), block<N>(gradient, embedding_weight),
                      block<N>(gradient, embedding_bias));
  }

  template <class N>
  GRAFT_INLINE static N product(std::int64_t count, ConstView<N> a, ConstView<N> b) {
    T value = 0, slope = 0;
#pragma omp simd reduction(+ : value, slope)
    for (std::int64_t j = 0; j < count; ++j) {
      value += a.value[j] * b.value[j];
      if constexpr (is_dual<N>) slope += a.slope[j] * b.value[j] + a.value[j] * b.slope[j];
    }
    if constexpr (is_dual<N>) {
      return {value, slope};
    } else {
      return value;
    }
  }

  // From the gradient by a level's states to those before its gates, by its inputs and by its children's states.
  template <class N>
  void level_down(ConstView<N> theta, const PackedTrees& packed, const Pass<N>& pass, std::size_t level,
                  const Values<N>& by_h, const Values<N>& by_gates, const Values<N>& by_rows) const {
    const std::int64_t first = packed.levels[level], count = packed.levels[level + 1] - first, width = units();
    const View<N> gates = pass.gates.row(first), rows = pass.rows.row(first), d_h = by_h.row(first),
                  d_gates = by_gates.row(first), d_rows = by_rows.row(first);
    const ConstView<N> gate_weight = block<N>(theta, gates_weight), state = block<N>(theta, state_weight);
    with_wide_vectors([&]() GRAFT_INLINED {
      const N one = number<N>(1);
      for (std::int64_t i = 0; i < count; ++i) {
        const ConstView<N> g = gates.from(i, 0), s = rows.from(i, 0), dh = d_h.from(i, 0);
        const View<N> dg = d_gates.from(i, 0), ds = d_rows.from(i, 0);
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) {
          const N z = g.at(width + j), n = g.at(2 * width + j);
          const N past = level == 0 ? number<N>(0) : s.at(j);
          dg.put(width + j, dh.at(j) * (past - n) * z * (one - z));
          dg.put(2 * width + j, dh.at(j) * (one - z) * (one - n * n));
          ds.put(j, dh.at(j) * z);
        }
      }
    });
    multiply<N>(no, yes, count, level == 0 ? embedded() : embedded() + width, width, d_gates.from(0, 2 * width), state,
                0, d_rows.from(0, width));
    if (level == 0) {
      multiply<N>(no, yes, count, embedded(), width, d_gates.from(0, width), gate_weight.from(width, width), 1,
                  d_rows.from(0, width));
      return;
    }
    with_wide_vectors([&]() GRAFT_INLINED {
      const N one = number<N>(1);
      for (std::int64_t i = 0; i < count; ++i) {
        const ConstView<N> g = gates.from(i, 0), s = rows.from(i, 0), drs = d_rows.from(i, width + embedded());
        const View<N> dg = d_gates.from(i, 0), ds = d_rows.from(i, 0);
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) {
          const N r = g.at(j);
          dg.put(j, drs.at(j) * s.at(j) * r * (one - r));
          ds.put(j, ds.at(j) + drs.at(j) * r);
        }
      }
    });
    multiply<N>(no, yes, count, width + embedded(), 2 * width, d_gates, gate_weight, 1, d_rows);
    with_wide_vectors([&]() GRAFT_INLINED {
      for (std::int64_t i = 0; i < count; ++i) {
        const ConstView<N> ds = d_rows.from(i, 0);
        for (std::int64_t c = packed.child_begins[first + i]; c < packed.child_begins[first + i + 1]; ++c) {
          const View<N> child = by_h.row(packed.children[c]);
#pragma omp simd
          for (std::int64_t j = 0; j < width; ++j) child.put(j, child.at(j) + ds.at(j));
        }
      }
    });
  }

  // By the recurrent weights, over all levels at once: leaves have no part in what meets S.
  template <class N>
  void recurrent_gradient(const PackedTrees& packed, const Pass<N>& pass, View<N> by_gates, View<N> gradient) const {
    const std::int64_t leaves = packed.leaves(), inner = packed.nodes() - leaves, width = units();
    const View<N> gate_weight = block<N>(gradient, gates_weight), gate_bias = block<N>(gradient, gates_bias),
                  state = block<N>(gradient, state_weight);
    const ConstView<N> rows = pass.rows.view(), e = rows.from(0, width);
    if (inner > 0) {
      multiply<N>(yes, no, width + embedded(), 2 * width, inner, rows.from(leaves, 0), by_gates.from(leaves, 0), 0,
                  gate_weight);
      multiply<N>(yes, no, embedded() + width, width, inner, e.from(leaves, 0), by_gates.from(leaves, 2 * width), 0,
                  state);
    } else {
      zero<N>(gate_weight, layout_[gates_weight].size);
      zero<N>(state, layout_[state_weight].size);
    }
    multiply<N>(yes, no, embedded(), width, leaves, e, by_gates.from(0, width), 1, gate_weight.from(width, width));
    multiply<N>(yes, no, embedded(), width, leaves, e, by_gates.from(0, 2 * width), 1, state);
    sum_columns<N>(inner, width, by_gates.from(leaves, 0), gate_bias);
    sum_columns<N>(packed.nodes(), width, by_gates.from(0, width), gate_bias.from(0, width));
    sum_columns<N>(packed.nodes(), width, by_gates.from(0, 2 * width), block<N>(gradient, state_bias));
  }
  template <class N>
  static void zero(View<N> at, std::int64_t count) {
    if (at.value != nullptr) std::fill(at.value, at.value + count, T(0));
    if constexpr (is_dual<N>) std::fill(at.slope, at.slope + count, T(0));
  }

  std::vector<ParameterBlock> layout_;
  NetworkShape shape_;
  bool share_equal_;
};

}  // namespace

std::vector<ParameterBlock> tree_gru_layout(const NetworkShape& shape) {
  const auto [embedding, units, slots] = shape.tree;
  std::vector<ParameterBlock> blocks;
  std::int64_t offset = 0;
  const auto add = [&](std::string name, std::vector<std::int64_t> sizes, bool head, bool saturates) {
    std::int64_t size = 1;
    for (const std::int64_t each : sizes) size *= each;
    blocks.push_back({std::move(name), std::move(sizes), offset, size, head, saturates});
    offset += size;
  };
  add("embedding.weight", {shape.inputs, embedding}, false, false);
  add("embedding.bias", {embedding}, false, false);
  add("gates.weight", {units + embedding, 2 * units}, false, true);
  add("gates.bias", {2 * units}, false, true);
  add("state.weight", {embedding + units, units}, false, true);
  add("state.bias", {units}, false, true);
  add("slots.weight", {units, slots}, false, true);
  std::int64_t below = slots * units;
  for (std::size_t l = 0; l <= shape.hidden.size(); ++l) {
    const bool head = l == shape.hidden.size();
    const std::int64_t out = head ? shape.outputs : shape.hidden[l];
    add(fmt::format("decoder{}.weight", l), {below, out}, head, false);
    add(fmt::format("decoder{}.bias", l), {out}, head, false);
    below = out;
  }
  return blocks;
}

template <class T>
std::unique_ptr<NetworkOf<T>> make_native_tree_gru(const NetworkShape& shape, bool share_equal) {
  return std::make_unique<TreeGru<T>>(shape, share_equal);
}
template std::unique_ptr<NetworkOf<float>> make_native_tree_gru(const NetworkShape& shape, bool share_equal);
template std::unique_ptr<NetworkOf<double>> make_native_tree_gru(const NetworkShape& shape, bool share_equal);

}  // namespace graft::meta
