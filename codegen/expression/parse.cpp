#include "codegen/expression/parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "codegen/expression/check.h"
#include "codegen/expression/value_text.h"

namespace graft::codegen {

namespace {

using base::Cursor;

constexpr std::int64_t most_elements = std::int64_t(1) << 31;  // along a dimension

class Parser : private ValueReader {
 public:
  Parser(std::string_view text, const Parameters& parameters, DType dtype, std::optional<DType> out,
         std::string_view place)
      : ValueReader(Cursor(text, place)), text_(text), parameters_(parameters), dtype_(dtype), out_(out) {}

  Computation computation() {
    while (!cursor_.at_end()) {
      statement();
      if (cursor_.at_end()) break;
      cursor_.expect(";");
    }
    if (pending_ < computation_.stages.size()) {
      const Start& axis = stages_[pending_].axes.front();
      axis.cursor.fail(fmt::format("axis '{}' has no extent; add 'where {}=...'", axis.name, axis.name));
    }
    if (const auto problem = problem_of(computation_)) {
      if (problem->tensor < 0) cursor_.fail(problem->text);
      const Start& tensor = tensors_[std::size_t(problem->tensor)];
      tensor.cursor.fail(fmt::format("{}: {}", tensor.name, problem->text));
    }
    return std::move(computation_);
  }

 private:
  // A name and where it was first written.
  struct Start {
    std::string name;
    Cursor cursor;
  };
  struct StageNames {
    std::vector<Start> axes;
    std::string tensor;   // that the stage writes
    bool closed = false;  // no further axes may appear: nothing is reduced, or the reduced ones were listed
  };
  // An index that is not affine: it is read again, as a value.
  struct NotAffine {};

  void statement() {
    const Cursor start = here();
    std::string word = cursor_.identifier();
    if (word == "input" || word == "constant") {
      operand(word == "input" ? Role::input : Role::constant, false);
    } else if (word == "literal") {
      operand(Role::temporary, true);
    } else if (word == "output") {
      const Cursor at = here();
      stage(Role::output, {cursor_.identifier(), at});
    } else {
      stage(Role::temporary, {std::move(word), start});
    }
  }

  void operand(Role role, bool literal) {
    const Cursor start = here();
    Tensor tensor{.name = cursor_.identifier(), .dtype = dtype_, .shape = {}, .role = role};
    cursor_.expect("[");
    if (!cursor_.accept("]")) {
      do tensor.shape.push_back(extent());
      while (cursor_.accept(","));
      cursor_.expect("]");
    }
    (void)has_type(tensor);
    if (literal) {
      cursor_.expect("=");
      cursor_.expect("{");
      do tensor.values.push_back(cursor_.number());
      while (cursor_.accept(","));
      cursor_.expect("}");
    }
    declare(std::move(tensor), start);
  }

  // Reads ": type", if the text states one.
  bool has_type(Tensor& tensor) {
    if (!cursor_.accept(":")) return false;
    const Cursor start = here();
    const std::string name = cursor_.identifier();
    const auto found = dtype_of(name);
    if (!found) start.fail(unknown_dtype(name));
    tensor.dtype = *found;
    return true;
  }

  void declare(Tensor tensor, const Cursor& start) {
    if (const int earlier = computation_.tensor_named(tensor.name); earlier >= 0) {
      const bool twice = computation_.stage_writing(earlier) >= 0;
      start.fail(fmt::format("tensor '{}' is {}", tensor.name, twice ? "written twice" : "named twice"));
    }
    tensors_.push_back({tensor.name, start});
    computation_.tensors.push_back(std::move(tensor));
  }

