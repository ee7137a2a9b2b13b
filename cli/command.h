// Commands as values: a name, a line of help, examples, and a function that declares typed flags and returns the
// action.
//  `Options` keeps the flag library out of the commands; only command.cpp knows it. Declaring is cheap and only done
// for the requested command, so a hundred commands cost nothing at start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/team.h"
#include "cli/output.h"

namespace graft::cli {

// The context that every command gets.
struct Session {
  std::uint64_t seed = 1;
  int threads = 1;
  std::string command_line;  // as typed, for provenance
  Output& output;
  Progress& progress;
  base::Team& team;
};

// Returns the exit code.
using Action = std::function<int(Session&)>;

// Binds flags to variables, which hold the defaults (shown in the help) and must outlive the parse. Flags are named
// without dashes; --threads, which every command has, may be declared by one that gives it another meaning. A
// value that does not fit is refused with the flag's name, the value and what was expected.
class Options {
 public:
  enum Need { optional, required };
  virtual ~Options() = default;

  virtual void flag(const std::string& name, bool& value, const std::string& help) = 0;
  virtual void integer(const std::string& name, std::int64_t& value, std::int64_t least, const std::string& help) = 0;
  virtual void number(const std::string& name, double& value, double least, const std::string& help) = 0;
  virtual void text(const std::string& name, std::string& value, const std::string& help, Need need = optional) = 0;
  // Words separated by commas; commas inside parentheses or brackets separate nothing: "matmul(m=1,n=2),resnet18.C2".
  // Given several times, the flag is one list.
  virtual void list(const std::string& name, std::vector<std::string>& value, const std::string& help,
                    Need need = optional) = 0;
  // A flag that may be given several times, each time with one text; `take` gives all of them their meaning.
  virtual void texts(const std::string& name, std::function<void(const std::vector<std::string>& texts)> take,
                     const std::string& help) = 0;
  // A text that `take` gives its meaning; `standard`: the default, for the help.
  virtual void text(const std::string& name, const std::string& standard,
                    std::function<void(const std::string& text)> take, const std::string& help) = 0;
  // Words separated by commas that `take` gives their meaning.
  virtual void list(const std::string& name, const std::string& standard,
                    std::function<void(const std::vector<std::string>& words)> take, const std::string& help) = 0;
  virtual void positional(const std::string& name, std::string& value, const std::string& help,
                          Need need = required) = 0;
  // All remaining arguments; at least one if required. Declared last.
  virtual void positionals(const std::string& name, std::vector<std::string>& value, const std::string& help,
                           Need need = required) = 0;
};

struct Command {
  std::string name = {};  // "tune", or in two words "platform list"
  std::string help = {};  // one line
  std::vector<std::string> examples = {};
  Action (*declare)(Options&) = nullptr;
  bool stops = false;   // checks Progress::stop_requested: an interruption ends it at a safe place within two seconds
  bool shares = false;  // under mpirun its ranks share the work; others are refused there
};

// In the order of the help (commands/table.cpp).
const std::vector<Command>& commands();

// Splits at commas that are neither in brackets nor part of an index expression; spaces around the parts are dropped.
std::vector<std::string> split_list(std::string_view text);
// Parses a list of numbers such as --shots 0,5,10; UserError naming the flag.
std::vector<std::int64_t> integers_of(const std::string& flag, const std::vector<std::string>& words,
                                      std::int64_t least);

// Runs the command that the arguments name; returns the exit code of its action, 0 for help and version. Prints errors
// as one line on standard error: UserError 2, other failures 1, interruptions 130.
int run_program(int count, const char* const* arguments);

}  // namespace graft::cli
