#include "features/autotvm_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "codegen/program/analysis.h"
#include "features/buffers.h"
#include "features/declared.h"

namespace graft::features {
namespace {

using codegen::AccessSite;
using codegen::Analysis;
using codegen::LoopProgram;

constexpr int version = 1;  // raised when values change though the list below does not

struct Quantity {
  std::string_view name, text;
};
enum { touched, reuse, top_down, quantities };
constexpr std::array quantity_texts{Quantity{"touched", "elements touched"}, Quantity{"reuse", "reuse"},
                                    Quantity{"topdown", "top-down product"}};
struct Relation {
  int x, y;
};
constexpr std::array relations{Relation{touched, reuse}, Relation{reuse, touched}, Relation{touched, top_down},
                               Relation{top_down, touched}};

std::vector<Feature> declared_features(int thresholds) {
  std::vector<Feature> list;
  for (int slot = 0; slot < buffer_slots; ++slot) {
    for (const Relation& relation : relations) {
      const Quantity &x = quantity_texts[std::size_t(relation.x)], &y = quantity_texts[std::size_t(relation.y)];
      for (int t = 0; t < thresholds; ++t) {
        const std::string name = fmt::format("b{}.{}>{}.t{:02}", slot, x.name, y.name, t);
        const std::string point =
            fmt::format("at the last point, each quantity sorted on its own, whose {} is at most 2^{}", x.text, t);
        list.push_back({name, "log2", fmt::format("{} {}", y.text, point)});
        list.push_back({name + ".gap", "log2", fmt::format("{} less the {} {}", t, x.text, point)});
      }
    }
  }
  return list;
}

struct Deepest {
  std::size_t store, site;  // positions in the analysis
};

// The last access of each buffer by a store at the greatest depth, in order of the buffers' first uses.
std::vector<Deepest> deepest_accesses(const Analysis& analysis) {
  std::size_t depth = 0, site = 0;
  for (const codegen::StoreContext& store : analysis.stores) depth = std::max(depth, store.loops.size());
  std::vector<Deepest> found;
  for (std::size_t s = 0; s < analysis.stores.size(); ++s) {
    for (; site < analysis.sites.size() && analysis.sites[site].store == analysis.stores[s].store; ++site) {
      if (analysis.stores[s].loops.size() < depth) continue;
      const auto known = std::find_if(found.begin(), found.end(), [&](const Deepest& one) {
        return analysis.sites[one.site].buffer == analysis.sites[site].buffer;
      });
      if (known == found.end()) {
        found.push_back({s, site});
      } else {
        *known = {s, site};
      }
    }
  }
  return found;
}

// By quantity, ascending, a 0 in front.
std::array<std::vector<double>, quantities> sorted_points(const LoopProgram& program, const Analysis& analysis,
                                                          const Deepest& access) {
  const codegen::StoreContext& store = analysis.stores[access.store];
  const AccessSite& site = analysis.sites[access.site];
  std::array<std::vector<double>, quantities> points;
  for (std::vector<double>& values : points) values.push_back(0);
  double elements = 0, repeats = 0;  // logarithms
  for (std::size_t level = store.loops.size(); level-- > 0;) {
    const double extent = std::log2(double(program.loops[std::size_t(store.loops[level])].extent));
    (site.touches[level].stride != 0 ? elements : repeats) += extent;
    points[touched].push_back(elements);
    points[reuse].push_back(repeats);
    points[top_down].push_back(std::log2(double(store.top_down[level])));
  }
  for (std::vector<double>& values : points) std::sort(values.begin(), values.end());
  return points;
}

Encoded encode_program(const Subject& subject, int thresholds) {
  const Analysis analysis = codegen::analyse(*subject.program);
  std::vector<Deepest> accesses = deepest_accesses(analysis);
  accesses.resize(std::min(accesses.size(), std::size_t(buffer_slots)));
  base::Matrix row(1, std::int64_t(buffer_slots) * std::int64_t(relations.size()) * thresholds * 2);
  auto out = row.values.begin();
  for (const Deepest& access : accesses) {
    const auto points = sorted_points(*subject.program, analysis, access);
    for (const Relation& relation : relations) {
      const std::vector<double>&x = points[std::size_t(relation.x)], &y = points[std::size_t(relation.y)];
      for (int t = 0; t < thresholds; ++t) {
        const std::size_t behind = std::size_t(std::upper_bound(x.begin(), x.end(), double(t) + 1e-6) - x.begin());
        *out++ = float(y[behind - 1]);  // there is one: x begins with 0
        *out++ = float(double(t) - x[behind - 1]);
      }
    }
  }
  return one_row_each(std::move(row));
}

Encoding curve(std::string name, int thresholds) {
  return encoding_of(std::move(name),
                     fmt::format("AutoTVM's context relation at {} threshold{}, quantities sorted on their own, log2 "
                                 "without + 1: what it did, not what to use",
                                 thresholds, thresholds == 1 ? "" : "s"),
                     Shape::row, declared_features(thresholds), version,
                     [thresholds](const Subject& subject) { return encode_program(subject, thresholds); });
}

}  // namespace

Encoding context_relation_released() {
  return curve("context_relation_released", 1);
}
Encoding context_relation_published() {
  return curve("context_relation_published", 20);
}

}  // namespace graft::features
