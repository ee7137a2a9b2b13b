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

[[noreturn]] void fail(const std::string& name, std::string_view what) {
  throw base::Failure(fmt::format("sequence {}: {}", name, what));
}

// The bytes that a place is in.
std::int64_t bytes_around(const Sequence& sequence, std::int64_t weights_bytes, const Place& place) {
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
      return weights_bytes;
  }
  return -1;
}

// What is wrong with a place for a number of bytes; "": nothing.
std::string wrong_with(const Sequence& sequence, std::int64_t weights_bytes, const Place& place, std::int64_t bytes) {
  const std::string_view where = where_names[std::size_t(place.where)];
  const std::int64_t all = bytes_around(sequence, weights_bytes, place);
  if (all < 0) return fmt::format("there is no {} {}", where, place.number);
  if (place.offset % alignment_bytes != 0) return fmt::format("offset {} is not aligned", place.offset);
  if (place.offset < 0 || place.offset > all || bytes > all - place.offset)
    return fmt::format("{} bytes from {} on are outside of the {}, which has {}", bytes, place.offset, where, all);
  return "";
}

std::string wrong_with(const Sequence& sequence, std::int64_t weights_bytes, const Sequence::Call& call) {
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
      if (wrong.empty()) wrong = wrong_with(sequence, weights_bytes, *place, parameter.bytes);
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
      wrong = wrong_with(sequence, weights_bytes, *place, bytes);
    }
    if (!wrong.empty()) return fmt::format("{}: {}", what, wrong);
  }
  return "";
}

// Throws what sequence_files promises.
void check(const Sequence& sequence, std::int64_t weights_bytes) {
  check_header_name("network name", sequence.name);
  std::set<std::string> symbols;
  for (const Code& kernel : sequence.kernels)
    if (!symbols.insert(kernel.symbol).second)
      fail(sequence.name, fmt::format("kernel {}: occurs twice", kernel.symbol));
  std::vector<bool> written(sequence.outputs.size());
  for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
    const Sequence::Call& call = sequence.calls[c];
    const std::string wrong = wrong_with(sequence, weights_bytes, call);
    if (!wrong.empty()) fail(sequence.name, fmt::format("call {} ({}): {}", c, call.label, wrong));
    const Signature& signature = sequence.kernels[std::size_t(call.kernel)].signature;
    for (std::size_t p = 0; p < call.buffers.size(); ++p)
      if (signature.parameters[p].role == Role::output && call.buffers[p]->where == Where::output)
        written[std::size_t(call.buffers[p]->number)] = true;
  }
  for (std::size_t o = 0; o < written.size(); ++o)
    if (!written[o] && sequence.outputs[o].bytes() > 0)
      fail(sequence.name, fmt::format("output {}: no call writes it", o));
}

bool is_alike(const std::vector<Sequence::Tensor>& a, const std::vector<Sequence::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Sequence::Tensor& x, const Sequence::Tensor& y) {
    return x.name == y.name && x.dtype == y.dtype && x.declared == y.declared;
  });
}

void check(const ShapedSequences& all) {
  if (all.shapes.empty()) fail(all.name, "has no shape");
  check_header_name("network name", all.name);
  const Sequence& first = all.shapes.front().sequence;
  std::set<std::vector<std::int64_t>> extents;
  for (const auto& [own, sequence] : all.shapes) {
    check(sequence, std::int64_t(all.weights.size()));
    for (const Code& kernel : sequence.kernels)
      if (!kernel.symbol.starts_with(all.name + "_"))
        fail(sequence.name, fmt::format("kernel {}: its symbol does not begin with {}_", kernel.symbol, all.name));
    if (own.size() != all.extents.size() || !extents.insert(own).second)
      fail(sequence.name, "its extents are not those of one further shape");
    if (!is_alike(sequence.inputs, first.inputs) || !is_alike(sequence.outputs, first.outputs))
      fail(sequence.name, "takes other inputs or outputs");
  }
}

// ---- code

