#include "study/flows/tune_own.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/team.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "datasets/formats/format.h"
#include "datasets/formats/parameter_spaces.h"
#include "search/ask_tell.h"
#include "search/explorer.h"
#include "study/flows/rounds.h"
#include "study/flows/search_session.h"
#include "study/flows/settings.h"
#include "study/flows/train.h"
#include "study/flows/watched.h"
#include "study/inputs/field_error.h"
#include "study/inputs/request.h"
#include "study/knowledge/history.h"
#include "study/knowledge/library.h"
#include "study/knowledge/measured.h"
#include "study/knowledge/prior.h"
#include "tasks/side_by_side.h"

namespace graft::study {
namespace {

namespace fs = std::filesystem;

constexpr double abort_factor = 3;
constexpr std::int64_t anova_points = 2048;
constexpr std::size_t most_bins = 16;
const char* const prior_name = "prior.h5";

tasks::Platform platform_named_by(const std::string& device) {
  tasks::Platform platform;
  platform.name = device.empty() ? "command" : fmt::format("command:{}", device);
  platform.device = tasks::command_device();
  return platform;
}

bool has_default(const codegen::ParameterSpace& space) {
  return std::all_of(space.parameters().begin(), space.parameters().end(),
                     [](const codegen::Tunable& parameter) { return parameter.standard.has_value(); });
}

// Rows with every value of every parameter, so that an encoding is made for all of them; nothing was measured.
datasets::Dataset values_of(const codegen::ParameterSpace& space, const tasks::Platform& platform) {
  datasets::Dataset out;
  out.platform = platform.name;
  out.source = tasks::command_source;
  const std::vector<codegen::Domain> domains = space.domains();
  std::size_t most = 0;
  for (const codegen::Domain& domain : domains) most = std::max(most, domain.values.size());
  // Words that each occur in one row alone would be taken for names of rows.
  for (std::size_t row = 0; row <= 2 * most; ++row) {
    datasets::Trial trial{std::int64_t(row), {space.workload(), space.sketch(), {}}, 0, {}};
    for (const codegen::Domain& domain : domains)
      trial.candidate.arguments.push_back(domain.values[row % domain.values.size()].front());
    trial.measurement.seconds = {1};
    out.add(trial);
  }
  return out;
}

std::string content_hash(const fs::path& path) {
  if (!fs::exists(path)) throw base::UserError(path.string(), "there is no such file or folder");
  if (!fs::is_directory(path)) return file_hash(path);
  std::uint64_t hash = 1;
  for (const datasets::Dataset& dataset : measured_in({path})) {
    for (const datasets::Dataset::Row& row : dataset.rows) {
      hash = base::hash_combine(hash, codegen::hash(dataset.candidate(row)));
      hash = base::hash_combine(hash, base::hash_bytes(datasets::to_document(row.measurement).to_json()));
    }
  }
  return base::to_hex(hash);
}

std::string identity_of(const std::vector<fs::path>& from) {
  std::uint64_t hash = from.size();
  for (const fs::path& path : from) hash = base::hash_combine(hash, base::hash_bytes(content_hash(path)));
  return base::to_hex(hash);
}

// "A100" of "caches/A100.json.gz".
std::string device_of(const fs::path& path) {
  std::string name = path.filename().string();
  return name.substr(0, name.find('.'));
}

// Datasets as files, in `folder`.
std::vector<std::string> as_datasets(const std::vector<fs::path>& from, const fs::path& folder,
                                     base::Monitor& monitor) {
  std::vector<std::string> files;
  const auto fresh = [&] { return (folder / fmt::format("{}.h5", files.size())).string(); };
  for (const fs::path& path : from) {
    if (fs::is_directory(path)) {
      for (const datasets::Dataset& dataset : measured_in({path})) {
        files.push_back(fresh());
        datasets::write_dataset(dataset, files.back());
      }
    } else if (path.extension() == ".json" || path.extension() == ".gz") {
      datasets::formats::ImportSettings settings;
      settings.files = {path};
      settings.platform = device_of(path);
      datasets::formats::Import import = datasets::formats::imported("kernel_tuner", std::move(settings), monitor);
      for (auto& [platform, dataset] : import.datasets()) {
        files.push_back(fresh());
        dataset.commit(files.back());
      }
    } else {
      files.push_back(path.string());
    }
  }
  return files;
}

// A model of what is known elsewhere, as a file in `folder`.
fs::path trained(const OwnKnowledge& knowledge, const fs::path& folder, base::Monitor& monitor) {
  TrainRequest request;
  request.data.files = as_datasets(knowledge.from, folder, monitor);
  request.seed = knowledge.seed;
  request.threads = knowledge.threads;
  request.out = folder / prior_name;
  base::Team alone;
  train(request, alone, monitor);
  return request.out;
}

// `kept`: the model of what is known elsewhere, from an earlier part of the run; "": it is trained, in `scratch`.
Prior prior_for(const codegen::ParameterSpace& space, const tasks::Platform& platform, const OwnKnowledge& knowledge,
                const std::string& explorer, const fs::path& run, const fs::path& kept, const fs::path& scratch,
                base::Monitor& monitor) {
  PriorRequest asked;
  asked.model = knowledge.model;
  asked.explorer = explorer;
  asked.run = run;
  asked.seed = knowledge.seed;
  asked.threads = knowledge.threads;
  if (!knowledge.from.empty()) {
    if (!knowledge.model.empty()) throw FieldError("model, from", "either of them is what the search begins with");
    asked.model = (kept.empty() ? trained(knowledge, scratch, monitor) : kept).string();
  }
  Prior prior = prior_of_tables(asked, platform, values_of(space, platform), monitor);
  if (!knowledge.from.empty()) {
    prior.identity = "from " + identity_of(knowledge.from);
    prior.name = fmt::format("learnt from {}", base::counted(knowledge.from.size(), "source"));
  }
  return prior;
}

std::string folder_name(const codegen::ParameterSpace& space, const OwnRequest& request) {
  return fmt::format("tune-{}-{}-s{}", short_name(space.workload().text()),
                     short_name(platform_named_by(request.device).name), request.search.seed);
}

// What belongs to schedules.
void check(const OwnRequest& request) {
  check_settings(request.search);
  const TuneRequest& search = request.search;
  const auto refuse = [](bool given, const char* field) {
    if (given) throw FieldError(field, "does not go with a command");
  };
  if (search.again && search.library.empty()) throw FieldError("again", "goes with `library`");
  refuse(!search.start.empty(), "start");
  SpaceSource space = search.space;
  for (const Setting& setting : settings_of(space)) refuse(!setting.is_usual(), setting.key.c_str());
}

// A folder is named for each device.
void check_folders(const std::vector<OwnRequest>& requests) {
  std::map<std::string, std::string> devices;
  for (const OwnRequest& request : requests) {
    const auto [other, is_new] = devices.emplace(short_name(request.device), request.device);
    if (!is_new)
      throw FieldError("device",
                       fmt::format("'{}' and '{}' would have the same folder '{}'; rename one of them",
                                   base::shortened(other->second), base::shortened(request.device), other->first));
  }
}

codegen::ParameterSpace read_space(const fs::path& file) {
  return datasets::formats::parse_parameter_space(base::read_file(file), file.string());
}

// Whoever thinks holds it; measuring takes place without it.
using Turn = std::unique_lock<std::mutex>;

// Gives the turn away while it measures.
class InTurns final : public tasks::Measurer {
 public:
  InTurns(std::unique_ptr<tasks::Measurer> inner, Turn& turn) : inner_(std::move(inner)), turn_(turn) {}
  void measure(std::span<const codegen::Candidate> candidates,
               const std::function<void(const tasks::Measured&)>& on_trial, base::Monitor& monitor) override {
    const TurnGiven given(turn_);
    inner_->measure(
        candidates,
        [&](const tasks::Measured& measured) {
          const std::lock_guard lock(turn_);
          on_trial(measured);
        },
        monitor);
  }

