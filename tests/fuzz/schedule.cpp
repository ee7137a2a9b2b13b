// Steps and sketches, applied: the first line of the text is a workload, the second the arguments, the rest a sketch.
#include <charconv>

#include "base/text.h"
#include "codegen/expression/workload.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/space/sketch.h"
#include "tests/fuzz/lowered.h"

namespace graft::fuzz {
namespace {

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

void examine(std::string_view text) {
  const std::string_view of = take_line(text), numbers = take_line(text);
  const auto sketch = accepted([&] { return codegen::parse_sketch(text, "text"); });
  if (!sketch) return;
  const std::string printed = to_text(*sketch);
  const codegen::Sketch again = read_back(printed, [&] { return codegen::parse_sketch(printed, "again"); });
  promise(again == *sketch, "the text of a sketch is that sketch", printed, to_text(again));

  std::vector<std::int64_t> arguments;
  for (const std::string_view word : base::words(numbers)) {
    std::int64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    arguments.push_back(number);
  }
  arguments.resize(sketch->arguments.size());
  const base::Result<codegen::Schedule> schedule = fill(*sketch, arguments);
  if (!schedule) return;
  for (const codegen::Step& step : *schedule)
    promise(codegen::parse_step(to_text(step), "step") == step, "the text of a step is that step", to_text(step));

  const auto workload = accepted([&] { return codegen::parse_workload(of); });
  if (!workload) return;
  const codegen::Computation computation = workload->padded();
  for (const std::int64_t lanes : {1, 8}) {
    const base::Result<codegen::LoopProgram> program = lower(computation, *schedule, lanes);
    if (program)
      promise(well_formed(*program), "a lowered program is well formed", to_text(*schedule), to_text(*program));
  }
}

}  // namespace graft::fuzz
