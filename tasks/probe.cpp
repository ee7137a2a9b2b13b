#include "tasks/probe.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/one_line.h"
#include "base/text.h"
#include "codegen/machine/cpuinfo.h"
#include "tasks/board.h"

namespace graft::tasks {
namespace {

constexpr std::chrono::seconds patience{60};

// "key=value" lines, those of one core among them, and /proc/cpuinfo after the last of them.
constexpr const char* script = R"sh(echo "machine=$(uname -m)"
echo "system=$(uname -sr)"
echo "cores=$(nproc 2>/dev/null || grep -c ^processor /proc/cpuinfo)"
core=/sys/devices/system/cpu/cpu{}
echo "kilohertz=$(cat $core/cpufreq/cpuinfo_max_freq 2>/dev/null)"
echo "governor=$(cat $core/cpufreq/scaling_governor 2>/dev/null)"
for i in $core/cache/index*;
do
  [ -r "$i/size" ] && echo "cache=$(cat "$i/level") $(cat "$i/type") $(cat "$i/size") $(cat "$i/coherency_line_size")"
done
echo "cpuinfo="
cat /proc/cpuinfo
)sh";

std::string architecture(const codegen::Target& target) {
  return target.triple.substr(0, target.triple.find('-'));
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0) return std::nullopt;
  const char unit = end < text.data() + text.size() ? *end : ' ';
  return value * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
}

struct MachineFacts {
  std::string machine, system, governor, cpuinfo;
  std::optional<std::int64_t> cores, kilohertz;
  std::vector<std::string> caches;  // "1 Data 32K 64"
};

MachineFacts facts_in(const std::string& text) {
  MachineFacts facts;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = line.find('=');
    const std::string_view key = line.substr(0, equals), value = equals == line.npos ? "" : line.substr(equals + 1);
    if (key == "cpuinfo") {
      facts.cpuinfo = rest;
      break;
    }
    if (key == "machine") facts.machine = value;
    if (key == "system") facts.system = value;
    if (key == "governor") facts.governor = value;
    if (key == "cores") facts.cores = number(value);
    if (key == "kilohertz") facts.kilohertz = number(value);
    if (key == "cache") facts.caches.emplace_back(value);
  }
  return facts;
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

constexpr int illegal_instruction = 128 + SIGILL;

// The result of the program of codegen/machine/cpuinfo.h: bits of its longest vectors, 0 if there are none.
std::int64_t vector_bits(Board& board, const codegen::Target& target) {
  const auto program = codegen::probe_program(target);
  if (!program) throw base::Failure(program.reason().text);
  const Delivery delivery = board.run(*program, 1, patience, [](const Answer&) {});
  if (!delivery.ended || !delivery.started) throw base::Failure(fmt::format("{}: {}", board.name(), delivery.reason));
  constexpr int longest = 256;
  if (delivery.exit_code == illegal_instruction && delivery.began == 0) return 0;
  const std::int64_t bits = 8 * (delivery.exit_code == 0 ? longest : delivery.exit_code);
  if (delivery.began < 0 || !std::has_single_bit(std::uint64_t(bits)))
    throw base::Failure(fmt::format("{}: the base instructions of {} do not run there: {}", board.name(),
                                    architecture(target), delivery.reason));
  return bits;
}

// Whether an instruction of each of these extensions of the target runs there.
bool runs(Board& board, const codegen::Target& target, const std::vector<std::string>& extensions) {
  const auto program = codegen::extension_program(target, extensions);
  if (!program) throw base::Failure(program.reason().text);
  const Delivery delivery = board.run(*program, 1, patience, [](const Answer&) {});
  if (!delivery.ended || !delivery.started) throw base::Failure(fmt::format("{}: {}", board.name(), delivery.reason));
  return delivery.exit_code != illegal_instruction || delivery.began != 0;
}

// Extensions of the target that do not run there.
std::vector<std::string> not_run(Board& board, const codegen::Target& target) {
  std::vector<std::string> extensions = codegen::extensions_to_try(target);
  if (extensions.empty() || runs(board, target, extensions)) return {};
  std::erase_if(extensions, [&](const std::string& one) { return runs(board, target, {one}); });
  return extensions;
}

// What is wrong with the vectors that a prefix runs, for code of the target; "" if nothing is.
std::string short_vectors(Board& board, const codegen::Target& target) {
  const std::string machine = architecture(target);
  if (target.vector_bits == 0 || (machine == "aarch64" && target.vector_bits == 128)) return "";
  const std::int64_t bits = vector_bits(board, target);
  if (bits >= target.vector_bits) return "";
  const std::string remedy = machine == "riscv64"
                                 ? fmt::format("for qemu: -cpu rv64,v=true,vext_spec=v1.0,vlen={}", target.vector_bits)
                                 : "choose a runner of such a cpu";
  return fmt::format("'{}' runs {}, and the target has vectors of {} bits; {}", board.name(),
                     bits == 0 ? "no such vectors" : fmt::format("vectors of {} bits only", bits), target.vector_bits,
                     remedy);
}

