#include "codegen/machine/harness.h"

#include <fmt/format.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <optional>

#include "codegen/machine/backend.h"

namespace graft::codegen {
namespace {

// How Linux is called on an architecture.
struct SystemCalls {
  int write, exit, clock_gettime;
  const char* instruction;
  const char* constraints;  // result; number; three arguments; what is lost
  const char* start;        // assembly behind "_start:": an aligned stack, then graft_main
};

std::optional<SystemCalls> system_calls(const Target& target) {
  switch (llvm::Triple(target.triple).getArch()) {
    case llvm::Triple::x86_64:
      return SystemCalls{1,
                         60,
                         228,
                         "syscall",
                         "={rax},{rax},{rdi},{rsi},{rdx},~{rcx},~{r11},~{memory}",
                         "xorl %ebp, %ebp\\0Aandq $-16, %rsp\\0Acall graft_main\\0A"};
    case llvm::Triple::riscv64:
      return SystemCalls{64,
                         93,
                         113,
                         "ecall",
                         "={x10},{x17},{x10},{x11},{x12},~{memory}",
                         ".option push\\0A.option norelax\\0Alla gp, __global_pointer$\\0A.option pop\\0A"
                         "andi sp, sp, -16\\0Acall graft_main\\0A"};
    case llvm::Triple::aarch64:
      return SystemCalls{
          64, 93, 113, "svc #0", "={x0},{x8},{x0},{x1},{x2},~{memory}", "mov x29, xzr\\0Abl graft_main\\0A"};
    default:
      return std::nullopt;
  }
}

std::string outputs_text(const Signature& signature) {
  std::string list;
  for (const Parameter& p : signature.parameters) {
    if (p.role != Role::output) continue;
    list += fmt::format("{}{{\"name\":\"{}\",\"bytes\":{}}}", list.empty() ? "" : ",", p.name, p.bytes);
  }
  return fmt::format("{{\"outputs\":[{}],\"seconds\":[", list);
}

void add_data(llvm::Module& module, const std::string& name, llvm::Constant* content, bool constant) {
  auto* variable =
      new llvm::GlobalVariable(module, content->getType(), constant, llvm::GlobalValue::InternalLinkage, content, name);
  variable->setAlignment(llvm::Align(64));
}

// Numbers are printed as seconds with nine decimals, by integer arithmetic.
std::string program_text(const Object& object, const SystemCalls& calls, int repetitions, std::size_t head_bytes,
                         const std::string& triple, const std::string& layout) {
  std::string text =
      fmt::format(R"(
target datalayout = "{layout}"
target triple = "{triple}"

module asm ".globl _start\0A_start:\0A{start}"

@head = external global [{head_bytes} x i8]
@workspace = external global [{workspace_bytes} x i8]
@buffers = internal global [{parameters} x ptr] zeroinitializer, align 64
@digits = internal global [32 x i8] zeroinitializer
@times = internal global [{repetitions} x i64] zeroinitializer
@clock = internal global [2 x i64] zeroinitializer
@comma = internal constant [1 x i8] c","
@tail = internal constant [3 x i8] c"]}}\0A"

declare dso_local void @{symbol}_prepare(ptr, ptr)
declare dso_local void @{symbol}_run(ptr, ptr, ptr, ptr)

define internal i64 @system(i64 %number, i64 %a, i64 %b, i64 %c) noinline nounwind {{
  %r = call i64 asm sideeffect "{instruction}", "{constraints}"(i64 %number, i64 %a, i64 %b, i64 %c)
  ret i64 %r
}}

define internal void @write(ptr %bytes, i64 %count) nounwind {{
entry:
  %address = ptrtoint ptr %bytes to i64
  br label %more
more:
  %done = phi i64 [ 0, %entry ], [ %after, %wrote ]
  %at = add i64 %address, %done
  %left = sub i64 %count, %done
  %n = call i64 @system(i64 {write}, i64 1, i64 %at, i64 %left)
  %failed = icmp sle i64 %n, 0
  br i1 %failed, label %give_up, label %wrote
wrote:
  %after = add i64 %done, %n
  %again = icmp ult i64 %after, %count
  br i1 %again, label %more, label %end
give_up:
  call void @leave(i64 1)
  unreachable
end:
  ret void
}}

define internal void @leave(i64 %code) noreturn nounwind {{
  %r = call i64 @system(i64 {exit}, i64 %code, i64 0, i64 0)
  unreachable
}}

define internal i64 @now() nounwind {{
  %place = ptrtoint ptr @clock to i64
  %r = call i64 @system(i64 {clock_gettime}, i64 1, i64 %place, i64 0)
  %s = load volatile i64, ptr @clock
  %rest = getelementptr i64, ptr @clock, i64 1
  %ns = load volatile i64, ptr %rest
  %scaled = mul i64 %s, 1000000000
  %sum = add i64 %scaled, %ns
  ret i64 %sum
}}

define internal void @write_seconds(i64 %nanoseconds) nounwind {{
entry:
  br label %digit
digit:
  %i = phi i64 [ 31, %entry ], [ %next, %step ]
  %count = phi i64 [ 0, %entry ], [ %counted, %step ]
  %value = phi i64 [ %nanoseconds, %entry ], [ %shorter, %step ]
  %is_point = icmp eq i64 %count, 9
  %quotient = udiv i64 %value, 10
  %remainder = urem i64 %value, 10
  %plain = add i64 %remainder, 48
  %wide = select i1 %is_point, i64 46, i64 %plain
  %shorter = select i1 %is_point, i64 %value, i64 %quotient
  %letter = trunc i64 %wide to i8
  %place = getelementptr i8, ptr @digits, i64 %i
  store i8 %letter, ptr %place
  %counted = add i64 %count, 1
  %enough = icmp ugt i64 %counted, 10
  %zero = icmp eq i64 %shorter, 0
  %finished = and i1 %enough, %zero
  br i1 %finished, label %end, label %step
step:
  %next = sub i64 %i, 1
  br label %digit
end:
  call void @write(ptr %place, i64 %counted)
  ret void
}}

define internal void @parallel_for(ptr %context, ptr %body, ptr %closure, i64 %n) nounwind {{
entry:
  br label %iteration
iteration:
  %i = phi i64 [ 0, %entry ], [ %next, %iteration ]
  call void %body(ptr %closure, i64 %i)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %iteration, label %end
end:
  ret void
}}

define void @graft_main() noreturn nounwind {{
entry:
)",
                  fmt::arg("layout", layout), fmt::arg("triple", triple), fmt::arg("start", calls.start),
                  fmt::arg("head_bytes", head_bytes),
                  fmt::arg("workspace_bytes", std::max<std::int64_t>(64, object.signature.workspace_bytes)),
                  fmt::arg("parameters", object.signature.parameters.size()), fmt::arg("repetitions", repetitions),
                  fmt::arg("symbol", object.symbol), fmt::arg("instruction", calls.instruction),
                  fmt::arg("constraints", calls.constraints), fmt::arg("write", calls.write),
                  fmt::arg("exit", calls.exit), fmt::arg("clock_gettime", calls.clock_gettime));
  for (std::size_t p = 0; p < object.signature.parameters.size(); ++p)
    text += fmt::format(
        "  %slot{0} = getelementptr ptr, ptr @buffers, i64 {0}\n"
        "  store ptr @data{0}, ptr %slot{0}\n",
        p);
  text += fmt::format(R"(
  call void @{0}_prepare(ptr @buffers, ptr @workspace)
  br label %repeat
repeat:
  %r = phi i64 [ 0, %entry ], [ %r_next, %repeat ]
  %begin = call i64 @now()
  call void @{0}_run(ptr @buffers, ptr @workspace, ptr @parallel_for, ptr null)
  %stop = call i64 @now()
  %took = sub i64 %stop, %begin
  %time = getelementptr i64, ptr @times, i64 %r
  store i64 %took, ptr %time
  %r_next = add i64 %r, 1
  %again = icmp slt i64 %r_next, {1}
  br i1 %again, label %repeat, label %report
report:
  call void @write(ptr @head, i64 {2})
  br label %line
line:
  %k = phi i64 [ 0, %report ], [ %k_next, %after ]
  %first = icmp eq i64 %k, 0
  br i1 %first, label %after, label %separate
separate:
  call void @write(ptr @comma, i64 1)
  br label %after
after:
  %shown_at = getelementptr i64, ptr @times, i64 %k
  %shown = load i64, ptr %shown_at
  call void @write_seconds(i64 %shown)
  %k_next = add i64 %k, 1
  %more = icmp slt i64 %k_next, {1}
  br i1 %more, label %line, label %outputs
outputs:
  call void @write(ptr @tail, i64 3)
)",
                      object.symbol, repetitions, head_bytes);
  for (std::size_t p = 0; p < object.signature.parameters.size(); ++p)
    if (object.signature.parameters[p].role == Role::output)
      text += fmt::format("  call void @write(ptr @data{}, i64 {})\n", p, object.signature.parameters[p].bytes);
  text += "  call void @leave(i64 0)\n  unreachable\n}\n";
  for (std::size_t p = 0; p < object.signature.parameters.size(); ++p)
    text += fmt::format("@data{} = external global [{} x i8]\n", p, object.signature.parameters[p].bytes);
  return text;
}

}  // namespace

base::Result<std::string> harness(const Object& object, const Target& target, const Computation& computation,
                                  const Reference& reference, int repetitions) {
  assert(repetitions > 0);
  const auto calls = system_calls(target);
  if (!calls) return base::Reason{fmt::format("executable: no system calls known for {}", target.triple)};
  std::vector<int> tensors;
  for (std::size_t t = 0; t < computation.tensors.size(); ++t)
    if (computation.tensors[t].role != Role::temporary) tensors.push_back(int(t));
  assert(tensors.size() == object.signature.parameters.size());

  llvm::LLVMContext context;
  // All of the code generator: this is not a kernel, and it need not be fast to compile.
  const Pipeline pipeline{"harness", "", "", 1, {}};
  llvm::TargetMachine& machine = target_machine(target, pipeline.codegen_level);
  const std::string head = outputs_text(object.signature);
  const std::string text = program_text(object, *calls, repetitions, head.size(), machine.getTargetTriple().str(),
                                        machine.createDataLayout().getStringRepresentation());
  llvm::SMDiagnostic problem;
  auto module = llvm::parseAssemblyString(text, problem, context);
  if (!module)
    throw base::Failure(fmt::format("harness, line {}: {}", problem.getLineNo(), problem.getMessage().str()));

  // What stands as external in the text is data made here.
  const auto define = [&](const std::string& name, llvm::Constant* content) {
    llvm::GlobalVariable* declared = module->getNamedGlobal(name);
    declared->setName("");
    add_data(*module, name, content, false);
    declared->replaceAllUsesWith(module->getNamedGlobal(name));
    declared->eraseFromParent();
  };
  const auto zeros = [&](std::int64_t bytes) {
    return llvm::ConstantAggregateZero::get(llvm::ArrayType::get(llvm::Type::getInt8Ty(context), std::uint64_t(bytes)));
  };
  define("head", llvm::ConstantDataArray::getString(context, head, false));
  define("workspace", zeros(std::max<std::int64_t>(64, object.signature.workspace_bytes)));
  for (std::size_t p = 0; p < tensors.size(); ++p) {
    const Parameter& parameter = object.signature.parameters[p];
    const std::string name = fmt::format("data{}", p);
    if (parameter.role == Role::output)
      define(name, zeros(parameter.bytes));
    else
      define(name, llvm::ConstantDataArray::getString(
                       context,
                       as_bytes(packed(parameter.layout, parameter.shape, reference.tensors[std::size_t(tensors[p])]),
                                parameter.dtype),
                       false));
  }
  const CodeAttributes attributes = code_attributes(target);
  for (llvm::Function& f : *module) {
    if (f.isDeclaration()) continue;
    if (!attributes.cpu.empty()) f.addFnAttr("target-cpu", attributes.cpu);
    if (!attributes.features.empty()) f.addFnAttr("target-features", attributes.features);
    f.addFnAttr("no-builtins");
  }
  assert(!llvm::verifyModule(*module, &llvm::errs()));
  return generate(*module, machine, pipeline, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace graft::codegen