  void stage(Role role, Start name) {
    Tensor tensor{.name = name.name, .dtype = dtype_, .shape = {}, .role = role};
    StageNames names;
    names.tensor = name.name;
    Stage stage;
    cursor_.expect("[");
    if (!cursor_.accept("]")) {
      if (cursor_.peek() != '|') target(names, stage.index);
      if (cursor_.accept("|")) new_axes(names), names.closed = true;
      cursor_.expect("]");
    }
    // Extents, and with them the shape, follow in `where`.
    tensor.shape.assign(stage.index.size(), 1);
    const auto is_own_axis = [&](std::size_t d) { return stage.index[d] == Affine::variable(int(d)); };
    bool plain = true;
    for (std::size_t d = 0; d < stage.index.size(); ++d) plain = plain && is_own_axis(d);
    if (plain) stage.index.clear();
    const bool typed = has_type(tensor);
    const auto combine = combination();
    if (!combine) cursor_.fail("expected '=', '+=', '*=', 'max=' or 'min='");
    stage.combine = *combine;
    if (stage.combine == Combine::none) names.closed = true;
    names_ = &names;
    stage.value = sum(0);
    names_ = nullptr;
    // Types of storage alone: sums, products, and what is computed on the way to an output, are of the type they are
    // computed in.
    const bool is_copy = stage.combine == Combine::none && stage.value.root().op == Op::load;
    if (!typed && (accumulates(stage) || (role == Role::temporary && !is_copy)))
      tensor.dtype = computed_in(tensor.dtype);
    if (!typed && is_of_wide_sums(stage)) tensor.dtype = DType::i32;
    if (!typed && role == Role::output && out_) tensor.dtype = *out_;
    if (std::string_view("<>=!").find(cursor_.peek()) != std::string_view::npos)
      cursor_.fail("a comparison may only be the first operand of select(a < b, c, d)");
    for (const Start& axis : names.axes) stage.axes.push_back({axis.name, 1});
    stage.tensor = int(computation_.tensors.size());
    declare(std::move(tensor), name.cursor);
    computation_.stages.push_back(std::move(stage));
    if (names.axes.empty() && pending_ + 1 == computation_.stages.size()) ++pending_;
    stages_.push_back(std::move(names));
    where();
  }

  // Sums and products, as opposed to the largest and the smallest.
  static bool accumulates(const Stage& stage) { return stage.combine != Combine::none && !is_extreme(stage.combine); }

  // Sums and products of bytes, and what is made of these, would wrap around in bytes.
  bool is_of_wide_sums(const Stage& stage) const {
    if (dtype_ != DType::i8 && dtype_ != DType::u8) return false;
    const auto is_sum = [&](const Access& access) {
      const Tensor& tensor = computation_.tensors[std::size_t(access.tensor)];
      return tensor.role == Role::temporary && tensor.dtype == DType::i32;
    };
    return accumulates(stage) || std::any_of(stage.value.loads.begin(), stage.value.loads.end(), is_sum);
  }

  std::optional<Combine> combination() {
    for (const Combine combine : {Combine::none, Combine::sum, Combine::product, Combine::max, Combine::min})
      if (cursor_.accept(name_of(combine))) return combine;
    return std::nullopt;
  }

  // The element that a stage writes: forms over axes that are first named here. "4*t + i" stores i = 0..3 of each t.
  void target(StageNames& names, std::vector<Affine>& index) {
    names_ = &names;
    do {
      const Cursor start = here();
      const std::size_t before = names.axes.size();
      try {
        index.push_back(form_sum(0));
      } catch (const NotAffine&) {
        start.fail(fmt::format(
            "an element of '{}' is chosen by axes alone: scatter, to an index from memory, is not possible; "
            "write the stage over the elements of '{}', and gather",
            names.tensor, names.tensor));
      }
      if (index.back().is_constant()) {
        const std::string text(written_since(start));
        start.fail(parameters_.contains(text) ? fmt::format("'{}' is a parameter and cannot be an axis", text)
                                              : fmt::format("'{}' names no axis", text));
      }
      for (std::size_t a = before; a < names.axes.size(); ++a)
        if (index.back().coefficient(int(a)) == 0)
          names.axes[a].cursor.fail(
              fmt::format("axis '{}' does not move the element that is written", names.axes[a].name));
      for (const Term& term : index.back().terms)
        if (std::size_t(term.variable) < before)
          start.fail(fmt::format("axis '{}' appears twice", names.axes[std::size_t(term.variable)].name));
    } while (cursor_.accept(","));
    names_ = nullptr;
  }

