#include "tasks/command.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <variant>

#include "base/document.h"
#include "base/error.h"
#include "base/letters.h"
#include "base/process.h"
#include "base/shortened.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "codegen/space/table_schema.h"
#include "tasks/compared.h"
#include "tasks/output_reader.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;
using Clock = std::chrono::steady_clock;

constexpr std::string_view folder_name = "dir";
constexpr std::size_t most_output = 16 << 20;     // bytes
constexpr std::size_t most_error_output = 65536;  // of which the end is kept
constexpr std::size_t longest_reason = 160;

// A word of the command: literal texts, and parameters by position (-1: the folder).
struct Piece {
  std::string literal;
  std::optional<int> parameter = {};
  bool as_words = false;  // its value is several words
};
using Word = std::vector<Piece>;

constexpr std::string_view words_suffix = ":words";

// `{NAME}` or `{NAME:words}` at the position: what is between the braces.
std::optional<std::string_view> placeholder_at(std::string_view text, std::size_t at) {
  if (text[at] != '{' || (at > 0 && text[at - 1] == '$')) return std::nullopt;
  std::size_t end = at + 1;
  while (end < text.size() && is_name_character(text[end])) ++end;
  if (end == at + 1 || std::isdigit((unsigned char)text[at + 1])) return std::nullopt;
  if (text.substr(end).starts_with(words_suffix)) end += words_suffix.size();
  if (end >= text.size() || text[end] != '}') return std::nullopt;
  return text.substr(at + 1, end - at - 1);
}

// A value as a program is given it: a fraction stays one ("1.0") where it is whole.
std::string value_text(const codegen::Scalar& value) {
  const std::string text = codegen::scalar_text(value);
  return std::holds_alternative<double>(value) && text.find_first_not_of("-0123456789") == std::string::npos
             ? text + ".0"
             : text;
}

// The words of a command.
class Words {
 public:
  Words(std::string_view text, bool shell, bool has_values, const codegen::ParameterSpace& space, const char* field)
      : shell_(shell), field_(field) {
    std::vector<std::string> names;
    for (const codegen::Tunable& parameter : space.parameters()) names.push_back(parameter.name);
    names.emplace_back(folder_name);
    if (shell)
      whole(text, names);
    else
      split(text, names, has_values);
    if (words_.empty()) throw base::UserError(field, "no command");
  }

  bool uses(int parameter) const {
    return std::any_of(words_.begin(), words_.end(), [&](const Word& word) {
      return std::any_of(word.begin(), word.end(),
                         [&](const Piece& piece) { return piece.parameter && *piece.parameter == parameter; });
    });
  }

  std::vector<std::string> filled(const std::vector<codegen::Scalar>& values, const std::string& folder) const {
    std::vector<std::string> argv;
    if (shell_) argv = {"sh", "-c"};
    const auto value_of = [&](const Piece& piece) {
      return *piece.parameter < 0 ? folder : value_text(values[std::size_t(*piece.parameter)]);
    };
    for (const Word& word : words_) {
      if (!shell_ && word.size() == 1 && word.front().as_words) {
        const std::string value = value_of(word.front());
        for (const std::string_view each : base::words(value)) argv.emplace_back(each);
        continue;
      }
      std::string& out = argv.emplace_back();
      for (const Piece& piece : word) {
        out += piece.literal;
        if (!piece.parameter) continue;
        const std::string value = value_of(piece);
        if (!shell_ || !piece.as_words) {
          out += shell_ ? quoted(value) : value;
          continue;
        }
        std::string all;
        for (const std::string_view each : base::words(value))
          all += (all.empty() ? "" : " ") + quoted(std::string(each));
        out += all;
      }
    }
    return argv;
  }

