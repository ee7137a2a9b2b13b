#include "tasks/board.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/one_line.h"
#include "base/process.h"
#include "base/text.h"
#include "tasks/temporary_program.h"

namespace graft::tasks {
namespace {

constexpr std::size_t longest_line = 1 << 20;
constexpr std::size_t most_output_bytes = std::size_t(1) << 33;
constexpr int signal_base = 128;           // of a shell's exit codes
constexpr int no_file = 97, no_room = 98;  // exit codes of our script

// Why something did not happen, and whether asking again can help.
struct Trouble {
  std::string reason;
  bool permanent = false;
};

// What OpenSSH's client says where asking again does not help, and what does.
struct Refusal {
  std::string_view said, remedy;
};
constexpr std::array refusals{
    Refusal{"Can't open user config file", "ssh_config must name a file that exists, as seen from the YAML's folder"},
    Refusal{"Bad configuration option", "correct that line"},
    Refusal{"Bad owner or permissions on", "make that file yours alone: chmod 600"},
    Refusal{": terminating, ", "correct that file"},
    Refusal{"Host key verification failed",
            "log in once by hand: ssh asks whether the key is the board's, or says "
            "which line of known_hosts is of another one"},
    Refusal{"Permission denied (",
            "ssh must let you in without a question: ssh-copy-id, or IdentityFile in ssh_config"},
    Refusal{"Too many authentication failures", "name the key in ssh_config: IdentityFile and IdentitiesOnly yes"},
    Refusal{"Unable to negotiate with", "allow that algorithm in ssh_config"},
    Refusal{"Name or service not known", "correct the name, or give its HostName in ssh_config"},
};

// From ssh's standard error before it ended by itself. Unknown messages are taken for a lost connection
// or a booting board.
Trouble trouble_of_ssh(const std::string& err, int exit_code) {
  for (const Refusal& refusal : refusals) {
    for (const std::string_view line : base::split(err, '\n')) {
      if (line.find(refusal.said) == std::string_view::npos) continue;
      std::string said = base::one_line(line);
      if (said.ends_with('.')) said.pop_back();
      return {fmt::format("{}; {}", said, refusal.remedy), true};
    }
  }
  const std::string said = base::one_line(err);
  return {said.empty() ? fmt::format("ssh ended with exit code {}", exit_code) : said};
}

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// Takes executables from its input, each after a line with its size, when the previous one has ended: reports the
// board's state, runs it, and reports how it ended; one that did not end well ends the script, because the reader
// cannot know where its output breaks off. While a program runs, the only possible input is the end of the connection,
// which kills the program. (Who waits for that end goes by signal 9: a young child of a shell may still take 15 for one
// of its parent's traps.)
std::string script_of(const Remote& remote) {
  std::string run;
  for (const std::string& word : remote.runner) run += shell_word(word) + " ";
  const std::string pin =
      remote.core < 0 ? "" : fmt::format("command -v taskset >/dev/null 2>&1 && pin='taskset -c {}'\n", remote.core);
  const std::int64_t core = std::max<std::int64_t>(remote.core, 0);
  return fmt::format(R"sh(f=
trap 'rm -f "$f"' EXIT
trap 'exit 99' HUP INT TERM PIPE
pin=
{pin}exec 3<&0
while read -r n; do
  f=$(mktemp {folder}/graft.XXXXXXXX) || exit {no_file}
  head -c "$n" >"$f" 2>/dev/null
  [ "$(wc -c <"$f")" -eq "$n" ] && chmod 700 "$f" || exit {no_room}
  g= t=
  {{ read -r g </sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor; }} 2>/dev/null
  {{ read -r t </sys/class/thermal/thermal_zone0/temp; }} 2>/dev/null
  printf '{{"board":{{"governor":"%s","millidegrees":"%s"}}}}\n' "$g" "$t"
  $pin {run}"$f" </dev/null 3<&- &
  p=$!
  {{ read -r n <&3; kill -9 $p; }} 2>/dev/null &
  w=$!
  wait $p
  code=$?
  kill -9 $w 2>/dev/null
  wait $w 2>/dev/null
  rm -f "$f"
  printf '\n{{"exit":%d}}\n' $code
  [ $code -eq 0 ] || exit 0
done
)sh",
                     fmt::arg("folder", shell_word(remote.folder)), fmt::arg("pin", pin), fmt::arg("core", core),
                     fmt::arg("run", run), fmt::arg("no_file", no_file), fmt::arg("no_room", no_room));
}

// The result of `start`; its Failure, with the remedy, if a program cannot be started.
template <class Start>
auto started(Start start) {
  try {
    return start();
  } catch (const base::Failure& failure) {
    const std::string said = failure.what();
    throw base::Failure(said.starts_with("cannot start ") ? said + "; install it, or correct its name" : said);
  }
}

std::string ending(int code) {
  if (code > signal_base && code < signal_base + 65)
    return fmt::format("ended by signal {} ({})", code - signal_base, ::strsignal(code - signal_base));
  return fmt::format("ended with exit code {}", code);
}

// For a program that ended before its first line: with an exit code or by an illegal instruction it will do so again.
Trouble trouble_of_start(const Remote& remote, int code, const std::string& said) {
  constexpr int not_executable = 126, not_found = 127;
  const std::vector<std::string>& runner = remote.ssh.empty() ? remote.prefix : remote.runner;
  const char* const place = remote.ssh.empty() ? "here" : "there";
  std::string reason =
      fmt::format("the program {} before its first line", code == 0 ? "ended without a word" : ending(code));
  if (!said.empty()) reason += ": " + said;
  if (code > signal_base && code != signal_base + SIGILL) return {reason};
  std::string remedy = "is this the board's target? graft platform probe finds it out";
  if (!runner.empty() && code == not_found)
    remedy = fmt::format("install '{}' {}, or name another runner", runner[0], place);
  else if (!runner.empty() && said.find("unable to find CPU model") != std::string::npos)
    remedy = fmt::format("'{} -cpu help' lists those that it knows", runner[0]);
  else if (!runner.empty())
    remedy = fmt::format("try '{} PROGRAM' {} with any static executable", base::join(runner, " "), place);
  else if (code == not_executable)
    remedy =
        fmt::format("programs must be allowed to run in {} (mounted noexec?), or give another folder", remote.folder);
  return {fmt::format("{}; {}", reason, remedy), true};
}

// "performance governor, 45 C".
std::string state_text(const base::Document& board) {
  std::vector<std::string> parts;
  if (const std::string governor(base::trim(board.at("governor").as_string())); !governor.empty())
    parts.push_back(governor + " governor");
  const std::string degrees(base::trim(board.at("millidegrees").as_string()));
  if (degrees.size() > 3 && degrees.find_first_not_of("0123456789") == std::string::npos)
    parts.push_back(degrees.substr(0, degrees.size() - 3) + " C");
  return base::join(parts, ", ");
}

}  // namespace

