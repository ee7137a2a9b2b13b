#include "study/flows/adapt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/statistics.h"
#include "base/text.h"
#include "codegen/schedule/rules.h"
#include "codegen/space/space.h"
#include "features/encoding.h"
#include "meta/kept_measurements.h"
#include "meta/metrics.h"
#include "meta/model_file.h"
#include "search/run_directory.h"
#include "search/tuning.h"
#include "study/flows/rounds.h"
#include "study/flows/search_session.h"
#include "study/flows/settings.h"
#include "study/inputs/data.h"
#include "study/inputs/field_error.h"
#include "study/inputs/output.h"
#include "study/knowledge/measured.h"
#include "study/knowledge/prior.h"
#include "tasks/expected.h"

namespace graft::study {
namespace {

constexpr std::int64_t most_shots = 1 << 30;
constexpr int resamples = 1000;  // for an interval

std::filesystem::path folder_of(const AdaptRequest& request) {
  return request.run.empty() ? std::filesystem::path(request.out.string() + ".run") : request.run;
}

base::Document names_of(const std::vector<codegen::Workload>& workloads) {
  base::Document names = base::Document::list();
  for (const codegen::Workload& workload : workloads) names.push(workload.text());
  return names;
}

// The support is chosen for its number: another number of shots is another run.
Request identity_of(const AdaptRequest& request, std::int64_t shots, const std::string& model) {
  Request identity("adapt");
  identity.set("workloads", names_of(request.workloads))
      .set("platform", request.platform.name)
      .set("source", request.platform.device->source())
      .set("platform_hash", platform_hash(request.platform))
      .set("shots", shots)
      .set("model", model);
  put_settings(request, identity.fields());
  return identity;
}

struct Support {
  std::vector<meta::Examples> of_workloads;
  std::vector<meta::KnownPrograms> best;
  std::int64_t trials = 0;
};

Support measured_support(const AdaptRequest& request, std::int64_t shots, const meta::ModelFile& prior,
                         const std::vector<codegen::Space>& spaces, tasks::Measurer& measurer,
                         search::RunDirectory& run, base::Monitor& monitor) {
  Support support{{}, {{request.platform.name, request.platform.target}}};
  for (const codegen::Space& space : spaces) {
    search::TuningSettings settings;
    settings.explorer = "support";
    settings.trials = shots;
    settings.batch = int(shots);
    settings.seed = base::hash_combine(request.seed, codegen::hash(space.workload()));
    settings.threads = request.threads;
    SearchSession session(space, {request.platform, measurer, run, prior.model.get(), prior.encoding.get()});
    session.begin(settings);
    if (!session.run(shots, monitor)) throw base::Stopped();
    support.trials += std::int64_t(session.tuning().trials().size());
    support.of_workloads.push_back(session.tuning().examples());
    support.best.front().fastest.push_back(session.best().candidate);
  }
  return support;
}

// What searches on the request's platform measured.
Support given_support(const datasets::Dataset& given, const features::Encoding& encoding, int threads,
                      base::Monitor& monitor) {
  const std::vector<datasets::Dataset> data = {meta::thinned(given, most_support)};
  meta::TaskSet tasks = meta::make_task_set(data, encoding, threads, nullptr, &monitor);
  note_doubts(tasks, monitor);
  Support support{std::move(tasks.groups), meta::fastest_programs(data)};
  for (const meta::Examples& group : support.of_workloads) support.trials += group.size();
  return support;
}

// The only platform of the searches that are given back.
datasets::Dataset given_to(const AdaptRequest& request) {
  if (!request.workloads.empty())
    throw FieldError("workloads, from", "what `from` measured is adapted to, and nothing is measured; leave one out");
  std::vector<datasets::Dataset> given = measured_in(request.from);
  if (given.size() > 1)
    throw FieldError("from",
                     fmt::format("has measurements on {} and {}; a model adapts to one platform: graft train with "
                                 "`base` and `from` extends it by several",
                                 given[0].platform, given[1].platform));
  return std::move(given.front());
}

void note_single_programs(const std::vector<meta::Examples>& supports, base::Monitor& monitor) {
  std::size_t alone = 0;
  for (const meta::Examples& support : supports) alone += support.size() == 1;
  if (alone == 0) return;
  monitor.note(
      fmt::format("{} of {} workloads have one measured program, which teaches nothing: programs are compared within "
                  "a workload{}; measure more of each (`shots`)",
                  alone, supports.size(), alone == supports.size() ? ", so the model stays as it was" : ""));
}

// How well both models rank, by workload and in the mean.
void judge(const meta::CostModel& prior, const std::vector<meta::Examples>& supports,
           const std::vector<std::vector<float>>& places, AdaptResult& result) {
  std::vector<PredictedTwice> twice;
  for (std::size_t w = 0; w < supports.size(); ++w) {
    AdaptResult::Row row{supports[w].workload.text(), supports[w].size(), {}, {}};
    const std::vector<double>& log_seconds = supports[w].log_seconds;
    std::vector<float> before;
    if (prior.is_informed()) {
      before = prior.score(supports[w].features).mean;
      row.zero_shot = quality_of(before, log_seconds, result.seed);
    }
    if (!places[w].empty()) row.cross_validated = quality_of(places[w], log_seconds, result.seed);
    if (row.zero_shot && row.cross_validated) twice.push_back({std::move(before), places[w], log_seconds});
    result.rows.push_back(std::move(row));
  }
  if (!twice.empty()) result.gain = gain_of(twice, result.seed);
}

// What is new about the model first: in front of what its prior's card says after its title.
std::string adapted_card(const std::string& prior, const std::string& about) {
  const std::size_t title = prior.starts_with("# ") ? std::min(prior.find('\n'), prior.size()) : 0;
  const std::string_view rest = base::trim(std::string_view(prior).substr(title));
  return fmt::format("{}{}{}\n\n{}\n", prior.substr(0, title), title > 0 ? "\n\n" : "", about, rest);
}

// Writes the adapted model's file, which remembers the fastest programs of the support, too.
void save(const AdaptRequest& request, const AdaptResult& result, const meta::ModelFile& prior,
          const Support& support) {
  base::Document provenance = context_of(request.command_line), workloads = base::Document::list();
  for (const meta::Examples& group : support.of_workloads) workloads.push(group.workload.text());
  provenance.set("adapted_from", request.model.empty() ? std::string("models/base.h5") : request.model.string())
      .set("adapted_from_hash", prior.hash)
      .set("platform", result.platform)
      .set("platform_yaml", request.platform.yaml)
      .set("source", result.source)
      .set("workloads", std::move(workloads))
      .set("measurements", result.measurements)
      .set("prior", prior.provenance);
  if (request.from.empty()) {
    provenance.set("shots", result.shots).set("seed", std::int64_t(request.seed));
  } else {
    base::Document from = base::Document::list();
    for (const std::filesystem::path& path : request.from) from.push(path.string());
    provenance.set("from", std::move(from));
  }
  const std::string card = adapted_card(
      prior.card,
      fmt::format("## Adapted to {}\n\n{}.\n\n{} {} of {}, {}, by graft {}.", result.platform, verdict_of(result),
                  result.measurements, result.source == "modelled" ? "modelled times" : "measurements",
                  base::counted(std::int64_t(support.of_workloads.size()), "workload"),
                  request.from.empty() ? fmt::format("{} each", result.shots) : "which searches gave back",
                  graft_version()));
  std::vector<meta::KnownPrograms> known = prior.known;
  meta::add(known, support.best);
  meta::save_model(*result.model, *prior.encoding, provenance, card, result.out, known, prior.kept);
}

}  // namespace

base::Interval quality_of(const std::vector<float>& predicted, const std::vector<double>& log_seconds,
                          std::uint64_t seed) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t count = std::int64_t(predicted.size());
  if (count < 2) return {none, none, none};
  const double mean = meta::rank_correlation(predicted, log_seconds);
  if (predicted.size() < base::least_for_interval) return {mean, none, none};
  base::Stream stream(seed, "adapt: bootstrap");
  std::vector<double> values;
  for (int r = 0; r < resamples; ++r) {
    std::vector<float> p;
    std::vector<double> t;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t at = std::size_t(stream.below(count));
      p.push_back(predicted[at]);
      t.push_back(log_seconds[at]);
    }
    values.push_back(meta::rank_correlation(p, t));
  }
  return {mean, base::quantile(values, 0.025), base::quantile(values, 0.975)};
}

