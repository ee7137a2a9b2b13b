#include "graft/graft.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <type_traits>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/files.h"
#include "base/monitor.h"
#include "base/numpy.h"
#include "base/team.h"
#include "base/text.h"
#include "codegen/expression/workload.h"
#include "study/flows/adapt.h"
#include "study/flows/ask_tell.h"
#include "study/flows/compile.h"
#include "study/flows/compile_network.h"
#include "study/flows/encode.h"
#include "study/flows/evaluate.h"
#include "study/flows/network_shapes.h"
#include "study/flows/predict.h"
#include "study/flows/settings.h"
#include "study/flows/train.h"
#include "study/flows/tune.h"
#include "study/flows/tune_own.h"
#include "study/inputs/data.h"
#include "study/inputs/field_error.h"
#include "study/inputs/request.h"
#include "study/knowledge/answer.h"
#include "study/knowledge/library.h"
#include "study/knowledge/prior.h"
#include "tasks/platform.h"

namespace graft {

struct Platform::Description {
  tasks::Platform platform;
  std::string source;
};

struct Answer::Program {
  tasks::Platform platform;
  study::Answer answer;
  std::filesystem::path run;  // absolute: the working directory may be another one later
};

namespace {

// What a caller sees of our three kinds of errors.
template <class Call>
auto translated(const Call& call) {
  try {
    return call();
  } catch (const base::Stopped& stopped) {
    throw Error(Error::Kind::stopped, stopped.what());
  } catch (const base::UserError& error) {
    throw Error(Error::Kind::mistake, error.what());
  } catch (const base::Failure& failure) {
    throw Error(Error::Kind::failure, failure.what());
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(Error::Kind::failure, error.what());
  }
}

class WatchMonitor final : public base::Monitor {
 public:
  explicit WatchMonitor(const Watch& watch) : watch_(watch) {}
  void progress(std::string_view what, std::int64_t done, std::int64_t total) override {
    if (watch_.progress) watch_.progress(what.substr(0, what.find('\t')), done, total);
  }
  void note(std::string_view line) override {
    if (watch_.note) watch_.note(line);
  }
  bool stop_requested() override { return watch_.stop && watch_.stop(); }

