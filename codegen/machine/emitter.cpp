#include "codegen/machine/emitter.h"

#include <fmt/format.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "codegen/machine/dispatch.h"
#include "codegen/machine/functions.h"
#include "codegen/machine/homes.h"
#include "codegen/machine/intrinsic_code.h"
#include "codegen/machine/storage.h"
#include "codegen/program/analysis.h"
#include "codegen/program/intrinsic.h"

namespace graft::codegen {
namespace {

// Beyond these, code generation would take seconds: no schedule worth measuring comes near.
constexpr std::int64_t most_statements = 1 << 15;
constexpr std::int64_t most_lanes = 1024;
// Blocks that are worth transposing in registers, by rows and by lanes.
constexpr std::int64_t least_transposed = 2, most_transposed = 16;

constexpr const char* loop_name = "graft.loop";  // in front of the number, in !llvm.loop: no hint that LLVM knows

llvm::MDNode* loop_id(llvm::LLVMContext& context, int loop) {
  llvm::Metadata* const number =
      llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), std::uint64_t(loop)));
  llvm::MDNode* const name = llvm::MDNode::get(context, {llvm::MDString::get(context, loop_name), number});
  llvm::MDNode* const id = llvm::MDNode::getDistinct(context, {nullptr, name});
  id->replaceOperandWith(0, id);
  return id;
}

constexpr const char* place_name = "graft.place";  // in front of its numbers, in a scope

llvm::MDNode* scope_of(llvm::LLVMContext& context, const NamedPlace& place) {
  std::string name = fmt::format("{} {} {}", place_name, place.buffer, place.constant);
  for (const auto& [loop, coefficient] : place.by_loop) name += fmt::format(" {} {}", loop, coefficient);
  llvm::MDNode* const domain = llvm::MDNode::get(context, {llvm::MDString::get(context, place_name)});
  llvm::MDNode* const scope = llvm::MDNode::get(context, {llvm::MDString::get(context, name), domain});
  return llvm::MDNode::get(context, {scope});
}

// Adds IR for one program to a module. Refusals are recorded, and emission continues with poison until the nearest
// loop.
class Emitter {
 public:
  Emitter(llvm::Module& module, const LoopProgram& program, const CodeAttributes& attributes, const std::string& symbol,
          std::int64_t threads)
      : module_(module),
        context_(module.getContext()),
        program_(program),
        attributes_(attributes),
        symbol_(symbol),
        dispatch_(dispatch(program, threads)),
        homes_(homes(program, threads)),
        threads_(threads),
        builder_(context_),
        functions_(builder_, attributes.rounds, attributes.rounds_to_even, attributes.scales, attributes.extremes),
        variables_(program.loops.size()) {
    llvm::FastMathFlags flags;
    flags.setAllowContract(true);
    builder_.setFastMathFlags(flags);
    for (const Store& store : program.stores) {
      target_offsets_.push_back(offset(program, store.target));
      load_offsets_.emplace_back();
      for (const Access& load : store.value.loads) load_offsets_.back().push_back(offset(program, load));
      types_.push_back(types_of(store.value, buffer(store.target.tensor).dtype,
                                [&](const Access& load) { return buffer(load.tensor).dtype; }));
      const DType type = buffer(store.target.tensor).dtype;
      loaded_as_.push_back(
          loaded_as(store.value, types_.back(), store.combine == Combine::none ? type : computed_in(type)));
    }
    if (!attributes.named_places) return;
    std::set<int> written, read;
    for_each_access(program, program.run, 0, int(program.run.size()),
                    [&](int b, const Access&, bool writes) { (writes ? written : read).insert(b); });
    for (const Node& node : program.run) {
      if (node.kind != Node::Kind::store) continue;
      const Store& store = program.stores[std::size_t(node.item)];
      if (store.combine != Combine::none) read.insert(store.target.tensor);
    }
    std::set_intersection(written.begin(), written.end(), read.begin(), read.end(),
                          std::inserter(named_, named_.end()));
  }

  std::optional<base::Reason> emit() {
    if (dispatch_.refused) return dispatch_.refused;
    if (const auto refused = written_again()) return refused;
    for (const Buffer& each : program_.buffers)
      if (each.scope == Scope::group)
        return base::Reason{fmt::format("group: '{}' is in memory that work-items of a GPU share", each.name)};
    for (std::size_t s = 0; s < program_.stores.size(); ++s)
      if (const auto problem = types_problem(program_.stores[s].value, types_[s]))
        return base::Reason{fmt::format("{}: {}", buffer(program_.stores[s].target.tensor).name, *problem)};
    for (const IntrinsicPointer& known : program_.intrinsics) intrinsic_code_.push_back(add_intrinsic(module_, *known));
    note_grains(program_.prepare);
    note_grains(program_.run);
    emit_prepare();
    emit_run();
    for (llvm::Function* code : intrinsic_code_) inline_everywhere(*code);
    if (refused_.empty()) return std::nullopt;
    return base::Reason{refused_};
  }

 private:
  // A pointer that moves by `coefficient` elements with every iteration of a serial loop.
  struct Moving {
    llvm::PHINode* pointer = nullptr;
    llvm::Type* element = nullptr;
    std::int64_t coefficient = 0;
    bool inbounds = false;
  };
  // A loop variable: a number in unrolled loops, a lane number in the vector loop; serial loops have a counter, and
  // the task of a parallel loop is given the number of its iteration.
  struct Variable {
    std::int64_t value = 0;
    llvm::Value* counter = nullptr;
    std::vector<Moving> moving = {};  // pointers that the loop carries along
  };
  // Part of a register buffer held in one SSA value: `lanes` elements from an offset on.
  struct Piece {
    llvm::Value* value = nullptr;
    std::int64_t lanes = 1;
  };
  using RegisterKey = std::pair<int, std::int64_t>;  // buffer, offset of the first element
  // An access under the present loop variables.
  struct Place {
    int buffer = 0;
    // Memory only; lane 0 is `constant` elements after it. None for a literal that no serial loop moves through.
    llvm::Value* pointer = nullptr;
    std::int64_t constant = 0;
    std::int64_t lane_stride = 0;
    bool inbounds = false;
    std::map<int, std::int64_t> by_loop = {};  // of named places: elements per iteration
    bool gathered = false;                     // at an index from memory: no place that has a name
  };
  using LoadKey = std::tuple<int, llvm::Value*, std::int64_t, std::int64_t, std::int64_t, DType>;

  void refuse(std::string text) {
    if (refused_.empty()) refused_ = std::move(text);
  }
  const Buffer& buffer(int b) const { return program_.buffers[std::size_t(b)]; }
  const Loop& loop(int l) const { return program_.loops[std::size_t(l)]; }
  Variable& variable(int l) { return variables_[std::size_t(l)]; }

  llvm::Type* type_of(DType type) {
    switch (type) {
      case DType::f32:
        return builder_.getFloatTy();
      case DType::f64:
        return builder_.getDoubleTy();
      case DType::i32:
        return builder_.getInt32Ty();
      case DType::i8:
      case DType::u8:
        return builder_.getInt8Ty();
      case DType::i64:
        return builder_.getInt64Ty();
      case DType::f16:
      case DType::bf16:
        return builder_.getInt16Ty();  // its bits (storage.h)
    }
    return nullptr;
  }
  // The types that nodes are made in: what they give, but loads in the type of the operation that uses them.
  static std::vector<DType> loaded_as(const Value& value, const std::vector<NodeType>& types, DType target) {
    std::vector<DType> as;
    for (const NodeType& type : types) as.push_back(type.result);
    if (value.root().op == Op::load) as.back() = target;
    for (std::size_t n = 0; n < value.nodes.size(); ++n)
      for (const int operand : {value.nodes[n].a, value.nodes[n].b, value.nodes[n].c})
        if (operand >= 0 && value.nodes[std::size_t(operand)].op == Op::load)
          as[std::size_t(operand)] = types[n].operands;
    return as;
  }
  llvm::Value* number(std::int64_t value) { return builder_.getInt64(std::uint64_t(value)); }
  static std::int64_t lanes_of(const llvm::Value* value) {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    return type ? std::int64_t(type->getNumElements()) : 0;
  }
  // The type of `value` with its elements replaced.
  static llvm::Type* with_element(const llvm::Value* value, llvm::Type* element) {
    const std::int64_t lanes = lanes_of(value);
    return lanes ? llvm::FixedVectorType::get(element, unsigned(lanes)) : element;
  }

  // ---- functions

