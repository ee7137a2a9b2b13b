#include "codegen/machine/foreign_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/IR/Module.h>

#include <utility>

#include "base/hash.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/library_text.h"

namespace graft::codegen {
namespace {

// The two functions of a kernel (compile.h). The one that it calls is there once more for each kernel, under no name.
std::string text_of(const Foreign& foreign, const std::string& symbol) {
  std::string numbers;
  for (const std::int64_t number : foreign.numbers)
    numbers += fmt::format("{}i64 {}", numbers.empty() ? "" : ", ", number);
  return fmt::format(
      "{0}\n@graft_numbers = internal constant [{1} x i64] [{2}]\n"
      "define void @{3}_prepare(ptr %buffers, ptr %prepared, ptr %scratch) {{\n  ret void\n}}\n"
      "define void @{3}_run(ptr %buffers, ptr %prepared, ptr %scratch, ptr %parallel_for, ptr %context) {{\n"
      "  call void @{4}(ptr %buffers, ptr @graft_numbers)\n  ret void\n}}\n",
      foreign.code.empty() ? foreign_code_text() : foreign.code, foreign.numbers.size(), numbers, symbol,
      foreign.function);
}

}  // namespace

base::Result<Code> compile(const Foreign& foreign, const Target& target, const std::string& symbol) {
  const Computation computation = computation_of(foreign).value();
  // With all passes of code generation: search_pipeline leaves out what calls and branches need.
  const Pipeline pipeline{"foreign functions", "", "", 2, {}};
  auto bytes = code_of_text(text_of(foreign, symbol), target, pipeline, [&](llvm::Module& module) {
    for (llvm::Function& function : module)
      if (!function.isDeclaration() && !function.getName().starts_with(symbol))
        function.setLinkage(llvm::GlobalValue::InternalLinkage);
  });
  if (!bytes) return bytes.reason();
  Code object;
  object.hash = base::hash_bytes(*bytes);
  object.bytes = std::move(*bytes);
  object.symbol = symbol;
  object.signature.amplification = 1;
  for (const Tensor& tensor : computation.tensors)
    object.signature.parameters.push_back({tensor.name, tensor.role, tensor.dtype, tensor.shape, tensor.bytes()});
  return object;
}

}  // namespace graft::codegen
