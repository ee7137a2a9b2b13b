#include "tasks/platform.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "tasks/opencl.h"

namespace graft::cli {
namespace {

// Those that are known, and the devices of OpenCL that this host has.
std::vector<tasks::Platform> platforms() {
  std::vector<tasks::Platform> all = tasks::known_platforms();
  std::vector<std::string> devices;
  try {
    devices = tasks::opencl_devices();
  } catch (const base::UserError&) {
    // `graft doctor` says why there is none.
  }
  for (std::size_t device = 0; device < devices.size(); ++device)
    all.push_back(tasks::platform_named(fmt::format("opencl:{}", device)));
  return all;
}

int list(Session& session) {
  Table table({"id", "source", "triple", "vector bits", "description"});
  base::Document rows = base::Document::list();
  for (const tasks::Platform& platform : platforms()) {
    table.row({platform.name, platform.device->source(), platform.target.triple,
               std::to_string(platform.target.vector_bits), platform.description});
    base::Document row = base::Document::map();
    row.set("id", platform.name)
        .set("long_name", platform.long_name)
        .set("source", platform.device->source())
        .set("target", codegen::to_document(platform.target))
        .set("description", platform.description);
    rows.push(std::move(row));
  }
  session.output.table(table);
  session.output.json().set("platforms", std::move(rows));
  return done;
}

int show(const std::string& name, Session& session) {
  const tasks::Platform platform = tasks::platform_named(name);
  session.output.text(platform.yaml.ends_with('\n') ? platform.yaml : platform.yaml + "\n");
  session.output.json()
      .set("id", platform.name)
      .set("long_name", platform.long_name)
      .set("source", platform.device->source())
      .set("description", platform.description)
      .set("target", codegen::to_document(platform.target))
      .set("yaml", platform.yaml);
  return done;
}

}  // namespace

Command platform_list_command() {
  return {.name = "platform list", .help = "the platforms that are known", .declare = [](Options&) -> Action {
            return list;
          }};
}

Command platform_show_command() {
  return {.name = "platform show",
          .help = "the YAML of a platform",
          .examples = {"graft platform show model:sifive-p450 > board.yaml"},
          .declare = [](Options& options) -> Action {
            const auto name = std::make_shared<std::string>();
            options.positional("PLATFORM", *name, "id or YAML file");
            return [name](Session& session) { return show(*name, session); };
          }};
}

}  // namespace graft::cli