  llvm::Function* function(llvm::ArrayRef<llvm::Type*> parameters, const std::string& name, bool exported,
                           std::uint64_t calls) {
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), parameters, false);
    auto* f = llvm::Function::Create(type, exported ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage,
                                     name, module_);
    f->addFnAttr(llvm::Attribute::NoUnwind);
    f->addFnAttr(llvm::Attribute::NoRecurse);
    f->addFnAttr("no-builtins");
    if (!attributes_.cpu.empty()) f->addFnAttr("target-cpu", attributes_.cpu);
    if (!attributes_.features.empty()) f->addFnAttr("target-features", attributes_.features);
    if (attributes_.prefer_vector_bits > 0)
      f->addFnAttr("prefer-vector-width", std::to_string(attributes_.prefer_vector_bits));
    if (attributes_.realign_stack && !exported) f->addFnAttr("stackrealign");
    if (attributes_.vscale_least > 0)
      f->addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(context_, attributes_.vscale_least, 0));
    f->setEntryCount(calls);
    builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", f));
    return f;
  }

  // Buffers of memory that body[begin, end) touches, in order.
  std::vector<int> buffers_of(const Body& body, int begin, int end, std::set<int>* written) {
    std::set<int> touched;
    for_each_access(program_, body, begin, end, [&](int b, const Access&, bool writes) {
      if (buffer(b).scope != Scope::memory || buffer(b).is_literal()) return;
      touched.insert(b);
      if (writes) written->insert(b);
    });
    return {touched.begin(), touched.end()};
  }

  // The internal function that does body[begin, end); of a band one task, whose number is parameter 0.
  llvm::Function* part(const Body& body, const Section& section, const std::string& name) {
    std::set<int> written;
    const std::vector<int> used = buffers_of(body, section.begin, section.end, &written);
    const bool of_band = !section.band.empty();
    const int first = of_band ? 1 : 0;
    std::vector<llvm::Type*> parameters(used.size() + std::size_t(first), builder_.getPtrTy());
    if (of_band) parameters[0] = builder_.getInt64Ty();
    llvm::Function* f = function(parameters, name, false, std::uint64_t(section.tasks));
    f->addFnAttr(llvm::Attribute::NoInline);
    f->addFnAttr(llvm::Attribute::MustProgress);
    f->addFnAttr(llvm::Attribute::WillReturn);
    f->addFnAttr(llvm::Attribute::NoSync);
    f->addFnAttr(llvm::Attribute::NoFree);
    pointers_.assign(program_.buffers.size(), nullptr);
    for (std::size_t i = 0; i < used.size(); ++i) {
      const unsigned p = unsigned(i) + unsigned(first);
      const int b = used[i];
      f->addParamAttr(p, llvm::Attribute::NoAlias);
      f->addParamAttr(p, llvm::Attribute::NoCapture);
      if (!written.count(b)) f->addParamAttr(p, llvm::Attribute::ReadOnly);
      const bool is_ours = buffer(b).role == Role::temporary;
      const llvm::Align align(std::uint64_t(is_ours ? alignment_bytes : parameter_alignment_bytes));
      f->addParamAttr(p, llvm::Attribute::getWithAlignment(context_, align));
      f->addDereferenceableParamAttr(p, std::uint64_t(buffer(b).bytes()));
      pointers_[std::size_t(b)] = f->getArg(p);
    }
    registers_.clear();
    addresses_.clear();
    serial_loops_.clear();
    forget_block();
    if (of_band) enter_band(section.band, f->getArg(0));
    nodes(body, section.begin + int(section.band.size()), section.end);
    serial_loops_.clear();
    builder_.CreateRetVoid();
    return f;
  }

  // The variables of a band's loops from the number of the task.
  void enter_band(const std::vector<int>& band, llvm::Value* task) {
    std::vector<std::pair<int, llvm::Value*>> values;  // innermost first
    std::int64_t left = 1;
    for (const int l : band) left *= loop(l).extent;
    for (std::size_t i = band.size(); i-- > 0;) {
      const int l = band[i];
      const std::int64_t extent = loop(l).extent;
      if (extent == 1) {
        variable(l) = {};
        continue;
      }
      left /= extent;
      values.emplace_back(l, left == 1 ? task : builder_.CreateURem(task, number(extent)));
      if (left > 1) task = builder_.CreateUDiv(task, number(extent));
    }
    for (std::size_t i = values.size(); i-- > 0;) enter(values[i].first, values[i].second);
    // What these variables add to pointers is added at the end of the first block, see advance.
    auto* block = llvm::BasicBlock::Create(context_, "task", builder_.GetInsertBlock()->getParent());
    builder_.CreateBr(block);
    builder_.SetInsertPoint(block);
  }

  // `run` is called many times, and relies on what `prepare` has left once.
  std::optional<base::Reason> written_again() const {
    std::optional<base::Reason> refused;
    for_each_access(program_, program_.run, 0, int(program_.run.size()), [&](int b, const Access&, bool writes) {
      if (writes && homes_.buffers[std::size_t(b)].block == Home::Block::prepared)
        refused =
            base::Reason{fmt::format("prepare: 'run' writes '{}', which 'prepare' has left for it", buffer(b).name)};
    });
    return refused;
  }

  // What a kernel's callers pass (compile.h).
  struct Memory {
    llvm::Value *buffers, *prepared, *scratch;
  };
  static Memory memory_of(const llvm::Function* wrapper) {
    return {wrapper->getArg(0), wrapper->getArg(1), wrapper->getArg(2)};
  }

  // Calls a part with the pointers of its buffers; of a band with the number of the task, in a slot.
  void call_part(llvm::Function* f, const Body& body, const Section& section, const Memory& memory,
                 llvm::Value* task = nullptr, llvm::Value* slot = nullptr) {
    std::set<int> written;
    std::vector<llvm::Value*> arguments;
    if (task) arguments.push_back(task);
    for (int b : buffers_of(body, section.begin, section.end, &written)) {
      const Home& home = homes_.buffers[std::size_t(b)];
      if (home.block == Home::Block::parameters) {
        llvm::Value* entry =
            builder_.CreateConstInBoundsGEP1_64(builder_.getPtrTy(), memory.buffers, unsigned(home.place));
        arguments.push_back(builder_.CreateLoad(builder_.getPtrTy(), entry));
        continue;
      }
      llvm::Value* pointer =
          byte_offset(home.block == Home::Block::prepared ? memory.prepared : memory.scratch, number(home.place));
      if (home.copy_bytes > 0) pointer = byte_offset(pointer, builder_.CreateNSWMul(slot, number(home.copy_bytes)));
      arguments.push_back(pointer);
    }
    builder_.CreateCall(f, arguments);
  }
  llvm::Value* byte_offset(llvm::Value* pointer, llvm::Value* bytes) {
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), pointer, bytes);
  }

  void emit_prepare() {
    // prepare has no threads to run on: its parallel loops are serial.
    in_prepare_ = true;
    llvm::Type* pointer = builder_.getPtrTy();
    const Section all{0, int(program_.prepare.size()), {}, 1};
    llvm::Function* loops = all.end > 0 ? part(program_.prepare, all, symbol_ + "_prepare.0") : nullptr;
    llvm::Function* wrapper = function({pointer, pointer, pointer}, symbol_ + "_prepare", true, 1);
    if (loops) call_part(loops, program_.prepare, all, memory_of(wrapper));
    builder_.CreateRetVoid();
    in_prepare_ = false;
  }

  void emit_run() {
    llvm::Type* pointer = builder_.getPtrTy();
    std::vector<llvm::Function*> parts;  // by section
    for (std::size_t s = 0; s < dispatch_.sections.size(); ++s)
      parts.push_back(part(program_.run, dispatch_.sections[s], fmt::format("{}_run.{}", symbol_, s)));
    std::vector<llvm::Function*> tasks;  // by group; null: called directly
    std::int64_t most_slots = 1;
    for (const Group& group : dispatch_.groups) {
      most_slots = std::max(most_slots, group.slots);
      tasks.push_back(group.slots > 1 ? tasks_of(group, parts) : nullptr);
    }

    llvm::Function* wrapper = function({pointer, pointer, pointer, pointer, pointer}, symbol_ + "_run", true, 1);
    const Memory memory = memory_of(wrapper);
    llvm::Value *closure = nullptr, *queues = nullptr;
    if (most_slots > 1) {
      auto* kept = builder_.CreateAlloca(queue_type(), number(most_slots));
      kept->setAlignment(llvm::Align(alignment_bytes));
      queues = kept;
      closure = builder_.CreateAlloca(llvm::ArrayType::get(pointer, 4));
      for (const auto& [slot, value] :
           {std::pair{0u, memory.buffers}, {1u, memory.prepared}, {2u, memory.scratch}, {3u, queues}})
        builder_.CreateStore(value, builder_.CreateConstInBoundsGEP1_64(pointer, closure, slot));
    }
    auto* parallel_for =
        llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, pointer, builder_.getInt64Ty()}, false);
    for (std::size_t g = 0; g < dispatch_.groups.size(); ++g) {
      const Group& group = dispatch_.groups[g];
      if (tasks[g] == nullptr) {
        for (int s = group.begin; s < group.end; ++s) {
          const Section& section = dispatch_.sections[std::size_t(s)];
          call_part(parts[std::size_t(s)], program_.run, section, memory, section.band.empty() ? nullptr : number(0));
        }
        continue;
      }
      for (std::int64_t slot = 0; slot < group.slots; ++slot) {
        builder_.CreateStore(number(slot * group.tasks / group.slots), in_queue(queues, number(slot), 0));
        builder_.CreateStore(number((slot + 1) * group.tasks / group.slots), in_queue(queues, number(slot), 1));
      }
      builder_.CreateCall(parallel_for, wrapper->getArg(3),
                          {wrapper->getArg(4), tasks[g], closure, number(group.slots)});
    }
    builder_.CreateRetVoid();
  }

  // Tasks that a slot has to do, [next, end), on a cache line of their own.
  llvm::ArrayType* queue_type() {
    return llvm::ArrayType::get(builder_.getInt64Ty(), std::uint64_t(alignment_bytes / 8));
  }
  llvm::Value* in_queue(llvm::Value* queues, llvm::Value* slot, std::int64_t field) {
    return builder_.CreateInBoundsGEP(queue_type(), queues, {slot, number(field)});
  }

  // What parallel_for calls once per slot: does the slot's own tasks, which are consecutive, then helps the others
  // with theirs. The closure holds buffers, prepared, scratch and queues.
  llvm::Function* tasks_of(const Group& group, const std::vector<llvm::Function*>& parts) {
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Type* integer = builder_.getInt64Ty();
    llvm::Function* f = function({pointer, integer}, fmt::format("{}_run.{}.tasks", symbol_, group.begin), false,
                                 std::uint64_t(group.slots));
    const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context_, name, f); };
    const auto field = [&](unsigned i) {
      return builder_.CreateLoad(pointer, builder_.CreateConstInBoundsGEP1_64(pointer, f->getArg(0), i));
    };
    const Memory memory{field(0), field(1), field(2)};
    llvm::Value* const queues = field(3);
    llvm::Value* const own = f->getArg(1);
    auto *entry = builder_.GetInsertBlock(), *queue = block("queue"), *take = block("take"), *next = block("next"),
         *end = block("end");
    builder_.CreateBr(queue);

    builder_.SetInsertPoint(queue);
    llvm::PHINode* const seen = builder_.CreatePHI(integer, 2);
    llvm::PHINode* const slot = builder_.CreatePHI(integer, 2);
    seen->addIncoming(number(0), entry);
    slot->addIncoming(own, entry);
    llvm::Value* const last = builder_.CreateLoad(integer, in_queue(queues, slot, 1));
    builder_.CreateBr(take);

    builder_.SetInsertPoint(take);
    // What tasks hand over to each other goes through parallel_for's own synchronisation.
    llvm::Value* task = builder_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, in_queue(queues, slot, 0), number(1),
                                                 llvm::MaybeAlign(8), llvm::AtomicOrdering::Monotonic);
    auto* work = block("work");
    builder_.CreateCondBr(builder_.CreateICmpULT(task, last), work, next);
    builder_.SetInsertPoint(work);
    for (int s = group.begin; s < group.end; ++s) {
      const Section& section = dispatch_.sections[std::size_t(s)];
      llvm::BasicBlock* other = nullptr;
      if (s + 1 < group.end) {
        auto* here = block("here");
        other = block("other");
        builder_.CreateCondBr(builder_.CreateICmpULT(task, number(section.tasks)), here, other);
        builder_.SetInsertPoint(here);
      }
      call_part(parts[std::size_t(s)], program_.run, section, memory, section.band.empty() ? nullptr : task, own);
      builder_.CreateBr(take);
      if (other == nullptr) break;
      builder_.SetInsertPoint(other);
      task = builder_.CreateSub(task, number(section.tasks));
    }

    builder_.SetInsertPoint(next);
    llvm::Value* const seen_now = builder_.CreateAdd(seen, number(1));
    llvm::Value* const after = builder_.CreateAdd(slot, number(1));
    llvm::Value* const wrapped =
        builder_.CreateSelect(builder_.CreateICmpEQ(after, number(group.slots)), number(0), after);
    seen->addIncoming(seen_now, next);
    slot->addIncoming(wrapped, next);
    builder_.CreateCondBr(builder_.CreateICmpULT(seen_now, number(group.slots)), queue, end);
    builder_.SetInsertPoint(end);
    builder_.CreateRetVoid();
    return f;
  }

  // ---- loops

  void nodes(const Body& body, int begin, int end) {
    for (int n = begin; n < end && refused_.empty(); n = body[std::size_t(n)].end) {
      const Node& node = body[std::size_t(n)];
      if (node.kind == Node::Kind::store)
        statement(node.item);
      else
        loop_node(body, n, node);
    }
  }

  void loop_node(const Body& body, int n, const Node& node) {
    const int l = node.item;
    const Loop& here = loop(l);
    if (here.intrinsic >= 0) return intrinsic(body, n);
    if (here.extent == 1) {
      variable(l) = {};
      return iteration(body, n);
    }
    switch (here.kind) {
      case LoopKind::serial:
        return serial(body, n, node);
      case LoopKind::unrolled:
        if (transposed_copy(body, n, node)) return;
        variable(l) = {};
        for (std::int64_t i = 0; i < here.extent && refused_.empty(); ++i) {
          variable(l).value = i;
          iteration(body, n);
        }
        return;
      case LoopKind::vector:
        return vector(body, n, node);
      case LoopKind::parallel:
        if (in_prepare_ || threads_ <= 1) return serial(body, n, node);
        return refuse(fmt::format("parallel: loop '{}' is not outermost", here.name));
      case LoopKind::block_x:
      case LoopKind::block_y:
      case LoopKind::block_z:
      case LoopKind::thread_x:
      case LoopKind::thread_y:
      case LoopKind::thread_z:
      case LoopKind::virtual_thread:
        return refuse(fmt::format("{}: loop '{}' is for a GPU, which this back end does not generate code for",
                                  name_of(here.kind), here.name));
    }
  }

  // One iteration of the loop at body[n]: its prefetches, then what is inside.
  void iteration(const Body& body, int n) {
    const Node& node = body[std::size_t(n)];
    for (const Access& access : loop(node.item).prefetches) {
      if (++statements_ > most_statements)
        return refuse(fmt::format("unrolled: more than {} statements", most_statements));
      Place p = place(access, offset(program_, access));
      if (!refused_.empty()) return;
      p.inbounds = false;
      const bool write = touches(program_, body, n, access.tensor, true);
      constexpr int keep = 3, data = 1;  // in all caches
      builder_.CreateIntrinsic(
          llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
          {address(p, 0), builder_.getInt32(write), builder_.getInt32(keep), builder_.getInt32(data)});
    }
    nodes(body, n + 1, node.end);
  }

  void vector(const Body& body, int n, const Node& node) {
    const Loop& here = loop(node.item);
    for (int inner = n + 1; inner < node.end; ++inner)
      if (body[std::size_t(inner)].kind == Node::Kind::loop)
        return refuse(fmt::format("vector: loop '{}' contains a loop", here.name));
    if (here.extent > most_lanes)
      return refuse(fmt::format("vector: loop '{}' has {} lanes, more than {}", here.name, here.extent, most_lanes));
    variable(node.item) = {};
    lane_loop_ = node.item;
    lanes_ = here.extent;
    nodes(body, n + 1, node.end);
    lane_loop_ = -1;
    lanes_ = 1;
  }

  // The nest at body[n] as one call of its intrinsic's code.
  void intrinsic(const Body& body, int n) {
    const int number = loop(body[std::size_t(n)].item).intrinsic;
    const Intrinsic& intrinsic = *program_.intrinsics[std::size_t(number)];
    const base::Result<Match> found = codegen::match(program_, body, n, intrinsic);
    if (!found) return refuse(fmt::format("intrinsic: {}", found.reason().text));
    for (const int l : found->loops) variable(l) = {};
    const Store& store = program_.stores[std::size_t(found->store)];
    const auto whole = [&](const Access& access, const Affine& form, const Tensor& tensor) {
      Place p = place(access, form);
      p.lane_stride = 1;
      lanes_ = tensor.elements();
      return p;
    };
    std::vector<llvm::Value*> operands;
    const Affine& target = target_offsets_[std::size_t(found->store)];
    const auto operand = [&](const Access& access, const Affine& form, const Tensor& tensor) {
      operands.push_back(load(whole(access, form, tensor), tensor.dtype));
    };
    if (store.combine != Combine::none) operand(store.target, target, intrinsic.output());
    for (std::size_t t = 0; t < found->loads.size(); ++t) {
      const int l = found->loads[t];
      if (l < 0) continue;
      operand(store.value.loads[std::size_t(l)], load_offsets_[std::size_t(found->store)][std::size_t(l)],
              intrinsic.computation.tensors[t]);
    }
    if (refused_.empty()) {
      llvm::Value* result = builder_.CreateCall(intrinsic_code_[std::size_t(number)], operands);
      save(whole(store.target, target, intrinsic.output()), result);
    }
    lanes_ = 1;
  }

  // Register buffers that intrinsics write are held in pieces of what one intrinsic takes; those whose vectors a
  // remainder combines with its first lanes only, in these vectors.
  void note_grains(const Body& body) {
    std::map<int, std::set<std::int64_t>> begun, combined;  // lanes, by buffer
    std::vector<const Node*> vectors;
    for (const Node& node : body) {
      const int here = int(&node - body.data());
      while (!vectors.empty() && vectors.back()->end <= here) vectors.pop_back();
      if (node.kind == Node::Kind::loop) {
        if (loop(node.item).kind == LoopKind::vector) vectors.push_back(&node);
        continue;
      }
      const Store& store = program_.stores[std::size_t(node.item)];
      if (buffer(store.target.tensor).scope != Scope::registers) continue;
      const bool along = !vectors.empty() && target_offsets_[std::size_t(node.item)].coefficient(vectors[0]->item) != 0;
      (store.combine == Combine::none ? begun : combined)[store.target.tensor].insert(
          along ? loop(vectors[0]->item).extent : 1);
    }
    for (const auto& [target, lanes] : begun) {
      if (lanes.size() == 1 && combined.contains(target) && *combined[target].begin() < *lanes.begin())
        grains_[target] = *lanes.begin();
    }
    for (int n = 0; n < int(body.size()); ++n) {
      if (body[std::size_t(n)].kind != Node::Kind::loop) continue;
      const int number = loop(body[std::size_t(n)].item).intrinsic;
      if (number < 0) continue;
      int inner = n;
      while (body[std::size_t(inner)].kind == Node::Kind::loop) ++inner;
      const int target = program_.stores[std::size_t(body[std::size_t(inner)].item)].target.tensor;
      grains_[target] = program_.intrinsics[std::size_t(number)]->output().elements();
    }
  }

  // An unrolled loop over a vector loop over a copy that reads along the lanes and writes along the unrolled loop: rows
  // are loaded as vectors, transposed in registers and stored as vectors, instead of lane by lane.
  bool transposed_copy(const Body& body, int n, const Node& node) {
    if (node.end != n + 3 || body[std::size_t(n) + 1].kind != Node::Kind::loop) return false;
    if (!loop(node.item).prefetches.empty()) return false;
    const int rows_loop = node.item, lanes_loop = body[std::size_t(n) + 1].item;
    if (loop(lanes_loop).kind != LoopKind::vector) return false;
    const int s = body[std::size_t(n) + 2].item;
    const Store& store = program_.stores[std::size_t(s)];
    if (store.combine != Combine::none || store.value.nodes.size() != 1 || store.value.loads.size() != 1) return false;
    const Affine& to = target_offsets_[std::size_t(s)];
    const Affine& from = load_offsets_[std::size_t(s)][0];
    const Buffer& target = buffer(store.target.tensor);
    const Buffer& source = buffer(store.value.loads[0].tensor);
    if (target.scope != Scope::memory || target.dtype != source.dtype) return false;
    if (store.target.tensor == store.value.loads[0].tensor) return false;
    const std::int64_t rows = loop(rows_loop).extent, lanes = loop(lanes_loop).extent;
    const std::int64_t apart = to.coefficient(lanes_loop);
    if (to.coefficient(rows_loop) != 1 || apart == 0 || apart == 1 || from.coefficient(lanes_loop) != 1) return false;
    if (lanes < least_transposed || rows < least_transposed || lanes > most_transposed) return false;
    if (++statements_ > most_statements) return false;

    lane_loop_ = lanes_loop;
    lanes_ = lanes;
    variable(lanes_loop) = {};
    for (std::int64_t first = 0; first < rows && refused_.empty(); first += most_transposed) {
      const std::int64_t count = std::min(rows - first, most_transposed);
      std::vector<llvm::Value*> block;
      for (std::int64_t row = first; row < first + count; ++row) {
        variable(rows_loop) = {row, nullptr, {}};
        block.push_back(load(store.value.loads[0], from, target.dtype));
      }
      if (!refused_.empty()) break;
      variable(rows_loop) = {first, nullptr, {}};
      const Place p = place(store.target, to);
      block = transposed(std::move(block), lanes);
      const llvm::Align align{std::uint64_t(bytes_of(target.dtype))};
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        store_at(block[std::size_t(lane)], p, lane * apart, align);
      }
      forget_loads_of(p.buffer);
    }
    lane_loop_ = -1;
    lanes_ = 1;
    return true;
  }

  // Rows of `lanes` elements -> `lanes` vectors of as many elements as there are rows. Eklundh's method: blocks of
  // ever larger powers of two change places, in pairs of rows.
  std::vector<llvm::Value*> transposed(std::vector<llvm::Value*> rows, std::int64_t lanes) {
    const std::int64_t count = std::int64_t(rows.size());
    std::int64_t size = 1;
    while (size < std::max(count, lanes)) size *= 2;
    const auto resized = [&](llvm::Value* value, std::int64_t have, std::int64_t want) {
      if (have == want) return value;
      std::vector<int> mask(std::size_t(want), -1);
      for (std::int64_t i = 0; i < std::min(have, want); ++i) mask[std::size_t(i)] = int(i);
      return builder_.CreateShuffleVector(value, mask);
    };
    for (llvm::Value*& row : rows) row = resized(row, lanes, size);
    rows.resize(std::size_t(size), llvm::PoisonValue::get(rows[0]->getType()));
    for (std::int64_t half = 1; half < size; half *= 2) {
      std::vector<int> low(std::size_t(size), 0), high(std::size_t(size), 0);
      for (std::int64_t i = 0; i < size; ++i) {
        const bool first = (i & half) == 0;
        low[std::size_t(i)] = int(first ? i : size + i - half);
        high[std::size_t(i)] = int(first ? i + half : size + i);
      }
      for (std::int64_t i = 0; i < size; ++i) {
        if ((i & half) != 0) continue;
        llvm::Value *a = rows[std::size_t(i)], *b = rows[std::size_t(i + half)];
        if (llvm::isa<llvm::PoisonValue>(a) && llvm::isa<llvm::PoisonValue>(b)) continue;
        rows[std::size_t(i)] = builder_.CreateShuffleVector(a, b, low);
        rows[std::size_t(i + half)] = builder_.CreateShuffleVector(a, b, high);
      }
    }
    rows.resize(std::size_t(lanes));
    for (llvm::Value*& row : rows) row = resized(row, size, count);
    return rows;
  }

  void enter(int l, llvm::Value* counter) {
    variable(l) = {.value = 0, .counter = counter};
    serial_loops_.push_back(l);
  }
  void leave() { serial_loops_.pop_back(); }

  void serial(const Body& body, int n, const Node& node) {
    const Loop& here = loop(node.item);
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    llvm::Function* f = before->getParent();
    auto* header = llvm::BasicBlock::Create(context_, here.name, f);
    auto* exit = llvm::BasicBlock::Create(context_, "exit", f);
    builder_.CreateBr(header);
    builder_.SetInsertPoint(header);
    // Iterations that are left: pointers move by themselves, and counting down needs no comparison.
    llvm::PHINode* left = builder_.CreatePHI(builder_.getInt64Ty(), 2, here.name);
    left->addIncoming(number(here.extent), before);

    struct Carried {
      RegisterKey key;
      std::int64_t lanes;
      llvm::PHINode* phi;
      llvm::Value* initial;
    };
    std::vector<Carried> carried;
    std::set<int> stored;
    for_each_access(program_, body, n + 1, node.end, [&](int b, const Access&, bool writes) {
      if (writes && buffer(b).scope == Scope::registers) stored.insert(b);
    });
    for (auto& [key, piece] : registers_) {
      if (!stored.count(key.first)) continue;
      llvm::PHINode* phi = builder_.CreatePHI(piece.value->getType(), 2);
      phi->addIncoming(piece.value, before);
      carried.push_back({key, piece.lanes, phi, piece.value});
      piece.value = phi;
    }

    enter(node.item, left);
    forget_block();
    iteration(body, n);
    leave();

    for (const Carried& c : carried) {
      llvm::Value* last = read_register(c.key.first, c.key.second, c.lanes);
      c.phi->addIncoming(last, builder_.GetInsertBlock());
    }
    for (const Moving& m : variable(node.item).moving) {
      llvm::Value* moved = builder_.CreateGEP(m.element, m.pointer, number(m.coefficient), "", m.inbounds);
      m.pointer->addIncoming(moved, builder_.GetInsertBlock());
    }
    llvm::Value* next = builder_.CreateSub(left, number(1), "", true, true);
    left->addIncoming(next, builder_.GetInsertBlock());
    const std::uint32_t back =
        std::uint32_t(std::min<std::int64_t>(here.extent - 1, std::numeric_limits<std::int32_t>::max()));
    llvm::BranchInst* const branch = builder_.CreateCondBr(builder_.CreateICmpNE(next, number(0)), header, exit,
                                                           llvm::MDBuilder(context_).createBranchWeights(back, 1));
    branch->setMetadata(llvm::LLVMContext::MD_loop, loop_id(context_, node.item));
    builder_.SetInsertPoint(exit);
    for (const Carried& c : carried) drop_idle_phi(c.phi, c.initial);
    forget_block();
  }

  // A phi that hands on its first value, or that nobody reads, would only cost instructions.
  void drop_idle_phi(llvm::PHINode* phi, llvm::Value* initial) {
    const bool constant = phi->getIncomingValue(1) == phi;
    if (constant) {
      phi->replaceAllUsesWith(initial);
      for (auto& [key, piece] : registers_)
        if (piece.value == phi) piece.value = initial;
    }
    const bool held =
        std::any_of(registers_.begin(), registers_.end(), [&](const auto& entry) { return entry.second.value == phi; });
    if (phi->use_empty() && !held) phi->eraseFromParent();
  }

  // ---- accesses

  Place place(const Access& access, const Affine& form) {
    Place p;
    p.buffer = access.tensor;
    p.constant = form.constant;
    p.inbounds = form.constant >= 0;
    for (const Term& term : form.terms) {
      if (term.variable == lane_loop_) {
        p.lane_stride = term.coefficient;
      } else if (!variable(term.variable).counter) {
        p.constant += term.coefficient * variable(term.variable).value;
      }
      // Part sums stay inside of the buffer only where nothing is subtracted.
      if (term.coefficient < 0) p.inbounds = false;
    }
    const bool in_memory = buffer(access.tensor).scope == Scope::memory;
    if (in_memory) p.pointer = pointers_[std::size_t(access.tensor)];
    for (int l : serial_loops_) {
      const std::int64_t coefficient = form.coefficient(l);
      if (coefficient == 0) continue;
      if (!in_memory) {
        refuse(fmt::format("registers: '{}' is indexed by the loop '{}', which is not unrolled",
                           buffer(access.tensor).name, loop(l).name));
        return p;
      }
      if (named_.contains(p.buffer)) p.by_loop.emplace(l, coefficient);
      if (!p.pointer) p.pointer = table(p.buffer);
      p.pointer = advance(p.pointer, l, coefficient, p.inbounds, type_of(buffer(access.tensor).dtype));
    }
    return p;
  }

  // pointer + loop variable * coefficient, once per loop. Loops carry it along and move it at their end: without a
  // product, and with no need for the pointer that it began with.
  llvm::Value* advance(llvm::Value* pointer, int l, std::int64_t coefficient, bool inbounds, llvm::Type* element) {
    Variable& v = variable(l);
    llvm::Value*& known = addresses_[{pointer, v.counter, coefficient, inbounds}];
    if (known) return known;
    llvm::IRBuilderBase::InsertPointGuard guard(builder_);
    if (auto* left = llvm::dyn_cast<llvm::PHINode>(v.counter)) {
      builder_.SetInsertPoint(left);
      llvm::PHINode* moving = builder_.CreatePHI(builder_.getPtrTy(), 2);
      moving->addIncoming(pointer, left->getIncomingBlock(0));
      v.moving.push_back({moving, element, coefficient, inbounds});
      return known = moving;
    }
    builder_.SetInsertPoint(builder_.GetInsertBlock()->getParent()->getEntryBlock().getTerminator());
    return known = builder_.CreateGEP(element, pointer, builder_.CreateNSWMul(v.counter, number(coefficient)), "",
                                      inbounds);
  }

  llvm::Value* address(const Place& p, std::int64_t extra) {
    const std::int64_t elements = p.constant + extra;
    if (elements == 0) return p.pointer;
    return builder_.CreateGEP(type_of(buffer(p.buffer).dtype), p.pointer, number(elements), "", p.inbounds);
  }

  void forget_block() {
    loads_.clear();
    splats_.clear();
  }

  llvm::Value* memory_load(const Place& p, std::int64_t element, std::int64_t lanes) {
    const DType type = buffer(p.buffer).dtype;
    llvm::Type* of = type_of(type);
    if (lanes > 1) of = llvm::FixedVectorType::get(of, unsigned(lanes));
    llvm::LoadInst* const loaded =
        builder_.CreateAlignedLoad(of, address(p, element), llvm::Align(std::uint64_t(bytes_of(type))));
    name_place(*loaded, p, element);
    return loaded;
  }

  void store_at(llvm::Value* value, const Place& p, std::int64_t element, llvm::Align align) {
    name_place(*builder_.CreateAlignedStore(value, address(p, element), align), p, element);
  }

  void name_place(llvm::Instruction& access, const Place& p, std::int64_t element) {
    if (p.gathered || !named_.contains(p.buffer)) return;
    access.setMetadata(llvm::LLVMContext::MD_alias_scope,
                       scope_of(context_, {p.buffer, p.constant + element, p.by_loop}));
  }

  // A literal in memory, for where its index is not known.
  llvm::GlobalVariable* table(int b) {
    llvm::GlobalVariable*& known = tables_[b];
    if (known) return known;
    std::vector<llvm::Constant*> elements;
    for (const double value : buffer(b).values) elements.push_back(constant(buffer(b).dtype, value));
    auto* type = llvm::ArrayType::get(type_of(buffer(b).dtype), elements.size());
    known = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::InternalLinkage,
                                     llvm::ConstantArray::get(type, elements), symbol_ + "_literal");
    known->setAlignment(llvm::Align(alignment_bytes));
    return known;
  }

  // The elements of a literal at a place that no serial loop moves.
  llvm::Value* literal_value(const Place& p, std::int64_t lanes) {
    const auto element = [&](std::int64_t lane) {
      return constant(buffer(p.buffer).dtype, buffer(p.buffer).values[std::size_t(p.constant + lane * p.lane_stride)]);
    };
    if (lanes == 1) return element(0);
    std::vector<llvm::Constant*> elements;
    for (std::int64_t lane = 0; lane < lanes; ++lane) elements.push_back(element(lane));
    return llvm::ConstantVector::get(elements);
  }

  // The value of an access in type `as`: a scalar if it is the same in all lanes, else a vector.
  llvm::Value* load(const Access& access, const Affine& form, DType as) { return load(place(access, form), as); }
  llvm::Value* load(const Place& p, DType as) {
    const DType type = buffer(p.buffer).dtype;
    const std::int64_t lanes = p.lane_stride ? lanes_ : 1;
    if (buffer(p.buffer).scope == Scope::registers) {
      if (lanes == 1 || p.lane_stride == 1) return converted(read_register(p.buffer, p.constant, lanes), type, as);
      llvm::Value* gathered = llvm::PoisonValue::get(llvm::FixedVectorType::get(type_of(type), unsigned(lanes)));
      for (std::int64_t i = 0; i < lanes; ++i)
        gathered = builder_.CreateInsertElement(gathered, read_register(p.buffer, p.constant + i * p.lane_stride, 1),
                                                std::uint64_t(i));
      return converted(gathered, type, as);
    }
    if (buffer(p.buffer).is_literal() && !p.pointer) return converted(literal_value(p, lanes), type, as);
    llvm::Value*& known = loads_[LoadKey{p.buffer, p.pointer, p.constant, p.lane_stride, lanes, as}];
    if (!known) known = converted(lanes == 1 ? memory_load(p, 0, 1) : load_lanes(p, lanes), type, as);
    return known;
  }

  // A load at indices that are values: each that is outside of its dimension counts as the nearest one inside.
  llvm::Value* gathered(const Access& access, const Affine& form, const std::vector<llvm::Value*>& indices,
                        DType index_type, DType as) {
    Place p = place(access, form);
    if (!refused_.empty()) return nullptr;
    if (!p.pointer) p.pointer = table(p.buffer);
    p.gathered = true;
    p.inbounds = false;
    const Buffer& from = buffer(p.buffer);
    llvm::Value* offset = nullptr;
    for (std::size_t g = 0; g < indices.size(); ++g) {
      const std::size_t dimension = std::size_t(access.gathered[g]);
      std::int64_t stride = 1;
      for (std::size_t d = dimension + 1; d < from.shape.size(); ++d) stride *= from.shape[d];
      llvm::Value* index = extreme(true, indices[g], constant(index_type, 0), index_type);
      index = extreme(false, index, constant(index_type, double(from.shape[dimension] - 1)), index_type);
      index = converted(index, index_type, DType::i64);
      llvm::Value* along = number(stride);
      match(index, along);
      index = builder_.CreateMul(index, along);
      if (offset) match(offset, index);
      offset = offset ? builder_.CreateAdd(offset, index) : index;
    }
    llvm::Type* element = type_of(from.dtype);
    if (!lanes_of(offset)) {
      p.pointer = builder_.CreateGEP(element, p.pointer, offset);
      return load(p, as);
    }
    llvm::Value* lanes = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, unsigned(lanes_)));
    llvm::Value* const start = p.pointer;
    for (std::int64_t i = 0; i < lanes_; ++i) {
      p.pointer = builder_.CreateGEP(element, start, builder_.CreateExtractElement(offset, std::uint64_t(i)));
      lanes = builder_.CreateInsertElement(lanes, memory_load(p, i * p.lane_stride, 1), std::uint64_t(i));
    }
    return converted(lanes, from.dtype, as);
  }

  // A form over loops as a number.
  llvm::Value* position(const Affine& form) {
    std::int64_t start = form.constant, along_lanes = 0;
    llvm::Value* sum = nullptr;
    for (const Term& term : form.terms) {
      const Variable& v = variable(term.variable);
      if (term.variable == lane_loop_) {
        along_lanes = term.coefficient;
      } else if (!v.counter) {
        start += term.coefficient * v.value;
      } else {
        // Serial loops count the iterations that are left.
        llvm::Value* iteration = llvm::isa<llvm::PHINode>(v.counter)
                                     ? builder_.CreateSub(number(loop(term.variable).extent), v.counter)
                                     : v.counter;
        iteration = builder_.CreateMul(builder_.CreateTrunc(iteration, builder_.getInt32Ty()),
                                       builder_.getInt32(std::uint32_t(term.coefficient)));
        sum = sum ? builder_.CreateAdd(sum, iteration) : iteration;
      }
    }
    llvm::Value* first = builder_.getInt32(std::uint32_t(start));
    if (sum) first = builder_.CreateAdd(sum, first);
    if (along_lanes == 0) return first;
    std::vector<llvm::Constant*> steps;
    for (std::int64_t i = 0; i < lanes_; ++i) steps.push_back(builder_.getInt32(std::uint32_t(i * along_lanes)));
    return builder_.CreateAdd(splat(first), llvm::ConstantVector::get(steps));
  }

  llvm::Value* load_lanes(const Place& p, std::int64_t lanes) {
    if (p.lane_stride == 1) return memory_load(p, 0, lanes);
    if (p.lane_stride == 2) {
      // Two overlapping vectors, so that nothing after the last element is read: [0, N) and [N-1, 2N-1).
      llvm::Value* low = memory_load(p, 0, lanes);
      llvm::Value* high = memory_load(p, lanes - 1, lanes);
      std::vector<int> even(std::size_t(lanes), 0);
      for (int i = 0; i < int(lanes); ++i)
        even[std::size_t(i)] = 2 * i < int(lanes) ? 2 * i : int(lanes) + 2 * i - (int(lanes) - 1);
      return builder_.CreateShuffleVector(low, high, even);
    }
    llvm::Type* element = type_of(buffer(p.buffer).dtype);
    llvm::Value* gathered = llvm::PoisonValue::get(llvm::FixedVectorType::get(element, unsigned(lanes)));
    for (std::int64_t i = 0; i < lanes; ++i)
      gathered = builder_.CreateInsertElement(gathered, memory_load(p, i * p.lane_stride, 1), std::uint64_t(i));
    return gathered;
  }

  void save(const Place& p, llvm::Value* value) {
    const std::int64_t lanes = p.lane_stride ? lanes_ : 1;
    const Buffer& to = buffer(p.buffer);
    if (to.scope == Scope::registers) {
      if (lanes == 1 || p.lane_stride == 1) return write_register(p.buffer, p.constant, lanes, value);
      for (std::int64_t i = 0; i < lanes; ++i)
        write_register(p.buffer, p.constant + i * p.lane_stride, 1,
                       builder_.CreateExtractElement(value, std::uint64_t(i)));
      return;
    }
    const llvm::Align align{std::uint64_t(bytes_of(to.dtype))};
    if (lanes == 1 || p.lane_stride == 1) {
      store_at(value, p, 0, align);
    } else {
      for (std::int64_t i = 0; i < lanes; ++i)
        store_at(builder_.CreateExtractElement(value, std::uint64_t(i)), p, i * p.lane_stride, align);
    }
    forget_loads_of(p.buffer);
  }

  // After a store only the same buffer can have changed: buffers do not overlap.
  void forget_loads_of(int b) {
    const auto first =
        loads_.lower_bound(LoadKey{b, nullptr, std::numeric_limits<std::int64_t>::min(), 0, 0, DType::f32});
    auto last = first;
    while (last != loads_.end() && std::get<0>(last->first) == b) ++last;
    loads_.erase(first, last);
  }

  // ---- register buffers

  // The piece that holds an element, or the end.
  std::map<RegisterKey, Piece>::iterator piece_with(int b, std::int64_t element) {
    auto it = registers_.upper_bound({b, element});
    if (it == registers_.begin()) return registers_.end();
    --it;
    const bool holds = it->first.first == b && element < it->first.second + it->second.lanes;
    return holds ? it : registers_.end();
  }

  llvm::Value* lane_of(const RegisterKey& key, const Piece& piece, std::int64_t element) {
    if (piece.lanes == 1) return piece.value;
    return builder_.CreateExtractElement(piece.value, std::uint64_t(element - key.second));
  }

  llvm::Value* read_register(int b, std::int64_t element, std::int64_t lanes) {
    const auto exact = registers_.find({b, element});
    if (exact != registers_.end() && exact->second.lanes == lanes) return exact->second.value;
    if (const auto around = piece_around(b, element, lanes); lanes > 1 && around != registers_.end())
      return lanes_from(around->second.value, element - around->first.second, lanes);
    llvm::Type* type = type_of(buffer(b).dtype);
    llvm::Value* gathered =
        llvm::PoisonValue::get(lanes == 1 ? type : llvm::FixedVectorType::get(type, unsigned(lanes)));
    for (std::int64_t i = 0; i < lanes; ++i) {
      const auto it = piece_with(b, element + i);
      if (it == registers_.end()) {
        refuse(fmt::format("registers: '{}' is read before it is written", buffer(b).name));
        return gathered;
      }
      llvm::Value* lane = lane_of(it->first, it->second, element + i);
      if (lanes == 1) return lane;
      gathered = builder_.CreateInsertElement(gathered, lane, std::uint64_t(i));
    }
    return gathered;
  }

  // The piece that holds all of [element, element + lanes), or the end.
  std::map<RegisterKey, Piece>::iterator piece_around(int b, std::int64_t element, std::int64_t lanes) {
    const auto it = piece_with(b, element);
    const bool all = it != registers_.end() && element + lanes <= it->first.second + it->second.lanes;
    return all ? it : registers_.end();
  }
  llvm::Value* lanes_from(llvm::Value* vector, std::int64_t first, std::int64_t lanes) {
    std::vector<int> picked;
    for (std::int64_t i = 0; i < lanes; ++i) picked.push_back(int(first + i));
    return builder_.CreateShuffleVector(vector, picked);
  }
  // `vector` with `value` from lane `first` on.
  llvm::Value* with_lanes(llvm::Value* vector, llvm::Value* value, std::int64_t first) {
    const std::int64_t lanes = lanes_of(value), all = lanes_of(vector);
    if (lanes == 0) return builder_.CreateInsertElement(vector, value, std::uint64_t(first));
    std::vector<int> spread, blended;
    for (std::int64_t i = 0; i < all; ++i) {
      const bool replaced = i >= first && i < first + lanes;
      spread.push_back(replaced ? int(i - first) : llvm::PoisonMaskElem);
      blended.push_back(int(replaced ? all + i : i));
    }
    return builder_.CreateShuffleVector(vector, builder_.CreateShuffleVector(value, spread), blended);
  }

  // A piece of zeros where nothing is held yet. Those that are never written are lanes whose results nobody wants.
  void begin_piece(int b, std::int64_t element, std::int64_t lanes) {
    for (std::int64_t i = 0; i < lanes; ++i)
      if (piece_with(b, element + i) != registers_.end()) return;
    auto* type = llvm::FixedVectorType::get(type_of(buffer(b).dtype), unsigned(lanes));
    registers_[{b, element}] = {llvm::Constant::getNullValue(type), lanes};
  }

  void write_register(int b, std::int64_t element, std::int64_t lanes, llvm::Value* value) {
    const auto exact = registers_.find({b, element});
    if (exact != registers_.end() && exact->second.lanes == lanes) {
      exact->second.value = value;
      return;
    }
    if (const auto grain = grains_.find(b); grain != grains_.end() && lanes < grain->second) {
      begin_piece(b, element / grain->second * grain->second, grain->second);
      if (const auto around = piece_around(b, element, lanes); around != registers_.end()) {
        around->second.value = with_lanes(around->second.value, value, element - around->first.second);
        return;
      }
    }
    // Pieces that overlap fall apart into single elements.
    for (std::int64_t i = 0; i < lanes; ++i) {
      const auto it = piece_with(b, element + i);
      if (it == registers_.end()) continue;
      const RegisterKey key = it->first;
      const Piece piece = it->second;
      registers_.erase(it);
      for (std::int64_t e = key.second; e < key.second + piece.lanes; ++e)
        if (e < element || e >= element + lanes) registers_[{b, e}] = {lane_of(key, piece, e), 1};
    }
    registers_[{b, element}] = {value, lanes};
  }

  // ---- values

  llvm::Value* converted(llvm::Value* value, DType from, DType to) {
    if (from == to) return value;
    if (const DType wide = computed_in(from); wide != from)
      return converted(loaded_from_storage(builder_, attributes_, value, from), wide, to);
    if (const DType wide = computed_in(to); wide != to)
      return rounded_for_storage(builder_, attributes_, converted(value, from, wide), to);
    llvm::Type* type = with_element(value, type_of(to));
    if (is_floating(from) && is_floating(to)) return builder_.CreateFPCast(value, type);
    if (!is_floating(from) && !is_floating(to)) return builder_.CreateIntCast(value, type, is_signed(from));
    if (is_floating(to))
      return is_signed(from) ? builder_.CreateSIToFP(value, type) : builder_.CreateUIToFP(value, type);
    // Numbers beyond the range become its ends.
    if (!attributes_.saturates && bytes_of(to) <= 4) return within_range(value, from, to);
    return builder_.CreateIntrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                                    {type, value->getType()}, {value});
  }

  // To an integer of up to 32 bits, by comparisons of the number: LLVM's own conversion (fptosi.sat) takes vectors
  // apart on x86.
  llvm::Value* within_range(llvm::Value* value, DType from, DType to) {
    llvm::Value* const zero = llvm::Constant::getNullValue(value->getType());
    llvm::Value* inside = builder_.CreateSelect(builder_.CreateFCmpUNO(value, value), zero, value);
    // The end of 32 bits is between two numbers of f32.
    const bool is_between = from == DType::f32 && bytes_of(to) == 4;
    const double last = is_between ? 2147483520.0 : highest(to);
    inside = extreme(true, inside, constant(from, lowest(to)), from);
    inside = extreme(false, inside, constant(from, last), from);
    match(inside, value);
    llvm::Value* const wide = builder_.CreateFPToSI(inside, with_element(value, type_of(DType::i32)));
    llvm::Value* const result = builder_.CreateIntCast(wide, with_element(value, type_of(to)), true);
    if (!is_between) return result;
    llvm::Value* const is_above = builder_.CreateFCmpOGT(value, llvm::ConstantFP::get(value->getType(), last));
    return builder_.CreateSelect(is_above, llvm::ConstantInt::getSigned(result->getType(), 2147483647), result);
  }

  // To an integer type, with the ends of its range for what is beyond.
  llvm::Value* saturated(llvm::Value* value, DType from, DType to) {
    if (is_floating(from)) return converted(value, from, to);
    if (lowest(to) > lowest(from)) value = extreme(true, value, constant(from, lowest(to)), from);
    if (highest(to) < highest(from)) value = extreme(false, value, constant(from, highest(to)), from);
    return converted(value, from, to);
  }

  // a / b rounded down, or a - b * (a / b); both 0 where b is 0.
  llvm::Value* divided(bool quotient, llvm::Value* a, llvm::Value* b, DType type) {
    const auto* one_number = llvm::dyn_cast<llvm::ConstantInt>(b);
    if (!one_number && llvm::isa<llvm::Constant>(b))
      one_number = llvm::dyn_cast_or_null<llvm::ConstantInt>(llvm::cast<llvm::Constant>(b)->getSplatValue());
    const bool with_sign = is_signed(type);
    const auto of = [&](std::int64_t value) { return llvm::ConstantInt::getSigned(b->getType(), value); };
    if (one_number && one_number->getValue().isStrictlyPositive() && one_number->getValue().isPowerOf2()) {
      const std::int64_t by = one_number->getSExtValue();
      if (!quotient) return builder_.CreateAnd(a, of(by - 1));
      const std::int64_t bits = one_number->getValue().logBase2();
      return with_sign ? builder_.CreateAShr(a, of(bits)) : builder_.CreateLShr(a, of(bits));
    }
    llvm::Value* const is_zero = builder_.CreateICmpEQ(b, of(0));
    llvm::Value* by = builder_.CreateSelect(is_zero, of(1), b);
    llvm::Value* result = nullptr;
    if (!with_sign) {
      result = quotient ? builder_.CreateUDiv(a, by) : builder_.CreateURem(a, by);
    } else {
      // The most negative number / -1 is a trap on some targets.
      llvm::Value* const is_minus = builder_.CreateICmpEQ(by, of(-1));
      by = builder_.CreateSelect(is_minus, of(1), by);
      llvm::Value* const rest = builder_.CreateSRem(a, by);
      llvm::Value* const below = builder_.CreateAnd(builder_.CreateICmpNE(rest, of(0)),
                                                    builder_.CreateICmpSLT(builder_.CreateXor(rest, by), of(0)));
      result = quotient ? builder_.CreateSub(builder_.CreateSDiv(a, by), builder_.CreateZExt(below, a->getType()))
                        : builder_.CreateAdd(rest, builder_.CreateSelect(below, by, of(0)));
      if (quotient) result = builder_.CreateSelect(is_minus, builder_.CreateNeg(a), result);
    }
    return builder_.CreateSelect(is_zero, of(0), result);
  }

  llvm::Value* shifted(bool left, llvm::Value* a, llvm::Value* by, DType type) {
    llvm::Value* least = constant(type, 0);
    llvm::Value* most = constant(type, double(8 * bytes_of(type) - 1));
    if (is_signed(type)) by = extreme(true, by, least, type);
    by = extreme(false, by, most, type);
    match(a, by);
    if (left) return builder_.CreateShl(a, by);
    return is_signed(type) ? builder_.CreateAShr(a, by) : builder_.CreateLShr(a, by);
  }

  llvm::Value* splat(llvm::Value* value) {
    if (lanes_of(value)) return value;
    if (llvm::isa<llvm::Constant>(value)) return builder_.CreateVectorSplat(unsigned(lanes_), value);
    llvm::Value*& known = splats_[{value, lanes_}];
    if (!known) known = builder_.CreateVectorSplat(unsigned(lanes_), value);
    return known;
  }
  // Brings both to vectors if one is.
  void match(llvm::Value*& a, llvm::Value*& b) {
    if (lanes_of(a)) b = splat(b);
    if (lanes_of(b)) a = splat(a);
  }

  llvm::Constant* constant(DType type, double value) {
    if (computed_in(type) != type) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, as_bytes({value}, type).data(), sizeof bits);
      return llvm::ConstantInt::get(type_of(type), bits);
    }
    if (is_floating(type)) return llvm::ConstantFP::get(type_of(type), value);
    return llvm::ConstantInt::get(type_of(type), std::uint64_t(integer_of(kept(value, type))));
  }

  llvm::Value* extreme(bool greatest, llvm::Value* a, llvm::Value* b, DType type) {
    match(a, b);
    if (!is_floating(type))
      return builder_.CreateBinaryIntrinsic(is_signed(type)
                                                ? (greatest ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                                                : (greatest ? llvm::Intrinsic::umax : llvm::Intrinsic::umin),
                                            a, b);
    return functions_.extreme(greatest, a, b);
  }

  // The factors of a product, one that is known in front. Zeros of transforms: 0 * x is 0, whatever x is.
  struct Factors {
    const llvm::ConstantFP* known = nullptr;
    llvm::Value* other = nullptr;
    bool is(double number) const { return known && known->isExactlyValue(number); }
  };
  static Factors factors(llvm::Value* a, llvm::Value* b) {
    if (const auto* number = llvm::dyn_cast<llvm::ConstantFP>(a)) return {number, b};
    return {llvm::dyn_cast<llvm::ConstantFP>(b), a};
  }

  llvm::Value* product(llvm::Value* a, llvm::Value* b) {
    const Factors f = factors(a, b);
    if (f.is(0)) return llvm::Constant::getNullValue(a->getType());
    if (f.is(1)) return f.other;
    if (f.is(-1)) return builder_.CreateFNeg(f.other);
    match(a, b);
    return builder_.CreateFMul(a, b);
  }

  // before + a * b. Operations made superfluous by a factor of 0, 1 or -1 are left out, as is
  // an addition to nothing: a transform by a matrix of literals costs its non-zero terms only.
  llvm::Value* product_added(llvm::Value* a, llvm::Value* b, llvm::Value* before) {
    const Factors f = factors(a, b);
    const auto wide = [&](llvm::Value* value) { return lane_loop_ >= 0 ? splat(value) : value; };
    if (f.is(0)) return before;
    if (f.known) {
      const auto* start = llvm::dyn_cast<llvm::Constant>(before);
      if (start && start->isNullValue()) return wide(product(a, b));
      if (f.is(1)) return builder_.CreateFAdd(before, wide(f.other));
      if (f.is(-1)) return builder_.CreateFSub(before, wide(f.other));
    }
    return fused(wide(a), wide(b), before);
  }

  llvm::Value* applied(Op op, llvm::Value* a, llvm::Value* b, DType type) {
    const bool floating = is_floating(type);
    if (b && op != Op::mul) match(a, b);
    switch (op) {
      case Op::constant:
      case Op::load:
      case Op::position:
        break;
      case Op::add:
        return floating ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
      case Op::sub:
        return floating ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b);
      case Op::mul:
        if (floating) return product(a, b);
        match(a, b);
        return builder_.CreateMul(a, b);
      case Op::div:
        return floating ? builder_.CreateFDiv(a, b) : divided(true, a, b, type);
      case Op::max:
        return extreme(true, a, b, type);
      case Op::min:
        return extreme(false, a, b, type);
      case Op::neg:
        return floating ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
      case Op::exp:
        return functions_.exp(a);
      case Op::sqrt:
        return functions_.sqrt(a);
      case Op::rsqrt:
        return functions_.rsqrt(a);
      case Op::log:
        return functions_.log(a);
      case Op::pow:
        return functions_.pow(a, b);
      case Op::tanh:
        return functions_.tanh(a);
      case Op::sigmoid:
        return functions_.sigmoid(a);
      case Op::erf:
        return functions_.erf(a);
      case Op::sin:
        return functions_.sin(a);
      case Op::cos:
        return functions_.cos(a);
      case Op::abs:
        if (floating) return functions_.abs(a);
        return is_signed(type) ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse()) : a;
      case Op::floor:
        return functions_.floor(a);
      case Op::round:
        return functions_.round(a);
      case Op::modulo:
        return divided(false, a, b, type);
      case Op::shift_left:
      case Op::shift_right:
        return shifted(op == Op::shift_left, a, b, type);
      case Op::bit_and:
        return builder_.CreateAnd(a, b);
      case Op::bit_or:
        return builder_.CreateOr(a, b);
      case Op::bit_xor:
        return builder_.CreateXor(a, b);
      case Op::cast_f32:
      case Op::cast_f64:
      case Op::cast_i32:
      case Op::cast_i8:
      case Op::cast_u8:
      case Op::cast_f16:
      case Op::cast_bf16:
      case Op::cast_i64:
        return converted(a, type, *converts_to(op));
      case Op::saturate_i32:
      case Op::saturate_i8:
      case Op::saturate_u8:
        return saturated(a, type, *converts_to(op));
      case Op::less:
      case Op::less_or_equal:
      case Op::greater:
      case Op::greater_or_equal:
      case Op::equal:
      case Op::not_equal:
        return compared(op, a, b, type);
      case Op::select:
        break;  // see selected()
    }
    return a;
  }

  llvm::Value* compared(Op op, llvm::Value* a, llvm::Value* b, DType type) {
    using P = llvm::CmpInst;
    const bool floating = is_floating(type), with_sign = is_signed(type);
    const auto of = [&](P::Predicate real, P::Predicate signed_one, P::Predicate unsigned_one) {
      return floating ? builder_.CreateFCmp(real, a, b)
                      : builder_.CreateICmp(with_sign ? signed_one : unsigned_one, a, b);
    };
    switch (op) {
      case Op::less:
        return of(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
      case Op::less_or_equal:
        return of(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
      case Op::greater:
        return of(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
      case Op::greater_or_equal:
        return of(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
      case Op::equal:
        return of(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
      default:
        return of(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
    }
  }

  llvm::Value* selected(llvm::Value* condition, llvm::Value* then, llvm::Value* otherwise) {
    match(then, otherwise);
    if (lanes_of(condition)) then = splat(then), otherwise = splat(otherwise);
    return builder_.CreateSelect(condition, then, otherwise);
  }

  llvm::Value* fused(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return builder_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
  }

  // ---- stores

  void statement(int s) {
    if (++statements_ > most_statements)
      return refuse(fmt::format("unrolled: more than {} statements", most_statements));
    const Store& store = program_.stores[std::size_t(s)];
    const DType kept_as = buffer(store.target.tensor).dtype;
    const DType type = store.combine == Combine::none ? kept_as : computed_in(kept_as);
    const std::vector<NodeType>& types = types_[std::size_t(s)];
    const std::vector<DType>& as = loaded_as_[std::size_t(s)];
    const std::vector<ValueNode>& nodes = store.value.nodes;
    std::vector<llvm::Value*> values;
    const ValueNode& root = store.value.root();
    const bool fuse = store.combine == Combine::sum && root.op == Op::mul && is_floating(type) &&
                      types.back() == NodeType{type, type};
    // An operand of a node, in the type that it works in.
    const auto operand = [&](int position, DType wanted) -> llvm::Value* {
      if (position < 0) return nullptr;
      return converted(values[std::size_t(position)], as[std::size_t(position)], wanted);
    };
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const ValueNode& node = nodes[n];
      if (fuse && &node == &root) break;
      const DType works = types[n].operands;
      if (node.op == Op::constant) {
        values.push_back(constant(types[n].result, node.number));
      } else if (node.op == Op::position) {
        values.push_back(position(store.value.positions[std::size_t(node.load)]));
      } else if (node.op == Op::load) {
        const Access& access = store.value.loads[std::size_t(node.load)];
        const Affine& form = load_offsets_[std::size_t(s)][std::size_t(node.load)];
        std::vector<llvm::Value*> indices;
        for (const int index : {node.a, node.b, node.c})
          if (index >= 0) indices.push_back(operand(index, works));
        values.push_back(indices.empty() ? load(access, form, as[n]) : gathered(access, form, indices, works, as[n]));
      } else if (node.op == Op::select) {
        values.push_back(selected(values[std::size_t(node.a)], operand(node.b, works), operand(node.c, works)));
      } else {
        values.push_back(applied(node.op, operand(node.a, works), operand(node.b, works), works));
      }
      if (!refused_.empty()) return;
    }
    if (!fuse) values.back() = converted(values.back(), as.back(), type);

    const Place to = place(store.target, target_offsets_[std::size_t(s)]);
    if (!refused_.empty()) return;
    const bool across_lanes = lane_loop_ >= 0 && to.lane_stride == 0;
    llvm::Value* result = nullptr;
    if (store.combine == Combine::none) {
      result = values.back();
      // Lanes that write one element leave the last one's value there.
      if (across_lanes && lanes_of(result)) result = builder_.CreateExtractElement(result, std::uint64_t(lanes_ - 1));
    } else {
      llvm::Value* before = load(store.target, target_offsets_[std::size_t(s)], type);
      if (across_lanes) {
        llvm::Value* value =
            fuse ? applied(Op::mul, values[std::size_t(root.a)], values[std::size_t(root.b)], type) : values.back();
        result = combined(store.combine, before, reduced(store.combine, splat(value), type), type);
      } else if (fuse) {
        result = product_added(values[std::size_t(root.a)], values[std::size_t(root.b)], before);
        if (result == before) return;
      } else {
        result = combined(store.combine, before, values.back(), type);
      }
    }
    result = converted(result, type, kept_as);
    if (lane_loop_ >= 0 && to.lane_stride != 0) result = splat(result);
    save(to, result);
  }

  llvm::Value* combined(Combine combine, llvm::Value* before, llvm::Value* value, DType type) {
    switch (combine) {
      case Combine::none:
        return value;
      case Combine::sum:
        return applied(Op::add, before, value, type);
      case Combine::max:
        return extreme(true, value, before, type);
      case Combine::min:
        return extreme(false, value, before, type);
      case Combine::product:
        return applied(Op::mul, before, value, type);
    }
    return value;
  }

  // All lanes of a vector combined into one number, in the order that is best for the target.
  llvm::Value* reduced(Combine combine, llvm::Value* value, DType type) {
    if (!is_floating(type)) {
      if (combine == Combine::sum) return builder_.CreateAddReduce(value);
      if (combine == Combine::product) return builder_.CreateMulReduce(value);
      return combine == Combine::max ? builder_.CreateIntMaxReduce(value, is_signed(type))
                                     : builder_.CreateIntMinReduce(value, is_signed(type));
    }
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    llvm::FastMathFlags flags = builder_.getFastMathFlags();
    flags.setAllowReassoc();
    builder_.setFastMathFlags(flags);
    if (combine == Combine::sum)
      return builder_.CreateFAddReduce(llvm::ConstantFP::getNegativeZero(type_of(type)), value);
    if (combine == Combine::product) return builder_.CreateFMulReduce(llvm::ConstantFP::get(type_of(type), 1), value);
    const bool keeps_nan = attributes_.extremes == Extremes::selected || attributes_.extremes == Extremes::instructions;
    llvm::Value* const any_nan = keeps_nan ? builder_.CreateOrReduce(builder_.CreateFCmpUNO(value, value)) : nullptr;
    flags.setNoNaNs();
    flags.setNoSignedZeros();
    builder_.setFastMathFlags(flags);
    llvm::Value* const of_numbers =
        combine == Combine::max ? builder_.CreateFPMaxReduce(value) : builder_.CreateFPMinReduce(value);
    if (any_nan == nullptr) return of_numbers;
    return builder_.CreateSelect(any_nan, llvm::ConstantFP::getNaN(type_of(type)), of_numbers);
  }

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const LoopProgram& program_;
  const CodeAttributes& attributes_;
  const std::string& symbol_;
  const Dispatch dispatch_;
  const Homes homes_;
  const std::int64_t threads_;
  llvm::IRBuilder<> builder_;
  Functions functions_;
  std::string refused_;

  std::vector<Affine> target_offsets_;             // by store
  std::vector<std::vector<Affine>> load_offsets_;  // by store and load
  std::vector<std::vector<NodeType>> types_;       // by store and node
  std::vector<std::vector<DType>> loaded_as_;      // by store and node
  std::vector<Variable> variables_;                // by loop
  std::vector<int> serial_loops_;                  // that are not unrolled, outermost first
  std::set<int> named_;                            // buffers whose places are named
  int lane_loop_ = -1;
  std::int64_t lanes_ = 1;
  bool in_prepare_ = false;
  std::int64_t statements_ = 0;
  std::vector<llvm::Value*> pointers_;           // by buffer, of the function at hand
  std::map<int, llvm::GlobalVariable*> tables_;  // of literals
  std::map<RegisterKey, Piece> registers_;
  std::vector<llvm::Function*> intrinsic_code_;  // by intrinsic of the program
  std::map<int, std::int64_t> grains_;  // by register buffer: lanes of its pieces, where parts of them are written
  std::map<std::tuple<llvm::Value*, llvm::Value*, std::int64_t, bool>, llvm::Value*> addresses_;
  std::map<LoadKey, llvm::Value*> loads_;                                 // of the block at hand
  std::map<std::pair<llvm::Value*, std::int64_t>, llvm::Value*> splats_;  // of the block at hand, by lanes
};

}  // namespace

int loop_of_program(const llvm::MDNode* loop_id) {
  const llvm::MDNode* const named =
      loop_id ? llvm::findOptionMDForLoopID(const_cast<llvm::MDNode*>(loop_id), loop_name) : nullptr;
  if (!named) return -1;
  return int(llvm::mdconst::extract<llvm::ConstantInt>(named->getOperand(1))->getZExtValue());
}

std::optional<NamedPlace> named_place(const llvm::MDNode* scopes) {
  if (scopes == nullptr || scopes->getNumOperands() != 1) return std::nullopt;
  const auto* const scope = llvm::dyn_cast<llvm::MDNode>(scopes->getOperand(0));
  const auto* const name =
      scope && scope->getNumOperands() > 0 ? llvm::dyn_cast<llvm::MDString>(scope->getOperand(0)) : nullptr;
  if (name == nullptr) return std::nullopt;
  std::istringstream text(name->getString().str());
  std::string what;
  NamedPlace place;
  if (!(text >> what >> place.buffer >> place.constant) || what != place_name) return std::nullopt;
  std::int64_t coefficient = 0;
  for (int loop = 0; text >> loop >> coefficient;) place.by_loop[loop] = coefficient;
  return place;
}

std::optional<base::Reason> emit(llvm::Module& module, const LoopProgram& program, const CodeAttributes& attributes,
                                 const std::string& symbol, std::int64_t threads) {
  return Emitter(module, program, attributes, symbol, threads).emit();
}

}  // namespace graft::codegen
