#include "base/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include "base/files.h"
#include "tests/base/support.h"

namespace graft::base {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// A machine as /proc and /sys describe it.
class Machine {
 public:
  Machine& file(const std::string& path, const std::string& content) {
    const std::filesystem::path whole = folder_ / path;
    std::filesystem::create_directories(whole.parent_path());
    replace_file(whole, content);
    return *this;
  }
  std::int64_t available() const { return available_memory(folder_ / "."); }

 private:
  Folder folder_;
};

TEST(Memory, is_what_the_kernel_calls_available) {
  Machine machine;
  EXPECT_EQ(machine.available(), most);
  machine.file("proc/meminfo", "MemTotal:       100 kB\nMemFree:  10 kB\nMemAvailable:    64 kB\n");
  EXPECT_EQ(machine.available(), 64 * 1024);
  machine.file("proc/meminfo", "MemTotal:       100 kB\n");
  EXPECT_EQ(machine.available(), most);
}

TEST(Memory, is_no_more_than_control_groups_leave) {
  Machine second;
  second.file("proc/meminfo", "MemAvailable:  1000000 kB\n").file("proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(second.available(), 1024000000);
  second.file("sys/fs/cgroup/a/b/memory.max", "max\n").file("sys/fs/cgroup/a/b/memory.current", "500\n");
  EXPECT_EQ(second.available(), 1024000000);
  second.file("sys/fs/cgroup/a/memory.max", "9000\n").file("sys/fs/cgroup/a/memory.current", "4000\n");
  EXPECT_EQ(second.available(), 5000);
  second.file("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 1500\n");
  EXPECT_EQ(second.available(), 6500);
  second.file("sys/fs/cgroup/memory.max", "900\n").file("sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(second.available(), 0);

  Machine first;
  first.file("proc/meminfo", "MemAvailable:  1000000 kB\n")
      .file("proc/self/cgroup", "9:cpu:/x\n4:memory:/x/y\n0::/\n")
      .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n")
      .file("sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n");
  EXPECT_EQ(first.available(), 4000);
  // Version 1 says "no limit" by a very large number.
  first.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(first.available(), 1024000000);
}

TEST(Memory, is_no_more_than_the_limit_on_address_space_leaves) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer reserves more addresses than any limit leaves";
#endif
  EXPECT_GT(available_memory(), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{std::uint64_t(1) << 30, std::uint64_t(1) << 30};
    ::setrlimit(RLIMIT_AS, &small);
    ::_exit(available_memory() <= std::int64_t(1) << 30 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Memory, sums_and_products_end_at_the_largest_number) {
  EXPECT_EQ(capped_sum(3, 4), 7);
  EXPECT_EQ(capped_sum(most, 1), most);
  EXPECT_EQ(capped_product(3, 4), 12);
  EXPECT_EQ(capped_product(std::int64_t(1) << 40, std::int64_t(1) << 40), most);
  EXPECT_EQ(capped_product(most, 0), 0);
}

TEST(Memory, bytes_as_people_say_them) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1 kB");
  EXPECT_EQ(bytes_text(26'900'000'000), "26.9 GB");
  EXPECT_EQ(bytes_text(999'999'999), "1 GB");
  EXPECT_EQ(bytes_text(most), "9.22 EB");
}

}  // namespace
}  // namespace graft::base
