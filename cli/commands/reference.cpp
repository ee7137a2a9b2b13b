#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/reference_pages.h"
#include "cli/settings_texts.h"

namespace graft::cli {
namespace {

struct Flags {
  std::string out, stubs;
};

int reference(const Flags& flags, Session& session) {
  const std::filesystem::path out = flags.out;
  if (!std::filesystem::is_directory(out))
    throw base::UserError("--out", fmt::format("{} is not a folder; make it first", out.string()));
  base::Document written = base::Document::list();
  for (const ReferencePage& page : reference_pages()) {
    const std::filesystem::path file = out / page.file;
    base::replace_file(file, page.text);
    session.output.line(file.string());
    written.push(file.string());
  }
  if (!flags.stubs.empty()) {
    const std::filesystem::path file = std::filesystem::path(flags.stubs) / "_calls.pyi";
    base::replace_file(file, python_stubs());
    session.output.line(file.string());
    written.push(file.string());
  }
  session.output.json().set("files", std::move(written));
  return done;
}

}  // namespace

Command reference_command() {
  return {.name = "reference",
          .help =
              "write the reference pages of commands, steps, statuses, formats, operators, methods, explorers, "
              "encodings, settings",
          .examples = {"graft reference --out docs/reference --stubs python/graft"},
          .declare = [](Options& options) -> Action {
            const auto flags = std::make_shared<Flags>();
            options.text("out", flags->out, "folder that the Markdown files are written to", Options::required);
            options.text("stubs", flags->stubs,
                         "folder of the Python package, for the types of functions with settings");
            return [flags](Session& session) { return reference(*flags, session); };
          }};
}

}  // namespace graft::cli
