// A function of TIR under the primitives of TVM's schedules, each as TVM defines it (Feng et
// al., TensorIR, ASPLOS 2023), and the loop program that it is then. Loops of one iteration count as loops until then:
// traces number them.
//
// A loop is a list of digits, each a variable of its own: fusing joins lists, splitting cuts them, so that indices stay
// affine. A split that cuts a digit into parts that do not divide it is not expressed, but for element-wise nests.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/import/tir.h"
#include "codegen/program/program.h"

namespace graft::codegen {

// Why a primitive does not apply, or is not expressed.
class NotReplayed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TirSchedule {
 public:
  explicit TirSchedule(const TirFunction& function);

  // Blocks and loops are nodes of one tree, by number; the root is the function's body. All throw NotReplayed.
  int root() const { return 0; }
  int block_named(std::string_view name) const;
  std::vector<int> loops_around(int block) const;  // outermost first
  std::vector<int> child_blocks(int node) const;   // of all loops inside, in order
  std::vector<int> consumers(int block) const;
  std::vector<int> producers(int block) const;

  // A factor of 0 is what the others leave. An element-wise nest that is split into that and a vector, where no loop
  // ends or not without a rest, is split at the nearest place before.
  std::vector<int> split(int loop, std::vector<std::int64_t> factors);
  int fuse(const std::vector<int>& loops);
  void reorder(const std::vector<int>& loops);
  int add_unit_loop(int node);
  // `last`: as late (for a producer: right before its consumers) as possible, or as early.
  void compute_at(int block, int loop, bool keeps_unit_loops, bool last);
  void reverse_compute_at(int block, int loop, bool keeps_unit_loops, bool last);
  void compute_inline(int block);
  void reverse_compute_inline(int block);
  int cache_write(int block, std::int64_t buffer, std::string_view scope);
  int cache_read(int block, std::int64_t buffer, std::string_view scope, const std::vector<int>& consumers);
  int decompose_reduction(int block, int loop);
  int rfactor(int loop, std::int64_t dimension);
  void set_kind(int loop, LoopKind kind);
  // TVM's pragma auto_unroll_max_step.
  void set_unroll_steps(int loop, std::int64_t steps);
  // The buffer is stored elsewhere: the one that the block writes, or one that it reads, by position.
  void transform_layout(int block, std::int64_t buffer, bool is_written, const IndexMap& map);
  // Repacks what never changes: not timed.
  void set_prepares(int block);

  // The program as TVM's passes make it: buffers as large as what is used of them at a time, loops of one iteration
  // left out, loops unrolled as the pragma says. `roles`: of the computation's tensors. Splits digits where a layout
  // needs that.
  LoopProgram program(const Computation& roles);

 private:
  struct Node {
    int parent = -1, block = -1;  // a block's number, or a loop
    std::vector<int> children;
    std::vector<int> digits;
    bool reduced = false;  // of a reduced axis, or a loop fused from some
    LoopKind kind = LoopKind::serial;
    std::int64_t unroll_steps = -1;
  };
  struct Axis {
    std::string name;
    std::int64_t extent = 1;
    bool reduced = false;
    Affine at;  // over digits
  };
  struct Block {
    std::string name;
    int tensor = 0;
    Combine combine = Combine::none;
    bool starts = false, prepares = false;
    std::vector<Axis> axes;
    std::vector<Affine> target;  // over axes
    Value value;                 // over axes
  };
  struct Digit {
    std::string name;
    std::int64_t extent = 1;
  };
  struct Region;
  class Writer;

  Node& at(int node) { return nodes_[std::size_t(node)]; }
  const Node& at(int node) const { return nodes_[std::size_t(node)]; }
  std::size_t block_number(int node) const;
  Block& block_at(int node) { return blocks_[block_number(node)]; }
  const Block& block_at(int node) const { return blocks_[block_number(node)]; }
  void check_loop(int node) const;
  void check_temporary(int tensor) const;
  int new_node(int parent, std::size_t position);
  int new_digit(std::string name, std::int64_t extent);
  std::int64_t extent_of(int loop) const;
  std::size_t position_of(int node) const;  // among its parent's children
  int child_towards(int ancestor, int node) const;
  bool is_inside(int node, int ancestor) const;
  std::vector<bool> digits_around(int node) const;  // of the loop and those around it, by digit
  std::vector<bool> spatial_digits(const Block& block) const;
  std::vector<Affine> axes_at(const Block& block) const;
  std::vector<Interval> ranges() const;
  bool is_elementwise(int loop) const;
  std::int64_t near(int loop, std::int64_t factor) const;
  std::vector<int> tensors_read(const Block& block) const;
  std::vector<int> blocks_writing(int tensor) const, blocks_reading(int tensor) const;
  void cut_digit(int digit, std::int64_t inner);
  void remove(int node);  // and the loops that are empty then
  void nest(int node, Block& block, int parent, std::size_t position, bool keeps_unit_loops);
  int new_block(Block block, int parent, std::size_t position);
  void move(int node, Block block, int loop, std::size_t position, bool keeps_unit_loops);
  int renamed_digit(int digit, Block& block);
  Block parts_of(const Block& whole, int loop, const std::vector<int>& chain, int tensor, std::int64_t dimension) const;
  Block sum_of_parts(const Block& whole, int loop, int tensor, std::int64_t dimension) const;
  int new_tensor(int like, std::string_view suffix);
  Block copy_of(int from, int to) const;
  std::vector<Affine> over_digits(std::vector<Affine> index, const Block& block) const;
  void add_region(Region& region, const std::vector<Affine>& index, const std::vector<bool>& outer) const;
  void cut_for(const Mapped& stored);
  void lay_out();

  Computation computation_;  // tensors; those of blocks made here are appended
  struct Layout {
    bool is_given = false;
    IndexMap map;
  };
  std::vector<Layout> layouts_;
  std::vector<Node> nodes_;
  std::vector<Block> blocks_;
  std::vector<Digit> digits_;
};

}  // namespace graft::codegen
