#include "study/flows/code_runner.h"

#include <fmt/format.h>

#include <chrono>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/process.h"
#include "tasks/probe.h"

namespace graft::study {

CodeRunner runner_of(const tasks::Platform& platform) {
  if (std::holds_alternative<tasks::Native>(platform.how)) return {tasks::Remote{}, "host", ""};
  if (const auto* remote = std::get_if<tasks::Remote>(&platform.how))
    return {*remote, remote->is_emulated() ? "qemu" : "remote", ""};
  const std::vector<std::string>& qemu = std::get<tasks::Modelled>(platform.how).profile.qemu;
  if (qemu.empty()) return {{}, "none", "the platform names no qemu"};
  try {
    if (base::run_process({qemu[0], "--version"}, std::chrono::seconds(10)).exit_code == 0) {
      tasks::Remote remote;
      remote.prefix = qemu;
      return {remote, "qemu", ""};
    }
  } catch (const base::Failure&) {
  }
  return {{}, "none", fmt::format("'{}' does not start; install qemu-user", qemu[0])};
}

void note_emulated(const tasks::Platform& platform, base::Monitor& monitor) {
  if (tasks::source_of(platform) != "emulated") return;
  const std::string modelled = tasks::modelled_platform_of(platform.target.cpu);
  monitor.note(fmt::format(
      "{}: its times are of an emulator, where other schedules are fast than on hardware: not for shipping; tune on {} "
      "instead, whose code is also checked under qemu",
      platform.name, modelled.empty() ? "the modelled core that is most like it (graft platform list)" : modelled));
}

}  // namespace graft::study
