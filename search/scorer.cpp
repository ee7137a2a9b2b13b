#include "search/scorer.h"

#include <algorithm>
#include <limits>

#include "base/parallel.h"

namespace graft::search {
namespace {

constexpr std::size_t kMostRemembered = 65536;  // rows; about 200 MB at 800 features
constexpr std::int64_t kBlock = 32;             // candidates a thread takes at a time

}  // namespace

Scorer::Scorer(const features::Encoding& encoding, codegen::Target target, int threads)
    : encoding_(encoding), target_(std::move(target)), threads_(threads) {}

void Scorer::remember(std::span<const codegen::Candidate> candidates, const std::vector<std::uint64_t>& keys) {
  if (remembered_.size() > kMostRemembered) remembered_.clear();
  std::vector<std::size_t> fresh;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (remembered_.try_emplace(keys[i]).second) fresh.push_back(i);
  }
  const std::int64_t blocks = (std::int64_t(fresh.size()) + kBlock - 1) / kBlock;
  base::parallel_for(blocks, threads_, [&](std::int64_t block) {
    const std::size_t end = std::min(fresh.size(), std::size_t((block + 1) * kBlock));
    for (std::size_t f = std::size_t(block * kBlock); f < end; ++f) {
      const base::Result<codegen::LoopProgram> program = codegen::program(candidates[fresh[f]], target_);
      if (!program) continue;
      Remembered& entry = remembered_.find(keys[fresh[f]])->second;  // no rehash here: all keys are in
      entry.lowers = true;
      entry.row.resize(encoding_.features.size());
      encoding_.encode(*program, entry.row);
    }
  });
}

base::Matrix Scorer::encoded(std::span<const codegen::Candidate> candidates) {
  std::vector<std::uint64_t> keys(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) keys[i] = codegen::hash(candidates[i]);
  remember(candidates, keys);
  base::Matrix rows(std::int64_t(candidates.size()), std::int64_t(encoding_.features.size()));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Remembered& entry = remembered_.find(keys[i])->second;
    if (entry.lowers) std::copy(entry.row.begin(), entry.row.end(), rows.row(std::int64_t(i)).begin());
  }
  return rows;
}

std::vector<float> Scorer::scores(std::span<const codegen::Candidate> candidates) {
  std::vector<float> result(candidates.size(), 0.0f);
  if (model_ == nullptr || candidates.empty()) return result;
  const base::Matrix rows = encoded(candidates);
  result = model_->score(rows).mean;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!remembered_.find(codegen::hash(candidates[i]))->second.lowers) {
      result[i] = -std::numeric_limits<float>::infinity();
    }
  }
  return result;
}

}  // namespace graft::search
