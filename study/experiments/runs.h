// Private to this folder: the parts of a run.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/document.h"
#include "base/monitor.h"
#include "study/experiments/run.h"

namespace graft::study {

// The models of an experiment of searches, trained into its work folder where they are not there yet.
// Their files by name.
std::map<std::string, std::filesystem::path> train_models(const ExperimentRequest& request, base::Monitor& monitor);

// An evaluation's table; null when the monitor asked to stop.
base::Document evaluated(const ExperimentRequest& request, base::Monitor& monitor);

}  // namespace graft::study
