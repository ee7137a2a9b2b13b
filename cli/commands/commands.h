// The commands, one file each. Their order in the help is that of table.cpp.
#pragma once

#include "cli/command.h"

namespace graft::cli {

Command doctor_command();
Command platform_list_command();
Command platform_show_command();
Command platform_probe_command();
Command platform_validate_command();
Command collect_command();
Command import_command();
Command export_command();
Command clean_command();
Command compare_command();
Command train_command();
Command adapt_command();
Command evaluate_command();
Command tune_command();
Command tune_all_command();
Command replay_command();
Command compile_command();
Command run_command();
Command predict_command();
Command library_list_command();
Command library_export_command();
Command library_merge_command();
Command experiment_list_command();
Command experiment_run_command();
Command experiment_render_command();
Command reference_command();
Command completion_command();
Command inspect_command();
Command report_command();
Command bench_kernels_command();

}  // namespace graft::cli
