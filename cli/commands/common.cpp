#include "cli/commands/common.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "codegen/expression/suites.h"
#include "codegen/schedule/template.h"

namespace graft::cli {

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

base::Document context_of(const Session& session) {
  base::Document host = base::Document::map();
  utsname system{};
  host.set("cpu", host_cpu());
  if (::uname(&system) == 0)
    host.set("system", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  base::Document context = base::Document::map();
  context.set("graft", std::string(graft_version()))
      .set("date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))))
      .set("host", std::move(host))
      .set("command", session.command_line);
  return context;
}

std::string file_hash(const std::filesystem::path& path) {
  return base::to_hex(base::hash_bytes(base::read_file(path)));
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

std::string seconds_word(std::string_view source) {
  return source == "modelled" ? "modelled seconds" : "seconds";
}

void MeasureFlags::declare(Options& options) {
  options.integer("repetitions", repetitions, 1, "timed repetitions of each candidate");
  options.number("minimum-ms", minimum_ms, 1e-3, "least duration of a repetition, in milliseconds");
  options.number("timeout", timeout, 1e-3, "seconds for one candidate in all");
}

tasks::MeasureSettings MeasureFlags::settings(double abort_factor) const {
  if (repetitions > 64) throw base::UserError("--repetitions", fmt::format("must be at most 64, got {}", repetitions));
  tasks::MeasureSettings settings;
  settings.repetitions = int(repetitions);
  settings.minimum_seconds = minimum_ms * 1e-3;
  settings.timeout_seconds = timeout;
  settings.abort_factor = abort_factor;
  return settings;
}

void MeasureFlags::put(base::Document& request) const {
  request.set("repetitions", repetitions).set("minimum_ms", minimum_ms).set("timeout", timeout);
}

void SpaceFlag::declare(Options& options) {
  options.text("space", file, "file with sketches, domains and conditions (examples/matmul.space); default: by rule");
}

codegen::Space SpaceFlag::space(const codegen::Workload& workload, const codegen::Target& target) const {
  if (file.empty()) return codegen::derive_space(workload, target);
  codegen::Space space = codegen::parse_space(base::read_file(file), file, workload, target);
  base::Stream stream(0, "space");
  try {
    (void)space.sample(stream);
  } catch (const base::UserError& error) {
    throw base::UserError(file, error.what());
  }
  return space;
}

void SpaceFlag::put(base::Document& request) const {
  if (!file.empty()) request.set("space", file_hash(file));
}

std::vector<codegen::Workload> workloads_of(const std::vector<std::string>& texts) {
  std::vector<codegen::Workload> all;
  for (const std::string& text : texts) {
    for (const codegen::Workload& workload : codegen::parse_workloads(text)) {
      if (std::find(all.begin(), all.end(), workload) != all.end())
        throw base::UserError(workload.text, "this workload is given twice");
      all.push_back(workload);
    }
  }
  return all;
}

bool run_rounds(search::Tuning& tuning, std::int64_t trials, Progress& progress) {
  while (tuning.step(progress)) {
  }
  if (std::int64_t(tuning.trials().size()) >= trials) return true;
  if (progress.stop_requested()) return false;
  progress.note(fmt::format("the space has no more candidates after {} of {} trials", tuning.trials().size(), trials));
  return true;
}

base::Document status_counts(std::span<const datasets::Trial> trials) {
  std::map<datasets::Status, std::int64_t> counts;
  for (const datasets::Trial& trial : trials) ++counts[trial.measurement.status];
  base::Document out = base::Document::map();
  for (const auto& [status, count] : counts) out.set(std::string(datasets::name_of(status)), count);
  return out;
}

std::string status_line(const base::Document& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts.as_map()) parts.push_back(fmt::format("{} {}", count.as_integer(), name));
  return parts.empty() ? "none" : base::join(parts, ", ");
}

void check_output_folder(const std::filesystem::path& out) {
  const std::filesystem::path folder = out.has_parent_path() ? out.parent_path() : ".";
  if (!std::filesystem::is_directory(folder)) {
    throw base::UserError(
        "--out", fmt::format("{}: the folder {} does not exist; make it first", out.string(), folder.string()));
  }
  if (std::filesystem::is_directory(out))
    throw base::UserError("--out", fmt::format("{} is a folder; name a file", out.string()));
}

void check_model_kind(const std::string& model) {
  const std::vector<std::string> known{"mlp"};
  if (model != known[0])
    throw base::UserError("--model", fmt::format("unknown kind '{}'{}", model, base::did_you_mean(model, known)));
}

std::vector<std::int64_t> hidden_of(const std::vector<std::string>& words) {
  return integers_of("--hidden", words, 1);
}

void check_backend(const std::string& backend) {
  const std::vector<std::string> known{"native", "torch"};
  if (std::find(known.begin(), known.end(), backend) == known.end()) {
    throw base::UserError("--backend",
                          fmt::format("unknown backend '{}'{}", backend, base::did_you_mean(backend, known)));
  }
}

std::vector<datasets::Dataset> read_datasets(const std::vector<std::string>& files) {
  std::vector<datasets::Dataset> all;
  for (const std::string& file : files) all.push_back(datasets::read_dataset(file));
  return all;
}

base::Document schedule_document(const codegen::Candidate& candidate) {
  base::Document steps = base::Document::list();
  if (const auto schedule = codegen::schedule(candidate)) {
    for (const codegen::Step& step : *schedule) steps.push(codegen::to_text(step));
  }
  return steps;
}

}  // namespace graft::cli
