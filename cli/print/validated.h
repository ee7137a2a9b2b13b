// Agreement of modelled times with measured ones: a table, and a page with pictures.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "study/flows/validate.h"

namespace graft::cli {

Table table_of(const std::vector<study::Comparison>& comparisons);

// The page: weak spots first.
std::string validation_page(const study::ValidateResult& result, const study::ValidateRequest& request,
                            const base::Document& context);

}  // namespace graft::cli
