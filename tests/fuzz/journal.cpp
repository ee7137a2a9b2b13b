// The JSON in which workloads and schedules are kept: the lines of a journal.
#include "datasets/journal.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/schedule/candidate_program.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {

void examine(std::string_view text) {
  const int file = ::memfd_create("journal", MFD_CLOEXEC);
  promise(file >= 0 && ::write(file, text.data(), text.size()) == ::ssize_t(text.size()), "there is a file");
  const auto content = accepted([&] { return datasets::read_journal(fmt::format("/proc/self/fd/{}", file)); });
  ::close(file);
  if (!content) return;
  promise(content->intact_bytes <= std::int64_t(text.size()), "no more is intact than there is");
  for (const datasets::Trial& trial : content->trials) {
    promise(contradiction(trial.measurement).empty(), "measurements of a journal make sense");
    // A journal keeps texts that other versions wrote: they need not fit anything here.
    (void)accepted([&] { return codegen::parse_workload(trial.candidate.workload.text()); });
    (void)schedule(trial.candidate);
  }
}

}  // namespace graft::fuzz
