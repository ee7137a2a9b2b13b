// Tunes a program that graft did not make: a space of parameters, and a command that measures a configuration. The
// search is that of `tune`; its model sees the parameters, and may have learnt from tables of other devices.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "codegen/space/parameter_space.h"
#include "datasets/trial.h"
#include "search/tuning.h"
#include "study/flows/tune.h"
#include "tasks/command.h"

namespace graft::study {

// What the model knows before anything is measured.
struct OwnKnowledge {
  // Datasets, caches of Kernel Tuner and T4 results (.json, .json.gz), folders of runs: of this program, or one with
  // the same parameters, on other devices. Their columns are joined by name, and their values by value.
  std::vector<std::filesystem::path> from = {};
  std::string model = {};  // or a model file, or an untrained one's name; "": scratch
  std::uint64_t seed = 1;
  int threads = 1;
};

struct OwnRequest {
  std::filesystem::path space;  // file (datasets/formats/parameter_spaces.h)
#include "study/inputs/settings/own.def"
  std::string device;  // names what the command runs on; "": this machine
  // Devices of that name, equal ones, that measure side by side: each runs `command` with its own `run`. They may be
  // others when the search continues. Empty: one, with the command as it is.
  std::vector<std::string> runs = {};
  // The settings of the search: all but those of schedules. Its usual batch is own_batch, since a command takes longer
  // than what chooses its parameters.
  TuneRequest search;
};
inline constexpr std::int64_t own_batch = 4;

struct OwnResult : SearchResult {
  struct Best {
    std::int64_t trial = 0;
    double seconds = 0;
    base::Document configuration;  // {"tile":16,...}
    std::string command;           // with its values
    datasets::Measurement measurement;
    std::optional<tasks::Goal> goal = {};  // the measure that `seconds` encodes, if it is not a time
  };
  std::optional<Best> best;
  std::optional<double> standard_seconds;  // of the default configuration, if it was measured and is ok
  std::optional<double> points;            // of the space; nullopt: too many to count
  double combinations = 0;                 // without constraints
  // Which share of the variance of what the model predicts over the space each parameter makes alone, largest first;
  // the rest is of parameters together (functional ANOVA, Hutter et al., ICML 2014). Where constraints connect
  // parameters, shares overlap. None without a model that knows something.
  std::vector<std::pair<std::string, double>> importance;
};

// Returns the library's answer, if it has one for this space and command on the device. Otherwise runs or continues the
// search. When it returns, all results are on disk, the best as best.json. UserError for contradictory settings and
// files, before a folder is made, and for a folder of another request.
OwnResult tune_own(const OwnRequest& request, base::Monitor& monitor);
// Searches of several devices that are not equal, each with an answer of its own; they measure side by side, while one
// at a time chooses or learns. Each needs a name and a folder of its own: `out` is one of a folder for each, by name.
// The others continue where one fails, whose failure is thrown in the end.
struct OwnResults {
  std::vector<OwnResult> devices;  // in the order of the requests
  bool complete = false;           // all of them
  std::string failure;             // of the first device that has no best, if all are complete; else ""
};
OwnResults tune_own_devices(std::vector<OwnRequest> requests, base::Monitor& monitor);

// {"workload":...,"platform":...,"best":{"seconds":...,"configuration":{...},"command":...},"curve":...,...}
base::Document to_document(const OwnResult& result);
// {"devices":[...]}
base::Document to_document(const OwnResults& results);

// The search alone, for whoever measures by other means.
class OwnSearch {
 public:
  // `space`: a file's text. UserError as tune_own.
  OwnSearch(std::string_view space, const std::string& place, const OwnKnowledge& knowledge, base::Monitor& monitor);
  ~OwnSearch();

  const codegen::ParameterSpace& space() const;
  // Distinct points, at most `count`, none asked for before; the default first, where the file says one.
  std::vector<codegen::Candidate> ask(int count);
  // UserError for a measurement that contradicts itself.
  void tell(const std::vector<std::pair<codegen::Candidate, datasets::Measurement>>& measured);
  std::optional<datasets::Trial> best() const;
  const std::vector<datasets::Trial>& trials() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft::study
