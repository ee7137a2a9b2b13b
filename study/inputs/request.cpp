#include "study/inputs/request.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <fstream>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/text.h"
#include "codegen/expression/suites.h"
#include "search/run_directory.h"

namespace graft::study {

std::string_view graft_version() {
  return GRAFT_VERSION;
}

std::string host_cpu() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    return std::string(base::trim(std::string_view(line).substr(std::min(line.size(), line.find(':') + 1))));
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

base::Document context_of(std::string_view command_line) {
  base::Document host = base::Document::map();
  utsname system{};
  host.set("cpu", host_cpu());
  if (::uname(&system) == 0)
    host.set("system", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  base::Document context = base::Document::map();
  context.set("graft", std::string(graft_version()))
      .set("date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))))
      .set("host", std::move(host))
      .set("command", std::string(command_line));
  return context;
}

std::string file_hash(const std::filesystem::path& path) {
  return base::to_hex(base::hash_bytes(base::read_file(path)));
}

std::string platform_hash(const tasks::Platform& platform) {
  return base::to_hex(base::hash_bytes(platform.yaml));
}

std::string model_identity(const meta::ModelFile& model, const std::filesystem::path& file,
                           const std::filesystem::path& run) {
  const std::optional<base::Document> request = search::recorded_request(run);
  const base::Document* const recorded = request ? request->find("model") : nullptr;
  if (recorded == nullptr || *recorded == base::Document(model.hash)) return model.hash;
  std::string of_file = file_hash(file);
  return *recorded == base::Document(of_file) ? of_file : model.hash;
}

std::string short_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  constexpr std::size_t most = 60;
  if (name.size() > most) name = name.substr(0, most - 9) + "-" + base::to_hex(base::hash_bytes(text)).substr(0, 8);
  return name;
}

std::string dataset_file_name(std::string_view platform) {
  std::string name(platform);
  std::replace(name.begin(), name.end(), ':', '-');
  return name + ".h5";
}

namespace {

// A path, where its contents or something else are expected.
void check_no_path(const std::string& text) {
  if (text.find_first_of("([=") != std::string::npos) return;
  if (std::error_code error; !std::filesystem::exists(text, error)) return;
  throw base::UserError(
      text, std::filesystem::is_directory(text)
                ? "a folder, and a workload is expected here; to continue a run, give its workload again"
                : fmt::format("a file, and a workload is expected here; give its text: \"$(cat {})\"", text));
}

}  // namespace

codegen::Workload workload_of(const std::string& text) {
  check_no_path(text);
  return codegen::parse_workload(text);
}

std::vector<codegen::Workload> workloads_of(const std::vector<std::string>& texts) {
  std::vector<codegen::Workload> all;
  for (const std::string& text : texts) {
    check_no_path(text);
    for (const codegen::Workload& workload : codegen::parse_workloads(text)) {
      if (std::find(all.begin(), all.end(), workload) != all.end())
        throw base::UserError(base::shortened(workload.text()), "this workload is given twice");
      all.push_back(workload);
    }
  }
  return all;
}

Request::Request(std::string_view command) {
  document_.set("command", std::string(command));
}

Request& Request::set(std::string key, base::Document value) {
  document_.set(std::move(key), std::move(value));
  return *this;
}

std::string Request::hash_of(const base::Document& request) {
  base::Document::Map fields = request.as_map();
  fields.sort([](const auto& a, const auto& b) { return a.first < b.first; });
  base::Document sorted = base::Document::map();
  for (const auto& [key, value] : fields) sorted.set(key, value);
  return base::to_hex(base::hash_bytes(sorted.to_json()));
}

tasks::MeasureSettings Timing::settings(double abort_factor, int threads) const {
  tasks::MeasureSettings settings;
  settings.repetitions = int(repetitions);
  settings.minimum_seconds = minimum_ms * 1e-3;
  settings.constants_bytes = std::int64_t(constants_mb * 1e6);
  settings.timeout_seconds = timeout;
  settings.abort_factor = abort_factor;
  settings.threads = threads;
  return settings;
}

}  // namespace graft::study
