#include "tasks/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/installation.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "datasets/platform_name.h"
#include "tasks/opencl.h"

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

std::string_view architecture(std::string_view triple) {
  return triple.substr(0, triple.find('-'));
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
    if (error != std::errc() || end != digits.data() + digits.size() || threads < 1 ||
        threads > codegen::host_target().cores)
      throw UserError(id, fmt::format("threads must be 1 to {}, the cores of this host", codegen::host_target().cores));
  }
  const std::string full_name = threads == 1 ? name : fmt::format("{},threads={}", name, threads);
  const std::string on_threads = threads == 1 ? "" : fmt::format(", {} threads", threads);
  codegen::Target target = codegen::host_target();
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

UserError not_one_device(const Document& platform) {
  std::string known;
  for (const DeviceKind& kind : device_kinds()) {
    if (!known.empty()) known += &kind == &device_kinds().back() ? " and " : ", ";
    known += fmt::format("'{}'", kind.key);
  }
  return {platform.place(), fmt::format("expected exactly one of the keys {}", known)};
}

// All but whether LLVM knows the cpu.
Platform unchecked_platform(const std::string& yaml, const std::string& file) {
  const Document document = base::parse_yaml(yaml, file);
  std::vector<std::string_view> keys{"name", "long_name", "description", "target"};
  for (const DeviceKind& kind : device_kinds()) keys.push_back(kind.key);
  document.only_keys(keys);
  Platform platform;
  platform.yaml = yaml;
  platform.name = name_from(document.at("name"));
  const Document* const long_name = document.find("long_name");
  platform.long_name = long_name == nullptr ? platform.name : name_from(*long_name);
  if (const Document* description = document.find("description")) platform.description = description->as_string();

  platform.target = codegen::target_from(document.at("target"));
  const DeviceKind* kind = nullptr;
  for (const DeviceKind& each : device_kinds()) {
    if (document.find(each.key) == nullptr) continue;
    if (kind != nullptr) throw not_one_device(document);
    kind = &each;
  }
  if (kind == nullptr) throw not_one_device(document);
  platform.device = kind->read(document.at(kind->key), document, file, platform.target);
  return platform;
}

}  // namespace

Platform parse_platform(const std::string& yaml, const std::string& file) {
  Platform platform = unchecked_platform(yaml, file);
  try {
    platform.device->check(platform.target);
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
  if (id.ends_with(nan_suffix)) return ignoring_nan(platform_named(id.substr(0, id.size() - nan_suffix.size())), id);
  if (id.ends_with(".yaml") || id.ends_with(".yml") || id.find('/') != std::string::npos) return read_platform(id);
  if (id == "native" || id.starts_with("native:") || id.starts_with("native,")) return native_platform(id);
  if (id.starts_with("opencl:")) {
    int device = -1;
    const auto [end, error] = std::from_chars(id.data() + 7, id.data() + id.size(), device);
    if (error != std::errc() || end != id.data() + id.size()) throw UserError(id, "expected opencl:NUMBER");
    return parse_platform(opencl_yaml(device), id);
  }
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
