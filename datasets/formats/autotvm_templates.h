// Private to this folder: AutoTVM's knobs, and the sketches of ours that express what templates do with them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codegen/space/sketch.h"
#include "datasets/formats/autotvm_tasks.h"

namespace graft::datasets::formats {

// The values that an "an" knob may have for a loop; stored by position.
constexpr std::array<std::string_view, 3> annotations = {"none", "unroll", "vec"};

// The entity of one record. Reused for all records, to avoid allocation.
class Knobs {
 public:
  enum class Kind { split, reorder, annotate, other };
  struct Knob {
    std::string name;
    Kind kind = Kind::other;
    int first = 0, count = 0;  // in `values`
  };
  std::vector<std::int64_t> values;

  void clear();
  Knob& next();  // one more, empty
  std::size_t size() const { return used_; }
  const Knob* begin() const { return knobs_.data(); }
  const Knob* end() const { return knobs_.data() + used_; }
  const Knob& named(std::string_view name) const;  // an empty one if there is none

  // The parts of a split from the second on, as many as `parts` - 1; false if the knob is something else.
  bool factors(std::string_view name, std::size_t parts, std::int64_t* into) const;
  bool value(std::string_view name, std::int64_t& into) const;  // of an "ot" knob

 private:
  std::vector<Knob> knobs_;
  std::size_t used_ = 0;
};

// A template that we have a sketch for.
struct Template {
  std::string_view name;
  // Appends the sketch's arguments; a Reason, without the template's name, if our language cannot express it.
  base::Result<std::shared_ptr<const codegen::Sketch>> (*sketch)(const Shape& shape, const Knobs& knobs,
                                                                 std::vector<std::int64_t>& arguments);
};
const std::vector<Template>& autotvm_templates();
const Template* template_named(std::string_view name);  // nullptr if there is none

}  // namespace graft::datasets::formats
