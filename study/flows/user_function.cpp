#include "study/flows/user_function.h"

#include <fmt/format.h>

#include <chrono>
#include <regex>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/one_line.h"
#include "base/process.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/foreign_code.h"
#include "tasks/remote.h"

namespace graft::study {
namespace {

constexpr auto most_time = std::chrono::minutes(1);  // of the compiler, and of one call

// The function's result for operands on this machine, in a process of its own.
std::string run_here(const codegen::Foreign& foreign, const codegen::Computation& computation,
                     const std::vector<codegen::Elements>& operands) {
  const codegen::Target host = codegen::host_target();
  auto object = codegen::compile(foreign, host, "function");
  if (!object) throw base::Failure(fmt::format("{}: {}", foreign.function, object.reason().text));
  tasks::Expected alone;  // operands, and a result of which nothing is known
  for (std::size_t t = 0; t < operands.size(); ++t) {
    alone.computation.tensors.push_back(computation.tensors[t]);
    alone.reference.tensors.push_back(operands[t]);
    alone.reference.magnitude.emplace_back();
    alone.reference.reduction_length.push_back(0);
  }
  std::string result;
  const datasets::Measurement run =
      tasks::run_object(tasks::Remote{}, *object, host, alone, 0, most_time, nullptr, &result);
  if (run.status != datasets::Status::ok) throw base::Failure(fmt::format("{}: {}", foreign.function, run.reason));
  return result;
}

// LLVM's code of a file of C for any target, as that of graft's own functions is made (codegen/CMakeLists.txt).
std::string compiled(const std::string& file) {
  const std::vector<std::string> command = {"clang-19",
                                            "-target",
                                            "x86_64-unknown-linux-gnu",
                                            "-std=c11",
                                            "-O2",
                                            "-ffreestanding",
                                            "-fno-builtin",
                                            "-fno-vectorize",
                                            "-fno-slp-vectorize",
                                            "-ffp-contract=off",
                                            "-fno-asynchronous-unwind-tables",
                                            "-fno-stack-protector",
                                            "-fno-ident",
                                            "-S",
                                            "-emit-llvm",
                                            file,
                                            "-o",
                                            "-"};
  const base::Finished run = base::run_process(command, most_time);
  if (run.timed_out) throw base::UserError(file, "takes more than a minute to compile");
  if (run.exit_code != 0) throw base::UserError(file, "clang refuses it: " + base::one_line(run.err, 300));
  return run.out;
}

std::string without_target(const std::string& code) {
  static const std::regex machine("(target datalayout|target triple|source_filename) = [^\n]*\n"),
      processor("\"(target-cpu|target-features|tune-cpu)\"=\"[^\"]*\"");
  return std::regex_replace(std::regex_replace(code, machine, ""), processor, "");
}

void check(const std::string& code, const std::string& function, const std::string& file) {
  const std::regex definition("define [^@\n]*void @" + function + "\\(ptr[^,\n]*, ptr[^,\n]*\\)");
  if (!std::regex_search(code, definition))
    throw base::UserError(file,
                          fmt::format("has no function 'void {}(void* const* buffers, const int64_t* n)'", function));
  static const std::regex declaration("\ndeclare [^@\n]*@([A-Za-z_][A-Za-z_0-9]*)\\(");
  for (std::sregex_iterator each(code.begin(), code.end(), declaration), end; each != end; ++each)
    throw base::UserError(file,
                          fmt::format("calls '{}', which is not in it; a kernel has no library", (*each)[1].str()));
}

}  // namespace

graph::Functions read_functions(const std::vector<std::string>& texts) {
  graph::Functions all;
  for (const std::string& text : texts) {
    const std::size_t equal = text.find('='), colon = text.find(':', equal);
    static const std::regex name("[A-Za-z_][A-Za-z_0-9]*");
    const bool has_parts = equal != std::string::npos && equal > 0 && colon != std::string::npos;
    const std::string function = has_parts ? text.substr(equal + 1, colon - equal - 1) : "";
    if (!std::regex_match(function, name))
      throw base::UserError(fmt::format("'{}'", text), "is not of the form Operation=function:FILE.c");
    const std::string operation = text.substr(0, equal), file = text.substr(colon + 1);
    const std::string code = without_target(file.ends_with(".ll") ? base::read_file(file) : compiled(file));
    check(code, function, file);
    if (!all.emplace(operation, codegen::Foreign{function, {}, code, {}, run_here}).second)
      throw base::UserError(operation, "two functions are to compute it");
  }
  return all;
}

std::string origin_of(const codegen::Foreign& foreign) {
  return foreign.code.empty() ? "a function of graft" : fmt::format("function '{}' of its user", foreign.function);
}

base::Document to_document(const codegen::Foreign& foreign) {
  base::Document out = base::Document::map().set("function", foreign.function), numbers = base::Document::list(),
                 types = base::Document::list();
  for (const std::int64_t number : foreign.numbers) numbers.push(number);
  out.set("numbers", std::move(numbers));
  if (foreign.code.empty()) return out;
  for (const codegen::DType type : foreign.types) types.push(std::string(codegen::name_of(type)));
  return std::move(out).set("types", std::move(types)).set("code", foreign.code);
}

codegen::Foreign foreign_from(const base::Document& document) {
  codegen::Foreign foreign{document.at("function").as_string(), {}};
  for (const base::Document& number : document.at("numbers").as_list()) foreign.numbers.push_back(number.as_integer());
  const base::Document* const code = document.find("code");
  if (code == nullptr) return foreign;
  foreign.code = code->as_string();
  foreign.run = run_here;
  for (const base::Document& type : document.at("types").as_list()) {
    const auto known = codegen::dtype_of(type.as_string());
    if (!known) throw base::UserError(type.place(), fmt::format("'{}' is not a type", type.as_string()));
    foreign.types.push_back(*known);
  }
  return foreign;
}

}  // namespace graft::study
