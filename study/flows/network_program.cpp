#include "study/flows/network_program.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "codegen/machine/code.h"
#include "codegen/machine/foreign_code.h"
#include "codegen/machine/library.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/candidate.h"
#include "graph/memory.h"
#include "graph/operators.h"
#include "study/flows/constants.h"
#include "study/flows/user_function.h"
#include "study/inputs/request.h"
#include "study/knowledge/answer.h"

namespace graft::study {
namespace {

constexpr std::size_t alignment = 64;

// Constants, each content once.
class Weights {
 public:
  std::int64_t add(const std::string& content) {
    const auto [known, is_new] = places_.emplace(std::pair(base::hash_bytes(content), content.size()), 0);
    if (!is_new && bytes_.compare(std::size_t(known->second), content.size(), content) == 0) return known->second;
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    known->second = std::int64_t(bytes_.size());
    bytes_ += content;
    return known->second;
  }
  std::string& bytes() { return bytes_; }

 private:
  std::map<std::pair<std::uint64_t, std::size_t>, std::int64_t> places_;
  std::string bytes_;
};

// The buffer that a call passes as a parameter; nothing for constants, which the program has.
std::optional<int> buffer_of(const graph::Plan::Call& call, const codegen::Parameter& parameter) {
  if (parameter.role == codegen::Role::constant) return std::nullopt;
  if (parameter.role == codegen::Role::output) return call.result;
  codegen::Tensor named;
  named.name = parameter.name;
  named.role = parameter.role;
  return call.operands.at(std::size_t(graph::operand_of(named)));
}

// What several programs have in common.
struct Common {
  struct Kernel {
    codegen::Code code;
    std::optional<PreparedAhead> ahead;  // nothing for foreign ones
  };
  std::string name;  // of all: a C identifier
  Weights weights;
  std::map<std::pair<std::uint64_t, std::string>, Kernel> kernels;  // by workload's key, and the answer
};

// What code is made of besides the workload.
std::string text_of(const NetworkKernel& kernel) {
  if (kernel.foreign) return to_document(*kernel.foreign).to_json();
  return to_document(kernel.answer->candidate).to_json() + kernel.answer->pipeline;
}

class Builder {
 public:
  Builder(const TunedNetwork& tuned, graph::Plan plan, const std::string& name, Common& common, base::Monitor& monitor)
      : tuned_(tuned), common_(common), monitor_(monitor) {
    made_.plan = std::move(plan);
    made_.sequence.name = name;
    made_.sequence.platform = tuned.platform.name;
    made_.sequence.graft = std::string(graft_version());
    made_.sequence.target = tuned.platform.target;
  }

  NetworkProgram made() {
    for (const graph::Plan::Tensor& input : plan().inputs) made_.sequence.inputs.push_back(tensor_of(input));
    for (const graph::Plan::Tensor& output : plan().outputs) made_.sequence.outputs.push_back(tensor_of(output));
    const std::vector<int> overwritten = graph::overwritten_inputs(plan());
    for (std::size_t o = 0; o < overwritten.size(); ++o) made_.sequence.outputs[o].overwrites = overwritten[o];
    compile_kernels();
    place_buffers();
    for (std::size_t c = 0; c < plan().calls.size(); ++c) {
      base::check_stop(monitor_);
      monitor_.progress("preparing constants", std::int64_t(c), std::int64_t(plan().calls.size()));
      add_call(c);
    }
    return std::move(made_);
  }

 private:
  const graph::Plan& plan() const { return made_.plan; }

  static codegen::Sequence::Tensor tensor_of(const graph::Plan::Tensor& own) {
    return {own.name, own.type, own.shape, own.declared};
  }

