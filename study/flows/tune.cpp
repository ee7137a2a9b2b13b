#include "study/flows/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/deadline.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/shortened.h"
#include "base/text.h"
#include "codegen/machine/dot_products.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/recognise.h"
#include "codegen/schedule/rules.h"
#include "search/explorer.h"
#include "study/flows/kernel_answer.h"
#include "study/flows/rounds.h"
#include "study/flows/settings.h"
#include "study/flows/watched.h"
#include "study/inputs/field_error.h"
#include "study/knowledge/history.h"
#include "study/knowledge/library.h"
#include "study/knowledge/prior.h"
#include "tasks/expected.h"

namespace graft::study {
namespace {

constexpr double abort_factor = 3;

// Which settings go together: the table of settings does not say it.
void check(const TuneRequest& request) {
  check_settings(request);
  if (request.again && request.library.empty()) throw FieldError("again", "goes with `library`");
  const bool by_rule =
      request.space.file.empty() && request.space.intrinsics.empty() && request.space.layouts != codegen::Layouts::free;
  if (!request.library.empty() && !by_rule)
    throw base::UserError(request.library.string(),
                          "a library holds answers from the space by rule, with parameters "
                          "stored as the workload says; search another space without it");
}

// Nothing for the usual selection, so that runs of before it could be chosen continue.
void put(search::SelectionSettings selection, base::Document& request) {
  if (selection == search::SelectionSettings{}) return;
  base::Document out = base::Document::map();
  for (const Setting& setting : settings_of(selection)) out.set(setting.key, setting.value());
  request.set("selection", std::move(out));
}

std::string start_hash(const std::vector<codegen::Candidate>& candidates) {
  std::uint64_t start = 0;
  for (const codegen::Candidate& candidate : candidates) start = base::hash_combine(start, codegen::hash(candidate));
  return base::to_hex(start);
}

// The default is named for workload, platform and seed, and by a hash of all else that is not usual: the same workload
// searched in another way is another run.
std::filesystem::path folder_of(const TuneRequest& request) {
  if (!request.out.empty()) return request.out;
  TuneRequest usual;
  usual.seed = request.seed;
  std::string name = fmt::format("tune-{}-{}-s{}", short_name(request.workload.text()),
                                 short_name(request.platform.name), request.seed);
  if (const std::string hash = settings_hash(request); hash != settings_hash(usual)) name += "-" + hash.substr(0, 8);
  return std::filesystem::path("runs") / name;
}

// The same candidates for the same request, so all of this identifies the run; how many trials there are may grow.
Request identity_of(const TuneRequest& request, const Prior& prior, const History& history) {
  Request identity("tune");
  identity.set("workload", request.workload.text())
      .set("platform", request.platform.name)
      .set("source", request.platform.device->source())
      .set("platform_hash", platform_hash(request.platform))
      .set("model", prior.identity);
  put_settings(request, identity.fields());
  put(request.selection, identity.fields());
  if (!history.identity.empty()) identity.set("history", history.identity);
  if (!request.start.empty()) identity.set("start", start_hash(request.start));
  return identity;
}

// The start of a search is kept in its folder: the library may have new answers when it continues.
const char* const start_name = "start.json";
constexpr std::size_t most_near = 8;  // shapes of the library

// What a search begins with, and what its model and its library remember.
struct Start {
  std::vector<codegen::Candidate> first;
  Remembered remembered = {};
};

base::Document documents_of(const std::vector<codegen::Candidate>& candidates) {
  base::Document list = base::Document::list();
  for (const codegen::Candidate& candidate : candidates) list.push(to_document(candidate));
  return list;
}

// None where the key is missing: earlier versions wrote all as "start".
std::vector<codegen::Candidate> candidates_at(const base::Document& document, std::string_view key) {
  std::vector<codegen::Candidate> candidates;
  const base::Document* const list = document.find(key);
  if (list == nullptr) return candidates;
  for (const base::Document& each : list->as_list()) candidates.push_back(codegen::candidate_from(each));
  return candidates;
}

// `first`; what the model remembers of this shape, or else the best of the history; what the model and the library know
// of near shapes. A run that continues begins with what is kept in its folder.
Start start_of(const TuneRequest& request, std::vector<codegen::Candidate> first, const History& history,
               const Prior& prior, const search::RunDirectory& run, const codegen::Space& space,
               search::Programs& programs) {
  const std::filesystem::path file = run.path() / start_name;
  if (std::filesystem::exists(file)) {
    const base::Document document = base::parse_json(base::read_file(file), file.string());
    document.only_keys({"start", "known", "moved"});
    return {candidates_at(document, "start"), {candidates_at(document, "known"), candidates_at(document, "moved")}};
  }
  if (!run.journal().trials().empty()) return {};
  // A user's own space may leave out what the model remembers.
  Start start{std::move(first), request.space.file.empty() ? remembered(prior, space, programs) : Remembered()};
  auto& [known, moved] = start.remembered;
  // What was fast on another machine gives way to what the model knows of this one.
  if (known.empty()) {
    std::vector<codegen::Candidate> best;
    for (const codegen::Candidate& candidate : history.best) {
      if (base::Result<codegen::Candidate> found = in_space(candidate, space, programs))
        best.push_back(std::move(found).value());
    }
    moved.insert(moved.begin(), best.begin(), best.end());
  }
  if (!request.library.empty()) {
    for (const KnownAnswer& near :
         Library(request.library).near(request.workload, platform_hash(request.platform), most_near)) {
      if (base::Result<codegen::Candidate> found = in_space(near.candidate, space, programs))
        moved.push_back(std::move(found).value());
    }
  }
  if (!start.first.empty() || !known.empty() || !moved.empty()) {
    const base::Document document = base::Document::map()
                                        .set("start", documents_of(start.first))
                                        .set("known", documents_of(known))
                                        .set("moved", documents_of(moved));
    base::replace_file(file, document.to_pretty_json() + "\n");
  }
  return start;
}

// Whether constants come from memory when a program is timed.
bool is_cold(const TuneRequest& request) {
  return request.timing.constants_mb > 0;
}

base::Document best_document(const TuneResult& result) {
  if (!result.answer) return {};
  base::Document out = to_document(*result.answer);
  if (result.peak_gflops) out.set("peak_gflops", *result.peak_gflops);
  return out;
}

base::Document builds_document(const std::vector<search::Build>& builds) {
  base::Document out = base::Document::list();
  for (const search::Build& build : builds) {
    const datasets::Measurement& measurement = build.trial.measurement;
    base::Document entry = base::Document::map();
    entry.set("trial", build.trial.index).set("pipeline", build.pipeline);
    if (measurement.status == datasets::Status::ok) {
      entry.set("seconds", datasets::seconds_of(measurement));
    } else {
      entry.set("status", std::string(datasets::name_of(measurement.status)));
    }
    out.push(std::move(entry));
  }
  return out;
}

}  // namespace

KnownAnswer known_answer(const TuneResult& result, const TuneRequest& request) {
  KnownAnswer known = known_answer(*result.answer, platform_hash(request.platform), std::int64_t(result.trials.size()),
                                   request.command_line);
  known.platform = request.platform.name;
  known.cold = is_cold(request);
  return known;
}

std::string settings_hash(const TuneRequest& request) {
  Request settings("tune");
  put_settings(request, settings.fields());
  put(request.selection, settings.fields());
  for (const std::filesystem::path& run : request.history) settings.set("history " + run.string(), true);
  return settings.set("model", request.model).set("start", start_hash(request.start)).hash();
}

std::optional<TuneResult> known_result(const TuneRequest& request, base::Monitor& monitor) {
  check(request);
  if (request.library.empty() || request.again) return std::nullopt;
  const auto known = Library(request.library).find(request.workload, platform_hash(request.platform), is_cold(request));
  if (!known) return std::nullopt;
  if (!holds(*known, request.platform.target)) {
    monitor.note(fmt::format("{}: the answer of {} (graft {}) gives another program today; searched again",
                             request.library.string(), known->date, known->graft));
    return std::nullopt;
  }
  codegen::Candidate candidate = known->candidate;
  std::uint64_t program = known->program_hash;
  if (!(candidate.workload == request.workload)) {
    const codegen::Target& target = request.platform.target;
    const codegen::Space space = codegen::derive_space(request.workload, target, codegen::dot_products(target));
    const auto own = codegen::renamed(candidate, space, target);
    const auto made =
        own ? codegen::identified_program(*own, target) : base::Result<codegen::CandidateProgram>(own.reason());
    if (!made) return std::nullopt;  // of rules that were others
    candidate = *own;
    program = made->identity;
  }
  TuneResult result;
  result.workload = request.workload.text();
  result.platform = request.platform.name;
  result.source = known->source;
  result.seed = request.seed;
  result.answer =
      Answer{known->platform, known->source, 0, std::move(candidate), program, known->pipeline, known->measurement};
  result.peak_gflops = peak_gflops(request.platform, request.workload);
  result.curve = {{known->trials, result.answer->seconds()}};
  result.model = "none asked";
  result.known_since = known->date;
  result.complete = true;
  return result;
}

codegen::Candidate schedule_from(std::string_view text, const std::string& place, const codegen::Workload& workload) {
  if (base::trim(text).starts_with('{')) {
    const base::Document document = base::parse_json(text, place);
    const base::Document* const best = document.find("best");
    base::Document candidate = base::Document::map();
    candidate.set("workload", document.at("workload"));
    for (const char* const key : {"sketch", "arguments"})
      candidate.set(key, best == nullptr ? document.at(key) : best->at(key));
    return codegen::candidate_from(candidate);
  }
  codegen::Candidate candidate{
      workload,
      std::make_shared<const codegen::Sketch>(codegen::parse_sketch(fmt::format("sketch start\n{}", text), place)),
      {}};
  if (const auto steps = codegen::schedule(candidate); !steps)
    throw base::UserError(place, "no schedule: " + steps.reason().text);
  return candidate;
}

// In the order in which they refer to each other.
struct TuneSession::State {
  const base::Stopwatch since;
  TuneRequest request;
  tasks::MeasureSettings measure;
  codegen::Space space;
  History history;
  Prior prior;
  std::vector<codegen::Candidate> start;
  tasks::Measurer& measurer;  // may refuse the platform, before there is a folder
  search::RunDirectory run;
  SearchSession session;

