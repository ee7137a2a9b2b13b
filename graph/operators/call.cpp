#include "graph/operators/call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "codegen/expression/parse.h"

namespace graft::graph {
namespace {

// An attribute of one kind.
template <class T>
const T* held(const Call& call, const std::string& name, std::string_view kind) {
  const Attribute* attribute = call.attribute(name);
  if (!attribute) return nullptr;
  if (const T* value = std::get_if<T>(attribute)) return value;
  throw Malformed{fmt::format("attribute '{}' is not {}", name, kind)};
}

}  // namespace

bool Call::wants(int result) const {
  return result < results() && node_.results[std::size_t(result)] >= 0;
}

void Call::refuse_result(int result, std::string_view name) const {
  if (wants(result)) throw Unsupported{fmt::format("its result {}", name)};
}

bool Call::has(int operand) const {
  return operand < operands() && operands_[std::size_t(operand)].has_value();
}

const Operand& Call::operand(int number) const {
  if (!has(number)) throw Malformed{fmt::format("operand {} is missing", number)};
  return *operands_[std::size_t(number)];
}

std::vector<std::int64_t> Call::integers(int number) const {
  const Operand& of = operand(number);
  if (!of.known) throw Unsupported{fmt::format("operand {} {}", number, not_constant)};
  return of.known->integers();
}

std::vector<double> Call::numbers(int number) const {
  const Operand& of = operand(number);
  if (!of.known) throw Unsupported{fmt::format("operand {} {}", number, not_constant)};
  std::vector<double> all(of.known->size());
  for (std::size_t e = 0; e < all.size(); ++e) all[e] = of.known->number(e);
  return all;
}

double Call::scalar(int number) const {
  const std::vector<double> all = numbers(number);
  if (all.size() != 1) throw Malformed{fmt::format("operand {} has {} elements, not one", number, all.size())};
  return all.front();
}

void Call::same_types() const {
  std::optional<DType> first;
  for (const std::optional<Operand>& operand : operands_) {
    if (!operand) continue;
    if (!first) first = operand->type;
    if (*first != operand->type)
      throw Malformed{fmt::format("its operands have the types {} and {}", codegen::name_of(*first),
                                  codegen::name_of(operand->type))};
  }
}

const Attribute* Call::attribute(const std::string& name) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

bool Call::has_attribute(std::string_view name) const {
  return attribute(std::string(name)) != nullptr;
}

std::int64_t Call::integer(const std::string& name, std::int64_t otherwise) const {
  const auto* value = held<std::int64_t>(*this, name, "an integer");
  return value ? *value : otherwise;
}

double Call::number(const std::string& name, double otherwise) const {
  const auto* value = held<double>(*this, name, "a number");
  return value ? *value : otherwise;
}

std::string Call::text(const std::string& name, const std::string& otherwise) const {
  const auto* value = held<std::string>(*this, name, "a text");
  return value ? *value : otherwise;
}

std::optional<std::vector<std::int64_t>> Call::list(const std::string& name) const {
  const auto* value = held<std::vector<std::int64_t>>(*this, name, "a list of integers");
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<double>> Call::number_list(const std::string& name) const {
  const auto* value = held<std::vector<double>>(*this, name, "a list of numbers");
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> Call::list(const std::string& name, int operand, int since) const {
  if (version_ < since) return list(name);
  if (!has(operand)) return std::nullopt;
  return integers(operand);
}

int Call::axis(std::int64_t axis, std::int64_t rank) const {
  if (axis < -rank || axis >= rank) throw Malformed{fmt::format("axis {} of {} dimensions", axis, rank)};
  return int(axis < 0 ? axis + rank : axis);
}

std::vector<int> Call::axes(const std::vector<std::int64_t>& axes, std::int64_t rank) const {
  if (std::int64_t(axes.size()) > rank) throw Malformed{fmt::format("{} axes of {} dimensions", axes.size(), rank)};
  std::vector<int> all;
  for (const std::int64_t each : axes) all.push_back(axis(each, rank));
  std::sort(all.begin(), all.end());
  if (std::adjacent_find(all.begin(), all.end()) != all.end()) throw Malformed{"an axis is named twice"};
  return all;
}

Axes axes_over(const Shape& shape, std::string_view letter) {
  Axes axes;
  for (const std::int64_t extent : shape) axes.push_back({fmt::format("{}{}", letter, axes.size()), extent});
  return axes;
}

Index index_of(const Axes& axes) {
  Index index;
  for (const Axis& axis : axes) index.push_back(axis.name);
  return index;
}

std::string number_text(double number) {
  if (!std::isfinite(number)) throw Unsupported{"an infinite number, or NaN, as a parameter"};
  return std::signbit(number) ? fmt::format("({})", number) : fmt::format("{}", number);
}

std::string form(std::int64_t factor, std::string_view axis, std::int64_t plus) {
  std::string text = factor == 1 ? std::string(axis) : fmt::format("{}*{}", factor, axis);
  if (plus != 0) text += fmt::format(" {} {}", plus < 0 ? '-' : '+', plus < 0 ? -plus : plus);
  return text;
}

std::string load(std::string_view tensor, const Index& index) {
  return fmt::format("{}[{}]", tensor, fmt::join(index, ","));
}

std::string Expression::operand(int number, const Index& index) {
  const Operand& of = call_.operand(number);
  const std::string name = fmt::format("x{}", number);
  if (elements_of(of.shape) != 0 && !declared_[std::size_t(number)]) {
    declared_[std::size_t(number)] = true;
    declarations_ += fmt::format("{} {}[{}]: {}; ", of.known ? "constant" : "input", name, fmt::join(of.shape, ","),
                                 codegen::name_of(of.type));
  }
  return load(name, index);
}

namespace {

// A constant of one element as a number, if it can be written as one.
std::optional<std::string> known_number(const Operand& operand) {
  if (!operand.known || operand.known->size() != 1 || operand.known->has_inexact()) return std::nullopt;
  if (!std::isfinite(operand.known->number(0))) return std::nullopt;
  return number_text(operand.known->number(0));
}

}  // namespace

std::string Expression::broadcast(int number, const Axes& axes) {
  const Operand& of = call_.operand(number);
  if (const auto text = known_number(of)) return *text;
  Index index;
  for (std::size_t d = 0; d < of.shape.size(); ++d) {
    const Axis& axis = axes[axes.size() - of.shape.size() + d];
    index.push_back(of.shape[d] == axis.extent ? axis.name : "0");
  }
  return operand(number, index);
}

std::string Expression::scalar(int number) {
  const Shape& shape = call_.shape(number);
  if (elements_of(shape) != 1)
    throw Malformed{fmt::format("operand {} is {}, which is not one element", number, to_text(shape))};
  if (const auto text = known_number(call_.operand(number))) return *text;
  return operand(number, Index(shape.size(), "0"));
}

void Expression::literal(std::string_view tensor, DType type, const Shape& shape, const std::vector<double>& numbers) {
  declarations_ += fmt::format("literal {}[{}]: {} = {{{}}}; ", tensor, fmt::join(shape, ","), codegen::name_of(type),
                               fmt::join(numbers, ","));
}

namespace {

// What a sum, product, maximum or minimum of nothing is.
std::string_view of_nothing(std::string_view combine) {
  if (combine == "max=" || combine == "min=") return combine == "max=" ? "-inf" : "inf";
  return combine == "*=" ? "1" : "0";
}

}  // namespace

void Expression::stage(std::string_view tensor, DType type, const Axes& axes, std::string_view value,
                       std::string_view combine, const Axes& reduced, const Index& element) {
  if (std::any_of(reduced.begin(), reduced.end(), [](const Axis& axis) { return axis.extent == 0; }))
    return stage(tensor, type, axes, of_nothing(combine), "=", {}, element);
  for (int number = 0; number < call_.operands(); ++number)
    if (call_.has(number) && elements_of(call_.shape(number)) == 0 &&
        value.find(fmt::format("x{}[", number)) != std::string_view::npos)
      empty_ = number;
  std::vector<std::string> extents;
  for (const Axes* const all : {&axes, &reduced})
    for (const Axis& axis : *all) extents.push_back(fmt::format("{}={}", axis.name, axis.extent));
  const Index left = element.empty() ? index_of(axes) : element;
  if (!stages_.empty()) stages_ += "; ";
  stages_ += fmt::format("{}{}[{}{}{}]: {} {} {}", tensor == "y" ? "output " : "", tensor, fmt::join(left, ","),
                         reduced.empty() ? "" : " | ", fmt::join(index_of(reduced), ","), codegen::name_of(type),
                         combine, value);
  if (!extents.empty()) stages_ += fmt::format(" where {}", fmt::join(extents, ", "));
}

Result Expression::result(DType type, Shape shape) const {
  if (elements_of(shape) == 0) return constant(known(type, std::move(shape), std::span<const std::int64_t>()));
  if (empty_ >= 0) throw Unsupported{fmt::format("operand {} without elements", empty_)};
  Result result{.type = type, .shape = std::move(shape)};
  try {
    result.computation = codegen::parse_computation(declarations_ + stages_, {}, DType::f32, "expression");
  } catch (const base::UserError& error) {
    throw Unsupported{fmt::format("a computation that cannot be written as an index expression ({})", error.what())};
  }
  return result;
}

Result same_elements(const Call& call, Shape shape, int operand) {
  return {.type = call.type(operand), .shape = std::move(shape), .same_as = operand};
}

Result constant(Known known) {
  return {.type = known->type, .shape = known->shape, .known = known};
}

Result element_wise(Expression& expression, DType type, const Shape& shape, std::string_view value) {
  expression.stage("y", type, axes_over(shape), value);
  return expression.result(type, shape);
}

void bound_comparisons(const Shape& shape, std::int64_t each, std::string_view what) {
  constexpr double most = 0x1p28;
  if (double(elements_of(shape)) * double(each) > most)
    throw Unsupported{
        fmt::format("{} of {} elements: more comparisons than 2^28; choose smaller extents, or cut the "
                    "model before it",
                    what, elements_of(shape))};
}

Shape broadcast(const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    if (shape.size() > result.size()) result.insert(result.begin(), shape.size() - result.size(), 1);
    const std::size_t offset = result.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t& extent = result[offset + d];
      if (extent == shape[d] || shape[d] == 1) continue;
      if (extent != 1)
        throw Malformed{fmt::format("shapes {} and {} do not broadcast", to_text(shapes.front()), to_text(shape))};
      extent = shape[d];
    }
  }
  return result;
}

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  return elements_of({shape.begin() + std::ptrdiff_t(begin), shape.begin() + std::ptrdiff_t(end)});
}

}  // namespace graft::graph
