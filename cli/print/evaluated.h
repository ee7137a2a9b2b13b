// The tables of an evaluation, for people.
#pragma once

#include <string>

#include "cli/output.h"
#include "study/flows/evaluate.h"

namespace graft::cli {

// One target, when its rows are in the table.
void print_target(const study::EvaluationTable& table, const std::string& target, const study::EvaluateRequest& request,
                  Output& out);
// The results over all targets: means and differences.
void print_comparison(const study::EvaluationTable& table, const study::EvaluateRequest& request, Output& out);

}  // namespace graft::cli
