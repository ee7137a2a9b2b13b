#include "tasks/command.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <system_error>
#include <utility>

#include "base/document.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/shortened.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "codegen/schedule/table_schema.h"
#include "datasets/formats/columns.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;
using Clock = std::chrono::steady_clock;

constexpr std::string_view folder_name = "dir";
constexpr std::size_t most_output = 16 << 20;     // bytes
constexpr std::size_t most_error_output = 65536;  // of which the end is kept
constexpr std::size_t longest_line = 4096;        // in which a regular expression searches
constexpr std::size_t longest_reason = 160;

// A word of the command: literal texts, and parameters by position (-1: the folder).
struct Piece {
  std::string literal;
  std::optional<int> parameter = {};
  bool as_words = false;  // its value is several words
};
using Word = std::vector<Piece>;

bool is_name_character(char c) {
  return std::isalnum((unsigned char)c) || c == '_' || c == '.';
}

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
      return *piece.parameter < 0 ? folder : codegen::scalar_text(values[std::size_t(*piece.parameter)]);
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
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (quote == 0 && std::isspace((unsigned char)c)) {
        open = false, ++at;
        continue;
      }
      if (!open) words_.emplace_back(), open = true;
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

// A name in lines of output, with what follows its last colon.
struct Printed {
  std::string name, suffix;
  std::optional<std::regex> regex = {};
};

