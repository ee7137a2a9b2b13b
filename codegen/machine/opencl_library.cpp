#include "codegen/machine/opencl_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "codegen/expression/reference.h"
#include "codegen/machine/c_names.h"
#include "codegen/machine/interface.h"
#include "codegen/machine/library_text.h"

namespace graft::codegen {
namespace {

constexpr std::int64_t most_samples = 256;  // of an output

// The number of seven bits that element i of operand t is; the same in C (check_head).
std::int64_t drawn(std::int64_t t, std::int64_t i) {
  return std::int64_t((std::uint32_t(i) * 2654435761u + std::uint32_t(t) * 40503u) >> 25) - 64;
}

double input_of(DType type, std::int64_t t, std::int64_t i) {
  const std::int64_t number = drawn(t, i);
  if (is_floating(type)) return double(number) / 64;
  return type == DType::u8 ? double(number + 64) : double(number);
}

std::string prototype(const Interface::Function& function, const std::string& name, bool prepares) {
  std::string text = fmt::format("cl_int {}(graft_opencl* kernel, cl_command_queue queue", name);
  for (const Interface::Tensor& tensor : function.tensors)
    if (!prepares || tensor.role == Role::constant) text += fmt::format(", cl_mem {}", tensor.argument);
  return text + ")";
}

std::string create_prototype(const std::string& symbol) {
  return fmt::format("cl_int {}_create(cl_context context, cl_device_id device, graft_opencl** made)", symbol);
}

// A C function of the library.
struct Kernel {
  const Interface::Function& interface;
  const LibraryFunction& function;
  const Code& code() const { return function.variants.front().object; }
  bool prepares() const { return code().bytes.find("// launch prepare ") != std::string::npos; }
  const std::string& symbol() const { return interface.run.symbol; }

  std::string declarations() const {
    std::string text = fmt::format("\n/* {}\n", interface.workload);
    for (const Interface::Tensor& tensor : interface.tensors)
      text += fmt::format(" * {}: {} [{}], {} bytes{}{}\n", tensor.argument, name_of(tensor.dtype),
                          fmt::join(tensor.stored, ","), tensor.bytes(), tensor.role == Role::output ? ", written" : "",
                          tensor.only_prepared ? ", for its preparation alone (else NULL)" : "");
    text += " */\n" + create_prototype(symbol()) + ";\n";
    if (prepares()) text += prototype(interface, symbol() + "_prepare", true) + ";\n";
    return text + prototype(interface, symbol(), false) + ";\n";
  }

  std::string definitions() const {
    // By lines: compilers limit the length of one string.
    std::string text = fmt::format("\nstatic const char* {}_source[] = {{\n", symbol());
    for (const std::string_view line : base::split(base::trim(code().bytes), '\n')) {
      text += "    \"";
      for (const char c : line) text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
      text += "\\n\",\n";
    }
    text += fmt::format(
        "}};\n\n{0} {{\n  return graft_opencl_create(context, device, {1}_source, sizeof {1}_source / sizeof "
        "*{1}_source, "
        "made);\n}}\n",
        create_prototype(symbol()), symbol());
    if (prepares()) text += definition(symbol() + "_prepare", true);
    return text + definition(symbol(), false);
  }

