#include "study/flows/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/text.h"
#include "codegen/machine/code.h"
#include "codegen/machine/library.h"
#include "codegen/machine/link.h"
#include "codegen/machine/needs.h"
#include "codegen/machine/opencl_library.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "search/run_directory.h"
#include "study/flows/constants.h"
#include "study/inputs/request.h"
#include "study/knowledge/answer.h"
#include "tasks/kinship.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"
#include "tasks/probe.h"
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

// What a function's variants for a platform are made from.
struct Source {
  std::filesystem::path path;  // empty for a known one
  std::string place;           // for errors
  codegen::Workload workload;
  std::size_t platform = 0;     // position in Sources::platforms
  std::vector<Answer> answers;  // the fastest first
};

struct Sources {
  std::vector<tasks::Platform> platforms;  // those that need the most first
  // By function: sources of one workload, in the order of the platforms.
  std::vector<std::vector<Source>> all;

  void add(Source source, const tasks::Platform& here) {
    const auto known = std::find_if(platforms.begin(), platforms.end(), [&](const tasks::Platform& platform) {
      return tasks::same_description(here, platform);
    });
    source.platform = std::size_t(known - platforms.begin());
    if (known == platforms.end()) platforms.push_back(here);
    const auto function = std::find_if(all.begin(), all.end(), [&](const std::vector<Source>& sources) {
      return sources.front().workload.text() == source.workload.text();
    });
    if (function == all.end()) return all.push_back({std::move(source)});
    for (const Source& other : *function)
      if (other.platform == source.platform)
        throw base::UserError(source.place, fmt::format("a second run of {}; give one of each workload",
                                                        base::shortened(source.workload.text())));
    function->push_back(std::move(source));
  }

  void order() {
    std::vector<std::size_t> places(platforms.size());
    std::iota(places.begin(), places.end(), std::size_t(0));
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
      return codegen::needs(platforms[a].target).size() > codegen::needs(platforms[b].target).size();
    });
    std::vector<tasks::Platform> ordered;
    std::vector<std::size_t> place_of(places.size());
    for (const std::size_t place : places) {
      place_of[place] = ordered.size();
      ordered.push_back(std::move(platforms[place]));
    }
    platforms = std::move(ordered);
    for (std::vector<Source>& sources : all) {
      for (Source& source : sources) source.platform = place_of[source.platform];
      std::sort(sources.begin(), sources.end(),
                [](const Source& a, const Source& b) { return a.platform < b.platform; });
    }
  }
};

