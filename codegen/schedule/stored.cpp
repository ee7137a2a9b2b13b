#include "codegen/schedule/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codegen/schedule/relayout.h"

namespace graft::codegen {
namespace {

std::string store(Computation& computation, const std::string& tensor, const std::string& layout) {
  Step step{StepKind::block, tensor, "", {}, {}};
  for (const std::string_view word : base::split(layout, ' ')) step.loops.emplace_back(word);
  try {
    return relayout(computation, step);
  } catch (const base::UserError& error) {  // more stored dimensions than a layout may have
    return error.what();
  }
}

// Dimensions of a tensor that are indexed by an axis in blocks, `outer` * block + `inner`.
struct Blocked {
  int dimension = 0;
  std::int64_t block = 0;
  bool is_summed = false;  // the axis
  bool operator==(const Blocked&) const = default;
};

class Derived {
 public:
  Derived(const Computation& computation, const std::set<std::int64_t>& blocks)
      : computation_(computation), blocks_(blocks) {}

  // The layout that follows for a tensor; "": none.
  std::string layout_of(int tensor) {
    found_.clear();
    for (const Stage& stage : computation_.stages) {
      if (stage.tensor == tensor) look(stage, element_of(computation_, stage));
      for (const Access& access : stage.value.loads)
        if (access.tensor == tensor) look(stage, access.index);
    }
    if (found_.empty()) return "";
    // Weights are read along results: their channels are innermost.
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Blocked& a, const Blocked& b) { return a.is_summed > b.is_summed; });
    // A temporary is gone through in the order of the result: where this has no blocks, places within them come next to
    // the blocks.
    const bool is_apart = computation_.tensors[std::size_t(tensor)].role == Role::constant || result_in_blocks();
    std::string text;
    const int rank = int(computation_.tensors[std::size_t(tensor)].shape.size());
    for (int d = 0; d < rank; ++d) {
      const auto own = std::find_if(found_.begin(), found_.end(), [&](const Blocked& b) { return b.dimension == d; });
      text += own == found_.end() ? fmt::format(" {}", d) : fmt::format(" {}/{}", d, own->block);
      if (own != found_.end() && !is_apart) text += fmt::format(" {}%{}", d, own->block);
    }
    if (is_apart)
      for (const Blocked& own : found_) text += fmt::format(" {}%{}", own.dimension, own.block);
    return text.substr(1);
  }

 private:
  bool result_in_blocks() const {
    return std::any_of(computation_.tensors.begin(), computation_.tensors.end(),
                       [](const Tensor& tensor) { return tensor.role == Role::output && !tensor.layout.is_plain(); });
  }

  void look(const Stage& stage, const std::vector<Affine>& index) {
    for (std::size_t d = 0; d < index.size(); ++d) {
      const Affine& form = index[d];
      if (form.constant != 0 || form.terms.size() != 2) continue;
      const bool first = form.terms[0].coefficient != 1;
      const Term &outer = form.terms[first ? 0 : 1], &inner = form.terms[first ? 1 : 0];
      if (inner.coefficient != 1 || blocks_.count(outer.coefficient) == 0 ||
          stage.axes[std::size_t(inner.variable)].extent != outer.coefficient)
        continue;
      const auto known =
          std::find_if(found_.begin(), found_.end(), [&](const Blocked& b) { return b.dimension == int(d); });
      if (known == found_.end())
        found_.push_back({int(d), outer.coefficient, inner.variable >= computation_.spatial_axes(stage)});
    }
  }

  const Computation& computation_;
  const std::set<std::int64_t>& blocks_;
  std::vector<Blocked> found_;
};

}  // namespace

base::Result<Stored> stored_as(Computation computation, const std::map<std::string, Layout>& layouts) {
  std::set<std::int64_t> blocks;
  for (const auto& [tensor, layout] : layouts) {
    if (std::string failure = store(computation, tensor, to_text(layout)); !failure.empty())
      return base::Reason{fmt::format("{}: {}", tensor, failure)};
    for (const Layout::Part& part : layout.parts)
      if (part.within > 0) blocks.insert(part.within);
  }
  // One tensor's blocks split axes, which may be the reason for another one's: those of constants come last.
  for (const Role role : {Role::temporary, Role::constant}) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t t = 0; t < computation.tensors.size() && !changed; ++t) {
        const Tensor& tensor = computation.tensors[t];
        if (tensor.role != role || tensor.is_literal() || !tensor.layout.is_plain()) continue;
        if (role == Role::constant && tensor.shape.size() < 2) continue;
        const std::string layout = Derived(computation, blocks).layout_of(int(t));
        changed = !layout.empty() && store(computation, std::string(tensor.name), layout).empty();
      }
    }
  }
  Stored stored;
  for (Tensor& tensor : computation.tensors) {
    if (tensor.role != Role::temporary && !tensor.layout.is_plain()) stored.layouts[tensor.name] = tensor.layout;
    tensor.layout = {};
  }
  stored.computation = checked(std::move(computation), "stored");
  return stored;
}

}  // namespace graft::codegen
