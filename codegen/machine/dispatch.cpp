#include "codegen/machine/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "codegen/program/analysis.h"

namespace graft::codegen {
namespace {

struct Use {
  const Access* access = nullptr;
  bool writes = false;
};
using Uses = std::vector<std::vector<Use>>;  // by buffer

Uses uses_in(const LoopProgram& program, const Body& body, int begin, int end) {
  Uses uses(program.buffers.size());
  const auto note = [&](const Access& access, bool writes) {
    if (program.buffers[std::size_t(access.tensor)].scope == Scope::memory)
      uses[std::size_t(access.tensor)].push_back({&access, writes});
  };
  for (int n = begin; n < end; ++n) {
    if (body[std::size_t(n)].kind != Node::Kind::store) continue;
    const Store& store = program.stores[std::size_t(body[std::size_t(n)].item)];
    note(store.target, true);
    for (const Access& load : store.value.loads) note(load, false);
  }
  return uses;
}

// Buffers in registers that stores of run[begin, end) touch.
std::set<int> registers_in(const LoopProgram& program, int begin, int end) {
  std::set<int> found;
  const auto note = [&](int buffer) {
    if (program.buffers[std::size_t(buffer)].scope == Scope::registers) found.insert(buffer);
  };
  for (int n = begin; n < end; ++n) {
    const Node& node = program.run[std::size_t(n)];
    if (node.kind != Node::Kind::store) continue;
    note(program.stores[std::size_t(node.item)].target.tensor);
    for (const Access& load : program.stores[std::size_t(node.item)].value.loads) note(load.tensor);
  }
  return found;
}

std::vector<const Access*> accesses_of(const std::vector<Use>& uses) {
  std::vector<const Access*> accesses;
  for (const Use& use : uses) accesses.push_back(use.access);
  return accesses;
}

bool is_written(const std::vector<Use>& uses) {
  return std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.writes; });
}

Section section_at(const LoopProgram& program, int begin) {
  const Body& body = program.run;
  const int end = body[std::size_t(begin)].end;
  Section section{begin, end, {}, 1};
  for (int n = begin; n < end; ++n) {
    const Node& node = body[std::size_t(n)];
    if (node.kind != Node::Kind::loop || node.end != end) break;
    const Loop& loop = program.loops[std::size_t(node.item)];
    if (loop.kind != LoopKind::parallel) break;
    section.band.push_back(node.item);
    section.tasks *= loop.extent;
  }
  return section;
}

// The nests of `run`, but for those that hand values on in registers: these, and all between them, are one section.
std::vector<Section> sections_of(const LoopProgram& program) {
  std::vector<Section> sections;
  std::vector<std::set<int>> registers;  // by section
  for (int n = 0; n < int(program.run.size()); n = program.run[std::size_t(n)].end) {
    sections.push_back(section_at(program, n));
    registers.push_back(registers_in(program, n, sections.back().end));
    const std::set<int>& here = registers.back();
    std::size_t first = 0;  // the earliest section with a value for this one, or itself
    while (first + 1 < sections.size() &&
           !std::any_of(here.begin(), here.end(), [&](int buffer) { return registers[first].count(buffer) != 0; }))
      ++first;
    if (std::any_of(sections.begin() + std::ptrdiff_t(first), sections.end(),
                    [](const Section& section) { return !section.band.empty(); }))
      continue;
    sections[first].end = sections.back().end;
    for (std::size_t s = first + 1; s < sections.size(); ++s)
      registers[first].insert(registers[s].begin(), registers[s].end());
    sections.resize(first + 1);
    registers.resize(first + 1);
  }
  return sections;
}

class Analyst {
 public:
  explicit Analyst(const LoopProgram& program) : program_(program) {
    for (const Loop& loop : program.loops) ranges_.push_back({0, loop.extent - 1});
  }

  // Whether neither touches what the other writes.
  bool are_independent(const Uses& a, const Uses& b) const {
    for (std::size_t buffer = 0; buffer < a.size(); ++buffer) {
      for (const Use& x : a[buffer]) {
        for (const Use& y : b[buffer]) {
          if ((x.writes || y.writes) && !are_apart(*x.access, *y.access)) return false;
        }
      }
    }
    return true;
  }

 private:
  bool are_apart(const Access& a, const Access& b) const {
    for (std::size_t d = 0; d < a.index.size(); ++d) {
      const Interval x = range(a.index[d], ranges_), y = range(b.index[d], ranges_);
      if (x.high < y.low || y.high < x.low) return true;
    }
    return false;
  }

  const LoopProgram& program_;
  std::vector<Interval> ranges_;  // by loop
};

}  // namespace

Dispatch dispatch(const LoopProgram& program, std::int64_t threads) {
  Dispatch result;
  result.copies.assign(program.buffers.size(), 0);
  if (threads <= 1) {
    result.sections.push_back({0, int(program.run.size()), {}, 1});
    result.groups.push_back({0, 1, 1, 1});
    return result;
  }

  const Analyst analyst(program);
  result.sections = sections_of(program);
  std::vector<Uses> uses;  // by section
  for (int s = 0; s < int(result.sections.size()); ++s) {
    const Section& section = result.sections[std::size_t(s)];
    uses.push_back(uses_in(program, program.run, section.begin, section.end));
    bool joins = s > 0;
    if (joins) {
      for (int other = result.groups.back().begin; other < s && joins; ++other)
        joins = analyst.are_independent(uses[std::size_t(other)], uses.back());
    }
    if (!joins) result.groups.push_back({s, s, 0, 1});
    Group& group = result.groups.back();
    group.end = s + 1;
    group.tasks += section.tasks;
  }
  for (Group& group : result.groups) {
    const auto first = result.sections.begin() + group.begin, last = result.sections.begin() + group.end;
    if (std::any_of(first, last, [](const Section& section) { return !section.band.empty(); }))
      group.slots = std::min(threads, group.tasks);
  }

  const Uses prepared = uses_in(program, program.prepare, 0, int(program.prepare.size()));
  for (const Group& group : result.groups) {
    for (int s = group.begin; s < group.end; ++s) {
      const Section& section = result.sections[std::size_t(s)];
      if (section.band.empty()) continue;
      for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const std::vector<Use>& here = uses[std::size_t(s)][b];
        if (!is_written(here) || is_divided(program, section.band, accesses_of(here))) continue;
        bool elsewhere = program.buffers[b].role != Role::temporary || !prepared[b].empty();
        for (std::size_t other = 0; other < uses.size(); ++other)
          elsewhere |= int(other) != s && !uses[other][b].empty();
        if (!elsewhere) {
          result.copies[b] = group.slots;
        } else if (!result.refused) {
          result.refused =
              base::Reason{fmt::format("parallel: iterations of '{}' may meet in the same elements of '{}'",
                                       program.loops[std::size_t(section.band.back())].name, program.buffers[b].name)};
        }
      }
    }
  }
  return result;
}

}  // namespace graft::codegen
