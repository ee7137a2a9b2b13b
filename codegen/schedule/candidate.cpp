#include "codegen/schedule/candidate.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "base/hash.h"
#include "codegen/schedule/limits.h"
#include "codegen/schedule/lower.h"

namespace graft::codegen {
namespace {

// A search lowers one workload a hundred thousand times: its parsed computation is kept (a pure function of the text).
std::shared_ptr<const Computation> lowered_form(const Workload& workload) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Computation>> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Computation>& entry = known[workload.text];
  if (!entry) entry = std::make_shared<const Computation>(with_padding_stages(computation(workload)));
  return entry;
}

}  // namespace

base::Result<Schedule> schedule(const Candidate& candidate) {
  return fill(*candidate.sketch, candidate.arguments);
}

base::Result<LoopProgram> program(const Candidate& candidate, const Target& target) {
  if (candidate.sketch->program != nullptr) return *candidate.sketch->program;
  const base::Result<Schedule> filled = schedule(candidate);
  if (!filled) return filled.reason();
  const std::shared_ptr<const Computation> computation = lowered_form(candidate.workload);
  std::int64_t widest = 1;
  for (const Tensor& tensor : computation->tensors) widest = std::max(widest, bytes_of(tensor.dtype));
  LimitCounter counter(target);
  StoreWatch watch;
  // Unknown registers impose no limit: programs measured elsewhere did run.
  if (target.vector_registers > 0)
    watch = [&](const LoopProgram& program, const Store& store, std::span<const int> loops) {
      return counter.add(program, store, loops);
    };
  return lower(*computation, *filled, target.lanes(widest), target.threads, watch, candidate.sketch->intrinsics);
}

std::uint64_t hash(const Candidate& candidate) {
  std::uint64_t value = base::hash_combine(hash(candidate.workload), hash(*candidate.sketch));
  for (const std::int64_t argument : candidate.arguments) value = base::hash_combine(value, std::uint64_t(argument));
  return value;
}

base::Document to_document(const Candidate& candidate) {
  base::Document arguments = base::Document::list();
  for (const std::int64_t argument : candidate.arguments) arguments.push(argument);
  return base::Document::map()
      .set("workload", candidate.workload.text)
      .set("sketch", to_text(*candidate.sketch))
      .set("arguments", std::move(arguments));
}

Candidate candidate_from(const base::Document& document) {
  Candidate candidate{workload_from(document.at("workload")), sketch_from(document.at("sketch")), {}};
  for (const base::Document& argument : document.at("arguments").as_list())
    candidate.arguments.push_back(argument.as_integer());
  return candidate;
}

Workload workload_from(const base::Document& text) {
  Workload workload;
  try {
    workload = parse_workload(text.as_string());
  } catch (const base::UserError& error) {
    throw base::UserError(text.place(), error.what());
  }
  if (!names_computation(workload)) throw base::UserError(text.place(), "expected an operator or an index expression");
  return workload;
}

std::shared_ptr<const Sketch> sketch_from(const base::Document& text) {
  auto sketch = std::make_shared<const Sketch>(parse_sketch(text.as_string(), text.place()));
  if (sketch->program != nullptr || !sketch->columns.empty())
    throw base::UserError(text.place(), "expected a list of schedule steps");
  return sketch;
}

}  // namespace graft::codegen
