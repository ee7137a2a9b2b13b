// Tables of several devices, joined: what their columns mean together, by name and value, and which workloads of theirs
// are one although files call them differently.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/space/table_schema.h"
#include "datasets/dataset.h"

namespace graft::datasets {

struct JoinedTables {
  codegen::TableSchema schema;     // empty if no row is one of a table
  std::vector<std::string> notes;  // where joining is in doubt, for the user
};

// Columns and values in the order of the datasets; only values that occur in rows. A workload that one platform alone
// has is taken for one that it lacks if their texts differ in the name alone, at least half of the rows of the smaller
// one are in both, and no other two workloads could be meant. UserError for a platform whose tables have no column in
// common with those of the others.
JoinedTables joined_tables(std::span<const Dataset> datasets);

}  // namespace graft::datasets
