#include "study/inputs/settings.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "codegen/schedule/rules.h"

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
namespace {

std::string model_help(const ModelChoice& usual) {
  const std::string kinds = "mlp, treegru (a network on trees), or gbt (boosted decision trees on any encoding)";
  return usual.model.empty()
             ? kinds + "; default: gbt where the learner can have trees and the data are not tables, else mlp"
             : kinds;
}

// Not in a table: the room search declares the fields.
template <class Value>
void add(Settings& all, std::string key, Value& value, const Value& usual, std::string help, double least = 0) {
  About about{.decides = Decides::in_own_form, .offered = in_experiments | in_calls, .help = std::move(help)};
  if (std::is_arithmetic_v<Value>) about.least = least;
  all.push_back(make_setting(std::move(key), value, usual, std::move(about)));
}

}  // namespace

void append(Settings& all, Settings part) {
  all.insert(all.end(), std::move_iterator(part.begin()), std::move_iterator(part.end()));
}

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

#include "study/inputs/settings/as_settings.def"

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

Settings settings_of(tasks::Command& request, const tasks::Command& usual) {
  Settings all;
#include "study/inputs/settings/command.def"
  return all;
}

}  // namespace graft::study
