// A question, what others published about it, what is run to answer it, and what counts as the answer: experiment.yaml
// of a folder under experiments/. What was found is results.json next to it (results.h).
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
  std::string text;  // for people: what is claimed
  // "speed", "least-speed", "trials", "times-fewer"; of layers "speed", "least-speed", "sum"; of evaluations "score",
  // "gain"
  std::string measure;
  std::string method, other;
  std::int64_t at = 0, other_at = 0;        // trials, or shots of an evaluation; 0 of trials: all that the method has
  double share = 1;                         // "trials", "times-fewer": of the speed that is to be reached
  std::string metric;                       // of evaluations: "spearman", "top1" or "top5"
  std::vector<std::string> only;            // workloads, or targets of an evaluation; none: all
  std::map<std::string, double> weights;    // "sum": how often each workload runs; 1 where it is not here
  std::optional<double> at_least, at_most;  // one of them
};

struct Experiment {
  // What a method is: settings of a search, or of an evaluation, by key; name and trials apart.
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
    layers,  // what searches found, next to the kernels of libraries and compilers (graft bench kernels)
    evaluate
  } kind = Kind::search;
  bool quick = false;                             // the small version, which shows that it runs
  std::vector<std::string> platforms, workloads;  // of searches
  std::vector<std::string> baselines;             // of layers
  std::vector<Model> models;
  std::vector<Method> methods;
  std::int64_t seeds = 1;            // of layers: how often all are timed
  std::int64_t again = 0;            // of searches on hardware: rounds in which their finalists are timed again
  std::vector<std::int64_t> counts;  // trials, or shots, that tables show
  // Of an evaluation: files, relative to the working folder; measurements of others, {"import": format, "platform",
  // "files", "options"} (graft import), files relative to the folder that they are in; or what is measured for it,
  // {"collect": workloads, "platforms", "space", "samples"} (graft collect), the space's file relative to the working
  // folder.
  std::vector<base::Document> data;
  base::Document evaluation;  // its settings
  std::vector<Claim> claims;  // the main one first
  std::string definition;     // hash of all that decides results; texts and claims do not
};

// With `quick`, what its key "quick" says in place of the same keys. UserError with file, line and column for what is
// missing, unknown or does not go together.
Experiment read_experiment(const std::filesystem::path& folder, bool quick = false);

// Folders with an experiment.yaml, by id.
std::vector<std::filesystem::path> experiments_in(const std::filesystem::path& folder);

}  // namespace graft::study
