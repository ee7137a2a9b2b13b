#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "base/random.h"
#include "tests/base/support.h"
#include "tests/support/gzip.h"

namespace graft::base {
namespace {

void write_plainly(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string random_bytes(std::uint64_t seed, std::int64_t count) {
  Stream stream(seed, "bytes");
  std::string bytes;
  for (std::int64_t i = 0; i < count; ++i) bytes += char(stream.below(256));
  return bytes;
}

std::size_t entries(const Folder& folder) {
  return std::size_t(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(ReadFile, gives_plain_and_packed_content_alike) {
  const Folder folder;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const std::int64_t sizes[] = {0, 1, 2, 3, 1000, 300'000};
    // A plain file may begin with one of gzip's two bytes.
    std::string content = random_bytes(seed, sizes[seed % 6]);
    if (!content.empty()) content[0] = seed % 2 ? '\x1f' : 'x';
    if (content.size() > 1) content[1] = 'y';
    write_plainly(folder / "plain", content);
    EXPECT_EQ(read_file(folder / "plain"), content) << "seed " << seed;
    write_gzip(folder / "packed", content);
    EXPECT_EQ(read_file(folder / "packed"), content) << "seed " << seed;
  }
}

TEST(ReadFile, reads_gzip_files_put_end_to_end) {
  const Folder folder;
  write_gzip(folder / "log.gz", "first\n");
  write_gzip(folder / "log.gz", "second\n", "ab");
  EXPECT_EQ(read_file(folder / "log.gz"), "first\nsecond\n");
}

TEST(ReadFile, reads_what_has_no_size) {
  EXPECT_NE(read_file("/proc/self/status").find("Pid:"), std::string::npos);
}

TEST(ReadFile, refuses_what_is_not_there_or_no_file) {
  const Folder folder;
  const std::string missing = (folder / "missing.json").string();
  EXPECT_EQ(refusal([&] { read_file(missing); }), missing + ": cannot be read: no such file or directory");
  EXPECT_EQ(refusal([&] { read_file(folder.path()); }), folder.path().string() + ": is a folder; expected a file");
  // What may have no end, or waits for someone.
  for (const char* device : {"/dev/zero", "/dev/random", "/dev/null", "/dev/tty"}) {
    if (::access(device, R_OK) != 0) continue;
    const std::string said = refusal([&] { read_file(device); });
    EXPECT_TRUE(said.ends_with("is a device; expected a file") || said.find("cannot be read") != std::string::npos)
        << said;
  }
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal([&] { read_file(pipe); }), pipe + ": is a pipe; expected a file");
  EXPECT_EQ(refusal([&] { InputFile file(pipe); }), pipe + ": is a pipe; expected a file");
}

TEST(ReadFile, holds_its_limit_to_the_byte) {
  const Folder folder;
  const std::string content = random_bytes(1, 1000);
  write_plainly(folder / "plain", content);
  write_gzip(folder / "packed", std::string(1000, 'a'));
  for (const char* name : {"plain", "packed"}) {
    const std::string path = (folder / name).string();
    EXPECT_EQ(read_file(path, 1000).size(), 1000u);
    EXPECT_EQ(refusal([&] { read_file(path, 999); }), path + ": is larger than 999 bytes");
  }
}

TEST(ReadFile, refuses_gzip_bombs) {
  const Folder folder;
  write_gzip(folder / "bomb", std::string(64 << 20, '\0'));
  ASSERT_LT(std::filesystem::file_size(folder / "bomb"), 100'000u);
  EXPECT_EQ(refusal([&] { read_file(folder / "bomb", 1 << 20); }),
            (folder / "bomb").string() + ": is larger than 1048576 bytes");
}

TEST(InputFile, gives_what_comes_before_a_fault) {
  const Folder folder;
  const std::string content = random_bytes(3, 50'000);
  write_gzip(folder / "whole", content);
  std::string packed;
  {
    std::ifstream in(folder / "whole", std::ios::binary);
    packed.assign(std::istreambuf_iterator<char>(in), {});
  }
  write_plainly(folder / "torn", packed.substr(0, packed.size() / 2));
  InputFile file(folder / "torn");
  std::string read(content.size(), '\0');
  const std::size_t got = file.read(read);
  EXPECT_GT(got, content.size() / 4);
  EXPECT_EQ(read.substr(0, got), content.substr(0, got));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(refusal([&] { file.read(read); }),
              (folder / "torn").string() + ": is not valid gzip: it ends in the middle");
  }
}

TEST(ReadFile, refuses_broken_gzip) {
  const Folder folder;
  write_gzip(folder / "whole", random_bytes(2, 50'000));
  std::string packed;
  {
    std::ifstream in(folder / "whole", std::ios::binary);
    packed.assign(std::istreambuf_iterator<char>(in), {});
  }
  const std::string torn = (folder / "torn").string();
  for (const std::size_t length : {packed.size() - 1, packed.size() / 2, std::size_t(20)}) {
    write_plainly(torn, packed.substr(0, length));
    EXPECT_EQ(refusal([&] { read_file(torn); }), torn + ": is not valid gzip: it ends in the middle") << length;
  }
  packed[packed.size() / 2] = char(packed[packed.size() / 2] ^ 0x55);
  write_plainly(torn, packed);
  EXPECT_TRUE(refusal([&] { read_file(torn); }).starts_with(torn + ": is not valid gzip: "));
}

TEST(ReplaceFile, replaces_the_whole_content_and_leaves_nothing_beside) {
  const Folder folder;
  replace_file(folder / "run.json", "a long first content");
  replace_file(folder / "run.json", "short");
  EXPECT_EQ(read_file(folder / "run.json"), "short");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(ReplaceFile, works_on_a_bare_name) {
  const Folder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  replace_file("bare.txt", "content");
  const std::string content = read_file("bare.txt");
  std::filesystem::current_path(before);
  EXPECT_EQ(content, "content");
}

TEST(ReplaceFile, says_what_it_cannot_write_and_cleans_up) {
  const Folder folder;
  const std::string inside = (folder / "missing" / "run.json").string();
  EXPECT_EQ(refusal<Failure>([&] { replace_file(inside, "x"); }), inside + ": cannot write: no such file or directory");
  std::filesystem::create_directory(folder / "taken");
  EXPECT_EQ(refusal<Failure>([&] { replace_file(folder / "taken", "x"); }),
            (folder / "taken").string() + ": cannot write: is a directory");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(CommitFile, publishes_what_another_library_wrote) {
  const Folder folder;
  const std::filesystem::path target = folder / "model.h5";
  const std::filesystem::path first = temporary_beside(target), second = temporary_beside(target);
  EXPECT_NE(first, second);
  EXPECT_EQ(first.parent_path(), target.parent_path());
  EXPECT_EQ(first.filename().string().front(), '.');  // hidden: no glob for *.h5 takes it
  write_plainly(first, "weights");
  commit_file(first, target);
  EXPECT_EQ(read_file(target), "weights");
  EXPECT_EQ(entries(folder), 1u);
  EXPECT_THROW(commit_file(second, target), Failure);  // never written
  EXPECT_EQ(read_file(target), "weights");
}

// A reader sees the old content or the new, whenever the writer is killed.
TEST(ReplaceFile, survives_being_killed) {
  const Folder folder;
  const std::string old_content(200'000, 'a'), new_content(200'000, 'b');
  replace_file(folder / "file", old_content);
  for (int round = 0; round < 8; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        replace_file(folder / "file", new_content);
        replace_file(folder / "file", old_content);
      }
    }
    ::usleep(3000 + 1700 * round);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string content = read_file(folder / "file");
    ASSERT_TRUE(content == old_content || content == new_content) << "round " << round;
  }
}

TEST(AppendFile, appends_to_what_is_there) {
  const Folder folder;
  {
    AppendFile file(folder / "trials.jsonl");
    EXPECT_EQ(read_file(folder / "trials.jsonl"), "");
    file.append("one\n");
    EXPECT_EQ(read_file(folder / "trials.jsonl"), "one\n");
  }
  AppendFile file(folder / "trials.jsonl");
  file.append("two\n");
  AppendFile moved = std::move(file);
  moved.append("three\n");
  std::optional<AppendFile> other(folder / "other.jsonl");
  *other = std::move(moved);
  other->append("four\n");
  EXPECT_EQ(read_file(folder / "trials.jsonl"), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(read_file(folder / "other.jsonl"), "");
}

TEST(AppendFile, drops_a_torn_line) {
  const Folder folder;
  write_plainly(folder / "trials.jsonl", "one\ntwo\n{\"torn");
  AppendFile file(folder / "trials.jsonl");
  file.truncate(8);
  file.append("three\n");
  EXPECT_EQ(read_file(folder / "trials.jsonl"), "one\ntwo\nthree\n");
}

TEST(AppendFile, says_what_it_cannot_open) {
  const Folder folder;
  const std::string path = (folder / "missing" / "trials.jsonl").string();
  EXPECT_EQ(refusal<Failure>([&] { AppendFile file(path); }),
            path + ": cannot open for appending: no such file or directory");
}

// Stands in for a full disk: the kernel takes a part of the record, then refuses.
TEST(AppendFile, takes_back_a_record_that_does_not_fit) {
  const Folder folder;
  AppendFile file(folder / "trials.jsonl");
  file.append(std::string(1000, 'a') + '\n');
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto previous = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1500, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = refusal<Failure>([&] { file.append(std::string(1000, 'b') + '\n'); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, previous);
  EXPECT_NE(message.find("trials.jsonl: cannot append: file too large"), std::string::npos) << message;
  file.append("c\n");
  EXPECT_EQ(read_file(folder / "trials.jsonl"), std::string(1000, 'a') + "\nc\n");
}

// What `append` returned from is in the file after SIGKILL, and at most the last line is torn.
TEST(AppendFile, survives_being_killed) {
  const Folder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    AppendFile file(folder / "trials.jsonl");
    for (int i = 0;; ++i) {
      file.append(std::to_string(i) + std::string(5000, '.') + '\n');
      if (::write(ends[1], &i, sizeof i) != sizeof i) ::_exit(1);
    }
  }
  ::close(ends[1]);
  int last = -1;
  while (last < 20 && ::read(ends[0], &last, sizeof last) == sizeof last) {
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (::read(ends[0], &last, sizeof last) == sizeof last) {
  }
  ::close(ends[0]);
  const std::string content = read_file(folder / "trials.jsonl");
  EXPECT_GE(last, 20);
  EXPECT_GT(std::count(content.begin(), content.end(), '\n'), last);
  EXPECT_NE(content.find("\n" + std::to_string(last) + "."), std::string::npos);
}

TEST(FileLock, is_held_until_the_end_of_its_scope) {
  const Folder folder;
  const std::string path = (folder / "lock").string();
  {
    FileLock lock(path);
    EXPECT_EQ(refusal([&] { FileLock second(path); }), path + ": in use by process " + std::to_string(::getpid()));
    FileLock moved = std::move(lock);
    EXPECT_THROW(FileLock{path}, UserError);
  }
  FileLock again(path);
}

TEST(FileLock, dies_with_its_process) {
  const Folder folder;
  const std::string path = (folder / "lock").string();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock lock(path);
    if (::write(ends[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char ready;
  ASSERT_EQ(::read(ends[0], &ready, 1), 1);
  EXPECT_EQ(refusal([&] { FileLock second(path); }), path + ": in use by process " + std::to_string(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  FileLock second(path);
}

TEST(FileLock, says_what_it_cannot_open) {
  const Folder folder;
  EXPECT_THROW(FileLock(folder / "missing" / "lock"), Failure);
}

}  // namespace
}  // namespace graft::base
