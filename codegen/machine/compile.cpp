#include "codegen/machine/compile.h"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "codegen/machine/backend.h"
#include "codegen/machine/emitter.h"
#include "codegen/machine/fatal.h"
#include "codegen/machine/homes.h"
#include "codegen/machine/opencl.h"
#include "codegen/program/analysis.h"
#include "codegen/program/constants.h"
#include "codegen/program/forms.h"

namespace graft::codegen {
namespace {

// Module of a program after the pipeline's passes, or why there is none.
base::Result<std::unique_ptr<llvm::Module>> optimised_module(llvm::LLVMContext& context, const LoopProgram& program,
                                                             const Target& target, const Pipeline& pipeline,
                                                             const std::string& symbol) {
  for (const IntrinsicPointer& intrinsic : program.intrinsics) {
    if (auto lacks = lacks_feature(*intrinsic, target)) return *lacks;
  }
  llvm::TargetMachine& machine = target_machine(target, pipeline.codegen_level);
  auto module = empty_module(context, machine);
  if (auto refused = emit(*module, program, code_attributes(target), symbol, target.threads)) return *refused;
  assert(!llvm::verifyModule(*module, &llvm::errs()));
  if (const auto failed = optimise(*module, machine, pipeline, repeats_accesses(program))) return *failed;
  return module;
}

struct CodeFacts {
  std::uint64_t hash = 0;
  std::string undefined;  // a symbol that the code needs from elsewhere
};

// Hash of code, constants and what they refer to; not of names.
CodeFacts facts(const std::string& bytes) {
  CodeFacts result;
  auto parsed = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "graft"));
  if (!parsed) throw base::Failure("LLVM wrote an object that it cannot read: " + llvm::toString(parsed.takeError()));
  const auto& file = llvm::cast<llvm::object::ELFObjectFileBase>(**parsed);
  std::uint64_t hash = base::hash_bytes(file.getFileFormatName().str());
  for (const llvm::object::SectionRef& section : file.sections()) {
    const bool loaded = llvm::object::ELFSectionRef(section).getFlags() & llvm::ELF::SHF_ALLOC;
    if (!loaded) continue;
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!contents) {
      llvm::consumeError(contents.takeError());
      continue;
    }
    hash = base::hash_combine(hash, base::hash_bytes(std::string_view(contents->data(), contents->size())));
  }
  for (const llvm::object::SectionRef& section : file.sections()) {
    for (const llvm::object::RelocationRef& relocation : section.relocations()) {
      hash = base::hash_combine(hash, relocation.getOffset());
      hash = base::hash_combine(hash, relocation.getType());
      auto addend = llvm::object::ELFRelocationRef(relocation).getAddend();
      if (addend)
        hash = base::hash_combine(hash, std::uint64_t(*addend));
      else
        llvm::consumeError(addend.takeError());
      const llvm::object::symbol_iterator symbol = relocation.getSymbol();
      if (symbol == file.symbol_end()) continue;
      if (auto value = symbol->getValue())
        hash = base::hash_combine(hash, *value);
      else
        llvm::consumeError(value.takeError());
    }
  }
  for (const llvm::object::SymbolRef& symbol : file.symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    const bool undefined = flags && name && (*flags & llvm::object::SymbolRef::SF_Undefined);
    // Tables that every linker makes itself are not asked of anyone.
    if (undefined && !name->empty() && *name != ".TOC." && *name != "_GLOBAL_OFFSET_TABLE_")
      result.undefined = name->str();
    if (!flags) llvm::consumeError(flags.takeError());
    if (!name) llvm::consumeError(name.takeError());
  }
  result.hash = hash;
  return result;
}

}  // namespace

std::optional<base::Reason> lacks_feature(const Intrinsic& intrinsic, const Target& target) {
  const std::string missing = missing_feature(target, intrinsic.needs);
  if (missing.empty()) return std::nullopt;
  return base::Reason{fmt::format("intrinsic {} needs {}, which {} does not have", intrinsic.name, missing,
                                  target.cpu.empty() ? target.triple : target.cpu)};
}