AdaptResult::Gain gain_of(const std::vector<PredictedTwice>& workloads, std::uint64_t seed) {
  AdaptResult::Gain out;
  out.workloads = std::int64_t(workloads.size());
  std::vector<double> gains(std::size_t(resamples), 0);
  base::Stream stream(seed, "adapt: gain");
  for (const PredictedTwice& each : workloads) out.programs += std::int64_t(each.log_seconds.size());
  for (const PredictedTwice& each : workloads) {
    const std::int64_t count = std::int64_t(each.log_seconds.size());
    const double weight = double(count) / double(out.programs);
    out.before += weight * meta::rank_correlation(each.before, each.log_seconds);
    out.after += weight * meta::rank_correlation(each.after, each.log_seconds);
    for (double& gain : gains) {
      PredictedTwice drawn;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t at = std::size_t(stream.below(count));
        drawn.before.push_back(each.before[at]);
        drawn.after.push_back(each.after[at]);
        drawn.log_seconds.push_back(each.log_seconds[at]);
      }
      gain += weight * (meta::rank_correlation(drawn.after, drawn.log_seconds) -
                        meta::rank_correlation(drawn.before, drawn.log_seconds));
    }
  }
  out.gain = {out.after - out.before, base::quantile(gains, 0.025), base::quantile(gains, 0.975)};
  return out;
}

