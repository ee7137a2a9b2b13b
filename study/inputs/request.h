// What identifies a run: its command, platform, files, models and seed. Two runs of equal requests
// have the same result, so a run is continued under an equal request only. Also the parts of requests,
// and of the names of their outputs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "codegen/expression/workload.h"
#include "meta/model_file.h"
#include "study/inputs/setting.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::study {

std::string_view graft_version();
std::string host_cpu();  // model name of this machine's processor

// The provenance of a result:
// {"graft":"0.1.0","date":"2025-01-31T12:00:00Z","host":{"cpu":...,"system":...},"command":"graft ..."}
base::Document context_of(std::string_view command_line);

// Hash of a file's bytes, 16 hex digits.
std::string file_hash(const std::filesystem::path& path);

// Hash of the platform's full description. A run may only be continued under the same hash.
std::string platform_hash(const tasks::Platform& platform);

// What identifies a model in the request of the run in `run`: the model's hash, so that the run continues under an
// equal model that was trained again; or the file's hash if the run recorded that, as older versions did.
std::string model_identity(const meta::ModelFile& model, const std::filesystem::path& file,
                           const std::filesystem::path& run);

// Letters, digits and dashes, for names of folders: "matmul-m-64-n-64-k-64". At most 60 characters; longer ones end in
// a hash.
std::string short_name(std::string_view text);

// "native-v3.h5" of "native:v3": the file name of a platform's dataset in a folder of several.
std::string dataset_file_name(std::string_view platform);

// The workloads that texts name, including suites (`suite:shipped`). UserError for duplicates.
std::vector<codegen::Workload> workloads_of(const std::vector<std::string>& texts);
// A single one. UserError with the remedy also for the name of a file or folder.
codegen::Workload workload_of(const std::string& text);

// A command and the settings that decide its result. Fields keep the order in which they were set; whether two requests
// are equal does not depend on it.
class Request {
 public:
  explicit Request(std::string_view command);
  Request& set(std::string key, base::Document value);
  base::Document& fields() { return document_; }  // for functions that add several at once
  // {"command":"tune","workload":...}: as runs and datasets store it.
  const base::Document& document() const { return document_; }
  // Hash of command and fields in any order.
  std::string hash() const { return hash_of(document_); }
  // The same for a request that was read from a file.
  static std::string hash_of(const base::Document& request);

 private:
  base::Document document_ = base::Document::map();
};

// How long a candidate is timed, in the units of requests.
struct Timing {
#include "study/inputs/settings/timing.def"
  tasks::MeasureSettings settings(double abort_factor, int threads) const;
};

}  // namespace graft::study
