#include "codegen/machine/library_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/one_line.h"

namespace graft::codegen {
namespace {

using Kind = Interface::Argument::Kind;

// "const float* A, void* scratch"; "void" for none.
std::string parameters_text(const std::vector<Interface::Tensor>& tensors,
                            const std::vector<Interface::Argument>& arguments, bool fills_prepared) {
  std::vector<std::string> texts;
  for (const Interface::Argument& argument : arguments) {
    switch (argument.kind) {
      case Kind::tensor: {
        const Interface::Tensor& tensor = tensors[std::size_t(argument.tensor)];
        texts.push_back(fmt::format("{}{}* {}", tensor.role == Role::output ? "" : "const ", c_type(tensor.dtype),
                                    tensor.argument));
        break;
      }
      case Kind::prepared:
        texts.emplace_back(fills_prepared ? "void* prepared" : "const void* prepared");
        break;
      case Kind::scratch:
        texts.emplace_back("void* scratch");
        break;
      case Kind::budget_ns:
        texts.emplace_back("long long budget_ns");
        break;
      case Kind::parallel_for:
        texts.emplace_back("graft_parallel_for parallel_for");
        break;
      case Kind::context:
        texts.emplace_back("void* context");
        break;
      case Kind::weights:
        texts.emplace_back("const void* weights");
        break;
      case Kind::arena:
        texts.emplace_back("void* arena");
        break;
      case Kind::extent:
        texts.push_back("int64_t " + argument.name);
        break;
    }
  }
  return texts.empty() ? "void" : fmt::format("{}", fmt::join(texts, ", "));
}

std::string tensor_text(const Interface::Tensor& tensor) {
  std::string text = fmt::format("{} ({}): {}", tensor.name, name_of(tensor.role), c_type(tensor.dtype));
  for (const std::int64_t extent : tensor.stored) text += fmt::format("[{}]", extent);
  if (!tensor.is_passed()) return text + ", part of the library";
  if (tensor.argument != tensor.name) text += ", parameter " + tensor.argument;
  if (tensor.only_prepared) text += ", for its preparation alone";
  if (!tensor.layout.is_plain())
    text += fmt::format(", stored as '{}' of [{}]", to_text(tensor.layout), fmt::join(tensor.shape, "]["));
  return text;
}

// Nothing in a comment may end it, nor begin another one, of which compilers warn; names may have any character.
std::string in_comment(std::string_view foreign) {
  std::string text = base::one_line(foreign, foreign.size());
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    const std::string_view pair = std::string_view(text).substr(at, 2);
    if (pair == "*/" || pair == "/*") text.insert(at + 1, " ");
  }
  return text;
}

std::string variant_text(const Interface::Variant& variant, const Interface& interface) {
  const std::string& platform = interface.platforms[std::size_t(variant.platform)].name;
  std::string text;
  for (const std::string& step : variant.schedule) text += fmt::format(" *   {}\n", in_comment(step));
  return text + fmt::format(" *   {} on {}; results {}\n", base::seconds_text(variant.seconds), in_comment(platform),
                            variant.check == "none" ? "not checked: " + in_comment(variant.unchecked)
                                                    : "checked (" + variant.check + ")");
}

std::string function_text(const Interface::Function& function, const Interface& interface) {
  std::string text = fmt::format("/* {}\n", in_comment(function.workload));
  for (const Interface::Tensor& tensor : function.tensors)
    text += fmt::format(" *   {}\n", in_comment(tensor_text(tensor)));
  for (std::size_t v = 0; v < function.variants.size(); ++v) {
    if (function.variants.size() > 1) text += fmt::format(" * variant {}:\n", v);
    text += variant_text(function.variants[v], interface);
  }
  text += " */\n";
  for (const auto& [macro, bytes] : {std::pair(function.prepared_macro, function.prepared_bytes),
                                     {function.prepare_scratch_macro, function.prepare_scratch_bytes},
                                     {function.scratch_macro, function.scratch_bytes}})
    text += fmt::format("#define {} {}\n", macro, bytes);
  const auto prototype = [&](std::string_view returns, const Interface::Call& call, bool fills_prepared) {
    return fmt::format("{} {}({});\n", returns, call.symbol,
                       parameters_text(function.tensors, call.arguments, fills_prepared));
  };
  const std::string& name = function.run.symbol;
  if (function.prepare) {
    text += fmt::format(
        "/* Fills prepared, once, before {} is called with it{}. */\n", name,
        function.select ? fmt::format(", and again after {} was called with another", function.select->symbol) : "");
    text += prototype("void", *function.prepare, true);
  }
  text += prototype("void", function.run, false);
  if (function.parallel) {
    text += "/* On several threads: parallel_for as in graft_parallel.h; NULL: on this one alone. */\n";
    text += prototype("void", *function.parallel, false);
  }
  if (function.select) {
    text += fmt::format(
        "/* Times the {1} variants on this machine, for budget_ns nanoseconds and five rounds at least, and keeps the\n"
        " * fastest for all later calls of {0} in this process; returns its number{2}.\n"
        " * Writes the outputs. Not while another thread is in a function of {0}. */\n",
        name, function.variants.size(), function.prepare ? ", and leaves prepared filled for it" : "");
    text += prototype("long long", *function.select, true);
  }
  return text + "\n";
}

std::string dispatcher_text(const Interface& interface, const Interface::Shapes& shapes) {
  const Interface::Function& first = interface.functions[std::size_t(shapes.entries.front().function)];
  const auto uniform = [&](bool constants_only) {
    std::vector<Interface::Argument> arguments;
    for (std::size_t t = 0; t < first.tensors.size(); ++t) {
      const Interface::Tensor& tensor = first.tensors[t];
      if (tensor.is_passed() && (!constants_only || tensor.role == Role::constant))
        arguments.push_back({Kind::tensor, int(t)});
    }
    arguments.insert(arguments.end(), {{Kind::prepared}, {Kind::scratch}});
    return parameters_text(first.tensors, arguments, constants_only);
  };
  std::vector<std::string> extents;
  for (const std::string& extent : shapes.arguments) extents.push_back("long long " + extent);
  return fmt::format(
      "/* {0} in the shapes of this library. Calls are the same for all of them: memory of 0 bytes may be NULL. */\n"
      "struct {1} {{\n"
      "  void (*prepare)({2}); /* NULL: there is nothing to prepare */\n"
      "  void (*run)({3});\n"
      "  long long prepared_bytes, prepare_scratch_bytes, scratch_bytes;\n"
      "}};\n"
      "/* The functions of exactly this shape; NULL: not in this library. */\n"
      "const struct {1}* {4}({5});\n\n",
      shapes.name, shapes.type, uniform(true), uniform(false), shapes.symbol, fmt::join(extents, ", "));
}

std::string prototype_of_runs_here(const std::string& symbol, const std::string& needed) {
  return fmt::format(
      "/* 1 if this machine has what the code needs; 0 if it lacks something, or does not tell.\n{} */\nint "
      "{}(void);\n",
      needed, symbol);
}

std::string needs_text(const std::string& platform, const std::vector<std::string>& needs) {
  return fmt::format(" *   {}: {}\n", in_comment(platform),
                     needs.empty() ? "its architecture alone" : fmt::format("{}", fmt::join(needs, " ")));
}

std::string platforms_text(const Interface& interface) {
  const bool several = !interface.use_platform.empty();
  std::string needed;
  for (std::size_t p = 0; p < interface.platforms.size(); ++p) {
    const Interface::Platform& platform = interface.platforms[p];
    needed += needs_text(several ? fmt::format("platform {}, {}", p, platform.name) : platform.name, platform.needs);
  }
  std::string text = prototype_of_runs_here(interface.runs_here, needed);
  if (several)
    text += fmt::format(
        "/* Functions run the code for the first of these platforms that runs here. This sets another one, for all\n"
        " * functions that have code for it; -1: the first one again. Returns its number, or -1 if it does not run "
        "here,\n"
        " * and changes nothing. Memory must be prepared again. Not while another thread is in a function of {}. */\n"
        "int {}(int platform);\n",
        interface.name, interface.use_platform);
  return text + "\n";
}

// "batch=4"
std::string extents_text(const SequenceInterface& interface, const std::vector<std::int64_t>& extents) {
  std::vector<std::string> texts;
  for (std::size_t e = 0; e < extents.size(); ++e)
    texts.push_back(fmt::format("{}={}", interface.extents[e], extents[e]));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string fit_text(const SequenceInterface& interface) {
  std::vector<std::string> parameters;
  for (const Interface::Argument& argument : interface.run.arguments)
    if (argument.kind == Kind::extent) parameters.push_back("int64_t* " + argument.name);
  return fmt::format(
      "/* Raises extents to those of the smallest of these shapes that has as many or more of each, and returns 0; 1: "
      "there\n"
      " * is none. The caller fills its inputs up to them, with what the model masks. */\nint {}({});\n",
      interface.fit, fmt::join(parameters, ", "));
}

}  // namespace

std::string_view c_type(DType type) {
  if (computed_in(type) != type) return "uint16_t";
  std::string_view name;
  switch (type) {
#define X(dtype, element) \
  case DType::dtype:      \
    name = #element;      \
    break;
    GRAFT_DTYPES(X)
#undef X
  }
  constexpr std::string_view space = "std::";
  return name.starts_with(space) ? name.substr(space.size()) : name;
}

std::string shape_branch_text(std::size_t number, const std::vector<std::int64_t>& extents, const std::string& how) {
  std::string text = fmt::format("shape{0}:\n  %is{0}.0 = icmp eq i64 0, 0\n", number);
  for (std::size_t e = 0; e < extents.size(); ++e)
    text += fmt::format("  %fits{0}.{1} = icmp {4} i64 %e{1}, {2}\n  %is{0}.{3} = and i1 %is{0}.{1}, %fits{0}.{1}\n",
                        number, e, extents[e], e + 1, how);
  return text + fmt::format("  br i1 %is{0}.{1}, label %found{0}, label %shape{2}\nfound{0}:\n", number, extents.size(),
                            number + 1);
}

std::string header_text(const Interface& interface) {
  std::string text = fmt::format(
      "/* {0}: kernels for {1}, made by graft {2}. They need no other library, allocate nothing and keep no state but\n"
      " * which variant was selected. Tensors are row-major, and aligned to 16 bytes (64 are faster). A kernel may "
      "need\n"
      " * memory, aligned to 64 bytes: `prepared`, of NAME_PREPARED_BYTES, is filled by NAME_prepare from the "
      "constants "
      "and then only read;\n"
      " * `scratch` is used by one call at a time, of any kernel, and need not keep its content. It has\n"
      " * NAME_SCRATCH_BYTES, for NAME_prepare NAME_PREPARE_SCRATCH_BYTES, for NAME_select the larger number. "
      "Functions\n"
      " * take no memory of 0 bytes. {0}.json says the same to programs. */\n"
      "#ifndef {3}\n#define {3}\n\n#include <stdint.h>\n\n#include \"graft_parallel.h\"\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
      interface.name, in_comment(interface.platform_names()), interface.graft, interface.guard);
  text += platforms_text(interface);
  for (const Interface::Function& function : interface.functions) text += function_text(function, interface);
  for (const Interface::Shapes& shapes : interface.shapes) text += dispatcher_text(interface, shapes);
  return text + fmt::format("#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", interface.guard);
}

std::string header_text(const SequenceInterface& interface) {
  std::string text = fmt::format(
      "/* {0}: {1} calls of kernels for {2}, made by graft {3}.\n"
      " * They need no other library, allocate nothing and keep no state. Tensors are row-major, and aligned to 16 "
      "bytes\n"
      " * (64 are faster), other memory to 64. {0}.json says the same to programs.\n"
      " *\n",
      interface.name, interface.calls, in_comment(interface.platform), interface.graft);
  const auto add_tensors = [&](const std::vector<Interface::Tensor>& tensors) {
    for (const Interface::Tensor& tensor : tensors)
      text += fmt::format(
          " *   {}{}\n", in_comment(tensor_text(tensor)),
          tensor.overwrites < 0 ? "" : "; may be the memory of " + tensors[std::size_t(tensor.overwrites)].argument);
  };
  if (interface.shapes.empty()) add_tensors(interface.tensors);
  for (const SequenceInterface::Shape& shape : interface.shapes) {
    text += fmt::format(" * With {}:\n", in_comment(extents_text(interface, shape.extents)));
    add_tensors(shape.tensors);
  }
  text += fmt::format(
      " */\n#ifndef {0}\n#define {0}\n\n#include <stdint.h>\n\n#include \"graft_parallel.h\"\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "/* Memory for one call at a time, which need not keep its content. */\n#define {1} {2}\n",
      interface.guard, interface.arena_macro, interface.arena_bytes);
  if (!interface.weights_file.empty())
    text += fmt::format("/* The content of {}, in memory: `weights`. It is only read. */\n#define {} {}\n",
                        interface.weights_file, interface.weights_macro, interface.weights_bytes);
  const bool has_shapes = !interface.shapes.empty();
  return text + fmt::format(
                    "\n{}{}/* parallel_for as in graft_parallel.h; NULL: everything on the calling thread.{} */\n"
                    "{} {}({});\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n",
                    prototype_of_runs_here(interface.runs_here, needs_text(interface.platform, interface.needs)),
                    has_shapes ? fit_text(interface) : "",
                    has_shapes
                        ? "\n * Returns 0; or 1, and does nothing, if none of these shapes has exactly these extents."
                        : "",
                    has_shapes ? "int" : "void", interface.run.symbol,
                    parameters_text(interface.tensors, interface.run.arguments, false), interface.guard);
}

std::string parallel_header_text() {
  return R"(/* How kernels made by graft run loops on several threads: whoever calls them says how.
 *
 * A graft_parallel_for calls body(closure, i) for each i in 0 .. n-1, on any thread and in any order, each once, and
 * returns when all calls have returned. n is at most the number of threads that a kernel was made for. */
#ifndef GRAFT_PARALLEL_H
#define GRAFT_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
typedef void (*graft_parallel_for)(void* context, void (*body)(void* closure, int64_t i), void* closure, int64_t n);
#ifdef __cplusplus
}
#endif

/* All iterations in order. The context is not used. */
static inline void graft_serial_for(void* context, void (*body)(void*, int64_t), void* closure, int64_t n) {
  int64_t i;
  (void)context;
  for (i = 0; i < n; ++i) body(closure, i);
}

#ifdef _OPENMP
/* On OpenMP's threads. */
static inline void graft_openmp_for(void* context, void (*body)(void*, int64_t), void* closure, int64_t n) {
  int64_t i;
  (void)context;
#pragma omp parallel for schedule(static, 1)
  for (i = 0; i < n; ++i) body(closure, i);
}
#endif

#ifdef __cplusplus
#include <thread>
#include <vector>
namespace graft {
/* On threads that live for one loop: for kernels of milliseconds. Those of graft_pool.h stay. */
inline void threads_for(void*, void (*body)(void*, int64_t), void* closure, int64_t n) {
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < n; ++i) threads.emplace_back(body, closure, i);
  if (n > 0) body(closure, 0);
  for (std::thread& thread : threads) thread.join();
}
}  // namespace graft
#endif

