#include "codegen/program/constants.h"

#include "codegen/program/program.h"

namespace graft::codegen {
namespace {

bool body_touches(const LoopProgram& program, const Body& body, int buffer, bool writes_only) {
  for (int at = 0; at < int(body.size()); at = body[std::size_t(at)].end) {
    if (touches(program, body, at, buffer, writes_only)) return true;
  }
  return false;
}

}  // namespace

bool runs_with(const LoopProgram& program, int buffer) {
  return body_touches(program, program.run, buffer, false);
}

bool is_prepared(const LoopProgram& program, int buffer) {
  const Buffer& is = program.buffers[std::size_t(buffer)];
  return is.role == Role::temporary && is.scope == Scope::memory && !is.is_literal() &&
         body_touches(program, program.prepare, buffer, true) && runs_with(program, buffer);
}

WithoutPrepare without_prepare(const LoopProgram& program) {
  WithoutPrepare halves{program, program, {}};
  halves.prepare.run = std::move(halves.prepare.prepare);
  halves.prepare.prepare.clear();
  halves.run.prepare.clear();
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::temporary && buffer.role != Role::constant)
      halves.prepare.buffers[b].role = Role::temporary;  // no part of it
    if (!is_prepared(program, int(b))) continue;
    halves.prepared.push_back(int(b));
    halves.prepare.buffers[b].role = Role::output;
    halves.run.buffers[b].role = Role::constant;
  }
  return halves;
}

}  // namespace graft::codegen
