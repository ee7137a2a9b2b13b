// A tuned network's folder that says what a test wants, in place of what a search chose.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

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

// Its kernels by their workloads.
inline std::vector<std::string> kernels_of(const TunedNetwork& tuned) {
  std::vector<std::string> all;
  for (const NetworkKernel& kernel : tuned.kernels) all.push_back(kernel.workload.text());
  return all;
}

// The same with the kernels of this plan, none of which has an answer.
inline TunedNetwork with_choice(TunedNetwork tuned, const graph::Plan& plan) {
  tuned.kernels.clear();
  for (const graph::Plan::Kernel& kernel : plan.kernels) {
    NetworkKernel& own = tuned.kernels.emplace_back();
    own.workload = kernel.workload;
    own.calls = kernel.calls;
    own.label = kernel.label;
  }
  return tuned;
}

// The same with all values in blocks that may be.
inline TunedNetwork all_in_blocks(TunedNetwork tuned) {
  graph::OpenPlan open = read_network(tuned.model, tuned.options, tuned.platform.target).plan;
  graph::add_layouts(open, tuned.platform.target);
  std::vector<double> seconds(open.plan.kernels.size(), 1);
  const auto is_in_blocks = [&](int buffer) {
    const auto copy = open.copies.find(buffer);
    return copy != open.copies.end() && copy->second.is_into;
  };
  for (const graph::Plan::Call* const call : graph::all_calls(open.steps))
    if (is_in_blocks(call->result) || std::any_of(call->operands.begin(), call->operands.end(), is_in_blocks))
      seconds[std::size_t(call->kernel)] = 0;
  return with_choice(std::move(tuned), graph::best_choice(open, seconds));
}

}  // namespace graft::study