  void new_axes(StageNames& names) {
    do {
      const Cursor start = here();
      std::string name = cursor_.identifier();
      if (parameters_.contains(name)) start.fail(fmt::format("'{}' is a parameter and cannot be an axis", name));
      if (axis_named(names, name) >= 0) start.fail(fmt::format("axis '{}' appears twice", name));
      names.axes.push_back({std::move(name), start});
    } while (cursor_.accept(","));
  }

  // Extents for the axes of all stages since the last `where`.
  void where() {
    if (!cursor_.at_identifier()) return;
    const Cursor start = here();
    if (cursor_.identifier() != "where") start.fail("expected ';' or 'where'");
    std::vector<std::pair<Start, std::int64_t>> extents;
    do {
      const Cursor at = here();
      std::string name = cursor_.identifier();
      for (const auto& [earlier, extent] : extents)
        if (earlier.name == name) at.fail(fmt::format("axis '{}' has two extents", name));
      cursor_.expect("=");
      const std::int64_t value = extent();
      if (value < 1) at.fail(fmt::format("axis '{}': extent {} must be at least 1", name, value));
      extents.push_back({{std::move(name), at}, value});
    } while (cursor_.accept(","));
    std::vector<bool> used(extents.size());
    for (; pending_ < computation_.stages.size(); ++pending_) {
      Stage& stage = computation_.stages[pending_];
      Tensor& tensor = computation_.tensors[std::size_t(stage.tensor)];
      for (std::size_t a = 0; a < stage.axes.size(); ++a) {
        Axis& axis = stage.axes[a];
        const auto found =
            std::find_if(extents.begin(), extents.end(), [&](const auto& e) { return e.first.name == axis.name; });
        if (found == extents.end())
          stages_[pending_].axes[a].cursor.fail(
              fmt::format("axis '{}' has no extent; add 'where {}=...'", axis.name, axis.name));
        used[std::size_t(found - extents.begin())] = true;
        axis.extent = found->second;
        if (stage.index.empty() && a < tensor.shape.size()) tensor.shape[a] = axis.extent;
      }
      std::vector<Interval> ranges;
      for (const Axis& axis : stage.axes) ranges.push_back({0, axis.extent - 1});
      for (std::size_t d = 0; d < stage.index.size(); ++d) {
        const std::int64_t last = range(stage.index[d], ranges).high;
        if (last >= most_elements) stages_[pending_].axes.front().cursor.fail("an extent of 2^31 or more");
        tensor.shape[d] = last + 1;
      }
    }
    for (std::size_t e = 0; e < extents.size(); ++e)
      if (!used[e]) extents[e].first.cursor.fail(fmt::format("no stage has an axis '{}'", extents[e].first.name));
  }

  // Values

  Value leaf(int depth) override {
    if (at_digit()) return Value::constant(cursor_.number());
    if (cursor_.accept("-")) {
      if (at_digit()) return Value::constant(-cursor_.number());
      Value value = factor(depth + 1);
      if (value.nodes.size() == 1 && std::isinf(value.root().number)) return Value::constant(-value.root().number);
      return Value::apply(Op::neg, std::move(value));
    }
    const Cursor start = here();
    const std::string name = cursor_.identifier();
    if (cursor_.accept("(")) return call(name, start, depth + 1);
    if (cursor_.accept("[")) return load(name, start, depth + 1);
    if (name == "inf") return Value::constant(std::numeric_limits<double>::infinity());
    if (const auto parameter = parameters_.find(name); parameter != parameters_.end())
      return Value::constant(double(parameter->second));
    if (computation_.tensor_named(name) >= 0)
      start.fail(fmt::format("'{}' is a tensor; write a load '{}[...]'", name, name));
    if (names_->closed && axis_named(*names_, name) < 0)
      start.fail(fmt::format("'{}' is neither a number, nor an axis of this stage, nor a load '{}[...]'", name, name));
    return Value::position(Affine::variable(axis(name, start)));
  }

