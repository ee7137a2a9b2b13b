#include "codegen/program/intrinsic.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/hash.h"
#include "base/text.h"
#include "codegen/expression/parse.h"

namespace graft::codegen {
namespace {

constexpr std::int64_t most_elements = 1024;  // of one tensor: it is one vector

bool commutes(Op op) {
  return op == Op::add || op == Op::mul || op == Op::max || op == Op::min;
}

// Axes that become loops.
std::vector<int> moving_axes(const Stage& stage) {
  std::vector<int> axes;
  for (std::size_t a = 0; a < stage.axes.size(); ++a)
    if (stage.axes[a].extent > 1) axes.push_back(int(a));
  return axes;
}

// Whether the values agree except for their loads; `operands(a, b)` reports the fault of load b in place of load a.
// `variables`: of b's forms, by variable of a's (-1: none).
class ValueMatch {
 public:
  using Operands = std::function<std::string(int, int)>;
  ValueMatch(const Value& a, const Value& b, const Operands& operands, const std::vector<int>& variables)
      : a_(a), b_(b), operands_(operands), variables_(variables), loads(a.loads.size(), -1) {}

  bool same() { return same(int(a_.nodes.size()) - 1, int(b_.nodes.size()) - 1); }

 private:
  bool same(int x, int y) {
    const ValueNode& a = a_.nodes[std::size_t(x)];
    const ValueNode& b = b_.nodes[std::size_t(y)];
    if (a.op != b.op) return false;
    if (a.op == Op::constant) return a.number == b.number;
    if (a.op == Op::position) return in_place(a_.positions[std::size_t(a.load)]) == b_.positions[std::size_t(b.load)];
    if (a.op == Op::load) {
      if (a.a >= 0 || b.a >= 0) return false;
      loads[std::size_t(a.load)] = b.load;
      std::string wrong = operands_(a.load, b.load);
      if (difference.empty()) difference = wrong;
      return wrong.empty();
    }
    if (operands_of(a.op) == 1) return same(a.a, b.a);
    if (operands_of(a.op) == 3) return same(a.a, b.a) && same(a.b, b.b) && same(a.c, b.c);
    return (same(a.a, b.a) && same(a.b, b.b)) || (commutes(a.op) && same(a.a, b.b) && same(a.b, b.a));
  }

  // A form of a over b's variables.
  Affine in_place(const Affine& form) const {
    Affine result(form.constant);
    for (const Term& term : form.terms) {
      const int variable = variables_[std::size_t(term.variable)];
      if (variable >= 0) result.add(Affine::variable(variable), term.coefficient);
    }
    return result;
  }

  const Value& a_;
  const Value& b_;
  const Operands& operands_;
  const std::vector<int>& variables_;

