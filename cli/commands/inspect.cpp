#include "cli/inspect/inspect.h"

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/shortened.h"
#include "cli/commands/commands.h"
#include "cli/network_flags.h"
#include "datasets/hdf5.h"
#include "study/flows/network.h"
#include "study/inputs/request.h"

namespace graft::cli {
namespace {

int inspect(const InspectFlags& flags, Session& session) {
  const std::filesystem::path path = flags.what;
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return study::is_network_folder(path) ? inspect_tuned_network(flags, session) : inspect_run(flags, session);
  const bool network = names_network(flags.what);
  if (std::filesystem::exists(path, error) || network) {
    if (flags.wants_program()) {
      throw base::UserError(flags.what, "--program, --ir, --assembly and --features need a run or a workload");
    }
    const std::string extension = path.extension().string();
    if ((!flags.platform.empty() && !network) || !flags.workload.empty() || !flags.space.file.empty())
      throw base::UserError(flags.what, "a file; --platform, --workload and --space go with a run or a workload");
    if (extension == ".space") {
      throw base::UserError(flags.what, "a space is read for a workload: graft inspect WORKLOAD --space FILE");
    }
    if (network) return inspect_network(flags, session);
    refuse_for_others(flags.network);
    if (extension == ".yaml" || extension == ".yml") return inspect_platform(flags, session);
    if (extension == ".jsonl") return inspect_journal(flags, session);
    if (extension == ".json") return inspect_result(flags, session);
    if (extension == ".txt") study::workload_of(flags.what);  // says how the workload in it is given
    return datasets::kind_of_file(path) == "dataset" ? inspect_dataset(flags, session) : inspect_model(flags, session);
  }
  if (flags.what == "encodings") return inspect_encodings(session);
  if (flags.what.starts_with("suite:")) return inspect_suite(flags, session);
  if (flags.what.starts_with("native") || flags.what.starts_with("model:")) return inspect_platform(flags, session);
  for (const features::Encoding& encoding : features::encodings()) {
    if (encoding.name == flags.what) return inspect_encoding(encoding, session);
  }
  const bool looks_like_path =
      flags.what.find_first_of("([=") == std::string::npos && !flags.what.starts_with("resnet18.");
  if (looks_like_path) {
    throw base::UserError(
        base::shortened(flags.what),
        "neither a file, a run, a platform or an encoding, nor a workload such as 'matmul(m=64,n=64,k=64)'");
  }
  return inspect_workload(flags, session);
}

}  // namespace

Command inspect_command() {
  return {
      .name = "inspect",
      .help = "describe a dataset, model, run, journal, platform, workload, suite, encoding or network",
      .examples = {"graft inspect data.h5", "graft inspect 'matmul(m=64,n=64,k=64)' --platform model:sifive-p450",
                   "graft inspect runs/c2 --program --assembly", "graft inspect context_relation",
                   "graft inspect resnet18.onnx --platform model:sifive-x280", "graft inspect runs/resnet18"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<InspectFlags>();
        options.positional(
            "WHAT", flags->what,
            "a file, a run's folder, a workload or suite:NAME, a platform, an encoding's name, or 'encodings' for all");
        options.text("platform", flags->platform,
                     "of a workload: whose space (default: native); of an ONNX file: whose limits its kernels are "
                     "compared with; of a "
                     "run: another than its own, for the program there");
        options.text("workload", flags->workload,
                     "of a run with several, or of a network's folder: whose best program (default: the first one, or "
                     "the kernel that takes most of the time)");
        declare(options, flags->network);
        flags->space.declare(options);
        options.flag(
            "program", flags->program,
            "the loop program: the run's best (or, where no trial is ok, the first that failed), or a random one of "
            "the workload");
        options.flag("ir", flags->ir, "its optimised LLVM IR");
        options.flag("assembly", flags->assembly, "its machine code; for a GPU its kernels in OpenCL C");
        options.flag("features", flags->features, "what a cost model sees of it");
        options.flag("passes", flags->passes, "of an ONNX file: what each step of folding changed");
        options.text("encoding", flags->encoding, "feature list");
        return [flags](Session& session) { return inspect(*flags, session); };
      }};
}

}  // namespace graft::cli
