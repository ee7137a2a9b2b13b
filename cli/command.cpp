#include "cli/command.h"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/one_line.h"
#include "base/parallel.h"
#include "base/shortened.h"
#include "base/text.h"
#include "cli/common_flags.h"
#include "cli/setting_flags.h"
#include "cli/texts.h"
#include "cli/version.h"
#include "study/inputs/field_error.h"

namespace graft::cli {
namespace {

using base::UserError;

template <class T>
T number_from(const std::string& flag, const std::string& text, const char* expected, T least) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    throw UserError(flag, fmt::format("{} is out of range", base::shortened(text)));
  if (error != std::errc() || end != text.data() + text.size() || value != value) {
    throw UserError(flag, fmt::format("expected {}, got '{}'", expected, base::shortened(text)));
  }
  if (value < least) throw UserError(flag, fmt::format("must be at least {}, got {}", least, base::shortened(text)));
  return value;
}

std::vector<std::string> words_of(const std::string& flag, const std::string& text) {
  std::vector<std::string> words = split_list(text);
  if (std::find(words.begin(), words.end(), "") != words.end())
    throw UserError(flag, fmt::format("expected words separated by commas, got '{}'", base::shortened(text)));
  return words;
}

// CLI11 handles only texts; their meaning, and messages for invalid ones, are decided here.
class Flags final : public Options {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  void flag(const std::string& name, bool& value, const std::string& help) override {
    app_.add_flag("--" + name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    known_.push_back("--" + name);
  }
  void integer(const std::string& name, std::int64_t& value, std::int64_t least, const std::string& help) override {
    add(name, "INTEGER", help, std::to_string(value), optional,
        [&value, least, flag = "--" + name](const std::string& text) {
          value = number_from<std::int64_t>(flag, text, "an integer", least);
        });
  }
  void number(const std::string& name, double& value, double least, const std::string& help) override {
    add(name, "NUMBER", help, fmt::format("{}", value), optional,
        [&value, least, flag = "--" + name](const std::string& text) {
          value = number_from<double>(flag, text, "a number", least);
        });
  }
  void text(const std::string& name, std::string& value, const std::string& help, Need need) override {
    add(name, "TEXT", help, value, need, [&value, flag = "--" + name](const std::string& text) {
      if (text.empty()) throw UserError(flag, "expected a text, got nothing");
      value = text;
    });
  }
  void list(const std::string& name, std::vector<std::string>& value, const std::string& help, Need need) override {
    add_list(name, help, base::join(value, ","), need,
             [&value](const std::vector<std::string>& words) { value = words; });
  }
  void texts(const std::string& name, std::function<void(const std::vector<std::string>&)> take,
             const std::string& help) override {
    app_.add_option_function<std::vector<std::string>>("--" + name, std::move(take), help)
        ->type_name("TEXT")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    known_.push_back("--" + name);
  }
  void list(const std::string& name, const std::string& standard,
            std::function<void(const std::vector<std::string>&)> take, const std::string& help) override {
    add_list(name, help, standard, optional, std::move(take));
  }
  void text(const std::string& name, const std::string& standard, std::function<void(const std::string&)> take,
            const std::string& help) override {
    add(name, "TEXT", help, standard, optional, [take = std::move(take), flag = "--" + name](const std::string& text) {
      if (text.empty()) throw UserError(flag, "expected a text, got nothing");
      take(text);
    });
  }
  void positional(const std::string& name, std::string& value, const std::string& help, Need need) override {
    app_.add_option(name, value, help)->required(need == required)->type_name("");
    positionals_.push_back(name);
  }
  void positionals(const std::string& name, std::vector<std::string>& value, const std::string& help,
                   Need need) override {
    app_.add_option(name, value, help)
        ->required(need == required)
        ->expected(need == required ? 1 : 0, 1 << 20)
        ->type_name("");
    positionals_.push_back(name);
  }

  const std::vector<std::string>& known() const { return known_; }
  // MODEL.h5 for "--model"; "" if no argument without a flag has this name.
  std::string positional_named(const std::string& flag) const {
    std::string name = flag.substr(2);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return char(std::toupper(c)); });
    const auto found = std::find_if(positionals_.begin(), positionals_.end(), [&](const std::string& each) {
      return each == name || each.starts_with(name + ".");
    });
    return found == positionals_.end() ? "" : *found;
  }
  bool knows(const std::string& name) const {
    return std::find(known_.begin(), known_.end(), "--" + name) != known_.end();
  }

