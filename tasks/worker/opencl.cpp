// graft-worker-opencl: runs kernels of OpenCL in a process of its own, so that a driver that crashes or hangs costs one
// candidate. `graft-worker-opencl DEVICE` converses with graft as graft-worker does (wire.h); a candidate's file is the
// source (codegen/machine/opencl.h). `graft-worker-opencl list` prints a line of JSON for each device.
//
// Times are of the wall clock, around as many runs as make the least time of a repetition. A timer ends what takes too
// long, the driver's compiler or the kernel, and the process with it: a call of the driver cannot be left otherwise.
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/worker/checking.h"
#include "tasks/worker/conversation.h"
#include "tasks/worker/opencl_host.h"
#include "tasks/worker/wire.h"

namespace {

using namespace graft::tasks::wire;
namespace opencl = graft::tasks::opencl;

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

void say(Answer& answer, Outcome outcome, const std::string& text) {
  answer.outcome = outcome;
  snprintf(answer.message, sizeof answer.message, "%s", text.c_str());
}

// A file of the other side.
struct Mapped {
  Mapped(int file, std::size_t size) : bytes(size) {
    void* const at = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    data = at == MAP_FAILED ? nullptr : static_cast<const char*>(at);
  }
  Mapped(const Mapped&) = delete;
  ~Mapped() {
    if (data != nullptr) munmap(const_cast<char*>(data), bytes);
  }
  const char* data = nullptr;
  std::size_t bytes;
};

struct Workload {
  std::unique_ptr<Mapped> file;
  std::vector<Part> parts;
  std::vector<opencl::Memory> memory;
};

// What the timer answers before it ends the process.
Answer late_answer;

void answer_late(int) {
  reply(late_answer);
  _exit(0);
}

void limit(double seconds, const char* what) {
  late_answer = {};
  say(late_answer, Outcome::timed_out, std::string(what) + " took more than " + std::to_string(int(seconds)) + " s");
  alarm(unsigned(seconds) + 1);
}

Outcome outcome_of(const opencl::Error& error) {
  switch (error.number) {
    case -4:   // of memory objects
    case -5:   // of resources
    case -6:   // of the host
    case -61:  // a buffer's size
      return Outcome::out_of_memory;
    case -11:  // it cannot be built
    case -54:  // the kernel, with what it needs, has no groups of that size
    case -55:  // it has fewer work-items along an axis
      return Outcome::does_not_compile;
    default:
      return Outcome::crashed;
  }
}

void take_workload(const opencl::Queue& queue, const Request& request, int file, Workload& workload) {
  workload = {};
  workload.file = std::make_unique<Mapped>(file, request.file_bytes);
  if (workload.file->data == nullptr) throw opencl::Error("no room for the workload's inputs", -6);
  const Part* const parts = reinterpret_cast<const Part*>(workload.file->data);
  workload.parts.assign(parts, parts + request.parts);
  for (const Part& part : workload.parts) {
    workload.memory.emplace_back(queue, part.bytes);
    if (part.written == 0) workload.memory.back().write(workload.file->data + part.data);
  }
}

bool check_outputs(const Workload& workload, double factor, Answer& answer) {
  for (std::size_t i = 0; i < workload.parts.size(); ++i) {
    const Part& part = workload.parts[i];
    if (part.written == 0) continue;
    std::string bytes(part.bytes, '\0');
    workload.memory[i].read(bytes.data());
    if (!compare(part, workload.file->data, bytes.data(), factor, answer)) return false;
  }
  return true;
}

void measure(const opencl::Queue& queue, const opencl::Program& program, const Request& request,
             const Workload& workload, Answer& answer) {
  const auto timed = [&](std::int64_t calls) {
    const double begin = now();
    for (std::int64_t i = 0; i < calls; ++i) program.enqueue("run");
    queue.finish();
    return (now() - begin) / double(calls);
  };
  program.enqueue("prepare");
  program.enqueue("run");
  queue.finish();
  limit(request.timeout_seconds, "the kernel");
  const double stop = now() + request.timeout_seconds;
  if (!check_outputs(workload, request.tolerance_factor, answer) || request.repetitions == 0) return;
  double one = timed(1);
  if (request.abort_seconds > 0 && one > request.abort_seconds) {
    answer.outcome = Outcome::slower_than_limit;
    answer.seconds[answer.count++] = one;
    return;
  }
  std::int64_t calls = 1;
  while (answer.count < request.repetitions) {
    if (now() + one * double(calls) > stop) break;
    one = std::max(timed(calls), 1e-9);
    if (one * double(calls) < request.minimum_seconds) {
      calls = std::int64_t(double(calls) * std::min(1.1 * request.minimum_seconds / (one * double(calls)), 10.0)) + 1;
      continue;
    }
    answer.seconds[answer.count++] = one;
  }
  if (answer.count == 0) answer.seconds[answer.count++] = one;
}

void take_candidate(const opencl::Queue& queue, const Request& request, int file, const Workload& workload,
                    Answer& answer) {
  const off_t size = lseek(file, 0, SEEK_END);
  const Mapped source(file, std::size_t(size));
  if (size <= 0 || source.data == nullptr) throw opencl::Error("the candidate's source cannot be read", 0);
  std::vector<opencl::Handle> handles;
  for (std::size_t i = 0; i < workload.parts.size(); ++i) {
    // NaN in floating point: an element that is never written cannot pass.
    const Part& part = workload.parts[i];
    if (part.written != 0)
      workload.memory[i].write(std::string(part.bytes, char(is_floating(part.element) ? unwritten : 0xa5)).data());
    handles.push_back(workload.memory[i].handle);
  }
  limit(request.timeout_seconds + build_seconds, "the driver's compiler and the first run");  // PoCL compiles then
  const opencl::Program program(queue, std::string(source.data, std::size_t(size)), handles);
  measure(queue, program, request, workload, answer);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text)
    if (c >= ' ' && c != '"' && c != '\\') result += c;
  return result + "\"";
}

