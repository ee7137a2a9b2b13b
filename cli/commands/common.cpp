#include "cli/commands/common.h"

namespace graft::cli {

base::Document context_of(const Session& session) {
  return study::context_of(session.command_line);
}

}  // namespace graft::cli