  void compile_kernels() {
    for (std::size_t k = 0; k < plan().kernels.size(); ++k) {
      base::check_stop(monitor_);
      monitor_.progress("compiling kernels", std::int64_t(k), std::int64_t(plan().kernels.size()));
      const NetworkKernel& kernel = tuned_.kernels.at(k);
      if (!kernel.has_program())
        throw base::UserError(tuned_.folder.string(),
                              fmt::format("{} has no program yet{}", kernel.label,
                                          kernel.failure.empty() ? "; run graft tune again" : ": " + kernel.failure));
      const auto [known, is_new] = common_.kernels.try_emplace({kernel.workload.key(), text_of(kernel)});
      if (is_new)
        known->second = compiled(kernel, fmt::format("{}_kernel{}", common_.name, common_.kernels.size() - 1));
      made_.sequence.kernels.push_back(known->second.code);
      ahead_.push_back(known->second.ahead ? &*known->second.ahead : nullptr);
    }
  }

  Common::Kernel compiled(const NetworkKernel& kernel, const std::string& symbol) const {
    const codegen::Target& target = tuned_.platform.target;
    const auto failed = [&](const base::Reason& reason) {
      return base::Failure(fmt::format("{}: {}: {}", tuned_.folder.string(), kernel.label, reason.text));
    };
    if (kernel.foreign) {
      auto code = codegen::compile(*kernel.foreign, target, symbol);
      if (!code) throw failed(code.reason());
      return {std::move(code).value(), std::nullopt};
    }
    auto program = codegen::program(kernel.answer->candidate, target);
    if (!program) throw failed(program.reason());
    std::optional<PreparedAhead> ahead(*program);
    auto code = tuned_.platform.device->code(ahead->run(), target, kernel.answer->pipeline, symbol);
    if (!code) throw failed(code.reason());
    return {std::move(code).value(), std::move(ahead)};
  }

  void place_buffers() {
    std::vector<std::int64_t> scratch;
    for (const codegen::Code& kernel : made_.sequence.kernels) scratch.push_back(kernel.signature.scratch_bytes);
    use_ = graph::arena_use(plan(), scratch);
    places_ = graph::placed(use_.lifetimes);
    made_.sequence.arena_bytes = places_.bytes;
    made_.peak_bytes = graph::peak_bytes(use_.lifetimes);
  }

  using Place = codegen::Sequence::Place;
  Place in_arena(int lifetime) const {
    return {codegen::Sequence::Where::arena, 0, places_.offsets[std::size_t(lifetime)]};
  }
  Place in_weights(const std::string& content) {
    return {codegen::Sequence::Where::weights, 0, common_.weights.add(content)};
  }
  Place place_of(int buffer) {
    const graph::Plan::Buffer& own = plan().buffers[std::size_t(buffer)];
    const graph::Plan::Buffer& whole = plan().buffers[graph::whole_of(plan(), buffer)];
    using Where = graph::Plan::Buffer::Where;
    Place place;
    if (own.known) return in_weights(own.known->bytes);
    if (whole.where == Where::arena)
      place = in_arena(use_.lifetime_of_buffer[graph::whole_of(plan(), buffer)]);
    else
      place = {whole.where == Where::input ? codegen::Sequence::Where::input : codegen::Sequence::Where::output,
               whole.number, 0};
    place.offset += own.offset;
    return place;
  }

  // Where a kernel's constants are, as it wants them; nothing for one that it does not read.
  std::vector<std::optional<Place>> prepared(int kernel, const codegen::Computation& computation,
                                             const std::vector<int>& buffers) {
    std::vector<codegen::Elements> elements(computation.tensors.size());
    std::size_t next = 0;
    for (std::size_t t = 0; t < elements.size(); ++t)
      if (computation.tensors[t].role == codegen::Role::constant)
        elements[t] = plan().buffers[std::size_t(buffers[next++])].known->elements();
    std::vector<std::optional<Place>> places;
    // What is prepared may be made of literals alone.
    for (const std::string& content : ahead_[std::size_t(kernel)]->contents(computation, elements, monitor_))
      places.push_back(content.empty() ? std::nullopt : std::optional(in_weights(content)));
    return places;
  }

