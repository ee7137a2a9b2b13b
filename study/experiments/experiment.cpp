#include "study/experiments/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "codegen/expression/workload.h"
#include "study/experiments/settings.h"
#include "study/flows/evaluate.h"

namespace graft::study {
namespace {

std::int64_t integer_from(const base::Document& document, std::string_view key, std::int64_t otherwise,
                          std::int64_t least) {
  const std::int64_t value = integer_at(document, key, otherwise);
  if (value < least)
    throw base::UserError(document.at(key).place(), fmt::format("{}: expected at least {}", key, least));
  return value;
}

[[noreturn]] void refuse(const base::Document& at, const std::string& why) {
  throw base::UserError(at.place(), why);
}

// The document, with what `over` says in place of the same keys.
base::Document overlaid(const base::Document& document, const base::Document& over) {
  base::Document out = document;
  for (const auto& [key, value] : over.as_map()) out.set(key, value);
  return out;
}

struct Measure {
  std::string_view name;
  std::vector<Experiment::Kind> of;
};
const std::vector<Measure>& measures() {
  using enum Experiment::Kind;
  static const std::vector<Measure> table = {{"speed", {search, layers, peers}},
                                             {"least-speed", {search, layers, peers}},
                                             {"wins", {search, layers, peers}},
                                             {"sum", {layers, peers}},
                                             {"trials", {search, peers}},
                                             {"times-fewer", {search, peers}},
                                             {"score", {evaluate}},
                                             {"gain", {evaluate}},
                                             {"found", {evaluate}},
                                             {"found-gain", {evaluate}},
                                             {"least-found-gain", {evaluate}}};
  return table;
}

Claim claim_from(const base::Document& document, const Experiment& experiment) {
  document.only_keys({"text", "measure", "method", "other", "reach", "at", "other_at", "share", "metric", "only",
                      "weights", "at_least", "at_most"});
  Claim claim;
  claim.text = document.at("text").as_string();
  claim.measure = document.at("measure").as_string();
  std::vector<std::string> names;
  for (const Measure& each : measures()) names.emplace_back(each.name);
  const auto measure = std::find_if(measures().begin(), measures().end(),
                                    [&](const Measure& each) { return each.name == claim.measure; });
  if (measure == measures().end())
    refuse(document.at("measure"),
           fmt::format("unknown measure '{}'{}", claim.measure, base::did_you_mean(claim.measure, names)));
  if (std::find(measure->of.begin(), measure->of.end(), experiment.kind) == measure->of.end())
    refuse(document.at("measure"), fmt::format("'{}' is not a measure of experiments of this kind", claim.measure));
  const bool of_evaluations = experiment.kind == Experiment::Kind::evaluate;
  const bool of_searches = claim.measure.find("found") != std::string::npos;
  if (of_searches && !experiment.searches) refuse(document.at("measure"), "an evaluation without `search` has none");
  claim.method = document.at("method").as_string();
  if (claim.measure != "score" && claim.measure != "found") claim.other = document.at("other").as_string();
  claim.reach = text_at(document, "reach");
  if (!claim.reach.empty() && claim.measure != "trials" && claim.measure != "times-fewer")
    refuse(document.at("reach"), "only of trials and times-fewer");
  for (const std::string& name : {claim.method, claim.other, claim.reach}) {
    const std::vector<Experiment::Method>& methods = of_searches ? experiment.searches->methods : experiment.methods;
    const bool known =
        std::any_of(methods.begin(), methods.end(),
                    [&](const Experiment::Method& method) { return method.name == name; }) ||
        std::find(experiment.baselines.begin(), experiment.baselines.end(), name) != experiment.baselines.end();
    if (!name.empty() && !known) refuse(document, fmt::format("'{}' is not a method of this experiment", name));
  }
  claim.at = integer_from(document, "at", 0, 0);
  claim.other_at = integer_from(document, "other_at", of_evaluations ? claim.at : 0, 0);
  claim.share = number_at(document, "share", 1);
  if (!(claim.share > 0)) refuse(document, "share: expected more than 0");
  claim.metric = text_at(document, "metric", of_evaluations && !of_searches ? "spearman" : "");
  const bool are_names = of_evaluations || experiment.kind == Experiment::Kind::peers;
  const auto text_of = [&](const std::string& name) {
    const std::vector<std::string>& known = experiment.workloads;
    if (experiment.kind == Experiment::Kind::peers && std::find(known.begin(), known.end(), name) == known.end())
      refuse(document,
             fmt::format("'{}' is not a workload of this experiment{}", name, base::did_you_mean(name, known)));
    return are_names ? name : codegen::parse_workload(name).text();
  };
  for (const std::string& name : texts_at(document, "only")) claim.only.push_back(text_of(name));
  if (const base::Document* const weights = document.find("weights")) {
    for (const auto& [workload, weight] : weights->as_map()) claim.weights[text_of(workload)] = weight.as_number();
  }
  if (const base::Document* const bound = document.find("at_least")) claim.at_least = bound->as_number();
  if (const base::Document* const bound = document.find("at_most")) claim.at_most = bound->as_number();
  if (claim.at_least.has_value() == claim.at_most.has_value()) refuse(document, "expected one of at_least and at_most");
  return claim;
}

std::vector<std::int64_t> rising(std::vector<std::int64_t> counts) {
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// The methods that guide searches of an evaluation. One of the experiment's methods has its settings; another one's
// are said here.
Experiment::Searches searches_from(const base::Document& document, const Experiment& experiment) {
  document.only_keys({"seeds", "counts", "batch", "methods"});
  Experiment::Searches searches;
  searches.seeds = integer_from(document, "seeds", 1, 1);
  if (document.find("batch") != nullptr) searches.batch = integer_from(document, "batch", 1, 1);
  searches.counts = usual_search_counts();
  if (const base::Document* const counts = document.find("counts")) {
    searches.counts.clear();
    for (const base::Document& count : counts->as_list()) searches.counts.push_back(count.as_integer());
    searches.counts = rising(std::move(searches.counts));
    if (searches.counts.empty() || searches.counts.front() < 1) refuse(*counts, "expected numbers of trials");
  }
  const base::Document* const methods = document.find("methods");
  if (methods == nullptr) {
    searches.methods = experiment.methods;
    return searches;
  }
  for (const auto& [name, settings] : methods->as_map()) {
    const auto known = std::find_if(experiment.methods.begin(), experiment.methods.end(),
                                    [&, &name = name](const auto& method) { return method.name == name; });
    if (known != experiment.methods.end() && !settings.is_null())
      refuse(settings, fmt::format("'{}' is a method of the experiment, which says its settings", name));
    searches.methods.push_back(known != experiment.methods.end() ? *known : Experiment::Method{name, settings, 0});
  }
  if (searches.methods.empty()) refuse(*methods, "no method");
  return searches;
}

std::int64_t scaled(std::int64_t trials, double scale) {
  return std::max<std::int64_t>(1, std::llround(double(trials) * scale));
}

Experiment::Kind kind_from(const base::Document& name) {
  constexpr std::pair<std::string_view, Experiment::Kind> kinds[] = {{"search", Experiment::Kind::search},
                                                                     {"layers", Experiment::Kind::layers},
                                                                     {"peers", Experiment::Kind::peers},
                                                                     {"evaluate", Experiment::Kind::evaluate}};
  for (const auto& [known, kind] : kinds)
    if (known == name.as_string()) return kind;
  refuse(name, fmt::format("'{}' is neither search, layers, evaluate nor peers", name.as_string()));
}

// What a page shows of it.
void read_texts(const base::Document& document, Experiment& experiment) {
  experiment.id = document.at("id").as_string();
  experiment.title = document.at("title").as_string();
  experiment.question = document.at("question").as_string();
  experiment.published = text_at(document, "published");
  experiment.source = text_at(document, "source");
  experiment.protocol = text_at(document, "protocol");
}

// Platforms and workloads, or data, and what is compared on them.
void read_subjects(const base::Document& document, bool searches, double scale, Experiment& experiment) {
  if (searches) {
    experiment.platforms = texts_at(document, "platforms");
    experiment.workloads = texts_at(document, "workloads");
    if (experiment.platforms.empty() || experiment.workloads.empty())
      refuse(document, "a search needs platforms and workloads");
    experiment.baselines = texts_at(document, "baselines");
  } else {
    experiment.data = document.at("data").as_list();
    if (experiment.data.empty()) refuse(document.at("data"), "an evaluation needs data");
    if (const base::Document* const settings = document.find("evaluation")) experiment.evaluation = *settings;
  }
  if (const base::Document* const models = document.find("models")) {
    for (const auto& [name, settings] : models->as_map()) experiment.models.push_back({name, settings});
  }
  for (const auto& [name, settings] : document.at("methods").as_map()) {
    Experiment::Method method{name, settings, 0};
    if (searches) method.trials = scaled(settings.at("trials").as_integer(), scale);
    experiment.methods.push_back(std::move(method));
  }
  if (experiment.methods.empty()) refuse(document.at("methods"), "no method");
}

// The hash of all that decides the results.
std::string definition_of(const base::Document& document, bool searches, double scale) {
  base::Document decides = base::Document::map();
  std::vector<std::string_view> keys = {"kind",  "platforms", "workloads",  "models",    "methods", "seeds",
                                        "again", "data",      "evaluation", "baselines", "search"};
  if (!searches) keys.push_back("counts");  // of shots; for searches they choose the columns of tables
  for (const std::string_view key : keys) {
    if (const base::Document* const value = document.find(key)) decides.set(std::string(key), *value);
  }
  decides.set("scale", scale);
  return base::to_hex(base::hash_bytes(decides.to_json()));
}

}  // namespace

Experiment read_experiment(const std::filesystem::path& folder, bool quick) {
  const std::filesystem::path file = folder / "experiment.yaml";
  base::Document document = base::parse_yaml(base::read_file(file), file.string());
  document.only_keys({"id",        "title",      "question", "published", "source", "protocol", "kind",
                      "platforms", "workloads",  "models",   "methods",   "seeds",  "again",    "counts",
                      "data",      "evaluation", "search",   "baselines", "claims", "quick"});
  double scale = 1;
  if (quick && document.find("quick") != nullptr) {
    const base::Document small = document.at("quick");
    small.only_keys({"platforms", "workloads", "models", "methods", "seeds", "again", "counts", "data", "evaluation",
                     "search", "trials"});
    scale = number_at(small, "trials", 1);
    document = overlaid(document, small);
  }
  Experiment experiment;
  experiment.quick = quick;
  const std::filesystem::path plain = std::filesystem::absolute(folder).lexically_normal();
  experiment.name = (plain.has_filename() ? plain : plain.parent_path()).filename().string();
  read_texts(document, experiment);
  experiment.kind = kind_from(document.at("kind"));
  experiment.seeds = integer_from(document, "seeds", 1, 1);
  experiment.again = integer_from(document, "again", 0, 0);
  const bool searches = experiment.kind != Experiment::Kind::evaluate;
  read_subjects(document, searches, scale, experiment);
  for (const base::Document& count : document.at("counts").as_list())
    experiment.counts.push_back(searches ? scaled(count.as_integer(), scale) : count.as_integer());
  experiment.counts = rising(std::move(experiment.counts));
  if (experiment.counts.empty()) refuse(document.at("counts"), "no number");
  if (const base::Document* const search = document.find("search")) {
    if (searches) refuse(*search, "only of an evaluation");
    experiment.searches = searches_from(*search, experiment);
  }
  for (const base::Document& claim : document.at("claims").as_list()) {
    experiment.claims.push_back(claim_from(claim, experiment));
    Claim& made = experiment.claims.back();
    if (searches && made.at > 0) made.at = scaled(made.at, scale);
    if (searches && made.other_at > 0) made.other_at = scaled(made.other_at, scale);
  }
  experiment.definition = definition_of(document, searches, scale);
  return experiment;
}

bool needs_others(const Experiment& experiment, const std::filesystem::path& others) {
  if (experiment.kind == Experiment::Kind::peers) return true;
  return others.empty() && std::any_of(experiment.data.begin(), experiment.data.end(), [](const base::Document& data) {
           return data.is_map() && data.find("import") != nullptr;
         });
}

std::vector<std::filesystem::path> experiments_in(const std::filesystem::path& folder) {
  std::vector<std::pair<std::pair<std::int64_t, std::string>, std::filesystem::path>> found;
  if (!std::filesystem::is_directory(folder))
    throw base::UserError(folder.string(), "does not exist; experiments are in a folder of graft's sources");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path file = entry.path() / "experiment.yaml";
    if (!std::filesystem::exists(file)) continue;
    const std::string id = base::parse_yaml(base::read_file(file), file.string()).at("id").as_string();
    const std::size_t digits = id.find_first_of("0123456789");
    const std::int64_t number = digits == std::string::npos ? 0 : std::atoll(id.c_str() + digits);
    found.push_back({{number, id}, entry.path()});  // E2, E10, E10b, E11
  }
  if (found.empty()) throw base::UserError(folder.string(), "no folder in it has an experiment.yaml");
  std::sort(found.begin(), found.end());
  std::vector<std::filesystem::path> paths;
  for (auto& [id, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::vector<std::filesystem::path> experiments_named(const std::string& name, const std::filesystem::path& folder) {
  const std::vector<std::filesystem::path> all = experiments_in(folder);
  if (name == "all") return all;
  std::vector<std::string> names;
  for (const std::filesystem::path& each : all) {
    const Experiment experiment = read_experiment(each);
    if (name == experiment.name || name == experiment.id) return {each};
    names.push_back(experiment.name);
  }
  throw base::UserError(name, fmt::format("no experiment in {}{}", folder.string(), base::did_you_mean(name, names)));
}

}  // namespace graft::study
