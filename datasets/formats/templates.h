// Schedules of other tuners as sketches of ours: files in templates/, which are compiled into the library.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "codegen/space/sketch.h"

namespace graft::datasets::formats {

struct TemplateText {
  std::string_view file;  // without its ending
  std::string_view text;
};
const std::vector<TemplateText>& template_texts();  // by file

// The sketch of that file, and the same with further lines appended; each made once.
std::shared_ptr<const codegen::Sketch> template_sketch(std::string_view file, std::string_view lines = {});

}  // namespace graft::datasets::formats
