#include "tasks/modelled/modelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/parallel.h"
#include "base/process.h"
#include "base/random.h"
#include "base/shortened.h"
#include "codegen/expression/reference.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/core_timing.h"
#include "codegen/program/peak.h"
#include "codegen/schedule/candidate_program.h"
#include "tasks/host_runner.h"
#include "tasks/modelled/caches.h"
#include "tasks/remote.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

constexpr double overlap_lost = 0.15;   // of the smaller of core and memory time, out of order
constexpr double prefetch_gain = 2.5;   // of a line that a prefetcher has predicted
constexpr double bytes_per_cycle = 32;  // between a cache and the next one
constexpr double first_write_back_cycles = 2, later_write_back_cycles = 3;
constexpr double outlier_share = 0.02, least_outlier = 1.2, greatest_outlier = 2;
constexpr std::int64_t light_flops = 30'000'000;  // up to a second under qemu
constexpr std::size_t block_size = 16;            // candidates in flight between two reports

const Profile& checked_profile(const Platform& platform) {
  const Profile* const profile = profile_of(platform);
  if (profile == nullptr) throw base::UserError(platform.name, "is not a modelled platform");
  check_profile(*profile, platform.target, [&](std::string_view) { return platform.name; });
  return *profile;
}
codegen::CoreTimingSettings core_settings(const Profile& profile) {
  codegen::CoreTimingSettings settings;
  settings.out_of_order = profile.out_of_order;
  settings.mispredict_cycles = profile.mispredict_cycles;
  settings.dispatch_width = int(profile.dispatch_width);
  settings.model_cpu = profile.model_cpu;
  return settings;
}

void check_platform(const Platform& platform) {
  codegen::check_core_timing(platform.target, core_settings(checked_profile(platform)));
}

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

struct Share {
  codegen::LoopProgram program;
  std::int64_t busy = 1;   // cores, in the band that keeps most of them busy
  std::int64_t bands = 0;  // that more than one core works on
};

// What the busiest core runs when the tasks of bands (adjacent parallel loops) are dealt out in equal chunks: loops as
// near to its share as a product of extents comes from above.
Share busiest_share(codegen::LoopProgram program, std::int64_t cores) {
  Share result{std::move(program)};
  if (cores <= 1) return result;
  const codegen::Body& body = result.program.run;
  for (std::size_t n = 0; n < body.size();) {
    std::vector<codegen::Loop*> band;
    std::int64_t tasks = 1;
    const int end = body[n].end;
    for (; n < body.size() && body[n].kind == codegen::Node::Kind::loop && body[n].end == end; ++n) {
      codegen::Loop& loop = result.program.loops[std::size_t(body[n].item)];
      if (loop.kind != codegen::LoopKind::parallel) break;
      band.push_back(&loop);
      tasks *= loop.extent;
    }
    std::int64_t share = quotient_up(tasks, cores);
    if (tasks > 1) {
      ++result.bands;
      result.busy = std::max(result.busy, quotient_up(tasks, share));
    }
    for (codegen::Loop* loop : band) {
      tasks /= loop->extent;  // of the loops inside
      loop->extent = quotient_up(share, tasks);
      share = quotient_up(share, loop->extent);
    }
    if (band.empty()) ++n;
  }
  return result;
}

struct Phase {
  double core = 0, memory = 0;  // cycles
};

// Keyed by the loop of the core's part. A store belongs to the innermost loop around it that has a part.
std::map<int, Phase> phases_of(const codegen::LoopProgram& program, const std::vector<codegen::CorePart>& parts,
                               const std::function<double(int)>& memory_cycles_of_store) {
  std::map<int, Phase> phases;
  for (const codegen::CorePart& part : parts) phases[part.loop].core += part.cycles;
  std::vector<std::pair<int, int>> around;  // ends of nodes and the innermost loop with a part up to there
  for (int n = 0; n < int(program.run.size()); ++n) {
    while (!around.empty() && around.back().first <= n) around.pop_back();
    const codegen::Node& node = program.run[std::size_t(n)];
    const int inside = around.empty() ? -1 : around.back().second;
    if (node.kind == codegen::Node::Kind::store)
      phases[inside].memory += memory_cycles_of_store(node.item);
    else
      around.emplace_back(node.end, phases.contains(node.item) ? node.item : inside);
  }
  return phases;
}

