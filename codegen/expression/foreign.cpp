#include "codegen/expression/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "codegen/deployed/graft_foreign.h"
#include "codegen/expression/parse.h"

namespace graft::codegen {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr DType append_types[] = {DType::f32, DType::f64, DType::i64, DType::i32,
                                  DType::i8,  DType::u8,  DType::f16, DType::bf16};  // by n[5] of graft_append
constexpr std::int64_t header = 8;                                                   // as graft_foreign.h
constexpr std::int64_t most_elements = std::int64_t(1) << 32;                        // of an operand or a result

// Elements of the operands, with their types, and of the result.
struct Sizes {
  std::vector<std::pair<DType, double>> operands;
  double result = 0;
  DType result_type = DType::i64;
};

std::optional<Sizes> of_suppression(const Numbers& n) {
  if (n.size() != 6 || n[3] > n[2] || n[4] > 1 || n[5] > 1) return std::nullopt;
  const double batches = double(n[0]), classes = double(n[1]), boxes = double(n[2]);
  return Sizes{
      {{DType::f32, batches * boxes * 4}, {DType::f32, batches * classes * boxes}, {DType::f32, 1}, {DType::f32, 1}},
      double(header) + 3 * batches * classes * double(n[3]) + boxes};
}

std::optional<Sizes> of_non_zero(const Numbers& n) {
  if (n.size() < 3 || n[0] != std::int64_t(n.size()) - 2) return std::nullopt;
  double elements = 1;
  for (std::size_t d = 2; d < n.size(); ++d) elements *= double(n[d]);
  if (elements != double(n[1])) return std::nullopt;
  return Sizes{{{DType::u8, elements}}, double(header) + double(n[0]) * elements};
}

std::optional<Sizes> of_unique(const Numbers& n) {
  if (n.size() != 4 || n[2] > 1 || n[3] > 1) return std::nullopt;
  return Sizes{{{n[2] == 1 ? DType::i64 : DType::f64, double(n[0]) * double(n[1])}}, double(header) + 5 * double(n[0])};
}

std::optional<Sizes> of_top_k(const Numbers& n) {
  if (n.size() != 5 || n[2] > n[1] || n[3] > 1 || n[4] > 1) return std::nullopt;
  return Sizes{{{n[3] == 1 ? DType::i64 : DType::f64, double(n[0]) * double(n[1])}},
               double(header) + double(n[0]) * double(n[2]) + double(n[1])};
}

std::optional<Sizes> of_append(const Numbers& n) {
  if (n.size() != 6 || n[5] >= std::int64_t(std::size(append_types)) || n[4] > n[2]) return std::nullopt;
  const DType type = append_types[n[5]];
  const double parts = double(n[0]) * double(n[1]) * double(n[3]), all = parts * double(n[2]);
  return Sizes{{{type, all}, {type, parts * double(n[4])}, {DType::i64, double(n[0])}}, all, type};
}

struct Function {
  const char* name;
  void (*call)(void* const* buffers, const std::int64_t* n);
  std::optional<Sizes> (*sizes)(const Numbers& n);
};
constexpr Function functions[] = {
    {"graft_non_max_suppression", graft_non_max_suppression, of_suppression},
    {"graft_non_zero", graft_non_zero, of_non_zero},
    {"graft_unique", graft_unique, of_unique},
    {"graft_top_k", graft_top_k, of_top_k},
    {"graft_append", graft_append, of_append},
};

const Function* function_named(const std::string& name) {
  const Function* const found =
      std::find_if(std::begin(functions), std::end(functions), [&](const Function& each) { return each.name == name; });
  return found == std::end(functions) ? nullptr : found;
}

// For a user's function: by the shapes of its tensors.
std::optional<Sizes> sizes_by_shapes(const Foreign& foreign) {
  const Numbers& n = foreign.numbers;
  if (n.empty() || n[0] < 2 || n[0] != std::int64_t(foreign.types.size())) return std::nullopt;
  std::vector<std::pair<DType, double>> tensors;
  std::size_t at = 1;
  for (const DType type : foreign.types) {
    if (at >= n.size() || n[at] > std::int64_t(n.size() - at - 1)) return std::nullopt;
    double elements = 1;
    for (const std::size_t end = at + 1 + std::size_t(n[at]); ++at < end;) elements *= double(n[at]);
    tensors.emplace_back(type, elements);
  }
  if (at != n.size()) return std::nullopt;
  const double result = tensors.back().second;
  tensors.pop_back();
  return Sizes{std::move(tensors), result, foreign.types.back()};
}

}  // namespace

base::Result<Computation> computation_of(const Foreign& foreign) {
  const bool is_own = foreign.code.empty();
  const Function* const function = is_own ? function_named(foreign.function) : nullptr;
  if (is_own && function == nullptr)
    return base::Reason{fmt::format("'{}' is not a function of graft", foreign.function)};
  const bool are_extents =
      std::all_of(foreign.numbers.begin(), foreign.numbers.end(), [](std::int64_t number) { return number >= 0; });
  const std::optional<Sizes> sizes = !are_extents ? std::nullopt
                                     : is_own     ? function->sizes(foreign.numbers)
                                                  : sizes_by_shapes(foreign);
  const auto fits = [](double elements) { return elements >= 1 && elements <= double(most_elements); };
  if (!sizes || !fits(sizes->result) ||
      !std::all_of(sizes->operands.begin(), sizes->operands.end(), [&](const auto& each) { return fits(each.second); }))
    return base::Reason{fmt::format("'{}' does not take these numbers", foreign.function)};
  std::string text;
  for (std::size_t o = 0; o < sizes->operands.size(); ++o)
    text += fmt::format("input x{}[{}] : {}; ", o, std::int64_t(sizes->operands[o].second),
                        name_of(sizes->operands[o].first));
  text += fmt::format("output y[i0] : {} = 0 where i0={}", name_of(sizes->result_type), std::int64_t(sizes->result));
  return parse_computation(text, {}, DType::f32, foreign.function);
}

Foreign append(const std::vector<std::int64_t>& extents, DType type) {
  Foreign foreign{"graft_append", extents};
  foreign.numbers.push_back(std::find(std::begin(append_types), std::end(append_types), type) - append_types);
  return foreign;
}

bool may_overwrite_first(const Foreign& foreign) {
  return foreign.code.empty() && foreign.function == "graft_append";
}

Elements evaluated(const Foreign& foreign, const Computation& computation, const std::vector<Elements>& operands) {
  const std::size_t y = std::size_t(computation.tensor_named("y"));
  if (!foreign.code.empty()) return Elements(computation.tensors[y].dtype, foreign.run(foreign, computation, operands));
  std::vector<std::string> bytes;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t) {
    const Tensor& tensor = computation.tensors[t];
    // Memory of doubles is aligned for all of them.
    bytes.push_back(t == y ? std::string(std::size_t(tensor.bytes()), '\0') : operands[t].bytes(tensor.dtype));
  }
  std::vector<void*> buffers;
  for (std::size_t t = 0; t < bytes.size(); ++t)
    if (t != y) buffers.push_back(bytes[t].data());
  buffers.push_back(bytes[y].data());
  function_named(foreign.function)->call(buffers.data(), foreign.numbers.data());
  return Elements(computation.tensors[y].dtype, std::move(bytes[y]));
}

}  // namespace graft::codegen