LoopProgram without_foreign_intrinsics(LoopProgram program, const Target& target) {
  if (program.intrinsics.empty()) return program;
  const std::set<std::string> known = feature_names(target);
  std::vector<int> to;  // by intrinsic
  std::vector<IntrinsicPointer> own;
  for (const IntrinsicPointer& intrinsic : program.intrinsics) {
    const std::vector<std::string_view> features = base::split(intrinsic->needs, ',');
    // Features of another architecture have no meaning for this one.
    const bool has_meaning = std::all_of(features.begin(), features.end(), [&](std::string_view feature) {
      const std::string_view name = base::trim(feature);
      return name.empty() || known.contains(std::string(name.substr(1)));
    });
    const bool is_own = has_meaning && !lacks_feature(*intrinsic, target);
    to.push_back(is_own ? int(own.size()) : -1);
    if (is_own) own.push_back(intrinsic);
  }
  for (Loop& loop : program.loops)
    if (loop.intrinsic >= 0) loop.intrinsic = to[std::size_t(loop.intrinsic)];
  // In a remainder an intrinsic computes lanes that nothing has written, which is not possible in registers.
  if (own.size() < program.intrinsics.size())
    for (Buffer& buffer : program.buffers)
      if (buffer.scope == Scope::registers) buffer.scope = Scope::memory;
  program.intrinsics = std::move(own);
  return program;
}

Signature signature(const LoopProgram& program, std::int64_t threads) {
  Signature result;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role == Role::temporary) continue;
    result.parameters.push_back({buffer.name, buffer.role, buffer.dtype, buffer.shape, buffer.bytes(), buffer.layout,
                                 buffer.role == Role::constant && !runs_with(program, int(b))});
  }
  const Homes memory = homes(program, threads);
  result.prepared_bytes = memory.prepared_bytes;
  result.prepare_scratch_bytes = memory.prepare_scratch_bytes;
  result.scratch_bytes = memory.scratch_bytes;
  result.amplification = program.amplification;
  result.threads = threads;
  return result;
}