  Value call(const std::string& name, const Cursor& start, int depth) {
    if (name == "pad") {
      const Cursor at = here();
      const std::string tensor = cursor_.identifier();
      cursor_.expect("[");
      Value value = load(tensor, at, depth);
      Access& access = value.loads.back();
      const DType type = computation_.tensors[std::size_t(access.tensor)].dtype;
      const double number = cursor_.accept(",") ? outside(type) : 0;
      cursor_.expect(")");
      if (!access.gathered.empty()) return within(std::move(value), number, at);
      access.padded = true;
      access.outside = number;
      return value;
    }
    if (name == "position") {
      const Cursor at = here();
      try {
        Value position = Value::position(form_sum(depth));
        cursor_.expect(")");
        return position;
      } catch (const NotAffine&) {
        at.fail("position takes a form that is affine in the axes");
      }
    }
    if (const Op op = function_named(name); op != Op::load) return operation(op, depth);
    if (name == "ceil") {
      Value value = Value::apply(Op::neg, Value::apply(Op::floor, Value::apply(Op::neg, sum(depth))));
      cursor_.expect(")");
      return value;
    }
    if (name == "tan") start.fail("unknown function 'tan'; write sin(...) / cos(...)");
    start.fail(unknown_function(name, {"pad", "position", "ceil"}));
  }

  // What a padded load of that type gives outside.
  double outside(DType type) {
    if (cursor_.at_number()) return cursor_.number();
    const bool negative = cursor_.accept("-");
    const Cursor start = here();
    if (cursor_.identifier() != "inf") start.fail("expected a number, 'inf' or '-inf'");
    return negative ? lowest(type) : highest(type);
  }

  // The brackets of a load, the opening one already read. An index that is not affine in the axes is a value.
  Value load(const std::string& name, const Cursor& start, int depth) {
    Access access;
    access.tensor = computation_.tensor_named(name);
    if (access.tensor < 0 && names_ && name == names_->tensor)
      start.fail(
          fmt::format("'{}' is read by the stage that writes it: a recurrence (scan) is not an index expression; "
                      "write each step as a stage of its own",
                      name));
    if (access.tensor < 0) {
      std::vector<std::string> names;
      for (const Tensor& tensor : computation_.tensors) names.push_back(tensor.name);
      start.fail(fmt::format("unknown tensor '{}'{}", name, base::did_you_mean(name, names)));
    }
    std::vector<Value> gathered;
    if (cursor_.accept("]")) return Value::load(std::move(access));
    do {
      const Cursor at = here();
      try {
        access.index.push_back(form_sum(depth));
      } catch (const NotAffine&) {
        cursor_ = at;
        if (gathered.size() == 3) at.fail("a load has at most 3 indices that are not affine");
        access.gathered.push_back(int(access.index.size()));
        access.index.emplace_back(0);
        gathered.push_back(sum(depth));
      }
    } while (cursor_.accept(","));
    cursor_.expect("]");
    return Value::load(std::move(access), gathered);
  }