 private:
  std::string definition(const std::string& name, bool prepares) const {
    std::vector<std::string> memory;
    for (const Interface::Tensor& tensor : interface.tensors)
      memory.push_back(!prepares || tensor.role == Role::constant ? tensor.argument : "NULL");
    return fmt::format(
        "\n{} {{\n  const cl_mem all[] = {{{}}};\n  return graft_opencl_enqueue(kernel, queue, {}, all, {});\n}}\n",
        prototype(interface, name, prepares), fmt::join(memory, ", "), int(prepares), memory.size());
  }
};

std::string header(const Interface& interface, const std::vector<Kernel>& kernels) {
  std::string text = fmt::format(
      "/* Kernels of OpenCL for {}, made by graft {}. Compile {}.c with the program, and link it with OpenCL. */\n"
      "#ifndef {}\n#define {}\n\n#include \"graft_opencl.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
      interface.platform_names(), interface.graft, interface.name, interface.guard, interface.guard);
  for (const Kernel& kernel : kernels) text += kernel.declarations();
  return text + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", interface.guard);
}

std::string source(const Interface& interface, const std::vector<Kernel>& kernels) {
  std::string text = fmt::format("#include \"{}.h\"\n", interface.name);
  for (const Kernel& kernel : kernels) text += kernel.definitions();
  return text;
}

std::string cmake_text(const std::string& name) {
  return fmt::format(
      "# find_package({0} CONFIG PATHS this folder) gives the target {0}::{0}, which adds {0}.c to a program in C.\n"
      "if(NOT TARGET {0}::{0})\n"
      "  include(CMakeFindDependencyMacro)\n"
      "  find_dependency(OpenCL)\n"
      "  add_library({0}::{0} INTERFACE IMPORTED)\n"
      "  set_target_properties({0}::{0} PROPERTIES\n"
      "    INTERFACE_SOURCES \"${{CMAKE_CURRENT_LIST_DIR}}/{0}.c\"\n"
      "    INTERFACE_INCLUDE_DIRECTORIES \"${{CMAKE_CURRENT_LIST_DIR}}\"\n"
      "    INTERFACE_LINK_LIBRARIES OpenCL::OpenCL)\n"
      "endif()\n",
      name);
}

base::Document document(const Interface& interface, const std::vector<Kernel>& kernels) {
  base::Document functions = base::Document::list();
  for (const Kernel& kernel : kernels) {
    const Interface::Variant& from = kernel.interface.variants.front();
    base::Document tensors = base::Document::list();
    for (const Interface::Tensor& tensor : kernel.interface.tensors) tensors.push(to_document(tensor));
    functions.push(
        base::Document::map()
            .set("name", kernel.interface.name)
            .set("workload", kernel.interface.workload)
            .set("tensors", std::move(tensors))
            .set("source", kernel.symbol() + ".cl")
            .set("create", kernel.symbol() + "_create")
            .set("prepare", kernel.prepares() ? base::Document(kernel.symbol() + "_prepare") : base::Document())
            .set("run", kernel.symbol())
            .set("schedule", to_document(from.schedule))
            .set("seconds", from.seconds)
            .set("check", from.check));
  }
  return base::Document::map()
      .set("kind", "opencl")
      .set("schema", 1)
      .set("name", interface.name)
      .set("graft", interface.graft)
      .set("platform", interface.platforms.front().name)
      .set("target", to_document(interface.platforms.front().target))
      .set("functions", std::move(functions));
}

// ---- the program that checks itself

constexpr std::string_view check_head = R"(
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define TIMES 20

typedef struct {
  size_t element;
  double expected, allowed;
} Sample;

static cl_context context;
static cl_command_queue queue;

static void require(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  fprintf(stderr, "%s: error %d of OpenCL\n", what, error);
  exit(2);
}

/* -64 to 63, by element and operand. */
static inline int drawn(uint32_t operand, size_t element) {
  return (int)(((uint32_t)element * 2654435761u + operand * 40503u) >> 25) - 64;
}

static inline uint16_t half_of(int number) { /* of number / 64 */
  int exponent = 9, bits = number < 0 ? -number : number;
  if (number == 0) return 0;
  for (; bits < 1024; --exponent) bits *= 2;
  return (uint16_t)((number < 0 ? 0x8000 : 0) | (exponent + 10) << 10 | (bits & 1023));
}

static inline double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double size = exponent == 31  ? (bits & 1023 ? NAN : INFINITY)
                      : exponent == 0 ? ldexp(bits & 1023, -24)
                                      : ldexp((bits & 1023) + 1024, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

static inline uint16_t bfloat_of(int number) {
  const float value = (float)number / 64;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static inline double from_bfloat(uint16_t stored) {
  const uint32_t bits = (uint32_t)stored << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static cl_mem memory_of(size_t bytes, void* values) {
  cl_int error;
  const cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, values, &error);
  require(error, "clCreateBuffer");
  free(values);
  return memory;
}

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC); /* of C11 */
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int is_right(const char* name, const Sample* sample, double got) {
  if (fabs(got - sample->expected) <= sample->allowed) return 1;
  printf("%s: element %zu is %.9g instead of %.9g (allowed error %.3g)\n", name, sample->element, got, sample->expected,
         sample->allowed);
  return 0;
}
)";

constexpr std::string_view check_main = R"(
int main(int count, char** arguments) {
  cl_platform_id platforms[16];
  cl_device_id devices[64], device;
  cl_uint platform_count = 0, found = 0, p;
  const cl_uint number = count > 1 ? (cl_uint)atoi(arguments[1]) : 0;
  cl_int error;
  int right = 1;
  require(clGetPlatformIDs(16, platforms, &platform_count), "clGetPlatformIDs");
  for (p = 0; p < platform_count && p < 16 && found < 64; ++p) {
    cl_uint here = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 64 - found, devices + found, &here) == CL_SUCCESS) found += here;
  }
  if (number >= found) {
    fprintf(stderr, "there is no device %u of OpenCL here\n", number);
    return 2;
  }
  device = devices[number];
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  require(error, "clCreateContext");
  queue = clCreateCommandQueue(context, device, 0, &error);
  require(error, "clCreateCommandQueue");
)";

