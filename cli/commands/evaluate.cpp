#include "study/evaluate.h"

#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/evaluated.h"
#include "cli/flags.h"

namespace graft::cli {
namespace {

struct Flags {
  DataFlags data;
  ModelFlags model;
  std::vector<std::string> methods{"zero-shot", "scratch",  "nearest", "finetune",
                                   "ridge",     "residual", "maml",    "reptile"},
      shots{"0", "5", "10", "20", "32", "64"}, targets{"all"};
  std::string regime = "seen", out;
  study::EvaluateRequest request;  // what flags set directly
};

study::EvaluateRequest request_of(const Flags& flags, const Session& session) {
  study::EvaluateRequest request = flags.request;
  request.data = flags.data;
  request.model = flags.model.chosen();
  request.methods = flags.methods;
  request.shots = integers_of("--shots", flags.shots, 0);
  request.regime = study::regime_named(flags.regime);
  if (flags.targets != std::vector<std::string>{"all"}) request.targets = flags.targets;
  request.seed = session.seed;
  request.threads = session.threads;
  request.out = flags.out;
  request.command_line = session.command_line;
  return request;
}

int evaluate(const Flags& flags, Session& session) {
  const study::EvaluateRequest request = request_of(flags, session);
  const auto print = [&](const study::EvaluationTable& table, const std::string& target) {
    print_target(table, target, request, session.output);
  };
  const study::EvaluationTable table = study::evaluate(request, session.progress, print);
  print_comparison(table, request, session.output);
  session.output.add(study::to_document(table));
  return done;
}

std::string method_names() {
  std::vector<std::string> names;
  for (const meta::EvaluatedMethod& method : meta::evaluated_methods()) names.push_back(method.name);
  return base::join(names, " ");
}

}  // namespace

Command evaluate_command() {
  return {
      .name = "evaluate",
      .help = "leave-one-platform-out tables: methods, shots, metrics, with intervals",
      .examples = {"graft evaluate data/*.h5 --methods zero-shot,scratch,ridge,maml --shots 0,10,50 --draws 20",
                   "graft evaluate data/*.h5 --target model:sifive-p450 --out p450.json",
                   "graft evaluate data/*.h5 --folds 5 --methods scratch,ridge,residual --shots 0,8,32 --out cv.json",
                   "graft evaluate data/*.h5 --regime alone --methods residual,scratch --shots 8,16,32",
                   "graft evaluate v3.h5 --regime in-domain --methods gbt-zero-shot,zero-shot --shots 300 --loss rank"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        flags->data.declare(options, "datasets of at least two platforms");
        options.list("target", flags->targets, "platforms to judge on, or all: each in turn");
        options.text("support", flags->request.support,
                     "how the support is chosen from 300 random programs a workload: random, kmeans, d_optimal (a "
                     "linear model's "
                     "uncertainty) or uncertain (a Gaussian process's)");
        options.list("sources", flags->request.sources, "platforms to train on; default: all but the target");
        options.list("misleading", flags->request.misleading,
                     "source platforms whose times are reversed within each workload, to see what such a source costs");
        options.integer(
            "folds", flags->request.folds, 0,
            "cross-validation: platforms dealt out to this many folds, each judged by what was trained on the "
            "other folds; 0: each platform by all others");
        options.integer(
            "judge-last", flags->request.judge_last, 0,
            "judge on this many last programs of each workload, which no platform's training or support has "
            "seen; 0: on all that are not support");
        options.flag("sources-know-judged", flags->request.sources_know_judged,
                     "with --judge-last: the sources have measured the judged programs, too, and learn from them; only "
                     "the target's support has not");
        options.list("methods", flags->methods, method_names() + " (docs/reference/methods.md says what each is)");
        options.list("shots", flags->shots, "support programs per workload");
        options.text("against", flags->request.against,
                     "the method that the others' differences are taken to; default: scratch, else the first");
        options.integer("draws", flags->request.draws, 1,
                        "support draws, the same for all methods; fewer than 3 have no interval");
        options.text(
            "regime", flags->regime,
            "seen: support from the judged workloads; alone: for each its own only, as a search has it; unseen: "
            "from others only; in-domain: no other platform, trained on "
            "--shots programs of each workload of the target and judged on the rest");
        options.list("train-workloads", flags->request.train_workloads, "in-domain: train on these only; default: all");
        options.list("judge-workloads", flags->request.judge_workloads, "in-domain: judge on these only; default: all");
        flags->model.declare(options);
        options.text("out", flags->out, "also save the JSON there; run again to continue");
        return [flags](Session& session) { return evaluate(*flags, session); };
      },
      .stops = true};
}

}  // namespace graft::cli