  // A padded load whose indices are values: the number where one of these is outside of its dimension.
  Value within(Value load, double number, const Cursor& start) {
    const Access access = load.loads.back();
    const ValueNode root = load.root();
    const std::vector<std::int64_t>& shape = computation_.tensors[std::size_t(access.tensor)].shape;
    if (shape.size() != access.index.size())
      start.fail(fmt::format("{} has {} dimensions, got {} indices",
                             computation_.tensors[std::size_t(access.tensor)].name, shape.size(), access.index.size()));
    std::vector<Value> indices, clamped;
    for (const int operand : {root.a, root.b, root.c}) {
      if (operand < 0) continue;
      const std::size_t d = std::size_t(access.gathered[indices.size()]);
      indices.push_back(part_of(load, operand));
      clamped.push_back(Value::apply(Op::min, Value::apply(Op::max, indices.back(), Value::constant(0)),
                                     Value::constant(double(shape[d] - 1))));
    }
    Value value = Value::load(access, clamped);
    for (std::size_t g = 0; g < indices.size(); ++g) {
      const double last = double(shape[std::size_t(access.gathered[g])] - 1);
      for (const auto& [op, bound] : {std::pair(Op::greater, last), std::pair(Op::less, 0.0)})
        value = Value::apply(Op::select, Value::apply(op, indices[g], Value::constant(bound)), Value::constant(number),
                             std::move(value));
    }
    return value;
  }

  // Forms

  std::int64_t extent() {
    const Cursor start = here();
    Affine form;
    try {
      form = form_sum(0);
    } catch (const NotAffine&) {
      start.fail("an extent is made of numbers, parameters, + - * / and exact(a, b)");
    }
    if (!form.is_constant()) start.fail("an extent must be a number");
    return form.constant;
  }

  Affine form_sum(int depth) {
    Affine form = form_product(depth);
    for (;;) {
      if (cursor_.accept("+"))
        form = limited(form + form_product(depth));
      else if (cursor_.accept("-"))
        form = limited(form + form_product(depth) * -1);
      else
        return form;
    }
  }

  Affine form_product(int depth) {
    Affine form = form_factor(depth);
    for (;;) {
      const Cursor start = here();
      if (cursor_.accept("*")) {
        const Affine by = form_factor(depth);
        if (!form.is_constant() && !by.is_constant()) throw NotAffine{};
        form = limited(by.is_constant() ? form * by.constant : by * form.constant);
      } else if (cursor_.accept("/")) {
        const Affine by = form_factor(depth);
        if (!form.is_constant() || !by.is_constant()) throw NotAffine{};
        form = Affine(floor_division(form.constant, by.constant, start));
      } else if (cursor_.accept("%")) {
        const Affine by = form_factor(depth);
        if (!form.is_constant() || !by.is_constant()) throw NotAffine{};
        form = Affine(form.constant - by.constant * floor_division(form.constant, by.constant, start));
      } else if (cursor_.rest().starts_with("<<") || cursor_.rest().starts_with(">>")) {
        throw NotAffine{};
      } else {
        return form;
      }
    }
  }

  Affine form_factor(int depth) {
    guard(depth);
    if (cursor_.accept("(")) {
      Affine form = form_sum(depth + 1);
      cursor_.expect(")");
      return form;
    }
    if (cursor_.accept("-")) return form_factor(depth + 1) * -1;
    if (at_digit()) return limited(Affine(cursor_.integer()));
    const Cursor start = here();
    const std::string name = cursor_.identifier();
    if (name == "exact" && cursor_.accept("(")) return exact_division(depth + 1);
    if (cursor_.peek() == '[' || cursor_.peek() == '(') {
      if (!names_) start.fail(fmt::format("unknown parameter '{}'{}", name, known_parameters(name)));
      throw NotAffine{};
    }
    if (const auto parameter = parameters_.find(name); parameter != parameters_.end())
      return limited(Affine(parameter->second));
    return Affine::variable(axis(name, start));
  }

  // exact(a, b): a / b; a remainder is the user's mistake.
  Affine exact_division(int depth) {
    const Cursor start = here();
    const Affine a = form_sum(depth);
    const std::string_view a_text = written_since(start);
    cursor_.expect(",");
    const Cursor behind = here();
    const Affine b = form_sum(depth);
    const std::string_view b_text = written_since(behind);
    cursor_.expect(")");
    if (!a.is_constant() || !b.is_constant()) start.fail("exact(a, b) takes numbers");
    const std::int64_t quotient = floor_division(a.constant, b.constant, start);
    if (quotient * b.constant != a.constant)
      start.fail(fmt::format("{} ({}) is not divisible by {} ({})", a_text, a.constant, b_text, b.constant));
    return Affine(quotient);
  }