 private:
  const Watch& watch_;
};

std::vector<codegen::Candidate> candidates_of(const std::vector<std::string>& schedules,
                                              const codegen::Workload& workload) {
  std::vector<codegen::Candidate> candidates;
  for (const std::string& text : schedules)
    candidates.push_back(study::schedule_from(text, fmt::format("schedule {}", candidates.size() + 1), workload));
  return candidates;
}

// Refuses results of other workloads (study::schedule_from).
std::vector<codegen::Candidate> own_candidates_of(const std::vector<std::string>& schedules, const Workload& workload) {
  std::vector<codegen::Candidate> candidates = candidates_of(schedules, codegen::Workload(workload.text()));
  for (const codegen::Candidate& candidate : candidates) {
    if (candidate.workload.text() != workload.text())
      throw base::UserError(fmt::format("schedule {}", 1 + (&candidate - candidates.data())),
                            fmt::format("of another workload, {}", candidate.workload.text()));
  }
  return candidates;
}

void check_threads(int threads) {
  if (threads < 1) throw study::FieldError("threads", fmt::format("must be at least 1, got {}", threads));
}

base::Document document_of(const Value& value) {
  return std::visit(
      [](const auto& plain) -> base::Document {
        using Plain = std::decay_t<decltype(plain)>;
        if constexpr (std::is_same_v<Plain, std::vector<std::string>> ||
                      std::is_same_v<Plain, std::vector<std::int64_t>>) {
          base::Document list = base::Document::list();
          for (const auto& each : plain) list.push(each);
          return list;
        } else if constexpr (requires { typename Plain::mapped_type; }) {
          base::Document map = base::Document::map();
          for (const auto& [name, numbers] : plain) map.set(name, base::Document::List(numbers.begin(), numbers.end()));
          return map;
        } else {
          return plain;
        }
      },
      value);
}

Value usual_of(const study::Setting& setting) {
  using Shapes = decltype(NetworkSettings::shapes);
  using Numbers = decltype(NetworkSettings::constants);
  if (std::holds_alternative<Shapes*>(setting.place)) return Shapes();  // no map has another default
  if (std::holds_alternative<Numbers*>(setting.place)) return Numbers();
  const base::Document document = setting.usual_by_keyword();
  if (document.is_bool()) return document.as_bool();
  if (document.is_integer()) return document.as_integer();
  if (document.is_number()) return document.as_number();
  if (document.is_string()) return document.as_string();
  std::vector<std::string> words;
  std::vector<std::int64_t> numbers;
  for (const base::Document& each : document.as_list())
    each.is_string() ? words.push_back(each.as_string()) : numbers.push_back(each.as_integer());
  if (!numbers.empty()) return numbers;
  return words;
}

// Those of fields, and what is given by keyword, to the request.
void apply(Settings fields, const Settings& more, const study::Settings& settings) {
  for (const auto& [keyword, value] : more) fields[keyword] = value;
  std::vector<std::string> known;
  for (const study::Setting& setting : settings) {
    if (!setting.is(study::in_calls)) continue;
    known.push_back(setting.keyword_name());
    const auto given = fields.find(known.back());
    if (given == fields.end()) continue;
    setting.set_by_keyword(document_of(given->second));
    fields.erase(given);
  }
  if (!fields.empty())
    throw base::UserError(fields.begin()->first,
                          "no setting of this call" + base::did_you_mean(fields.begin()->first, known));
}

void add(const Timing& timing, Settings& fields) {
  fields["repetitions"] = timing.repetitions;
  fields["repetition_seconds"] = timing.repetition_seconds;
  fields["timeout_seconds"] = timing.timeout_seconds;
}

Settings common_fields(std::uint64_t seed, int threads) {
  return {{"seed", std::int64_t(seed)}, {"threads", std::int64_t(threads)}};
}

study::TuneRequest request_of(const Workload& workload, const Platform& platform, const TuneSettings& settings) {
  study::TuneRequest request;
  request.workload = codegen::Workload(workload.text());
  request.platform = platform.description().platform;
  request.model = settings.model.name();
  request.start = candidates_of(settings.start, request.workload);
  Settings fields = common_fields(settings.seed, settings.threads);
  fields["trials"] = settings.trials;
  fields["budget_seconds"] = settings.budget_seconds;
  fields["stop_after"] = settings.stop_after;
  fields["library"] = settings.library.string();
  fields["again"] = settings.again;
  fields["out"] = settings.out.string();
  add(settings.timing, fields);
  apply(std::move(fields), settings.more, study::settings_of(request));
  request.command_line = "libgraft";
  return request;
}

std::string schedule_text(const codegen::Candidate& candidate) {
  std::string text;
  for (const base::Document& step : study::schedule_document(candidate).as_list()) text += step.as_string() + "\n";
  return text;
}

Answer answer_from(study::TuneResult result, const tasks::Platform& platform) {
  study::Answer& best = *result.answer;
  Answer answer;
  answer.workload = result.workload;
  answer.platform = result.platform;
  answer.source = result.source;
  answer.schedule = schedule_text(best.candidate);
  answer.seconds = best.seconds();
  answer.gflops = best.gflops();
  answer.check = best.measurement.check;
  answer.trials = result.known_since.empty() ? std::int64_t(result.trials.size()) : result.curve.back().first;
  answer.complete = result.complete;
  answer.known_since = result.known_since;
  answer.run = result.folder;
  answer.curve = std::move(result.curve);
  const std::filesystem::path run = answer.run.empty() ? answer.run : std::filesystem::absolute(answer.run);
  answer.program = std::make_shared<const Answer::Program>(Answer::Program{platform, std::move(best), run});
  return answer;
}

}  // namespace

Error::Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
Error::~Error() = default;

std::string_view version() {
  return study::graft_version();
}

Workload::Workload(std::string_view text) : text_(translated([&] { return codegen::parse_workload(text).text(); })) {}

double Workload::flops() const {
  return translated([&] { return double(codegen::flops(codegen::Workload(text_))); });
}

namespace {

std::shared_ptr<const Platform::Description> described(tasks::Platform platform) {
  std::string source = platform.device->source();
  return std::make_shared<const Platform::Description>(Platform::Description{std::move(platform), std::move(source)});
}

}  // namespace

Platform::Platform(const std::string& id)
    : description_(translated([&] { return described(tasks::platform_named(id)); })) {}

Platform Platform::from_yaml(const std::string& yaml) {
  return Platform(translated([&] { return described(tasks::parse_platform(yaml, "platform")); }));
}

const std::string& Platform::name() const {
  return description_->platform.name;
}

const std::string& Platform::source() const {
  return description_->source;
}

const std::string& Platform::yaml() const {
  return description_->platform.yaml;
}

std::vector<SettingInfo> settings_of(const std::string& call) {
  return translated([&] {
    std::vector<SettingInfo> infos;
    for (const study::SettledCall& settled : study::settled_calls()) {
      if (settled.name != call) continue;
      for (const study::Setting& setting : settled.settings) {
        if (setting.is(study::in_calls))
          infos.push_back({setting.keyword_name(), usual_of(setting), setting.is_path(), setting.help});
      }
    }
    if (infos.empty()) throw base::UserError(call, "no call with settings");
    return infos;
  });
}

std::vector<std::string> platforms() {
  return translated([] { return tasks::platform_ids(); });
}

Model::Model(const std::string& name) : name_(name) {
  translated([&] { study::check_model(name); });
}

Answer tune(const Workload& workload, const Platform& platform, const TuneSettings& settings) {
  return translated([&] {
    const study::TuneRequest request = request_of(workload, platform, settings);
    WatchMonitor watch(settings.watch);
    base::SharedMonitor monitor(watch);
    study::TuneResult result = study::tune(request, monitor);
    if (!result.answer) {
      if (!result.complete) throw base::Stopped();
      throw base::Failure(result.failure);
    }
    return answer_from(std::move(result), request.platform);
  });
}

Answer answer_of(const std::filesystem::path& run) {
  return translated([&] {
    const std::filesystem::path file = run / "best.json";
    if (!std::filesystem::exists(file))
      throw base::UserError(run.string(), "no result of graft tune is in it; run the search again to its end");
    const base::Document document = base::parse_json(base::read_file(file), file.string());
    if (document.at("kind").as_string() != "tune") throw base::UserError(run.string(), "not a run of graft tune");
    const search::RunContent content = search::read_run(run);
    study::TuneResult result;
    result.workload = document.at("workload").as_string();
    result.answer = study::answer_of(content, codegen::Workload(result.workload));
    if (!result.answer) throw base::UserError(run.string(), "none of its programs is ok");
    result.platform = result.answer->platform;
    result.source = result.answer->source;
    result.trials = content.journal.trials;
    result.complete = document.at("complete").as_bool();
    result.folder = run;
    for (const base::Document& point : document.at("curve").as_list())
      result.curve.emplace_back(point.as_list().at(0).as_integer(), point.as_list().at(1).as_number());
    return answer_from(std::move(result), search::platform_of(content));
  });
}

std::string to_text(const Answer& answer) {
  return translated([&] {
    if (answer.program == nullptr) throw base::UserError("answer", "none that tune gave");
    base::Document curve = base::Document::list();
    for (const auto& [trials, seconds] : answer.curve)
      curve.push(base::Document(base::Document::List{trials, seconds}));
    const auto& [platform, best, run] = *answer.program;
    base::Document document = base::Document::map();
    document.set("workload", answer.workload)
        .set("platform", answer.platform)
        .set("source", answer.source)
        .set("schedule", answer.schedule)
        .set("seconds", answer.seconds)
        .set("gflops", answer.gflops)
        .set("check", answer.check)
        .set("trials", answer.trials)
        .set("complete", answer.complete)
        .set("known_since", answer.known_since)
        .set("run", answer.run.string())
        .set("folder", run.string())
        .set("curve", std::move(curve))
        .set("platform_description", platform.yaml);
    if (run.empty())
      document.set("known", study::to_document(study::KnownAnswer{best.platform, study::platform_hash(platform),
                                                                  best.source, best.candidate, best.program_hash,
                                                                  best.pipeline, best.measurement, answer.trials,
                                                                  answer.known_since, std::string(version()), ""}));
    return document.to_json();
  });
}

Answer answer_from(const std::string& text) {
  return translated([&] {
    const base::Document document = base::parse_json(text, "answer");
    Answer answer;
    answer.workload = document.at("workload").as_string();
    answer.platform = document.at("platform").as_string();
    answer.source = document.at("source").as_string();
    answer.schedule = document.at("schedule").as_string();
    answer.seconds = document.at("seconds").as_number();
    answer.gflops = document.at("gflops").as_number();
    answer.check = document.at("check").as_string();
    answer.trials = document.at("trials").as_integer();
    answer.complete = document.at("complete").as_bool();
    answer.known_since = document.at("known_since").as_string();
    answer.run = document.at("run").as_string();
    for (const base::Document& point : document.at("curve").as_list())
      answer.curve.emplace_back(point.as_list().at(0).as_integer(), point.as_list().at(1).as_number());
    Answer::Program program{tasks::parse_platform(document.at("platform_description").as_string(), "answer"),
                            {},
                            document.at("folder").as_string()};
    if (const base::Document* const known = document.find("known")) {
      study::KnownAnswer best = study::known_answer_from(*known);
      program.answer = {best.platform,
                        best.source,
                        0,
                        std::move(best.candidate),
                        best.program_hash,
                        best.pipeline,
                        std::move(best.measurement)};
    }
    answer.program = std::make_shared<const Answer::Program>(std::move(program));
    return answer;
  });
}

struct Search::State {
  codegen::Workload workload;
  std::mutex mutex;
  study::AskTellSession session;

