#include "codegen/machine/interface.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "codegen/expression/workload.h"
#include "codegen/machine/c_names.h"
#include "codegen/machine/homes.h"
#include "codegen/machine/library.h"
#include "codegen/machine/needs.h"

namespace graft::codegen {
namespace {

using Kind = Interface::Argument::Kind;
constexpr std::string_view kind_names[] = {"tensor",  "prepared", "scratch", "budget_ns", "parallel_for",
                                           "context", "weights",  "arena",   "extent"};

// The extents of "matmul(m=8,n=8,k=8,dtype=f32)" by name, and the operator with its type.
struct Named {
  std::string name;
  std::vector<std::string> extents;
  std::vector<std::int64_t> values;
};

std::optional<Named> named(const std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')' || text.find('[') != std::string_view::npos)
    return std::nullopt;
  Named out{identifier(text.substr(0, open)), {}, {}};
  for (const std::string_view word : base::split(text.substr(open + 1, text.size() - open - 2), ',')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view value = word.substr(equals + 1);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && end == value.data() + value.size()) {
      out.extents.emplace_back(word.substr(0, equals));
      out.values.push_back(number);
    } else if (value != "f32") {
      out.name += "_" + identifier(value);
    }
  }
  return out;
}

// Tensors without their names in C: the parameters of the kernel, of which the workload's come first; constants that
// are part of the library are those of the workload, however a variant stores them.
std::vector<Interface::Tensor> tensors_of(const LibraryFunction& function) {
  const LibraryVariant& first = function.variants.front();
  std::vector<Interface::Tensor> all;
  std::size_t p = 0;
  for (const Tensor& tensor : function.workload.computation().tensors) {
    if (tensor.role == Role::temporary) continue;
    const Parameter& is = first.object.signature.parameters[p];
    if (first.passes(is)) {
      const bool only_prepared = std::all_of(
          function.variants.begin(), function.variants.end(),
          [&](const LibraryVariant& variant) { return variant.object.signature.parameters[p].only_prepared; });
      all.push_back({tensor.name, tensor.name, tensor.role, is.dtype, logical_shape(is.layout, is.shape), is.shape,
                     is.layout, only_prepared});
    } else {
      all.push_back({tensor.name, "", tensor.role, tensor.dtype, tensor.shape, tensor.shape, {}});
    }
    ++p;
  }
  return all;
}

// Arguments: the tensors, of these roles, then the memory that there is, then others.
Interface::Call call_of(const Interface::Function& function, const std::string& symbol, bool constants_only,
                        std::int64_t scratch_bytes, std::initializer_list<Kind> others) {
  Interface::Call call{symbol, {}};
  for (std::size_t t = 0; t < function.tensors.size(); ++t) {
    const Interface::Tensor& tensor = function.tensors[t];
    if (tensor.is_passed() && (!constants_only || tensor.role == Role::constant))
      call.arguments.push_back({Kind::tensor, int(t)});
  }
  if (function.prepared_bytes > 0) call.arguments.push_back({Kind::prepared});
  if (scratch_bytes > 0) call.arguments.push_back({Kind::scratch});
  for (const Kind kind : others) call.arguments.push_back({kind});
  return call;
}

Interface::Function function_of(const std::string& library, const LibraryFunction& from) {
  Interface::Function function;
  function.name = from.name;
  function.workload = from.workload.text();
  function.tensors = tensors_of(from);
  for (const LibraryVariant& variant : from.variants) {
    const Signature& signature = variant.object.signature;
    function.prepared_bytes = std::max(function.prepared_bytes, signature.prepared_bytes);
    function.prepare_scratch_bytes = std::max(function.prepare_scratch_bytes, signature.prepare_scratch_bytes);
    function.scratch_bytes = std::max(function.scratch_bytes, signature.scratch_bytes);
    function.threads = std::max(function.threads, signature.threads);
    function.variants.push_back(variant.origin);
    function.variants.back().platform = variant.platform;
  }
  const std::string symbol = library + "_" + from.name;
  const std::int64_t scratch = function.scratch_bytes, to_prepare = function.prepare_scratch_bytes;
  function.run = call_of(function, symbol, false, scratch, {});
  if (function.prepared_bytes > 0) function.prepare = call_of(function, symbol + "_prepare", true, to_prepare, {});
  if (function.threads > 1)
    function.parallel = call_of(function, symbol + "_parallel", false, scratch, {Kind::parallel_for, Kind::context});
  if (function.variants.size() > 1)
    function.select = call_of(function, symbol + "_select", false, std::max(scratch, to_prepare),
                              {Kind::budget_ns, Kind::parallel_for, Kind::context});
  return function;
}

