#include "cli/own_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>

#include "base/error.h"
#include "base/shortened.h"
#include "cli/setting_flags.h"
#include "study/flows/settings.h"

namespace graft::cli {
namespace {

bool is_any_with_command(const std::vector<std::string>& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [](const std::string& device) { return device.find('=') != std::string::npos; });
}

}  // namespace

void OwnFlags::declare(Options& options) {
  cli::declare(options, study::settings_of(request.command));
  options.texts(
      "device", [this](const std::vector<std::string>& texts) { devices = texts; },
      "name of what the command runs on; or NAME=COMMAND, several times, in place of --run: each device runs "
      "its own command, all at once. Those of one name are equal and share a search; other names have "
      "searches and answers of their own, in --out's folder of that name");
  declare_some(options, study::settings_of(request), {"from"});
}

bool OwnFlags::is_given() const {
  return !request.command.run.empty() || is_any_with_command(devices);
}

void OwnFlags::refuse_for_others() const {
  study::OwnRequest given = request;
  const study::Settings settings = study::settings_of(given);
  const bool is_usual = std::all_of(settings.begin(), settings.end(), std::mem_fn(&study::Setting::is_usual));
  if (!is_usual || !devices.empty())
    throw base::UserError("--run", "missing: the command that measures a configuration of the space");
}

std::vector<study::OwnRequest> OwnFlags::requests(const std::string& space, const std::string& platform,
                                                  const std::string& start, const study::TuneRequest& search) const {
  if (!start.empty()) throw base::UserError("--start", "the space's file has the default, which is measured first");
  if (platform != "native")
    throw base::UserError("--platform", "the command is the platform; --device names what it runs on");
  study::OwnRequest asked = request;
  asked.space = space;
  asked.search = search;
  if (!asked.command.run.empty()) {
    if (devices.size() > 1 || is_any_with_command(devices))
      throw base::UserError("--device",
                            "with --run it is the name of one device; several say their commands, "
                            "NAME=COMMAND, in place of --run");
    if (!devices.empty()) asked.device = devices.front();
    return {asked};
  }
  std::vector<study::OwnRequest> requests;
  for (const std::string& device : devices) {
    const std::size_t at = device.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == device.size())
      throw base::UserError("--device", fmt::format("expected NAME=COMMAND, got '{}'", base::shortened(device)));
    asked.device = device.substr(0, at);
    auto known = std::find_if(requests.begin(), requests.end(),
                              [&](const study::OwnRequest& each) { return each.device == asked.device; });
    if (known == requests.end()) known = requests.insert(requests.end(), asked);
    known->runs.push_back(device.substr(at + 1));
    known->command.run = known->runs.front();
  }
  return requests;
}

}  // namespace graft::cli