  State(study::AskTellRequest request, base::Monitor& monitor)
      : workload(request.workload), session(std::move(request), monitor) {}
};

namespace {

Measured measured_from(const datasets::Trial& trial, std::string text) {
  const datasets::Measurement& measurement = trial.measurement;
  return {std::move(text),
          measurement.seconds.empty() ? std::numeric_limits<double>::quiet_NaN() : measurement.seconds.front(),
          std::string(datasets::name_of(measurement.status))};
}

Measured measured_from(const datasets::Trial& trial) {
  return measured_from(trial, schedule_text(trial.candidate));
}

datasets::Measurement measurement_of(const Measured& measured, const std::string& place) {
  const auto status = datasets::status_of(measured.status);
  if (!status) throw base::UserError(place, fmt::format("unknown status '{}'", measured.status));
  datasets::Measurement measurement;
  measurement.status = *status;
  if (*status == datasets::Status::ok || *status == datasets::Status::slower_than_limit)
    measurement.seconds = {measured.seconds};
  if (*status != datasets::Status::ok) measurement.reason = "told so";
  return measurement;
}

}  // namespace

Search::Search(const Workload& workload, const Platform& platform, const SearchSettings& settings)
    : state_(translated([&] {
        check_threads(settings.threads);
        study::AskTellRequest request;
        request.workload = codegen::Workload(workload.text());
        request.platform = platform.description().platform;
        request.model = settings.model.name();
        request.start = candidates_of(settings.start, request.workload);
        request.seed = settings.seed;
        request.threads = settings.threads;
        base::Monitor monitor;
        return std::make_unique<State>(std::move(request), monitor);
      })) {}
Search::~Search() = default;
Search::Search(Search&&) noexcept = default;
Search& Search::operator=(Search&&) noexcept = default;

namespace {

// What ask returns, by parts, between which it can be stopped.
template <class Ask, class TextOf>
std::vector<std::string> asked(std::int64_t count, const std::function<bool()>& stop, const Ask& ask,
                               const TextOf& text_of) {
  constexpr std::int64_t most = 100000, most_at_once = 1000;
  if (count < 1 || count > most)
    throw base::UserError("count", fmt::format("must be between 1 and {}, got {}", most, count));
  std::vector<std::string> texts;
  while (std::int64_t(texts.size()) < count && !(stop && stop())) {
    const std::int64_t part = std::min(count - std::int64_t(texts.size()), most_at_once);
    const std::vector<codegen::Candidate> candidates = ask(int(part));
    for (const codegen::Candidate& candidate : candidates) texts.push_back(text_of(candidate));
    if (std::int64_t(candidates.size()) < part) break;
  }
  return texts;
}

}  // namespace

std::vector<std::string> Search::ask(std::int64_t count, const std::function<bool()>& stop) {
  return translated([&] {
    const std::lock_guard lock(state_->mutex);
    return asked(
        count, stop, [&](int part) { return state_->session.ask(part); }, schedule_text);
  });
}

void Search::tell(const std::vector<Measured>& measured) {
  translated([&] {
    const std::lock_guard lock(state_->mutex);
    std::vector<study::AskTellSession::MeasuredCandidate> told;
    for (const Measured& each : measured) {
      const std::string place = fmt::format("schedule {}", told.size() + 1);
      told.push_back({study::schedule_from(each.schedule, place, state_->workload), measurement_of(each, place)});
    }
    state_->session.tell(told);
  });
}

std::vector<Measured> Search::trials() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Measured> all;
  for (const datasets::Trial& trial : state_->session.trials()) all.push_back(measured_from(trial));
  return all;
}

