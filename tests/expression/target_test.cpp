#include "codegen/expression/target.h"

#include <gtest/gtest.h>

#include "tests/expression/support.h"

namespace graft::codegen {
namespace {

const std::string text = R"(triple: riscv64-unknown-linux-gnu
cpu: sifive-p450
features: ""
vector_bits: 128
vector_registers: 32
cores: 4
l1_bytes: 32768
line_bytes: 64
)";

Target read(const std::string& yaml) {
  return target_from(base::parse_yaml(yaml, "board.yaml"));
}

std::string refusal_of(const std::string& from, const std::string& to) {
  std::string changed = text;
  changed.replace(changed.find(from), from.size(), to);
  return refusal([&] { return read(changed); });
}

TEST(Target, reads_its_map_and_knows_what_is_unknown) {
  const Target target = read(text);
  EXPECT_EQ(target.triple, "riscv64-unknown-linux-gnu");
  EXPECT_EQ(target.cpu, "sifive-p450");
  EXPECT_EQ(target.vector_bits, 128);
  EXPECT_EQ(target.vector_registers, 32);
  EXPECT_EQ(target.cores, 4);
  EXPECT_EQ(target.l1_bytes, 32768);
  EXPECT_EQ(target.l2_bytes, std::nullopt);
  EXPECT_EQ(target.line_bytes, 64);
}

TEST(Target, document_comes_back_equal) {
  const Target target = read(text);
  EXPECT_EQ(target_from(to_document(target)), target);
  EXPECT_EQ(hash(target_from(to_document(target))), hash(target));
  Target other = target;
  other.l2_bytes = 1 << 20;
  EXPECT_NE(hash(other), hash(target));
  EXPECT_EQ(target_from(to_document(other)), other);
  other.threads = 2;
  EXPECT_EQ(target_from(to_document(other)), other);
  const base::Document known_by_hash = to_document(target);
  EXPECT_EQ(known_by_hash.find("threads"), nullptr) << "what is known by its hash today keeps it";
}

TEST(Target, lanes_of_a_vector) {
  Target target = read(text);
  EXPECT_EQ(target.lanes(4), 4);
  EXPECT_EQ(target.lanes(8), 2);
  target.vector_bits = 0;
  EXPECT_EQ(target.lanes(4), 1);
}

TEST(Target, refuses_keys_and_values_that_do_not_fit) {
  EXPECT_TRUE(contains(refusal_of("vector_bits", "vectr_bits"), "did you mean 'vector_bits'?"));
  EXPECT_TRUE(contains(refusal_of("cpu: sifive-p450\n", ""), "missing key 'cpu'"));
  EXPECT_TRUE(contains(refusal_of("vector_bits: 128\n", ""), "missing key 'vector_bits'"));
  EXPECT_TRUE(
      contains(refusal_of("vector_bits: 128", "vector_bits: 100"), "vector_bits must be a power of two, got 100"));
  EXPECT_TRUE(contains(refusal_of("vector_bits: 128", "vector_bits: 100"), "board.yaml:4:"));
  EXPECT_TRUE(contains(refusal_of("vector_bits: 128", "vector_bits: -1"), "vector_bits must be 0 to 65536, got -1"));
  EXPECT_TRUE(contains(refusal_of("cores: 4", "cores: 0"), "cores must be 1 to 65536, got 0"));
  EXPECT_TRUE(contains(refusal_of("cores: 4", "cores: 4\nthreads: 5"), "threads must be 1 to 4, got 5"));
  EXPECT_TRUE(contains(refusal_of("l1_bytes: 32768", "l1_bytes: 0"),
                       "l1_bytes must be at least 1, got 0; leave l1_bytes out where"));
  EXPECT_TRUE(contains(refusal_of("l1_bytes: 32768", "l1_bytes: -1"), "l1_bytes must be 1 to"));
  EXPECT_TRUE(contains(refusal_of("cores: 4", "cores: many"), "expected an integer, got 'many'"));
  EXPECT_TRUE(contains(refusal_of("cpu: sifive-p450", "cpu: \"\""), "cpu must not be empty"));
}

}  // namespace
}  // namespace graft::codegen
