// A device: makes code of programs, measures them, and answers what others have to know of it. This host (native),
// boards and emulators (remote), modelled cores (modelled/modelled) and a command of the user's (command) are one class
// each, in the file of their measurer; nobody else knows which of them a platform has. A new one: a file like these,
// its row in device_kinds (device.cpp), and a platform that names its key.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "base/error.h"
#include "codegen/expression/target.h"

namespace graft::codegen {
struct Code;
struct LoopProgram;
}  // namespace graft::codegen

namespace graft::tasks {

struct CodeRunner;
struct MeasureSettings;
class Measurer;
struct Platform;
struct Shared;

// Where programs run: in the worker process of this host, on a board or under qemu, or (modelled ones) both.
enum class Place { here, elsewhere, both };

// What a description says of a device's speed.
struct Limits {
  double gigahertz = 0, memory_gigabytes_per_second = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  // The source of its times: "native", "remote", "emulated", "modelled", "opencl" or "command".
  virtual std::string source() const = 0;
  virtual Place place() const = 0;
  // `shared`, if given, holds what its measurers of several platforms have in common. UserError for settings that it
  // cannot measure with.
  virtual std::unique_ptr<Measurer> measurer(const Platform& platform, const MeasureSettings& settings,
                                             Shared* shared) const = 0;
  // Makes every check of a program, for a device whose measurer makes some only of a sample of them; otherwise null.
  virtual std::unique_ptr<Measurer> checker(const Platform& platform, const MeasureSettings& settings) const;
  // By default machine code, as codegen::compile makes it and throws. `pipeline`: as codegen::pipeline_named takes it.
  virtual base::Result<codegen::Code> code(const codegen::LoopProgram& program, const codegen::Target& target,
                                           const std::string& pipeline, const std::string& symbol) const;
  // Throws codegen::TargetError for what no code can be made for; by default what LLVM does not know.
  virtual void check(const codegen::Target& target) const;
  // What runs its code once from here (remote.h); by default nothing.
  virtual CodeRunner runner() const;
  // Whether its code is this machine's: the worker (host_runner.h) can time other builds of a program, whole networks
  // and other libraries together with what was measured.
  virtual bool is_this_host() const { return false; }
  // Whether a program has one time, whatever runs before or at the same time: nothing is gained by timing it again, and
  // a sequence of programs takes the sum of their times.
  virtual bool is_exact() const { return false; }
  // Nothing where it would be a guess: descriptions of boards and of this host hold no clock.
  virtual std::optional<Limits> limits() const { return std::nullopt; }
  // fp32 operations per second of independent multiply-adds on registers, on target.threads cores; nothing if it would
  // be a guess (`graft bench kernels` measures this host's).
  virtual std::optional<double> peak_flops_per_second(const Platform&) const { return std::nullopt; }
};

// One that platforms in YAML can have.
struct DeviceKind {
  std::string_view key;  // whose value in the YAML `read` gets
  // `whole` is the YAML of the platform, `file` its path; may add to the target, which was read before. UserError with
  // the place of what is wrong.
  std::shared_ptr<const Device> (*read)(const base::Document& own, const base::Document& whole, const std::string& file,
                                        codegen::Target& target);
};
const std::vector<DeviceKind>& device_kinds();

// This machine.
std::shared_ptr<const Device> this_host();

}  // namespace graft::tasks
