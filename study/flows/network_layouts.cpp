#include "study/flows/network_layouts.h"

#include <algorithm>

namespace graft::study {
namespace {

// Copies element by element between layouts, bytes read and written, on a processor of some GHz.
constexpr double copied_bytes_per_second = 3e9;

}  // namespace

NetworkLayouts::NetworkLayouts(const Network& network, const codegen::Target& target, bool free,
                               const std::function<bool(const codegen::Workload&)>& is_known)
    : plan_(network.plan), forms_(free ? graph::forms_of(plan_, target) : graph::given_forms(plan_)) {
  const auto add = [&](const codegen::Workload& workload, const std::string& label) {
    if (place_.try_emplace(workload.key(), kernels_.size()).second) kernels_.push_back({workload, 0, label});
  };
  for (const graph::Plan::Kernel& kernel : plan_.kernels) add(kernel.workload, kernel.label);
  for (std::size_t c = 0; c < forms_.calls.size(); ++c)
    for (const graph::Forms::Form& form : forms_.calls[c]) add(form.workload, plan_.calls[c].label);
  is_candidate_.assign(kernels_.size(), true);
  if (!forms_.any()) return;
  std::vector<bool> known;
  for (const graph::Plan::Kernel& kernel : kernels_) known.push_back(is_known(kernel.workload));
  std::fill_n(is_candidate_.begin(), plan_.kernels.size(), false);
  for (const std::vector<graph::Forms::Form>& forms : forms_.calls) {
    const bool is_answered = std::any_of(
        forms.begin() + 1, forms.end(), [&](const graph::Forms::Form& form) { return known[place_of(form.workload)]; });
    const std::size_t own = place_of(forms.front().workload);
    if (!is_answered || known[own]) is_candidate_[own] = true;
    for (auto form = forms.begin() + 1; form != forms.end(); ++form) is_candidate_[place_of(form->workload)] = true;
  }
}

std::vector<double> NetworkLayouts::weights(const graph::InBlocks& in_blocks) const {
  std::vector<double> weights(kernels_.size());
  for (std::size_t c = 0; c < plan_.calls.size(); ++c)
    ++weights[place_of(graph::form_of(plan_, forms_, c, in_blocks).workload)];
  return weights;
}

graph::InBlocks NetworkLayouts::best(const std::vector<double>& best_seconds) const {
  return graph::best_layouts(
      plan_, forms_, [&](const codegen::Workload& workload) { return best_seconds[place_of(workload)]; },
      copied_bytes_per_second);
}

}  // namespace graft::study