 private:
  void add(const std::string& name, const char* type, const std::string& help, const std::string& standard, Need need,
           std::function<void(const std::string&)> take) {
    CLI::Option* const added = app_.add_option_function<std::string>("--" + name, std::move(take), help);
    added->required(need == required)->type_name(type)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    if (!standard.empty() && need == optional) added->default_str(standard);
    known_.push_back("--" + name);
  }

  // Given several times, it is one list.
  void add_list(const std::string& name, const std::string& help, const std::string& standard, Need need,
                std::function<void(const std::vector<std::string>&)> take) {
    CLI::Option* const added = app_.add_option_function<std::vector<std::string>>(
        "--" + name,
        [take = std::move(take), flag = "--" + name](const std::vector<std::string>& texts) {
          std::vector<std::string> all;
          for (const std::string& text : texts)
            for (std::string& word : words_of(flag, text)) all.push_back(std::move(word));
          take(all);
        },
        help);
    added->required(need == required)->type_name("A,B,...")->expected(1);
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (!standard.empty() && need == optional) added->default_str(standard);
    known_.push_back("--" + name);
  }

  CLI::App& app_;
  std::vector<std::string> known_, positionals_;
};

std::vector<std::string> names_of(const std::vector<Command>& all) {
  std::vector<std::string> names;
  for (const Command& command : all) names.push_back(command.name);
  return names;
}

// A line for each command whose name begins so: "" for all, "bench " for a group. False if there is none.
bool print_commands(const std::string& beginning) {
  std::vector<const Command*> shown;
  std::size_t widest = 0;
  for (const Command& command : commands()) {
    if (!command.name.starts_with(beginning)) continue;
    shown.push_back(&command);
    widest = std::max(widest, command.name.size());
  }
  for (const Command* const command : shown) fmt::print("  {:<{}}  {}\n", command->name, widest, command->help);
  return !shown.empty();
}

void print_overview() {
  fmt::print(
      "graft {}: tunes tensor programs with a cost model that moves to new hardware\n\nusage: graft COMMAND "
      "[FLAGS]\n\n",
      GRAFT_VERSION);
  print_commands("");
  fmt::print(
      "\nEvery command has --help (also: graft help COMMAND), --json, --seed, --threads and --quiet.\n"
      "graft --version says what it was built with.\n"
      "Results go to standard output, everything else to standard error.\n"
      "Exit codes: 0 done, 1 failed, 2 flags or files, 3 a gate was not met, 130 interrupted and safe to repeat.\n");
}

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h";
}

// The command whose name the first one or two words are, and how many words that is.
std::pair<const Command*, int> find_command(const std::vector<std::string>& words) {
  for (const Command& command : commands()) {
    const std::vector<std::string_view> name = base::words(command.name);
    if (words.size() >= name.size() && std::equal(name.begin(), name.end(), words.begin())) {
      return {&command, int(name.size())};
    }
  }
  std::vector<std::string> second;  // of a group that was named
  for (const Command& command : commands()) {
    const std::vector<std::string_view> name = base::words(command.name);
    if (name.size() == 2 && name[0] == words[0]) second.emplace_back(name[1]);
  }
  if (!second.empty() && words.size() > 1 && !words[1].starts_with("-")) {
    throw UserError(words[0], fmt::format("unknown command '{}'{}", words[1], base::did_you_mean(words[1], second)));
  }
  if (!second.empty()) {
    throw UserError(words[0], fmt::format("which one? use graft {} {}", words[0], base::join(second, "|")));
  }
  if (words[0].starts_with("-"))
    throw UserError(words[0], "the command comes first: graft COMMAND FLAGS; see graft --help");
  std::vector<std::string> all = names_of(commands());
  all.push_back("help");
  throw UserError(fmt::format("unknown command '{}'{}", words[0], base::did_you_mean(words[0], all)));
}

