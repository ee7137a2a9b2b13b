#include "tasks/modelled/modelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/process.h"
#include "codegen/expression/reference.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/core_timing.h"
#include "tasks/modelled/traffic.h"
#include "tasks/native.h"
#include "tasks/remote.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

constexpr double overlap_lost = 0.15;  // of the smaller of core and memory time, out of order
constexpr double prefetch_gain = 2.5;  // of a sequential line over a scattered one
constexpr double least_line_cycles = 1;
constexpr double first_write_back_cycles = 2, later_write_back_cycles = 3;
constexpr std::int64_t usual_line_bytes = 64;
constexpr int threads = 2;
constexpr std::size_t block_size = 16;  // candidates in flight between two reports

struct Hierarchy {
  std::vector<std::int64_t> capacities;  // of the caches, the first one first
  std::vector<double> latency_cycles;    // of what stands behind each
  std::int64_t line_bytes = usual_line_bytes;
};

double positive(const Platform& platform, std::string_view key, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw base::UserError(platform.name,
                          fmt::format("{} of a modelled platform is {:g}; give a positive number", key, value));
  return value;
}

Hierarchy hierarchy_of(const Platform& platform) {
  const codegen::Target& target = platform.target;
  const Profile& profile = std::get<Modelled>(platform.how).profile;
  const auto missing = [&](std::string_view key, std::string_view why) {
    throw base::UserError(platform.name, fmt::format("a modelled platform {} needs {}", why, key));
  };
  if (!target.l1_bytes) missing("l1_bytes", "has caches, hence it");
  Hierarchy hierarchy;
  const auto add = [&](std::string_view level, std::int64_t bytes, const std::optional<double>& latency) {
    hierarchy.capacities.push_back(std::int64_t(positive(platform, fmt::format("{}_bytes", level), double(bytes))));
    if (level == "l1") return;
    const std::string key = fmt::format("{}_latency_cycles", level);
    if (!latency) missing(key, fmt::format("with {}_bytes", level));
    hierarchy.latency_cycles.push_back(positive(platform, key, *latency));
  };
  add("l1", *target.l1_bytes, std::nullopt);
  if (target.l2_bytes) add("l2", *target.l2_bytes, profile.l2_latency_cycles);
  if (target.l3_bytes) add("l3", *target.l3_bytes, profile.l3_latency_cycles);
  hierarchy.latency_cycles.push_back(positive(platform, "memory_nanoseconds", profile.memory_nanoseconds) *
                                     positive(platform, "gigahertz", profile.gigahertz));
  if (target.line_bytes)
    hierarchy.line_bytes = std::int64_t(positive(platform, "line_bytes", double(*target.line_bytes)));
  positive(platform, "memory_parallelism", profile.memory_parallelism);
  return hierarchy;
}

void check_platform(const Platform& platform) {
  if (!std::holds_alternative<Modelled>(platform.how)) throw base::UserError(platform.name, "is no modelled platform");
  hierarchy_of(platform);
  codegen::check_core_timing(platform.target);
}

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// What the busiest core runs when the tasks of bands (adjacent parallel loops) are dealt out in equal chunks: loops as
// near to its share as a product of extents comes from above.
codegen::LoopProgram busiest_share(codegen::LoopProgram program, std::int64_t cores) {
  if (cores <= 1) return program;
  const codegen::Body& body = program.run;
  for (std::size_t n = 0; n < body.size();) {
    std::vector<codegen::Loop*> band;
    std::int64_t tasks = 1;
    const int end = body[n].end;
    for (; n < body.size() && body[n].kind == codegen::Node::Kind::loop && body[n].end == end; ++n) {
      codegen::Loop& loop = program.loops[std::size_t(body[n].item)];
      if (loop.kind != codegen::LoopKind::parallel) break;
      band.push_back(&loop);
      tasks *= loop.extent;
    }
    std::int64_t share = quotient_up(tasks, cores);
    for (codegen::Loop* loop : band) {
      tasks /= loop->extent;  // of the loops inside
      loop->extent = quotient_up(share, tasks);
      share = quotient_up(share, loop->extent);
    }
    if (band.empty()) ++n;
  }
  return program;
}