Sources sources_of(const CompileRequest& request) {
  Sources sources;
  for (const std::filesystem::path& path : request.runs) {
    const search::RunContent run = search::read_run(path);
    const codegen::Workload workload = workload_of(run, path);
    sources.add({path, path.string(), workload, 0, answers_of(run, workload, std::size_t(request.variants))},
                search::platform_of(run));
  }
  for (const Known& known : request.known) {
    const codegen::Workload& workload = known.answer.workload();
    sources.add({{}, base::shortened(workload.text()), workload, 0, {known.answer}}, known.platform);
  }
  if (sources.all.empty()) throw base::UserError("compile", "nothing to compile; name a run of graft tune");
  for (const auto& [workload, name] : request.names) {
    if (std::none_of(sources.all.begin(), sources.all.end(),
                     [&](const auto& function) { return function.front().workload.text() == workload; }))
      throw base::UserError("function names", fmt::format("{}: no run of this workload", base::shortened(workload)));
  }
  sources.order();
  return sources;
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
  Compiler(const CompileRequest& request, const std::vector<tasks::Platform>& platforms, base::Monitor& monitor)
      : request_(request),
        platforms_(platforms),
        name_(codegen::identifier(request.name)),
        expected_(1, request.threads),
        monitor_(monitor) {
    for (const tasks::Platform& platform : platforms) runners_.push_back(platform.device->runner());
  }

  CheckedFunction compiled_function(const std::vector<Source>& sources) {
    const Source& first = sources.front();
    CheckedFunction out;
    const auto asked = request_.names.find(first.workload.text());
    out.code.name = asked != request_.names.end() ? asked->second : function_name(first.workload);
    out.code.workload = first.workload;
    out.made = {out.code.name, name_ + "_" + out.code.name, first.workload, first.path, {}, 0, 0, 0};
    const tasks::Expected& seeded = expected_.of(first.workload, monitor_);
    const bool brings_constants = !request_.constants.empty() && has_constants(seeded.computation);
    if (brings_constants) given_ = with_given_constants(seeded, out.code.name);
    out.results = brings_constants ? &given_ : &seeded;
    for (const Source& source : sources) {
      if (source.answers.empty()) throw base::UserError(source.place, "no trial is ok; there is nothing to compile");
      for (const Answer& answer : source.answers) add_variant(out, source, answer, brings_constants);
    }
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
    std::vector<codegen::LibraryPlatform> platforms;
    for (const tasks::Platform& platform : platforms_) platforms.push_back({platform.name, platform.target});
    return {name_, std::move(platforms), std::string(graft_version()), std::move(functions), request_.exported};
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
    const tasks::Platform& platform = platforms_[source.platform];
    const codegen::Target& target = platform.target;
    const tasks::CodeRunner& runner = runners_[source.platform];
    const auto failed = [&](const base::Reason& reason) {
      return base::Failure(fmt::format("{}: {}", source.place, reason.text));
    };
    auto lowered = codegen::program(answer.candidate, target);
    if (!lowered) throw failed(lowered.reason());
    WithConstants apart;
    if (brings_constants) apart = with_constants(*lowered, *out.results, monitor_);
    const std::string symbol = fmt::format("{}_{}_kernel{}", name_, out.code.name, out.code.variants.size());
    auto object = platform.device->code(brings_constants ? apart.program : *lowered, target, answer.pipeline, symbol);
    if (!object) throw failed(object.reason());
    codegen::Interface::Variant origin{{}, answer.pipeline, answer.seconds(), runner.check, runner.reason};
    if (const auto steps = codegen::schedule(answer.candidate)) {
      for (const codegen::Step& step : *steps) origin.schedule.push_back(codegen::to_text(step));
    }
    std::string outputs;
    if (object->form == codegen::CodeForm::opencl) {
      require_right(source, answer, platform);
      origin.check = "host", origin.unchecked.clear();
    }
    if (runner.where) {
      const datasets::Measurement run =
          tasks::run_object(*runner.where, *object, target, brings_constants ? apart.expected : *out.results, 0,
                            most_time, &monitor_, &outputs);
      if (run.status == datasets::Status::unsupported) {
        origin.check = "none", origin.unchecked = run.reason;
      } else if (run.status != datasets::Status::ok) {
        const std::string text =
            fmt::format("{}: trial {}: {}: {}", source.place, answer.trial, datasets::name_of(run.status), run.reason);
        if (&answer == &source.answers.front()) throw base::Failure(text);
        monitor_.note(text + "; left out");
        return;
      }
    }
    const std::string& name = out.code.name;
    out.checks.push_back({request_.variants > 1 ? fmt::format("{} (variant {})", name, out.checks.size()) : name,
                          base::hash_bytes(outputs)});
    out.made.variants.push_back(
        {platform.name, answer.source, answer.trial, answer.pipeline, origin.seconds, origin.check, origin.unchecked});
    out.code.variants.push_back(
        {std::move(object).value(), std::move(origin), std::move(apart.constants), int(source.platform)});
  }

  // Once more on a device that checks whatever it measures.
  void require_right(const Source& source, const Answer& answer, const tasks::Platform& platform) {
    tasks::MeasureSettings settings;
    settings.repetitions = 0;
    datasets::Measurement run;
    platform.device->measurer(platform, settings, nullptr)
        ->measure(
            std::span(&answer.candidate, 1), [&](const tasks::Measured& each) { run = each.measurement; }, monitor_);
    base::check_stop(monitor_);
    if (run.status != datasets::Status::ok)
      throw base::Failure(
          fmt::format("{}: trial {}: {}: {}", source.place, answer.trial, datasets::name_of(run.status), run.reason));
  }

  const CompileRequest& request_;
  const std::vector<tasks::Platform>& platforms_;
  std::vector<tasks::CodeRunner> runners_;  // by platform
  const std::string name_;                  // of the library
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
  std::vector<const codegen::Code*> objects;
  for (const codegen::LibraryVariant& variant : function.code.variants) objects.push_back(&variant.object);
  auto executable =
      codegen::link_executable(objects, target, function.results->computation, function.results->reference,
                               {bench_repetitions, bench_seconds, 0, 0, function.checks});
  if (!executable) throw base::Failure(executable.reason().text);
  return std::move(executable).value();
}

