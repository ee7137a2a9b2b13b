// Sums of products: matrices, and Einstein sums of any number of operands.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "graph/operators/sums.h"

namespace graft::graph {
namespace {

Meaning matrices(const Call& call) {
  call.same_types();
  const Product product(call, 0, 1);
  Expression expression(call);
  const std::string x = expression.operand(0, product.left);
  expression.stage("y", call.type(0), product.axes, fmt::format("{} * {}", x, expression.operand(1, product.right)),
                   "+=", product.reduced);
  return {expression.result(call.type(0), product.shape)};
}

Meaning general_matrices(const Call& call) {
  call.same_types();
  if (call.rank(0) != 2 || call.rank(1) != 2)
    throw Malformed{fmt::format("{} times {}: matrices are needed", to_text(call.shape(0)), to_text(call.shape(1)))};
  const bool turned_a = call.integer("transA", 0) != 0, turned_b = call.integer("transB", 0) != 0;
  const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  const Shape &a = call.shape(0), &b = call.shape(1);
  const std::int64_t m = a[turned_a ? 1 : 0], n = b[turned_b ? 0 : 1], k = a[turned_a ? 0 : 1];
  if (k != b[turned_b ? 1 : 0])
    throw Malformed{fmt::format("{} times {}: inner extents differ", to_text(a), to_text(b))};
  const Shape shape = {m, n};
  if ((alpha != 1 || beta != 1) && !codegen::is_floating(call.type(0))) throw Unsupported{"alpha and beta of integers"};
  const Axes axes = {{"i", m}, {"j", n}};
  const bool has_sum = call.has(2) && beta != 0;
  Expression expression(call);
  const std::string x = expression.operand(0, turned_a ? Index{"l", "i"} : Index{"i", "l"});
  const std::string w = expression.operand(1, turned_b ? Index{"j", "l"} : Index{"l", "j"});
  const bool ends = !has_sum && alpha == 1;
  expression.stage(ends ? "y" : "T", call.type(0), axes, fmt::format("{} * {}", x, w), "+=", {{"l", k}});
  if (!ends) {
    std::string value = load("T", index_of(axes));
    if (alpha != 1) value = fmt::format("{} * {}", number_text(alpha), value);
    if (has_sum) {
      if (call.rank(2) > 2 || broadcast({shape, call.shape(2)}) != shape)
        throw Malformed{fmt::format("operand C is {}, the product {}", to_text(call.shape(2)), to_text(shape))};
      const std::string c = expression.broadcast(2, axes);
      value += beta == 1 ? fmt::format(" + {}", c) : fmt::format(" + {} * {}", number_text(beta), c);
    }
    expression.stage("y", call.type(0), axes, value);
  }
  return {expression.result(call.type(0), shape)};
}

// The axes of a result that is not named: those of one operand, once, in the order of their letters.
std::string named_once(std::string_view terms) {
  std::map<char, int> uses;
  for (const char sign : terms)
    if (sign != '.' && sign != ',') ++uses[sign];
  std::string result;
  for (const auto& [letter, count] : uses)
    if (count == 1) result += letter;
  return result;
}

// "bij,bjk->bik". An ellipsis is written out first, in capital letters that the equation does not use; its dimensions
// are the last ones of all operands that have fewer.
std::string without_ellipsis(const Call& call, std::string equation) {
  constexpr std::string_view dots = "...";
  if (equation.find(dots) == std::string::npos) return equation;
  std::string letters;
  for (char letter = 'Z'; letter >= 'A'; --letter)
    if (equation.find(letter) == std::string::npos) letters += letter;
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::size_t longest = 0;
  std::vector<std::size_t> ranks;
  const std::vector<std::string_view> terms = base::split(left, ',');
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const bool has_dots = terms[t].find(dots) != std::string_view::npos;
    const std::size_t named = terms[t].size() - (has_dots ? dots.size() : 0);
    const std::size_t rank = call.shape(int(t)).size();
    if (rank < named) throw Malformed{fmt::format("its equation does not fit operand {}", t)};
    ranks.push_back(has_dots ? rank - named : 0);
    longest = std::max(longest, ranks.back());
  }
  if (longest > letters.size()) throw Unsupported{"an equation of more than 26 axes"};
  const auto written_out = [&](std::string term, std::size_t rank) {
    if (const std::size_t at = term.find(dots); at != std::string::npos)
      term.replace(at, dots.size(), letters.substr(longest - rank, rank));
    return term;
  };
  std::string result;
  for (std::size_t t = 0; t < terms.size(); ++t)
    result += (t == 0 ? "" : ",") + written_out(std::string(terms[t]), ranks[t]);
  // Without an arrow the axes of the ellipsis come first.
  const std::string right =
      arrow == std::string::npos ? std::string(dots) + named_once(left) : equation.substr(arrow + 2);
  return result + "->" + written_out(right, longest);
}

Meaning einstein_sum(const Call& call) {
  call.same_types();
  std::string equation = call.text("equation", "");
  std::erase(equation, ' ');
  if (std::count(equation.begin(), equation.end(), ',') + 1 != call.operands())
    throw Malformed{"its equation has another number of operands"};
  equation = without_ellipsis(call, equation);
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  const std::vector<std::string_view> terms = base::split(left, ',');
  std::map<char, std::int64_t> extents;
  std::string order;  // of first appearance
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Shape& shape = call.shape(int(t));
    if (terms[t].size() != shape.size()) throw Malformed{fmt::format("its equation does not fit operand {}", t)};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const char letter = terms[t][d];
      if (!((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')))
        throw Malformed{"its equation has a sign that is not a letter"};
      if (order.find(letter) == std::string::npos) order += letter;
      std::int64_t& extent = extents.emplace(letter, shape[d]).first->second;
      if (extent != shape[d] && extent != 1 && shape[d] != 1)
        throw Malformed{fmt::format("axis {} has the extents {} and {}", letter, extent, shape[d])};
      extent = std::max(extent, shape[d]);
    }
  }
  const std::string result = arrow == std::string::npos ? named_once(left) : equation.substr(arrow + 2);
  if (std::set<char>(result.begin(), result.end()).size() != result.size())
    throw Malformed{"an axis of its result is named twice"};
  const auto axes_of = [&](const std::string& letters) {
    Axes axes;
    for (const char letter : letters) {
      if (!extents.contains(letter)) throw Malformed{fmt::format("no operand has the axis {}", letter)};
      axes.push_back({fmt::format("a{}", letter), extents[letter]});
    }
    return axes;
  };
  std::string summed;
  for (const char letter : order)
    if (result.find(letter) == std::string::npos) summed += letter;
  Expression expression(call);
  std::string value;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    Index index;
    for (std::size_t d = 0; d < terms[t].size(); ++d)
      index.push_back(call.shape(int(t))[d] == 1 ? "0" : fmt::format("a{}", terms[t][d]));
    value += fmt::format("{}{}", t == 0 ? "" : " * ", expression.operand(int(t), index));
  }
  const Axes axes = axes_of(result);
  expression.stage("y", call.type(0), axes, value, summed.empty() ? "=" : "+=", axes_of(summed));
  Shape shape;
  for (const Axis& axis : axes) shape.push_back(axis.extent);
  return {expression.result(call.type(0), shape)};
}

}  // namespace

