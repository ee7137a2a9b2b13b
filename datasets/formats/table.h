// CSV tables (RFC 4180, plain or gzip) of configurations and their times: one line a configuration, columns that say
// what it is, and one column of times per platform. The head names the columns; the times stand behind the
// configuration:
//
//   op0,op1,pixel3,gold_6240
//   7,8,17.6,30.9
//
// Times are the first column written with fractions (17.0 is one) and all behind it, or from the column of the platform
// on where that stands earlier; the option `times-from` says it where that is not so. An empty cell: not measured
// there. A table with one column of times and others behind it needs the option `time`; further options say which
// columns name the workload, which are parameters, which are nothing (README.md of this folder). A table that
// `export_table` wrote needs no option: its first column, "graft_workload", names each row's workload, its last one
// holds the seconds.
#pragma once

#include "datasets/formats/format.h"

namespace graft::datasets::formats {

// Platform `*`: a dataset for every column of times. UserError "<file>:<line>: ..." and for options.
void import_table(Import& import);
// Any dataset: workload, sketch (where there are several), all arguments, the time, of rows that are ok. Importing it
// gives the same workloads and times (the least of each row's), and sketch and arguments as columns.
Counts export_table(const DatasetFile& from, const TextSink& to);

// The cells of a line of CSV, quotes resolved. UserError at `place` for a quote that is not closed or text behind one.
std::vector<std::string> csv_cells(std::string_view line, std::string_view place);
std::string csv_cell(std::string_view text);  // quoted where it must be

}  // namespace graft::datasets::formats