  static std::string quoted(const std::string& text) {
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return std::isalnum((unsigned char)c) || std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
    });
    if (plain) return text;
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  }

 private:
  void whole(std::string_view text, const std::vector<std::string>& names) {
    if (base::trim(text).empty()) return;
    words_.emplace_back();
    for (std::size_t at = 0; at < text.size();) at = take(text, at, names, true);
  }

  void split(std::string_view text, const std::vector<std::string>& names, bool has_values) {
    bool open = false;
    char quote = 0;
    std::vector<bool> is_quoted;  // by word
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (quote == 0 && std::isspace((unsigned char)c)) {
        open = false, ++at;
        continue;
      }
      if (!open) words_.emplace_back(), is_quoted.push_back(false), open = true;
      if (c == '\\' || c == '\'' || c == '"') is_quoted.back() = true;
      if (c == '\\' && quote != '\'' && at + 1 < text.size()) {
        literal(text[at + 1]);
        at += 2;
      } else if (c == quote) {
        quote = 0, ++at;
      } else if (quote == 0 && (c == '\'' || c == '"')) {
        quote = c, ++at;
      } else {
        at = take(text, at, names, has_values);
      }
    }
    if (quote != 0) throw base::UserError(field_, "a quote is not closed");
    for (std::size_t w = 0; w < words_.size(); ++w) {
      if (is_quoted[w] || words_[w].empty() || words_[w].front().parameter) continue;
      const std::string_view word = words_[w].front().literal;
      if (w == 0 && is_assignment(word))
        throw base::UserError(field_, fmt::format("'{}' is an assignment: write env before it, or say `shell`, so that "
                                                  "a shell reads the command",
                                                  base::shortened(word)));
      if (is_of_shells(word, w == 0))
        throw base::UserError(field_, fmt::format("'{}' is a word of a shell, and none reads the command: say `shell`, "
                                                  "or put it in quotes if the program is to get it",
                                                  base::shortened(word)));
    }
  }

  // "OMP_NUM_THREADS=": a variable for the command after it.
  static bool is_assignment(std::string_view word) {
    const std::size_t end = word.find('=');
    if (end == 0 || end == std::string_view::npos || std::isdigit((unsigned char)word.front())) return false;
    return std::all_of(word.begin(), word.begin() + std::ptrdiff_t(end),
                       [](char c) { return std::isalnum((unsigned char)c) || c == '_'; });
  }

  // "&&", "2>&1", "<in", "$HOME", "$(nproc)", "a;", and "cd" as the command.
  static bool is_of_shells(std::string_view word, bool is_first) {
    constexpr std::string_view commands[] = {"cd", "export", "source", ".", "set", "unset", "ulimit", "umask", "alias"};
    if (is_first && std::find(std::begin(commands), std::end(commands), word) != std::end(commands)) return true;
    if (word.ends_with(';') || word.find('`') != std::string_view::npos) return true;
    const std::size_t dollar = word.find('$');
    const std::string_view after = word.substr(std::min(dollar, word.size() - 1) + 1);
    if (dollar != std::string_view::npos && !after.empty() &&
        (std::isalpha((unsigned char)after.front()) ||
         std::string_view("_{(?").find(after.front()) != std::string_view::npos))
      return true;
    if (word.size() > 1 && std::isdigit((unsigned char)word.front())) word.remove_prefix(1);
    return std::string_view("<>|&;").find(word.front()) != std::string_view::npos;
  }

  std::size_t take(std::string_view text, std::size_t at, const std::vector<std::string>& names, bool has_values) {
    const std::optional<std::string_view> inside = placeholder_at(text, at);
    if (!inside || !has_values) {
      literal(text[at]);
      return at + 1;
    }
    std::string_view name = *inside;
    const bool as_words = name.ends_with(words_suffix);
    if (as_words) name.remove_suffix(words_suffix.size());
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw base::UserError(field_, fmt::format("{{{}}} is not a parameter of the space{}", base::shortened(name),
                                                base::did_you_mean(name, names)));
    const int position = int(found - names.begin());
    words_.back().push_back({"", position + 1 == int(names.size()) ? -1 : position, as_words});
    return at + inside->size() + 2;
  }

  void literal(char c) {
    Word& word = words_.back();
    if (word.empty() || word.back().parameter) word.emplace_back();
    word.back().literal += c;
  }

  bool shell_;
  const char* field_;
  std::vector<Word> words_;
};

