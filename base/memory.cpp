#include "base/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace graft::base {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// Files of the kernel have no size: read to their end. nullopt if there is none.
std::optional<std::string> content_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The number that a text begins with; nothing for "max" and the like.
std::optional<std::int64_t> number_in(std::string_view text) {
  text = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return most;
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> number_from(const std::filesystem::path& file) {
  const auto text = content_of(file);
  return text ? number_in(*text) : std::nullopt;
}

// "MemAvailable:   123 kB" as bytes.
std::int64_t kernel_says(const std::filesystem::path& root) {
  std::istringstream lines(content_of(root / "proc/meminfo").value_or(""));
  constexpr std::string_view key = "MemAvailable:";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    if (const auto kilobytes = number_in(std::string_view(line).substr(key.size())))
      return capped_product(*kilobytes, 1024);
  }
  return most;
}

// What a group and those around it leave of their limits. `statistic`: what of the used memory is files that the kernel
// gives back when it needs room.
std::int64_t groups_leave(const std::filesystem::path& mount, std::string_view path, const char* limit,
                          const char* used, std::string_view statistic) {
  std::int64_t left = most;
  std::filesystem::path group = mount / std::filesystem::path(path).relative_path();
  for (;;) {
    const auto allowed = number_from(group / limit), taken = number_from(group / used);
    if (allowed && taken) {
      std::int64_t given_back = 0;
      std::istringstream lines(content_of(group / "memory.stat").value_or(""));
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(statistic))
          given_back = number_in(std::string_view(line).substr(statistic.size())).value_or(0);
      }
      left = std::min(left, std::max<std::int64_t>(0, *allowed - std::max<std::int64_t>(0, *taken - given_back)));
    }
    if (group == mount || !group.has_relative_path() || group.native().size() <= mount.native().size()) return left;
    group = group.parent_path();
  }
}

// Lines "4:memory:/path" (version 1) and "0::/path" (version 2). Inside of a container the path may be one of outside;
// the mount's root is the container's own group then.
std::int64_t control_groups_leave(const std::filesystem::path& root) {
  std::int64_t left = most;
  std::istringstream lines(content_of(root / "proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) {
      left =
          std::min(left, groups_leave(root / "sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file "));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      left = std::min(left, groups_leave(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                                         "memory.usage_in_bytes", "total_inactive_file "));
    }
  }
  return left;
}

std::int64_t address_space_leaves() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most;
  const std::int64_t pages = number_from("/proc/self/statm").value_or(0);
  return std::max<std::int64_t>(0, std::int64_t(limit.rlim_cur) - pages * ::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::int64_t available_memory() {
  return std::min(available_memory("/"), address_space_leaves());
}

std::int64_t available_memory(const std::filesystem::path& root) {
  return std::min(kernel_says(root), control_groups_leave(root));
}

std::int64_t capped_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? most : sum;
}

std::int64_t capped_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? most : product;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = double(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit) value /= 1000;
  return fmt::format("{:.3g} {}", value, units[unit]);
}

}  // namespace graft::base