 private:
  struct TurnGiven {
    Turn& turn;
    explicit TurnGiven(Turn& of) : turn(of) { turn.unlock(); }
    ~TurnGiven() { turn.lock(); }
  };
  std::unique_ptr<tasks::Measurer> inner_;
  Turn& turn_;
};

std::unique_ptr<tasks::Measurer> measurer_of(const OwnRequest& request, const codegen::ParameterSpace& space,
                                             const tasks::MeasureSettings& settings, Turn* turn) {
  std::vector<std::unique_ptr<tasks::Measurer>> devices;
  for (const std::string& run : request.runs.empty() ? std::vector{request.command.run} : request.runs) {
    tasks::Command command = request.command;
    command.run = run;
    devices.push_back(tasks::command_device(command, &space)->measurer({}, settings, nullptr));
  }
  std::unique_ptr<tasks::Measurer> all = tasks::side_by_side(std::move(devices));
  return turn == nullptr ? std::move(all) : std::make_unique<InTurns>(std::move(all), *turn);
}

fs::path folder_of(const OwnRequest& request, const codegen::ParameterSpace& space) {
  return request.search.out.empty() ? fs::path("runs") / folder_name(space, request) : request.search.out;
}

// What is measured, and how: results of two such commands can be compared. Equal devices have a name in place of it.
void put_command(const OwnRequest& request, Request& identity) {
  tasks::Command command = request.command;
  const Settings settings = settings_of(command);
  if (request.runs.empty()) identity.set("run", command.run);
  // In the order of the answers that libraries hold.
  for (const char* const key : {"build", "time", "maximize", "minimize", "check", "also", "shell", "persistent"}) {
    const Setting& setting = *setting_of(settings, key);
    if (setting.is_usual()) continue;
    identity.set(key, setting.value().is_list() ? base::join(command.also, ", ") : setting.value());
  }
}

// What an answer in a library is for.
std::string command_hash(const OwnRequest& request, const codegen::ParameterSpace& space,
                         const tasks::Platform& platform) {
  search::Programs judge(platform.target);
  Request identity("tune");
  identity.set("platform", platform.name).set("space", base::to_hex(space.space(judge).hash()));
  put_command(request, identity);
  return base::to_hex(base::hash_bytes(identity.document().to_json()));
}

// In the order in which they refer to each other.
struct OwnSession {
  const OwnRequest& request;
  tasks::Platform platform;
  tasks::MeasureSettings measure;
  codegen::ParameterSpace parameters;
  History history;
  std::unique_ptr<tasks::Measurer> measurer;
  fs::path folder;
  search::Programs judge;
  codegen::Space space;
  base::TemporaryFolder scratch;
  Prior prior;
  search::RunDirectory run;
  SearchSession session;

