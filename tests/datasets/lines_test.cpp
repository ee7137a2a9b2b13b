#include "datasets/formats/lines.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "tests/datasets/support.h"
#include "tests/support/gzip.h"

namespace graft::datasets::formats {
namespace {

using base::UserError;

std::vector<std::pair<std::int64_t, std::string>> lines_of(const std::filesystem::path& path) {
  std::vector<std::pair<std::int64_t, std::string>> result;
  for (LineReader reader(path); reader.next();) result.emplace_back(reader.number(), reader.text());
  return result;
}

// Lines of all lengths, over the edges of what is read at once, plain and packed.
TEST(LineReader, GivesEveryLineThatIsNotBlankWithItsNumber) {
  const Folder folder;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    base::Stream stream(seed, "lines");
    std::string content;
    std::vector<std::pair<std::int64_t, std::string>> expected;
    for (std::int64_t number = 1; number <= 40; ++number) {
      std::string line(std::size_t(stream.below(4) == 0 ? 0 : stream.below(60'000)), 'x');
      if (!line.empty()) expected.emplace_back(number, line);
      if (stream.below(3) == 0) line += " \r";
      content += line;
      if (number < 40 || stream.below(2) == 0) content += '\n';
    }
    write_plainly(folder / "plain", content);
    write_gzip(folder / "packed.gz", content);
    EXPECT_EQ(lines_of(folder / "plain"), expected) << "seed " << seed;
    EXPECT_EQ(lines_of(folder / "packed.gz"), expected) << "seed " << seed;
  }
}

TEST(LineReader, RefusesLinesThatAreTooLong) {
  const Folder folder;
  write_plainly(folder / "log", "short\n" + std::string(1001, 'x') + "\nshort\n");
  LineReader reader(folder / "log", 1000);
  EXPECT_TRUE(reader.next());
  EXPECT_EQ(message_of<UserError>([&] { reader.next(); }),
            (folder / "log").string() + ":2: the line is longer than 1000 bytes");
  // A bomb is one long line: it is never unpacked as a whole.
  write_gzip(folder / "bomb.gz", std::string(8 << 20, 'x'));
  LineReader bomb(folder / "bomb.gz");
  EXPECT_TRUE(contains(message_of<UserError>([&] { bomb.next(); }), ":1: the line is longer than 1048576 bytes"));
}

TEST(LineReader, SaysBehindWhichLineAPackedFileEnds) {
  const Folder folder;
  std::string content;
  base::Stream stream(1, "noise");
  for (int i = 0; i < 20'000; ++i) content += std::to_string(stream.bits()) + "\n";
  write_gzip(folder / "whole.gz", content);
  std::string packed;
  {
    std::ifstream in(folder / "whole.gz", std::ios::binary);
    packed.assign(std::istreambuf_iterator<char>(in), {});
  }
  write_plainly(folder / "torn.gz", packed.substr(0, packed.size() - 8));
  std::int64_t seen = 0;
  const std::string message = message_of<UserError>([&] {
    for (LineReader reader(folder / "torn.gz"); reader.next();) seen = reader.number();
  });
  EXPECT_EQ(message, (folder / "torn.gz").string() + ":" + std::to_string(seen) +
                         ": the file is not valid gzip: it ends in the middle after this line");
  EXPECT_GT(seen, 0);
}

TEST(LineReader, JsonErrorsNameTheLine) {
  const Folder folder;
  write_plainly(folder / "log", "\n\n{\"a\": [1, nul]}\n");
  LineReader reader(folder / "log");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(message_of<UserError>([&] { reader.json().skip(); }), (folder / "log").string() + ":3:11: expected null");
}

}  // namespace
}  // namespace graft::datasets::formats
