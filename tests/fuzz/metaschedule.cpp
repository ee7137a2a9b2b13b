// A trace of MetaSchedule in the first line, the node graph of the module that it schedules in the others: what is
// replayed is a program.
#include "codegen/import/tir_trace.h"
#include "datasets/formats/json.h"
#include "datasets/formats/metaschedule_trace.h"
#include "tests/datasets/tir_text.h"
#include "tests/fuzz/program.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  namespace formats = datasets::formats;
  const std::size_t end = std::min(text.find('\n'), text.size());
  const auto trace = accepted([&] {
    formats::JsonReader reader(text.substr(0, end), "trace");
    return formats::read_trace(reader);
  });
  const auto function =
      codegen::tir_function(formats::TirText::base64(std::string(8, ' ') + std::string(text.substr(end))));
  if (!trace || !function) return;
  const auto program = codegen::replayed(*function, function->computation, *trace);
  if (program) hold_promises(*program);
}

}  // namespace graft::fuzz
