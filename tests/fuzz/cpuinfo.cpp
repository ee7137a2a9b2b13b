// What a board's /proc/cpuinfo says. A first line that is a number chooses a processor.
#include "codegen/machine/cpuinfo.h"

#include <charconv>

#include "codegen/machine/backend.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

// The promises of a target that was read.
void hold_promises(const codegen::CpuinfoTarget& read, std::string_view text) {
  const codegen::Target& target = read.target;
  const std::string described = to_document(target).to_json();
  const bool is_good = accepted([&] {
                         codegen::check_description(target);
                         return true;
                       }).has_value();
  promise(is_good, "LLVM knows what was read", text, described);
  promise(target.cores >= 1, "cores are counted", text, described);
  for (const std::string& note : read.notes) promise(note.find('\n') == note.npos, "a note is one line", text, note);
  for (const std::int64_t bits : {0, 128, 1024}) {
    const codegen::Target changed = codegen::with_vectors(target, bits);
    promise(changed == codegen::with_vectors(changed, bits), "vectors are told once", text,
            to_document(changed).to_json());
    promise(accepted([&] {
              codegen::check_description(changed);
              return true;
            }).has_value(),
            "LLVM knows it with other vectors", text, to_document(changed).to_json());
  }
}

}  // namespace

void examine(std::string_view text) {
  std::int64_t core = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), core);
  if (error == std::errc()) text.remove_prefix(std::size_t(end - text.data()));
  const std::string cpuinfo(text);
  (void)codegen::name_of_cpuinfo(cpuinfo);
  const std::string machine = codegen::machine_of_cpuinfo(cpuinfo);
  if (machine.empty()) return;
  const auto all = accepted([&] { return codegen::target_of_cpuinfo(machine, cpuinfo); });
  promise(all.has_value(), "a machine that is known is read", text);
  hold_promises(*all, text);
  promise(all->kinds >= 1 && all->kinds <= all->target.cores, "kinds are of cores", text);
  if (core < 0) return;
  if (const auto one = accepted([&] { return codegen::target_of_cpuinfo(machine, cpuinfo, core); })) {
    hold_promises(*one, text);
    promise(one->target.cores <= all->target.cores, "a kind is part of all", text);
  }
}

}  // namespace graft::fuzz
