#include "study/flows/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/library.h"
#include "codegen/machine/link.h"
#include "codegen/schedule/candidate.h"
#include "search/run_directory.h"
#include "study/flows/code_runner.h"
#include "study/flows/constants.h"
#include "study/inputs/request.h"
#include "study/knowledge/answer.h"
#include "tasks/kinship.h"
#include "tasks/platform.h"
#include "tasks/remote.h"

namespace graft::study {
namespace {

constexpr std::chrono::minutes most_time{10};  // of one kernel's check; emulated ones take seconds
constexpr int bench_repetitions = 20;
constexpr double bench_seconds = 1e-3;  // of a repetition

// A run's workload: of a run of tune there is one.
codegen::Workload workload_of(const search::RunContent& run, const std::filesystem::path& path) {
  const base::Document* command = run.request.find("command");
  const base::Document* workload = run.request.find("workload");
  if (command == nullptr || workload == nullptr || command->as_string() != "tune")
    throw base::UserError(path.string(), "no run of graft tune; only these have a best program");
  return codegen::parse_workload(workload->as_string());
}

// What a function is made from.
struct Source {
  std::filesystem::path path;  // empty for a known one
  std::string place;           // for errors
  codegen::Workload workload;
  std::vector<Answer> answers;  // the fastest first
};

struct Sources {
  tasks::Platform platform;  // of all
  std::vector<Source> all;   // of distinct workloads
};

Sources sources_of(const CompileRequest& request) {
  std::optional<tasks::Platform> platform;
  std::vector<Source> sources;
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
    add({path, path.string(), workload, answers_of(run, workload, std::size_t(request.variants))},
        search::platform_of(run));
  }
  for (const Known& known : request.known) {
    const codegen::Workload& workload = known.answer.workload();
    add({{}, base::shortened(workload.text()), workload, {known.answer}}, known.platform);
  }
  if (!platform) throw base::UserError("compile", "nothing to compile; name a run of graft tune");
  for (const auto& [workload, name] : request.names) {
    if (!workloads.contains(workload))
      throw base::UserError("function names", fmt::format("{}: no run of this workload", base::shortened(workload)));
  }
  return {std::move(*platform), std::move(sources)};
}

// A function as code that has been checked.
struct CheckedFunction {
  codegen::LibraryFunction code;
  Compiled::Function made;
  const tasks::Expected* results = nullptr;             // until the next function is compiled
  std::vector<codegen::RunSettings::SelfCheck> checks;  // by variant
};

class Compiler {
 public:
  Compiler(const CompileRequest& request, const tasks::Platform& platform, base::Monitor& monitor)
      : request_(request),
        platform_(platform),
        runner_(runner_of(platform)),
        name_(codegen::identifier(request.name)),
        expected_(1, request.threads),
        monitor_(monitor) {}

  CheckedFunction compiled_function(const Source& source) {
    CheckedFunction out;
    const auto asked = request_.names.find(source.workload.text());
    out.code.name = asked != request_.names.end() ? asked->second : function_name(source.workload);
    out.code.workload = source.workload;
    out.made = {out.code.name, source.workload, source.path, {}, 0, 0, 0};
    const tasks::Expected& seeded = expected_.of(source.workload, monitor_);
    const bool brings_constants = !request_.constants.empty() && has_constants(seeded.computation);
    if (brings_constants) given_ = with_given_constants(seeded, out.code.name);
    out.results = brings_constants ? &given_ : &seeded;
    for (const Answer& answer : source.answers) add_variant(out, source, answer, brings_constants);
    if (out.made.variants.empty()) throw base::UserError(source.place, "no trial is ok; there is nothing to compile");
    for (const codegen::LibraryVariant& variant : out.code.variants) {
      const codegen::Signature& signature = variant.object.signature;
      out.made.prepared_bytes = std::max(out.made.prepared_bytes, signature.prepared_bytes);
      out.made.prepare_scratch_bytes = std::max(out.made.prepare_scratch_bytes, signature.prepare_scratch_bytes);
      out.made.scratch_bytes = std::max(out.made.scratch_bytes, signature.scratch_bytes);
    }
    return out;
  }

  // A library of what this compiler has made.
  codegen::Library library(std::vector<codegen::LibraryFunction> functions) const {
    return {name_, platform_.name, std::string(graft_version()), platform_.target, std::move(functions)};
  }

  // UserError for arrays that no function has taken.
  void check_constants_used() const {
    for (const auto& [name, array] : request_.constants) {
      if (!constants_used_.contains(name))
        throw base::UserError("constants", fmt::format("array '{}' is not a constant of these functions", name));
    }
  }