  // `turn`: of several sessions that measure side by side; null: it is alone.
  OwnSession(const OwnRequest& asked, Turn* turn, base::Monitor& monitor)
      : request(asked),
        platform(platform_named_by(asked.device)),
        measure(asked.search.timing.settings(abort_factor, asked.search.threads)),
        parameters(read_space(asked.space)),
        history(history_of(asked.search.history, parameters.workload(),
                           [&](const codegen::Candidate& other) { return parameters.same_point(other); })),
        measurer(measurer_of(asked, parameters, measure, turn)),
        folder(folder_of(asked, parameters)),
        judge(platform.target),
        space(parameters.space(judge)),
        scratch("prior"),
        prior(prior_for(parameters, platform, {asked.from, asked.search.model, asked.search.seed, asked.search.threads},
                        checked_explorer(), folder, kept_prior(), scratch.path(), monitor)),
        run(folder, identity().document(), context_of(asked.search.command_line), ""),
        session(space, {platform, *measurer, run, prior.model.get(), prior.encoding.get()}) {
    const fs::path made = scratch / prior_name;
    if (fs::exists(made)) base::replace_file(folder / prior_name, base::read_file(made));
    session.begin(settings());
    note_continued(folder, recorded(), monitor);
    session.tuning().remember(history.runs);
  }

  std::int64_t recorded() const { return std::int64_t(run.journal().trials().size()); }
  bool step(std::int64_t, base::Monitor& monitor) { return session.tuning().step(monitor); }
  bool machine_changed(base::Monitor& monitor) { return session.machine_changed(monitor); }
  OwnResult finish(bool complete, base::Monitor& monitor);