 public:
  std::vector<int> loads;  // by load of a
  std::string difference;  // the first that an operand had
};

void check_semantics(const Intrinsic& intrinsic, const std::string& place) {
  const auto fail = [&](const std::string& text) { throw base::UserError(place, text); };
  if (intrinsic.computation.stages.size() != 1)
    fail(fmt::format("{} computes {} tensors; an intrinsic computes one", intrinsic.name,
                     intrinsic.computation.stages.size()));
  const Stage& stage = intrinsic.stage();
  const std::vector<int> axes = moving_axes(stage);
  if (axes.empty()) fail(fmt::format("{} has no axis of an extent above 1", intrinsic.name));
  for (std::size_t t = 0; t < intrinsic.computation.tensors.size(); ++t) {
    const Tensor& tensor = intrinsic.computation.tensors[t];
    if (tensor.elements() > most_elements)
      fail(fmt::format("{} has {} elements; at most {} fit one vector", tensor.name, tensor.elements(), most_elements));
    if (tensor.is_literal()) fail(fmt::format("{}: an intrinsic has no literals", tensor.name));
    if (tensor.role == Role::output) continue;
    const auto reads = std::count_if(stage.value.loads.begin(), stage.value.loads.end(),
                                     [&](const Access& access) { return access.tensor == int(t); });
    if (reads != 1) fail(fmt::format("{} is read {} times; an intrinsic reads each input once", tensor.name, reads));
  }
  for (const Access& access : stage.value.loads) {
    const Tensor& tensor = intrinsic.computation.tensors[std::size_t(access.tensor)];
    if (access.padded) fail(fmt::format("{}: an intrinsic cannot pad", tensor.name));
    // Everything that a nest touches is loaded as one vector: it must begin and end where the tensor does.
    Interval flat{0, 0};
    for (const int axis : axes) {
      const std::int64_t reach =
          stride_along(intrinsic.computation, access, axis) * (stage.axes[std::size_t(axis)].extent - 1);
      (reach < 0 ? flat.low : flat.high) += reach;
    }
    const bool from_zero =
        std::all_of(access.index.begin(), access.index.end(), [](const Affine& form) { return form.constant == 0; });
    if (!from_zero || flat.low < 0 || flat.high != tensor.elements() - 1)
      fail(fmt::format("{}: an intrinsic reads a tensor from its first to its last element", tensor.name));
  }
}

}  // namespace

IntrinsicPointer parse_intrinsic(std::span<const std::string_view> lines, std::size_t& line, std::string_view place) {
  auto intrinsic = std::make_shared<Intrinsic>();
  const auto here = [&] { return fmt::format("{}:{}", place, line + 1); };
  const auto next = [&](bool comments) {
    if (line >= lines.size())
      throw base::UserError(place,
                            fmt::format("intrinsic {}: expected 'end', got the end of the text", intrinsic->name));
    return base::trim(comments ? lines[line].substr(0, lines[line].find('#')) : lines[line]);
  };
  const std::string start = here();
  const auto words = base::words(next(true));
  if (words.size() != 2 || words[0] != "intrinsic")
    throw base::UserError(start, fmt::format("expected 'intrinsic NAME', got '{}'", base::trim(lines[line])));
  intrinsic->name = words[1];
  const bool plain = std::all_of(intrinsic->name.begin(), intrinsic->name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!plain || (intrinsic->name[0] >= '0' && intrinsic->name[0] <= '9'))
    throw base::UserError(start,
                          fmt::format("'{}' cannot name an intrinsic; use letters, digits and '_'", intrinsic->name));
  std::string expression;
  std::string expression_place = start;
  for (++line;; ++line) {
    const std::string_view text = next(true);
    if (text.empty()) continue;
    if (text == "body") break;
    if (text.starts_with("needs ")) {
      intrinsic->needs = base::trim(text.substr(6));
    } else if (text.starts_with("computes ")) {
      expression_place = here();
      expression = base::trim(text.substr(9));
    } else if (!expression.empty()) {
      expression += fmt::format(" {}", text);
    } else {
      throw base::UserError(here(), fmt::format("expected 'needs', 'computes' or 'body', got '{}'", text));
    }
  }
  if (expression.empty())
    throw base::UserError(here(), fmt::format("intrinsic {}: 'computes' is missing", intrinsic->name));
  intrinsic->computation = parse_computation(expression, {}, DType::f32, expression_place);
  check_semantics(*intrinsic, expression_place);
  for (++line; next(false) != "end"; ++line) {
    if (const std::string_view text = next(false); !text.empty()) intrinsic->body += fmt::format("{}\n", text);
  }
  ++line;
  if (intrinsic->body.empty()) throw base::UserError(start, fmt::format("intrinsic {}: no body", intrinsic->name));
  return intrinsic;
}

std::vector<IntrinsicPointer> parse_intrinsics(std::string_view text, std::string_view place) {
  const std::vector<std::string_view> lines = base::split(text, '\n');
  std::vector<IntrinsicPointer> result;
  for (std::size_t line = 0; line < lines.size();) {
    if (base::trim(lines[line].substr(0, lines[line].find('#'))).empty()) {
      ++line;
      continue;
    }
    const std::string start = fmt::format("{}:{}", place, line + 1);
    append_intrinsic(result, parse_intrinsic(lines, line, place), start);
  }
  return result;
}

std::string to_text(const Intrinsic& intrinsic) {
  std::string text = fmt::format("intrinsic {}\n", intrinsic.name);
  if (!intrinsic.needs.empty()) text += fmt::format("needs {}\n", intrinsic.needs);
  text += fmt::format("computes {}\nbody\n", to_text(intrinsic.computation));
  for (const std::string_view line : base::split(base::trim(intrinsic.body), '\n')) text += fmt::format("  {}\n", line);
  return text + "end\n";
}

std::uint64_t hash(const Intrinsic& intrinsic) {
  return base::hash_bytes(to_text(intrinsic));
}

void append_intrinsic(std::vector<IntrinsicPointer>& intrinsics, IntrinsicPointer intrinsic, std::string_view place) {
  if (intrinsic_named(intrinsics, intrinsic->name) != nullptr)
    throw base::UserError(place, fmt::format("a second intrinsic named '{}'", intrinsic->name));
  intrinsics.push_back(std::move(intrinsic));
}

IntrinsicPointer intrinsic_named(std::span<const IntrinsicPointer> intrinsics, std::string_view name) {
  const auto found =
      std::find_if(intrinsics.begin(), intrinsics.end(), [&](const auto& known) { return known->name == name; });
  return found == intrinsics.end() ? nullptr : *found;
}

base::Result<Match> match(const LoopProgram& program, const Body& body, int node, const Intrinsic& intrinsic) {
  const Stage& stage = intrinsic.stage();
  const std::vector<int> axes = moving_axes(stage);
  Match result;
  int at = node;
  for (const int axis : axes) {
    const Axis& wanted = stage.axes[std::size_t(axis)];
    const Node& here = body[std::size_t(at)];
    if (here.kind != Node::Kind::loop)
      return base::Reason{fmt::format("{} loops, {} wants {}", result.loops.size(), intrinsic.name, axes.size())};
    const Loop& loop = program.loops[std::size_t(here.item)];
    if (loop.extent != wanted.extent)
      return base::Reason{fmt::format("{} runs {} times, {} of {} wants {}", loop.name, loop.extent, wanted.name,
                                      intrinsic.name, wanted.extent)};
    if (body[std::size_t(at) + 1].end != here.end)
      return base::Reason{fmt::format("{} holds more than one loop or store", loop.name)};
    result.loops.push_back(here.item);
    ++at;
  }
  if (body[std::size_t(at)].kind != Node::Kind::store)
    return base::Reason{fmt::format("more loops than {}, as {} wants", axes.size(), intrinsic.name)};
  result.store = body[std::size_t(at)].item;
  const Store& store = program.stores[std::size_t(result.store)];
  if (store.combine != stage.combine)
    return base::Reason{
        fmt::format("'{}', {} wants '{}'", name_of(store.combine), intrinsic.name, name_of(stage.combine))};

  const auto operand_difference = [&](const Access& access, const Access& wanted) -> std::string {
    const Buffer& buffer = program.buffers[std::size_t(access.tensor)];
    const Tensor& tensor = intrinsic.computation.tensors[std::size_t(wanted.tensor)];
    if (buffer.dtype != tensor.dtype)
      return fmt::format("{} is {}, {} of {} wants {}", buffer.name, name_of(buffer.dtype), tensor.name, intrinsic.name,
                         name_of(tensor.dtype));
    const Affine form = offset(program, access);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::int64_t moves = form.coefficient(result.loops[i]);
      const std::int64_t wants = stride_along(intrinsic.computation, wanted, axes[i]);
      if (moves != wants)
        return fmt::format("{} moves by {} along {}, {} of {} wants {}", buffer.name, moves,
                           program.loops[std::size_t(result.loops[i])].name, tensor.name, intrinsic.name, wants);
    }
    return "";
  };
  Access own{stage.tensor, {}, false};
  for (int d = 0; d < intrinsic.computation.spatial_axes(stage); ++d) own.index.push_back(Affine::variable(d));
  if (std::string wrong = operand_difference(store.target, own); !wrong.empty()) return base::Reason{std::move(wrong)};
  const ValueMatch::Operands operands = [&](int wanted, int load) {
    return operand_difference(store.value.loads[std::size_t(load)], stage.value.loads[std::size_t(wanted)]);
  };
  std::vector<int> variables(stage.axes.size(), -1);
  for (std::size_t i = 0; i < axes.size(); ++i) variables[std::size_t(axes[i])] = result.loops[i];
  ValueMatch values(stage.value, store.value, operands, variables);
  if (!values.same()) {
    if (!values.difference.empty()) return base::Reason{values.difference};
    return base::Reason{fmt::format("another value than {} computes", intrinsic.name)};
  }
  result.loads.assign(intrinsic.computation.tensors.size(), -1);
  for (std::size_t load = 0; load < values.loads.size(); ++load) {
    result.loads[std::size_t(stage.value.loads[load].tensor)] = values.loads[load];
    if (store.value.loads[std::size_t(values.loads[load])].tensor == store.target.tensor)
      return base::Reason{
          fmt::format("reads what it writes, {}", program.buffers[std::size_t(store.target.tensor)].name)};
  }
  return result;
}