double memory_cycles_of(const codegen::LoopProgram& program, const Hierarchy& hierarchy, double parallelism) {
  const std::vector<Lines> missed = missed_lines(program, hierarchy.capacities, hierarchy.line_bytes);
  const double gain = parallelism > 1 ? prefetch_gain : 1;
  double cycles = 0;
  for (std::size_t level = 0; level < missed.size(); ++level) {
    const Lines& here = missed[level];
    const Lines behind = level + 1 < missed.size() ? missed[level + 1] : Lines{};
    // A line that misses further out is charged there, with that latency. A walk may be sequential in one cache and
    // scattered in the next, hence the clamps.
    const double sequential = std::max(0.0, here.sequential - behind.sequential);
    const double scattered = std::max(0.0, here.scattered - behind.scattered);
    const double each = hierarchy.latency_cycles[level] / parallelism;
    cycles += scattered * std::max(least_line_cycles, each) + sequential * std::max(least_line_cycles, each / gain) +
              here.written * (level == 0 ? first_write_back_cycles : later_write_back_cycles);
  }
  return cycles;
}

base::Result<ModelledTime> time_of(const codegen::LoopProgram& whole, const codegen::Target& target,
                                   const Profile& profile, const Hierarchy& hierarchy) {
  const codegen::LoopProgram program = busiest_share(whole, target.threads);
  codegen::CoreTimingSettings settings;
  settings.out_of_order = profile.out_of_order;
  settings.mispredict_cycles = profile.mispredict_cycles;
  const base::Result<codegen::CoreTiming> core = codegen::core_timing(program, target, settings);
  if (!core) return core.reason();
  ModelledTime time;
  time.core_cycles = core->cycles;
  time.instructions = core->instructions;
  time.unsupported = core->unsupported;
  time.memory_cycles = memory_cycles_of(program, hierarchy, profile.memory_parallelism);
  const auto [less, more] = std::minmax(time.core_cycles, time.memory_cycles);
  const double cycles = profile.out_of_order ? more + overlap_lost * less : more + less;
  time.seconds = cycles / (profile.gigahertz * 1e9);
  return time;
}

Measurement outcome(Status status, std::string reason) {
  return without_times(status, std::move(reason), "modelled");
}

