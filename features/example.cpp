#include "features/example.h"

#include "codegen/schedule/candidate_program.h"

namespace graft::features {
namespace {

constexpr std::string_view sketch_text = R"(sketch example
tile C i $rows
tile C j $columns 8
tile C l $depth
order C $outer{i.0 j.0|j.0 i.0} l.0 i.1 j.1 l.1 j.2
vector C j.2
unroll C l.1
)";

codegen::Target example_target() {
  codegen::Target target;
  target.triple = "riscv64-unknown-linux-gnu";
  target.vector_bits = 256;
  target.vector_registers = 32;
  target.l1_bytes = 32 * 1024;
  target.l2_bytes = 512 * 1024;
  target.line_bytes = 64;
  return target;
}

}  // namespace

Example::Example()
    : target_(example_target()),
      candidate_{codegen::parse_workload("matmul(m=60,n=64,k=32)"),
                 std::make_shared<const codegen::Sketch>(codegen::parse_sketch(sketch_text, "example")),
                 {16, 32, 4, 1}},
      program_(*codegen::program(candidate_, target_)) {}

}  // namespace graft::features
