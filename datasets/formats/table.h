// CSV tables (RFC 4180, plain or gzip) of configurations and their times: one line a configuration, columns that say
// describe it, and one column of times per platform. The head names the columns; the times follow the
// configuration:
//
//   op0,op1,pixel3,gold_6240
//   7,8,17.6,30.9
//
// Times are the first column written with fractions (17.0 is one) and all after it, or from the column of the platform
// on if that comes earlier; otherwise the option `times-from` names the first. An empty cell: not measured
// there. A table with one column of times and others after it needs the option `time`, unless the column's name says
// that it is one ("time (ms)"); further options say which columns name the workload, which are parameters, which are
// ignored (README.md of this folder). A table that `export_table` wrote needs no option: its first column,
// "graft_workload", names each row's workload, its last one holds the seconds.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

// Platform `*`: a dataset for every column of times. UserError "<file>:<line>: ..." and for options.
void import_table(Import& import);
// Writes any dataset: workload, sketch (if there are several), all arguments, and the time, of rows that are ok.
// Importing it gives the same workloads and times (the least of each row's), and sketch and arguments as columns.
Counts export_table(const DatasetFile& from, const TextSink& to);

// The cells of a line of CSV, quotes resolved. UserError at `place` for a quote that is not closed or text after one.
std::vector<std::string> csv_cells(std::string_view line, std::string_view place);
std::string csv_cell(std::string_view text);  // quoted if necessary

}  // namespace graft::datasets::formats