bool is_opencl(const tasks::Platform& platform) {
  return platform.device->source() == "opencl";
}

// What kernels of OpenCL cannot be, or be together with.
void check_opencl(const CompileRequest& request, const std::vector<tasks::Platform>& platforms) {
  if (platforms.size() > 1)
    throw base::UserError("compile", "kernels of OpenCL are for one platform; give runs of one");
  if (request.format != CompileFormat::library)
    throw base::UserError("format", "kernels of OpenCL are a library; its NAME_check.c is a program that checks it");
  if (request.variants > 1) throw base::UserError("variants", "kernels of OpenCL have one variant each");
  if (!request.constants.empty())
    throw base::UserError("constants", "kernels of OpenCL are passed their constants, which F_prepare takes");
}

}  // namespace

bool Compiled::several_variants() const {
  return std::any_of(functions.begin(), functions.end(),
                     [](const Function& function) { return function.variants.size() > 1; });
}

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

std::string library_name(const std::filesystem::path& folder) {
  // "lib/" and "." have names, too.
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  std::string name = codegen::identifier((whole.has_filename() ? whole : whole.parent_path()).filename().string());
  if (name.starts_with("lib")) name = name.size() == 3 ? "" : codegen::identifier(name.substr(3));
  return name.empty() ? "kernels" : name;
}

Compiled compile(const CompileRequest& request, base::Monitor& monitor) {
  const Sources sources = sources_of(request);
  const bool checks_itself = request.format == CompileFormat::bench;
  if (!request.constants.empty() && checks_itself)
    throw base::UserError("constants", "a program that checks itself brings its own; give another format");
  if (checks_itself && sources.platforms.size() > 1)
    throw base::UserError("compile", "a program that checks itself is for one platform; give runs of one");
  const bool opencl = std::any_of(sources.platforms.begin(), sources.platforms.end(), is_opencl);
  if (opencl) check_opencl(request, sources.platforms);
  Compiler compiler(request, sources.platforms, monitor);
  Compiled out;
  for (const tasks::Platform& platform : sources.platforms) {
    out.platform += (out.platform.empty() ? "" : ", ") + platform.name;
    tasks::note_emulated(platform, monitor);
  }
  out.executable = checks_itself;
  std::vector<codegen::LibraryFunction> functions;
  for (const std::vector<Source>& source : sources.all) {
    base::check_stop(monitor);
    CheckedFunction function = compiler.compiled_function(source);
    if (checks_itself)
      out.files[function.code.name] = self_checking_program(function, sources.platforms.front().target);
    out.functions.push_back(std::move(function.made));
    functions.push_back(std::move(function.code));
    monitor.progress("compiled and checked", std::int64_t(functions.size()), std::int64_t(sources.all.size()));
  }
  compiler.check_constants_used();
  if (opencl) {
    out.files = codegen::opencl_library_files(compiler.library(std::move(functions)));
  } else if (!checks_itself) {
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
