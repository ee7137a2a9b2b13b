#include "codegen/program/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "codegen/program/analysis.h"

namespace graft::codegen {
namespace {

bool is_only_child(const Body& body, int outer, int inner) {
  return inner < body[std::size_t(outer)].end && body[std::size_t(inner)].kind == Node::Kind::loop &&
         body[std::size_t(inner)].end == body[std::size_t(outer)].end;
}

// Loops from body[begin] on of the wanted kinds, each the only child of the one before.
std::vector<int> band_at(const LoopProgram& program, const Body& body, int begin, bool (*wanted)(LoopKind)) {
  std::vector<int> band;
  for (int n = begin; n == begin ? body[std::size_t(n)].kind == Node::Kind::loop : is_only_child(body, n - 1, n); ++n) {
    if (!wanted(program.loops[std::size_t(body[std::size_t(n)].item)].kind)) break;
    band.push_back(body[std::size_t(n)].item);
  }
  return band;
}

bool is_parallel(LoopKind kind) {
  return kind == LoopKind::parallel;
}

bool contains_thread(const LoopProgram& program, const Body& body, int begin, int end) {
  return std::any_of(body.begin() + begin, body.begin() + end, [&](const Node& node) {
    return node.kind == Node::Kind::loop && is_thread(program.loops[std::size_t(node.item)].kind);
  });
}

// What nests do with a buffer.
struct Uses {
  std::vector<const Access*> accesses;
  bool written = false;
};
std::map<int, Uses> uses_in(const LoopProgram& program, const Body& body, int begin, int end) {
  std::map<int, Uses> uses;
  for_each_access(program, body, begin, end, [&](int buffer, const Access& access, bool writes) {
    uses[buffer].accesses.push_back(&access);
    uses[buffer].written |= writes;
  });
  return uses;
}

// The nests that items run, in nodes that all items go through.
void find_nests(const LoopProgram& program, const Body& body, int begin, int end, std::vector<int>& around,
                std::vector<ItemNest>& nests) {
  for (int n = begin; n < end; n = body[std::size_t(n)].end) {
    ItemNest nest{n, body[std::size_t(n)].end, n, band_at(program, body, n, is_thread), around};
    if (nest.threads.empty() && contains_thread(program, body, n, nest.end)) {
      around.push_back(body[std::size_t(n)].item);
      find_nests(program, body, n + 1, nest.end, around, nests);
      around.pop_back();
      continue;
    }
    nest.inside = n + int(nest.threads.size());
    for (const int loop : nest.threads) {
      const Loop& here = program.loops[std::size_t(loop)];
      nest.iterations[std::size_t(dimension_of(here.kind))] *= here.extent;
    }
    nests.push_back(std::move(nest));
  }
}

// By dimension of an access, the thread loop that alone is its index: its dimension and which of that one's loops it
// is.
using Part = std::vector<std::pair<int, int>>;

class Analyst {
 public:
  Analyst(const LoopProgram& program, const Body& body, const Target& target)
      : program_(program), body_(body), target_(target) {}

  std::vector<Launch> outlines() const {
    std::vector<Launch> all;
    for (int n = 0; n < int(body_.size()); n = body_[std::size_t(n)].end) {
      Launch launch;
      launch.begin = n;
      launch.end = body_[std::size_t(n)].end;
      launch.band = band_at(program_, body_, n, is_block);
      if (launch.band.empty()) {
        launch.band = band_at(program_, body_, n, is_parallel);
        launch.has_groups = launch.band.empty();
      }
      launch.inside = n + int(launch.band.size());
      if (launch.band.empty() && !all.empty() && all.back().band.empty())
        all.back().end = launch.end;
      else
        all.push_back(std::move(launch));
    }
    for (Launch& launch : all) {
      for (const int loop : launch.band) {
        const Loop& here = program_.loops[std::size_t(loop)];
        launch.groups[std::size_t(std::max(0, dimension_of(here.kind)))] *= here.extent;
      }
      std::vector<int> around = launch.band;
      if (launch.has_groups) find_nests(program_, body_, launch.inside, launch.end, around, launch.nests);
    }
    return all;
  }

