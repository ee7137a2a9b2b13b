#include "codegen/expression/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>

#include "codegen/expression/elements.h"

namespace graft::codegen {
namespace {

constexpr std::size_t most_parts = 16;

std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// visit(element in stored order, its place in logical order), for all.
template <class Visit>
void each_place(const Layout& layout, std::span<const std::int64_t> stored, Visit visit) {
  const std::vector<std::int64_t> logical = strides_of(logical_shape(layout, stored));
  const std::int64_t count = std::accumulate(stored.begin(), stored.end(), std::int64_t(1), std::multiplies<>());
  std::vector<std::int64_t> strides, at(stored.size());
  for (const Layout::Part& part : layout.parts) strides.push_back(part.step * logical[std::size_t(part.dimension)]);
  std::int64_t place = 0;
  for (std::int64_t e = 0; e < count; ++e) {
    visit(std::size_t(e), std::size_t(place));
    for (std::size_t p = stored.size(); p-- > 0;) {
      place += strides[p];
      if (++at[p] < stored[p]) break;
      place -= strides[p] * stored[p];
      at[p] = 0;
    }
  }
}

// The number that a word begins with, which is taken away; -1 if there is none.
std::int64_t take_number(std::string_view& word) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || number < 0) return -1;
  word.remove_prefix(std::size_t(end - word.data()));
  return number;
}

}  // namespace

std::string to_text(const Layout& layout) {
  std::string text;
  for (const Layout::Part& part : layout.parts) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", part.dimension);
    if (part.within > 0) text += fmt::format("%{}", part.within);
    if (part.step > 1) text += fmt::format("/{}", part.step);
  }
  return text;
}

Layout parse_layout(std::span<const std::string> words, std::string_view place) {
  Layout layout;
  for (const std::string& word : words) {
    const auto fail = [&] {
      throw base::UserError(
          place, fmt::format("'{}' is not a stored dimension; write 1, 1/16 (blocks) or 1%16 (within a block)", word));
    };
    std::string_view rest = word;
    Layout::Part part;
    const std::int64_t dimension = take_number(rest);
    if (dimension < 0 || dimension >= std::int64_t(most_parts)) fail();
    part.dimension = int(dimension);
    for (auto [sign, number] : {std::pair('%', &part.within), std::pair('/', &part.step)}) {
      if (rest.empty() || rest.front() != sign) continue;
      rest.remove_prefix(1);
      *number = take_number(rest);
      if (*number < 1) fail();
    }
    if (!rest.empty()) fail();
    layout.parts.push_back(part);
  }
  if (layout.parts.size() > most_parts)
    throw base::UserError(place, fmt::format("{} stored dimensions; at most {}", layout.parts.size(), most_parts));
  return layout;
}

base::Result<std::vector<std::int64_t>> stored_shape(const Layout& layout, std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> result(layout.parts.size(), 1);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::size_t> own;
    for (std::size_t p = 0; p < layout.parts.size(); ++p)
      if (layout.parts[p].dimension == int(d)) own.push_back(p);
    if (own.empty()) return base::Reason{fmt::format("dimension {} is missing", d)};
    std::stable_sort(own.begin(), own.end(),
                     [&](std::size_t a, std::size_t b) { return layout.parts[a].step > layout.parts[b].step; });
    std::int64_t within = 0, extent = shape[d];
    for (const std::size_t p : own) {
      const Layout::Part& part = layout.parts[p];
      if (part.within != within)
        return base::Reason{fmt::format("the parts of dimension {} leave out or repeat elements", d)};
      if (extent % part.step != 0) return base::Reason{fmt::format("{} does not divide {}", part.step, extent)};
      result[p] = extent / part.step;
      within = extent = part.step;
    }
    if (extent != 1) return base::Reason{fmt::format("the parts of dimension {} leave out or repeat elements", d)};
  }
  for (const Layout::Part& part : layout.parts)
    if (part.dimension >= int(shape.size()))
      return base::Reason{fmt::format("there is no dimension {}", part.dimension)};
  return result;
}

std::vector<std::int64_t> logical_shape(const Layout& layout, std::span<const std::int64_t> stored) {
  if (layout.is_plain()) return {stored.begin(), stored.end()};
  std::vector<std::int64_t> shape;
  for (std::size_t p = 0; p < layout.parts.size(); ++p) {
    const std::size_t d = std::size_t(layout.parts[p].dimension);
    if (d >= shape.size()) shape.resize(d + 1, 1);
    shape[d] *= stored[p];
  }
  return shape;
}

std::vector<double> packed(const Layout& layout, std::span<const std::int64_t> stored, std::vector<double> logical) {
  if (layout.is_plain()) return logical;
  std::vector<double> result(logical.size());
  each_place(layout, stored, [&](std::size_t e, std::size_t place) { result[e] = logical[place]; });
  return result;
}

std::vector<double> unpacked(const Layout& layout, std::span<const std::int64_t> stored, std::vector<double> elements) {
  if (layout.is_plain()) return elements;
  std::vector<double> result(elements.size());
  each_place(layout, stored, [&](std::size_t e, std::size_t place) { result[place] = elements[e]; });
  return result;
}

Elements packed(const Layout& layout, std::span<const std::int64_t> stored, Elements logical) {
  if (layout.is_plain()) return logical;
  if (!logical.is_sample()) {
    Elements result(logical.type(), std::int64_t(logical.size()));
    const Elements& from = logical;
    each_place(layout, stored, [&](std::size_t e, std::size_t place) { result.copy(e, from, place); });
    return result;
  }
  std::vector<std::pair<std::int64_t, double>> held;
  for (std::size_t n = 0; n < logical.sample().size(); ++n)
    held.emplace_back(stored_place(layout, stored, logical.sample()[n]), logical.held(n));
  std::sort(held.begin(), held.end());
  std::vector<std::int64_t> places;
  std::vector<double> numbers;
  for (const auto& [place, number] : held) {
    places.push_back(place);
    numbers.push_back(number);
  }
  return {std::move(places), std::move(numbers), std::int64_t(logical.size()), logical.otherwise()};
}

std::int64_t stored_place(const Layout& layout, std::span<const std::int64_t> stored, std::int64_t element) {
  if (layout.is_plain()) return element;
  const std::vector<std::int64_t> shape = logical_shape(layout, stored), strides = strides_of(shape);
  std::int64_t place = 0;
  for (std::size_t p = 0; p < layout.parts.size(); ++p) {
    const Layout::Part& part = layout.parts[p];
    const std::size_t d = std::size_t(part.dimension);
    std::int64_t index = element / strides[d] % shape[d];
    if (part.within > 0) index %= part.within;
    place = place * stored[p] + index / part.step;
  }
  return place;
}

}  // namespace graft::codegen