base::Result<ModelledTime> time_of(const codegen::LoopProgram& whole, const Platform& platform,
                                   const CacheSettings& caches, TrafficMemo* memo) {
  const Profile& profile = *profile_of(platform);
  const Share share = busiest_share(whole, platform.target.threads);
  const base::Result<codegen::CoreTiming> core =
      codegen::core_timing(share.program, platform.target, core_settings(profile));
  if (!core) return core.reason();
  ModelledTime time;
  time.core_cycles = core->cycles;
  time.instructions = core->instructions;
  time.unsupported = core->unsupported;
  const Geometry geometry = share_of(geometry_of(platform), share.busy);
  time.traffic = memo != nullptr ? memo->traffic(share.program, geometry, caches)
                                 : simulate_caches(share.program, geometry, caches);
  time.memory_cycles = memory_cycles(time.traffic, geometry, profile, share.busy);
  time.fork_join_seconds = double(share.bands) * profile.fork_join_microseconds * 1e-6;
  double cycles = time.core_cycles + time.memory_cycles;
  if (profile.out_of_order)
    for (const auto& [loop, phase] : phases_of(share.program, core->parts, [&](int store) {
           return memory_cycles(time.traffic.stores[std::size_t(store)], geometry, profile, share.busy);
         }))
      cycles -= (1 - overlap_lost) * std::min(phase.core, phase.memory);
  time.seconds = cycles / (profile.gigahertz * 1e9) + time.fork_join_seconds;
  return time;
}

Measurement outcome(Status status, std::string reason) {
  return without_times(status, std::move(reason), "modelled");
}

// False for a program that is not installed, too.
bool starts(const std::string& program) {
  try {
    return base::run_process({program, "--version"}, std::chrono::seconds(10)).exit_code == 0;
  } catch (const base::Failure&) {
    return false;
  }
}

