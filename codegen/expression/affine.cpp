#include "codegen/expression/affine.h"

#include <fmt/format.h>

#include <cassert>

namespace graft::codegen {

Affine Affine::variable(int variable, std::int64_t coefficient) {
  Affine form;
  if (coefficient != 0) form.terms.push_back({variable, coefficient});
  return form;
}

std::int64_t Affine::coefficient(int variable) const {
  for (const Term& term : terms)
    if (term.variable == variable) return term.coefficient;
  return 0;
}

Affine& Affine::operator+=(const Affine& other) {
  add(other, 1);
  return *this;
}

void Affine::add(const Affine& other, std::int64_t factor) {
  if (&other == this) {
    *this *= 1 + factor;
    return;
  }
  constant += other.constant * factor;
  if (factor == 0) return;
  std::size_t at = 0;
  for (const Term& term : other.terms) {
    while (at < terms.size() && terms[at].variable < term.variable) ++at;
    if (at == terms.size() || terms[at].variable != term.variable) {
      terms.insert(at++, {term.variable, term.coefficient * factor});
    } else if ((terms[at].coefficient += term.coefficient * factor) == 0) {
      terms.erase(at);
    }
  }
}

Affine& Affine::operator*=(std::int64_t factor) {
  constant *= factor;
  if (factor == 0) terms.clear();
  for (Term& term : terms) term.coefficient *= factor;
  return *this;
}

Affine operator+(Affine a, const Affine& b) {
  return a += b;
}
Affine operator*(Affine a, std::int64_t factor) {
  return a *= factor;
}

Affine substitute(const Affine& form, std::span<const Affine> by) {
  Affine result(form.constant);
  for (const Term& term : form.terms) {
    assert(std::size_t(term.variable) < by.size());
    result.add(by[std::size_t(term.variable)], term.coefficient);
  }
  return result;
}

Interval range(const Affine& form, std::span<const Interval> ranges) {
  Interval result{form.constant, form.constant};
  for (const Term& term : form.terms) {
    assert(std::size_t(term.variable) < ranges.size());
    const Interval& of = ranges[std::size_t(term.variable)];
    if (of.high < of.low) return {0, -1};
    result.low += term.coefficient * (term.coefficient > 0 ? of.low : of.high);
    result.high += term.coefficient * (term.coefficient > 0 ? of.high : of.low);
  }
  return result;
}

std::int64_t evaluate(const Affine& form, std::span<const std::int64_t> values) {
  std::int64_t result = form.constant;
  for (const Term& term : form.terms) {
    assert(std::size_t(term.variable) < values.size());
    result += term.coefficient * values[std::size_t(term.variable)];
  }
  return result;
}

std::string to_text(const Affine& form, std::span<const std::string> names) {
  std::string text;
  // `what` without its sign; the first part carries a minus sign directly, later ones as an operator.
  const auto append = [&](bool negative, std::string_view what) {
    text += text.empty() ? std::string_view(negative ? "-" : "") : std::string_view(negative ? " - " : " + ");
    text += what;
  };
  for (const Term& term : form.terms) {
    assert(std::size_t(term.variable) < names.size());
    const std::string& name = names[std::size_t(term.variable)];
    const std::int64_t size = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    append(term.coefficient < 0, size == 1 ? name : fmt::format("{}*{}", size, name));
  }
  if (form.constant != 0 || text.empty())
    append(form.constant < 0, std::to_string(form.constant < 0 ? -form.constant : form.constant));
  return text;
}

}  // namespace graft::codegen