void add_shapes(Interface& all) {
  for (std::size_t f = 0; f < all.functions.size(); ++f) {
    auto known = named(all.functions[f].workload);
    if (!known) continue;
    auto place = std::find_if(all.shapes.begin(), all.shapes.end(), [&](const Interface::Shapes& shapes) {
      return shapes.name == known->name && shapes.extents == known->extents;
    });
    if (place == all.shapes.end()) {
      const std::string name = fmt::format("{}_{}", all.name, known->name);
      place =
          all.shapes.insert(all.shapes.end(), {known->name, known->extents, {}, name + "_for", name + "_kernel", {}});
    }
    place->entries.push_back({int(f), std::move(known->values)});
  }
}

// Names in C for what the user has named otherwise, none of them twice in its scope.
void name_in_c(Interface& all) {
  CNames global;
  for (const std::string& name : all.names()) global.reserve(name);
  all.guard = global.take(upper_case(all.name) + "_H");
  for (Interface::Function& function : all.functions) {
    const std::string name = upper_case(function.run.symbol);
    function.prepared_macro = global.take(name + "_PREPARED_BYTES");
    function.prepare_scratch_macro = global.take(name + "_PREPARE_SCRATCH_BYTES");
    function.scratch_macro = global.take(name + "_SCRATCH_BYTES");
  }
  // In order: distinct names, also from those of arguments that functions may have.
  const auto scope = [&] {
    CNames names = global;
    for (const char* own : {"prepared", "scratch", "parallel_for", "context", "budget_ns"}) names.reserve(own);
    return names;
  };
  for (Interface::Function& function : all.functions) {
    CNames names = scope();
    for (Interface::Tensor& tensor : function.tensors)
      if (tensor.is_passed()) tensor.argument = names.take(identifier(tensor.name));
  }
  for (Interface::Shapes& shapes : all.shapes) {
    CNames names = scope();
    for (const std::string& extent : shapes.extents) shapes.arguments.push_back(names.take(identifier(extent)));
  }
}

// The stored dimensions, outermost first.
base::Document stored_document(const Interface::Tensor& tensor) {
  base::Document list = base::Document::list();
  std::int64_t stride = 1;
  std::vector<std::int64_t> strides(tensor.stored.size());
  for (std::size_t d = tensor.stored.size(); d-- > 0; stride *= tensor.stored[d]) strides[d] = stride;
  for (std::size_t d = 0; d < tensor.stored.size(); ++d) {
    const Layout::Part part = tensor.layout.is_plain() ? Layout::Part{int(d)} : tensor.layout.parts[d];
    base::Document dimension = base::Document::map();
    dimension.set("axis", part.dimension).set("extent", tensor.stored[d]).set("stride", strides[d]);
    dimension.set("step", part.step);
    if (part.within > 0) dimension.set("within", part.within);
    list.push(std::move(dimension));
  }
  return list;
}

base::Document call_document(const Interface::Function& function, const std::optional<Interface::Call>& call) {
  if (!call) return {};
  base::Document arguments = base::Document::list();
  for (const Interface::Argument& argument : call->arguments) {
    base::Document document = base::Document::map();
    document.set("kind", std::string(name_of(argument.kind)));
    if (argument.kind == Kind::tensor) document.set("tensor", function.tensors[std::size_t(argument.tensor)].name);
    arguments.push(std::move(document));
  }
  return base::Document::map().set("symbol", call->symbol).set("arguments", std::move(arguments));
}

base::Document function_document(const Interface::Function& function) {
  base::Document tensors = base::Document::list(), variants = base::Document::list();
  for (const Interface::Tensor& tensor : function.tensors) tensors.push(to_document(tensor));
  for (const Interface::Variant& variant : function.variants) {
    base::Document document = base::Document::map();
    document.set("schedule", to_document(variant.schedule))
        .set("pipeline", variant.pipeline)
        .set("seconds", variant.seconds)
        .set("check", variant.check)
        .set("platform", variant.platform);
    if (!variant.unchecked.empty()) document.set("unchecked", variant.unchecked);
    variants.push(std::move(document));
  }
  return base::Document::map()
      .set("name", function.name)
      .set("workload", function.workload)
      .set("tensors", std::move(tensors))
      .set("prepared_bytes", function.prepared_bytes)
      .set("prepare_scratch_bytes", function.prepare_scratch_bytes)
      .set("scratch_bytes", function.scratch_bytes)
      .set("threads", function.threads)
      .set("prepare", call_document(function, function.prepare))
      .set("run", call_document(function, function.run))
      .set("parallel", call_document(function, function.parallel))
      .set("select", call_document(function, function.select))
      .set("variants", std::move(variants));
}

}  // namespace

