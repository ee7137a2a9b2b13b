// A library of known answers: the fastest program found for each workload on each platform, one file each in
// one folder, so that nothing is searched twice. The files are data of any origin: they are checked when
// read, a program is accepted only if lowering its schedule gives the recorded program, and its time
// is the recorded one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/document.h"
#include "codegen/expression/target.h"
#include "codegen/space/candidate.h"
#include "datasets/trial.h"
#include "study/knowledge/answer.h"

namespace graft::study {

struct KnownAnswer {
  std::string platform, platform_hash;  // the id, and the hash of the platform's full description
  std::string source;                   // of its time: native, remote, modelled
  codegen::Candidate candidate;         // its sketch consists of steps
  std::uint64_t program_hash = 0;
  std::string pipeline;               // as in search::Build
  datasets::Measurement measurement;  // ok
  std::int64_t trials = 0;            // of the search that found it
  std::string date, graft, host;      // when, by which version, on which machine
  // Whether its constants came from memory, as in a network, or from caches; nothing: an earlier graft did not say.
  std::optional<bool> cold = {};
};

// A search's answer as it is recorded now and here, by a command.
KnownAnswer known_answer(const Answer& answer, std::string platform_hash, std::int64_t trials,
                         std::string_view command_line);

// One JSON object, strictly read: UserError with the place for what is missing, unknown or contradictory, a candidate
// that codegen::candidate_from refuses or that has micro-kernels of its own, a measurement that is not ok.
base::Document to_document(const KnownAnswer& answer);
KnownAnswer known_answer_from(const base::Document& document);

// Whether the recorded schedule still lowers to the recorded program on this target, with parameters stored as
// in the workload.
bool holds(const KnownAnswer& answer, const codegen::Target& target);

// The distance of two workloads that differ only in numbers (the sum of |log2((1 + a) / (1 + b))| over them): different
// extents of one operator or index expression. nullopt if anything else differs; digits within names (f32) are
// not numbers.
std::optional<double> shape_distance(std::string_view a, std::string_view b);

// Those of other shapes of the workload's operator, the nearest first (shape_distance), at most `most`.
std::vector<codegen::Candidate> near_shapes(std::span<const codegen::Candidate> candidates,
                                            const codegen::Workload& workload, std::size_t most);

class Library {
 public:
  explicit Library(std::filesystem::path folder) : folder_(std::move(folder)) {}  // created by the first record

  // Sorted by platform, then workload; none if there is no folder. UserError naming the file for a broken file.
  std::vector<KnownAnswer> all() const;
  // The answer for the workload, or for one that computes the same under other letters (Workload::key), that was timed
  // with constants from memory (`cold`) or from caches; or else one of which that is not known.
  std::optional<KnownAnswer> find(const codegen::Workload& workload, std::string_view platform_hash,
                                  bool cold = false) const;
  // Answers for other shapes of the operator on that platform: the nearest (shape_distance), at most `most`.
  std::vector<KnownAnswer> near(const codegen::Workload& workload, std::string_view platform_hash,
                                std::size_t most) const;
  // Replaces the answer for its workload, platform and kind of timing, unless that is faster; completely on disk when
  // it returns. False if the known one stays. Processes that record at the same time wait for each other. Failure if it
  // cannot be written.
  bool record(const KnownAnswer& answer) const;

  // {"graft_library":1,"answers":[...]}: a library as one file to share, and its answers recorded here; the number of
  // those that were accepted. UserError before anything is recorded if the file is not a library.
  std::string exported() const;
  std::size_t merge(std::string_view text, const std::string& place) const;

 private:
  std::filesystem::path file_of(const codegen::Workload& workload, std::string_view platform_hash, bool cold) const;

  std::filesystem::path folder_;
};

}  // namespace graft::study
