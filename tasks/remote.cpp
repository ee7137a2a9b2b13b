#include "tasks/remote.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/link.h"
#include "codegen/schedule/candidate_program.h"
#include "tasks/measurer.h"
#include "tasks/probe.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

constexpr int signal_base = 128;  // of a Delivery's exit code

// How results are said to be checked.
std::string check_under(const Remote& remote) {
  return remote.is_emulated() ? "qemu" : "remote";
}

// Compares the output of an executable's kernel with the expected one: ok with the seconds, or wrong_result.
Measurement judged(const Answer& answer, const Expected& expected, const codegen::Signature& signature) {
  Measurement measurement = without_times(Status::ok, "", "wall");
  std::string_view rest = answer.outputs;
  std::size_t parameter = 0;
  for (std::size_t t = 0; t < expected.computation.tensors.size(); ++t) {
    const codegen::Tensor& tensor = expected.computation.tensors[t];
    if (tensor.role == codegen::Role::temporary) continue;
    const codegen::Parameter& stored = signature.parameters[parameter++];
    if (tensor.role != codegen::Role::output) continue;
    const std::size_t bytes = std::size_t(stored.bytes);
    if (rest.size() < bytes) {
      measurement.status = Status::crashed;
      measurement.reason = fmt::format("the answer lacks output '{}'", tensor.name);
      return measurement;
    }
    auto wrong = difference(tensor, expected.reference, int(t), signature.amplification, rest.substr(0, bytes),
                            stored.layout, stored.shape);
    if (wrong) {
      measurement.status = Status::wrong_result;
      measurement.reason = std::move(*wrong);
      return measurement;
    }
    rest.remove_prefix(bytes);
  }
  measurement.seconds = answer.seconds;
  if (measurement.seconds.empty()) measurement.seconds = {answer.first};
  return measurement;
}

Measurement outcome(Status status, std::string reason) {
  return without_times(status, std::move(reason), "wall");
}

// The status of a program that ended its executable.
Measurement ended(const Delivery& delivery, double timeout_seconds) {
  if (delivery.exit_code == signal_base + SIGALRM)
    return outcome(Status::timed_out, fmt::format("no end within {:g} s", timeout_seconds));
  return outcome(Status::crashed, delivery.reason);
}

// The longest time without a sign of a board that is at work.
std::chrono::milliseconds silence_of(double timeout_seconds) {
  constexpr double slack_seconds = 30;  // for a slow link, in addition to the program's own limit
  return std::chrono::milliseconds(std::int64_t((timeout_seconds + slack_seconds) * 1e3));
}

// What `judge` makes of the answer of an executable's only kernel, or how it ended without one.
Measurement answered(const Remote& remote, const std::string& executable, std::chrono::milliseconds deadline,
                     base::Monitor* monitor, const std::function<Measurement(const Answer&)>& judge) {
  const double timeout_seconds = double(deadline.count()) * 1e-3;
  std::optional<Measurement> measurement;
  const auto stops = [&] { return monitor != nullptr && monitor->stop_requested(); };
  const auto take = [&](const Answer& answer) { measurement = judge(answer); };
  const Delivery delivery = Board(remote, 0).run(executable, 1, silence_of(timeout_seconds), take, stops);
  if (!measurement && stops()) throw base::Stopped();
  return measurement ? *measurement : ended(delivery, timeout_seconds);
}

}  // namespace

Measurement run_under(const std::vector<std::string>& prefix, const codegen::LoopProgram& program,
                      const codegen::Target& target, const Expected& expected, int repetitions,
                      std::chrono::milliseconds deadline, base::Monitor* monitor) {
  const auto object = codegen::compile(program, target);
  if (!object) return outcome(Status::does_not_compile, object.reason().text);
  Remote remote;
  remote.prefix = prefix;
  return run_object(remote, *object, target, expected, repetitions, deadline, monitor);
}

Measurement run_object(const Remote& remote, const codegen::Code& object, const codegen::Target& target,
                       const Expected& expected, int repetitions, std::chrono::milliseconds deadline,
                       base::Monitor* monitor, std::string* outputs) {
  codegen::RunSettings run;
  run.repetitions = repetitions;
  run.timeout_seconds = double(deadline.count()) * 1e-3;
  const auto executable = codegen::link_executable({&object}, target, expected.computation, expected.reference, run);
  if (!executable) return outcome(Status::unsupported, executable.reason().text);
  return answered(remote, *executable, deadline, monitor, [&](const Answer& answer) {
    Measurement measurement = judged(answer, expected, object.signature);
    measurement.check = check_under(remote);
    if (outputs != nullptr) *outputs = answer.outputs;
    return measurement;
  });
}

