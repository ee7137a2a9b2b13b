#include "codegen/machine/backend.h"

#include <fmt/format.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/PassInfo.h>
#include <llvm/PassRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/one_line.h"
#include "base/parallel.h"
#include "base/text.h"
#include "codegen/machine/fatal.h"
#include "codegen/machine/widening.h"

namespace graft::codegen {

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    install_fatal_handlers();
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
  });
}

namespace {

std::string this_llvm() {
  return fmt::format("this LLVM ({})", LLVM_VERSION_STRING);
}

// "generic" says no more about a cpu than no name, and every back end takes the empty one.
std::string cpu_name(const Target& target) {
  return target.cpu == "generic" ? "" : target.cpu;
}

// Spaces between features are the writer's; LLVM would take them for parts of names.
std::string feature_words(const Target& target) {
  std::vector<std::string> words;
  for (const std::string_view feature : base::split(target.features, ','))
    if (const std::string_view word = base::trim(feature); !word.empty()) words.emplace_back(word);
  return base::join(words, ",");
}

const llvm::Target& lookup(const Target& target) {
  initialise_llvm();
  std::string message;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, message);
  if (!found)
    throw TargetError("triple",
                      fmt::format("{} does not know the triple '{}'; known architectures: x86_64, riscv64, aarch64, "
                                  "powerpc64le, arm (as in riscv64-unknown-linux-gnu)",
                                  this_llvm(), target.triple));
  return *found;
}

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(const llvm::Target& llvm_target, const std::string& triple,
                                                 const std::string& cpu, const std::string& features) {
  return std::unique_ptr<llvm::MCSubtargetInfo>(llvm_target.createMCSubtargetInfo(triple, cpu, features));
}

// The least length of vectors that the extensions of RISC-V promise; 0 without vectors, and elsewhere.
std::int64_t least_vector_bits(const llvm::MCSubtargetInfo& machine) {
  if (!machine.getTargetTriple().isRISCV() || !machine.checkFeatures("+zve32x")) return 0;
  std::int64_t least = 0;
  for (std::int64_t bits = 32; bits <= 65536; bits *= 2)
    if (machine.checkFeatures(fmt::format("+zvl{}b", bits))) least = bits;
  return least;
}

template <class Table>
std::vector<std::string> keys(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.Key);
  return names;
}

// Words of a feature string that are not empty, each known to LLVM.
std::vector<std::string> checked_features(const std::string& features, const llvm::MCSubtargetInfo& machine,
                                          const std::string& architecture) {
  const std::vector<std::string> known = keys(machine.getAllProcessorFeatures());
  std::vector<std::string> result;
  for (std::string_view feature : base::split(features, ',')) {
    feature = base::trim(feature);
    if (feature.empty()) continue;
    if (feature.front() != '+' && feature.front() != '-')
      throw base::UserError(fmt::format("feature '{}' for {} must begin with + or -", feature, architecture));
    const std::string name(feature.substr(1));
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw base::UserError(fmt::format("{} does not know the feature '{}' for {}{}", this_llvm(), name, architecture,
                                        base::did_you_mean(name, known)));
    result.emplace_back(feature);
  }
  return result;
}

// Who says that vectors are at least that long.
std::string who_says(const llvm::Target& llvm_target, const Target& target, std::int64_t bits) {
  const std::string length = fmt::format("+zvl{}b", bits);
  if (subtarget(llvm_target, target.triple, cpu_name(target), "")->checkFeatures(length))
    return fmt::format("the cpu '{}' has", target.cpu);
  for (const std::string_view feature : base::split(target.features, ','))
    if (subtarget(llvm_target, target.triple, "", std::string(base::trim(feature)))->checkFeatures(length))
      return fmt::format("{} says", base::trim(feature));
  return "its features say";
}

// A length of vectors that the target cannot have: fatal in LLVM.
void check_vector_bits(const llvm::Target& llvm_target, const llvm::MCSubtargetInfo& machine, const Target& target) {
  const llvm::Triple triple(target.triple);
  if (target.vector_bits == 0) return;  // scalar code
  if (const std::int64_t least = least_vector_bits(machine); target.vector_bits < least)
    throw TargetError("vector_bits",
                      fmt::format("vector_bits {} is less than the {} that {}; write {} or more, or 0 "
                                  "for code without vectors",
                                  target.vector_bits, least, who_says(llvm_target, target, least), least));
  constexpr std::int64_t longest_sve = 2048;
  if (triple.isAArch64() && machine.checkFeatures("+sve") && target.vector_bits > longest_sve)
    throw TargetError("vector_bits", fmt::format("vector_bits {} is more than the {} that SVE may have",
                                                 target.vector_bits, longest_sve));
}

