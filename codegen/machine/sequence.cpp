#include "codegen/machine/sequence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <set>
#include <string_view>
#include <utility>

#include "base/memory.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/c_names.h"
#include "codegen/machine/fatal.h"
#include "codegen/machine/harness.h"
#include "codegen/machine/homes.h"
#include "codegen/machine/interface.h"
#include "codegen/machine/library_text.h"
#include "codegen/machine/needs.h"
#include "codegen/machine/object_file.h"
#include "codegen/machine/system_calls.h"

namespace graft::codegen {
namespace {

using Place = Sequence::Place;
using Where = Sequence::Where;
using Kind = Interface::Argument::Kind;

constexpr std::string_view where_names[] = {"input", "output", "arena", "weights"};

[[noreturn]] void fail(const Sequence& sequence, std::string_view what) {
  throw base::Failure(fmt::format("sequence {}: {}", sequence.name, what));
}

// The bytes that a place is in.
std::int64_t bytes_around(const Sequence& sequence, const Place& place) {
  const auto of = [&](const std::vector<Sequence::Tensor>& tensors) {
    const bool known = place.number >= 0 && std::size_t(place.number) < tensors.size();
    return known ? tensors[std::size_t(place.number)].bytes() : std::int64_t(-1);
  };
  switch (place.where) {
    case Where::input:
      return of(sequence.inputs);
    case Where::output:
      return of(sequence.outputs);
    case Where::arena:
      return sequence.arena_bytes;
    case Where::weights:
      return std::int64_t(sequence.weights.size());
  }
  return -1;
}

// What is wrong with a place for a number of bytes; "": nothing.
std::string wrong_with(const Sequence& sequence, const Place& place, std::int64_t bytes) {
  const std::string_view where = where_names[std::size_t(place.where)];
  const std::int64_t around = bytes_around(sequence, place);
  if (around < 0) return fmt::format("there is no {} {}", where, place.number);
  if (place.offset % alignment_bytes != 0) return fmt::format("offset {} is not aligned", place.offset);
  if (place.offset < 0 || place.offset > around || bytes > around - place.offset)
    return fmt::format("{} bytes from {} on are outside of the {}, which has {}", bytes, place.offset, where, around);
  return "";
}

std::string wrong_with(const Sequence& sequence, const Sequence::Call& call) {
  if (call.kernel < 0 || std::size_t(call.kernel) >= sequence.kernels.size())
    return fmt::format("there is no kernel {}", call.kernel);
  const Signature& signature = sequence.kernels[std::size_t(call.kernel)].signature;
  if (call.buffers.size() != signature.parameters.size())
    return fmt::format("{} buffers for {} parameters", call.buffers.size(), signature.parameters.size());
  for (std::size_t p = 0; p < call.buffers.size(); ++p) {
    const Parameter& parameter = signature.parameters[p];
    const std::optional<Place>& place = call.buffers[p];
    std::string wrong;
    if (!place) {
      if (!parameter.only_prepared) wrong = "has no place";
    } else {
      const bool constant = place->where == Where::input || place->where == Where::weights;
      if (constant && parameter.role == Role::output) wrong = "is written, but its place is constant";
      if (wrong.empty()) wrong = wrong_with(sequence, *place, parameter.bytes);
    }
    if (!wrong.empty()) return fmt::format("{}: {}", parameter.name, wrong);
  }
  for (const auto& [what, place, bytes, where] :
       {std::tuple("prepared", call.prepared, signature.prepared_bytes, Where::weights),
        std::tuple("scratch", call.scratch, signature.scratch_bytes, Where::arena)}) {
    std::string wrong;
    if (!place) {
      if (bytes > 0) wrong = "has no place";
    } else if (place->where != where) {
      wrong = fmt::format("is not in the {}", where_names[std::size_t(where)]);
    } else {
      wrong = wrong_with(sequence, *place, bytes);
    }
    if (!wrong.empty()) return fmt::format("{}: {}", what, wrong);
  }
  return "";
}

// Throws what sequence_files promises.
void check(const Sequence& sequence) {
  check_header_name("network name", sequence.name);
  std::set<std::string> symbols;
  for (const Code& kernel : sequence.kernels) {
    if (!kernel.symbol.starts_with(sequence.name + "_"))
      fail(sequence, fmt::format("kernel {}: its symbol does not begin with {}_", kernel.symbol, sequence.name));
    if (!symbols.insert(kernel.symbol).second) fail(sequence, fmt::format("kernel {}: occurs twice", kernel.symbol));
  }
  std::vector<bool> written(sequence.outputs.size());
  for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
    const Sequence::Call& call = sequence.calls[c];
    const std::string wrong = wrong_with(sequence, call);
    if (!wrong.empty()) fail(sequence, fmt::format("call {} ({}): {}", c, call.label, wrong));
    const Signature& signature = sequence.kernels[std::size_t(call.kernel)].signature;
    for (std::size_t p = 0; p < call.buffers.size(); ++p)
      if (signature.parameters[p].role == Role::output && call.buffers[p]->where == Where::output)
        written[std::size_t(call.buffers[p]->number)] = true;
  }
  for (std::size_t o = 0; o < written.size(); ++o)
    if (!written[o] && sequence.outputs[o].bytes() > 0) fail(sequence, fmt::format("output {}: no call writes it", o));
}

// ---- code

// Functions and data of this module that others see, by what they are made for.
enum class Form { library, kernel };

// The weights, where they are part of the code.
std::string weights_symbol(const Sequence& sequence) {
  return sequence.name + "_weights";
}

// How code names a place: %tensors, %weights and %arena are the function's. Two instructions at most.
std::string address_text(const Sequence& sequence, const std::optional<Place>& place, const std::string& name) {
  if (!place) return fmt::format("  {} = getelementptr i8, ptr null, i64 0\n", name);
  std::string text, base = place->where == Where::weights ? "%weights" : "%arena";
  if (place->where == Where::input || place->where == Where::output) {
    const std::size_t tensor =
        std::size_t(place->number) + (place->where == Where::output ? sequence.inputs.size() : 0);
    base = name + ".tensor";
    text = fmt::format("  {0}.at = getelementptr ptr, ptr %tensors, i64 {1}\n  {0}.tensor = load ptr, ptr {0}.at\n",
                       name, tensor);
  }
  return text + fmt::format("  {} = getelementptr i8, ptr {}, i64 {}\n", name, base, place->offset);
}

constexpr std::string_view kernel_arguments = "ptr %tensors, ptr %weights, ptr %arena, ptr %for, ptr %context";

std::string call_text(const Sequence& sequence, std::size_t c) {
  const Sequence::Call& call = sequence.calls[c];
  std::string text =
      fmt::format("define internal void @{}_call{}({}) noinline nounwind {{\n", sequence.name, c, kernel_arguments);
  text += fmt::format("  %list = alloca [{} x ptr], align 16\n", call.buffers.size());
  for (std::size_t p = 0; p < call.buffers.size(); ++p)
    text += address_text(sequence, call.buffers[p], fmt::format("%p{}", p)) +
            fmt::format("  %list{0} = getelementptr ptr, ptr %list, i64 {0}\n  store ptr %p{0}, ptr %list{0}\n", p);
  text += address_text(sequence, call.prepared, "%prepared") + address_text(sequence, call.scratch, "%scratch");
  return text + fmt::format(
                    "  call void @{}_run(ptr %list, ptr %prepared, ptr %scratch, ptr %for, ptr %context)\n  ret "
                    "void\n}}\n",
                    sequence.kernels[std::size_t(call.kernel)].symbol);
}

std::string calls_text(const Sequence& sequence) {
  std::string text;
  for (const Code& kernel : sequence.kernels)
    text += fmt::format("declare hidden void @{}_run(ptr, ptr, ptr, ptr, ptr)\n", kernel.symbol);
  for (std::size_t c = 0; c < sequence.calls.size(); ++c) text += call_text(sequence, c);
  text += fmt::format("define internal void @{}_all({}) nounwind {{\n", sequence.name, kernel_arguments);
  for (std::size_t c = 0; c < sequence.calls.size(); ++c)
    text += fmt::format("  call void @{}_call{}({})\n", sequence.name, c, kernel_arguments);
  return text + "  ret void\n}\n";
}

std::string kernel_text(const Sequence& sequence) {
  std::vector<std::string> calls;
  for (std::size_t c = 0; c < sequence.calls.size(); ++c)
    calls.push_back(fmt::format("ptr @{}_call{}", sequence.name, c));
  return fmt::format(
      "define void @{0}_prepare(ptr %tensors, ptr %weights, ptr %arena) nounwind {{\n  ret void\n}}\n"
      "define void @{0}_run({1}) nounwind {{\n  call void @{0}_all({1})\n  ret void\n}}\n"
      "@{0}_calls = constant [{2} x ptr] [{3}]\n",
      sequence.name, kernel_arguments, calls.size(), fmt::join(calls, ", "));
}

// The C function of the header.
std::string function_text(const Sequence& sequence, const SequenceInterface& interface) {
  const std::size_t tensors = interface.tensors.size();
  std::vector<std::string> arguments;
  std::string body = fmt::format("  %tensors = alloca [{} x ptr], align 16\n", tensors);
  std::string weights = "null";
  for (const Interface::Argument& argument : interface.run.arguments) {
    switch (argument.kind) {
      case Kind::tensor:
        arguments.push_back(fmt::format("ptr %t{}", argument.tensor));
        body += fmt::format("  %at{0} = getelementptr ptr, ptr %tensors, i64 {0}\n  store ptr %t{0}, ptr %at{0}\n",
                            argument.tensor);
        break;
      case Kind::weights:
        arguments.emplace_back("ptr %weights");
        weights = "%weights";
        break;
      case Kind::arena:
        arguments.emplace_back("ptr %arena");
        break;
      case Kind::parallel_for:
        arguments.emplace_back("ptr %given");
        break;
      case Kind::context:
        arguments.emplace_back("ptr %context");
        break;
      case Kind::prepared:
      case Kind::scratch:
      case Kind::budget_ns:  // of kernels
        assert(false);
    }
  }
  std::string text = serial_for_text();
  if (interface.weights_are_in_code()) {
    weights = "@" + weights_symbol(sequence);
    text += fmt::format("{} = external hidden constant [{} x i8], align 64\n", weights, interface.weights_bytes);
  }
  if (const auto calls = system_calls(sequence.target)) text += system_text(*calls);
  text += machine_text({sequence.target}) + runs_here_text(interface.runs_here);
  return text + fmt::format(
                    "define void @{0}({1}) nounwind {{\n{2}  %none = icmp eq ptr %given, null\n"
                    "  %for = select i1 %none, ptr @graft.serial_for, ptr %given\n"
                    "  call void @{3}_all(ptr %tensors, ptr {4}, ptr %arena, ptr %for, ptr %context)\n  ret void\n}}\n",
                    interface.run.symbol, fmt::join(arguments, ", "), body, sequence.name, weights);
}

base::Result<std::string> code_around(const Sequence& sequence, const std::string& faces) {
  const Pipeline pipeline{"sequence", "", "", 1, {}};
  return guarded(sequence.target,
                 [&] { return code_of_text(calls_text(sequence) + faces, least_target(sequence.target), pipeline); });
}

// ---- what callers must know

Interface::Tensor described(const Sequence::Tensor& tensor, Role role) {
  Interface::Tensor all{tensor.name, "", role, tensor.dtype, tensor.shape, tensor.shape, {}};
  all.declared = tensor.declared;
  return all;
}

SequenceInterface interface_of(const Sequence& sequence, WeightsIn weights) {
  SequenceInterface all;
  all.name = sequence.name, all.platform = sequence.platform, all.graft = sequence.graft;
  all.calls = std::int64_t(sequence.calls.size());
  all.arena_bytes = sequence.arena_bytes;
  all.weights_bytes = std::int64_t(sequence.weights.size());
  if (weights == WeightsIn::file && all.weights_bytes > 0) all.weights_file = sequence.name + ".weights";
  for (const Sequence::Tensor& tensor : sequence.inputs) all.tensors.push_back(described(tensor, Role::input));
  for (const Sequence::Tensor& tensor : sequence.outputs) all.tensors.push_back(described(tensor, Role::output));
  all.run.symbol = sequence.name + "_run";
  all.runs_here = sequence.name + "_runs_here";
  all.needs = needs(sequence.target);
  for (std::size_t t = 0; t < all.tensors.size(); ++t) all.run.arguments.push_back({Kind::tensor, int(t)});
  if (!all.weights_file.empty()) all.run.arguments.push_back({Kind::weights});
  for (const Kind kind : {Kind::arena, Kind::parallel_for, Kind::context}) all.run.arguments.push_back({kind});
  CNames names;
  names.reserve(all.run.symbol);
  names.reserve(all.runs_here);
  all.guard = names.take(upper_case(all.name) + "_H");
  all.arena_macro = names.take(upper_case(all.name) + "_ARENA_BYTES");
  all.weights_macro = names.take(upper_case(all.name) + "_WEIGHTS_BYTES");
  for (const char* own : {"weights", "arena", "parallel_for", "context"}) names.reserve(own);
  for (Interface::Tensor& tensor : all.tensors) {
    tensor.argument = names.take(identifier(tensor.name));
  }
  return all;
}

std::int64_t threads_of(const Sequence& sequence) {
  std::int64_t threads = 1;
  for (const Code& kernel : sequence.kernels) threads = std::max(threads, kernel.signature.threads);
  return threads;
}

base::Document place_document(const std::optional<Place>& place) {
  if (!place) return {};
  base::Document document = base::Document::map();
  document.set("in", std::string(where_names[std::size_t(place->where)]));
  if (place->where == Where::input || place->where == Where::output) document.set("number", place->number);
  return std::move(document).set("offset", place->offset);
}

base::Document call_document(const Sequence& sequence, const Sequence::Call& call) {
  const Code& kernel = sequence.kernels[std::size_t(call.kernel)];
  base::Document buffers = base::Document::list();
  for (std::size_t p = 0; p < call.buffers.size(); ++p) {
    const Parameter& parameter = kernel.signature.parameters[p];
    buffers.push(base::Document::map()
                     .set("parameter", parameter.name)
                     .set("role", std::string(name_of(parameter.role)))
                     .set("bytes", parameter.bytes)
                     .set("place", place_document(call.buffers[p])));
  }
  return base::Document::map()
      .set("label", call.label)
      .set("kernel", kernel.symbol)
      .set("buffers", std::move(buffers))
      .set("prepared", place_document(call.prepared))
      .set("scratch", place_document(call.scratch));
}

base::Document sequence_document(const Sequence& sequence, const SequenceInterface& interface,
                                 const std::string& code) {
  base::Document inputs = base::Document::list(), outputs = base::Document::list(), arguments = base::Document::list(),
                 calls = base::Document::list();
  for (const Interface::Tensor& tensor : interface.tensors)
    (tensor.role == Role::output ? outputs : inputs)
        .push(base::Document::map()
                  .set("name", tensor.name)
                  .set("argument", tensor.argument)
                  .set("dtype", std::string(name_of(tensor.dtype)))
                  .set("shape", to_document(tensor.shape))
                  .set("alignment", parameter_alignment_bytes)
                  .set("bytes", tensor.bytes()));
  for (const Interface::Argument& argument : interface.run.arguments) {
    base::Document document = base::Document::map().set("kind", std::string(name_of(argument.kind)));
    if (argument.kind == Kind::tensor)
      document.set("argument", interface.tensors[std::size_t(argument.tensor)].argument);
    arguments.push(std::move(document));
  }
  for (const Sequence::Call& call : sequence.calls) calls.push(call_document(sequence, call));
  return base::Document::map()
      .set("schema", 1)
      .set("kind", "sequence")
      .set("graft", sequence.graft)
      .set("name", sequence.name)
      .set("platform", sequence.platform)
      .set("target", to_document(sequence.target))
      .set("needs", to_document(interface.needs))
      .set("runs_here", interface.runs_here)
      .set("code", code)
      .set("header", sequence.name + ".h")
      .set("alignment", alignment_bytes)
      .set("inputs", std::move(inputs))
      .set("outputs", std::move(outputs))
      .set("arena_bytes", interface.arena_bytes)
      .set("weights_bytes", interface.weights_bytes)
      .set("weights", interface.weights_file.empty() ? base::Document() : base::Document(interface.weights_file))
      .set("threads", threads_of(sequence))
      .set("run", base::Document::map().set("symbol", interface.run.symbol).set("arguments", std::move(arguments)))
      .set("calls", std::move(calls));
}

}  // namespace