ProgramRun run_program(const Remote& remote, const std::string& executable, std::chrono::milliseconds deadline,
                       base::Monitor* monitor) {
  ProgramRun run;
  run.measurement = answered(remote, executable, deadline, monitor, [&](const Answer& answer) {
    run.outputs = answer.outputs;
    Measurement measurement = outcome(Status::ok, "");
    measurement.seconds = answer.seconds;
    if (measurement.seconds.empty()) measurement.seconds = {answer.first};
    return measurement;
  });
  return run;
}

namespace {

// Programs of an executable: few in the first ones, which boards wait for, more when others are compiled meanwhile.
constexpr std::size_t first_in_one = 4, most_in_one = 8;
constexpr std::size_t most_ahead = 4;  // executables made for each board before it has answered the first of them
constexpr int most_lost = 2;           // times that a board may be lost during a program

// A program to measure, once, and its outcome.
struct Job {
  base::Result<codegen::Code> object = base::Reason{};
  std::optional<Measurement> result;
  bool alone = false;  // results in a shared executable are not trusted
  int lost = 0;        // times that its board was lost while it ran
};

// Jobs of one workload, compiled; for whichever board comes first.
struct Chunk {
  std::vector<Job> jobs;
  std::shared_ptr<const Expected> expected;
  codegen::RunSettings settings;
  std::string executable;  // of all jobs, made beforehand; for the first delivery
  bool is_done() const {
    return std::all_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.result.has_value(); });
  }
};

base::Result<std::string> linked(const Chunk& chunk, const std::vector<Job*>& jobs, const codegen::Target& target) {
  std::vector<const codegen::Code*> objects;
  for (const Job* job : jobs) objects.push_back(&*job->object);
  return codegen::link_executable(objects, target, chunk.expected->computation, chunk.expected->reference,
                                  chunk.settings);
}

// The boards at work on chunks, one thread each.
class BoardPool {
 public:
  BoardPool(const Remote& remote, const codegen::Target& target, const MeasureSettings& settings)
      : remote_(remote), target_(target), settings_(settings) {
    const std::size_t count = std::max<std::size_t>(remote.ssh.size(), 1);
    for (std::size_t b = 0; b < count; ++b) boards_.emplace_back(remote_, b);
    left_ = count;
    for (Board& board : boards_) board.open();
    for (std::size_t b = 0; b < count; ++b) threads_.emplace_back([this, b] { work(boards_[b]); });
  }
  ~BoardPool() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  BoardPool(const BoardPool&) = delete;
  BoardPool& operator=(const BoardPool&) = delete;

