#include "study/flows/train.h"

#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/setting_flags.h"
#include "study/flows/settings.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string out;
  study::TrainRequest request;  // what flags set directly
};

study::TrainRequest request_of(const Flags& flags, const Session& session) {
  study::TrainRequest request = flags.request;
  request.out = flags.out;
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
      flags.request.base.empty() ? "" : ", in addition to what " + flags.request.base.string() + " was trained on"));
  return done;
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .help = "meta-train a cost model on datasets",
          .examples = {"graft train data/*.h5 --out model.h5 --learner reptile --hold-out model:sifive-p450",
                       "graft train new-board.h5 --base model.h5 --out model2.h5",
                       "graft train --base models/base.h5 --from runs/board --out lab.h5",
                       "graft train data/*.h5 --out trees.h5 --model gbt --loss lambda --members 6",
                       "mpirun -n 2 graft train data/*.h5 --out model.h5 --learner maml --threads 1"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.positionals("DATA.h5", flags->request.data.files, "datasets, one or several per platform",
                                Options::optional);
            options.text("out", flags->out, "model file to write", Options::required);
            declare(options, study::settings_of(flags->request));
            return [flags](Session& session) { return train(*flags, session); };
          },
          .stops = true,
          .shares = true};
}

}  // namespace graft::cli
