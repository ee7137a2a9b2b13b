// What was found as files for programs to link: the best programs of runs, compiled as their runs measured them,
// checked, and written as a library (codegen/machine/library.h), one object, or a program that checks and times itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/numpy.h"
#include "codegen/expression/workload.h"
#include "study/answer.h"
#include "tasks/platform.h"

namespace graft::study {

enum class CompileFormat { library, object, bench };

// An answer of a library of answers (study/library.h): its program alone, there are no variants.
struct Known {
  tasks::Platform platform;
  Answer answer;
};

struct CompileRequest {
  std::vector<std::filesystem::path> runs;  // of tune; all for one platform, as the known ones
  std::vector<Known> known = {};            // programs that no run holds
  CompileFormat format = CompileFormat::library;
  std::string name = "kernels";              // of the library
  std::map<std::string, std::string> names;  // of functions, by the canonical text of their workloads
  std::int64_t variants = 1;                 // distinct programs of each workload, the fastest ones
  // By "FUNCTION/TENSOR": constants that become part of the library, in the shape of the workload's tensor. With any,
  // those of all functions are given.
  std::map<std::string, base::NumpyArray> constants;
  int threads = 1;  // that references are computed on
};

struct Compiled {
  struct Variant {
    std::int64_t trial = 0;  // of the run
    std::string pipeline;
    double seconds = 0;  // as the run measured it
    std::string check;   // of this very code: "host", "qemu", "remote", or "none" with the reason
    std::string unchecked;
  };
  struct Function {
    std::string name;
    codegen::Workload workload;
    std::filesystem::path run;  // empty for a known one
    std::vector<Variant> variants;
    std::int64_t workspace_bytes = 0;
  };
  std::string platform;
  std::vector<Function> functions;
  std::map<std::string, std::string> files;  // contents by name; nothing is written
  bool executable = false;                   // the files are programs
};

// What a function is called where nobody says: "conv2d_n1_c64_h56" of its operator and extents, without what is as the
// operator's defaults are; of an index expression "kernel_" and eight digits of its hash.
std::string function_name(const codegen::Workload& workload);

// UserError for a run without an answer, a name for a workload that no run has, two runs of one workload, runs of
// several platforms, constants that are missing, of another shape or no function's, and for constants of programs that
// check themselves, which bring their own. Failure where the code of a run's best computes wrong results; other
// variants that do are left out with a note. base::Stopped when the monitor asks for it.
Compiled compile(const CompileRequest& request, base::Monitor& monitor);

// Makes the folder, replaces files there. Failure if that cannot be done.
void write_files(const std::map<std::string, std::string>& files, bool executable, const std::filesystem::path& folder);

}  // namespace graft::study