bool Remote::is_emulated() const {
  const std::vector<std::string>& command = prefix.empty() ? runner : prefix;
  return !command.empty() && std::filesystem::path(command[0]).filename().string().starts_with("qemu");
}

std::vector<std::string> command_from(const base::Document& list) {
  std::vector<std::string> words;
  for (const base::Document& word : list.as_list()) words.push_back(word.as_string());
  if (words.empty()) throw base::UserError(list.place(), "expected a command as a list of words, got an empty list");
  return words;
}

void AnswerReader::read(std::string_view piece) {
  while (!piece.empty() && stage_ != Stage::garbled) {
    if (stage_ == Stage::outputs) {
      const std::size_t take = std::min(piece.size(), wanted_ - answer_.outputs.size());
      answer_.outputs.append(piece.substr(0, take));
      piece.remove_prefix(take);
      if (answer_.outputs.size() < wanted_) return;
      end_answer();
      continue;
    }
    const std::size_t end = piece.find('\n');
    pending_.append(piece.substr(0, end));
    piece.remove_prefix(end == std::string_view::npos ? piece.size() : end + 1);
    if (pending_.size() > longest_line) {
      if (stage_ == Stage::lines) stage_ = Stage::garbled;
      pending_.clear();
    }
    if (end == std::string_view::npos) return;
    line(std::exchange(pending_, {}));
  }
}

