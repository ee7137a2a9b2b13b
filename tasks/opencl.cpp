#include "tasks/opencl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/hash.h"
#include "base/installation.h"
#include "base/one_line.h"
#include "base/process.h"
#include "base/text.h"
#include "codegen/machine/compile.h"
#include "codegen/machine/opencl.h"
#include "codegen/schedule/candidate_program.h"
#include "tasks/compile_ahead.h"
#include "tasks/host_runner.h"
#include "tasks/measurer.h"

namespace graft::tasks {
namespace {

using datasets::Measurement;
using datasets::Status;

constexpr std::string_view worker_name = "graft-worker-opencl";

class OpenclMeasurer : public Measurer {
 public:
  OpenclMeasurer(const Platform& platform, const MeasureSettings& settings, int device)
      : platform_(platform),
        runner_(settings, {}, {base::own_program(std::string(worker_name)).string(), fmt::format("{}", device)}) {}

  void measure(std::span<const codegen::Candidate> candidates, const std::function<void(const Measured&)>& on_trial,
               base::Monitor& monitor) override {
    for (std::size_t i = 0; i < candidates.size() && !monitor.stop_requested(); ++i) {
      try {
        on_trial(measured(candidates[i], std::int64_t(i), monitor));
      } catch (const base::Stopped&) {
        return;
      }
    }
  }

 private:
  Measured measured(const codegen::Candidate& candidate, std::int64_t position, base::Monitor& monitor) {
    const auto program = codegen::program(candidate, platform_.target);
    if (!program) return {position, 0, without_times(Status::does_not_lower, program.reason().text)};
    const std::uint64_t hash = codegen::hash(*program), key = measured_identity(candidate.workload, hash);
    const auto known = measured_.find(key);
    if (known != measured_.end()) return {position, hash, known->second};
    const auto code = platform_.device->code(*program, platform_.target, "", "graft");
    if (!code) return {position, hash, without_times(Status::does_not_compile, code.reason().text)};
    Measurement measurement =
        runner_.run(candidate.workload, {code->bytes, code->signature, code->symbol}, 0, &monitor);
    return {position, hash, measured_.emplace(key, std::move(measurement)).first->second};
  }

  Platform platform_;
  HostRunner runner_;
  std::map<std::uint64_t, Measurement> measured_;  // each distinct program once
};

class OpenclDevice : public Device {
 public:
  explicit OpenclDevice(int device) : device_(device) {}
  std::string source() const override { return "opencl"; }
  Place place() const override { return Place::here; }
  std::unique_ptr<Measurer> measurer(const Platform& platform, const MeasureSettings& settings,
                                     Shared*) const override {
    return std::make_unique<OpenclMeasurer>(platform, settings, device_);
  }
  base::Result<codegen::Code> code(const codegen::LoopProgram& program, const codegen::Target& target,
                                   const std::string&, const std::string& symbol) const override {
    base::Result<std::string> source = codegen::opencl_source(program, target, symbol);
    if (!source) return source.reason();
    codegen::Code code;
    code.bytes = std::move(source).value();
    code.hash = base::hash_bytes(code.bytes);
    code.signature = codegen::signature(program);
    // Its temporaries are the kernels' own.
    code.signature.prepared_bytes = code.signature.prepare_scratch_bytes = code.signature.scratch_bytes = 0;
    code.symbol = symbol;
    code.form = codegen::CodeForm::opencl;
    return code;
  }
  void check(const codegen::Target&) const override {}

 private:
  int device_;
};

// A map of JSON for each device; a UserError with the worker's words where there is no OpenCL.
std::vector<base::Document> devices() {
  constexpr std::chrono::seconds patience(60);  // drivers may compile something of their own first
  const base::Finished listed =
      base::run_process({base::own_program(std::string(worker_name)).string(), "list"}, patience);
  std::vector<base::Document> result;
  for (const std::string_view line : base::split(base::trim(listed.out), '\n'))
    if (!line.empty()) result.push_back(base::parse_json(line, "graft-worker-opencl"));
  if (result.empty())
    throw base::UserError("opencl",
                          listed.err.empty() ? "there is no device of OpenCL here" : base::one_line(listed.err));
  return result;
}

}  // namespace

std::shared_ptr<const Device> read_opencl(const base::Document& own, const base::Document& whole, const std::string&,
                                          codegen::Target& target) {
  own.only_keys({"device"});
  const base::Document& device = own.at("device");
  if (device.as_integer() < 0 || device.as_integer() > 1000)
    throw base::UserError(device.place(), fmt::format("there is no device {}", device.as_integer()));
  if (target.group_items == 0)
    throw base::UserError(whole.at("target").place(), "expected group_items, the largest work-group of the device");
  return std::make_shared<OpenclDevice>(int(device.as_integer()));
}

std::vector<std::string> opencl_devices() {
  std::vector<std::string> names;
  for (const base::Document& device : devices()) names.push_back(device.at("name").as_string());
  return names;
}

std::string opencl_yaml(int device) {
  const std::vector<base::Document> known = devices();
  if (device < 0 || device >= int(known.size()))
    throw base::UserError(fmt::format("opencl:{}", device), fmt::format("this host has {} devices", known.size()));
  const base::Document& here = known[std::size_t(device)];
  constexpr std::int64_t most_items = 256;  // what kernels with many registers still have
  return fmt::format(
      "name: opencl:{0}\ndescription: {1}\ntarget:\n  triple: opencl\n  cpu: {2}\n{6}  vector_bits: 512\n"
      "  vector_registers: 64\n  cores: {3}\n  group_items: {4}\n  group_bytes: {5}\nopencl: {{device: {0}}}\n",
      device, base::Document(here.at("name").as_string() + ", " + here.at("version").as_string()).to_json(),
      here.at("name").to_json(), here.at("compute_units").as_integer(),
      std::min(most_items, here.at("group_items").as_integer()), here.at("group_bytes").as_integer(),
      here.at("fp64").as_bool() ? "  features: fp64\n" : "");
}

}  // namespace graft::tasks
