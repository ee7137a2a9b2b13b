#include "codegen/machine/homes.h"

#include <algorithm>

#include "codegen/machine/dispatch.h"
#include "codegen/program/constants.h"

namespace graft::codegen {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

}  // namespace

Homes homes(const LoopProgram& program, std::int64_t threads) {
  Homes all;
  const std::vector<std::int64_t> copies = dispatch(program, threads).copies;
  std::int64_t parameters = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    Home& home = all.buffers.emplace_back();
    if (buffer.role != Role::temporary) {
      home = {Home::Block::parameters, parameters++};
    } else if (buffer.scope == Scope::memory && !buffer.is_literal()) {
      const bool is_kept = is_prepared(program, int(b));
      std::int64_t& bytes = is_kept                      ? all.prepared_bytes
                            : runs_with(program, int(b)) ? all.scratch_bytes
                                                         : all.prepare_scratch_bytes;
      home = {is_kept ? Home::Block::prepared : Home::Block::scratch, bytes,
              copies[b] > 0 ? aligned(buffer.bytes()) : 0};
      bytes += aligned(buffer.bytes()) * std::max<std::int64_t>(1, copies[b]);
    }
  }
  return all;
}

}  // namespace graft::codegen
