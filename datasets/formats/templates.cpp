#include "datasets/formats/templates.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace graft::datasets::formats {

std::shared_ptr<const codegen::Sketch> template_sketch(std::string_view file, std::string_view lines) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::shared_ptr<const codegen::Sketch>> made;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const codegen::Sketch>& sketch = made[{std::string(file), std::string(lines)}];
  if (sketch) return sketch;
  const std::vector<TemplateText>& all = template_texts();
  const auto found = std::find_if(all.begin(), all.end(), [&](const TemplateText& text) { return text.file == file; });
  assert(found != all.end());
  const std::string place = std::string(file) + ".sketch";
  codegen::Sketch whole = codegen::parse_sketch(found->text, place);
  sketch = std::make_shared<const codegen::Sketch>(lines.empty() ? std::move(whole)
                                                                 : codegen::with_lines(whole, lines, place));
  return sketch;
}

}  // namespace graft::datasets::formats
