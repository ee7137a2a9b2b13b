#include "cli/explorer_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "search/explorer.h"

namespace graft::cli {
namespace {

std::string explorers_help() {
  std::string text;
  for (const search::ExplorerEntry& entry : search::explorers())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", entry.name, entry.description);
  return text;
}

}  // namespace

void ExplorerFlags::declare(Options& options) {
  options.text("explorer", explorer, explorers_help());
  options.text(
      "acquisition", acquisition,
      "what evolution and annealing compare programs by: mean (the model's score), ei (expected improvement), "
      "ucb (score and --bound spreads), thompson (a random draw from the model's distribution); a model without "
      "spreads is taken at its mean");
  options.number("bound", settings.bound, 0, "spreads added by ucb");
  options.text("selection", selection,
               "how evolution and annealing choose a batch: best, or diverse (the best of those --preselected, with "
               "--diversity for each new row of a domain)");
  options.number("diversity", settings.diversity, 0,
                 "what a new row is worth to diverse, in standard deviations of the scores");
  options.number("preselected", settings.preselected, 1,
                 "programs that diverse chooses from, best first, for each that it takes");
  options.number("random-share", settings.random_share, 0,
                 "share of each batch that is random, at least one program (evolution, annealing, bayesian, policy); "
                 "0: none");
}

search::SelectionSettings ExplorerFlags::checked() const {
  search::SelectionSettings result = settings;
  const auto named = [](const char* flag, const auto& name, auto& value, auto parse) {
    try {
      value = parse(name);
    } catch (const base::UserError& error) {
      throw base::UserError(flag, error.what());
    }
  };
  named("--acquisition", acquisition, result.acquisition, search::acquisition_named);
  named("--selection", selection, result.selection, search::selection_named);
  if (settings.random_share > 1)
    throw base::UserError("--random-share", fmt::format("expected a share, 0 to 1, got {:g}", settings.random_share));
  return result;
}

}  // namespace graft::cli
