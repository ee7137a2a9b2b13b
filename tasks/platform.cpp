#include "tasks/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/installation.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "datasets/platform_name.h"

namespace graft::tasks {
namespace {

using base::Document;
using base::UserError;

// Levels of the x86-64 psABI: what `native:<name>` compiles for, and what this host must have to run it.
struct Level {
  std::string_view name;
  const char* cpu;
  std::int64_t vector_bits;
  std::int64_t vector_registers;
  bool (*runs_here)();
};
#if defined(__x86_64__)
#define GRAFT_HOST_SUPPORTS(level) [] { return __builtin_cpu_supports(level) != 0; }
#else
#define GRAFT_HOST_SUPPORTS(level) [] { return false; }
#endif
constexpr std::array levels{
    Level{"v2", "x86-64-v2", 128, 16, GRAFT_HOST_SUPPORTS("x86-64-v2")},
    Level{"v3", "x86-64-v3", 256, 16, GRAFT_HOST_SUPPORTS("x86-64-v3")},
    Level{"v4", "x86-64-v4", 512, 32, GRAFT_HOST_SUPPORTS("x86-64-v4")},
};
#undef GRAFT_HOST_SUPPORTS

// Asked once: the hundred CPUID instructions that it takes are slow in virtual machines.
const codegen::Target& host() {
  static const codegen::Target target = codegen::host_target();
  return target;
}

std::string_view architecture(std::string_view triple) {
  return triple.substr(0, triple.find('-'));
}

std::vector<std::string> command_from(const Document& list) {
  std::vector<std::string> words;
  for (const Document& word : list.as_list()) words.push_back(word.as_string());
  if (words.empty()) throw UserError(list.place(), "expected a command as a list of words, got an empty list");
  return words;
}

// The numbers of a profile: said once, for reading, checking and refusing.
struct Field {
  std::string_view key;
  std::variant<double Profile::*, std::int64_t Profile::*, bool Profile::*> member;
  double least = 0, greatest = 0;
  enum { always, with_l2, with_l3, with_l2_tlb, if_wanted } given = always;
};
constexpr std::array profile_fields{
    Field{"gigahertz", &Profile::gigahertz, 0.01, 20},
    Field{"out_of_order", &Profile::out_of_order},
    Field{"mispredict_cycles", &Profile::mispredict_cycles, 0, 1000},
    Field{"dispatch_width", &Profile::dispatch_width, 0, 64, Field::if_wanted},
    Field{"memory_parallelism", &Profile::memory_parallelism, 1, 1000},
    Field{"l1_ways", &Profile::l1_ways, 1, 1024},
    Field{"l2_ways", &Profile::l2_ways, 1, 1024, Field::with_l2},
    Field{"l2_shared", &Profile::l2_shared, 0, 0, Field::with_l2},
    Field{"l2_latency_cycles", &Profile::l2_latency_cycles, 1, 10000, Field::with_l2},
    Field{"l3_ways", &Profile::l3_ways, 1, 1024, Field::with_l3},
    Field{"l3_shared", &Profile::l3_shared, 0, 0, Field::with_l3},
    Field{"l3_latency_cycles", &Profile::l3_latency_cycles, 1, 10000, Field::with_l3},
    Field{"memory_nanoseconds", &Profile::memory_nanoseconds, 1, 100000},
    Field{"memory_gigabytes_per_second", &Profile::memory_gigabytes_per_second, 0.01, 100000},
    Field{"prefetch_streams", &Profile::prefetch_streams, 0, 256},
    Field{"page_bytes", &Profile::page_bytes, 1024, 1 << 30},
    Field{"huge_page_bytes", &Profile::huge_page_bytes, 0, 1 << 30, Field::if_wanted},
    Field{"tlb_entries", &Profile::tlb_entries, 1, 4096},
    Field{"l2_tlb_entries", &Profile::l2_tlb_entries, 0, 1 << 20},
    Field{"l2_tlb_ways", &Profile::l2_tlb_ways, 1, 1024, Field::with_l2_tlb},
    Field{"l2_tlb_cycles", &Profile::l2_tlb_cycles, 0, 10000, Field::with_l2_tlb},
    Field{"page_walk_cycles", &Profile::page_walk_cycles, 0, 100000},
    Field{"fork_join_microseconds", &Profile::fork_join_microseconds, 0, 100000},
    Field{"noise_percent", &Profile::noise_percent, 0, 50, Field::if_wanted},
};

bool applies(const Field& field, const codegen::Target& target, const Profile& profile) {
  switch (field.given) {
    case Field::with_l2:
      return target.l2_bytes.has_value();
    case Field::with_l3:
      return target.l3_bytes.has_value();
    case Field::with_l2_tlb:
      return profile.l2_tlb_entries > 0;
    default:
      return true;
  }
}
std::string_view what_it_describes(const Field& field) {
  if (field.given == Field::with_l2_tlb) return "l2_tlb_entries above 0";
  return field.given == Field::with_l2 ? "l2_bytes in the target" : "l3_bytes in the target";
}

// Gives the target its threads: said once, in the platform's own map.
Native native_from(const Document& map, const Document& target_node, codegen::Target& target) {
  map.only_keys({"threads"});
  const Document& node = map.at("threads");
  const std::int64_t threads = node.as_integer();
  if (threads < 1 || threads > host().cores)
    throw UserError(node.place(),
                    fmt::format("threads must be 1 to {}, the cores of this host; got {}", host().cores, threads));
  if (const Document* const twice = target_node.find("threads"))
    throw UserError(twice->place(), "of a native platform threads are said under 'native'");
  if (architecture(host().triple) != architecture(target.triple)) {
    throw UserError(target_node.at("triple").place(),
                    fmt::format("this host is {} and cannot run code for '{}'; use remote or modelled",
                                architecture(host().triple), target.triple));
  }
  target.threads = threads;
  return {};
}

Modelled modelled_from(const Document& map, const Document& target_node, const codegen::Target& target) {
  std::vector<std::string_view> keys{"qemu", "model_cpu", "wide_model_cpu"};
  for (const Field& field : profile_fields) keys.push_back(field.key);
  map.only_keys(keys);
  for (const std::string_view key : {"l1_bytes", "line_bytes"}) target_node.at(key);
  Profile profile;
  for (const Field& field : profile_fields) {
    const Document* const node = map.find(field.key);
    if (!applies(field, target, profile)) {
      if (node != nullptr)
        throw UserError(node->place(),
                        fmt::format("{} without {}; add that, or drop the key", field.key, what_it_describes(field)));
      continue;
    }
    if (node == nullptr && field.given == Field::if_wanted) continue;
    const Document& given = map.at(field.key);
    std::visit(
        [&](auto member) {
          auto& value = profile.*member;
          if constexpr (std::is_same_v<decltype(value), bool&>)
            value = given.as_bool();
          else if constexpr (std::is_same_v<decltype(value), std::int64_t&>)
            value = given.as_integer();
          else
            value = given.as_number();
        },
        field.member);
  }
  check_profile(profile, target, [&](std::string_view key) {
    const Document* node = map.find(key);
    if (node == nullptr) node = target_node.find(key);
    return node == nullptr ? map.place() : node->place();
  });
  if (const Document* cpu = map.find("model_cpu")) profile.model_cpu = cpu->as_string();
  if (const Document* cpu = map.find("wide_model_cpu")) profile.wide_model_cpu = cpu->as_string();
  if (const Document* qemu = map.find("qemu")) profile.qemu = command_from(*qemu);
  return Modelled{std::move(profile)};
}

std::string name_from(const Document& node) {
  const std::string& name = node.as_string();
  if (datasets::is_platform_name(name)) return name;
  throw UserError(node.place(),
                  fmt::format("'{}' is not a name of a platform; use letters, digits and : @ . _ , = -", name));
}

// The code of this machine as YAML; JSON scalars are YAML scalars.
std::string native_yaml(std::string_view name, std::string_view description, const codegen::Target& target,
                        std::int64_t threads) {
  std::string yaml = fmt::format("name: {}\ndescription: {}\ntarget:\n", Document(std::string(name)).to_json(),
                                 Document(std::string(description)).to_json());
  const Document fields = codegen::to_document(target);
  for (const auto& [key, value] : fields.as_map()) yaml += fmt::format("  {}: {}\n", key, value.to_json());
  return yaml + fmt::format("native:\n  threads: {}\n", threads);
}

std::vector<std::string> native_ids() {
  std::vector<std::string> ids{"native"};
  for (const Level& level : levels) {
    if (level.runs_here()) ids.push_back(fmt::format("native:{}", level.name));
  }
  return ids;
}

Platform unchecked_platform(const std::string& yaml, const std::string& file);

// `native[:level][,threads=n]`, already known to begin with "native".
Platform native_platform(const std::string& id) {
  const std::vector<std::string_view> parts = base::split(id, ',');
  const std::string name(parts[0]);
  std::int64_t threads = 1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    constexpr std::string_view key = "threads=";
    if (parts[i].starts_with("native") || parts[i].starts_with("model:"))
      throw UserError(id, "several platforms, and one is expected here");
    if (!parts[i].starts_with(key) || parts.size() > 2)
      throw UserError(id, fmt::format("unknown suffix '{}'; known: threads=n", parts[i]));
    const std::string_view digits = parts[i].substr(key.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), threads);
    if (error != std::errc() || end != digits.data() + digits.size() || threads < 1 || threads > host().cores)
      throw UserError(id, fmt::format("threads must be 1 to {}, the cores of this host", host().cores));
  }
  const std::string full_name = threads == 1 ? name : fmt::format("{},threads={}", name, threads);
  const std::string on_threads = threads == 1 ? "" : fmt::format(", {} threads", threads);
  codegen::Target target = host();
  if (name == "native") {
    const std::string description = "this host, all that its cpu can do" + on_threads;
    return unchecked_platform(native_yaml(full_name, description, target, threads), full_name);
  }