class ModelledMeasurer : public Measurer {
 public:
  ModelledMeasurer(const Platform& platform, const MeasureSettings& settings, int qemu_every)
      : target_(platform.target),
        profile_(std::get<Modelled>(platform.how).profile),
        hierarchy_(hierarchy_of(platform)),
        host_(codegen::host_target()),
        settings_(settings),
        qemu_every_(std::uint64_t(qemu_every)),
        runner_(check_only(settings)),
        expected_(settings.input_seed) {}

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    for (std::size_t begin = 0; begin < candidates.size(); begin += block_size) {
      const std::size_t count = std::min(block_size, candidates.size() - begin);
      std::vector<Made> made(count);
      base::parallel_for(std::int64_t(count), threads,
                         [&](std::int64_t i) { made[std::size_t(i)] = make(candidates[begin + std::size_t(i)]); });
      for (std::size_t i = 0; i < count; ++i) {
        if (monitor.stop_requested()) return;
        Measured measured{std::int64_t(begin + i), made[i].program_hash, {}};
        measured.measurement = judge(candidates[begin + i].workload, made[i], monitor);
        on_trial(measured);
      }
    }
  }

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // workload and program

  // All that can be done beside other candidates.
  struct Made {
    std::uint64_t program_hash = 0;
    base::Result<codegen::LoopProgram> program = base::Reason{};
    base::Result<ModelledTime> time = base::Reason{};
    base::Result<HostBinary> host = base::Reason{};
  };

  static MeasureSettings check_only(MeasureSettings settings) {
    settings.repetitions = 0;
    return settings;
  }

  Made make(const codegen::Candidate& candidate) const {
    Made made;
    made.program = codegen::program(candidate, target_);
    if (!made.program) return made;
    made.program_hash = codegen::hash(*made.program);
    if (known_.count({candidate.workload.text, made.program_hash})) return made;
    made.time = time_of(*made.program, target_, profile_, hierarchy_);
    if (made.time && made.time->unsupported.empty()) made.host = compile_for_host(*made.program, host_);
    return made;
  }

  Measurement judge(const codegen::Workload& workload, const Made& made, base::Monitor& monitor) {
    if (!made.program) return outcome(Status::does_not_lower, made.program.reason().text);
    const Key key{workload.text, made.program_hash};
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_.emplace(key, judge_new(workload, made, monitor)).first->second;
  }

  Measurement judge_new(const codegen::Workload& workload, const Made& made, base::Monitor& monitor) {
    if (!made.time) return outcome(Status::does_not_compile, made.time.reason().text);
    if (!made.time->unsupported.empty()) {
      std::vector<std::string> opcodes;
      for (const auto& [opcode, count] : made.time->unsupported) opcodes.push_back(opcode);
      return outcome(Status::unsupported,
                     fmt::format("the model of {} lacks {}", target_.cpu, fmt::join(opcodes, ", ")));
    }
    if (!made.host) return outcome(Status::does_not_compile, "for the check on this host: " + made.host.reason().text);
    const Measurement checked = runner_.run(workload, *made.host);
    if (checked.status != Status::ok) return failed_check(checked, "on this host");
    Measurement measurement = outcome(Status::ok, "");
    measurement.check = checked.check;
    if (made.program_hash % qemu_every_ == 0 && qemu_works(monitor)) {
      const Measurement emulated = run_under_qemu(workload, *made.program);
      if (emulated.status == Status::ok)
        measurement.check = emulated.check;
      else if (emulated.status != Status::timed_out && emulated.status != Status::unsupported)
        return failed_check(emulated, "under qemu");
      else
        note_once(monitor, fmt::format("not checked under qemu ({}): {}", workload.text, emulated.reason));
    }
    measurement.seconds = {made.time->seconds};
    return measurement;
  }

  static Measurement failed_check(const Measurement& checked, std::string_view where) {
    Measurement measurement = outcome(checked.status, fmt::format("{}: {}", where, checked.reason));
    measurement.check = checked.check;
    return measurement;
  }

  bool qemu_works(base::Monitor& monitor) {
    if (!qemu_works_) {
      qemu_works_ = false;
      if (profile_.qemu.empty()) {
        note_once(monitor, fmt::format("the profile of {} names no qemu: checked on this host only", target_.cpu));
      } else {
        try {
          const base::Finished finished = base::run_process({profile_.qemu[0], "--version"}, std::chrono::seconds(10));
          qemu_works_ = finished.exit_code == 0;
        } catch (const base::Failure&) {
          // Not installed: told below, like one that does not work.
        }
        if (!*qemu_works_)
          note_once(monitor, fmt::format("'{}' does not start: checked on this host only; install qemu-user to check "
                                         "code of {}",
                                         profile_.qemu[0], target_.cpu));
      }
    }
    return *qemu_works_;
  }

  Measurement run_under_qemu(const codegen::Workload& workload, const codegen::LoopProgram& program) {
    const Expected& expected = expected_.of(workload);
    const auto deadline = std::chrono::milliseconds(std::int64_t(settings_.timeout_seconds * 1e3));
    return run_under(profile_.qemu, program, target_, expected, 1, deadline);
  }

  void note_once(base::Monitor& monitor, const std::string& line) {
    if (!noted_) monitor.note(line);
    noted_ = true;
  }

  const codegen::Target target_;
  const Profile profile_;
  const Hierarchy hierarchy_;
  const codegen::Target host_;
  const MeasureSettings settings_;
  const std::uint64_t qemu_every_;
  HostRunner runner_;
  std::map<Key, Measurement> known_;  // each distinct program once
  std::optional<bool> qemu_works_;    // unknown until it is needed
  bool noted_ = false;
  LatestExpected expected_;
};

}  // namespace

base::Result<ModelledTime> modelled_time(const codegen::LoopProgram& program, const Platform& platform) {
  check_platform(platform);
  return time_of(program, platform.target, std::get<Modelled>(platform.how).profile, hierarchy_of(platform));
}

std::unique_ptr<Measurer> make_modelled_measurer(const Platform& platform, const MeasureSettings& settings,
                                                 int qemu_every) {
  check_platform(platform);
  if (qemu_every < 1) throw base::UserError("qemu_every", fmt::format("{} is less than 1", qemu_every));
  return std::make_unique<ModelledMeasurer>(platform, settings, qemu_every);
}

}  // namespace graft::tasks
