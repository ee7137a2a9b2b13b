// What candidates come to: their programs, identities and encodings, each made once and shared by all who ask during a
// search (the space, the scorer, whoever tells measurements, replay).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "codegen/expression/target.h"
#include "codegen/space/candidate.h"
#include "codegen/space/space.h"
#include "features/encoding.h"

namespace graft::search {

// All of it may be called by several threads at once; no result depends on them.
class Programs final : public codegen::Judge {
 public:
  // `encoding`: what a model, or an explorer, sees of a program; null where none looks. It must outlive this.
  explicit Programs(codegen::Target target, const features::Encoding* encoding = nullptr)
      : target_(std::move(target)), encoding_(encoding) {}

  const codegen::Target& target() const { return target_; }
  const features::Encoding* encoding() const { return encoding_; }

  // The hash of its program: many schedules come to the same one. Of a row of a table, of its values by name.
  base::Result<std::uint64_t> identity(const codegen::Candidate& candidate) override;
  // By candidate; 0 where nothing can be made of it.
  std::vector<std::uint64_t> identities(std::span<const codegen::Candidate> candidates, int threads);
  // By candidate, of one program each; null where nothing can be made of it, there is no encoding, or the encoding
  // looks at programs and the candidate is a row of a table.
  std::vector<std::shared_ptr<const features::Encoded>> encodings(std::span<const codegen::Candidate> candidates,
                                                                  int threads);

  // What was done so far.
  struct Counts {
    std::int64_t made = 0;     // candidates that were lowered, or are rows of tables
    std::int64_t refused = 0;  // of these: nothing can be made of them
    std::int64_t encoded = 0;
  };
  Counts counts() const;

 private:
  struct Entry {
    explicit Entry(base::Result<std::uint64_t> its_identity) : identity(std::move(its_identity)) {}
    const base::Result<std::uint64_t> identity;
    std::shared_ptr<const codegen::LoopProgram> program;  // while it is young, until it is encoded
    std::shared_ptr<const features::Encoded> encoding;    // once it was asked for
  };
  std::shared_ptr<Entry> entry(const codegen::Candidate& candidate);
  std::shared_ptr<const features::Encoded> encoding_of(const codegen::Candidate& candidate);

  const codegen::Target target_;
  const features::Encoding* const encoding_;
  mutable std::mutex mutex_;                                           // of all below, and of what entries gain
  std::unordered_map<std::uint64_t, std::shared_ptr<Entry>> entries_;  // by candidate; all go when there are many
  std::deque<std::shared_ptr<Entry>> young_;                           // that hold a program, oldest first
  std::int64_t values_ = 0;                                            // numbers in all encodings
  Counts counts_;
};

}  // namespace graft::search
