// A simulator of a cache hierarchy during a program's `run`, driven by the affine accesses of the loop
// program, one line at a time. Set-associative caches with least-recently-used replacement, write-allocate and
// write-back; address translation by a fully associative TLB and a set-associative second one; which missed lines a
// prefetcher would have fetched. It computes no times: modelled.h has the cost of misses, and results
// depend on the program and the Geometry alone.
//
// Not modelled: instruction fetch, values that code generation keeps in registers in addition to the program's register
// buffers (such lines hit the first cache anyway), the prefetcher's useless lines, coherence between cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "codegen/program/program.h"

namespace graft::tasks {

struct CacheLevel {
  std::int64_t bytes = 0;
  std::int64_t ways = 1;
  bool shared = false;  // by all cores
  auto operator<=>(const CacheLevel&) const = default;
};

// The properties of a machine that decide which lines are missed. Separate from the costs, so that machines that differ
// only in those share results.
struct Geometry {
  std::vector<CacheLevel> levels;      // the first one first; bytes at least ways * line_bytes
  std::int64_t line_bytes = 64;        // of all levels; a power of two
  std::int64_t page_bytes = 4096;      // a power of two, at least line_bytes
  std::int64_t huge_page_bytes = 0;    // of buffers of at least that size; 0: none have larger pages
  std::int64_t tlb_entries = 64;       // of the first TLB for data
  std::int64_t l2_tlb_entries = 0;     // 0: there is none, misses of the first one are walked
  std::int64_t l2_tlb_ways = 1;        // divides l2_tlb_entries
  std::int64_t prefetch_streams = 16;  // followed by the prefetcher; 0: there is no prefetcher
  auto operator<=>(const Geometry&) const = default;
};
std::uint64_t hash(const Geometry& geometry);

// The share of one of `cores` busy cores: its part of the shared levels.
Geometry share_of(Geometry geometry, std::int64_t cores);

struct LevelTraffic {
  double scattered = 0;   // lines missed here that no prefetcher predicted
  double prefetched = 0;  // lines missed here that a prefetcher predicted
  double written = 0;     // dirty lines that left outwards
  double missed() const { return scattered + prefetched; }
  bool operator==(const LevelTraffic&) const = default;
};

struct Misses {
  std::vector<LevelTraffic> levels;  // parallel to Geometry::levels
  double tlb_misses = 0;             // of the first TLB
  double page_walks = 0;             // those of them that the second one missed, too
  bool operator==(const Misses&) const = default;
};

// Traffic of one `run` of many: the caches initially hold the contents left by the previous run. A line missed by
// several levels is in all their counts, in the same class.
struct Traffic : Misses {
  std::vector<Misses> stores;  // parallel to LoopProgram::stores: by store; they add up to the fields above
  double touches = 0;    // lookups in the first cache: one each time that an access moves to another line
  double simulated = 0;  // those of them that were not extrapolated, including the warm-up
  bool operator==(const Traffic&) const = default;
};

// Addresses of the buffers in the simulator: as in graft-worker, each parameter in separate pages, ending where its
// last page does (except for padding to 64 bytes), then the workspace with the temporaries at multiples of 64
// bytes. 0 for buffers that are not in memory.
std::vector<std::int64_t> buffer_addresses(const codegen::LoopProgram& program, const Geometry& geometry);

struct CacheSettings {
  // About how many touches each of the two passes (warm-up, count) simulates; loops beyond it run for a few iterations
  // and are extrapolated. 0: every access, and counts are exact.
  std::int64_t touches = 50000;
  auto operator<=>(const CacheSettings&) const = default;
};

// The first cache is indexed by buffer_addresses; the outer levels by physical ones, pages being scattered by a
// hash. Register buffers and literals cost nothing, `prepare` is not simulated, parallel loops are serial ones. Each
// access of an intrinsic's nest is one of the program. Deterministic, thread-safe. Line numbers wrap at 2^31.
//
// A prefetcher has predicted a line if the access moved by the same one or two lines at least twice before,
// or if the misses of its page did.
Traffic simulate_caches(const codegen::LoopProgram& program, const Geometry& geometry,
                        const CacheSettings& settings = {});

// Results by (program, geometry, settings), for repeated requests for the same program: for several
// platforms, or after changing costs. Thread-safe; about a hundred bytes per result, kept as long as the object.
class TrafficMemo {
 public:
  Traffic traffic(const codegen::LoopProgram& program, const Geometry& geometry, const CacheSettings& settings = {});
  std::int64_t simulations() const;  // the number of those not known before

 private:
  using Key = std::pair<std::uint64_t, std::pair<Geometry, CacheSettings>>;
  mutable std::mutex mutex_;
  std::map<Key, Traffic> known_;
};

}  // namespace graft::tasks
