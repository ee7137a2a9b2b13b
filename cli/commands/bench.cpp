#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/process.h"
#include "cli/commands/commands.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string what;
  std::vector<std::string> runs;
  std::int64_t repetitions = 20;
};

// graft-bench links the libraries that graft is compared with, so it is a program of its own; this one becomes it.
int bench(const Flags& flags, Session& session) {
  const std::filesystem::path program = base::program_folder() / "graft-bench";
  std::vector<std::string> words = {program.string(), flags.what};
  words.insert(words.end(), flags.runs.begin(), flags.runs.end());
  words.insert(words.end(), {"--repetitions", std::to_string(flags.repetitions)});
  if (session.output.is_json()) words.push_back("--json");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw base::Failure(
      fmt::format("{}: cannot be started: {}; build the target graft-bench", program.string(), std::strerror(errno)));
}

}  // namespace

Command bench_command() {
  return {.name = "bench",
          .help = "our own speed beside OpenBLAS and clang -O3, measured in turn with results checked",
          .examples = {"graft bench kernels runs/mm512"},
          .declare = [](Options& options) -> Action {
            auto flags = std::make_shared<Flags>();
            options.positional("what", flags->what, "kernels: the best kernels of tuned runs");
            options.positionals("run", flags->runs, "run folders that graft tune wrote on a native platform");
            options.integer("repetitions", flags->repetitions, 3, "of each kernel, taken in turn");
            return [flags](Session& session) { return bench(*flags, session); };
          }};
}

}  // namespace graft::cli
