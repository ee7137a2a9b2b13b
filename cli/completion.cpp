#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/declared.h"
#include "cli/texts.h"
#include "codegen/expression/suites.h"
#include "features/encoding.h"
#include "meta/evaluate.h"
#include "meta/methods/methods.h"
#include "search/explorer.h"
#include "tasks/platform.h"

namespace graft::cli {
namespace {

using Words = std::vector<std::string>;

template <class List>
Words names_in(const List& list) {
  Words names;
  for (const auto& entry : list) names.emplace_back(entry.name);
  return names;
}

// Operators with an open bracket, which is what comes next.
Words workload_words() {
  Words words;
  for (const codegen::Operator& op : codegen::operators()) words.push_back(op.name + "(");
  for (int layer = 1; layer <= 12; ++layer) words.push_back(fmt::format("resnet18.C{}", layer));
  for (const codegen::Suite& suite : codegen::suites()) words.push_back("suite:" + suite.name);
  return words;
}

// Names that flags and arguments take, by the name of the list.
std::map<std::string, Words> lists() {
  return {{"platforms", names_in(tasks::known_platforms())},
          {"workloads", workload_words()},
          {"methods", names_in(meta::evaluated_methods())},
          {"learners", names_in(meta::methods())},
          {"encodings", names_in(features::encodings())},
          {"explorers", names_in(search::offered_explorers())},
          {"shells", completed_shells()}};
}

// The list that a flag or argument of this name takes words of; empty: none, files are completed.
std::string list_of(const Declared& entry) {
  static const std::map<std::string, std::string, std::less<>> lists = {
      {"platform", "platforms"},        {"PLATFORM", "platforms"},        {"target", "platforms"},
      {"sources", "platforms"},         {"hold-out", "platforms"},        {"misleading", "platforms"},
      {"WORKLOAD", "workloads"},        {"workload", "workloads"},        {"workloads", "workloads"},
      {"train-workloads", "workloads"}, {"judge-workloads", "workloads"}, {"methods", "methods"},
      {"search-methods", "methods"},    {"against", "methods"},           {"learner", "learners"},
      {"encoding", "encodings"},        {"explorer", "explorers"},        {"SHELL", "shells"}};
  const auto found = lists.find(entry.name);
  return found == lists.end() ? "" : found->second;
}

struct Completed {
  const Command* command;
  std::vector<Declared> flags;
  std::string positional;  // list of its first argument
};

std::vector<Completed> completed_commands() {
  std::vector<Completed> all;
  for (const Command& command : commands()) {
    Completed one{&command, declared(command), ""};
    const auto first = std::find_if(one.flags.begin(), one.flags.end(), [](auto& e) { return e.is_positional(); });
    if (first != one.flags.end()) one.positional = list_of(*first);
    std::erase_if(one.flags, [](const Declared& entry) { return entry.is_positional(); });
    for (const Declared& common : common_flags()) {
      const bool own = std::any_of(one.flags.begin(), one.flags.end(), [&](auto& e) { return e.name == common.name; });
      if (!own) one.flags.push_back(common);
    }
    all.push_back(std::move(one));
  }
  return all;
}

// First words of commands, and the second words of those that have two.
std::vector<std::pair<std::string, Words>> command_words() {
  std::vector<std::pair<std::string, Words>> all;
  for (const Command& command : commands()) {
    const std::vector<std::string_view> words = base::words(command.name);
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == words[0]; });
    if (found == all.end()) found = all.insert(all.end(), {std::string(words[0]), {}});
    if (words.size() == 2) found->second.emplace_back(words[1]);
  }
  return all;
}

