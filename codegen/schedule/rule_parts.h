// Private to this folder: what rules ask of stages and their operands, and the builder of sketches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/expression/computation.h"
#include "codegen/expression/target.h"
#include "codegen/schedule/step.h"
#include "codegen/space/space.h"

namespace graft::codegen {

constexpr std::int64_t shortest_vector_axis = 4;  // a vector of less is not worth its shuffles

// Whether an access moves along an axis of its stage.
bool moves(const Access& access, int axis);

// Whether everything that the stage reads is constant along the axis or adjacent.
bool is_along_memory(const Computation& computation, const Stage& stage, int axis);

// Tensors that the stage reads in one way only and that packing can copy: every dimension follows at most one axis of
// extent > 1 (or, with `parts`, axes that are parts of it), and no axis serves two dimensions.
std::vector<int> packable_tensors(const Computation& computation, const Stage& stage, bool parts = false);

// Sizes of a register tile along an axis: divisors; others, too, if that leaves little choice or the rest is small
// compared with the whole.
std::vector<std::int64_t> register_tiles(std::int64_t extent, std::int64_t largest);

// Each as the one size of a tile step.
std::vector<std::vector<std::int64_t>> each(const std::vector<std::int64_t>& sizes);

// Sizes 1, 2, 4, ... times `unit`, as long as `extent` has them; the first one always.
std::vector<std::vector<std::int64_t>> powers_of_two(std::int64_t unit, std::int64_t extent, std::int64_t most);

// The dimension of a load (of a tensor's own element) that is this axis and nothing else; -1: none.
int whole_dimension(const std::vector<Affine>& index, int axis);

// A stage that depends on constants only: it runs once, in `prepare`, and needs no schedule.
bool is_known_ahead(const Computation& computation, const Stage& stage);

// Stages that reduce, and are not known ahead.
std::vector<int> reductions(const Computation& computation);

// The element-wise stage that may be applied at write-back: the only reader of this stage's temporary. `head` is the
// stage that is written back: this one, or the one that begins the chain.
int fusable_consumer(const Computation& computation, int stage, int head);

// Whether a padded load of the producer leaves its tensor along an axis of its reader.
bool pads_along(const Computation& computation, const Stage& producer, const Stage& reader, int axis);

// Whether all these stages, the last of which reads the others, go through the same rows (their first `rows` axes), and
// read of each other only the present row.
bool share_rows(const Computation& computation, std::span<const int> chain, int rows);

// The steps of Winograd's algorithm that are worth their transforms.
std::vector<Step> winograd_steps(const Computation& computation);

// Whether a reduced axis moves a window along a spatial one.
bool is_window(const Computation& computation, const Stage& stage, int axis);

std::string name_of(const Computation& computation, const Stage& stage);
// A stage's name as part of an argument's.
std::string argument_name(std::string name);
// Words with spaces between them; empty ones are left out.
std::string joined(const std::vector<std::string>& words);
std::int64_t lanes_of(const Computation& computation, const Stage& stage, const Target& target);

// Collects lines and the domains of their arguments.
class SketchBuilder {
 public:
  void line(std::string text) { text_ += std::move(text) + "\n"; }

  // An argument for each size of a tile step.
  std::string sizes(const std::string& name, std::vector<std::vector<std::int64_t>> values);

  // An argument that chooses among texts; no argument when there is one only.
  std::string choice(const std::string& name, const std::vector<std::string>& alternatives);
  // The same argument once more, with other texts.
  static std::string again(const std::string& name, const std::vector<std::string>& alternatives);

  SketchSpace finish(const std::string& name) const;

 private:
  struct Named {
    std::string name;
    std::vector<std::string> arguments;
    std::vector<std::vector<std::int64_t>> values;
  };
  std::string text_;
  std::vector<Named> domains_;
};

// Element-wise consumers are applied at write-back if argument `where` has its first value: the whole reduction lies
// inside; without an argument always.
void fuse_consumers(const Computation& computation, int number, const std::string& where, SketchBuilder& builder);

}  // namespace graft::codegen
