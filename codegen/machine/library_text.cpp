#include "codegen/machine/library_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.h"
#include "codegen/machine/c_names.h"

namespace graft::codegen {
namespace {

// "float", "int32_t": the element's C++ type, which C knows without its namespace.
std::string_view c_type(DType type) {
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

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return text;
}

// The names of a header: what it defines, and what it calls the parameters of a function.
class Header {
 public:
  explicit Header(const Library& library) {
    for (const std::string& name : defined_names(library)) names_.reserve(name);
    guard_ = names_.take(upper(library.name) + "_H");
    for (const LibraryFunction& function : library.functions)
      workspaces_[function.name] = names_.take(upper(function.name) + "_WORKSPACE_BYTES");
  }
  const std::string& guard() const { return guard_; }
  const std::string& workspace_bytes(const LibraryFunction& function) const { return workspaces_.at(function.name); }

  // For names that the caller chose, in order: distinct ones, also from those that every function has.
  std::vector<std::string> parameters(const std::vector<std::string>& wanted) const {
    CNames names = names_;
    for (const char* own : {"workspace", "parallel_for", "context", "budget_ns"}) names.reserve(own);
    std::vector<std::string> taken;
    for (const std::string& name : wanted) taken.push_back(names.take(identifier(name)));
    return taken;
  }
  std::vector<std::string> parameters(const LibraryFunction& function) const {
    std::vector<std::string> wanted;
    for (const Parameter& parameter : codegen::parameters(function.variants.front())) wanted.push_back(parameter.name);
    return parameters(wanted);
  }

  // "const float* A, float* C, "; only the constants'.
  std::string arguments(const LibraryFunction& function, bool constants_only = false) const {
    const std::vector<Parameter> all = codegen::parameters(function.variants.front());
    const std::vector<std::string> called = parameters(function);
    std::string text;
    for (std::size_t p = 0; p < all.size(); ++p) {
      if (constants_only && all[p].role != Role::constant) continue;
      text += fmt::format("{}{}* {}, ", all[p].role == Role::output ? "" : "const ", c_type(all[p].dtype), called[p]);
    }
    return text;
  }