std::optional<Measured> Search::best() const {
  const std::lock_guard lock(state_->mutex);
  const std::optional<datasets::Trial> best = state_->session.best();
  return best ? std::optional(measured_from(*best)) : std::nullopt;
}

struct ConfigurationSearch::State {
  std::mutex mutex;
  study::OwnSearch search;

  State(const std::string& space, const study::OwnKnowledge& knowledge, base::Monitor& monitor)
      : search(space, "space", knowledge, monitor) {}

  std::string text(const codegen::Candidate& candidate) const {
    return search.space().to_document(candidate).to_json();
  }
  Measured measured(const datasets::Trial& trial) const { return measured_from(trial, text(trial.candidate)); }
};

ConfigurationSearch::ConfigurationSearch(const std::string& space, const ConfigurationSettings& settings)
    : state_(translated([&] {
        check_threads(settings.threads);
        study::OwnKnowledge knowledge;
        knowledge.from.assign(settings.from.begin(), settings.from.end());
        knowledge.model = settings.model;
        knowledge.seed = settings.seed;
        knowledge.threads = settings.threads;
        base::Monitor monitor;
        return std::make_unique<State>(space, knowledge, monitor);
      })) {}
ConfigurationSearch::~ConfigurationSearch() = default;
ConfigurationSearch::ConfigurationSearch(ConfigurationSearch&&) noexcept = default;
ConfigurationSearch& ConfigurationSearch::operator=(ConfigurationSearch&&) noexcept = default;