#endif /* GRAFT_PARALLEL_H */
)";
}

void add_headers(const std::string& name, std::string header, std::int64_t threads,
                 std::map<std::string, std::string>& files) {
  files[name + ".h"] = std::move(header);
  files["graft_parallel.h"] = parallel_header_text();
  if (threads <= 1) return;
  files["graft_pool.h"] = pool_header_text();
  files["graft_pool.c"] = pool_source_text();
}

std::string pkg_config_text(const std::string& name, const std::string& platform) {
  return fmt::format(
      "prefix=${{pcfiledir}}\n\nName: {0}\nDescription: kernels for {1}, made by graft\nVersion: 1\n"
      "Cflags: -I${{prefix}}\nLibs: -L${{prefix}} -l{0}\n",
      name, platform);
}

std::string cmake_config_text(const std::string& name, const std::string& code, std::int64_t threads) {
  const std::string pool =
      "if(NOT TARGET graft::pool)\n"
      "  include(CMakeFindDependencyMacro)\n"
      "  find_dependency(Threads)\n"
      "  add_library(graft::pool INTERFACE IMPORTED)\n"
      "  set_target_properties(graft::pool PROPERTIES\n"
      "    INTERFACE_SOURCES \"${CMAKE_CURRENT_LIST_DIR}/graft_pool.c\"\n"
      "    INTERFACE_INCLUDE_DIRECTORIES \"${CMAKE_CURRENT_LIST_DIR}\"\n"
      "    INTERFACE_LINK_LIBRARIES Threads::Threads)\n"
      "endif()\n";
  return fmt::format(
             "# find_package({0} CONFIG PATHS this folder) gives the target {0}::{0}{2}.\n"
             "if(NOT TARGET {0}::{0})\n"
             "  add_library({0}::{0} STATIC IMPORTED)\n"
             "  set_target_properties({0}::{0} PROPERTIES\n"
             "    IMPORTED_LOCATION \"${{CMAKE_CURRENT_LIST_DIR}}/{1}\"\n"
             "    INTERFACE_INCLUDE_DIRECTORIES \"${{CMAKE_CURRENT_LIST_DIR}}\")\n"
             "endif()\n",
             name, code, threads > 1 ? ", and graft::pool, which adds graft_pool.c to a program in C" : "") +
         (threads > 1 ? pool : "");
}

}  // namespace graft::codegen
