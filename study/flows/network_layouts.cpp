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
  const auto add = [&](const codegen::Workload& workload, const std::string& label) {
    if (place_.try_emplace(workload.key(), kernels_.size()).second) kernels_.push_back({workload, 0, label});
  };
  for (const graph::Plan::Kernel& kernel : plan.kernels) add(kernel.workload, kernel.label);
  for (std::size_t c = 0; c < forms_.calls.size(); ++c)
    for (const graph::Forms::Form& form : forms_.calls[c]) add(form.workload, plan.calls[c].label);
  is_candidate_.assign(kernels_.size(), true);
  if (!forms_.any()) return;
  std::vector<bool> known;
  for (const graph::Plan::Kernel& kernel : kernels_) known.push_back(is_known(kernel.workload));
  const auto place = [&](const codegen::Workload& workload) { return place_.at(workload.key()); };
  std::fill_n(is_candidate_.begin(), plan.kernels.size(), false);
  for (const std::vector<graph::Forms::Form>& forms : forms_.calls) {
    const bool is_answered = std::any_of(forms.begin() + 1, forms.end(),
                                         [&](const graph::Forms::Form& form) { return known[place(form.workload)]; });
    const std::size_t own = place(forms.front().workload);
    if (!is_answered || known[own]) is_candidate_[own] = true;
    for (auto form = forms.begin() + 1; form != forms.end(); ++form) is_candidate_[place(form->workload)] = true;
  }
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
