#include "study/knowledge/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "codegen/expression/computation.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/space/sketch.h"
#include "codegen/space/table_schema.h"

namespace graft::study {
namespace {

// A build without a pipeline is a trial's check again: it says how the trial is to be taken, and competes with none.
std::vector<Answer> answers(const base::Document& request, std::vector<datasets::Trial> trials,
                            const std::vector<search::Build>& recorded, const codegen::Workload& workload,
                            std::size_t count) {
  std::vector<search::Build> builds;
  for (const search::Build& build : recorded) {
    if (!build.pipeline.empty()) {
      builds.push_back(build);
      continue;
    }
    for (datasets::Trial& trial : trials) {
      if (trial.program_hash == build.trial.program_hash && trial.candidate.workload == build.trial.candidate.workload)
        trial.measurement = build.trial.measurement;
    }
  }
  std::vector<Answer> found;
  for (search::Build& best : search::best_builds(builds, trials, workload, count)) {
    found.push_back({request.at("platform").as_string(), request.at("source").as_string(), best.trial.index,
                     std::move(best.trial.candidate), best.trial.program_hash, std::move(best.pipeline),
                     std::move(best.trial.measurement)});
  }
  return found;
}

std::optional<Answer> first(std::vector<Answer> answers) {
  return answers.empty() ? std::nullopt : std::optional<Answer>(std::move(answers.front()));
}

}  // namespace

double Answer::gflops() const {
  return codegen::names_computation(workload()) ? double(codegen::flops(workload())) / seconds() * 1e-9 : 0;
}

std::optional<Answer> answer_of(const search::RunContent& run, const codegen::Workload& workload) {
  return first(answers_of(run, workload, 1));
}

std::optional<Answer> answer_of(const search::RunDirectory& run, const codegen::Workload& workload) {
  return first(answers(run.request(), run.journal().trials(), run.builds(), workload, 1));
}

std::vector<Answer> answers_of(const search::RunContent& run, const codegen::Workload& workload, std::size_t count) {
  return answers(run.request, run.journal.trials, run.builds, workload, count);
}

std::optional<Answer> checked_answer(search::RunDirectory& run, const codegen::Workload& workload,
                                     const tasks::Platform& platform, const tasks::MeasureSettings& settings,
                                     base::Monitor& monitor) {
  for (;;) {
    std::optional<Answer> best = answer_of(run, workload);
    if (!best || best->measurement.check == "qemu") return best;
    const auto checker = platform.device->checker(platform, settings);
    if (checker == nullptr) return best;
    std::optional<datasets::Measurement> checked;
    checker->measure(
        std::span(&best->candidate, 1), [&](const tasks::Measured& measured) { checked = measured.measurement; },
        monitor);
    if (!checked) return best;
    const bool right = checked->status == datasets::Status::ok;
    if (right && checked->check != "qemu") return best;  // no qemu here: another time it may be checked
    datasets::Measurement& known = best->measurement;
    if (right)
      known.check = checked->check;  // the time is the trial's, independent of today's simulator
    else
      known = *checked;
    std::vector<search::Build> builds = run.builds();
    builds.push_back({{best->trial, best->candidate, best->program_hash, known}, ""});
    run.record(std::move(builds));
    if (!right) {
      monitor.note(fmt::format("trial {} was the fastest, but {}: {}", best->trial, datasets::name_of(checked->status),
                               checked->reason));
    }
  }
}

base::Document schedule_document(const codegen::Candidate& candidate) {
  base::Document steps = base::Document::list();
  if (codegen::is_row_of_table(candidate)) {
    for (std::size_t c = 0; c < candidate.arguments.size(); ++c)
      steps.push(fmt::format("{} = {}", candidate.sketch->arguments[c].name,
                             codegen::column_value(*candidate.sketch, c, candidate.arguments[c])));
  }
  if (const auto schedule = codegen::schedule(candidate)) {
    for (const codegen::Step& step : *schedule) steps.push(codegen::to_text(step));
  }
  return steps;
}

base::Document to_document(const Answer& answer) {
  base::Document arguments = base::Document::list();
  for (const std::int64_t argument : answer.candidate.arguments) arguments.push(argument);
  base::Document out = base::Document::map();
  out.set("seconds", answer.seconds())
      .set("gflops", answer.gflops())
      .set("schedule", schedule_document(answer.candidate))
      .set("sketch", codegen::to_text(*answer.candidate.sketch))
      .set("arguments", std::move(arguments))
      .set("program", base::to_hex(answer.program_hash))
      .set("measurement", datasets::to_document(answer.measurement));
  if (!answer.pipeline.empty()) out.set("pipeline", answer.pipeline);
  return out;
}

bool does_less_arithmetic(const codegen::Candidate& candidate) {
  const auto schedule = codegen::schedule(candidate);
  return schedule && std::any_of(schedule->begin(), schedule->end(),
                                 [](const codegen::Step& step) { return step.kind == codegen::StepKind::winograd; });
}

bool is_in_f32(const codegen::Workload& workload) {
  const codegen::Computation computation = workload.computation();
  return std::all_of(computation.tensors.begin(), computation.tensors.end(),
                     [](const codegen::Tensor& tensor) { return tensor.dtype == codegen::DType::f32; });
}

std::optional<double> peak_gflops(const tasks::Platform& platform, const codegen::Workload& workload) {
  if (!is_in_f32(workload)) return std::nullopt;
  const std::optional<double> flops = platform.device->peak_flops_per_second(platform);
  if (!flops) return std::nullopt;
  return *flops * 1e-9;
}

}  // namespace graft::study