  const std::string_view wanted = std::string_view(name).substr(std::string_view("native:").size());
  const auto level =
      std::find_if(levels.begin(), levels.end(), [&](const Level& known) { return known.name == wanted; });
  if (level == levels.end() && wanted.starts_with("threads="))
    throw UserError(id, fmt::format("unknown platform; settings follow a comma: native,{}", wanted));
  if (level == levels.end())
    throw UserError(id, fmt::format("unknown platform{}", base::did_you_mean(name, native_ids())));
  if (!level->runs_here()) {
    throw UserError(id,
                    fmt::format("this host ({}, {}) cannot run {} code; use one of: {}", architecture(target.triple),
                                target.cpu, level->cpu, base::join(native_ids(), ", ")));
  }
  target.cpu = level->cpu;
  target.features.clear();
  target.vector_bits = level->vector_bits;
  target.vector_registers = level->vector_registers;
  const std::string description = fmt::format("this host, {} code{}", level->cpu, on_threads);
  return unchecked_platform(native_yaml(full_name, description, target, threads), full_name);
}

struct Catalogued {
  std::string name, long_name;
  std::filesystem::path file;
};

// The shipped platforms: installed next to the program's folder, and in a build folder linked to the source tree's.
std::vector<Catalogued> catalogue() {
  const std::filesystem::path folder = base::share_folder() / "platforms";
  std::vector<Catalogued> known;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    if (entry.path().extension() != ".yaml") continue;
    const Document document = base::parse_yaml(base::read_file(entry.path()), entry.path().string());
    const Document* const long_name = document.find("long_name");
    const std::string& name = document.at("name").as_string();
    known.push_back({name, long_name == nullptr ? name : long_name->as_string(), entry.path()});
  }
  std::sort(known.begin(), known.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return known;
}

