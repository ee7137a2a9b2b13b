#include "study/flows/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/compile.h"
#include "cli/print/compiled_network.h"
#include "cli/texts.h"
#include "study/flows/network.h"

namespace graft::cli {
namespace {

using Flags = CompileFlags;

study::CompileRequest request_of(const Flags& flags, const Session& session) {
  study::CompileRequest request;
  request.runs.assign(flags.runs.begin(), flags.runs.end());
  request.name = flags.name.empty() ? study::library_name(flags.out) : flags.name;
  request.exported = flags.exported;
  request.variants = flags.variants;
  request.threads = session.threads;
  if (!flags.constants.empty()) {
    request.constants = base::read_npz(flags.constants);
    if (request.constants.empty()) throw base::UserError(flags.constants, "no array in it");
  }
  request.format = format_of(flags.format);
  for (const std::string& each : flags.functions) {
    const std::size_t equals = each.rfind('=');
    if (equals == std::string::npos || equals < each.rfind(')') + 1)
      throw base::UserError("--function", fmt::format("'{}': expected WORKLOAD=NAME", each));
    request.names[codegen::parse_workload(each.substr(0, equals)).text()] = each.substr(equals + 1);
  }
  return request;
}

int compile(const Flags& flags, Session& session) {
  if (std::any_of(flags.runs.begin(), flags.runs.end(), study::is_network_folder))
    return compile_network(flags, session);
  for (const std::string& run : flags.runs) {
    if (!std::filesystem::exists(run)) throw base::UserError(run, "no such file or folder");
  }
  if (flags.weights != "code") throw base::UserError("--weights", "goes with a network");
  const study::Compiled made = study::compile(request_of(flags, session), session.progress);
  study::write_files(made.files, made.executable, flags.out);

  std::vector<std::string> head = {"function", "workload", "time", "results", "prepared", "scratch"};
  // The number of a variant, as in NAME_select; its platform.
  const bool several = made.several_variants();
  if (several) head.insert(head.begin() + 1, {"variant", "platform"});
  Table table(head);
  base::Document functions = base::Document::list();
  for (const study::Compiled::Function& function : made.functions) {
    base::Document variants = base::Document::list();
    for (const study::Compiled::Variant& variant : function.variants) {
      const bool checked = variant.check != "none";
      std::vector<std::string> cells = {
          made.executable ? function.name : function.symbol,
          function.workload.text(),
          time_text(variant.seconds, variant.source),
          checked ? fmt::format("right ({})", variant.check) : "not checked: " + variant.unchecked,
          fmt::format("{} bytes", function.prepared_bytes),
          fmt::format("{} bytes", function.scratch_bytes)};
      if (several)
        cells.insert(cells.begin() + 1, {std::to_string(&variant - function.variants.data()), variant.platform});
      table.row(std::move(cells));
      variants.push(base::Document::map()
                        .set("platform", variant.platform)
                        .set("trial", variant.trial)
                        .set("pipeline", variant.pipeline)
                        .set("seconds", variant.seconds)
                        .set("check", variant.check));
    }
    functions.push(base::Document::map()
                       .set("name", function.name)
                       .set("symbol", function.symbol)
                       .set("workload", function.workload.text())
                       .set("run", function.run.string())
                       .set("prepared_bytes", function.prepared_bytes)
                       .set("prepare_scratch_bytes", function.prepare_scratch_bytes)
                       .set("scratch_bytes", function.scratch_bytes)
                       .set("variants", std::move(variants)));
  }
  session.output.table(table);
  print_files(made.platform, made.files, flags.out, session.output);
  session.output.json()
      .set("platform", made.platform)
      .set("out", flags.out)
      .set("functions", std::move(functions))
      .set("files", names_of(made.files));
  return done;
}

}  // namespace

Command compile_command() {
  return {
      .name = "compile",
      .help = "the best programs of runs, or a network, as a library, an object or programs that check themselves",
      .examples = {"graft compile runs/c2 runs/c6 --out lib --name resnet",
                   "graft compile runs/mm --out lib --variants 5",
                   "graft compile runs/mm-avx2 runs/mm-avx512 --out lib --name mm",
                   "graft compile runs/c2 --out lib --function resnet18.C2=c2 --constants weights.npz",
                   "graft compile runs/c2 --out bin --format bench",
                   "graft compile runs/resnet18 --out lib --name resnet18 --weights file"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        options.positionals("RUN...", flags->runs,
                            "folders that graft tune made; those of one workload for several platforms become one "
                            "function, which runs the code for the platform that needs the most of those that run "
                            "where it is called; or the folder of a network");
        options.text("out", flags->out, "folder to write", Options::required);
        options.text("format", flags->format,
                     "library: an archive with a C header, for pkg-config and CMake; object: one relocatable "
                     "object with the header; bench: programs that check and time themselves");
        options.text(
            "name", flags->name,
            "of the library: libNAME.a, NAME.h, NAME.json; all that a program sees of it begins with NAME_. "
            "Default: as the folder without \"lib\" in front (kernels for one that is called lib), of a network as the "
            "model's file");
        options.flag("export", flags->exported,
                     "functions can be called from outside of a shared object that the library is linked into, "
                     "too; else they are hidden there");
        options.list("function", flags->functions,
                     "WORKLOAD=NAME,...: what functions are called (default: operator and extents)");
        options.integer("variants", flags->variants, 1,
                        "programs of each workload to put in, the fastest ones; FUNCTION_select keeps the one that "
                        "is fastest where it runs");
        options.text("constants", flags->constants,
                     "FILE.npz of numpy.savez with arrays 'FUNCTION/TENSOR': constants, such as weights, that become "
                     "part of the library, prepared");
        options.text("weights", flags->weights,
                     "of a network: code, which holds them as read-only data, or file: NAME.weights, which the "
                     "program maps and passes");
        return [flags](Session& session) { return compile(*flags, session); };
      },
      .stops = true};
}

}  // namespace graft::cli
