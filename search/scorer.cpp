#include "search/scorer.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/shortened.h"

namespace graft::search {
namespace {

constexpr std::size_t most_remembered = 65536;          // candidates
constexpr std::int64_t most_values = 50 * 1000 * 1000;  // of their encodings: 200 MB
constexpr std::int64_t block_size = 32;                 // candidates a thread takes at a time

std::vector<std::uint64_t> hashes(std::span<const codegen::Candidate> candidates) {
  std::vector<std::uint64_t> result;
  result.reserve(candidates.size());
  for (const codegen::Candidate& candidate : candidates) result.push_back(codegen::hash(candidate));
  return result;
}

}  // namespace

Scorer::Scorer(const features::Encoding& encoding, codegen::Target target, int threads, SelectionSettings selection,
               std::uint64_t seed)
    : encoding_(encoding), target_(std::move(target)), threads_(threads), selection_(selection), seed_(seed) {}

void Scorer::use(const meta::CostModel* model, std::span<const codegen::Candidate> measured) {
  model_ = model;
  context_ = {std::nullopt, base::hash_combine(seed_, std::uint64_t(rounds_++))};
  if (model_ == nullptr || measured.empty() || selection_.acquisition != Acquisition::ei) return;
  const std::vector<float> means = model_->score(encoded(measured)).mean;
  context_.incumbent = *std::max_element(means.begin(), means.end());
}

// With spreads, which may cost more than the scores, only if the acquisition uses them.
meta::Scores Scorer::scored(const features::Encoded& programs) const {
  return selection_.acquisition == Acquisition::mean ? model_->score(programs) : model_->score_with_spread(programs);
}

void Scorer::remember(std::span<const codegen::Candidate> candidates, const std::vector<std::uint64_t>& keys) {
  if (remembered_.size() > most_remembered || remembered_values_ > most_values) {
    remembered_.clear();
    remembered_values_ = 0;
  }
  std::vector<std::size_t> fresh;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (remembered_.try_emplace(keys[i]).second) fresh.push_back(i);
  }
  const std::int64_t blocks = (std::int64_t(fresh.size()) + block_size - 1) / block_size;
  base::parallel_for(blocks, threads_, [&](std::int64_t block) {
    const std::size_t end = std::min(fresh.size(), std::size_t((block + 1) * block_size));
    for (std::size_t f = std::size_t(block * block_size); f < end; ++f) {
      const base::Result<codegen::LoopProgram> program = codegen::program(candidates[fresh[f]], target_);
      if (!program) continue;
      // No rehash here: all keys are in.
      remembered_.find(keys[fresh[f]])->second = {codegen::hash(*program),
                                                  encoding_.encode({&*program, &candidates[fresh[f]], &target_})};
    }
  });
  for (const std::size_t i : fresh)
    remembered_values_ += std::int64_t(remembered_.find(keys[i])->second.encoding.rows.values.size());
}

std::vector<std::uint64_t> Scorer::programs(std::span<const codegen::Candidate> candidates) {
  std::vector<std::uint64_t> keys = hashes(candidates);
  remember(candidates, keys);
  for (std::uint64_t& key : keys) key = remembered_.find(key)->second.program;
  return keys;
}

features::Encoded Scorer::encoded(std::span<const codegen::Candidate> candidates) {
  const std::vector<std::uint64_t> keys = hashes(candidates);
  remember(candidates, keys);
  features::Encoded all;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const features::Encoded& one = remembered_.find(keys[i])->second.encoding;
    if (one.rows.rows == 0)
      throw base::UserError(
          base::shortened(candidates[i].workload.text),
          "a schedule of sketch " + candidates[i].sketch->name + " does not lower, so there is nothing to encode");
    features::append(all, one);
  }
  return all;
}

std::vector<float> Scorer::scores(std::span<const codegen::Candidate> candidates) {
  return scores(candidates, true);
}

std::vector<float> Scorer::predictions(std::span<const codegen::Candidate> candidates) {
  return scores(candidates, false);
}

std::vector<float> Scorer::scores(std::span<const codegen::Candidate> candidates, bool acquire) {
  std::vector<float> result(candidates.size(), 0.0f);
  if (model_ == nullptr || candidates.empty()) return result;
  const std::vector<std::uint64_t> keys = hashes(candidates);
  remember(candidates, keys);
  features::Encoded all;
  std::vector<std::size_t> lowering;
  std::vector<std::uint64_t> programs;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Made& made = remembered_.find(keys[i])->second;
    if (made.encoding.rows.rows == 0) {
      result[i] = -std::numeric_limits<float>::infinity();
    } else {
      features::append(all, made.encoding);
      lowering.push_back(i);
      programs.push_back(made.program);
    }
  }
  if (lowering.empty()) return result;
  const std::vector<float> scores =
      acquire ? acquired(scored(all), programs, context_, selection_) : model_->score(all).mean;
  for (std::size_t k = 0; k < lowering.size(); ++k) result[lowering[k]] = scores[k];
  return result;
}

}  // namespace graft::search
