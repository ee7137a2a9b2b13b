// A fuzz target as a plain test: runs it once over every file of the folders named.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/target.h"

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      std::printf("%s\n", entry.path().filename().c_str());
      std::fflush(stdout);  // the last name is the culprit
      graft::fuzz::examine(text);
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;  // a folder without files tests nothing
}
