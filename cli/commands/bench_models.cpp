#include <memory>

#include "cli/commands/bench.h"
#include "cli/commands/commands.h"

namespace graft::cli {
namespace {

struct NetworkFlags {
  bench::NetworkSettings settings;
  double minimum_ms = 1e3 * settings.timing.minimum_seconds;

  explicit NetworkFlags(std::int64_t programs) { settings.batch = programs; }
  void declare(Options& options) {
    options.positionals("WORKLOAD", settings.workloads,
                        "whose random candidates are the trees (default: a matmul and a convolution)",
                        Options::optional);
    options.text("platform", settings.platform, "platform whose code the candidates become");
    options.integer("batch", settings.batch, 1, "programs at once");
    options.integer("repetitions", settings.timing.repetitions, 1, "of each, taken in turn");
    options.number("minimum-ms", minimum_ms, 0, "one repetition is at least so long");
  }
  int become(const char* what, const Session& session) {
    settings.seed = session.seed;
    settings.timing.minimum_seconds = minimum_ms * 1e-3;
    return become_bench(what, settings, session);
  }
};

}  // namespace

Command bench_features_command() {
  return {.name = "bench features",
          .help = "programs encoded per second and core, by encoding, and lowered",
          .examples = {"graft bench features", "graft bench features resnet18.C6 --encodings context_relation,tree"},
          .declare = [](Options& options) -> Action {
            const auto settings = std::make_shared<bench::FeatureSettings>();
            options.positionals("WORKLOAD", settings->workloads,
                                "whose random candidates are encoded (default: a matmul, a convolution, a depthwise "
                                "one, a softmax)",
                                Options::optional);
            options.text("platform", settings->platform, "platform whose code the candidates become");
            options.list("encodings", settings->encodings, "only these; default: all, without the target's facts");
            options.integer("candidates", settings->candidates, 1, "random ones of each workload");
            options.integer("repetitions", settings->repetitions, 1, "of all of it");
            return [settings](Session& session) {
              settings->seed = session.seed;
              return become_bench("features", *settings, session);
            };
          }};
}

Command bench_predict_command() {
  return {.name = "bench predict",
          .help = "programs scored per second and core: MLP and TreeGRU next to LibTorch and oneDNN's products",
          .examples = {"graft bench predict", "graft bench predict resnet18.C2 --batch 256"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<NetworkFlags>(1024);
            flags->declare(options);
            return [flags](Session& session) { return flags->become("predict", session); };
          }};
}

Command bench_train_command() {
  return {
      .name = "bench train",
      .help = "programs trained on per second and core (forward, rank loss, backward, Adam) next to LibTorch",
      .examples = {"graft bench train", "graft bench train resnet18.C2 --batch 128", "graft bench train --threads 2"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<NetworkFlags>(512);
        flags->declare(options);
        options.integer("threads", flags->settings.threads, 1,
                        "from 2 on MAML's meta-step a second time, its tasks on this many threads (wall time)");
        return [flags](Session& session) { return flags->become("train", session); };
      }};
}

Command bench_store_command() {
  return {.name = "bench store",
          .help = "a dataset's rows written, read whole, and read as episodes",
          .examples = {"graft bench store datasets/shipped/native-v3.h5"},
          .declare = [](Options& options) -> Action {
            const auto settings = std::make_shared<bench::StoreSettings>();
            options.positional("DATA", settings->file, "a dataset whose rows are repeated");
            options.integer("rows", settings->rows, 1, "rows to write: the dataset's, repeated up to this number");
            options.integer("episodes", settings->episodes, 1,
                            "episodes to read, of 64 and 256 rows alternately, from each workload in turn");
            options.integer("repetitions", settings->repetitions, 1, "of writing and reading");
            return [settings](Session& session) {
              settings->seed = session.seed;
              return become_bench("store", *settings, session);
            };
          }};
}

}  // namespace graft::cli