// Code for long vectors is for machines whose vectors are that long; without vectors it is scalar. `kinds`: of cores,
// on any of which the program runs.
std::string seen(Board& board, codegen::Target& target, std::int64_t kinds) {
  const std::string machine = architecture(target);
  const std::int64_t bits = vector_bits(board, target);
  if (machine == "riscv64") {
    // Where kinds differ another one may have shorter vectors than the one that answered.
    target = codegen::with_vectors(target, kinds > 1 ? std::min(bits, target.vector_bits) : bits);
    return bits > 0 ? fmt::format("riscv64 with RVV 1.0 of {} bits", bits) : "riscv64 without RVV 1.0";
  }
  if (machine == "aarch64") {
    if (bits == 0) return "aarch64 with ASIMD of 128 bits, without SVE";
    target = codegen::with_vectors(target, bits);
    return fmt::format("aarch64 with SVE of {} bits", bits);
  }
  if (bits != target.vector_bits)
    throw base::Failure(
        fmt::format("{}: the vectors of {} bits of {} do not run there", board.name(), target.vector_bits, target.cpu));
  return fmt::format("{} ({}) with vectors of {} bits", machine, target.cpu, bits);
}

std::string scalar(const std::string& text) {
  return base::Document(text).to_json();  // JSON scalars are YAML scalars
}

// What runs programs, there or here.
const std::vector<std::string>& command_of(const Remote& remote) {
  return remote.ssh.empty() ? remote.prefix : remote.runner;
}

std::string list(const std::vector<std::string>& words) {
  base::Document all = base::Document::list();
  for (const std::string& word : words) all.push(word);
  return all.to_json();
}

std::string lines(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("# {}\n", note);
  return text;
}

// What both ways write. `machine`: its architecture; `comment`: whole lines. Where nothing says how a board is reached,
// the place of that is marked.
std::string yaml_of(const Remote& remote, const codegen::Target& target, const std::string& machine,
                    const std::string& comment) {
  const bool is_board = !remote.ssh.empty(), is_unknown = !is_board && remote.prefix.empty();
  const std::string where = is_board ? remote.ssh[0] : "here";
  const std::string name = is_board     ? "ssh:" + where.substr(where.find('@') + 1)
                           : is_unknown ? "described:" + target.cpu
                                        : "here:" + machine;
  const std::string place = is_board ? " at " + where : is_unknown ? "" : " " + where;
  const std::string runner = command_of(remote).empty() ? "" : ", under " + command_of(remote)[0];
  std::string yaml = comment + fmt::format("name: {}\ndescription: {}\ntarget:\n", scalar(name),
                                           scalar(fmt::format("{}{}{}", machine, place, runner)));
  const base::Document fields = codegen::to_document(target);
  for (const auto& [key, value] : fields.as_map()) yaml += fmt::format("  {}: {}\n", key, value.to_json());
  yaml += "remote:\n";
  if (is_unknown) {
    yaml += "  ssh: board  # write how ssh reaches yours: root@192.168.0.7, and above the name that it shall have\n";
  } else if (!is_board) {
    yaml += fmt::format("  prefix: {}\n", list(remote.prefix));
  } else {
    yaml += fmt::format("  ssh: {}\n", scalar(where));
    // Wherever the YAML will be.
    if (!remote.ssh_config.empty())
      yaml += fmt::format("  ssh_config: {}\n", scalar(std::filesystem::absolute(remote.ssh_config).string()));
    if (!remote.runner.empty()) yaml += fmt::format("  runner: {}\n", list(remote.runner));
    if (remote.folder != "/tmp") yaml += fmt::format("  folder: {}\n", scalar(remote.folder));
  }
  if (remote.core >= 0 && remote.prefix.empty()) yaml += fmt::format("  core: {}\n", remote.core);
  parse_platform(yaml, "the probed platform");  // what is written can be read
  return yaml;
}

}  // namespace

Probed probed(const Remote& remote) {
  Board board(remote, 0);
  MachineFacts facts = facts_in(board.shell(fmt::format(script, std::max<std::int64_t>(0, remote.core)), patience));
  if (remote.is_emulated()) {
    const std::string program = std::filesystem::path(command_of(remote)[0]).filename();
    facts = {.machine = program.substr(program.find('-') + 1),
             .system = facts.system,
             .governor = "",
             .cpuinfo = "",
             .cores = 1,
             .kilohertz = std::nullopt,
             .caches = {}};
    if (const std::size_t end = facts.machine.find("-static"); end != std::string::npos) facts.machine.resize(end);
  }
  codegen::CpuinfoTarget read =
      codegen::target_of_cpuinfo(facts.machine, facts.cpuinfo, facts.cpuinfo.empty() ? -1 : remote.core);
  codegen::Target& target = read.target;
  // The system may lend fewer than it lists, or list none.
  if (facts.cores) target.cores = read.kinds > 1 ? std::min(target.cores, *facts.cores) : *facts.cores;
  read_caches(facts.caches, target);
  const std::string saw = seen(board, target, remote.core < 0 ? read.kinds : 1);

  std::string comment = fmt::format("# Probed: {}", base::one_line(facts.system));
  if (facts.kilohertz) comment += fmt::format(", {:.2f} GHz at most", double(*facts.kilohertz) * 1e-6);
  if (!facts.governor.empty()) comment += fmt::format(", {} governor", base::one_line(facts.governor));
  comment += fmt::format("\n# A program ran there: {}\n", saw);
  return {yaml_of(remote, target, facts.machine, comment + lines(read.notes)), saw, read.notes};
}