std::vector<std::string> ConfigurationSearch::ask(std::int64_t count, const std::function<bool()>& stop) {
  return translated([&] {
    const std::lock_guard lock(state_->mutex);
    const auto text_of = [&](const codegen::Candidate& candidate) { return state_->text(candidate); };
    return asked(
        count, stop, [&](int part) { return state_->search.ask(part); }, text_of);
  });
}

void ConfigurationSearch::tell(const std::vector<Measured>& measured) {
  translated([&] {
    const std::lock_guard lock(state_->mutex);
    std::vector<std::pair<codegen::Candidate, datasets::Measurement>> told;
    for (const Measured& each : measured) {
      const std::string place = fmt::format("configuration {}", told.size() + 1);
      const base::Result<codegen::Candidate> point =
          state_->search.space().point(base::parse_json(each.schedule, place));
      if (!point) throw base::UserError(place, point.reason().text);
      told.emplace_back(*point, measurement_of(each, place));
    }
    state_->search.tell(told);
  });
}

std::vector<Measured> ConfigurationSearch::trials() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Measured> all;
  for (const datasets::Trial& trial : state_->search.trials()) all.push_back(state_->measured(trial));
  return all;
}

std::optional<Measured> ConfigurationSearch::best() const {
  const std::lock_guard lock(state_->mutex);
  const std::optional<datasets::Trial> best = state_->search.best();
  return best ? std::optional(state_->measured(*best)) : std::nullopt;
}

