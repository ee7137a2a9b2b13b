// What several commands need: how to measure, where a result comes from, names of files, tables that more than one
// prints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/statistics.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/texts.h"
#include "codegen/schedule/space.h"
#include "datasets/dataset.h"
#include "datasets/failures.h"
#include "datasets/quality.h"
#include "features/encoding.h"
#include "meta/cost_model.h"
#include "meta/learner.h"
#include "meta/model_file.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "study/answer.h"
#include "study/data.h"
#include "study/pool.h"
#include "study/prior.h"
#include "study/request.h"
#include "study/rounds.h"
#include "study/space.h"
#include "tasks/measurer.h"
#include "tasks/platform.h"

namespace graft::cli {

using study::dataset_file_name;
using study::file_hash;
using study::graft_version;
using study::host_cpu;
using study::model_identity;
using study::model_on;
using study::nothing_ok_text;
using study::platform_hash;
using study::read_datasets;
using study::run_rounds;
using study::schedule_document;
using study::shipped_model;
using study::short_name;
using study::status_counts;
using study::workloads_of;

// Where the result of this session's command comes from (study/request.h).
base::Document context_of(const Session& session);

}  // namespace graft::cli
