// Training a cost model on datasets, or continuing one with further platforms.
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
#include "study/data.h"
#include "study/model_choice.h"

namespace graft::study {

struct TrainRequest {
  DataSource data;
  ModelChoice model;
  std::string learner = "residual";
  std::string hold_out;                 // platform to leave out; "": none
  std::vector<std::string> misleading;  // platforms whose times are reversed within each workload
  std::filesystem::path base;           // a trained model that learns of these platforms, too; "": a new one
  std::filesystem::path out;            // the model's file; checkpoints are kept in <out>.checkpoints until it is there
  std::filesystem::path losses;         // CSV of the losses by stage and step; "": none
  std::filesystem::path card;           // Markdown that follows the model's card; "": none
  std::uint64_t seed = 1;
  int threads = 1;           // no result depends on it
  std::string command_line;  // for provenance
};

struct TrainResult {
  std::unique_ptr<meta::CostModel> model;
  std::string learner;  // what it was made by: with trees, what took the place of the one asked for
  std::filesystem::path out;
  std::int64_t programs = 0;
  std::vector<std::string> platforms;
  base::Document provenance;
};

// By all ranks of the team, which need the same request and files; rank 0 writes the model, and has the result alone.
// UserError (FieldError) for what does not go together, before anything is read as far as possible; Stopped when the
// monitor asks for it, and the same request then continues from its checkpoints.
std::optional<TrainResult> train(const TrainRequest& request, base::Team& team, base::Monitor& monitor);

// Platforms that a model was trained on, with those that it was continued with: at least one.
std::int64_t known_platforms(const base::Document& provenance);

// What is written about a model: by what it was made, and from what.
struct CardText {
  std::string learner, made_as;  // "residual", "mlp"
  std::uint64_t seed = 1;
  std::string date, hold_out;
  std::vector<std::string> misleading;
  std::string more;  // Markdown that follows
};
std::string card_of(const CardText& text, const meta::TaskSet& tasks);

// {"out":...,"kind":...,"provenance":{...}}
base::Document to_document(const TrainResult& result);

}  // namespace graft::study
