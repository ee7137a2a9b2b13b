// The declarations of a command on Options, as values: the reference pages and the shells' completions are generated
// from them, so that neither can differ from what the program accepts.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace graft::cli {

struct Declared {
  enum Kind { flag, integer, number, text, list, positional, positionals };
  std::string name = {};  // without dashes
  Kind kind = flag;
  std::string help = {};
  std::string standard = {};  // the default; empty: none
  bool required = false;

  bool is_positional() const { return kind == positional || kind == positionals; }
};

// In the order of the command's --help, without the flags that every command has.
std::vector<Declared> declared(const Command& command);
// Those: --json, --quiet, --seed, --threads, --help.
std::vector<Declared> common_flags();

}  // namespace graft::cli