Platform read_platform(const std::filesystem::path& file) {
  return parse_platform(base::read_file(file), file.string());
}

// A catalogued modelled platform on several cores or with noise: its suffixes are part of its YAML, too.
Platform changed_platform(const Catalogued& known, const std::string& id, std::string_view suffixes) {
  Document document = base::parse_yaml(base::read_file(known.file), known.file.string());
  const auto set_in = [&](const std::string& map, const std::string& key, double value) {
    Document changed = document.at(map);
    changed.set(key, value);
    document.set(map, std::move(changed));
  };
  for (const std::string_view suffix : base::split(suffixes, ',')) {
    const std::size_t equals = std::min(suffix.find('='), suffix.size());
    const std::string_view key = suffix.substr(0, equals), digits = suffix.substr(std::min(equals + 1, suffix.size()));
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool number = error == std::errc() && end == digits.data() + digits.size();
    if (number && key == "threads")
      set_in("target", "threads", value);
    else if (number && key == "noise")
      set_in("modelled", "noise_percent", value);
    else
      throw UserError(id, fmt::format("unknown suffix '{}'; known: threads=n, noise=percent", suffix));
  }
  document.set("name", fmt::format("{},{}", known.name, suffixes));
  document.set("long_name", fmt::format("{},{}", known.long_name, suffixes));
  return parse_platform(document.to_pretty_json(), id);
}

