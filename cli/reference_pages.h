// The pages of docs/reference/ that are generated from the program's own lists (`graft reference`), so that they cannot
// differ from the program: a test compares the committed files with these texts.
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
