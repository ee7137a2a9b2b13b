// Model files: HDF5 with a cost model's numbers, its encoding's name and hash, what it remembers of its training, where
// it was trained, and a card for people.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/document.h"
#include "datasets/dataset.h"
#include "features/encoding.h"
#include "meta/cost_model.h"
#include "meta/known_programs.h"

namespace graft::meta {

struct ModelFile {
  std::unique_ptr<CostModel> model;
  // With the columns and values that the model knows, if it is of tables.
  std::shared_ptr<const features::Encoding> encoding;
  std::vector<KnownPrograms> known;
  std::vector<datasets::Dataset> kept;  // measurements that were given back, one dataset a platform
  // 16 hex digits: which model it is, by its encoding, kind, numbers, known programs and kept measurements. Who trained
  // it, when and with which command change nothing, so the same training gives the same hash.
  std::string hash;
  base::Document provenance;  // datasets, platforms, learner, settings, seed, versions
  std::string card;           // Markdown
};

// Failure if the file cannot be written.
void save_model(const CostModel& model, const features::Encoding& encoding, const base::Document& provenance,
                const std::string& card, const std::filesystem::path& path,
                const std::vector<KnownPrograms>& known = {}, const std::vector<datasets::Dataset>& kept = {});
// UserError when the file is not a model, of an unknown kind, or was made with another encoding ("<file>: made with
// encoding context_relation 0123...; this graft has 4567...; train again").
ModelFile load_model(const std::filesystem::path& path);

}  // namespace graft::meta
