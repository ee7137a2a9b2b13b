// Programs sampled from a computation's one sketch, compared with the reference.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/random.h"
#include "codegen/program/forms.h"
#include "codegen/schedule/candidate_program.h"
#include "codegen/schedule/rules.h"
#include "tests/schedule/support.h"
#include "tests/support/judged_space.h"

namespace graft::codegen::test {

// On one thread and two; `name` begins the sketch's. `by_choice`: whether several kernels may be faster.
inline void expect_one_right_sketch(const std::string& workload, std::string_view name, int samples,
                                    bool by_choice = true, int vector_bits = 256) {
  for (const std::int64_t threads : {1, 2}) {
    SCOPED_TRACE(workload);
    Target target = target_with(vector_bits, 16);
    target.threads = threads;
    const Computation c = computed(workload);
    EXPECT_TRUE(schedules_together(c, target));
    EXPECT_EQ(is_fused_by_choice(c, target), by_choice);
    const auto sketches = derive_sketches(c, target);
    ASSERT_EQ(sketches.size(), 1u);
    EXPECT_TRUE(sketches[0].sketch->name.starts_with(name)) << sketches[0].sketch->name;
    const JudgedSpace space(parse_workload(workload), target, sketches);
    base::Stream stream(3, "rows");
    for (int i = 0; i < samples; ++i) {
      const auto program = codegen::program(space.sample(stream), target);
      ASSERT_TRUE(program.ok()) << program.reason().text;
      EXPECT_LE(worst_excess(c, *program, std::uint64_t(i)), 0) << to_text(*program);
      EXPECT_EQ(contains(to_text(*program), " parallel\n"), threads > 1) << to_text(*program);
    }
  }
}

}  // namespace graft::codegen::test
