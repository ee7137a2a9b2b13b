#include "cli/report/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/memory.h"
#include "base/shortened.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/print/planned_network.h"
#include "cli/print/tuned_network.h"
#include "cli/report/html.h"
#include "cli/report/roofline.h"
#include "cli/texts.h"
#include "study/flows/user_function.h"
#include "study/knowledge/answer.h"

namespace graft::cli {
namespace {

// Kernels with a colour of their own; all others share the last one.
constexpr std::size_t coloured = series_colours - 1;

// A network with what its sections have in common.
struct Shown {
  explicit Shown(const ReportedNetwork& given)
      : reported(given),
        tuned(given.tuned),
        order(by_share(given.tuned)),
        roofs(roofs_of(given.tuned)),
        source(given.tuned.platform.device->source()),
        colours(given.tuned.kernels.size(), series_colours - 1) {
    for (std::size_t place = 0; place < std::min(coloured, order.size()); ++place) colours[order[place]] = int(place);
    if (given.bench) {
      for (const base::Document& row : given.bench->at("rows").as_list()) {
        measured = measured_roof(row);
        if (measured) break;
      }
    }
  }
  const study::NetworkKernel& kernel(std::size_t k) const { return tuned.kernels[k]; }
  double share(std::size_t k) const { return seconds_of(kernel(k)) / tuned.seconds; }
  std::string time(double seconds) const { return time_text(seconds, source); }