// The target's subtarget after all of it was found to be known.
std::unique_ptr<llvm::MCSubtargetInfo> checked_subtarget(const Target& target) {
  const llvm::Target& llvm_target = lookup(target);
  const llvm::Triple triple(target.triple);
  const std::string architecture = triple.getArchName().str();
  // LLVM prints a warning for a cpu or feature that it does not know, so ask without them first.
  const auto plain = subtarget(llvm_target, target.triple, "", "");
  const std::string cpu = cpu_name(target);
  if (!cpu.empty() && !plain->isCPUStringValid(cpu))
    throw TargetError("cpu",
                      fmt::format("{} does not know the cpu '{}' for {}{}", this_llvm(), target.cpu, architecture,
                                  base::did_you_mean(target.cpu, keys(plain->getAllProcessorDescriptions()))));
  try {
    checked_features(target.features, *plain, architecture);
  } catch (const base::UserError& error) {
    throw TargetError("features", error.what());
  }
  auto full = subtarget(llvm_target, target.triple, cpu, feature_words(target));
  const bool has_width = triple.getArch() == llvm::Triple::x86_64 || triple.getArch() == llvm::Triple::riscv64;
  if (has_width && !subtarget(llvm_target, target.triple, cpu, "")->checkFeatures("+64bit"))
    throw TargetError("cpu", fmt::format("the cpu '{}' is not a 64-bit cpu, as {} needs", target.cpu, target.triple));
  if (has_width && !full->checkFeatures("+64bit"))
    throw TargetError("features",
                      fmt::format("features '{}' leave no 64-bit cpu, as {} needs", target.features, target.triple));
  check_vector_bits(llvm_target, *full, target);
  return full;
}

std::string abi(const Target& target, const llvm::MCSubtargetInfo& machine) {
  if (llvm::Triple(target.triple).getArch() != llvm::Triple::riscv64) return "";
  return machine.checkFeatures("+d") ? "lp64d" : machine.checkFeatures("+f") ? "lp64f" : "lp64";
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, int codegen_level) {
  const auto machine = checked_subtarget(target);
  const llvm::Triple triple(target.triple);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  options.MCOptions.ABIName = abi(target, *machine);
  std::optional<llvm::CodeModel::Model> model;
  if (triple.isRISCV64()) model = llvm::CodeModel::Medium;
  const auto level = llvm::CodeGenOpt::getLevel(codegen_level);
  assert(level);
  return std::unique_ptr<llvm::TargetMachine>(lookup(target).createTargetMachine(
      target.triple, cpu_name(target), feature_words(target), options, llvm::Reloc::PIC_, model, *level));
}

}  // namespace

llvm::TargetMachine& target_machine(const Target& target, int codegen_level) {
  thread_local Kept<std::map<std::string, std::unique_ptr<llvm::TargetMachine>>> kept;
  const std::string key = fmt::format("{}|{}|{}|{}", target.triple, target.cpu, target.features, codegen_level);
  auto& machines = kept.get();
  auto known = machines.find(key);
  if (known == machines.end()) known = machines.emplace(key, make_machine(target, codegen_level)).first;
  return *known->second;
}

std::int64_t least_vector_bits(const Target& target) {
  return least_vector_bits(*checked_subtarget(target));
}

std::set<std::string> feature_names(const Target& target) {
  const auto names = keys(subtarget(lookup(target), target.triple, "", "")->getAllProcessorFeatures());
  return {names.begin(), names.end()};
}

std::set<std::string> cpu_names(const Target& target) {
  const auto names = keys(subtarget(lookup(target), target.triple, "", "")->getAllProcessorDescriptions());
  return {names.begin(), names.end()};
}

std::string missing_feature(const Target& target, const std::string& features) {
  const auto machine = checked_subtarget(target);
  for (const std::string& feature : checked_features(features, *machine, target.triple))
    if (!machine->checkFeatures(feature)) return feature;
  return "";
}

namespace {

CodeAttributes find_attributes(const Target& target) {
  const auto machine = checked_subtarget(target);
  const llvm::Triple triple(target.triple);
  CodeAttributes attributes;
  attributes.cpu = cpu_name(target);
  attributes.features = feature_words(target);
  attributes.prefer_vector_bits = target.vector_bits;
  if (triple.isX86()) attributes.prefer_vector_bits = std::max<std::int64_t>(128, target.vector_bits);
  attributes.realign_stack = triple.isX86() && target.vector_bits > 128;
  // Scalable units are told the least length, so that code for 128 bits also runs on a longer one.
  if (triple.isRISCV() && target.vector_bits >= 64 && machine->checkFeatures("+zve32x"))
    attributes.vscale_least = unsigned(target.vector_bits / 64);
  if (triple.isAArch64() && target.vector_bits > 128 && machine->checkFeatures("+sve"))
    attributes.vscale_least = unsigned(target.vector_bits / 128);
  attributes.rounds = !triple.isX86() || machine->checkFeatures("+sse4.1");
  attributes.scales = triple.isX86() && machine->checkFeatures("+avx512dq,+avx512vl");
  attributes.extremes = triple.isAArch64()    ? Extremes::instructions
                        : !target.ignores_nan ? Extremes::selected
                        : triple.isX86()      ? Extremes::selected_number
                                              : Extremes::number_instructions;
  attributes.saturates = !triple.isX86();
  attributes.converts_f16 = triple.isAArch64() || machine->checkFeatures(triple.isX86() ? "+f16c" : "+zfhmin");
  attributes.converts_bf16 = (triple.isX86() && machine->checkFeatures("+avx512bf16")) ||
                             (triple.isAArch64() && machine->checkFeatures("+bf16") && attributes.vscale_least == 0);
  attributes.rounds_to_even = (triple.isX86() && attributes.rounds) || triple.isAArch64();
  return attributes;
}

}  // namespace

