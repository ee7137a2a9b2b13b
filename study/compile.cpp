#include "study/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "base/duration.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/shortened.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/library.h"
#include "codegen/machine/link.h"
#include "codegen/schedule/candidate.h"
#include "search/run_directory.h"
#include "study/answer.h"
#include "study/constants.h"
#include "tasks/kinship.h"
#include "tasks/platform.h"
#include "tasks/remote.h"

namespace graft::study {
namespace {

constexpr std::chrono::minutes most_time{10};  // of one kernel's check; emulated ones take seconds
constexpr int bench_repetitions = 20;
constexpr double bench_seconds = 1e-3;  // of a repetition

// How this machine can run code of the platform, or why it cannot.
struct Runner {
  std::optional<tasks::Remote> where;
  std::string check, reason;
};

Runner runner_of(const tasks::Platform& platform) {
  if (std::holds_alternative<tasks::Native>(platform.how)) return {tasks::Remote{}, "host", ""};
  if (const auto* remote = std::get_if<tasks::Remote>(&platform.how))
    return {*remote, remote->is_emulated() ? "qemu" : "remote", ""};
  const std::vector<std::string>& qemu = std::get<tasks::Modelled>(platform.how).profile.qemu;
  if (qemu.empty()) return {{}, "none", "the platform names no qemu"};
  try {
    if (base::run_process({qemu[0], "--version"}, std::chrono::seconds(10)).exit_code == 0) {
      tasks::Remote remote;
      remote.prefix = qemu;
      return {remote, "qemu", ""};
    }
  } catch (const base::Failure&) {
  }
  return {{}, "none", fmt::format("'{}' does not start; install qemu-user", qemu[0])};
}

search::Build build_of(const Answer& answer) {
  return {{answer.trial, answer.candidate, answer.program_hash, answer.measurement}, answer.pipeline};
}

// The builds of a workload's distinct programs, the fastest ones first: what the run answers, then others that it
// built, then trials; none that a check refuted.
std::vector<search::Build> fastest_builds(const search::RunContent& run, const codegen::Workload& workload,
                                          std::size_t most) {
  std::vector<search::Build> found;
  std::set<std::uint64_t> taken;
  for (const search::Build& build : run.builds) {
    if (build.pipeline.empty() && build.trial.measurement.status != datasets::Status::ok)
      taken.insert(build.trial.program_hash);
  }
  const auto take = [&](search::Build build) {
    if (found.size() < most && taken.insert(build.trial.program_hash).second) found.push_back(std::move(build));
  };
  if (auto best = answer_of(run, workload)) take(build_of(*best));
  std::vector<search::Build> builds;
  for (const search::Build& build : run.builds) {
    if (build.trial.measurement.status == datasets::Status::ok && build.trial.candidate.workload == workload)
      builds.push_back(build);
  }
  std::stable_sort(builds.begin(), builds.end(), [](const search::Build& a, const search::Build& b) {
    return datasets::seconds_of(a.trial.measurement) < datasets::seconds_of(b.trial.measurement);
  });
  for (search::Build& build : builds) take(std::move(build));
  for (datasets::Trial& trial : search::best_trials(run.journal.trials, workload, 2 * most))
    take({std::move(trial), ""});
  return found;
}

// A run's workload: of a run of tune there is one.
codegen::Workload workload_of(const search::RunContent& run, const std::filesystem::path& path) {
  const base::Document* command = run.request.find("command");
  const base::Document* workload = run.request.find("workload");
  if (command == nullptr || workload == nullptr || command->as_string() != "tune")
    throw base::UserError(path.string(), "no run of graft tune; only these have a best program");
  return codegen::parse_workload(workload->as_string());
}

std::string description_of(const search::Build& build, const Compiled::Variant& variant, std::string_view platform) {
  std::string text;
  const auto steps = codegen::schedule(build.trial.candidate);
  if (steps) {
    for (const codegen::Step& step : *steps) text += codegen::to_text(step) + "\n";
  }
  return text +
         fmt::format("{} on {}; results {}\n", base::seconds_text(variant.seconds), platform,
                     variant.check == "none" ? "not checked: " + variant.unchecked : "checked (" + variant.check + ")");
}

}  // namespace

std::string function_name(const codegen::Workload& workload) {
  const std::string& text = workload.text();
  const std::size_t open = text.find('(');
  const auto& known = codegen::operators();
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const codegen::Operator& each) { return each.name == text.substr(0, open); });
  if (open == std::string::npos || found == known.end())
    return "kernel_" + base::to_hex(codegen::hash(workload)).substr(0, 8);
  std::string name = found->name;
  for (const std::string_view word :
       base::split(std::string_view(text).substr(open + 1, text.size() - open - 2), ',')) {
    const auto parameter =
        std::find_if(found->parameters.begin(), found->parameters.end(), [&](const codegen::Operator::Parameter& each) {
          return each.has_default && word == fmt::format("{}={}", each.name, each.value);
        });
    if (parameter != found->parameters.end() || word == "dtype=f32") continue;
    std::string part(word);
    std::erase(part, '=');
    name += "_" + part;
  }
  return codegen::identifier(name);
}

