// Programs as numbers, for models that are made elsewhere.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/arrays.h"
#include "codegen/space/candidate.h"
#include "tasks/platform.h"

namespace graft::study {

struct EncodeRequest {
  tasks::Platform platform;
  std::string encoding = "context_relation";  // of vector_encodings()
  int threads = 1;                            // no result depends on it
};

// Encodings with one row for each program (features/encoding.h), made of the program and not of a sketch's arguments.
std::vector<std::string> vector_encodings();
// Names of its columns. FieldError for another encoding; UserError for an unknown one.
std::vector<std::string> columns_of(const std::string& encoding);
// A row for each candidate, of NaN where it does not lower. Errors as columns_of.
base::Matrix encode(const EncodeRequest& request, std::span<const codegen::Candidate> candidates);

}  // namespace graft::study