// Functions and data of this module that others see, by what they are made for.
enum class Form { library, kernel };

// The weights, where they are part of the code.
std::string weights_symbol(const std::string& name) {
  return name + "_weights";
}

// Each kernel of several sequences once.
std::vector<const Code*> kernels_of(const ShapedSequences& all) {
  std::vector<const Code*> kernels;
  std::set<std::string_view> known;
  for (const ShapedSequences::Shape& shape : all.shapes)
    for (const Code& kernel : shape.sequence.kernels)
      if (known.insert(kernel.symbol).second) kernels.push_back(&kernel);
  return kernels;
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

std::string declaration_text(const Code& kernel) {
  return fmt::format("declare hidden void @{}_run(ptr, ptr, ptr, ptr, ptr)\n", kernel.symbol);
}

std::string calls_text(const Sequence& sequence) {
  std::string text;
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
  std::string kernels;
  for (const Code& kernel : sequence.kernels) kernels += declaration_text(kernel);
  return kernels + calls_text(sequence) +
         fmt::format(
             "define void @{0}_prepare(ptr %tensors, ptr %weights, ptr %arena) nounwind {{\n  ret void\n}}\n"
             "define void @{0}_run({1}) nounwind {{\n  call void @{0}_all({1})\n  ret void\n}}\n"
             "@{0}_calls = constant [{2} x ptr] [{3}]\n",
             sequence.name, kernel_arguments, calls.size(), fmt::join(calls, ", "));
}

// Bytes of all inputs: what tells which shape is smaller.
std::int64_t input_bytes(const Sequence& sequence) {
  std::int64_t bytes = 0;
  for (const Sequence::Tensor& input : sequence.inputs) bytes += input.bytes();
  return bytes;
}

// NAME_fit: the smallest shape that holds the extents to which %at0, %at1, ... point.
std::string fit_body(const ShapedSequences& all) {
  std::vector<const ShapedSequences::Shape*> shapes;
  for (const ShapedSequences::Shape& shape : all.shapes) shapes.push_back(&shape);
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const auto* a, const auto* b) { return input_bytes(a->sequence) < input_bytes(b->sequence); });
  std::string body;
  for (std::size_t e = 0; e < all.extents.size(); ++e) body += fmt::format("  %e{0} = load i64, ptr %at{0}\n", e);
  body += "  br label %shape0\n";
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    body += shape_branch_text(s, shapes[s]->extents, "sle");
    for (std::size_t e = 0; e < all.extents.size(); ++e)
      body += fmt::format("  store i64 {}, ptr %at{}\n", shapes[s]->extents[e], e);
    body += "  ret i32 0\n";
  }
  return body + fmt::format("shape{}:\n  ret i32 1\n", shapes.size());
}