// What bash and zsh have in common: functions that set the caller's local variables.
std::string tables() {
  std::string first, seconds, flags, takes, words;
  for (const auto& [word, more] : command_words()) {
    first += (first.empty() ? "" : " ") + word;
    if (!more.empty()) seconds += fmt::format("    {}) second={} ;;\n", word, shell_quoted(base::join(more, " ")));
  }
  std::map<std::string, std::vector<std::string>> taking;  // flags by list
  for (const Completed& one : completed_commands()) {
    Words all, switches;
    for (const Declared& entry : one.flags) {
      all.push_back("--" + entry.name);
      if (entry.kind == Declared::flag) switches.push_back(all.back());
      std::vector<std::string>& of_list = taking[list_of(entry)];
      if (std::find(of_list.begin(), of_list.end(), all.back()) == of_list.end()) of_list.push_back(all.back());
    }
    flags += fmt::format("    {}) flags={} switches={} positional={} ;;\n", shell_quoted(one.command->name),
                         shell_quoted(base::join(all, " ")), shell_quoted(base::join(switches, " ")),
                         shell_quoted(one.positional));
  }
  for (const auto& [list, names] : taking)
    if (!list.empty()) takes += fmt::format("    {}) list={} ;;\n", base::join(names, "|"), list);
  for (const auto& [list, names] : lists())
    words += fmt::format("    {}) names={} ;;\n", list, shell_quoted(base::join(names, " ")));
  return fmt::format(
      "_graft_first={}\n"
      "_graft_second() {{  # of a group of commands\n  second=''\n  case \"$1\" in\n{}  esac\n}}\n"
      "_graft_flags() {{  # of a command\n  flags='' switches='' positional=''\n  case \"$1\" in\n{}  esac\n}}\n"
      "_graft_list() {{  # that a flag takes words of\n  list=''\n  case \"$1\" in\n{}  esac\n}}\n"
      "_graft_names() {{  # in a list\n  names=''\n  case \"$1\" in\n{}  esac\n}}\n",
      shell_quoted(first + " help"), seconds, flags, takes, words);
}

// Candidates for the word that follows `typed`, which begins with the program's name: sets `names`, and `list` when
// they are of one. For bash and zsh, whose arrays begin at 0 and 1: the function takes the words as arguments.
constexpr const char* candidates = R"sh(_graft_candidates() {  # CURRENT-WORD PROGRAM WORD...
  local current=$1 previous='' command='' second='' flags='' switches='' positional=''
  shift 2
  list='' names=''
  if [ "${1-}" = help ]; then shift; fi
  if [ $# -eq 0 ]; then names=$_graft_first; return; fi
  _graft_second "$1"
  command=$1
  shift
  if [ -n "$second" ]; then
    if [ $# -eq 0 ]; then names=$second; return; fi
    command="$command $1"
    shift
  fi
  _graft_flags "$command"
  while [ $# -gt 0 ]; do previous=$1; shift; done
  case "$current" in
    --*=*) previous=${current%%=*} ;;
    -*) names=$flags; return ;;
  esac
  case "$previous" in
    --*)
      case " $switches " in
        *" $previous "*) ;;
        *) _graft_list "$previous"; _graft_names "$list"; return ;;
      esac ;;
  esac
  list=$positional
  _graft_names "$list"
}
)sh";

// COMP_WORDS is split at colons and equal signs, so the line is split here; what readline takes for the word begins
// after the last of them.
constexpr const char* bash_function = R"sh(_graft() {
  local line=${COMP_LINE:0:COMP_POINT} current list names quote='' prefix word
  local -a words
  COMPREPLY=()
  current=${line##*[[:space:]]}
  read -ra words <<<"${line%"$current"}"
  case "$current" in [\'\"]*) quote=${current:0:1} current=${current:1} ;; esac
  _graft_candidates "$current" "${words[@]}"
  prefix=''
  case "$current" in --*=*) prefix=${current%%=*}= ;; esac
  current=${current#"$prefix"}
  case "$current" in
    *\(*) return ;;  # inside of a workload
    *,*) prefix=$prefix${current%"${current##*,}"} current=${current##*,} ;;
  esac
  for word in $names; do
    case "$word" in
      "$current"*)
        # An open bracket means something to the shell unless it is quoted.
        case "$word" in *\() compopt -o nospace 2>/dev/null; [ -n "$quote$prefix" ] || word="'$word" ;; esac
        COMPREPLY+=("$prefix$word") ;;
    esac
  done
  word=$prefix$current
  for quote in : =; do
    case "$COMP_WORDBREAKS" in *"$quote"*) ;; *) continue ;; esac
    case "$word" in
      *"$quote"*)
        prefix=${word%"${word##*"$quote"}"}
        word=${word#"$prefix"}
        COMPREPLY=("${COMPREPLY[@]#"$prefix"}") ;;
    esac
  done
}
complete -o default -F _graft graft
)sh";