std::int64_t Sequence::Tensor::bytes() const {
  std::int64_t bytes = bytes_of(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
}

std::map<std::string, std::string> sequence_files(Sequence sequence, LibraryFormat format, WeightsIn weights) {
  check(sequence);
  const SequenceInterface interface = interface_of(sequence, weights);
  // Code addresses its data by 32 bits with a sign, and others' code is in the same program.
  constexpr std::int64_t most_bytes = std::int64_t(1) << 30;
  if (interface.weights_are_in_code() && interface.weights_bytes > most_bytes)
    throw base::UserError(sequence.name,
                          fmt::format("its weights take {}, code can hold {}; put them in a file",
                                      base::bytes_text(interface.weights_bytes), base::bytes_text(most_bytes)));
  auto around = code_around(sequence, function_text(sequence, interface));
  if (!around) throw base::Failure("sequence: " + around.reason().text);
  std::vector<std::string> parts = {sequence.exported ? std::move(around).value() : hidden(std::move(around).value())};
  for (const Code& kernel : sequence.kernels) parts.push_back(hidden(kernel.bytes));
  std::vector<Pieces> objects(parts.begin(), parts.end());
  DataObject data;
  if (interface.weights_are_in_code()) {
    data = data_object(parts.front(), weights_symbol(sequence), interface.weights_bytes);
    objects.push_back(Pieces({data.before, sequence.weights, data.after}));
  }
  auto linked = link_relocatable(objects);
  if (!linked) throw base::Failure(linked.reason().text);

  const std::string& name = sequence.name;
  const std::string code = format == LibraryFormat::object ? name + ".o" : fmt::format("lib{}.a", name);
  const std::int64_t threads = threads_of(sequence);
  std::map<std::string, std::string> files;
  add_headers(name, header_text(interface), threads, files);
  files[name + ".json"] = sequence_document(sequence, interface, code).to_pretty_json() + "\n";
  if (!interface.weights_file.empty()) files[interface.weights_file] = std::move(sequence.weights);
  sequence.weights = {};
  if (format == LibraryFormat::object) {
    files[code] = std::move(linked).value();
    return files;
  }
  files[code] = archive(name + ".o", *linked);
  files[name + ".pc"] = pkg_config_text(name, sequence.platform);
  files[name + "Config.cmake"] = cmake_config_text(name, code, threads);
  return files;
}

Signature signature(const Sequence& sequence) {
  Signature all;
  for (const Sequence::Tensor& tensor : sequence.inputs)
    all.parameters.push_back({tensor.name, Role::input, tensor.dtype, tensor.shape, tensor.bytes()});
  for (const Sequence::Tensor& tensor : sequence.outputs)
    all.parameters.push_back({tensor.name, Role::output, tensor.dtype, tensor.shape, tensor.bytes()});
  all.prepared_bytes = std::int64_t(sequence.weights.size());
  all.scratch_bytes = sequence.arena_bytes;
  all.threads = threads_of(sequence);
  return all;
}

base::Result<std::string> link_shared_sequence(const Sequence& sequence) {
  check(sequence);
  auto around = code_around(sequence, kernel_text(sequence));
  if (!around) return around.reason();
  std::vector<Pieces> objects = {*around};
  for (const Code& kernel : sequence.kernels) objects.emplace_back(kernel.bytes);
  return link_shared_pieces(objects);
}

base::Result<std::string> link_sequence_program(const Sequence& sequence, const std::vector<std::string>& inputs,
                                                const RunSettings& settings) {
  check(sequence);
  if (inputs.size() != sequence.inputs.size())
    return base::Reason{
        fmt::format("executable: {} inputs, {} has {}", inputs.size(), sequence.name, sequence.inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (std::int64_t(inputs[i].size()) != sequence.inputs[i].bytes())
      return base::Reason{fmt::format("executable: input {} has {} bytes instead of {}", i, inputs[i].size(),
                                      sequence.inputs[i].bytes())};
  auto code = code_around(sequence, kernel_text(sequence));
  if (!code) return code.reason();
  const Code object{std::move(code).value(), 0, signature(sequence), sequence.name, 0};
  const bool has_weights = !sequence.weights.empty();
  auto around = guarded(sequence.target, [&] {
    const auto operands = [&] { return operands_of(object, inputs); };
    return harness({&object}, sequence.target, operands, settings, has_weights);
  });
  if (!around) return around.reason();
  std::vector<Pieces> objects = {object.bytes, *around};
  for (const Code& kernel : sequence.kernels) objects.emplace_back(kernel.bytes);
  DataObject data;
  if (has_weights) {
    data = data_object(object.bytes, "prepared", object.signature.prepared_bytes);
    objects.push_back(Pieces({data.before, sequence.weights, data.after}));
  }
  return link_program(objects);
}

}  // namespace graft::codegen
