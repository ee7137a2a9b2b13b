// Private to this folder: LLVM's target machines and passes behind a few calls. Knows nothing of loop programs.
#pragma once

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Target/TargetMachine.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "codegen/expression/target.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/emitter.h"

namespace graft::codegen {

// Registers all targets, once. lld does the same without a lock, so it must find them registered when it starts while
// another thread compiles.
void initialise_llvm();

// check_target without code: throws TargetError for what LLVM does not know, and for vectors of a length that the
// target cannot have.
void check_description(const Target& target);

// The target machine of the calling thread for a target; valid until that thread ends. Position-independent code, fused
// multiply-add allowed. Throws the TargetError of check_description.
llvm::TargetMachine& target_machine(const Target& target, int codegen_level);

// The least length of vectors that the extensions of a RISC-V target promise; 0 without vectors, and elsewhere.
std::int64_t least_vector_bits(const Target& target);

// Names of all features and cpus that LLVM knows for the target's architecture.
std::set<std::string> feature_names(const Target& target);
std::set<std::string> cpu_names(const Target& target);

// The first of `features` ("+avx512vnni,+avx512vl") that the target does not have; empty if it has them all. Throws
// UserError for one that LLVM does not know.
std::string missing_feature(const Target& target, const std::string& features);

// Throws as target_machine.
CodeAttributes code_attributes(const Target& target);

// A module of this triple and data layout, ready to be filled.
std::unique_ptr<llvm::Module> empty_module(llvm::LLVMContext& context, llvm::TargetMachine& machine);

// Runs the pipeline's passes, for a program that repeats accesses (analysis.h) or not; a Reason where they report an
// error. Throws UserError for passes that LLVM cannot parse.
std::optional<base::Reason> optimise(llvm::Module& module, llvm::TargetMachine& machine, const Pipeline& pipeline,
                                     bool repeats);

// The passes of a target's code generator without those that the pipeline leaves out.
class CodegenPasses : public llvm::legacy::PassManagerBase {
 public:
  explicit CodegenPasses(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}
  void add(llvm::Pass* pass) override;
  void run(llvm::Module& module) { kept_.run(module); }

 private:
  Pipeline pipeline_;
  llvm::legacy::PassManager kept_;
};

// Runs the function and returns the errors that LLVM reports meanwhile. Without this LLVM would print them and end the
// process.
std::string errors_while(llvm::LLVMContext& context, const std::function<void()>& function);

// Code of a module, as an object file or as assembly text; a Reason when the back end reports an error.
base::Result<std::string> generate(llvm::Module& module, llvm::TargetMachine& machine, const Pipeline& pipeline,
                                   llvm::CodeGenFileType type);

// Object code of a text of LLVM IR (without target triple and data layout, which are those of the target); `complete`
// may change the module before its code is made, such as give declared data their content.
base::Result<std::string> code_of_text(std::string_view text, const Target& target, const Pipeline& pipeline,
                                       const std::function<void(llvm::Module&)>& complete = {});

}  // namespace graft::codegen
