#include "tasks/device.h"

#include "codegen/machine/compile.h"
#include "tasks/measurer.h"
#include "tasks/modelled/modelled.h"
#include "tasks/native.h"
#include "tasks/opencl.h"
#include "tasks/remote.h"

namespace graft::tasks {

std::unique_ptr<Measurer> Device::checker(const Platform&, const MeasureSettings&) const {
  return nullptr;
}

base::Result<codegen::Code> Device::code(const codegen::LoopProgram& program, const codegen::Target& target,
                                         const std::string& pipeline, const std::string& symbol) const {
  return codegen::compile(program, target, codegen::pipeline_named(pipeline, target), symbol);
}

void Device::check(const codegen::Target& target) const {
  codegen::check_target(target);
}

CodeRunner Device::runner() const {
  return {{}, "none", "nothing here runs its code"};
}

const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds{
      {"native", read_native}, {"remote", read_remote}, {"modelled", read_modelled}, {"opencl", read_opencl}};
  return kinds;
}

}  // namespace graft::tasks
