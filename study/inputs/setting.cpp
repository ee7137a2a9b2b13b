#include "study/inputs/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "study/inputs/field_error.h"
#include "study/inputs/request.h"

namespace graft::study {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

template <class Values>
base::Document list_of(const Values& values) {
  base::Document list = base::Document::list();
  for (const auto& value : values) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::filesystem::path>) {
      list.push(value.string());
    } else {
      list.push(value);
    }
  }
  return list;
}

template <class Numbers>
base::Document map_of(const std::map<std::string, Numbers>& lists) {
  base::Document map = base::Document::map();
  for (const auto& [name, numbers] : lists) map.set(name, list_of(numbers));
  return map;
}

void append(const base::Document& number, std::vector<std::int64_t>& numbers) {
  numbers.push_back(number.as_integer());
}

void append(const base::Document& number, std::vector<double>& numbers) {
  numbers.push_back(number.as_number());
}

std::string words_of(const base::Document& list) {
  std::vector<std::string> words;
  for (const base::Document& each : list.as_list())
    words.push_back(each.is_string() ? each.as_string() : std::to_string(each.as_integer()));
  return base::join(words, ",");
}

}  // namespace

std::string Setting::flag_name() const {
  std::string name = flag.empty() ? key : flag;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string Setting::keyword_name() const {
  return keyword.empty() ? key : keyword;
}

base::Document Setting::value() const {
  return std::visit(Overloaded{[](const Named& named) -> base::Document { return named.get(); },
                               [](const int* at) -> base::Document { return *at; },
                               [](const std::uint64_t* at) -> base::Document { return std::int64_t(*at); },
                               [](const std::filesystem::path* at) -> base::Document { return at->string(); },
                               [](const std::vector<std::string>* at) { return list_of(*at); },
                               [](const std::vector<std::int64_t>* at) { return list_of(*at); },
                               [](const std::vector<std::filesystem::path>* at) { return list_of(*at); },
                               [](const std::map<std::string, std::vector<std::int64_t>>* at) { return map_of(*at); },
                               [](const std::map<std::string, std::vector<double>>* at) { return map_of(*at); },
                               [](const auto* at) -> base::Document { return *at; }},
                    place);
}

std::optional<std::string> Setting::fault(const base::Document& value, double in_unit) const {
  if (value.is_list()) {
    for (const base::Document& each : value.as_list()) {
      if (auto why = fault(each, in_unit)) return why;
    }
  }
  if (value.is_map()) {
    for (const auto& [name, each] : value.as_map()) {
      if (auto why = fault(each, in_unit)) return fmt::format("'{}' {}", name, *why);
    }
  }
  if (!value.is_number()) return std::nullopt;
  const double number = value.as_number(), lowest = least / in_unit, highest = most / in_unit;
  const std::string said = value.is_integer() ? std::to_string(value.as_integer()) : fmt::format("{:g}", number);
  if (!(number >= lowest)) return fmt::format("must be at least {:g}, got {}", lowest, said);
  if (number > highest) return fmt::format("must be at most {:g}, got {}", highest, said);
  return std::nullopt;
}

void Setting::take(const base::Document& value) const {
  std::visit(
      Overloaded{[&](const Named& named) { named.set(value.as_string()); }, [&](bool* to) { *to = value.as_bool(); },
                 [&](int* to) { *to = int(std::clamp<std::int64_t>(value.as_integer(), -1, 1 << 30)); },
                 [&](std::int64_t* to) { *to = value.as_integer(); }, [&](std::uint64_t* to) { *to = value.as_u64(); },
                 [&](double* to) { *to = value.as_number(); }, [&](std::string* to) { *to = value.as_string(); },
                 [&](std::filesystem::path* to) { *to = value.as_string(); },
                 [&](std::vector<std::int64_t>* to) {
                   to->clear();
                   for (const base::Document& each : value.as_list()) append(each, *to);
                 },
                 [&]<class Numbers>(std::map<std::string, Numbers>* to) {
                   to->clear();
                   for (const auto& [name, list] : value.as_map())
                     for (Numbers& numbers = (*to)[name]; const base::Document& each : list.as_list())
                       append(each, numbers);
                 },
                 [&](auto* to) {
                   to->clear();
                   for (const base::Document& each : value.as_list()) to->push_back(each.as_string());
                 }},
      place);
}

void Setting::set(const base::Document& value) const {
  const auto refuse = [&](const std::string& why) {
    if (value.place().empty()) throw FieldError(key, why);
    throw base::UserError(value.place(), fmt::format("{}: {}", key, why));
  };
  if (const auto why = fault(value, 1)) refuse(*why);
  try {
    take(value);
  } catch (const base::UserError& error) {
    if (!value.place().empty() && std::string_view(error.what()).starts_with(value.place())) throw;
    refuse(error.what());
  }
}

void Setting::set_by_keyword(const base::Document& value) const {
  Setting named = *this;
  named.key = keyword_name();
  if (unit == 1) return named.set(value);
  if (const auto why = fault(value, unit)) throw FieldError(named.key, *why);
  named.set(value.is_number() ? base::Document(value.as_number() * unit) : value);
}

base::Document Setting::usual_by_keyword() const {
  return unit == 1 ? usual : base::Document(usual.as_number() / unit);
}

void Setting::check() const {
  if (const auto why = fault(value(), 1)) throw FieldError(key, *why);
}

const Setting* setting_of(const Settings& settings, std::string_view key) {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const Setting& each) { return each.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

void check(const Settings& settings) {
  for (const Setting& setting : settings) setting.check();
}

void put_deciding(const Settings& settings, base::Document& identity) {
  for (const Setting& setting : settings) {
    if (setting.decides == Decides::nothing || setting.decides == Decides::in_own_form) continue;
    if (setting.decides != Decides::result && setting.is_usual()) continue;
    base::Document value = setting.value();
    if (setting.decides == Decides::by_content) value = file_hash(value.as_string());
    if (value.is_list()) value = words_of(value);
    identity.set(setting.key, std::move(value));
  }
}

}  // namespace graft::study
