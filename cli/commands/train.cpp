#include "study/train.h"

#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "meta/methods/methods.h"

namespace graft::cli {
namespace {

struct Flags {
  DataFlags data;
  ModelFlags model;
  std::string out, base, losses, card;
  study::TrainRequest request;  // what flags set directly
};

study::TrainRequest request_of(const Flags& flags, const Session& session) {
  study::TrainRequest request = flags.request;
  request.data = flags.data;
  request.model = flags.model.chosen();
  request.base = flags.base;
  request.out = flags.out;
  request.losses = flags.losses;
  request.card = flags.card;
  request.seed = session.seed;
  request.threads = session.threads;
  request.command_line = session.command_line;
  return request;
}

int train(const Flags& flags, Session& session) {
  const auto result = study::train(request_of(flags, session), session.team, session.progress);
  if (!result) return done;  // rank 0 says it
  session.output.add(study::to_document(*result));
  session.output.line(fmt::format(
      "{}: {} trained on {} of {} ({}){}", flags.out, result->learner, base::counted(result->programs, "program"),
      base::counted(result->platforms.size(), "platform"), base::join(result->platforms, ", "),
      flags.base.empty() ? "" : ", in addition to what " + flags.base + " was trained on"));
  return done;
}

std::string learner_names() {
  std::vector<std::string> names;
  for (const meta::Method& method : meta::methods()) names.push_back(method.name);
  return base::join(names, ", ");
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .help = "meta-train a cost model on datasets",
          .examples = {"graft train data/*.h5 --out model.h5 --learner reptile --hold-out model:sifive-p450",
                       "graft train new-board.h5 --base model.h5 --out model2.h5",
                       "graft train data/*.h5 --out trees.h5 --model gbt --loss lambda --members 6",
                       "mpirun -n 2 graft train data/*.h5 --out model.h5 --learner maml --threads 1"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            flags->data.declare(options, "datasets, one or several per platform");
            options.text("out", flags->out, "model file to write", Options::required);
            options.text("learner", flags->request.learner,
                         learner_names() + " (docs/reference/methods.md says what each is)");
            options.text("hold-out", flags->request.hold_out, "platform to leave out");
            options.list("misleading", flags->request.misleading,
                         "platforms whose times are reversed within each workload, to see what such a source costs");
            options.text("base", flags->base, "a trained model to extend by these platforms");
            options.text("losses", flags->losses, "CSV of the losses by stage and step to write");
            options.text("card", flags->card, "Markdown to append to the model's card, such as how it was judged");
            flags->model.choice.model.clear();
            flags->model.declare(options);
            return [flags](Session& session) { return train(*flags, session); };
          },
          .stops = true,
          .shares = true};
}

}  // namespace graft::cli
