// Shared by the commands of `graft bench`.
#pragma once

#include "base/document.h"
#include "base/named_fields.h"
#include "bench/settings.h"
#include "cli/command.h"

namespace graft::cli {

// graft-bench links the libraries that graft is compared with, so it is a separate program; this process executes it.
int become_bench(const char* what, base::Document settings, const Session& session);
template <class Settings>
int become_bench(const char* what, const Settings& settings, const Session& session) {
  return become_bench(what, base::document_of(settings), session);
}

}  // namespace graft::cli
