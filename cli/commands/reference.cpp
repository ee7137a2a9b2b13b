#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/reference_pages.h"

namespace graft::cli {
namespace {

int reference(const std::filesystem::path& out, Session& session) {
  if (!std::filesystem::is_directory(out))
    throw base::UserError("--out", fmt::format("{} is not a folder; make it first", out.string()));
  base::Document written = base::Document::list();
  for (const ReferencePage& page : reference_pages()) {
    const std::filesystem::path file = out / page.file;
    base::replace_file(file, page.text);
    session.output.line(file.string());
    written.push(file.string());
  }
  session.output.json().set("files", std::move(written));
  return done;
}

}  // namespace

Command reference_command() {
  return {
      .name = "reference",
      .help =
          "write the reference pages of commands, steps, statuses, formats, operators, methods, explorers, encodings",
      .examples = {"graft reference --out docs/reference"},
      .declare = [](Options& options) -> Action {
        const auto out = std::make_shared<std::string>();
        options.text("out", *out, "folder that the Markdown files are written to", Options::required);
        return [out](Session& session) { return reference(*out, session); };
      }};
}

}  // namespace graft::cli
