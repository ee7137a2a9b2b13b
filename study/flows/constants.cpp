#include "study/flows/constants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "codegen/machine/compile.h"
#include "codegen/program/constants.h"
#include "tasks/remote.h"

namespace graft::study {
namespace {

constexpr std::chrono::minutes most_time{10};  // of preparing; it takes milliseconds

// The tensor that a program's parameter is: its first buffers are the computation's tensors that are not temporaries.
std::size_t tensor_of(const codegen::Computation& computation, std::size_t buffer) {
  std::size_t tensor = 0;
  for (;; ++tensor) {
    if (computation.tensors[tensor].role != codegen::Role::temporary && buffer-- == 0) return tensor;
  }
}

std::string stored_bytes(const codegen::Buffer& buffer, const codegen::Elements& elements) {
  return codegen::packed(buffer.layout, buffer.shape, elements).bytes(buffer.dtype);
}

}  // namespace

bool has_constants(const codegen::Computation& computation) {
  return std::any_of(computation.tensors.begin(), computation.tensors.end(),
                     [](const codegen::Tensor& tensor) { return tensor.role == codegen::Role::constant; });
}

std::vector<codegen::Elements> operands_with(const std::map<std::string, base::NumpyArray>& arrays,
                                             const std::string& function, const tasks::Expected& expected,
                                             std::set<std::string>& used) {
  std::vector<codegen::Elements> operands = expected.reference.tensors;
  for (std::size_t t = 0; t < operands.size(); ++t) {
    const codegen::Tensor& tensor = expected.computation.tensors[t];
    if (tensor.role != codegen::Role::constant) continue;
    const std::string name = function + "/" + tensor.name;
    const auto found = arrays.find(name);
    if (found == arrays.end())
      throw base::UserError("constants",
                            fmt::format("no array '{}', of shape [{}]", name, fmt::join(tensor.shape, ", ")));
    const base::NumpyArray& array = found->second;
    if (array.shape != tensor.shape)
      throw base::UserError("constants", fmt::format("array '{}' has shape [{}], expected [{}]", name,
                                                     fmt::join(array.shape, ", "), fmt::join(tensor.shape, ", ")));
    // As the kernel's type holds them: floats are rounded, integers must be right.
    std::vector<double> held = codegen::numbers_from(codegen::as_bytes(array.values, tensor.dtype), tensor.dtype);
    for (std::size_t e = 0; e < held.size(); ++e) {
      const bool holds = codegen::is_floating(tensor.dtype) ? std::isfinite(held[e]) : held[e] == array.values[e];
      if (!holds)
        throw base::UserError("constants", fmt::format("array '{}': element {} is {}, which {} does not hold", name, e,
                                                       array.values[e], codegen::name_of(tensor.dtype)));
    }
    operands[t] = std::move(held);
    used.insert(name);
  }
  return operands;
}

PreparedAhead::PreparedAhead(const codegen::LoopProgram& program)
    : program_(program), halves_(codegen::without_prepare(program)) {}

// What the half that prepares writes: one text for each buffer.
std::vector<std::string> PreparedAhead::prepared(const codegen::Computation& computation,
                                                 const std::vector<codegen::Elements>& elements,
                                                 base::Monitor& monitor) {
  std::vector<std::string> texts;
  if (halves_.prepared.empty()) return texts;
  tasks::Expected alone;  // the constants, and outputs of which nothing is known
  for (std::size_t b = 0; b < halves_.prepare.buffers.size(); ++b) {
    const codegen::Buffer& buffer = halves_.prepare.buffers[b];
    if (buffer.role == codegen::Role::temporary) continue;
    alone.computation.tensors.push_back({buffer.name, buffer.dtype, buffer.shape, buffer.role});
    alone.reference.tensors.push_back(buffer.role == codegen::Role::constant ? elements[tensor_of(computation, b)]
                                                                             : codegen::Elements());
    alone.reference.magnitude.emplace_back();
    alone.reference.reduction_length.push_back(0);
  }
  const codegen::Target host = codegen::host_target();
  if (!preparing_) {
    auto object = codegen::compile(codegen::without_foreign_intrinsics(halves_.prepare, host), host);
    if (!object) throw base::Failure("preparing constants: " + object.reason().text);
    preparing_ = std::move(object).value();
  }
  std::string outputs;
  const datasets::Measurement run =
      tasks::run_object(tasks::Remote{}, *preparing_, host, alone, 0, most_time, &monitor, &outputs);
  if (run.status != datasets::Status::ok) throw base::Failure("preparing constants: " + run.reason);
  std::size_t at = 0;
  for (const int b : halves_.prepared) {
    const std::size_t bytes = std::size_t(halves_.prepare.buffers[std::size_t(b)].bytes());
    texts.push_back(outputs.substr(at, bytes));
    at += bytes;
  }
  return texts;
}

std::vector<std::string> PreparedAhead::contents(const codegen::Computation& computation,
                                                 const std::vector<codegen::Elements>& elements,
                                                 base::Monitor& monitor) {
  std::vector<std::string> made, ready = prepared(computation, elements, monitor);
  std::size_t next = 0;
  for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
    const codegen::Buffer& buffer = program_.buffers[b];
    if (halves_.run.buffers[b].role != codegen::Role::constant) continue;
    if (buffer.role != codegen::Role::constant)
      made.push_back(std::move(ready[next++]));
    else
      made.push_back(codegen::runs_with(program_, int(b)) ? stored_bytes(buffer, elements[tensor_of(computation, b)])
                                                          : "");
  }
  return made;
}

WithConstants with_constants(const codegen::LoopProgram& program, const tasks::Expected& expected,
                             base::Monitor& monitor) {
  PreparedAhead ahead(program);
  WithConstants made{ahead.run(), ahead.contents(expected.computation, expected.reference.tensors, monitor), expected};
  std::size_t next = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (ahead.run().buffers[b].role != codegen::Role::constant) continue;
    const std::string& content = made.constants[next++];
    const codegen::Buffer& buffer = program.buffers[b];
    if (buffer.role == codegen::Role::constant) continue;
    made.expected.computation.tensors.push_back({buffer.name, buffer.dtype, buffer.shape, codegen::Role::constant});
    made.expected.reference.tensors.push_back(codegen::numbers_from(content, buffer.dtype));
    made.expected.reference.magnitude.emplace_back();
    made.expected.reference.reduction_length.push_back(0);
  }
  return made;
}

}  // namespace graft::study