 private:
  CNames names_;
  std::string guard_;
  std::map<std::string, std::string> workspaces_;  // by function
};

// `called`: its name in the prototypes.
std::string parameter_text(const Parameter& parameter, const std::string& called) {
  std::string text = fmt::format("{} ({}): {}[{}]", parameter.name, name_of(parameter.role), c_type(parameter.dtype),
                                 fmt::join(parameter.shape, "]["));
  if (called != parameter.name) text += ", parameter " + called;
  if (!parameter.layout.is_plain())
    text += fmt::format(", stored as '{}' of [{}]", to_text(parameter.layout),
                        fmt::join(logical_shape(parameter.layout, parameter.shape), "]["));
  return text;
}

// Nothing in a comment may end it.
std::string in_comment(std::string text) {
  for (std::size_t at = 0; (at = text.find("*/", at)) != std::string::npos;) text.replace(at, 2, "* /");
  return text;
}

std::string function_text(const LibraryFunction& function, const Header& header) {
  std::string text = fmt::format("/* {}\n", in_comment(function.workload.text()));
  const std::vector<Parameter> all = parameters(function.variants.front());
  const std::vector<std::string> called = header.parameters(function);
  for (std::size_t p = 0; p < all.size(); ++p)
    text += fmt::format(" *   {}\n", in_comment(parameter_text(all[p], called[p])));
  if (!function.variants.front().constants.empty()) text += " *   its constants are in the library\n";
  for (std::size_t v = 0; v < function.variants.size(); ++v) {
    if (function.variants.size() > 1) text += fmt::format(" * variant {}:\n", v);
    for (const std::string_view line : base::split(function.variants[v].description, '\n')) {
      if (!line.empty()) text += fmt::format(" *   {}\n", in_comment(std::string(line)));
    }
  }
  const std::string& name = function.name;
  text += fmt::format(" */\n#define {} {}\n", header.workspace_bytes(function), workspace_bytes(function));
  if (prepares(function)) {
    text += fmt::format(
        "/* Once for a workspace, before {0} is called with it{1}. */\n"
        "void {0}_prepare({2}void* workspace);\n",
        name, function.variants.size() > 1 ? fmt::format(", and again after {}_select", name) : "",
        header.arguments(function, true));
  }
  text += fmt::format("void {}({}void* workspace);\n", name, header.arguments(function));
  if (is_parallel(function))
    text += fmt::format(
        "/* On several threads: parallel_for as in graft_parallel.h; NULL: on this one alone. */\n"
        "void {}_parallel({}void* workspace, graft_parallel_for parallel_for, void* context);\n",
        name, header.arguments(function));
  if (function.variants.size() > 1)
    text += fmt::format(
        "/* Times the {1} variants on this machine, for budget_ns nanoseconds and five rounds at least, and keeps the\n"
        " * fastest for all later calls of {0} in this process; returns its number, and leaves the workspace\n"
        " * prepared for it. Writes the outputs. Not while another thread is in a function of {0}. */\n"
        "long long {0}_select({2}void* workspace, long long budget_ns, graft_parallel_for parallel_for, void* "
        "context);\n",
        name, function.variants.size(), header.arguments(function));
  return text + "\n";
}

std::string dispatcher_text(const Library& library, const OperatorShapes& shapes, const Header& header) {
  const LibraryFunction& first = *shapes.functions.front().first;
  const std::string kernel = fmt::format("{}_{}_kernel", library.name, shapes.name);
  std::vector<std::string> extents;
  for (const std::string& extent : header.parameters(shapes.extents)) extents.push_back("long long " + extent);
  return fmt::format(
      "/* {3} in the shapes of this library. */\n"
      "struct {0} {{\n"
      "  void (*prepare)({1}void* workspace); /* NULL: there is nothing to prepare */\n"
      "  void (*run)({2}void* workspace);\n"
      "  long long workspace_bytes;\n"
      "}};\n"
      "/* The function of exactly this shape; NULL: not in this library. */\n"
      "const struct {0}* {4}_{5}_for({6});\n\n",
      kernel, header.arguments(first, true), header.arguments(first), shapes.name, library.name, shapes.name,
      fmt::join(extents, ", "));
}

// The extents of "matmul(m=8,n=8,k=8,dtype=f32)" by name, and the operator with its type.
struct Named {
  std::string name;
  std::vector<std::string> extents;
  std::vector<std::int64_t> values;
};

std::optional<Named> named(const Workload& workload) {
  const std::string_view text = workload.text();
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

}  // namespace

std::vector<Parameter> parameters(const LibraryVariant& variant) {
  std::vector<Parameter> all = variant.object.signature.parameters;
  if (!variant.constants.empty())
    std::erase_if(all, [](const Parameter& parameter) { return parameter.role == Role::constant; });
  return all;
}

bool prepares(const LibraryFunction& function) {
  return std::any_of(function.variants.begin(), function.variants.end(),
                     [](const LibraryVariant& variant) { return variant.prepares; });
}

bool is_parallel(const LibraryFunction& function) {
  return std::any_of(function.variants.begin(), function.variants.end(),
                     [](const LibraryVariant& variant) { return variant.object.signature.threads > 1; });
}

std::int64_t workspace_bytes(const LibraryFunction& function) {
  std::int64_t most = 0;
  for (const LibraryVariant& variant : function.variants)
    most = std::max(most, variant.object.signature.workspace_bytes);
  return most;
}

std::vector<std::string> defined_names(const Library& library) {
  std::vector<std::string> names;
  for (const LibraryFunction& function : library.functions) {
    names.push_back(function.name);
    if (prepares(function)) names.push_back(function.name + "_prepare");
    if (is_parallel(function)) names.push_back(function.name + "_parallel");
    if (function.variants.size() > 1) names.push_back(function.name + "_select");
  }
  for (const OperatorShapes& shapes : operator_shapes(library))
    for (const char* what : {"for", "kernel"})
      names.push_back(fmt::format("{}_{}_{}", library.name, shapes.name, what));
  return names;
}

std::vector<OperatorShapes> operator_shapes(const Library& library) {
  std::vector<OperatorShapes> all;
  for (const LibraryFunction& function : library.functions) {
    auto known = named(function.workload);
    if (!known) continue;
    auto place = std::find_if(all.begin(), all.end(), [&](const OperatorShapes& shapes) {
      return shapes.name == known->name && shapes.extents == known->extents;
    });
    if (place == all.end()) place = all.insert(all.end(), {known->name, known->extents, {}});
    place->functions.emplace_back(&function, std::move(known->values));
  }
  return all;
}

std::string header_text(const Library& library) {
  const Header header(library);
  std::string text = fmt::format(
      "/* {0}: kernels for {1}, made by graft. They need no other library, allocate nothing and keep no state but "
      "which\n"
      " * variant was selected. Every pointer and every workspace is aligned to 64 bytes; a workspace has the bytes "
      "of\n"
      " * NAME_WORKSPACE_BYTES (0: it may be NULL), and is used by one call at a time. Tensors are row-major. */\n"
      "#ifndef {2}\n#define {2}\n\n#include <stdint.h>\n\n#include \"graft_parallel.h\"\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
      library.name, in_comment(library.platform), header.guard());
  for (const LibraryFunction& function : library.functions) text += function_text(function, header);
  for (const OperatorShapes& shapes : operator_shapes(library)) text += dispatcher_text(library, shapes, header);
  return text + fmt::format("#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", header.guard());
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
/* On threads that live for one loop: for kernels of milliseconds. A pool of your own is faster. */
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

std::string pkg_config_text(const Library& library) {
  return fmt::format(
      "prefix=${{pcfiledir}}\n\nName: {0}\nDescription: kernels for {1}, made by graft\nVersion: 1\n"
      "Cflags: -I${{prefix}}\nLibs: -L${{prefix}} -l{0}\n",
      library.name, library.platform);
}

std::string cmake_config_text(const Library& library) {
  return fmt::format(
      "# find_package({0} CONFIG PATHS this folder) gives the target {0}::{0}.\n"
      "if(NOT TARGET {0}::{0})\n"
      "  add_library({0}::{0} STATIC IMPORTED)\n"
      "  set_target_properties({0}::{0} PROPERTIES\n"
      "    IMPORTED_LOCATION \"${{CMAKE_CURRENT_LIST_DIR}}/lib{0}.a\"\n"
      "    INTERFACE_INCLUDE_DIRECTORIES \"${{CMAKE_CURRENT_LIST_DIR}}\")\n"
      "endif()\n",
      library.name);
}

}  // namespace graft::codegen