constexpr const char* zsh_function = R"sh(_graft() {
  local list names prefix='' current=${(Q)PREFIX}
  _graft_candidates "$current" "${(@)words[1,CURRENT-1]}"
  if [[ -z $names ]]; then
    compset -P '--*='
    _files
    return
  fi
  compset -P '--*='
  compset -P '*,'
  local -a open closed
  local word
  for word in ${=names}; do
    if [[ $word == *'(' ]]; then open+=("$word"); else closed+=("$word"); fi
  done
  compadd -S '' -a open
  compadd -a closed
}
if [ "$funcstack[1]" = "_graft" ]; then _graft "$@"; else compdef _graft graft; fi
)sh";

std::string bash_script() {
  return "# Completes graft in bash; made by `graft completion bash`.\n" + tables() + candidates + bash_function;
}

std::string zsh_script() {
  return "#compdef graft\n# Completes graft in zsh; made by `graft completion zsh`.\n" + tables() + candidates +
         zsh_function;
}

// fish's quotes: a backslash before a quote or a backslash.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string fish_script() {
  std::string text =
      "# Completes graft in fish; made by `graft completion fish`.\n"
      "complete -c graft -e\n"
      "function __graft_typed  # words that are complete, without the program and `help`\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  test \"$words[1]\" = help; and set -e words[1]\n"
      "  string join ' ' -- $words\n"
      "end\n"
      "function __graft_only  # whether nothing but this was typed\n"
      "  set -l typed (__graft_typed)\n"
      "  test \"$typed\" = \"$argv[1]\"\n"
      "end\n"
      "function __graft_is  # whether this is the command that was typed\n"
      "  set -l typed (__graft_typed)\n"
      "  test \"$typed\" = \"$argv[1]\"; or string match -q -- \"$argv[1] *\" \"$typed\"\n"
      "end\n";
  for (const auto& [list, names] : lists()) {
    text += fmt::format("set -g __graft_{}", list);
    for (const std::string& name : names) text += " " + fish_quoted(name);
    text += "\n";
  }
  const auto complete = [&](const std::string& condition, const std::string& rest, const std::string& help) {
    text += fmt::format("complete -c graft -n {} {} -d {}\n", fish_quoted(condition), rest, fish_quoted(help));
  };
  for (const auto& [word, more] : command_words()) {
    std::string help = base::join(more, ", ");
    for (const Command& command : commands())
      if (command.name == word) help = command.help;
    complete("__graft_only ''", fmt::format("-f -a {}", word), help);
    for (const Command& command : commands()) {
      if (!more.empty() && command.name.starts_with(word + " "))
        complete(fmt::format("__graft_only {}", word), fmt::format("-f -a {}", command.name.substr(word.size() + 1)),
                 command.help);
    }
  }
  for (const Completed& one : completed_commands()) {
    const std::string condition = fmt::format("__graft_is {}", fish_quoted(one.command->name));
    if (!one.positional.empty()) complete(condition, fmt::format("-f -a '$__graft_{}'", one.positional), "");
    for (const Declared& entry : one.flags) {
      const std::string list = list_of(entry);
      const std::string value = entry.kind == Declared::flag ? ""
                                : list.empty()               ? " -r"
                                                             : fmt::format(" -x -a '$__graft_{}'", list);
      complete(condition, fmt::format("-l {}{}", entry.name, value), entry.help);
    }
  }
  return text;
}

struct Shell {
  const char* name;
  std::string (*script)();
};
constexpr Shell shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

}  // namespace

const std::vector<std::string>& completed_shells() {
  static const std::vector<std::string> names = names_in(shells);
  return names;
}

std::string completion_script(std::string_view shell) {
  for (const Shell& each : shells)
    if (shell == each.name) return each.script();
  throw base::UserError("SHELL",
                        fmt::format("unknown shell '{}'{}", shell, base::did_you_mean(shell, completed_shells())));
}

}  // namespace graft::cli