  // What is refused.
  std::optional<base::Reason> complete(Launch& launch) const {
    const std::map<int, Uses> uses = uses_in(program_, body_, launch.begin, launch.end);
    for (int n = launch.inside; n < launch.end; ++n)
      if (auto refused = misplaced(launch, n)) return refused;
    for (const auto& [b, use] : uses) {
      const Buffer& here = buffer(b);
      if (here.scope == Scope::group) launch.shared.insert(b);
      if (here.scope == Scope::memory && use.written && !launch.band.empty() &&
          !is_divided(program_, launch.band, use.accesses))
        return meeting(launch.band, b);
    }
    std::int64_t bytes = 0;
    for (const int b : launch.shared) bytes += buffer(b).bytes();
    if (target_.group_items > 0 && bytes > target_.group_bytes)
      return base::Reason{
          fmt::format("group: {} bytes of group memory, the target has {}", bytes, target_.group_bytes)};
    if (!launch.has_groups) return std::nullopt;
    if (auto refused = count_items(launch)) return refused;
    for (const ItemNest& nest : launch.nests)
      if (auto refused = check_nest(launch, nest)) return refused;
    place_barriers(launch);
    return std::nullopt;
  }

  // The part that items have of a register buffer, by dimension (-1: none); nothing if accesses differ, or items do not
  // keep to their own.
  std::optional<Part> part_of(const Launch& launch, int b) const {
    std::optional<Part> part;
    for (const ItemNest& nest : launch.nests) {
      const std::map<int, Uses> uses = uses_in(program_, body_, nest.begin, nest.end);
      const auto use = uses.find(b);
      if (use == uses.end()) continue;
      std::map<int, std::pair<int, int>> digits;  // by thread loop
      std::array<int, group_dimensions> known{};
      for (const int loop : nest.threads) {
        const int d = dimension_of(program_.loops[std::size_t(loop)].kind);
        digits[loop] = {d, known[std::size_t(d)]++};
      }
      for (const Access* access : use->second.accesses) {
        Part here;
        std::set<std::pair<int, int>> told;
        for (const Affine& form : access->index) {
          here.emplace_back(-1, 0);
          for (const Term& term : form.terms) {
            const auto digit = digits.find(term.variable);
            if (digit == digits.end()) continue;
            if (!(form == Affine::variable(term.variable))) return std::nullopt;
            here.back() = digit->second;
            told.insert(digit->second);
          }
        }
        for (const auto& [loop, digit] : digits)
          if (program_.loops[std::size_t(loop)].extent > 1 && !told.contains(digit)) return std::nullopt;
        if (part && *part != here) return std::nullopt;
        part = here;
      }
    }
    return part;
  }

 private:
  const Buffer& buffer(int b) const { return program_.buffers[std::size_t(b)]; }

  base::Reason meeting(const std::vector<int>& band, int b) const {
    return {fmt::format("group: iterations of '{}' may meet in the same elements of '{}'",
                        program_.loops[std::size_t(band.back())].name, buffer(b).name)};
  }

  // Loops for groups and items in places where they cannot be.
  std::optional<base::Reason> misplaced(const Launch& launch, int n) const {
    const Node& node = body_[std::size_t(n)];
    if (node.kind != Node::Kind::loop) return std::nullopt;
    const Loop& loop = program_.loops[std::size_t(node.item)];
    if (loop.extent == 1 || dimension_of(loop.kind) < 0) return std::nullopt;
    const bool of_nest = std::any_of(launch.nests.begin(), launch.nests.end(), [&](const ItemNest& nest) {
      return std::find(nest.threads.begin(), nest.threads.end(), node.item) != nest.threads.end();
    });
    if (of_nest) return std::nullopt;
    return base::Reason{fmt::format("group: {} loop '{}' is in no band of such loops", name_of(loop.kind), loop.name)};
  }

  bool keeps_registers(const ItemNest& nest) const {
    bool found = false;
    for_each_access(program_, body_, nest.begin, nest.end, [&](int b, const Access& access, bool) {
      if (buffer(b).scope != Scope::registers) return;
      for (const Affine& form : access.index)
        for (const int loop : nest.threads) found |= form.coefficient(loop) != 0;
    });
    return found;
  }

  std::optional<base::Reason> count_items(Launch& launch) const {
    const ItemNest* keeper = nullptr;
    for (const ItemNest& nest : launch.nests) {
      if (!keeps_registers(nest)) continue;
      if (keeper != nullptr && keeper->iterations != nest.iterations)
        return base::Reason{"group: nests that keep values in registers differ in their number of work-items"};
      keeper = &nest;
    }
    for (const ItemNest& nest : launch.nests)
      for (std::size_t d = 0; d < group_dimensions; ++d)
        launch.items[d] = keeper != nullptr ? keeper->iterations[d] : std::max(launch.items[d], nest.iterations[d]);
    const std::int64_t items = launch.items[0] * launch.items[1] * launch.items[2];
    if (target_.group_items > 0 && items > target_.group_items)
      return base::Reason{fmt::format("group: {} work-items, the target has {}", items, target_.group_items)};
    return std::nullopt;
  }

