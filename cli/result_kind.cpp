#include "cli/result_kind.h"

namespace graft::cli {

std::string kind_of(const base::Document& result) {
  const auto has = [&](const char* key) { return result.find(key) != nullptr; };
  if (const base::Document* const kind = result.find("kind"); kind != nullptr && kind->is_string())
    return kind->as_string();
  if (has("curve") && has("best")) return "tune";
  if (has("rows") && has("of_peak")) return "bench kernels";
  if (has("rows")) return "evaluate";
  if (has("families")) return "compare platforms";
  if (has("methods")) return "compare searches";
  return "";
}

}  // namespace graft::cli