std::vector<double> predict(const Model& model, const Workload& workload, const Platform& platform,
                            const std::vector<std::string>& schedules) {
  return translated([&] {
    base::Monitor monitor;
    const auto candidates = own_candidates_of(schedules, workload);
    const auto scores = study::predict({model.name(), platform.description().platform}, candidates, monitor);
    return std::vector<double>(scores.begin(), scores.end());
  });
}

std::vector<std::string> encodings() {
  return translated([] { return study::vector_encodings(); });
}

std::vector<std::string> feature_names(const std::string& encoding) {
  return translated([&] { return study::columns_of(encoding); });
}

std::vector<float> encode(const Workload& workload, const Platform& platform, const std::vector<std::string>& schedules,
                          const std::string& encoding, int threads) {
  return translated([&] {
    check_threads(threads);
    const auto candidates = own_candidates_of(schedules, workload);
    return study::encode({platform.description().platform, encoding, threads}, candidates).values;
  });
}

Dataset read_dataset(const std::filesystem::path& file) {
  return translated([&] {
    base::Monitor monitor;
    datasets::Dataset read = std::move(study::read_datasets({file.string()}, monitor).front());
    Dataset dataset;
    dataset.platform = read.platform;
    dataset.source = read.source;
    dataset.yaml = read.platform_yaml;
    for (const codegen::Workload& workload : read.workloads) dataset.workloads.push_back(workload.text());
    for (const auto& sketch : read.sketches) dataset.sketches.push_back(codegen::to_text(*sketch));
    for (datasets::Dataset::Row& row : read.rows) {
      std::string schedule = schedule_text(read.candidate(row));
      datasets::Measurement& measurement = row.measurement;
      const double seconds = datasets::seconds_of(measurement);
      dataset.rows.push_back({row.workload, row.sketch, std::move(row.arguments), std::move(schedule), row.program_hash,
                              std::string(datasets::name_of(measurement.status)), std::move(measurement.reason),
                              seconds, std::move(measurement.seconds)});
    }
    return dataset;
  });
}

namespace {

std::vector<std::string> texts_of(const std::vector<std::filesystem::path>& files) {
  if (files.empty()) throw base::UserError("datasets", "there is none");
  std::vector<std::string> texts;
  for (const std::filesystem::path& file : files) texts.push_back(file.string());
  return texts;
}

// An empty model leaves the choice to the call.
void add(const Learning& learning, Settings& fields) {
  std::vector<std::string> workloads;
  for (const Workload& workload : learning.workloads) workloads.push_back(workload.text());
  if (!learning.model.empty()) fields["model"] = learning.model;
  fields["encoding"] = learning.encoding;
  fields["steps"] = learning.steps;
  fields["workloads"] = std::move(workloads);
  fields["rows"] = learning.rows;
}

Evaluated evaluated_from(const study::EvaluationTable::Row& row) {
  const auto estimate = [&](study::Metric metric) {
    const base::Interval& interval = row.means[metric];
    return Evaluated::Estimate{interval.mean, interval.low, interval.high};
  };
  return {row.target,
          row.method,
          row.shots,
          row.draws,
          row.workloads,
          estimate(study::Metric::spearman),
          estimate(study::Metric::top1),
          estimate(study::Metric::top5)};
}

}  // namespace

