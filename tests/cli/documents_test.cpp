// What holds for documents as files: links lead somewhere, and the READMEs of rooms stay short.
#include "tests/cli/documents.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace graft::cli {
namespace {

const std::filesystem::path root = GRAFT_SOURCE_DIR;

std::string text_of(const std::filesystem::path& document) {
  return base::read_file(root / document, 1 << 22);
}

// Targets of "[text](target)" outside of fences and backticks.
std::vector<std::string> links_of(const std::string& text) {
  std::vector<std::string> found;
  bool is_fenced = false;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.starts_with("```")) is_fenced = !is_fenced;
    if (is_fenced) continue;
    bool is_code = false;
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '`') is_code = !is_code;
      if (is_code || !line.substr(at).starts_with("](")) continue;
      const std::size_t end = line.find(')', at);
      if (end == std::string_view::npos) break;
      found.emplace_back(line.substr(at + 2, end - at - 2));
    }
  }
  return found;
}

TEST(Documents, LinksAreThoseOfText) {
  EXPECT_EQ(links_of("a [b](c.md) and [`d`](e/f.h#g)\n```\n[x](y)\n```\n`[x](y)` ![z](z.svg)\n"),
            (std::vector<std::string>{"c.md", "e/f.h#g", "z.svg"}));
}

TEST(Documents, RelativeLinksLeadToFilesOfTheProject) {
  std::size_t checked = 0;
  for (const std::filesystem::path& document : documents()) {
    for (const std::string& link : links_of(text_of(document))) {
      const std::string target = link.substr(0, link.find('#'));
      if (target.empty() || target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
      const std::filesystem::path file = (document.parent_path() / target).lexically_normal();
      EXPECT_FALSE(file.string().starts_with("..")) << document << " links to " << link << ", outside of the project";
      EXPECT_TRUE(std::filesystem::exists(root / file)) << document << " links to " << link << ", which does not exist";
      ++checked;
    }
  }
  EXPECT_GE(checked, 50u);
}

// docs/ has the long texts; experiments/README.md is a table that graft writes.
TEST(Documents, ReadmesOfRoomsAreShort) {
  std::size_t rooms = 0;
  for (const std::filesystem::path& document : documents()) {
    if (document.filename() != "README.md" || std::distance(document.begin(), document.end()) != 2) continue;
    const std::string room = document.begin()->string();
    if (room == "docs" || room == "experiments") continue;
    EXPECT_LE(base::split(text_of(document), '\n').size(), 41u) << document;  // with the empty one after the last
    ++rooms;
  }
  EXPECT_GE(rooms, 10u);
}

}  // namespace
}  // namespace graft::cli