std::vector<Assignment> assignments(const Computation& computation, const Stage& stage, const Intrinsic& intrinsic) {
  const Stage& own = intrinsic.stage();
  const auto type = [](const Computation& of, int tensor) { return of.tensors[std::size_t(tensor)].dtype; };
  std::vector<Assignment> result;
  if (stage.combine != own.combine || type(computation, stage.tensor) != intrinsic.output().dtype) return result;
  const std::vector<int> moving = moving_axes(own);
  std::vector<int> axes(own.axes.size(), -1);
  const ValueMatch::Operands operands = [&](int wanted, int load) -> std::string {
    const Access& a = own.value.loads[std::size_t(wanted)];
    const Access& b = stage.value.loads[std::size_t(load)];
    bool same = type(intrinsic.computation, a.tensor) == type(computation, b.tensor);
    for (const int axis : moving) {
      same &= (stride_along(intrinsic.computation, a, axis) != 0) ==
              (stride_along(computation, b, axes[std::size_t(axis)]) != 0);
    }
    return same ? "" : "moves differently";
  };
  const std::function<void(std::size_t)> choose = [&](std::size_t at) {
    if (at == moving.size()) {
      ValueMatch values(own.value, stage.value, operands, axes);
      if (values.same()) result.push_back({axes, values.loads});
      return;
    }
    const bool spatial = moving[at] < intrinsic.computation.spatial_axes(own);
    for (int axis = 0; axis < int(stage.axes.size()); ++axis) {
      if ((axis < computation.spatial_axes(stage)) != spatial) continue;
      if (stage.axes[std::size_t(axis)].extent < own.axes[std::size_t(moving[at])].extent) continue;
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
      axes[std::size_t(moving[at])] = axis;
      choose(at + 1);
      axes[std::size_t(moving[at])] = -1;
    }
  };
  choose(0);
  return result;
}

}  // namespace graft::codegen