class ModelledMeasurer : public Measurer {
 public:
  ModelledMeasurer(const Platform& platform, const MeasureSettings& settings, ModelledSettings modelled)
      : platform_(platform),
        profile_(*profile_of(platform_)),
        host_(codegen::host_target()),
        settings_(settings),
        modelled_(std::move(modelled)),
        expected_(settings.inputs, settings.threads) {
    if (modelled_.memo == nullptr) modelled_.memo = std::make_shared<TrafficMemo>();
    if (modelled_.host_checks == nullptr) modelled_.host_checks = std::make_shared<HostChecks>(settings);
  }

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    for (std::size_t begin = 0; begin < candidates.size(); begin += block_size) {
      const std::size_t count = std::min(block_size, candidates.size() - begin);
      std::vector<TimedProgram> made(count);
      try {
        base::parallel_for(std::int64_t(count), settings_.threads, monitor,
                           [&](std::int64_t i) { made[std::size_t(i)] = make(candidates[begin + std::size_t(i)]); });
        for (std::size_t i = 0; i < count; ++i) {
          base::check_stop(monitor);
          Measured measured{std::int64_t(begin + i), made[i].program_hash, {}};
          measured.measurement = judge(candidates[begin + i].workload, made[i], monitor);
          on_trial(measured);
        }
      } catch (const base::Stopped&) {
        return;
      }
    }
  }

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // workload and program

  // The work that can be done in parallel with other candidates.
  struct TimedProgram {
    std::uint64_t program_hash = 0;
    base::Result<codegen::LoopProgram> program = base::Reason{};
    base::Result<ModelledTime> time = base::Reason{};
    base::Result<HostBinary> host = base::Reason{};
  };

  bool checked_under_qemu(const codegen::Workload& workload, std::uint64_t program_hash) const {
    if (modelled_.qemu_every == 1) return true;
    const std::int64_t heavier = std::max<std::int64_t>(1, codegen::flops(workload) / light_flops);
    return program_hash % std::uint64_t(modelled_.qemu_every * heavier) == 0;
  }

  TimedProgram make(const codegen::Candidate& candidate) const {
    TimedProgram made;
    made.program = codegen::program(candidate, platform_.target);
    if (!made.program) return made;
    made.program_hash = codegen::hash(*made.program);
    if (known_.count({candidate.workload.text(), made.program_hash})) return made;
    made.time = time_of(*made.program, platform_, modelled_.caches, modelled_.memo.get());
    if (made.time && made.time->unsupported.empty() &&
        !modelled_.host_checks->knows(candidate.workload, made.program_hash))
      made.host = compile_for_host(codegen::without_foreign_intrinsics(*made.program, host_), host_);
    return made;
  }

  Measurement judge(const codegen::Workload& workload, const TimedProgram& made, base::Monitor& monitor) {
    if (!made.program) return outcome(Status::does_not_lower, made.program.reason().text);
    const Key key{workload.text(), made.program_hash};
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    return known_.emplace(key, judge_new(workload, made, monitor)).first->second;
  }

  Measurement judge_new(const codegen::Workload& workload, const TimedProgram& made, base::Monitor& monitor) {
    if (!made.time) return outcome(Status::does_not_compile, made.time.reason().text);
    if (!made.time->unsupported.empty()) {
      std::vector<std::string> opcodes;
      for (const auto& [opcode, count] : made.time->unsupported) opcodes.push_back(opcode);
      return outcome(Status::unsupported,
                     fmt::format("the model of {} lacks {}", platform_.target.cpu, fmt::join(opcodes, ", ")));
    }
    Measurement measurement = outcome(Status::ok, "");
    const Measurement checked = modelled_.host_checks->check(workload, made.program_hash, made.host, &monitor);
    if (checked.status != Status::ok) return failed_check(checked, "on this host");
    measurement.check = checked.check;
    if (checked_under_qemu(workload, made.program_hash) && qemu_works(monitor)) {
      const Measurement emulated = run_under_qemu(workload, *made.program, monitor);
      if (emulated.status == Status::ok)
        measurement.check = emulated.check;
      else if (emulated.status != Status::timed_out && emulated.status != Status::unsupported)
        return failed_check(emulated, "under qemu");
      else
        note_once(monitor,
                  fmt::format("not checked under qemu ({}): {}", base::shortened(workload.text()), emulated.reason));
    }
    measurement.seconds = {made.time->seconds};
    if (profile_.noise_percent > 0) {
      const std::uint64_t seed = base::hash_combine(made.program_hash, base::hash_bytes(platform_.long_name));
      measurement.seconds = noisy(made.time->seconds, profile_.noise_percent, seed, settings_.repetitions);
    }
    return measurement;
  }

  static Measurement failed_check(const Measurement& checked, std::string_view where) {
    Measurement measurement = outcome(checked.status, fmt::format("{}: {}", where, checked.reason));
    measurement.check = checked.check;
    return measurement;
  }

  bool qemu_works(base::Monitor& monitor) {
    if (!qemu_works_) {
      qemu_works_ = !profile_.qemu.empty() && starts(profile_.qemu[0]);
      if (profile_.qemu.empty())
        note_once(monitor,
                  fmt::format("the profile of {} names no qemu: checked on this host only", platform_.target.cpu));
      else if (!*qemu_works_)
        note_once(monitor, fmt::format("'{}' does not start: checked on this host only; install qemu-user to check "
                                       "code of {}",
                                       profile_.qemu[0], platform_.target.cpu));
    }
    return *qemu_works_;
  }

  Measurement run_under_qemu(const codegen::Workload& workload, const codegen::LoopProgram& program,
                             base::Monitor& monitor) {
    base::QuietMonitor quiet(monitor);  // the check on this host has said what there is to say
    const Expected& expected = expected_.of(workload, quiet);
    const auto deadline = std::chrono::milliseconds(std::int64_t(settings_.timeout_seconds * 1e3));
    return run_under(profile_.qemu, program, platform_.target, expected, 0, deadline, &monitor);
  }

  void note_once(base::Monitor& monitor, const std::string& line) {
    if (!noted_) monitor.note(line);
    noted_ = true;
  }

  const Platform platform_;
  const Profile& profile_;  // the platform's
  const codegen::Target host_;
  const MeasureSettings settings_;
  ModelledSettings modelled_;
  std::map<Key, Measurement> known_;  // each distinct program once
  std::optional<bool> qemu_works_;    // unknown until it is needed
  bool noted_ = false;
  LatestExpected expected_;
};

