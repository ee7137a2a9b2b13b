// A program of the user's: the command that measures it, and what is known of it elsewhere.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "study/flows/tune_own.h"

namespace graft::cli {

struct OwnFlags {
  study::OwnRequest request;         // what flags set directly
  std::vector<std::string> devices;  // NAME, or each NAME=COMMAND
  void declare(Options& options);
  bool is_given() const;
  void refuse_for_others() const;  // UserError for one of these flags without --run or devices with commands
  // One for each name of a device; devices of one name share it. UserError for flags of schedules.
  std::vector<study::OwnRequest> requests(const std::string& space, const std::string& platform,
                                          const std::string& start, const study::TuneRequest& search) const;
};

}  // namespace graft::cli