Remote remote_from(const Document& document, const std::filesystem::path& file) {
  Remote remote;
  if (const Document* prefix = document.find("prefix")) {
    document.only_keys({"prefix"});
    remote.prefix = command_from(*prefix);
    return remote;
  }
  document.only_keys({"ssh", "ssh_config", "runner", "folder", "core", "attempts", "retry_seconds"});
  const Document& ssh = document.at("ssh");
  if (ssh.is_list())
    remote.ssh = command_from(ssh);
  else
    remote.ssh = {ssh.as_string()};
  for (const std::string& destination : remote.ssh)
    if (destination.empty() || destination[0] == '-')
      throw UserError(ssh.place(),
                      fmt::format("'{}' is not a destination of ssh; give HOST or USER@HOST", destination));
  if (const Document* config = document.find("ssh_config"); config != nullptr && !config->as_string().empty())
    remote.ssh_config = file.parent_path() / config->as_string();
  if (const Document* runner = document.find("runner")) remote.runner = command_from(*runner);
  if (const Document* folder = document.find("folder")) remote.folder = folder->as_string();
  const auto integer = [&](const char* key, std::int64_t& value, std::int64_t least, std::int64_t greatest) {
    const Document* const given = document.find(key);
    if (given == nullptr) return;
    value = given->as_integer();
    if (value < least || value > greatest)
      throw UserError(given->place(), fmt::format("{} must be {} to {}, got {}", key, least, greatest, value));
  };
  integer("core", remote.core, 0, 4095);
  integer("attempts", remote.attempts, 1, 100);
  if (const Document* wait = document.find("retry_seconds")) {
    remote.retry_seconds = wait->as_number();
    if (!(remote.retry_seconds >= 0 && remote.retry_seconds <= 3600))
      throw UserError(wait->place(), fmt::format("retry_seconds must be 0 to 3600, got {:g}", remote.retry_seconds));
  }
  return remote;
}

// All but whether LLVM knows the cpu.
Platform unchecked_platform(const std::string& yaml, const std::string& file) {
  const Document document = base::parse_yaml(yaml, file);
  document.only_keys({"name", "long_name", "description", "target", "native", "remote", "modelled"});
  Platform platform;
  platform.yaml = yaml;
  platform.name = name_from(document.at("name"));
  const Document* const long_name = document.find("long_name");
  platform.long_name = long_name == nullptr ? platform.name : name_from(*long_name);
  if (const Document* description = document.find("description")) platform.description = description->as_string();

  const Document& target = document.at("target");
  platform.target = codegen::target_from(target);

  const Document* const native = document.find("native");
  const Document* const remote = document.find("remote");
  const Document* const modelled = document.find("modelled");
  if ((native != nullptr) + (remote != nullptr) + (modelled != nullptr) != 1) {
    throw UserError(document.place(), "expected exactly one of the keys 'native', 'remote' and 'modelled'");
  }
  if (native != nullptr) {
    platform.how = native_from(*native, target, platform.target);
  } else if (remote != nullptr) {
    platform.how = remote_from(*remote, file);
  } else {
    platform.how = modelled_from(*modelled, target, platform.target);
  }
  return platform;
}

}  // namespace

void check_profile(const Profile& profile, const codegen::Target& target,
                   const std::function<std::string(std::string_view key)>& place) {
  for (const Field& field : profile_fields) {
    if (std::holds_alternative<bool Profile::*>(field.member) || !applies(field, target, profile)) continue;
    const double value = std::visit([&](auto member) { return double(profile.*member); }, field.member);
    if (!(value >= field.least && value <= field.greatest)) {
      const bool of_a_level = field.given == Field::with_l2 || field.given == Field::with_l3;
      throw UserError(
          place(field.key),
          fmt::format("{} must be {:g} to {:g}, got {:g}{}", field.key, field.least, field.greatest, value,
                      of_a_level && value == 0 ? fmt::format("; where there is no such cache, leave out all "
                                                             "keys that begin with {}, in the target, too",
                                                             field.key.substr(0, 3))
                                               : ""));
    }
  }
  const auto power_of_two = [&](std::string_view key, std::int64_t value, std::int64_t least) {
    if (value < least || !std::has_single_bit(std::uint64_t(value)))
      throw UserError(place(key), fmt::format("{} must be a power of two of at least {}, got {}", key, least, value));
  };
  const auto given = [&](std::string_view key, const std::optional<std::int64_t>& bytes) {
    if (!bytes) throw UserError(place(key), fmt::format("a modelled platform needs {} in its target", key));
    return *bytes;
  };
  const std::int64_t line_bytes = given("line_bytes", target.line_bytes);
  power_of_two("line_bytes", line_bytes, 8);
  power_of_two("page_bytes", profile.page_bytes, line_bytes);
  if (profile.huge_page_bytes != 0) power_of_two("huge_page_bytes", profile.huge_page_bytes, 2 * profile.page_bytes);
  const auto level = [&](std::string_view key, std::int64_t bytes, std::int64_t ways) {
    constexpr std::int64_t most = std::int64_t(8) << 30;
    if (bytes <= 0 || bytes > most || bytes % (ways * line_bytes) != 0)
      throw UserError(place(key), fmt::format("{} of a modelled platform must be a multiple of {} ways of {} bytes, at "
                                              "most {}, got {}",
                                              key, ways, line_bytes, most, bytes));
  };
  level("l1_bytes", given("l1_bytes", target.l1_bytes), profile.l1_ways);
  if (target.l2_bytes) level("l2_bytes", *target.l2_bytes, profile.l2_ways);
  if (target.l3_bytes) level("l3_bytes", *target.l3_bytes, profile.l3_ways);
  if (target.l3_bytes && !target.l2_bytes) given("l2_bytes", target.l2_bytes);
  if (profile.l2_tlb_entries > 0 && profile.l2_tlb_entries % profile.l2_tlb_ways != 0)
    throw UserError(place("l2_tlb_entries"), fmt::format("l2_tlb_entries must be a multiple of {} ways, got {}",
                                                         profile.l2_tlb_ways, profile.l2_tlb_entries));
}

