#include "codegen/machine/intrinsic_code.h"

#include <fmt/format.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/MemoryBufferRef.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <set>
#include <vector>

#include "base/one_line.h"

namespace graft::codegen {
namespace {

// Numbers of 16 bits are integers, whose bits they are.
llvm::Type* element_type(llvm::LLVMContext& context, DType type) {
  const unsigned bits = unsigned(8 * bytes_of(type));
  if (!is_floating(type) || computed_in(type) != type) return llvm::Type::getIntNTy(context, bits);
  return bits == 32 ? llvm::Type::getFloatTy(context) : llvm::Type::getDoubleTy(context);
}

llvm::Type* type_of(llvm::LLVMContext& context, const Tensor& tensor) {
  llvm::Type* element = element_type(context, tensor.dtype);
  return tensor.elements() == 1 ? element : llvm::FixedVectorType::get(element, unsigned(tensor.elements()));
}

llvm::FunctionType* type_of(llvm::LLVMContext& context, const Intrinsic& intrinsic) {
  std::vector<llvm::Type*> operands;
  llvm::Type* output = type_of(context, intrinsic.output());
  if (intrinsic.stage().combine != Combine::none) operands.push_back(output);
  for (const Tensor& tensor : intrinsic.computation.tensors)
    if (tensor.role != Role::output) operands.push_back(type_of(context, tensor));
  return llvm::FunctionType::get(output, operands, false);
}

std::string text_of(const llvm::Type& type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

}  // namespace

llvm::Function* add_intrinsic(llvm::Module& module, const Intrinsic& intrinsic) {
  const auto fail = [&](const std::string& text) -> void {
    throw base::UserError(fmt::format("intrinsic {}", intrinsic.name), text);
  };
  std::set<const llvm::Function*> before;
  for (const llvm::Function& known : module) before.insert(&known);
  llvm::SMDiagnostic error;
  llvm::LLVMContext& context = module.getContext();
  const bool discards = context.shouldDiscardValueNames();
  context.setDiscardValueNames(false);  // or no text could be read
  const bool failed =
      llvm::parseAssemblyInto(llvm::MemoryBufferRef(intrinsic.body, intrinsic.name), &module, nullptr, error);
  context.setDiscardValueNames(discards);
  if (failed) fail(fmt::format("line {} of its body: {}", error.getLineNo(), base::one_line(error.getMessage())));
  llvm::Function* function = nullptr;
  for (llvm::Function& found : module) {
    if (before.contains(&found) || found.isIntrinsic()) continue;
    if (found.isDeclaration() || found.getName() != intrinsic.name)
      fail(fmt::format("its body names '{}'; it may define '{}' and declare LLVM intrinsics", found.getName().str(),
                       intrinsic.name));
    function = &found;
  }
  if (function == nullptr) fail(fmt::format("its body defines no function '{}'", intrinsic.name));
  llvm::FunctionType* wanted = type_of(context, intrinsic);
  if (function->getFunctionType() != wanted)
    fail(fmt::format("its body is {}, its expression asks for {}", text_of(*function->getFunctionType()),
                     text_of(*wanted)));
  if (function->size() != 1) fail("its body has branches; it must be one block");
  for (const llvm::Instruction& instruction : function->front()) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call != nullptr && !call->isInlineAsm() &&
        (!call->getCalledFunction() || !call->getCalledFunction()->isIntrinsic()))
      fail("its body calls a function; it may call LLVM intrinsics only");
  }
  std::string wrong;
  llvm::raw_string_ostream stream(wrong);
  if (llvm::verifyFunction(*function, &stream)) fail(fmt::format("its body is not well formed: {}", wrong));
  function->setLinkage(llvm::Function::InternalLinkage);
  function->setName("intrinsic." + intrinsic.name);  // no name that a kernel may have
  return function;
}

void inline_everywhere(llvm::Function& function) {
  while (!function.use_empty()) {
    llvm::InlineFunctionInfo info;
    llvm::InlineFunction(*llvm::cast<llvm::CallInst>(function.user_back()), info);
  }
  function.eraseFromParent();
}

}  // namespace graft::codegen