Product::Product(const Call& call, int left_operand, int right_operand) {
  const Shape &a = call.shape(left_operand), &b = call.shape(right_operand);
  if (a.empty() || b.empty()) throw Malformed{"a product with a scalar"};
  is_row = a.size() == 1, is_column = b.size() == 1;
  const std::int64_t inner = a.back();
  if (inner != b[is_column ? 0 : b.size() - 2])
    throw Malformed{fmt::format("{} times {}: inner extents differ", to_text(a), to_text(b))};
  const Shape batch_a(a.begin(), a.end() - (is_row ? 1 : 2)), batch_b(b.begin(), b.end() - (is_column ? 1 : 2));
  const Shape batch = broadcast({batch_a, batch_b});
  shape = batch;
  axes = axes_over(batch, "b");
  if (!is_row) axes.push_back({"i", rows = a[a.size() - 2]}), shape.push_back(rows);
  if (!is_column) axes.push_back({"j", columns = b.back()}), shape.push_back(columns);
  reduced = {{"l", inner}};
  const auto batch_index = [&](const Shape& own) {
    Index index;
    for (std::size_t d = 0; d < own.size(); ++d)
      index.push_back(own[d] == batch[batch.size() - own.size() + d] ? fmt::format("b{}", batch.size() - own.size() + d)
                                                                     : "0");
    return index;
  };
  left = batch_index(batch_a), right = batch_index(batch_b);
  if (!is_row) left.emplace_back("i");
  left.emplace_back("l");
  right.emplace_back("l");
  if (!is_column) right.emplace_back("j");
}

std::vector<Row> product_rows() {
  return {
      {"MatMul", 2, 2, "", matrices},
      {"Gemm", 2, 3, "alpha beta transA transB", general_matrices},
      {"Einsum", 1, -1, "equation", einstein_sum},
  };
}

}  // namespace graft::graph
