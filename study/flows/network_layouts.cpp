#include "study/flows/network_layouts.h"

#include <algorithm>
#include <cmath>

namespace graft::study {
namespace {

// Copies element by element between layouts, bytes read and written, on a processor of some GHz.
constexpr double copied_bytes_per_second = 3e9;
constexpr double no_answer_seconds = 3600;  // of a kernel for which nothing was found
constexpr std::size_t most_fusions = 64;    // between which times decide; the others are not fused

// Whether nodes are of one of several places.
bool is_within(const std::vector<int>& nodes, const std::vector<std::vector<int>>& places) {
  return !nodes.empty() && std::any_of(places.begin(), places.end(), [&](const std::vector<int>& all) {
    return std::includes(all.begin(), all.end(), nodes.begin(), nodes.end());
  });
}

bool is_foreign(const graph::Plan& plan, const graph::Plan::Call& call) {
  return plan.kernels[std::size_t(call.kernel)].foreign != nullptr;
}

}  // namespace

NetworkLayouts::NetworkLayouts(const Network& network, const codegen::Target& target, bool free,
                               const std::function<bool(const codegen::Workload&)>& is_known)
    : network_(network), target_(target), free_(free) {
  find_fusions();
  const auto add = [&](const codegen::Workload& workload, const std::string& label) {
    if (place_.try_emplace(workload.key(), kernels_.size()).second) kernels_.push_back({workload, 0, label});
  };
  for (const std::set<int>& fused : {std::set<int>(), all_}) {
    const auto& [plan, forms] = way(fused);
    for (const graph::Plan::Kernel& kernel : plan.kernels)
      if (!kernel.foreign) add(kernel.workload, kernel.label);
    for (std::size_t c = 0; c < forms.calls.size(); ++c) {
      if (is_foreign(plan, plan.calls[c])) continue;
      for (const graph::Forms::Form& form : forms.calls[c]) add(form.workload, plan.calls[c].label);
    }
  }
  is_candidate_.assign(kernels_.size(), true);
  if (any()) find_candidates(is_known);
}

const NetworkLayouts::Way& NetworkLayouts::way(const std::set<int>& fused) {
  const auto known = ways_.find(fused);
  if (known != ways_.end()) return known->second;
  Way way{fused.empty() ? network_.plan
                        : graph::planned(network_.graph, target_, network_.model.string(), network_.options.storage,
                                         {false, fused}),
          {}};
  way.forms = free_ ? graph::forms_of(way.plan, target_) : graph::given_forms(way.plan);
  return ways_.emplace(fused, std::move(way)).first->second;
}

void NetworkLayouts::find_fusions() {
  const graph::Plan plan =
      graph::planned(network_.graph, target_, network_.model.string(), network_.options.storage, {true, {}});
  std::map<int, std::size_t> by_kernel;
  for (const graph::Plan::Call& call : plan.calls) {
    if (call.fused.empty()) continue;
    const auto [fusion, is_new] = by_kernel.try_emplace(call.kernel, fusions_.size());
    if (is_new && fusions_.size() < most_fusions) fusions_.emplace_back();
    if (fusion->second >= fusions_.size()) continue;
    Fusion& own = fusions_[fusion->second];
    own.values.insert(call.fused.begin(), call.fused.end());
    own.nodes.push_back(call.nodes);
    all_.insert(call.fused.begin(), call.fused.end());
  }
}

const NetworkLayouts::Fusion* NetworkLayouts::fusion_of(const graph::Plan::Call& call) const {
  for (const Fusion& fusion : fusions_)
    if (std::any_of(call.fused.begin(), call.fused.end(), [&](int value) { return fusion.values.contains(value); }) ||
        is_within(call.nodes, fusion.nodes))
      return &fusion;
  return nullptr;
}

void NetworkLayouts::find_candidates(const std::function<bool(const codegen::Workload&)>& is_known) {
  std::vector<bool> known;
  for (const graph::Plan::Kernel& kernel : kernels_) known.push_back(is_known(kernel.workload));
  const auto is_form_known = [&](const graph::Forms::Form& form) { return known[place_of(form.workload)]; };
  const auto is_any_known = [&](const std::vector<graph::Forms::Form>& forms) {
    return std::any_of(forms.begin(), forms.end(), is_form_known);
  };
  const Way &fused = way(all_), &separate = way({});
  for (Fusion& fusion : fusions_) {
    bool is_fused_known = false, are_all_known = true;
    for (std::size_t c = 0; c < fused.plan.calls.size(); ++c)
      if (!is_foreign(fused.plan, fused.plan.calls[c]) && fusion_of(fused.plan.calls[c]) == &fusion)
        is_fused_known |= is_any_known(fused.forms.calls[c]);
    for (std::size_t c = 0; c < separate.plan.calls.size(); ++c)
      if (is_within(separate.plan.calls[c].nodes, fusion.nodes)) are_all_known &= is_any_known(separate.forms.calls[c]);
    if (is_fused_known == are_all_known) continue;
    (is_fused_known ? fusion.may_be_separate : fusion.may_be_fused) = false;
  }
  is_candidate_.assign(kernels_.size(), false);
  for (const Way* const way : {&separate, &fused}) {
    for (std::size_t c = 0; c < way->plan.calls.size(); ++c) {
      const graph::Plan::Call& call = way->plan.calls[c];
      if (is_foreign(way->plan, call)) continue;
      const Fusion* const fusion = fusion_of(call);
      if (fusion != nullptr && !(call.fused.empty() ? fusion->may_be_separate : fusion->may_be_fused)) continue;
      const std::vector<graph::Forms::Form>& forms = way->forms.calls[c];
      const bool is_answered = std::any_of(forms.begin() + 1, forms.end(), is_form_known);
      if (!is_answered || is_form_known(forms.front())) is_candidate_[place_of(forms.front().workload)] = true;
      for (auto form = forms.begin() + 1; form != forms.end(); ++form) is_candidate_[place_of(form->workload)] = true;
    }
  }
}

// kernels_.size() for a kernel that there is only if some, but not all, fusions are made.
std::size_t NetworkLayouts::place_of(const codegen::Workload& workload) const {
  const auto place = place_.find(workload.key());
  return place != place_.end() ? place->second : kernels_.size();
}

bool NetworkLayouts::any() const {
  return !fusions_.empty() || ways_.at({}).forms.any();
}

NetworkForm NetworkLayouts::first() {
  NetworkForm form;
  for (const Fusion& fusion : fusions_)
    if (!fusion.may_be_separate) form.fused.insert(fusion.values.begin(), fusion.values.end());
  form.in_blocks.resize(way(form.fused).plan.buffers.size());
  return form;
}

std::vector<double> NetworkLayouts::weights(const NetworkForm& form) {
  const auto& [plan, forms] = way(form.fused);
  std::vector<double> weights(kernels_.size() + 1);
  for (std::size_t c = 0; c < plan.calls.size(); ++c)
    ++weights[place_of(graph::form_of(plan, forms, c, form.in_blocks).workload)];
  weights.pop_back();
  return weights;
}

NetworkForm NetworkLayouts::best(const std::vector<double>& best_seconds) {
  const auto time_of = [&](const codegen::Workload& workload) {
    const std::size_t place = place_of(workload);
    return place < best_seconds.size() ? best_seconds[place] : INFINITY;
  };
  const auto finite_time_of = [&](const codegen::Workload& workload) {
    return std::min(time_of(workload), no_answer_seconds);
  };
  const auto laid_out = [&](std::set<int> fused) {
    const auto& [plan, forms] = way(fused);
    NetworkForm form{std::move(fused), graph::best_layouts(plan, forms, time_of, copied_bytes_per_second)};
    return std::pair(graph::seconds_of(plan, forms, form.in_blocks, finite_time_of, copied_bytes_per_second), form);
  };
  auto best = laid_out(first().fused);
  for (const Fusion& fusion : fusions_) {
    if (!fusion.may_be_fused || !fusion.may_be_separate) continue;
    std::set<int> fused = best.second.fused;
    fused.insert(fusion.values.begin(), fusion.values.end());
    auto form = laid_out(std::move(fused));
    if (form.first < best.first) best = std::move(form);
  }
  return best.second;
}

std::map<std::string, codegen::Seen> NetworkLayouts::seen(const graph::Samples& samples) {
  std::map<std::string, codegen::Seen> all;
  for (const std::set<int>& fused : {std::set<int>(), all_}) {
    const Way& own = way(fused);
    graph::add_seen(own.plan, own.forms, samples, all);
  }
  return all;
}

graph::Plan NetworkLayouts::plan(const NetworkForm& form) {
  const auto& [plan, forms] = way(form.fused);
  return graph::laid_out(plan, forms, form.in_blocks);
}

}  // namespace graft::study
