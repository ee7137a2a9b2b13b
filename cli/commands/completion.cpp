#include "cli/completion.h"

#include <memory>

#include "base/text.h"
#include "cli/commands/commands.h"

namespace graft::cli {

Command completion_command() {
  return {.name = "completion",
          .help = "a script by which a shell completes commands, flags, workloads and platforms",
          .examples = {"graft completion bash > graft.bash", "graft completion zsh > _graft",
                       "graft completion fish > graft.fish"},
          .declare = [](Options& options) -> Action {
            const auto shell = std::make_shared<std::string>();
            options.positional("SHELL", *shell, base::join(completed_shells(), ", "));
            return [shell](Session& session) {
              const std::string script = completion_script(*shell);
              session.output.text(script);
              session.output.json().set("shell", *shell).set("script", script);
              return int(done);
            };
          }};
}

}  // namespace graft::cli
