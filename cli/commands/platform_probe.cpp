#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "study/inputs/output.h"
#include "study/inputs/request.h"
#include "tasks/opencl.h"
#include "tasks/probe.h"

namespace graft::cli {
namespace {

struct ProbeFlags {
  std::string board, out, runner, ssh_config, folder = "/tmp", cpuinfo, isa;
  std::int64_t core = -1, opencl = -1;
};

// "ssh://root@board" or "root@board"; without a board, what the runner is here.
tasks::Remote board_of(const ProbeFlags& flags) {
  tasks::Remote remote;
  remote.core = flags.core;
  for (const std::string_view word : base::words(flags.runner)) remote.runner.emplace_back(word);
  if (flags.board.empty()) {
    remote.prefix = std::move(remote.runner);
    return remote;
  }
  std::string destination = flags.board;
  if (destination.starts_with("ssh://")) destination.erase(0, std::string_view("ssh://").size());
  if (destination.empty() || destination[0] == '-')
    throw base::UserError(
        "BOARD", fmt::format("'{}' is not a destination of ssh; give ssh://HOST or ssh://USER@HOST", flags.board));
  remote.ssh = {destination};
  remote.ssh_config = flags.ssh_config;
  remote.folder = flags.folder;
  return remote;
}

int probe(const ProbeFlags& flags, Session& session) {
  if (!flags.out.empty()) study::check_output("out", flags.out, study::Writes::text);
  if (!flags.isa.empty() && flags.cpuinfo.empty())
    throw base::UserError("--isa", "goes with --cpuinfo FILE, the text of the board's /proc/cpuinfo");
  const bool pins = flags.core >= 0 && flags.cpuinfo.empty();  // else it chooses a core of the text
  if (flags.board.empty() && (!flags.ssh_config.empty() || flags.folder != ProbeFlags().folder || pins))
    throw base::UserError("BOARD", "missing: options of a board need a board, ssh://HOST");
  if (flags.opencl >= 0 && !(flags.board.empty() && flags.runner.empty() && flags.cpuinfo.empty()))
    throw base::UserError("--opencl", "does not take this: a device of this host goes with --out alone");
  tasks::Probed probed;
  std::string what = flags.board.empty() ? flags.runner : flags.board;
  if (!flags.cpuinfo.empty()) {
    what = flags.cpuinfo;
    probed = tasks::described(base::read_file(flags.cpuinfo), flags.isa, board_of(flags));
  } else if (flags.opencl >= 0) {
    what = fmt::format("opencl:{}", flags.opencl);
    probed = {tasks::opencl_yaml(int(flags.opencl)), "what its driver says", {}};
  } else if (what.empty()) {
    probed = tasks::probed_here();
    what = study::host_cpu();
    probed.yaml = fmt::format("# {}, {} threads\n{}", what, base::hardware_threads(), probed.yaml);
    session.output.json().set("cpu", what);
  } else {
    probed = tasks::probed(board_of(flags));
  }
  const std::string& yaml = probed.yaml;
  base::Document notes = base::Document::list();
  for (const std::string& note : probed.notes) {
    session.progress.note(note);
    notes.push(note);
  }
  session.output.json().set("saw", probed.saw).set("notes", std::move(notes));
  const tasks::Platform platform = tasks::parse_platform(yaml, "probed");
  session.output.json().set("yaml", yaml).set("target", codegen::to_document(platform.target));
  if (flags.out.empty()) {
    session.output.text(yaml);
  } else {
    base::replace_file(flags.out, yaml);
    session.output.line(
        fmt::format("{}: {}: {}, {}", flags.out, what,
                    flags.cpuinfo.empty() && flags.opencl < 0 ? "a program ran there" : "described, nothing ran there",
                    probed.saw));
    session.output.json().set("out", flags.out);
  }
  return done;
}

}  // namespace

Command platform_probe_command() {
  return {
      .name = "platform probe",
      .help =
          "run a program on this machine, or on a board over ssh, read a board's /proc/cpuinfo, or ask a GPU's driver, "
          "and "
          "write its YAML",
      .examples =
          {"graft platform probe --out here.yaml", "graft platform probe ssh://root@board --out board.yaml",
           "graft platform probe --runner 'qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=256' --out riscv.yaml",
           "graft platform probe ssh://board --cpuinfo /proc/cpuinfo --out board.yaml",
           "graft platform probe ssh://board --cpuinfo /proc/cpuinfo --core 0",
           "graft platform probe --opencl 0 --out gpu.yaml"},
      .declare = [](Options& options) -> Action {
        const auto flags = std::make_shared<ProbeFlags>();
        options.positional("BOARD", flags->board,
                           "ssh://HOST or ssh://USER@HOST, as the OpenSSH client knows it; this machine without it",
                           Options::optional);
        options.text("out", flags->out, "file to write; standard output without it");
        options.text("cpuinfo", flags->cpuinfo,
                     "the text of a board's /proc/cpuinfo: its YAML is made of this alone, and nothing runs there");
        options.text("isa", flags->isa,
                     "in place of what that text says of extensions: rv64imafdcv_zvl256b, the Features of aarch64, the "
                     "flags of x86");
        options.text(
            "runner", flags->runner,
            "command that runs programs there (here, without a board), such as qemu with its options, words separated "
            "by spaces; with --cpuinfo, extensions that it does not run are left out");
        options.text("ssh-config", flags->ssh_config, "file for ssh -F; default: your own");
        options.text("folder", flags->folder, "folder on the board for the programs while they run");
        options.integer("core", flags->core, -1,
                        "core of the board to run programs on, and, where cores are of several kinds, to describe; -1: "
                        "any, described by what all cores run");
        options.integer("opencl", flags->opencl, -1,
                        "number of a device of OpenCL of this host (graft platform list shows them), such as its GPU");
        return [flags](Session& session) { return probe(*flags, session); };
      }};
}

}  // namespace graft::cli