  std::optional<base::Reason> check_nest(const Launch& launch, const ItemNest& nest) const {
    for (const auto& [b, use] : uses_in(program_, body_, nest.begin, nest.end)) {
      if (buffer(b).scope == Scope::registers) {
        const bool elsewhere = std::any_of(launch.nests.begin(), launch.nests.end(), [&](const ItemNest& other) {
          return other.begin != nest.begin && touches(program_, body_, other.begin, b);
        });
        if (elsewhere && !part_of(launch, b))
          return base::Reason{
              fmt::format("registers: values of '{}' pass from one work-item to another", buffer(b).name)};
      } else if (use.written && !nest.threads.empty() &&
                 !is_divided(program_, nest.threads, use.accesses, nest.around)) {
        return meeting(nest.threads, b);
      }
    }
    return std::nullopt;
  }

  // Whether an item may touch in `b` what another one has touched in `a`, and one of them writes.
  bool must_wait(const Launch& launch, const ItemNest& a, const ItemNest& b) const {
    const std::map<int, Uses> before = uses_in(program_, body_, a.begin, a.end);
    for (const auto& [number, use] : uses_in(program_, body_, b.begin, b.end)) {
      const auto other = before.find(number);
      if (other == before.end() || buffer(number).scope == Scope::registers) continue;
      if ((use.written || other->second.written) && !keep_apart(launch, a, other->second, b, use)) return true;
    }
    return false;
  }

  // Whether each item has the same part of a buffer in both nests.
  bool keep_apart(const Launch& launch, const ItemNest& a, const Uses& of_a, const ItemNest& b,
                  const Uses& of_b) const {
    if (a.iterations != b.iterations || a.threads.size() != b.threads.size()) return false;
    if (a.threads.empty()) return true;
    if (a.iterations != launch.items) return false;  // it may be repeated by others
    std::vector<Affine> as_in_a;
    for (int loop = 0; loop < int(program_.loops.size()); ++loop) as_in_a.push_back(Affine::variable(loop));
    for (std::size_t t = 0; t < a.threads.size(); ++t) {
      const Loop &x = program_.loops[std::size_t(a.threads[t])], &y = program_.loops[std::size_t(b.threads[t])];
      if (x.kind != y.kind || x.extent != y.extent) return false;
      as_in_a[std::size_t(b.threads[t])] = Affine::variable(a.threads[t]);
    }
    std::vector<Access> renamed;
    for (const Access* access : of_b.accesses) {
      renamed.push_back(*access);
      for (Affine& form : renamed.back().index) form = substitute(form, as_in_a);
    }
    std::vector<const Access*> all = of_a.accesses;
    for (const Access& access : renamed) all.push_back(&access);
    return is_divided(program_, a.threads, all, launch.band);
  }

  // In order of execution; a loop's second iteration meets what its first one has left.
  void place_barriers(Launch& launch) const {
    std::vector<const ItemNest*> since;  // nests run since the last barrier
    place_barriers(launch, launch.inside, launch.end, since);
  }
  void place_barriers(Launch& launch, int begin, int end, std::vector<const ItemNest*>& since) const {
    for (int n = begin; n < end; n = body_[std::size_t(n)].end) {
      const auto nest =
          std::find_if(launch.nests.begin(), launch.nests.end(), [&](const ItemNest& each) { return each.begin == n; });
      if (nest == launch.nests.end()) {
        const bool again = program_.loops[std::size_t(body_[std::size_t(n)].item)].extent > 1;
        for (int round = 0; round < 1 + int(again); ++round)
          place_barriers(launch, n + 1, body_[std::size_t(n)].end, since);
        continue;
      }
      if (std::any_of(since.begin(), since.end(),
                      [&](const ItemNest* before) { return must_wait(launch, *before, *nest); }))
        launch.barriers.insert(n);
      if (launch.barriers.contains(n)) since.clear();
      since.push_back(&*nest);
    }
  }

