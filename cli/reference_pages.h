// The pages of docs/reference/ that are made of the program's own lists (`graft reference`), so that they cannot differ
// from what the program does: a test holds the committed files to these texts.
#pragma once

#include <string>
#include <vector>

namespace graft::cli {

struct ReferencePage {
  std::string file;  // "cli.md"
  std::string text;  // Markdown; ends in a newline
};
// The same on every machine.
std::vector<ReferencePage> reference_pages();

}  // namespace graft::cli