  State(TuneRequest asked, SearchResources& resources, base::Monitor& monitor)
      : request(std::move(asked)),
        measure(settings_of_measuring(request)),
        space(checked_space(request, measure)),
        history(history_of(request.history, request.workload, lowers_on(request.platform.target))),
        prior(prior_of(
            {request.model, request.transfer, request.explorer, folder_of(request), request.seed, request.threads},
            request.platform, resources, monitor)),
        start(first_in_space()),
        measurer(resources.measurer(request.platform, measure)),
        run(folder_of(request), identity_of(request, prior, history).document(), context_of(request.command_line),
            request.platform.yaml),
        session(space, {request.platform, measurer, run, prior.model.get(), prior.encoding.get()}) {
    session.begin(settings(start_of(request, start, history, prior, run, space, session.programs())));
    session.tuning().remember(history.runs);
  }

 private:
  static tasks::MeasureSettings settings_of_measuring(const TuneRequest& request) {
    tasks::MeasureSettings settings = request.timing.settings(abort_factor, request.threads);
    settings.inputs = request.inputs;
    return settings;
  }
  // Programs that are built again in the end.
  std::int64_t rebuilt() const { return request.platform.device->is_this_host() ? request.rebuild : 0; }
  // UserError before there is a folder.
  static codegen::Space checked_space(const TuneRequest& request, const tasks::MeasureSettings& measure) {
    tasks::require_memory(request.workload, request.platform.device->place(), measure);
    codegen::Space space = space_of(request.space, request.workload, request.platform.target);
    // Refuses unknown or contradictory settings.
    search::make_explorer(request.explorer, space, request.seed, request.selection);
    return space;
  }
  // UserError before there is a folder.
  std::vector<codegen::Candidate> first_in_space() const {
    search::Programs programs(request.platform.target);
    return in_space(request.start, space, programs);
  }
  search::TuningSettings settings(Start begin) const {
    search::TuningSettings settings = settings_of_search(request);
    settings.start = std::move(begin.first);
    settings.known = std::move(begin.remembered.known);
    settings.moved = std::move(begin.remembered.moved);
    constexpr double least = 1e-3;  // 0 means none
    if (request.budget_seconds > 0) settings.budget_seconds = std::max(least, request.budget_seconds - since.seconds());
    settings.later_trials = double(rebuilt()) * trials_per_rebuilt;
    return settings;
  }
};

TuneSession::TuneSession(TuneRequest request, SearchResources& resources, base::Monitor& monitor)
    : state_((check(request), std::make_unique<State>(std::move(request), resources, monitor))) {}
TuneSession::~TuneSession() = default;
TuneSession::TuneSession(TuneSession&&) noexcept = default;
TuneSession& TuneSession::operator=(TuneSession&&) noexcept = default;

bool TuneSession::step(std::int64_t most_trials, base::Monitor& monitor) {
  state_->session.tuning().limit(std::min(state_->request.trials, trials() + most_trials));
  return state_->session.tuning().step(monitor);
}

bool TuneSession::run(base::Monitor& monitor) {
  // A run that has more trials than are asked for is answered with all of them.
  const std::int64_t trials = std::max(state_->request.trials, recorded());
  state_->session.tuning().limit(trials);
  return state_->session.run(trials, monitor);
}

double TuneSession::part_in_time() const {
  const search::Tuning& tuning = state_->session.tuning();
  const double takes = trials_per_rebuilt * tuning.seconds_per_trial();
  const double all = double(state_->request.rebuild);
  return takes > 0 ? std::clamp(std::floor(tuning.seconds_left() / takes) / all, 0.0, 1.0) : 1;
}

bool TuneSession::machine_changed(base::Monitor& monitor) {
  return state_->session.machine_changed(monitor);
}

std::int64_t TuneSession::recorded() const {
  return std::int64_t(state_->run.journal().trials().size());
}

std::int64_t TuneSession::trials() const {
  return std::int64_t(state_->session.tuning().trials().size());
}

double TuneSession::best_seconds() const {
  const auto best = state_->session.tuning().best();
  return best ? datasets::seconds_of(best->measurement) : std::numeric_limits<double>::infinity();
}

TuneResult TuneSession::finish(bool complete, base::Monitor& monitor, double part) {
  State& state = *state_;
  const TuneRequest& request = state.request;
  const tasks::Platform& platform = request.platform;
  TuneResult result;
  result.workload = request.workload.text();
  result.platform = platform.name;
  result.source = platform.device->source();
  result.seed = request.seed;
  result.model = state.prior.name;
  result.folder = state.run.path();
  result.complete = complete;
  // All that are recorded, as the answer is of all of them: several searches with one budget may ask for fewer.
  result.trials = state.run.journal().trials();
  result.curve = search::curve_of(result.trials);
  result.time = state.session.tuning().time_spent();

  const auto rebuild = std::int64_t(std::ceil(double(request.rebuild) * part));
  KernelAnswer made = kernel_answer(
      {request.workload, platform, result.complete ? rebuild : 0, result.complete, result.time.measured > 0}, state.run,
      state.measure, monitor);
  result.answer = std::move(made.answer);
  result.builds = std::move(made.builds);
  result.peak_gflops = made.peak_gflops;
  if (result.complete && !result.answer) {
    result.failure = state.session.tuning().best()
                         ? fmt::format("{}: what was fastest fails under qemu; see graft inspect {}", platform.name,
                                       result.folder.string())
                         : nothing_ok_text(result.trials, platform, result.folder);
  }
  keep(to_document(result), result.folder);
  if (result.complete && result.answer && !request.library.empty())
    Library(request.library).record(known_answer(result, request));
  return result;
}

namespace {

TuneResult searched(const TuneRequest& request, SearchResources& resources, base::Monitor& monitor) {
  TuneSession session(request, resources, monitor);
  note_continued(folder_of(request), session.recorded(), monitor);
  const bool complete = session.run(monitor);
  return session.finish(complete, monitor, session.part_in_time());
}

TuneResult watched(TuneRequest request, base::Monitor& monitor) {
  request.out = folder_of(request);
  const std::vector<std::filesystem::path> given = request.history;
  return searched_and_watched(
      {request.out, request.trials, request.watch},
      [&](const std::vector<std::filesystem::path>& before, std::int64_t trials) {
        request.history = given;
        request.history.insert(request.history.end(), before.begin(), before.end());
        request.trials = trials;
        // A measurer of its own: what was fastest on the other machine sets no limit here.
        struct SessionAndResources {
          SearchResources resources;
          TuneSession session;
          SessionAndResources(const TuneRequest& request, base::Monitor& monitor)
              : session(request, resources, monitor) {
            note_continued(request.out, session.recorded(), monitor);
          }
        };
        const auto own = std::make_shared<SessionAndResources>(request, monitor);
        return std::shared_ptr<TuneSession>(own, &own->session);
      },
      monitor);
}

}  // namespace

TuneResult tune(const TuneRequest& request, base::Monitor& monitor) {
  SearchResources own;
  return tune(request, own, monitor);
}

namespace {

bool is_byte(codegen::DType type) {
  return type == codegen::DType::i8 || type == codegen::DType::u8;
}

bool sums_products_of_bytes(const codegen::Computation& computation) {
  return std::any_of(computation.stages.begin(), computation.stages.end(), [&](const codegen::Stage& stage) {
    const auto reads_bytes = [&](const codegen::Access& access) {
      return is_byte(computation.tensors[std::size_t(access.tensor)].dtype);
    };
    return stage.combine == codegen::Combine::sum &&
           std::count_if(stage.value.loads.begin(), stage.value.loads.end(), reads_bytes) >= 2;
  });
}

}  // namespace

std::string why_bytes_are_slow(const codegen::Workload& workload, const codegen::Target& target) {
  if (!sums_products_of_bytes(workload.computation())) return "";
  for (const codegen::IntrinsicPointer& intrinsic : codegen::dot_products(target))
    for (const codegen::Tensor& tensor : intrinsic->computation.tensors)
      if (is_byte(tensor.dtype)) return "";
  return fmt::format(
      "{} has no instruction for dot products of bytes: their products are widened to 32 bits and added one by one, "
      "which "
      "is about as fast as f32, or slower",
      target.cpu.empty() ? target.triple : target.cpu);
}

TuneResult tune(const TuneRequest& request, SearchResources& resources, base::Monitor& monitor) {
  if (auto known = known_result(request, monitor)) return std::move(*known);
  if (const std::string note = why_bytes_are_slow(request.workload, request.platform.target); !note.empty())
    monitor.note(note);
  return request.watch > 0 ? watched(request, monitor) : searched(request, resources, monitor);
}

std::int64_t TuneResult::improvements() const {
  std::int64_t count = 0;
  double last = 0;
  for (const auto& [trial, seconds] : curve) {
    if (seconds != last) ++count;
    last = seconds;
  }
  return count;
}

search::TuningSettings settings_of_search(const TuneRequest& request) {
  search::TuningSettings settings = settings_of_explorer(request);
  settings.budget_seconds = request.budget_seconds;
  settings.stop_after = request.stop_after;
  return settings;
}

base::Document begun_document(const SearchResult& result, base::Document best) {
  base::Document points = base::Document::list();
  for (const auto& [trial, seconds] : result.curve) points.push(base::Document(base::Document::List{trial, seconds}));
  return base::Document::map()
      .set("workload", result.workload)
      .set("platform", result.platform)
      .set("source", result.source)
      .set("trials", result.trials.size())
      .set("seed", std::int64_t(result.seed))
      .set("best", std::move(best))
      .set("curve", std::move(points))
      .set("statuses", status_counts(result.trials));
}

void put_state(const SearchResult& result, base::Document& document) {
  document.set("complete", result.complete);
  if (result.known_since.empty()) {
    document.set("run", result.folder.string());
  } else {
    document.set("known_since", result.known_since);
  }
}

base::Document time_document(const search::TimeSpent& spent) {
  return base::Document::map()
      .set("seconds", spent.all())
      .set("measuring", spent.measuring)
      .set("proposing", spent.proposing)
      .set("learning", spent.learning)
      .set("measured", spent.measured);
}

void keep(const base::Document& result, const std::filesystem::path& folder) {
  base::Document kept = base::Document::map().set("schema", 1).set("kind", "tune");
  for (const auto& [key, value] : result.as_map()) kept.set(key, value);
  base::replace_file(folder / "best.json", kept.to_pretty_json() + "\n");
}

base::Document to_document(const TuneResult& result) {
  base::Document out = begun_document(result, best_document(result));
  base::Document time = time_document(result.time);
  if (result.time.measured > 0) time.set("trials_per_second", double(result.time.measured) / result.time.all());
  out.set("improvements", result.improvements())
      .set("time", std::move(time))
      .set("builds", builds_document(result.builds));
  put_state(result, out);
  if (result.answer && result.source == "modelled")
    out.set("modelled_seconds", result.answer->seconds()).set("check", result.answer->measurement.check);
  return out;
}

}  // namespace graft::study