base::Document to_document(const std::vector<std::int64_t>& numbers) {
  base::Document list = base::Document::list();
  for (const std::int64_t number : numbers) list.push(number);
  return list;
}

base::Document to_document(const std::vector<std::string>& texts) {
  base::Document list = base::Document::list();
  for (const std::string& text : texts) list.push(text);
  return list;
}

base::Document to_document(const Interface::Tensor& tensor) {
  base::Document document = base::Document::map();
  document.set("name", tensor.name)
      .set("role", std::string(name_of(tensor.role)))
      .set("dtype", std::string(name_of(tensor.dtype)))
      .set("shape", to_document(tensor.shape));
  if (!tensor.declared.empty()) document.set("declared", tensor.declared);
  if (!tensor.is_passed()) return document;
  document.set("argument", tensor.argument)
      .set("layout", to_text(tensor.layout))
      .set("stored", stored_document(tensor))
      .set("alignment", parameter_alignment_bytes)
      .set("bytes", tensor.bytes());
  if (tensor.only_prepared) document.set("only_prepared", true);
  return document;
}

std::string_view name_of(Interface::Argument::Kind kind) {
  return kind_names[std::size_t(kind)];
}

std::int64_t Interface::Tensor::bytes() const {
  std::int64_t bytes = bytes_of(dtype);
  for (const std::int64_t extent : stored) bytes *= extent;
  return bytes;
}

std::vector<std::string> Interface::names() const {
  std::vector<std::string> all;
  for (const Function& function : functions) {
    all.push_back(function.run.symbol);
    for (const std::optional<Call>* call : {&function.prepare, &function.parallel, &function.select})
      if (*call) all.push_back((*call)->symbol);
  }
  for (const Shapes& each : shapes) all.insert(all.end(), {each.symbol, each.type});
  all.push_back(runs_here);
  if (!use_platform.empty()) all.push_back(use_platform);
  return all;
}

std::string Interface::platform_names() const {
  std::vector<std::string> all;
  for (const Platform& platform : platforms) all.push_back(platform.name);
  return base::join(all, ", ");
}

Interface interface_of(const Library& library) {
  Interface all;
  all.name = library.name, all.graft = library.graft;
  for (const LibraryPlatform& platform : library.platforms)
    all.platforms.push_back({platform.name, platform.target, needs(platform.target)});
  all.runs_here = library.name + "_runs_here";
  if (all.platforms.size() > 1) all.use_platform = library.name + "_use_platform";
  for (const LibraryFunction& function : library.functions)
    all.functions.push_back(function_of(library.name, function));
  add_shapes(all);
  name_in_c(all);
  return all;
}

base::Document to_document(const Interface& interface, const std::string& code) {
  base::Document functions = base::Document::list(), all_shapes = base::Document::list(),
                 platforms = base::Document::list();
  for (const Interface::Platform& platform : interface.platforms)
    platforms.push(base::Document::map()
                       .set("platform", platform.name)
                       .set("target", to_document(platform.target))
                       .set("needs", to_document(platform.needs)));
  for (const Interface::Function& function : interface.functions) functions.push(function_document(function));
  for (const Interface::Shapes& shapes : interface.shapes) {
    base::Document entries = base::Document::list();
    for (const Interface::Shapes::Entry& entry : shapes.entries)
      entries.push(base::Document::map()
                       .set("extents", to_document(entry.extents))
                       .set("function", interface.functions[std::size_t(entry.function)].name));
    all_shapes.push(base::Document::map()
                        .set("operator", shapes.name)
                        .set("extents", to_document(shapes.extents))
                        .set("symbol", shapes.symbol)
                        .set("type", shapes.type)
                        .set("functions", std::move(entries)));
  }
  return base::Document::map()
      .set("schema", 1)
      .set("kind", "library")
      .set("graft", interface.graft)
      .set("name", interface.name)
      .set("platform", interface.platform_names())
      .set("target", to_document(interface.platforms.front().target))
      .set("platforms", std::move(platforms))
      .set("runs_here", interface.runs_here)
      .set("use_platform", interface.use_platform.empty() ? base::Document() : base::Document(interface.use_platform))
      .set("code", code)
      .set("header", interface.name + ".h")
      .set("alignment", alignment_bytes)
      .set("functions", std::move(functions))
      .set("shapes", std::move(all_shapes));
}

}  // namespace graft::codegen
