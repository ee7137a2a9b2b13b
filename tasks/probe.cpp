#include "tasks/probe.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/document.h"
#include "base/error.h"
#include "base/text.h"
#include "codegen/machine/cpuinfo.h"
#include "tasks/board.h"

namespace graft::tasks {
namespace {

constexpr std::chrono::seconds patience{60};

// "key=value" lines, and /proc/cpuinfo behind the last of them.
constexpr const char* script = R"sh(echo "machine=$(uname -m)"
echo "system=$(uname -sr)"
echo "cores=$(nproc 2>/dev/null || grep -c ^processor /proc/cpuinfo)"
echo "kilohertz=$(cat /sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq 2>/dev/null)"
echo "governor=$(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null)"
for i in /sys/devices/system/cpu/cpu0/cache/index*;
do
  [ -r "$i/size" ] && echo "cache=$(cat "$i/level") $(cat "$i/type") $(cat "$i/size") $(cat "$i/coherency_line_size")"
done
echo "cpuinfo="
cat /proc/cpuinfo
)sh";

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0) return std::nullopt;
  const char unit = end < text.data() + text.size() ? *end : ' ';
  return value * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
}

struct Told {
  std::string machine, system, governor, cpuinfo;
  std::optional<std::int64_t> cores, kilohertz;
  std::vector<std::string> caches;  // "1 Data 32K 64"
};

Told told_by(const std::string& text) {
  Told told;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = line.find('=');
    const std::string_view key = line.substr(0, equals), value = equals == line.npos ? "" : line.substr(equals + 1);
    if (key == "cpuinfo") {
      told.cpuinfo = rest;
      break;
    }
    if (key == "machine") told.machine = value;
    if (key == "system") told.system = value;
    if (key == "governor") told.governor = value;
    if (key == "cores") told.cores = number(value);
    if (key == "kilohertz") told.kilohertz = number(value);
    if (key == "cache") told.caches.emplace_back(value);
  }
  return told;
}

void read_caches(const std::vector<std::string>& caches, codegen::Target& target) {
  for (const std::string& cache : caches) {
    const std::vector<std::string_view> words = base::split(cache, ' ');
    if (words.size() != 4 || words[1] == "Instruction") continue;
    if (words[0] == "1") target.l1_bytes = number(words[2]), target.line_bytes = number(words[3]);
    if (words[0] == "2") target.l2_bytes = number(words[2]);
    if (words[0] == "3") target.l3_bytes = number(words[2]);
  }
}

// Of RVV and SVE, in bits; 0: has none.
std::int64_t vector_bits(Board& board, const codegen::Target& target) {
  const auto program = codegen::vector_length_program(target);
  if (!program) return target.vector_bits;
  const Delivery delivery = board.run(*program, 0, patience, [](const Answer&) {});
  if (!delivery.ended) throw base::Failure(fmt::format("{}: {}", board.name(), delivery.reason));
  constexpr int illegal_instruction = 128 + 4, longest = 256;
  if (delivery.exit_code == illegal_instruction) return 0;
  return 8 * (delivery.exit_code == 0 ? longest : delivery.exit_code);
}

// What a comment may hold of what a board says.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text.substr(0, 200);
}

std::string scalar(const std::string& text) {
  return base::Document(text).to_json();  // JSON scalars are YAML scalars
}

std::string list(const std::vector<std::string>& words) {
  base::Document all = base::Document::list();
  for (const std::string& word : words) all.push(word);
  return all.to_json();
}

}  // namespace

std::string probed(const Remote& remote) {
  Board board(remote, 0);
  Told told = told_by(board.shell(script, patience));
  if (remote.is_emulated()) {
    const std::string program = std::filesystem::path(remote.runner[0]).filename();
    told = {.machine = program.substr(program.find('-') + 1),
            .system = told.system,
            .governor = "",
            .cpuinfo = "",
            .cores = 1,
            .kilohertz = std::nullopt,
            .caches = {}};
    if (const std::size_t end = told.machine.find("-static"); end != std::string::npos) told.machine.resize(end);
  }
  codegen::Target target = codegen::target_of_cpuinfo(told.machine, told.cpuinfo);
  target.cores = told.cores.value_or(1);
  read_caches(told.caches, target);
  // Code for long vectors is for machines whose vectors are that long; where there are none it is scalar.
  const bool is_riscv = told.machine == "riscv64";
  const std::int64_t bits = vector_bits(board, target);
  if (bits > 0 && is_riscv) {
    if (target.vector_bits == 0) target.features += ",+v";
    target.vector_bits = bits;
    if (bits > 128) target.features += fmt::format(",+zvl{}b", bits);
  } else if (is_riscv) {
    target.vector_bits = 0;
  } else if (bits > 0 && told.machine == "aarch64") {
    target.features += target.features.empty() ? "+sve" : ",+sve";
    target.vector_bits = bits;
  }

  const std::string& destination = remote.ssh[0];
  const std::string host = destination.substr(destination.find('@') + 1);
  std::string yaml = fmt::format("# Probed: {}", one_line(told.system));
  if (told.kilohertz) yaml += fmt::format(", {:.2f} GHz at most", double(*told.kilohertz) * 1e-6);
  if (!told.governor.empty()) yaml += fmt::format(", {} governor", one_line(told.governor));
  yaml += fmt::format("\nname: {}\ndescription: {}\ntarget:\n", scalar("ssh:" + host),
                      scalar(fmt::format("{} at {}{}", told.machine, destination,
                                         remote.runner.empty() ? "" : " under " + remote.runner[0])));
  const base::Document fields = codegen::to_document(target);
  for (const auto& [key, value] : fields.as_map()) yaml += fmt::format("  {}: {}\n", key, value.to_json());
  yaml += fmt::format("remote:\n  ssh: {}\n", scalar(destination));
  if (!remote.ssh_config.empty()) yaml += fmt::format("  ssh_config: {}\n", scalar(remote.ssh_config));
  if (!remote.runner.empty()) yaml += fmt::format("  runner: {}\n", list(remote.runner));
  if (remote.folder != "/tmp") yaml += fmt::format("  folder: {}\n", scalar(remote.folder));
  if (remote.core >= 0) yaml += fmt::format("  core: {}\n", remote.core);
  parse_platform(yaml, "the probed platform");  // what is written can be read
  return yaml;
}

}  // namespace graft::tasks