std::string verdict_of(const AdaptResult& result) {
  if (!result.gain)
    return fmt::format("whether adapting helped is not known: {}",
                       std::any_of(result.rows.begin(), result.rows.end(),
                                   [](const AdaptResult::Row& row) { return row.cross_validated.has_value(); })
                           ? "the model knew nothing before"
                           : fmt::format("that takes {} measured programs of a workload", cross_validation_folds));
  const auto& [workloads, programs, before, after, gain] = *result.gain;
  const std::string judged =
      fmt::format("{} of {}", base::counted(programs, "program"), base::counted(workloads, "workload"));
  const std::string means =
      fmt::format("Spearman {:.2f} before, {:.2f} after on programs it had not seen, a", before, after);
  const std::string interval = fmt::format("{:.2f} [{:.2f}, {:.2f}] ({})", gain.mean, gain.low, gain.high, judged);
  if (gain.low > 0) return fmt::format("adapting helped: {} gain of {}", means, interval);
  if (gain.high < 0)
    return fmt::format("adapting made it worse: {} change of {}; the model as it was is better here", means, interval);
  // The interval's length falls with the square root of the number.
  constexpr double wanted = 0.05;
  const double factor = std::pow((gain.high - gain.low) / 2 / wanted, 2);
  return fmt::format(
      "no difference can be seen with {}: a gain of {:.2f} [{:.2f}, {:.2f}] in Spearman; about {} of each "
      "workload would show one of {:.2f}",
      judged, gain.mean, gain.low, gain.high,
      std::int64_t(std::ceil(std::max(1.0, factor) * double(programs) / double(workloads))), wanted);
}

std::vector<std::vector<float>> cross_validated(const meta::CostModel& prior,
                                                const std::vector<meta::Examples>& supports, std::uint64_t seed,
                                                base::Monitor& monitor) {
  std::vector<std::vector<float>> places(supports.size());
  std::vector<std::vector<std::int64_t>> fold_of(supports.size());
  bool any = false;
  for (std::size_t w = 0; w < supports.size(); ++w) {
    if (supports[w].size() < cross_validation_folds) continue;
    any = true;
    base::Stream stream(seed, "adapt: folds", w);
    const std::vector<std::int64_t> order = stream.choose(supports[w].size(), supports[w].size());
    fold_of[w].resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      fold_of[w][std::size_t(order[i])] = std::int64_t(i) % cross_validation_folds;
    places[w].resize(order.size());
  }
  for (std::int64_t fold = 0; any && fold < cross_validation_folds; ++fold) {
    monitor.progress("cross-validation", fold, cross_validation_folds);
    base::check_stop(monitor);
    std::vector<meta::Examples> kept;
    for (std::size_t w = 0; w < supports.size(); ++w) {
      std::vector<std::int64_t> rows;
      for (std::int64_t i = 0; i < supports[w].size(); ++i) {
        if (fold_of[w].empty() || fold_of[w][std::size_t(i)] != fold) rows.push_back(i);
      }
      kept.push_back(meta::chosen(supports[w], rows));
    }
    const auto model = prior.adapted(kept);
    for (std::size_t w = 0; w < supports.size(); ++w) {
      if (fold_of[w].empty()) continue;
      const std::vector<float> scores = model->score(supports[w].features).mean;
      const std::vector<double> ranks = base::ranks(std::vector<double>(scores.begin(), scores.end()));
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (fold_of[w][i] == fold) places[w][i] = float(ranks[i] / double(ranks.size()));
      }
    }
  }
  if (any) monitor.progress("cross-validation", cross_validation_folds, cross_validation_folds);
  return places;
}