  std::size_t size() const { return boards_.size(); }
  void add(std::shared_ptr<Chunk> chunk) {
    const std::lock_guard lock(mutex_);
    chunks_.push_back(std::move(chunk));
    changed_.notify_all();
  }
  // Waits until the chunk is done, a little while, or there is no board left (Failure).
  bool wait_for(const Chunk& chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return chunk.is_done() || left_ == 0; });
    if (chunk.is_done()) return true;
    if (left_ == 0) throw base::Failure(lost_);
    return false;
  }
  std::vector<std::string> take_notes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  void work(Board& board) {
    for (;;) {
      std::shared_ptr<Chunk> chunk;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closing_.load() || !chunks_.empty(); });
        if (closing_) return;
        chunk = chunks_.front();
        chunks_.pop_front();
      }
      std::string failure;
      try {
        failure = run(board, *chunk);
      } catch (const std::exception& error) {  // the command cannot be started, an executable not be linked
        failure = error.what();
      }
      const std::lock_guard lock(mutex_);
      if (!failure.empty()) {
        lost_ = fmt::format("{}: {}", board.name(), failure);
        notes_.push_back(lost_ + "; given up");
        chunks_.push_front(std::move(chunk));
        --left_;
      }
      changed_.notify_all();
      if (!failure.empty()) return;
    }
  }

  void set(Job& job, Measurement measurement) {
    const std::lock_guard lock(mutex_);
    job.result = std::move(measurement);
  }

  // Why the board is given up; empty when the chunk is done, or nobody waits for it any more.
  std::string run(Board& board, Chunk& chunk) {
    std::int64_t tries = 0;
    double wait_seconds = remote_.retry_seconds;
    for (;;) {
      std::vector<Job*> jobs;
      for (Job& job : chunk.jobs) {
        if (job.result || (job.alone && !jobs.empty())) continue;
        jobs.push_back(&job);
        if (job.alone) break;
      }
      if (jobs.empty() || closing_) return {};
      const auto delivery = deliver(board, chunk, jobs);
      if (!delivery) continue;
      if (!delivery->state.empty()) say_state(board, delivery->state);
      if (delivery->answered > 0) tries = 0, wait_seconds = remote_.retry_seconds;
      if (delivery->reason.empty()) continue;
      // Kernels end in their order, so the one that began last is the one that has not answered.
      Job* const running = delivery->began >= delivery->answered && std::size_t(delivery->began) < jobs.size()
                               ? jobs[std::size_t(delivery->began)]
                               : nullptr;
      if (delivery->ended && running != nullptr && delivery->exit_code != 0) {
        if (delivery->began == 0 || delivery->exit_code == signal_base + SIGALRM)
          set(*running, ended(*delivery, settings_.timeout_seconds));
        else
          running->alone = true;
        continue;
      }
      if (running != nullptr && ++running->lost >= most_lost) {
        set(*running, outcome(Status::crashed, fmt::format("the board was lost {} times while it ran: {}", most_lost,
                                                           delivery->reason)));
        continue;
      }
      if (delivery->permanent || ++tries >= remote_.attempts) return delivery->reason;
      {
        std::unique_lock lock(mutex_);
        notes_.push_back(fmt::format("{}: {}; again in {:g} s", board.name(), delivery->reason, wait_seconds));
        changed_.wait_for(lock, std::chrono::duration<double>(wait_seconds), [&] { return closing_.load(); });
        if (closing_) return {};
      }
      wait_seconds *= 2;
    }
  }

  // nullopt if no executable can be made: then the jobs have their results.
  std::optional<Delivery> deliver(Board& board, Chunk& chunk, const std::vector<Job*>& jobs) {
    base::Result<std::string> executable = std::exchange(chunk.executable, {});
    if (executable->empty()) executable = linked(chunk, jobs, target_);
    if (!executable) {
      for (Job* job : jobs) set(*job, outcome(Status::unsupported, executable.reason().text));
      return std::nullopt;
    }
    const auto take = [&](const Answer& answer) {
      Job& job = *jobs.at(std::size_t(answer.kernel));
      Measurement measurement = judged(answer, *chunk.expected, job.object->signature);
      measurement.check = check_under(remote_);
      if (measurement.status != Status::ok && answer.kernel > 0) {
        job.alone = true;
        return;
      }
      if (measurement.status == Status::ok && chunk.settings.abort_seconds > 0 &&
          answer.first > chunk.settings.abort_seconds) {
        measurement.status = Status::slower_than_limit;
        measurement.reason =
            fmt::format("first run took {:.3g} s, the limit is {:.3g} s", answer.first, chunk.settings.abort_seconds);
      }
      set(job, std::move(measurement));
    };
    return board.run(*executable, int(jobs.size()), silence_of(settings_.timeout_seconds), take,
                     [this] { return closing_.load(); });
  }

  // Once for each board: its report changes with its temperature.
  void say_state(const Board& board, const std::string& state) {
    const std::lock_guard lock(mutex_);
    if (said_.insert(board.name()).second) notes_.push_back(fmt::format("{}: {}", board.name(), state));
  }

  const Remote remote_;
  const codegen::Target target_;
  const MeasureSettings settings_;
  std::vector<Board> boards_;
  std::mutex mutex_;  // of all below, and of the results of jobs
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Chunk>> chunks_;
  std::vector<std::string> notes_;
  std::set<std::string> said_;  // names of boards whose state was noted
  std::string lost_;
  std::size_t left_ = 0;
  std::atomic<bool> closing_ = false;
  std::vector<std::thread> threads_;
};

