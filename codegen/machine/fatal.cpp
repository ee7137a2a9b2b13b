#include "codegen/machine/fatal.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>

#include <csetjmp>

#include "base/one_line.h"
#include "codegen/machine/compile.h"

namespace graft::codegen {
namespace {

thread_local std::jmp_buf* way_out = nullptr;  // of the innermost call on this thread
thread_local std::string said;
thread_local int given_up = 0;

void give_up(void*, const char* message, bool) {
  if (way_out == nullptr) {  // no call of ours: as LLVM does without a handler, which then ends the process
    llvm::errs() << "LLVM ERROR: " << message << '\n';
    return;
  }
  said = base::one_line(message);
  std::longjmp(*way_out, 1);
}

std::string described(const Target& target) {
  std::string text = target.triple;
  if (!target.cpu.empty()) text = fmt::format("the cpu '{}' of {}", target.cpu, text);
  if (!target.features.empty()) text += fmt::format(" with '{}'", target.features);
  return fmt::format("{}, vectors of {} bits", text, target.vector_bits);
}

}  // namespace

void install_fatal_handlers() {
  llvm::install_fatal_error_handler(give_up);
  llvm::install_bad_alloc_error_handler(give_up);
}

int times_given_up() {
  return given_up;
}

std::optional<std::string> last_words(const std::function<void()>& call) {
  std::jmp_buf here;
  std::jmp_buf* const outer = way_out;
  if (setjmp(here) == 0) {
    way_out = &here;
    try {
      call();
    } catch (...) {
      way_out = outer;
      throw;
    }
    way_out = outer;
    return std::nullopt;
  }
  way_out = outer;
  ++given_up;
  return said;
}

void throw_gave_up(const Target& target, const std::string& said) {
  throw GaveUp(fmt::format("LLVM {} gave up on code for {}: {}; correct that description, or what an intrinsic needs",
                           LLVM_VERSION_STRING, described(target), said),
               said);
}

}  // namespace graft::codegen
