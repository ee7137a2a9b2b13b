#include "cli/commands/commands.h"

namespace graft::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      doctor_command(),
      platform_list_command(),
      platform_show_command(),
      platform_probe_command(),
      platform_validate_command(),
      collect_command(),
      import_command(),
      export_command(),
      clean_command(),
      compare_command(),
      train_command(),
      adapt_command(),
      evaluate_command(),
      tune_command(),
      tune_all_command(),
      replay_command(),
      compile_command(),
      run_command(),
      predict_command(),
      library_list_command(),
      library_export_command(),
      library_merge_command(),
      experiment_list_command(),
      experiment_run_command(),
      experiment_render_command(),
      inspect_command(),
      report_command(),
      bench_kernels_command(),
      reference_command(),
      completion_command(),
  };
  return table;
}

}  // namespace graft::cli