// What is particular to a type: an input from the number drawn, and an output as a double.
std::string stored_text(DType type) {
  switch (type) {
    case DType::f16:
      return "half_of(number)";
    case DType::bf16:
      return "bfloat_of(number)";
    case DType::u8:
      return "(uint8_t)(number + 64)";
    case DType::f32:
    case DType::f64:
      return fmt::format("({})number / 64", c_type(type));
    default:
      return fmt::format("({})number", c_type(type));
  }
}

std::string number_text(DType type) {
  if (type == DType::f16) return "from_half(values[sample->element])";
  if (type == DType::bf16) return "from_bfloat(values[sample->element])";
  return "(double)values[sample->element]";
}

std::string samples_text(const std::string& name, const Reference& reference, std::size_t t, DType type,
                         double amplification) {
  std::string text = fmt::format("static const Sample {}[] = {{\n", name);
  const auto elements = std::int64_t(reference.tensors[t].size());
  const std::int64_t step = std::max<std::int64_t>(1, elements / most_samples);
  std::int64_t count = 0;
  for (std::int64_t part = 0; part < elements; part += step) {
    // Anywhere in its part, so that samples are not all of one column.
    const std::int64_t offset = std::uint32_t(part / step) * 2654435761u % std::uint64_t(step);
    const std::int64_t i = std::min(part + offset, elements - 1);
    const double expected = reference.tensors[t][std::size_t(i)], size = reference.magnitude[t][std::size_t(i)];
    if (!std::isfinite(expected) || !std::isfinite(size)) continue;
    text += fmt::format("    {{{}, {:.17g}, {:.3g}}},\n", i, expected,
                        amplification * tolerance(type, reference.reduction_length[t], size));
    ++count;
  }
  return count > 0 ? text + "};\n" : "";
}

