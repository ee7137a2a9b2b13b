#include "codegen/machine/opencl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/random.h"
#include "codegen/expression/elements.h"
#include "codegen/expression/reference.h"
#include "codegen/expression/workload.h"
#include "codegen/program/forms.h"
#include "codegen/program/groups.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/lower.h"
#include "codegen/schedule/rules.h"
#include "codegen/schedule/step.h"
#include "tasks/worker/opencl_host.h"
#include "tests/machine/operators.h"
#include "tests/support/interpreter.h"
#include "tests/support/judged_space.h"

namespace graft::codegen {
namespace {

using test::Interpreter;
using test::Numbers;

Target small_gpu() {
  Target target;
  target.triple = "opencl";
  target.cpu = "any";
  target.features = "fp64";
  target.vector_bits = 512;
  target.vector_registers = 64;
  target.group_items = 64;
  target.group_bytes = 16384;
  return target;
}

Schedule steps(const std::string& text) {
  Schedule schedule;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) schedule.push_back(parse_step(text.substr(begin, end - begin), "test"));
    begin = end + 1;
  }
  return schedule;
}

LoopProgram lowered(const std::string& workload, const std::string& schedule, std::int64_t lanes = 1) {
  const auto program = lower(parse_workload(workload).padded(), steps(schedule), lanes, 4);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.reason().text);
  return program.ok() ? with_groups(*program) : LoopProgram{};
}

// Blocks of 8 x 16, items 4 x 4, each with 2 x 4 results in registers.
std::string blocks(const std::string& order) {
  return "tile C i 8 2\ntile C j 16 4 4\ntile C l 4\norder C " + order + R"( l.1 i.2 j.2 j.3
bind C block_y i.0
bind C block_x j.0
bind C thread_y i.1
bind C thread_x j.1
unroll C i.2 j.2
vector C j.3
accumulate C above l.0
)";
}
const std::string in_groups = blocks("i.0 j.0 l.0 i.1 j.1") + "pack C A above i.1\npack C B above i.1\n";
const std::string without_group_memory = blocks("i.0 j.0 i.1 j.1 l.0");

Numbers inputs_of(const LoopProgram& program) {
  Numbers numbers;
  std::uint64_t state = 88172645463325252u;
  for (const Buffer& buffer : program.buffers) {
    std::vector<double> values(std::size_t(buffer.elements()), 0.0);
    for (double& value : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      if (buffer.role == Role::input || buffer.role == Role::constant)
        value = kept(double(std::int64_t(state >> 58) + 1) / (is_floating(buffer.dtype) ? 64 : 1), buffer.dtype);
    }
    if (buffer.is_literal()) values = buffer.values;
    numbers.push_back(std::move(values));
  }
  return numbers;
}

// A device of this host; null where there is none.
std::unique_ptr<tasks::opencl::Queue> queue() {
  ::setenv("POCL_CACHE_DIR", ::testing::TempDir().c_str(), 0);
  try {
    const auto devices = tasks::opencl::Loader::get().devices();
    if (!devices.empty()) return std::make_unique<tasks::opencl::Queue>(devices.front());
  } catch (const tasks::opencl::Error&) {
  }
  return nullptr;
}

std::string source_of(const LoopProgram& program) {
  const auto source = opencl_source(program, small_gpu());
  EXPECT_TRUE(source.ok()) << (source.ok() ? "" : source.reason().text) << to_text(program);
  return source.ok() ? *source : "";
}

// The program's outputs on the device next to the interpreter's.
void compare(const tasks::opencl::Queue& queue, const LoopProgram& program, const std::string& source,
             const std::string& what) {
  Numbers expected = inputs_of(program);
  std::vector<tasks::opencl::Memory> memory;
  std::vector<void*> handles;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role == Role::temporary) break;
    memory.emplace_back(queue, std::size_t(buffer.bytes()));
    memory.back().write(as_bytes(expected[b], buffer.dtype).data());
    handles.push_back(memory.back().handle);
  }
  try {
    const tasks::opencl::Program kernels(queue, source, handles);
    kernels.enqueue("prepare");
    kernels.enqueue("run");
    queue.finish();
  } catch (const tasks::opencl::Error& error) {
    FAIL() << what << ": " << error.what() << "\n" << source;
  }
  Interpreter(program, expected).run();
  for (std::size_t b = 0; b < memory.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::output) continue;
    std::string bytes(std::size_t(buffer.bytes()), '\0');
    memory[b].read(bytes.data());
    const std::vector<double> got = numbers_from(bytes, buffer.dtype);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(got[i]) && std::isnan(expected[b][i])) continue;
      const double allowed = is_floating(buffer.dtype) ? 1e-5 * std::max(1.0, std::abs(expected[b][i])) : 0;
      ASSERT_NEAR(got[i], expected[b][i], allowed) << what << " " << buffer.name << " " << i << "\n"
                                                   << to_text(program) << source;
    }
  }
}

void compare(const tasks::opencl::Queue& queue, const LoopProgram& program, const std::string& what) {
  compare(queue, program, source_of(program), what);
}

TEST(Opencl, ItemsShareTheCopiesOfTheirGroup) {
  const LoopProgram program = lowered("matmul(m=16,n=32,k=8)", in_groups);
  const auto all = launches(program, program.run, small_gpu());
  ASSERT_TRUE(all.ok()) << all.reason().text << to_text(program);
  ASSERT_EQ(all->size(), 1u) << to_text(program);
  const Launch& launch = all->front();
  EXPECT_EQ(launch.groups, (std::array<std::int64_t, 3>{2, 2, 1}));
  EXPECT_EQ(launch.items, (std::array<std::int64_t, 3>{4, 4, 1}));
  EXPECT_EQ(launch.shared.size(), 2u) << to_text(program);
  EXPECT_EQ(launch.barriers.size(), 2u) << to_text(program);  // before the copies and before their use
}

