#include "graph/pieces.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

namespace graft::graph {
namespace {

using codegen::Access;
using codegen::Affine;
using codegen::Computation;
using codegen::Op;
using codegen::Stage;
using codegen::Value;
using codegen::ValueNode;

constexpr std::size_t most_pieces = 4096;

// Axis by axis, where comparisons of positions with numbers may change; nothing for other conditions.
std::optional<std::vector<std::set<std::int64_t>>> breaks_of(const Stage& stage) {
  std::vector<std::set<std::int64_t>> breaks(stage.axes.size());
  for (std::size_t a = 0; a < breaks.size(); ++a) breaks[a] = {0, stage.axes[a].extent};
  for (const ValueNode& node : stage.value.nodes) {
    if (!codegen::is_comparison(node.op)) continue;
    const ValueNode *left = &stage.value.nodes[std::size_t(node.a)], *right = &stage.value.nodes[std::size_t(node.b)];
    if (left->op != Op::position) std::swap(left, right);
    if (left->op != Op::position || right->op != Op::constant) return std::nullopt;
    const Affine& form = stage.value.positions[std::size_t(left->load)];
    if (form.terms.size() != 1) return std::nullopt;
    const codegen::Term term = form.terms[0];
    const double at = (right->number - double(form.constant)) / double(term.coefficient);
    const std::int64_t extent = stage.axes[std::size_t(term.variable)].extent;
    if (!(std::abs(at) < 1e15)) return std::nullopt;
    for (const double each : {std::floor(at), std::ceil(at), std::floor(at) + 1})
      breaks[std::size_t(term.variable)].insert(std::clamp<std::int64_t>(std::int64_t(each), 0, extent));
  }
  return breaks;
}

// The load that the value is at a point; nothing if it is something else.
const Access* load_at(const Value& value, int node, const std::vector<std::int64_t>& point) {
  const ValueNode& here = value.nodes[std::size_t(node)];
  if (here.op == Op::load) return &value.loads[std::size_t(here.load)];
  if (here.op != Op::select) return nullptr;
  const ValueNode& condition = value.nodes[std::size_t(here.a)];
  const auto number = [&](int operand) {
    const ValueNode& own = value.nodes[std::size_t(operand)];
    return own.op == Op::constant ? own.number
                                  : double(codegen::evaluate(value.positions[std::size_t(own.load)], point));
  };
  return load_at(value, codegen::holds(condition.op, number(condition.a), number(condition.b)) ? here.b : here.c,
                 point);
}

// A box of points: where it begins, and its extents.
struct Box {
  std::vector<std::int64_t> low, extents;
};

// The piece that a box is.
std::optional<Piece> piece_of(const Computation& computation, const Stage& stage, const Box& box) {
  const std::size_t rank = box.low.size();
  const Access* const access = load_at(stage.value, int(stage.value.nodes.size()) - 1, box.low);
  const codegen::Tensor& to = computation.tensors[std::size_t(stage.tensor)];
  if (access == nullptr || !access->gathered.empty()) return std::nullopt;
  const codegen::Tensor& from = computation.tensors[std::size_t(access->tensor)];
  if (from.is_literal() || from.dtype != to.dtype) return std::nullopt;
  // One run of the output: single elements, then any number along one axis, then everything.
  Piece piece{access->tensor, 0, 0, 1};
  std::vector<std::int64_t> strides(rank);  // within the box
  bool is_all = true;
  for (std::size_t d = rank; d-- > 0;) {
    if (!is_all && box.extents[d] != 1) return std::nullopt;
    is_all = is_all && box.extents[d] == stage.axes[d].extent;
    strides[d] = piece.elements;
    piece.elements *= box.extents[d];
  }
  std::int64_t stride = 1;
  for (std::size_t d = rank; d-- > 0;) {
    piece.first += box.low[d] * stride;
    stride *= stage.axes[d].extent;
  }
  // The same run of the tensor.
  std::vector<Affine> by;
  std::vector<codegen::Interval> ranges;
  for (std::size_t d = 0; d < rank; ++d) {
    by.push_back(box.extents[d] == 1 ? Affine(box.low[d]) : Affine::variable(int(d)) + Affine(box.low[d]));
    ranges.push_back({0, box.extents[d] - 1});
  }
  Affine flat;
  stride = 1;
  for (std::size_t d = access->index.size(); d-- > 0;) {
    const Affine form = codegen::substitute(access->index[d], by);
    const codegen::Interval reach = codegen::range(form, ranges);
    if (reach.low < 0 || reach.high >= from.shape[d]) return std::nullopt;
    flat.add(form, stride);
    stride *= from.shape[d];
  }
  for (std::size_t d = 0; d < rank; ++d)
    if (box.extents[d] > 1 && flat.coefficient(int(d)) != strides[d]) return std::nullopt;
  piece.from = flat.constant;
  return piece;
}

}  // namespace

std::optional<std::vector<Piece>> pieces_of(const Computation& computation) {
  if (computation.stages.size() != 1) return std::nullopt;
  const Stage& stage = computation.stages.front();
  if (stage.combine != codegen::Combine::none || !stage.index.empty()) return std::nullopt;
  for (const ValueNode& node : stage.value.nodes)
    if (node.op != Op::load && node.op != Op::select && node.op != Op::position && node.op != Op::constant &&
        !codegen::is_comparison(node.op))
      return std::nullopt;
  const auto breaks = breaks_of(stage);
  if (!breaks) return std::nullopt;
  std::size_t boxes = 1;
  for (const std::set<std::int64_t>& each : *breaks) {
    boxes *= each.size() - 1;
    if (boxes > most_pieces) return std::nullopt;
  }
  std::vector<Piece> pieces;
  std::vector<std::set<std::int64_t>::const_iterator> at;
  for (const std::set<std::int64_t>& each : *breaks) at.push_back(each.begin());
  for (std::size_t b = 0; b < boxes; ++b) {
    Box box;
    for (const auto& low : at) {
      box.low.push_back(*low);
      box.extents.push_back(*std::next(low) - *low);
    }
    const auto piece = piece_of(computation, stage, box);
    if (!piece) return std::nullopt;
    // One that goes on where the last one ended belongs to it.
    if (!pieces.empty() && pieces.back().tensor == piece->tensor &&
        pieces.back().from + pieces.back().elements == piece->from)
      pieces.back().elements += piece->elements;
    else
      pieces.push_back(*piece);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (std::next(++at[d]) != (*breaks)[d].end()) break;
      at[d] = (*breaks)[d].begin();
    }
  }
  return pieces;
}

}  // namespace graft::graph
