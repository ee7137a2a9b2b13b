// Trains a cost model on datasets, or continues one with further platforms.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/document.h"
#include "base/monitor.h"
#include "base/team.h"
#include "meta/cost_model.h"
#include "meta/model_file.h"
#include "meta/task_set.h"
#include "study/inputs/data.h"
#include "study/inputs/model_choice.h"
#include "study/inputs/setting.h"

namespace graft::study {

struct TrainRequest {
  std::filesystem::path out;  // the model's file; checkpoints are kept in <out>.checkpoints until it is there
#include "study/inputs/settings/train.def"
  std::string command_line;  // for provenance
};

struct TrainResult {
  std::unique_ptr<meta::CostModel> model;
  std::string learner;  // the one that trained it: with trees, the replacement of the requested one
  std::filesystem::path out;
  std::int64_t programs = 0;
  std::vector<std::string> platforms;
  base::Document provenance;
};

// Called by all ranks of the team, which need the same request and files; only rank 0 writes the model and has the
// result. UserError (FieldError) for contradictory settings, as far as possible before anything is read; Stopped when
// the monitor asks for it, and the same request then continues from its checkpoints.
std::optional<TrainResult> train(const TrainRequest& request, base::Team& team, base::Monitor& monitor);

// Platforms that a model was trained on, including those that it was continued with: at least one.
std::int64_t known_platforms(const base::Document& provenance);

// The text about a model: its learner and its sources.
struct CardText {
  std::string learner, made_as;  // "residual", "mlp"
  std::uint64_t seed = 1;
  std::string date, hold_out;
  std::vector<std::string> misleading;
  std::string more;                 // Markdown that follows
  std::int64_t base_platforms = 0;  // of the model that it continues
};
std::string card_of(const CardText& text, const meta::TaskSet& tasks);

// {"out":...,"kind":...,"provenance":{...}}
base::Document to_document(const TrainResult& result);

}  // namespace graft::study