 private:
  const std::string& checked_explorer() const {
    search::make_explorer(request.search.explorer, space, request.search.seed, request.search.selection);
    return request.search.explorer;
  }
  // Only where this run, or one with the same sources, has it.
  fs::path kept_prior() const {
    const fs::path file = folder / prior_name;
    if (request.from.empty() || !fs::exists(file)) return {};
    const std::optional<base::Document> known = search::recorded_request(folder);
    const base::Document* const model = known ? known->find("model") : nullptr;
    return model != nullptr && model->as_string() == "from " + identity_of(request.from) ? file : fs::path();
  }
  std::int64_t batch() const { return request.search.batch == TuneRequest().batch ? own_batch : request.search.batch; }
  Request identity() const {
    Request identity("tune");
    identity.set("workload", parameters.workload().text())
        .set("platform", platform.name)
        .set("source", tasks::command_source)
        .set("model", prior.identity)
        .set("space", base::to_hex(space.hash()));
    put_command(request, identity);
    if (!history.identity.empty()) identity.set("history", history.identity);
    put_settings(request.search, identity.fields());
    return identity.set("batch", batch());
  }
  search::TuningSettings settings() const {
    search::TuningSettings settings = settings_of_search(request.search);
    settings.batch = int(batch());
    if (has_default(parameters)) settings.start = {parameters.standard()};
    settings.moved = history.best;
    return settings;
  }
};

// The share of the variance of `values` that is between the groups; what groups as small as these show by chance is
// taken off.
double share_between(const std::vector<double>& values, const std::vector<std::size_t>& groups) {
  struct Sum {
    double values = 0, count = 0;
  };
  std::map<std::size_t, Sum> sums;
  double mean = 0, total = 0, between = 0;
  for (const double value : values) mean += value / double(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[groups[i]].values += values[i], sums[groups[i]].count += 1;
    total += (values[i] - mean) * (values[i] - mean);
  }
  if (!(total > 0) || sums.size() >= values.size()) return 0;
  for (const auto& [group, sum] : sums)
    between += sum.count * (sum.values / sum.count - mean) * (sum.values / sum.count - mean);
  const double within = (total - between) / double(values.size() - sums.size());
  return std::max(0.0, (between - double(sums.size() - 1) * within) / total);
}

std::vector<std::pair<std::string, double>> importance_of(OwnSession& own) {
  std::vector<std::pair<std::string, double>> out;
  if (own.prior.model == nullptr || own.prior.encoding == nullptr) return out;
  std::vector<meta::Examples> support = {own.session.tuning().examples()};
  if (support.front().size() < 2) return out;
  const std::unique_ptr<meta::CostModel> model = own.prior.model->adapted(support);
  if (!model->is_informed()) return out;
  std::vector<codegen::Candidate> points = own.space.listed();
  base::Stream stream(own.request.search.seed, "importance");
  if (std::int64_t(points.size()) > anova_points) {
    stream.shuffle(points);
    points.resize(std::size_t(anova_points));
  }
  if (points.empty()) {
    for (std::int64_t i = 0; i < anova_points; ++i) points.push_back(own.space.sample(stream, own.judge));
  }
  search::Scorer scorer(own.session.programs(), own.request.search.threads, {}, own.request.search.seed);
  scorer.use(model.get());
  const std::vector<float> scores = scorer.predictions(points);
  const std::vector<double> predicted(scores.begin(), scores.end());
  const std::vector<codegen::Domain> domains = own.parameters.domains();
  for (std::size_t p = 0; p < own.parameters.parameters().size(); ++p) {
    const codegen::Tunable& parameter = own.parameters.parameters()[p];
    if (parameter.values.size() < 2) continue;
    const std::size_t in_a_bin = (parameter.values.size() + most_bins - 1) / most_bins;
    std::vector<std::size_t> groups;
    std::map<std::int64_t, std::size_t> positions;
    for (std::size_t row = 0; row < domains[p].values.size(); ++row) positions[domains[p].values[row].front()] = row;
    for (const codegen::Candidate& point : points) groups.push_back(positions.at(point.arguments[p]) / in_a_bin);
    out.emplace_back(parameter.name, share_between(predicted, groups));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

OwnResult named_result(const OwnRequest& request, const codegen::ParameterSpace& space,
                       const tasks::Platform& platform) {
  OwnResult result;
  result.workload = space.workload().text();
  result.platform = platform.name;
  result.source = tasks::command_source;
  result.seed = request.search.seed;
  result.points = space.size();
  result.combinations = space.combinations();
  return result;
}

OwnResult::Best best_of(const OwnRequest& request, const codegen::ParameterSpace& space, std::int64_t trial,
                        const codegen::Candidate& point, const datasets::Measurement& measurement) {
  const double seconds = datasets::seconds_of(measurement);
  return {trial,
          seconds,
          space.to_document(point),
          tasks::command_line(request.command, space, point),
          measurement,
          tasks::goal_of(request.command, seconds)};
}

OwnResult result_of(OwnSession& own, bool complete) {
  const search::Tuning& tuning = own.session.tuning();
  OwnResult result = named_result(own.request, own.parameters, own.platform);
  result.trials = tuning.trials();
  result.curve = tuning.curve();
  result.time = tuning.time_spent();
  result.model = own.prior.name;
  result.folder = own.run.path();
  result.complete = complete;
  // Among all recorded trials: an earlier part of the run with more trials may have found a better one.
  const std::vector<datasets::Trial>& recorded = own.run.journal().trials();
  if (const auto best = search::best_trial(recorded, own.parameters.workload())) {
    result.best = best_of(own.request, own.parameters, best->index, best->candidate, best->measurement);
  }
  if (has_default(own.parameters)) {
    const std::uint64_t standard = codegen::hash(own.parameters.standard());
    for (const datasets::Trial& trial : recorded) {
      if (codegen::hash(trial.candidate) == standard && trial.measurement.status == datasets::Status::ok)
        result.standard_seconds = datasets::seconds_of(trial.measurement);
    }
  }
  if (complete) result.importance = importance_of(own);
  if (complete && !result.best)
    result.failure = no_configuration_ok_text(result.trials, own.platform.name, own.run.path());
  return result;
}

OwnResult OwnSession::finish(bool complete, base::Monitor&) {
  OwnResult result = result_of(*this, complete);
  keep(to_document(result), result.folder);
  if (complete && result.best && !request.search.library.empty()) {
    const std::optional<datasets::Trial> best = search::best_trial(run.journal().trials(), parameters.workload());
    Library(request.search.library)
        .record(known_answer({platform.name, tasks::command_source, best->index, best->candidate, best->program_hash,
                              "", best->measurement},
                             command_hash(request, parameters, platform), std::int64_t(result.trials.size()),
                             request.search.command_line));
  }
  return result;
}

// The library's answer, if it is a point of the space still.
std::optional<OwnResult> known_result(const OwnRequest& request, const codegen::ParameterSpace& space) {
  if (request.search.library.empty() || request.search.again) return std::nullopt;
  const tasks::Platform platform = platform_named_by(request.device);
  const std::optional<KnownAnswer> known =
      Library(request.search.library).find(space.workload(), command_hash(request, space, platform));
  const std::optional<codegen::Candidate> point = known ? space.same_point(known->candidate) : std::nullopt;
  if (!point) return std::nullopt;
  OwnResult result = named_result(request, space, platform);
  result.best = best_of(request, space, 0, *point, known->measurement);
  result.curve = {{known->trials, result.best->seconds}};
  result.model = "none asked";
  result.known_since = known->date;
  result.complete = true;
  return result;
}

OwnResult tuned(OwnRequest request, Turn* turn, base::Monitor& monitor) {
  check(request);
  const codegen::ParameterSpace space = read_space(request.space);
  if (std::optional<OwnResult> known = known_result(request, space)) return std::move(*known);
  if (request.search.watch == 0) {
    OwnSession own(request, turn, monitor);
    const bool complete = own.session.run(request.search.trials, monitor);
    return own.finish(complete, monitor);
  }
  request.search.out = folder_of(request, space);
  const std::vector<fs::path> given = request.search.history;
  return searched_and_watched(
      {request.search.out, request.search.trials, request.search.watch},
      [&](const std::vector<fs::path>& before, std::int64_t trials) {
        request.search.history = given;
        request.search.history.insert(request.search.history.end(), before.begin(), before.end());
        request.search.trials = trials;
        return std::make_unique<OwnSession>(request, turn, monitor);
      },
      monitor);
}

}  // namespace

OwnResult tune_own(const OwnRequest& request, base::Monitor& monitor) {
  return tuned(request, nullptr, monitor);
}

OwnResults tune_own_devices(std::vector<OwnRequest> requests, base::Monitor& monitor) {
  check_folders(requests);
  std::mutex mutex;
  base::SharedMonitor shared(monitor);
  OwnResults results;
  results.devices.resize(requests.size());
  std::vector<std::exception_ptr> faults(requests.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests.size() > 1 && !requests[i].search.out.empty())
      requests[i].search.out /= short_name(requests[i].device);
    threads.emplace_back([&, i] {
      Turn turn(mutex);
      try {
        results.devices[i] = tuned(requests[i], &turn, shared);
      } catch (...) {
        faults[i] = std::current_exception();
      }
    });
  }
  threads.clear();
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
  results.complete = std::all_of(results.devices.begin(), results.devices.end(),
                                 [](const OwnResult& device) { return device.complete; });
  for (const OwnResult& device : results.devices) {
    if (results.complete && results.failure.empty()) results.failure = device.failure;
  }
  return results;
}

base::Document to_document(const OwnResult& result) {
  base::Document importance = base::Document::list(), best;
  for (const auto& [parameter, share] : result.importance) {
    base::Document entry = base::Document::map();
    importance.push(entry.set("parameter", parameter).set("share", share));
  }
  if (result.best) {
    best = base::Document::map();
    best.set("seconds", result.best->seconds)
        .set("trial", result.best->trial)
        .set("configuration", result.best->configuration)
        .set("command", result.best->command)
        .set("measurement", datasets::to_document(result.best->measurement));
    if (const std::optional<tasks::Goal>& goal = result.best->goal) {
      base::Document document = base::Document::map();
      document.set("name", goal->name).set("value", goal->value).set("more_is_better", goal->more_is_better);
      if (!goal->unit.empty()) document.set("unit", goal->unit);
      best.set("goal", std::move(document));
    }
  }
  base::Document out = begun_document(result, std::move(best));
  out.set("combinations", result.combinations).set("importance", std::move(importance)).set("model", result.model);
  put_state(result, out);
  if (result.points) out.set("points", *result.points);
  if (result.standard_seconds) out.set("default_seconds", *result.standard_seconds);
  return out.set("time", time_document(result.time));
}

base::Document to_document(const OwnResults& results) {
  base::Document devices = base::Document::list();
  for (const OwnResult& device : results.devices) devices.push(to_document(device));
  return base::Document::map().set("devices", std::move(devices));
}

// In the order in which they refer to each other.
struct OwnSearch::State {
  tasks::Platform platform;
  codegen::ParameterSpace parameters;
  base::TemporaryFolder scratch;
  Prior prior;
  search::Programs programs;
  codegen::Space space;
  search::AskTell search;

