// Private to this folder: where code of a platform runs from here.
#pragma once

#include <optional>
#include <string>

#include "base/monitor.h"
#include "tasks/platform.h"
#include "tasks/remote.h"

namespace graft::study {

// How this machine can run code of a platform, or why it cannot.
struct CodeRunner {
  std::optional<tasks::Remote> where;
  std::string check, reason;  // "host", "qemu", "remote", or "none" and why
};
CodeRunner runner_of(const tasks::Platform& platform);

// A note where a platform's times were an emulator's: what was fastest there need not be fast on hardware.
void note_emulated(const tasks::Platform& platform, base::Monitor& monitor);

}  // namespace graft::study