// The results for the inputs that the program makes, too.
Reference expected_of(const Computation& computation) {
  std::vector<Elements> operands(computation.tensors.size());
  for (std::size_t t = 0; t < operands.size(); ++t) {
    const Tensor& tensor = computation.tensors[t];
    if (tensor.role != Role::input && tensor.role != Role::constant) continue;
    std::vector<double> values(std::size_t(tensor.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = input_of(tensor.dtype, std::int64_t(t), std::int64_t(i));
    operands[t] = std::move(values);
  }
  return reference(computation, std::move(operands));
}

// Makes the memory of tensor t of the computation.
std::string fill_text(const Interface::Tensor& tensor, std::size_t t, std::int64_t elements) {
  std::string text =
      fmt::format("  {{\n    {0}* values = ({0}*)calloc({1}, sizeof({0}));\n", c_type(tensor.dtype), elements);
  if (tensor.role != Role::output)
    text += fmt::format(
        "    size_t i;\n    for (i = 0; i < {}; ++i) {{\n      const int number = drawn({}, i);\n"
        "      values[i] = {};\n    }}\n",
        elements, t, stored_text(tensor.dtype));
  return text +
         fmt::format("    m_{} = memory_of({}, values);\n  }}\n", tensor.argument, elements * bytes_of(tensor.dtype));
}

// Compares an output with the samples of that name.
std::string compare_text(const Kernel& kernel, const Interface::Tensor& tensor, const std::string& samples,
                         std::int64_t elements) {
  return fmt::format(
      "  {{\n    {0}* values = ({0}*)malloc({1});\n    size_t i;\n"
      "    require(clEnqueueReadBuffer(queue, m_{2}, CL_TRUE, 0, {1}, values, 0, NULL, NULL), "
      "\"clEnqueueReadBuffer\");\n"
      "    for (i = 0; i < sizeof {3} / sizeof {3}[0]; ++i) {{\n      const Sample* sample = {3} + i;\n"
      "      right &= is_right(\"{4}.{2}\", sample, {5});\n    }}\n    free(values);\n  }}\n",
      c_type(tensor.dtype), elements * bytes_of(tensor.dtype), tensor.argument, samples, kernel.interface.name,
      number_text(tensor.dtype));
}

// Checks and times one function.
std::string check_text(const Kernel& kernel) {
  const Computation computation = kernel.function.workload.computation();
  const Reference expected = expected_of(computation);
  std::string samples, body = fmt::format("\nstatic int check_{}(cl_device_id device) {{\n", kernel.interface.name);
  std::string arguments, constants, fill, compare;
  std::size_t next = 0;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    if (computation.tensors[t].role == Role::temporary) continue;
    const Interface::Tensor& tensor = kernel.interface.tensors[next++];
    const std::int64_t elements = computation.tensors[t].elements();
    arguments += ", m_" + tensor.argument;
    body += fmt::format("  cl_mem m_{};\n", tensor.argument);
    fill += fill_text(tensor, t, elements);
    if (tensor.role == Role::constant) constants += ", m_" + tensor.argument;
    if (tensor.role != Role::output) continue;
    const std::string list = fmt::format("samples_{}_{}", kernel.interface.name, tensor.argument);
    const std::string text = samples_text(list, expected, t, tensor.dtype, kernel.code().signature.amplification);
    samples += text;
    if (!text.empty()) compare += compare_text(kernel, tensor, list, elements);
  }
  body += "  graft_opencl* kernel;\n  double best = 1e30;\n  int right = 1, i;\n" + fill;
  body += fmt::format(
      "  if ({0}_create(context, device, &kernel) != CL_SUCCESS) {{\n"
      "    fprintf(stderr, \"{1}: cannot be built here: %s\\n\", kernel == NULL ? \"no memory\" : kernel->log);\n"
      "    return 0;\n  }}\n",
      kernel.symbol(), kernel.interface.name);
  if (kernel.prepares())
    body += fmt::format("  require({0}_prepare(kernel, queue{1}), \"{0}_prepare\");\n", kernel.symbol(), constants);
  body += fmt::format("  require({0}(kernel, queue{1}), \"{0}\");\n  require(clFinish(queue), \"clFinish\");\n",
                      kernel.symbol(), arguments);
  body += compare;
  body += fmt::format(
      "  for (i = 0; i < TIMES; ++i) {{\n    const double begin = now();\n    double seconds;\n"
      "    require({0}(kernel, queue{1}), \"{0}\");\n    require(clFinish(queue), \"clFinish\");\n"
      "    seconds = now() - begin;\n    if (seconds < best) best = seconds;\n  }}\n"
      "  printf(\"{2}: %s, %.1f us\\n\", right ? \"right\" : \"WRONG\", 1e6 * best);\n",
      kernel.symbol(), arguments, kernel.interface.name);
  for (const Interface::Tensor& tensor : kernel.interface.tensors)
    body += fmt::format("  clReleaseMemObject(m_{});\n", tensor.argument);
  return "\n" + samples + body + "  graft_opencl_release(kernel);\n  return right;\n}\n";
}

std::string check_program(const Interface& interface, const std::vector<Kernel>& kernels) {
  std::string text = fmt::format(
      "/* Checks what is in {0}.h on a device of this machine (its number is the argument), and times it:\n"
      " *   cc {0}_check.c {0}.c -o {0}_check -lOpenCL -lm && ./{0}_check 0\n"
      " * Results are compared with a sample of what the workloads' definitions give. */\n#include \"{0}.h\"\n",
      interface.name);
  text += check_head;
  std::string calls;
  for (const Kernel& kernel : kernels) {
    text += check_text(kernel);
    calls += fmt::format("  right &= check_{}(device);\n", kernel.interface.name);
  }
  return text + std::string(check_main) + calls +
         "  clReleaseCommandQueue(queue);\n  clReleaseContext(context);\n  return right ? 0 : 1;\n}\n";
}

// Arguments that would hide what functions here have themselves get other names. UserError for functions of one name.
void rename(Interface& interface) {
  std::set<std::string> functions;
  for (Interface::Function& function : interface.functions) {
    for (const char* const end : {"", "_create", "_prepare"})
      if (!functions.insert(function.run.symbol + end).second)
        throw base::UserError("function name", fmt::format("'{}{}' is what two functions need; choose another",
                                                           function.run.symbol, end));
    CNames names;
    for (const char* const own : {"kernel", "queue", "all", "graft_opencl"}) names.reserve(own);
    for (Interface::Tensor& tensor : function.tensors) {
      const bool is_of_opencl = tensor.argument.starts_with("cl") || tensor.argument.starts_with("CL");
      if (is_of_opencl) names.reserve(tensor.argument);
      tensor.argument = names.take(tensor.argument);
    }
  }
}

}  // namespace

std::map<std::string, std::string> opencl_library_files(const Library& library) {
  check(library);
  Interface interface = interface_of(library);
  check(interface);
  rename(interface);
  std::vector<Kernel> kernels;
  for (std::size_t f = 0; f < library.functions.size(); ++f)
    kernels.push_back({interface.functions[f], library.functions[f]});
  std::map<std::string, std::string> files;
  files[interface.name + ".h"] = header(interface, kernels);
  files[interface.name + ".c"] = source(interface, kernels);
  files[interface.name + ".json"] = document(interface, kernels).to_json() + "\n";
  files[interface.name + "_check.c"] = check_program(interface, kernels);
  files[interface.name + "Config.cmake"] = cmake_text(interface.name);
  files["graft_opencl.h"] = opencl_header_text();
  for (const Kernel& kernel : kernels) files[kernel.symbol() + ".cl"] = kernel.code().bytes;
  return files;
}

}  // namespace graft::codegen