namespace {

// Without passes of no use to straight loops over vectors with exact trip counts and no calls, and those whose work the
// emitter has done (pointers that move with their loops, common values, no branches to fold). Kept is what other passes
// or the calling convention need, peephole-opt, block-placement, and the two that take constants out of loops and merge
// them (early-machinelicm, machine-cse). Together these take more time than instruction selection.
const std::set<std::string, std::less<>> idle_passes = {
    // on LLVM IR, before instruction selection
    "atomic-expand", "callbrprepare", "canon-freeze", "codegenprepare", "consthoist", "dwarf-eh-prepare",
    "expand-large-div-rem", "expand-large-fp-convert", "expand-memcmp", "expandvp", "gc-lowering", "indirectbr-expand",
    "interleaved-access", "loop-reduce", "lower-amx-intrinsics", "lower-amx-type", "lower-constant-intrinsics",
    "mergeicmps", "partially-inline-libcalls", "post-inline-ee-instrument", "pre-isel-intrinsic-lowering",
    "replace-with-veclib", "safe-stack", "shadow-stack-gc-lowering", "stack-protector", "tlshoist",
    "unreachableblockelim", "x86-partial-reduction",
    // alias analyses that find nothing beyond noalias and offsets
    "scoped-noalias-aa", "tbaa",
    // on machine code in SSA form
    "dead-mi-elimination", "detect-dead-lanes", "early-ifcvt", "early-tailduplication", "localstackalloc", "lrshrink",
    "machine-combiner", "machine-scheduler", "machine-sink", "opt-phis", "rename-independent-subregs", "stack-coloring",
    "tilepreconfig", "x86-avoid-SFB", "x86-cf-opt", "x86-cmov-conversion", "x86-domain-reassignment", "x86-fixup-setcc",
    "x86-flags-copy-lowering", "x86-optimize-LEAs", "x86-slh", "x86argumentstackrebase",
    "Local Dynamic TLS Access Clean-up", "X86 Windows Fixup Buffer Security Check",
    // after register allocation
    "branch-folder", "break-false-deps", "cfi-instr-inserter", "fentry-insert", "fixup-statepoint-caller-saved",
    "funclet-layout", "gc-analysis", "kcfi", "livedebugvalues", "lowertilecopy", "machine-cp", "machine-latecleanup",
    "machine-sanmd", "machinelicm", "patchable-function", "post-RA-sched", "postra-machine-sink",
    "pseudo-probe-inserter", "regallocscoringpass", "removeredundantdebugvalues", "shrink-wrap", "stack-frame-layout",
    "stackmap-liveness", "tailduplication", "tileconfig", "x86-execution-domain-fix", "x86-fixup-LEAs",
    "x86-fixup-bw-insts", "x86-fixup-inst-tuning", "x86-fixup-vector-constants", "x86-lvi-load", "x86-lvi-ret",
    "x86-return-thunks", "x86-seses", "xray-instrumentation", "X86 Atom pad short functions",
    "X86 Discriminate Memory Operands", "X86 Indirect Branch Tracking", "X86 Indirect Thunks",
    "X86 Insert Cache Prefetches", "X86 insert wait instruction"};

// On other targets these of them earn their time: offsets are short there, and cores in order want code in an order.
constexpr std::array earning_elsewhere{"branch-folder",
                                       "codegenprepare",
                                       "consthoist",
                                       "dead-mi-elimination",
                                       "detect-dead-lanes",
                                       "early-ifcvt",
                                       "early-tailduplication",
                                       "expandvp",
                                       "interleaved-access",
                                       "lrshrink",
                                       "machine-combiner",
                                       "machine-cp",
                                       "machine-latecleanup",
                                       "machine-scheduler",
                                       "machine-sink",
                                       "machinelicm",
                                       "mergeicmps",
                                       "opt-phis",
                                       "partially-inline-libcalls",
                                       "post-RA-sched",
                                       "postra-machine-sink",
                                       "pre-isel-intrinsic-lowering",
                                       "rename-independent-subregs",
                                       "shrink-wrap",
                                       "stack-coloring",
                                       "tailduplication",
                                       "unreachableblockelim"};

// Strength reduction ("loop-reduce") is left out there, too: it takes a third of all code generation, and pointers move
// with their loops already. Modelled cycles of random candidates change by less than 2 % in the mean, either way.
std::set<std::string, std::less<>> idle_elsewhere() {
  std::set<std::string, std::less<>> idle = idle_passes;
  for (const char* const pass : earning_elsewhere) idle.erase(pass);
  return idle;
}

}  // namespace

const std::vector<Pipeline>& pipelines() {
  // LICM matters if no tile is held in registers; passes that restructure loops would undo the schedule.
  static const std::string cleaned = "function(sroa,early-cse<memssa>,loop-mssa(licm),simplifycfg)";
  static const std::string hoisted = "function(early-cse,loop-mssa(licm))";
  static const std::vector<Pipeline> all = {
      {"search", "", hoisted, 1, idle_passes},
      {"less", cleaned, cleaned, 1, idle_elsewhere()},
      {"scheduled", "", hoisted, 3, {}},            // the loops as they are, with LLVM's machine scheduler
      {"O3", "default<O3>", "default<O3>", 3, {}},  // unrolls again
  };
  return all;
}

const Pipeline& pipeline_named(const std::string& name, const Target& target) {
  if (name.empty()) return search_pipeline(target);
  for (const Pipeline& pipeline : pipelines())
    if (pipeline.name == name) return pipeline;
  throw base::UserError(fmt::format("the run was built by the pipeline '{}', which is not known; tune again", name));
}

const Pipeline& search_pipeline(const Target& target) {
  return pipelines()[llvm::Triple(target.triple).isX86() ? 0 : 1];
}