std::string typed(const std::vector<std::string>& words) {
  std::string out = "graft";
  for (const std::string& word : words) out += " " + shell_word(word);
  return out;
}

// CLI11's complaints in our words.
[[noreturn]] void refuse(const CLI::ParseError& error, const std::string& command,
                         const std::vector<std::string>& rest) {
  std::string message = error.what();
  if (const auto* required = dynamic_cast<const CLI::RequiredError*>(&error)) {
    message = required->what();
    if (const std::size_t cut = message.find(" is required"); cut != std::string::npos) {
      const std::string name = message.substr(0, cut);
      const std::string what = name.starts_with("-") ? name + " is missing" : "missing " + name;
      throw UserError(fmt::format("{}; see {} --help", what, command));
    }
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::size_t colon = message.find(':');
    const std::string name = message.substr(0, colon);
    if (colon != std::string::npos && name.starts_with("--")) {
      const bool twice = std::count_if(rest.begin(), rest.end(), [&](const std::string& word) {
                           return word == name || word.starts_with(name + "=");
                         }) > 1;
      throw UserError(name, twice ? "given more than once" : "needs a value");
    }
  }
  if (!message.empty() && std::isupper(static_cast<unsigned char>(message[0])) != 0) {
    message[0] = char(std::tolower(static_cast<unsigned char>(message[0])));
  }
  throw UserError(message);
}

// Whether mpirun (Open MPI's, or one that speaks PMI) started this process among others.
bool under_mpirun() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);
    if (size != nullptr && std::string_view(size) != "1") return true;
  }
  return false;
}

std::unique_ptr<base::Team> team_of(const Command& command) {
  if (command.shares) return base::make_mpi_team();
  std::vector<std::string> sharing;
  for (const Command& each : commands()) {
    if (each.shares) sharing.push_back(each.name);
  }
  throw UserError("mpirun", fmt::format("graft {} works alone; those that share their work: {}", command.name,
                                        base::join(sharing, ", ")));
}

int run_command(const Command& command, const std::vector<std::string>& words, int name_words) {
  if (command.stops) catch_signals();
  CLI::App app(command.help, "graft " + command.name);
  app.allow_extras();
  Flags flags(app);
  const Action action = command.declare(flags);
  CommonFlags common;
  common.declare(flags);
  if (!flags.knows("threads")) common.declare_threads(flags);
  std::string examples;
  for (const std::string& example : command.examples) examples += "  " + example + "\n";
  if (!examples.empty()) app.footer("Examples:\n" + examples);

  const std::vector<std::string> rest(words.begin() + name_words, words.end());
  try {
    app.parse(std::vector<std::string>(rest.rbegin(), rest.rend()));  // CLI11 wants them from the back
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return done;
  } catch (const CLI::ParseError& error) {
    for (const std::string& word : app.remaining()) {  // a misspelt flag explains missing arguments
      if (word.starts_with("--")) {
        const std::string name = word.substr(0, word.find('='));
        if (const std::string near = base::did_you_mean(name, flags.known()); near.starts_with("; did")) {
          throw UserError(fmt::format("unknown flag '{}'{}", name, near));
        }
      }
    }
    refuse(error, "graft " + command.name, rest);
  }
  if (!app.remaining().empty()) {
    const std::vector<std::string> extra = app.remaining();
    const auto dashed =
        std::find_if(extra.begin(), extra.end(), [](const std::string& w) { return w.starts_with("-"); });
    if (dashed == extra.end())
      throw UserError(extra[0],
                      fmt::format("graft {} does not take this; see graft help {}", command.name, command.name));
    const std::string name = dashed->substr(0, dashed->find('='));
    if (const std::string word = name.starts_with("--") ? flags.positional_named(name) : ""; !word.empty())
      throw UserError(name, fmt::format("{} has no flag; write graft {} {}", word, command.name, word));
    throw UserError(fmt::format("unknown flag '{}'{}", name, base::did_you_mean(name, flags.known())));
  }

  const std::unique_ptr<base::Team> team = under_mpirun() ? team_of(command) : std::make_unique<base::Team>();
  if (team->rank() > 0 && std::freopen("/dev/null", "w", stdout) == nullptr)  // rank 0 speaks for all
    throw base::Failure("/dev/null cannot be opened");
  // Ranks end together: one that ends by itself would take the others with it.
  if (command.stops && team->size() == 1) end_when_asked(std::chrono::milliseconds(1500));
  Output output(common.json, command.name);
  Progress progress(common.quiet || team->rank() > 0);
  Session session{std::uint64_t(common.seed),
                  int(std::min<std::int64_t>(common.threads, 1024)),
                  typed(words),
                  output,
                  progress,
                  *team};
  const int code = action(session);
  output.finish();
  return code;
}

