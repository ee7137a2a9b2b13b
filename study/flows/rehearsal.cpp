#include "study/flows/rehearsal.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/space.h"
#include "search/programs.h"

namespace graft::study {
namespace {

constexpr std::size_t most_others = 32;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

std::vector<double> expected(const meta::CostModel& teacher, const features::Encoded& programs) {
  const std::vector<float> scores = teacher.score(programs).mean;
  std::vector<double> log_seconds;
  for (const float score : scores) log_seconds.push_back(-double(score));
  return log_seconds;
}

// Distinct programs; none for a workload without a space by rule, such as one of a table.
struct Drawn {
  features::Encoded features;
  std::vector<std::uint64_t> hashes;
};
Drawn drawn(const codegen::Workload& workload, const codegen::Target& target, const features::Encoding& encoding,
            const std::set<std::uint64_t>& but, const RehearsalSettings& settings) {
  Drawn out;
  search::Programs programs(target, &encoding);
  std::vector<codegen::Candidate> candidates;
  std::set<std::uint64_t> known = but;
  try {
    const codegen::Space space = codegen::derive_space(workload, target);
    base::Stream stream(settings.seed, "rehearsal", codegen::hash(workload));
    for (std::int64_t i = 0; i < settings.programs; ++i) {
      codegen::Candidate candidate = space.sample(stream, programs);
      const std::uint64_t identity = *programs.identity(candidate);
      if (!known.insert(identity).second) continue;
      out.hashes.push_back(identity);
      candidates.push_back(std::move(candidate));
    }
  } catch (const base::UserError&) {
    return {};
  }
  for (const auto& encoded : programs.encodings(candidates, settings.threads)) features::append(out.features, *encoded);
  return out;
}

// Workloads that the model remembers, but for these, evenly chosen.
std::vector<codegen::Workload> others(const meta::ModelFile& model, const std::set<std::string>& own) {
  std::map<std::string, codegen::Workload> all;
  for (const meta::KnownPrograms& platform : model.known) {
    for (const codegen::Candidate& program : platform.fastest) {
      if (!own.contains(program.workload.text())) all.emplace(program.workload.text(), program.workload);
    }
  }
  std::vector<codegen::Workload> out;
  std::size_t position = 0;
  const std::size_t count = std::min(most_others, all.size());
  for (const auto& [text, workload] : all) {
    if (out.size() < count && position++ >= out.size() * all.size() / count) out.push_back(workload);
  }
  return out;
}

}  // namespace

meta::TaskSet with_rehearsal(meta::TaskSet tasks, const meta::ModelFile& model,
                             const std::vector<datasets::Dataset>& given, const RehearsalSettings& settings,
                             base::Monitor& monitor) {
  if (settings.programs == 0 || tasks.encoding->of_tables || !model.model->is_informed()) return tasks;
  for (std::size_t p = 0; p < given.size(); ++p) {
    const datasets::Dataset& dataset = given[p];
    monitor.progress("programs to rehearse", std::int64_t(p), std::int64_t(given.size()));
    base::check_stop(monitor);
    std::vector<meta::Examples*> groups;
    std::vector<meta::Examples> measured;
    std::set<std::string> own;
    for (meta::Examples& group : tasks.groups) {
      if (group.platform != dataset.platform) continue;
      groups.push_back(&group);
      measured.push_back(group);
      own.insert(group.workload.text());
    }
    if (groups.empty()) continue;
    std::unique_ptr<meta::CostModel> teacher = model.model->of_source(dataset.platform);
    if (teacher == nullptr) teacher = model.model->adapted(measured);
    for (meta::Examples* const group : groups) {
      const Drawn more = drawn(group->workload, dataset.target, *tasks.encoding,
                               {group->program_hashes.begin(), group->program_hashes.end()}, settings);
      if (more.hashes.empty()) continue;
      const double offset = mean(group->log_seconds) - mean(expected(*teacher, group->features));
      for (const double log_seconds : expected(*teacher, more.features))
        group->log_seconds.push_back(log_seconds + offset);
      group->program_hashes.insert(group->program_hashes.end(), more.hashes.begin(), more.hashes.end());
      features::append(group->features, more.features);
    }
    for (const codegen::Workload& workload : others(model, own)) {
      base::check_stop(monitor);
      Drawn more = drawn(workload, dataset.target, *tasks.encoding, {}, settings);
      if (more.hashes.empty()) continue;
      std::vector<double> log_seconds = expected(*teacher, more.features);
      tasks.groups.push_back(
          {dataset.platform, workload, std::move(more.features), std::move(log_seconds), std::move(more.hashes)});
    }
  }
  return tasks;
}

}  // namespace graft::study