std::string last_line(std::string_view text) {
  text = base::trim(text);
  const std::size_t begin = text.rfind('\n');
  std::string line(begin == std::string_view::npos ? text : text.substr(begin + 1));
  for (char& c : line) {
    if ((unsigned char)c < ' ' || (unsigned char)c == 0x7f) c = ' ';
  }
  return line.size() <= longest_reason ? line : base::shortened(line);
}

bool is_about_memory(std::string_view text) {
  const std::string lower = base::lower_case(text);
  for (const char* const words : {"bad_alloc", "memoryerror", "out of memory", "cannot allocate memory"}) {
    if (lower.find(words) != std::string::npos) return true;
  }
  return false;
}

class CommandMeasurer final : public Measurer {
 public:
  CommandMeasurer(const Command& command, const codegen::ParameterSpace& space, const MeasureSettings& settings)
      : command_(command),
        space_(space),
        settings_(settings),
        run_(command.run, command.shell, !command.persistent, space, "run"),
        output_(command),
        folder_("command") {
    if (!command.build.empty()) build_.emplace(command.build, command.shell, true, space, "build");
    if (command.persistent && (!command.build.empty() || !command.time.empty()))
      throw base::UserError("persistent", "such a command answers with its times, and builds by itself");
    for (int p = 0; !command.persistent && p < int(space.parameters().size()); ++p) {
      const codegen::Tunable& parameter = space.parameters()[std::size_t(p)];
      if (parameter.values.size() > 1 && !run_.uses(p) && !(build_ && build_->uses(p)))
        throw base::UserError("run", fmt::format("the command does not depend on the parameter '{0}'; write {{{0}}} "
                                                 "where its value belongs",
                                                 parameter.name));
    }
  }

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    if (output_.check() && !expected_ && !find_expected(monitor)) return;
    for (std::size_t i = 0; i < candidates.size() && !monitor.stop_requested(); ++i) {
      Outcome outcome = default_ && candidates[i].arguments == space_.standard().arguments
                            ? *std::exchange(default_, std::nullopt)
                            : measured(candidates[i], monitor);
      if (outcome.stopped) return;
      if (outcome.measurement.status == Status::ok && output_.check()) compare(outcome);
      if (is_doubtful(candidates[i], outcome.measurement))
        outcome = confirmed(candidates[i], std::move(outcome), monitor);
      if (outcome.stopped) return;
      if (outcome.measurement.status == Status::ok)
        fastest_ = std::min(fastest_, datasets::seconds_of(outcome.measurement));
      on_trial({std::int64_t(i), codegen::hash_by_name(candidates[i]), std::move(outcome.measurement)});
    }
  }

 private:
  using Texts = std::vector<std::string>;

  struct Outcome {
    Measurement measurement;
    std::vector<Texts> checked = {};  // what is compared, for each run
    bool stopped = false;             // on request, before it was measured
  };

  static Outcome failed(Status status, const std::string& reason) {
    return {without_times(status, reason.empty() ? "no reason" : reason, "wall")};
  }

  // Far below the best time so far; or the first one when a search continues, if it is alone.
  bool is_doubtful(const codegen::Candidate& candidate, const Measurement& measurement) const {
    constexpr double far = 0.8;
    if (measurement.status != Status::ok) return false;
    if (std::isfinite(fastest_)) return datasets::seconds_of(measurement) < far * fastest_;
    return measurement.seconds.size() == 1 && settings_.repetitions == 1 &&
           candidate.arguments != space_.standard().arguments;
  }

  // Measured once more, so that a glitch is not the best: with the repetitions of both, or as it failed.
  Outcome confirmed(const codegen::Candidate& candidate, Outcome first, base::Monitor& monitor) {
    Outcome again = measured(candidate, monitor);
    if (again.stopped) return again;
    if (again.measurement.status == Status::ok && output_.check()) compare(again);
    if (again.measurement.status != Status::ok) return again;
    std::vector<double>& seconds = first.measurement.seconds;
    seconds.insert(seconds.end(), again.measurement.seconds.begin(), again.measurement.seconds.end());
    return first;
  }

  // From two runs of the default configuration at least.
  bool find_expected(base::Monitor& monitor) {
    std::vector<Texts> runs;
    while (runs.size() < 2) {
      Outcome outcome = measured(space_.standard(), monitor);
      if (outcome.stopped) return false;
      if (outcome.measurement.status != Status::ok)
        throw base::Failure(fmt::format("the default configuration, which others are compared with, fails: {}: {}",
                                        datasets::name_of(outcome.measurement.status), outcome.measurement.reason));
      if (outcome.checked.empty() || outcome.checked.front().empty())
        throw base::Failure(fmt::format("the default configuration prints no '{}' to compare", output_.check()->text));
      runs.insert(runs.end(), outcome.checked.begin(), outcome.checked.end());
      if (!default_) default_ = std::move(outcome);
    }
    const auto unfit = [&](const std::string& why) {
      default_.reset();
      throw base::Failure(fmt::format("nothing can be compared with the default configuration's output: {} {}",
                                      output_.check()->text, why));
    };
    if (const std::string why = unfit_as_reference(runs.front(), !output_.check()->name); !why.empty()) unfit(why);
    for (const Texts& run : runs) {
      if (const std::optional<std::string> why = difference(run, runs.front(), output_.check()->tolerance))
        unfit(fmt::format("changes from run to run: it {} (NAME:TOLERANCE allows differences)", *why));
    }
    expected_ = std::move(runs.front());
    return true;
  }

  void compare(Outcome& outcome) const {
    outcome.measurement.check = "command";
    for (const Texts& run : outcome.checked) {
      std::string reason;
      if (run.empty())
        reason = fmt::format("prints no '{}'", output_.check()->text);
      else if (const std::optional<std::string> why = difference(run, *expected_, output_.check()->tolerance))
        reason = fmt::format("{} {}", output_.check()->text, *why);
      if (!reason.empty()) outcome.measurement = without_times(Status::wrong_result, reason, "wall");
      if (!reason.empty()) return;
    }
  }

  Outcome measured(const codegen::Candidate& candidate, base::Monitor& monitor) {
    return command_.persistent ? answered(candidate, monitor) : started(candidate, monitor);
  }

  static std::chrono::milliseconds until(Clock::time_point end) {
    return std::max(std::chrono::milliseconds(1), std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()));
  }
  Clock::time_point deadline() const {
    constexpr double longest = 1e8;  // seconds
    return Clock::now() + std::chrono::milliseconds(std::int64_t(1e3 * std::min(settings_.timeout_seconds, longest)));
  }

  // What a process printed until it ended, or until it was heard enough.
  struct Ended {
    base::Finished finished = {};
    std::string out = {}, err = {};
    bool stopped = false, printed_too_much = false;
    double seconds = 0;
  };
  // An exchange that fills `to`, which must outlive it.
  static base::Exchange listening(Ended& to, base::Monitor& monitor) {
    base::Exchange exchange;
    exchange.on_output = [&to](std::string_view piece) {
      to.printed_too_much = to.printed_too_much || to.out.size() + piece.size() > most_output;
      if (!to.printed_too_much) to.out += piece;
    };
    exchange.on_error = [&to](std::string_view piece) {
      to.err += piece;
      if (to.err.size() > 2 * most_error_output) to.err.erase(0, to.err.size() - most_error_output);
    };
    exchange.stop = [&to, &monitor] {
      to.stopped = to.stopped || monitor.stop_requested();
      return to.stopped || to.printed_too_much;
    };
    return exchange;
  }
  std::unique_ptr<base::Dialogue> start(const std::vector<std::string>& argv) const {
    return std::make_unique<base::Dialogue>(argv, settings_.memory_limit_bytes.value_or(0));
  }
  Ended process(const std::vector<std::string>& argv, Clock::time_point end, base::Monitor& monitor) const {
    Ended ended;
    const base::Exchange exchange = listening(ended, monitor);
    const Clock::time_point begin = Clock::now();
    ended.finished = *start(argv)->exchange(exchange, until(end));
    ended.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return ended;
  }

  // Why it did not end well; nullopt if it did.
  std::optional<Outcome> fault(const Ended& ended) const {
    const base::Finished& finished = ended.finished;
    if (ended.stopped) return Outcome{{}, {}, true};
    if (ended.printed_too_much)
      return failed(Status::crashed, fmt::format("prints more than {} MiB", most_output >> 20));
    if (finished.timed_out)
      return failed(Status::timed_out, fmt::format("not ready after {} s", settings_.timeout_seconds));
    if (finished.exit_code == 0) return std::nullopt;
    std::string reason = finished.signal != 0 ? fmt::format("signal {}", ::strsignal(finished.signal))
                                              : fmt::format("exit code {}", finished.exit_code);
    if (const std::string said = last_line(ended.err); !said.empty()) reason += ": " + said;
    return failed(is_about_memory(ended.err) ? Status::out_of_memory : Status::crashed, reason);
  }

  void empty_folder() const {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path(), ignored))
      std::filesystem::remove_all(entry.path(), ignored);
  }

  Outcome started(const codegen::Candidate& candidate, base::Monitor& monitor) {
    const std::vector<codegen::Scalar> values = space_.values_of(candidate);
    const Clock::time_point end = deadline();
    empty_folder();
    if (build_) {
      std::optional<Outcome> fault =
          this->fault(process(build_->filled(values, folder_.path().string()), end, monitor));
      if (fault && !fault->stopped && fault->measurement.status == Status::crashed)
        fault->measurement.status = Status::does_not_compile;
      if (fault) return std::move(*fault);
    }
    const std::vector<std::string> argv = run_.filled(values, folder_.path().string());
    Outcome outcome;
    Measurement& measurement = outcome.measurement;
    measurement.clock = output_.has_goal() ? "command" : "wall";
    measurement.estimator = datasets::median;
    measurement.check = "none";
    std::vector<std::vector<double>> also;
    while (int(measurement.seconds.size()) < settings_.repetitions) {
      if (!measurement.seconds.empty() && Clock::now() >= end) break;
      const Ended ended = process(argv, end, monitor);
      if (std::optional<Outcome> fault = this->fault(ended)) {
        // No time for a further repetition.
        if (fault->measurement.status == Status::timed_out && !fault->stopped && !measurement.seconds.empty()) break;
        return std::move(*fault);
      }
      OutputReader::Read read = output_.read(ended.out, ended.err, ended.seconds);
      if (!read.note.empty() && !std::exchange(has_noted_, true)) monitor.note(read.note);
      if (!read.problem.empty()) return failed(Status::no_time, read.problem);
      measurement.seconds.insert(measurement.seconds.end(), read.seconds.begin(), read.seconds.end());
      also.push_back(std::move(read.also));
      if (output_.check()) outcome.checked.push_back(std::move(read.checked));
      if (is_far_slower(measurement.seconds)) break;
    }
    if (measurement.seconds.size() > std::size_t(most_repetitions)) measurement.seconds.resize(most_repetitions);
    measurement.also = output_.medians(also);
    if (const std::string why = output_.beyond_bounds(measurement.also); !why.empty())
      return failed(Status::not_allowed, why);
    return outcome;
  }

  bool is_far_slower(const std::vector<double>& seconds) const {
    return settings_.abort_factor > 0 &&
           *std::min_element(seconds.begin(), seconds.end()) > settings_.abort_factor * fastest_;
  }

  // By the program that keeps running.
  Outcome answered(const codegen::Candidate& candidate, base::Monitor& monitor) {
    constexpr std::chrono::milliseconds at_once(1), soon(20), late(1000);
    Ended heard;
    heard.out = std::exchange(unread_, {});
    if (!says_requests_ && partner_ != nullptr) listen(heard, at_once, monitor);
    const bool is_first = partner_ == nullptr || !partner_->alive();
    if (is_first) {
      partner_ = start(run_.filled({}, folder_.path().string()));
      heard = {};
    }
    if (const std::optional<std::string> early = next_answer(heard.out))
      out_of_step("prints before it is asked", *early);
    std::optional<std::string> answer;
    base::Exchange exchange = listening(heard, monitor);
    const std::string question = question_of(candidate) + "\n";
    const Clock::time_point asked = Clock::now();
    exchange.input = question;
    exchange.input_ends = false;
    exchange.done = [&] {
      if (!answer) answer = next_answer(heard.out);
      return answer.has_value();
    };
    if (std::optional<base::Finished> finished = partner_->exchange(exchange, until(deadline()))) {
      partner_.reset();
      heard.finished = std::move(*finished);
      if (std::optional<Outcome> fault = this->fault(heard)) return std::move(*fault);
      return failed(Status::crashed, "ended without an answer");
    }
    Outcome outcome;
    try {
      const base::Document document = base::parse_json(*answer, "answer");
      outcome = outcome_of(document);
      find_request(document, candidate, *answer);
    } catch (const base::UserError& error) {
      partner_.reset();  // it may go on to print the answer
      return failed(Status::crashed, last_line(error.what()));
    }
    // A program that prints two lines does so from the first request on, the second one as a rule no later after the
    // first than that is after the request.
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - asked);
    if (!says_requests_) listen(heard, is_first ? std::clamp(took, soon, late) : soon, monitor);
    if (const std::optional<std::string> second = next_answer(heard.out))
      out_of_step("prints a second line for a request", *second);
    unread_ = std::move(heard.out);
    return outcome;
  }

  // Takes lines from the front of `out` up to the first that is an answer.
  static std::optional<std::string> next_answer(std::string& out) {
    std::size_t begin = 0;
    std::optional<std::string> answer;
    for (std::size_t end; !answer && (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string_view line = base::trim(std::string_view(out).substr(begin, end - begin));
      if (line.starts_with('{')) answer = line;
    }
    out.erase(0, begin);
    return answer;
  }

  // The answer is that to the last request.
  void find_request(const base::Document& answer, const codegen::Candidate& candidate, const std::string& line) {
    const base::Document* const request = answer.find("request");
    const base::Document* const echo = answer.find("configuration");
    if (request == nullptr && echo == nullptr) {
      if (says_requests_) out_of_step("does not say which request it answers", line);
      return;
    }
    says_requests_ = true;
    if (request != nullptr && !(*request == base::Document(requests_)))
      out_of_step(fmt::format("does not answer request {}", requests_), line);
    if (echo == nullptr) return;
    const base::Result<codegen::Candidate> point = space_.point(*echo);
    if (!point || point->arguments != candidate.arguments)
      out_of_step(fmt::format("does not answer for {}", space_.to_document(candidate).to_json()), line);
  }

  // What a program prints that does not say which request it answers, until it is quiet for so long.
  void listen(Ended& heard, std::chrono::milliseconds quiet, base::Monitor& monitor) {
    base::Exchange exchange = listening(heard, monitor);
    exchange.input_ends = false;
    exchange.quiet = quiet;
    exchange.done = [&] { return heard.out.find('\n') != std::string::npos; };
    if (partner_->exchange(exchange, until(deadline()))) partner_.reset();
  }

  [[noreturn]] void out_of_step(const std::string& what, const std::string& line) {
    partner_.reset();
    throw base::Failure(fmt::format(
        "the persistent program {}: {}; it must print one line that begins with '{{' for a request, with the "
        "request's number as \"request\"",
        what, base::shortened(line)));
  }

  std::string question_of(const codegen::Candidate& candidate) {
    base::Document question = base::Document::map();
    return question.set("schema", 1)
        .set("request", ++requests_)
        .set("configuration", space_.to_document(candidate))
        .set("repetitions", settings_.repetitions)
        .to_json();
  }

  Outcome outcome_of(const base::Document& answer) const {
    answer.only_keys({"schema", "request", "configuration", "seconds", "value", "also", "status", "reason", "check"});
    if (const base::Document* const named = answer.find("status"); named != nullptr && named->as_string() != "ok") {
      const std::optional<Status> status = datasets::status_of(named->as_string());
      if (!status || *status == Status::slower_than_limit)
        throw base::UserError(named->place(), fmt::format("unknown status '{}'", base::shortened(named->as_string())));
      const base::Document* const reason = answer.find("reason");
      return failed(*status, reason == nullptr ? "" : last_line(reason->as_string()));
    }
    Outcome outcome;
    const base::Document& seconds = answer.at(output_.has_goal() ? "value" : "seconds");
    const auto add = [&](const base::Document& each) {
      outcome.measurement.seconds.push_back(output_.seconds_for(each.as_number()));
    };
    if (seconds.is_list())
      std::for_each(seconds.as_list().begin(), seconds.as_list().end(), add);
    else
      add(seconds);
    if (outcome.measurement.seconds.size() > std::size_t(most_repetitions))
      outcome.measurement.seconds.resize(most_repetitions);
    outcome.measurement.clock = "command";
    outcome.measurement.estimator = datasets::median;
    outcome.measurement.check = "none";
    if (const std::string why = datasets::contradiction(outcome.measurement); !why.empty())
      throw base::UserError(seconds.place(), why);
    std::vector<std::string>& checked = outcome.checked.emplace_back();
    if (const base::Document* const check = answer.find("check"))
      checked.push_back(check->is_string() ? check->as_string() : check->to_json());
    if (const base::Document* const also = answer.find("also"); also != nullptr || output_.keeps_more()) {
      if (also == nullptr) throw base::UserError(answer.place(), "has no 'also'");
      outcome.measurement.also = output_.also_in(*also);
      if (const std::string why = output_.beyond_bounds(outcome.measurement.also); !why.empty())
        return failed(Status::not_allowed, why);
    }
    return outcome;
  }

  const Command command_;
  const codegen::ParameterSpace& space_;
  const MeasureSettings settings_;
  Words run_;
  std::optional<Words> build_;
  OutputReader output_;
  bool has_noted_ = false;  // which of several numbers is read
  base::TemporaryFolder folder_;
  std::optional<Texts> expected_;   // of the default
  std::optional<Outcome> default_;  // measured for that, until it is asked for
  std::unique_ptr<base::Dialogue> partner_;
  std::string unread_;          // of its output
  std::int64_t requests_ = 0;   // to it, and to those before it
  bool says_requests_ = false;  // its answers say which one they are for
  double fastest_ = std::numeric_limits<double>::infinity();
};

