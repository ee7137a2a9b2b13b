// A program of the user's: the command that measures it, and what is known of it elsewhere.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "study/flows/tune_own.h"

namespace graft::cli {

struct OwnFlags {
  tasks::Command command;
  std::string device;
  std::vector<std::string> from;
  void declare(Options& options);
  bool is_given() const { return !command.run.empty(); }
  void refuse_for_others() const;  // UserError for one of these flags without --run
  // UserError for flags of schedules.
  study::OwnRequest request(const std::string& space, const std::string& platform, const std::string& start) const;
};

}  // namespace graft::cli