class ModelledDevice : public Device {
 public:
  explicit ModelledDevice(Profile profile) : profile_(std::move(profile)) {}
  const Profile& profile() const { return profile_; }
  std::string source() const override { return "modelled"; }
  Place place() const override { return Place::both; }
  std::unique_ptr<Measurer> measurer(const Platform& platform, const MeasureSettings& settings,
                                     Shared* shared) const override {
    ModelledSettings modelled;
    if (shared != nullptr) {
      if (shared->host_checks == nullptr) shared->host_checks = std::make_shared<HostChecks>(settings);
      if (shared->memo == nullptr) shared->memo = std::make_shared<TrafficMemo>();
      modelled.host_checks = shared->host_checks;
      modelled.memo = shared->memo;
    }
    return make_modelled_measurer(platform, settings, std::move(modelled));
  }
  std::unique_ptr<Measurer> checker(const Platform& platform, const MeasureSettings& settings) const override {
    return make_modelled_measurer(platform, settings, {.qemu_every = 1, .caches = {}, .memo = {}});
  }
  CodeRunner runner() const override {
    if (profile_.qemu.empty()) return {{}, "none", "the platform names no qemu"};
    if (!starts(profile_.qemu[0]))
      return {{}, "none", fmt::format("'{}' does not start; install qemu-user", profile_.qemu[0])};
    Remote remote;
    remote.prefix = profile_.qemu;
    return {remote, "qemu", ""};
  }
  bool is_exact() const override { return true; }
  std::optional<Limits> limits() const override {
    return Limits{profile_.gigahertz, profile_.memory_gigabytes_per_second};
  }
  std::optional<double> peak_flops_per_second(const Platform& platform) const override {
    const codegen::LoopProgram program = codegen::peak_program(platform.target);
    const auto time = modelled_time(program, platform);
    if (!time || !time->unsupported.empty() || !(time->core_cycles > 0)) return std::nullopt;
    return codegen::peak_flops(program) / time->core_cycles * profile_.gigahertz * 1e9 *
           double(platform.target.threads);
  }

 private:
  const Profile profile_;
};

}  // namespace

std::shared_ptr<const Device> modelled_device(Profile profile) {
  return std::make_shared<ModelledDevice>(std::move(profile));
}

std::shared_ptr<const Device> read_modelled(const base::Document& own, const base::Document& whole, const std::string&,
                                            codegen::Target& target) {
  return modelled_device(profile_from(own, whole, target));
}

const Profile* profile_of(const Platform& platform) {
  const auto* const device = dynamic_cast<const ModelledDevice*>(platform.device.get());
  return device == nullptr ? nullptr : &device->profile();
}

class HostChecks::State {
 public:
  explicit State(MeasureSettings settings) : runner(check_only(std::move(settings))) {}
  static MeasureSettings check_only(MeasureSettings settings) {
    settings.repetitions = 0;
    return settings;
  }
  HostRunner runner;
  std::map<std::pair<std::string, std::uint64_t>, Measurement> known;
  std::int64_t runs = 0;
  mutable std::mutex mutex;
};

HostChecks::HostChecks(const MeasureSettings& settings) : state_(std::make_unique<State>(settings)) {}
HostChecks::~HostChecks() = default;

void HostChecks::add(const codegen::Workload& workload, std::uint64_t program_hash) {
  const std::lock_guard lock(state_->mutex);
  Measurement right = without_times(Status::ok, "", "thread_cpu");
  right.check = "host";
  state_->known.try_emplace({workload.text(), program_hash}, std::move(right));
}

bool HostChecks::knows(const codegen::Workload& workload, std::uint64_t program_hash) const {
  const std::lock_guard lock(state_->mutex);
  return state_->known.contains({workload.text(), program_hash});
}