  const ReportedNetwork& reported;
  const study::TunedNetwork& tuned;
  std::vector<std::size_t> order;
  std::vector<std::optional<study::Roof>> roofs;
  std::optional<study::Roof> measured;  // by graft bench kernels
  std::string source;                   // of the times
  std::vector<int> colours;             // by kernel
};

std::string layer_of(const study::NetworkKernel& kernel) {
  return layer_name(kernel.label);
}

// The time of the kernels' first ok trials, over what was found; nothing if all was known.
std::optional<double> gain_of(const study::TunedNetwork& tuned) {
  double before = 0, after = 0;
  for (const study::NetworkKernel& kernel : tuned.kernels) {
    if (!kernel.answer || !kernel.first_seconds) continue;
    before += double(kernel.calls) * *kernel.first_seconds;
    after += seconds_of(kernel);
  }
  return after > 0 ? std::optional(before / after) : std::nullopt;
}

std::string facts(const Shown& shown) {
  const ReportedNetwork& reported = shown.reported;
  std::vector<std::pair<std::string, std::string>> facts;
  if (std::isfinite(shown.tuned.seconds)) facts.emplace_back("sum of all calls", shown.time(shown.tuned.seconds));
  if (reported.check) {
    if (const base::Document* const seconds = reported.check->find("seconds"))
      facts.emplace_back("one run of the whole", fmt::format("{} ({})", seconds_text(seconds->as_number()),
                                                             reported.check->at("where").as_string()));
  }
  std::int64_t trials = 0, known = 0;
  for (const study::NetworkKernel& kernel : shown.tuned.kernels) {
    trials += kernel.trials;
    known += kernel.answer && kernel.run.empty() ? 1 : 0;
  }
  facts.emplace_back("trials",
                     known > 0 ? fmt::format("{}; {} known before", trials, base::counted(std::size_t(known), "kernel"))
                               : std::to_string(trials));
  if (const auto gain = gain_of(shown.tuned))
    facts.emplace_back("gain", fmt::format("{:.2f}x over the first trials", *gain));
  if (reported.plan) {
    const PlannedNetwork planned = planned_network(*reported.plan, shown.tuned.file_nodes, shown.tuned.nodes);
    facts.emplace_back("made of", nodes_text(planned));
    facts.emplace_back("operations", count_text(planned.operations, "FLOP"));
    facts.emplace_back(
        "constants",
        base::bytes_text(planned.constant_bytes) + " in the model" +
            (reported.memory ? fmt::format(", {} prepared", base::bytes_text(reported.memory->weights_bytes)) : ""));
  }
  if (reported.memory)
    facts.emplace_back("arena",
                       fmt::format("{}; {} live at once at most", base::bytes_text(reported.memory->arena_bytes),
                                   base::bytes_text(reported.memory->peak_bytes)));
  return html_facts(facts);
}

// Calls in their order; without the plan, kernels in the order of their first calls.
std::string time_by_call(const Shown& shown) {
  const auto [unit, unit_name] = unit_of(shown.tuned.seconds);
  Bar bar{fmt::format("{}time, {}", kind_of_times(shown.source), unit_name), {}, {}};
  const auto add = [&, unit = unit](std::size_t k, double calls, const std::string& text, const std::string& label) {
    const std::optional<double> one = shown.kernel(k).seconds();
    if (!one) return;
    const double seconds = calls * *one;
    bar.parts.push_back(
        {seconds / unit, shown.colours[k], text,
         fmt::format("{}: {}, {} of all", label, seconds_text(seconds), share_text(seconds / shown.tuned.seconds))});
  };
  const bool by_call = shown.reported.plan.has_value();
  if (by_call) {
    const std::vector<graph::Plan::Call>& calls = shown.reported.plan->calls;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const std::size_t k = std::size_t(calls[c].kernel);
      add(k, 1, std::to_string(k), fmt::format("call {}, kernel {}, {}", c, k, base::shortened(calls[c].label)));
    }
  } else {
    for (std::size_t k = 0; k < shown.tuned.kernels.size(); ++k)
      add(k, double(shown.kernel(k).calls), std::to_string(k),
          fmt::format("kernel {}, {}", k, layer_of(shown.kernel(k))));
  }
  for (std::size_t place = 0; place < std::min(coloured, shown.order.size()); ++place) {
    const std::size_t k = shown.order[place];
    if (!shown.kernel(k).has_program()) continue;
    bar.legend.emplace_back(fmt::format("{}: {}, {}", k, layer_of(shown.kernel(k)), share_text(shown.share(k))),
                            int(place));
  }
  if (shown.order.size() > coloured)
    bar.legend.emplace_back(base::counted(shown.order.size() - coloured, "more kernel"), series_colours - 1);
  return "<h3>Where the time goes</h3>\n" +
         figure(bar, std::string(by_call ? "The calls in their order" : "The kernels, all calls of each together") +
                         "; a part's number and colour are its kernel's, and its tooltip names the layer.");
}

std::string roofline(const Shown& shown, Figures& figures) {
  std::optional<study::Roof> roof = shown.measured;
  for (const std::optional<study::Roof>& own : shown.roofs)
    if (own) roof = own;
  std::vector<Series> series;
  std::vector<double> intensities;
  std::size_t without = 0, saving = 0;
  for (const std::size_t k : shown.order) {
    const study::NetworkKernel& kernel = shown.kernel(k);
    study::Work work = study::work_of(kernel.workload);
    if (!kernel.answer) continue;
    if (const auto fewer = study::fewer_operations(kernel.answer->candidate, shown.tuned.platform.target)) {
      work.operations = *fewer;
      ++saving;
    }
    if (!(work.operations > 0)) {
      ++without;
      continue;
    }
    const bool own_colour = shown.colours[k] < int(coloured);
    intensities.push_back(work.intensity());
    series.push_back({.name = fmt::format("{}: {}", k, layer_of(kernel)),
                      .colour = shown.colours[k],
                      .dots_only = !own_colour,
                      .points = {{.x = work.intensity(),
                                  .y = work.operations / datasets::seconds_of(kernel.answer->measurement) * 1e-9}}});
  }
  if (series.empty()) return "";
  Plot plot = roofline_plot(roof, intensities, shown.source);
  plot.series.insert(plot.series.end(), series.begin(), series.end());
  std::string caption = "Speed of each kernel over its operations per byte of operands, each moved once.";
  if (saving > 0)
    caption += fmt::format(" {} less arithmetic than by definition (winograd): what runs is shown.",
                           saving == 1 ? "One kernel needs" : fmt::format("{} kernels need", saving));
  if (roof)
    caption += " Above the roof are kernels whose operands stay in caches between runs.";
  else if (shown.tuned.platform.device->is_this_host())
    caption += " The roof of this machine is not known: graft bench kernels measures it (below).";
  if (without > 0) caption += fmt::format(" Not shown: {} without arithmetic.", base::counted(without, "kernel"));
  return "<h3>Position under the roofline</h3>\n" + figures.add("roofline", plot, caption);
}

std::string calls_table(const Shown& shown) {
  if (!shown.reported.plan) return "";
  const graph::Plan& plan = *shown.reported.plan;
  using Where = graph::Plan::Buffer::Where;
  Table table({"call", "kernel", "layer", "nodes", "result"});
  for (std::size_t c = 0; c < plan.calls.size(); ++c) {
    const graph::Plan::Call& call = plan.calls[c];
    std::vector<std::string> nodes;
    for (const std::string& layer : call.layers) nodes.push_back(base::shortened(layer));
    const graph::Plan::Buffer& result = plan.buffers[std::size_t(call.result)];
    const Where where = plan.buffers[graph::whole_of(plan, call.result)].where;
    table.row({std::to_string(c), std::to_string(call.kernel), base::shortened(call.label),
               nodes.empty() ? "a copy" : base::join(nodes, ", "),
               fmt::format("{}{} in the {}", codegen::name_of(result.type), graph::to_text(result.shape),
                           where == Where::output ? "output" : "arena")});
  }
  return "<h3>What is computed together</h3>\n<p>Nodes of one call are fused: what flows between them is not stored as "
         "a "
         "whole.</p>\n" +
         html_folded(base::counted(plan.calls.size(), "call"), html_table(table));
}

std::string kernel_details(const Shown& shown, std::size_t k) {
  const study::NetworkKernel& kernel = shown.kernel(k);
  const study::Work work = study::work_of(kernel.workload);
  std::vector<std::pair<std::string, std::string>> facts{
      {"workload", kernel.workload.text()},
      {"work of one call", fmt::format("{} over {} of operands", count_text(work.operations, "FLOP"),
                                       base::bytes_text(std::int64_t(work.bytes)))}};
  if (!kernel.failure.empty()) facts.emplace_back("no program", kernel.failure);
  if (kernel.foreign) facts.emplace_back("not tuned", study::origin_of(*kernel.foreign));
  std::string commands, schedule;
  if (kernel.answer) {
    facts.emplace_back("found", fmt::format("{} by graft {}, {} trials", kernel.answer->date, kernel.answer->graft,
                                            kernel.answer->trials));
    if (!kernel.answer->pipeline.empty()) facts.emplace_back("built by", kernel.answer->pipeline);
    std::vector<std::string> steps;
    for (const base::Document& step : study::schedule_document(kernel.answer->candidate).as_list())
      steps.push_back(step.as_string());
    schedule = html_listing("Schedule", steps.empty() ? "as defined" : base::join(steps, "\n"));
  }
  if (!kernel.run.empty()) {
    const std::string run = shell_word(kernel.run.string());
    commands = "<div class=\"wrap\">" +
               html_listing("Its own run", fmt::format("graft inspect {0} --program --assembly\ngraft report {0} --out "
                                                       "kernel-{1}.html\n",
                                                       run, k)) +
               "</div>\n";
  }
  const std::string time = kernel.has_program()
                               ? fmt::format("{} in {}, {}", shown.time(seconds_of(kernel)),
                                             base::counted(std::size_t(kernel.calls), "call"),
                                             std::isfinite(shown.tuned.seconds) ? share_text(shown.share(k)) : "-")
                               : "no program";
  return html_folded(fmt::format("{}: {}: {}", k, layer_of(kernel), time), html_facts(facts) + schedule + commands);
}

// As print(NetworkCheck) of cli/print/compiled_network.h says it.
std::string accuracy(const Shown& shown) {
  const base::Document* const results = shown.reported.check ? shown.reported.check->find("results") : nullptr;
  if (results == nullptr) return "";
  Table table({"output", "largest value", "largest error"});
  for (const base::Document& output : results->at("outputs").as_list())
    table.row({output.at("name").as_string(), fmt::format("{:.4g}", output.at("largest").as_number()),
               fmt::format("{:.2g}", output.at("largest_error").as_number())});
  return fmt::format(
             "<h3>Accuracy</h3>\n<p>{}, compared with double precision: {} elements of all calls. The worst call, {}, "
             "has "
             "{:.2g} of the error that rounding may make.</p>\n",
             results->at("right").as_bool() ? "Right" : "Wrong", results->at("elements").as_integer(),
             escaped(results->at("worst_call").as_string()), results->at("of_bound").as_number()) +
         html_table(table);
}

std::string commands(const Shown& shown) {
  const std::string folder = shell_word(shown.tuned.folder.string());
  const auto kept = [&](const char* file) { return shell_word((shown.tuned.folder / file).string()); };
  std::string out = fmt::format("graft compile {0} --out lib\ngraft run {0} --check --repetitions 20 --json > {1}\n",
                                folder, kept("check.json"));
  const auto own =
      std::find_if(shown.order.begin(), shown.order.end(), [&](std::size_t k) { return !shown.kernel(k).run.empty(); });
  if (shown.tuned.platform.device->is_this_host() && own != shown.order.end())
    out += fmt::format("graft bench kernels {} --json > {}\n", shell_word(shown.kernel(*own).run.string()),
                       kept("bench.json"));
  return "<div class=\"wrap\">" +
         html_listing("Commands: to use it, and to add its accuracy and the machine's limits to this page", out) +
         "</div>\n";
}

std::string section(const ReportedNetwork& reported, Figures& figures) {
  Shown shown(reported);
  if (shown.measured) {
    for (std::size_t k = 0; k < shown.roofs.size(); ++k)
      if (!shown.roofs[k] && study::is_in_f32(shown.kernel(k).workload)) shown.roofs[k] = shown.measured;
  }
  std::string out = fmt::format("<h2>{}</h2>\n<p>on {}{}</p>\n", escaped(reported.tuned.model.filename().string()),
                                escaped(reported.tuned.platform.name), times_note(shown.source));
  if (!reported.tuned.complete) out += "<p>The search was stopped; the same command continues it.</p>\n";
  if (!reported.unknown.empty()) out += fmt::format("<p>{}.</p>\n", escaped(reported.unknown));
  out += facts(shown);
  if (std::isfinite(reported.tuned.seconds)) out += time_by_call(shown);
  out += "<h3>Kernels</h3>\n" + html_table(kernels_table(reported.tuned, shown.roofs)) + roofline(shown, figures);
  out += calls_table(shown) + accuracy(shown) + "<h3>Schedules</h3>\n";
  for (const std::size_t k : shown.order) out += kernel_details(shown, k);
  return out + commands(shown);
}

}  // namespace

std::string network_sections(const std::vector<ReportedNetwork>& networks, Figures& figures) {
  std::string out;
  for (const ReportedNetwork& network : networks) out += section(network, figures);
  return out;
}

}  // namespace graft::cli
