#include "cli/command.h"

int main(int count, char** arguments) {
  return graft::cli::run_program(count, arguments);
}
