#include "meta/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/common.h"

namespace graft::cli {
namespace {

struct Flags {
  std::vector<std::string> datasets,
      methods{"zero-shot", "scratch", "nearest", "finetune", "ridge", "residual", "maml", "reptile"},
      shots{"0", "5", "10", "20", "32", "64"}, train_workloads, judge_workloads, targets{"all"}, sources;
  std::string regime = "seen", out, support = "random";
  std::int64_t draws = 20, judge_last = 0;
  NetworkFlags network;
};

base::Document interval(const base::Interval& value) {
  base::Document out = base::Document::map();
  return out.set("mean", value.mean).set("low", value.low).set("high", value.high);
}

base::Document row_document(const meta::EvaluationRow& row, const std::string& source) {
  base::Document out = base::Document::map();
  return out.set("target", row.target)
      .set("source", source)
      .set("method", row.method)
      .set("shots", row.shots)
      .set("measurements", row.measurements)
      .set("draws", row.draws)
      .set("spearman", interval(row.spearman))
      .set("top1", interval(row.top1))
      .set("top5", interval(row.top5))
      .set("spearman_best30", row.spearman_best30)
      .set("spearman_middle80", row.spearman_middle80);
}

// What decides every number: results of an equal request are taken over from --out when the command is run again.
base::Document request_of(const Flags& flags, const Session& session) {
  base::Document files = base::Document::list();
  for (const std::string& file : flags.datasets) files.push(file_hash(file));
  const auto words = [](const std::vector<std::string>& values) { return base::join(values, ","); };
  base::Document request = base::Document::map();
  request.set("command", "evaluate")
      .set("datasets", std::move(files))
      .set("methods", words(flags.methods))
      .set("shots", words(flags.shots))
      .set("draws", flags.draws)
      .set("regime", flags.regime)
      .set("train_workloads", words(flags.train_workloads))
      .set("judge_workloads", words(flags.judge_workloads))
      .set("seed", std::int64_t(session.seed));
  if (!flags.sources.empty()) request.set("sources", words(flags.sources));
  if (flags.support != "random") request.set("support", flags.support);
  if (flags.judge_last > 0) request.set("judge_last", flags.judge_last);
  flags.network.put(request);
  return request;
}

// Rows of an earlier, interrupted run of the same request, by target.
base::Document::List known_rows(const std::string& out, const base::Document& request) {
  if (out.empty() || !std::filesystem::exists(out)) return {};
  try {
    const base::Document earlier = base::parse_json(base::read_file(out), out);
    const base::Document* asked = earlier.find("request");
    if (asked == nullptr || asked->to_json() != request.to_json()) return {};
    return earlier.at("rows").as_list();
  } catch (const base::UserError&) {
    return {};  // some other file: it is replaced
  }
}

struct Metric {
  const char* key;
  const char* title;
};
constexpr Metric kMetrics[] = {{"spearman", "Spearman (1 is a perfect ranking)"},
                               {"top1", "top-1 (best time / time of the program predicted fastest; 1 is perfect)"},
                               {"top5", "top-5 (best time / best time among the 5 predicted fastest)"}};

const base::Document* row_of(const base::Document::List& rows, const std::string& target, const std::string& method,
                             std::int64_t shots) {
  for (const base::Document& row : rows) {
    if (row.at("target").as_string() == target && row.at("method").as_string() == method &&
        row.at("shots").as_integer() == shots)
      return &row;
  }
  return nullptr;
}

double mean_of(const base::Document& row, const char* metric) {
  const base::Document& value = row.at(metric).at("mean");
  return value.is_null() ? -2 : value.as_number();
}

// Method with the best mean at this number of shots.
std::string winner(const base::Document::List& rows, const std::string& target, const Flags& flags, std::int64_t shots,
                   const char* metric) {
  std::string best;
  double most = -3;
  for (const std::string& method : flags.methods) {
    const base::Document* row = row_of(rows, target, method, shots);
    if (row == nullptr || mean_of(*row, metric) <= most) continue;
    most = mean_of(*row, metric);
    best = method;
  }
  return best;
}

void print_target(const std::string& target, const std::string& source, const base::Document::List& rows,
                  const Flags& flags, const std::vector<std::int64_t>& shots, Output& out) {
  out.line(fmt::format("\n{} ({}), {}; {} draws, 95 % intervals", target, source,
                       flags.regime == "in-domain"
                           ? std::string("trained on it alone")
                           : fmt::format("trained on the other platforms, {} workloads", flags.regime),
                       flags.draws));
  std::vector<std::string> totals;
  for (const std::int64_t k : shots) {
    std::int64_t most = 0;
    for (const base::Document& row : rows) {
      if (row.at("target").as_string() == target && row.at("shots").as_integer() == k)
        most = std::max(most, row.at("measurements").as_integer());
    }
    totals.push_back(fmt::format("{} at {} shots", most, k));
  }
  out.line("target measurements in all: " + base::join(totals, ", "));
  for (const Metric& metric : kMetrics) {
    std::vector<std::string> head{"method"};
    for (const std::int64_t k : shots) head.push_back(fmt::format("{} shots", k));
    Table table(head);
    for (const std::string& method : flags.methods) {
      std::vector<std::string> cells{method};
      for (const std::int64_t k : shots) {
        const base::Document* row = row_of(rows, target, method, k);
        if (row == nullptr) {
          cells.push_back("-");
          continue;
        }
        const base::Document& value = row->at(metric.key);
        const double mean = mean_of(*row, metric.key);
        const double half =
            value.at("low").is_null() ? 0 : (value.at("high").as_number() - value.at("low").as_number()) / 2;
        cells.push_back(fmt::format("{} ±{:.3f}", number_text(mean), half));
      }
      table.row(std::move(cells));
    }
    out.line(fmt::format("\n{}", metric.title));
    out.table(table);
  }
  Table best({"winner by", "shots", "method"});
  for (const char* metric : {"spearman", "top1"}) {
    for (const std::int64_t k : shots) best.row({metric, std::to_string(k), winner(rows, target, flags, k, metric)});
  }
  out.line("");
  out.table(best);
}

meta::Regime regime_of(const Flags& flags) {
  if (flags.regime == "seen") return meta::Regime::seen;
  if (flags.regime == "unseen") return meta::Regime::unseen;
  if (flags.regime == "in-domain") return meta::Regime::in_domain;
  throw base::UserError("--regime", fmt::format("expected seen, unseen or in-domain, got '{}'", flags.regime));
}

int evaluate(Flags flags, Session& session) {
  if (!flags.out.empty()) check_output_folder(flags.out);
  meta::EvaluationSettings settings;
  settings.methods = flags.methods;
  for (const std::string& method : flags.methods) meta::method_named(method);
  const std::vector<std::int64_t> shots = integers_of("--shots", flags.shots, 0);
  for (const std::int64_t k : shots) settings.shots.push_back(int(std::min<std::int64_t>(k, 1 << 30)));
  settings.draws = int(flags.draws);
  settings.regime = regime_of(flags);
  const bool in_domain = settings.regime == meta::Regime::in_domain;
  if (in_domain && (flags.judge_last > 0 || !flags.sources.empty()))
    throw base::UserError("--judge-last, --sources", "not with --regime in-domain");
  if (!in_domain && !(flags.train_workloads.empty() && flags.judge_workloads.empty()))
    throw base::UserError("--train-workloads, --judge-workloads", "only with --regime in-domain");
  for (const codegen::Workload& workload : workloads_of(flags.train_workloads))
    settings.train_workloads.push_back(workload.text);
  for (const codegen::Workload& workload : workloads_of(flags.judge_workloads))
    settings.judge_workloads.push_back(workload.text);
  settings.learner = flags.network.settings(session);
  settings.sources = flags.sources;
  settings.judge_last = flags.judge_last;
  settings.support = meta::support_choice_named(flags.support);

  flags.network.used_encoding();  // refuses one that does not fit before anything is read
  const std::vector<datasets::Dataset> data = read_datasets(flags.datasets);
  flags.network.fit(data);
  const meta::TaskSet tasks = meta::make_task_set(data, flags.network.used_encoding(), session.threads);
  note_left_out(tasks, session.progress);
  const std::vector<std::string> platforms = meta::platforms(tasks);
  if (platforms.size() < 2 && !in_domain) {
    throw base::UserError(
        base::join(flags.datasets, ", "),
        fmt::format("only platform {}; training needs datasets of at least one other platform", platforms[0]));
  }
  std::vector<std::string> targets = platforms;
  if (flags.targets != std::vector<std::string>{"all"}) targets = flags.targets;
  meta::only_platforms(tasks, targets);  // refuses unknown ones
  meta::only_platforms(tasks, flags.sources);

  const base::Document request = request_of(flags, session);
  const base::Document::List earlier = known_rows(flags.out, request);
  base::Document::List rows;
  base::Document& json = session.output.json();
  json.set("request", request).set("context", context_of(session));
  const auto save = [&](bool complete) {
    json.set("rows", base::Document(rows)).set("complete", complete);
    if (!flags.out.empty()) base::replace_file(flags.out, json.to_pretty_json() + "\n");
  };
  for (const std::string& target : targets) {
    base::Document::List own;
    for (const base::Document& row : earlier) {
      if (row.at("target").as_string() == target) own.push_back(row);
    }
    if (own.size() != flags.methods.size() * shots.size()) {
      own.clear();
      const auto table = in_domain ? meta::evaluate_in_domain(tasks, target, settings, session.progress)
                                   : meta::evaluate(tasks, target, settings, session.progress);
      for (const meta::EvaluationRow& row : table) {
        own.push_back(row_document(row, tasks.sources.at(target)));
      }
    }
    rows.insert(rows.end(), own.begin(), own.end());
    save(target == targets.back());
    print_target(target, tasks.sources.at(target), rows, flags, shots, session.output);
  }

  base::Document winners = base::Document::list();
  for (const std::string& target : targets) {
    for (const std::int64_t k : shots) {
      base::Document entry = base::Document::map();
      winners.push(entry.set("target", target)
                       .set("shots", k)
                       .set("by_spearman", winner(rows, target, flags, k, "spearman"))
                       .set("by_top1", winner(rows, target, flags, k, "top1")));
    }
  }
  json.set("winners", std::move(winners));
  save(true);
  return done;
}

std::string method_names() {
  std::vector<std::string> names;
  for (const meta::Method& method : meta::methods()) names.push_back(method.name);
  return base::join(names, " ");
}

}  // namespace

Command evaluate_command() {
  return {
      .name = "evaluate",
      .help = "leave-one-platform-out tables: methods, shots, metrics, with intervals",
      .examples = {"graft evaluate data/*.h5 --methods zero-shot,scratch,ridge,maml --shots 0,10,50 --draws 20",
                   "graft evaluate data/*.h5 --target model:sifive-p450 --out p450.json",
                   "graft evaluate v3.h5 --regime in-domain --methods gbt-zero-shot,zero-shot --shots 300 --loss rank"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<Flags>();
        options.positionals("DATA.h5", flags->datasets, "datasets of at least two platforms");
        options.list("target", flags->targets, "platforms to judge on, or all: each in turn");
        options.text("support", flags->support,
                     "how the support is chosen from 300 random programs a workload: random, kmeans, d_optimal (a "
                     "linear model's "
                     "uncertainty) or uncertain (a Gaussian process's)");
        options.list("sources", flags->sources, "platforms to train on; default: all but the target");
        options.integer(
            "judge-last", flags->judge_last, 0,
            "judge on the last so many programs of each workload, which no platform's training or support has "
            "seen; 0: on all that are no support");
        options.list("methods", flags->methods, method_names());
        options.list("shots", flags->shots, "support programs per workload");
        options.integer("draws", flags->draws, 1, "support draws, the same for all methods");
        options.text("regime", flags->regime,
                     "seen: support from the judged workloads; unseen: from others only; in-domain: no other platform, "
                     "trained on "
                     "--shots programs of each workload of the target and judged on the rest");
        options.list("train-workloads", flags->train_workloads, "in-domain: train on these only; default: all");
        options.list("judge-workloads", flags->judge_workloads, "in-domain: judge on these only; default: all");
        flags->network.declare(options);
        options.text("out", flags->out, "also save the JSON there; run again to continue");
        return [flags](Session& session) { return evaluate(*flags, session); };
      },
      .stops = true};
}

}  // namespace graft::cli
