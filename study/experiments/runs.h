// Private to this folder: the parts of a run.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "base/team.h"
#include "search/comparison.h"
#include "study/experiments/run.h"

namespace graft::study {

// The models of an experiment of searches, trained into its work folder if they are not there yet.
// Their files by name.
std::map<std::string, std::filesystem::path> train_models(const ExperimentRequest& request, base::Team& team,
                                                          base::Monitor& monitor);

// The results of `graft bench kernels` for these runs, once for each of the experiment's seeds: the best times of their
// kernels, and next to the first method's those of the baselines, as searches of one trial. Failure if it cannot run.
std::vector<search::Searched> timed_layers(const Experiment& experiment, const std::string& method,
                                           const std::string& platform, const std::vector<std::filesystem::path>& runs,
                                           base::Monitor& monitor);

// context_of the command that runs the experiment, without folders of this machine, and the commit of the sources.
base::Document context_of_run(const Experiment& experiment);

// An evaluation's table; null when the monitor asked to stop.
base::Document evaluated(const ExperimentRequest& request, base::Team& team, base::Monitor& monitor);

}  // namespace graft::study
