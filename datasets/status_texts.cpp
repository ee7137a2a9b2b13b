#include "datasets/status_texts.h"

#include <array>

namespace graft::datasets {
namespace {

using enum Status;

constexpr std::array texts = {
    StatusText{ok, "The program ran, and its result was right where it was checked.", "none", ""},
    StatusText{does_not_lower, "The schedule cannot be applied to the workload, or its program is beyond limits.",
               "the step and the condition that it does not meet",
               "look at the steps of the space (`graft inspect WORKLOAD --space FILE`)"},
    StatusText{does_not_compile, "The loop program lowers, but no machine code is made of it.",
               "what the code generator or the linker says", "check the platform's triple, cpu and features"},
    StatusText{wrong_result,
               "The program ran, and an element of its result is further from the reference than rounding explains.",
               "the element, its value and the reference's",
               "check the micro-kernels of `intrinsics`; without any, report it as a fault of graft"},
    StatusText{crashed, "The program was ended by a signal, or the board was lost while it ran.",
               "the signal, or what the connection says",
               "check that the platform's features are those of the machine (`graft platform probe`)"},
    StatusText{timed_out, "The program did not end within its `timeout`.", "the time allowed", "raise `timeout`"},
    StatusText{out_of_memory, "The program needs more memory than the worker may have.", "what there was no room for",
               "take a smaller workload, or another space"},
    StatusText{slower_than_limit,
               "The program was stopped early because it is much slower than the best one. Its seconds are a lower "
               "bound: it is never best, a bound in losses, and left out of metrics.",
               "the limit", "none is needed"},
    StatusText{unsupported, "This platform cannot run the program.",
               "the instructions that the platform's model lacks, or what the linker says",
               "choose another platform, or another space"},
    StatusText{no_time, "A program of one's own ended well, but said no time that is understood.",
               "what it printed in the place of its time", "see what `--time` understands (tune your own program)"},
    StatusText{not_allowed, "A program of one's own ended well, but a measure of it is beyond the bound of `--also`.",
               "the measure and its bound", "none is needed"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (std::size_t(texts[i].status) != i) return false;
  return true;
}
#define X(name) +1
static_assert(texts.size() == 0 GRAFT_STATUSES(X) && in_order(), "one text for each status, in their order");
#undef X

}  // namespace

std::span<const StatusText> status_texts() {
  return texts;
}

}  // namespace graft::datasets