CodeAttributes code_attributes(const Target& target) {
  thread_local std::map<std::string, CodeAttributes> known;
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}", target.triple, target.cpu, target.features, target.vector_bits, target.ignores_nan);
  auto found = known.find(key);
  if (found == known.end()) found = known.emplace(key, find_attributes(target)).first;
  return found->second;
}

std::unique_ptr<llvm::Module> empty_module(llvm::LLVMContext& context, llvm::TargetMachine& machine) {
  context.setDiscardValueNames(true);
  auto module = std::make_unique<llvm::Module>("graft", context);
  module->setDataLayout(machine.createDataLayout());
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  return module;
}

namespace {

std::optional<base::Reason> run_passes(llvm::Module& module, llvm::TargetMachine& machine, const Pipeline& pipeline,
                                       const std::string& text) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (auto error = builder.parsePassPipeline(passes, text))
    throw base::UserError(
        fmt::format("pipeline '{}': {}", pipeline.name, base::one_line(llvm::toString(std::move(error)))));
  const std::string errors = errors_while(module.getContext(), [&] { passes.run(module, modules); });
  if (errors.empty()) return std::nullopt;
  return base::Reason{fmt::format("pipeline '{}': {}", pipeline.name, base::one_line(errors))};
}

}  // namespace

std::optional<base::Reason> optimise(llvm::Module& module, llvm::TargetMachine& machine, const Pipeline& pipeline,
                                     bool repeats) {
  const std::string& text = repeats ? pipeline.passes_where_repeated : pipeline.passes;
  if (auto failed = text.empty() ? std::nullopt : run_passes(module, machine, pipeline, text)) return failed;
  if (machine.getTargetTriple().isRISCV()) widen_byte_products(module);
  return std::nullopt;
}

namespace {

// LLVM 19 has it for POWER; it keeps the strings of the module before, which are gone.
constexpr std::string_view broken_pass = "ppc-merge-strings";

}  // namespace

void CodegenPasses::add(llvm::Pass* pass) {
  const llvm::PassInfo* known = llvm::PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
  const llvm::StringRef name = known ? known->getPassArgument() : pass->getPassName();
  if (name == llvm::StringRef(broken_pass) || pipeline_.left_out.contains(std::string_view(name)))
    delete pass;
  else
    kept_.add(pass);
}

std::string errors_while(llvm::LLVMContext& context, const std::function<void()>& function) {
  std::string errors;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* diagnostic, void* text) {
        if (diagnostic->getSeverity() != llvm::DS_Error) return;
        llvm::raw_string_ostream stream(*static_cast<std::string*>(text));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        diagnostic->print(printer);
        stream << '\n';
      },
      &errors);
  function();
  context.setDiagnosticHandlerCallBack(nullptr, nullptr);
  return errors;
}

namespace {

// The code generator of one target and pipeline. Building it takes about a tenth of what running it takes, so it is
// kept; LLVM's passes are made to be run on one module after the other (llc -compile-twice).
class Generator {
 public:
  Generator(llvm::TargetMachine& machine, const Pipeline& pipeline, llvm::CodeGenFileType type)
      : stream_(bytes_), passes_(pipeline), cannot_(machine.addPassesToEmitFile(passes_, stream_, nullptr, type)) {}

  base::Result<std::string> run(llvm::Module& module) {
    if (cannot_) return base::Reason{fmt::format("code generation: no such output for {}", module.getTargetTriple())};
    bytes_.clear();
    const std::string errors = errors_while(module.getContext(), [&] { passes_.run(module); });
    if (!errors.empty()) return base::Reason{fmt::format("code generation: {}", base::one_line(errors))};
    return std::string(bytes_.data(), bytes_.size());
  }

 private:
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream stream_;
  CodegenPasses passes_;
  bool cannot_;
};

}  // namespace

