// The parts of `graft inspect`, one for each kind of input. Each prints its findings and returns
// the exit code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/network_flags.h"
#include "codegen/space/candidate.h"
#include "datasets/failures.h"
#include "datasets/trial.h"
#include "features/encoding.h"

namespace graft::cli {

struct InspectFlags {
  std::string what, platform, workload, encoding = "context_relation";
  study::NetworkOptions network;
  SpaceFlag space;
  bool program = false, ir = false, assembly = false, features = false, passes = false;
  bool wants_program() const { return program || ir || assembly || features; }
};

int inspect_workload(const InspectFlags& flags, Session& session);
int inspect_suite(const InspectFlags& flags, Session& session);
int inspect_dataset(const InspectFlags& flags, Session& session);
int inspect_model(const InspectFlags& flags, Session& session);
int inspect_journal(const InspectFlags& flags, Session& session);
int inspect_run(const InspectFlags& flags, Session& session);
// An ONNX file: what flows in and out, what its nodes compute, and as which kernels.
int inspect_network(const InspectFlags& flags, Session& session);
// The folder of graft tune MODEL.onnx: times, or the program of a kernel.
int inspect_tuned_network(const InspectFlags& flags, Session& session);
int inspect_platform(const InspectFlags& flags, Session& session);
// An encoding's list, and its values of one program.
int inspect_encoding(const features::Encoding& encoding, Session& session);
int inspect_encodings(Session& session);
// Documents that graft tune, evaluate and others print with --json, and the interface of a compiled library.
int inspect_result(const InspectFlags& flags, Session& session);

// Rows of a dataset or trials of a journal, by workload.
struct Times {
  std::int64_t rows = 0;
  std::vector<double> seconds;  // of those that are ok
};
struct Summary {
  std::vector<codegen::Workload> workloads;
  std::vector<Times> times;
  datasets::FailureCounts failures;

  void add(const codegen::Workload& workload, const datasets::Measurement& measurement);
};
// `request`: of a run, which may be for another measure than the time.
void print_summary(const Summary& summary, std::string_view source, Output& out,
                   const base::Document* request = nullptr);

// A map as lines of text, nested keys with dots.
void print_fields(const base::Document& map, Output& out);

// A question about one program; `pipeline` as named in runs.
void print_program(const codegen::Candidate& candidate, const std::string& pipeline, const codegen::Target& target,
                   const InspectFlags& flags, Session& session);

}  // namespace graft::cli
