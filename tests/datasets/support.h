// Shared by the tests of this room: a temporary folder, seeded trials of every kind, and messages of exceptions.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "datasets/dataset.h"
#include "datasets/trial.h"

namespace graft::datasets {

using Folder = base::TemporaryFolder;

inline void write_plainly(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::remove(path);  // file systems sync a file that is cut to nothing and written again, which is slow
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// The message of the Error that `call` must throw; "" (and a failed test) if it does not.
template <class Error, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline std::shared_ptr<const codegen::Sketch> sketch_numbered(std::int64_t number) {
  const std::string text = "sketch tiles_" + std::to_string(number) +
                           "\ntile C i $i1 $i2\norder C $outer{i.0 j.0|j.0 i.0} i.1 i.2 l.0\n" +
                           "$packing{pack C B above j.0|}\n";
  return std::make_shared<const codegen::Sketch>(codegen::parse_sketch(text, "test"));
}

// Trials like those of a run: a few workloads, sketches by value (not shared), all statuses.
inline Trial random_trial(std::int64_t index, std::uint64_t seed) {
  base::Stream stream(seed, "trial", std::uint64_t(index));
  static const std::vector<std::string> workloads = {
      "matmul(m=512,n=512,k=512,dtype=f32)", "matmul(m=64,n=64,k=64,dtype=f32)", "matmul(m=1,n=1000,k=512,dtype=f32)"};
  Trial trial;
  trial.index = index;
  trial.candidate.workload = codegen::Workload(workloads[std::size_t(stream.below(3))]);
  trial.candidate.sketch = sketch_numbered(stream.below(5));
  trial.candidate.arguments = {1 << stream.below(8), 1 << stream.below(4), stream.below(2), stream.below(2)};
  Measurement& measurement = trial.measurement;
  const bool good = stream.below(4) != 0;
  measurement.status = good ? Status::ok : Status(stream.below(9));
  const bool timed = measurement.status == Status::ok || measurement.status == Status::slower_than_limit;
  if (measurement.status != Status::does_not_lower) trial.program_hash = stream.bits();
  if (measurement.status != Status::ok) {
    measurement.reason = "tile: step " + std::to_string(stream.below(20)) + " is \"wrong\"\n\tat C.i";
  }
  for (std::int64_t i = timed ? 1 + stream.below(3) : 0; i > 0; --i) {
    measurement.seconds.push_back(1e-3 * (1e-6 + stream.uniform()));
  }
  if (timed) {
    measurement.clock = stream.below(2) == 0 ? "thread_cpu" : "wall";
    measurement.check = "host";
    measurement.reference_ratio = stream.below(2) == 0 ? 1 : 0.97 + 0.06 * stream.uniform();
  }
  return trial;
}

inline testing::AssertionResult same(const Measurement& a, const Measurement& b) {
  if (a.status != b.status) return testing::AssertionFailure() << "status";
  if (a.reason != b.reason) return testing::AssertionFailure() << "reason: " << a.reason << " / " << b.reason;
  if (a.seconds != b.seconds) return testing::AssertionFailure() << "seconds";
  if (a.clock != b.clock) return testing::AssertionFailure() << "clock";
  if (a.reference_ratio != b.reference_ratio) return testing::AssertionFailure() << "reference_ratio";
  if (a.check != b.check) return testing::AssertionFailure() << "check";
  return testing::AssertionSuccess();
}

inline testing::AssertionResult same(const Trial& a, const Trial& b) {
  if (a.index != b.index) return testing::AssertionFailure() << "index " << a.index << " / " << b.index;
  if (!(a.candidate.workload == b.candidate.workload)) return testing::AssertionFailure() << "workload";
  if (!(*a.candidate.sketch == *b.candidate.sketch)) return testing::AssertionFailure() << "sketch";
  if (a.candidate.arguments != b.candidate.arguments) return testing::AssertionFailure() << "arguments";
  if (a.program_hash != b.program_hash) return testing::AssertionFailure() << "program hash";
  return same(a.measurement, b.measurement);
}

inline testing::AssertionResult same(const Dataset& a, const Dataset& b) {
  if (a.platform != b.platform || a.source != b.source || a.platform_yaml != b.platform_yaml) {
    return testing::AssertionFailure() << "platform";
  }
  if (!(a.target == b.target)) return testing::AssertionFailure() << "target";
  if (!(a.provenance == b.provenance)) return testing::AssertionFailure() << "provenance";
  if (a.workloads != b.workloads) return testing::AssertionFailure() << "workloads";
  if (a.sketches.size() != b.sketches.size()) return testing::AssertionFailure() << "number of sketches";
  for (std::size_t i = 0; i < a.sketches.size(); ++i) {
    if (!(*a.sketches[i] == *b.sketches[i])) return testing::AssertionFailure() << "sketch " << i;
  }
  if (a.rows.size() != b.rows.size()) return testing::AssertionFailure() << "number of rows";
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    const Dataset::Row &x = a.rows[i], &y = b.rows[i];
    if (x.workload != y.workload || x.sketch != y.sketch || x.arguments != y.arguments ||
        x.program_hash != y.program_hash) {
      return testing::AssertionFailure() << "row " << i;
    }
    if (const auto measurements = same(x.measurement, y.measurement); !measurements) {
      return testing::AssertionFailure() << "row " << i << ": " << measurements.message();
    }
  }
  return testing::AssertionSuccess();
}

inline Dataset random_dataset(std::int64_t rows, std::uint64_t seed) {
  Dataset dataset;
  dataset.platform = "native:v3";
  dataset.source = "native";
  dataset.platform_yaml = "# as it was\nname: native:v3\ncores: 2\n";
  dataset.target = {.triple = "x86_64-unknown-linux-gnu",
                    .cpu = "x86-64-v3",
                    .features = "+avx2,+fma",
                    .vector_bits = 256,
                    .vector_registers = 16,
                    .cores = 2,
                    .l1_bytes = 32768,
                    .l2_bytes = {},
                    .l3_bytes = {},
                    .line_bytes = 64};
  dataset.provenance = base::Document::map();
  dataset.provenance.set("command", "graft collect").set("seed", std::int64_t(seed)).set("ratio", 0.1);
  for (std::int64_t i = 0; i < rows; ++i) dataset.add(random_trial(i, seed));
  return dataset;
}

}  // namespace graft::datasets
