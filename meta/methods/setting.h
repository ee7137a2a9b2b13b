// Numbers of a method that the text of a learner may set: "maml:inner_steps=5,inner_rate=0.05".
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meta/learner.h"

namespace graft::meta {

struct MethodSetting {
  std::string name, help;
  double otherwise = 0;  // if the text leaves it
  double least = 0, most = 1e9;
  bool is_whole = true;
};
// A number for each of a method's settings.
using MethodValues = std::map<std::string, double, std::less<>>;
using MakeLearner = std::function<std::unique_ptr<Learner>(const MethodValues&)>;

// The parts of a learner's text: "maml", and "inner_steps=5,inner_rate=0.05" or nothing.
std::string_view method_name_of(std::string_view learner);
std::string_view settings_text_of(std::string_view learner);
// Texts of a list that was divided at every comma: what only sets a number belongs to the text before it.
std::vector<std::string> joined_learners(const std::vector<std::string>& parts);

// The text's values, and those of settings that it leaves. UserError for a setting that is unknown (did you mean), is
// set twice or to what it cannot be.
MethodValues values_of(std::string_view learner, const std::vector<MethodSetting>& settings);

}  // namespace graft::meta