Compiled compile(const CompileRequest& request, base::Monitor& monitor) {
  struct Source {
    std::filesystem::path path;
    std::string place;
    codegen::Workload workload;
    std::vector<search::Build> builds;
  };
  std::vector<Source> sources;
  std::optional<tasks::Platform> platform;
  std::set<std::string> workloads;
  const auto add = [&](Source source, tasks::Platform here) {
    if (!workloads.insert(source.workload.text()).second)
      throw base::UserError(source.place, fmt::format("a second run of {}; give one of each workload",
                                                      base::shortened(source.workload.text())));
    if (platform && !tasks::same_description(here, *platform))
      throw base::UserError(source.place, fmt::format("a run on {}, the ones before are on {}; a library is for one "
                                                      "platform",
                                                      here.name, platform->name));
    platform = std::move(here);
    sources.push_back(std::move(source));
  };
  for (const std::filesystem::path& path : request.runs) {
    const search::RunContent run = search::read_run(path);
    const codegen::Workload workload = workload_of(run, path);
    add({path, path.string(), workload, fastest_builds(run, workload, std::size_t(request.variants))},
        search::platform_of(run));
  }
  for (const Known& known : request.known) {
    const codegen::Workload& workload = known.answer.workload();
    add({{}, base::shortened(workload.text()), workload, {build_of(known.answer)}}, known.platform);
  }
  if (!platform) throw base::UserError("compile", "nothing to compile; name a run of graft tune");
  for (const auto& [workload, name] : request.names) {
    if (!workloads.contains(workload))
      throw base::UserError("function names", fmt::format("{}: no run of this workload", base::shortened(workload)));
  }

  if (!request.constants.empty() && request.format == CompileFormat::bench)
    throw base::UserError("constants", "a program that checks itself brings its own; give another format");

  const Runner runner = runner_of(*platform);
  const codegen::Target& target = platform->target;
  Compiled out;
  out.platform = platform->name;
  out.executable = request.format == CompileFormat::bench;
  codegen::Library library{codegen::identifier(request.name), platform->name, target, {}};
  tasks::LatestExpected expected(1, request.threads);
  std::int64_t done = 0;
  std::set<std::string> constants_used;
  for (const Source& source : sources) {
    base::check_stop(monitor);
    codegen::LibraryFunction function;
    function.workload = source.workload;
    const auto asked = request.names.find(source.workload.text());
    function.name = asked != request.names.end() ? asked->second : function_name(source.workload);
    Compiled::Function made{function.name, source.workload, source.path, {}, 0};
    std::vector<codegen::RunSettings::SelfCheck> checks;
    const tasks::Expected& seeded = expected.of(source.workload, monitor);
    const bool brings_constants = !request.constants.empty() && has_constants(seeded.computation);
    tasks::Expected given;  // with the request's constants
    if (brings_constants)
      given = {seeded.computation,
               codegen::reference(seeded.computation,
                                  operands_with(request.constants, function.name, seeded, constants_used))};
    const tasks::Expected& results = brings_constants ? given : seeded;
    for (const search::Build& build : source.builds) {
      auto lowered = codegen::program(build.trial.candidate, target);
      if (!lowered) throw base::Failure(fmt::format("{}: {}", source.place, lowered.reason().text));
      WithConstants apart;
      if (brings_constants) apart = with_constants(*lowered, results, monitor);
      const codegen::LoopProgram& program = brings_constants ? apart.program : *lowered;
      const std::string symbol = fmt::format("{}_{}_kernel{}", library.name, function.name, function.variants.size());
      auto object = codegen::compile(program, target, pipeline_named(build.pipeline, target), symbol);
      if (!object) throw base::Failure(fmt::format("{}: {}", source.place, object.reason().text));
      Compiled::Variant variant{build.trial.index, build.pipeline, datasets::seconds_of(build.trial.measurement),
                                runner.check, runner.reason};
      std::string outputs;
      if (runner.where) {
        const datasets::Measurement run =
            tasks::run_object(*runner.where, *object, target, brings_constants ? apart.expected : results, 0, most_time,
                              &monitor, &outputs);
        if (run.status == datasets::Status::unsupported) {
          variant.check = "none", variant.unchecked = run.reason;
        } else if (run.status != datasets::Status::ok) {
          const std::string text = fmt::format("{}: trial {}: {}: {}", source.place, build.trial.index,
                                               datasets::name_of(run.status), run.reason);
          if (made.variants.empty()) throw base::Failure(text);
          monitor.note(text + "; left out");
          continue;
        }
      }
      checks.push_back(
          {request.variants > 1 ? fmt::format("{} (variant {})", function.name, checks.size()) : function.name,
           base::hash_bytes(outputs)});
      function.variants.push_back({std::move(object).value(), !program.prepare.empty(),
                                   description_of(build, variant, platform->name), std::move(apart.constants)});
      made.variants.push_back(std::move(variant));
    }
    if (made.variants.empty()) throw base::UserError(source.place, "no trial is ok; there is nothing to compile");
    for (const codegen::LibraryVariant& variant : function.variants)
      made.workspace_bytes = std::max(made.workspace_bytes, variant.object.signature.workspace_bytes);
    if (request.format == CompileFormat::bench) {
      if (made.variants.front().check == "none")
        throw base::Failure(fmt::format("{}: a program that checks itself must run here once, but {}", function.name,
                                        made.variants.front().unchecked));
      codegen::RunSettings settings{bench_repetitions, bench_seconds, 0, 0, std::move(checks)};
      std::vector<const codegen::Object*> objects;
      for (const codegen::LibraryVariant& variant : function.variants) objects.push_back(&variant.object);
      auto executable = codegen::link_executable(objects, target, results.computation, results.reference, settings);
      if (!executable) throw base::Failure(executable.reason().text);
      out.files[function.name] = std::move(executable).value();
    }
    out.functions.push_back(std::move(made));
    library.functions.push_back(std::move(function));
    monitor.progress("compiled and checked", ++done, std::int64_t(sources.size()));
  }
  for (const auto& [name, array] : request.constants) {
    if (!constants_used.contains(name))
      throw base::UserError("constants", fmt::format("array '{}' is not a constant of these functions", name));
  }
  if (request.format != CompileFormat::bench) {
    out.files =
        codegen::library_files(library, request.format == CompileFormat::object ? codegen::LibraryFormat::object
                                                                                : codegen::LibraryFormat::library);
  }
  return out;
}

void write_files(const std::map<std::string, std::string>& files, bool executable,
                 const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw base::Failure(fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  for (const auto& [name, content] : files) {
    base::replace_file(folder / name, content);
    if (executable) ::chmod((folder / name).c_str(), 0755);
  }
}

}  // namespace graft::study
