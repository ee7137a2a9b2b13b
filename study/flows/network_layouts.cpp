#include "study/flows/network_layouts.h"

#include <algorithm>
#include <limits>

namespace graft::study {
namespace {

// Copies element by element between layouts, bytes read and written, on a processor of some GHz.
constexpr double copied_bytes_per_second = 3e9;

}  // namespace

NetworkLayouts::NetworkLayouts(const Network& network, const codegen::Target& target, bool free,
                               const std::function<bool(const codegen::Workload&)>& is_known)
    : network_(network) {
  const graph::Plan& plan = network.plan;
  if (free) forms_ = graph::forms_of(plan, target);
  std::vector<bool> is_needed(plan.kernels.size(), !forms_.any());
  for (std::size_t c = 0; c < forms_.calls.size(); ++c) {
    const auto& forms = forms_.calls[c];
    const bool is_answered = std::any_of(forms.begin() + 1, forms.end(),
                                         [&](const graph::Forms::Form& form) { return is_known(form.workload); });
    const std::size_t own = std::size_t(plan.calls[c].kernel);
    if (!is_answered || is_known(forms.front().workload)) is_needed[own] = true;
  }
  const auto add = [&](const codegen::Workload& workload, const std::string& label) {
    if (place_.try_emplace(workload.key(), kernels_.size()).second) kernels_.push_back({workload, 0, label});
  };
  for (std::size_t k = 0; k < plan.kernels.size(); ++k)
    if (is_needed[k]) add(plan.kernels[k].workload, plan.kernels[k].label);
  for (std::size_t c = 0; c < forms_.calls.size(); ++c)
    for (std::size_t f = 1; f < forms_.calls[c].size(); ++f) add(forms_.calls[c][f].workload, plan.calls[c].label);
}

std::vector<double> NetworkLayouts::weights(const graph::InBlocks& in_blocks) const {
  std::vector<double> weights(kernels_.size());
  for (std::size_t c = 0; c < network_.plan.calls.size(); ++c) {
    const codegen::Workload& workload =
        forms_.any() ? graph::form_of(network_.plan, forms_, c, in_blocks).workload
                     : network_.plan.kernels[std::size_t(network_.plan.calls[c].kernel)].workload;
    if (const auto place = place_.find(workload.key()); place != place_.end()) ++weights[place->second];
  }
  return weights;
}

graph::InBlocks NetworkLayouts::best(const std::vector<double>& best_seconds) const {
  if (!forms_.any()) return graph::InBlocks(network_.plan.buffers.size());
  return graph::best_layouts(
      network_.plan, forms_,
      [&](const codegen::Workload& workload) {
        const auto place = place_.find(workload.key());
        return place == place_.end() ? std::numeric_limits<double>::infinity() : best_seconds[place->second];
      },
      copied_bytes_per_second);
}

}  // namespace graft::study
