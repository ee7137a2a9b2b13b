#include "datasets/kinship.h"

#include <gtest/gtest.h>

#include <string>

namespace graft::datasets {
namespace {

const std::string board = "name: board\ndescription: mine\ntarget:\n  cpu: a\n  l2_bytes: 1\nremote:\n  core: 2\n";

codegen::Target target(const std::string& triple, const std::string& cpu, std::int64_t bits) {
  codegen::Target out;
  out.triple = triple;
  out.cpu = cpu;
  out.vector_bits = bits;
  return out;
}

TEST(SameDescription, LooksPastNamesCommentsAndOrder) {
  EXPECT_TRUE(same_description(board, "# a comment\nname: other\nremote: {core: 2}\ntarget: {l2_bytes: 1, cpu: a}\n"));
  const std::string edited = "name: board\ntarget: {cpu: a, l2_bytes: 2}\nremote: {core: 2}\n";
  EXPECT_FALSE(same_description(board, edited));
  EXPECT_EQ(differences(board, edited), (std::vector<std::string>{"target.l2_bytes"}));
  // The name is all that is known of imported measurements.
  EXPECT_FALSE(same_description("name: gpu\nsource: imported\n", "name: cpu\nsource: imported\n"));
  EXPECT_FALSE(same_description("no: [yaml", "nor: {this"));
}

TEST(Kinship, RisesFromTheCodeToTheDescription) {
  const codegen::Target v3 = target("x86_64-pc-linux-gnu", "x86-64-v3", 256),
                        haswell = target("x86_64-unknown-linux-gnu", "haswell", 256),
                        v4 = target("x86_64-pc-linux-gnu", "x86-64-v4", 512),
                        arm = target("aarch64-unknown-linux-gnu", "cortex-a72", 128);
  const PlatformIdentity native{"native:v3", {}, &v3};
  EXPECT_EQ(kinship(native, {"native:v3", {}, &v3}), Kinship::same_description);
  EXPECT_EQ(kinship(native, {"native:v3,threads=2", {}, &v3}), Kinship::same_machine);
  EXPECT_EQ(kinship(native, {"native,threads=2", {}, &haswell}), Kinship::same_host);
  EXPECT_EQ(kinship({"model:haswell", {}, &haswell}, {"desktop", {}, &haswell}), Kinship::same_kind);
  EXPECT_EQ(kinship(native, {"model:haswell", {}, &haswell}), Kinship::same_code);
  EXPECT_EQ(kinship(native, {"native:v4", {}, &v4}), Kinship::none);
  EXPECT_EQ(kinship({"model:haswell", {}, &haswell}, {"board", {}, &arm}), Kinship::none);
  EXPECT_EQ(kinship(native, {"native:v4", {}, nullptr}), Kinship::none);
}

// A board that was renamed is the same, one whose description was edited is another state of the same machine.
TEST(Kinship, KnowsABoardByItsDescription) {
  std::string edited = board, renamed = board;
  edited.replace(edited.find("core: 2"), 7, "core: 1");
  renamed.replace(renamed.find("name: board"), 11, "name: shelf");
  EXPECT_EQ(kinship({"board", board, nullptr}, {"board", edited, nullptr}), Kinship::same_machine);
  EXPECT_EQ(kinship({"board", board, nullptr}, {"shelf", renamed, nullptr}), Kinship::same_description);
  EXPECT_EQ(kinship({"board", board, nullptr}, {"board", {}, nullptr}), Kinship::same_description);
}

}  // namespace
}  // namespace graft::datasets