class CommandDevice : public Device {
 public:
  CommandDevice(Command command, const codegen::ParameterSpace* space) : command_(std::move(command)), space_(space) {}
  std::string source() const override { return command_source; }
  Place place() const override { return Place::elsewhere; }
  std::unique_ptr<Measurer> measurer(const Platform&, const MeasureSettings& settings, Shared*) const override {
    assert(space_ != nullptr);
    return std::make_unique<CommandMeasurer>(command_, *space_, settings);
  }

 private:
  const Command command_;
  const codegen::ParameterSpace* const space_;
};

}  // namespace

std::shared_ptr<const Device> command_device(Command command, const codegen::ParameterSpace* space) {
  return std::make_shared<CommandDevice>(std::move(command), space);
}

std::optional<Goal> goal_of(const Command& command, double seconds) {
  const bool more_is_better = !command.maximize.empty();
  const std::string& text = more_is_better ? command.maximize : command.minimize;
  if (text.empty()) return std::nullopt;
  const PrintedMeasure measure(text, more_is_better ? "maximize" : "minimize", false);
  const double value = more_is_better ? 1 / seconds : seconds;
  return Goal{measure.name(), measure.unit_text(), value / (measure.unit() ? measure.unit()->scale : 1),
              more_is_better};
}

std::string command_line(const Command& command, const codegen::ParameterSpace& space,
                         const codegen::Candidate& candidate) {
  if (command.persistent) return space.to_document(candidate).to_json();
  const auto line_of = [&](const std::string& text, const char* field) {
    const Words words(text, command.shell, true, space, field);
    const std::vector<std::string> argv = words.filled(space.values_of(candidate), "DIR");
    if (command.shell) return argv.back();
    std::string line;
    for (const std::string& word : argv) line += (line.empty() ? "" : " ") + Words::quoted(word);
    return line;
  };
  const std::string run = line_of(command.run, "run");
  return command.build.empty() ? run : line_of(command.build, "build") + " && " + run;
}

}  // namespace graft::tasks
