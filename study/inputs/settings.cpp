#include "study/inputs/settings.h"

#include <fmt/format.h>

#include <iterator>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "codegen/schedule/rules.h"
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

template <>
struct NamesOf<search::Acquisition> {
  static std::string_view name(search::Acquisition value) { return search::name_of(value); }
  static search::Acquisition named(std::string_view name) { return search::acquisition_named(name); }
};
template <>
struct NamesOf<search::Selection> {
  static std::string_view name(search::Selection value) { return search::name_of(value); }
  static search::Selection named(std::string_view name) { return search::selection_named(name); }
};
template <>
struct NamesOf<std::optional<codegen::Layouts>> {
  static std::string_view name(std::optional<codegen::Layouts> value) {
    return !value ? "default" : *value == codegen::Layouts::free ? "free" : "given";
  }
  static std::optional<codegen::Layouts> named(std::string_view name) {
    if (name == "default") return std::nullopt;
    if (name == "free") return codegen::Layouts::free;
    if (name == "given") return codegen::Layouts::given;
    throw base::UserError(fmt::format("'{}' is not given, free or default", name));
  }
};
// How numbers of single precision are stored.
template <>
struct NamesOf<codegen::DType> {
  static std::string_view name(codegen::DType value) { return codegen::name_of(value); }
  static codegen::DType named(std::string_view name) {
    const std::optional<codegen::DType> type = codegen::dtype_of(name);
    if (type && codegen::computed_in(*type) == codegen::DType::f32) return *type;
    throw base::UserError(fmt::format("'{}' is not f32, f16 or bf16", name));
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

std::string model_help(const ModelChoice& usual) {
  const std::string kinds = "mlp, treegru (a network on trees), or gbt (boosted decision trees on any encoding)";
  return usual.model.empty()
             ? kinds + "; default: gbt where the learner can have trees and the data are not tables, else mlp"
             : kinds;
}

void append(Settings& all, Settings part) {
  all.insert(all.end(), std::move_iterator(part.begin()), std::move_iterator(part.end()));
}

// Not in a table: the room search declares the fields.
template <class Value>
void add(Settings& all, std::string key, Value& value, const Value& usual, std::string help, double least = 0) {
  About about{.decides = Decides::in_own_form, .offered = in_experiments | in_calls, .help = std::move(help)};
  if (std::is_arithmetic_v<Value>) about.least = least;
  all.push_back(make_setting(std::move(key), value, usual, std::move(about)));
}

}  // namespace

Settings settings_of(search::SelectionSettings& selection, const search::SelectionSettings& usual) {
  Settings all;
  add(all, "acquisition", selection.acquisition, usual.acquisition,
      "what evolution and annealing compare programs by: mean (the model's score; in a search of rows of tables "
      "from scratch whose selection is the usual one this is ei), ei (expected improvement), ucb "
      "(score and `bound` spreads), thompson (a random draw from the model's distribution); a model without spreads "
      "is taken at its mean");
  add(all, "bound", selection.bound, usual.bound, "spreads added by ucb");
  add(all, "selection", selection.selection, usual.selection,
      "how evolution and annealing choose a batch: best, or diverse (the best of those `preselected`, with "
      "`diversity` for each new row of a domain)");
  add(all, "diversity", selection.diversity, usual.diversity,
      "what a new row is worth to diverse, in standard deviations of the scores");
  add(all, "preselected", selection.preselected, usual.preselected,
      "programs that diverse chooses from, best first, for each that it takes", 1);
  add(all, "random_share", selection.random_share, usual.random_share,
      "share of each batch that is random, at least one program (evolution, annealing, bayesian, policy); 0: none");
  all.back().most = 1;
  return all;
}

Settings settings_of(SpaceSource& space, const SpaceSource& usual) {
  return {
      make_setting("space", space.file, usual.file,
                   {.decides = Decides::by_content,
                    .help = "file with sketches, domains and conditions (examples/matmul.space); default: by rule"}),
      make_setting("intrinsics", space.intrinsics, usual.intrinsics,
                   {.decides = Decides::by_content, .help = "file of micro-kernels to use wherever they fit"}),
      make_setting("layouts", space.layouts, usual.layouts,
                   {.decides = Decides::unless_usual,
                    .help = "given: parameters stored as the workload says; free: the search may store them in "
                            "blocks, and the best schedule's layout steps say how; of a network, what lies between "
                            "its kernels, inputs and outputs stay as they are; default: given, of a network free"})};
}

#undef GRAFT_SETTING
#undef GRAFT_PART
#define GRAFT_SETTING(type, field, standard, ...) \
  all.push_back(make_setting(#field, request.field, usual.field, About{__VA_ARGS__}));
#define GRAFT_PART(type, field, standard) append(all, settings_of(request.field, usual.field));

Settings settings_of(Timing& request, const Timing& usual) {
  Settings all;
#include "study/inputs/settings/timing.def"
  return all;
}

Settings settings_of(DataSource& request, const DataSource& usual) {
  Settings all;
#include "study/inputs/settings/data.def"
  return all;
}

Settings settings_of(ModelChoice& request, const ModelChoice& usual) {
  Settings all;
#include "study/inputs/settings/model_choice.def"
  return all;
}

Settings settings_of(NetworkOptions& request, const NetworkOptions& usual) {
  Settings all;
#include "study/inputs/settings/network_options.def"
  return all;
}

Settings settings_of(tasks::Command& request, const tasks::Command& usual) {
  Settings all;
#include "study/inputs/settings/command.def"
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
