#include "datasets/formats/parameter_spaces.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/error.h"
#include "base/shortened.h"
#include "base/text.h"
#include "datasets/formats/columns.h"

namespace graft::datasets::formats {
namespace {

using codegen::Constraint;
using codegen::Scalar;
using codegen::Tunable;
using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

constexpr std::int64_t most_in_range = 1 << 20;
constexpr std::size_t largest_file = 4 << 20;  // a space within its limits is smaller, and more would be read for long

std::vector<Scalar> list_of(const base::Document& list) {
  std::vector<Scalar> values;
  for (const base::Document& value : list.as_list()) values.push_back(codegen::scalar_of(value));
  return values;
}

// The number that was meant: 0.3 for three steps of 0.1.
double decimal(double number) {
  return *codegen::number_in(fmt::format("{:.14g}", number));
}

// {from, to} with `step`, `powers_of`, or neither.
std::vector<Scalar> range_of(const base::Document& range) {
  range.only_keys({"from", "to", "step", "powers_of"});
  const base::Document &from = range.at("from"), &to = range.at("to");
  const base::Document* const step = range.find("step");
  const base::Document* const base = range.find("powers_of");
  const auto refuse = [&](const char* what) { throw base::UserError(range.place(), what); };
  if (step != nullptr && base != nullptr) refuse("either 'step' or 'powers_of'");
  std::vector<Scalar> values;
  const auto add = [&](Scalar value) {
    if (std::int64_t(values.size()) == most_in_range)
      throw base::UserError(range.place(), fmt::format("more than {} values", most_in_range));
    values.push_back(value);
  };
  if (base != nullptr && !(base->is_integer() && from.is_integer() && to.is_integer())) {
    if (!(base->as_number() > 1) || !(from.as_number() > 0)) refuse("powers: expected powers_of > 1 and from > 0");
    const double by = std::log(base->as_number()), slack = 1e-9;
    const double first = std::ceil(std::log(from.as_number()) / by - slack);
    const double last = std::floor(std::log(to.as_number()) / by + slack);
    if (!(last - first < double(most_in_range)))
      throw base::UserError(range.place(), fmt::format("more than {} values", most_in_range));
    for (double power = first; power <= last; ++power) add(decimal(std::pow(base->as_number(), power)));
  } else if (base != nullptr) {
    if (base->as_integer() < 2 || from.as_integer() < 1) refuse("powers: expected powers_of >= 2 and from >= 1");
    for (std::int64_t value = 1; value <= to.as_integer();) {
      if (value >= from.as_integer()) add(value);
      if (__builtin_mul_overflow(value, base->as_integer(), &value)) break;
    }
  } else if (from.is_integer() && to.is_integer() && (step == nullptr || step->is_integer())) {
    const std::int64_t by = step == nullptr ? 1 : step->as_integer();
    if (by < 1) refuse("expected a step of at least 1");
    for (std::int64_t value = from.as_integer(); value <= to.as_integer();) {
      add(value);
      if (__builtin_add_overflow(value, by, &value)) break;
    }
  } else {
    if (step == nullptr || !(step->as_number() > 0)) refuse("fractions need a 'step' > 0");
    const double begin = from.as_number(), by = step->as_number();
    const double count = std::floor((to.as_number() - begin) / by * (1 + 1e-12));
    if (!(count < double(most_in_range)))
      throw base::UserError(range.place(), fmt::format("more than {} values", most_in_range));
    for (double i = 0; i <= count; ++i) add(decimal(begin + i * by));
  }
  if (values.empty()) refuse("an empty range: 'from' is beyond 'to'");
  return values;
}

std::size_t count_of(const base::Document* list) {
  return list == nullptr ? 0 : list->as_list().size();
}

std::size_t position_of(const Tunable& parameter, const base::Document& value) {
  const std::string text = codegen::scalar_text(codegen::scalar_of(value));
  for (std::size_t i = 0; i < parameter.values.size(); ++i) {
    if (codegen::scalar_text(parameter.values[i]) == text) return i;
  }
  throw base::UserError(value.place(), fmt::format("the default {} is not a value of '{}'", base::shortened(text),
                                                   base::shortened(parameter.name)));
}

std::vector<std::string> names_of(const std::vector<Tunable>& parameters) {
  std::vector<std::string> names;
  for (const Tunable& parameter : parameters) names.push_back(parameter.name);
  return names;
}

codegen::ParameterSpace own_space(const base::Document& file, const std::string& stem, const std::string& place) {
  file.only_keys({"name", "sizes", "parameters", "constraints", "default"});
  std::vector<Tunable> parameters;
  const base::Document& given = file.at("parameters");
  const base::Document* const texts = file.find("constraints");
  codegen::ParameterSpace::check_counts(given.as_map().size(), count_of(texts), place);
  for (const auto& [name, values] : given.as_map())
    parameters.push_back({name, values.is_map() ? range_of(values) : list_of(values), {}});
  bool is_partial = false;  // the first values are the others' defaults
  if (const base::Document* const standard = file.find("default")) {
    std::vector<std::string_view> known;
    for (const Tunable& parameter : parameters) known.push_back(parameter.name);
    standard->only_keys(known);
    for (Tunable& parameter : parameters) {
      const base::Document* const value = standard->find(parameter.name);
      parameter.standard = value == nullptr ? 0 : position_of(parameter, *value);
      is_partial = is_partial || value == nullptr;
    }
  }
  Sizes sizes;
  if (const base::Document* const list = file.find("sizes")) {
    for (const auto& [name, size] : list->as_map()) sizes.emplace_back(name, size.as_integer());
  }
  std::vector<Constraint> constraints;
  const std::vector<std::string> names = names_of(parameters);
  if (texts != nullptr) {
    for (const base::Document& text : texts->as_list())
      constraints.emplace_back(text.as_string(), names, text.place(), sizes);
  }
  const base::Document* const name = file.find("name");
  codegen::ParameterSpace space(table_workload(name == nullptr ? stem : name->as_string(), sizes),
                                std::move(parameters), std::move(constraints), place);
  if (const std::string what = space.not_met_by_default(); !what.empty())
    throw base::UserError(file.at("default").place(),
                          fmt::format("the default{} does not meet {}",
                                      is_partial ? ", with the first values of parameters that it does not name," : "",
                                      base::shortened(what)));
  return space;
}

// Published files have defaults that their own conditions forbid: the nearest point is taken then. T1 names no type
// that its values do not show.
codegen::ParameterSpace t1_space(const base::Document& file, const std::string& stem, const std::string& place) {
  const base::Document& space = file.at("ConfigurationSpace");
  std::vector<Tunable> parameters;
  const base::Document::List& given = space.at("TuningParameters").as_list();
  const base::Document* const conditions = space.find("Conditions");
  codegen::ParameterSpace::check_counts(given.size(), count_of(conditions), place);
  for (const base::Document& entry : given) {
    Tunable parameter{entry.at("Name").as_string(), {}, {}};
    const base::Document& values = entry.at("Values");
    parameter.values = values.is_list() ? list_of(values) : codegen::values_in(values.as_string(), values.place());
    if (const base::Document* const standard = entry.find("Default"); standard != nullptr && !standard->is_null())
      parameter.standard = position_of(parameter, *standard);
    parameters.push_back(std::move(parameter));
  }
  const std::vector<std::string> names = names_of(parameters);
  std::vector<Constraint> constraints;
  if (conditions != nullptr) {
    for (const base::Document& entry : conditions->as_list()) {
      const base::Document& text = entry.at("Expression");
      constraints.emplace_back(text.as_string(), names, text.place());
    }
  }
  std::string name = stem;
  Sizes sizes;
  if (const base::Document* const kernel = file.find("KernelSpecification"); kernel != nullptr && kernel->is_map()) {
    if (const base::Document* const own = kernel->find("KernelName")) name = own->as_string();
    const base::Document* const problem = kernel->find("ProblemSize");
    // As importers of its results name them; an expression of parameters says nothing.
    for (const base::Document& size : problem == nullptr   ? base::Document::List()
                                      : problem->is_list() ? problem->as_list()
                                                           : base::Document::List{*problem}) {
      if (size.is_integer()) sizes.emplace_back(fmt::format("size{}", sizes.size()), size.as_integer());
    }
  }
  return codegen::ParameterSpace(table_workload(name, sizes), std::move(parameters), std::move(constraints), place);
}

}  // namespace

codegen::ParameterSpace parse_parameter_space(std::string_view text, const std::string& place) {
  if (text.size() > largest_file)
    throw base::UserError(place, fmt::format("a space of {} bytes; at most {} are read", text.size(), largest_file));
  const bool is_json = base::trim(text).starts_with('{');
  const base::Document file = is_json ? base::parse_json(text, place) : base::parse_yaml(text, place);
  const std::string stem = std::filesystem::path(place).stem().string();
  if (!file.is_map())
    throw base::UserError(place,
                          "no space of parameters: expected a map with the key 'parameters' or, in T1, "
                          "'ConfigurationSpace'");
  return file.find("ConfigurationSpace") != nullptr ? t1_space(file, stem, place) : own_space(file, stem, place);
}

}  // namespace graft::datasets::formats
