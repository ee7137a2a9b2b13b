// Bytes of ONNX files, read and folded.
#include "graph/onnx.h"

#include "graph/fold.h"
#include "graph/operators.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  const auto read = accepted([&] { return graph::parse_onnx(text, "model", "/proc/self/fdinfo"); });
  if (!read) return;
  const graph::FoldLimits limits{.most_bytes = 1 << 24, .most_work = 0x1p22};
  const auto folded = accepted([&] { return graph::folded(*read, "model", limits); });
  if (!folded) return;
  for (const graph::Value& value : folded->values)
    promise(value.type.has_value() && value.shape.has_value(), "a folded graph knows all types and shapes");
  for (const graph::Node& node : folded->nodes)
    promise(graph::operands_of(*folded, node).has_value(), "and so all operands");
}

}  // namespace graft::fuzz