  std::int64_t floor_division(std::int64_t a, std::int64_t b, const Cursor& start) {
    if (b == 0) start.fail("division by zero");
    const std::int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }

  // Numbers below 2^31 in size: their products and sums of a few stay inside 64 bits.
  Affine limited(Affine form) {
    bool fits = std::abs(form.constant) < std::int64_t(1) << 31;
    for (const Term& term : form.terms) fits = fits && std::abs(term.coefficient) < std::int64_t(1) << 31;
    if (!fits) cursor_.fail("a number is too large (2^31 or more)");
    return form;
  }

  int axis(const std::string& name, const Cursor& start) {
    if (!names_) start.fail(fmt::format("unknown parameter '{}'{}", name, known_parameters(name)));
    if (const int found = axis_named(*names_, name); found >= 0) return found;
    if (names_->closed) {
      start.fail(fmt::format("axis '{}' is not on the left; only '+=', '*=', 'max=' and 'min=' reduce", name));
    }
    names_->axes.push_back({name, start});
    return int(names_->axes.size()) - 1;
  }

  static int axis_named(const StageNames& names, std::string_view name) {
    for (std::size_t a = 0; a < names.axes.size(); ++a)
      if (names.axes[a].name == name) return int(a);
    return -1;
  }

  std::string known_parameters(std::string_view name) const {
    std::vector<std::string> names;
    for (const auto& [parameter, value] : parameters_) names.push_back(parameter);
    return base::did_you_mean(name, names);
  }

  bool at_digit() {
    const char c = cursor_.peek();
    return (c >= '0' && c <= '9') || c == '.';
  }

  // The present place after spaces, for later errors.
  Cursor here() {
    cursor_.peek();
    return cursor_;
  }
  std::string_view written_since(const Cursor& start) const {
    return base::trim(text_.substr(start.position(), cursor_.position() - start.position()));
  }

