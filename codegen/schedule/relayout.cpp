#include "codegen/schedule/relayout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/expression/layout.h"
#include "codegen/schedule/stages.h"

namespace graft::codegen {
namespace {

// The parts of one logical dimension: steps from the largest on, and how often each is made.
struct Division {
  std::vector<std::size_t> parts;  // positions in the layout
  std::vector<std::int64_t> steps, extents;
};

std::vector<Division> divisions_of(const Layout& layout, const std::vector<std::int64_t>& stored, std::size_t rank) {
  std::vector<Division> result(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    Division& division = result[d];
    for (std::size_t p = 0; p < layout.parts.size(); ++p)
      if (layout.parts[p].dimension == int(d)) division.parts.push_back(p);
    std::stable_sort(division.parts.begin(), division.parts.end(),
                     [&](std::size_t a, std::size_t b) { return layout.parts[a].step > layout.parts[b].step; });
    for (const std::size_t p : division.parts) {
      division.steps.push_back(layout.parts[p].step);
      division.extents.push_back(stored[p]);
    }
  }
  return result;
}

// The form as one form for each part; empty if it is not a sum of them.
std::vector<Affine> divided(const Affine& form, const Division& division, const Stage& stage) {
  std::vector<Affine> result(division.steps.size());
  if (form.is_constant()) {
    std::int64_t left = form.constant;
    for (std::size_t p = 0; p < division.steps.size(); ++p) {
      result[p] = Affine(left / division.steps[p]);
      left %= division.steps[p];
    }
    return result;
  }
  if (form.constant != 0) return {};
  for (const Term& term : form.terms) {
    // Parts of single elements have equal steps: each takes one axis.
    std::size_t p = 0;
    while (p < result.size() && (division.steps[p] != term.coefficient || !result[p].is_constant())) ++p;
    if (p == result.size() || stage.axes[std::size_t(term.variable)].extent > division.extents[p]) return {};
    result[p] = Affine::variable(term.variable);
  }
  return result;
}

class Relayout {
 public:
  // `always`: axes are split even if they are within one block.
  Relayout(Computation& computation, int tensor, std::vector<Division> divisions, std::size_t rank, bool always)
      : computation_(computation), tensor_(tensor), divisions_(std::move(divisions)), rank_(rank), always_(always) {}

  std::string stage(Stage& stage) {
    if (stage.tensor == tensor_) {
      if (std::string failure = split(stage, [&] { return element_of(computation_, stage); }); !failure.empty())
        return failure;
      std::vector<Affine> index;
      if (!divide(element_of(computation_, stage), stage, index)) return refused(stage);
      stage.index = std::move(index);
    }
    for (std::size_t load = 0; load < stage.value.loads.size(); ++load) {
      if (stage.value.loads[load].tensor != tensor_) continue;
      if (std::string failure = split(stage, [&] { return stage.value.loads[load].index; }); !failure.empty())
        return failure;
    }
    bool possible = true;
    stage.value = map_accesses(
        std::move(stage.value),
        [&](Access access) {
          if (access.tensor != tensor_) return access;
          std::vector<Affine> index;
          possible &= access.gathered.empty() && divide(access.index, stage, index);
          access.index = std::move(index);
          return access;
        },
        [](const Affine& form) { return form; });
    return possible ? "" : refused(stage);
  }

 private:
  std::string refused(const Stage& stage) const {
    return fmt::format("{} does not index it by whole axes", computation_.tensors[std::size_t(stage.tensor)].name);
  }

  // Splits the axes that index divided dimensions as a whole.
  template <class Index>
  std::string split(Stage& stage, const Index& index_now) {
    for (std::size_t d = 0; d < divisions_.size(); ++d) {
      const Division& division = divisions_[d];
      if (division.steps.size() == 1) continue;
      const Affine form = index_now()[d];
      if (form.constant != 0 || form.terms.size() != 1 || form.terms[0].coefficient != 1) continue;
      const int axis = form.terms[0].variable;
      const bool within_a_block = stage.axes[std::size_t(axis)].extent <= division.extents.back();
      if (within_a_block && !always_) continue;
      if (stage.axes[std::size_t(axis)].extent != division.extents[0] * division.steps[0]) return refused(stage);
      split_axis(computation_, stage, axis, {division.steps, division.extents});
    }
    return "";
  }

  bool divide(const std::vector<Affine>& logical, const Stage& stage, std::vector<Affine>& stored) const {
    stored.resize(rank_);
    for (std::size_t d = 0; d < divisions_.size(); ++d) {
      const Division& division = divisions_[d];
      if (division.steps.size() == 1) {
        stored[division.parts[0]] = logical[d];
        continue;
      }
      const std::vector<Affine> forms = divided(logical[d], division, stage);
      if (forms.empty()) return false;
      for (std::size_t p = 0; p < forms.size(); ++p) stored[division.parts[p]] = forms[p];
    }
    return true;
  }

  Computation& computation_;
  int tensor_;
  std::vector<Division> divisions_;
  std::size_t rank_;  // stored
  bool always_;
};

// Where each dimension of its tensor is an axis of its own, the axes take the order of the dimensions.
void order_axes(const Computation& computation, Stage& stage) {
  const std::size_t rank = computation.tensors[std::size_t(stage.tensor)].shape.size();
  if (stage.index.size() != rank || computation.spatial_axes(stage) != int(rank)) return;
  std::vector<Affine> by(stage.axes.size());
  std::vector<Axis> axes = stage.axes;
  for (std::size_t d = 0; d < rank; ++d) {
    const Affine& form = stage.index[d];
    if (form.constant != 0 || form.terms.size() != 1 || form.terms[0].coefficient != 1) return;
    by[std::size_t(form.terms[0].variable)] = Affine::variable(int(d));
    axes[d] = stage.axes[std::size_t(form.terms[0].variable)];
  }
  for (std::size_t a = rank; a < stage.axes.size(); ++a) by[a] = Affine::variable(int(a));
  stage.axes = std::move(axes);
  stage.index.clear();
  stage.value = substitute(stage.value, by);
}

}  // namespace

std::string relayout(Computation& computation, const Step& step) {
  const int number = computation.tensor_named(step.stage);
  if (number < 0) return fmt::format("there is no tensor {}", step.stage);
  Tensor& tensor = computation.tensors[std::size_t(number)];
  if (tensor.is_literal()) return "is a literal";
  if (!tensor.layout.is_plain()) return "already has a layout";
  const Layout layout = parse_layout(step.loops, step.stage);
  const base::Result<std::vector<std::int64_t>> stored = stored_shape(layout, tensor.shape);
  if (!stored) return stored.reason().text;
  Computation changed = computation;
  Relayout all(changed, number, divisions_of(layout, *stored, tensor.shape.size()), stored->size(),
               step.kind == StepKind::block);
  for (Stage& stage : changed.stages) {
    if (std::string failure = all.stage(stage); !failure.empty()) return failure;
  }
  changed.tensors[std::size_t(number)].shape = *stored;
  changed.tensors[std::size_t(number)].layout = layout;
  for (Stage& stage : changed.stages) {
    if (stage.tensor == number) order_axes(changed, stage);
  }
  computation = std::move(changed);
  return "";
}

}  // namespace graft::codegen
