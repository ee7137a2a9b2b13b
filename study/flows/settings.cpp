#include "study/flows/settings.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "meta/evaluate.h"
#include "meta/methods/methods.h"
#include "search/comparison.h"
#include "search/explorer.h"
#include "study/flows/adapt.h"
#include "study/flows/collect.h"
#include "study/flows/compare.h"
#include "study/flows/compile_network.h"
#include "study/flows/evaluate.h"
#include "study/flows/network.h"
#include "study/flows/predict_network.h"
#include "study/flows/replay.h"
#include "study/flows/train.h"
#include "study/flows/tune.h"
#include "study/flows/tune_own.h"
#include "study/flows/validate.h"

namespace graft::study {

// How products with weights of few bits take their other operand.
template <>
struct NamesOf<codegen::DType> {
  static std::string_view name(codegen::DType value) { return codegen::name_of(value); }
  static codegen::DType named(std::string_view name) {
    const std::optional<codegen::DType> type = codegen::dtype_of(name);
    if (type == codegen::DType::f32 || type == codegen::DType::i8) return *type;
    throw base::UserError(fmt::format("'{}' is not f32 or i8", name));
  }
};
template <>
struct NamesOf<graph::Storage> {
  static std::string name(const graph::Storage& value) { return to_text(value); }
  static graph::Storage named(std::string_view name) {
    if (const std::optional<graph::Storage> storage = graph::storage_named(name)) return *storage;
    throw base::UserError(fmt::format("'{}' is not f32, f16, bf16 or s4:32", name));
  }
};
template <>
struct NamesOf<meta::Regime> {
  static std::string_view name(meta::Regime value) { return name_of(value); }
  static meta::Regime named(std::string_view name) { return regime_named(name); }
};

namespace {

std::string explorers_help() {
  std::string text;
  for (const search::ExplorerEntry& entry : search::offered_explorers())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", entry.name, entry.description);
  return text;
}

template <class Methods>
std::vector<std::string> names_of(const Methods& methods) {
  std::vector<std::string> names;
  for (const auto& method : methods) names.push_back(method.name);
  return names;
}
constexpr const char* where_methods_are = " (docs/reference/methods.md says what each is)";

std::string learners_help() {
  return base::join(names_of(meta::methods()), ", ") + where_methods_are +
         "; some have settings: maml:inner_steps=5,inner_rate=0.05";
}

std::string evaluated_methods_help() {
  return base::join(names_of(meta::evaluated_methods()), " ") + where_methods_are;
}

}  // namespace

#include "study/inputs/settings/as_settings.def"

Settings settings_of(NetworkOptions& request, const NetworkOptions& usual) {
  Settings all;
#include "study/inputs/settings/network_options.def"
  return all;
}

Settings settings_of(TuneRequest& request) {
  static const TuneRequest usual;
  Settings all;
#include "study/inputs/settings/tune.def"
  return all;
}

Settings settings_of(NetworkRequest& request) {
  static const NetworkRequest usual;
  Settings all;
#include "study/inputs/settings/network.def"
  for (Setting& setting : settings_of(request.each)) {
    if (setting_of(all, setting.key) == nullptr) all.push_back(std::move(setting));
  }
  return all;
}

Settings settings_of(PredictNetworkRequest& request) {
  static const PredictNetworkRequest usual;
  Settings all;
#include "study/inputs/settings/predict_network.def"
  return all;
}

Settings settings_of(RunNetworkRequest& request) {
  static const RunNetworkRequest usual;
  Settings all;
#include "study/inputs/settings/run_network.def"
  return all;
}

Settings settings_of(OwnRequest& request) {
  static const OwnRequest usual;
  Settings all;
#include "study/inputs/settings/own.def"
  return all;
}

Settings settings_of(ReplayRequest& request) {
  static const ReplayRequest usual;
  Settings all;
#include "study/inputs/settings/replay.def"
  return all;
}

Settings settings_of(AdaptRequest& request) {
  static const AdaptRequest usual;
  Settings all;
#include "study/inputs/settings/adapt.def"
  return all;
}

Settings settings_of(CollectRequest& request) {
  static const CollectRequest usual;
  Settings all;
#include "study/inputs/settings/collect.def"
  return all;
}

Settings settings_of(TrainRequest& request) {
  static const TrainRequest usual;
  Settings all;
#include "study/inputs/settings/train.def"
  return all;
}

Settings settings_of(EvaluateRequest& request) {
  static const EvaluateRequest usual;
  Settings all;
#include "study/inputs/settings/evaluate.def"
  return all;
}

Settings settings_of(ValidateRequest& request) {
  static const ValidateRequest usual;
  Settings all;
#include "study/inputs/settings/validate.def"
  return all;
}

Settings settings_of(CompareRequest& request) {
  static const CompareRequest usual;
  Settings all;
#include "study/inputs/settings/compare.def"
  return all;
}

const std::vector<SettledCall>& settled_calls() {
  static TuneRequest tune;
  static NetworkRequest network;
  static PredictNetworkRequest predict;
  static RunNetworkRequest run;
  static OwnRequest own;
  static ReplayRequest replay;
  static AdaptRequest adapt;
  static CollectRequest collect;
  static TrainRequest train;
  static EvaluateRequest evaluate;
  static ValidateRequest validate;
  static CompareRequest compare;
  static const std::vector<SettledCall> all = {{"tune", settings_of(tune), true},
                                               {"tune_network", settings_of(network), false},
                                               {"tune SPACE", settings_of(own), false},
                                               {"predict", settings_of(predict), false},
                                               {"run", settings_of(run), false},
                                               {"replay", settings_of(replay), false},
                                               {"adapt", settings_of(adapt), false},
                                               {"collect", settings_of(collect), true},
                                               {"train", settings_of(train), true},
                                               {"evaluate", settings_of(evaluate), true},
                                               {"platform validate", settings_of(validate), false},
                                               {"compare", settings_of(compare), false}};
  return all;
}

}  // namespace graft::study