  std::string_view text_;
  const Parameters& parameters_;
  const DType dtype_;
  const std::optional<DType> out_;  // of outputs without a type
  Computation computation_;
  std::vector<Start> tensors_;      // by tensor
  std::vector<StageNames> stages_;  // by stage
  std::size_t pending_ = 0;         // stages from here on wait for their extents
  StageNames* names_ = nullptr;     // of the stage being read
};

}  // namespace

std::string unknown_dtype(std::string_view name) {
  std::vector<std::string> names;
#define X(dtype, element) names.push_back(#dtype);
  GRAFT_DTYPES(X)
#undef X
  return fmt::format("unknown type '{}'; known: {}", name, fmt::join(names, ", "));
}

Computation parse_computation(std::string_view text, const Parameters& parameters, DType dtype, std::string_view place,
                              std::optional<DType> out) {
  return Parser(text, parameters, dtype, out, place).computation();
}

namespace {

std::string text_of(const Computation& computation, const Access& access, const std::vector<std::string>& axes,
                    std::span<const std::string> gathered) {
  const std::string load = access_text(computation.tensors[std::size_t(access.tensor)].name, access, axes, gathered);
  if (!access.padded) return load;
  return access.outside == 0 ? fmt::format("pad({})", load) : fmt::format("pad({},{})", load, access.outside);
}

// The text of a type, left out if it is the default of texts without parameters.
std::string type_of(const Tensor& tensor) {
  return tensor.dtype == DType::f32 ? "" : fmt::format(" : {}", name_of(tensor.dtype));
}

std::string where_of(std::span<const Stage> stages) {
  std::vector<std::string> parts;
  for (const Stage& stage : stages)
    for (const Axis& axis : stage.axes) {
      std::string part = fmt::format("{}={}", axis.name, axis.extent);
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
    }
  return parts.empty() ? "" : fmt::format(" where {}", fmt::join(parts, ", "));
}

std::string text_of(const Computation& computation, const Stage& stage) {
  const Tensor& tensor = computation.tensors[std::size_t(stage.tensor)];
  std::vector<std::string> names, target;
  for (const Axis& axis : stage.axes) names.push_back(axis.name);
  for (const Affine& form : element_of(computation, stage)) target.push_back(to_text(form, names));
  const auto reduced = names.begin() + std::ptrdiff_t(computation.spatial_axes(stage));
  // Reduced axes need not be listed when the value shows them in their order.
  int next = computation.spatial_axes(stage);
  bool in_order = true;
  const auto see = [&](const Affine& form) {
    for (const Term& term : form.terms) {
      if (term.variable > next) in_order = false;
      if (term.variable == next) ++next;
    }
  };
  for (const Access& access : stage.value.loads)
    for (const Affine& form : access.index) see(form);
  // Loads are not in the order of the text where one is the index of another, nor are positions among them.
  for (const Access& access : stage.value.loads) in_order = in_order && access.gathered.empty();
  for (const Affine& form : stage.value.positions)
    for (const Term& term : form.terms) in_order = in_order && term.variable < computation.spatial_axes(stage);
  std::string listed;
  if (reduced != names.end() && (!in_order || next != int(names.size())))
    listed = fmt::format(" | {}", fmt::join(reduced, names.end(), ","));
  return fmt::format("{}{}[{}{}]{} {} {}", tensor.role == Role::output ? "output " : "", tensor.name,
                     fmt::join(target, ","), listed, type_of(tensor), name_of(stage.combine),
                     to_text(stage.value,
                             {[&](const Access& access, std::span<const std::string> gathered) {
                                return text_of(computation, access, names, gathered);
                              },
                              [&](const Affine& form) { return position_text(form, names); }},
                             ","));
}

}  // namespace

std::string to_text(const Computation& computation) {
  // One `where` for all stages, unless an axis name has different extents in different stages.
  bool one_where = true;
  for (const Stage& a : computation.stages)
    for (const Axis& x : a.axes)
      for (const Stage& b : computation.stages)
        for (const Axis& y : b.axes)
          if (x.name == y.name && x.extent != y.extent) one_where = false;

  // A text numbers its tensors in the order of its statements: an operand comes before the first stage that
  // writes a later tensor.
  std::vector<std::string> statements;
  std::size_t operand = 0;
  const auto operands_before = [&](std::size_t end) {
    for (; operand < end; ++operand) {
      const Tensor& tensor = computation.tensors[operand];
      if (tensor.is_literal())
        statements.push_back(fmt::format("literal {}[{}]{} = {{{}}}", tensor.name, fmt::join(tensor.shape, ","),
                                         type_of(tensor), fmt::join(tensor.values, ",")));
      if (tensor.role == Role::input || tensor.role == Role::constant)
        statements.push_back(fmt::format("{} {}[{}]{}", name_of(tensor.role), tensor.name, fmt::join(tensor.shape, ","),
                                         type_of(tensor)));
    }
  };
  for (const Stage& stage : computation.stages) {
    std::size_t needed = std::size_t(stage.tensor);
    for (const Access& access : stage.value.loads)
      if (computation.stage_writing(access.tensor) < 0) needed = std::max(needed, std::size_t(access.tensor) + 1);
    operands_before(needed);
    std::string text = text_of(computation, stage);
    if (!one_where)
      text += where_of({&stage, 1});
    else if (&stage == &computation.stages.back())
      text += where_of(computation.stages);
    statements.push_back(std::move(text));
  }
  operands_before(computation.tensors.size());
  return fmt::format("{}", fmt::join(statements, "; "));
}

}  // namespace graft::codegen