// The C functions of the header.
std::string function_text(const ShapedSequences& all, const SequenceInterface& interface) {
  const Target& target = all.shapes.front().sequence.target;
  std::vector<std::string> arguments, given;
  std::string body = fmt::format("  %tensors = alloca [{} x ptr], align 16\n", interface.tensors.size());
  std::string weights = "null";
  for (const Interface::Argument& argument : interface.run.arguments) {
    switch (argument.kind) {
      case Kind::extent:
        arguments.push_back(fmt::format("i64 %e{}", given.size()));
        given.push_back(fmt::format("ptr %at{}", given.size()));
        break;
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
    weights = "@" + weights_symbol(all.name);
    text += fmt::format("{} = external hidden constant [{} x i8], align 64\n", weights, interface.weights_bytes);
  }
  if (const auto calls = system_calls(target)) text += system_text(*calls);
  text += machine_text({target}) + runs_here_text(interface.runs_here);
  body +=
      "  %none = icmp eq ptr %given, null\n"
      "  %for = select i1 %none, ptr @graft.serial_for, ptr %given\n";
  const auto run = [&](const Sequence& sequence) {
    return fmt::format("  call void @{}_all(ptr %tensors, ptr {}, ptr %arena, ptr %for, ptr %context)\n", sequence.name,
                       weights);
  };
  if (all.extents.empty())
    return text + fmt::format("define void @{}({}) nounwind {{\n{}{}  ret void\n}}\n", interface.run.symbol,
                              fmt::join(arguments, ", "), body, run(all.shapes.front().sequence));
  body += "  br label %shape0\n";
  for (std::size_t s = 0; s < all.shapes.size(); ++s)
    body += shape_branch_text(s, all.shapes[s].extents, "eq") + run(all.shapes[s].sequence) + "  ret i32 0\n";
  text += fmt::format("define i32 @{}({}) nounwind {{\n{}shape{}:\n  ret i32 1\n}}\n", interface.run.symbol,
                      fmt::join(arguments, ", "), body, all.shapes.size());
  return text +
         fmt::format("define i32 @{}({}) nounwind {{\n{}}}\n", interface.fit, fmt::join(given, ", "), fit_body(all));
}

base::Result<std::string> code_around(const Target& target, const std::string& text) {
  const Pipeline pipeline{"sequence", "", "", 1, {}};
  return guarded(target, [&] { return code_of_text(text, least_target(target), pipeline); });
}

base::Result<std::string> code_around(const ShapedSequences& all, const SequenceInterface& interface) {
  std::string text;
  for (const Code* kernel : kernels_of(all)) text += declaration_text(*kernel);
  for (const ShapedSequences::Shape& shape : all.shapes) text += calls_text(shape.sequence);
  return code_around(all.shapes.front().sequence.target, text + function_text(all, interface));
}

// ---- what callers must know

Interface::Tensor described(const Sequence::Tensor& tensor, Role role) {
  Interface::Tensor all{tensor.name, "", role, tensor.dtype, tensor.shape, tensor.shape, {}};
  all.declared = tensor.declared;
  all.overwrites = tensor.overwrites;
  return all;
}

std::vector<Interface::Tensor> tensors_of(const Sequence& sequence) {
  std::vector<Interface::Tensor> tensors;
  for (const Sequence::Tensor& tensor : sequence.inputs) tensors.push_back(described(tensor, Role::input));
  for (const Sequence::Tensor& tensor : sequence.outputs) tensors.push_back(described(tensor, Role::output));
  return tensors;
}

SequenceInterface interface_of(const ShapedSequences& sequences, WeightsIn weights) {
  const Sequence& first = sequences.shapes.front().sequence;
  SequenceInterface all;
  all.name = sequences.name, all.platform = first.platform, all.graft = first.graft;
  all.weights_bytes = std::int64_t(sequences.weights.size());
  if (weights == WeightsIn::file && all.weights_bytes > 0) all.weights_file = all.name + ".weights";
  all.tensors = tensors_of(first);
  for (const auto& [extents, sequence] : sequences.shapes) {
    all.calls += std::int64_t(sequence.calls.size());
    all.arena_bytes = std::max(all.arena_bytes, sequence.arena_bytes);
    if (!sequences.extents.empty()) all.shapes.push_back({extents, tensors_of(sequence)});
  }
  all.run.symbol = all.name + "_run";
  all.runs_here = all.name + "_runs_here";
  all.needs = needs(first.target);
  CNames names;
  names.reserve(all.run.symbol);
  names.reserve(all.runs_here);
  all.extents = sequences.extents;
  if (!all.extents.empty()) names.reserve(all.fit = all.name + "_fit");
  all.guard = names.take(upper_case(all.name) + "_H");
  all.arena_macro = names.take(upper_case(all.name) + "_ARENA_BYTES");
  all.weights_macro = names.take(upper_case(all.name) + "_WEIGHTS_BYTES");
  for (const char* own : {"weights", "arena", "parallel_for", "context"}) names.reserve(own);
  for (const std::string& extent : all.extents)
    all.run.arguments.push_back({Kind::extent, -1, names.take(identifier(extent))});
  for (std::size_t t = 0; t < all.tensors.size(); ++t) {
    all.tensors[t].argument = names.take(identifier(all.tensors[t].name));
    for (SequenceInterface::Shape& shape : all.shapes) shape.tensors[t].argument = all.tensors[t].argument;
    all.run.arguments.push_back({Kind::tensor, int(t)});
  }
  if (!all.weights_file.empty()) all.run.arguments.push_back({Kind::weights});
  for (const Kind kind : {Kind::arena, Kind::parallel_for, Kind::context}) all.run.arguments.push_back({kind});
  return all;
}

std::int64_t threads_of(const Sequence& sequence) {
  std::int64_t threads = 1;
  for (const Code& kernel : sequence.kernels) threads = std::max(threads, kernel.signature.threads);
  return threads;
}

std::int64_t threads_of(const ShapedSequences& all) {
  std::int64_t threads = 1;
  for (const ShapedSequences::Shape& shape : all.shapes) threads = std::max(threads, threads_of(shape.sequence));
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

// What a shape has of its own.
base::Document shape_document(const Sequence& sequence, const std::vector<Interface::Tensor>& tensors,
                              base::Document document) {
  base::Document inputs = base::Document::list(), outputs = base::Document::list(), calls = base::Document::list();
  for (const Interface::Tensor& tensor : tensors) {
    base::Document each = base::Document::map()
                              .set("name", tensor.name)
                              .set("argument", tensor.argument)
                              .set("dtype", std::string(name_of(tensor.dtype)))
                              .set("shape", to_document(tensor.shape))
                              .set("alignment", parameter_alignment_bytes)
                              .set("bytes", tensor.bytes());
    if (!tensor.declared.empty()) each.set("declared", tensor.declared);
    if (tensor.overwrites >= 0) each.set("overwrites", tensors[std::size_t(tensor.overwrites)].name);
    (tensor.role == Role::output ? outputs : inputs).push(std::move(each));
  }
  for (const Sequence::Call& call : sequence.calls) calls.push(call_document(sequence, call));
  return std::move(document)
      .set("inputs", std::move(inputs))
      .set("outputs", std::move(outputs))
      .set("arena_bytes", sequence.arena_bytes)
      .set("calls", std::move(calls));
}

base::Document run_document(const SequenceInterface& interface) {
  base::Document arguments = base::Document::list();
  for (const Interface::Argument& argument : interface.run.arguments) {
    base::Document document = base::Document::map().set("kind", std::string(name_of(argument.kind)));
    if (argument.kind == Kind::tensor)
      document.set("argument", interface.tensors[std::size_t(argument.tensor)].argument);
    if (argument.kind == Kind::extent) document.set("argument", argument.name);
    arguments.push(std::move(document));
  }
  return base::Document::map().set("symbol", interface.run.symbol).set("arguments", std::move(arguments));
}

base::Document sequence_document(const ShapedSequences& all, const SequenceInterface& interface,
                                 const std::string& code) {
  const Sequence& first = all.shapes.front().sequence;
  base::Document document = base::Document::map()
                                .set("schema", 1)
                                .set("kind", "sequence")
                                .set("graft", interface.graft)
                                .set("name", interface.name)
                                .set("platform", interface.platform)
                                .set("target", to_document(first.target))
                                .set("needs", to_document(interface.needs))
                                .set("runs_here", interface.runs_here)
                                .set("code", code)
                                .set("header", interface.name + ".h")
                                .set("alignment", alignment_bytes)
                                .set("weights_bytes", interface.weights_bytes);
  document.set("weights", interface.weights_file.empty() ? base::Document() : base::Document(interface.weights_file))
      .set("threads", threads_of(all))
      .set("run", run_document(interface));
  if (interface.shapes.empty()) return shape_document(first, interface.tensors, std::move(document));
  base::Document shapes = base::Document::list();
  for (std::size_t s = 0; s < all.shapes.size(); ++s)
    shapes.push(shape_document(all.shapes[s].sequence, interface.shapes[s].tensors,
                               base::Document::map().set("extents", to_document(all.shapes[s].extents))));
  return std::move(document)
      .set("arena_bytes", interface.arena_bytes)
      .set("extents", to_document(interface.extents))
      .set("fit", interface.fit)
      .set("shapes", std::move(shapes));
}
}  // namespace

std::int64_t Sequence::Tensor::bytes() const {
  std::int64_t bytes = bytes_of(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
}

std::map<std::string, std::string> sequence_files(Sequence sequence, LibraryFormat format, WeightsIn weights) {
  ShapedSequences all;
  all.name = sequence.name;
  all.weights = std::exchange(sequence.weights, {});
  all.exported = sequence.exported;
  all.shapes.push_back({{}, std::move(sequence)});
  return sequence_files(std::move(all), format, weights);
}

std::map<std::string, std::string> sequence_files(ShapedSequences all, LibraryFormat format, WeightsIn weights) {
  check(all);
  const SequenceInterface interface = interface_of(all, weights);
  // Code addresses its data by 32 bits with a sign, and others' code is in the same program.
  constexpr std::int64_t most_bytes = std::int64_t(1) << 30;
  if (interface.weights_are_in_code() && interface.weights_bytes > most_bytes)
    throw base::UserError(all.name,
                          fmt::format("its weights take {}, code can hold {}; put them in a file",
                                      base::bytes_text(interface.weights_bytes), base::bytes_text(most_bytes)));
  auto around = code_around(all, interface);
  if (!around) throw base::Failure("sequence: " + around.reason().text);
  std::vector<std::string> parts = {all.exported ? std::move(around).value() : hidden(std::move(around).value())};
  for (const Code* kernel : kernels_of(all)) parts.push_back(hidden(kernel->bytes));
  std::vector<Pieces> objects(parts.begin(), parts.end());
  DataObject data;
  if (interface.weights_are_in_code()) {
    data = data_object(parts.front(), weights_symbol(all.name), interface.weights_bytes);
    objects.push_back(Pieces({data.before, all.weights, data.after}));
  }
  auto linked = link_relocatable(objects);
  if (!linked) throw base::Failure(linked.reason().text);

  const std::string& name = all.name;
  const std::string code = format == LibraryFormat::object ? name + ".o" : fmt::format("lib{}.a", name);
  const std::int64_t threads = threads_of(all);
  std::map<std::string, std::string> files;
  add_headers(name, header_text(interface), threads, files);
  files[name + ".json"] = sequence_document(all, interface, code).to_pretty_json() + "\n";
  if (!interface.weights_file.empty()) files[interface.weights_file] = std::move(all.weights);
  all.weights = {};
  if (format == LibraryFormat::object) {
    files[code] = std::move(linked).value();
    return files;
  }
  files[code] = archive(name + ".o", *linked);
  files[name + ".pc"] = pkg_config_text(name, interface.platform);
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
  check(sequence, std::int64_t(sequence.weights.size()));
  auto around = code_around(sequence.target, kernel_text(sequence));
  if (!around) return around.reason();
  std::vector<Pieces> objects = {*around};
  for (const Code& kernel : sequence.kernels) objects.emplace_back(kernel.bytes);
  return link_shared_pieces(objects);
}

base::Result<std::string> link_sequence_program(const Sequence& sequence, const std::vector<std::string>& inputs,
                                                const RunSettings& settings) {
  check(sequence, std::int64_t(sequence.weights.size()));
  if (inputs.size() != sequence.inputs.size())
    return base::Reason{
        fmt::format("executable: {} inputs, {} has {}", inputs.size(), sequence.name, sequence.inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (std::int64_t(inputs[i].size()) != sequence.inputs[i].bytes())
      return base::Reason{fmt::format("executable: input {} has {} bytes instead of {}", i, inputs[i].size(),
                                      sequence.inputs[i].bytes())};
  auto code = code_around(sequence.target, kernel_text(sequence));
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
