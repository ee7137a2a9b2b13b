#include "study/flows/compile_network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands/compile.h"
#include "cli/print/compiled_network.h"

namespace graft::cli {

study::CompileFormat format_of(const std::string& name) {
  if (name == "library") return study::CompileFormat::library;
  if (name == "object") return study::CompileFormat::object;
  if (name == "bench") return study::CompileFormat::bench;
  throw base::UserError("--format", fmt::format("'{}' is neither library, object nor bench", name));
}

base::Document names_of(const std::map<std::string, std::string>& files) {
  base::Document list = base::Document::list();
  for (const auto& [name, content] : files) list.push(name);
  return list;
}

int compile_network(const CompileFlags& flags, Session& session) {
  if (flags.runs.size() > 1) throw base::UserError("compile", "one network at a time");
  if (!flags.functions.empty() || !flags.constants.empty() || flags.variants > 1)
    throw base::UserError("compile", "--function, --constants and --variants go with runs of single workloads");
  study::CompileNetworkRequest request;
  request.folder = flags.runs.front();
  request.format = format_of(flags.format);
  request.name = flags.name;  // "": as the model's file
  request.exported = flags.exported;
  request.seed = session.seed;
  if (flags.weights == "file")
    request.weights_in_file = true;
  else if (flags.weights != "code")
    throw base::UserError("--weights", fmt::format("'{}' is neither code nor file", flags.weights));
  const study::CompiledNetwork made = study::compile_network(request, session.progress);
  study::write_files(made.files, made.executable, flags.out);
  print(made, session.output);
  print_files(made.platform, made.files, flags.out, session.output);
  session.output.add(to_document(made));
  session.output.json().set("out", flags.out).set("files", names_of(made.files));
  return done;
}

}  // namespace graft::cli
