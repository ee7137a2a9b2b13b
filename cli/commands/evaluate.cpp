#include "study/flows/evaluate.h"

#include <memory>

#include "cli/commands/commands.h"
#include "cli/print/evaluated.h"
#include "cli/setting_flags.h"
#include "meta/methods/methods.h"
#include "study/flows/settings.h"

namespace graft::cli {
namespace {

const std::vector<std::string> all_targets{"all"};

study::EvaluateRequest usual_request() {
  study::EvaluateRequest request;
  request.methods = {"zero-shot", "scratch", "nearest", "finetune", "ridge", "residual", "maml", "reptile"};
  request.shots = {0, 5, 10, 20, 32, 64};
  request.targets = all_targets;
  return request;
}

study::EvaluateRequest request_of(const study::EvaluateRequest& flags, const Session& session) {
  study::EvaluateRequest request = flags;
  if (request.targets == all_targets) request.targets.clear();
  for (std::vector<std::string>* const methods : {&request.methods, &request.search_methods})
    *methods = meta::joined_learners(*methods);
  request.seed = session.seed;
  request.threads = session.threads;
  request.command_line = session.command_line;
  return request;
}

int evaluate(const study::EvaluateRequest& flags, Session& session) {
  const study::EvaluateRequest request = request_of(flags, session);
  const auto print = [&](const study::EvaluationTable& table, const std::string& target) {
    print_target(table, target, request, session.output);
  };
  const study::EvaluationTable table = study::evaluate(request, session.team, session.progress, print);
  print_comparison(table, request, session.output);
  session.output.add(study::to_document(table));
  return done;
}

}  // namespace

Command evaluate_command() {
  return {
      .name = "evaluate",
      .help = "leave-one-platform-out tables: methods, shots, metrics, with intervals",
      .examples = {"graft evaluate data/*.h5 --methods zero-shot,scratch,ridge,maml --shots 0,10,50 --draws 20",
                   "graft evaluate data/*.h5 --target model:sifive-p450 --out p450.json",
                   "mpirun -n 2 graft evaluate data/*.h5 --folds 5 --threads 1 --out cv.json",
                   "graft evaluate data/*.h5 --folds 5 --methods scratch,ridge,residual --shots 0,8,32 --out cv.json",
                   "graft evaluate data/*.h5 --regime alone --methods residual,scratch --shots 8,16,32",
                   "graft evaluate data/*.h5 --target model:sifive-p450 --methods residual,ridge --search --draws 10",
                   "graft evaluate data/*.h5 --methods maml,maml:inner_steps=5,inner_rate=0.05,ridge --shots 10",
                   "graft evaluate v3.h5 --regime in-domain --methods gbt-zero-shot,zero-shot --shots 300 --loss rank"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<study::EvaluateRequest>(usual_request());
        options.positionals("DATA.h5", flags->data.files, "datasets of at least two platforms");
        declare(options, study::settings_of(*flags));
        return [flags](Session& session) { return evaluate(*flags, session); };
      },
      .stops = true,
      .shares = true};
}

}  // namespace graft::cli