Trained train(const std::vector<std::filesystem::path>& datasets, const std::filesystem::path& out,
              const TrainSettings& settings) {
  return translated([&] {
    study::TrainRequest request;
    request.data.files = texts_of(datasets);
    request.out = out;
    Settings fields = common_fields(settings.seed, settings.threads);
    fields["learner"] = settings.learner;
    fields["hold_out"] = settings.hold_out;
    fields["base"] = settings.base.string();
    add(settings.learning, fields);
    apply(std::move(fields), settings.more, study::settings_of(request));
    request.command_line = "libgraft";
    WatchMonitor watch(settings.watch);
    base::SharedMonitor monitor(watch);
    base::Team alone;
    study::TrainResult result = *study::train(request, alone, monitor);
    return Trained{Model(result.out.string()), std::move(result.learner), result.programs, std::move(result.platforms)};
  });
}

std::vector<Evaluated> evaluate(const std::vector<std::filesystem::path>& datasets, const EvaluateSettings& settings) {
  return translated([&] {
    study::EvaluateRequest request;
    request.data.files = texts_of(datasets);
    Settings fields = common_fields(settings.seed, settings.threads);
    fields["methods"] = settings.methods;
    fields["shots"] = settings.shots;
    fields["draws"] = settings.draws;
    fields["targets"] = settings.targets;
    fields["regime"] = settings.regime;
    fields["out"] = settings.out.string();
    add(settings.learning, fields);
    apply(std::move(fields), settings.more, study::settings_of(request));
    request.command_line = "libgraft";
    WatchMonitor watch(settings.watch);
    base::SharedMonitor monitor(watch);
    std::vector<Evaluated> rows;
    for (const study::EvaluationTable::Row& row : study::evaluate(request, monitor).rows)
      rows.push_back(evaluated_from(row));
    return rows;
  });
}

Adapted adapt(const Model& model, const Platform& platform, const std::vector<Workload>& workloads,
              const std::filesystem::path& out, const AdaptSettings& settings) {
  return translated([&] {
    study::AdaptRequest request;
    request.model = model.name();
    request.platform = platform.description().platform;
    for (const Workload& workload : workloads) request.workloads.emplace_back(workload.text());
    request.out = out;
    Settings fields = common_fields(settings.seed, settings.threads);
    fields["shots"] = settings.shots;
    fields["run"] = settings.run.string();
    add(settings.timing, fields);
    apply(std::move(fields), settings.more, study::settings_of(request));
    request.command_line = "libgraft";
    WatchMonitor watch(settings.watch);
    base::SharedMonitor monitor(watch);
    const study::AdaptResult result = study::adapt(request, monitor);
    Adapted adapted{Model(result.out.string()), {}};
    const auto mean = [](const std::optional<base::Interval>& interval) {
      return interval ? interval->mean : std::numeric_limits<double>::quiet_NaN();
    };
    for (const study::AdaptResult::Row& row : result.rows)
      adapted.workloads.push_back({row.workload, row.programs, mean(row.zero_shot), mean(row.cross_validated)});
    return adapted;
  });
}

namespace {

study::CompileFormat format_of(CompileSettings::Format format) {
  switch (format) {
    case CompileSettings::Format::library:
      return study::CompileFormat::library;
    case CompileSettings::Format::object:
      return study::CompileFormat::object;
    case CompileSettings::Format::bench:
      return study::CompileFormat::bench;
  }
  return study::CompileFormat::library;
}

}  // namespace

