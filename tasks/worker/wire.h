// The protocol of graft and graft-worker over descriptor 3: fixed-size requests (with one memory file each) and
// fixed-size answers. The worker includes nothing else of ours (but base/float16.h, which is of the language alone), so
// this header includes nothing of ours either. Both sides are built together; there are no versions.
#pragma once

#include <cstdint>

namespace graft::tasks::wire {

inline constexpr int most_seconds = 64;
inline constexpr int most_parameters = 64;
inline constexpr double build_seconds = 60;  // that a driver's compiler may take (OpenCL)

enum class Element : std::uint32_t { f32, f64, i32, i8, u8, i64, f16, bf16 };

// One parameter of the kernel. Offsets are into the workload's memory file, multiples of 64.
struct Part {
  char name[32] = {};  // for messages
  Element element = Element::f32;
  std::uint32_t written = 0;   // 1: an output
  std::uint32_t constant = 0;  // 1: an input that is the same in all calls
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t data = 0;  // inputs: the elements
  // Outputs: how many elements are compared, their numbers (rising; 0: all elements are), the values expected, and the
  // |error| allowed, doubles both.
  std::uint64_t compared = 0;
  std::uint64_t numbers = 0;
  std::uint64_t expected = 0;
  std::uint64_t tolerance = 0;
  std::uint32_t others_are_numbers = 0;  // 1: elements that are not compared must not be NaN
  std::uint64_t result = 0;              // outputs: where the worker leaves what the first run has written; 0: nowhere
};

enum class Kind : std::uint32_t { workload, candidate };

struct Request {
  Kind kind = Kind::workload;

  // workload; its memory file begins with this many Parts. It remains valid until the next one.
  std::uint32_t parts = 0;
  std::uint64_t file_bytes = 0;
  std::uint32_t at_begin =
      0;  // 1: buffers begin where their first page does, instead of ending where the last one does

  // candidate; its memory file is a shared object.
  char symbol[64] = {};
  std::uint64_t prepared_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  std::int32_t repetitions = 0;       // 0: check only
  double minimum_seconds = 0;         // of a repetition
  double timeout_seconds = 0;         // of everything
  double abort_seconds = 0;           // a first run longer than this ends the candidate; 0: no limit
  double tolerance_factor = 1;        // on the errors that the workload's parts allow
  std::uint64_t constants_bytes = 0;  // what lies between two readings of the same constant in timed calls, about
  std::int32_t threads = 1;           // that the kernel is given; above 1 all seconds are of the wall clock
  // Offsets into the workload's memory file. The kernel's prepared memory, if it is there (prepared_bytes is 0); and
  // for a sequence of kernels (codegen/machine/sequence.h), how many calls it has, and where the worker leaves the
  // least time of each, in seconds of the wall clock (zeros: there was no time for them).
  std::uint64_t constants = 0;
  std::uint64_t call_seconds = 0;
  std::int32_t calls = 0;
};

enum class Outcome : std::uint32_t {
  ok,
  wrong_result,
  crashed,
  timed_out,
  out_of_memory,
  slower_than_limit,
  does_not_compile,
};

struct Answer {
  Outcome outcome = Outcome::ok;
  std::int32_t count = 0;  // of seconds
  double seconds[most_seconds] =
      {};                        // of one call, per repetition; for slower_than_limit the one time that was too long
  double reference_seconds = 0;  // the latest time of the reference kernel
  char message[256] = {};        // empty when ok
};

}  // namespace graft::tasks::wire
