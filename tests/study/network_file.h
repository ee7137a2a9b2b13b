// A tuned network's folder that says what a test wants, in place of what a search chose.
#pragma once

#include "base/files.h"
#include "graph/layouts.h"
#include "study/flows/network.h"

namespace graft::study {

// network.json, as tune_network writes it.
inline void write_tuned_network(const TunedNetwork& tuned) {
  base::Document document = base::Document::map().set("schema", 1);
  for (const auto& [key, value] : to_document(tuned).as_map()) document.set(key, value);
  document.set("platform_description", tuned.platform.yaml);
  base::replace_file(tuned.folder / "network.json", document.to_json());
}

// The same with all values in blocks that may be.
inline TunedNetwork all_in_blocks(TunedNetwork tuned) {
  const graph::Forms forms =
      graph::forms_of(read_network(tuned.model, tuned.options, tuned.platform.target).plan, tuned.platform.target);
  tuned.in_blocks.clear();
  for (std::size_t b = 0; b < forms.block.size(); ++b)
    if (forms.block[b] > 0) tuned.in_blocks.push_back(int(b));
  return tuned;
}

}  // namespace graft::study
