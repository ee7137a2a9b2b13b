// Private to this folder. Where LLVM cannot go on it ends the process (report_fatal_error, no memory); here that is an
// exception. What is known to be fatal is refused before (check_target): this is for the rest.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "codegen/expression/target.h"

namespace graft::codegen {

// How LLVM reports what is fatal from now on; initialise_llvm() calls it, once.
void install_fatal_handlers();

// How often LLVM has given up on the calling thread.
int times_given_up();

// Runs `call`, which calls LLVM; what LLVM said if it gave up there. Then all that the call had on the stack is left as
// it is, neither used again nor destroyed: LLVM is compiled without exceptions, so it is left as its own
// CrashRecoveryContext leaves it, by longjmp. Hence `call` takes no lock, and no more than memory is lost.
std::optional<std::string> last_words(const std::function<void()>& call);

[[noreturn]] void throw_gave_up(const Target& target, const std::string& said);

// The result of a call for a target's code; throws GaveUp (compile.h).
template <class Call>
auto guarded(const Target& target, const Call& call) {
  std::optional<decltype(call())> result;
  if (const auto said = last_words([&] { result.emplace(call()); })) throw_gave_up(target, *said);
  return std::move(*result);
}

// What a thread keeps of LLVM's from call to call, default-made on first use. Those in use when LLVM gave up on the
// thread are left as they are, too, and new ones take their place.
template <class T>
class Kept {
 public:
  Kept() = default;
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (made_at_ == times_given_up()) delete value_;
  }
  T& get() {
    if (value_ == nullptr || made_at_ != times_given_up()) {
      value_ = new T;
      made_at_ = times_given_up();
    }
    return *value_;
  }

 private:
  T* value_ = nullptr;
  int made_at_ = 0;
};

}  // namespace graft::codegen
