// A question, published results about it, the runs that answer it, and the criteria of the answer: experiment.yaml
// of a folder under experiments/. The results are in results.json next to it (results.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"

namespace graft::study {

// A figure that the experiment must show (measures.h says what each measure is).
struct Claim {
  std::string text;  // for people: the claim
  // "speed", "least-speed", "wins", "trials", "times-fewer"; of layers "speed", "least-speed", "wins", "sum"; of peers
  // all of these; of evaluations "score", "gain", and of their searches "found", "found-gain", "least-found-gain"
  std::string measure;
  std::string method, other;
  std::string reach;                        // "trials", "times-fewer": whose speed is to be reached; "": the other's
  std::int64_t at = 0, other_at = 0;        // trials, or shots of an evaluation; trials 0: all of the method's
  double share = 1;                         // "trials", "times-fewer": of the speed to reach
  std::string metric;                       // of evaluations: "spearman", "top1" or "top5"
  std::vector<std::string> only;            // workloads, or targets of an evaluation; none: all
  std::map<std::string, double> weights;    // "sum": how often each workload runs; 1 if absent
  std::optional<double> at_least, at_most;  // one of them
};

struct Experiment {
  // The definition of a method: settings of a search, or of an evaluation, by key, except name and trials.
  struct Method {
    std::string name;  // in tables and curves
    base::Document settings;
    std::int64_t trials = 0;  // of a search
  };
  // A model that the methods of searches use, trained before them.
  struct Model {
    std::string name;
    base::Document settings;
  };

  std::string name;  // of its folder: "search-methods"
  std::string id;    // "E1", where tables list it
  std::string title, question, published, source, protocol;
  enum class Kind {
    search,
    layers,  // results of searches compared with kernels of libraries and compilers (graft bench kernels)
    evaluate,
    peers  // searches by programs of others and by graft, which a script made (scripts/peers); workloads are names
  } kind = Kind::search;
  bool quick = false;                             // the small version, which shows that it runs
  std::vector<std::string> platforms, workloads;  // of searches
  std::vector<std::string> baselines;             // of layers and peers: methods that tables need not show
  std::vector<Model> models;
  std::vector<Method> methods;
  std::int64_t seeds = 1;            // of layers: how often all are timed; of peers the least number
  std::int64_t again = 0;            // of searches on hardware: rounds in which their finalists are timed again
  std::vector<std::int64_t> counts;  // trials, or shots, that tables show
  // For an evaluation: files, relative to the working folder; measurements of others, {"import": format, "platform",
  // "files", "options"} (graft import), files relative to the folder that they are in; or what is measured for it,
  // {"collect": workloads, "platforms", "space", "samples"} (graft collect), the space's file relative to the working
  // folder.
  std::vector<base::Document> data;
  base::Document evaluation;  // its settings
  // For an evaluation whose methods also guide searches among what its targets recorded (graft evaluate --search).
  struct Searches {
    std::int64_t seeds = 1;
    std::vector<std::int64_t> counts;   // of trials
    std::optional<std::int64_t> batch;  // none: as usual
    std::vector<Method> methods;        // by default those of the experiment
  };
  std::optional<Searches> searches;
  std::vector<Claim> claims;  // the main one first
  std::string definition;     // hash of all that decides results; texts and claims do not
};

// With `quick`, the values of its key "quick" replace those of the same keys. UserError with file, line and column for
// keys that are missing, unknown or contradictory.
Experiment read_experiment(const std::filesystem::path& folder, bool quick = false);

// Whether it needs what others measured, which is not shipped: measurements to import, if `others`, the folder with
// them, is not given; and what scripts wrote of peers.
bool needs_others(const Experiment& experiment, const std::filesystem::path& others);

// Folders with an experiment.yaml, by id; and those of them with this name or id, or "all". UserError if there is none.
std::vector<std::filesystem::path> experiments_in(const std::filesystem::path& folder);
std::vector<std::filesystem::path> experiments_named(const std::string& name, const std::filesystem::path& folder);

}  // namespace graft::study