Compiled compile(const std::vector<Answer>& answers, const CompileSettings& settings) {
  return translated([&] {
    if (settings.variants < 1)
      throw base::UserError("variants", fmt::format("must be at least 1, got {}", settings.variants));
    study::CompileRequest request;
    for (const Answer& answer : answers) {
      if (answer.program == nullptr) throw base::UserError("compile", "an answer that tune did not give");
      if (answer.program->run.empty()) {
        request.known.push_back({answer.program->platform, answer.program->answer});
      } else {
        request.runs.push_back(answer.program->run);
      }
    }
    request.format = format_of(settings.format);
    request.name = settings.name;
    request.names = settings.names;
    request.exported = settings.exported;
    request.variants = settings.variants;
    if (!settings.constants.empty()) request.constants = base::read_npz(settings.constants);
    request.threads = settings.threads;
    WatchMonitor watch(settings.watch);
    base::SharedMonitor monitor(watch);
    study::Compiled made = study::compile(request, monitor);
    Compiled compiled;
    for (study::Compiled::Function& function : made.functions) {
      compiled.functions.push_back({std::move(function.name), function.workload.text(), function.variants.front().check,
                                    function.prepared_bytes, function.prepare_scratch_bytes, function.scratch_bytes});
    }
    compiled.files = std::move(made.files);
    compiled.executable = made.executable;
    return compiled;
  });
}

namespace {

TunedNetwork public_of(const study::TunedNetwork& tuned) {
  TunedNetwork out{tuned.folder, {}, tuned.seconds, tuned.complete};
  for (const study::NetworkKernel& kernel : tuned.kernels)
    out.kernels.push_back({kernel.label, kernel.workload.text(), kernel.calls,
                           kernel.seconds().value_or(std::numeric_limits<double>::quiet_NaN()), kernel.trials});
  return out;
}

}  // namespace

TunedNetwork tune_network(const std::filesystem::path& model, const Platform& platform,
                          const NetworkSettings& settings) {
  return translated([&] {
    study::NetworkRequest request;
    request.model = model;
    request.each.platform = platform.description().platform;
    request.each.model = settings.model.name();
    Settings fields = common_fields(settings.seed, settings.threads);
    fields["shapes"] = settings.shapes;
    fields["constants"] = settings.constants;
    fields["storage"] = settings.storage;
    fields["activations"] = settings.activations;
    fields["effort"] = settings.effort;
    fields["trials"] = settings.trials;
    fields["trials_by_kernel"] = settings.trials_by_kernel;
    fields["budget_seconds"] = settings.budget_seconds;
    fields["library"] = settings.library.string();
    fields["out"] = settings.out.string();
    add(settings.timing, fields);
    apply(std::move(fields), settings.more, study::settings_of(request));
    request.each.command_line = "libgraft";
    WatchMonitor watch(settings.watch);
    base::SharedMonitor monitor(watch);
    const study::ShapedNetworks tuned = study::tune_networks(request, monitor);
    if (!study::is_shaped(tuned.folder)) return public_of(tuned.parts.front().network);
    TunedNetwork out{tuned.folder, {}, 0, tuned.complete};
    std::vector<graph::Shapes> shapes;
    for (const study::ShapedNetworks::Part& part : tuned.parts) shapes.push_back(part.network.options.shapes);
    const study::Extents extents = study::extents_of(shapes);
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      out.shapes.push_back(public_of(tuned.parts[s].network));
      const TunedNetwork& one = out.shapes.back();
      out.shapes.back().shape = study::to_text(extents.names, extents.by_shape[s]);
      out.kernels.insert(out.kernels.end(), one.kernels.begin(), one.kernels.end());
      out.seconds += one.seconds;
    }
    return out;
  });
}

Compiled compile_network(const std::filesystem::path& folder, const CompileNetworkSettings& settings) {
  return translated([&] {
    study::CompileNetworkRequest request;
    request.folder = folder;
    request.format = format_of(settings.format);
    request.name = settings.name;
    request.weights_in_file = settings.weights_in_file;
    request.exported = settings.exported;
    WatchMonitor watch(settings.watch);
    base::SharedMonitor monitor(watch);
    study::CompiledNetwork made = study::compile_network(request, monitor);
    Compiled compiled;
    compiled.functions.push_back({made.name + "_run", "", made.check, 0, 0, made.arena_bytes});
    compiled.files = std::move(made.files);
    compiled.executable = made.executable;
    return compiled;
  });
}

void write(const Compiled& compiled, const std::filesystem::path& folder) {
  translated([&] { study::write_files(compiled.files, compiled.executable, folder); });
}

}  // namespace graft