void AnswerReader::end_answer() {
  stage_ = Stage::lines;
  ++answered_;
  on_answer_(std::move(answer_));
}

void AnswerReader::line(std::string_view text) {
  if (text.empty()) return;  // before the shell's last word
  try {
    const base::Document document = base::parse_json(text, "answer");
    if (const base::Document* board = document.find("board")) {
      state_ = state_text(*board);
    } else if (document.find("graft") != nullptr) {
      stage_ = Stage::lines;
    } else if (const base::Document* code = document.find("exit")) {
      exit_code_ = int(code->as_integer());
    } else if (stage_ == Stage::greetings) {
      return;
    } else if (const base::Document* begin = document.find("begin")) {
      const std::int64_t kernel = begin->as_integer();
      if (kernel != answered_ || kernel >= kernels_) throw base::UserError("answer", "out of turn");
      began_ = int(kernel);
    } else {
      answer_ = {};
      if (document.at("end").as_integer() != began_ || began_ != answered_)
        throw base::UserError("answer", "out of turn");
      answer_.kernel = began_;
      const double runs = document.at("runs").as_number();
      answer_.first = document.at("first").as_number() * 1e-9;
      for (const base::Document& time : document.at("times").as_list())
        answer_.seconds.push_back(std::max(time.as_number(), 1.0) * 1e-9 / runs);
      const std::int64_t bytes = document.at("bytes").as_integer();
      if (!(runs >= 1) || !(answer_.first > 0) || bytes < 0 || std::size_t(bytes) > most_output_bytes)
        throw base::UserError("answer", "makes no sense");
      wanted_ = std::size_t(bytes);
      stage_ = Stage::outputs;
      if (bytes == 0) end_answer();  // of outputs without elements
    }
  } catch (const base::UserError&) {  // a line that is none of ours
    if (stage_ == Stage::lines) stage_ = Stage::garbled;
  }
}

Board::Board(const Remote& remote, std::size_t which) : remote_(remote) {
  name_ = remote.ssh.empty() ? base::join(remote.prefix, " ") : remote.ssh.at(which);
  if (name_.empty()) name_ = "this machine";
  if (!remote.ssh.empty()) remote_.ssh = {remote.ssh.at(which)};
}

std::vector<std::string> Board::command(std::string_view script) const {
  std::vector<std::string> words = {"ssh",
                                    "-o",
                                    "BatchMode=yes",
                                    "-o",
                                    "ConnectTimeout=15",
                                    "-o",
                                    "ServerAliveInterval=5",
                                    "-o",
                                    "ServerAliveCountMax=3"};
  if (!remote_.ssh_config.empty()) words.insert(words.end(), {"-F", remote_.ssh_config});
  words.insert(words.end(), {"--", remote_.ssh[0], "exec sh -c " + shell_word(script)});
  return words;
}

void Board::open() {
  // It may have been lost while there was nothing to do.
  if (remote_.ssh.empty() || (session_ && session_->alive())) return;
  session_ = started([&] { return std::make_unique<base::Dialogue>(command(script_of(remote_))); });
}

std::optional<base::Finished> Board::converse(std::string_view executable, base::Exchange exchange) {
  constexpr std::chrono::hours deadline(24);
  if (remote_.ssh.empty()) {
    const TemporaryProgram file(executable);
    std::vector<std::string> words = remote_.prefix;
    words.push_back(file.path());
    exchange.done = {};
    return started([&] { return base::run_process(words, exchange, deadline); });
  }
  open();
  const std::string input = fmt::format("{}\n{}", executable.size(), executable);
  exchange.input = input;
  exchange.input_ends = false;
  auto finished = session_->exchange(exchange, deadline);
  if (finished) session_.reset();
  return finished;
}