  const LoopProgram& program_;
  const Body& body_;
  const Target& target_;
};

// Whether every index is a constant once loops are unrolled, but for what tells the item.
bool is_static(const LoopProgram& program, const Uses& uses) {
  return std::all_of(uses.accesses.begin(), uses.accesses.end(), [&](const Access* access) {
    return access->gathered.empty() && std::all_of(access->index.begin(), access->index.end(), [&](const Affine& form) {
             return std::all_of(form.terms.begin(), form.terms.end(), [&](const Term& term) {
               const LoopKind kind = program.loops[std::size_t(term.variable)].kind;
               return kind == LoopKind::unrolled || kind == LoopKind::vector || kind == LoopKind::virtual_thread ||
                      is_thread(kind);
             });
           });
  });
}

}  // namespace

int dimension_of(LoopKind kind) {
  if (is_block(kind)) return int(kind) - int(LoopKind::block_x);
  return is_thread(kind) ? int(kind) - int(LoopKind::thread_x) : -1;
}

base::Result<std::vector<Launch>> launches(const LoopProgram& program, const Body& body, const Target& target) {
  const Analyst analyst(program, body, target);
  std::vector<Launch> all = analyst.outlines();
  std::map<int, int> keeper;  // by register buffer
  for (int l = 0; l < int(all.size()); ++l) {
    if (auto refused = analyst.complete(all[std::size_t(l)])) return *refused;
    for (const auto& [b, use] : uses_in(program, body, all[std::size_t(l)].begin, all[std::size_t(l)].end))
      if (program.buffers[std::size_t(b)].scope != Scope::memory && keeper.emplace(b, l).first->second != l)
        return base::Reason{fmt::format("group: '{}' is not in memory, and two launches touch it",
                                        program.buffers[std::size_t(b)].name)};
  }
  return all;
}

LoopProgram with_groups(LoopProgram program) {
  const Target any;
  std::map<int, int> launches_of;  // by buffer: how many touch it
  const std::vector<Launch> first = Analyst(program, program.run, any).outlines();
  for (const Launch& launch : first)
    for (const auto& [b, use] : uses_in(program, program.run, launch.begin, launch.end)) ++launches_of[b];
  for (const auto& [b, use] : uses_in(program, program.prepare, 0, int(program.prepare.size()))) ++launches_of[b];
  for (const Launch& launch : first) {
    if (!launch.has_groups) continue;
    const auto is_own = [&](int b) {
      const Buffer& buffer = program.buffers[std::size_t(b)];
      return buffer.role == Role::temporary && !buffer.is_literal() && launches_of[b] == 1;
    };
    const bool has_items = std::any_of(launch.nests.begin(), launch.nests.end(),
                                       [](const ItemNest& nest) { return !nest.threads.empty(); });
    for (const ItemNest& nest : launch.nests) {
      if (!has_items || !nest.threads.empty()) continue;
      std::vector<int> outer =
          band_at(program, program.run, nest.begin, [](LoopKind kind) { return kind == LoopKind::serial; });
      outer.resize(std::min<std::size_t>(2, outer.size()));
      const std::map<int, Uses> uses = uses_in(program, program.run, nest.begin, nest.end);
      const auto are_shared = [&] {
        return std::all_of(uses.begin(), uses.end(), [&](const auto& use) {
          return !use.second.written ||
                 (is_own(use.first) && is_divided(program, outer, use.second.accesses, nest.around));
        });
      };
      while (!outer.empty() && !are_shared()) outer.pop_back();
      for (std::size_t i = 0; i < outer.size(); ++i)
        program.loops[std::size_t(outer[i])].kind = i + 1 == outer.size() ? LoopKind::thread_x : LoopKind::thread_y;
    }
  }
  const Analyst analyst(program, program.run, any);
  for (const Launch& launch : analyst.outlines()) {
    if (!launch.has_groups) continue;
    for (const auto& [b, use] : uses_in(program, program.run, launch.begin, launch.end)) {
      Buffer& buffer = program.buffers[std::size_t(b)];
      if (buffer.role != Role::temporary || buffer.is_literal() || launches_of[b] != 1) continue;
      if (buffer.scope != Scope::memory || launch.band.empty()) continue;
      const bool in_registers = analyst.part_of(launch, b) && is_static(program, use);
      buffer.scope = in_registers ? Scope::registers : Scope::group;
    }
  }
  for (Loop& loop : program.loops) {
    std::erase_if(loop.prefetches, [&](const Access& access) {
      return program.buffers[std::size_t(access.tensor)].scope != Scope::memory;
    });
  }
  return program;
}

}  // namespace graft::codegen