int run_words(const std::vector<std::string>& words) {
  const bool asks_help = !words.empty() && words[0] == "help";
  if (words.empty() || is_help(words[0]) || (asks_help && (words.size() == 1 || is_help(words[1])))) {
    print_overview();
    return words.empty() ? wrong_use : done;
  }
  if (words[0] == "--version") {
    fmt::print("{}", version_text());
    return done;
  }
  if (words.size() == 2 && (asks_help || is_help(words[1])) && print_commands(words[asks_help ? 1 : 0] + " "))
    return done;
  if (asks_help) {
    const std::vector<std::string> asked(words.begin() + 1, words.end());
    const auto [command, count] = find_command(asked);
    std::vector<std::string> again(asked.begin(), asked.begin() + count);
    again.push_back("--help");
    return run_command(*command, again, count);
  }
  const auto [command, count] = find_command(words);
  return run_command(*command, words, count);
}

void complain(std::string_view message) {
  fmt::print(stderr, "error: {}\n", base::one_line(with_flags(message), std::string::npos));
}

// Whether a comma between `part` and `rest` is one of an index expression: "... where i=4, j=4".
bool continues_expression(std::string_view part, std::string_view rest) {
  const std::vector<std::string_view> words = base::words(part);
  if (std::find(words.begin(), words.end(), "where") == words.end()) return false;
  const char* const spaces = " \t\r\n";
  const std::size_t name = rest.find_first_not_of(spaces),
                    end = rest.find_first_of("=,([ \t\r\n", std::min(name, rest.size()));
  if (end == std::string_view::npos || end == name) return false;
  const std::size_t equals = rest.find_first_not_of(spaces, end);
  return equals != std::string_view::npos && rest[equals] == '=';
}

}  // namespace

CommonFlags::CommonFlags() : threads(base::hardware_threads()) {}

void CommonFlags::declare(Options& options) {
  options.flag("json", json, "print one JSON object");
  options.flag("quiet", quiet, "no progress and no notes");
  options.integer("seed", seed, 0, "fixes every random choice");
}

void CommonFlags::declare_threads(Options& options) {
  options.integer("threads", threads, 1, "of this program; results do not depend on it");
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts{""};
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c == ',' && depth == 0 && !continues_expression(parts.back(), text.substr(i + 1))) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = base::trim(part);
  return parts;
}

std::vector<std::int64_t> integers_of(const std::string& flag, const std::vector<std::string>& words,
                                      std::int64_t least) {
  std::vector<std::int64_t> values;
  for (const std::string& word : words) values.push_back(number_from<std::int64_t>(flag, word, "an integer", least));
  return values;
}

namespace {

// The error of a user of flags: "--model, --hold-out: not with --base".
std::string in_flags(const study::FieldError& error) {
  std::string text;
  for (const std::string& field : split_list(error.fields())) text += (text.empty() ? "" : ", ") + flag_of(field);
  return text + ": " + with_flags(error.message());
}

}  // namespace

int run_program(int count, const char* const* arguments) {
  // A file that grows beyond what the system allows is an error of the write, which reports it.
  ::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = run_words({arguments + 1, arguments + count});
    if (std::fflush(stdout) != 0) throw base::Failure("standard output cannot be written");
    return code;
  } catch (const study::FieldError& error) {
    complain(in_flags(error));
    return wrong_use;
  } catch (const UserError& error) {
    complain(error.what());
    return wrong_use;
  } catch (const std::filesystem::filesystem_error& error) {
    complain(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    return failed;
  } catch (const std::exception& error) {
    if (stop_was_requested()) {
      complain(interruption);
      return interrupted;
    }
    complain(error.what());
    return failed;
  }
}

}  // namespace graft::cli
