#include "tests/support/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/one_line.h"
#include "base/process.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/homes.h"
#include "codegen/machine/link.h"
#include "tasks/temporary_program.h"

namespace graft::tasks {
namespace {

// Addresses of the harness's data (codegen/machine/harness.cpp), and the data there.
std::string moves(const codegen::LoopProgram& program, const Geometry& geometry,
                  const std::map<std::string, codegen::Symbol>& symbols) {
  const std::vector<std::int64_t> addresses = buffer_addresses(program, geometry);
  std::string text;
  const auto move = [&](const std::string& name, std::int64_t place, std::int64_t bytes, std::int64_t to) {
    text += fmt::format(",move={:x}:{:x}:{:x}", symbols.at(name).address + std::uint64_t(place), bytes, to);
  };
  const codegen::Homes homes = codegen::homes(program, 1);
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    using Block = codegen::Home::Block;
    const codegen::Home& home = homes.buffers[b];
    if (home.block == Block::none || addresses[b] == 0) continue;
    const std::int64_t line = codegen::alignment_bytes, bytes = (program.buffers[b].bytes() + line - 1) / line * line;
    if (home.block == Block::parameters) {
      move(fmt::format("data{}", home.place), 0, bytes, addresses[b]);
    } else {
      move(home.block == Block::prepared ? "prepared" : "scratch", home.place, bytes, addresses[b]);
    }
  }
  return text;
}

}  // namespace

base::Result<Counted> count_under(const std::vector<std::string>& qemu, const codegen::LoopProgram& program,
                                  const codegen::Target& target, const Geometry& geometry, const Expected& expected,
                                  std::chrono::milliseconds deadline) {
  codegen::Target alone = target;
  alone.threads = 1;
  const auto object = codegen::compile(program, alone);
  if (!object) return object.reason();
  codegen::RunSettings run;  // twice: the first run and one repetition
  run.repetitions = 1;
  const auto executable = codegen::link_executable({&*object}, alone, expected.computation, expected.reference, run);
  if (!executable) return executable.reason();

  const CacheLevel& first = geometry.levels.at(0);
  const std::string plugin = fmt::format("{},function={}_run.0,out=/dev/stderr,bytes={},ways={},line={}{}",
                                         GRAFT_COUNTERS, object->symbol, first.bytes, first.ways, geometry.line_bytes,
                                         moves(program, geometry, codegen::symbols_of(*executable)));
  const TemporaryProgram file(*executable);
  std::vector<std::string> command = qemu;
  command.insert(command.end(), {"-plugin", plugin, file.path()});
  base::Finished finished;
  try {
    finished = base::run_process(command, deadline, 1 << 16);
  } catch (const base::Failure& failure) {
    return base::Reason{failure.what()};
  }
  if (finished.timed_out) return base::Reason{fmt::format("{}: no end within {} ms", qemu.at(0), deadline.count())};
  if (finished.exit_code != 0) {
    return base::Reason{fmt::format("{} ended with {}: {}", qemu.at(0),
                                    finished.signal != 0 ? fmt::format("signal {}", finished.signal)
                                                         : fmt::format("exit code {}", finished.exit_code),
                                    base::one_line(finished.err))};
  }
  for (const std::string_view line : base::split(finished.err, '\n')) {
    if (!line.starts_with("{\"call\":2,")) continue;
    const base::Document call = base::parse_json(line, "counts");
    return Counted{call.at("instructions").as_number(), call.at("loads").as_number(), call.at("stores").as_number(),
                   call.at("misses").as_number()};
  }
  return base::Reason{fmt::format("{}: the plug-in has not seen the kernel called twice", qemu.at(0))};
}

}  // namespace graft::tasks
