// Compiles results of searches into files for linking: the best programs of runs, compiled as their runs measured them,
// checked, and written as a library (codegen/machine/library.h) with its interface as data, one object, or a program
// that checks and times itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/monitor.h"
#include "base/numpy.h"
#include "codegen/expression/workload.h"
#include "study/knowledge/answer.h"
#include "tasks/platform.h"

namespace graft::study {

enum class CompileFormat { library, object, bench };

// An answer of a library of answers (study/knowledge/library.h): its program alone, without variants.
struct Known {
  tasks::Platform platform;
  Answer answer;
};

struct CompileRequest {
  // Folders of tune; also `known`. For several platforms of one architecture: a function has the code of each, and runs
  // that for the first one that can, in an order by what the platforms need, the most first, then by the order here.
  std::vector<std::filesystem::path> runs;
  std::vector<Known> known = {};  // programs that no run holds
  CompileFormat format = CompileFormat::library;
  std::string name = "kernels";              // of the library
  std::map<std::string, std::string> names;  // of functions, by the canonical text of their workloads
  std::int64_t variants = 1;                 // distinct programs of each workload, the fastest ones
  // By "FUNCTION/TENSOR": constants that become part of the library, in the shape of the workload's tensor. If there
  // are any, those of all functions must be given.
  std::map<std::string, base::NumpyArray> constants;
  bool exported = false;  // codegen::Library::exported
  int threads = 1;        // to compute references with
};

struct Compiled {
  struct Variant {
    std::string platform, source;  // the source of its time
    std::int64_t trial = 0;        // of the run
    std::string pipeline;
    double seconds = 0;  // as the run measured it
    std::string check;   // of this exact code: "host", "qemu", "remote", or "none" with the reason
    std::string unchecked;
  };
  struct Function {
    std::string name, symbol;  // in the library, in C
    codegen::Workload workload;
    std::filesystem::path run;  // of the first variant; empty for a known one
    std::vector<Variant> variants;
    // What it needs (codegen/machine/library.h), of the variant that needs the most.
    std::int64_t prepared_bytes = 0, prepare_scratch_bytes = 0, scratch_bytes = 0;
  };
  std::string platform;  // names of all: "native:v4, native:v3"
  std::vector<Function> functions;
  std::map<std::string, std::string> files;  // contents by name; nothing is written
  bool executable = false;                   // the files are programs

  bool several_variants() const;  // of a function
};

// The default name of a function: "conv2d_n1_c64_h56" from its operator and extents, without those equal to the
// operator's defaults; for an index expression "kernel_" and eight digits of its hash.
std::string function_name(const codegen::Workload& workload);

// A library's name for who gives none: that of its folder without "lib" in front, as a C identifier; "kernels" for a
// folder that is called "lib".
std::string library_name(const std::filesystem::path& folder);

// UserError for a run without an answer, a name for a workload that no run has, two runs of one workload on one
// platform, platforms of several architectures, several platforms of programs that check themselves, constants that are
// missing, of another shape or for no function, and for constants of programs that check themselves, which bring their
// own. Failure if the code of a run's best program computes wrong results; other variants that do are left out with a
// note. base::Stopped when the monitor asks for it.
Compiled compile(const CompileRequest& request, base::Monitor& monitor);

// Creates the folder, replaces files in it. Failure if that is not possible.
void write_files(const std::map<std::string, std::string>& files, bool executable, const std::filesystem::path& folder);

}  // namespace graft::study
