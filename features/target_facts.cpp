#include "features/target_facts.h"

#include <optional>
#include <utility>
#include <vector>

#include "features/declared.h"

namespace graft::features {
namespace {

constexpr int version = 1;  // raised when values change though the list below does not

#define GRAFT_FACTS(X)                                              \
  X(vector_bits, "log2", "width of a vector register; 0: none")     \
  X(vector_registers, "log2", "vector or floating-point registers") \
  X(cores, "log2", "cores of the machine")                          \
  X(threads, "log2", "cores that one kernel may use")               \
  X(l1_bytes, "log2", "first-level data cache; 0: unknown")         \
  X(l2_bytes, "log2", "second-level cache; 0: unknown")             \
  X(l3_bytes, "log2", "third-level cache; 0: none or unknown")      \
  X(line_bytes, "log2", "cache line; 0: unknown")

struct OfTarget {
  enum { GRAFT_FACTS(GRAFT_COLUMN) count };
};
constexpr Declared facts[] = {GRAFT_FACTS(GRAFT_DECLARED)};

void write_facts(const codegen::Target& target, std::span<float> out) {
  const auto known = [](const std::optional<std::int64_t>& bytes) { return log_count(double(bytes.value_or(0))); };
  out[OfTarget::vector_bits] = log_count(double(target.vector_bits));
  out[OfTarget::vector_registers] = log_count(double(target.vector_registers));
  out[OfTarget::cores] = log_count(double(target.cores));
  out[OfTarget::threads] = log_count(double(target.threads));
  out[OfTarget::l1_bytes] = known(target.l1_bytes);
  out[OfTarget::l2_bytes] = known(target.l2_bytes);
  out[OfTarget::l3_bytes] = known(target.l3_bytes);
  out[OfTarget::line_bytes] = known(target.line_bytes);
}

}  // namespace

Encoding target_facts() {
  std::vector<Feature> features;
  declare(features, "target.", facts);
  Encoding out = encoding_of("facts", "the target's data sheet", Shape::row, std::move(features), version,
                             [](const Subject& subject) {
                               base::Matrix row(1, OfTarget::count);
                               if (subject.target != nullptr) write_facts(*subject.target, row.row(0));
                               return one_row_each(std::move(row));
                             });
  out.needs_program = false;
  return out;
}

}  // namespace graft::features