class RemoteMeasurer : public Measurer {
 public:
  RemoteMeasurer(const Platform& platform, const Remote& remote, const MeasureSettings& settings)
      : target_(platform.target), settings_(settings) {
    if (settings.repetitions < 1) {
      throw base::UserError("repetitions", fmt::format("{} is less than 1", settings.repetitions));
    }
    if (!(settings.timeout_seconds > 0)) {
      throw base::UserError("timeout_seconds", fmt::format("{:g} is not positive", settings.timeout_seconds));
    }
    if (remote.is_emulated()) require_runs(platform, remote);
    crew_ = std::make_unique<BoardPool>(remote, target_, settings_);
  }

  // The next chunks are compiled while boards run the ones before.
  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    std::vector<Planned> plan;
    for (const codegen::Candidate& candidate : candidates) plan.push_back(planned(candidate));
    std::deque<ChunkInFlight> sent;
    std::size_t reported = 0, chunks = 0;
    for (std::size_t next = 0; reported < plan.size();) {
      if (monitor.stop_requested()) return;
      if (next < plan.size() && sent.size() < most_ahead * crew_->size()) {
        try {
          next = send(candidates, plan, next, chunks++ < crew_->size() ? first_in_one : most_in_one, sent, monitor);
        } catch (const base::Stopped&) {
          return;
        }
      } else if (!sent.empty() && crew_->wait_for(*sent.front().chunk)) {
        keep(sent.front());
        sent.pop_front();
      }
      for (const std::string& line : crew_->take_notes()) monitor.note(line);
      for (; reported < next; ++reported) {
        const Planned& one = plan[reported];
        const auto known = measured_.find(one.key);
        if (one.program && known == measured_.end()) break;
        on_trial({std::int64_t(reported), one.key.second,
                  one.program ? known->second : outcome(Status::does_not_lower, one.program.reason().text)});
      }
    }
  }

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // workload and program

  struct Planned {
    Key key;
    base::Result<codegen::LoopProgram> program;
  };
  struct ChunkInFlight {
    std::shared_ptr<Chunk> chunk;
    std::vector<Key> keys;  // of its jobs
  };

  Planned planned(const codegen::Candidate& candidate) const {
    auto program = codegen::program(candidate, target_);
    const std::uint64_t hash = program ? codegen::hash(*program) : 0;
    return {{candidate.workload.text(), hash}, std::move(program)};
  }

  // Sends at most `most` programs of one workload that are neither known nor in transfer, from `next` on; returns
  // the position after them.
  std::size_t send(std::span<const codegen::Candidate> candidates, const std::vector<Planned>& plan, std::size_t next,
                   std::size_t most, std::deque<ChunkInFlight>& sent, base::Monitor& monitor) {
    ChunkInFlight out{std::make_shared<Chunk>(), {}};
    std::vector<std::size_t> positions;
    const std::string& workload = plan[next].key.first;
    for (; next < plan.size() && positions.size() < most && plan[next].key.first == workload; ++next) {
      const Key& key = plan[next].key;
      if (!plan[next].program || measured_.contains(key) || !under_way_.insert(key).second) continue;
      positions.push_back(next);
      out.keys.push_back(key);
    }
    if (positions.empty()) return next;
    const codegen::Workload& of = candidates[positions.front()].workload;
    if (expected_ == nullptr || expected_of_ != workload)
      expected_ = std::make_shared<const Expected>(LatestExpected(settings_.inputs, settings_.threads).of(of, monitor)),
      expected_of_ = workload;
    out.chunk->expected = expected_;
    codegen::RunSettings& run = out.chunk->settings;
    run.repetitions = settings_.repetitions;
    run.minimum_seconds = settings_.minimum_seconds;
    run.timeout_seconds = settings_.timeout_seconds;
    if (const auto best = best_.find(workload); settings_.abort_factor > 0 && best != best_.end())
      run.abort_seconds = std::max(settings_.abort_factor * best->second, settings_.minimum_seconds);
    out.chunk->jobs.resize(positions.size());
    base::parallel_for(std::int64_t(positions.size()), settings_.threads, monitor, [&](std::int64_t i) {
      Job& job = out.chunk->jobs[std::size_t(i)];
      const std::string symbol = fmt::format("graft{}", i);
      job.object = codegen::compile(*plan[positions[std::size_t(i)]].program, target_,
                                    codegen::search_pipeline(target_), symbol);
      if (!job.object) job.result = outcome(Status::does_not_compile, job.object.reason().text);
    });
    std::vector<Job*> jobs;
    for (Job& job : out.chunk->jobs)
      if (!job.result) jobs.push_back(&job);
    if (!jobs.empty()) {
      base::Result<std::string> executable = linked(*out.chunk, jobs, target_);
      if (executable) out.chunk->executable = std::move(executable).value();
    }
    crew_->add(out.chunk);
    sent.push_back(std::move(out));
    return next;
  }

  void keep(const ChunkInFlight& sent) {
    for (std::size_t i = 0; i < sent.keys.size(); ++i) {
      const Measurement& measurement = *sent.chunk->jobs[i].result;
      under_way_.erase(sent.keys[i]);
      if (measurement.status == Status::ok) {
        const double seconds = datasets::seconds_of(measurement);
        double& best = best_.emplace(sent.keys[i].first, seconds).first->second;
        best = std::min(best, seconds);
      }
      measured_.emplace(sent.keys[i], measurement);
    }
  }

  codegen::Target target_;
  MeasureSettings settings_;
  std::shared_ptr<const Expected> expected_;
  std::string expected_of_;              // the workload
  std::map<Key, Measurement> measured_;  // each distinct program once
  std::set<Key> under_way_;
  std::map<std::string, double> best_;  // seconds, by workload
  std::unique_ptr<BoardPool> crew_;
};

