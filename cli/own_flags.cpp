#include "cli/own_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/shortened.h"

namespace graft::cli {
namespace {

bool is_any_with_command(const std::vector<std::string>& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [](const std::string& device) { return device.find('=') != std::string::npos; });
}

}  // namespace

void OwnFlags::declare(Options& options) {
  options.text("run", command.run,
               "command that measures a configuration of one's own program; {NAME} is a parameter's value, {dir} an "
               "empty folder");
  options.text("build", command.build, "command that runs before --run, once for a configuration");
  options.flag("shell", command.shell, "run both by sh -c; values are quoted");
  options.flag("persistent", command.persistent,
               "--run starts once, and answers a line of JSON for each configuration, with the number of its request");
  options.text("time", command.time,
               "what the command prints its time as: NAME, NAME:UNIT or /REGEX/:UNIT; a unit that is printed counts "
               "before UNIT (without any: s); default: wall time");
  options.text("maximize", command.maximize,
               "in place of --time: a measure of which more is better, NAME or NAME:UNIT (GFLOPS, bandwidth:GB/s)");
  options.text("minimize", command.minimize, "in place of --time: another measure of which less is better (energy:J)");
  options.texts("also", command.also,
                "another measure that is kept, NAME or NAME:UNIT, several times; with a bound, energy:J<=5 or "
                "accuracy>=0.9, which the best configuration keeps");
  options.text("check", command.check,
               "what it must print as the default configuration does: NAME (the rest of its line), "
               "NAME:RELATIVE:ABSOLUTE with tolerances, or * for all but times");
  options.texts("device", devices,
                "name of what the command runs on; or NAME=COMMAND, several times, in place of --run: each device runs "
                "its own command, all at once. Those of one name are equal and share a search; other names have "
                "searches and answers of their own, in --out's folder of that name");
  options.list("from", from,
               "what other devices measured: datasets, caches of Kernel Tuner, T4 results, folders of runs");
}

bool OwnFlags::is_given() const {
  return !command.run.empty() || is_any_with_command(devices);
}

void OwnFlags::refuse_for_others() const {
  if (!from.empty() || !devices.empty() || command.persistent || command.shell || !command.build.empty() ||
      !command.time.empty() || !command.maximize.empty() || !command.minimize.empty() || !command.also.empty() ||
      !command.check.empty())
    throw base::UserError("--run", "missing: the command that measures a configuration of the space");
}

std::vector<study::OwnRequest> OwnFlags::requests(const std::string& space, const std::string& platform,
                                                  const std::string& start, const study::TuneRequest& search) const {
  if (!start.empty()) throw base::UserError("--start", "the space's file has the default, which is measured first");
  if (platform != "native")
    throw base::UserError("--platform", "the command is the platform; --device names what it runs on");
  study::OwnRequest request;
  request.space = space;
  request.command = command;
  request.from.assign(from.begin(), from.end());
  request.search = search;
  if (!command.run.empty()) {
    if (devices.size() > 1 || is_any_with_command(devices))
      throw base::UserError("--device",
                            "with --run it is the name of one device; several say their commands, "
                            "NAME=COMMAND, in place of --run");
    if (!devices.empty()) request.device = devices.front();
    return {request};
  }
  std::vector<study::OwnRequest> requests;
  for (const std::string& device : devices) {
    const std::size_t at = device.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == device.size())
      throw base::UserError("--device", fmt::format("expected NAME=COMMAND, got '{}'", base::shortened(device)));
    request.device = device.substr(0, at);
    auto known = std::find_if(requests.begin(), requests.end(),
                              [&](const study::OwnRequest& each) { return each.device == request.device; });
    if (known == requests.end()) known = requests.insert(requests.end(), request);
    known->runs.push_back(device.substr(at + 1));
    known->command.run = known->runs.front();
  }
  return requests;
}

}  // namespace graft::cli
