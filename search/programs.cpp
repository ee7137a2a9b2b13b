#include "search/programs.h"

#include <algorithm>
#include <utility>

#include "base/parallel.h"
#include "codegen/schedule/candidate_program.h"

namespace graft::search {
namespace {

constexpr std::size_t most_entries = 65536;
constexpr std::int64_t most_values = 50 * 1000 * 1000;  // of encodings, of which a tree has thousands: 200 MB
constexpr std::size_t most_young = 1024;                // programs, some 10 kB each
constexpr std::int64_t block_size = 32;                 // candidates that a thread takes at a time

// f(i) for each of `count`, in blocks, on several threads.
template <class Function>
void in_blocks(std::size_t count, int threads, Function f) {
  const std::int64_t blocks = (std::int64_t(count) + block_size - 1) / block_size;
  base::parallel_for(blocks, threads, [&](std::int64_t block) {
    const std::size_t end = std::min(count, std::size_t((block + 1) * block_size));
    for (std::size_t i = std::size_t(block * block_size); i < end; ++i) f(i);
  });
}

}  // namespace

std::shared_ptr<Programs::Entry> Programs::entry(const codegen::Candidate& candidate) {
  const std::uint64_t key = codegen::hash(candidate);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = entries_.find(key); known != entries_.end()) return known->second;
  }
  base::Result<codegen::CandidateProgram> made = codegen::identified_program(candidate, target_);
  auto fresh = made ? std::make_shared<Entry>(made->identity) : std::make_shared<Entry>(made.reason());
  const std::lock_guard lock(mutex_);
  ++counts_.made;
  counts_.refused += !made;
  if (entries_.size() >= most_entries || values_ > most_values) {
    entries_.clear();
    young_.clear();
    values_ = 0;
  }
  const auto [at, is_new] = entries_.emplace(key, std::move(fresh));  // another thread may have been first
  if (is_new && made && made->program != nullptr && encoding_ != nullptr) {
    at->second->program = std::move(made->program);
    young_.push_back(at->second);
    if (young_.size() > most_young) {
      young_.front()->program = nullptr;
      young_.pop_front();
    }
  }
  return at->second;
}

std::shared_ptr<const features::Encoded> Programs::encoding_of(const codegen::Candidate& candidate) {
  const std::shared_ptr<Entry> entry = this->entry(candidate);
  if (!entry->identity || encoding_ == nullptr) return nullptr;
  std::shared_ptr<const codegen::LoopProgram> program;
  {
    const std::lock_guard lock(mutex_);
    if (entry->encoding != nullptr) return entry->encoding;
    program = entry->program;
  }
  const bool was_dropped = program == nullptr && encoding_->needs_program;
  if (was_dropped) program = codegen::identified_program(candidate, target_)->program;
  if (program == nullptr && encoding_->needs_program) return nullptr;  // a row of a table
  auto encoding = std::make_shared<const features::Encoded>(encoding_->encode({program.get(), &candidate, &target_}));
  const std::lock_guard lock(mutex_);
  counts_.made += was_dropped;
  ++counts_.encoded;
  if (entry->encoding == nullptr) {
    values_ += std::int64_t(encoding->rows.values.size());
    entry->encoding = std::move(encoding);
  }
  entry->program = nullptr;
  return entry->encoding;
}

base::Result<std::uint64_t> Programs::identity(const codegen::Candidate& candidate) {
  return entry(candidate)->identity;
}

std::vector<std::uint64_t> Programs::identities(std::span<const codegen::Candidate> candidates, int threads) {
  std::vector<std::uint64_t> result(candidates.size(), 0);
  in_blocks(candidates.size(), threads, [&](std::size_t i) {
    if (const base::Result<std::uint64_t> found = identity(candidates[i])) result[i] = *found;
  });
  return result;
}

std::vector<std::shared_ptr<const features::Encoded>> Programs::encodings(
    std::span<const codegen::Candidate> candidates, int threads) {
  std::vector<std::shared_ptr<const features::Encoded>> result(candidates.size());
  in_blocks(candidates.size(), threads, [&](std::size_t i) { result[i] = encoding_of(candidates[i]); });
  return result;
}

Programs::Counts Programs::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace graft::search
