// Shared by several tests of this room: a temporary folder, and the text of a refusal.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace graft::base {

using Folder = TemporaryFolder;

// The line that a UserError (or another exception) carries; "no refusal" when nothing is thrown.
template <class Error = UserError, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no refusal";
}

}  // namespace graft::base