  void add_call(std::size_t number) {
    const graph::Plan::Call& call = plan().calls[number];
    const codegen::Code& kernel = made_.sequence.kernels[std::size_t(call.kernel)];
    const codegen::Computation& computation = plan().kernels[std::size_t(call.kernel)].workload.computation();
    std::vector<int> buffers;  // of constants
    for (const codegen::Tensor& tensor : computation.tensors)
      if (tensor.role == codegen::Role::constant)
        buffers.push_back(call.operands.at(std::size_t(graph::operand_of(tensor))));
    const auto [known, is_new] = prepared_.try_emplace({call.kernel, buffers});
    if (is_new && ahead_[std::size_t(call.kernel)]) known->second = prepared(call.kernel, computation, buffers);
    codegen::Sequence::Call made;
    made.kernel = call.kernel;
    made.label = call.label;
    std::size_t constant = 0;
    for (const codegen::Parameter& parameter : kernel.signature.parameters) {
      if (const auto buffer = buffer_of(call, parameter)) {
        made.buffers.push_back(place_of(*buffer));
        continue;
      }
      made.buffers.push_back(known->second.at(constant++));
    }
    if (const int lifetime = use_.scratch_of_call[number]; lifetime >= 0) made.scratch = in_arena(lifetime);
    made_.sequence.calls.push_back(std::move(made));
  }

  const TunedNetwork& tuned_;
  Common& common_;
  base::Monitor& monitor_;
  NetworkProgram made_;
  std::vector<PreparedAhead*> ahead_;  // by kernel; null for foreign ones
  graph::ArenaUse use_;
  graph::Places places_;
  std::map<std::pair<int, std::vector<int>>, std::vector<std::optional<Place>>> prepared_;  // by kernel and buffers
};

}  // namespace

NetworkProgram program_of(const TunedNetwork& tuned, graph::Plan plan, const std::string& name,
                          base::Monitor& monitor) {
  Common common;
  common.name = codegen::identifier(name);
  NetworkProgram made = Builder(tuned, std::move(plan), common.name, common, monitor).made();
  made.sequence.weights = std::move(common.weights.bytes());
  return made;
}

codegen::ShapedSequences programs_of(const std::vector<TunedNetwork>& networks, const std::string& name,
                                     const std::function<void(const NetworkProgram&, std::size_t)>& made,
                                     base::Monitor& monitor) {
  Common common;
  codegen::ShapedSequences all;
  all.name = common.name = codegen::identifier(name);
  for (std::size_t n = 0; n < networks.size(); ++n) {
    NetworkProgram program =
        Builder(networks[n], plan_of(networks[n]), fmt::format("{}_{}", all.name, n), common, monitor).made();
    program.sequence.weights.swap(common.weights.bytes());  // there is no memory for two
    made(program, n);
    program.sequence.weights.swap(common.weights.bytes());
    all.shapes.push_back({{}, std::move(program.sequence)});
  }
  all.weights = std::move(common.weights.bytes());
  return all;
}

Observed observed(const NetworkProgram& program) {
  const graph::Plan& plan = program.plan;
  Observed out{program.sequence, std::vector<int>(program.sequence.outputs.size(), -1)};
  std::vector<int> output(plan.buffers.size(), -1);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const graph::Plan::Buffer& buffer = plan.buffers[b];
    if (buffer.part_of >= 0) continue;
    if (buffer.where == graph::Plan::Buffer::Where::output) out.buffers[std::size_t(buffer.number)] = int(b);
    if (buffer.where != graph::Plan::Buffer::Where::arena) continue;
    output[b] = int(out.buffers.size());
    out.buffers.push_back(int(b));
    out.sequence.outputs.push_back({fmt::format("buffer {}", b), buffer.type, buffer.shape});
  }
  for (std::size_t c = 0; c < plan.calls.size(); ++c) {
    codegen::Sequence::Call& call = out.sequence.calls[c];
    const codegen::Signature& signature = out.sequence.kernels[std::size_t(call.kernel)].signature;
    for (std::size_t p = 0; p < signature.parameters.size(); ++p) {
      const auto buffer = buffer_of(plan.calls[c], signature.parameters[p]);
      if (!buffer || output[graph::whole_of(plan, *buffer)] < 0) continue;
      call.buffers[p] =
          codegen::Sequence::Place{codegen::Sequence::Where::output, output[graph::whole_of(plan, *buffer)],
                                   plan.buffers[std::size_t(*buffer)].offset};
    }
  }
  return out;
}

}  // namespace graft::study
