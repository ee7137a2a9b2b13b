#include "tasks/modelled/twin.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/installation.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "tasks/modelled/modelled.h"

namespace graft::tasks {
namespace {

// Cores that differ in nothing that a profile says, or for which this LLVM has no model but that of the one before.
constexpr std::array kin{std::pair<std::string_view, std::string_view>{"emeraldrapids", "sapphirerapids"},
                         std::pair<std::string_view, std::string_view>{"znver5", "znver4"}};

std::string host_profile() {
  std::string cpu = codegen::host_target().cpu;
  for (const auto& [name, like] : kin)
    if (cpu == name) cpu = like;
  const std::filesystem::path folder = base::share_folder() / "platforms" / "hosts";
  const std::filesystem::path file = folder / (cpu + ".yaml");
  if (std::filesystem::exists(file)) return file.string();
  std::vector<std::string> known;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing))
    known.push_back(entry.path().stem().string());
  throw base::UserError(cpu, fmt::format("no profile of this host's cpu (known: {}); write one like "
                                         "platforms/hosts/sapphirerapids.yaml and name it",
                                         base::join(known, ", ")));
}

}  // namespace

Platform twin_of(const Platform& native, const std::string& profile) {
  if (!native.device->is_this_host())
    throw base::UserError(native.name, "only native platforms are measured on this host, for example native:v3");
  const std::string file = profile.empty() ? host_profile() : profile;
  const Platform documented = platform_named(file);
  const Profile* const profile_there = profile_of(documented);
  if (profile_there == nullptr) throw base::UserError(file, "is not a modelled platform");

  Platform twin = documented;
  twin.name = fmt::format("{}@{}", documented.name, base::split(native.name, ':').back());
  twin.long_name = twin.name;
  twin.target = native.target;
  const auto keep = [](std::optional<std::int64_t>& here, const std::optional<std::int64_t>& there) {
    if (!here) here = there;
  };
  keep(twin.target.l1_bytes, documented.target.l1_bytes);
  keep(twin.target.l2_bytes, documented.target.l2_bytes);
  keep(twin.target.l3_bytes, documented.target.l3_bytes);
  keep(twin.target.line_bytes, documented.target.line_bytes);
  Profile fitted = *profile_there;
  const bool wide = twin.target.vector_bits >= 512 && !fitted.wide_model_cpu.empty();
  fitted.model_cpu = wide ? fitted.wide_model_cpu : documented.target.cpu;
  check_profile(fitted, twin.target, [&](std::string_view key) { return fmt::format("{}: {}", file, key); });
  twin.device = modelled_device(std::move(fitted));
  return twin;
}

}  // namespace graft::tasks
