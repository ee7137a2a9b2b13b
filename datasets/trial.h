// One measured candidate. All that later stages know about it, in one value with one JSON form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "codegen/space/candidate.h"

namespace graft::datasets {

// By name everywhere, never by number.
#define GRAFT_STATUSES(X)                                                                                 \
  X(ok)                                                                                                   \
  X(does_not_lower) /* the schedule gave a reason, or is beyond limits */                                 \
  X(does_not_compile)                                                                                     \
  X(wrong_result)                                                                                         \
  X(crashed)                                                                                              \
  X(timed_out)                                                                                            \
  X(out_of_memory)                                                                                        \
  X(slower_than_limit) /* stopped early: seconds hold the lower bound; never best, left out of metrics */ \
  X(unsupported)       /* this platform cannot run it */                                                  \
  X(no_time)           /* it ended well, but said no time that is understood */                           \
  X(not_allowed)       /* it ended well, but a measure of it is beyond its bound */

enum class Status {
#define X(name) name,
  GRAFT_STATUSES(X)
#undef X
};
std::string_view name_of(Status status);
std::optional<Status> status_of(std::string_view name);

inline constexpr const char* median = "median";

struct Measurement {
  Status status = Status::ok;
  std::string reason;           // empty when ok
  std::vector<double> seconds;  // every repetition, in order
  std::string clock;            // "thread_cpu", "wall", "modelled"
  double reference_ratio = 1;   // speed of the reference kernel now / at the start of the run (drift); 1 if not taken
  std::string check;            // the check that the result had: "host", "qemu", "none"
  std::string estimator = {};   // how its repetitions give one time: "" the minimum, "median"
  // Other measures of the same runs, by name, in base units: energy in J.
  std::vector<std::pair<std::string, double>> also = {};
};

// The estimator of a measurement: minimum of its repetitions, or their median, of an even number the upper one. NaN
// unless ok.
double seconds_of(const Measurement& measurement);

// The contradiction in a measurement, in words; empty if there is none. Journals and datasets hold and accept no other
// measurements: ok has at least one time and no reason, slower_than_limit has its lower bound, times and the ratio are
// finite and positive.
std::string contradiction(const Measurement& measurement);

// With the minimum as its estimator, and the same time: without repetitions below it.
Measurement with_minimum(Measurement measurement);

struct Trial {
  std::int64_t index = 0;  // position in its run
  codegen::Candidate candidate;
  std::uint64_t program_hash = 0;  // 0 when it did not lower
  Measurement measurement;
};

// {"status":"ok","seconds":[...],"clock":"thread_cpu","check":"host"}; empty fields and a ratio of 1 are left out.
// Reading is strict: UserError with the place for unknown keys and statuses, and for contradictions.
base::Document to_document(const Measurement& measurement);
Measurement measurement_from(const base::Document& document);

}  // namespace graft::datasets
