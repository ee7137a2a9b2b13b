#include "codegen/machine/system_calls.h"

#include <fmt/format.h>
#include <llvm/TargetParser/Triple.h>

namespace graft::codegen {

std::optional<SystemCalls> system_calls(const Target& target) {
  switch (llvm::Triple(target.triple).getArch()) {
    case llvm::Triple::x86_64:
      return SystemCalls{1,
                         60,
                         228,
                         38,
                         "syscall",
                         "={rax},{rax},{rdi},{rsi},{rdx},~{rcx},~{r11},~{memory}",
                         "xorl %ebp, %ebp\\0Aandq $-16, %rsp\\0Acall graft_main\\0A"};
    case llvm::Triple::riscv64:
      return SystemCalls{64,
                         93,
                         113,
                         103,
                         "ecall",
                         "={x10},{x17},{x10},{x11},{x12},~{memory}",
                         ".option push\\0A.option norelax\\0Alla gp, __global_pointer$\\0A.option pop\\0A"
                         "andi sp, sp, -16\\0Acall graft_main\\0A"};
    case llvm::Triple::aarch64:
      return SystemCalls{
          64, 93, 113, 103, "svc #0", "={x0},{x8},{x0},{x1},{x2},~{memory}", "mov x29, xzr\\0Abl graft_main\\0A"};
    case llvm::Triple::ppc64le:
      return SystemCalls{4,
                         1,
                         246,
                         104,
                         "sc",
                         "={r3},{r0},{r3},{r4},{r5},~{cr0},~{memory}",
                         "lis 2, .TOC.@ha\\0Aaddi 2, 2, .TOC.@l\\0A"
                         "clrrdi 1,1,4\\0Ali 0,0\\0Astdu 0,-112(1)\\0Amtlr 0\\0Abl graft_main\\0Anop\\0A"};
    default:
      return std::nullopt;
  }
}

std::string system_text(const SystemCalls& calls) {
  return fmt::format(R"(
define internal i64 @system(i64 %number, i64 %a, i64 %b, i64 %c) noinline nounwind {{
  %r = call i64 asm sideeffect "{instruction}", "{constraints}"(i64 %number, i64 %a, i64 %b, i64 %c)
  ret i64 %r
}}
)",
                     fmt::arg("instruction", calls.instruction), fmt::arg("constraints", calls.constraints));
}

std::string clock_text(const SystemCalls& calls) {
  return fmt::format(R"(
define internal i64 @graft.now() nounwind {{
  %clock = alloca [2 x i64], align 16
  %place = ptrtoint ptr %clock to i64
  %r = call i64 @system(i64 {clock_gettime}, i64 1, i64 %place, i64 0)
  %s = load volatile i64, ptr %clock
  %rest = getelementptr i64, ptr %clock, i64 1
  %ns = load volatile i64, ptr %rest
  %scaled = mul i64 %s, 1000000000
  %sum = add i64 %scaled, %ns
  ret i64 %sum
}}
)",
                     fmt::arg("clock_gettime", calls.clock_gettime));
}

std::string serial_for_text() {
  return R"(
define internal void @graft.serial_for(ptr %context, ptr %body, ptr %closure, i64 %n) nounwind {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %iteration, label %end
iteration:
  %i = phi i64 [ 0, %entry ], [ %next, %iteration ]
  call void %body(ptr %closure, i64 %i)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %iteration, label %end
end:
  ret void
}
)";
}

std::string timed_text() {
  return R"(
define internal i64 @graft.timed(ptr %run, ptr %buffers, ptr %prepared, ptr %scratch, ptr %for, ptr %context, i64 %runs) noinline nounwind {
entry:
  %begin = call i64 @graft.now()
  br label %again
again:
  %r = phi i64 [ 0, %entry ], [ %next, %again ]
  call void %run(ptr %buffers, ptr %prepared, ptr %scratch, ptr %for, ptr %context)
  %next = add i64 %r, 1
  %more = icmp slt i64 %next, %runs
  br i1 %more, label %again, label %end
end:
  %stop = call i64 @graft.now()
  %took = sub i64 %stop, %begin
  ret i64 %took
}
)";
}

}  // namespace graft::codegen
