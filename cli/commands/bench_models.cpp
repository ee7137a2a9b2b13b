#include <memory>

#include "cli/commands/bench.h"
#include "cli/commands/commands.h"

namespace graft::cli {
namespace {

struct FeatureFlags {
  std::vector<std::string> workloads, encodings;
  std::string platform = "native";
  std::int64_t candidates = 300, repetitions = 10;

  base::Document request() const {
    base::Document request = base::Document::map();
    request.set("workloads", list_of(workloads)).set("encodings", list_of(encodings)).set("platform", platform);
    return request.set("candidates", candidates).set("repetitions", repetitions);
  }
};

struct NetworkBenchFlags {
  std::vector<std::string> workloads;
  std::string platform = "native";
  std::int64_t batch, repetitions = 20, threads = 1;
  double minimum_ms = 10;

  explicit NetworkBenchFlags(std::int64_t programs) : batch(programs) {}
  void declare(Options& options) {
    options.positionals("WORKLOAD", workloads,
                        "whose random candidates are the trees (default: a matmul and a convolution)",
                        Options::optional);
    options.text("platform", platform, "platform whose code the candidates become");
    options.integer("batch", batch, 1, "programs at once");
    options.integer("repetitions", repetitions, 1, "of each, taken in turn");
    options.number("minimum-ms", minimum_ms, 0, "one repetition is at least so long");
  }
  base::Document request() const {
    base::Document request = base::Document::map();
    request.set("workloads", list_of(workloads)).set("platform", platform).set("batch", batch);
    request.set("threads", threads);
    return request.set("repetitions", repetitions).set("minimum_seconds", minimum_ms * 1e-3);
  }
};

struct StoreFlags {
  std::string file;
  std::int64_t rows = 1'000'000, episodes = 200, repetitions = 3;

  base::Document request() const {
    base::Document request = base::Document::map();
    request.set("file", file).set("rows", rows).set("episodes", episodes);
    return request.set("repetitions", repetitions);
  }
};

}  // namespace

Command bench_features_command() {
  return {.name = "bench features",
          .help = "programs encoded per second and core, by encoding, and lowered",
          .examples = {"graft bench features", "graft bench features resnet18.C6 --encodings context_relation,tree"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<FeatureFlags>();
            options.positionals("WORKLOAD", flags->workloads,
                                "whose random candidates are encoded (default: a matmul, a convolution, a depthwise "
                                "one, a softmax)",
                                Options::optional);
            options.text("platform", flags->platform, "platform whose code the candidates become");
            options.list("encodings", flags->encodings, "only these; default: all, without the target's facts");
            options.integer("candidates", flags->candidates, 1, "random ones of each workload");
            options.integer("repetitions", flags->repetitions, 1, "of all of it");
            return [flags](Session& session) { return become_bench("features", flags->request(), session); };
          }};
}

Command bench_predict_command() {
  return {.name = "bench predict",
          .help = "programs scored per second and core: MLP and TreeGRU next to LibTorch and oneDNN's products",
          .examples = {"graft bench predict", "graft bench predict resnet18.C2 --batch 256"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<NetworkBenchFlags>(1024);
            flags->declare(options);
            return [flags](Session& session) { return become_bench("predict", flags->request(), session); };
          }};
}

Command bench_train_command() {
  return {
      .name = "bench train",
      .help = "programs trained on per second and core (forward, rank loss, backward, Adam) next to LibTorch",
      .examples = {"graft bench train", "graft bench train resnet18.C2 --batch 128", "graft bench train --threads 2"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<NetworkBenchFlags>(512);
        flags->declare(options);
        options.integer("threads", flags->threads, 1,
                        "from 2 on MAML's meta-step a second time, its tasks on this many threads (wall time)");
        return [flags](Session& session) { return become_bench("train", flags->request(), session); };
      }};
}

Command bench_store_command() {
  return {.name = "bench store",
          .help = "a dataset's rows written, read whole, and read as episodes",
          .examples = {"graft bench store datasets/shipped/native-v3.h5"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<StoreFlags>();
            options.positional("DATA", flags->file, "a dataset whose rows are repeated");
            options.integer("rows", flags->rows, 1, "rows to write: the dataset's, repeated up to this number");
            options.integer("episodes", flags->episodes, 1,
                            "episodes to read, of 64 and 256 rows alternately, from each workload in turn");
            options.integer("repetitions", flags->repetitions, 1, "of writing and reading");
            return [flags](Session& session) { return become_bench("store", flags->request(), session); };
          }};
}

}  // namespace graft::cli