class RemoteDevice : public Device {
 public:
  explicit RemoteDevice(Remote remote) : remote_(std::move(remote)) {}
  std::string source() const override { return remote_.is_emulated() ? "emulated" : "remote"; }
  Place place() const override { return Place::elsewhere; }
  std::unique_ptr<Measurer> measurer(const Platform& platform, const MeasureSettings& settings,
                                     Shared*) const override {
    return std::make_unique<RemoteMeasurer>(platform, remote_, settings);
  }
  CodeRunner runner() const override { return {remote_, check_under(remote_), ""}; }

 private:
  const Remote remote_;
};

Remote remote_from(const base::Document& document, const std::filesystem::path& file) {
  Remote remote;
  if (const base::Document* prefix = document.find("prefix")) {
    document.only_keys({"prefix"});
    remote.prefix = command_from(*prefix);
    return remote;
  }
  document.only_keys({"ssh", "ssh_config", "runner", "folder", "core", "attempts", "retry_seconds"});
  const base::Document& ssh = document.at("ssh");
  if (ssh.is_list())
    remote.ssh = command_from(ssh);
  else
    remote.ssh = {ssh.as_string()};
  for (const std::string& destination : remote.ssh)
    if (destination.empty() || destination[0] == '-')
      throw base::UserError(ssh.place(),
                            fmt::format("'{}' is not a destination of ssh; give HOST or USER@HOST", destination));
  if (const base::Document* config = document.find("ssh_config"); config != nullptr && !config->as_string().empty())
    remote.ssh_config = file.parent_path() / config->as_string();
  if (const base::Document* runner = document.find("runner")) remote.runner = command_from(*runner);
  if (const base::Document* folder = document.find("folder")) remote.folder = folder->as_string();
  const auto integer = [&](const char* key, std::int64_t& value, std::int64_t least, std::int64_t greatest) {
    const base::Document* const given = document.find(key);
    if (given == nullptr) return;
    value = given->as_integer();
    if (value < least || value > greatest)
      throw base::UserError(given->place(), fmt::format("{} must be {} to {}, got {}", key, least, greatest, value));
  };
  integer("core", remote.core, 0, 4095);
  integer("attempts", remote.attempts, 1, 100);
  if (const base::Document* wait = document.find("retry_seconds")) {
    remote.retry_seconds = wait->as_number();
    if (!(remote.retry_seconds >= 0 && remote.retry_seconds <= 3600))
      throw base::UserError(wait->place(),
                            fmt::format("retry_seconds must be 0 to 3600, got {:g}", remote.retry_seconds));
  }
  return remote;
}

}  // namespace

std::shared_ptr<const Device> remote_device(Remote remote) {
  return std::make_shared<RemoteDevice>(std::move(remote));
}

std::shared_ptr<const Device> read_remote(const base::Document& own, const base::Document&, const std::string& file,
                                          codegen::Target&) {
  return remote_device(remote_from(own, file));
}

}  // namespace graft::tasks
