// All that code generation may know about a machine. It comes from a platform's YAML, never from the machine that graft
// runs on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"

namespace graft::codegen {

struct Target {
  std::string triple;                 // LLVM triple: "x86_64-unknown-linux-gnu"
  std::string cpu;                    // LLVM cpu: "x86-64-v3", "sifive-p450"
  std::string features;               // LLVM feature string: "+avx2,+fma", may be empty
  std::int64_t vector_bits = 0;       // 0: no vector unit, code is scalar
  std::int64_t vector_registers = 0;  // floating-point / vector registers that hold accumulators
  std::int64_t cores = 1;
  std::int64_t threads = 1;  // cores that one kernel may use: code for 1 never calls its parallel_for
  bool ignores_nan = false;  // max and min of NaN and a number may be either
  std::int64_t group_items = 0, group_bytes = 0;  // of a GPU: largest work-group, memory that it shares; 0: no GPU
  std::optional<std::int64_t> l1_bytes, l2_bytes, l3_bytes, line_bytes;  // absent: unknown
  bool operator==(const Target&) const = default;

  // Lanes of a vector of `bytes`-wide elements; 1 without a vector unit.
  std::int64_t lanes(std::int64_t bytes) const { return vector_bits >= 8 * bytes ? vector_bits / (8 * bytes) : 1; }
};

// The map form: triple, cpu, features, vector_bits, vector_registers, cores, threads (left out if it is 1),
// nan (left out unless it is "ignore"), group_items and group_bytes (left out of processors), l1_bytes, ... Throws
// UserError with the place for unknown or missing keys and values out of range.
Target target_from(const base::Document& document);
base::Document to_document(const Target& target);
std::uint64_t hash(const Target& target);

}  // namespace graft::codegen