Printed printed_from(const std::string& text, const char* field) {
  Printed printed;
  const bool is_regex = text.starts_with('/');
  const std::size_t close = is_regex ? text.rfind('/') : std::string::npos;
  if (is_regex && close == 0) throw base::UserError(field, "expected /REGEX/ or /REGEX/:UNIT");
  const std::size_t colon = text.find(':', is_regex ? close : 0);
  if (colon != std::string::npos) printed.suffix = text.substr(colon + 1);
  printed.name = is_regex ? text.substr(1, close - 1) : text.substr(0, colon);
  if (printed.name.empty()) throw base::UserError(field, "expected a name");
  if (!is_regex) return printed;
  if (colon != std::string::npos && colon != close + 1) throw base::UserError(field, "expected /REGEX/:UNIT");
  try {
    printed.regex.emplace(printed.name, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    throw base::UserError(
        field, fmt::format("'{}' is not a regular expression: {}", base::shortened(printed.name), error.what()));
  }
  if (printed.regex->mark_count() < 1) throw base::UserError(field, "the regular expression has no group ( )");
  return printed;
}

// The text of a value in this line; nullopt if the line does not hold it. Lists of a JSON line: each element.
std::vector<std::string> values_in_line(const Printed& what, std::string_view line) {
  std::vector<std::string> values;
  if (line.size() > longest_line) return values;
  if (what.regex) {
    const std::string text(line);
    for (std::sregex_iterator at(text.begin(), text.end(), *what.regex), end; at != end; ++at)
      values.push_back((*at)[1].str());
    return values;
  }
  if (line.starts_with('{')) {
    try {
      const base::Document document = base::parse_json(line, "output");
      const base::Document* const found = document.is_map() ? document.find(what.name) : nullptr;
      if (found == nullptr) return values;
      const auto add = [&](const base::Document& value) {
        values.push_back(value.is_string() ? value.as_string() : value.to_json());
      };
      if (found->is_list())
        for (const base::Document& value : found->as_list()) add(value);
      else
        add(*found);
      return values;
    } catch (const base::UserError&) {
      // A line of its own.
    }
  }
  for (std::size_t at = line.find(what.name); at != std::string_view::npos; at = line.find(what.name, at + 1)) {
    std::size_t after = at + what.name.size();
    if (at > 0 && is_name_character(line[at - 1])) continue;
    if (after < line.size() && is_name_character(line[after])) continue;
    while (after < line.size() && std::string_view(" \t:=\"'").find(line[after]) != std::string_view::npos) ++after;
    const std::size_t end = std::min(line.find_first_of(" \t,;\"'", after), line.size());
    if (end > after) values.emplace_back(line.substr(after, end - after));
  }
  return values;
}

// The number that a text begins with, for "1.5ms" too.
std::optional<double> leading_number(std::string_view text) {
  double number = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  return number;
}

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
  std::string lower;
  for (const char c : text) lower += char(std::tolower((unsigned char)c));
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
    if (!command.time.empty()) {
      time_ = printed_from(command.time, "time");
      if (!time_->suffix.empty()) unit_ = datasets::formats::seconds_per(time_->suffix, "time");
    }
    if (!command.check.empty() && command.check != "*") {
      check_ = printed_from(command.check, "check");
      if (!check_->suffix.empty()) {
        tolerance_ = codegen::number_in(check_->suffix);
        if (!tolerance_ || !(*tolerance_ >= 0))
          throw base::UserError("check", fmt::format("'{}' is not a tolerance", base::shortened(check_->suffix)));
      }
    }
  }

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    if (!command_.check.empty() && !expected_ && !find_expected(monitor)) return;
    for (std::size_t i = 0; i < candidates.size() && !monitor.stop_requested(); ++i) {
      Outcome outcome = default_ && candidates[i].arguments == space_.standard().arguments
                            ? *std::exchange(default_, std::nullopt)
                            : measured(candidates[i], monitor);
      if (outcome.stopped) return;
      if (outcome.measurement.status == Status::ok && !command_.check.empty()) compare(outcome);
      if (outcome.measurement.status == Status::ok)
        fastest_ = std::min(fastest_, datasets::seconds_of(outcome.measurement));
      on_trial({std::int64_t(i), codegen::hash_by_name(candidates[i]), std::move(outcome.measurement)});
    }
  }

 private:
  struct Outcome {
    Measurement measurement;
    std::optional<std::string> checked = {};  // what is compared
    bool stopped = false;                     // on request, before it was measured
  };

  static Outcome failed(Status status, const std::string& reason) {
    return {without_times(status, reason.empty() ? "no reason" : reason, "wall")};
  }

  bool find_expected(base::Monitor& monitor) {
    Outcome outcome = measured(space_.standard(), monitor);
    if (outcome.stopped) return false;
    if (outcome.measurement.status != Status::ok)
      throw base::Failure(fmt::format("the default configuration, which others are compared with, fails: {}: {}",
                                      datasets::name_of(outcome.measurement.status), outcome.measurement.reason));
    if (!outcome.checked)
      throw base::Failure(fmt::format("the default configuration prints no '{}' to compare", command_.check));
    expected_ = outcome.checked;
    default_ = std::move(outcome);
    return true;
  }

  void compare(Outcome& outcome) const {
    const auto wrong = [&](const std::string& reason) {
      outcome.measurement = without_times(Status::wrong_result, reason, "wall");
    };
    outcome.measurement.check = "command";
    if (!outcome.checked) return wrong(fmt::format("prints no '{}'", command_.check));
    if (*outcome.checked == *expected_) return;
    if (command_.check == "*") return wrong("prints something else than the default configuration");
    if (tolerance_) {
      const std::optional<double> own = leading_number(*outcome.checked), wanted = leading_number(*expected_);
      if (own && wanted && std::abs(*own - *wanted) <= *tolerance_ * std::abs(*wanted)) return;
    }
    wrong(
        fmt::format("{} is {}, not {}", check_->name, base::shortened(*outcome.checked), base::shortened(*expected_)));
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
    measurement.clock = time_ ? "command" : "wall";
    measurement.check = "none";
    while (int(measurement.seconds.size()) < settings_.repetitions) {
      if (!measurement.seconds.empty() && Clock::now() >= end) break;
      const Ended ended = process(argv, end, monitor);
      if (std::optional<Outcome> fault = this->fault(ended)) {
        // No time for a further repetition.
        if (fault->measurement.status == Status::timed_out && !fault->stopped && !measurement.seconds.empty()) break;
        return std::move(*fault);
      }
      const std::vector<double> seconds = times_in(ended);
      if (seconds.empty())
        return failed(Status::crashed, fmt::format("prints no time '{}'", base::shortened(time_->name)));
      for (const double each : seconds) {
        if (!(each > 0) || !std::isfinite(each)) return failed(Status::crashed, fmt::format("a time of {} s", each));
      }
      measurement.seconds.insert(measurement.seconds.end(), seconds.begin(), seconds.end());
      outcome.checked = checked_in(ended.out);
      if (is_far_slower(measurement.seconds)) break;
    }
    if (measurement.seconds.size() > std::size_t(most_repetitions)) measurement.seconds.resize(most_repetitions);
    return outcome;
  }

  bool is_far_slower(const std::vector<double>& seconds) const {
    return settings_.abort_factor > 0 &&
           *std::min_element(seconds.begin(), seconds.end()) > settings_.abort_factor * fastest_;
  }

  std::vector<double> times_in(const Ended& ended) const {
    if (!time_) return {ended.seconds};
    std::vector<double> seconds;
    for (const std::string_view line : base::split(ended.out, '\n')) {
      for (const std::string& value : values_in_line(*time_, base::trim(line))) {
        if (const std::optional<double> number = leading_number(value)) seconds.push_back(*number * unit_);
      }
    }
    return seconds;
  }

  std::optional<std::string> checked_in(std::string_view out) const {
    if (command_.check.empty()) return std::nullopt;
    std::uint64_t digest = 1;
    std::optional<std::string> last;
    for (const std::string_view whole : base::split(out, '\n')) {
      const std::string_view line = base::trim(whole);
      if (!check_ && (!time_ || values_in_line(*time_, line).empty()))
        digest = base::hash_combine(digest, base::hash_bytes(whole));
      if (!check_) continue;
      if (std::vector<std::string> values = values_in_line(*check_, line); !values.empty())
        last = std::move(values.back());
    }
    return check_ ? last : std::optional(base::to_hex(digest));
  }

  // By the program that keeps running.
  Outcome answered(const codegen::Candidate& candidate, base::Monitor& monitor) {
    if (partner_ == nullptr || !partner_->alive()) partner_ = start(run_.filled({}, folder_.path().string()));
    Ended heard;
    std::string answer;
    base::Exchange exchange = listening(heard, monitor);
    const std::string question = question_of(candidate) + "\n";
    exchange.input = question;
    exchange.input_ends = false;
    std::size_t looked = 0;
    exchange.done = [&] {
      for (std::size_t end; answer.empty() && (end = heard.out.find('\n', looked)) != std::string::npos;
           looked = end + 1) {
        const std::string_view line = base::trim(std::string_view(heard.out).substr(looked, end - looked));
        if (line.starts_with('{')) answer = line;
      }
      return !answer.empty();
    };
    if (std::optional<base::Finished> finished = partner_->exchange(exchange, until(deadline()))) {
      partner_.reset();
      heard.finished = std::move(*finished);
      if (std::optional<Outcome> fault = this->fault(heard)) return std::move(*fault);
      return failed(Status::crashed, "ended without an answer");
    }
    try {
      return outcome_of(base::parse_json(answer, "answer"));
    } catch (const base::UserError& error) {
      return failed(Status::crashed, last_line(error.what()));
    }
  }

  std::string question_of(const codegen::Candidate& candidate) const {
    base::Document question = base::Document::map();
    return question.set("schema", 1)
        .set("configuration", space_.to_document(candidate))
        .set("repetitions", settings_.repetitions)
        .to_json();
  }

  Outcome outcome_of(const base::Document& answer) const {
    answer.only_keys({"schema", "seconds", "status", "reason", "check"});
    if (const base::Document* const named = answer.find("status"); named != nullptr && named->as_string() != "ok") {
      const std::optional<Status> status = datasets::status_of(named->as_string());
      if (!status || *status == Status::slower_than_limit)
        throw base::UserError(named->place(), fmt::format("unknown status '{}'", base::shortened(named->as_string())));
      const base::Document* const reason = answer.find("reason");
      return failed(*status, reason == nullptr ? "" : last_line(reason->as_string()));
    }
    Outcome outcome;
    const base::Document& seconds = answer.at("seconds");
    if (seconds.is_list())
      for (const base::Document& each : seconds.as_list()) outcome.measurement.seconds.push_back(each.as_number());
    else
      outcome.measurement.seconds.push_back(seconds.as_number());
    if (outcome.measurement.seconds.size() > std::size_t(most_repetitions))
      outcome.measurement.seconds.resize(most_repetitions);
    outcome.measurement.clock = "command";
    outcome.measurement.check = "none";
    if (const std::string why = datasets::contradiction(outcome.measurement); !why.empty())
      throw base::UserError(seconds.place(), why);
    if (const base::Document* const check = answer.find("check"))
      outcome.checked = check->is_string() ? check->as_string() : check->to_json();
    return outcome;
  }

  const Command command_;
  const codegen::ParameterSpace& space_;
  const MeasureSettings settings_;
  Words run_;
  std::optional<Words> build_;
  std::optional<Printed> time_, check_;
  double unit_ = 1;  // seconds
  std::optional<double> tolerance_;
  base::TemporaryFolder folder_;
  std::optional<std::string> expected_;  // of the default
  std::optional<Outcome> default_;       // measured for that, until it is asked for
  std::unique_ptr<base::Dialogue> partner_;
  double fastest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::unique_ptr<Measurer> make_command_measurer(const Command& command, const codegen::ParameterSpace& space,
                                                const MeasureSettings& settings) {
  return std::make_unique<CommandMeasurer>(command, space, settings);
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
