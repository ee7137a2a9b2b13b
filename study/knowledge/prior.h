// Which model guides a search before it has measured anything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "datasets/dataset.h"
#include "features/encoding.h"
#include "meta/cost_model.h"
#include "meta/known_programs.h"
#include "meta/model_file.h"
#include "search/programs.h"
#include "study/knowledge/search_resources.h"
#include "tasks/platform.h"

namespace graft::study {

// The model that graft ships, models/base.h5, as installed next to the program. UserError if it is missing.
std::filesystem::path shipped_model();
inline constexpr const char* shipped_model_name = "graft's own (models/base.h5)";  // for people

// The file's model for a run on that platform: itself if it is adapted to no platform, or to this one; adapted to the
// same machine under other settings, or before its description was changed, with these measurements apart from new ones
// and a note; else what it was adapted from, with a note.
std::unique_ptr<meta::CostModel> model_on(const meta::ModelFile& file, const tasks::Platform& platform,
                                          base::Monitor& monitor);

// UserError unless it is a model's file, which is read to find out, or an untrained model's name
// (meta/methods/methods.h).
void check_model(const std::string& model);

struct Prior {
  std::unique_ptr<meta::CostModel> model;  // null: the explorer uses none
  std::shared_ptr<const features::Encoding> encoding;
  std::string identity;  // of a model file (model_identity), or an untrained model's name; "" where none is asked
  std::string name;      // for people
  // What a model file remembers for this platform (known_on); nothing where no model is asked.
  std::vector<codegen::Candidate> known = {};
};

// The programs that are known on the platform of most kinship (datasets/kinship.h): on this one; on the same machine;
// for native platforms, on a native one of equal vectors; on one of the same kind, modelled or real. Null if there are
// none: programs of other cores were no better than what the model proposes (docs/notebook).
const meta::KnownPrograms* known_on(const std::vector<meta::KnownPrograms>& known, const tasks::Platform& platform);

struct PriorRequest {
  std::string model;                 // a file or an untrained model's name (meta/learner.h); "": graft's own
  std::string transfer = "adapted";  // how the search uses measurements (meta/methods/methods.h)
  std::string explorer;              // some use no model (search/explorer.h); "": none, only the model is needed
  std::filesystem::path run;         // the run with the record of the model (model_identity)
  std::uint64_t seed = 1;
  int threads = 1;
};
// `resources`: the model's file is read through them, so that others share it.
Prior prior_of(const PriorRequest& request, const tasks::Platform& platform, base::Monitor& monitor);
Prior prior_of(const PriorRequest& request, const tasks::Platform& platform, SearchResources& resources,
               base::Monitor& monitor);

// The same for a search among rows of tables such as those of `tables`, which have no programs: a model sees their
// columns. Without a wish, scratch. FieldError for a model that looks at programs.
Prior prior_of_tables(PriorRequest request, const tasks::Platform& platform, const datasets::Dataset& tables,
                      base::Monitor& monitor);

// What the prior knows for a search of the space (search::AskTellSettings): programs of its workload, and those of the
// four nearest shapes (study/knowledge/library.h) as what is most like them in the space.
struct Remembered {
  std::vector<codegen::Candidate> known, moved;
};
Remembered remembered(const Prior& prior, const codegen::Space& space, search::Programs& programs);

}  // namespace graft::study