TEST(Opencl, TextIsAsThis) {
  const LoopProgram program = parse_program(R"(buffer A f32 [8] input
buffer B f32 [8] output
buffer t f32 [4] temporary group
run
  for b 2 block_x
    for i 4 thread_x
      t[i] = A[4*b + i]
    for i 4 thread_x
      B[4*b + i] = max(t[-1*i + 3], 0)
)",
                                            "test");
  const auto source = opencl_source(program, small_gpu());
  ASSERT_TRUE(source.ok()) << source.reason().text;
  EXPECT_EQ(*source, R"(// launch run graft_run_0 2 1 1 4 1 1 0 1

#define graft_max(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))

__kernel __attribute__((reqd_work_group_size(4, 1, 1)))
void graft_run_0(__global const float* restrict A_b0, __global float* restrict B_b1) {
  __local float t_b2[4];
  const int b_l0 = (int)get_group_id(0);
  {
    const int i_l1 = (int)get_local_id(0);
    t_b2[i_l1] = A_b0[4 * b_l0 + i_l1];
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  {
    const int i_l2 = (int)get_local_id(0);
    const float t0 = t_b2[-i_l2 + 3];
    B_b1[4 * b_l0 + i_l2] = graft_max(t0, 0.0f);
  }
}
)");
}

TEST(Opencl, RefusesWhatGroupsCannotRun) {
  const auto refused = [](const std::string& buffers, const std::string& run) {
    const LoopProgram program = parse_program(buffers + "run\n" + run, "test");
    const auto source = opencl_source(program, small_gpu());
    return source.ok() ? *source : source.reason().text;
  };
  const std::string out = "buffer C f32 [128] output\n";
  EXPECT_EQ(refused(out, "  for i 128 thread_x\n    C[i] = 1\n"), "group: 128 work-items, the target has 64");
  EXPECT_EQ(refused(out, "  for b 2 block_x\n    for i 4 thread_x\n      C[b] += 1\n"),
            "group: iterations of 'i' may meet in the same elements of 'C'");
  EXPECT_EQ(refused(out, "  for b 2 block_x\n    for i 4 thread_x\n      C[i] = 1\n"),
            "group: iterations of 'b' may meet in the same elements of 'C'");
  EXPECT_EQ(
      refused(out + "buffer t f32 [8192] temporary group\n", "  for b 2 block_x\n    t[0] = 1\n    C[b] = t[0]\n"),
      "group: 32768 bytes of group memory, the target has 16384");
  EXPECT_EQ(refused(out + "buffer r f32 [1] temporary registers\n",
                    "  for b 2 block_x\n    for i 4 thread_x\n      r[0] = 1\n    for j 4 thread_x\n      C[4*b + j] = "
                    "r[0]\n"),
            "registers: values of 'r' pass from one work-item to another");
  EXPECT_EQ(refused(out + "buffer r f32 [1] temporary registers\n",
                    "  for b 2 block_x\n    for i 4 thread_x\n      C[4*b + i] = r[0]\n"),
            "registers: 'r' is read before it is written");
}

TEST(Opencl, ProductsAreRightOnADevice) {
  const auto device = queue();
  if (!device) GTEST_SKIP() << "no device of OpenCL here; install pocl-opencl-icd";
  compare(*device, lowered("matmul(m=16,n=32,k=8)", in_groups), "in groups");
  compare(*device, lowered("matmul(m=32,n=64,k=20)", in_groups), "in groups");
  compare(*device, lowered("matmul(m=16,n=32,k=8)", without_group_memory), "without group memory");
}

// Oclgrind has to see it (ctest opencl_planted_race); results may be right all the same.
TEST(Opencl, DISABLED_ProductsWithoutBarriers) {
  const auto device = queue();
  ASSERT_TRUE(device);
  const LoopProgram program = lowered("matmul(m=16,n=32,k=8)", in_groups);
  std::string source = source_of(program);
  constexpr std::string_view barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);";
  for (std::size_t at = 0; (at = source.find(barrier, at)) != std::string::npos;) source.erase(at, barrier.size());
  compare(*device, program, source, "without barriers");
}

TEST(Opencl, OperatorsAreRightOnADevice) {
  const auto device = queue();
  if (!device) GTEST_SKIP() << "no device of OpenCL here; install pocl-opencl-icd";
  for (const char* const workload : test::workloads) compare(*device, lowered(workload, "", 4), workload);
}

TEST(Opencl, SamplesOfSpacesAreRightOnADevice) {
  const auto device = queue();
  if (!device) GTEST_SKIP() << "no device of OpenCL here; install pocl-opencl-icd";
  const std::string larger[] = {"matmul(m=32,n=48,k=24)", "conv2d(c=8,h=8,w=8,k=16,r=3,s=3,pad=1)"};
  std::vector<std::string> all(std::begin(test::workloads), std::end(test::workloads));
  all.insert(all.end(), std::begin(larger), std::end(larger));
  base::Stream stream(1, "samples");
  for (const std::string& text : all) {
    const Workload workload = parse_workload(text);
    const JudgedSpace space(derive_space(workload, small_gpu()), small_gpu());
    const auto drawn = program(space.sample(stream), small_gpu());
    ASSERT_TRUE(drawn.ok()) << text << ": " << drawn.reason().text;
    compare(*device, *drawn, text);
  }
}

}  // namespace
}  // namespace graft::codegen