 private:
  tasks::Expected with_given_constants(const tasks::Expected& seeded, const std::string& function) {
    return {seeded.computation, codegen::reference(seeded.computation, operands_with(request_.constants, function,
                                                                                     seeded, constants_used_))};
  }

  // One more variant of the function; none where it is not the first and its results are wrong.
  void add_variant(CheckedFunction& out, const Source& source, const Answer& answer, bool brings_constants) {
    const codegen::Target& target = platform_.target;
    const auto failed = [&](const base::Reason& reason) {
      return base::Failure(fmt::format("{}: {}", source.place, reason.text));
    };
    auto lowered = codegen::program(answer.candidate, target);
    if (!lowered) throw failed(lowered.reason());
    WithConstants apart;
    if (brings_constants) apart = with_constants(*lowered, *out.results, monitor_);
    const std::string symbol = fmt::format("{}_{}_kernel{}", name_, out.code.name, out.code.variants.size());
    auto object = codegen::compile(brings_constants ? apart.program : *lowered, target,
                                   pipeline_named(answer.pipeline, target), symbol);
    if (!object) throw failed(object.reason());
    codegen::Interface::Variant origin{{}, answer.pipeline, answer.seconds(), runner_.check, runner_.reason};
    if (const auto steps = codegen::schedule(answer.candidate)) {
      for (const codegen::Step& step : *steps) origin.schedule.push_back(codegen::to_text(step));
    }
    std::string outputs;
    if (runner_.where) {
      const datasets::Measurement run =
          tasks::run_object(*runner_.where, *object, target, brings_constants ? apart.expected : *out.results, 0,
                            most_time, &monitor_, &outputs);
      if (run.status == datasets::Status::unsupported) {
        origin.check = "none", origin.unchecked = run.reason;
      } else if (run.status != datasets::Status::ok) {
        const std::string text =
            fmt::format("{}: trial {}: {}: {}", source.place, answer.trial, datasets::name_of(run.status), run.reason);
        if (out.made.variants.empty()) throw base::Failure(text);
        monitor_.note(text + "; left out");
        return;
      }
    }
    const std::string& name = out.code.name;
    out.checks.push_back({request_.variants > 1 ? fmt::format("{} (variant {})", name, out.checks.size()) : name,
                          base::hash_bytes(outputs)});
    out.made.variants.push_back({answer.trial, answer.pipeline, origin.seconds, origin.check, origin.unchecked});
    out.code.variants.push_back({std::move(object).value(), std::move(origin), std::move(apart.constants)});
  }

  const CompileRequest& request_;
  const tasks::Platform& platform_;
  const CodeRunner runner_;
  const std::string name_;  // of the library
  tasks::LatestExpected expected_;
  tasks::Expected given_;  // with the constants of the request, of the latest function
  std::set<std::string> constants_used_;
  base::Monitor& monitor_;
};

std::string self_checking_program(const CheckedFunction& function, const codegen::Target& target) {
  const Compiled::Variant& first = function.made.variants.front();
  if (first.check == "none")
    throw base::Failure(fmt::format("{}: a program that checks itself must run here once, but {}", function.code.name,
                                    first.unchecked));
  std::vector<const codegen::Object*> objects;
  for (const codegen::LibraryVariant& variant : function.code.variants) objects.push_back(&variant.object);
  auto executable =
      codegen::link_executable(objects, target, function.results->computation, function.results->reference,
                               {bench_repetitions, bench_seconds, 0, 0, function.checks});
  if (!executable) throw base::Failure(executable.reason().text);
  return std::move(executable).value();
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
  const Sources sources = sources_of(request);
  const bool checks_itself = request.format == CompileFormat::bench;
  if (!request.constants.empty() && checks_itself)
    throw base::UserError("constants", "a program that checks itself brings its own; give another format");
  Compiler compiler(request, sources.platform, monitor);
  Compiled out;
  out.platform = sources.platform.name;
  out.executable = checks_itself;
  std::vector<codegen::LibraryFunction> functions;
  for (const Source& source : sources.all) {
    base::check_stop(monitor);
    CheckedFunction function = compiler.compiled_function(source);
    if (checks_itself) out.files[function.code.name] = self_checking_program(function, sources.platform.target);
    out.functions.push_back(std::move(function.made));
    functions.push_back(std::move(function.code));
    monitor.progress("compiled and checked", std::int64_t(functions.size()), std::int64_t(sources.all.size()));
  }
  compiler.check_constants_used();
  if (!checks_itself) {
    out.files = codegen::library_files(compiler.library(std::move(functions)), request.format == CompileFormat::object
                                                                                   ? codegen::LibraryFormat::object
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