  State(std::string_view text, const std::string& place, const OwnKnowledge& knowledge, base::Monitor& monitor)
      : platform(platform_named_by("")),
        parameters(datasets::formats::parse_parameter_space(text, place)),
        scratch("prior"),
        prior(prior_for(parameters, platform, knowledge, search::AskTellSettings().explorer, {}, {}, scratch.path(),
                        monitor)),
        programs(platform.target, prior.encoding.get()),
        space(parameters.space(programs)),
        search({space, programs, platform.name}, prior.model.get(), settings(knowledge)) {}

 private:
  search::AskTellSettings settings(const OwnKnowledge& knowledge) const {
    search::AskTellSettings settings;
    settings.seed = knowledge.seed;
    settings.threads = knowledge.threads;
    if (has_default(parameters)) settings.start = {parameters.standard()};
    return settings;
  }
};

OwnSearch::OwnSearch(std::string_view space, const std::string& place, const OwnKnowledge& knowledge,
                     base::Monitor& monitor)
    : state_(std::make_unique<State>(space, place, knowledge, monitor)) {}
OwnSearch::~OwnSearch() = default;

const codegen::ParameterSpace& OwnSearch::space() const {
  return state_->parameters;
}

std::vector<codegen::Candidate> OwnSearch::ask(int count) {
  return state_->search.ask(count);
}

void OwnSearch::tell(const std::vector<std::pair<codegen::Candidate, datasets::Measurement>>& measured) {
  std::vector<datasets::Trial> trials;
  for (const auto& [candidate, measurement] : measured) {
    if (const std::string why = datasets::contradiction(measurement); !why.empty())
      throw base::UserError(fmt::format("configuration {}", trials.size() + 1), why);
    const base::Result<std::uint64_t> identity = state_->programs.identity(candidate);
    trials.push_back({0, candidate, identity ? *identity : 0, measurement});
  }
  state_->search.tell(std::move(trials));
}

std::optional<datasets::Trial> OwnSearch::best() const {
  return state_->search.best();
}

const std::vector<datasets::Trial>& OwnSearch::trials() const {
  return state_->search.trials();
}

}  // namespace graft::study
