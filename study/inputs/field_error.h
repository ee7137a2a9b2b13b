// A fault of a request, by field: what() begins with the fields' names; the program graft replaces them by its
// flags, and so it does with names in back quotes within any message of a library: "not with `sources`".
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace graft::study {

class FieldError : public base::UserError {
 public:
  // One field or several: "hold_out", "model, encoding".
  FieldError(std::string_view fields, std::string_view message)
      : base::UserError(fields, message), fields_(fields), message_(message) {}
  const std::string& fields() const { return fields_; }
  const std::string& message() const { return message_; }

 private:
  std::string fields_, message_;
};

}  // namespace graft::study
