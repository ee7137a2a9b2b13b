#include "codegen/machine/c_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace graft::codegen {
namespace {

// Names that begin with an underscore are left out: identifier() never gives one.
constexpr std::string_view words[] = {
    // C
    "alignas", "alignof", "auto", "bool", "break", "case", "char", "const", "constexpr", "continue", "default", "do",
    "double", "else", "enum", "extern", "false", "float", "for", "goto", "if", "inline", "int", "long", "nullptr",
    "register", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert", "struct", "switch",
    "thread_local", "true", "typedef", "typeof", "typeof_unqual", "union", "unsigned", "void", "volatile", "while",
    // C++
    "and", "and_eq", "asm", "bitand", "bitor", "catch", "char16_t", "char32_t", "char8_t", "class", "co_await",
    "co_return", "co_yield", "compl", "concept", "const_cast", "consteval", "constinit", "decltype", "delete",
    "dynamic_cast", "explicit", "export", "friend", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "operator", "or", "or_eq", "private", "protected", "public", "reinterpret_cast", "requires", "static_cast",
    "template", "this", "throw", "try", "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq",
    // types of headers
    "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "intptr_t", "uintptr_t",
    "intmax_t", "uintmax_t", "ptrdiff_t", "size_t", "graft_parallel_for",
    // macros of compilers (GNU dialects) and of common headers
    "linux", "unix", "i386", "arm", "mips", "sparc", "sun", "NULL", "EOF", "NAN", "INFINITY", "HUGE_VAL", "errno",
    "assert", "stdin", "stdout", "stderr", "complex", "imaginary", "noreturn", "offsetof", "CHAR_BIT", "INT_MAX",
    "INT_MIN", "LONG_MAX", "LONG_MIN", "SIZE_MAX", "FLT_MAX", "FLT_MIN", "FLT_EPSILON", "DBL_MAX", "DBL_MIN",
    "DBL_EPSILON", "INT8_MAX", "INT8_MIN", "UINT8_MAX", "INT16_MAX", "INT16_MIN", "UINT16_MAX", "INT32_MAX",
    "INT32_MIN", "UINT32_MAX", "INT64_MAX", "INT64_MIN", "UINT64_MAX", "RAND_MAX", "GRAFT_PARALLEL_H", "M_PI", "M_E"};

constexpr std::string_view functions[] = {
    "main",      "abort",   "abs",       "acos",   "acosh",    "alloca",   "asin",    "asinh",   "atan",    "atan2",
    "atanh",     "atexit",  "atof",      "atoi",   "atol",     "bcmp",     "bcopy",   "bzero",   "cabs",    "calloc",
    "cbrt",      "ceil",    "clock",     "close",  "copysign", "cos",      "cosh",    "div",     "erf",     "erfc",
    "exit",      "exp",     "exp2",      "expm1",  "fabs",     "fclose",   "fdim",    "fflush",  "floor",   "fma",
    "fmax",      "fmin",    "fmod",      "fopen",  "fprintf",  "fputs",    "fread",   "free",    "frexp",   "fscanf",
    "fwrite",    "gamma",   "getenv",    "gets",   "hypot",    "ilogb",    "index",   "isalpha", "isdigit", "isfinite",
    "isinf",     "isnan",   "isspace",   "j0",     "j1",       "jn",       "labs",    "ldexp",   "ldiv",    "lgamma",
    "llabs",     "llrint",  "llround",   "log",    "log10",    "log1p",    "log2",    "logb",    "longjmp", "lrint",
    "lround",    "malloc",  "memchr",    "memcmp", "memcpy",   "memmove",  "memset",  "modf",    "nan",     "nearbyint",
    "nextafter", "open",    "perror",    "pow",    "printf",   "putchar",  "puts",    "qsort",   "raise",   "rand",
    "read",      "realloc", "remainder", "remove", "rename",   "rindex",   "rint",    "round",   "scalb",   "scanf",
    "setjmp",    "signal",  "sin",       "sinh",   "sleep",    "snprintf", "sprintf", "sqrt",    "srand",   "sscanf",
    "strcat",    "strchr",  "strcmp",    "strcpy", "strlen",   "strncmp",  "strncpy", "strstr",  "strtod",  "strtol",
    "system",    "tan",     "tanh",      "tgamma", "time",     "tolower",  "toupper", "trunc",   "vprintf", "write",
    "y0",        "y1",      "yn"};

constexpr std::string_view headers[] = {
    "assert", "complex", "ctype",  "errno",  "fenv",        "float",   "inttypes",      "iso646",  "limits",
    "locale", "math",    "setjmp", "signal", "stdalign",    "stdarg",  "stdatomic",     "stdbool", "stdckdint",
    "stddef", "stdint",  "stdio",  "stdlib", "stdnoreturn", "string",  "strings",       "tgmath",  "threads",
    "time",   "uchar",   "unistd", "wchar",  "wctype",      "pthread", "graft_parallel", "graft_pool"};

template <std::size_t count>
bool has(const std::string_view (&list)[count], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

bool is_c_word(std::string_view name) {
  return has(words, name);
}

bool is_c_function(std::string_view name) {
  const bool single = name.ends_with('f') || name.ends_with('l');  // expf, expl
  return has(functions, name) || (single && has(functions, name.substr(0, name.size() - 1)));
}

bool is_c_header(std::string_view name) {
  return has(headers, name);
}

bool is_c_identifier(std::string_view text) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits) &&
         std::isdigit(static_cast<unsigned char>(text[0])) == 0;
}

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return text;
}

void check_header_name(std::string_view field, const std::string& name) {
  if (!is_c_identifier(name)) throw base::UserError(field, fmt::format("'{}' is not a C identifier", name));
  if (is_c_header(name))
    throw base::UserError(field, fmt::format("'{0}': {0}.h is another header; choose another", name));
}

std::string CNames::take(const std::string& wanted) {
  std::string name = wanted;
  for (int number = 1; taken_.contains(name) || is_c_word(name); ++number)
    name = number == 1 ? wanted + "_" : wanted + "_" + std::to_string(number);
  taken_.insert(name);
  return name;
}

}  // namespace graft::codegen