Probed described(const std::string& cpuinfo, const std::string& isa, Remote board) {
  std::string text = cpuinfo;
  if (!isa.empty()) {
    const bool is_arm = codegen::machine_of_cpuinfo("Features : " + isa) == "aarch64";
    text = fmt::format("{} : {}\n", isa.starts_with("rv") ? "isa" : is_arm ? "Features" : "flags", isa);
    for (const std::string_view line : base::split(cpuinfo, '\n')) {
      const std::string_view key = base::trim(line.substr(0, line.find(':')));
      if (key != "isa" && key != "hart isa" && key != "Features" && key != "flags") text.append(line) += '\n';
    }
  }
  const std::string machine = codegen::machine_of_cpuinfo(text);
  if (machine.empty())
    throw base::UserError("cpuinfo",
                          "it shows neither 'isa : rv64...' (riscv64), 'Features' with asimd (aarch64), 'flags' "
                          "with sse2 (x86_64) nor 'cpu : POWER...' (ppc64le); give the text of /proc/cpuinfo of a "
                          "64-bit Linux, or its ISA string");
  codegen::CpuinfoTarget read = codegen::target_of_cpuinfo(machine, text, board.core);
  codegen::Target& target = read.target;
  if (!board.prefix.empty()) {
    Board runner(board, 0);
    if (const std::string wrong = short_vectors(runner, target); !wrong.empty()) throw base::UserError("runner", wrong);
    const std::vector<std::string> lacking = not_run(runner, target);
    target = codegen::without_extensions(target, lacking);
    if (!lacking.empty())
      read.notes.push_back(fmt::format("left out, as {} does not run {}: {}", board.prefix[0],
                                       lacking.size() == 1 ? "it" : "them", base::join(lacking, ", ")));
  }
  if (read.assumes_vector_bits)
    read.notes.push_back(fmt::format(
        "vectors of {} bits are assumed, the least that there are: nothing says how long they are; a program "
        "that runs there finds out (graft platform probe ssh://HOST), or write vector_bits and +zvl256b",
        target.vector_bits));
  const std::string saw = fmt::format("{} ({}) with vectors of {} bits", machine, target.cpu, target.vector_bits);
  const std::string name = codegen::name_of_cpuinfo(text);
  for (const std::string& core : {target.cpu, name})
    if (const std::string modelled = modelled_platform_of(core); !modelled.empty()) {
      read.notes.push_back(fmt::format("until the board is there, {} is a model of its core", modelled));
      break;
    }
  const std::string comment = fmt::format(
      "# Described by /proc/cpuinfo{}: {}\n# No program ran there. Add l1_bytes, l2_bytes, l3_bytes and line_bytes "
      "from "
      "its data sheet.\n",
      name.empty() ? "" : " of " + base::one_line(name), saw);
  return {yaml_of(board, target, machine, comment + lines(read.notes)), saw, read.notes};
}

void require_runs(const Platform& platform, const Remote& prefix) {
  if (!prefix.ssh.empty()) return;
  Board board(prefix, 0);
  std::string wrong;
  std::vector<std::string> lacking;
  try {
    wrong = short_vectors(board, platform.target);
    if (wrong.empty()) lacking = not_run(board, platform.target);
  } catch (const base::Failure&) {
    return;
  }
  if (!wrong.empty()) throw base::UserError(platform.name, wrong);
  if (lacking.empty()) return;
  throw base::UserError(platform.name,
                        fmt::format("'{}' does not run {}, which the target has; write in its YAML, under 'target', "
                                    "features: \"{}\"",
                                    board.name(), base::join(lacking, ", "),
                                    codegen::without_extensions(platform.target, lacking).features));
}

std::string modelled_platform_of(std::string core) {
  std::replace(core.begin(), core.end(), ',', '-');
  const std::vector<std::string> known = platform_ids();
  const std::string id = "model:" + core;
  return std::find(known.begin(), known.end(), id) == known.end() ? "" : id;
}

void note_emulated(const Platform& platform, base::Monitor& monitor) {
  if (platform.device->source() != "emulated") return;
  const std::string modelled = modelled_platform_of(platform.target.cpu);
  monitor.note(fmt::format(
      "{}: its times are of an emulator, where other schedules are fast than on hardware: not for shipping; tune on {} "
      "instead, whose code is also checked under qemu",
      platform.name, modelled.empty() ? "the modelled core that is most like it (graft platform list)" : modelled));
}

Probed probed_here() {
  Platform native = platform_named("native");
  Board board(Remote{}, 0);
  std::string saw = seen(board, native.target, 1);
  return {std::move(native.yaml), std::move(saw), {}};
}

}  // namespace graft::tasks