Measurement HostChecks::check(const codegen::Workload& workload, std::uint64_t program_hash,
                              const base::Result<HostBinary>& binary, base::Monitor* monitor) {
  const std::lock_guard lock(state_->mutex);
  const auto known = state_->known.find({workload.text(), program_hash});
  if (known != state_->known.end()) return known->second;
  ++state_->runs;
  // Known only once it is done: a run may end by an exception.
  const Measurement checked = binary ? state_->runner.run(workload, *binary, 0, monitor)
                                     : without_times(Status::does_not_compile, binary.reason().text, "thread_cpu");
  return state_->known.emplace(std::pair(workload.text(), program_hash), checked).first->second;
}

std::int64_t HostChecks::runs() const {
  const std::lock_guard lock(state_->mutex);
  return state_->runs;
}

Geometry geometry_of(const Platform& platform) {
  const codegen::Target& target = platform.target;
  const Profile& profile = checked_profile(platform);
  Geometry geometry;
  geometry.levels.push_back({*target.l1_bytes, profile.l1_ways, false});
  if (target.l2_bytes) geometry.levels.push_back({*target.l2_bytes, profile.l2_ways, profile.l2_shared});
  if (target.l3_bytes) geometry.levels.push_back({*target.l3_bytes, profile.l3_ways, profile.l3_shared});
  geometry.line_bytes = *target.line_bytes;
  geometry.page_bytes = profile.page_bytes;
  geometry.huge_page_bytes = profile.huge_page_bytes;
  geometry.tlb_entries = profile.tlb_entries;
  geometry.l2_tlb_entries = profile.l2_tlb_entries;
  if (profile.l2_tlb_entries > 0) geometry.l2_tlb_ways = profile.l2_tlb_ways;
  geometry.prefetch_streams = profile.prefetch_streams;
  return geometry;
}

double memory_cycles(const Misses& misses, const Geometry& geometry, const Profile& profile, std::int64_t cores) {
  const std::array latencies{profile.l2_latency_cycles, profile.l3_latency_cycles};
  double cycles = 0;
  for (std::size_t level = 0; level < misses.levels.size(); ++level) {
    const bool last = level + 1 == misses.levels.size();
    const LevelTraffic& here = misses.levels[level];
    // A line that misses further out is charged there, with that latency.
    const LevelTraffic behind = last ? LevelTraffic{} : misses.levels[level + 1];
    const double latency = last ? profile.memory_nanoseconds * profile.gigahertz : latencies[level];
    double least = double(geometry.line_bytes) / bytes_per_cycle;
    if (last)
      least = std::max(least,
                       double(cores * geometry.line_bytes) / profile.memory_gigabytes_per_second * profile.gigahertz);
    else if (geometry.levels[level + 1].shared)
      least *= double(cores);
    const double each = latency / profile.memory_parallelism;
    cycles += (here.scattered - behind.scattered) * std::max(least, each) +
              (here.prefetched - behind.prefetched) * std::max(least, each / prefetch_gain) +
              here.written * (level == 0 ? first_write_back_cycles : later_write_back_cycles);
  }
  return cycles + misses.tlb_misses * profile.l2_tlb_cycles + misses.page_walks * profile.page_walk_cycles;
}

base::Result<ModelledTime> modelled_time(const codegen::LoopProgram& program, const Platform& platform,
                                         const CacheSettings& caches, TrafficMemo* memo) {
  check_platform(platform);
  return time_of(program, platform, caches, memo);
}

std::vector<double> noisy(double seconds, double percent, std::uint64_t seed, int repetitions) {
  std::vector<double> all;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    base::Stream stream(seed, "noise", std::uint64_t(repetition));
    double factor = std::exp(percent / 100 * stream.normal());
    if (stream.uniform() < outlier_share)
      factor *= least_outlier + (greatest_outlier - least_outlier) * stream.uniform();
    all.push_back(seconds * factor);
  }
  return all;
}

std::unique_ptr<Measurer> make_modelled_measurer(const Platform& platform, const MeasureSettings& settings,
                                                 ModelledSettings modelled) {
  check_platform(platform);
  if (modelled.qemu_every < 1)
    throw base::UserError("qemu_every", fmt::format("{} is less than 1", modelled.qemu_every));
  return std::make_unique<ModelledMeasurer>(platform, settings, std::move(modelled));
}

}  // namespace graft::tasks