bool Remote::is_emulated() const {
  const std::vector<std::string>& command = prefix.empty() ? runner : prefix;
  return !command.empty() && std::filesystem::path(command[0]).filename().string().starts_with("qemu");
}

std::string source_of(const Platform& platform) {
  if (std::holds_alternative<Native>(platform.how)) return "native";
  if (const auto* remote = std::get_if<Remote>(&platform.how)) return remote->is_emulated() ? "emulated" : "remote";
  return "modelled";
}

Platform parse_platform(const std::string& yaml, const std::string& file) {
  Platform platform = unchecked_platform(yaml, file);
  try {
    codegen::check_target(platform.target);
  } catch (const codegen::TargetError& error) {
    const Document document = base::parse_yaml(yaml, file);
    const Document* const value = document.at("target").find(error.key());
    throw UserError((value == nullptr ? document.at("target") : *value).place(), error.what());
  }
  return platform;
}

std::vector<Platform> known_platforms() {
  std::vector<Platform> known;
  for (const std::string& id : native_ids()) known.push_back(native_platform(id));
  for (const Catalogued& shipped : catalogue()) {
    known.push_back(unchecked_platform(base::read_file(shipped.file), shipped.file.string()));
  }
  return known;
}

std::vector<std::string> platform_ids() {
  std::vector<std::string> ids = native_ids();
  for (Catalogued& known : catalogue()) ids.push_back(std::move(known.name));
  return ids;
}

namespace {

constexpr std::string_view nan_suffix = ",nan=ignore";

Platform ignoring_nan(const Platform& platform, const std::string& id) {
  Document document = base::parse_yaml(platform.yaml, id), target = document.at("target");
  target.set("nan", "ignore");
  document.set("target", std::move(target));
  for (const char* const key : {"name", "long_name"})
    if (const Document* const name = document.find(key))
      document.set(key, fmt::format("{}{}", name->as_string(), nan_suffix));
  return parse_platform(document.to_pretty_json(), id);
}

}  // namespace

Platform platform_named(const std::string& id) {
  if (id.ends_with(nan_suffix))
    return ignoring_nan(platform_named(id.substr(0, id.size() - nan_suffix.size())), id);
  if (id.ends_with(".yaml") || id.ends_with(".yml") || id.find('/') != std::string::npos) return read_platform(id);
  if (id == "native" || id.starts_with("native:") || id.starts_with("native,")) return native_platform(id);
  std::vector<std::string> names = native_ids();
  for (Catalogued& known : catalogue()) {
    if (id == known.name || id == known.long_name) return read_platform(known.file);
    for (const std::string& name : {known.long_name, known.name})
      if (id.starts_with(name + ",")) return changed_platform(known, id, std::string_view(id).substr(name.size() + 1));
    if (known.name == "model:" + id)
      throw UserError(id, fmt::format("unknown platform; did you mean '{}'?", known.name));
    names.push_back(std::move(known.name));
  }
  throw UserError(id, fmt::format("unknown platform{}", base::did_you_mean(id, names)));
}

}  // namespace graft::tasks