base::Result<std::string> generate(llvm::Module& module, llvm::TargetMachine& machine, const Pipeline& pipeline,
                                   llvm::CodeGenFileType type) {
  // Thread-local, like the machines, and destroyed before them.
  using Key = std::tuple<llvm::TargetMachine*, Pipeline, llvm::CodeGenFileType>;
  thread_local Kept<std::map<Key, Generator, std::less<>>> kept;
  auto& known = kept.get();
  auto generator = known.find(std::forward_as_tuple(&machine, pipeline, type));
  if (generator == known.end())
    generator = known.try_emplace(Key(&machine, pipeline, type), machine, pipeline, type).first;
  base::Result<std::string> code = generator->second.run(module);
  // The state of the passes after an error is undefined.
  if (!code) known.erase(generator);
  return code;
}

base::Result<std::string> code_of_text(std::string_view text, const Target& target, const Pipeline& pipeline,
                                       const std::function<void(llvm::Module&)>& complete) {
  llvm::LLVMContext context;
  llvm::TargetMachine& machine = target_machine(target, pipeline.codegen_level);
  llvm::SMDiagnostic problem;
  const std::string all =
      fmt::format("target datalayout = \"{}\"\ntarget triple = \"{}\"\n{}",
                  machine.createDataLayout().getStringRepresentation(), machine.getTargetTriple().str(), text);
  auto module = llvm::parseAssemblyString(all, problem, context);
  if (!module)
    throw base::Failure(fmt::format("{}, line {}: {}", pipeline.name, problem.getLineNo(), problem.getMessage().str()));
  if (complete) complete(*module);
  const CodeAttributes attributes = code_attributes(target);
  for (llvm::Function& f : *module) {
    if (f.isDeclaration()) continue;
    if (!attributes.cpu.empty()) f.addFnAttr("target-cpu", attributes.cpu);
    if (!attributes.features.empty()) f.addFnAttr("target-features", attributes.features);
    f.addFnAttr("no-builtins");
  }
  // The text may be a user's.
  std::string fault;
  llvm::raw_string_ostream stream(fault);
  if (llvm::verifyModule(*module, &stream))
    throw base::Failure(fmt::format("{}: {}", pipeline.name, base::one_line(fault)));
  return generate(*module, machine, pipeline, llvm::CodeGenFileType::ObjectFile);
}

void check_description(const Target& target) {
  checked_subtarget(target);
}

namespace {

// First line of a file under /sys, or nothing.
std::optional<std::string> system_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// "32K" and the like.
std::optional<std::int64_t> size_in_bytes(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const char unit = end < text.data() + text.size() ? *end : ' ';
  return value * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
}

void find_caches(Target& target) {
  for (int i = 0;; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const auto level = system_line(folder + "level"), type = system_line(folder + "type");
    if (!level || !type) return;
    if (*type == "Instruction") continue;
    const auto size = system_line(folder + "size"), line = system_line(folder + "coherency_line_size");
    if (size && *level == "1") target.l1_bytes = size_in_bytes(*size);
    if (size && *level == "2") target.l2_bytes = size_in_bytes(*size);
    if (size && *level == "3") target.l3_bytes = size_in_bytes(*size);
    if (line && *level == "1") target.line_bytes = size_in_bytes(*line);
  }
}

Target found_host() {
  Target target;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  target.cores = base::hardware_threads();
  find_caches(target);

  // Only what the cpu's name does not say already; switched-off features matter on virtual machines.
  const llvm::Target& llvm_target = lookup(target);
  const auto known = keys(subtarget(llvm_target, target.triple, "", "")->getAllProcessorFeatures());
  const auto named = subtarget(llvm_target, target.triple, cpu_name(target), "");
  std::map<std::string, bool> found;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) found[feature.first().str()] = feature.second;
  std::vector<std::string> words;
  for (const auto& [name, present] : found)
    if (std::find(known.begin(), known.end(), name) != known.end() && named->checkFeatures("+" + name) != present)
      words.push_back((present ? "+" : "-") + name);
  target.features = base::join(words, ",");

  const auto full = subtarget(llvm_target, target.triple, cpu_name(target), target.features);
  const llvm::Triple triple(target.triple);
  if (triple.isX86()) {
    const bool wide = full->checkFeatures("+avx512f,+avx512vl");
    target.vector_bits = wide ? 512 : full->checkFeatures("+avx2") ? 256 : 128;
    target.vector_registers = wide ? 32 : 16;
  } else if (triple.isRISCV()) {
    // The length beyond what the features promise cannot be seen from here.
    target.vector_bits = full->checkFeatures("+v") ? 128 : 0;
    target.vector_registers = 32;
  } else {
    target.vector_bits = 128;
    target.vector_registers = 32;
  }
  return target;
}

}  // namespace

const Target& host_target() {
  static const Target host = found_host();
  return host;
}

}  // namespace graft::codegen