namespace {

// Why an executable of that many bytes did not end on a board, which was `reached` before or not.
Trouble trouble_of_sending(const Remote& remote, bool reached, std::size_t bytes, const std::string& err,
                           int exit_code) {
  if (exit_code == no_file) {
    const std::string said = base::one_line(err);
    return {fmt::format("no file can be made in {}{}; give a folder that exists and is yours to write", remote.folder,
                        said.empty() ? "" : ": " + said),
            true};
  }
  if (exit_code == no_room)
    return {fmt::format("no room for {} bytes in {}; make room there, or give another folder", bytes, remote.folder),
            true};
  Trouble trouble = trouble_of_ssh(err, exit_code);
  if (reached) trouble.permanent = false;  // one that boots may refuse for a while
  return trouble;
}

}  // namespace

Delivery Board::run(std::string_view executable, int kernels, std::chrono::milliseconds silence,
                    const std::function<void(Answer)>& on_answer, const std::function<bool()>& stop) {
  AnswerReader reader(kernels, on_answer);
  base::Exchange exchange;
  exchange.on_output = [&](std::string_view piece) { reader.read(piece); };
  exchange.silence = silence;
  exchange.stop = stop;
  exchange.done = [&] { return reader.exit_code() >= 0 || reader.is_garbled(); };
  std::string err;
  exchange.on_error = [&](std::string_view piece) {
    err.append(piece.substr(0, longest_line - std::min(longest_line, err.size())));
  };
  const base::Finished finished = converse(executable, exchange).value_or(base::Finished{});
  if (reader.is_garbled() || reader.exit_code() > 0) {
    // The shell there ends after a program that did not end well, too: what that one said may come after its exit code.
    constexpr std::chrono::seconds last_words(2);
    exchange.done = {};
    exchange.silence = last_words;
    if (session_ && !reader.is_garbled()) session_->exchange(exchange, last_words);
    session_.reset();
  }

  Delivery delivery;
  delivery.answered = reader.answered();
  delivery.began = reader.began_kernel();
  delivery.state = reader.state();
  if (remote_.ssh.empty() && !finished.timed_out) {
    delivery.ended = true;
    delivery.exit_code = finished.signal != 0 ? signal_base + finished.signal : finished.exit_code;
  } else if (reader.exit_code() >= 0) {
    delivery.ended = true;
    delivery.exit_code = reader.exit_code();
  }
  delivery.started = reader.has_begun();
  reached_ = reached_ || delivery.started;
  if (reader.is_garbled()) delivery.ended = false;
  Trouble trouble;
  if (reader.is_garbled()) {
    trouble.reason = "its output is not that of an executable of graft";
  } else if (finished.timed_out) {
    trouble.reason = fmt::format("nothing was heard for {:g} s", double(silence.count()) * 1e-3);
  } else if (!delivery.ended) {
    trouble = trouble_of_sending(remote_, reached_, executable.size(), err, finished.exit_code);
  } else if (!delivery.started) {
    trouble = trouble_of_start(remote_, delivery.exit_code, base::one_line(err));
  } else if (delivery.answered < kernels) {
    const std::string said = base::one_line(err);
    trouble.reason = delivery.exit_code == 0 ? "no answer on its standard output" : ending(delivery.exit_code);
    if (!said.empty() && delivery.exit_code != 0) trouble.reason += ": " + said;
  }
  delivery.reason = std::move(trouble.reason);
  delivery.permanent = trouble.permanent;
  return delivery;
}

std::string Board::shell(const std::string& script, std::chrono::milliseconds deadline) const {
  const std::vector<std::string> words =
      remote_.ssh.empty() ? std::vector<std::string>{"sh", "-c", script} : command(script);
  const base::Finished finished = started([&] { return base::run_process(words, deadline); });
  if (finished.timed_out)
    throw base::Failure(fmt::format("{}: no answer within {:g} s", name_, double(deadline.count()) * 1e-3));
  if (finished.exit_code != 0)
    throw base::Failure(fmt::format("{}: {}", name_, trouble_of_ssh(finished.err, finished.exit_code).reason));
  return finished.out;
}

}  // namespace graft::tasks
