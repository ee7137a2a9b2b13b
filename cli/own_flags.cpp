#include "cli/own_flags.h"

#include "base/error.h"

namespace graft::cli {

void OwnFlags::declare(Options& options) {
  options.text("run", command.run,
               "command that measures a configuration of one's own program; {NAME} is a parameter's value, {dir} an "
               "empty folder");
  options.text("build", command.build, "command that runs before --run, once for a configuration");
  options.flag("shell", command.shell, "run both by sh -c; values are quoted");
  options.flag("persistent", command.persistent,
               "--run starts once, and answers a line of JSON for each configuration");
  options.text("time", command.time,
               "what the command prints its time as: NAME, NAME:UNIT or /REGEX/:UNIT (s without a unit); default: wall "
               "time");
  options.text("check", command.check,
               "what it must print as the default configuration does: NAME, NAME:TOLERANCE, or * for all but times");
  options.text("device", device, "name of what the command runs on");
  options.list("from", from,
               "what other devices measured: datasets, caches of Kernel Tuner, T4 results, folders of runs");
}

void OwnFlags::refuse_for_others() const {
  if (!from.empty() || !device.empty() || command.persistent || command.shell || !command.build.empty() ||
      !command.time.empty() || !command.check.empty())
    throw base::UserError("--run", "missing: the command that measures a configuration of the space");
}

study::OwnRequest OwnFlags::request(const std::string& space, const std::string& platform,
                                    const std::string& start) const {
  if (!start.empty()) throw base::UserError("--start", "the space's file has the default, which is measured first");
  if (platform != "native")
    throw base::UserError("--platform", "the command is the platform; --device names what it runs on");
  study::OwnRequest request;
  request.space = space;
  request.command = command;
  request.device = device;
  request.from.assign(from.begin(), from.end());
  return request;
}

}  // namespace graft::cli
