#include "codegen/schedule/candidate_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codegen/program/groups.h"
#include "codegen/schedule/limits.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/table_schema.h"

namespace graft::codegen {

base::Result<Schedule> fill(const Sketch& sketch, std::span<const std::int64_t> arguments) {
  if (!sketch.columns.empty())
    return base::Reason{fmt::format("sketch {}: a row of a table has no steps", sketch.name)};
  if (sketch.program != nullptr) return base::Reason{fmt::format("sketch {}: a program without steps", sketch.name)};
  if (arguments.size() != sketch.arguments.size()) {
    return base::Reason{
        fmt::format("sketch {}: takes {} arguments, got {}", sketch.name, sketch.arguments.size(), arguments.size())};
  }
  Schedule schedule;
  schedule.reserve(sketch.lines.size());
  std::vector<std::string> numbers;  // texts of plain numbers, kept alive for the views
  std::vector<std::string_view> words;
  for (const Sketch::Line& line : sketch.lines) {
    words.clear();
    numbers.clear();
    numbers.reserve(line.size());
    for (const Sketch::Token& token : line) {
      if (token.argument < 0) {
        words.push_back(token.literal);
        continue;
      }
      const std::int64_t value = arguments[std::size_t(token.argument)];
      if (token.alternatives.empty()) {
        numbers.push_back(std::to_string(value));
        words.push_back(numbers.back());
        continue;
      }
      if (value < 0 || value >= std::int64_t(token.alternatives.size())) {
        return base::Reason{fmt::format("sketch {}: {} has no alternative {}", sketch.name,
                                        sketch.arguments[std::size_t(token.argument)].name, value)};
      }
      for (const std::string_view word : base::words(token.alternatives[std::size_t(value)])) words.push_back(word);
    }
    if (words.empty()) continue;
    try {
      schedule.push_back(step_from_words(words, sketch.name));
    } catch (const base::UserError& error) {
      return base::Reason{error.what()};
    }
  }
  return schedule;
}

base::Result<Schedule> schedule(const Candidate& candidate) {
  return fill(*candidate.sketch, candidate.arguments);
}

base::Result<LoopProgram> program(const Candidate& candidate, const Target& target) {
  if (candidate.sketch->program != nullptr) return *candidate.sketch->program;
  const base::Result<Schedule> filled = schedule(candidate);
  if (!filled) return filled.reason();
  const Computation& computation = candidate.workload.padded();
  std::int64_t widest = 1;
  for (const Tensor& tensor : computation.tensors) widest = std::max(widest, bytes_of(tensor.dtype));
  LimitCounter counter(target);
  StoreWatch watch;
  // Unknown registers impose no limit: programs measured elsewhere did run.
  if (target.vector_registers > 0)
    watch = [&](const LoopProgram& program, const Store& store, std::span<const int> loops) {
      return counter.add(program, store, loops);
    };
  const bool is_gpu = target.group_items > 0;
  constexpr std::int64_t items_a_core = 16;  // from which on iterations of a nest without steps are work-items
  const std::int64_t threads = is_gpu ? target.cores * items_a_core : target.threads;
  const std::int64_t lanes = is_gpu ? 1 : target.lanes(widest);
  base::Result<LoopProgram> lowered = lower(computation, *filled, lanes, threads, watch, candidate.sketch->intrinsics);
  if (!lowered || !is_gpu) return lowered;
  LoopProgram program = with_groups(std::move(lowered).value());
  if (const auto refused = launches(program, program.run, target); !refused) return refused.reason();
  return program;
}

base::Result<CandidateProgram> identified_program(const Candidate& candidate, const Target& target) {
  if (is_row_of_table(candidate)) return CandidateProgram{hash_by_name(candidate), nullptr};
  base::Result<LoopProgram> lowered = program(candidate, target);
  if (!lowered) return lowered.reason();
  const std::uint64_t identity = hash(*lowered);
  return CandidateProgram{identity, std::make_shared<const LoopProgram>(std::move(lowered).value())};
}

}  // namespace graft::codegen