int list() {
  int number = 0;
  for (const opencl::Handle device : opencl::Loader::get().devices()) {
    printf(
        "{\"device\": %d, \"name\": %s, \"driver\": %s, \"version\": %s, \"compute_units\": %llu, "
        "\"group_items\": %llu, \"group_bytes\": %llu, \"fp64\": %s}\n",
        number++, quoted(text_of(device, opencl::device_name)).c_str(),
        quoted(text_of(device, opencl::driver_version)).c_str(),
        quoted(text_of(device, opencl::device_version)).c_str(),
        static_cast<unsigned long long>(number_of(device, opencl::compute_units)),
        static_cast<unsigned long long>(number_of(device, opencl::largest_group)),
        static_cast<unsigned long long>(number_of(device, opencl::local_bytes)),
        number_of(device, opencl::double_precision) != 0 ? "true" : "false");
  }
  return 0;
}

int converse(std::size_t device) {
  signal(SIGALRM, answer_late);
  std::optional<opencl::Queue> queue;
  std::string failure = "there is no such device of OpenCL";
  try {
    const std::vector<opencl::Handle> devices = opencl::Loader::get().devices();
    if (device < devices.size()) queue.emplace(devices[device]);
  } catch (const opencl::Error& error) {
    failure = error.what();
  }
  Workload workload;
  Request request;
  int file = -1;
  while (receive(request, file)) {
    Answer answer;
    try {
      if (!queue) throw opencl::Error(failure, 0);
      if (request.kind == Kind::workload)
        take_workload(*queue, request, file, workload);
      else
        take_candidate(*queue, request, file, workload, answer);
    } catch (const opencl::Error& error) {
      say(answer, outcome_of(error), error.what());
    }
    alarm(0);
    if (file >= 0) close(file);
    if (!reply(answer)) return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string argument = count > 1 ? arguments[1] : "0";
  try {
    return argument == "list" ? list() : converse(std::size_t(std::atoi(argument.c_str())));
  } catch (const opencl::Error& error) {
    fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
