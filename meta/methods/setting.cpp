#include "meta/methods/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace graft::meta {

std::string_view method_name_of(std::string_view learner) {
  return learner.substr(0, learner.find(':'));
}

std::string_view settings_text_of(std::string_view learner) {
  const std::size_t colon = learner.find(':');
  return colon == std::string_view::npos ? "" : learner.substr(colon + 1);
}

std::vector<std::string> joined_learners(const std::vector<std::string>& parts) {
  std::vector<std::string> learners;
  for (const std::string& part : parts) {
    const std::size_t equals = part.find('='), colon = part.find(':');
    if (equals == std::string::npos || colon < equals || learners.empty())
      learners.push_back(part);
    else
      learners.back() += "," + part;
  }
  return learners;
}

MethodValues values_of(std::string_view learner, const std::vector<MethodSetting>& settings) {
  MethodValues values;
  std::vector<std::string> names;
  for (const MethodSetting& setting : settings) {
    values.emplace(setting.name, setting.otherwise);
    names.push_back(setting.name);
  }
  const std::string_view text = settings_text_of(learner);
  const auto fail = [&](const std::string& what) {
    throw base::UserError(fmt::format("learner '{}': {}", learner, what));
  };
  if (learner.ends_with(':')) fail("sets nothing");
  std::vector<std::string> given;
  for (const std::string_view part : base::split(text, ',')) {
    if (text.empty()) break;
    const std::size_t equals = part.find('=');
    const std::string name(base::trim(part.substr(0, equals)));
    const auto setting =
        std::find_if(settings.begin(), settings.end(), [&](const MethodSetting& each) { return each.name == name; });
    if (setting == settings.end())
      fail(settings.empty() ? fmt::format("{} has no settings", method_name_of(learner))
                            : fmt::format("no setting '{}'{}; there are {}", name, base::did_you_mean(name, names),
                                          base::join(names, ", ")));
    if (std::find(given.begin(), given.end(), name) != given.end()) fail(fmt::format("'{}' is set twice", name));
    given.push_back(name);
    const std::string_view digits = equals == std::string_view::npos ? "" : base::trim(part.substr(equals + 1));
    double& value = values.find(name)->second;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_number = !digits.empty() && error == std::errc() && end == digits.data() + digits.size();
    if (!is_number || !(value >= setting->least && value <= setting->most) ||
        (setting->is_whole && value != std::floor(value)))
      fail(fmt::format("{} is a{} number from {:g} to {:g}, not '{}'", name, setting->is_whole ? " whole" : "",
                       setting->least, setting->most, digits));
  }
  return values;
}

}  // namespace graft::meta