AdaptResult adapt(const AdaptRequest& asked, base::Monitor& monitor) {
  AdaptRequest request = asked;
  check_settings(request);
  if (request.workloads.empty() && request.from.empty())
    throw FieldError("workloads, from", "nothing to adapt to; name workloads to measure, or runs");
  std::vector<std::string> inputs = {request.model.string()};
  for (const std::filesystem::path& path : request.from) inputs.push_back(path.string());
  check_output("out", request.out, Writes::model, inputs);
  AdaptResult result;
  result.prior = request.model.empty() ? shipped_model() : request.model;
  result.seed = request.seed;
  result.out = request.out;
  std::optional<datasets::Dataset> given;
  if (!request.from.empty()) {
    given = given_to(request);
    request.platform.name = given->platform;
    request.platform.yaml = given->platform_yaml;
    request.platform.target = given->target;
  }
  result.platform = request.platform.name;
  result.source = given ? given->source : request.platform.device->source();

  meta::ModelFile prior = meta::load_model(result.prior);
  datasets::refuse_emulated(result.platform, result.source);
  prior.model = model_on(prior, request.platform, monitor);
  Support support;
  if (given) {
    support = given_support(*given, *prior.encoding, request.threads, monitor);
  } else {
    result.shots = std::min(request.shots, most_shots);
    result.folder = folder_of(request);
    const tasks::MeasureSettings measure = request.timing.settings(0, request.threads);
    std::vector<codegen::Space> spaces;
    for (const codegen::Workload& workload : request.workloads) {
      tasks::require_memory(workload, request.platform.device->place(), measure);
      spaces.push_back(codegen::derive_space(workload, request.platform.target));
    }
    const auto measurer = tasks::make_measurer(request.platform, measure);
    const Request identity = identity_of(request, result.shots, model_identity(prior, result.prior, result.folder));
    search::RunDirectory run(result.folder, identity.document(), context_of(request.command_line),
                             request.platform.yaml);
    support = measured_support(request, result.shots, prior, spaces, *measurer, run, monitor);
  }
  const std::vector<meta::Examples>& supports = support.of_workloads;
  result.measurements = support.trials;
  note_single_programs(supports, monitor);
  result.model = prior.model->adapted(supports);

  const std::vector<std::vector<float>> places = cross_validated(*prior.model, supports, request.seed, monitor);
  base::check_stop(monitor);
  judge(*prior.model, supports, places, result);
  save(request, result, prior, support);
  return result;
}

base::Document to_document(const AdaptResult& result) {
  const auto quality = [](const std::optional<base::Interval>& value) {
    return value && std::isfinite(value->mean) ? base::to_document(*value) : base::Document();
  };
  base::Document rows = base::Document::list();
  for (const AdaptResult::Row& row : result.rows) {
    base::Document entry = base::Document::map();
    rows.push(entry.set("workload", row.workload)
                  .set("programs", row.programs)
                  .set("zero_shot", quality(row.zero_shot))
                  .set("cross_validated", quality(row.cross_validated)));
  }
  base::Document out = base::Document::map();
  return out.set("model", result.prior.string())
      .set("platform", result.platform)
      .set("source", result.source)
      .set("shots", result.shots > 0 ? base::Document(result.shots) : base::Document())
      .set("measurements", result.measurements)
      .set("seed", std::int64_t(result.seed))
      .set("rows", std::move(rows))
      .set("gain", result.gain ? base::to_document(result.gain->gain) : base::Document())
      .set("verdict", verdict_of(result))
      .set("out", result.out.string())
      .set("run", result.folder.empty() ? base::Document() : base::Document(result.folder.string()));
}

}  // namespace graft::study