namespace {

base::Result<Code> compiled(const LoopProgram& program, const Target& target, const Pipeline& pipeline,
                            const std::string& symbol) {
  llvm::LLVMContext context;
  auto module = optimised_module(context, program, target, pipeline, symbol);
  if (!module) return module.reason();
  Code object;
  object.ir_instructions = (*module)->getInstructionCount();
  auto bytes =
      generate(**module, target_machine(target, pipeline.codegen_level), pipeline, llvm::CodeGenFileType::ObjectFile);
  if (!bytes) return bytes.reason();
  object.bytes = std::move(*bytes);
  const CodeFacts found = facts(object.bytes);
  if (!found.undefined.empty())
    return base::Reason{fmt::format("code generation: {} has no instructions for '{}'",
                                    target.cpu.empty() ? target.triple : target.cpu, found.undefined)};
  object.hash = found.hash;
  object.signature = signature(program, target.threads);
  object.symbol = symbol;
  return object;
}

base::Result<Listing> listed(const LoopProgram& program, const Target& target, const Pipeline& pipeline) {
  llvm::LLVMContext context;
  auto module = optimised_module(context, program, target, pipeline, "graft");
  if (!module) return module.reason();
  Listing out;
  llvm::raw_string_ostream stream(out.ir);
  (*module)->print(stream, nullptr);
  auto assembly =
      generate(**module, target_machine(target, pipeline.codegen_level), pipeline, llvm::CodeGenFileType::AssemblyFile);
  if (!assembly) return assembly.reason();
  out.assembly = std::move(*assembly);
  return out;
}

}  // namespace

base::Result<Code> compile(const LoopProgram& program, const Target& target, const Pipeline& pipeline,
                           const std::string& symbol) {
  return guarded(target, [&] { return compiled(program, target, pipeline, symbol); });
}

namespace {

// Multiply-adds and conversions on whole vectors of the target's, of the types that they serve.
LoopProgram small_program(const Target& target) {
  const std::int64_t lanes = target.lanes(4);
  return parse_program(fmt::format(R"(buffer A f32 [{0}] input
buffer B i8 [{0}] input
buffer C f32 [{0}] output
buffer D i32 [{0}] output
run
  for i 2
    for v {1} vector
      C[{1}*i+v] += A[{1}*i+v] * A[{1}*i+v]
  for i 2
    for v {1} vector
      D[{1}*i+v] += B[{1}*i+v] * B[{1}*i+v]
)",
                                   2 * lanes, lanes),
                       "small program");
}

// What LLVM says when it gives up on the target, if it does.
std::optional<std::string> why_it_gives_up(const Target& target) {
  try {
    (void)compile(small_program(target), target);  // what it cannot emit for another reason is a matter of programs
  } catch (const GaveUp& gave_up) {
    return gave_up.said();
  }
  return std::nullopt;
}

// The key without whose value LLVM does not give up.
std::string culprit(const Target& target) {
  const auto is_good_with = [&](auto Target::*member, const auto& value) {
    Target changed = target;
    changed.*member = value;
    try {
      return !why_it_gives_up(changed);
    } catch (const TargetError&) {
      return false;
    }
  };
  if (!target.features.empty() && is_good_with(&Target::features, std::string())) return "features";
  if (target.vector_bits != 0 && is_good_with(&Target::vector_bits, 0)) return "vector_bits";
  return is_good_with(&Target::cpu, std::string()) ? "cpu" : "triple";
}

}  // namespace

void check_target(const Target& target) {
  check_description(target);
  thread_local std::set<std::string> good;
  const std::string key = fmt::format("{}|{}|{}|{}", target.triple, target.cpu, target.features, target.vector_bits);
  if (good.contains(key)) return;
  if (const auto said = why_it_gives_up(target)) {
    const std::string guilty = culprit(target);
    const base::Document values = to_document(target);
    throw TargetError(guilty, fmt::format("{} {}: LLVM {} gives up on code for it: {}", guilty,
                                          values.at(guilty).to_json(), LLVM_VERSION_STRING, *said));
  }
  good.insert(key);
}

base::Result<Code> compile(const LoopProgram& program, const Target& target) {
  return compile(program, target, search_pipeline(target));
}

base::Result<Listing> listing(const LoopProgram& program, const Target& target, const Pipeline& pipeline) {
  if (target.group_items > 0) {
    const base::Result<std::string> source = opencl_source(program, target);
    return source ? base::Result<Listing>(Listing{"", *source}) : source.reason();
  }
  return guarded(target, [&] { return listed(program, target, pipeline); });
}

base::Result<Listing> listing(const LoopProgram& program, const Target& target) {
  return listing(program, target, search_pipeline(target));
}

}  // namespace graft::codegen
